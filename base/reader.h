/*
 * base/reader.h - reading one map of a document against what it may hold
 *
 *	struct reader r = reader_open(node, err);
 *	gpu->memory = read_quantity(&r, "memory", DIM_BYTES, 0);
 *	...
 *	return reader_close(&r);
 *
 * Each read_* names a key the map may hold; absent (or null) keys give the
 * fallback. The first mistake is kept with its position and everything after
 * it is skipped, so a caller checks once, at reader_close, which also refuses
 * keys that nobody asked for and names the nearest known one. Where a needed key is
 * missing, one that nobody asked for may be meant for it: that is looked at again there.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <math.h>

#include "base/node.h"
#include "base/quantity.h"

enum { READER_KEYS = 128 };

struct reader {
	const struct node *map; /* NULL: an absent map, all fallbacks */
	struct ft_error *err;
	bool failed;
	const struct ft_provenance *from; /* what sourced numbers inherit */
	const char *lacking; /* what to do about a key that is not there, or NULL */
	const char *missing; /* a needed key that is not there; NULL: none */
	const char *own;     /* what a map of this kind calls it; NULL: the same */
	const char *
		base; /* the file upon whose keys others of the map were laid, or NULL */
	bool (*is_name)(const char *key); /* never meant for another; NULL: none is */
	const char *known[READER_KEYS];
	size_t n_known;
};

struct reader reader_open(const struct node *map, struct ft_error *err);

/* Where key (or, when absent, the map) stands. */
struct ft_mark reader_mark(const struct reader *r, const char *key);

bool read_has(struct reader *r, const char *key);

/* Any value; NULL when absent. The caller opens it itself. */
struct node *read_node(struct reader *r, const char *key);

/* The same, and an error when absent. */
struct node *read_need(struct reader *r, const char *key);

/* Finite, > 0 unless the fallback is 0 or the dimension is plain. */
double read_quantity(struct reader *r, const char *key, enum dimension dim,
		     double fallback);
int64_t read_int(struct reader *r, const char *key, int64_t min, int64_t max,
		 int64_t fallback);
bool read_bool(struct reader *r, const char *key, bool fallback);
const char *read_text(struct reader *r, const char *key, const char *fallback);

/* A name goes into scripts, pages and file names: letters, digits, spaces and ._+-,
 * beginning with a letter or a digit. "" when it is given as nothing. */
const char *read_name(struct reader *r, const char *key, const char *fallback);

/* "2026", "2026-11" or "2026-11-22", not after today. */
const char *read_date(struct reader *r, const char *key, const char *fallback);

/* The index of the value in names[n]; another word is an error listing them. */
int read_choice(struct reader *r, const char *key, const char *const *names, size_t n,
		int fallback);

/* 2026, 2026-11 or 2026-11-22 */
bool reader_is_date(const char *text);

/* Of such a date: after today, so that what it is written into cannot be read? */
bool reader_in_future(const char *date);

/* A map's provenance block, if any, becomes what its numbers inherit. */
void read_provenance(struct reader *r, struct arena *mem);

/* A number with provenance: "4.8 TB/s", or {value, low, high, provenance}.
 * No provenance, neither own nor inherited, is an error. */
struct ft_number read_number(struct reader *r, struct arena *mem, const char *key,
			     enum dimension dim);

/* The same where the key may be absent. */
struct ft_number read_number_or(struct reader *r, struct arena *mem, const char *key,
				enum dimension dim, double fallback);

/* read_number of what cannot be 0: time or work is divided by it. */
struct ft_number read_positive(struct reader *r, struct arena *mem, const char *key,
			       enum dimension dim);

/* What was read from key, if it was given, lies within these, or is an error. */
void reader_bound(struct reader *r, const char *key, const struct ft_number *n,
		  double least, double most);

/* A range that is drawn from is one of logarithms, which do not reach the amount of nothing. */
void reader_range(struct reader *r, const char *key, const struct ft_number *n,
		  double nothing);

/* Record a mistake of meaning at key (or at the map when key is NULL). */
bool reader_fail_node(struct reader *r, const char *key, const struct node *node,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool reader_fail(struct reader *r, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Accept keys that this reader does not read itself; more than READER_KEYS of them
 * is an error of the map. */
void reader_allow(struct reader *r, const char *key);

/* Was it asked for, or accepted, so far? */
bool reader_knows(const struct reader *r, const char *key);

/* true when all was well; refuses unknown keys. */
bool reader_close(struct reader *r) __attribute__((warn_unused_result));

#endif
