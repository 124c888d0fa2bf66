/*
 * foretoken/models.h - what is trained: transformer architectures, free of any hardware
 *
 * Names are those of a Hugging Face config.json. A model is given by preset
 * (models/NAME.yaml), by such a config.json, or inline, and is checked when loaded, with
 * errors that point at the line to change. How the work is cut is a plan's: models_plan.h.
 */
#ifndef FORETOKEN_MODELS_H
#define FORETOKEN_MODELS_H

#include "foretoken/base.h"
#include "foretoken/models_plan.h"

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
	int64_t window;	    /* tokens seen back; 0: all */
	int64_t index_topk; /* a query sees so many tokens at most, which an indexer chooses (DeepSeek Sparse Attention,
			     * arXiv 2512.02556); 0: all before it */
	int64_t index_heads,
		index_head_dim; /* the indexer's; it has one head of keys */
	bool shares_index; /* it sees what the layer before chose, and has no indexer (arXiv 2603.12201) */
	bool compressed; /* beside its window it sees entries, which stand for tokens before it (DeepSeek-V4): one head of
			  * keys, which are values; q_lora_rank, but no kv_lora_rank; an indexer chooses entries */
	int64_t entry_tokens; /* that an entry stands for; of entries that are chosen each is made of twice as many; 0: none */
	int64_t out_groups,
		out_rank; /* groups of heads whose outputs are projected to out_rank each, in front of the output's
			   * matrix; 0: straight to hidden_size */
	int64_t chunk;	  /* attention stays in pieces of so many tokens; 0: not */
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
	int64_t output_gates; /* numbers that multiply attention's output, one a head or one each, by a product of
			       * their own; 0: none, or of the model's gated_output */
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
	bool wide_gates;	     /* layers' output_gates are made in fp32 */
	bool shared_gate;	     /* the shared expert's output times a gate */
	bool value_norm;  /* with qk_norm: one of values, too, without weights */
	bool layer_scale; /* each layer's output times a number that is not trained */
	bool dense_beside; /* what experts share is an MLP with a norm behind it; experts have
			     * one in front and one behind, and the router's has none to share */
	bool expert_norm; /* a norm behind the sum of experts, in layers that have some */
	int64_t layer_input; /* width of what each layer reads of a token by itself (per-layer
			       * embeddings), from a table as wide for all layers; 0: none */
	int64_t layer_input_rows; /* of that table */
	bool sinks;		  /* some layer has them */
	bool value_scale;	  /* values times a number */
	bool multipliers;	  /* products' inputs and outputs times numbers (muP) */
	bool clamped;		  /* both inputs of the experts' gate, before it */
	bool limits; /* both inputs of the product of any MLP's gate, behind its SiLU, by operations */
	bool tanh_gate;		   /* the MLP's gate is a GELU's approximation */
	bool all_experts;	   /* in the class each expert computes all tokens */
	bool halves;		   /* a framework's layer is one of ours' halves */
	bool scaled_rope;	   /* rotary positions that also scale what they turn */
	bool scaled_logits;	   /* times a number */
	bool score_cap, logit_cap; /* tanh on scores, on logits */
	bool causal;		   /* a token does not see those behind it */
	int64_t streams; /* of the residual, which each half of a layer mixes anew (manifold-constrained hyper-connections,
			  * arXiv 2512.24880); 1: one, to which its output is added */
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
void ft_model_fit(struct ft_model *model, const struct ft_plan *plan);

/* Has the block an MLP, dense or routed? And attention? */
bool ft_layer_has_mlp(const struct ft_layer *layer);
bool ft_layer_attends(const struct ft_layer *layer);

/* Does it choose, by an indexer of its own, the tokens that its queries see? And of so many tokens, how many does one
 * see at most: index_topk, or those of its window; 0: all. */
bool ft_layer_chooses(const struct ft_layer *layer);
int64_t ft_layer_seen(const struct ft_layer *layer);

/* Parameters of its indexer: matrices, and the norm of its key. 0: none. */
double ft_layer_index_parameters(const struct ft_model *model,
				 const struct ft_layer *layer);

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

/* The same of entries that it sees beside its window; and what an indexer scores, tokens or entries. */
double ft_layer_entry_pairs(const struct ft_layer *layer, int64_t sequence,
			    bool causal);
double ft_layer_scored(const struct ft_layer *layer, int64_t sequence, bool causal);

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
enum { FT_LAYER_MATRICES = 24 };

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
double ft_model_stream_head_parameters(const struct ft_model *model);
/* of what sums streams of the residual up in front of the last norm; 0: there is one stream */
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
 * Where an indexer chooses, index_topk counts as a window does, and the indexer's scores of
 * all tokens before count 2 * index_heads * index_head_dim * keys, forward alone. Entries are
 * keys, a token sees those that are whole before it.
 * Each predicted token adds its layer, its projection and the head once more. */
double ft_model_flop_per_token(const struct ft_model *model, int64_t tp,
			       int64_t sequence, bool causal);

/* Parameters of the products a token uses, the head's included even when tied: N. */
double ft_model_product_parameters(const struct ft_model *model, int64_t tp);
/* Of these, the parameters of the experts that it is routed to. */
double ft_model_routed_parameters(const struct ft_model *model);

#ifdef __cplusplus
}
#endif
#endif
