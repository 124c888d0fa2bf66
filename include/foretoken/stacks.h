/*
 * foretoken/stacks.h - the software: which operations a framework runs, and
 * what its host thread pays for each
 *
 * A stack has a layout (casts, copies, fusions, buckets, prefetch: it shapes the
 * step graph), rates (host seconds, factors on kernel times: used by sim/) and
 * defaults (plan keys). One stack may extend another. The same GPU runs
 * at different speeds under two stacks.
 */
#ifndef FORETOKEN_STACKS_H
#define FORETOKEN_STACKS_H

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node;

/* The stack of those who name none: what plain code does, on any GPU. It is one of those that
 * say of themselves that they are unnamed. */
#define FT_STACK_UNNAMED "generic"

/* What a host thread does, by the name of its rate. */
enum ft_host {
	FT_HOST_LAUNCH,	       /* one kernel or copy */
	FT_HOST_COLLECTIVE,    /* one collective call */
	FT_HOST_BLOCK_FORWARD, /* a transformer block, without its launches */
	FT_HOST_BLOCK_BACKWARD,
	FT_HOST_SPLIT_WEIGHT, /* a tensor of weights whose gradient autograd computes later */
	FT_HOST_SPLIT_BELOW, /* beyond that: for each other such tensor below it in a chunk */
	FT_HOST_PIECE, /* one more graph that a compiled block is cut into: both passes */
	FT_HOST_CHECKPOINT_FORWARD, /* beyond the block's: of one that will run again whole */
	FT_HOST_CHECKPOINT_BACKWARD, /* and while it does, beyond that forward pass */
	FT_HOST_SELECTIVE_FORWARD,   /* the same of one of which some operations do */
	FT_HOST_SELECTIVE_BACKWARD,
	FT_HOST_SHARD_FORWARD, /* hooks of one sharded unit (FSDP) that is gathered */
	FT_HOST_SHARD_BACKWARD,
	FT_HOST_SHARD_KEPT,  /* and of one whose weights are there still */
	FT_HOST_TABLE,	     /* one block of the table before gradients are packed */
	FT_HOST_TABLE_FRESH, /* beyond that: of a table whose memory is new each time */
	FT_HOST_GRADIENT_HOOK,	/* one parameter's gradient hook (DDP) */
	FT_HOST_TENSOR_FORWARD, /* a block under tensor parallelism (DTensor) */
	FT_HOST_TENSOR_BACKWARD,
	FT_HOST_ENDS_FORWARD, /* embedding, head and loss */
	FT_HOST_ENDS_BACKWARD,
	FT_HOST_MICRO_BATCH, /* the loop around one micro-batch */
	FT_HOST_PIPELINE,    /* one send or receive */
	FT_HOST_OPTIMIZER,
	FT_HOST_OPTIMIZER_TENSOR, /* one parameter tensor of an update */
	FT_HOST_TENSOR_UPDATE,	  /* the same where operations update it one by one */
	FT_HOST_SHARD_TENSOR,	  /* beyond the former: of a tensor that FSDP wraps */
	FT_HOST_STATE_UPDATE, /* a million numbers that the host updates, on one thread */
	FT_HOST_STATE_MEMORY, /* a MB that such an update reads or writes, on any */
	FT_HOST_STATE_NORM, /* a million numbers of gradients whose norm the host takes */
	FT_HOST_STATE_JOIN, /* a million that it copies and adds to earlier micro-batches' */
	FT_HOST_STATE_MAPPED, /* beyond that: of tensors whose memory is new each time */
	FT_HOST_STATE_VIEWS,  /* a million whose gradients FSDP1's host makes anew */
	FT_HOST_STEP,	      /* the loop around one step */
	FT_HOST_ADAPTER,      /* one adapter, in one pass */
	FT_HOST_TENSOR_OP,    /* a launch of eager DTensor, beside the launch itself */
	FT_HOST_MATRIX,	      /* a matrix that Muon updates by operations of DTensors */
	FT_HOST_REDISTRIBUTE, /* beyond a collective's: one of them is gathered or summed */
	FT_HOST_OPERATION,	 /* one more operation in a block than the usual ones */
	FT_HOST_GRAPH,		 /* one CUDA or HIP graph, launched */
	FT_HOST_EXPERTS_FORWARD, /* a routed MLP, without its launches */
	FT_HOST_EXPERTS_BACKWARD,
	FT_HOST_EXCHANGE, /* beyond a collective's: one exchange among experts */
	FT_HOST_EXPERT,	  /* one expert of a routed MLP where each has its own calls */
	FT_HOST_SYNC,	  /* the host asks the GPU for token counts, and waits */
	FT_HOST_INPUTS, /* it asks for a number of a micro-batch's inputs (asks_inputs) */
	FT_HOST_PAIR, /* a layer of two micro-batches side by side, beyond what each takes */
	FT_HOST_PAIR_EXPERT, /* likewise, one local expert of it */
	FT_HOSTS
};

