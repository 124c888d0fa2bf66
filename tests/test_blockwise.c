/* tests/test_blockwise.c - attention in blocks of scores that go to memory (attention_block) */
#include <string.h>
#include <unistd.h>

#include "tests/works.h"

#define WIDE 64.0
#define MODEL(causal) \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 1, " \
	"num_attention_heads: 16, vocab_size: 1024, intermediate_size: 3072, " \
	"is_causal: " causal "}"
#define PLAN(length) \
	"{sequence_length: " length ", micro_batch_size: 2, global_batch_size: 2, " \
	"sharding: fsdp, recompute: none, precision: bf16}"

/* 2 d FLOPs a score and product, seven products both ways; 6 and 8 bytes a score, and 6 for each number
 * that a block of queries or keys adds up. */
static void blocks_do_what_they_hold(void **state)
{
	static const struct {
		const char *model, *plan;
		double blocks, side; /* of a sequence; tokens */
	} cases[] = {
		{ MODEL("true"), PLAN("4096"), 10, 1024 },
		{ MODEL("false"), PLAN("4096"), 16, 1024 },
		{ MODEL("true"), PLAN("8192"), 36, 1024 },
		{ MODEL("true"), PLAN("512"), 1,
		  512 }, /* a block is a sequence at most */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double side = cases[i].side, groups = 2 * 16 * cases[i].blocks;
		double scores = groups * side * side;
		struct parts p;

		build(&p, cases[i].model, cases[i].plan, "levanter-2026", 1);
		near_frac(sum_in(p.graph, "forward", "scores").flop, 2 * WIDE * scores,
			  1e-12);
		near_frac(sum_in(p.graph, "forward", "context").flop, 2 * WIDE * scores,
			  1e-12);
		near_frac(sum_in(p.graph, "backward", "scores").flop, 4 * WIDE * scores,
			  1e-12);
		near_frac(sum_in(p.graph, "backward", "context").flop,
			  6 * WIDE * scores, 1e-12);
		near_frac(sum_in(p.graph, "forward", "softmax").bytes,
			  6 * scores + 6 * groups * side * WIDE, 1e-12);
		near_frac(sum_in(p.graph, "backward", "softmax").bytes,
			  8 * scores + 18 * groups * side * WIDE, 1e-12);
		drop(&p);
	}
}

/* The whole square keeps 2 bytes a score of a micro-batch, blocks keep none. */
static void blocks_keep_no_scores(void **state)
{
	double scores = 2 * 16 * 4096.0 * 4096.0, kept;
	struct parts p;

	(void)state;
	build(&p, MODEL("true"), PLAN("4096"), "levanter-2026", 1);
	kept = segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS];
	p.stack->layout.attention_block = 0;
	rebuild(&p);
	near_frac(segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS],
		  kept + 2 * scores, 1e-9);
	drop(&p);
}

static void blocks_are_a_compilers_unfused_attention(void **state)
{
	static const char *const layouts[] = { "attention: fa2",
					       "attention: unfused, fusion: eager" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_error err;
		char path[64];
		FILE *f = fopen(own_path(path, "blocks.yaml"), "w");

		assert_non_null(f);
		fprintf(f, "{extends: levanter-2026, title: x, layout: {%s}}",
			layouts[i]);
		fclose(f);
		assert_null(ft_stack_load(path, NULL, &err));
		unlink(path);
		assert_non_null(strstr(err.text, "goes with attention: unfused and "
						 "fusion: compiled"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_do_what_they_hold),
		cmocka_unit_test(blocks_keep_no_scores),
		cmocka_unit_test(blocks_are_a_compilers_unfused_attention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
