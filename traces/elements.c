/*
 * traces/elements.c - element-wise kernels of a block, and its sizes on a rank
 *
 * Byte counts are those of the tensors each kernel reads and writes: `recipes` below
 * holds them per fusion, in bytes per token and feature. The compiled and eager columns
 * were read off recorded PyTorch steps; the kernels column counts what hand-fused
 * kernels must touch. Eager kernels that walk a transposed or broadcast tensor are not
 * vectorized: their instructions bind them, not the memory. What they move is `strided`,
 * after the profile's curve; of experts' copies it counts twice as a copy moves it.
 */
#include "traces/block.h"

static const struct routing eager_routing = {
	.order = 27,
	.order_back = 24,
	.permute = { 3, 1 },
	.sort = { 7.5, 1 },
	.unsort = { 7.5, 1 },
	.unpermute = { 18, 3 },
	.permute_back = { 7, 2 },
	.sort_back = { 7.5, 1 },
	.unsort_back = { 7.5, 1 },
	.unpermute_back = { 29, 5 },
	.join_back = { 6, 1 },
	.exchanged_only = true,
};
/* As Transformers' experts are written for grouped products, whose outputs are copied and zeroed
 * behind the last row; no copy is sorted twice. Bytes as a copy moves them, and as `strided` does what
 * zeroes, weights, spreads and adds up. Measured: measurements/traces/h100-transformers-qwen3-30b-a3b,
 * and h200-, where what is strided takes as long. */
static const struct routing operations_routing = {
	.order = 38,
	.order_back = 30,
	.permute = { 2.4, 1, .strided = { 4.7, 1 } },
	.sort = { 7.5, 1 },
	.unsort = { 7.5, 1 },
	.fill = { 3.1, 1, .strided = { 4.7, 1 } },
	.unpermute = { 3.3, 3, .strided = { 5.6, 2 } },
	.permute_back = { 3.8, 1, .strided = { 8.1, 2 } },
	.sort_back = { 7.5, 1 },
	.unsort_back = { 7.5, 1 },
	.unpermute_back = { 7.8, 3, .strided = { 12.2, 4 } },
	.exchanged_only = true,
};
/* Llama 4's class: tokens repeated for every expert, each times its router's weight, and the outputs summed; backward these gradients
 * copied, two products and a sum of the weights', and a sum over the repeats. Counted from Transformers' modeling_llama4.py (5.17). */
static const struct routing every_routing = {
	.permute = { 4, 1, .strided = { 4, 1 } },
	.unpermute = { 2, 1 },
	.permute_back = { 10, 4 },
	.unpermute_back = { 4, 1 },
	.exchanged_only = true,
};
/* Assumed: bf16 features are read and written once, by two kernels. */
static const struct routing fused_routing = {
	.permute = { 4, 2 },
	.sort = { 4, 2 },
	.unsort = { 4, 2 },
	.unpermute = { 4, 2 },
	.permute_back = { 4, 2 },
	.sort_back = { 4, 2 },
	.unsort_back = { 4, 2 },
	.unpermute_back = { 4, 2 },
};

/* The same by Transformer Engine, whose rate is the curve `permute`: measured, launches
 * included, for a permutation and the way back. Chunks are sorted by a plain copy. */
static const struct routing mapped_routing = {
	.permute = { 4, 2, true },
	.sort = { 4, 2 },
	.unsort = { 4, 2 },
	.unpermute = { 4, 2, true },
	.permute_back = { 4, 2, true },
	.sort_back = { 4, 2 },
	.unsort_back = { 4, 2 },
	.unpermute_back = { 4, 2, true },
};

/* An RMS norm in single operations on fp32: cast, square, mean, its root, product, cast, weights;
 * bytes a number as the curve `add` moves them, and, of casts to fp32 and of what spreads a row's or a
 * column's numbers, as `strided` does. They touch 36 and 92. Measured: measurements/traces/
 * h100-transformers-llama3-8b, and h200-: what is strided takes as long there; see docs/findings.md. */
#define RMS_NORM(more, kernels) \
	{ \
		.h = 19.1 + (more), .launches = 5 + (kernels), .strided = { \
			.h = 14.6, \
			.launches = 3 \
		} \
	}
#define RMS_NORM_BACK(more, kernels) \
	{ \
		.h = 72.4 + (more), .launches = 14 + (kernels), .strided = { \
			.h = 19.7, \
			.launches = 4 \
		} \
	}

/*
 * Cohere's layer norm is written out: cast, mean, difference, its square, mean, difference, root, product, weights, cast: 60 bytes,
 * and 120 backward. OLMo's is PyTorch's on fp32, with casts before and behind (6 + 8 + 6; backward 6 + 12 + 6, no weights). Bytes of
 * Cohere's, as above: measurements/traces/h100-transformers-cohere-8b-4L; OLMo's are counted, its casts to fp32 as those there.
 */
