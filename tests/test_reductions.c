/* tests/test_reductions.c - gradients that nothing hides; what a layer keeps without sequence parallelism */
#include <math.h>

#include "tests/simulated.h"
#include "tests/works.h"

#define TEXT \
	"model: {name: llama3-8b, num_hidden_layers: 8}\n" \
	"cluster: {gpu: h100-sxm, gpus: 64, node: {extends: hgx-h100, " \
	"nics.speed: %s Gb/s}}\nstack: %s\n" \
	"training: {sequence_length: 4096, global_batch_size: %d, " \
	"micro_batch_size: 1, recompute: none, sharding: %s, overlap: {dp: %s}}\n"

struct run {
	const char *stack, *sharding, *overlap;
	int batch;
};

/* What a slower network adds to the step, over what it adds to the reductions (or other items). */
static double shown(const struct run *r, const char *item)
{
	double slow[2], fast[2];
	char text[900];

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), TEXT, "25", r->stack, r->batch,
			 r->sharding, r->overlap);
		slow[i] = simulated_s(text, i ? item : NULL);
		snprintf(text, sizeof(text), TEXT, "400", r->stack, r->batch,
			 r->sharding, r->overlap);
		fast[i] = simulated_s(text, i ? item : NULL);
	}
	return (slow[0] - fast[0]) / (slow[1] - fast[1]);
}

static void reductions_without_overlap_are_exposed(void **state)
{
	static const char *const stacks[] = { "generic", "megatron-core",
					      "torch-2.11-compile" };

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		const struct run hidden = { stacks[i], "ddp", "true", 1024 };
		const struct run bare = { stacks[i], "ddp", "false", 1024 };

		assert_true(shown(&hidden, "gradient_reduce") < 0.98);
		near_frac(shown(&bare, "gradient_reduce"), 1, 0.01);
	}
}

/* zero1 reduces once a step, zero2 for each of its micro-batches. */
static void parts_of_gradients_are_reduced_each_micro_batch(void **state)
{
	double once = 0;

	(void)state;
	for (int micro_batches = 1; micro_batches <= 4; micro_batches *= 2) {
		char text[900];

		snprintf(text, sizeof(text), TEXT, "400", "megatron-core",
			 64 * micro_batches, "zero2", "true");
		if (micro_batches == 1)
			once = simulated_s(text, "gradient_reduce");
		/* beside other kernels they take longer */
		near_frac(simulated_s(text, "gradient_reduce") / once, micro_batches,
			  0.2);
		snprintf(text, sizeof(text), TEXT, "400", "megatron-core",
			 64 * micro_batches, "zero1", "true");
		near_frac(simulated_s(text, "gradient_reduce") / once, 1, 0.2);
	}
}

/* Bytes of a layer of GPT: s b h (10 + 24 / t + 5 a s / (h t)), and with sequence parallelism
 * s b h (34 / t + 5 a s / (h t)). Source: arXiv 2205.05198, equations 2 and 4. */
static void inputs_of_products_are_whole_without_sequence_parallelism(void **state)
{
	enum { S = 2048, B = 2, H = 4096, A = 32 };
	const double sbh = (double)S * B * H;

	(void)state;
	for (int t = 1; t <= 8; t *= 2)
		for (int parts = 0; parts < 2; parts++) {
			double scores = 5. * A * S / (H * (double)t);
			char plan[300];
			struct parts p;

			snprintf(plan, sizeof(plan),
				 "{sequence_length: %d, micro_batch_size: %d, "
				 "global_batch_size: 16, sharding: ddp, "
				 "sequence_parallel: %s, parallel: {tp: %d}}",
				 S, B, parts ? "true" : "false", t);
			build(&p,
			      "{model_type: gpt2, hidden_size: 4096, "
			      "num_hidden_layers: 2, num_attention_heads: 32, "
			      "vocab_size: 51200}",
			      plan, "megatron-lm-2022", 8);
			near_frac(segment_of(p.graph, "forward")
					  ->net_bytes[FT_MEMORY_ACTIVATIONS],
				  sbh * ((parts ? 34. / t : 10 + 24. / t) + scores),
				  1e-3);
			drop(&p);
		}
}

/* InternEvo's zero1: each rank has all sums, and its tensors go to all others when it is its turn. */
static void parts_of_weights_are_sent_in_turn(void **state)
{
	static const char *const model = "{name: llama3-8b, num_hidden_layers: 7}";
	static const char *const plan = "{sequence_length: 1024, global_batch_size: "
					"1024, sharding: zero1, zero_group: %d}";
	enum { TENSORS = 7 * 7 + 3 }; /* q with k and v, out, gate, up, down, norms */

	(void)state;
	for (int ranks = 8; ranks <= 512; ranks *= 8)
		for (int group = 8; group <= ranks; group *= 8) {
			struct sum gathered, sent;
			char training[200];
			struct parts in_turn, whole;

			snprintf(training, sizeof(training), plan, group);
			build(&in_turn, model, training, "internevo-2024", ranks);
			build(&whole, model, training, "generic", ranks);
			gathered = sum_in(whole.graph, NULL, "zero_gather");
			sent = sum_in(in_turn.graph, NULL, "zero_broadcast");
			assert_true(gathered.n == 1 && sent.n == fmin(group, TENSORS));
			near_frac(sent.bytes, gathered.bytes, 1e-9);
			assert_true(sum_in(in_turn.graph, NULL, "zero_gather").n == 0);
			assert_true(sum_in(in_turn.graph, NULL, "gradient_copies").n ==
				    0);
			near_frac(sum_in(in_turn.graph, NULL, "gradient_reduce").bytes,
				  gathered.bytes, 1e-9); /* both of 16 bit */
			assert_int_equal(work_of(in_turn.graph, "gradient_reduce")
						 ->communication.group,
					 FT_GROUP_DP);
			near_frac(sum_in(in_turn.graph, NULL, "bucket_copy").bytes,
				  4 * gathered.bytes, 1e-9);
			drop(&in_turn);
			drop(&whole);
		}
}

