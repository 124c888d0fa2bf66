/*
 * traces/delta.c - a gated delta rule in place of attention (Gated DeltaNet, arXiv 2412.06464), and what
 * a state space (traces/state_space.c) and a gated convolution (traces/short_conv.c) have in common with it
 *
 * A state of key x value numbers a head is carried along the sequence. It is computed in
 * chunks of C tokens (the paper's section 3.3, as its authors' kernels do): inside a chunk
 * products of C x C, between chunks products with the state. For each token and head:
 *   k k', q k'                         2 C dk
 *   w = T k, u = T v, (q k') v         C dk + 2 C dv
 *   w S, k' (u - w S), q S             3 dk dv
 * multiply-adds, in 16 bit. Backward runs them again and then two gradients of each. Their kernels, in Triton, are not bound
 * by them but by what they move and by instructions, at a rate that a profile has (`delta_rule`, `delta_rule_back`). They read
 * and write, in bytes for each token and head:
 *   chunks: k k' (2 dk + 4 C), its inverse (6 C), w and u (4 dk + 4 dv + 2 C), outputs (4 dk + 4 dv + 2 dk dv / C)
 *   state: from chunk to chunk, each waiting for the one before (4 dk + 4 dv + 2 dk dv / C)
 *   chunks, backward: w and u once more (4 dk + 4 dv + 2 C), gradients of u (4 dk + 4 dv), of q, k and w
 *     (10 dk + 6 dv + 4 dk dv / C), through the inverse (6 dk + 6 dv + 2 C), of k added up (6 dk)
 *   state, backward: the states once more, and their gradients from the last chunk to the first (10 dk + 10 dv + 4 dk dv / C)
 * Counted by what each of flash-linear-attention's kernels must read and write; the rates are of such bytes.
 *
 * In front of it q and k are brought to length one and repeated for the heads of values. Megatron Core lays channels out for the
 * convolution, each a row, and back, copies the gate, and has the norm behind apart from its gate; else q, k and v are joined
 * (megatron/core/ssm/gated_delta_net.py and Transformers' modeling_qwen3_next.py, read 2026-11-28). Copies that turn a
 * matrix have the curve `strided_turn`.
 *
 * Over a context group a rank gets all tokens of its share of the heads, whatever attention
 * does: q, k, v, the gate and two numbers a head there, the output back, backward the other way.
 * Source: Megatron Core (github.com/NVIDIA/Megatron-LM, pull request 2614, read 2026-11-25).
 */
#include "base/whole.h"
#include "traces/mixers.h"

enum { CHUNK = 64 }; /* tokens; flash-linear-attention's */

/* Of each token and head: bytes for a key's feature, a value's, a token of the chunk and a number of a chunk's state; and
 * multiply-adds of a state's number in a pass over it. Chunks wait for each other where there are states alone. */
struct touched_by_rule {
	const char *name;
	double dk, dv, chunk, state, state_products;
	int launches;
	bool in_turn;
};

static const struct touched_by_rule rule_kernels[2][2] = {
	{ { "delta_chunks", 10, 8, 12, 2, 1, 5, false },
	  { "delta_state", 4, 4, 0, 2, 2, 1, true } },
	{ { "delta_chunks_back", 30, 20, 4, 4, 3, 7, false },
	  { "delta_state_back", 10, 10, 0, 4, 6, 2, true } },
};

static void delta_rule(struct builder *b, const struct layer_sizes *s, bool backward)
{
	int64_t length = b->plan->document ? b->plan->document : b->plan->sequence;
	double times = (double)(s->tokens * s->l->linear_heads / b->plan->tp);
	double dk = (double)s->l->linear_key_dim, dv = (double)s->l->linear_value_dim;

	for (int i = 0; i < 2; i++) {
		const struct touched_by_rule *t = &rule_kernels[backward][i];
		double inside = t->in_turn ? 0 : CHUNK * (3 * dk + 2 * dv);
		struct ft_work w = { .kind = FT_MEMORY_BOUND,
				     .name = t->name,
				     .dtype = FT_BF16 };

		w.memory.kernel = backward ? "delta_rule_back" : "delta_rule";
		w.memory.bytes = times * (t->dk * dk + t->dv * dv + t->chunk * CHUNK +
					  t->state * dk * dv / CHUNK);
		w.memory.steps = t->in_turn ? ceil_div(length, CHUNK) : 0;
		w.memory.flop =
			2 * times *
			((backward ? 3 : 1) * inside + t->state_products * dk * dv);
		put_op(b, &w, FT_STREAM_COMPUTE, t->launches);
	}
}

/* One or two numbers for each value head of a rank. */
static int64_t few_features(const struct builder *b, const struct layer_sizes *s)
{
	return ft_layer_linear_rates(s->l) * s->l->linear_heads / b->plan->tp;
}

/* From a part of the tokens to a part of the heads, or back. */
static void deal(struct builder *b, const struct layer_sizes *s, int64_t features)
{
	if (put_collective(b, "cp_all_to_all", FT_STREAM_CP, FT_ALL_TO_ALL, FT_GROUP_CP,
			   2 * (double)(s->tokens * features)))
		need(b, FT_STREAM_CP);
}

