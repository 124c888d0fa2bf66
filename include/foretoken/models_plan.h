/*
 * foretoken/models_plan.h - how the work is cut: parallel plans, free of any hardware
 *
 * A plan is the `training` map of a scenario: sizes, what replicas share, in which formats, and what
 * is computed again or waits elsewhere. It is checked when loaded, with errors that point at the
 * line to change.
 */
#ifndef FORETOKEN_MODELS_PLAN_H
#define FORETOKEN_MODELS_PLAN_H

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ft_model;
struct node;

/* What the ranks that hold the same part of the model divide among themselves. FT_ALONE: there is one, and no framework's
 * wrapper around it; FT_DDP: nothing, and their gradients are summed. */
enum ft_sharding { FT_ALONE, FT_DDP, FT_ZERO1, FT_ZERO2, FT_FSDP, FT_HSDP };
enum ft_schedule {
	FT_1F1B,
	FT_INTERLEAVED,
	FT_GPIPE,
	FT_ZERO_BUBBLE,
	FT_ZBV,
	FT_DUALPIPEV,
	FT_SCHEDULES
};
enum ft_recompute { FT_RECOMPUTE_NONE, FT_RECOMPUTE_SELECTIVE, FT_RECOMPUTE_FULL };
enum ft_step_start { FT_STEADY, FT_TOGETHER };

/* What CUDA or HIP graphs hold: nothing; the router of a layer with experts; attention and
 * router, experts outside; whole layers or the whole step. Each holds what those before it do. */
enum ft_graphs { FT_GRAPHS_NONE, FT_GRAPHS_ROUTER, FT_GRAPHS_PARTIAL, FT_GRAPHS_FULL };

/* How tokens travel to their experts: by the library's all-to-all, every copy sent; or
 * by a kernel that sends a token once to each domain. */
enum ft_dispatcher { FT_DISPATCH_ALLTOALL, FT_DISPATCH_DEEPEP, FT_DISPATCH_HYBRIDEP };

/* How scales of 8- and 4-bit formats are found: per tensor from steps before, per
 * tensor now, per block of 128, per 32 (MX), per 16 (NV). */
enum ft_scaling {
	FT_SCALING_DELAYED,
	FT_SCALING_TENSORWISE,
	FT_SCALING_BLOCKWISE,
	FT_SCALING_MX,
	FT_SCALING_NV
};

/* Master weights: in fp32, in fp16 with a scale, or the 16 bits that weights in bf16 lack. */
enum ft_master { FT_MASTER_FP32, FT_MASTER_FP16, FT_MASTER_REMAINDER, FT_MASTERS };

enum ft_optimizer {
	FT_ADAM,      /* AdamW: two moments */
	FT_ADAM_8BIT, /* both in 8 bit, with a scale in fp32 for each 256 of them */
	FT_ADAFACTOR, /* a matrix's second moment by its rows and columns, no first */
	FT_SGD,
	FT_SGD_MOMENTUM,
	FT_MUON, /* one moment of a layer's matrices; all else by AdamW */
	FT_OPTIMIZERS
};

/* Parts of a layer that selective recomputation can name; a plan has a set of them. */
enum ft_module {
	FT_MODULE_CORE_ATTENTION = 1,
	FT_MODULE_OUT_PROJECTION = 2, /* attention's */
	FT_MODULE_MLA_UP = 4,
	FT_MODULE_MLP = 8, /* a dense MLP, whole */
	FT_MODULE_MLP_UP = 16,
	FT_MODULE_MLP_DOWN = 32,
	FT_MODULE_ACTIVATION = 64, /* of the MLP or of the experts */
	FT_MODULE_NORM = 128,
	FT_MODULE_OPS = 256, /* all but every second product, attention, reductions */
	FT_MODULE_EXPERTS = 512, /* the routed MLP, whole */
	FT_MODULE_STREAMS = 1024 /* sums and mixtures of the residual's streams */
};

