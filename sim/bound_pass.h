/* sim/bound_pass.h - what a pass takes at least, alone and behind others */
#ifndef SIM_BOUND_PASS_H
#define SIM_BOUND_PASS_H

#include "sim/bound_front.h"

/* What a pass does to its stage, from the end of the pass before on. */
struct pass_time {
	ft_ps length;		 /* until its last compute op is over: D */
	ft_ps from_first;	 /* the same from its first compute op on: R */
	ft_ps reduced, gathered; /* until those streams are done; NOT_YET: not known */
	struct block work;	 /* what compute does */
	struct block reduces;	 /* those behind compute of this pass */
	bool awaits,		 /* its neighbour */
		reduces_any,
		gathers; /* and comes once: it is put behind what was before */
};

/* An outline that is being bounded. */
struct bounding {
	struct arena *mem;
	const struct ft_outline *o;
	struct front_of *of;	 /* [n_classes] */
	struct pass_time **pass; /* [n_classes], as the outline's */
	ft_ps transfer[2];	 /* forward, backward: as long as it takes alone */
};

/* Its calls, one behind another. */
void bound_put_pass(struct front *f, const struct bounding *b, size_t class,
		    const struct ft_pass_calls *pass);
/* Those of all classes; passes that are the same are timed once. */
void bound_time_passes(struct bounding *b);

#endif
