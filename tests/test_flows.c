/* tests/test_flows.c - dated payments, and what they come to in the forms of others */
#include "tests/check.h"

#include <math.h>

#include "foretoken/cost.h"
#include "tests/annuity.h"

/* 1,024 GPUs: 30 M USD of servers, 4 M of network, 2 M of the rest. */
static struct ft_deal a_deal(void)
{
	struct ft_deal d = {
		.gpus = 1024,
		.capital_usd = { 30e6, 4e6, 2e6 },
		.colocation_usd_per_kw_month = 130,
		.electricity_usd_per_kwh = 0.087,
		.maintenance_frac = 0.02,
		.it_w = 1.35e6,
		.idle_w = 0.85e6, /* nine hours of ten it works: 1.3 MW */
		.provisioned_w = 1.4e6,
		.goodput = 0.95,
		.tokens_per_s = 1e6,
	};

	d.terms.horizon_years = 4;
	d.terms.cost_of_capital_frac = 0.08;
	d.terms.residual_frac = 0.1;
	d.terms.pue = 1.25;
	d.terms.utilization_frac = 0.9;
	d.terms.take_or_pay = true;
	return d;
}

static double of_account(const struct ft_flows *f, enum ft_account account)
{
	double usd = 0;

	for (size_t i = 0; i < f->n; i++)
		usd += f->flow[i].account == account ? f->flow[i].usd : 0;
	return usd;
}

/* The textbook, line by line. */
static void an_hour_costs_what_the_textbook_says(void **state)
{
	struct ft_deal d = a_deal();
	double hours = 1024. * 8760, c = 36e6;
	double capital = per_year_usd(c, 0.1, 0.08, 4);
	double running = 1400 * 130 * 12 + 1300 * 1.25 * 8760 * 0.087 + c * 0.02;

	(void)state;
	assert_near(ft_deal_usd_per_gpu_hour(&d), (capital + running) / hours, 1e-12);
	assert_near(ft_deal_usd_per_million_tokens(&d),
		    (capital + running) / hours * 1e6 /
			    (3600 * 1e6 / 1024 * 0.9 * 0.95),
		    1e-12);
}

/* The obvious way: every month's payments, discounted one by one. */
static void readings_agree_with_month_by_month(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_readings r = ft_flows_read(&d);
	double monthly = pow(1.08, 1 / 12.), npv = 36e6, hours = 0;
	double running =
		(1400 * 130 * 12 + 1300 * 1.25 * 8760 * 0.087 + 36e6 * 0.02) / 12;

	(void)state;
	for (int m = 1; m <= 48; m++) {
		npv += running / pow(monthly, m);
		hours += 1024 * 730. / pow(monthly, m);
	}
	npv -= 3.6e6 / pow(1.08, 4);
	assert_near(r.npv_usd, npv, 1e-3);
	assert_near(r.levelised, npv / hours, 1e-9);
	assert_near(r.straight_line, (36e6 * 0.9 + 48 * running) / (1024 * 8760. * 4),
		    1e-9);
	assert_near(r.annuity, ft_deal_usd_per_gpu_hour(&d), 1e-12);
	d.terms.cost_of_capital_frac = 0;
	r = ft_flows_read(&d);
	assert_near(r.levelised, r.straight_line, 1e-12);
	assert_near(r.annuity, r.straight_line, 1e-12);
	assert_near(r.warehouse, r.straight_line, 1e-9);
}

/* The same where half of the cluster arrives after a year. */
static void later_tranches_agree_with_month_by_month(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_readings r;
	double monthly = pow(1.08, 1 / 12.), npv = 18e6 + 18e6 / 1.08, hours = 0;
	double running =
		(1400 * 130 * 12 + 1300 * 1.25 * 8760 * 0.087 + 36e6 * 0.02) / 12;

	(void)state;
	d.terms.n_tranches = 2;
	d.terms.tranche[0] = (struct ft_tranche){ 0, 0.5 };
	d.terms.tranche[1] = (struct ft_tranche){ 12, 0.5 };
	for (int m = 1; m <= 48; m++) {
		double here = m > 12 ? 1 : 0.5;

		npv += here * running / pow(monthly, m);
		hours += here * 1024 * 730. / pow(monthly, m);
	}
	npv -= 3.6e6 / pow(1.08, 4);
	r = ft_flows_read(&d);
	assert_near(r.npv_usd, npv, 1e-3);
	assert_near(r.levelised, npv / hours, 1e-9);
}

/* A server of 10.2 kW and 250,000 USD over 4 years in a building of 10 USD/W over 12, 8 %, 0.067
 * USD/kWh, PUE 1.5, 5 % of the server's amortisation for its upkeep: 1.475 USD per GPU and hour.
 * The building is paid as colocation, and a month of that source has 720 hours of power. */
