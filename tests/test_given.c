/*
 * tests/test_given.c - figures that a scenario gives in place of its price book's
 *
 * The oracle is a twin: a book with that figure, and a scenario without it. Zero is a figure.
 */
#include "tests/check.h"
#include "tests/bare_cluster.h"

#include <math.h>

#include "foretoken/cost.h"

static const struct {
	const char *name;
	size_t term, book; /* where the figure is in each */
	double value[2];
} figures[] = {
#define TERM(x) offsetof(struct ft_cost_terms, x)
#define BOOK(x) offsetof(struct ft_prices, x)
	{ "electricity",
	  TERM(electricity_usd_per_kwh),
	  BOOK(electricity_usd_per_kwh),
	  { 0, 0.3 } },
	{ "pue", TERM(pue), BOOK(pue), { 1, 1.7 } },
	{ "checkpoint", TERM(failures.checkpoint_s), BOOK(checkpoint_s), { 0, 600 } },
	{ "restart", TERM(failures.restart_s), BOOK(restart_s), { 0, 3000 } },
	{ "repair", TERM(failures.repair_s), BOOK(repair_s), { 0, 9e5 } },
	{ "failover", TERM(failures.failover_s), BOOK(failover_s), { 0, 5000 } },
	{ "flap", TERM(failures.flap_s), BOOK(flap_s), { 0, 800 } },
};

static struct ft_cost cost_of(enum ft_recovery recovery, size_t figure, double given,
			      double of_book)
{
	static const struct ft_number book[] = {
		{ 0.1, 0.1, 0.1, NULL }, { 1.3, 1.3, 1.3, NULL }, { 60, 60, 60, NULL },
		{ 300, 300, 300, NULL }, { 9e4, 9e4, 9e4, NULL }, { 90, 90, 90, NULL },
		{ 20, 20, 20, NULL },
	};
	struct bare_cluster bare;
	struct ft_bom bom = { .total_usd = 2e7, .low_usd = 2e7, .high_usd = 2e7 };
	struct ft_prices prices = { .failure_factor = { 1, 1, 1, NULL } };
	struct ft_cost_terms t = { .horizon_years = 4, .utilization_frac = 0.9 };
	struct ft_cost cost;
	struct ft_error err;

	bare_cluster(&bare, 8, 64, 1e5);
	t.failures.recovery = recovery;
	t.failures.failures_per_1000_node_days = 9;
	t.failures.flaps_per_1000_node_days = 30;
	for (size_t k = 0; k < sizeof(figures) / sizeof(*figures); k++) {
		const double none = -1;

		memcpy((char *)&t + figures[k].term, &none, sizeof(none));
		memcpy((char *)&prices + figures[k].book, &book[k], sizeof(book[k]));
	}
	if (of_book >= 0) {
		struct ft_number n = { of_book, of_book, of_book, NULL };

		memcpy((char *)&prices + figures[figure].book, &n, sizeof(n));
	}
	memcpy((char *)&t + figures[figure].term, &given, sizeof(given));
	ok_or_say(ft_cost_compute(&(struct ft_purchase){ &bare.cluster, &prices, &bom,
							 &t, false },
				  &(struct ft_throughput){ 1e6, 9e5, 11e5, 1, 0, 0, 0,
							   0, 1e12, 0 },
				  &cost, &err),
		  err);
	return cost;
}

static bool equal(const struct ft_cost *a, const struct ft_cost *b)
{
	return a->usd_per_million_tokens == b->usd_per_million_tokens &&
	       a->usd_per_gpu_hour == b->usd_per_gpu_hour && a->goodput == b->goodput &&
	       a->average_power_w == b->average_power_w &&
	       fabs(a->usd_per_million_tokens_low / b->usd_per_million_tokens_low - 1) <
		       1e-9 &&
	       fabs(a->usd_per_million_tokens_high / b->usd_per_million_tokens_high -
		    1) < 1e-9;
}

static void a_figure_given_is_a_book_with_it(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(figures) / sizeof(*figures); k++) {
		int seen = 0;

		for (int r = 0; r < FT_RECOVERIES; r++) {
			enum ft_recovery by = (enum ft_recovery)r;
			struct ft_cost as_is = cost_of(by, k, -1, -1);

			for (int v = 0; v < 2; v++) {
				double value = figures[k].value[v];
				struct ft_cost given = cost_of(by, k, value, -1);
				struct ft_cost booked = cost_of(by, k, -1, value);

				if (!equal(&given, &booked))
					fail_msg(
						"%s of %g: given %.12g, by the book %.12g",
						figures[k].name, value,
						given.usd_per_million_tokens,
						booked.usd_per_million_tokens);
				seen |= !equal(&given, &as_is) << v;
			}
		}
		if (seen != 3)
			fail_msg("%s has no effect", figures[k].name);
	}
}

/* Beside what the book has: its prices stay, and its rents give way to the one. */
static void a_rent_given_is_the_only_one(void **state)
{
	struct bare_cluster bare;
	struct ft_price priced = { .item = "a server", .usd = { 5, 4, 6, NULL } };
	struct ft_price rents[] = { { .item = "x" }, { .item = "y" }, { .item = "z" } };
	struct ft_prices book = {
		.price = &priced, .n_prices = 1, .rent = rents, .n_rents = 3
	};
	struct ft_cost_terms t = { .usd_per_gpu_hour_mark = { "a scenario", 1, 1 } };

	(void)state;
	bare_cluster(&bare, 8, 64, 1e5);
	bare.gpu.name = "a GPU";
	for (int given = 0; given < 2; given++) {
		struct ft_error err;
		struct ft_prices *p;

		t.usd_per_gpu_hour = given ? 0.5 : 0;
		p = ft_prices_given(&book, &bare.cluster, &t, &err);
		ok_or_say(p, err);
		assert_int_equal(p->n_prices, 1);
		assert_string_equal(p->price[0].item, "a server");
		assert_true(p->price[0].usd.high == 6);
		assert_int_equal(p->n_rents, given ? 1 : 3);
		if (given) {
			assert_string_equal(p->rent[0].item, bare.cluster.gpu->name);
			assert_true(p->rent[0].usd.value == 0.5 &&
				    p->rent[0].usd.low == 0.5 &&
				    p->rent[0].usd.high == 0.5);
		} else {
			assert_ptr_equal(p->rent, rents);
		}
		ft_prices_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_figure_given_is_a_book_with_it),
		cmocka_unit_test(a_rent_given_is_the_only_one),
	};

	return cmocka_run_group_tests_name("given", tests, NULL, NULL);
}
