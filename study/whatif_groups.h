/*
 * study/whatif_groups.h - groups of a recorded step's collectives: which are data-parallel, which tensor-parallel
 *
 * A group is of as many ranks, of the same ones, and of one description. What it is its description says, or
 * else what it is used for: mark_dp and mark_tp of the .c file.
 */
#ifndef STUDY_WHATIF_GROUPS_H
#define STUDY_WHATIF_GROUPS_H

#include "study/whatif.h"

/* A group met in the recordings. */
struct group {
	const char *ranks, *about;
	int64_t size, stride;
	int64_t n_gathers, n_scatters, n_fsdp; /* n_fsdp: in FSDP's annotations */
	double elements;		       /* of its largest message */
	bool dp, tp, edp, gathers;	       /* edp: data-parallel ranks of experts */
};

enum { GROUPS = 1024 };

struct groups {
	struct group of[GROUPS];
	size_t n;
	int64_t dp, tp; /* ranks of those that are so; 0: nothing tells them */
};

/* All of the recordings, marked. */
void groups_met(const struct ft_replay *p, struct groups *g);

/* Its group, which is a new one where none was met; NULL: there is no room for it. */
struct group *group_of(struct groups *g, const struct ft_rec_collective *c);

/* Does its operation occur among data-parallel ranks? */
bool can_be_dp(const struct ft_rec_collective *c);

#endif
