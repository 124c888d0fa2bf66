/*
 * tests/test_whatif_dollars.c - dollars and watts of a recorded step on its own machine, some kernels faster: drawn
 * steps of one stream, whose shares are added up here from what was drawn
 */
#include <math.h>

#include "base/node.h"
#include "foretoken/study_whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 60, KERNELS = 12 };

static uint64_t seed = 733;

static const struct kind {
	const char *name;
	enum ft_rec_class of;
	bool transfer;
} kinds[] = {
	{ "some_gemm", FT_REC_GEMM, false },
	{ "flash_fwd", FT_REC_ATTENTION, false },
	{ "elementwise_kernel", FT_REC_MEMORY, false },
	{ "FusedOptimizer_x", FT_REC_OPTIMIZER, false },
	{ "mystery", FT_REC_OTHER, false },
	{ "ncclDevKernel_AllReduce", FT_REC_COLLECTIVE, false },
	{ "ncclDevKernel_SendRecv", FT_REC_COLLECTIVE, true },
};

/* Microseconds; each launched early, so that a faster one takes so much off the step. */
struct drawn {
	int kind[KERNELS], us[KERNELS];
	double times[FT_REC_CLASSES]; /* faster */
};

static struct ft_recording *record(struct drawn *d)
{
	struct made m = begin(0);
	int at = 1000;

	for (int i = 0; i < KERNELS; i++) {
		call(&m, "cudaLaunchKernel", i, i, 0.5);
		d->kind[i] = i ? rnd_below(&seed, 7) : 0;
		d->us[i] = 20 + 2 * rnd_below(&seed, 200);
	}
	for (int i = 0; i < KERNELS; i++) {
		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
		    "\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"stream\":7,"
		    "\"correlation\":%d}},\n",
		    kinds[d->kind[i]].name, at, d->us[i], i);
		at += d->us[i];
	}
	return end(&m);
}

/* Of the kernels that it holds for, with what is faster. */
static double sum_us(const struct drawn *d, bool (*holds)(const struct kind *k))
{
	double sum = 0;

	for (int i = 0; i < KERNELS; i++)
		if (holds(&kinds[d->kind[i]]))
			sum += d->us[i] / d->times[kinds[d->kind[i]].of];
	return sum;
}

static bool works(const struct kind *k)
{
	return k->of != FT_REC_COLLECTIVE;
}

static bool moves(const struct kind *k)
{
	return k->of == FT_REC_MEMORY || k->of == FT_REC_OPTIMIZER;
}

static bool waits(const struct kind *k)
{
	return k->of == FT_REC_COLLECTIVE;
}

static bool in_pipeline(const struct kind *k)
{
	return k->transfer;
}

/* Of a step that takes so long on a rank, of two. */
static struct ft_cost cost_of(const struct drawn *d, const struct ft_whatif *a,
			      struct ft_shelf *shelf, const char *text)
{
	double us = a->step_s * 1e6, tokens = 8192;
	struct ft_throughput rate = {
		.tokens_per_s = tokens / a->step_s,
		.low = tokens / a->high_s,
		.high = tokens / a->low_s,
		.busy_frac = sum_us(d, works) / us,
		.memory_frac = sum_us(d, moves) / us,
		.waiting_frac = sum_us(d, waits) / us,
		.bubble_frac = sum_us(d, in_pipeline) / us,
	};
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "one", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "one", false, &err);
	const struct ft_prices *prices;
	struct ft_bom *bom;
	struct ft_cost cost;

	ok_or_say(s, err);
	prices = ft_scenario_prices(s, &err);
	ok_or_say(prices, err);
	bom = ft_bom_build(s->cluster, prices, &err);
	ok_or_say(bom, err);
	ok_or_say(ft_cost_compute(&(struct ft_purchase){ s->cluster, prices, bom,
							 &s->terms, false },
				  &rate, &cost, &err),
		  err);
	near_frac(a->tokens_per_s, rate.tokens_per_s, 1e-12);
	ft_bom_free(bom);
	ft_scenario_free(s);
	arena_release(&mem);
	return cost;
}

static void is_priced(struct drawn *d, const struct ft_replay *p)
{
	const char *const sets[] = { "cost.prices=neocloud-2026-09",
				     "cost.electricity=0.31 USD/kWh" };
	struct ft_whatif_request q = {
		.replay = p, .tokens_per_step = 8192, .sets = sets, .n_sets = 2
	};
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_whatif a;
	struct ft_cost want;

	for (int c = 0; c < FT_REC_CLASSES; c++)
		q.speedup[c] = d->times[c] > 1 ? d->times[c] : 0;
	ok_or_say(ft_study_whatif(shelf, &q, &a, &err), err);
	assert_true(a.priced);
	want = cost_of(d, &a, shelf,
		       "{cluster: {gpu: h200, gpus: 2}, cost: {prices: "
		       "neocloud-2026-09, electricity: 0.31 USD/kWh}}");
	near_frac(a.cost.gpu_power_w, want.gpu_power_w, 1e-9);
	near_frac(a.cost.average_power_w, want.average_power_w, 1e-9);
	near_frac(a.cost.usd_per_million_tokens, want.usd_per_million_tokens, 1e-9);
	/* of draws, which a share of 1 and one a little less take in another order */
	near_frac(a.cost.usd_per_million_tokens_low, want.usd_per_million_tokens_low,
		  2e-3);
	near_frac(a.cost.usd_per_million_tokens_high, want.usd_per_million_tokens_high,
		  2e-3);
	ft_shelf_free(shelf);
}

static void a_step_costs_what_its_shares_say(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d;
		struct ft_recording *r = record(&d);
		struct ft_error err;
		struct ft_replay *p = ft_replay_build(one(r), 1, &err);

		ok_or_say(p, err);
		for (int c = 0; c < FT_REC_CLASSES; c++)
			d.times[c] = 1;
		for (int k = 0; k < KERNELS; k++)
			if (works(&kinds[d.kind[k]]) && rnd(&seed) % 3 == 0)
				d.times[kinds[d.kind[k]].of] = 2;
		is_priced(&d, p);
		ft_replay_free(p);
		ft_recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_costs_what_its_shares_say),
	};
	int failed = cmocka_run_group_tests_name("dollars of recorded steps", tests,
						 NULL, NULL);

	unlink(made_path());
	return failed;
}
