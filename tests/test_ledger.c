/*
 * tests/test_ledger.c - drawn deals, against a ledger that is kept month by month
 *
 * The ledger knows no formula but a year's cost / 12 and (1 + i)^(-month / 12). Every figure
 * of cost/flows.c and every line that finance gets is held against it.
 */
#include "tests/check.h"

#include <math.h>

#include "foretoken/cost.h"

enum { MONTHS = 12 * 7, DEALS = 400 };

/* What is paid at the start of month m (at[0]), or at the end of the one before. */
struct ledger {
	int months;
	double once[FT_ACCOUNTS][MONTHS + 1], even[FT_ACCOUNTS][MONTHS + 1];
	double hours[MONTHS + 1]; /* that end at this month */
};

static double drawn_frac(uint64_t *seed)
{
	return (double)(rnd(seed) % 1000) / 1000;
}

/* Zero one time in three: what is not paid is no line. */
static double drawn_or_none(uint64_t *seed, double most)
{
	return rnd(seed) % 3 ? most * drawn_frac(seed) : 0;
}

static void draw_terms(struct ft_cost_terms *t, uint64_t *seed)
{
	int months = 12 * (1 + (int)(rnd(seed) % 6));

	t->horizon_years = months / 12;
	t->cost_of_capital_frac = drawn_or_none(seed, 0.2);
	t->residual_frac = drawn_or_none(seed, 0.4);
	t->n_residuals = rnd(seed) % 2 ? rnd(seed) % 5 : 0;
	for (size_t k = 0; k < t->n_residuals; k++)
		t->residual_by_year[k] = 0.9 / (double)(k + 1) * drawn_frac(seed);
	t->n_tranches = rnd(seed) % 4;
	for (size_t k = 0; k < t->n_tranches; k++)
		t->tranche[k] = (struct ft_tranche){ rnd(seed) % (unsigned)(months - 2),
						     1. / (double)t->n_tranches };
	t->burn_in_s = rnd(seed) % 3 * 730. * 3600; /* whole months */
	t->tax_frac = drawn_or_none(seed, 0.2);
	t->duty_frac = drawn_or_none(seed, 0.1);
	t->insurance_frac = drawn_or_none(seed, 0.03);
	t->staff_usd_per_year = drawn_or_none(seed, 2e6);
	t->licences_usd_per_gpu_year = drawn_or_none(seed, 4500);
	t->prepaid_frac = drawn_or_none(seed, 1);
	t->take_or_pay = rnd(seed) % 2;
	t->utilization_frac = 0.2 + 0.8 * drawn_frac(seed);
	t->pue = 1 + drawn_frac(seed);
	t->against_usd_per_gpu_hour = drawn_or_none(seed, 12);
}

static struct ft_deal a_deal(uint64_t *seed)
{
	struct ft_deal d = {
		.gpus = 8 * (1 + rnd(seed) % 512),
		.colocation_usd_per_kw_month = drawn_or_none(seed, 300),
		.electricity_usd_per_kwh = drawn_or_none(seed, 0.3),
		.maintenance_frac = drawn_or_none(seed, 0.1),
		.it_w = 1e3 * (500 + rnd(seed) % 1000),
		.idle_w = 1e3 * (rnd(seed) % 500),
		.provisioned_w = 1e3 * (1500 + rnd(seed) % 1000),
		.goodput = 0.5 + 0.5 * drawn_frac(seed),
		.tokens_per_s = 1e6,
	};

	draw_terms(&d.terms, seed);
	if (rnd(seed) % 3)
		for (int c = 0; c < FT_CAPITALS; c++)
			d.capital_usd[c] = 1e4 * (rnd(seed) % 3000);
	else
		d.rent_usd_per_gpu_hour = 0.5 + 5 * drawn_frac(seed);
	return d;
}

/* What a dollar of hardware is worth after so many months: from 1 through the years' values. */
static double worth_after(const struct ft_cost_terms *t, int months)
{
	double points[FT_RESIDUALS + 1] = { 1 };
	int k = months / 12;

	if (!t->n_residuals)
		return t->residual_frac;
	for (size_t y = 0; y < t->n_residuals; y++)
		points[y + 1] = t->residual_by_year[y];
	if (k >= (int)t->n_residuals)
		return points[t->n_residuals];
	return (points[k] * (12 - months % 12) + points[k + 1] * (months % 12)) / 12;
}

