/* tests/test_odds.c - draws, odds, reasons and crossovers */
#include "tests/check.h"

#include <math.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

#include "base/stats.h"
#include "cost/factors.h"
#include "cost/odds.h"
#include "cost/split.h"

struct bench {
	struct ft_gpu gpu;
	struct ft_node node;
	struct ft_fabric fabric;
	struct ft_parts parts;
	struct ft_cluster cluster;
	struct ft_prices prices;
	struct ft_bom_item item[2];
	struct ft_bom bom;
	struct ft_cost_terms terms;
	struct ft_side side;
};

/* Eight GPUs, a server and optics, nothing else. */
static void set_up(struct bench *b, const char *vendor, double server_usd,
		   double spread, double tokens)
{
	memset(b, 0, sizeof(*b));
	b->gpu.vendor = vendor;
	b->node.gpus = 8;
	b->cluster.gpu = &b->gpu;
	b->cluster.node = &b->node;
	b->cluster.parts = &b->parts;
	b->cluster.fabric = &b->fabric;
	b->cluster.gpus = 8;
	b->cluster.nodes = 1;
	b->item[0] = (struct ft_bom_item){ .item = vendor,
					   .book = "test",
					   .vendor = "",
					   .total_usd = server_usd,
					   .low_usd = server_usd / spread,
					   .high_usd = server_usd * spread };
	b->item[1] = (struct ft_bom_item){ .item = "optic-x",
					   .book = "test",
					   .vendor = "",
					   .total_usd = 50e3,
					   .low_usd = 50e3 / 2,
					   .high_usd = 50e3 * 2,
					   .part_class = FT_PART_NETWORK,
					   .network = true };
	b->bom.n_items = 2;
	b->bom.item = b->item;
	b->bom.total_usd = server_usd + 50e3;
	b->terms.horizon_years = 4;
	b->terms.pue = 1;
	b->terms.utilization_frac = 1;
	b->terms.goodput = 1;
	b->side = (struct ft_side){
		.purchase = { &b->cluster, &b->prices, &b->bom, &b->terms, false },
		.throughput = { .tokens_per_s = tokens, .busy_frac = 1 },
	};
}

/* The obvious way: plain draws of the same prices. */
static double plain_odds(double a_usd, double a_spread, double b_usd, double b_spread,
			 double b_tokens)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double sa = log(a_spread) / NORMAL_P90, sb = log(b_spread) / NORMAL_P90;
	double so = log(2) / NORMAL_P90;
	int below = 0, n = 400000;

	for (int i = 0; i < n; i++) {
		double optics = 50e3 * exp(gsl_ran_gaussian(rng, so));
		double a = a_usd * exp(gsl_ran_gaussian(rng, sa)) + optics;
		double b = b_usd * exp(gsl_ran_gaussian(rng, sb)) + optics;

		below += a < b / b_tokens;
	}
	gsl_rng_free(rng);
	return (double)below / n;
}

static void odds_agree_with_plain_draws(void **state)
{
	struct bench a, b;
	struct ft_side side[2];
	struct ft_odds odds;
	struct ft_error err;

	(void)state;
	set_up(&a, "nvidia", 200e3, 1.3, 1000);
	set_up(&b, "amd", 180e3, 1.6, 900);
	side[0] = a.side;
	side[1] = b.side;
	assert_true(ft_odds_of(side, 2, 1 << 15, &odds, &err));
	/* without a file of factors prices are independent, but the optics are one item */
	assert_near(odds.below[0][1], plain_odds(200e3, 1.3, 180e3, 1.6, 0.9), 0.006);
	assert_near(odds.below[0][1] + odds.below[1][0], 1, 1e-12);
	assert_near(odds.cheapest_frac[0], odds.below[0][1], 1e-12);
	assert_true(odds.p10[FT_DRAWN_USD][0] < odds.p50[FT_DRAWN_USD][0] &&
		    odds.p50[FT_DRAWN_USD][0] < odds.p90[FT_DRAWN_USD][0]);
}