/* Names of kernels by kind (a delta rule, a state space) and pass. */
static const struct names {
	const char *conv[2], *norm[2];
} names[] = {
	{ { "delta_conv", "delta_conv_back" }, { "delta_norm", "delta_norm_back" } },
	{ { "state_conv", "state_conv_back" }, { "state_norm", "state_norm_back" } },
};

static void rule(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (s->l->state_chunk)
		state_space(b, s, backward);
	else
		delta_rule(b, s, backward);
}

/* Value heads for each head of keys. */
static double repeats(const struct ft_layer *l)
{
	return (double)l->linear_heads / (double)l->linear_key_heads;
}

/* q and k before they are brought to length one and as repeated, v, and a square of a chunk's tokens a head, or two. */
double delta_kept(const struct layer_sizes *s)
{
	double keys = (double)(s->q + s->k);
	double heads = (double)s->v / (double)s->l->linear_value_dim;

	return 2 * ((1 + repeats(s->l)) * keys + (double)s->v +
		    (s->l->linear_rank ? 2 : 1) * CHUNK * heads);
}

/* The copies around the convolution, and what is done to its outputs before the rule. */
static void delta_inputs(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double keys = (double)(s->tokens * (s->q + s->k));
	double channels = keys + (double)(s->tokens * s->v), times = repeats(s->l);
	const char *order = backward ? "delta_order_back" : "delta_order";

	if (s->l->state_chunk)
		return;
	if (b->rules->tensor_parallel == FT_TP_MEGATRON) {
		put_memory(b, order, "strided_turn", 8 * channels, backward ? 2 : 4);
		put_memory(b, order, "copy",
			   4 * (double)(s->tokens * s->gate) +
				   (backward ? 4 * channels : 0),
			   backward ? 2 : 1);
	} else {
		put_memory(b, order, "concat", 4 * channels, 1);
	}
	put_memory(b, backward ? "delta_length_back" : "delta_length", "rmsnorm",
		   (backward ? 6 : 4) * keys, 2);
	if (times > 1)
		put_memory(b, backward ? "delta_repeat_back" : "delta_repeat", "copy",
			   (2 + 2 * times) * keys, 2);
}

/* The norm behind, and the gate where it is not in the scan. */
static void norm_behind(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct names *n = &names[s->l->state_chunk > 0];
	bool apart = !s->l->state_chunk && b->rules->tensor_parallel == FT_TP_MEGATRON;
	double bytes = backward ? 10 : 6;
	int launches = backward ? 2 : 1;

	if (s->l->bare_states) { /* its gate alone, if the scan has not had it */
		if (!gates_in_scan(b, s->l))
			put_memory(b, backward ? "state_gate_back" : "state_gate",
				   "default", bytes * (double)(s->tokens * s->v), 1);
		return;
	}
	if (gates_in_scan(b, s->l))
		bytes = backward ? 6 : 4;
	else if (apart)
		bytes = backward ? 8 + 10 : 4 + 6, launches++;
	put_memory(b, n->norm[backward], "rmsnorm", bytes * (double)(s->tokens * s->v),
		   launches);
}

/* The convolution and its activation, the rule, and a norm times a gate. */
static void delta_inside(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct names *n = &names[s->l->state_chunk > 0];
	double channels = (double)(s->tokens * (s->q + s->k + s->v));

	if (backward)
		norm_behind(b, s, true);
	put_memory(b, n->conv[backward], "default", (backward ? 8 : 4) * channels,
		   backward ? 2 : 1);
	delta_inputs(b, s, backward);
	decays(b, s, backward);
	rule(b, s, backward);
	if (!backward)
		norm_behind(b, s, false);
}

void delta_core(struct builder *b, const struct layer_sizes *s, bool backward)
{
	int64_t in = s->q + s->k + s->v + s->gate + few_features(b, s) +
		     (s->l->linear_rank ? s->k : 0);

	deal(b, s, backward ? s->out : in);
	state_turn(b, s, in, backward);
	if (s->l->short_conv)
		short_conv(b, s, backward);
	else
		delta_inside(b, s, backward);
	deal(b, s, backward ? in : s->out);
}

/* q, k, v and the gate; and what each head takes, which fused stacks take along, as a state space's one matrix does.
 * Of a gated convolution q and k are the gates. */
void delta_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout)
{
	int64_t wide = s->q + s->k + s->v + s->gate;
	int64_t few = few_features(b, s);

	if (s->l->linear_rank) {
		decay_products(b, s, layout);
		return;
	}
	if (b->rules->fused_qkv || s->l->state_chunk || s->l->short_conv) {
		put_gemm(b,
			 s->l->short_conv  ? "conv_in" :
			 s->l->state_chunk ? "state_in" :
					     "delta_in",
			 layout, s->tokens, wide + few, s->h);
		return;
	}
	put_gemm(b, "delta_in", layout, s->tokens, wide, s->h);
	put_gemm(b, "delta_rates", layout, s->tokens, few, s->h);
}
