/*
 * tests/test_gpt_oss.c - what gpt-oss has beyond other routed models: biases of experts,
 * a gate whose inputs are clamped, rotary positions that scale, windows in every other layer
 */
#include "tests/routed.h"

#define OSS(type) \
	"{model_type: " type ", hidden_size: 512, num_hidden_layers: 2, " \
	"num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 512, " \
	"intermediate_size: 256, num_local_experts: 16, num_experts_per_tok: 4, " \
	"sliding_window: 128, layer_types: [sliding_attention, full_attention]}"
#define EVEN "moe_force_balance: true, parallel: {ep: 4}"

enum { H = 512, WIDTH = 256, COPIES = 512 * 4, PASSES = 2 * 4 };

/*
 * Each tensor that a weighted bias touches, a letter in the width of the router's weights:
 * forward t + b p: b p is strided (3.1 bytes, 5.7 if wide), t and b p read, their sum written, all read
 * and written joined, and cast if wide. Backward the gradient g: cast if wide; g p and g b are strided, read
 * and written; they are summed at half the rate; the gradients of all experts joined.
 */
static void biases_of_experts_move_what_their_operations_touch(void **state)
{
	static const struct {
		const char *plan;
		double forward, backward; /* bytes of a feature of a copy */
	} cases[] = {
		{ PLAN(EVEN), 3.1 + (2 + 2) + 2 + 2 + 2,
		  (2 + 2) + 2 * 2 + (2 + 2) + 2 * 2 + 2 + 2 },
		{ PLAN(EVEN ", moe_dispatcher: hybridep"),
		  5.7 + (2 + 4) + 4 + 4 + 4 + (4 + 2),
		  (2 + 4) + (4 + 4) + 2 * 4 + (4 + 4) + 2 * 4 + (4 + 2) + 2 + 2 },
		/* the products add them, and sum the first's; the second's gradients are read */
		{ PLAN(EVEN ", precision: mxfp8, fused_experts: true"), 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double each = (double)COPIES * H * PASSES;
		struct parts p;

		build(&p, OSS("gpt_oss"), cases[i].plan, "megatron-core", 8);
		near_frac(sum_of(p.graph, "expert_bias").bytes, cases[i].forward * each,
			  1e-12);
		near_frac(sum_of(p.graph, "expert_bias_back").bytes,
			  cases[i].backward * each, 1e-12);
		drop(&p);
		build(&p, OSS("mixtral"), cases[i].plan, "megatron-core", 8);
		assert_true(!sum_of(p.graph, "expert_bias").n &&
			    !sum_of(p.graph, "expert_bias_back").n);
		drop(&p);
	}
}

/* Where each expert's bias has calls of its own the host makes them. */
static void the_host_calls_each_expert_with_a_bias(void **state)
{
	struct parts with, without;

	(void)state;
	build(&with, OSS("gpt_oss"), PLAN(EVEN), "megatron-core", 8);
	build(&without, OSS("mixtral"), PLAN(EVEN), "megatron-core", 8);
	assert_true(segment_of(with.graph, "forward")->host[FT_HOST_EXPERT] == 16 / 4);
	assert_true(segment_of(without.graph, "forward")->host[FT_HOST_EXPERT] == 0);
	drop(&without);
	drop(&with);
}

/* Plain operations move 22.9 bytes a feature, 24.8 backward, where a kernel reads and writes it: 4. What
 * plain stacks do anyway they do here. */
static void scaled_positions_have_no_fused_kernel(void **state)
{
	static const struct {
		const char *stack;
		double times[2];
	} cases[] = { { "megatron-core", { 22.9 / 4, 24.8 / 4 } },
		      { "torch-2.11-eager", { 1, 1 } },
		      { "torch-2.11-compile", { 1, 1 } } };
	static const char *const names[] = { "rope", "rope_back" };

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct parts scaled, plain;

		build(&scaled, OSS("gpt_oss"), PLAN(EVEN), cases[i / 2].stack, 8);
		build(&plain, OSS("mixtral"), PLAN(EVEN), cases[i / 2].stack, 8);
		near_frac(sum_of(scaled.graph, names[i % 2]).bytes,
			  cases[i / 2].times[i % 2] *
				  sum_of(plain.graph, names[i % 2]).bytes,
			  1e-12);
		drop(&plain);
		drop(&scaled);
	}
}

