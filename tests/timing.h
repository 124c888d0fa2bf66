/* tests/timing.h - what works take, for tests of the engine */
#ifndef TESTS_TIMING_H
#define TESTS_TIMING_H

#include "sim/engine.h"

/* So many times as long beside a collective of any kind, and such a collective beside it. */
static inline void set_beside(struct work_timing *t, float beside)
{
	for (int i = 0; i < HELD_KINDS; i++)
		t->beside[i] = beside;
	t->slows = beside;
	t->slows_copy = t->beside_copy = 1;
}

static inline struct work_timing takes(ft_ps duration, float port_frac, float nic_frac,
				       float beside, const struct network_path *path,
				       float path_frac)
{
	struct work_timing t = { .duration = duration,
				 .port_frac = port_frac,
				 .nic_frac = nic_frac,
				 .path = path,
				 .path_frac = path_frac };

	set_beside(&t, beside);
	return t;
}

#endif
