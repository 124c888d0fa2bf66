/*
 * foretoken/sim.h - where work meets the machine: how long each kernel and each
 * collective takes, and how a whole step runs
 *
 * Anatomy of a step, on one rank:
 *
 *   |<--------------------------------- step_s ---------------------------------->|
 *   |<- bubble ->|<------- forward and backward, micro-batch by micro-batch ----->|
 *   host    |L|L|L|L|L|L|L|L|.....                              launches run ahead
 *   compute      |####|####|..|####|####|         |#####|####|       |#optimizer##|
 *   network      |    |==hidden==| |=exposed==|   |==hidden==|=exposed=|
 *
 * On each rank every instant counts once, the first that applies:
 *   optimizer              an optimizer kernel runs
 *   compute                another compute kernel runs
 *   exposed_communication  a collective is in flight, waiting for peers included
 *   bubble                 it waits for a pipeline neighbour
 *   host                   else: the host has not launched yet
 * The five add up to step_s; the result is the mean over ranks.
 */
#ifndef FORETOKEN_SIM_H
#define FORETOKEN_SIM_H

#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/hw.h"
#include "foretoken/stacks.h"
#include "foretoken/traces.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A predicted duration. */
struct ft_prediction {
	double time_s;
	double spread_frac; /* one standard deviation of the relative error */
	bool extrapolated;  /* the shape is far from anything measured */
};

/* In a short burst; at the clock that large products hold for seconds. */
enum ft_clock { FT_CLOCK_BURST, FT_CLOCK_SUSTAINED };

/* One kernel alone on one rank. false: the GPU has no such format or curve. */
bool ft_kernel_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		       enum ft_clock clock, struct ft_prediction *out,
		       struct ft_error *err) __attribute__((warn_unused_result));

/* Predictions remembered by work, for many runs on the same handles of GPUs, clusters and
 * communication libraries, which stay as they are; not shared between threads. memo NULL:
 * nothing is remembered. */
struct ft_memo;

struct ft_memo *ft_memo_new(void);
void ft_memo_free(struct ft_memo *memo);
size_t ft_memo_size(const struct ft_memo *memo); /* predictions that it holds */
bool ft_kernel_recall(struct ft_memo *memo, const struct ft_gpu *gpu,
		      const struct ft_work *work, enum ft_clock clock,
		      struct ft_prediction *out, struct ft_error *err)
	__attribute__((warn_unused_result));

/* A collective: what, how much (as nccl-tests counts bytes), among whom. algorithm and
 * protocol force a row of the table (ft_collective_algorithm; LL, LL128, Simple); NULL:
 * what the library or the fabric chooses. */
struct ft_collective_call {
	enum ft_collective op;
	double bytes;
	struct ft_group_shape shape;
	const char *algorithm, *protocol;
	struct ft_fanout fanout; /* of an all-to-all: what crosses the network */
};

/* One collective alone, on its own ranks. */
struct ft_collective_result {
	struct ft_prediction duration;
	const char *algorithm, *protocol;
	const char *chosen_by; /* time, library, fabric, asked; table inside a domain */
	/* How much longer that takes than the best of the table by our clock, and which one
	 * that is. 0 and NULL inside a domain, where tables hold what was chosen. */
	double regret_frac;
	const char *best_algorithm, *best_protocol;
	double scale_up_bytes; /* what a rank sends inside the domain, */
	double nic_bytes;      /* and through its NIC */
	int64_t domains;       /* scale-up domains it spans; 1: inside one */
};

/* Inside one domain or across several. false: the library does not know the GPU's generation, the group
 * spans nodes and there is no fabric, or what was asked for cannot run here. */