/* Attention's windows by pass and format: of the two layers one has one. */
static void windows_end_where_the_backward_in_8_bit_begins(void **state)
{
	static const char *const plans[] = {
		PLAN(EVEN ", precision: mxfp8"),
		PLAN(EVEN ", precision: mxfp8, attention_precision: fp8"),
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		int seen[2] = { 0, 0 };
		struct parts p;

		build(&p, OSS("gpt_oss"), plans[i], "megatron-core", 8);
		for (size_t k = 0; k < p.graph->n_works; k++) {
			const struct ft_work *w = &p.graph->work[k];

			if (w->kind == FT_ATTENTION)
				seen[w->attention.pass == FT_PASS_BACKWARD] +=
					w->attention.window == 128;
		}
		assert_int_equal(seen[0], 1);
		assert_int_equal(seen[1], i == 0);
		drop(&p);
	}
}

/*
 * What a gate with clamped inputs touches beside one without, by what each of its operations reads and
 * writes, 2 bytes a number. By operations: two clamps (strided), a factor, a sigmoid, a product, 1 added, a product, for two
 * of 4 and 6; backward four products, the sigmoid, a factor, a sum; three comparisons of 2 and 1, one of both, two choices,
 * and two gradients of every other number, zeroed, filled and added. Under Megatron two clamps and a join; backward
 * comparisons, choices, a join. What is strided is measured (traces/recipes.c).
 */
