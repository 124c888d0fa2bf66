/*
 * tests/test_adapter_units.c - fine-tuning under Trainer of 2024: AdamW by lists (update_lists), and adapters whose two weights are units of fsdp (adapter_units), as PEFT's policy for
 * FullyShardedDataParallel wraps them
 */
#include "tests/works.h"

enum { LAYERS = 2, RANK = 16 };
#define MODEL "{name: llama3-8b, num_hidden_layers: 2}"
#define PLAN(recompute, fp32) \
	"{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 4, sharding: " \
	"fsdp, recompute: " recompute \
	", master_weights: false, gradient_dtype: bf16, " \
	"lora: {rank: 16, targets: [q_proj, v_proj], fp32_adapters: " fp32 "}}"
/* inputs and outputs of q and v */
#define WEIGHTS ((double)LAYERS * RANK * (4096 + 4096 + 4096 + 1024))

static void each_weight_is_gathered_and_reduced(void **state)
{
	static const struct {
		const char *plan;
		double passes, width;
	} rows[] = {
		{ PLAN("none", "false"), 2, 2 },
		{ PLAN("none", "true"), 2, 4 },
		{ PLAN("full", "true"), 3, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parts p;
		double hosts;

		build(&p, MODEL, rows[i].plan, "fms-hf-tuning-2024", 2);
		near_frac(sum_of(p.graph, "adapter_gather").bytes,
			  rows[i].passes * rows[i].width * WEIGHTS, 1e-12);
		assert_true(sum_of(p.graph, "adapter_gather").n ==
			    rows[i].passes * 4 * LAYERS);
		near_frac(sum_of(p.graph, "adapter_reduce").bytes,
			  rows[i].width * WEIGHTS, 1e-12);
		assert_true(sum_of(p.graph, "adapter_reduce").n == 4 * LAYERS);
		hosts = host_times(p.graph, FT_HOST_SHARD_FORWARD);
		p.stack->layout.adapter_units = false;
		rebuild(&p);
		assert_true(sum_of(p.graph, "adapter_gather").n == 0 &&
			    sum_of(p.graph, "adapter_reduce").n == 0);
		near_frac(hosts - host_times(p.graph, FT_HOST_SHARD_FORWARD),
			  (rows[i].passes - 1) * 4 * LAYERS, 1e-9);
		drop(&p);
	}
}

/* Under AdamW by lists one number more is held of each that is updated, here of one rank's shard, in the format of the moments. */
static void lists_hold_the_roots_of_moments(void **state)
{
	static const struct {
		const char *plan;
		double width;
	} rows[] = {
		{ "{sequence_length: 1024, micro_batch_size: 1, global_batch_size: 2, sharding: fsdp, recompute: full, master_weights: false}",
		  2 },
		{ "{sequence_length: 1024, micro_batch_size: 1, global_batch_size: 2, sharding: fsdp, recompute: full, master_weights: true}",
		  4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parts p;
		double peak;

		build(&p, MODEL, rows[i].plan, "fms-hf-tuning-2024", 2);
		peak = segment_of(p.graph, "optimizer")->peak_bytes[FT_MEMORY_OTHER];
		p.stack->layout.update_lists = false;
		rebuild(&p);
		/* two layers of 218,112,000 weights, the table and the head of 128,256 words, and the last norm */
		near_frac(peak - segment_of(p.graph, "optimizer")
					  ->peak_bytes[FT_MEMORY_OTHER],
			  rows[i].width * (2 * 218112000. + 2 * 128256. * 4096 + 4096) /
				  2,
			  1e-9);
		drop(&p);
	}
}

/* One rank has nothing to gather. */
static void alone_there_are_none(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("none", "false"), "fms-hf-tuning-2024", 1);
	assert_true(sum_of(p.graph, "adapter_gather").n == 0);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_weight_is_gathered_and_reduced),
		cmocka_unit_test(lists_hold_the_roots_of_moments),
		cmocka_unit_test(alone_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
