/*
 * study/sweep_grid.h - the combinations of a sweep, numbered from 0
 */
#ifndef STUDY_SWEEP_GRID_H
#define STUDY_SWEEP_GRID_H

#include "base/arena.h"
#include "foretoken/study.h"

enum { GRID_VARY = 16, GRID_VALUES = 256, GRID_SETS = 256 };

struct grid_axis {
	const char *key;
	const char *value[GRID_VALUES];
	size_t n;
};

struct grid {
	const struct ft_sweep *sweep;
	struct arena mem;
	struct grid_axis axis[GRID_VARY];
	const char **key; /* [n_keys] of --set and --vary, each once */
	size_t n_keys;
	size_t total; /* combinations, of the shard where one is given */
};

/* The sweep must outlive it. To be released on error, too. */
bool grid_open(struct grid *grid, const struct ft_sweep *sweep, struct ft_error *err)
	__attribute__((warn_unused_result));
void grid_release(struct grid *grid);

/* The settings of combination i: sets[GRID_SETS + GRID_VARY] for the scenario, and the same
 * as a text, both in mem. */
const char *grid_settings(const struct grid *grid, struct arena *mem, size_t i,
			  const char **sets);

/* The key of a combination that is refused for what the scenario (its text) or a setting says, such as a GPU under another vendor's
 * stack. It holds no files, as such a combination is looked at anew each time. false: the mistake is in a file, or for the lack of one. */
bool grid_refused(const struct grid *grid, const char *text, const char *settings,
		  const struct ft_error *why, char key[33]);

#endif