/*
 * Low-rank adapters (LoRA, arXiv 2106.09685): all weights are frozen, and beside each target
 * of k inputs and n outputs a product of k x rank and one of rank x n are trained. Frozen
 * weights have no gradient and no optimizer state.
 */
enum ft_lora_target {
	FT_LORA_QKV, /* one adapter for q, k and v together, or one for each: */
	FT_LORA_Q,
	FT_LORA_K,
	FT_LORA_V,
	FT_LORA_OUT,
	FT_LORA_GATE_UP, /* the same of an MLP's first products */
	FT_LORA_GATE,
	FT_LORA_UP,
	FT_LORA_DOWN,
	FT_LORA_TARGETS
};

struct ft_lora {
	int64_t rank;	  /* 0: no adapters, all is trained */
	unsigned targets; /* bits by enum ft_lora_target */
	bool dropout;	  /* on the adapters' inputs */
	bool fp32; /* adapters in fp32: each casts its input up, and for its product down */
	enum ft_dtype frozen; /* in which the blocks' weights are kept */
};

struct ft_lora_shape {
	int64_t in, out; /* features, before any split */
};

/* What of a rank's state waits in host memory, where its host updates it: nothing; the optimizer's
 * state, with master weights; or, under fsdp, the shards of weights and gradients, too. */
enum ft_offload { FT_OFFLOAD_NONE, FT_OFFLOAD_OPTIMIZER, FT_OFFLOAD_ALL, FT_OFFLOADS };

struct ft_plan {
	int64_t ranks; /* of the cluster */
	int64_t tp, pp, cp, ep, etp, vpp;
	int64_t dp;	  /* ranks / (tp pp cp) */
	int64_t edp;	  /* replicas of an expert: tp cp dp / (ep etp) */
	int64_t sequence; /* tokens */
	int64_t global_batch, micro_batch; /* sequences */
	int64_t micro_batches;		   /* per replica, the last may be smaller */
	int64_t last_micro_batch;	   /* sequences of the last one */
	int64_t shard;	       /* ranks that share one copy of sharded state:
	                                      * 1 (ddp), dp * cp, or a divisor (hsdp) */
	int64_t *stage_layers; /* [pp * vpp] by the chunks' places: ft_plan_place */
	enum ft_dtype precision;
	enum ft_dtype gradient_dtype;
	enum ft_dtype moment_dtype; /* of Adam's; FT_DTYPES: as the weights trained */
	enum ft_master master;	    /* what the optimizer keeps of weights in fp32 */
	enum ft_sharding sharding;
	enum ft_schedule schedule;
	int64_t flushes; /* how often a step drains the pipeline; as stated, also of pp 1 */
	enum ft_recompute recompute;
	enum ft_step_start step_start;
	unsigned recompute_modules; /* of enum ft_module; 0: as the stack has it */
	int64_t recompute_layers; /* of the model, under full recomputation: ft_plan_deal */
	int64_t document; /* tokens of each that a sequence consists of; 0: it is one */
	int64_t offload_layers; /* whose saved activations wait in host memory */
	enum ft_offload offload_state;
	int64_t offload_threads; /* of the processor, that each rank's update there may use */
	int64_t zero_group; /* ranks that share zero1's or zero2's state; else dp x cp */
	enum ft_graphs graphs;
	enum ft_scaling scaling;
	enum ft_dtype attention_precision;
	enum ft_dtype expert_precision; /* of routed experts: precision or bf16 */
	enum ft_optimizer optimizer;
	enum ft_dispatcher dispatcher;
	double capacity_factor; /* experts' inputs are padded to it; 0: dropless */
	bool force_balance;	/* routing forced to be even */
	bool grouped_experts;	/* one product for all local experts */
	bool fused_experts; /* products, activation and casts of experts in one kernel */
	bool indexer_loss; /* indexers that choose tokens are trained, by a loss of their own */
	bool fp8_gates;	 /* what gated activations keep of their inputs is in 8 bit */
	bool overlap_ep; /* exchanges of one micro-batch beside another's computation */
	bool overlap_gather; /* weights gathered beside the next forward */
	bool sequence_parallel, master_weights;
	bool sync_last; /* fsdp: gradients are reduced in the last micro-batch alone */
	bool reshard_after_forward, reshard_stated; /* stated: else pp decides */
	bool overlap_tp, overlap_dp, overlap_pp;
	struct ft_lora lora;
	bool copy_engines; /* what moves and does not add up takes no compute units */
	bool any_layout;   /* of the GPU: narrow products want no operand turned */
	bool unsharded_pipeline; /* of the stack, as foretoken-stack(5) says */
	int64_t ranks_per_node;	 /* of the cluster */
};

