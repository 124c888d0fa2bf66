/*
 * traces/build.h - what the files that build a step graph share
 *
 * One builder fills one graph. Segments are made once per kind of layer and variant and called
 * many times; works once per distinct shape and number of kernels. Ops of a segment are written
 * in the order the host launches them. A collective that the next compute op must wait for is
 * noted with need(); the op then waits for the tail of that stream.
 */
#ifndef TRACES_BUILD_H
#define TRACES_BUILD_H

#include "base/arena.h"
#include "foretoken/traces.h"
#include "traces/schedule.h"

/* Which copy of a segment: what differs between micro-batches of one step. */
enum variant {
	V_FIRST = 1,   /* the first micro-batch: nothing accumulated yet */
	V_SYNC = 2,    /* its backward reduces gradients */
	V_EDGE = 4,    /* no neighbour to gather ahead */
	V_RAGGED = 8,  /* the smaller last micro-batch */
	V_BUCKET = 16, /* a gradient bucket is full behind this layer */
	V_GATHER = 32, /* weights of a bucket are gathered ahead of this layer; backward
			* under fsdp: its own, which no layer before gathered */
	V_FETCH = 64,  /* its share comes back from host memory first */
	V_FETCH_BELOW = 128, /* and that of the layer below meanwhile */
	V_TOP = 256, /* backward under fsdp and of a scan: the last layer, behind the head */
	V_BUCKETS = 512, /* times this: the number of that bucket */
};

/* What a rank holds. */
struct held {
	double dense, experts; /* parameters that are trained, before sharding */
	double matrices;       /* of dense, what Muon updates; counted under it alone */
	double mapped; /* of a rank's share: in tensors for which a host maps memory each time */
	double frozen, frozen_experts; /* bytes of weights that are not */
	int64_t tensors;	       /* that trained parameters are kept in, */
	int64_t frozen_tensors;	       /* and frozen ones */
};

struct segment_key {
	int role;     /* enum role */
	int64_t kind; /* layer kind, or chunk */
	unsigned variant;
	unsigned beside; /* of a pair: the backward's variant */
	enum part part;
};

struct builder {
	struct arena *mem;
	const struct ft_model *model;
	const struct ft_plan *plan;
	const struct ft_stack *stack;
	const struct ft_layout_rules *rules;
	struct ft_graph *g;
	size_t work_cap, segment_cap, op_cap;
	uint16_t *launches;	 /* [work_cap]; of each op of a work */
	struct segment_key *key; /* [segment_cap] */
	struct ft_segment *seg;	 /* the one being written */
	bool needs[FT_STREAMS];	 /* the next compute op waits for these tails */
	enum part part;		 /* what is put and not of it is left out */
	bool of_weights;	 /* what is put is of weights' gradients */
	enum ft_dtype format;	 /* of products; routed experts may have their own */
	bool adapting;		 /* what is put belongs to an adapter */
	int record_next;	 /* event the next compute op records, or none */
	bool autocast;		 /* fp32 weights and residuals, 16-bit products */
	bool graphed;		 /* what is being written is launched by a CUDA graph */
	bool of_shards; /* what is launched works on a rank's own tensors, not on DTensors */
	bool awaits[FT_EVENTS];	 /* the next compute op waits for these events */
	enum ft_event exchanged; /* what exchanges of tokens record; FT_EVENTS: none */
	struct choice *chosen; /* of a layer that runs again but for this; else NULL */
	bool again_now;	       /* what is written runs again, in front of a backward */
	bool host_waited;      /* somewhere in the step the host waits for the GPU */
	int64_t tokens;	       /* of a rank in this micro-batch: mbs * s / cp */
	int64_t sequences;     /* mbs of it */
	int64_t *kind, *below; /* [n_layers] first that runs the same; the one below */
	bool *again;	       /* [n_layers] under full recomputation: this one, too */
	bool *offload;	       /* [n_layers] what it keeps waits in host memory */
	double *sent_frac;   /* [n_layers] of what each keeps, so much is transferred */
	bool transfers;	     /* to host memory, and back */
	struct held *unit;   /* [n_layers] what each layer holds */
	struct held *bucket; /* [n_buckets] what those of the step hold */
	size_t n_buckets, bucket_cap;
};

/* Bytes of the hidden states of the tokens, in 16 bit. */
static inline double hidden_bytes(const struct builder *b)
{
	return 2 * (double)(b->tokens * b->model->hidden_size);
}

/* graph.c */
void builder_init(struct builder *b, const struct ft_model *model,
		  const struct ft_plan *plan, const struct ft_stack *stack);

/* The segment of that key, if it exists: true and *id. Else begin it. */
bool segment_known(struct builder *b, struct segment_key key, uint32_t *id);
void segment_begin(struct builder *b, struct segment_key key, const char *name);
uint32_t segment_end(struct builder *b);

bool splits_by_dtensor(const struct builder *b);
/* The host's time for DTensors of an eager operator that launches so many kernels; those that put_op launches have it. */
void call_operator(struct builder *b, int launches);
bool left_out(const struct builder *b); /* is what is put not of the part? */