const char *ft_host_name(enum ft_host activity);

/* How element-wise work is fused: a kernel an operation, norms a kernel each; by a compiler; by
 * hand-written kernels as Megatron and Transformer Engine have them; in operations, as eager
 * but for RMS norms, which are written in single operations in fp32 and run so; or, in modules, by
 * Transformer Engine's norms and rotary positions and compiled gates of experts, all else as eager. */
enum ft_fusion {
	FT_FUSION_EAGER,
	FT_FUSION_COMPILED,
	FT_FUSION_KERNELS,
	FT_FUSION_OPERATIONS,
	FT_FUSION_MODULES
};

/* How tensor-parallel collectives overlap the products around them. */
enum ft_tensor_parallel {
	FT_TP_MEGATRON, /* backward ones overlap dgrad and wgrad */
	FT_TP_DTENSOR,	/* each waits for the one before */
};

/* How keys and values reach the ranks of a context group. */
enum ft_context_parallel {
	FT_CP_RING,
	FT_CP_ALL_GATHER,
	FT_CP_ALL_TO_ALL,
	FT_CP_GATHERED_RING, /* PyTorch's: gathered once, gradients go round */
};

/* What is saved, or computed again, by `recompute: selective`. */
enum ft_selective {
	FT_SELECTIVE_ATTENTION, /* core attention is computed again */
	FT_SELECTIVE_OPS,	/* element-wise work and every second product */
};

/* What `recompute: full` runs again of a layer. */
enum ft_full_recompute {
	FT_AGAIN_WHOLE,	 /* its forward pass to the end */
	FT_AGAIN_NEEDED, /* up to what a backward reads last */
};

enum ft_routing {
	FT_ROUTING_FUSED,    /* as `fusion` has it */
	FT_ROUTING_GATHERED, /* by PyTorch's gathers and sums with atomics */
	FT_ROUTING_INDEXED,  /* by its indexing and a batched product in fp32 */
	FT_ROUTING_WEIGHTED, /* by its indexing, weights in fp32 and sums with atomics */
	FT_ROUTING_COMPILED, /* the same as a compiler makes it */
};

enum { FT_STACK_CCLS = 4, FT_STACK_GENERATIONS = 8 };

/* The implementation of attention on GPUs of one generation, in the place of the others'. */
struct ft_attention_on {
	const char *generation; /* ccl_generation of the GPU's profile */
	const char *impl;
	struct ft_mark mark;
};

