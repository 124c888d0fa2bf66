/*
 * sim/engine.h - one step, event by event
 *
 * Per part (ranks that do the same at the same time): a host that launches calls, and
 * streams that run ops in launch order. An op is known by (stream, number): it is over
 * when its stream has completed more ops than its number, so a wait is two small integers
 * and nothing is allocated per op. A running op has work left and a rate; the rate
 * changes when something starts or ends beside it: on its own rank, or on a link that
 * both cross (sim/rates.h). A host that is QUEUE_DEPTH kernels ahead of its compute
 * stream waits.
 *
 * A part is a class of a graph. Where some GPUs differ, their pipeline runs as parts of
 * its own beside that of all the others; parts of one team hold members of the same
 * data-parallel groups, whose collectives begin when all have arrived. A second job's
 * parts share nothing with the first's but links; they start over until it is done.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdio.h>

#include "foretoken/sim.h"
#include "sim/network.h"

/* How much of a GPU a collective holds: the more, the slower what runs beside it. */
enum holds { HELD_BY_RAIL, HELD_BY_NODE, HELD_BY_DOMAIN, HELD_KINDS };

/* What the engine knows of one work on this machine. */
struct work_timing {
	ft_ps duration;		   /* alone */
	float port_frac, nic_frac; /* of the rank's scale-up port, of its NIC */
	float beside
		[HELD_KINDS]; /* compute: its factor beside a collective that holds so much */
	float slows;	      /* a collective beside it: its factor */
	float slows_copy,
		beside_copy; /* a low-priority copy beside it, and it beside that */
	enum holds held;     /* by it */
	bool copy_engine;
	bool holds_all; /* a product: no collective begins before it is over */
	const struct network_path *path; /* other links; NULL: none */
	float path_frac; /* of what the path says, as its sends have pauses */
};

/* One graph with the times of its hosts. */
struct engine_job {
	const struct ft_graph *graph;
	const ft_ps *host;	  /* [n ops of all segments] launch offsets */
	const size_t *host_begin; /* [n_segments] where a segment's begin */
	const ft_ps *host_total;  /* [n_segments] host time of one call */
	bool host_free;		  /* launches cost nothing: the host is ahead */
	bool again;		  /* starts over until the others are done */
	uint32_t meeting;	  /* bit g: the team meets in group g */
};

struct engine_part {
	const struct engine_job *job;
	size_t rank_class;		  /* of the job's graph */
	const struct work_timing *timing; /* [n_works] */
	uint32_t next, before;		  /* parts of the pipeline's neighbour stages */
	uint32_t pipeline;		  /* within it tied embeddings meet */
	uint32_t team;
	const char *name;
};

/* What a card draws: in kernels bound by arithmetic, by memory, in waiting for others. */
struct engine_watts {
	double idle, product, memory, waiting;
};

struct engine_input {
	const struct engine_part *part;
	size_t n_parts, n_pipelines, n_teams, n_links;
	bool run_all;		   /* jump over no pass (sim/engine_jump.c) */
	FILE *timeline;		   /* may be NULL */
	struct engine_watts watts; /* of a counter of the timeline */
	enum ft_timeline form;
	ft_ps hosts_end; /* of launches that run ahead: the step is as long at least */
	int64_t drawn_rank; /* of FT_TIMELINE_KINETO; it is of this part, */
	size_t drawn_part;
	int64_t drawn_from;	     /* whose first rank is this */
	struct gantt *gantt;	     /* of FT_TIMELINE_SVG */
	struct memory_chart *memory; /* of FT_TIMELINE_MEMORY */
};

struct engine_output {
	struct ft_class_result *part; /* [n_parts], times filled in */
	ft_ps *work_time;	      /* [n_works] of the first pipeline, summed */
	uint64_t *work_count;	      /* [n_works] */
	ft_ps end;
	uint64_t events, jumped;
	uint64_t drawn;	   /* of a timeline of Kineto's shape: operations, */
	ft_ps last_launch; /* and when the last was launched */
};

/* n times as much more; no sum passes the largest time. */
static inline ft_ps engine_add_up(ft_ps sum, uint64_t n, ft_ps each)
{
	return each && (uint64_t)(INT64_MAX - sum) / (uint64_t)each < n ?
		       INT64_MAX :
		       sum + (ft_ps)n * each;
}

struct arena;

/* How many compute ops a host may be ahead of its GPU. */
enum { QUEUE_DEPTH = 1024 };

/* What a class is to run, in operations. */
double engine_ops_of(const struct ft_graph *graph, size_t class);

/* false when the graph can never finish: an op waits for one never launched. */
bool engine_run(struct arena *mem, const struct engine_input *in,
		struct engine_output *out, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
