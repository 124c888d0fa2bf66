/*
 * tests/test_products_counted.c - operations of each matrix product of a step, by its name, for drawn layers: two of
 * each weight and token forward, four backward; what ends of a model and predicted tokens sum and copy
 */
#include "tests/counted.h"

enum { DRAWS = 160, SEQUENCE = 512, LAYERS = 4, VOCABULARY = 8192 };

static uint64_t seed = 83;

struct drawn {
	const char *type;
	bool delta, latent, predicts, cap;
	int h, f, heads, groups, wide, q_rank, kv_rank, rope, key, value, key_heads,
		value_heads, tp, sequences;
	bool joined_qkv, joined_up, sliced;
	bool dtensor; /* instead of Megatron's slices of latents */
};

static const struct drawn types[] = {
	{ .type = "llama" },
	{ .type = "llama", .predicts = true },
	{ .type = "gemma2", .cap = true },
	{ .type = "deepseek_v3", .latent = true },
	{ .type = "qwen3_next", .delta = true },
};

enum { TYPES = sizeof(types) / sizeof(*types) };

static int times(int most)
{
	return 1 + rnd_below(&seed, most);
}

static struct drawn draw(int type)
{
	struct drawn d = types[type];

	d.tp = 1 << rnd_below(&seed, 3);
	d.sequences = times(3);
	d.groups = d.tp * times(2);
	d.heads = d.groups * times(3);
	d.wide = 16 * times(6);
	d.h = 64 * d.tp * times(8);
	d.f = 64 * d.tp * times(20);
	d.q_rank = rnd_below(&seed, 3) ? 32 * times(8) : 0;
	d.kv_rank = 32 * times(8);
	d.rope = 16 * times(4);
	d.key = 16 * times(6);
	d.value = 16 * times(6);
	d.key_heads = d.tp * times(3);
	d.value_heads = d.key_heads * times(3);
	d.joined_qkv = rnd_below(&seed, 2);
	d.joined_up = rnd_below(&seed, 2);
	d.dtensor = rnd_below(&seed, 3) == 0;
	d.sliced = d.tp > 1 && (d.delta || d.latent || rnd_below(&seed, 2));
	return d;
}

static const char *text_of(struct arena *mem, const struct drawn *d)
{
	const char *more = "";

	if (d->latent)
		more = arena_printf(
			mem,
			", q_lora_rank: %s, kv_lora_rank: %d, qk_rope_head_dim: %d, "
			"qk_nope_head_dim: %d, v_head_dim: %d, first_k_dense_replace: "
			"%d, n_routed_experts: 8, num_experts_per_tok: 2, "
			"moe_intermediate_size: 64, n_shared_experts: 1",
			d->q_rank ? arena_printf(mem, "%d", d->q_rank) : "null",
			d->kv_rank, d->rope, d->key, d->value, LAYERS);
	if (d->delta)
		more = arena_printf(
			mem,
			", full_attention_interval: 4, linear_num_key_heads: %d, "
			"linear_num_value_heads: %d, linear_key_head_dim: %d, "
			"linear_value_head_dim: %d, linear_conv_kernel_dim: 4, "
			"num_experts: 8, num_experts_per_tok: 2, "
			"moe_intermediate_size: 64, shared_expert_intermediate_size: "
			"64, mlp_only_layers: [0, 1, 2, 3]",
			d->key_heads, d->value_heads, d->key, d->value);
	return arena_printf(
		mem,
		"{model_type: %s, hidden_size: %d, num_hidden_layers: %d, vocab_size: "
		"%d, num_attention_heads: %d, num_key_value_heads: %d, head_dim: %d, "
		"intermediate_size: %d, num_nextn_predict_layers: %d%s}",
		d->type, d->h, LAYERS, VOCABULARY, d->heads,
		d->latent ? d->heads : d->groups, d->wide, d->f, d->predicts ? 2 : 0,
		more);
}

/* Weights of all products of this name in `layers` layers, on a rank. */
static void is_product(const struct parts *p, const struct drawn *d, const char *name,
		       double layers, double weights)
{
	double tokens = (double)d->sequences * SEQUENCE;
	double is = sum_of(p->graph, name).flop, want = 6 * tokens * layers * weights;

	if (is < want * (1 - 1e-12) || is > want * (1 + 1e-12))
		fail_msg("%s, tp %d: %s has %.12g operations, counted %.12g", d->type,
			 d->tp, name, is, want);
}

