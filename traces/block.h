/*
 * traces/block.h - what the files that write one layer share: its sizes on a rank
 */
#ifndef TRACES_BLOCK_H
#define TRACES_BLOCK_H

#include "traces/build.h"
#include "traces/recipes.h"

/* A layer's sizes on one rank. */
struct layer_sizes {
	const struct ft_layer *l;
	int64_t tokens, part; /* of the rank; of its slice under sequence parallelism */
	int64_t h, heads, kv_heads, q, k, v, out, f, kv; /* kv: k + v; k: it is both */
	int64_t gate; /* of attention's output, as wide as q; 0: none */
	int64_t gates; /* of attention's output by a product of their own, a head or a number each; 0: none */
	bool beside; /* attention and MLP read the same input, and are summed once */
	bool shared; /* f is the shared expert's */
	bool linear; /* heads are of what stands in attention's place or beside it */
};

struct layer_sizes sizes_of(const struct builder *b, int64_t layer);
/* Of the state space beside a layer's attention. */
struct layer_sizes state_sizes(const struct builder *b, const struct layer_sizes *s);
int64_t own_k(const struct layer_sizes *s); /* keys that the layer makes itself */

/* The sequences that a layer attends to by themselves, a rank's own or the chunks of these: batch[0] of one length, and batch[1] of
 * what a chunk leaves of a sequence, length[1], which may be 0. */
struct pieces {
	int64_t batch[2], length[2];
};
struct pieces pieces_of(const struct builder *b, const struct ft_layer *l);

/* elements.c: element-wise kernels of a block */
void put_element(struct builder *b, const struct layer_sizes *s, const char *name,
		 const char *curve, struct coefficients c);
/* numbers features, moved as curve moves them, and as `strided` does. */
void put_moved(struct builder *b, const char *name, const char *curve, struct moved m,
	       double numbers);
/* The MLP's; bytes a feature of its width that it keeps besides. */
void put_activation(struct builder *b, const struct layer_sizes *s, const char *name,
		    bool backward);
double gelu_kept(const struct builder *b);
bool gates_apart(const struct builder *b); /* the MLP's gate, from its product */
void put_norm(struct builder *b, const struct layer_sizes *s, const char *name,
	      struct coefficients c);
/* Of the first norm of a layer, which a compiler may join with the casts behind it. */
void put_first_norm_back(struct builder *b, const struct layer_sizes *s);
/* The norms that a layer has beyond the two before its halves: gemma's, behind them. */
void put_norm_behind(struct builder *b, const struct layer_sizes *s, bool backward);
/* The same behind an MLP, where there may be one of routed layers alone. */
void put_norm_behind_mlp(struct builder *b, const struct layer_sizes *s, bool backward);
void put_dropout(struct builder *b, const struct layer_sizes *s, bool backward);

/* joined.c: are these one product? What gradients of its parts take, and of heads turned in part;
 * and bytes a token that a layer keeps for it. */
bool joins_qkv(const struct builder *b);
bool joins_gate_up(const struct builder *b);
/* Queries taken out of their groups, where a weight is joined by group. */
void put_query_copy(struct builder *b, const struct layer_sizes *s);
void put_qkv_joined(struct builder *b, const struct layer_sizes *s);
void put_gate_up_joined(struct builder *b, const struct layer_sizes *s);
void put_rotary(struct builder *b, const struct layer_sizes *s,
		bool backward); /* rotary.c */
void put_rotary_joined(struct builder *b, const struct layer_sizes *s, bool backward);
double joined_kept(const struct builder *b, const struct layer_sizes *s);
/* Of the norm in front of attention, or of the MLP, with the sums of gradients behind it. */
struct coefficients norm_back_of(const struct builder *b, const struct layer_sizes *s,
				 bool mlp);

/* block.c: the two halves of a layer. enter_split: before a product that is split by columns,
 * slices of the sequence become whole. */
int64_t qkv_count(const struct builder *b, const struct layer_sizes *s);
void enter_columns(struct builder *b, const struct layer_sizes *s, int64_t products);
void enter_split(struct builder *b, const struct layer_sizes *s, int64_t features,
		 bool gradient);
void attention_half(struct builder *b, const struct layer_sizes *s);
void mlp_half(struct builder *b, const struct layer_sizes *s);
/* A product split by rows, and the sum over the ranks behind it. */
void row_product(struct builder *b, const struct layer_sizes *s, const char *name,
		 int64_t n, int64_t k);
void mlp_inside(struct builder *b,
		const struct layer_sizes *s); /* all but its last product */
void attention_back(struct builder *b, const struct layer_sizes *s);
void mlp_back(struct builder *b, const struct layer_sizes *s);
void bias_gradients(struct builder *b, const struct layer_sizes *s);
void up_products(struct builder *b, const struct layer_sizes *s, enum ft_layout layout);