/* Whatever it is compared with, and in whatever order; and a few draws are near many. */
static void a_range_does_not_depend_on_the_others(void **state)
{
	static const size_t draws[] = { 1000, 1024, 1 << 14 };
	struct bench b[3];
	struct ft_odds alone, all, many;
	struct ft_error err;

	(void)state;
	set_up(&b[0], "nvidia", 200e3, 1.3, 1000);
	set_up(&b[1], "amd", 180e3, 1.6, 900);
	set_up(&b[2], "nvidia", 90e3, 2.5, 400);
	for (int i = 0; i < 3; i++) { /* two of them are plans of one job */
		struct ft_throughput *t = &b[i].side.throughput;

		t->job = 7 + (uint64_t)(i == 1);
		t->low = t->tokens_per_s * (0.8 - 0.05 * i);
		t->high = t->tokens_per_s * 1.1;
	}
	assert_true(ft_odds_of(&b[0].side, 1, 1 << 18, &many, &err));
	for (size_t k = 0; k < sizeof(draws) / sizeof(*draws); k++) {
		const struct ft_side side[] = { b[2].side, b[0].side, b[1].side };

		assert_true(ft_odds_of(&b[0].side, 1, draws[k], &alone, &err));
		assert_true(ft_odds_of(side, 3, draws[k], &all, &err));
		for (int f = 0; f < FT_DRAWN; f++) {
			double near = draws[k] > 1024 ? 0.004 : 0.015;

			assert_true(all.p10[f][1] == alone.p10[f][0] &&
				    all.p50[f][1] == alone.p50[f][0] &&
				    all.p90[f][1] == alone.p90[f][0]);
			near_frac(alone.p10[f][0], many.p10[f][0], near);
			near_frac(alone.p50[f][0], many.p50[f][0], near);
			near_frac(alone.p90[f][0], many.p90[f][0], near);
		}
	}
}

/* Two that are the same in all are cheaper than each other in no draw. */
static void what_is_common_cancels(void **state)
{
	struct bench a;
	struct ft_side side[2];
	struct ft_odds odds;
	struct ft_error err;

	(void)state;
	set_up(&a, "nvidia", 200e3, 1.5, 1000);
	side[0] = side[1] = a.side;
	side[1].throughput.tokens_per_s = 1001;
	assert_true(ft_odds_of(side, 2, 2048, &odds, &err));
	assert_true(odds.below[1][0] == 1 && odds.below[0][1] == 0);
	assert_true(odds.cheapest_frac[1] == 1);
}

/* The same job on the same GPUs at a higher price is dearer in every draw, however wrong the
 * prediction of its throughput is. */
static void a_dominated_twin_never_wins(void **state)
{
	struct bench a, b;
	struct ft_side side[2];
	struct ft_odds odds;
	struct ft_error err;

	(void)state;
	set_up(&a, "nvidia", 200e3, 1.0001, 1000);
	set_up(&b, "nvidia", 210e3, 1.0001, 1000);
	b.item[0].item = "other";
	for (int known = 0; known < 2; known++) {
		side[0] = a.side;
		side[1] = b.side;
		for (int i = 0; i < 2; i++) {
			side[i].throughput.low = 800;
			side[i].throughput.high = 1200;
			side[i].throughput.job = known ? 7 : 0;
		}
		assert_true(ft_odds_of(side, 2, 4096, &odds, &err));
		assert_true(known ? odds.below[0][1] == 1 : odds.below[0][1] < 0.9);
	}
}

static void the_same_question_has_the_same_answer(void **state)
{
	struct bench a;
	struct ft_odds one, two;
	struct ft_error err;

	(void)state;
	set_up(&a, "amd", 200e3, 1.5, 1000);
	memset(&one, 0, sizeof(one));
	memset(&two, 0, sizeof(two));
	assert_true(ft_odds_of(&a.side, 1, 1024, &one, &err));
	assert_true(ft_odds_of(&a.side, 1, 1024, &two, &err));
	assert_true(one.p10[FT_DRAWN_USD][0] == two.p10[FT_DRAWN_USD][0] &&
		    one.p50[FT_DRAWN_USD][0] == two.p50[FT_DRAWN_USD][0] &&
		    one.p90[FT_DRAWN_USD][0] == two.p90[FT_DRAWN_USD][0]);
	assert_int_equal(one.n_causes, 2);
	assert_string_equal(one.cause[0].name, "servers, AMD");
	/* the cause at its P10 and P90, all else as it is */
	assert_near(one.cause[0].high[0] / one.cause[0].low[0],
		    (200e3 * 1.5 + 50e3) / (200e3 / 1.5 + 50e3), 1e-3);
}