static void check_attention(const struct parts *p, const struct drawn *d, double layers)
{
	double h = d->h, tp = d->tp, own = d->delta ? 1 : layers;
	double gates = d->delta ? 2 : 1, q = gates * d->heads * d->wide / tp;
	double kv = (double)d->groups * d->wide / tp, heads = d->heads / tp;

	if (d->latent) {
		/* in Megatron's slices each rank has a part of the tokens */
		double part = d->sliced && !d->dtensor ? tp : 1;

		is_product(p, d, "q_down", layers, h * d->q_rank / part);
		is_product(p, d, "kv_down", layers, h * (d->kv_rank + d->rope) / part);
		is_product(p, d, "q_up", layers,
			   (d->q_rank ? d->q_rank : h) * heads * (d->key + d->rope));
		is_product(p, d, "kv_up", layers,
			   d->kv_rank * heads * (d->key + d->value));
		is_product(p, d, "attention_out", layers, heads * d->value * h);
		return;
	}
	is_product(p, d, "qkv", own, d->joined_qkv ? h * (q + 2 * kv) : 0);
	is_product(p, d, "q", own, d->joined_qkv ? 0 : h * q);
	is_product(p, d, "k", own, d->joined_qkv ? 0 : h * kv);
	is_product(p, d, "v", own, d->joined_qkv ? 0 : h * kv);
	if (d->delta) {
		double k = (double)d->key_heads * d->key / tp;
		double v = (double)d->value_heads * d->value / tp;
		double few = 2 * d->value_heads / tp;

		is_product(p, d, "delta_in", 3,
			   h * (2 * k + 2 * v + (d->joined_qkv ? few : 0)));
		is_product(p, d, "delta_rates", 3, d->joined_qkv ? 0 : h * few);
		is_product(p, d, "attention_out", 1, 3 * v * h + heads * d->wide * h);
		return;
	}
	is_product(p, d, "attention_out", layers, heads * d->wide * h);
}

static void check_products(const struct parts *p, const struct drawn *d)
{
	double layers = LAYERS + (d->predicts ? 2 : 0), h = d->h;
	double f = (double)d->f / d->tp;

	check_attention(p, d, layers);
	is_product(p, d, "gate_up", layers, d->joined_up ? 2 * h * f : 0);
	is_product(p, d, "gate", layers, d->joined_up ? 0 : h * f);
	is_product(p, d, "up", layers, d->joined_up ? 0 : h * f);
	is_product(p, d, "down", layers, f * h);
	is_product(p, d, "head", 1 + layers - LAYERS, h * VOCABULARY / d->tp);
	is_product(p, d, "mtp_projection", layers - LAYERS, 2 * h * h / d->tp);
}

/* Sums of the embedding's rows and of losses over the ranks of a vocabulary, for each head. */
static void check_ends(const struct parts *p, const struct drawn *d)
{
	double tokens = (double)d->sequences * SEQUENCE, ends = d->predicts ? 3 : 1;
	double wide = 2 * tokens * d->h, part = d->sliced ? d->tp : 1;
	bool split = d->tp > 1;
	double scale = split ? (d->sliced ? 2 : 1) : 0;

	near_frac(1 + sum_of(p->graph, "tp_embedding").bytes, 1 + scale * ends * wide,
		  1e-12);
	near_frac(1 + sum_of(p->graph, "tp_loss").bytes,
		  1 + split * ends * 3 * 4 * tokens, 1e-12);
	/* outputs become whole, and backward inputs' gradients, which are twice as wide; slices also inputs, twice, and outputs' gradients */
	near_frac(1 + sum_of(p->graph, "tp_mtp").bytes,
		  1 + split * (ends - 1) * (d->sliced ? 3 + 5 : 3) * wide, 1e-12);
	near_frac(1 + sum_of(p->graph, "mtp_join").bytes,
		  1 + 2 * (ends - 1) * 8 * tokens * d->h / part, 1e-12);
	near_frac(1 + sum_of(p->graph, "mtp_norm").bytes,
		  1 + (ends - 1) * 2 * 4 * tokens * d->h / part, 1e-12);
}

static void each_product_is_of_its_weights(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = draw(i % TYPES);
		struct arena mem = { 0 };
		struct parts p;

		build(&p, text_of(&mem, &d),
		      arena_printf(&mem,
				   "{sequence_length: %d, global_batch_size: %d, "
				   "micro_batch_size: %d, sharding: ddp, recompute: "
				   "none, parallel: {tp: %d}, sequence_parallel: %s}",
				   SEQUENCE, d.sequences, d.sequences, d.tp,
				   d.sliced ? "true" : "false"),
		      "megatron-core", d.tp);
		p.stack->layout.fused_qkv = d.joined_qkv;
		p.stack->layout.fused_gate_up = d.joined_up;
		if (d.dtensor)
			p.stack->layout.tensor_parallel = FT_TP_DTENSOR;
		rebuild(&p);
		check_products(&p, &d);
		if (!d.dtensor)
			check_ends(&p, &d);
		drop(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_product_is_of_its_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
