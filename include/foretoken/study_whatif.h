/*
 * foretoken/study_whatif.h - what if, on a recorded step
 */
#ifndef FORETOKEN_STUDY_WHATIF_H
#define FORETOKEN_STUDY_WHATIF_H

#include "foretoken/recorded.h"
#include "foretoken/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what if, on a recorded step ------------------------------------------------- */

/* What is to be different. */
struct ft_whatif_request {
	const struct ft_replay *replay;
	const char
		*from; /* profile of the recording's GPU; NULL: by the device's name */
	const char *gpu, *fabric; /* NULL: as recorded; the node's own */
	int64_t dp, tp; /* data-parallel, tensor-parallel ranks; 0: as recorded */
	double speedup[FT_REC_CLASSES]; /* times faster, 1e-6 to 1e6; 0: as it is */
	bool without[FT_COLLECTIVES];
	bool without_waiting;	 /* ranks that were not recorded never come late */
	const char *const *sets; /* of a scenario's cluster and cost, of the target */
	size_t n_sets;
	const char *step; /* its name or number; NULL: all but a first of several */
	FILE *timeline;	  /* the first rank as replayed, in Kineto's shape; or NULL */
	double tokens_per_step; /* of the recorded job; 0: not told, no dollars */
};

/* Parts of a change: kernels by class, collectives, hosts. */
enum ft_whatif_part {
	FT_PART_GEMM,
	FT_PART_ATTENTION,
	FT_PART_MEMORY, /* memory-bound kernels, copies */
	FT_PART_OPTIMIZER,
	FT_PART_COLLECTIVE,
	FT_PART_HOST,
	FT_PART_OTHER, /* what could not be classified; changed by --speedup alone */
	FT_PARTS
};

const char *ft_whatif_part_name(enum ft_whatif_part part);

struct ft_whatif_change {
	double recorded_s, replayed_s; /* of a rank: durations, added up */
	double step_s; /* what it adds to the step (Shapley): they add up to the change */
	bool changed;
};

enum { FT_WHATIF_NOTES = 16 };

struct ft_whatif {
	const char *step; /* as asked */
	double recorded_step_s, step_s, low_s,
		high_s;				/* P10, P90: of what was re-timed */
	struct ft_rec_where recorded, replayed; /* mean over ranks and steps */
	struct ft_whatif_change change[FT_PARTS];
	double classified_frac; /* of the time of kernels, by class */
	double by_work_frac, by_stand_in_frac, kept_frac; /* of it, how re-timed */
	int64_t ranks_recorded, ranks, gpus, dp_recorded, dp, tp_recorded, tp;
	char from[64], gpu[64], fabric[64]; /* profiles; "" where none was needed */
	bool moved;			    /* to another machine or size */
	bool priced;			    /* cost and tokens hold */
	double tokens_per_s;
	struct ft_cost cost;
	size_t n_notes;
	char note[FT_WHATIF_NOTES][200]; /* what was assumed, one sentence each */
};