/* A bucket that is reduced over the context's ranks alone is filled and emptied, too. */
static void buckets_of_a_context_are_copied(void **state)
{
	struct sum copied, reduced;
	struct parts p;

	(void)state;
	build(&p, "{name: llama3-8b, num_hidden_layers: 4}",
	      "{sequence_length: 8192, global_batch_size: 4, sharding: zero1, "
	      "parallel: {cp: 8}}",
	      "internevo-2024", 8);
	copied = sum_in(p.graph, NULL, "bucket_copy");
	reduced = sum_in(p.graph, NULL, "gradient_reduce");
	assert_true(p.plan->dp == 1 && reduced.n > 0 && copied.n == reduced.n);
	near_frac(copied.bytes, 4 * reduced.bytes, 1e-9);
	drop(&p);
}

/* Only zero1 broadcasts parts: what zero2 gathers ahead of a forward it gathers there still. */
static void parts_of_zero2_are_gathered_ahead(void **state)
{
	(void)state;
	for (int zero = 1; zero <= 2; zero++) {
		char plan[200];
		struct parts p;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 1024, global_batch_size: 8, sharding: "
			 "zero%d, overlap: {param_gather: true}}",
			 zero);
		build(&p, "{name: llama3-8b, num_hidden_layers: 4}", plan,
		      "internevo-2024", 8);
		p.stack->layout.gather_under_forward = true;
		rebuild(&p);
		assert_true((sum_in(p.graph, "optimizer", "zero_broadcast").n > 0) ==
			    (zero == 1));
		assert_true(sum_in(p.graph, "optimizer", "zero_gather").n == 0);
		assert_true((sum_in(p.graph, NULL, "zero_gather").n > 0) ==
			    (zero == 2));
		drop(&p);
	}
}

/* Megatron Core: dense weights and experts have an optimizer each, and each gathers both, unless weights are
 * gathered under the forward pass. Without experts on other ranks there is one optimizer. */
static void two_optimizers_gather_all_twice(void **state)
{
	static const char *const name[] = { "zero_gather", "zero_gather_experts" };

	(void)state;
	for (int c = 0; c < 16; c++) {
		bool twice = c & 1, ahead = c & 2, spread = c & 4, mixed = c & 8;
		char plan[200];
		struct parts p;
		int times = ahead ? 0 : twice && spread && mixed ? 2 : 1;

		if (spread && !mixed)
			continue; /* refused: no experts */
		snprintf(plan, sizeof(plan),
			 "{sequence_length: 1024, global_batch_size: 16, "
			 "parallel: {ep: %d}, overlap: {param_gather: %s}}",
			 spread ? 4 : 1, ahead ? "true" : "false");
		build(&p,
		      mixed ? "{name: mixtral-8x7b, num_hidden_layers: 4}" :
			      "{name: llama3-8b, num_hidden_layers: 4}",
		      plan, "megatron-bridge-26.02", 16);
		p.stack->layout.gathers_twice = false;
		rebuild(&p);
		for (int i = 0; i < 2; i++) {
			double once = sum_in(p.graph, "optimizer", name[i]).bytes;

			p.stack->layout.gathers_twice = twice;
			rebuild(&p);
			near_frac(sum_in(p.graph, "optimizer", name[i]).bytes,
				  times > 1 ? 2 * once : once, 1e-12);
			assert_true((once > 0) == (times > 0 && (i == 0 || mixed)));
			p.stack->layout.gathers_twice = false;
			rebuild(&p);
		}
		drop(&p);
	}
}

/* nanotron's loss: bytes a logit as a copy moves them, those of a row's number spread over it 1.25 times. */
static void a_loss_in_operations_moves_each_pass(void **state)
{
	static const struct {
		const char *name;
		double bytes;
	} passes[] = {
		{ "loss_cast", 2 + 4 },
		{ "loss", 4 + 1.25 * 8 + 8 + 4 + 1.25 * 8 },
		{ "loss_back", 1.25 * 8 },
		{ "loss_cast_back", 4 + 2 },
	};

	(void)state;
	for (int t = 1; t <= 8; t *= 2) {
		char plan[200];
		struct parts p;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 2048, micro_batch_size: 2, "
			 "global_batch_size: 16, parallel: {tp: %d}}",
			 t);
		build(&p,
		      "{model_type: llama, hidden_size: 2048, intermediate_size: 4096, "
		      "num_hidden_layers: 2, num_attention_heads: 32, vocab_size: 50176}",
		      plan, "nanotron-2025", 8);
		for (int i = 0; i < 4; i++)
			near_frac(work_of(p.graph, passes[i].name)->memory.bytes,
				  passes[i].bytes * 2 * 2048 * 50176 / t, 1e-12);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reductions_without_overlap_are_exposed),
		cmocka_unit_test(parts_of_gradients_are_reduced_each_micro_batch),
		cmocka_unit_test(
			inputs_of_products_are_whole_without_sequence_parallelism),
		cmocka_unit_test(parts_of_weights_are_sent_in_turn),
		cmocka_unit_test(buckets_of_a_context_are_copied),
		cmocka_unit_test(parts_of_zero2_are_gathered_ahead),
		cmocka_unit_test(two_optimizers_gather_all_twice),
		cmocka_unit_test(a_loss_in_operations_moves_each_pass),
	};

	return cmocka_run_group_tests_name("reductions", tests, NULL, NULL);
}
