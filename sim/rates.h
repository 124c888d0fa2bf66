/*
 * sim/rates.h - how fast ops run that run together
 *
 * An op has work left, in picoseconds it would take alone, and a rate <= 1:
 *   collectives         max-min (sim/share.h): the sum of rate * fraction is at most 1
 *                       on a rank's scale-up port, on its NIC, and on each link that it
 *                       shares with other parts, other groups or another job
 *   compute op beside a collective:   1 / its factor beside the one that holds most units
 *   collective beside a compute op:   the lesser of its share and 1 / its factor: its kernel copies
 *                                     slower, and where links are slower still, that does not show
 *   low-priority copy beside compute: 1 / its factor beside such a kernel, and the kernel 1 / its own
 *                                     beside a copy
 * A collective on copy engines takes nothing from compute and loses nothing to it.
 * Source: products, attention and copies beside 2 to 24 channels on H100, recorded steps (the
 * profiles' interference blocks) and ConCCL, arXiv 2412.14335; the factors are found in
 * sim/durations.c.
 */
#ifndef SIM_RATES_H
#define SIM_RATES_H

#include "foretoken/base.h"
#include "sim/share.h"

struct work_timing;

#define NO_FLOW UINT32_MAX

struct running {
	double left; /* ps at rate 1 */
	double rate;
	double share; /* max-min, of what it would have alone */
	ft_ps at;     /* when left was true */
	const struct work_timing *of;
	uint32_t flow; /* in the solver; NO_FLOW: crosses no link */
	uint8_t stream;
	bool optimizer, copy_engine;
};

void running_begin(struct running *r, const struct work_timing *c, int stream,
		   bool optimizer, ft_ps now);

/* Take another rate from now on; the time it will end. */
ft_ps running_change(struct running *r, ft_ps now, double rate);

/* The links of all parts, and who runs over them. */
struct rates {
	struct share share;
	struct arena *mem;
	struct running **owner;	  /* [owner_cap] by flow */
	struct running **changed; /* whose share the last call changed */
	size_t owner_cap, changed_cap, n_changed;
	size_t n_parts;
};

void rates_init(struct rates *s, struct arena *mem, size_t n_parts, size_t n_links);

/* A collective of a part begins, or ends: `changed` tells whose shares differ. */
void rates_enter(struct rates *s, struct running *r, size_t part,
		 const struct work_timing *c);
void rates_leave(struct rates *s, struct running *r);

/* The rates of n ops that run together on one rank, from their shares. */
void rates_of(struct running *const *run, int n, double *rate);

#endif
