/* tests/test_cost.c - money, power and failures against worked examples */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "cost/goodput.h"
#include "cost/power.h"
#include "foretoken/cost.h"
#include "tests/annuity.h"
#include "tests/bare_cluster.h"

/* A cluster of bare numbers: all its power is its nodes'. */
struct plain {
	int64_t gpus;
	double capex_usd, it_w; /* of all */
	double years, i, residual;
	double colocation, electricity, pue, utilization;
	bool includes_power;
	double tokens_per_s, low, high;
	double low_usd, high_usd; /* of the bill; 0: as capex */
};

static struct ft_cost cost_of(const struct plain *p)
{
	struct bare_cluster bare;
	struct ft_prices prices = {
		.colocation_usd_per_kw_month = { p->colocation, 0, 0, NULL },
		.colocation_includes_power = p->includes_power,
		.electricity_usd_per_kwh = { p->electricity, 0, 0, NULL },
	};
	struct ft_bom bom = { .total_usd = p->capex_usd,
			      .low_usd = p->low_usd > 0 ? p->low_usd : p->capex_usd,
			      .high_usd =
				      p->high_usd > 0 ? p->high_usd : p->capex_usd };
	struct ft_cost_terms terms = { .horizon_years = p->years,
				       .cost_of_capital_frac = p->i,
				       .residual_frac = p->residual,
				       .pue = p->pue,
				       .utilization_frac = p->utilization,
				       .goodput = 1,
				       .electricity_usd_per_kwh = -1 };
	struct ft_cost cost;
	struct ft_error err;

	bare_cluster(&bare, p->gpus, 1, p->it_w);
	assert_true(ft_cost_compute(
		&(struct ft_purchase){ &bare.cluster, &prices, &bom, &terms, false },
		&(struct ft_throughput){ p->tokens_per_s, p->low, p->high, 1, 0, 0, 0,
					 0, 0, 0 },
		&cost, &err));
	return cost;
}

/* H100 at 31,250 USD: straight line, and a loan in monthly payments. */
static void annuities_agree_with_the_table(void **state)
{
	static const struct {
		double i, years, usd_per_hour;
	} row[] = {
		{ 0.08, 4, 1.045 }, { 0.10, 4, 1.086 }, { 0.13, 4, 1.148 },
		{ 0.08, 5, 0.868 }, { 0.10, 5, 0.910 }, { 0.13, 5, 0.974 },
		{ 0.00, 4, 0.892 }, { 0.00, 5, 0.713 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++)
		assert_near(31250 * 12 / 8760. *
				    finance_recovery(row[k].i / 12, 12 * row[k].years),
			    row[k].usd_per_hour, 0.0006);
}

/* The obvious way: pay back year by year, sell the rest, owe nothing. */
static void payments_clear_the_debt(void **state)
{
	(void)state;
	for (int years = 1; years <= 8; years++)
		for (double i = 0; i < 0.2; i += 0.04) {
			double pay = per_year_usd(1000, 0.1, i, years);
			double debt = 1000;

			for (int y = 0; y < years; y++)
				debt = debt * (1 + i) - pay;
			assert_near(debt, 100, 1e-9);
		}
}

/* A public model of 4 H100 in California: 36,196 USD a year, 31.4 % break-even
 * at 3.29 USD/h; 45.3 % over 3 years, 27.9 % over 6. */
static void four_gpus_break_even_where_they_should(void **state)
{
	struct plain p = { .gpus = 4,
			   .capex_usd = 120414,
			   .it_w = 2100,
			   .years = 5,
			   .colocation = 194.95,
			   .electricity = 0.2575,
			   .pue = 1.52,
			   .utilization = 1 };
	struct ft_cost c = cost_of(&p);

	(void)state;
	assert_near(c.usd_per_gpu_hour * 4 * 8760, 36196, 1);
	assert_near(c.capital_usd_per_gpu_hour * 4 * 8760, 24083, 1);
	assert_near(c.colocation_usd_per_gpu_hour * 4 * 8760, 4913, 1);
	assert_near(c.electricity_usd_per_gpu_hour * 4 * 8760, 7200, 1);
	assert_near(c.usd_per_gpu_hour / 3.29, 0.314, 5e-4);
	p.years = 3;
	assert_near(cost_of(&p).usd_per_gpu_hour / 3.29, 0.453, 5e-4);
	p.years = 6;
	assert_near(cost_of(&p).usd_per_gpu_hour / 3.29, 0.279, 5e-4);
}

/* A survey of September 2026: 35,625 USD and 1.275 kW a GPU, 90 % used. */
static void the_surveys_cost_per_used_hour_comes_out(void **state)
{
	static const struct {
		double years, colocation, usd;
	} row[] = { { 3, 180, 1.856 },
		    { 5, 180, 1.253 },
		    { 3, 120, 1.739 },
		    { 3, 250, 1.991 } };

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		struct plain p = { .gpus = 1,
				   .capex_usd = 35625,
				   .it_w = 1275,
				   .years = row[k].years,
				   .colocation = row[k].colocation,
				   .includes_power = true,
				   .electricity = 1,
				   .pue = 1.5,
				   .utilization = 1 };

		assert_near(cost_of(&p).usd_per_gpu_hour / 0.9, row[k].usd, 1e-3);
	}
}

