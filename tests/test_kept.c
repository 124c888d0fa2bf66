/*
 * tests/test_kept.c - what a layer keeps for its backward, counted tensor by tensor for drawn layers: numbers
 * of 16 bit, each with its features a token (traces/saved.c says what was measured)
 */
#include <math.h>

#include "tests/works.h"

enum { DRAWS = 192, TOKENS = 512 };

static uint64_t seed = 3;

/* A layer as drawn; widths are of all ranks. */
struct layer {
	const char *type;
	bool gated, qk_norm, delta, beside, sandwich, latent, out_gate;
	int heads, groups, wide, key_heads, value_heads, key, value;
	int h, f, q_rank, kv_rank, rope, tp;
	bool sliced; /* sequences, between split products */
};

static const struct layer types[] = {
	{ .type = "llama", .gated = true },
	{ .type = "gpt2" },
	{ .type = "qwen3", .gated = true, .qk_norm = true },
	{ .type = "qwen3_next", .gated = true, .delta = true },
	{ .type = "qwen3_next", .gated = true, .out_gate = true, .qk_norm = true },
	{ .type = "gemma2", .gated = true, .sandwich = true },
	{ .type = "cohere", .gated = true, .beside = true },
	{ .type = "deepseek_v3", .gated = true, .latent = true },
};

enum { TYPES = sizeof(types) / sizeof(*types) };

static int times(int most)
{
	return 1 + rnd_below(&seed, most);
}

static struct layer drawn(int type)
{
	struct layer l = types[type];

	l.tp = 1 << rnd_below(&seed, 3);
	l.sliced =
		l.tp > 1 && (l.delta || l.latent || l.out_gate || rnd_below(&seed, 2));
	l.groups = l.tp * times(2);
	l.heads = l.groups * times(3);
	l.wide = 16 * times(8);
	l.key_heads = l.tp * times(3);
	l.value_heads = l.key_heads * times(3);
	l.key = 16 * times(6);
	l.value = 16 * times(6);
	l.h = 64 * l.heads * times(3);
	l.f = 64 * l.tp * times(30);
	l.q_rank = 32 * times(8);
	l.kv_rank = 32 * times(8);
	l.rope = 16 * times(4);
	if (!strcmp(l.type, "gpt2")) { /* heads of their own keys, as wide as all */
		l.groups = l.heads;
		l.wide = l.h / l.heads;
	}
	return l;
}

static const char *text_of(struct arena *mem, const struct layer *l)
{
	if (!strcmp(l->type, "gpt2"))
		return arena_printf(
			mem,
			"{model_type: gpt2, n_embd: %d, n_layer: 4, n_head: %d, "
			"n_inner: %d, vocab_size: 1024, n_positions: 4096}",
			l->h, l->heads, l->f);
	return arena_printf(
		mem,
		"{model_type: %s, hidden_size: %d, num_hidden_layers: 4, vocab_size: 1024, "
		"num_attention_heads: %d, num_key_value_heads: %d, head_dim: %d, "
		"intermediate_size: %d%s%s%s}",
		l->type, l->h, l->heads, l->latent ? l->heads : l->groups, l->wide,
		l->f, l->sandwich ? ", attn_logit_softcapping: null" : "",
		!l->delta && !l->out_gate ?
			"" :
			arena_printf(mem,
				     ", full_attention_interval: %d, "
				     "linear_num_key_heads: %d, "
				     "linear_num_value_heads: %d, "
				     "linear_key_head_dim: %d, "
				     "linear_value_head_dim: %d, "
				     "linear_conv_kernel_dim: 4, "
				     "num_experts: 8, num_experts_per_tok: 2, "
				     "moe_intermediate_size: 64, "
				     "shared_expert_intermediate_size: 64, "
				     "mlp_only_layers: [0, 1]",
				     l->delta ? 4 : 1, l->key_heads, l->value_heads,
				     l->key, l->value),
		!l->latent ?
			"" :
			arena_printf(mem,
				     ", q_lora_rank: %d, kv_lora_rank: %d, "
				     "qk_rope_head_dim: %d, qk_nope_head_dim: %d, "
				     "v_head_dim: %d, first_k_dense_replace: 2, "
				     "n_routed_experts: 8, "
				     "num_experts_per_tok: 2, "
				     "moe_intermediate_size: 64, "
				     "n_shared_experts: 1, "
				     "num_nextn_predict_layers: 0",
				     l->q_rank, l->kv_rank, l->rope, l->key, l->value));
}

static const struct stack {
	const char *name;
	bool eager, megatron;
} stacks[] = {
	{ "torch-2.11-eager", true, false },
	{ "torch-2.11-compile", false, false },
	{ "megatron-core", false, true },
};