struct ft_layout_rules {
	enum ft_fusion fusion;
	enum ft_tensor_parallel tensor_parallel;
	enum ft_selective selective;
	enum ft_full_recompute full_recompute;
	enum ft_routing routing; /* of tokens to experts and back */
	enum ft_context_parallel context_parallel;
	enum ft_context_parallel context_parallel_lora; /* the same under adapters */
	bool fused_qkv;					/* q, k, v in one product */
	bool fused_gate_up;				/* gate and up in one product */
	bool sums_each_input; /* each product split by columns: its input's gradient */
	bool model_classes;   /* all as the model's class in Transformers has it */
	bool masked_dispatch; /* into slots of a capacity by products with a mask */
	bool static_buffers; /* of experts, for all copies of all ranks, without a capacity */
	bool forced_in_turn; /* forced balance numbers experts on; else they are drawn */
	bool weighted_activation; /* of experts, by the router; else their outputs are */
	bool fused_softmax;	 /* of unfused attention: scale, mask, softmax in one */
	bool narrow_softmax;	 /* else they are kernels in 16 bit, not in fp32 */
	bool fused_loss;	 /* no fp32 copy of the logits */
	bool loss_in_operations; /* on fp32, a kernel each, as nanotron has it */
	bool autocast;		 /* fp32 weights, cast to 16 bit each forward */
	bool autocast_always; /* forward runs under it whatever the weights' format */
	bool uncached_autocast; /* copies of a recomputed layer's weights go with its forward pass */
	bool backward_outside_autocast; /* it ends with the loss, and its copies of weights with it */
	bool dropout;			/* masks are drawn and kept */
	bool gradient_fusion;	 /* wgrad adds into the fp32 gradient itself */
	bool ignored_experts;	 /* fsdp: experts that no other rank has are not its */
	bool unsharded_pipeline; /* fsdp in a pipeline: once in a step, in whole tensors */
	bool reduces_at_flush; /* each time that a pipeline is drained, not once in a step */
	bool collectives_in_turn; /* fsdp: gathers and reductions, one at a time */
	bool flat_shards; /* fsdp: a unit's weights are one tensor, and so are its gradients */
	bool whole_gradients; /* zero1 in bf16: all-reduced, and another set besides */
	bool all_reduced_gradients; /* zero1: every rank gets all sums, not its part alone */
	bool broadcast_parts; /* zero1: weights by a broadcast of each rank's, in turn */
	bool gather_under_forward; /* zero1: weights gathered during forward */
	bool gathers_twice; /* or else, with ep, all of them by each of two optimizers */
	bool split_backward; /* schedules that cut a backward in two can be run */
	bool dual_pipe;	     /* and dualpipev */
	bool autograd_split; /* by autograd: for each tensor of weights its output's gradient
			      * is copied, and the model's first chunk is not cut */
	bool unwrapped_alone;	 /* no ddp around one replica */
	bool experts_as_weights; /* in fp32 where their weights are, one after another */
	bool wide_experts_break; /* in fp32 they end a compiled graph: told, not counted */
	bool norm_finalize; /* of norms on heads, backward: one kernel more adds their gradients up */
	bool static_tiles; /* grouped products are one kernel whose blocks have their tiles at its start */
	bool wide_outputs; /* the logits are returned in fp32 */
	bool copied_outputs; /* ddp looks for unused parameters, and copies what a pass returns */
	bool gradients_until_backward; /* those of the step before go behind a forward pass */
	bool plain_loss; /* PyTorch's, on whole logits in 16 bit, which tensor ranks gather */
	bool loss_in_place; /* of an unfused loss: the gradient of fp32 logits lies where they were */
	bool update_lists; /* AdamW holds the roots of all second moments at once */
	bool adapter_units; /* under fsdp, as PEFT wraps them: each of an adapter's two weights */
	bool inputs_apart; /* under DTensor: of q, k, v, gate and up, each its own */
	bool asks_loss; /* behind each micro-batch's backward the host waits for its loss */
	bool whole_graph; /* compiled at once, from the table of words to the loss */
	bool loss_on_host; /* with offload_layers of all layers what the loss keeps goes, too */
	bool asks_inputs; /* each forward asks the GPU for a number of its inputs */
	bool host_sync;	  /* the host waits for the GPU in every step */
	bool mixed_norms; /* rows and columns of a norm's backward in one kernel */
	bool cut_blocks;  /* compiled blocks under ddp, at each bucket */
	bool shared_muon; /* under ddp: a rank updates its part of the matrices */
	bool scan_layers; /* layers are turns of a scan, which stacks what they keep */
	bool one_program; /* a step with all its micro-batches is one, as XLA has it */
	bool compiled_update;  /* the optimizer's passes are the compiler's */
	bool receive_sync;     /* and, without overlap.pp, for what a stage receives */
	bool messages_in_turn; /* of chunks: a stage's, one at a time (sim/messages.c) */
	bool receive_buffers;  /* of a stage, for each micro-batch, all step long */
	bool ragged_batch;     /* the last micro-batch may be smaller */
	bool gather_root_again; /* fsdp: root unit resharded after forward */
	bool experts_cast_together; /* 8- and 4-bit casts of all local experts in one kernel */
	bool loss_in_root;  /* fsdp: the root is gathered before its loss's backward */
	bool keeps_outputs; /* the logits of all micro-batches stay */
	bool narrow_parameters; /* weights are kept and gathered in 8 bit */
	bool scatter_gather;	/* stages send slices of what a tensor group holds */
	bool scaled_gradients;	/* a pass over gradients for loss scale or norm */
	bool scaled_in_pipeline; /* each is divided by the micro-batches, a kernel a tensor */
	double fsdp_copy_in_bytes;   /* per local parameter, before a gather */
	double fsdp_copy_out_bytes;  /* per parameter, after it */
	double fsdp_copy_grad_bytes; /* per parameter, before a reduction, beside
				      * the gradient's own width */
	double table_block_bytes;    /* packed gradients of one block; 0: no table */
	double table_kept_bytes;     /* of gradients: a larger table's memory is new */
	double table_kept_often_bytes; /* the same where a step lists others as large */
	double optimizer_bytes;	       /* moved per parameter; 0: by the formats */
	double expert_spread; /* deviation of experts' loads / their mean, where routing is free */
	double bucket_bytes;	   /* of a gradient reduction; 0: Megatron's rule */
	double bucket_copy_bytes;  /* per parameter, into it and out of it */
	double scan_kept_bytes;	   /* moved for a byte that a scan's turn keeps */
	int64_t optimizer_kernels; /* launches of one update */
	int64_t metrics; /* losses that are computed besides, by plain kernels */
	int64_t head_chunks; /* parts of a micro-batch that head and loss take in turn, both ways */
	bool pads_products; /* to edges of multiples of 8 */
	bool stacked_experts; /* their weights, apart, are copied together for each grouped product */
	bool fused_streams; /* kernels for a residual of several streams; else operations that a compiler joins */
	bool masked_choice; /* what an indexer chooses is a mask to masked_attention; no kernels gather it */
	bool masks_always; /* masked_attention runs all layers, not windows and chunks alone */
	bool windows;	       /* fused attention leaves out what no window sees */
	bool fp8_windows_back; /* its backward in 8 bit, too */
	bool plain_sinks;      /* attention with sinks is not fused */
	bool plain_caps;       /* nor is that whose scores are capped */
	bool blocking_launches; /* the host waits for each kernel (CUDA_LAUNCH_BLOCKING=1) */
	bool plain_rotary; /* rotary positions by operations, whatever `fusion` says */
	bool plain_gates; /* dense MLPs' gates by operations, where `fusion` is kernels */
	int64_t vocab_multiple; /* of a model that says none: words are padded to so many times tp */
	int64_t attention_block; /* of unfused attention: tokens a side of a block of scores, none of which above
				  * the diagonal is computed or any is kept; 0: the whole square */
	const char *attention; /* impl: cudnn fa2 fa3 aiter ...; "": the GPU's */
	size_t n_attention_on;
	struct ft_attention_on attention_on[FT_STACK_GENERATIONS];
	const char *
		masked_attention; /* impl that is given a window as a mask; "": none is */
	const char *
		sink_attention; /* impl of models with sinks, which knows none: operations
				     * scale its output; "": as `attention`, which knows them */
};