static void pay_evenly(struct ledger *l, enum ft_account a, int from,
		       double usd_per_year)
{
	for (int m = from + 1; m <= l->months; m++)
		l->even[a][m] += usd_per_year / 12;
}

static void buy(struct ledger *l, const struct ft_deal *d, int m, double frac)
{
	const struct ft_cost_terms *t = &d->terms;
	const double *usd = d->capital_usd;
	double all = frac * (usd[0] + usd[1] + usd[2]);
	double used = t->utilization_frac;
	double kw = (used * d->it_w + (1 - used) * d->idle_w) / 1000 * t->pue;

	l->once[FT_ACCOUNT_SERVERS][m] += frac * usd[FT_CAPITAL_SERVERS];
	l->once[FT_ACCOUNT_NETWORK][m] += frac * usd[FT_CAPITAL_NETWORK];
	l->once[FT_ACCOUNT_OTHER][m] += frac * usd[FT_CAPITAL_OTHER];
	l->once[FT_ACCOUNT_TAX][m] += all * t->tax_frac;
	l->once[FT_ACCOUNT_DUTY][m] += all * t->duty_frac;
	l->once[FT_ACCOUNT_RESALE][l->months] -= all * worth_after(t, l->months - m);
	pay_evenly(l, FT_ACCOUNT_COLOCATION, m,
		   12 * frac * d->provisioned_w / 1000 *
			   d->colocation_usd_per_kw_month);
	pay_evenly(l, FT_ACCOUNT_ELECTRICITY, m,
		   frac * kw * 8760 * d->electricity_usd_per_kwh);
	pay_evenly(l, FT_ACCOUNT_MAINTENANCE, m, all * d->maintenance_frac);
	pay_evenly(l, FT_ACCOUNT_INSURANCE, m, all * t->insurance_frac);
}

static void rent(struct ledger *l, const struct ft_deal *d, int m, double frac)
{
	const struct ft_cost_terms *t = &d->terms;
	double yearly = frac * d->gpus * 8760 * d->rent_usd_per_gpu_hour;
	double owed = t->take_or_pay ? 1 : t->utilization_frac;

	l->once[FT_ACCOUNT_PREPAYMENT][m] +=
		yearly * t->prepaid_frac * (l->months - m) / 12;
	if (owed > t->prepaid_frac)
		pay_evenly(l, FT_ACCOUNT_RENT, m, yearly * (owed - t->prepaid_frac));
}

static void keep(struct ledger *l, const struct ft_deal *d)
{
	static const struct ft_tranche all = { 0, 1 };
	const struct ft_cost_terms *t = &d->terms;

	memset(l, 0, sizeof(*l));
	l->months = (int)(12 * t->horizon_years);
	for (size_t k = 0; k < (t->n_tranches ? t->n_tranches : 1); k++) {
		const struct ft_tranche *part = t->n_tranches ? &t->tranche[k] : &all;
		int m = (int)part->month, idle = (int)(t->burn_in_s / 3600 / 730);

		if (d->rent_usd_per_gpu_hour > 0)
			rent(l, d, m, part->frac);
		else
			buy(l, d, m, part->frac);
		pay_evenly(l, FT_ACCOUNT_LICENCES, m,
			   part->frac * d->gpus * t->licences_usd_per_gpu_year);
		for (int h = m + idle + 1; h <= l->months; h++)
			l->hours[h] += part->frac * d->gpus * 730;
	}
	pay_evenly(l, FT_ACCOUNT_STAFF, 0, t->staff_usd_per_year);
}

/* All that is paid from account `first` to `last`, discounted at i a year. */
static double paid(const struct ledger *l, int first, int last, double i)
{
	double usd = 0;

	for (int a = first; a <= last; a++)
		for (int m = 0; m <= l->months; m++)
			usd += (l->once[a][m] + l->even[a][m]) * pow(1 + i, -m / 12.);
	return usd;
}

static double worked(const struct ledger *l, double i)
{
	double hours = 0;

	for (int m = 0; m <= l->months; m++)
		hours += l->hours[m] * pow(1 + i, -m / 12.);
	return hours;
}

static void near(const char *what, int deal, double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * (fabs(want) + 1)))
		fail_msg("deal %d: %s is %.12g, by the ledger %.12g", deal, what, got,
			 want);
}

/* The level payment a year that pays a dollar back. */
static double annuity(double i, double years)
{
	return i > 0 ? i * pow(1 + i, years) / (pow(1 + i, years) - 1) : 1 / years;
}