static void clamped_gates_move_what_their_operations_touch(void **state)
{
	static const struct {
		const char *stack, *plan;
		double forward, backward; /* bytes of a feature of the width */
	} cases[] = {
		{ "megatron-core", PLAN(EVEN), 8.9 + (4 + 4), 20.7 + 3 + (4 + 4) },
		{ "torch-2.11-eager", PLAN(EVEN), 8.9 + (4 + 4 + 6 + 4 + 6) - (4 + 6),
		  31.8 + (4 * 6 + 6 + 4 + 6) + 3 + (4 + 4 + 12) - 20 },
		{ "transformers-5-eager",
		  PLAN("moe_force_balance: true, master_weights: false, gradient_dtype: bf16"),
		  8.9 + (4 + 4 + 6 + 4 + 6) - (4 + 6),
		  31.8 + (4 * 6 + 6 + 4 + 6) + 3 + (4 + 4 + 12) - 20 },
		/* in fp32 */
		{ "transformers-5-eager", PLAN("moe_force_balance: true"),
		  2 * (8.9 + (4 + 4 + 6 + 4 + 6) - (4 + 6)),
		  2 * (31.8 + (4 * 6 + 6 + 4 + 6) + 3 + (4 + 4 + 12) - 20) },
		{ "torch-2.11-compile", PLAN(EVEN), 0, 19 - 12 },
		/* one kernel does it all */
		{ "megatron-core", PLAN(EVEN ", precision: mxfp8, fused_experts: true"),
		  0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double each = (double)COPIES * WIDTH * PASSES;
		struct parts p;

		build(&p, OSS("gpt_oss"), cases[i].plan, cases[i].stack, 8);
		near_frac(sum_of(p.graph, "expert_clamp").bytes,
			  cases[i].forward * each, 1e-12);
		near_frac(sum_of(p.graph, "expert_clamp_back").bytes,
			  cases[i].backward * each, 1e-12);
		drop(&p);
		build(&p, OSS("mixtral"), cases[i].plan, cases[i].stack, 8);
		assert_true(!sum_of(p.graph, "expert_clamp").n &&
			    !sum_of(p.graph, "expert_clamp_back").n);
		drop(&p);
	}
}

/* Times that the host waits for what comes right before the experts' activation. */
static int waits_before_activation(const struct ft_graph *g, const char *segment)
{
	const struct ft_segment *s = segment_of(g, segment);
	int n = 0;

	for (size_t i = 1; i < s->n_ops; i++)
		n += s->op[i - 1].host_waits &&
		     !strcmp(g->work[s->op[i].work].name, "expert_activation");
	return n;
}

/* Megatron's clamped gate copies a number from the host, once a call: again where it is computed again. */
static void the_host_waits_for_a_number_of_the_clamped_gate(void **state)
{
	static const struct {
		const char *type, *plan, *stack;
		int forward, backward;
	} cases[] = {
		{ OSS("gpt_oss"), PLAN(EVEN), "megatron-core", 1, 0 },
		{ OSS("gpt_oss"),
		  PLAN(EVEN ", recompute: selective, recompute_modules: [moe_act]"),
		  "megatron-core", 1, 1 },
		{ OSS("gpt_oss"), PLAN(EVEN ", cuda_graphs: partial"), "megatron-core",
		  1, 0 },
		{ OSS("gpt_oss"), PLAN(EVEN ", cuda_graphs: full"), "megatron-core", 0,
		  0 },
		{ OSS("gpt_oss"), PLAN(EVEN), "torch-2.11-eager", 0, 0 },
		{ OSS("mixtral"), PLAN(EVEN), "megatron-core", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;

		build(&p, cases[i].type, cases[i].plan, cases[i].stack, 8);
		assert_int_equal(waits_before_activation(p.graph, "forward"),
				 cases[i].forward);
		assert_int_equal(waits_before_activation(p.graph, "backward"),
				 cases[i].backward);
		drop(&p);
	}
}

/* Kept beside what a plain gate keeps, a feature of the width: both clamped inputs; by operations the sigmoid's output, both
 * factors and the clamped input but for one that a plain gate keeps, too; nothing where it is computed again. */
static void a_clamped_gate_keeps_what_its_gradients_need(void **state)
{
	static const struct {
		const char *stack, *plan;
		double kept;
	} cases[] = {
		{ "megatron-core", PLAN(EVEN), 2 + 2 },
		{ "megatron-core", PLAN(EVEN ", precision: mxfp8, fused_experts: true"),
		  0 },
		{ "torch-2.11-eager", PLAN(EVEN), 2 + 2 + 2 },
		{ "torch-2.11-compile", PLAN(EVEN), 0 },
		{ "megatron-core",
		  PLAN(EVEN ", recompute: selective, recompute_modules: [moe_act]"),
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double kept[2];

		for (int clamped = 0; clamped < 2; clamped++) {
			struct parts p;

			build(&p, OSS("gpt_oss"), cases[i].plan, cases[i].stack, 8);
			p.model->clamped = clamped;
			rebuild(&p);
			kept[clamped] = segment_of(p.graph, "forward")
						->net_bytes[FT_MEMORY_ACTIVATIONS];
			drop(&p);
		}
		near_frac(kept[1], kept[0] + cases[i].kept * COPIES * WIDTH, 1e-12);
	}
}

/* By operations a bias is gathered for each row (written) and added (read twice, written once). */
static void gathered_biases_are_written_before_they_are_added(void **state)
{
	static const struct {
		const char *stack;
		double forward;
	} cases[] = { { "torch-2.11-eager", 2 + (2 + 2 + 2) },
		      { "torch-2.11-compile", 2 + 2 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		double outputs = (double)COPIES * (H + 2. * WIDTH) * PASSES;
		struct parts p;

		build(&p, OSS("gpt_oss"), PLAN(EVEN), cases[i].stack, 8);
		near_frac(sum_of(p.graph, "expert_bias").bytes,
			  cases[i].forward * outputs, 1e-12);
		near_frac(sum_of(p.graph, "expert_bias_back").bytes, 2 * outputs,
			  1e-12);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(biases_of_experts_move_what_their_operations_touch),
		cmocka_unit_test(the_host_calls_each_expert_with_a_bias),
		cmocka_unit_test(clamped_gates_move_what_their_operations_touch),
		cmocka_unit_test(the_host_waits_for_a_number_of_the_clamped_gate),
		cmocka_unit_test(a_clamped_gate_keeps_what_its_gradients_need),
		cmocka_unit_test(gathered_biases_are_written_before_they_are_added),
		cmocka_unit_test(scaled_positions_have_no_fused_kernel),
		cmocka_unit_test(windows_end_where_the_backward_in_8_bit_begins),
	};

	return cmocka_run_group_tests_name("traces/gpt-oss", tests, NULL, NULL);
}