/* ---- Communication library ---------------------------------------------- */

/*
 * A library (NCCL, RCCL) of one version, stacks/ccl/NAME.yaml: how it chooses algorithm
 * and protocol, and the constants of that choice and of the time that each takes. The
 * equations are in sim/tuner.h (its own prices, which choose) and sim/across.h (time).
 * foretoken-ccl(5) explains the keys. Arrays of three go by enum ft_protocol where that
 * index is written, and else by nodes: one, two, more; arrays of two: two, more.
 */
enum ft_protocol { FT_LL, FT_LL128, FT_SIMPLE, FT_PROTOCOLS };

/* FT_BY_TIME: what our clock finds fastest. FT_BY_LIBRARY: what the library's own prices
 * and windows say, for libraries that are known to choose otherwise. */
enum ft_ccl_choice { FT_BY_TIME, FT_BY_LIBRARY };

enum { FT_CCL_SIZES = 27, FT_CCL_SPEEDS = 12 };

struct ft_ccl_ring {
	double base_s[FT_PROTOCOLS], hop_s[FT_PROTOCOLS], hop_net_s[FT_PROTOCOLS];
	double share_frac[FT_PROTOCOLS]; /* of the bus, in the library's prices */
	double correction[FT_PROTOCOLS][FT_CCL_SIZES]; /* by log2(bytes / 64) */
	double ll_most_bytes_per_s[3];
	double ll128_channel_bytes_per_s; /* most of a channel */
	double plateau; /* latency of Simple all-reduces on several nodes, times */
	double step_s[FT_PROTOCOLS];	      /* clock: of each step across nodes */
	double efficiency_frac[FT_PROTOCOLS]; /* clock: of the bus */
};

