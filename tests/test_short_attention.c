/* tests/test_short_attention.c - what a causal mask costs beside a pass without one, below the shortest tables */
#include "tests/check.h"

#include <math.h>

#include "sim/kernel.h"

static struct ft_number exact(double v)
{
	return (struct ft_number){ v, v, v, NULL };
}

static struct ft_gpu some_gpu(double edge)
{
	struct ft_gpu g = { .name = "some", .compute_units = 100 };

	g.memory_bytes_per_s = exact(INFINITY);
	g.peak_flop_per_s[FT_BF16] = exact(1e15);
	for (int pass = 0; pass < 2; pass++) {
		g.attention_model.efficiency[pass] = exact(0.6);
		g.attention_model.ramp[pass] = exact(300);
		g.attention_model.edge[pass] = exact(edge);
	}
	g.attention_model.wave_frac = exact(0.1);
	g.attention_model.narrow_frac = exact(0.7);
	g.attention_model.wide_frac = exact(0.9);
	return g;
}

/* 128 tokens are one tile: as long as without a mask, where edges cost no more than 512 tokens; and with edges of 1,024
 * tokens 1.5 times as long, as at 512. From there on it is half the work, times 1 + edge / s. */
static void a_mask_costs_no_more_than_all_tiles(void **state)
{
	static const struct {
		double edge, tokens, times;
	} rows[] = { { 256, 128, 1 },	   { 512, 128, 1 },    { 1024, 128, 1.5 },
		     { 1024, 96, 1.5 },	   { 1024, 512, 1.5 }, { 1024, 1024, 1 },
		     { 1024, 4096, 0.625 } };
	struct attention_shape a = { .batch = 4,
				     .heads = 32,
				     .kv_heads = 32,
				     .head_dim = 128,
				     .dtype = FT_BF16,
				     .pass = FT_PASS_BOTH };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ft_gpu g = some_gpu(rows[i].edge);
		double masked, whole;

		a.queries = a.keys = rows[i].tokens;
		a.causal = true;
		masked = attention_arithmetic_s(&g, &a);
		a.causal = false;
		whole = attention_arithmetic_s(&g, &a);
		near_frac(masked, rows[i].times * whole, 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mask_costs_no_more_than_all_tiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