/* What the plan needs to know of the cluster and of the stack. */
struct ft_plan_context {
	int64_t ranks, ranks_per_node;
	bool ragged_batch; /* the last micro-batch may be smaller, dp need not divide */
	const char
		*no_context; /* why no context group shares attention, so that cp is 1:
				 * the beginning of a sentence; NULL: one does */
	bool any_layout, unsharded_pipeline; /* as of the plan */
	bool unwrapped_alone;		     /* ddp of one replica is none */
	bool joins_qkv,
		joins_gate_up; /* one linear module, for adapters on all of them */
	bool pairs_again; /* layers and experts may be computed again in pairs of passes */
	bool open; /* for a search, which sets sizes later: those here are not meant */
	struct ft_mark gpus; /* where the cluster's size was written */
	const int64_t
		*unlike; /* [n_unlike] layers that differ from the one before, for */
	size_t n_unlike; /* ft_plan_vary; NULL: it finds them each time */
};

/* node: the `training` map with all defaults laid under it. NULL on error: a
 * split that does not divide, more stages than layers, ... */
struct ft_plan *ft_plan_load(const struct node *node, const struct ft_model *model,
			     const struct ft_plan_context *context,
			     struct ft_error *err) __attribute__((warn_unused_result));
void ft_plan_free(struct ft_plan *plan);

/* Layers that differ from the one before, into unlike, which has room for all; how many. */
size_t ft_model_unlike(const struct ft_model *model, int64_t *unlike);

/* The same rules for a plan that is changed in place, thousands of times: sizes, words and
 * flags are the caller's (sequence_parallel: wanted where tp > 1; zero_group 0 and shard 0:
 * what goes without saying; recompute_layers below 0: all); what follows from them is
 * computed. stage_layers has room for the model's layers and two more. false: not legal. */
bool ft_plan_vary(struct ft_plan *plan, const struct ft_model *model,
		  const struct ft_plan_context *context, int64_t *stage_layers)
	__attribute__((warn_unused_result));

/* Do a backward and the forward of another micro-batch next to it run side by side? */
bool ft_plan_pairs(const struct ft_plan *plan);
/* k, if each k-th of so many layers are as many as asked; 0: none are. */
int64_t ft_plan_stride(int64_t layers, int64_t asked);

/* Does it pair passes and compute experts, or whole layers, again? Only stacks of which the context's
 * pairs_again is true do: Megatron Core refuses it (transformer_config.py,
 * overlap_moe_expert_parallel_comm), DeepSeek recomputes norms and projections. */
bool ft_plan_pairs_again(const struct ft_plan *plan);

/* Does the schedule cut backwards in two, and does it fold the stages into a V (zbv,
 * dualpipev), so that second chunks run back and stage 0 has both ends of the model? */
bool ft_schedule_splits(enum ft_schedule schedule);
bool ft_schedule_folds(enum ft_schedule schedule);

/* Micro-batches of a run of the pipeline, from one flush to the next; without a pipeline, all. */
int64_t ft_plan_run(const struct ft_plan *plan);
/* Ranks that share one copy of an expert's sharded state: its replicas keep as many copies as
 * there are of the rest (dp cp / shard), as far as these divide them; 1 under ddp. */