struct ft_ccl_tree {
	double base_s[FT_PROTOCOLS], hop_s[FT_PROTOCOLS], hop_net_s[FT_PROTOCOLS];
	double share_frac[FT_PROTOCOLS];  /* of the bus, in the library's prices */
	double share_more_frac;		  /* Simple on more than 2 nodes */
	double narrow_frac[FT_PROTOCOLS]; /* of what is left */
	double correction[FT_PROTOCOLS][FT_CCL_SIZES];
	double channel_bytes_per_s[2], ll128_channel_bytes_per_s[2]; /* most */
	bool simple_inside; /* Simple trees run inside a node */
	double wait_s
		[2]; /* clock: more than the prices of hops inside, between nodes */
	double efficiency_frac[FT_PROTOCOLS];	/* clock: of the bus */
	double lag[FT_PROTOCOLS][FT_CCL_SIZES]; /* clock: what sizes leave of that */
};

/* All constants for one generation of GPUs. */
struct ft_ccl_tuning {
	const char *generation;
	double channels; /* rings that the search of a node lays */
	size_t n_speeds; /* 0: a channel may run at any speed */
	double speeds_bytes_per_s[FT_CCL_SPEEDS]; /* that the search tries */
	double net_overhead_s
		[FT_PROTOCOLS]; /* least of a ring's step on several nodes */
	struct ft_ccl_ring ring;
	struct ft_ccl_tree tree;
	struct {
		double hop_s, share_frac; /* 0: no reduction in the NVLink switch */
	} nvls;
	struct {
		double hop_s, hop_net_s, channel_bytes_per_s[2];
		double efficiency_frac, bus_gain; /* clock */
	} nvls_tree;
	struct {
		double hop_s, hop_net_s, share_frac, gather_share_frac;
		double arity_s; /* per further rank of a node */
		double start_s; /* clock */
	} sharp;
	struct {
		double base_s, hop_net_s, overlap, rank_s, share_frac;
	} pat;
	struct {
		double start_s, peer_s, nic_share_frac, port_share_frac;
	} pairs; /* all_to_all */
	struct {
		double start_s, hop_s;
	} pipeline; /* broadcast, send and receive */
	struct {
		double overlap_frac, chunk_bytes;
	} hierarchical;
	struct { /* bytes up to which LL and LL128 are taken; 0: by price */
		double all_reduce_bytes[2], all_gather_bytes[2],
			reduce_scatter_bytes[2]; /* all_reduce: whole; else a rank's */
		double growth;			 /* all_reduce on more than 2 nodes */
	} windows;
	struct { /* that the constants hold on */
		double ring_step_s, latency_s;
	} network;
	double spread_frac; /* of times across nodes, one standard deviation */
};

struct ft_ccl {
	struct ft_digest digest; /* of its files */
	const char *name, *title;
	bool nvls; /* may reduce in the NVLink switch */
	enum ft_ccl_choice choice;
	size_t n_generations;
	struct ft_ccl_tuning *tuning;
	const struct ft_provenance *from;
};

/* name: stacks/ccl/NAME.yaml or a path; at: where it was asked for, may be NULL. */
struct ft_ccl *ft_ccl_load(const char *name, const struct ft_mark *at,
			   struct ft_error *err) __attribute__((warn_unused_result));
void ft_ccl_free(struct ft_ccl *ccl);

/* The constants for a generation; NULL: the library does not know it. */
const struct ft_ccl_tuning *ft_ccl_tuning(const struct ft_ccl *ccl,
					  const char *generation);

const char *ft_protocol_name(enum ft_protocol protocol);

/* ---- Stack --------------------------------------------------------------- */

#define FT_RUNS_ALL (~0U)

/* What a framework can run, for ft_stack_runs: a bit for each word that its stack lists; all
 * where it lists none, of optimizers adam and muon. */
struct ft_stack_has {
	unsigned parallel, sharding, optimizers;
	unsigned graphs;	   /* what CUDA or HIP graphs may hold */
	unsigned graphed_sharding; /* what replicas may divide beside them */
	bool graphed_accumulation; /* and may a step have several micro-batches then? */
	bool graphed_recompute;	   /* and recompute anything? */
	bool predicted_tokens;	   /* does it train those ahead of the next (MTP)? */
	/* is a layer of one sequence that is checkpointed still compiled? */
	bool compiled_recompute;
	bool fp8_attention;    /* is there a kernel of attention in fp8, both ways? */
	bool dropless_experts; /* a kernel of experts without a capacity? */
	bool recompute_by_stride; /* in full: all layers, or each k-th? Else any number */
	bool recompute_in_pairs; /* layers and experts, where overlap.ep pairs passes? */
};