static const struct recipe centered = {
	.norm = { .h = 25.7, .launches = 6, .strided = { .h = 26.7, .launches = 5 } },
	.add_norm = { .h = 31.7,
		      .launches = 7,
		      .strided = { .h = 26.7, .launches = 5 } },
	.norm_back = { .h = 122,
		       .launches = 19,
		       .strided = { .h = 29.5, .launches = 6 } },
};
static const struct recipe cast_norm = {
	.norm = { .h = 14, .launches = 2, .strided = { .h = 5.2, .launches = 1 } },
	.add_norm = { .h = 20, .launches = 3, .strided = { .h = 5.2, .launches = 1 } },
	.norm_back = { .h = 26, .launches = 4, .strided = { .h = 5.5, .launches = 1 } },
};

/* What gpt-oss' gate has beside a plain one, a feature of its output: by operations seven instead of two, and
 * backward 18 instead of four, those of the clamps and of a row's every other number strided; compiled, the latter's
 * gradients put together. Before Megatron Core's compiled gate its two halves are clamped and joined.
 * Counted from Transformers' modeling_gpt_oss.py (5.17) and Megatron Core's fused_bias_geglu.py (read 2026-11-27); strided bytes
 * and those of the compiler measured: measurements/probes/h100-2026-11-27-clamped-unseen, at 2,880 numbers x 16,384. */
#define CLAMP_BY_OPERATIONS \
	.clamp = { 14, 3, .strided = { 8.9, 2 } }, \
	.clamp_back = { 43, 7, .strided = { 31.8, 7 } }

/* Measured: measurements/traces/h100-transformers-deepseek-v3. */
#define LATENT \
	{ \
		.strided = { 13.3, 4 } \
	}
#define LATENT_BACK \
	{ \
		.strided = { 38.4, 11 } \
	}

static const struct recipe recipes[] = {
	[FT_FUSION_EAGER] = {
		.norm = { 4, 0, 0, 1, 12 },
		.rope = { 0, 0, 5.7, 4, .strided = { .r = 17.2, .launches = 12 } },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 10, 0, 0, 2, 12 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 16, 0, 0, 4, 6 },
		.rope_back = { 0, 0, 9.7, 6, .strided = { .r = 15.1, .launches = 12 } },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		CLAMP_BY_OPERATIONS,
		.routing = &eager_routing,
	},
	[FT_FUSION_COMPILED] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 8, 0, 0, 1 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 13, 0, 0, 3 },
		.rope_back = { 2, 0, 4, 3 },
		.add_back = { 0, 0, 0, 0 },
		.gated_back = { 0, 12, 0, 2 },
		.plain_back = { 0, 6, 0, 1 },
		.clamp_back = { 7, 0 },
		.routing = &fused_routing,
	},
	[FT_FUSION_KERNELS] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 0, 0, 0, 0 },
		.add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 10, 0, 1 },
		/* as the curve `swiglu` moves them; measured: measurements/probes/h100-2026-11-26-weighted-unseen; without a
		 * gate counted: input, gradient and its own, and once more the first two for the weight's */
		.weighted_back = { 0, 18, 0, 2 },
		.weighted_plain_back = { 0, 10, 0, 2 },
		.plain_back = { 0, 6, 0, 1 },
		.clamp = { 8, 1, .strided = { 8.9, 2 } },
		.clamp_back = { 11, 2, .strided = { 20.7, 5 } },
		.routing = &mapped_routing,
	},
	/* as eager: but what rotates queries and keys is written otherwise, its gradient comes
	 * transposed, and attention's output lies as the product behind it reads it */
	[FT_FUSION_OPERATIONS] = {
		.norm = RMS_NORM(0, 0),
		.rope = { .strided = { .r = 20.9, .launches = 10 } },
		.add_norm = RMS_NORM(6, 1),
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = RMS_NORM_BACK(8, 2),
		.rope_back = { 0, 0, 9, 6, .strided = { .r = 25.6, .launches = 14 } },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		CLAMP_BY_OPERATIONS,
		.latent = LATENT,
		.latent_back = LATENT_BACK,
		.routing = &operations_routing,
	},
	/* as NeMo AutoModel's models: norms and rotary positions are Transformer Engine's, sums of residuals and gates
	 * of MLPs plain, those of experts compiled with the router's weights, latent attention's parts joined by operations. Source: its
	 * nemo_automodel/components/moe/layers.py and experts.py (read 2026-11-28) */
	[FT_FUSION_MODULES] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.routed = { 0, 6, 0, 1 },
		.norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		.routed_back = { 0, 10, 0, 1 },
		.weighted_back = { 0, 18, 0, 2 },
		.weighted_plain_back = { 0, 10, 0, 2 },
		.clamp_back = { 7, 0 },
		.latent = LATENT,
		.latent_back = LATENT_BACK,
		.routing = &mapped_routing,
	},
};

