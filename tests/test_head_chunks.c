/* tests/test_head_chunks.c - a head and its loss that take a micro-batch part by part (head_chunks) */
#include "tests/works.h"

enum { PARTS = 8 };
#define TOKENS (8.0 * 4096)
#define WIDTH 4096.0
#define WORDS 128256.0
#define LOGITS (TOKENS * WORDS)
#define MODEL "{name: llama3-8b, num_hidden_layers: 2}"
#define PLAN \
	"{sequence_length: 4096, micro_batch_size: 8, global_batch_size: 64, sharding: " \
	"fsdp, recompute: none}"

static double peak(const struct parts *p)
{
	return segment_of(p->graph, "head_back")->peak_bytes[FT_MEMORY_OTHER];
}

/* Three products a part, as many FLOPs and bytes of the loss; seven sums of two gradients in 16 bit. */
static void parts_do_the_same_work(void **state)
{
	static const char *const stacks[] = { "torchtitan-2026",
					      "torchtitan-2026-eager" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sum head, loss, back;
		struct parts p;

		build(&p, MODEL, PLAN, stacks[i], PARTS);
		assert_int_equal(p.stack->layout.head_chunks, PARTS);
		head = sum_of(p.graph, "head");
		loss = sum_of(p.graph, "loss");
		back = sum_of(p.graph, "loss_back");
		near_frac(head.n, 3 * PARTS, 1e-12);
		near_frac(head.flop, 6 * LOGITS * WIDTH, 1e-12);
		near_frac(sum_of(p.graph, "head_add").bytes,
			  (PARTS - 1) * 6 * WORDS * WIDTH, 1e-12);
		p.stack->layout.head_chunks = 1;
		rebuild(&p);
		near_frac(sum_of(p.graph, "head").n, 3, 1e-12);
		near_frac(sum_of(p.graph, "head").flop, head.flop, 1e-12);
		near_frac(sum_of(p.graph, "loss").bytes, loss.bytes, 1e-12);
		near_frac(sum_of(p.graph, "loss_back").bytes, back.bytes, 1e-12);
		assert_true(sum_of(p.graph, "head_add").n == 0);
		drop(&p);
	}
}

/* Unfused, 12 bytes a logit of all are less than 12 of an eighth, with 6 a number of the head's input and two gradients of the head.
 * Beside them stands the root, which stays gathered. */
static void one_part_of_the_logits_is_held(void **state)
{
	double beside = 6 * TOKENS * WIDTH + 2 * WORDS * WIDTH;
	double root = 2 * (2 * WORDS + 1) * WIDTH;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN, "torchtitan-2026-eager", PARTS);
	near_frac(peak(&p), 12 * LOGITS / PARTS + beside + root, 1e-9);
	p.stack->layout.head_chunks = 1;
	rebuild(&p);
	near_frac(peak(&p), 12 * LOGITS + root, 1e-9);
	drop(&p);
}

/* 32,768 tokens in 40,000 parts: no part is empty. */
static void parts_are_of_a_token_at_least(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN, "torchtitan-2026", PARTS);
	p.stack->layout.head_chunks = 40000;
	rebuild(&p);
	near_frac(sum_of(p.graph, "head").n, 3 * TOKENS, 1e-12);
	near_frac(sum_of(p.graph, "head").flop, 6 * LOGITS * WIDTH, 1e-12);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_do_the_same_work),
		cmocka_unit_test(one_part_of_the_logits_is_held),
		cmocka_unit_test(parts_are_of_a_token_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