/* Ops of the segment being written; what is left out comes back, too, and is nowhere. */
struct ft_op *put_op(struct builder *b, const struct ft_work *work,
		     enum ft_stream stream, int launches);
void put_wait(struct ft_op *op, int event_or_tail);
void need(struct builder *b, enum ft_stream stream);
void await_event(struct builder *b, enum ft_event event);
/* From here on what is put is of weights' gradients, or not; what it was. */
bool of_weights(struct builder *b, bool is);
/* The host waits for the last compute op that was put. */
void host_waits(struct builder *b);
void host(struct builder *b, enum ft_host activity, double times);

/* Compute ops; sizes of 0 put nothing. A product accumulates as layout and stack say;
 * put_gemm has one group, put_grouped and put_gemm have the plan's format. */
struct edges {
	int64_t m, n, k;
};

void put_product(struct builder *b, const struct ft_work *product);
void put_grouped(struct builder *b, const char *name, enum ft_layout layout,
		 struct edges edges, int64_t groups);
void put_gemm(struct builder *b, const char *name, enum ft_layout layout, int64_t m,
	      int64_t n, int64_t k);
void put_memory(struct builder *b, const char *name, const char *curve, double bytes,
		int launches);

/* Where autograd cuts a backward, a tensor of weights begins its part by summing up gradients of its
 * output: one, in 16 bit (torch/distributed/pipelining/_backward.py, stage_backward_weight). */
void put_gradient_sum(struct builder *b, double elements);

/* The same over rows of that many bytes each: norms, softmax, loss. */
void put_rows(struct builder *b, const char *name, const char *curve, double bytes,
	      int launches, double row_bytes);

/* recipes.c: is each operation of a model's text a kernel? */
bool by_operation(const struct builder *b);
/* Bytes a number that an RMS norm in single operations keeps more than a kernel, which keeps its
 * input: that in fp32, and what its weights multiply, if they are trained, in 16 bit or fp32. */
double norm_kept(const struct builder *b);
bool drops_out(const struct builder *b);
/* Norms with which nothing else is done, of numbers in all; rows of 0 bytes: several at once. */
void put_bare_norms(struct builder *b, const char *name, double numbers,
		    double row_bytes, int norms, bool backward);

/* Does this one go by copy engines, as the plan has it? */
bool on_copy_engine(const struct builder *b, enum ft_collective op);

/* A collective of that many bytes (nccl-tests' count), behind the last compute
 * op launched; group size 1 puts nothing (NULL). */
struct ft_op *put_collective(struct builder *b, const char *name, enum ft_stream stream,
			     enum ft_collective op, enum ft_group group, double bytes);

/* block.c: one transformer layer */
void layer_forward(struct builder *b, int64_t layer);
void layer_backward(struct builder *b, int64_t layer);
/* One micro-batch's forward of one layer and another's backward of another, each
 * one's exchanges of tokens beside the other's computation. */
void layer_pair(struct builder *b, int64_t forward, int64_t backward);
/* What it keeps for backward when so much is recomputed, and what it computes twice. */
double layer_saved_bytes(const struct builder *b, int64_t layer, enum ft_recompute how);
/* What of it, or computed again, stays until its weights' gradients are computed. */
double layer_deferred_bytes(const struct builder *b, int64_t layer);
double layer_recomputed_flop(const struct builder *b, int64_t layer);

/* context.c: how a context group shares attention, and what of other ranks' keys and values a
 * layer holds with its own while it runs, and keeps for its backward. */
enum ft_context_parallel context_parallel(const struct ft_stack *stack,
					  const struct ft_plan *plan);
double gathered_context_bytes(const struct builder *b, int64_t layer);
double kept_context_bytes(const struct builder *b, int64_t layer, unsigned set);

/* recompute.c: what runs again before a layer's backward */
enum ft_recompute layer_recompute(const struct builder *b, int64_t layer);
void choose_layers(struct builder *b); /* fills again, offload and kind */

/* ends.c: embedding, head and loss */
void embedding_forward(struct builder *b);
void embedding_backward(struct builder *b);
void head_forward(struct builder *b);
void head_backward(struct builder *b);
double head_logits(const struct builder *b), part_logits(const struct builder *b);
/* predicted.c: the head, and behind it tokens predicted ahead */
void outputs_forward(struct builder *b), outputs_backward(struct builder *b);

/* parameters.c: a rank's share of what is sharded; bytes that the optimizer keeps, with moments so wide */
void held_add(struct held *sum, struct held more);
double held_share(const struct builder *b, struct held of);
double held_state(const struct builder *b, struct held of, bool shared, double width);
struct held layer_held(const struct builder *b, int64_t layer);
struct held ends_held(const struct builder *b, bool first, bool last);
struct held predicted_held(const struct builder *b);
struct held outputs_held(const struct builder *b, bool first); /* tied: embedding */
int64_t layer_tensors(const struct builder *b, int64_t layer);

#endif
