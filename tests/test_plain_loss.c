/*
 * tests/test_plain_loss.c - a loss on whole 16-bit logits (plain_loss), and products that split their inputs one by
 * one (inputs_apart)
 *
 * Collectives are counted from KempnerForge's plan of tensor parallelism of April 2026, whose own profile of an eager step
 * with recomputed layers has 12 gathers and 8 reductions a layer (github.com/KempnerInstitute/KempnerForge@a7f83461,
 * benchmarks/profiling/13b_24gpu_profiling.md).
 */
#include "tests/works.h"

enum { SEQUENCE = 1024, LAYERS = 2, BATCH = 2, RANKS = 4 };
#define TOKENS ((double)(BATCH * SEQUENCE))
#define LOGITS (TOKENS * 128256)
#define MODEL "{name: llama3-8b, num_hidden_layers: 2}"
#define PLAN(tp) \
	"{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 2, sharding: " \
	"fsdp, recompute: full, master_weights: false, sequence_parallel: true, " \
	"parallel: {tp: " #tp "}}"
#define ALONE \
	"{sequence_length: 1024, micro_batch_size: 2, global_batch_size: 2, sharding: " \
	"fsdp, recompute: full, master_weights: false}"

static void a_rank_computes_the_loss_of_all_logits(void **state)
{
	static const char *const stacks[] = { "kempnerforge-2026",
					      "kempnerforge-2026-eager" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MODEL, PLAN(4), stacks[i], RANKS);
		near_frac(sum_of(p.graph, "tp_logits").bytes, 2 * LOGITS, 1e-12);
		near_frac(sum_of(p.graph, "loss").bytes, 4 * LOGITS, 1e-12);
		near_frac(sum_of(p.graph, "loss_back").bytes, 8 * LOGITS, 1e-12);
		assert_true(sum_of(p.graph, "tp_loss").n == 0);
		p.stack->layout.plain_loss = false;
		rebuild(&p);
		assert_true(sum_of(p.graph, "tp_logits").n == 0);
		assert_true(sum_of(p.graph, "tp_loss").n == 3);
		drop(&p);
		build(&p, MODEL, ALONE, stacks[i], 1);
		near_frac(sum_of(p.graph, "loss").bytes, 4 * LOGITS, 1e-12);
		near_frac(sum_of(p.graph, "loss_back").bytes, 8 * LOGITS, 1e-12);
		assert_true(sum_of(p.graph, "tp_logits").n == 0);
		drop(&p);
	}
}

/* 4 bytes are read of a logit in fp32, and in backward 8 read and written; 8 are held, where softmax and gradient would make it 12. */
static void a_gradient_takes_the_place_of_the_logits(void **state)
{
	struct parts p;
	double peak;

	(void)state;
	build(&p, MODEL, ALONE, "fms-acceleration-2024", 1);
	near_frac(sum_of(p.graph, "loss").bytes, 4 * LOGITS, 1e-12);
	near_frac(sum_of(p.graph, "loss_back").bytes, 8 * LOGITS, 1e-12);
	peak = segment_of(p.graph, "head_back")->peak_bytes[FT_MEMORY_OTHER];
	p.stack->layout.loss_in_place = false;
	rebuild(&p);
	near_frac(segment_of(p.graph, "head_back")->peak_bytes[FT_MEMORY_OTHER] - peak,
		  4 * LOGITS, 1e-9);
	drop(&p);
}

/* Eager: q, k, v, gate and up are gathered for forward and again, two outputs' gradients once; reduced are two outputs, one of
 * them again, as a checkpoint stops at the last tensor that backward needs, and five gradients. Beside the layers the head's
 * input is gathered and its gradient reduced. A compiler merges the gathers, and its layer runs again as a whole. */
static void inputs_are_gathered_and_reduced_one_by_one(void **state)
{
	static const struct {
		const char *stack;
		bool apart;
		double gathers, reduces; /* a layer */
	} rows[] = {
		{ "kempnerforge-2026-eager", true, 12, 8 },
		{ "kempnerforge-2026-eager", false, 6, 5 },
		{ "kempnerforge-2026", true, 6, 9 },
		{ "kempnerforge-2026", false, 6, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parts p;
		double gathers, reduces;

		build(&p, MODEL, PLAN(4), rows[i].stack, RANKS);
		p.stack->layout.inputs_apart = rows[i].apart;
		rebuild(&p);
		gathers = sum_of(p.graph, "tp_all_gather").n;
		reduces = sum_of(p.graph, "tp_reduce_scatter").n;
		if (gathers != LAYERS * rows[i].gathers + 1 ||
		    reduces != LAYERS * rows[i].reduces)
			fail_msg("%s %d: %g gathers, %g reductions", rows[i].stack,
				 rows[i].apart, gathers, reduces);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_computes_the_loss_of_all_logits),
		cmocka_unit_test(a_gradient_takes_the_place_of_the_logits),
		cmocka_unit_test(inputs_are_gathered_and_reduced_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
