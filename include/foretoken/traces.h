/*
 * foretoken/traces.h - the step graph: what one training step does, with no
 * hardware and no seconds in it
 *
 * Ranks that do the same work are one class; there is one class per pipeline
 * stage. A class has a program: the calls its host thread makes, in order. A
 * call launches a segment (one block forward, the optimizer, ...): a list of
 * ops. An op puts one piece of work on a stream. Streams run their ops in
 * launch order; across streams, order comes from events, as in CUDA: an op may
 * record an event when it ends and wait for events before it starts; a wait
 * means the record that the host launched last.
 *
 *   graph -- classes[] -- program: call, call, call ...      (host order)
 *                                    |
 *         -- segments[] <------------+   op, op, op ...      (launch order)
 *                                        |
 *         -- works[] <-------------------+   GEMM m n k, attention, bytes, collective
 */
#ifndef FORETOKEN_TRACES_H
#define FORETOKEN_TRACES_H

#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/models.h"
#include "foretoken/stacks.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ft_work_kind {
	FT_GEMM,
	FT_ATTENTION,
	FT_MEMORY_BOUND,
	FT_COMMUNICATION,
};
enum { FT_WORK_KINDS = FT_COMMUNICATION + 1 };

const char *ft_work_kind_name(enum ft_work_kind kind); /* gemm, attention, memory ... */

/* Who takes part in a collective, in ranks: size members, stride apart. */
enum ft_group {
	FT_GROUP_TP,
	FT_GROUP_CP,
	FT_GROUP_EP,
	FT_GROUP_ETP,
	FT_GROUP_DP,		 /* data parallel, with cp folded in: gradients */
	FT_GROUP_SHARD,		 /* the ranks that share one copy (fsdp, hsdp, zero) */
	FT_GROUP_REPLICA,	 /* the same shard in other copies (hsdp) */
	FT_GROUP_EDP,		 /* replicas of an expert */
	FT_GROUP_EXPERT_SHARD,	 /* those that share one copy of its state, */
	FT_GROUP_EXPERT_REPLICA, /* and the same shard in other copies */
	FT_GROUP_PP,		 /* the neighbour stage */
	FT_GROUP_EMBEDDING,	 /* first and last stage share a tied embedding */
	FT_GROUPS
};

/*
 * Copies of each token that an all_to_all sends to experts. Its bytes count a token once for each
 * rank that its copies reach, and it crosses the network once for each domain; copies of 0: every
 * copy travels. Where routing is limited they go to so many groups of experts, of so many; of 0:
 * to any. With 0 groups of so many the experts of a token follow one another, and the next token's
 * follow them. ft_fanout_reached: of n places (ranks, domains) with as many experts each, how many a
 * token reaches on the average.
 */
struct ft_fanout {
	double copies, groups, of;
};

double ft_fanout_reached(struct ft_fanout fanout, double n);

/* Which keys a query reads, and for what. */
enum ft_keys {
	FT_KEYS_IN_ORDER, /* those before it, or in its window */
	FT_KEYS_CHOSEN, /* as many as a window has, gathered from anywhere before it */
	FT_KEYS_SCORED, /* for scores alone: there are no values */
	FT_KEYS
};
const char *ft_keys_name(enum ft_keys keys);

struct ft_work {
	enum ft_work_kind kind;
	const char *name; /* "qkv", "rmsnorm", "fsdp_copy_in": says what it is */
	enum ft_dtype dtype;
	union {
		struct {
			enum ft_layout layout;
			int64_t m, n, k;
			int64_t groups; /* grouped product: m is the total over groups */
			bool accumulate; /* into an fp32 gradient */
			bool static_tiles; /* its blocks, one a unit, have their tiles at its start */
			bool fast; /* 8 bit: sums stay in the tensor cores' own precision */
		} gemm;
		struct {
			enum ft_pass pass;
			int64_t batch, heads, kv_heads;
			int64_t queries, keys; /* sequence lengths */
			int64_t qk_head_dim, v_head_dim;
			int64_t window; /* 0: all */
			bool causal;
			enum ft_keys keys_are;
			const char *impl; /* cudnn fa2 ...; NULL: the GPU's own */
		} attention;
		struct {
			const char
				*kernel; /* curve of the profile: copy, rmsnorm ... */
			double bytes;	 /* read plus written */
			double row_bytes; /* of the source, of kernels that take it whole; 0: unknown */
			int64_t steps; /* that a block takes one after the other; 0: none waits */
			double flop; /* done on the way; no time of their own */
			bool warm;   /* its input is still in the cache */
			bool low_priority; /* gets compute units only from the tails of others */
		} memory;
		struct {
			enum ft_collective op;
			enum ft_group group;
			double bytes; /* as nccl-tests counts them */
			struct ft_fanout fanout;
			bool copy_engine; /* takes no compute units */
		} communication;
	};
};

