/* study/stack_there.h - does a scenario's stack run on its GPU? */
#ifndef STUDY_STACK_THERE_H
#define STUDY_STACK_THERE_H

#include "foretoken/study.h"

struct arena;
struct node;

/* at: where the stack was written, or NULL. An error names what would. */
bool stack_runs_there(const struct ft_scenario *s, const struct node *at,
		      struct arena *mem, struct ft_error *err);

#endif
