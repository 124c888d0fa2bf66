/*
 * tests/test_weights_drawn.c - what each stage holds of a drawn model's weights, counted matrix by
 * matrix: what tensor parallelism splits, what each rank has whole, experts, and what stands at
 * both ends of a pipeline with tokens predicted ahead
 */
#include <math.h>

#include "tests/works.h"

enum { DRAWS = 240, VOCABULARY = 8192 };

static uint64_t seed = 11;

struct drawn {
	const char *type;
	bool qk_norm, delta, latent, routed;
	int h, f, heads, groups, wide, layers, experts, of_expert, shared, q_rank,
		kv_rank;
	int rope, key, value, key_heads, value_heads, predicted, dense_first;
	int tp, pp, ep;
	bool tied;
};

static const struct drawn types[] = {
	{ .type = "llama" },
	{ .type = "qwen3", .qk_norm = true },
	{ .type = "mixtral", .routed = true },
	{ .type = "deepseek_v3", .latent = true, .routed = true },
	{ .type = "qwen3_next", .delta = true, .qk_norm = true, .routed = true },
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
	d.pp = 1 << rnd_below(&seed, 3);
	d.ep = d.routed ? 1 << rnd_below(&seed, 2) : 1;
	d.layers = d.pp * (d.delta ? 4 : times(3));
	d.groups = d.delta || d.latent ? d.tp * times(2) : 1 << rnd_below(&seed, 4);
	d.heads = 4 * d.groups * times(2);
	d.wide = 16 * times(6);
	d.h = 64 * d.tp * times(12);
	d.f = 64 * d.tp * times(20);
	d.experts = 8 * times(3);
	d.of_expert = 64 * d.tp * times(4);
	d.shared = !strcmp(d.type, "mixtral") ? 0 : d.of_expert * (d.latent ? 1 : 2);
	d.q_rank = rnd_below(&seed, 3) ? 32 * times(8) : 0;
	d.kv_rank = 32 * times(8);
	d.rope = 16 * times(4);
	d.key = 16 * times(6);
	d.value = 16 * times(6);
	d.key_heads = d.tp * times(3);
	d.value_heads = d.key_heads * times(3);
	d.predicted = rnd_below(&seed, 3);
	d.dense_first = d.latent ? rnd_below(&seed, d.layers) : 0;
	d.tied = rnd_below(&seed, 3) == 0;
	return d;
}

static const char *routed_text(struct arena *mem, const struct drawn *d)
{
	if (!d->routed)
		return "";
	if (!strcmp(d->type, "mixtral"))
		return arena_printf(mem,
				    ", num_local_experts: %d, num_experts_per_tok: 2",
				    d->experts);
	if (d->latent)
		return arena_printf(mem,
				    ", n_routed_experts: %d, num_experts_per_tok: 2, "
				    "moe_intermediate_size: %d, n_shared_experts: 1, "
				    "first_k_dense_replace: %d",
				    d->experts, d->of_expert, d->dense_first);
	return arena_printf(mem,
			    ", num_experts: %d, num_experts_per_tok: 2, "
			    "moe_intermediate_size: %d, "
			    "shared_expert_intermediate_size: %d",
			    d->experts, d->of_expert, d->shared);
}

static const char *text_of(struct arena *mem, const struct drawn *d)
{
	const char *attention = "";

	if (d->latent)
		attention = arena_printf(
			mem,
			", q_lora_rank: %s, kv_lora_rank: %d, "
			"qk_rope_head_dim: %d, qk_nope_head_dim: %d, v_head_dim: %d",
			d->q_rank ? arena_printf(mem, "%d", d->q_rank) : "null",
			d->kv_rank, d->rope, d->key, d->value);
	if (d->delta)
		attention = arena_printf(
			mem,
			", full_attention_interval: 4, linear_num_key_heads: %d, "
			"linear_num_value_heads: %d, linear_key_head_dim: %d, "
			"linear_value_head_dim: %d, linear_conv_kernel_dim: 4",
			d->key_heads, d->value_heads, d->key, d->value);
	return arena_printf(
		mem,
		"{model_type: %s, hidden_size: %d, num_hidden_layers: %d, "
		"vocab_size: %d, num_attention_heads: %d, num_key_value_heads: %d, "
		"head_dim: %d, intermediate_size: %d, num_nextn_predict_layers: %d, "
		"tie_word_embeddings: %s%s%s}",
		d->type, d->h, d->layers, VOCABULARY, d->heads,
		d->latent ? d->heads : d->groups, d->wide, d->f, d->predicted,
		d->tied ? "true" : "false", attention, routed_text(mem, d));
}