bool by_operation(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_EAGER ||
	       b->rules->fusion == FT_FUSION_OPERATIONS ||
	       b->rules->fusion == FT_FUSION_MODULES;
}

bool has_compiled_gates(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED ||
	       b->rules->fusion == FT_FUSION_MODULES;
}

static bool writes_norms(const struct builder *b)
{
	return b->model->written_norm != FT_NORM_CALLED && b->rules->model_classes &&
	       b->rules->fusion == FT_FUSION_OPERATIONS;
}

static bool norms_in_operations(const struct builder *b)
{
	return writes_norms(b) || (b->rules->fusion == FT_FUSION_OPERATIONS &&
				   b->model->norm == FT_RMS_NORM);
}

double norm_kept(const struct builder *b)
{
	/* more than the input in 16 bit: on fp32 it, its difference from the mean, and what the weights take */
	static const double written[] = { [FT_NORM_CENTERED] = 6, [FT_NORM_CAST] = 2 };
	bool centered_too =
		writes_norms(b) && b->model->written_norm == FT_NORM_CENTERED;
	bool bare = b->plan->lora.rank || b->model->norm_vectors == 0;
	double trained = b->model->wide_norms || centered_too ? 4 : 2;

	if (!norms_in_operations(b))
		return 0;
	return (writes_norms(b) ? written[b->model->written_norm] : 2) +
	       (bare ? 0 : trained);
}

/*
 * A GELU by operations. gelu_new: x^3, its factor, the sum, sqrt(2 / pi), tanh, 1 + tanh, x / 2 and their product;
 * backward the gradients of each and two sums of those of x; three results on the way stay beside x. BLOOM's
 * has nine operations, keeps x alone, and eighteen backward. A ReLU and its square; backward the square's copy and two
 * products, and the ReLU's. xIELU has twelve: two branches of x, chosen by its sign; backward also sums for two numbers that it learns;
 * a mask and three results stay. Counted from Transformers' activations.py and modeling_bloom.py (5.17). Numbers on the GPU spread over
 * all are not vectorized: xIELU's as measurements/traces/h100-transformers-apertus-8b-4L moves them.
 */
static const struct written {
	struct coefficients pass[2];
	double kept;
} written[] = {
	[FT_WRITTEN_GELU] = { { { 0, 36, 0, 8, 0 }, { 0, 56, 0, 13, 0 } }, 6 },
	[FT_WRITTEN_BLOOM] = { { { 0, 42, 0, 9, 0 }, { 0, 88, 0, 18, 0 } }, 0 },
	[FT_WRITTEN_SQUARE] = { { { 0, 8, 0, 2, 0 }, { 0, 20, 0, 4, 0 } }, 0 },
	[FT_WRITTEN_XIELU] = { { { .f = 37.4,
				   .launches = 7,
				   .strided = { .f = 25.7, .launches = 5 } },
				 { .f = 87,
				   .launches = 17,
				   .strided = { .f = 41.7, .launches = 8 } } },
			       7 },
};

/* Megatron Core fuses gates of SiLU and of the exact GELU with their product, and no others: an approximation and the product,
 * backward two products, the approximation's and both halves joined (its transformer/mlp.py, read 2026-11-28). */
static const struct coefficients tanh_gate[] = { { .f = 10, .launches = 2 },
						 { .f = 26, .launches = 4 } };

bool gates_apart(const struct builder *b)
{
	return b->model->tanh_gate && b->rules->fusion == FT_FUSION_KERNELS;
}

static const struct written *written_activation(const struct builder *b)
{
	bool is = b->model->written_activation != FT_WRITTEN_NOT &&
		  b->rules->model_classes && by_operation(b);

	return is ? &written[b->model->written_activation] : NULL;
}

double gelu_kept(const struct builder *b)
{
	const struct written *w = written_activation(b);

	return w ? w->kept : 0;
}

void put_activation(struct builder *b, const struct layer_sizes *s, const char *name,
		    bool backward)
{
	const struct recipe *r = recipe_of(b);
	const struct written *w = written_activation(b);

	if (gates_apart(b))
		put_element(b, s, name, "swiglu", tanh_gate[backward]);
	else if (b->model->activation == FT_SWIGLU)
		put_element(b, s, name, "swiglu", backward ? r->gated_back : r->gated);
	else if (w)
		put_element(b, s, name, "mul", w->pass[backward]);
	else
		put_element(b, s, name, "gelu", backward ? r->plain_back : r->plain);
}

const struct recipe *recipe_by(enum ft_fusion fusion)
{
	return &recipes[fusion];
}