/* SemiAnalysis, 2025-08-20, at 1.42 USD/h: GPT-3 175B in FP8 54.2 cents and
 * 2.46 J, Llama 3 405B in BF16 1.95 USD and 8.8 J; 162,600 USD for 300 G
 * tokens, 29.25 M for 15 T. */
static void published_dollars_and_joules_per_token_agree(void **state)
{
	struct plain p = { .gpus = 128,
			   .capex_usd = 1.42 * 8760 * 128,
			   .it_w = 1790. * 128,
			   .years = 1,
			   .pue = 1,
			   .utilization = 1,
			   .tokens_per_s = 727.8 * 128 };
	struct ft_cost c = cost_of(&p);

	(void)state;
	assert_near(c.usd_per_million_tokens, 0.542, 5e-4);
	assert_near(c.joules_per_token, 2.46, 5e-3);
	assert_near(c.usd_per_million_tokens * 300e3, 162.6e3, 100);
	assert_near(c.tokens_per_usd * c.usd_per_million_tokens, 1e6, 1e-3);
	p = (struct plain){ .gpus = 2304,
			    .capex_usd = 1.42 * 8760 * 2304,
			    .it_w = 1780. * 2304,
			    .years = 1,
			    .pue = 1,
			    .utilization = 1,
			    .tokens_per_s = 202.3 * 2304 };
	c = cost_of(&p);
	assert_near(c.usd_per_million_tokens, 1.95, 5e-3);
	assert_near(c.joules_per_token, 8.8, 5e-3);
	assert_near(c.usd_per_million_tokens * 15e6, 29.25e6, 1e4);
	p.utilization = 0.5;
	assert_near(cost_of(&p).usd_per_million_tokens, 2 * c.usd_per_million_tokens,
		    1e-9);
}

static struct ft_deal drawn(const struct ft_cluster *c, const struct ft_throughput *t)
{
	struct ft_deal d = { .power = power_of(c, t) };

	power_set(&d);
	return d;
}

