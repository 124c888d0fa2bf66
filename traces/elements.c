/*
 * traces/elements.c - the element-wise kernels of a block: norms, activations, dropout
 *
 * A kernel's bytes are its recipe's (traces/recipes.c) times the tokens and features of the rank.
 */
#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/gates.h"

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
struct written {
	struct coefficients pass[2];
	double kept;
};

static const struct written written[] = {
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

/* gelu_new under autocast, which takes x^3 in fp32: x is cast (6), and all that follows is fp32, but for x / 2 (8 + 8 + 10 + 8 + 8 + 8
 * + 4 + 10), until the second product casts it (6). Kept in its stead: x and tanh in fp32, x / 2 and 1 + tanh. Backward that cast (6), the
 * product's two gradients, one of them cast (12 + 6 + 10), x / 2 (4), tanh (12), two factors (8 + 8), a cast (6), the power by
 * three kernels (28) and its cast (6), and two sums (12). */
static const struct written power_in_fp32 = {
	{ { .f = 76, .launches = 10 }, { .f = 118, .launches = 17 } }, 12
};

/* A squared ReLU under autocast, which takes the square in fp32: ReLU (4), a cast (6), the square (8) and the second product's cast (6).
 * Backward that cast (6), a power of one, twice that and the product with the gradient (8 + 8 + 12), a cast (6) and ReLU's (6). What the square
 * reads is kept in fp32. */
static const struct written square_in_fp32 = {
	{ { .f = 24, .launches = 4 }, { .f = 46, .launches = 6 } }, 4
};

/* xIELU under autocast, which takes its exponential in fp32, as are its two numbers: all is fp32, twice the bytes, kept as well. */
static const struct written xielu_in_fp32 = {
	{ { .f = 74.8, .launches = 8, .strided = { .f = 51.4, .launches = 5 } },
	  { .f = 174, .launches = 18, .strided = { .f = 83.4, .launches = 8 } } },
	14
};

static const struct written *written_activation(const struct builder *b)
{
	bool is = b->model->written_activation != FT_WRITTEN_NOT &&
		  b->rules->model_classes && by_operation(b);

	if (is && b->model->written_activation == FT_WRITTEN_GELU && under_autocast(b))
		return &power_in_fp32;
	if (is && b->model->written_activation == FT_WRITTEN_SQUARE &&
	    under_autocast(b))
		return &square_in_fp32;
	if (is && b->model->written_activation == FT_WRITTEN_XIELU && under_autocast(b))
		return &xielu_in_fp32;
	return is ? &written[b->model->written_activation] : NULL;
}

double gelu_kept(const struct builder *b)
{
	const struct written *w = written_activation(b);

	return w ? w->kept : 0;
}

/* Megatron Core's gate of SiLU and its gradient as they are written where nothing compiles them (its fusions/fused_bias_swiglu.py and
 * jit.py, read 2026-11-30): silu and a product; backward two sigmoids, 1 - s, x (1 - s), 1 + that, four products, silu and both halves
 * joined. What reads or writes one half of a row of two is not told apart. */
static const struct coefficients plain_gate[] = { { .f = 10, .launches = 2 },
						  { .f = 58, .launches = 11 } };

static bool gates_by_operations(const struct builder *b)
{
	return b->rules->plain_gates && b->rules->fusion == FT_FUSION_KERNELS;
}

void put_activation(struct builder *b, const struct layer_sizes *s, const char *name,
		    bool backward)
{
	const struct recipe *r = recipe_of(b);
	const struct written *w = written_activation(b);

	put_limits(b, backward ? "clamp_back" : "clamp", (double)(s->tokens * s->f),
		   false, backward);
	if (gates_apart(b))
		put_element(b, s, name, "swiglu", tanh_gate[backward]);
	else if (b->model->activation == FT_SWIGLU && gates_by_operations(b))
		put_element(b, s, name, "swiglu", plain_gate[backward]);
	else if (b->model->activation == FT_SWIGLU)
		put_element(b, s, name, "swiglu", backward ? r->gated_back : r->gated);
	else if (w)
		put_element(b, s, name, "mul", w->pass[backward]);
	else
		put_element(b, s, name, "gelu", backward ? r->plain_back : r->plain);
}

/* One element-wise kernel; tokens of h-wide work may be a slice of those of the
 * split features. fp32 residuals (autocast) and dropout masks cost extra. */
static double element_bytes(const struct builder *b, const struct layer_sizes *s,
			    struct coefficients c)
{
	double width = b->autocast ? 1.5 : 1; /* fp32 residual stream */
	/* latent and compressed attention rotate a part of each query head, and one key */
	int64_t turned = s->l->qk_rope_head_dim ?
				 (s->heads + 1) * s->l->qk_rope_head_dim :
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

/* Bytes a number of a bare norm's backward. Where a block takes one short row, its time counts, not what it moves, and a backward
 * takes 1.2 to 1.7 times as long as a forward. Source: rows of 64 to 256 numbers on an H200 (measurements/probes/h200-2026-11-29-norms-back-unseen). */
static double norm_back_bytes(double row_bytes)
{
	enum { SHORT_ROW = 512 };

	return row_bytes > 0 && row_bytes <= SHORT_ROW ? 1.43 * 4 : 8;
}

void put_bare_norms(struct builder *b, const char *name, double numbers,
		    double row_bytes, int norms, bool backward)
{
	const struct coefficients *c = bare_norm(b, backward);

	if (norms_in_operations(b)) {
		put_memory(b, name, "add", c->h * numbers, c->launches * norms);
		put_memory(b, name, "strided", c->strided.h * numbers,
			   c->strided.launches * norms);
	} else {
		put_rows(b, name,
			 b->model->norm == FT_RMS_NORM ? "rmsnorm" : "layernorm",
			 (backward ? norm_back_bytes(row_bytes) : 4) * numbers,
			 (backward ? 2 : 1) * norms, row_bytes);
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

bool drops_out(const struct builder *b)
{
	return b->rules->dropout || b->model->dropout;
}

/* Forward it writes a mask, and is fused with the addition that follows or, where operations are kernels of their own, is
 * one; backward it is a kernel that reads gradient and mask and writes a gradient. */
void put_dropout(struct builder *b, const struct layer_sizes *s, bool backward)
{
	bool apart = backward || b->rules->fusion == FT_FUSION_EAGER || by_operation(b);

	if (drops_out(b))
		put_memory(b, "dropout", backward ? "mul" : "dropout",
			   (apart ? 5 : 1) * (double)(s->h * s->part), apart);
}

static void norm_behind(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct recipe *r = norm_recipe(b);

	put_norm(b, s, backward ? "norm_behind_back" : "norm_behind",
		 backward ? r->norm_back : r->norm);
}

void put_norm_behind(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (b->model->norms > 2)
		norm_behind(b, s, backward);
}

void put_norm_behind_mlp(struct builder *b, const struct layer_sizes *s, bool backward)
{
	put_norm_behind(b, s, backward);
	if (b->model->expert_norm && s->l->experts)
		norm_behind(b, s, backward);
}