/* Is it a copy to or from host memory: one of the kernel FT_HOST_LINK? It takes no compute units. */
#define FT_HOST_LINK "host_link"
bool ft_work_is_host_copy(const struct ft_work *work);

/* A place in a stream and no kernel: it takes no time, and others wait for it. */
bool ft_work_is_mark(const struct ft_work *work);

enum ft_stream {
	FT_STREAM_COMPUTE,
	FT_STREAM_COPY,	   /* FSDP's copy-in */
	FT_STREAM_OFFLOAD, /* to host memory */
	FT_STREAM_FETCH,   /* and back */
	FT_STREAM_GATHER,  /* parameter all-gathers */
	FT_STREAM_REDUCE,  /* gradient reductions */
	FT_STREAM_TP,
	FT_STREAM_CP,
	FT_STREAM_EP,
	FT_STREAM_SEND_FORWARD,
	FT_STREAM_SEND_BACKWARD,
	FT_STREAM_RECV_FORWARD,	 /* activations from the stage before */
	FT_STREAM_RECV_BACKWARD, /* gradients from the next stage */
	FT_STREAMS
};

/* Does a stream send to a neighbour of the pipeline, or receive from one? */
static inline bool ft_stream_sends(int stream)
{
	return stream == FT_STREAM_SEND_FORWARD || stream == FT_STREAM_SEND_BACKWARD;
}

static inline bool ft_stream_receives(int stream)
{
	return stream == FT_STREAM_RECV_FORWARD || stream == FT_STREAM_RECV_BACKWARD;
}

/* What an op may wait for: a named event as the host recorded it last, or the
 * op that the host launched last on some stream (FT_TAIL). */
enum ft_event {
	FT_EVENT_UNSHARDED, /* a unit's weights are in place, on compute */
	FT_EVENT_HEAD,	    /* the output head's product is over, on compute */
	FT_EVENT_EXCHANGED, /* tokens are at their experts, or back: of a forward */
	FT_EVENT_EXCHANGED_BACK, /* and of a backward that runs beside it */
	FT_EVENTS,
	FT_TAIL = 0x40, /* FT_TAIL + stream */
	FT_EVENT_NONE = 0xff
};

/* An op waits for each other stream at most once. */
enum { FT_OP_WAITS = FT_STREAMS - 1 };

struct ft_op {
	uint32_t work;	   /* index into works */
	uint16_t launches; /* kernels that the host launches for it */
	uint8_t stream;	   /* enum ft_stream */
	bool optimizer;	   /* counted as the optimizer's time */
	bool graphed;	   /* launched by a CUDA or HIP graph: no host time */
	bool host_waits;   /* the host launches nothing more until it is over */
	bool reverse; /* of a pipeline: forward from the next stage to the one before, or
		       * backward the other way, as in a V's second half */
	uint8_t record;		   /* event, or FT_EVENT_NONE */
	uint8_t wait[FT_OP_WAITS]; /* events, tails, or FT_EVENT_NONE */
};

const char *ft_event_name(enum ft_event event);

/* Memory, by category. */
enum ft_memory {
	FT_MEMORY_WEIGHTS,
	FT_MEMORY_GRADIENTS,
	FT_MEMORY_OPTIMIZER,
	FT_MEMORY_ACTIVATIONS,
	FT_MEMORY_OTHER,
	FT_MEMORIES
};

const char *ft_memory_name(enum ft_memory category);
double ft_memory_sum(const double bytes[FT_MEMORIES]);

/* What of a segment's host activities stands behind its first ops, as behind one that the host waits for. */
struct ft_behind {
	size_t op; /* the first that it is spread to */
	double host[FT_HOSTS];
};

enum { FT_BEHIND = 6 }; /* of a segment, at most */

struct ft_segment {
	const char *name;
	size_t n_ops;
	struct ft_op *op;
	double host[FT_HOSTS]; /* how often each host activity of the stack */
	size_t n_behind;
	struct ft_behind *behind;	/* [n_behind] of these, in the order of ops */
	double net_bytes[FT_MEMORIES];	/* taken (or given back) when it is over */
	double peak_bytes[FT_MEMORIES]; /* at its fullest moment, above its start */
};