static double hour_of(const struct ft_deal *d)
{
	struct ledger l;
	double years = d->terms.horizon_years, i = d->terms.cost_of_capital_frac;

	keep(&l, d);
	return (paid(&l, 0, FT_ACCOUNT_PREPAYMENT, i) * annuity(i, years) * years +
		paid(&l, FT_ACCOUNT_RENT, FT_ACCOUNTS - 1, 0)) /
	       worked(&l, 0);
}

static void readings_are_those_of_the_ledger(void **state)
{
	uint64_t seed = 20261123;

	(void)state;
	for (int k = 0; k < DEALS; k++) {
		struct ft_deal d = a_deal(&seed), bare = d;
		double years = d.terms.horizon_years, i = d.terms.cost_of_capital_frac;
		double bought, all, loan = annuity(i / 12, 12 * years) * 12 * years;
		struct ft_readings r = ft_flows_read(&d);
		struct ledger l;
		struct ft_flows f;

		keep(&l, &d);
		all = paid(&l, 0, FT_ACCOUNTS - 1, 0);
		bought = paid(&l, 0, FT_ACCOUNT_DUTY, 0) +
			 paid(&l, FT_ACCOUNT_PREPAYMENT, FT_ACCOUNT_PREPAYMENT, 0);
		near("the hour", k, r.annuity, hour_of(&d));
		near("npv", k, r.npv_usd, paid(&l, 0, FT_ACCOUNTS - 1, i));
		near("levelised", k, r.levelised, r.npv_usd / worked(&l, i));
		near("straight line", k, r.straight_line, all / worked(&l, 0));
		near("warehouse", k, r.warehouse,
		     (all + bought * (loan - 1)) / worked(&l, 0));
		bare.terms.residual_frac = 0;
		bare.terms.n_residuals = 0;
		bare.maintenance_frac = bare.terms.insurance_frac = 0;
		bare.terms.staff_usd_per_year = 0;
		bare.terms.licences_usd_per_gpu_year = 0;
		near("semianalysis", k, r.semianalysis, hour_of(&bare));
		ft_flows_of(&d, &f);
		for (int a = 0; a < FT_ACCOUNTS; a++) {
			double usd = 0;

			for (size_t n = 0; n < f.n; n++)
				usd += (int)f.flow[n].account == a ? f.flow[n].usd : 0;
			near(ft_account_name((enum ft_account)a), k, usd,
			     paid(&l, a, a, 0));
		}
	}
}

/* The first month by whose end the rent that is saved has paid for all but the resale. */
static int pays_back_in(const struct ledger *l, double usd_per_hour)
{
	double left = 0;
	int owing = 0; /* the last month in which it does */

	for (int m = 0; m <= l->months; m++) {
		left += usd_per_hour * l->hours[m];
		for (int a = 0; a < FT_ACCOUNTS; a++)
			left -= l->even[a][m] +
				(a == FT_ACCOUNT_RESALE ? 0 : l->once[a][m]);
		if (left < 0)
			owing = m;
	}
	return owing < l->months ? owing + 1 : 0;
}

static void letting_is_worth_what_the_ledger_says(void **state)
{
	uint64_t seed = 4711;
	int returns = 0, never = 0, pay_back = 0;

	(void)state;
	for (int k = 0; k < DEALS; k++) {
		struct ft_deal d = a_deal(&seed);
		struct ft_readings r = ft_flows_read(&d);
		double usd = d.terms.against_usd_per_gpu_hour;
		double used = usd * d.terms.utilization_frac;
		struct ledger l;

		if (!(usd > 0) || d.rent_usd_per_gpu_hour > 0) {
			assert_true(!r.rent && !r.break_even_months && !r.irr_frac);
			continue;
		}
		keep(&l, &d);
		assert_true(r.rent == usd);
		assert_int_equal(r.break_even_months, pays_back_in(&l, used));
		never += r.break_even_months == 0;
		pay_back += r.break_even_months > 0;
		if (isnan(r.irr_frac))
			continue;
		returns++;
		assert_true(fabs(used * worked(&l, r.irr_frac) -
				 paid(&l, 0, FT_ACCOUNTS - 1, r.irr_frac)) <=
			    1e-6 * paid(&l, 0, FT_ACCOUNT_DUTY, r.irr_frac) + 0.01);
	}
	assert_true(returns > 50 && never > 20 && pay_back > 20);
}

