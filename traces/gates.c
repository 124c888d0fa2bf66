/*
 * traces/gates.c - gates of attention's output by a product of their own, and limits of MLPs' gates
 *
 * Laguna and Step 3.5 multiply what a head puts out by a number that a product makes of the hidden state, for each head or for each
 * number of its output. With O numbers of the output and G gates, bytes by operations:
 *   gates     Laguna's are cast to fp32, a softplus and cast back (6 + 8 + 6 G); Step's a sigmoid (4 G)
 *   product   a gate a head is spread over its numbers, which is not vectorized: 4 O; else 6 O
 *   backward  of the output by the gate (4 O, strided), of the gate by the output (6 O) and summed over the head (2 O); else 6 O
 *             twice; and of the gates (6 + 12 + 6 G, or 6 G)
 * A compiler and hand-written kernels have one kernel each way: 4 O and 6 O, else 6 O and 10 O. Kept beside what attention keeps
 * without: what the product behind reads (2 O, which a compiler makes again), unless that is frozen; and of the gates the softplus' input in
 * fp32 and its result, or the sigmoid's result. Counted from Transformers' modular_laguna.py and modular_step3p7.py, and PyTorch's
 * tools/autograd/derivatives.yaml (read 2026-12-01).
 *
 * Step's MLPs limit what SiLU puts out from above and the other factor from both sides, by operations in each layer, whatever the
 * limits are (Step3p7MLP, Step3p7Experts; two layers of Step 3.5 Flash have any): 4 bytes a number each. PyTorch's gradients
 * compare and choose: a comparison and a choice (3 + 5), and two comparisons, a conjunction and a choice (3 + 3 + 3 + 5), and a zero is
 * written for each choice, which is not vectorized; nor is what reads an expert's value in a row of two. Both factors are kept in front
 * of it as well. Fused kernels and compilers do it on the way.
 *
 * Each of these kernels, and each tensor kept, was seen so when Laguna's attention, Step's attention, MLP and experts ran alone on an H200
 * (Transformers 5.17, PyTorch 2.11, 2026-12-01).
 */
#include "traces/gates.h"

#include "traces/block.h"

static bool is_wide(const struct layer_sizes *s)
{
	return s->gates == s->out && s->l->v_head_dim > 1;
}

static void gates_by_operations(struct builder *b, const struct layer_sizes *s,
				bool backward)
{
	double out = (double)(s->tokens * s->out), n = (double)(s->tokens * s->gates);
	const char *name = backward ? "output_gate_back" : "output_gate";
	bool wide = is_wide(s);

	if (b->model->wide_gates) {
		put_memory(b, name, "cast", 12 * n, 2);
		put_memory(b, name, "mul", (backward ? 12 : 8) * n, 1);
	} else {
		put_memory(b, name, "mul", (backward ? 6 : 4) * n, 1);
	}
	if (wide) {
		put_memory(b, name, "mul", (backward ? 12 : 6) * out, backward ? 2 : 1);
		return;
	}
	put_memory(b, name, "strided", 4 * out, 1);
	if (backward) {
		put_memory(b, name, "mul", 6 * out, 1);
		put_memory(b, name, "add", 2 * out, 1);
	}
}

void output_gates(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double out = (double)(s->tokens * s->out);
	double each = is_wide(s) ? (backward ? 10 : 6) : backward ? 6 : 4;

	if (!s->gates)
		return;
	if (by_operation(b))
		gates_by_operations(b, s, backward);
	else
		put_memory(b, backward ? "output_gate_back" : "output_gate", "swiglu",
			   each * out, 1);
}

/* Is the weight behind frozen, and nothing beside it that learns? */
static bool behind_is_frozen(const struct builder *b, const struct layer_sizes *s)
{
	return b->plan->lora.rank && !ft_lora_laid(b->model, &b->plan->lora,
						   s->l - b->model->layer, FT_LORA_OUT);
}

double output_gates_kept(const struct builder *b, const struct layer_sizes *s)
{
	bool compiled = b->rules->fusion == FT_FUSION_COMPILED;
	double gated = compiled || behind_is_frozen(b, s) ? 0 : 2 * (double)s->out;
	double each = by_operation(b) && b->model->wide_gates ? 6 : 2;

	return s->gates ? gated + each * (double)s->gates : 0;
}

bool limits_gates(const struct builder *b)
{
	return b->model->limits && b->rules->model_classes && by_operation(b);
}

void put_limits(struct builder *b, const char *name, double numbers, bool halves,
		bool backward)
{
	static const struct limit {
		double add, strided;
		int added, walked;
	} way[2][2] = { /* dense, experts; forward, backward */
			{ { 8, 0, 2, 0 }, { 12, 10, 6, 2 } },
			{ { 4, 4, 1, 1 }, { 6, 16, 4, 4 } }
	};
	const struct limit *w = &way[halves][backward];

	if (!limits_gates(b))
		return;
	put_memory(b, name, "add", w->add * numbers, w->added);
	put_memory(b, name, "strided", w->strided * numbers, w->walked);
}
