/*
 * tests/test_cost_terms.c - the `cost` map: drawn amounts come back as they were written, and each bound is taken where
 * what lies beyond it is not
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/cost.h"
#include "tests/check.h"

enum { DRAWS = 200 };

static uint64_t seed = 1129;

static bool load(struct arena *mem, const char *text, struct ft_cost_terms *t,
		 struct ft_error *err)
{
	const struct node *node =
		node_read_text(mem, "test.yaml", text, strlen(text), err);

	ok_or_say(node, *err);
	return ft_cost_terms_load(node, t, err);
}

/* A key, its unit, how many of it an own unit has, where it is kept, and what it is unsaid. */
struct amount {
	const char *key, *unit;
	double times;
	size_t at;
	double most, unsaid; /* drawn up to that */
};

#define AT(member) offsetof(struct ft_cost_terms, member)

static const struct amount amounts[] = {
	{ "cost_of_capital_frac", "%", 0.01, AT(cost_of_capital_frac), 99, 0.08 },
	{ "residual_frac", "%", 0.01, AT(residual_frac), 99, 0.1 },
	{ "burn_in", "d", 86400, AT(burn_in_s), 700, 0 },
	{ "tax_frac", "%", 0.01, AT(tax_frac), 99, 0 },
	{ "duty_frac", "%", 0.01, AT(duty_frac), 99, 0 },
	{ "insurance_frac", "%", 0.01, AT(insurance_frac), 99, 0 },
	{ "staff", "MUSD/y", 1e6, AT(staff_usd_per_year), 9, 0 },
	{ "licences_per_gpu", "USD/y", 1, AT(licences_usd_per_gpu_year), 5000, 0 },
	{ "prepaid_frac", "%", 0.01, AT(prepaid_frac), 99, 0 },
	{ "against", "USD/h", 1, AT(against_usd_per_gpu_hour), 3, 0 },
	{ "usd_per_gpu_hour", "USD/h", 1, AT(usd_per_gpu_hour), 4, 0 },
	{ "electricity", "USD/kWh", 1, AT(electricity_usd_per_kwh), 0.4, -1 },
	{ "utilization_frac", "%", 0.01, AT(utilization_frac), 99, 0.9 },
};

static const struct amount of_failures[] = {
	{ "failures_per_1000_node_days", "", 1,
	  AT(failures.failures_per_1000_node_days), 30, -1 },
	{ "checkpoint", "s", 1, AT(failures.checkpoint_s), 300, -1 },
	{ "restart", "min", 60, AT(failures.restart_s), 60, -1 },
	{ "interval", "min", 60, AT(failures.interval_s), 60, 0 },
	{ "flaps_per_1000_node_days", "", 1, AT(failures.flaps_per_1000_node_days), 9,
	  0 },
	{ "straggler_frac", "%", 0.01, AT(failures.straggler_frac), 50, 0 },
};

/* Half of the keys, each with a number; appended to text. */
static const char *draw(struct arena *mem, const char *text, const struct amount *a,
			size_t n, double *want)
{
	for (size_t i = 0; i < n; i++) {
		double x = a[i].most * (1 + rnd_below(&seed, 1000)) / 1000;

		want[i] = a[i].unsaid;
		if (rnd_below(&seed, 2))
			continue;
		want[i] = x * a[i].times;
		text = arena_printf(mem, "%s%s: %.9g %s, ", text, a[i].key, x,
				    a[i].unit);
	}
	return text;
}

static void are_read(const struct ft_cost_terms *t, const struct amount *a, size_t n,
		     const double *want)
{
	for (size_t i = 0; i < n; i++)
		near_frac(*(const double *)((const char *)t + a[i].at), want[i], 1e-8);
}

static void amounts_come_back_as_they_were_written(void **state)
{
	enum {
		N = sizeof(amounts) / sizeof(*amounts),
		F = sizeof(of_failures) / sizeof(*of_failures)
	};

	(void)state;
	for (int k = 0; k < DRAWS; k++) {
		struct arena mem = { 0 };
		double want[N], failures[F];
		bool given = rnd_below(&seed, 2), waste = rnd_below(&seed, 2);
		const char *text = draw(&mem, "{", amounts, N, want);
		struct ft_cost_terms t;
		struct ft_error err;

		if (given)
			text = arena_printf(&mem, "%sgoodput: {%s}, ", text,
					    draw(&mem, "", of_failures, F, failures));
		text = arena_printf(&mem, "%stake_or_pay: %s}", text,
				    waste ? "true" : "false");
		ok_or_say(load(&mem, text, &t, &err), err);
		are_read(&t, amounts, N, want);
		assert_int_equal(t.take_or_pay, waste);
		if (given)
			are_read(&t, of_failures, F, failures);
		arena_release(&mem);
	}
}