bool ft_collective_predict(const struct ft_cluster *cluster, const struct ft_ccl *ccl,
			   const struct ft_collective_call *call,
			   struct ft_collective_result *out, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The names of the table of algorithms: the i-th, and what it is; NULL: no more. */
const char *ft_collective_algorithm(size_t i, const char **what);

/* What joins the ranks of a domain; fabric NULL: the first that the profile has. A port is a
 * rank's, one direction; 0: the profile's. Links k times as fast with the same latencies take for
 * S bytes what the profile's take for S / k. */
struct ft_links {
	const char *fabric;
	double port_bytes_per_s;
};

/* Inside one domain from the profile's tables. The stride matters in irregular meshes alone. ccl
 * names algorithm and protocol, and may keep reductions out of the NVLink switch; NULL: they are
 * "none". false when the profile knows nothing of this op over this fabric. */
bool ft_collective_inside(const struct ft_gpu *gpu, const struct ft_links *links,
			  const struct ft_ccl *ccl,
			  const struct ft_collective_call *call,
			  struct ft_collective_result *out, struct ft_error *err)
	__attribute__((warn_unused_result));

struct ft_breakdown {
	double compute_s, exposed_communication_s, bubble_s, host_s, optimizer_s;
};

/* Where the kernel time goes, by work; largest first. */
struct ft_share {
	const char *name;
	double time_s; /* of a rank, mean over classes */
	double count;
	double flop,
		bytes; /* of all of them; bytes that must be touched at least once */
	/* roofline: the sum of max(flop / peak of the format, bytes / bandwidth); 0: of
	 * communication, and where the GPU has no peak for the format */
	double roofline_s;
	enum ft_work_kind kind; /* copies to and from host memory: communication */
	bool optimizer;		/* all of it is the optimizer's */
	bool extrapolated;
};

struct ft_class_result {
	const char *name;
	int64_t ranks;
	ft_ps end;
	ft_ps compute, exposed, bubble, host, optimizer; /* before padding */
	double peak_bytes[FT_MEMORIES]; /* at the moment the sum is largest */
	double peak_total_bytes;
};

/* A pipeline stage: the mean over its ranks, slow GPUs' among them, and what each keeps. */
struct ft_stage_result {
	struct ft_breakdown breakdown; /* adds up to the step */
	double peak_bytes[FT_MEMORIES], peak_total_bytes;
};

struct ft_run {
	ft_ps step;
	struct ft_breakdown breakdown; /* adds up to the step */
	double spread_frac; /* of the step, from its kernels: one standard deviation */
	double host_spread_frac; /* likewise, from how much hosts differ (host_factor) */
	/* And by how much it is shorter, and longer, on cards that hold the highest and the lowest clock
	 * under load that their kind is known to hold (gemm.sustained). */
	double clock_faster_frac, clock_slower_frac;
	double extrapolated_frac;
	uint64_t events, jumped; /* jumped: of passes that go as one before */
	size_t n_classes, n_stages, n_shares;
	struct ft_class_result *rank_class;
	struct ft_stage_result *stage;
	struct ft_share *share;
	/* Of the step: compute and optimizer; the part of that in kernels bound by memory (as
	 * of all kernels' time); how much longer the others take than at the clock of bursts; waiting for
	 * peers and pipeline neighbours, which spins; the latter alone. */
	double gpu_busy_frac, gpu_memory_frac, gpu_slowed_frac, gpu_waiting_frac,
		gpu_bubble_frac;
};

/* In which form a step is written as it ran: Chrome trace JSON of all parts; a rank
 * of one class as Kineto records it; a Gantt chart of one pipeline, in SVG. */
enum ft_timeline {
	FT_TIMELINE_CHROME,
	FT_TIMELINE_KINETO,
	FT_TIMELINE_SVG,
	FT_TIMELINE_MEMORY,
	FT_TIMELINES
};

/* A step to run: its graph, the machine, the software. */
struct ft_sim_job {
	const struct ft_graph *graph;
	const struct ft_cluster *cluster;
	const struct ft_stack *stack;
	const struct ft_ccl *ccl;
	enum ft_step_start start;
	bool idle; /* it has its nodes and does nothing */
	enum ft_timeline timeline;
	int64_t drawn_rank; /* of FT_TIMELINE_KINETO */
	const char *title;  /* of a drawing; may be NULL */
	bool run_all; /* also passes that are known to go as one before: the same step */
};

/*
 * beside: another job on the next nodes of the same fabric; both begin together, and its
 * steps repeat until the first is done; timeline: where it is written as it ran; memo:
 * predictions to share. Each may be NULL. The GPUs that the cluster's imperfections slow
 * down run as separate pipelines, which follow the others in ft_run's classes.
 */
struct ft_run *ft_sim_run(const struct ft_sim_job *job, const struct ft_sim_job *beside,
			  FILE *timeline, struct ft_memo *memo, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_run_free(struct ft_run *run);

/* The step's ranks as GOAL, the text that LogGOPSim and its like run: kernels with the time
 * that they take alone, collectives as the sends and receives of a ring, with what was chosen
 * for them in comments. */
bool ft_sim_goal(const struct ft_sim_job *job, struct ft_memo *memo, FILE *out,
		 struct ft_error *err) __attribute__((warn_unused_result));

/* How many times as long as the stack says a host's activities take on this cluster: its
 * processors, and the ranks of a node, which share them. */
double ft_sim_host_factor(const struct ft_cluster *cluster,
			  const struct ft_stack *stack);

struct ft_bound {
	ft_ps step;    /* a step is not shorter */
	double busy_s; /* its GPUs are not busy for less, mean over ranks */
};

/* What can be said of the step of that outline (whose graph job->graph need not be) without
 * running it, whatever else is true of the cluster. pairs: its micro-batches run in pairs, and
 * the outline is of the same plan without. Proof: docs/plan.md. */
bool ft_sim_bound(const struct ft_sim_job *job, const struct ft_outline *outline,
		  struct ft_memo *memo, bool pairs, struct ft_bound *bound,
		  struct ft_error *err) __attribute__((warn_unused_result));

/* The same, looser and in a small part of the time, for all plans that a sketch stands for.
 * Proof: docs/plan.md. */
struct ft_sketched;

struct ft_sketched *ft_sim_sketch(const struct ft_sim_job *job,
				  const struct ft_sketch *sketch, struct ft_memo *memo,
				  struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_sketched_free(struct ft_sketched *sketched);
struct ft_bound ft_sketched_bound(const struct ft_sketched *sketched,
				  const struct ft_plan *plan);

/* The largest memory of a rank, as ft_sim_run finds it. */
double ft_graph_peak_bytes(const struct ft_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