/* Real books: factors make two NVIDIA clusters move together, so that odds are further from
 * a half than independent prices would make them. */
static void factors_join_what_moves_together(void **state)
{
	struct factors *f = (struct factors *)calloc(1, sizeof(*f));
	struct bench a, b;
	struct ft_side side[2];
	struct ft_odds alone, joined;
	struct ft_error err;

	(void)state;
	f->n = 1;
	f->name[0] = "nvidia";
	f->loading[CAUSE_SERVERS_NVIDIA][0] = 0.95;
	set_up(&a, "nvidia", 200e3, 1.5, 1000);
	set_up(&b, "nvidia", 220e3, 1.5, 1000);
	a.item[0].item = "one";
	b.item[0].item = "other";
	side[0] = a.side;
	side[1] = b.side;
	assert_true(ft_odds_of(side, 2, 8192, &alone, &err));
	a.prices.factors = b.prices.factors = f;
	assert_true(ft_odds_of(side, 2, 8192, &joined, &err));
	assert_true(joined.below[0][1] > alone.below[0][1] + 0.05);
	/* each by itself is as uncertain as before */
	assert_near(joined.p90[FT_DRAWN_USD][0] / alone.p90[FT_DRAWN_USD][0], 1, 0.01);
	free(f);
}

/* ---- power ------------------------------------------------------------------------------- */

/* One GPU that copies all the time, and a host: each range by hand. */
static void megawatts_are_as_uncertain_as_their_parts(void **state)
{
	struct ft_part of_gpu = { .item = "gpu",
				  .max_w = { 700, 700, 700, NULL },
				  .memory_frac = { 0.6, 0.5, 0.8, NULL },
				  .waiting_frac = { 0.4, 0.4, 0.4, NULL },
				  .clock_exponent = { 2, 2, 2, NULL } };
	struct ft_part host = { .item = "host",
				.max_w = { 500, 500, 500, NULL },
				.typical_frac = { 1, 1, 1, NULL } };
	struct ft_part spare = { .item = "spare", .max_w = { 1200, 1000, 1600, NULL } };
	struct ft_part_line line[] = {
		{ .count = 1, .gpu = true, .part = &of_gpu },
		{ .count = 1, .part = &host },
		{ .count = 1, .part_class = FT_PART_SPARE, .part = &spare }
	};
	struct ft_odds odds;
	struct ft_error err;
	struct bench b;

	(void)state;
	set_up(&b, "nvidia", 250e3, 1.2, 1000);
	b.gpu.idle_w.value = b.gpu.idle_w.low = b.gpu.idle_w.high = 100;
	b.gpu.limit_w.value = b.gpu.limit_w.low = b.gpu.limit_w.high = 700;
	b.gpu.sustained[FT_BF16].value = 1;
	b.parts.n = 2;
	b.parts.line = line;
	b.side.throughput.memory_frac = 1;
	b.prices.pue = (struct ft_number){ 1.25, 1.1, 1.5, NULL };
	assert_true(ft_odds_of(&b.side, 1, 16384, &odds, &err));
	assert_near(odds.p10[FT_DRAWN_AVERAGE_W][0], 100 + 600 * 0.5 + 500, 3);
	assert_near(odds.p90[FT_DRAWN_AVERAGE_W][0], 100 + 600 * 0.8 + 500, 3);
	assert_near(odds.p10[FT_DRAWN_FULL_W][0], 1200, 1e-9); /* a PUE of 1, known */
	assert_near(odds.p90[FT_DRAWN_JOULES][0] * 1000,
		    odds.p90[FT_DRAWN_AVERAGE_W][0], 1e-6);
	b.terms.pue = -1; /* the book's */
	assert_true(ft_odds_of(&b.side, 1, 16384, &odds, &err));
	assert_near(odds.p10[FT_DRAWN_FULL_W][0], 1200 * 1.1, 3);
	assert_near(odds.p90[FT_DRAWN_FULL_W][0], 1200 * 1.5, 5);
	b.terms.pue = 1;
	host.max_w = (struct ft_number){ 500, 400, 700, NULL };
	assert_true(ft_odds_of(&b.side, 1, 16384, &odds, &err));
	assert_near(odds.p10[FT_DRAWN_FULL_W][0], 1100, 3);
	assert_near(odds.p90[FT_DRAWN_FULL_W][0], 1400, 5);
	host.max_w = (struct ft_number){ 500, 500, 500, NULL };
	b.parts.n = 3; /* and a spare, which idles at a seventh */
	assert_true(ft_odds_of(&b.side, 1, 16384, &odds, &err));
	assert_near(odds.p10[FT_DRAWN_FULL_W][0], 1200 + 1000, 3);
	assert_near(odds.p90[FT_DRAWN_FULL_W][0], 1200 + 1600, 6);
}