/* Of attention: what is split among ranks as it is divided by tp, and what each has whole. */
static double attention(const struct drawn *d, int layer)
{
	double h = d->h, tp = d->tp, heads = d->heads;
	double groups = d->groups < d->tp ? d->tp : d->groups;
	double gates = d->delta ? 2 : 1; /* the output's gate is as wide as q */

	if (d->latent) {
		double wide = d->key + d->rope;
		double q = d->q_rank ? h * d->q_rank + d->q_rank +
					       d->q_rank * heads * wide / tp :
				       h * heads * wide / tp;

		return q + h * (d->kv_rank + d->rope) + d->kv_rank +
		       d->kv_rank * heads * (d->key + d->value) / tp +
		       heads * d->value * h / tp;
	}
	if (d->delta && (layer + 1) % 4 != 0) {
		double k = (double)d->key_heads * d->key;
		double v = (double)d->value_heads * d->value;

		return (h * (2 * k + 2 * v + 2 * d->value_heads) + v * h +
			4 * (2 * k + v) + 2 * d->value_heads) /
			       tp +
		       d->value;
	}
	return (gates * h * heads * d->wide + 2 * h * groups * d->wide +
		heads * d->wide * h) /
		       tp +
	       (d->qk_norm ? 2 * d->wide : 0);
}

static double layer_of(const struct drawn *d, int layer)
{
	double h = d->h, n = attention(d, layer) + 2 * h;

	if (!d->routed || layer < d->dense_first)
		return n + 3 * h * d->f / d->tp;
	n += h * d->experts; /* the router */
	if (d->latent)
		n += d->experts; /* its bias */
	if (d->delta)
		n += h; /* a gate of the shared expert */
	return n + 3 * h * d->shared / d->tp;
}

static double experts_of(const struct drawn *d, int layer)
{
	double width = !strcmp(d->type, "mixtral") ? d->f : d->of_expert;

	if (!d->routed || layer < d->dense_first)
		return 0;
	return d->experts / (double)d->ep * 3 * d->h * width;
}

/* Numbers that a rank of this stage holds. */
static double counted(const struct drawn *d, int stage, bool split_experts)
{
	int each = d->layers / d->pp, last = d->layers - 1;
	double h = d->h, table = h * VOCABULARY / d->tp, n = 0;
	double etp = split_experts ? d->tp : 1;
	bool words = stage == 0 || (stage == d->pp - 1 && d->predicted);

	for (int i = stage * each; i < (stage + 1) * each; i++)
		n += layer_of(d, i) + experts_of(d, i) / etp;
	if (words)
		n += table;
	if (stage < d->pp - 1)
		return n;
	n += h + (d->tied && words ? 0 : table);
	return n + d->predicted * (layer_of(d, last) + experts_of(d, last) / etp +
				   2 * h * h / d->tp + 3 * h);
}

static void a_stage_holds_each_of_its_weights(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = draw(i % TYPES);
		struct arena mem = { 0 };
		struct parts p;

		build(&p, text_of(&mem, &d),
		      arena_printf(&mem,
				   "{sequence_length: 512, global_batch_size: 64, "
				   "sharding: ddp, parallel: {tp: %d, pp: %d, ep: %d}}",
				   d.tp, d.pp, d.ep),
		      "megatron-core", 4 * d.tp * d.pp);
		assert_int_equal(p.graph->n_classes, d.pp);
		for (int stage = 0; stage < d.pp; stage++) {
			double got = p.graph->rank_class[stage]
					     .base_bytes[FT_MEMORY_WEIGHTS] /
				     2;
			double want = counted(&d, stage, p.plan->etp > 1);

			if (fabs(got - want) > 1e-12 * want)
				fail_msg("%s, tp %d, stage %d of %d: %.0f weights, "
					 "counted %.0f",
					 text_of(&mem, &d), d.tp, stage, d.pp, got,
					 want);
		}
		drop(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stage_holds_each_of_its_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
