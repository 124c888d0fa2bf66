/*
 * base/goal.h - text of GOAL, the Group Operation Assembly Language of LogGOPSim: a line a
 * statement, within a rank; // begins a comment
 *
 *   num_ranks 2
 *   rank 0 {
 *   l1: calc 5000 cpu 1
 *   l2: send 8192b to 1 tag 3 cpu 2
 *   l2 requires l1
 *   }
 *
 * Times are nanoseconds. What shares a cpu runs one after another: cpu 0 is the host, the
 * others are streams. Source: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly
 * Language", ICPP 2009; the grammar is that of LogGOPSim's txt2bin.
 */
#ifndef BASE_GOAL_H
#define BASE_GOAL_H

#include <stdio.h>

#include "foretoken/base.h"

/* Statements have numbers from 1 within their rank; 0 is none. */
struct goal {
	FILE *out;
	int64_t n; /* the last number of this rank */
};

/* A rank's place in a group, by its neighbours: ranks base, base + stride ..., or as listed. */
struct goal_ring {
	int64_t base, stride, size, place;
	const int64_t *rank; /* [size], or NULL */
};

/* A rank's part in a collective. */
struct goal_call {
	enum ft_collective op;
	double bytes;
	struct goal_ring ring;
	int64_t tag; /* the first of its messages' */
	int cpu;
};

void goal_begin(struct goal *g, int64_t ranks);
void goal_rank(struct goal *g, int64_t rank);
void goal_rank_end(struct goal *g);
int64_t goal_calc(struct goal *g, ft_ps time, int cpu);
int64_t goal_send(struct goal *g, double bytes, int64_t to, int64_t tag, int cpu);
int64_t goal_recv(struct goal *g, double bytes, int64_t from, int64_t tag, int cpu);
void goal_require(struct goal *g, int64_t what, int64_t on); /* on 0: nothing */

/*
 * A collective after `after`, which is one statement; the statement that ends it. With n ranks
 * and S bytes, as nccl-tests counts them:
 *   all_gather, reduce_scatter   ring: n - 1 steps of S/n to the next rank
 *   all_reduce                   ring: 2 (n - 1) of them
 *   all_to_all                   n - 1 sends of S/n, to the k-th next rank
 *   broadcast                    chain from the first: S to the next
 *   sendrecv                     ring: n - 1 steps of S/(n - 1), as context parallelism's
 * Its messages have tag to tag + goal_tags - 1.
 */
int64_t goal_collective(struct goal *g, const struct goal_call *call, int64_t after);
int64_t goal_tags(enum ft_collective op, int64_t size);

#endif
