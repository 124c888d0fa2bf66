/*
 * foretoken/models.h - what is trained, and how the work is cut: transformer
 * architectures and parallel plans, both free of any hardware
 *
 * Names are those of a Hugging Face config.json. A model is given by preset
 * (models/NAME.yaml), by such a config.json, or inline; a plan is the
 * `training` map of a scenario. Both are checked when loaded, with errors that
 * point at the line to change.
 */
#ifndef FORETOKEN_MODELS_H
#define FORETOKEN_MODELS_H

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node;

enum ft_norm { FT_RMS_NORM, FT_LAYER_NORM };
enum ft_positions { FT_ROPE, FT_LEARNED, FT_ALIBI, FT_NO_POSITIONS };
enum ft_activation { FT_SWIGLU, FT_GELU, FT_SQUARED_RELU, FT_RELU };
/* FT_SWIGLU is gated (three matrices), GEGLU the same; the others are not (two). */
enum ft_joined {		 /* q, k and v, in the model's class: */
		 FT_APART,	 /* each a product of its own */
		 FT_SPLIT,	 /* one product, whose output is split, */
		 FT_SPLIT_HEADS, /* for each head, */
		 FT_SLICED, /* or sliced, each slice with a gradient as large as the whole */
};
enum ft_qk_norm {
	FT_QK_PLAIN,
	FT_QK_HEAD,  /* one weight for each dimension of a head */
	FT_QK_WHOLE, /* one for each dimension of all heads */
	FT_QK_BARE,  /* without weights */
};
enum ft_written { /* an activation in the model's class, where it is no call of PyTorch's: */
		  FT_WRITTEN_NOT,    /* (it is) */
		  FT_WRITTEN_GELU,   /* gelu_new and kin, each result kept; */
		  FT_WRITTEN_BLOOM,  /* BLOOM's, computed again backward; */
		  FT_WRITTEN_SQUARE, /* the square of a ReLU; */
		  FT_WRITTEN_XIELU, /* Apertus' xIELU, without its package of kernels */
};
enum ft_written_norm { /* a layer norm that its class does not leave to PyTorch's in 16 bit: */
		       FT_NORM_CALLED,	 /* (it does) */
		       FT_NORM_CENTERED, /* in single operations on fp32; */
		       FT_NORM_CAST,	 /* PyTorch's, on fp32 */
};
enum ft_plain { /* attention in the model's class, if no kernel of PyTorch's serves it: products of */
		FT_PLAIN_NOT,	 /* (one does) */
		FT_PLAIN_16,	 /* 16 bit, with a softmax in fp32; */
		FT_PLAIN_FILLED, /* the same, scaled, biased and masked by passes; */
		FT_PLAIN_SCORES, /* fp32 for scores, which are; */
		FT_PLAIN_32,	 /* fp32, all of it */
};

/* One transformer block: attention or what stands in its place, and an MLP, routed or dense or none. */
struct ft_layer {
	int64_t heads, kv_heads;
	int64_t qk_head_dim, v_head_dim; /* mostly equal, not in latent attention */
	bool values_are_keys; /* as the product makes them: there is none for values */
	bool sinks;	      /* a number for each head in the softmax */
	bool shares_kv; /* keys and values are an earlier layer's: it has no products for them */
	int64_t q_lora_rank, kv_lora_rank, qk_rope_head_dim; /* 0: plain */
	int64_t window;	      /* tokens seen back; 0: all */
	int64_t chunk;	      /* attention stays in pieces of so many tokens; 0: not */
	int64_t linear_heads; /* value heads of a gated delta rule (arXiv 2412.06464) or of a
				* state space in place of attention; 0: attention */
	int64_t linear_key_heads, linear_key_dim, linear_value_dim;
	int64_t linear_taps; /* of the convolution before it */
	int64_t linear_rank; /* width from which a delta rule's gate is made, and a decay of each channel (Kimi Delta
				* Attention, arXiv 2510.26692); 0: one decay a head, a gate from hidden_size */
	int64_t state_chunk; /* tokens of a chunk of a state space (Mamba-2, arXiv 2405.21060: groups
				* and state are key heads and their width); 0: a delta rule */
	bool short_conv; /* a gated convolution, which has no rule: its channels are linear_heads, one wide */
	bool states_beside; /* a state space beside attention, on the same input, their outputs added */
	bool bare_states; /* no norm behind the state space */
	int64_t intermediate; /* width of a dense MLP; 0 in a routed layer and where there is no MLP */
	int64_t experts; /* routed experts; 0: dense */
	int64_t experts_per_token;
	int64_t groups,
		groups_per_token; /* of experts; a token's are in so few: 1, 1 */
	int64_t expert_intermediate;
	int64_t expert_latent; /* width of a space of their own that tokens are projected into
				* before they are sent, and back from (LatentMoE); 0: none */
	int64_t shared_intermediate; /* of the shared experts together; 0: none */
};

