/* tests/test_states_beside.c - a state space beside attention in each layer (Falcon-H1): parameters, works, memory, FLOPs */
#include "tests/routed.h"

#define BESIDE(layers, more) \
	"{model_type: falcon_h1, hidden_size: 512, num_hidden_layers: " layers ", " \
	"num_attention_heads: 8, num_key_value_heads: 4, head_dim: 32, " \
	"intermediate_size: 1024, mamba_n_heads: 16, mamba_d_head: 32, " \
	"mamba_d_state: 64, mamba_n_groups: 4, mamba_d_conv: 4, mamba_chunk_size: 128, " \
	"vocab_size: 512" more "}"
#define ATTENTION \
	"{model_type: llama, hidden_size: 512, num_hidden_layers: 1, " \
	"num_attention_heads: 8, num_key_value_heads: 4, head_dim: 32, " \
	"intermediate_size: 1024, vocab_size: 512}"
#define STATES \
	"{model_type: bamba, hidden_size: 512, num_hidden_layers: 1, " \
	"num_attention_heads: 8, num_key_value_heads: 4, " \
	"intermediate_size: 1024, mamba_n_heads: 16, mamba_d_head: 32, " \
	"mamba_d_state: 64, mamba_n_groups: 4, mamba_d_conv: 4, mamba_chunk_size: 128, " \
	"vocab_size: 512}"

enum {
	H = 512,
	F = 1024,
	Q = 8 * 32,
	KV = 4 * 32,
	HEADS = 16,
	INNER = 16 * 32,
	N = 64,
	GROUPS = 4,
	TOKENS = 512,
	MICRO = 4
};

static const double in = 2. * INNER + 2. * GROUPS * N + HEADS;
static const double channels = INNER + 2. * GROUPS * N;

static double parameters(const char *text)
{
	struct parts p;
	double n;

	build(&p, text, PLAN(""), "generic", 8);
	n = ft_model_parameters(p.model);
	drop(&p);
	return n;
}

/* Both mixers' matrices, taps and biases of the convolution, three numbers a head, a norm where it is said, and an MLP. */
static void a_layer_has_the_parameters_of_both(void **state)
{
	double attention = 2. * H * Q + 2. * H * KV;
	double states = H * in + (double)INNER * H;
	double want =
		attention + states + 5 * channels + 3. * HEADS + 3. * H * F + 2. * H;
	struct parts one, two;

	(void)state;
	build(&one, BESIDE("1", ""), PLAN(""), "generic", 8);
	build(&two, BESIDE("2", ""), PLAN(""), "generic", 8);
	near_frac(ft_model_parameters(two.model) - ft_model_parameters(one.model), want,
		  1e-12);
	near_frac(parameters(BESIDE("1", ", mamba_rms_norm: true")) -
			  parameters(BESIDE("1", "")),
		  INNER, 1e-12);
	/* 7 FLOP a number of the state, and scores and values of half the tokens, three times each */
	near_frac(ft_model_flop_per_token(two.model, 1, 512, true) -
			  ft_model_flop_per_token(one.model, 1, 512, true),
		  6 * (attention + states + 3. * H * F + 4 * channels) +
			  3 * 7. * INNER * N + 6 * 2. * Q * 512 / 2,
		  1e-12);
	drop(&two);
	drop(&one);
}

/* Works of one kind are those of a layer of attention or of a state space; both read one norm, and are summed. */
static void both_mixers_run(void **state)
{
	static const char *const of_attention[] = { "qkv",	     "attention",
						    "attention_out", "rope",
						    "norm",	     "add_norm" };
	static const char *const of_states[] = { "state_in",	    "state_scan",
						 "state_write",	    "state_conv",
						 "state_conv_back", "state_scan_back",
						 "state_gate" };

	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		char plan[200];
		struct parts p, a, m;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 512, global_batch_size: 32, sharding: ddp, "
			 "sequence_parallel: true, parallel: {tp: %d}}",
			 tp);
		build(&p, BESIDE("1", ""), plan, "megatron-core", 8);
		build(&a, ATTENTION, plan, "megatron-core", 8);
		build(&m, STATES, plan, "megatron-core", 8);
		for (size_t i = 0; i < sizeof(of_attention) / sizeof(*of_attention);
		     i++) {
			struct sum x = sum_of(p.graph, of_attention[i]),
				   y = sum_of(a.graph, of_attention[i]);

			assert_true(x.n == y.n && x.bytes == y.bytes &&
				    x.flop == y.flop && (tp > 1 || x.n > 0));
		}
		for (size_t i = 0; i < sizeof(of_states) / sizeof(*of_states); i++) {
			struct sum x = sum_of(p.graph, of_states[i]),
				   y = sum_of(m.graph, of_states[i]);

			assert_true(x.n == y.n && x.bytes == y.bytes &&
				    x.flop == y.flop && x.n > 0);
		}
		near_frac(sum_of(p.graph, "state_out").flop,
			  MICRO * tp * 6. * TOKENS * H * INNER / tp, 1e-12);
		near_frac(sum_of(p.graph, "states_sum").bytes,
			  MICRO * tp * 2 * 6. * TOKENS * H, 1e-12);
		/* what is read is gathered once, the sum goes back as one */
		assert_true(sum_of(p.graph, "tp_all_gather").n ==
			    sum_of(a.graph, "tp_all_gather").n);
		assert_true(sum_of(p.graph, "tp_reduce_scatter").n ==
			    sum_of(a.graph, "tp_reduce_scatter").n);
		assert_int_equal(sum_of(p.graph, "state_norm").n, 0);
		drop(&m);
		drop(&a);
		drop(&p);
	}
}