/* A list of so many maps or shares. */
static const char *list_of(struct arena *mem, const char *key, int n)
{
	bool months = !strcmp(key, "tranches");
	const char *text = arena_printf(mem, "{horizon: 20 y, %s: [", key);

	for (int i = 0; i < n; i++)
		text = months ? arena_printf(mem, "%s{month: %d, share: %.17g}, ", text,
					     i, 1. / n) :
				arena_printf(mem, "%s%.9g, ", text, 1. / (i + 1));
	return arena_printf(mem, "%s]}", text);
}

static void lists_end_where_they_say(void **state)
{
	static const struct {
		const char *key;
		int most;
	} lists[] = { { "tranches", FT_TRANCHES },
		      { "residual_by_year", FT_RESIDUALS } };
	struct arena mem = { 0 };
	struct ft_cost_terms t;
	struct ft_error err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		int most = lists[i].most;

		ok_or_say(load(&mem, list_of(&mem, lists[i].key, most), &t, &err), err);
		assert_int_equal(i ? t.n_residuals : t.n_tranches, most);
		for (int k = 0; k < most; k++) {
			near_frac(i ? t.residual_by_year[k] : t.tranche[k].frac,
				  1. / (i ? k + 1 : most), 1e-8);
			assert_true(i || t.tranche[k].month == k);
		}
		for (int k = 0; k <= most + 1; k += most + 1) {
			assert_false(
				load(&mem, list_of(&mem, lists[i].key, k), &t, &err));
			assert_non_null(strstr(err.text, "should be a list of 1 to "));
		}
	}
	arena_release(&mem);
}

/* What is still taken, what is not, and what is said of it. */
static void bounds_are_where_they_are_said_to_be(void **state)
{
	static const struct {
		const char *at, *beyond, *why;
	} bounds[] = {
		{ "horizon: 4 d", "horizon: 3.999 d",
		  "should be between 4 d and 100 y" },
		{ "horizon: 100 y", "horizon: 100.001 y",
		  "should be between 4 d and 100 y" },
		{ "residual_frac: 0.999", "residual_frac: 1", "should be below 1" },
		{ "tax_frac: 1", "tax_frac: 1.001", "should be at most 1" },
		{ "duty_frac: 1", "duty_frac: 1.001", "should be at most 1" },
		{ "insurance_frac: 1", "insurance_frac: 1.001", "should be at most 1" },
		{ "prepaid_frac: 1", "prepaid_frac: 1.001", "should be at most 1" },
		{ "cost_of_capital_frac: 1", "cost_of_capital_frac: 1.001",
		  "should be at most 1" },
		{ "pue: 1", "pue: 0.999", "is not between 1 and 10" },
		{ "pue: 10", "pue: 10.001", "is not between 1 and 10" },
		{ "utilization_frac: 1", "utilization_frac: 1.001",
		  "should be above 0 and at most 1" },
		{ "utilization_frac: 0.001", "utilization_frac: 0",
		  "should be above 0 and at most 1" },
		{ "goodput: 1", "goodput: 1.001", "should be above 0 and at most 1" },
		{ "goodput: 0.001", "goodput: 0", "should be above 0 and at most 1" },
		{ "goodput: {straggler_frac: 0.999}", "goodput: {straggler_frac: 1}",
		  "should be below 1" },
		{ "goodput: {interval: 1 us}", "goodput: {interval: 0 s}",
		  "should be above 0" },
		{ "goodput: {storage_bandwidth: 1 B/s}",
		  "goodput: {storage_bandwidth: 0 B/s}", "should be above 0" },
		{ "goodput: {failures_per_1000_node_days: 0}",
		  "goodput: {failures_per_1000_node_days: -0.001}",
		  "failures_per_1000_node_days" },
		{ "against: 0.001 USD/h", "against: 0 USD/h", "should be above 0" },
		{ "usd_per_gpu_hour: 0.001 USD/h", "usd_per_gpu_hour: 0 USD/h",
		  "should be above 0" },
		{ "horizon: 1 y, burn_in: 182.5 d", "horizon: 1 y, burn_in: 182.501 d",
		  "takes more than half of the horizon" },
		{ "horizon: 1 y, burn_in: 182.499 d, tranches: [{month: 6, share: 1}]",
		  "horizon: 1 y, burn_in: 182.5 d, tranches: [{month: 6, share: 1}]",
		  "of the last tranche ends after the horizon" },
		{ "horizon: 1 y, tranches: [{month: 11, share: 1}]",
		  "horizon: 1 y, tranches: [{month: 12, share: 1}]",
		  "lies after the horizon" },
		{ "tranches: [{share: 1}]", "tranches: [{month: 0}]", "share" },
		{ "tranches: [{share: 1}]", "tranches: [{share: 0.999}]",
		  "have shares that add up to 0.999, not 1" },
		{ "tranches: [{month: 1, share: 1}]",
		  "tranches: [{month: -1, share: 1}]", "month" },
		{ "horizon: 100 y, tranches: [{month: 1199, share: 1}]",
		  "horizon: 100 y, tranches: [{month: 1201, share: 1}]",
		  "is not between 0 and 1200" },
		{ "horizon: 2 y, residual_by_year: [0.5, 0.5]",
		  "horizon: 2 y, residual_by_year: [0.5, 0.501]", "that do not grow" },
		{ "horizon: 2 y, residual_by_year: [1, 0]",
		  "horizon: 2 y, residual_by_year: [1.001, 0]", "shares from 0 to 1" },
		{ "horizon: 2 y, residual_by_year: [0.5, 0]",
		  "horizon: 2 y, residual_by_year: [0.5, -0.001]",
		  "shares from 0 to 1" },
		{ "horizon: 2 y, residual_by_year: [1, 0]",
		  "horizon: 2.001 y, residual_by_year: [1, 0]",
		  "has no share for the last year" },
		{ "start: 2027-12", "start: 2027-13", "should be a month" },
		{ "start: 2027-01", "start: 2027-1", "should be a month" },
	};
	struct arena mem = { 0 };
	struct ft_cost_terms t;
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		const char *at = arena_printf(&mem, "{%s}", bounds[i].at);
		const char *beyond = arena_printf(&mem, "{%s}", bounds[i].beyond);

		ok_or_say(load(&mem, at, &t, &err), err);
		if (load(&mem, beyond, &t, &err))
			fail_msg("%s is taken", beyond);
		if (!strstr(err.text, bounds[i].why))
			fail_msg("%s: %s", beyond, err.text);
	}
	arena_release(&mem);
}