/* ---- reasons ----------------------------------------------------------------------------- */

static struct ft_deal a_deal(double gpus)
{
	struct ft_deal d = { .gpus = gpus,
			     .capital_usd = { 25e3 * gpus, 4e3 * gpus, 2e3 * gpus },
			     .colocation_usd_per_kw_month = 130,
			     .electricity_usd_per_kwh = 0.087,
			     .maintenance_frac = 0.02,
			     .it_w = 1300 * gpus,
			     .idle_w = 500 * gpus,
			     .provisioned_w = 1400 * gpus,
			     .goodput = 0.95,
			     .tokens_per_s = 1000 * gpus,
			     .terms = { .horizon_years = 4,
					.cost_of_capital_frac = 0.08,
					.residual_frac = 0.1,
					.pue = 1.25,
					.utilization_frac = 0.9 } };

	return d;
}

static void parts_add_up_whatever_differs(void **state)
{
	struct ft_deal a = a_deal(1024), b = a_deal(512);
	double part[FT_COST_PARTS], back[FT_COST_PARTS], sum = 0;

	(void)state;
	b.capital_usd[FT_CAPITAL_SERVERS] *= 0.7;
	b.capital_usd[FT_CAPITAL_NETWORK] *= 0.5;
	b.terms.horizon_years = 5;
	b.provisioned_w *= 1.2;
	b.tokens_per_s *= 0.8;
	b.goodput = 0.9;
	ft_deals_explain(&a, &b, part);
	ft_deals_explain(&b, &a, back);
	for (int p = 0; p < FT_COST_PARTS; p++) {
		sum += part[p];
		assert_near(part[p], -back[p], 1e-12);
	}
	assert_near(sum,
		    ft_deal_usd_per_million_tokens(&b) -
			    ft_deal_usd_per_million_tokens(&a),
		    1e-12);
	assert_true(part[FT_COST_GPU_PRICE] < 0 && part[FT_COST_NETWORK] < 0 &&
		    part[FT_COST_FINANCE] < 0 && part[FT_COST_POWER] > 0 &&
		    part[FT_COST_THROUGHPUT] > 0 && part[FT_COST_GOODPUT] > 0);
}

/* A part that is the same in both has no share. */
static void what_is_the_same_explains_nothing(void **state)
{
	struct ft_deal a = a_deal(1024), b = a_deal(4096);
	double part[FT_COST_PARTS];

	(void)state;
	b.tokens_per_s *= 1.1;
	ft_deals_explain(&a, &b, part);
	for (int p = 0; p < FT_COST_PARTS; p++)
		if (p != FT_COST_THROUGHPUT)
			assert_near(part[p], 0, 1e-15);
}

