/*
 * traces/states_beside.c - a state space beside attention in one layer (Falcon-H1, arXiv 2507.22448)
 *
 * Both read the output of the layer's norm, and their outputs are added, 6 bytes a number, as the gradients of what they read
 * are; a compiler reads one more (2) where it makes the norm behind. Over a tensor group what they read is gathered once, and the
 * sum goes back as one.
 *
 * Its class multiplies by numbers (muP): both inputs, both outputs, keys, the MLP's gate and its output, 4 bytes a number by
 * kernels of their own, and all that the state space's product makes by a vector, which is not vectorized. A copy of the input is
 * kept for each of the two. A compiler joins them with what stands beside them; elsewhere they are taken as factors of weights.
 * Source: Transformers' modular_falcon_h1.py (read 2026-11-28). Megatron Core has no such layer. Counted, not measured: without the
 * packages mamba_ssm and causal_conv1d the class runs products of six dimensions, which is not simulated.
 */
#include "traces/casts.h"
#include "traces/mixers.h"

static bool multiplies(const struct builder *b)
{
	return b->model->multipliers && b->rules->model_classes && by_operation(b);
}

double multipliers_kept(const struct builder *b, const struct layer_sizes *s)
{
	return multiplies(b) ? 2 * (double)s->h : 0;
}

/* The multiplications of a whole layer; they are the same in backward. */
static void put_multipliers(struct builder *b, const struct layer_sizes *s,
			    const struct layer_sizes *state)
{
	int64_t in = state->q + state->k + state->v + state->gate +
		     state->l->linear_heads / b->plan->tp;

	if (!multiplies(b))
		return;
	put_memory(b, "multipliers", "copy",
		   4 * (double)(s->tokens * (5 * s->h + s->k + s->f)), 7);
	put_memory(b, "multipliers", "strided", 4 * (double)(s->tokens * in), 1);
}

static void put_sum(struct builder *b, const struct layer_sizes *s)
{
	bool compiled = b->rules->fusion == FT_FUSION_COMPILED;

	put_memory(b, "states_sum", "add",
		   (compiled ? 2 : 6) * (double)(s->tokens * s->h), !compiled);
}

void states_products(struct builder *b, const struct layer_sizes *s,
		     enum ft_layout layout)
{
	struct layer_sizes state = state_sizes(b, s);

	if (s->l->states_beside)
		delta_products(b, &state, layout);
}

void states_run(struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes state = state_sizes(b, s);

	if (!s->l->states_beside)
		return;
	put_multipliers(b, s, &state);
	delta_core(b, &state, false);
	put_cast(b, (double)(s->tokens * state.out), 1);
	put_gemm(b, "state_out", FT_FORWARD, s->tokens, s->h, state.out);
	put_sum(b, s);
}

/* Behind attention's own backward, whose output's gradient is whole by then. */
void states_back(struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes state = state_sizes(b, s);

	if (!s->l->states_beside)
		return;
	put_multipliers(b, s, &state);
	linear_back(b, "state_out", s->tokens, s->h, state.out);
	delta_core(b, &state, true);
	put_cast(b, (double)(s->tokens * (state.q + state.kv + state.gate)), 1);
	put_sum(b, s);
}