struct ft_model {
	struct ft_digest digest; /* of its files */
	const char *name, *type; /* preset or file name; model_type */
	int64_t hidden_size, n_layers;
	int64_t vocab_size;	/* as given, before padding */
	int64_t vocab_multiple; /* padded up to a multiple of this * tp; 0: not, or
				 * the model does not say, and a scenario asks the stack */
	int64_t max_positions;	/* rows of a learned position table; 0 until
	                              * ft_model_fit: as the sequence */
	int64_t stretched_from; /* rows before ft_model_fit; 0: none were added */
	enum ft_norm norm;
	enum ft_positions positions;
	enum ft_activation activation;
	enum ft_qk_norm qk_norm;
	enum ft_joined joined_qkv;
	enum ft_plain plain;
	enum ft_written written_activation;
	enum ft_written_norm written_norm;
	bool joined_gate_up;	/* one product, in the model's class */
	bool joined_rotary;	/* what is turned of a head, and the rest of it */
	int norms;		/* as wide as hidden_size, of a layer: 1, 2, 4 */
	int norm_vectors;	/* parameters of a norm: 0; weight; weight and bias */
	int activation_numbers; /* that a layer's activation learns: 0; xIELU: 2 */
	bool wide_norms;	/* whose weights multiply in fp32 */
	bool wide_rotary;	/* q and k are turned in fp32, by a kernel */
	bool dropout; /* of what attention and the MLP add to the residual stream */
	bool attention_dropout;	     /* of attention's probabilities */
	bool tied;		     /* output head shares the embedding */
	bool qkv_bias, out_bias;     /* of q, k and v; of attention's output */
	bool mlp_bias;		     /* of an MLP's matrices */
	bool router_bias, head_bias; /* of the router, of the output head */
	bool embedding_norm;	     /* a norm on the embedded tokens */
	bool parallel;		     /* attention and MLP side by side, added up once */
	bool gated_output;	     /* attention's output times a gate, as wide as q */
	bool shared_gate;	     /* the shared expert's output times a gate */
	bool value_norm;  /* with qk_norm: one of values, too, without weights */
	bool layer_scale; /* each layer's output times a number that is not trained */
	bool dense_beside; /* what experts share is an MLP with a norm behind it; experts have
			     * one in front and one behind, and the router's has none to share */
	int64_t layer_input; /* width of what each layer reads of a token by itself (per-layer
			       * embeddings), from a table as wide for all layers; 0: none */
	int64_t layer_input_rows; /* of that table */
	bool sinks;		  /* some layer has them */
	bool value_scale;	  /* values times a number */
	bool multipliers;	  /* products' inputs and outputs times numbers (muP) */
	bool clamped;		  /* both inputs of the experts' gate, before it */
	bool tanh_gate;		  /* the MLP's gate is a GELU's approximation */
	bool all_experts;	  /* in the class each expert computes all tokens */
	bool halves;		  /* a framework's layer is one of ours' halves */
	bool scaled_rope;	  /* rotary positions that also scale what they turn */
	bool scaled_logits;	  /* times a number */
	bool score_cap, logit_cap; /* tanh on scores, on logits */
	bool causal;		   /* a token does not see those behind it */
	int64_t predicted; /* tokens predicted ahead beside the next one (MTP): each
			     * a layer, a projection and the shared head */
	int64_t predicted_like; /* the layer that theirs is like: the last, but in hybrids that say another */
	struct ft_layer *layer; /* [n_layers] */
	const struct ft_provenance *from;
	/* its keys, to be written down and read again; those that `node` of ft_model_load states stay node's */
	const struct node *config;
	bool preset; /* named or inline; else from a file of the user's */
	size_t n_passed_over;
	const char **passed_over; /* keys of a config.json that were not used */
};

/* node: the `model` value of a scenario: a name, a path, or a map {name: X, key:
 * value ...} whose keys replace those of X. NULL on error. */