/* expert_biases.c: of both products' outputs, so many features each of so many copies */
struct biased {
	double copies, first, second;
	int local;   /* experts of the rank */
	bool direct; /* a kernel that sends a token once, whose weights are in fp32 */
};
void expert_biases(struct builder *b, const struct biased *e, bool backward);

/* experts.c: a routed MLP inside a layer, cut where tokens travel. Experts that compute a token, all of
 * them where the model's class does so. */
bool runs_all_experts(const struct builder *b);
/* The expert that all tokens go through: its width is f, 0 where there is none. */
struct layer_sizes shared_sizes(const struct builder *b, const struct ft_layer *l);
int64_t experts_used(const struct builder *b, const struct ft_layer *l);
/* Rows of their arrays for each copy that is there. */
int64_t experts_rows(const struct builder *b);
void experts_send(struct builder *b, const struct ft_layer *l);
void experts_run(struct builder *b, const struct ft_layer *l);
void experts_return(struct builder *b, const struct ft_layer *l);
void experts_again(struct builder *b, const struct ft_layer *l);
void experts_send_back(struct builder *b, const struct ft_layer *l);
void experts_run_back(struct builder *b, const struct ft_layer *l);
void experts_return_back(struct builder *b, const struct ft_layer *l);
void experts_activate(struct builder *b, const struct ft_layer *l); /* again */

/* recompute.c: modules that selective recomputation runs again */
unsigned recomputed_modules(const struct builder *b);
/* Of a layer's MLP, by a backward? */
bool output_is_needed(const struct builder *b, const struct ft_layer *l);
/* Does a layer that runs again stop in front of its MLP's last product, or of the sum of its experts by a mask? */
bool stops_inside_mlp(const struct builder *b, const struct layer_sizes *s);
bool may_stop_inside_mlp(const struct builder *b, const struct layer_sizes *s);

/* context.c: core attention, over the ranks of a context group if there is one */
void attention_core(struct builder *b, const struct layer_sizes *s, bool backward);
void put_score_dropout(struct builder *b, const struct layer_sizes *s, bool backward);
/* What is done to q and k behind their products; and a mask, and the heads that it wants. */
void attention_inputs(struct builder *b, const struct layer_sizes *s);
void attention_mask(struct builder *b, const struct layer_sizes *s);

/* attention.c: attention that is not fused, and the products in front of it */
bool is_unfused(const struct builder *b);
int64_t window_of(const struct builder *b, const struct ft_layer *l); /* as computed */
/* Is a layer's window, or are its chunks, given to the kernel as a mask? */
bool is_masked(const struct builder *b, const struct ft_layer *l);
void unfused_attention(struct builder *b, const struct layer_sizes *s, bool backward);
/* Bytes that it keeps of a score; that gradients of scores take while it runs backward; and a token,
 * that q, k and v take in fp32, for each head. */
/* A batched product of attention that is not fused; FT_DTYPES: the plan's. */
void put_square(struct builder *b, const char *name, enum ft_dtype dtype,
		struct edges edges, int64_t groups);
double score_kept(const struct builder *b);

/* Scores that a sequence has: all, or those of blocks that a mask leaves (attention_block). */
double scores_computed(const struct builder *b);
double score_gradients(const struct builder *b, const struct layer_sizes *s);
double plain_copies(const struct builder *b, const struct layer_sizes *s);
/* Features of what tensor parallelism makes whole for these products: a hidden state, or latents
 * and the key that is turned; and the former, made so. */
int64_t qkv_features(const struct builder *b, const struct layer_sizes *s);
void qkv_enter(struct builder *b, const struct layer_sizes *s);
void qkv_forward(struct builder *b, const struct layer_sizes *s);
void latent_join(struct builder *b, const struct layer_sizes *s, bool backward);
void qkv_products(struct builder *b, const struct layer_sizes *s,
		  enum ft_layout layout);
void latent_up(struct builder *b, const struct layer_sizes *s);
/* Tokens that a rank's down-projections take. */
int64_t latent_tokens(const struct builder *b, const struct layer_sizes *s);
void latent_back(struct builder *b, const struct layer_sizes *s);
/* adapters.c: adapters beside the products of a layer */
enum adapter_site { SITE_QKV, SITE_OUT, SITE_UP, SITE_DOWN, SITES };

void adapters(struct builder *b, const struct layer_sizes *s, enum adapter_site site,
	      bool backward);
/* Bytes a token that they make a layer keep, less the inputs that no adapter of a site needs: input
 * says what those of a site's products take. May be negative. */
double adapters_saved(const struct builder *b, const struct layer_sizes *s,
		      const double input[SITES]);

void linear_back(struct builder *b, const char *name, int64_t m, int64_t n, int64_t k);

#endif