/* Numbers of 16 bit a token, on a rank. */
static double counted(const struct layer *l, const struct stack *s)
{
	double h = l->h, f = (double)l->f / l->tp, heads = (double)l->heads / l->tp;
	double q = heads * l->wide, k = (double)l->groups / l->tp * l->wide, v = k;
	double out = q, gate = 0, n;

	if (l->delta) {
		q = k = (double)l->key_heads / l->tp * l->key;
		v = out = gate = (double)l->value_heads / l->tp * l->value;
	}
	if (l->out_gate)
		gate = q;
	if (l->latent) {
		q = k = heads * (l->key + l->rope);
		v = out = heads * l->value;
	}
	/* the residual in front of each half, and what a norm makes of it */
	n = (s->megatron && l->sliced ? 2 * h / l->tp : 2 * h) +
	    (l->sliced ? 2 * h / l->tp : 2 * h);
	if (l->beside) /* one of each serves both halves */
		n -= l->sliced ? 2 * h / l->tp : 2 * h;
	if (l->sandwich) /* inputs of the norms behind the halves */
		n += l->sliced ? 2 * h / l->tp : 2 * h;
	if (l->latent) /* in front of a norm and behind it; a key's part that is turned */
		n += (2. * (l->q_rank + l->kv_rank) + l->rope) *
		     (l->sliced && s->megatron ? 1. / l->tp : 1);
	if (l->qk_norm)
		n += q + k;
	/* what attention takes, what it gives, and that once more in the order of the product */
	if (l->delta) /* beside what the convolution takes: q and k behind it, these for each value head, v, squares of 64
		       * tokens, and what the rule gives in front of its norm */
		n += (1 + (double)l->value_heads / l->key_heads) * (q + k) + v +
		     64. * l->value_heads / l->tp + out;
	n += q + k + v + gate;
	n += out * (l->gated && !s->megatron ? 2 : 1);
	/* Megatron fuses no gate by an approximation of the GELU, as Gemma's is */
	return n +
	       f * (l->gated ? (s->eager || (s->megatron && l->sandwich) ? 4 : 3) : 2);
}

static void a_layer_keeps_its_tensors(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct layer l = drawn(i % TYPES);
		const struct stack *s = &stacks[rnd_below(&seed, 3)];
		bool again = rnd_below(&seed, 6) == 0; /* of which its input is kept */
		struct arena mem = { 0 };
		double got, want = again ? (double)l.h / (l.sliced ? l.tp : 1) :
					   counted(&l, s);
		struct parts p;

		build(&p, text_of(&mem, &l),
		      arena_printf(
			      &mem,
			      "{sequence_length: %d, global_batch_size: 8, sharding: "
			      "ddp, recompute: %s, master_weights: false, parallel: "
			      "{tp: %d}, sequence_parallel: %s}",
			      TOKENS, again ? "full" : "none", l.tp,
			      l.sliced ? "true" : "false"),
		      s->name, 8);
		got = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
		got /= 2 * TOKENS;
		if (fabs(got - want) > 1e-9 * want)
			fail_msg("%s, %s, tp %d%s: %.9g a token, counted %.9g", l.type,
				 s->name, l.tp, l.sliced ? ", sliced" : "", got, want);
		drop(&p);
		arena_release(&mem);
	}
}

/* Bytes a token that one layer of opt keeps, 4 h wide, with this activation. */
static double opt_keeps(const char *activation, const char *more)
{
	char model[240], plan[160];
	struct parts p;
	double got;

	snprintf(model, sizeof(model),
		 "{model_type: opt, hidden_size: 512, num_hidden_layers: 1, "
		 "num_attention_heads: 8, ffn_dim: 2048, vocab_size: 512, "
		 "word_embed_proj_dim: 512, max_position_embeddings: 1024, "
		 "activation_function: %s}",
		 activation);
	snprintf(plan, sizeof(plan), "{sequence_length: %d, global_batch_size: 8%s}",
		 TOKENS, more);
	build(&p, model, plan, "torch-2.11-compile", 8);
	got = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return got / TOKENS;
}

/* Of an activation either its input or its output is kept, 2 bytes of 2,048 features: relu's output is the second
 * product's input, too; where that is computed or cast again its input stays. */
static void one_side_of_an_activation_is_kept(void **state)
{
	static const char *const formats[] = { "", ", precision: fp8" };
	static const char act[] = ", recompute: selective, recompute_modules: [act]";
	static const char mlp[] = ", recompute: selective, recompute_modules: [mlp]";
	char more[160];

	(void)state;
	for (int i = 0; i < 2; i++) {
		double none = opt_keeps("relu", formats[i]), without;

		snprintf(more, sizeof(more), "%s%s", formats[i], act);
		near_frac(opt_keeps("relu", more), none, 1e-9);
		near_frac(opt_keeps("gelu", more), none, 1e-9);
		snprintf(more, sizeof(more), "%s%s", formats[i], mlp);
		without = opt_keeps("relu", more);
		near_frac(none - without, 2 * 2048, 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_keeps_its_tensors),
		cmocka_unit_test(one_side_of_an_activation_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