/* In the class's own operations: five of hidden_size, keys, the MLP's gate; and the state space's product. */
static void its_class_multiplies(void **state)
{
	struct parts p;

	(void)state;
	build(&p, BESIDE("1", ""), PLAN(""), "transformers-5-eager", 8);
	near_frac(sum_of(p.graph, "multipliers").bytes,
		  MICRO * 2 * 4. * TOKENS * (5 * H + KV + F + in), 1e-12);
	/* scan's output times its gate: two read, one written; backward three and two */
	near_frac(sum_of(p.graph, "state_gate").bytes, MICRO * 6. * TOKENS * INNER,
		  1e-12);
	near_frac(sum_of(p.graph, "state_gate_back").bytes,
		  MICRO * 10. * TOKENS * INNER, 1e-12);
	drop(&p);
	build(&p, BESIDE("1", ""), PLAN(""), "transformers-5-compile", 8);
	assert_int_equal(sum_of(p.graph, "multipliers").n, 0);
	near_frac(sum_of(p.graph, "states_sum").bytes, MICRO * 2 * 2. * TOKENS * H,
		  1e-12);
	drop(&p);
}

static double kept(const char *model, const char *stack)
{
	struct parts p;
	double bytes;

	build(&p, model, PLAN(""), stack, 8);
	bytes = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	drop(&p);
	return bytes;
}

/* Beside what a layer of attention keeps: what the product makes but for a number a head, outputs of the scan and of its gate,
 * 2 bytes each; by operations a copy of the input for each mixer. */
static void a_layer_keeps_what_both_keep(void **state)
{
	double each = 2. * INNER + 2. * GROUPS * N + 2. * INNER;

	(void)state;
	near_frac(kept(BESIDE("1", ""), "megatron-core") -
			  kept(ATTENTION, "megatron-core"),
		  2. * TOKENS * each, 1e-12);
	near_frac(kept(BESIDE("1", ""), "transformers-5-compile") -
			  kept(ATTENTION, "transformers-5-compile"),
		  2. * TOKENS * each, 1e-12);
	near_frac(kept(BESIDE("1", ""), "transformers-5-eager") -
			  kept(ATTENTION, "transformers-5-eager"),
		  2. * TOKENS * (each + H), 1e-12);
	/* a norm's output */
	near_frac(kept(BESIDE("1", ", mamba_rms_norm: true"), "megatron-core") -
			  kept(BESIDE("1", ""), "megatron-core"),
		  2. * TOKENS * INNER, 1e-12);
}

/* Run again whole: every product, the scan, and half the scores. */
static void both_run_again(void **state)
{
	double products = 2. * H * Q + 2. * H * KV + H * in + (double)INNER * H +
			  3. * H * F + 5 * channels + 3. * HEADS;
	struct parts p;

	(void)state;
	build(&p, BESIDE("1", ""), PLAN("recompute: full"), "megatron-core", 8);
	near_frac(p.graph->recomputed_flop_per_rank,
		  MICRO * (double)TOKENS *
			  (2 * products + 7. * INNER * N + 4. * Q * 512 / 2),
		  1e-12);
	assert_int_equal(sum_of(p.graph, "state_scan").n, 2 * MICRO);
	drop(&p);
}

/* Over a context group the heads of a state space are dealt, and so are its groups. */
static void groups_are_dealt_over_a_context_group(void **state)
{
	double features = in + INNER;
	struct parts p;
	struct ft_error err;
	struct ft_graph *g;

	(void)state;
	build(&p, BESIDE("1", ""), PLAN("parallel: {cp: 2}"), "megatron-core", 8);
	near_frac(sum_of(p.graph, "cp_all_to_all").bytes,
		  2 * MICRO * 2 * 2. * TOKENS / 2 * features, 1e-12);
	p.plan->cp = 8; /* of four groups */
	g = ft_graph_build(p.model, p.plan, p.stack, &err);
	assert_null(g);
	assert_non_null(strstr(err.text, "cp 8 does not divide the 4 groups of a state "
					 "space of a rank"));
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layer_has_the_parameters_of_both),
		cmocka_unit_test(both_mixers_run),
		cmocka_unit_test(its_class_multiplies),
		cmocka_unit_test(a_layer_keeps_what_both_keep),
		cmocka_unit_test(both_run_again),
		cmocka_unit_test(groups_are_dealt_over_a_context_group),
	};

	return cmocka_run_group_tests_name("traces/states-beside", tests, NULL, NULL);
}