/* The way of recovering decides which keys have an effect. */
static void keys_without_effect_are_refused(void **state)
{
	static const struct {
		const char *goodput, *why; /* NULL: it is taken */
	} rows[] = {
		{ "recovery: fault_tolerant, failover: 9 s", NULL },
		{ "failover: 9 s", "only under 'recovery: fault_tolerant'" },
		{ "recovery: fault_tolerant, checkpoint: 9 s", "has no effect under" },
		{ "recovery: fault_tolerant, interval: 9 s", "has no effect under" },
		{ "recovery: fault_tolerant, storage_bandwidth: 9 GB/s",
		  "has no effect under" },
		{ "recovery: fault_tolerant, restart: 9 s", "has no effect under" },
		{ "recovery: cold, spares: true",
		  "has no effect under 'recovery: cold'" },
		{ "spares: true", NULL },
		{ "checkpoint: 9 s, storage_bandwidth: 9 GB/s", "give one of the two" },
		{ "repair: 9 h", "only under 'recovery: cold' and 'spares: false'" },
		{ "repair: 9 h, spares: false", NULL },
		{ "repair: 9 h, recovery: cold", NULL },
		{ "flap: 9 s", "only with flaps_per_1000_node_days" },
		{ "flap: 9 s, flaps_per_1000_node_days: 2", NULL },
	};
	struct arena mem = { 0 };
	struct ft_cost_terms t;
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *text =
			arena_printf(&mem, "{goodput: {%s}}", rows[i].goodput);
		bool ok = load(&mem, text, &t, &err);

		if (!rows[i].why)
			ok_or_say(ok, err);
		else if (ok || !strstr(err.text, rows[i].why))
			fail_msg("%s: %s", text, ok ? "taken" : err.text);
	}
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_come_back_as_they_were_written),
		cmocka_unit_test(lists_end_where_they_say),
		cmocka_unit_test(bounds_are_where_they_are_said_to_be),
		cmocka_unit_test(keys_without_effect_are_refused),
	};

	return cmocka_run_group_tests_name("terms of cost", tests, NULL, NULL);
}