const struct recipe *recipe_of(const struct builder *b)
{
	return recipe_by(b->rules->fusion);
}

const struct routing *routing_of(const struct builder *b)
{
	return runs_all_experts(b) ? &every_routing : recipe_of(b)->routing;
}

const struct recipe *norm_recipe(const struct builder *b)
{
	bool called =
		b->rules->fusion == FT_FUSION_OPERATIONS && !norms_in_operations(b);

	if (writes_norms(b))
		return b->model->written_norm == FT_NORM_CENTERED ? &centered :
								    &cast_norm;
	return called ? &recipes[FT_FUSION_EAGER] : recipe_of(b);
}

/* One element-wise kernel; tokens of h-wide work may be a slice of those of the
 * split features. fp32 residuals (autocast) and dropout masks cost extra. */
static double element_bytes(const struct builder *b, const struct layer_sizes *s,
			    struct coefficients c)
{
	double width = b->autocast ? 1.5 : 1; /* fp32 residual stream */
	/* latent attention rotates a part of each query head, and one key */
	int64_t turned = s->l->kv_lora_rank ? (s->heads + 1) * s->l->qk_rope_head_dim :
					      s->q + own_k(s);

	return (c.h + (b->autocast ? c.casts : 0)) * width * (double)(s->h * s->part) +
	       (double)s->tokens * (c.f * (double)s->f + c.r * (double)turned);
}

void put_element(struct builder *b, const struct layer_sizes *s, const char *name,
		 const char *curve, struct coefficients c)
{
	struct coefficients strided = { .h = c.strided.h,
					.f = c.strided.f,
					.r = c.strided.r,
					.launches = c.strided.launches };

	put_memory(b, name, curve, element_bytes(b, s, c), c.launches);
	put_memory(b, name, "strided", element_bytes(b, s, strided), strided.launches);
}

void put_moved(struct builder *b, const char *name, const char *curve, struct moved m,
	       double numbers)
{
	put_memory(b, name, curve, m.bytes * numbers, m.launches);
	put_memory(b, name, "strided", m.strided.bytes * numbers, m.strided.launches);
}

/* A norm takes whole rows. */
void put_norm(struct builder *b, const struct layer_sizes *s, const char *name,
	      struct coefficients c)
{
	if (norms_in_operations(b))
		put_element(b, s, name, "add", c);
	else
		put_rows(b, name,
			 b->model->norm == FT_RMS_NORM ? "rmsnorm" : "layernorm",
			 element_bytes(b, s, c), c.launches, 2 * (double)s->h);
}

void put_bare_norms(struct builder *b, const char *name, double numbers,
		    double row_bytes, int norms, bool backward)
{
	static const struct coefficients of[] = { RMS_NORM(0, 0), RMS_NORM_BACK(0, 0) };
	const struct coefficients *c = !writes_norms(b) ? &of[backward] :
				       backward		? &norm_recipe(b)->norm_back :
							  &norm_recipe(b)->norm;

	if (norms_in_operations(b)) {
		put_memory(b, name, "add", c->h * numbers, c->launches * norms);
		put_memory(b, name, "strided", c->strided.h * numbers,
			   c->strided.launches * norms);
	} else {
		put_rows(b, name,
			 b->model->norm == FT_RMS_NORM ? "rmsnorm" : "layernorm",
			 (backward ? 8 : 4) * numbers, (backward ? 2 : 1) * norms,
			 row_bytes);
	}
}

/* Behind the products of q, k and v. A compiler joins it with their casts, and sums rows and columns in one
 * kernel where there are twice as many: Inductor does so for one sequence (stacks/torch-2.11-compile.yaml). */
void put_first_norm_back(struct builder *b, const struct layer_sizes *s)
{
	struct coefficients c = norm_back_of(b, s, false);
	bool rms = b->model->norm == FT_RMS_NORM;

	if (b->rules->mixed_norms && rms && b->plan->precision == FT_FP8 &&
	    b->sequences == 1 && b->plan->tp * b->plan->cp == 1 &&
	    s->tokens >= 2 * s->h)
		put_memory(b, "norm_back", "rmsnorm_mixed", element_bytes(b, s, c),
			   c.launches);
	else
		put_norm(b, s, "norm_back", c);
}

/* Forward it is fused with the addition that follows and writes a mask; backward
 * it is a kernel that reads gradient and mask and writes a gradient. */
void put_dropout(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (b->rules->dropout)
		put_memory(b, "dropout", backward ? "mul" : "dropout",
			   (backward ? 5 : 1) * (double)(s->h * s->part),
			   backward ? 1 : 0);
}

void put_norm_behind(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct recipe *r = norm_recipe(b);

	if (b->model->norms > 2)
		put_norm(b, s, backward ? "norm_behind_back" : "norm_behind",
			 backward ? r->norm_back : r->norm);
}