/* Ops from begin to end, and what the host does besides launching them, which is spread evenly among those that it launches
 * one by one: what a graph launches comes at one go. Where a graph launches all of them, it is spread among these. */
struct ft_stretch {
	size_t begin, end, among;
	bool graphed; /* all of them */
	double host[FT_HOSTS];
};

/* The i-th of a segment's n_behind + 1. */
struct ft_stretch ft_segment_stretch(const struct ft_segment *segment, size_t i);

struct ft_call {
	uint32_t segment;
	uint32_t repeat; /* times in a row, >= 1 */
};

/* What a stage does for one micro-batch in one chunk of its layers. */
enum ft_slot_kind {
	FT_SLOT_FORWARD,
	FT_SLOT_BACKWARD, /* backward; where a schedule splits it, gradients of inputs */
	FT_SLOT_WEIGHTS,  /* the rest of a split backward: gradients of weights */
	FT_SLOT_WHOLE, /* a backward that is not split where the schedule splits others */
	FT_SLOT_FLUSH, /* the pipeline is drained: behind the last of a run's micro-batches */
	FT_SLOT_UPDATE, /* the optimizer; of no micro-batch */
	FT_SLOT_KINDS
};

const char *ft_slot_name(enum ft_slot_kind kind);
bool ft_slot_is_pass(enum ft_slot_kind kind); /* of a micro-batch through a chunk */

struct ft_slot { /* one of a schedule */
	enum ft_slot_kind kind;
	int64_t chunk, micro_batch; /* from 0 */
};

/* Where a slot begins in its class's program; it lasts until the next one begins. Two that
 * begin at one call run side by side. */
struct ft_slot_mark {
	struct ft_slot slot;
	size_t call;
};

struct ft_class {
	const char *name; /* "stage 0" */
	int64_t ranks;	  /* how many ranks it represents */
	size_t n_calls;
	struct ft_call *call;
	size_t n_slots; /* 0: not known, of a graph written by hand */
	struct ft_slot_mark *slot;
	double base_bytes[FT_MEMORIES]; /* held all through the step */
};

struct ft_group_shape {
	int64_t size;	/* ranks; 1: no communication */
	int64_t stride; /* distance between neighbours, in ranks */
	bool tiles; /* such groups hold all ranks, and run at once; else one, from rank 0 */
};

struct ft_graph {
	size_t n_works, n_segments, n_classes;
	struct ft_work *work;
	struct ft_segment *segment;
	struct ft_class *rank_class;
	struct ft_group_shape group[FT_GROUPS];
	bool host_runs_ahead; /* steady: nothing makes the host wait for the GPU */
	double tokens;	      /* of one step, all replicas */
	double bubble_frac; /* a pipeline's filling and draining, of a stage's own passes */
	double recomputed_flop_per_rank; /* work done twice, for hfu */
};