static void crossovers_make_both_equal(void **state)
{
	struct ft_deal a = a_deal(1024), b = a_deal(1024);
	struct ft_crossover x[FT_CROSSOVERS_MOST];
	size_t n, servers = 0;

	(void)state;
	b.tokens_per_s *= 0.85;
	b.capital_usd[FT_CAPITAL_SERVERS] *= 0.95;
	n = ft_deals_crossovers(&a, &b, 128, 4e11, x);
	assert_true(n >= 2);
	for (size_t i = 0; i < n; i++) {
		struct ft_deal c = b;

		if (i)
			assert_true(fabs(log(x[i].value / x[i].now)) >=
				    fabs(log(x[i - 1].value / x[i - 1].now)));
		if (strcmp(x[i].what, "price of a server"))
			continue;
		servers++;
		c.capital_usd[FT_CAPITAL_SERVERS] = 128 * x[i].value;
		assert_near(ft_deal_usd_per_million_tokens(&c) /
				    ft_deal_usd_per_million_tokens(&a),
			    1, 1e-6);
	}
	assert_int_equal(servers, 1);
}

/* Turning any of them makes both equal; what is free, or differs where it should be common, is
 * not asked. */
static void every_crossover_makes_both_equal(void **state)
{
	const double per_gpu_tflop = 4e11 * 1e-12;
	uint64_t seed = 5;
	size_t seen = 0, free = 0, apart = 0;

	(void)state;
	for (int k = 0; k < 300; k++) {
		struct ft_deal a = a_deal(1024), b = a_deal(1024);
		struct ft_crossover x[FT_CROSSOVERS_MOST];
		size_t n;

		b.tokens_per_s *= 0.7 + 0.01 * (rnd(&seed) % 60);
		b.capital_usd[FT_CAPITAL_SERVERS] *= 0.7 + 0.01 * (rnd(&seed) % 60);
		b.capital_usd[FT_CAPITAL_NETWORK] *= rnd(&seed) % 2;
		b.it_w *= 0.5 + 0.01 * (rnd(&seed) % 60);
		a.electricity_usd_per_kwh *= rnd(&seed) % 3;
		if (rnd(&seed) % 2)
			b.electricity_usd_per_kwh = a.electricity_usd_per_kwh;
		b.terms.horizon_years += rnd(&seed) % 2;
		n = ft_deals_crossovers(&a, &b, 128, 4e11, x);
		for (size_t i = 0; i < n; i++, seen++) {
			struct ft_deal c = a, d = b;
			double times = x[i].value / x[i].now;
			const char *what = x[i].what;

			if (!strcmp(what, "price of a server")) {
				d.capital_usd[FT_CAPITAL_SERVERS] = 128 * x[i].value;
			} else if (!strcmp(what, "price of the network")) {
				d.capital_usd[FT_CAPITAL_NETWORK] = x[i].value;
			} else if (!strcmp(what, "model FLOP/s per GPU")) {
				d.tokens_per_s = x[i].value * d.gpus / per_gpu_tflop;
			} else if (!strcmp(what, "electricity of both")) {
				assert_true(a.electricity_usd_per_kwh ==
					    b.electricity_usd_per_kwh);
				c.electricity_usd_per_kwh = x[i].value;
				d.electricity_usd_per_kwh = x[i].value;
			} else {
				assert_string_equal(what, "years of use of both");
				assert_true(a.terms.horizon_years ==
					    b.terms.horizon_years);
				c.terms.horizon_years = d.terms.horizon_years =
					x[i].value;
			}
			assert_true(x[i].now > 0 && times > 0);
			assert_near(ft_deal_usd_per_million_tokens(&d) /
					    ft_deal_usd_per_million_tokens(&c),
				    1, 1e-5);
		}
		free += !b.capital_usd[FT_CAPITAL_NETWORK];
		apart += a.terms.horizon_years != b.terms.horizon_years;
	}
	assert_true(seen > 500 && free > 50 && apart > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_crossover_makes_both_equal),
		cmocka_unit_test(megawatts_are_as_uncertain_as_their_parts),
		cmocka_unit_test(odds_agree_with_plain_draws),
		cmocka_unit_test(a_range_does_not_depend_on_the_others),
		cmocka_unit_test(what_is_common_cancels),
		cmocka_unit_test(a_dominated_twin_never_wins),
		cmocka_unit_test(the_same_question_has_the_same_answer),
		cmocka_unit_test(factors_join_what_moves_together),
		cmocka_unit_test(parts_add_up_whatever_differs),
		cmocka_unit_test(what_is_the_same_explains_nothing),
		cmocka_unit_test(crossovers_make_both_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