bool ft_study_whatif(struct ft_shelf *shelf, const struct ft_whatif_request *asked,
		     struct ft_whatif *answer, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Of one rank as recorded, the mean over the steps that were asked for. */
struct ft_rec_skew ft_study_skew(const struct ft_replay *replay,
				 const struct ft_replayed *recorded, size_t rank,
				 const char *step);

/* The kernels of the last of these steps, of the first rank, in mem. */
struct ft_rec_kernel *ft_study_step_kernels(const struct ft_replay *replay,
					    const char *step, struct arena *mem,
					    size_t *n);

/* The step of a scenario, and the same as profilers would have recorded it on the stages of
 * a pipeline of which there are recordings. */
struct ft_trace_predicted {
	struct ft_outcome outcome;
	size_t n;		  /* stages, at least one */
	size_t *stage;		  /* [n] of outcome.run->rank_class */
	struct ft_recording **of; /* [n] */
	struct ft_replay *replay; /* of them; NULL: it cannot be drawn, */
	struct ft_error why;	  /* as this says */
	bool cut; /* its backward passes are cut in two: no layer repeats whole */
};

/* recorded: whose stages; NULL: the first alone. To be released, also after an error. */
bool ft_study_trace_predict(struct ft_scenario *scenario,
			    const struct ft_replay *recorded,
			    struct ft_trace_predicted *to, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_trace_predicted_release(struct ft_trace_predicted *p);

/* A recorded step beside a predicted one: means over ranks, and over their stages. */
struct ft_trace_gap {
	const char *what;
	double recorded_s, predicted_s;
	bool of_step; /* a part of the step, counted once; else durations, added up */
};

enum { FT_TRACE_GAPS = 10 };

/* Kernels by class, then the parts of the step, which add up to it; the step last. */
void ft_study_trace_gaps(const struct ft_whatif *recorded,
			 const struct ft_trace_predicted *predicted,
			 struct ft_trace_gap gap[FT_TRACE_GAPS]);

/* Of a layer's time: durations of kernels, added up, then instants when none of them ran. */
enum ft_trace_kind {
	FT_TRACE_PRODUCTS,
	FT_TRACE_ATTENTION,
	FT_TRACE_MEMORY,  /* with copies and the optimizer */
	FT_TRACE_EXPOSED, /* collectives alone */
	FT_TRACE_IDLE,	  /* nothing, or a pipeline neighbour */
	FT_TRACE_KINDS
};

const char *ft_trace_kind_name(enum ft_trace_kind kind);

struct ft_trace_time {
	double all_s; /* from begin to end */
	double kind_s[FT_TRACE_KINDS];
};

/* The layers of a step (foretoken/recorded.h, ft_rec_layers), forward and backward, of all
 * micro-batches together, so that they and what is outside add up to the step. */
struct ft_trace_side {
	int64_t layers; /* 0: not found, and why */
	const char *why;
	int64_t in_forward, in_backward; /* products and attention of a layer */
	int64_t told; /* layers that its kernels tell; 0: they tell none. If equal to layers, it is these */
	struct ft_trace_time (*layer)[2]; /* [layers][backward] */
	struct ft_trace_time outside;
};

struct ft_trace_layers {
	struct ft_trace_side recorded, predicted;
};

/* The asked steps of a recording, mean over ranks and steps; all in mem. By repetition; told: as kernels
 * tell them. */
struct ft_trace_side ft_study_trace_layers(const struct ft_whatif_request *asked,
					   bool told, struct arena *mem);

/* Both sides' layers: as they are told where they are, of the predicted step if a profiler's
 * recording has as many; else by repetition, by which some layers are not found, or several are one. */
struct ft_trace_layers ft_study_trace_both_layers(
	const struct ft_whatif_request *recorded,
	const struct ft_whatif_request *predicted, struct arena *mem);

/* ---- the hosts of a stack, fitted to recordings -------------------------------------- */

/* How a host constant was told. */
enum ft_host_told {
	FT_HOST_ABSENT, /* the scenario's step has none of it: kept */
	FT_HOST_KEPT,	/* nothing tells it from what stands beside it: kept */
	FT_HOST_SPAN,	/* by itself: annotations, or from launch to launch */
	FT_HOST_REST,	/* what the other activities of its sections leave */
	FT_HOST_JOINT, /* likewise, but only the sum with others of its sections is known */
	FT_HOST_SOLVED, /* by the sections alone, whatever the stack says */
	FT_HOST_BELOW,	/* the others take more than was recorded: 0 */
	FT_HOST_TOLDS
};

const char *ft_host_told_name(enum ft_host_told told);

struct ft_host_fit_request {
	const struct ft_replay *replay; /* all ranks alike */
	struct ft_scenario *scenario;	/* what was recorded; without a pipeline */
	const char *step;		/* as of a what-if */
	const char *name, *date;	/* of the file to write, without .yaml; NULL */
	double pace; /* of the host's time, what it takes without the profiler */
};

struct ft_host_constant {
	double was_s, is_s;
	size_t n; /* samples: sections, annotations or launches */
	enum ft_host_told told;
};

struct ft_host_fit {
	char path[4096]; /* the file written */
	bool by_op;	 /* operation by operation; else by layer */
	size_t sections;
	double pace; /* what part of the recorded time the host takes unprofiled */
	double before_frac,
		after_frac; /* mean error of sections, as it was; as fitted */
	struct ft_host_constant of[FT_HOSTS];
};

/* Writes a stack that extends the scenario's. False, and no file: a pipeline, another step
 * than the scenario's, or the file exists. */
bool ft_study_fit_hosts(const struct ft_host_fit_request *asked,
			struct ft_host_fit *fit, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The profile of a device by the name that its driver gives; NULL: none of ours. */
const char *ft_study_gpu_named(const char *device);

#ifdef __cplusplus
}
#endif
#endif
