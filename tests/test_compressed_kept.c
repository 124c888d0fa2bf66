/* tests/test_compressed_kept.c - what attention to compressed tokens keeps for its backward */
#include "tests/compressed.h"

/* In 8 bit each product keeps a copy of its own of what it reads; entries, and queries and keys that are made again, read it in 16. A
 * byte and an eighth of 8 bit takes a number and its scales. */
static void narrow_products_keep_inputs_of_their_own(void **state)
{
	static const char *const ratio[] = { "0", "4", "128" };
	static const char *const plan[] = {
		PLAN(", precision: mxfp8"),
		PLAN(", precision: mxfp8, recompute: selective, recompute_modules: "
		     "mla_up_proj")
	};
	double kept[2][3], parts[] = { 0, 4. * (2 * DIM + 2 * INDEX_DIM), 4. * DIM };
	double chosen = 2. * INDEX_HEADS * (INDEX_DIM + 1) + 4. * (WINDOW + TOPK);
	double each;

	(void)state;
	for (int i = 0; i < 6; i++) {
		char text[600];
		struct parts p;

		snprintf(text, sizeof(text), MODEL("1", ", compress_ratios: [%s]"),
			 ratio[i % 3]);
		build(&p, text, plan[i / 3], "megatron-bridge-26.06", 8);
		kept[i / 3][i % 3] = kept_by_layer(p.graph) / TOKENS;
		drop(&p);
	}
	/* beside entries of ratio 128 the hidden state in 16 bit; again, it is there already */
	near_frac(kept[0][2] - kept[0][0], 2. * H + 2. * DIM / 128 + parts[2], 1e-9);
	near_frac(kept[1][2] - kept[1][0], 2. * DIM / 128 + parts[2], 1e-9);
	each = (kept[0][1] - kept[0][0] - 2. * H - 2. * DIM / 4 - parts[1] - chosen) /
	       QRANK;
	assert_true(each >= 1 && each < 1.2); /* the indexer's */
	near_frac(kept[0][0] - kept[1][0],
		  4. * (HEADS + 1) * DIM + each * (H + QRANK) - 2. * (H + QRANK), 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_products_keep_inputs_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
