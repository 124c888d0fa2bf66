/*
 * sim/job.h - a graph on its cluster, priced: what each work takes on each class
 */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include "foretoken/sim.h"
#include "sim/engine.h"
#include "sim/network.h"

struct job {
	struct arena *mem;
	const struct ft_graph *graph;
	const struct ft_cluster *cluster;
	const struct ft_stack *stack;
	const struct ft_ccl *ccl;
	struct ft_memo *memo;
	bool outline;		 /* its passes are in no order (traces/outline.c) */
	struct network *network; /* NULL: NICs are the narrowest links there are */
	size_t first_part;	 /* of the network: that of class 0 */
	int64_t end_node;	 /* there: behind the job's last */
	struct work_timing *
		*timing; /* [n_classes][n_works]; neighbours alike share one */
	double *pace; /* [n_classes] of products: what bursts take, over what they take */
	/* Kernels of the busiest class on cards that hold the lowest and the highest clock of their kind, over
	 * what they take here. */
	double slow_card, fast_card;
	double *spread;	    /* [n_works] relative */
	bool *extrapolated; /* [n_works] */
	double queued_s;    /* of what a message between stages takes: in its queue */
	struct engine_job engine;
};

/* Costs, spreads and host times; graph, cluster, stack, network are set. */
bool job_time(struct job *job, enum ft_step_start start, struct ft_error *err)
	__attribute__((warn_unused_result));

/* What a kernel takes, stack's factor included, in a short burst and at the clock that products
 * hold for seconds. */
struct clocks {
	double burst_s, sustained_s;
	double asks; /* of the limit: kernels bound by memory; attention, at the clock of
		      * products' bursts, 0: as products */
};

/* The first part of job_time: those of each work, NULL: *err. Then a collective. */
struct clocks *job_clocks(struct job *job, struct ft_error *err);
bool job_time_collective(struct job *job, size_t work, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- sim/clocks.c ----------------------------------------------------------- */

/* What kernels take on each class, at its clock. */
void job_mix_clocks(struct job *job, const struct clocks *clocks);

/* A step's clock, 1 in bursts of products; of what lies between these and sustained ones,
 * products fall by `fall`: from 0 to 1, more only where attention draws more than they would. */
struct job_clock {
	double clock, fall;
};

void job_set_clock(struct job *job, size_t class, const struct clocks *clocks,
		   struct job_clock at);

/* So much of a pipeline's filling and draining does the limit average over. */
double job_filling_s(const struct ft_part *gpu);

/* Kernels of a step in bursts, s. */
struct job_load {
	double products, sustained; /* products alone for seconds */
	double attention, asked;    /* times what it asks for */
	double others, drawn;	    /* the same of kernels bound by memory */
};

void job_load_add(struct job_load *to, enum ft_work_kind kind, const struct clocks *of,
		  double times);
/* The clock where the limit averages over so many seconds, in what is left of which the card waits. */
struct job_clock job_clock_of(const struct ft_cluster *cluster,
			      const struct job_load *load, double of_s);

/* `asks` of a kernel that takes so long in a burst; of a card that waits. */
double job_asks(const struct ft_cluster *cluster, const struct ft_work *work,
		double burst_s);
double job_waiting_asks(const struct ft_cluster *cluster);

/* ---- sim/messages.c --------------------------------------------------------- */

/* Is it one between stages? */
bool work_is_message(const struct ft_work *work);

/* Messages of a pipeline wait in queues, and kernels beside them take longer, where the stack has it so. */
void job_queue_messages(struct job *job);

/* ---- sim/durations.c -------------------------------------------------------- */

/* A class's costs with its compute 1 / speed_frac as long. */
struct work_timing *job_slowed(const struct job *job, size_t class, double speed_frac);

/* When the host launches each operation, all it does taking so many times as long as it should. */
void job_hosts(const struct job *job, double times, struct engine_job *out);

/* The host's time of one step on a class; the longest over the classes. */
ft_ps job_host(const struct job *job, size_t class);
ft_ps job_host_longest(const struct job *job);

/* ---- sim/result.c ----------------------------------------------------------- */

/* Peak of what the host has allocated, in program order. */
void result_memory(const struct ft_graph *graph, size_t class,
		   struct ft_class_result *out);
/* What is held when each call of a class's program begins: [n_calls]. */
void result_memory_before(const struct ft_graph *graph, size_t class,
			  double (*before)[FT_MEMORIES]);

/* Breakdown over run's parts, interval and shares, once run->step and times are in. */
void result_fill(const struct job *job, const struct engine_output *out,
		 ft_ps steady_extra, struct ft_run *run);

#endif
