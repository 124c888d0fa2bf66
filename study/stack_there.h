/* study/stack_there.h - does a scenario's stack run on its GPU, and how would a file extend it? */
#ifndef STUDY_STACK_THERE_H
#define STUDY_STACK_THERE_H

#include "foretoken/study.h"

struct arena;
struct node;

/* at: where the stack was written, or NULL. An error names what would. */
bool stack_runs_there(const struct ft_scenario *s, const struct node *at,
		      struct arena *mem, struct ft_error *err);

/* What a file of one's own that extends it says: a name, or the whole path of the file that was read, as a
 * relative one is only from where the scenario is. */
const char *stack_base(const struct ft_scenario *s, struct arena *mem);

/* The file that a fitted stack goes to: name.yaml, which is not there yet; the name's last part is one that keys may have. */
bool stack_file(const char *name, char *path, size_t size, struct ft_error *err);

#endif
