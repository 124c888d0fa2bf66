/*
 * traces/layer_input.c - what each layer reads of a token by itself (per-layer embeddings, Gemma 4)
 *
 * With p numbers a layer and token, P = layers * p of all layers:
 *   beside the embedding   a row of P numbers is looked up and scaled; the embedded token is projected to as many,
 *                          which are scaled, and normalized in rows of p; both are added and scaled
 *   in each layer          the output of its halves is projected to p numbers, through a GELU, times the layer's
 *                          slice of those, projected back, through a norm, and added
 * Backward the slice's gradient is as wide as all slices: zeros, a copy of its own, and a sum with those of
 * other layers. Source: Gemma4TextModel and Gemma4TextDecoderLayer of Hugging Face Transformers 5
 * (modeling_gemma4.py, read 2026-11-28). No framework is known that splits it: traces/stack_runs.c.
 */
#include "traces/layer_input.h"

#include "traces/casts.h"

/* Numbers of all layers, of a rank's tokens. */
static double all_inputs(const struct builder *b)
{
	return (double)(b->tokens * b->model->n_layers * b->model->layer_input);
}

/* In 16 bit where the blocks run in 8 or 4, as embedding and head. */
static void project(struct builder *b, enum ft_layout layout)
{
	enum ft_dtype format = b->format;

	if (is_narrow(b))
		b->format = FT_BF16;
	put_gemm(b, "layer_inputs", layout, b->tokens,
		 b->model->n_layers * b->model->layer_input, b->model->hidden_size);
	b->format = format;
}

/* Both parts together, and the norm in front. */
static void join(struct builder *b, bool backward)
{
	double all = all_inputs(b);

	put_memory(b, "layer_inputs_scale", "mul", 4 * all, 1);
	if (!backward)
		put_memory(b, "layer_inputs_sum", "add", 6 * all, 1);
	put_bare_norms(b, backward ? "layer_inputs_norm_back" : "layer_inputs_norm",
		       all, 2 * (double)b->model->layer_input, 1, backward);
	put_memory(b, "layer_inputs_scale", "mul", 8 * all, 2);
}

/* Of the sum; and of what its norm took, in 16 bit or as its operations keep it. */
static double kept(const struct builder *b)
{
	return (2 + 2 + norm_kept(b)) * all_inputs(b);
}

static void gradients(struct builder *b)
{
	double row = (double)(b->model->n_layers * b->model->layer_input);
	double all = all_inputs(b);

	join(b, true);
	project(b, FT_DGRAD);
	project(b, FT_WGRAD);
	put_memory(b, "layer_inputs_sum", "add",
		   6 * (double)(b->tokens * b->model->hidden_size), 1);
	put_memory(b, "embedding_fill", "copy",
		   2 * row * (double)b->model->layer_input_rows, 1);
	put_memory(b, "embedding_back", "embedding", 40 * all, 8);
}

void layer_inputs(struct builder *b, bool backward)
{
	double held = b->plan->lora.rank ? 2 * all_inputs(b) : kept(b);

	if (!b->model->layer_input)
		return;
	b->seg->net_bytes[FT_MEMORY_ACTIVATIONS] += backward ? -held : held;
	if (!backward) {
		b->seg->peak_bytes[FT_MEMORY_ACTIVATIONS] += held;
		put_memory(b, "layer_inputs", "embedding", 4 * all_inputs(b), 1);
		project(b, FT_FORWARD);
		join(b, false);
	} else if (!b->plan->lora.rank) {
		b->seg->peak_bytes[FT_MEMORY_ACTIVATIONS] += 2 * all_inputs(b);
		gradients(b);
	}
}

static void gate(struct builder *b, double numbers, bool backward)
{
	if (b->rules->fusion == FT_FUSION_COMPILED) {
		put_memory(b, "layer_input_gate", "default",
			   (backward ? 10 : 6) * numbers, 1);
		return;
	}
	put_memory(b, "layer_input_gate", "gelu", (backward ? 6 : 4) * numbers, 1);
	put_memory(b, "layer_input_gate", "strided", 6 * numbers, 1);
	put_memory(b, "layer_input_gate", "mul", backward ? 6 * numbers : 0, backward);
}

static void forward(struct builder *b, const struct layer_sizes *s)
{
	int64_t p = b->model->layer_input;

	put_cast(b, (double)(s->tokens * s->h), 1);
	put_gemm(b, "layer_input_in", FT_FORWARD, s->tokens, p, s->h);
	gate(b, (double)(s->tokens * p), false);
	put_cast(b, (double)(s->tokens * p), 1);
	put_gemm(b, "layer_input_out", FT_FORWARD, s->tokens, s->h, p);
	put_norm(b, s, "layer_input_norm", norm_recipe(b)->norm);
	put_element(b, s, "layer_input_add", "add", recipe_of(b)->add);
}

static void backward_of(struct builder *b, const struct layer_sizes *s)
{
	int64_t p = b->model->layer_input;
	double all = all_inputs(b);

	put_norm(b, s, "layer_input_norm_back", norm_recipe(b)->norm_back);
	put_cast(b, (double)(s->tokens * s->h), 1);
	linear_back(b, "layer_input_out", s->tokens, s->h, p);
	gate(b, (double)(s->tokens * p), true);
	put_cast(b, (double)(s->tokens * p), 1);
	linear_back(b, "layer_input_in", s->tokens, p, s->h);
	if (b->plan->lora.rank) /* what it is made of is frozen */
		return;
	put_memory(b, "layer_input_slice", "copy",
		   2 * all + 4 * (double)(s->tokens * p), 2);
	put_memory(b, "layer_input_slice", "add", 6 * all, 1);
	b->seg->peak_bytes[FT_MEMORY_ACTIVATIONS] += 4 * all;
}

void layer_input(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (!b->model->layer_input)
		return;
	if (backward)
		backward_of(b, s);
	else
		forward(b, s);
}

/* Inputs of the gate's product and of the norm; of the GELU, of the product with the slice, and its output. Adapters leave the
 * weights and the slice frozen: then of the norm and the GELU alone. */
double layer_input_kept(const struct builder *b, const struct layer_sizes *s)
{
	double h = (double)s->h, p = (double)b->model->layer_input;

	if (!b->model->layer_input)
		return 0;
	return b->plan->lora.rank ? 2 * h + 2 * p : 4 * h + 6 * p;
}