/* What products take on GPUs of one generation instead: libraries of one year serve some better than
 * others. */
struct ft_gemm_on {
	const char *generation; /* ccl_generation of the GPU's profile */
	struct ft_number factor;
	struct ft_mark mark;
};

struct ft_stack {
	struct ft_digest digest; /* of its files */
	const char *vendor;	 /* whose GPUs it runs on; "any": all */
	const char *name, *title;
	const char *root; /* the last of its kin that it extends; else itself */
	bool unnamed;  /* it stands for software that nobody named; no kin of others */
	size_t n_ccls; /* libraries; the first that knows the GPU's generation serves */
	const char *ccl[FT_STACK_CCLS];
	struct ft_mark ccl_mark;
	struct ft_stack_has runs; /* what its framework has: ft_stack_runs */
	struct ft_layout_rules layout;
	struct ft_number host_s[FT_HOSTS];   /* seconds each */
	struct ft_number host_crowding_frac; /* slower per further rank of a node */
	struct ft_number gemm_factor;	     /* kernel time / the profile's time */
	size_t n_gemm_on;		     /* the same on GPUs of one generation */
	struct ft_gemm_on gemm_on[FT_STACK_GENERATIONS];
	struct ft_number grouped_back[FT_DTYPES]; /* of experts' products, too */
	struct ft_number attention_factor;
	struct ft_number memory_factor;
	struct ft_number collective_factor;
	struct ft_number dispatcher_factor; /* of DeepEP, HybridEP, too */
	struct ft_number gap_s;		    /* between kernels of a stream */
	struct ft_number
		graphed_kernel_s;	 /* a kernel of a CUDA graph takes less by it */
	const struct node *defaults;	 /* a `training` map; NULL: none */
	const struct node *by_precision; /* of formats such maps, over it; NULL: none */
	const struct ft_provenance *from;
};

/* name: stacks/NAME.yaml or a path; at: where it was asked for, may be NULL. */
struct ft_stack *ft_stack_load(const char *name, const struct ft_mark *at,
			       struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_stack_free(struct ft_stack *stack);

/* Does its framework have this way to split a model (tp, pp, vpp, cp, ep, etp: the words of
 * training.parallel), this sharding, or this optimizer? */
bool ft_stack_runs(const struct ft_stack *stack, const char *word);

/* The stack as it is on GPUs of this generation: itself, or *on with another attention. */
const struct ft_stack *ft_stack_on(const struct ft_stack *stack, const char *generation,
				   struct ft_stack *on);

/* What products take on GPUs of this generation, over the time of the GPU's profile. */
const struct ft_number *ft_stack_gemm(const struct ft_stack *stack,
				      const char *generation);

/* Why its attention writes scores to memory and reads them again: in all models, or in those with sinks,
 * with capped scores, or with plain attention in their class. The beginning of a sentence; NULL: it is fused. */
const char *ft_stack_unfused(const struct ft_stack *stack, bool sinks, bool plain,
			     bool capped);

/* The same of attention that no context group shares: what is unfused, and what operations scale behind its
 * kernel, for sinks. */
const char *ft_stack_no_context(const struct ft_stack *stack, bool sinks, bool plain,
				bool capped);

/* Are q, k and v one linear module of a layer, and gate and up? class_joins: in the model's class in Transformers. */
bool ft_stack_joins_qkv(const struct ft_stack *stack, bool class_joins);
bool ft_stack_joins_gate_up(const struct ft_stack *stack, bool class_joins);

/* The stack's library for a generation of GPUs, loaded; the caller frees it. */
struct ft_ccl *ft_stack_ccl(const struct ft_stack *stack, const char *generation,
			    struct ft_error *err) __attribute__((warn_unused_result));

/* The error of a library that does not know a generation: it names those that do. */
bool ft_ccl_unknown(const struct ft_ccl *ccl, const char *generation,
		    const struct ft_mark *at, struct ft_error *err);

#ifdef __cplusplus
}
#endif
#endif
