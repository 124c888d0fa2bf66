/*
 * study/keys.h - the keys of a scenario, each once
 *
 * One table says what may be a column of RUNS.csv, what is told as `assumed` when
 * nobody gave it, and what each key came to be once all defaults were laid under the
 * scenario. A new key of a scenario is a row here and a read where it belongs.
 */
#ifndef STUDY_KEYS_H
#define STUDY_KEYS_H

#include "foretoken/study.h"

struct arena;

enum {
	KEY_TOLD = 1,	/* in `assumed` when absent */
	KEY_COLUMN = 2, /* a column of RUNS.csv */
	KEY_FILE = 4,	/* names a file: what was given stays as it is */
};

struct scenario_key {
	const char *path; /* dotted */
	unsigned flags;
	/* Its value as YAML would have it; NULL: only what was given. */
	const char *(*value)(struct arena *mem, const struct ft_scenario *s);
	const char *about; /* one clause, for people */
};

size_t scenario_keys(const struct scenario_key **key);

/* The scenario with every key's value in it, fit to be read again: the same answer. */
struct node *scenario_resolve(struct arena *mem, const struct ft_scenario *s);

/* Where the key does nothing in this scenario, as it is about experts, say, of which its model has
 * none: the value that may stand there ("null": none), else NULL. And: no key is stated in its
 * `training` that does nothing in any of n plans (study/idle_keys.c). */
const char *scenario_idle_value(const struct ft_scenario *s, const char *path);
bool scenario_no_idle_key(const struct ft_scenario *s, const struct node *training,
			  const struct ft_plan *plan, size_t n, struct ft_error *err);

/* Are new weights gathered beside the next forward pass where overlap.param_gather says so? */
bool scenario_gathers_ahead(const struct ft_scenario *s);

/* Does the GPU multiply in the plan's format? */
bool scenario_multiplies(const struct ft_scenario *s, const struct node *training,
			 struct ft_error *err);

/* Terms that the price book leaves without effect are refused (study/terms.c). */
bool terms_count(const struct ft_scenario *s, struct ft_error *err);

/* Do years and interest count? Not of a rent of which nothing is paid ahead. */
bool terms_ahead(const struct ft_scenario *s);

/* Its title, else its name, else its file's stem: one line, as tables, plots and pages have for
 * it; NULL, with *err, when it is not. */
const char *scenario_label(struct arena *mem, const struct ft_scenario *s,
			   struct ft_error *err);

#endif