/* The step of this model under this plan as this stack would run it. */
struct ft_graph *ft_graph_build(const struct ft_model *model,
				const struct ft_plan *plan,
				const struct ft_stack *stack, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_graph_free(struct ft_graph *graph);

/*
 * A step in outline: every call of it counted, and the order of its passes, but not the
 * calls one by one. A pass is a forward, a backward or a backward's part of one chunk of layers for one
 * micro-batch; those of all micro-batches between the first and the last are the same, but
 * for those at which the pipeline is drained.
 */
enum ft_turn {
	FT_TURN_FIRST,
	FT_TURN_MIDDLE,
	FT_TURN_LAST,
	FT_TURN_FLUSH, /* the last of a run of the pipeline, where it is unlike the step's */
	FT_TURNS
};

struct ft_pass_calls {
	size_t begin, end; /* calls of its class; their repeat counts all its turns */
	int64_t times;	   /* in a step; 0: there is no such turn */
};

struct ft_outline_slot { /* of a stage's schedule */
	uint32_t pass;	 /* of its class */
	uint32_t micro_batch;
	uint16_t chunk;
	uint8_t kind; /* enum ft_slot_kind */
};

struct ft_outline {
	struct ft_graph graph; /* works, segments, groups; calls of a class unordered */
	const struct ft_plan *plan;
	struct ft_pass_calls **pass; /* [n_classes][n_passes] */
	size_t n_passes;
	size_t *last_call; /* [n_classes]: the update, behind all passes */
	size_t *like; /* [n_classes]: the first class whose calls and bytes are the same */
	const struct ft_outline_slot **order; /* [n_classes][n_order] */
	size_t *n_order;		      /* [n_classes] */
};

/* The plan must outlive it. NULL with *err empty: there is none, as micro-batches run in
 * pairs (overlap.ep). */
struct ft_outline *ft_outline_build(const struct ft_model *model,
				    const struct ft_plan *plan,
				    const struct ft_stack *stack, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_outline_free(struct ft_outline *outline);

/* The order of passes on one stage of a plan's pipeline (of the plan: schedule, pp, vpp,
 * micro_batches and flushes), and how many. slot has room for ft_plan_most_slots() of them, which is how
 * many there are but under dualpipev, where it is the most. */
size_t ft_plan_most_slots(const struct ft_plan *plan);
size_t ft_plan_slots(const struct ft_plan *plan, int64_t stage, struct ft_slot *slot);

/* Of these, what is left where autograd cuts backwards: it has no gradient of the model's inputs to
 * compute first, so that the backward of the model's first chunk comes whole, when it is its
 * weights' turn. Source: torch/distributed/pipelining/stage.py, backward_weight_one_chunk. */
size_t ft_slots_by_autograd(int64_t stage, struct ft_slot *slot, size_t n);

/* Filling and draining of a plan's pipeline, over what a stage's own passes take. */
double ft_plan_bubble(const struct ft_plan *plan);

/* Are routed experts computed in fp32, as their weights are, which autocast does not reach? */
bool ft_plan_wide_experts(const struct ft_plan *plan,
			  const struct ft_layout_rules *rules);

/* Do routed experts, in fp32 as their weights are, end a compiled graph? Their layers are counted as if they did not. */
bool ft_plan_experts_break(const struct ft_plan *plan,
			   const struct ft_layout_rules *rules);

/* What each micro-batch runs, one way and the other, whatever the pipeline that a model is cut
 * into: of its ends and of its layers. */
struct ft_sketch_calls {
	size_t begin, end; /* of class 0, in order */
};

struct ft_sketch_unit {
	struct ft_sketch_calls forward, backward;
	struct ft_sketch_calls first; /* the backward of the first micro-batch */
};

struct ft_sketch {
	struct ft_graph graph;
	size_t n_units;
	size_t n_layers;
	/* embedding; head; then, of each shape of layers, one that does not run again under
	 * full recomputation and one that does */
	struct ft_sketch_unit *unit;
	size_t *unit_of; /* [n_layers] the first of the two */
};

/* For all plans that differ in pp, vpp, stages, schedules that split backwards or do not,
 * and in how replicas share weights. */
struct ft_sketch *ft_sketch_build(const struct ft_model *model,
				  const struct ft_plan *plan,
				  const struct ft_stack *stack, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_sketch_free(struct ft_sketch *sketch);

/* What a rank holds all through the step, of the fullest stage; nothing else is built. */
double ft_plan_held_bytes(const struct ft_model *model, const struct ft_plan *plan,
			  const struct ft_stack *stack);

/* The largest memory of a rank over the step, as the simulated step has it but for the
 * rounding of sums. */
double ft_outline_peak_bytes(const struct ft_outline *outline);

/* What waits in the memory of the fullest node at once, of what layers send there for backward (offload_layers). Not of graphs whose
 * state waits there (offload_state), of which the copies are others: ft_plan_node_bytes. */
double ft_graph_host_bytes(const struct ft_graph *graph, int64_t ranks_per_node);
double ft_outline_host_bytes(const struct ft_outline *outline, int64_t ranks_per_node);

/* A text a person can read and edit; what is written is read back the same but for
 * blanks in names, which become _. */
void ft_graph_write(const struct ft_graph *graph, FILE *out);
/* ranks: of the cluster that is to run it, which its classes and groups must fit;
 * 0: not known. */
struct ft_graph *ft_graph_read(const char *path, int64_t ranks, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Floating-point operations, and bytes touched at least once, of one work. */
double ft_work_flop(const struct ft_work *work);
double ft_work_bytes(const struct ft_work *work);

/* Whether two works take the same time on any machine: all that they are but their
 * names. Equal works have equal hashes. */
bool ft_work_same(const struct ft_work *a, const struct ft_work *b);
uint64_t ft_work_hash(const struct ft_work *work);

const char *ft_group_name(enum ft_group group);
const char *ft_stream_name(enum ft_stream stream);

#ifdef __cplusplus
}
#endif
#endif