static void the_warehouse_form_agrees_with_its_worked_example(void **state)
{
	double building = 10 / 144. + finance_interest_usd(10, 0.08, 12) / 144 + 0.04;
	struct ft_deal d = {
		.gpus = 8,
		.capital_usd = { 250000, 0, 0 },
		.colocation_usd_per_kw_month = 1000 * building,
		.electricity_usd_per_kwh = 0.067 * 720 / 730,
		.maintenance_frac = 0.05 / 4,
		.it_w = 10200,
		.idle_w = 10200,
		.provisioned_w = 10200,
		.goodput = 1,
		.terms = { .horizon_years = 4,
			   .cost_of_capital_frac = 0.08,
			   .pue = 1.5,
			   .utilization_frac = 1 },
	};

	(void)state;
	assert_near(ft_flows_read(&d).warehouse, 1.475, 5e-4);
}

static void flows_are_dated_and_whole(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_flows f;

	(void)state;
	d.terms.tax_frac = 0.05;
	d.terms.duty_frac = 0.02;
	d.terms.insurance_frac = 0.01;
	d.terms.staff_usd_per_year = 1e6;
	d.terms.licences_usd_per_gpu_year = 4500;
	ft_flows_of(&d, &f);
	assert_near(of_account(&f, FT_ACCOUNT_SERVERS), 30e6, 0);
	assert_near(of_account(&f, FT_ACCOUNT_NETWORK), 4e6, 0);
	assert_near(of_account(&f, FT_ACCOUNT_OTHER), 2e6, 0);
	assert_near(of_account(&f, FT_ACCOUNT_TAX), 1.8e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_DUTY), 0.72e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_RESALE), -3.6e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_INSURANCE), 1.44e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_STAFF), 4e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_LICENCES), 1024 * 4500. * 4, 1e-6);
	assert_near(f.gpu_hours, 1024 * 8760. * 4, 1e-6);
	for (size_t i = 0; i < f.n; i++)
		assert_true(f.flow[i].month + f.flow[i].months <= 48);
}

/* Half now, half in a year: half the payments start later, and hours are lost. */
static void tranches_arrive_when_they_are_said_to(void **state)
{
	struct ft_deal once = a_deal(), twice = a_deal();
	struct ft_flows f;

	(void)state;
	twice.terms.n_tranches = 2;
	twice.terms.tranche[0] = (struct ft_tranche){ 0, 0.5 };
	twice.terms.tranche[1] = (struct ft_tranche){ 12, 0.5 };
	twice.terms.burn_in_s = 21 * 86400;
	ft_flows_of(&twice, &f);
	assert_near(of_account(&f, FT_ACCOUNT_SERVERS), 30e6, 1e-6);
	assert_near(of_account(&f, FT_ACCOUNT_MAINTENANCE), 36e6 * 0.02 * 3.5, 1e-6);
	assert_near(f.gpu_hours, 1024 * (8760. * 3.5 - 21 * 24), 1e-6);
	assert_true(ft_deal_usd_per_gpu_hour(&twice) > ft_deal_usd_per_gpu_hour(&once));
	/* hours that come later are worth less: dearer than the same hours at once */
	assert_true(ft_flows_read(&twice).levelised > ft_flows_read(&once).levelised);
	twice.terms.tranche[1].month = 0;
	twice.terms.burn_in_s = 0;
	assert_near(ft_deal_usd_per_gpu_hour(&twice), ft_deal_usd_per_gpu_hour(&once),
		    1e-12);
}

/* Used so much, an hour that is owned costs what renting its used share would. */
static void at_break_even_owning_and_renting_cost_the_same(void **state)
{
	struct ft_deal d = a_deal();
	double used;

	(void)state;
	d.terms.against_usd_per_gpu_hour = 3;
	used = ft_flows_read(&d).break_even_utilization_frac;
	assert_true(used > 0.2 && used < 0.8);
	d.terms.utilization_frac = used;
	assert_near(ft_deal_usd_per_gpu_hour(&d), 3 * used, 1e-9);
}

static void residuals_by_year_are_read_at_the_horizon(void **state)
{
	struct ft_deal one = a_deal(), list = a_deal();

	(void)state;
	list.terms.n_residuals = 5;
	memcpy(list.terms.residual_by_year, (double[]){ 0.6, 0.4, 0.2, 0.1, 0.05 },
	       5 * sizeof(double));
	assert_near(ft_deal_usd_per_gpu_hour(&list), ft_deal_usd_per_gpu_hour(&one),
		    1e-12);
	list.terms.horizon_years = one.terms.horizon_years = 2.5;
	one.terms.residual_frac = 0.3;
	assert_near(ft_deal_usd_per_gpu_hour(&list), ft_deal_usd_per_gpu_hour(&one),
		    1e-12);
	list.terms.horizon_years = one.terms.horizon_years = 0.5;
	one.terms.residual_frac = 0.8; /* half way down from all of it */
	assert_near(ft_deal_usd_per_gpu_hour(&list), ft_deal_usd_per_gpu_hour(&one),
		    1e-12);
	list.terms.horizon_years = one.terms.horizon_years = 9;
	one.terms.residual_frac = 0.05;
	assert_near(ft_deal_usd_per_gpu_hour(&list), ft_deal_usd_per_gpu_hour(&one),
		    1e-12);
}

