/*
 * traces/graph_words.h - a line of a step graph's text as words, each with its place
 *
 * The first mistake is kept with the line and column of the word that makes it.
 */
#ifndef TRACES_GRAPH_WORDS_H
#define TRACES_GRAPH_WORDS_H

#include "base/limits.h"
#include "foretoken/traces.h"

struct arena;

/* What a graph holds is at most so much, in SI units. */
#define GRAPH_MOST_BYTES 1e18
#define GRAPH_MOST_TOKENS 1e15
#define GRAPH_MOST_PRODUCTS 1e18 /* multiplications of one work */

struct graph_word {
	const char *text, *value; /* "m=5": m and 5; value NULL without '=' */
	int column;
	bool used;
};

struct graph_line {
	struct ft_mark at;
	struct graph_word word[LIMIT_GRAPH_WORDS];
	size_t n;
	struct ft_error *err;
};

/* Cut line in place. */
bool graph_split(struct graph_line *l, char *line);

/* A mistake at a word, or at the line's beginning when there is no such word. */
bool graph_fail(struct graph_line *l, size_t word, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The word KEY=VALUE, which is taken: its place, or 0. */
size_t graph_option(struct graph_line *l, const char *key);

/* The value of such a word; NULL when there is none. */
const char *graph_value(struct graph_line *l, const char *key);

/* A number at a place (its value if it has one), within bounds. */
bool graph_number(struct graph_line *l, size_t word, double least, double most,
		  double *out);
bool graph_whole(struct graph_line *l, size_t word, int64_t least, int64_t most,
		 int64_t *out);

/* Of an option; out stays as it is when it is not given. A number is 0 at least. */
bool graph_number_of(struct graph_line *l, const char *key, double most, double *out);
bool graph_whole_of(struct graph_line *l, const char *key, int64_t least, int64_t most,
		    int64_t *out);

/* KEY=true or false; false when not given. */
bool graph_truth(struct graph_line *l, const char *key, bool *out);

/* The number of a word among n that name() tells; -1 when it is none or NULL. */
int graph_find(const char *text, const char *(*name)(int), int n);

/* ft_group_name, for graph_find. */
static inline const char *graph_group_at(int i)
{
	return ft_group_name((enum ft_group)i);
}

/* What a work of its kind holds beside kind, name and format. */
bool graph_work(struct graph_line *l, struct arena *mem, struct ft_work *w);

/* All options were taken. */
bool graph_all_used(struct graph_line *l);

#endif
