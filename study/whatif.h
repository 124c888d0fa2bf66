/*
 * study/whatif.h - a recorded step on another machine, inside: machines, groups, times
 */
#ifndef STUDY_WHATIF_H
#define STUDY_WHATIF_H

#include "base/arena.h"
#include "foretoken/study_whatif.h"

/* A machine that a step runs on: its cluster and library, and its GPU with all rows. */
struct machine {
	struct ft_scenario *scenario;
	const struct ft_ccl *ccl; /* NULL: no collective asks for it */
	struct ft_gpu *gpu;
};

/* What of a tensor-parallel step is known, and what of it could not be told. */
struct tensor {
	bool sequence;	  /* activations between the products are sharded, too */
	double elements;  /* of its largest message in sum: tokens times features */
	double hidden;	  /* features that are not sharded; 0: no shapes tell them */
	int64_t unshaped; /* kernels taken to be sharded though without shapes */
	int64_t kept;	  /* kernels that may be sharded or not, and keep their time */
	double kept_s;
};

struct whatif {
	struct arena mem;
	struct ft_shelf *shelf;
	const struct ft_whatif_request *asked;
	struct ft_whatif *answer;
	struct machine from, to;
	struct ft_retiming *retiming; /* NULL: no kernel is another */
	bool other_gpu;
	struct tensor tensor;
	bool sharded; /* its data-parallel ranks hold parts of the weights */
	struct ft_replay_times recorded, changed;
	bool **counted;	   /* [rank][op]: it begins in a step that is asked for */
	int64_t n_steps;   /* of those, over all ranks */
	double least_s;	   /* of a step that the host can launch; 0: not known */
	double **spread_s; /* [rank][op]: one standard deviation of what it now takes */
	double part_spread_s[FT_PARTS]; /* of the sums over the steps */
};

/* One sentence for the reader; what is beyond the list's end is left out. */
void whatif_note(struct whatif *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- study/whatif_machine.c ------------------------------------------------------- */

bool machines_load(struct whatif *w, struct ft_error *err)
	__attribute__((warn_unused_result));
void machines_release(struct whatif *w);

/* Dollars, where tokens are told. */
bool machine_price(struct whatif *w, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- study/whatif_groups.c ---------------------------------------------------------- */

/* Which groups are data-parallel, how many ranks there will be. */
bool groups_find(struct whatif *w, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- study/whatif_collectives.c ------------------------------------------------------ */

/* Re-times all collectives in w->changed. */
bool collectives_retime(struct whatif *w, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- study/whatif_wishes.c ------------------------------------------------------------ */

/* --speedup and --without, on top of what the machine changes. */
bool wishes_apply(struct whatif *w, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- study/whatif_words.c ------------------------------------------------------------ */

/* "[0, 4, 8]": the distance of the first two; one more than the highest, 0: not told. */
int64_t ranks_stride(const char *ranks);
int64_t ranks_up_to(const char *ranks);

/* Does a description say that its ranks are tensor-parallel, data-parallel, replicas of experts? */
bool says_tp(const char *about);
bool says_dp(const char *about);
bool says_expert_dp(const char *about);

/* ---- study/whatif_tensor.c ---------------------------------------------------------- */

/* Before kernels are re-timed: which features are not sharded. */
void tensor_begin(struct whatif *w);

/* What tensor parallelism of the asked size leaves of an operation. */
struct ft_rec_left tensor_left(struct whatif *w, const struct ft_recording *recording,
			       const struct ft_rec_op *op);
void tensor_end(struct whatif *w);

enum ft_whatif_part part_of(const struct ft_rec_op *op);

/* ---- study/whatif_steps.c ----------------------------------------------------------- */

/* Is this step of a rank one of those that are asked for? asked NULL: of those that all
 * ranks have, all but a first of several. */
bool whatif_is_step(const char *asked, const struct ft_replay *replay, size_t rank,
		    size_t step);

#endif