struct ft_model *ft_model_load(const struct node *node, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_model_free(struct ft_model *model);

/* The i-th key that a model's map may have, by its common name; NULL behind the last. */
const char *ft_model_key(size_t i);

/* What a plan's sequences make of a model: a learned position table grows to a row for each of
 * their tokens, and attention stays within each of the documents that they consist of. */
struct ft_plan;
void ft_model_fit(struct ft_model *model, const struct ft_plan *plan);

/* Has the block an MLP, dense or routed? And attention? */
bool ft_layer_has_mlp(const struct ft_layer *layer);
bool ft_layer_attends(const struct ft_layer *layer);

/* Width of what routed experts read and write: hidden_size, or a space of their own. */
int64_t ft_layer_expert_hidden(const struct ft_model *model,
			       const struct ft_layer *layer);

/* Norms as wide as hidden_size of a model's layer: half as many where there is no MLP. */
int ft_layer_norms(const struct ft_model *model, const struct ft_layer *layer);

/* Numbers that each head of a delta rule (2; of Kimi's, beside its decays, 1) or of a state space (1) takes of a token beside
 * its values. */
int64_t ft_layer_linear_rates(const struct ft_layer *layer);

/* Rows of embedding and head once padded for this tensor split. */
int64_t ft_model_vocab(const struct ft_model *model, int64_t tp);

/* Queries times keys that they see, of a sequence: in chunks each is one of its own, the
 * last what is left. */
double ft_layer_pairs(const struct ft_layer *layer, int64_t sequence, int64_t window,
		      bool causal);

/* The matrices of a layer, each of so many outputs times inputs, and how tensor ranks divide it. */
enum ft_matrix_of {
	FT_OF_ATTENTION,
	FT_OF_MLP,
	FT_OF_SHARED,
	FT_OF_EXPERTS,
	FT_OF_ROUTER /* and the shared expert's gate, and projections into the experts' space and back */
};
enum ft_matrix_split { FT_SPLIT_NOT, FT_SPLIT_OUTPUTS, FT_SPLIT_INPUTS };
struct ft_matrix {
	enum ft_matrix_of of;
	enum ft_matrix_split split;
	int64_t outputs, inputs;
	int64_t count; /* so many alike: of routed experts one each */
};
enum { FT_LAYER_MATRICES = 16 };

/* Writes them and returns how many kinds there are. Queries come first, then keys and values. */
size_t ft_layer_matrices(const struct ft_model *model, int64_t i,
			 struct ft_matrix matrix[FT_LAYER_MATRICES]);
double ft_model_matrix_parameters(const struct ft_model *model); /* of all layers */

/* Parameter counts. Embedding and head rows are counted padded for tp. */
double ft_layer_attention_parameters(const struct ft_model *model, int64_t i);
double ft_layer_dense_parameters(const struct ft_model *model, int64_t i);
/* router, shared experts and dense MLP, without routed experts */
double ft_layer_expert_parameters(const struct ft_model *model, int64_t i);
/* all routed experts together */
double ft_layer_norm_parameters(const struct ft_model *model, int64_t i);
/* Of all that but routed experts, what each of tp ranks holds: the router, latent attention's
 * down-projections and norms whole, at least one key-value head, the rest divided. */
double ft_layer_rank_parameters(const struct ft_model *model, int64_t i, int64_t tp);
double ft_model_predicted_parameters(const struct ft_model *model, bool active);
/* what one predicted token adds: a layer (predicted_like), a projection, three norms */
double ft_model_embedding_parameters(const struct ft_model *model, int64_t tp);
/* input table, learned positions, and what makes the inputs of layers by themselves */
double ft_model_layer_input_parameters(const struct ft_model *model);
/* of these, what makes the inputs of layers by themselves: a table, a projection, a norm */
double ft_model_head_parameters(const struct ft_model *model, int64_t tp);
/* 0 when tied */
double ft_model_parameters(const struct ft_model *model);
/* all, those of predicted tokens included */
double ft_model_active_parameters(const struct ft_model *model);
/* those one token uses: experts_per_token of the routed experts */

/* Model FLOPs of one token, forward and backward:
 *   6 * (parameters of the matrix products a token uses: attention, MLP, router,
 *        active and shared experts, output head even when tied)
 * + 6 * sum over layers of heads * (qk + v) * keys seen
 * Keys seen by a token, on average: causal w - w^2 / (2 sequence), w the smaller of
 * window and sequence (sequence / 2 without a window); else w. No embedding. In chunks
 * of c tokens, as a sequence of c. A gated delta rule does 4 products of a key's and a
 * value's width for each head and token, and its convolution (as Megatron-LM counts).
 * Each predicted token adds its layer, its projection and the head once more. */
double ft_model_flop_per_token(const struct ft_model *model, int64_t tp,
			       int64_t sequence, bool causal);

/* Parameters of the products a token uses, the head's included even when tied: N. */
double ft_model_product_parameters(const struct ft_model *model, int64_t tp);

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

/* What CUDA or HIP graphs hold: nothing; named parts of a layer (attention, router),
 * experts outside; whole layers or the whole step. */
enum ft_graphs { FT_GRAPHS_NONE, FT_GRAPHS_PARTIAL, FT_GRAPHS_FULL };

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
	FT_MODULE_EXPERTS = 512 /* the routed MLP, whole */
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
const char *ft_moment_name(const struct ft_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