/* ---- the lines that finance gets ------------------------------------------------------ */

enum {
	FIELDS = 23,
	BILLED = 0,
	FROM = 12,
	CHARGE = 7,
	ABOUT = 9,
	EFFECTIVE = 14,
	PIECES = 17,
	UNIT = 18,
	SERVICE = 22
};

/* Fields between commas that are not in quotes. */
static void cut(char *line, char *field[FIELDS])
{
	bool quoted = false;
	int n = 0;

	field[n++] = line;
	for (char *p = line; *p; p++) {
		quoted ^= *p == '"';
		if ((*p == ',' && !quoted) || *p == '\n') {
			if (*p == ',' && n < FIELDS)
				field[n++] = p + 1;
			*p = '\0';
		}
	}
	assert_int_equal(n, FIELDS);
}

static int account_of(const char *name)
{
	for (int a = 0; a < FT_ACCOUNTS; a++)
		if (!strcmp(name, ft_account_name((enum ft_account)a)))
			return a;
	fail_msg("there is no account %s", name);
	return -1;
}

static int month_of(const char *instant, const char *start)
{
	return 12 * (atoi(instant) - atoi(start)) + atoi(instant + 5) - atoi(start + 5);
}

/* Sums of the lines by account and month; what each field says of its line. */
static void add_line(char *field[FIELDS], const char *start, struct ledger *billed,
		     double used[FT_ACCOUNTS])
{
	int a = account_of(field[SERVICE]), m = month_of(field[FROM], start);
	double usd = atof(field[BILLED]);
	bool tax = !strcmp(field[CHARGE], "Tax");
	char about[128];

	assert_in_range(m, 0, billed->months - 1);
	/* a month begins where the one before ends */
	assert_int_equal(month_of(field[FROM - 1], start), m + 1);
	assert_string_equal(field[5], field[FROM - 1]);
	assert_string_equal(field[6], field[FROM]);
	assert_string_equal(field[13], field[BILLED]);
	assert_string_equal(field[16], field[BILLED]);
	assert_string_equal(field[PIECES], tax ? "" : "1");
	assert_string_equal(field[UNIT], tax ? "" : "Month");
	assert_true(tax ? a == FT_ACCOUNT_TAX || a == FT_ACCOUNT_DUTY : true);
	assert_string_equal(field[10], a >= FT_ACCOUNT_RENT || usd == 0 ? "Recurring" :
									  "One-Time");
	assert_true(usd != 0 || !strcmp(field[CHARGE], "Usage"));
	snprintf(about, sizeof(about), "\"%s%s\"", field[SERVICE],
		 usd == 0 ? ", its share of the month" : "");
	assert_string_equal(field[ABOUT], about);
	billed->even[a][m] += usd;
	used[a] += atof(field[EFFECTIVE]);
}

static void every_line_is_in_the_ledger(void **state)
{
	struct ft_prices book = { .date = "2026-03" };
	uint64_t seed = 99;

	(void)state;
	for (int k = 0; k < 40; k++) {
		struct ft_deal d = a_deal(&seed);
		const char *start = k % 2 ? "2027-11" : book.date;
		double used[FT_ACCOUNTS] = { 0 };
		struct ledger l, billed = { 0 };
		FILE *out = tmpfile();
		char line[1024], *field[FIELDS];

		if (k % 2)
			strcpy(d.terms.start, start);
		keep(&l, &d);
		billed.months = l.months;
		ft_flows_write(out, &d, &book, "a \"name\", quoted");
		rewind(out);
		assert_non_null(fgets(line, sizeof(line), out));
		while (fgets(line, sizeof(line), out)) {
			cut(line, field);
			add_line(field, start, &billed, used);
		}
		fclose(out);
		for (int a = 0; a < FT_ACCOUNTS; a++) {
			for (int m = 0; m < l.months; m++) {
				int paid_at = a == FT_ACCOUNT_RESALE ? m + 1 : m;
				double usd = l.once[a][paid_at] + l.even[a][m + 1];

				/* a cent for each line of the month */
				assert_true(fabs(billed.even[a][m] - usd) < 0.04);
			}
			assert_true(fabs(used[a] - paid(&l, a, a, 0)) < 0.02 * MONTHS);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_are_those_of_the_ledger),
		cmocka_unit_test(letting_is_worth_what_the_ledger_says),
		cmocka_unit_test(every_line_is_in_the_ledger),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