int64_t ft_plan_expert_shard(const struct ft_plan *plan);
/* As many ranks of dp x cp as divide them and are on one node: hsdp's group unless stated. */
int64_t ft_plan_near_shard(const struct ft_plan *plan, int64_t ranks_per_node);
/* Do replicas divide any state among themselves: zero1 and beyond? */
bool ft_plan_divides(const struct ft_plan *plan);
/* Is it zero1 or zero2, which alone have a zero_group? */
bool ft_plan_zero(const struct ft_plan *plan);
/* Where in the model a stage's chunk is, from 0: chunk c of stage s at c pp + s, but where
 * the stages are folded. And whose a place is. */
int64_t ft_plan_place(const struct ft_plan *plan, int64_t stage, int64_t chunk);
int64_t ft_plan_stage(const struct ft_plan *plan, int64_t place);

/* n of the model's layers, dealt to the chunks of all stages by their numbers of layers: each its share
 * rounded down, and one more to those that lack most of it, the first of equals first. */
void ft_plan_deal(const struct ft_plan *plan, int64_t n, int64_t *of_place);

bool ft_lora_has(const struct ft_lora *lora, enum ft_lora_target target);
/* Has the layer that matrix, and does it have an adapter? */
bool ft_lora_laid(const struct ft_model *model, const struct ft_lora *lora,
		  int64_t layer, enum ft_lora_target target);
struct ft_lora_shape ft_lora_shape(const struct ft_model *model, int64_t layer,
				   enum ft_lora_target target);
/* Trained parameters. */
double ft_layer_lora_parameters(const struct ft_model *model,
				const struct ft_lora *lora, int64_t i);
double ft_model_lora_parameters(const struct ft_model *model,
				const struct ft_lora *lora);

/* ft_model_flop_per_token of what a plan trains. With adapters: 4 N for the frozen products
 * (forward, and the gradient of the input), attention as without, and 6 for each of the
 * adapters' parameters. */
double ft_plan_flop_per_token(const struct ft_model *model, const struct ft_plan *plan,
			      bool causal);

/* The share of the copies of tokens sent to experts that their capacity lets in, where routing is even; and the model FLOPs a token
 * of the other copies, which do not run. */
double ft_plan_kept_frac(const struct ft_plan *plan);
double ft_plan_dropped_flop_per_token(const struct ft_model *model,
				      const struct ft_plan *plan);

const char *ft_sharding_name(enum ft_sharding sharding);
const char *ft_schedule_name(enum ft_schedule schedule);
const char *ft_recompute_name(enum ft_recompute recompute);
/* A set of enum ft_module as a scenario writes it: "[core_attn, moe_act]". */
enum { FT_MODULES_TEXT = 160 };
const char *ft_modules_text(unsigned set, char text[FT_MODULES_TEXT]);
const char *ft_graphs_name(enum ft_graphs graphs);
const char *ft_dispatcher_name(enum ft_dispatcher dispatcher);
const char *ft_scaling_name(enum ft_scaling scaling);
const char *ft_optimizer_name(enum ft_optimizer optimizer);

/* What it keeps for a parameter, in bytes, where a moment has `width` bytes; under Muon of what AdamW
 * updates. Adafactor's rows and columns, about a thousandth of a byte, are not counted. */
double ft_optimizer_state_bytes(enum ft_optimizer optimizer, double width);
/* Bytes per parameter of master weights: 4, 2 (fp16, or bf16's other half) or 0; of a moment where trained weights have `width`. */
double ft_master_bytes(const struct ft_plan *plan);
double ft_moment_bytes(const struct ft_plan *plan, double width);
const char *ft_master_name(enum ft_master master);
const char *ft_offload_name(enum ft_offload offload);
const char *ft_moment_name(const struct ft_plan *plan);
/* Bytes of a rank that wait in host memory, on the average over stages: 12 of a number that is trained for fp32 weights and moments
 * and those of its gradient, which of `all` is in fp32, with what is frozen. */
double ft_plan_host_bytes(const struct ft_model *model, const struct ft_plan *plan);
/* The same of all ranks of a node. */
double ft_plan_node_bytes(const struct ft_model *model, const struct ft_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
