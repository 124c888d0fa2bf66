/* study/runs.c - the measured runs of the tree, filtered */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "base/text.h"
#include "study/evidence_file.h"

/* "gpu=h100*", "gpus=64..512", "source=mlperf*" */
struct filter {
	const struct ft_trait *trait; /* NULL: id or source */
	bool id;
	const char *pattern;
	double least, most;
};

struct whole {
	struct ft_runs runs; /* first: the handle is the arena's */
	struct arena mem;
	struct ft_evidence *evidence;
};

static bool unknown_key(const char *key, const struct ft_trait *t, size_t n,
			struct arena *mem, struct ft_error *err)
{
	const char **names = ARENA_ARRAY(mem, n + 2, const char *);

	for (size_t i = 0; i < n; i++)
		names[i] = t[i].name;
	names[n] = "id";
	names[n + 1] = "source";
	return ft_fail(err, NULL, "runs have no '%s'; they have %s", key,
		       text_join(mem, names, n + 2));
}

/* "64", "64..512", "64..", "..512" */
static bool read_range(struct arena *mem, const char *text, struct filter *f)
{
	const char *dots = strstr(text, "..");
	const char *first =
		dots ? arena_text_n(mem, text, (size_t)(dots - text)) : text;
	const char *last = dots ? dots + 2 : text;
	char *end;

	f->least = *first ? strtod(first, &end) : -INFINITY;
	if (*first && *end)
		return false;
	f->most = *last ? strtod(last, &end) : INFINITY;
	if (*last && *end)
		return false;
	return *text && f->least <= f->most;
}

static bool read_filter(struct arena *mem, const char *word, struct filter *f,
			struct ft_error *err)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t), len = strcspn(word, "=");
	const char *key = arena_text_n(mem, word, len);

	if (word[len] != '=')
		return ft_fail(err, NULL,
			       "'%.60s' is no filter: write KEY=VALUE, as gpu=h100* or "
			       "gpus=64..512",
			       word);
	f->pattern = word + len + 1;
	f->id = !strcmp(key, "id");
	if (f->id || !strcmp(key, "source"))
		return true;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(t[i].name, key))
			f->trait = &t[i];
	if (!f->trait)
		return unknown_key(key, t, n, mem, err);
	return !f->trait->number || read_range(mem, f->pattern, f) ||
	       ft_fail(err, NULL,
		       "'%.60s': write a number, or a range as 64..512, the smaller end "
		       "first",
		       word);
}

static const char *word_of(const struct filter *f, const struct ft_evidence *e,
			   const struct run *r)
{
	return f->trait ? ft_trait_word(f->trait, &r->traits) :
	       f->id	? r->id :
			  e->source[r->source];
}

static bool passes(const struct filter *f, const struct ft_evidence *e,
		   const struct run *r)
{
	double x;

	if (!f->trait || !f->trait->number)
		return !fnmatch(f->pattern, word_of(f, e, r), 0);
	x = ft_trait_number(f->trait, &r->traits);
	return x >= f->least && x <= f->most;
}

/* A word that no run has, and that is like one that some run has, is a slip of the pen. */
static bool is_no_slip(const struct filter *f, const char *word,
		       const struct ft_evidence *e, struct arena *mem,
		       struct ft_error *err)
{
	const char **words, *near;

	if ((f->trait && f->trait->number) || strpbrk(f->pattern, "*?["))
		return true;
	words = ARENA_ARRAY(mem, e->n + 1, const char *);
	for (size_t i = 0; i < e->n; i++) {
		words[i] = word_of(f, e, &e->run[i]);
		if (!strcmp(words[i], f->pattern))
			return true;
	}
	near = text_nearest(f->pattern, words, e->n);
	return !near || ft_fail(err, NULL, "%.60s: no run has that; did you mean '%s'?",
				word, near);
}

static void gather(struct whole *w, const struct filter *f, size_t n)
{
	const struct ft_evidence *e = w->evidence;

	w->runs.run = ARENA_ARRAY(&w->mem, e->n + 1, struct ft_measured);
	for (size_t i = 0; i < e->n; i++) {
		const struct run *r = &e->run[i];
		size_t passed = 0;

		while (passed < n && passes(&f[passed], e, r))
			passed++;
		if (passed == n)
			w->runs.run[w->runs.n++] = (struct ft_measured){
				.id = r->id,
				.source = e->source[r->source],
				.traits = &r->traits,
				.error_frac = expm1(-r->log_ratio),
				.tokens_per_s_per_gpu = r->tokens_per_s_per_gpu,
			};
	}
}

struct ft_runs *ft_runs_find(const char *const *filters, size_t n, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct filter *f;

	w->mem = mem;
	f = ARENA_ARRAY(&w->mem, n + 1, struct filter);
	for (size_t i = 0; i < n; i++)
		if (!read_filter(&w->mem, filters[i], &f[i], err)) {
			ft_runs_free(&w->runs);
			return NULL;
		}
	w->evidence = evidence_load(false, err);
	for (size_t i = 0; w->evidence && i < n; i++)
		if (!is_no_slip(&f[i], filters[i], w->evidence, &w->mem, err)) {
			ft_runs_free(&w->runs);
			return NULL;
		}
	if (!w->evidence) {
		ft_runs_free(&w->runs);
		return NULL;
	}
	gather(w, f, n);
	return &w->runs;
}

void ft_runs_free(struct ft_runs *runs)
{
	struct whole *w = (struct whole *)runs;
	struct arena mem;

	if (!runs)
		return;
	evidence_free(w->evidence);
	mem = w->mem;
	arena_release(&mem);
}