/* The equation of foretoken/cost.h, part by part, on a cluster of one GPU. */
static void power_is_by_what_gpus_do(void **state)
{
	struct ft_gpu gpu = { .idle_w = { 100, 100, 100, NULL },
			      .limit_w = { 700, 700, 700, NULL },
			      .sustained[FT_BF16] = { 1, 1, 1, NULL } };
	struct ft_part of_gpu = { .max_w = { 700, 700, 700, NULL },
				  .memory_frac = { 0.6, 0.6, 0.6, NULL },
				  .waiting_frac = { 0.4, 0.4, 0.4, NULL },
				  .clock_exponent = { 2, 2, 2, NULL } };
	struct ft_part host = { .max_w = { 500, 500, 500, NULL },
				.typical_frac = { 0.6, 0.6, 0.6, NULL } };
	struct ft_part spare = { .max_w = { 1200, 1200, 1200, NULL } };
	struct ft_part_line line[] = {
		{ .count = 1, .gpu = true, .part = &of_gpu },
		{ .count = 1, .part = &host },
		{ .count = 1, .part_class = FT_PART_SPARE, .part = &spare }
	};
	struct ft_parts parts = { .n = 3, .line = line };
	struct ft_cluster c = { .gpu = &gpu, .parts = &parts };
	double still = 500 * 0.6 + 1200 / 7.;
	struct ft_throughput all = { .busy_frac = 1 }, half = { .busy_frac = 0.5 },
			     mixed = { .busy_frac = 0.7,
				       .memory_frac = 0.2,
				       .waiting_frac = 0.2 },
			     piped = { .busy_frac = 0.7,
				       .waiting_frac = 0.3,
				       .bubble_frac = 0.3 },
			     alone = { .busy_frac = 0.7, .waiting_frac = 0.3 },
			     none = { 0 };

	(void)state;
	assert_near(drawn(&c, &none).it_w, 100 + still, 1e-9);
	assert_near(drawn(&c, &all).idle_w, 100 + still, 1e-9);
	assert_near(drawn(&c, &all).it_w, 700 + still, 1e-9);
	assert_near(drawn(&c, &half).it_w, 400 + still, 1e-9);
	assert_near(drawn(&c, &mixed).it_w,
		    100 + 600 * (0.5 + 0.2 * 0.6 + 0.2 * 0.4) + still, 1e-9);
	/* held to the limit, products ask for 700 / 0.8^2 = 1093.75 W at the full clock */
	gpu.sustained[FT_BF16].value = 0.8;
	assert_near(drawn(&c, &all).it_w, 700 + still, 1e-9);
	assert_near(drawn(&c, &half).it_w, 100 + 0.5 * 993.75 + still, 1e-9);
	assert_near(drawn(&c, &mixed).it_w,
		    100 + 600 * fmin(1, 0.5 * 993.75 / 600 + 0.2 * 0.6 + 0.2 * 0.4) +
			    still,
		    1e-9);
	/* a pipeline's waits are longer than what the limit averages over */
	assert_near(drawn(&c, &piped).it_w, 100 + 600 * (0.7 + 0.3 * 0.4) + still,
		    1e-9);
	assert_near(drawn(&c, &alone).it_w, 700 + still, 1e-9);
	assert_near(drawn(&c, &all).provisioned_w, 700 + 500 + 1200, 1e-9);
	/* three more in the server, which the job leaves idle, but which could work */
	line[0].count = 4;
	line[0].idle = 3;
	assert_near(drawn(&c, &all).it_w, 700 + 3 * 100 + still, 1e-9);
	assert_near(drawn(&c, &all).idle_w, 4 * 100 + still, 1e-9);
	assert_near(drawn(&c, &all).provisioned_w, 4 * 700 + 500 + 1200, 1e-9);
}

/* Throughput alone: dollars go as its inverse. */
static void dollars_are_as_uncertain_as_tokens(void **state)
{
	struct plain p = { .gpus = 8,
			   .capex_usd = 1e6,
			   .years = 4,
			   .pue = 1,
			   .utilization = 1,
			   .tokens_per_s = 1000,
			   .low = 1000 / 1.4,
			   .high = 1000 / 0.8 };
	struct ft_cost c = cost_of(&p);
	double usd = c.usd_per_million_tokens;

	(void)state;
	assert_near(c.usd_per_million_tokens_low / usd, 0.8, 0.01);
	assert_near(c.usd_per_million_tokens_high / usd, 1.4, 0.01);
	/* a slower step makes an hour no dearer */
	assert_near(c.usd_per_gpu_hour_low / c.usd_per_gpu_hour, 1, 1e-9);
	assert_near(c.usd_per_gpu_hour_high / c.usd_per_gpu_hour, 1, 1e-9);
}

/* SemiAnalysis, 100,000 H100 Clusters; Meta's RSC-1 projections; Llama 3. */
static void failures_come_as_often_as_published(void **state)
{
	double year_s = 365 * 86400.;

	(void)state;
	assert_near(5 * year_s / 100000 / 60, 26.28, 0.005);
	assert_near(4 * year_s / 50000 / 60, 42.05, 0.005);
	assert_near(100000 * (100 - 1) * 2 / 86400., 229, 0.5); /* GPU-days, at most */
	assert_near(goodput_mtbf_s(6.5, 2048) / 3600, 1.803, 5e-4);
	assert_near(goodput_mtbf_s(6.5, 16384) / 3600, 0.225, 5e-4);
	assert_near(goodput_mtbf_s(3.79, 2048) / 3600, 3.09, 5e-3);
	assert_near(goodput_young_s(60, 3.09 * 3600), 1155, 1);
}

static struct ft_cost whole(const char *cluster_yaml, const char *book)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "test.yaml", cluster_yaml,
					   strlen(cluster_yaml), &err);
	struct ft_cluster *cluster = ft_cluster_load(node, &err);
	struct ft_prices *prices = ft_prices_load(book, NULL, &err);
	struct ft_cost_terms terms;
	struct ft_bom *bom;
	struct ft_cost cost;

	assert_non_null(cluster);
	assert_non_null(prices);
	bom = ft_bom_build(cluster, prices, &err);
	assert_non_null(bom);
	assert_true(ft_cost_terms_load(NULL, &terms, &err));
	assert_true(ft_cost_compute(
		&(struct ft_purchase){ cluster, prices, bom, &terms, false },
		&(struct ft_throughput){ .tokens_per_s = 1e6, .busy_frac = 1 }, &cost,
		&err));
	ft_bom_free(bom);
	ft_prices_free(prices);
	ft_cluster_free(cluster);
	arena_release(&mem);
	return cost;
}