/* A rent at the levelised cost returns just the cost of capital. */
static void letting_at_cost_returns_the_cost_of_capital(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_readings r;

	(void)state;
	d.terms.utilization_frac = 1;
	d.terms.against_usd_per_gpu_hour = ft_flows_read(&d).levelised;
	r = ft_flows_read(&d);
	assert_near(r.irr_frac, 0.08, 1e-6);
	/* less electricity where less is used: below the quotient of both */
	assert_true(r.break_even_utilization_frac <= r.annuity / r.levelised + 1e-12);
	d.terms.against_usd_per_gpu_hour *= 2;
	r = ft_flows_read(&d);
	assert_true(r.irr_frac > 0.3 && r.break_even_months > 12 &&
		    r.break_even_months < 30);
	d.terms.against_usd_per_gpu_hour = 0.01;
	r = ft_flows_read(&d);
	assert_true(r.irr_frac < -0.3 && r.break_even_months == 0);
}

/* In the last month, of which the horizon has a part alone, as in any other. */
static void a_part_of_a_month_pays_back_too(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_flows f;
	double paid = 0;

	(void)state;
	d.terms.utilization_frac = 1;
	for (double months = 0.5; months < 41; months += 13.2) {
		d.terms.horizon_years = months / 12;
		ft_flows_of(&d, &f);
		paid = 0;
		for (size_t i = 0; i < f.n; i++)
			paid += f.flow[i].account == FT_ACCOUNT_RESALE ? 0 :
									 f.flow[i].usd;
		d.terms.against_usd_per_gpu_hour = paid / f.gpu_hours * 1.0001;
		assert_near(ft_flows_read(&d).break_even_months, ceil(months), 0);
		d.terms.against_usd_per_gpu_hour = paid / f.gpu_hours * 0.9999;
		assert_near(ft_flows_read(&d).break_even_months, 0, 0);
	}
}

static void rent_is_paid_as_agreed(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_flows f;

	(void)state;
	memset(d.capital_usd, 0, sizeof(d.capital_usd));
	d.rent_usd_per_gpu_hour = 2;
	assert_near(ft_deal_usd_per_gpu_hour(&d), 2, 1e-12);
	d.terms.take_or_pay = false; /* on demand: only hours that are used */
	assert_near(ft_deal_usd_per_gpu_hour(&d), 2 * 0.9, 1e-12);
	d.terms.prepaid_frac = 0.95; /* more than is used: nothing else is owed */
	ft_flows_of(&d, &f);
	assert_near(of_account(&f, FT_ACCOUNT_RENT), 0, 1e-6);
	d.terms.take_or_pay = true;
	d.terms.prepaid_frac = 0.25;
	ft_flows_of(&d, &f);
	assert_near(of_account(&f, FT_ACCOUNT_PREPAYMENT), 0.5 * 1024 * 8760 * 4, 1e-3);
	/* a quarter is paid ahead, and costs the interest of an annuity */
	assert_near(ft_deal_usd_per_gpu_hour(&d),
		    1.5 + 0.5 * 4 * finance_recovery(0.08, 4), 1e-9);
}

/* What is billed, what is used up, and what is paid are one sum. */
static void the_csv_adds_up(void **state)
{
	struct ft_deal d = a_deal();
	struct ft_prices book = { .date = "2026-03" };
	FILE *out = tmpfile();
	double billed = 0, effective = 0, paid = 0;
	struct ft_flows f;
	char line[1024];
	int lines = 0;

	(void)state;
	ft_flows_write(out, &d, &book, "a \"name\", quoted");
	ft_flows_of(&d, &f);
	for (size_t i = 0; i < f.n; i++)
		paid += f.flow[i].usd;
	rewind(out);
	assert_non_null(fgets(line, sizeof(line), out));
	assert_true(!strncmp(line, "BilledCost,BillingAccountId,", 28));
	while (fgets(line, sizeof(line), out)) {
		const char *at = line;
		int commas = 0;
		bool quoted = false;

		billed += atof(line);
		for (; commas < 14; at++) { /* EffectiveCost is the 15th */
			quoted ^= *at == '"';
			commas += *at == ',' && !quoted;
		}
		effective += atof(at);
		lines++;
	}
	fclose(out);
	assert_near(billed, paid, 0.5);
	assert_near(effective, paid, 0.5);
	assert_true(lines > 48 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_hour_costs_what_the_textbook_says),
		cmocka_unit_test(readings_agree_with_month_by_month),
		cmocka_unit_test(the_warehouse_form_agrees_with_its_worked_example),
		cmocka_unit_test(flows_are_dated_and_whole),
		cmocka_unit_test(later_tranches_agree_with_month_by_month),
		cmocka_unit_test(tranches_arrive_when_they_are_said_to),
		cmocka_unit_test(at_break_even_owning_and_renting_cost_the_same),
		cmocka_unit_test(residuals_by_year_are_read_at_the_horizon),
		cmocka_unit_test(letting_at_cost_returns_the_cost_of_capital),
		cmocka_unit_test(a_part_of_a_month_pays_back_too),
		cmocka_unit_test(rent_is_paid_as_agreed),
		cmocka_unit_test(the_csv_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