/* Idle hours and lost tokens burn energy, too: with U of the time used and G of it kept,
 * a token takes the power of U busy and 1 - U idle hours over U G of the tokens. */
static void a_token_carries_all_that_was_burnt(void **state)
{
	struct ft_cost c = whole("{gpu: h100-sxm, gpus: 1024}", "neocloud-2026-09");
	double u = c.utilization_frac;
	double idle_w = (c.average_power_w / 1.25 - u * c.it_power_w) / (1 - u);

	(void)state;
	assert_true(u == 0.9 && idle_w > 0 && idle_w < 0.6 * c.it_power_w);
	assert_near(c.joules_per_token, c.average_power_w / (1e6 * u * c.goodput),
		    1e-12);
	assert_near(c.provisioned_joules_per_token, c.provisioned_w * 1.25 / 1e6,
		    1e-12);
	assert_true(c.facility_power_w < c.provisioned_w * 1.25);
}

/* SemiAnalysis: H100 1.30 to 1.42, MI300X 1.12, GB200 2.21 USD/h; 1.40 kW of IT
 * and 1.73 to 1.79 kW of utility power an H100. */
static void hyperscalers_pay_about_the_published_rates(void **state)
{
	struct ft_cost h100 =
		whole("{gpu: h100-sxm, gpus: 1024}", "hyperscaler-2025-08");
	struct ft_cost mi300x =
		whole("{gpu: mi300x, gpus: 1024}", "hyperscaler-2025-08");
	struct ft_cost gb200 = whole("{gpu: gb200, gpus: 1152}", "hyperscaler-2025-08");

	(void)state;
	assert_near(h100.usd_per_gpu_hour, 1.36, 0.07);
	assert_near(mi300x.usd_per_gpu_hour, 1.12, 0.07);
	assert_near(gb200.usd_per_gpu_hour, 2.21, 0.15);
	assert_near(h100.provisioned_w / 1024, 1400, 30);
	assert_near(h100.provisioned_w * 1.25 / 1024, 1760, 40);
	assert_true(h100.goodput > 0.95 && h100.goodput < 1);
}

/* Books that were derived from published rates give them back, by construction: what is
 * tested is that the books' numbers are those of their derivation. */
static void books_of_july_2026_give_their_rates_back(void **state)
{
	static const struct {
		const char *cluster;
		double hyperscaler, neocloud;
	} row[] = {
		{ "{gpu: h100-sxm, gpus: 1024}", 1.17, 1.55 },
		{ "{gpu: b200, gpus: 1024}", 1.73, 2.07 },
		{ "{gpu: gb300, gpus: 1152}", 2.31, 2.79 },
		{ "{gpu: mi300x, gpus: 1024}", 0.95, 1.16 },
		{ "{gpu: mi355x, gpus: 1024}", 1.50, 2.09 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		assert_near(
			whole(row[k].cluster, "hyperscaler-2026-07").usd_per_gpu_hour,
			row[k].hyperscaler, 0.005);
		assert_near(whole(row[k].cluster, "neocloud-2026-07").usd_per_gpu_hour,
			    row[k].neocloud, 0.005);
	}
}

/* Rented, an hour is the rent, and no other part is paid. */
static void a_rented_hour_costs_the_rent(void **state)
{
	struct ft_cost c = whole("{gpu: h100-sxm, gpus: 1024}", "rent-2026");
	struct ft_cost bought =
		whole("{gpu: h100-sxm, gpus: 1024}", "neocloud-2026-09");

	(void)state;
	assert_near(c.usd_per_gpu_hour, 3.2, 1e-12);
	assert_near(c.rent_usd_per_gpu_hour, 3.2, 1e-12);
	assert_true(c.capex_usd == 0 && c.capital_usd_per_gpu_hour == 0 &&
		    c.colocation_usd_per_gpu_hour == 0 &&
		    c.electricity_usd_per_gpu_hour == 0);
	/* 1e6 tokens/s on 1,024 GPUs, nine hours of ten */
	assert_near(c.usd_per_million_tokens, 3.2 * 1024 / 3600 / (0.9 * c.goodput),
		    1e-9);
	/* idle hours and failures are uncertain, too */
	assert_near(c.usd_per_million_tokens_low / c.usd_per_million_tokens, 2.72 / 3.2,
		    0.1);
	assert_near(c.usd_per_million_tokens_high / c.usd_per_million_tokens,
		    6.88 / 3.2, 0.25);
	/* of an hour, the book's own range of the rent */
	assert_near(c.usd_per_gpu_hour_low, 2.72, 0.003);
	assert_near(c.usd_per_gpu_hour_high, 6.88, 0.007);
	assert_true(c.by_kind_frac[FT_PRICE_QUOTED] == 1);
	/* power and failures are the machine's, whoever owns it */
	assert_true(c.joules_per_token == bought.joules_per_token);
	assert_true(c.goodput == bought.goodput);
}

static void terms_are_read_and_checked(void **state)
{
	static const struct {
		const char *yaml;
		int column;
		const char *text;
	} wrong[] = {
		{ "{horizon: 4}", 11, "4 y" },
		{ "{pue: 0.9}", 7, "not between 1 and 10" },
		{ "{utilization_frac: 1.5}", 20, "at most 1" },
		{ "{goodput: 0}", 11, "above 0" },
		{ "{horizont: 4 y}", 2, "did you mean 'horizon'" },
		{ "{electricity: 0.1}", 15, "USD/kWh" },
		{ "{usd_per_gpu_hour: 2}", 20, "2.10 USD/h" },
		{ "{usd_per_gpu_hour: 0 USD/h}", 20, "above 0" },
		{ "{price_of: 3}", 12, "should be a map" },
	};
	const char *good = "{prices: mixnet-2025, horizon: 5 y, residual_frac: "
			   "20 %, electricity: 0.05 USD/kWh, goodput: auto}";
	const char *free = "{electricity: 0 USD/kWh}";
	const char *rent = "{usd_per_gpu_hour: 2.5 USD/h}";
	struct arena mem = { 0 };
	struct ft_cost_terms t;
	struct ft_error err;

	(void)state;
	assert_true(ft_cost_terms_load(
		node_read_text(&mem, "test.yaml", good, strlen(good), &err), &t, &err));
	assert_string_equal(t.prices, "mixnet-2025");
	assert_true(t.horizon_years == 5 && t.residual_frac == 0.2);
	assert_true(t.goodput == 0 && t.pue == -1);
	assert_true(t.electricity_usd_per_kwh == 0.05);
	/* free power is a price; none given is the book's */
	assert_true(ft_cost_terms_load(
		node_read_text(&mem, "test.yaml", free, strlen(free), &err), &t, &err));
	assert_true(t.electricity_usd_per_kwh == 0);
	assert_true(ft_cost_terms_load(NULL, &t, &err));
	assert_true(t.electricity_usd_per_kwh < 0 && t.usd_per_gpu_hour == 0);
	assert_string_equal(t.prices, FT_DEFAULT_PRICES);
	assert_true(ft_cost_terms_load(
		node_read_text(&mem, "test.yaml", rent, strlen(rent), &err), &t, &err));
	assert_true(t.usd_per_gpu_hour == 2.5);
	assert_string_equal(t.prices, FT_DEFAULT_RENTS);
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++) {
		struct node *node = node_read_text(&mem, "test.yaml", wrong[k].yaml,
						   strlen(wrong[k].yaml), &err);

		if (ft_cost_terms_load(node, &t, &err) ||
		    err.column != wrong[k].column || !strstr(err.text, wrong[k].text))
			fail_msg("%s: %d: %s", wrong[k].yaml, err.column, err.text);
	}
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annuities_agree_with_the_table),
		cmocka_unit_test(payments_clear_the_debt),
		cmocka_unit_test(four_gpus_break_even_where_they_should),
		cmocka_unit_test(the_surveys_cost_per_used_hour_comes_out),
		cmocka_unit_test(published_dollars_and_joules_per_token_agree),
		cmocka_unit_test(power_is_by_what_gpus_do),
		cmocka_unit_test(a_token_carries_all_that_was_burnt),
		cmocka_unit_test(dollars_are_as_uncertain_as_tokens),
		cmocka_unit_test(failures_come_as_often_as_published),
		cmocka_unit_test(hyperscalers_pay_about_the_published_rates),
		cmocka_unit_test(books_of_july_2026_give_their_rates_back),
		cmocka_unit_test(a_rented_hour_costs_the_rent),
		cmocka_unit_test(terms_are_read_and_checked),
	};

	return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
