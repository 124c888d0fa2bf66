/* cost/flows.c - what is paid for a cluster, month by month, and what that comes to */
#include <math.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

#include "base/arena.h"
#include "cost/finance.h"
#include "foretoken/cost.h"

enum { HOURS = 8760 }; /* of a year */

const char *ft_account_name(enum ft_account account)
{
	static const char *const names[FT_ACCOUNTS] = {
		[FT_ACCOUNT_SERVERS] = "servers",
		[FT_ACCOUNT_NETWORK] = "network",
		[FT_ACCOUNT_OTHER] = "storage and management",
		[FT_ACCOUNT_TAX] = "tax",
		[FT_ACCOUNT_DUTY] = "duty",
		[FT_ACCOUNT_RESALE] = "residual value",
		[FT_ACCOUNT_PREPAYMENT] = "prepaid rent",
		[FT_ACCOUNT_RENT] = "rent",
		[FT_ACCOUNT_COLOCATION] = "colocation",
		[FT_ACCOUNT_ELECTRICITY] = "electricity",
		[FT_ACCOUNT_MAINTENANCE] = "maintenance",
		[FT_ACCOUNT_STAFF] = "staff",
		[FT_ACCOUNT_LICENCES] = "licences",
		[FT_ACCOUNT_INSURANCE] = "insurance",
	};

	return names[account];
}

/* ---- from the deal to its flows -------------------------------------------------- */

static void put(struct ft_flows *f, enum ft_account account, double month,
		double months, double usd)
{
	if (usd == 0 || f->n == FT_FLOWS_MOST)
		return;
	f->flow[f->n++] = (struct ft_flow){ account, month, months, usd };
}

static double capital_usd(const struct ft_deal *d)
{
	double usd = 0;

	for (int c = 0; c < FT_CAPITALS; c++)
		usd += d->capital_usd[c];
	return usd;
}

/* What is left of a purchase when the horizon ends, it being so many years old. */
static double residual_frac(const struct ft_cost_terms *t, double years)
{
	size_t last = t->n_residuals;
	double whole, before, after;
	size_t k;

	if (!last)
		return t->residual_frac;
	if (!(years > 0))
		return 1;
	if (years >= (double)last)
		return t->residual_by_year[last - 1];
	whole = floor(years);
	k = (size_t)whole;
	before = k ? t->residual_by_year[k - 1] : 1;
	after = t->residual_by_year[k];
	return before + (after - before) * (years - whole);
}

/* A part of the cluster that arrives at the start of a month. */
static void tranche(const struct ft_deal *d, struct ft_flows *f, double month,
		    double frac)
{
	const struct ft_cost_terms *t = &d->terms;
	double left = f->months - month, years = left / 12;
	double usd = frac * capital_usd(d);
	double hours_w = frac * years * HOURS / 1000;

	put(f, FT_ACCOUNT_SERVERS, month, 0, frac * d->capital_usd[FT_CAPITAL_SERVERS]);
	put(f, FT_ACCOUNT_NETWORK, month, 0, frac * d->capital_usd[FT_CAPITAL_NETWORK]);
	put(f, FT_ACCOUNT_OTHER, month, 0, frac * d->capital_usd[FT_CAPITAL_OTHER]);
	put(f, FT_ACCOUNT_TAX, month, 0, usd * t->tax_frac);
	put(f, FT_ACCOUNT_DUTY, month, 0, usd * t->duty_frac);
	put(f, FT_ACCOUNT_RESALE, f->months, 0, -usd * residual_frac(t, years));
	put(f, FT_ACCOUNT_COLOCATION, month, left,
	    frac * d->provisioned_w / 1000 * d->colocation_usd_per_kw_month * left);
	put(f, FT_ACCOUNT_ELECTRICITY, month, left,
	    ft_deal_average_w(d) * t->pue * hours_w * d->electricity_usd_per_kwh);
	put(f, FT_ACCOUNT_MAINTENANCE, month, left, usd * d->maintenance_frac * years);
	put(f, FT_ACCOUNT_INSURANCE, month, left, usd * t->insurance_frac * years);
}

/* Hours in which GPUs could work: after arrival and burn-in, to the end. */
static void add_hours(const struct ft_deal *d, struct ft_flows *f, double month,
		      double frac)
{
	double from = month + d->terms.burn_in_s / 3600 / (HOURS / 12.0);
	double months = fmax(0, f->months - from);
	double hours = frac * d->gpus * months * HOURS / 12;

	if (months > 0)
		f->hours[f->n_hours++] =
			(struct ft_flow){ FT_ACCOUNT_RENT, from, months, hours };
	f->gpu_hours += hours;
}

static void rented(const struct ft_deal *d, struct ft_flows *f, double month,
		   double frac)
{
	const struct ft_cost_terms *t = &d->terms;
	double left = f->months - month;
	/* on demand, hours that are not used are not paid, but for those paid ahead */
	double owed =
		fmax(0, (t->take_or_pay ? 1 : t->utilization_frac) - t->prepaid_frac);
	double usd = frac * d->gpus * d->rent_usd_per_gpu_hour * left * HOURS / 12;

	put(f, FT_ACCOUNT_PREPAYMENT, month, 0, usd * t->prepaid_frac);
	put(f, FT_ACCOUNT_RENT, month, left, usd * owed);
}

/* Software by the GPU, paid from its arrival, owned or rented. */
static void licences(const struct ft_deal *d, struct ft_flows *f, double month,
		     double frac)
{
	double left = f->months - month;

	put(f, FT_ACCOUNT_LICENCES, month, left,
	    frac * d->gpus * d->terms.licences_usd_per_gpu_year * left / 12);
}

void ft_flows_of(const struct ft_deal *d, struct ft_flows *f)
{
	static const struct ft_tranche all = { 0, 1 };
	const struct ft_cost_terms *t = &d->terms;
	size_t n = t->n_tranches ? t->n_tranches : 1;

	f->n = f->n_hours = 0;
	f->gpu_hours = 0;
	f->months = 12 * t->horizon_years;
	for (size_t i = 0; i < n; i++) {
		const struct ft_tranche *part = t->n_tranches ? &t->tranche[i] : &all;

		add_hours(d, f, part->month, part->frac);
		licences(d, f, part->month, part->frac);
		if (d->rent_usd_per_gpu_hour > 0)
			rented(d, f, part->month, part->frac);
		else
			tranche(d, f, part->month, part->frac);
	}
	put(f, FT_ACCOUNT_STAFF, 0, f->months,
	    t->staff_usd_per_year * t->horizon_years);
}

/* ---- readings ---------------------------------------------------------------------- */

static bool is_capital(const struct ft_flow *f)
{
	return f->account < FT_ACCOUNT_RENT;
}

/* What a flow is worth at the start; even payments come at the ends of their months. */
static double present_usd(const struct ft_flow *f, double i)
{
	double monthly = expm1(log1p(i) / 12);

	if (f->months == 0 || i == 0)
		return f->usd * finance_worth(i, f->month);
	return f->usd / f->months * finance_worth(i, f->month) *
	       -expm1(-f->months / 12 * log1p(i)) / monthly;
}

/* Dollars a year: capital as an annuity over the horizon, running costs as they are. */
static void yearly(const struct ft_flows *f, double i, double *capital, double *running)
{
	double years = f->months / 12;

	*capital = *running = 0;
	for (size_t k = 0; k < f->n; k++)
		if (is_capital(&f->flow[k]))
			*capital += f->flow[k].usd * finance_worth(i, f->flow[k].month);
		else
			*running += f->flow[k].usd / years;
	*capital *= finance_recovery(i, years);
}

double ft_deal_usd_per_gpu_hour(const struct ft_deal *d)
{
	struct ft_flows f;
	double capital, running;

	ft_flows_of(d, &f);
	yearly(&f, d->terms.cost_of_capital_frac, &capital, &running);
	return (capital + running) * d->terms.horizon_years / f.gpu_hours;
}

static double total_usd(const struct ft_flows *f, double i)
{
	double usd = 0;

	for (size_t k = 0; k < f->n; k++)
		usd += present_usd(&f->flow[k], i);
	return usd;
}

/* The hours, discounted like what is paid for them. */
static double present_hours(const struct ft_flows *f, double i)
{
	double hours = 0;

	for (size_t k = 0; k < f->n_hours; k++)
		hours += present_usd(&f->hours[k], i);
	return hours;
}

/* Letting the GPU-hours that are used at a rent, less all that is paid. */
struct letting {
	const struct ft_flows *flows;
	double usd_per_hour; /* of all hours, used or not */
};

static double letting_usd(double i, void *context)
{
	const struct letting *l = context;

	return l->usd_per_hour * present_hours(l->flows, i) - total_usd(l->flows, i);
}

/* The interest at which letting is worth nothing; NaN when there is none below 1,000 %. */
static double internal_rate(struct letting *l)
{
	gsl_function f = { letting_usd, l };
	gsl_root_fsolver *s;
	double low = -0.95, high = 10;

	if (!(letting_usd(low, l) > 0) || !(letting_usd(high, l) < 0))
		return NAN;
	s = allocated(gsl_root_fsolver_alloc(gsl_root_fsolver_brent));
	gsl_root_fsolver_set(s, &f, low, high);
	for (int k = 0; k < 200 && high - low > 1e-10; k++) {
		gsl_root_fsolver_iterate(s);
		low = gsl_root_fsolver_x_lower(s);
		high = gsl_root_fsolver_x_upper(s);
	}
	low = gsl_root_fsolver_root(s);
	gsl_root_fsolver_free(s);
	return low;
}

/* What of a flow has come by a month. */
static double come_by(const struct ft_flow *f, double month)
{
	if (month < f->month)
		return 0;
	return f->usd * (f->months > 0 ? fmin(1, (month - f->month) / f->months) : 1);
}

/* Months until the rent that is saved has paid for all that was paid, for good: later tranches have
 * to be paid for, too. Residual value left out; 0: never. */
static double break_even_months(const struct ft_flows *f, double usd_per_hour)
{
	double since = 0;

	for (double month = 1; month < f->months + 1; month++) {
		double end = fmin(month, f->months),
		       left = 0; /* of the last month a part */

		for (size_t k = 0; k < f->n; k++)
			if (f->flow[k].account != FT_ACCOUNT_RESALE)
				left -= come_by(&f->flow[k], end);
		for (size_t k = 0; k < f->n_hours; k++)
			left += usd_per_hour * come_by(&f->hours[k], end);
		since = left < 0 ? 0 : since > 0 ? since : month;
	}
	return since;
}

/* The utilization at which an hour costs what the rent of its used share is; electricity is
 * less where less is used. Above 1: none. */
static double break_even_utilization(const struct ft_deal *d)
{
	struct ft_deal at = *d;
	double used = d->terms.utilization_frac;

	for (int k = 0; k < 60; k++) { /* its cost moves by less than it does */
		at.terms.utilization_frac = fmin(1, used);
		used = ft_deal_usd_per_gpu_hour(&at) /
		       d->terms.against_usd_per_gpu_hour;
	}
	return used;
}

static void against_rent(const struct ft_deal *d, const struct ft_flows *f,
			 struct ft_readings *r)
{
	double rent = d->terms.against_usd_per_gpu_hour;
	struct letting l = { f, rent * d->terms.utilization_frac };

	if (!(rent > 0) || d->rent_usd_per_gpu_hour > 0)
		return;
	r->rent = rent;
	r->break_even_utilization_frac = break_even_utilization(d);
	r->break_even_months = break_even_months(f, l.usd_per_hour);
	r->irr_frac = internal_rate(&l);
}

static double without_residual(const struct ft_deal *d)
{
	struct ft_deal own = *d;

	own.terms.residual_frac = 0;
	own.terms.n_residuals = 0;
	own.maintenance_frac = own.terms.insurance_frac = 0;
	own.terms.staff_usd_per_year = own.terms.licences_usd_per_gpu_year = 0;
	return ft_deal_usd_per_gpu_hour(&own);
}

struct ft_readings ft_flows_read(const struct ft_deal *d)
{
	double i = d->terms.cost_of_capital_frac, years = d->terms.horizon_years;
	struct ft_readings r = { 0 };
	struct ft_flows f;
	double paid, bought = 0;

	ft_flows_of(d, &f);
	paid = total_usd(&f, 0);
	for (size_t k = 0; k < f.n; k++)
		if (is_capital(&f.flow[k]) && f.flow[k].account != FT_ACCOUNT_RESALE)
			bought += f.flow[k].usd;
	r.annuity = ft_deal_usd_per_gpu_hour(d);
	r.npv_usd = total_usd(&f, i);
	r.levelised = r.npv_usd / present_hours(&f, i);
	r.straight_line = paid / f.gpu_hours;
	r.warehouse = (paid + finance_interest_usd(bought, i, years)) / f.gpu_hours;
	r.semianalysis = without_residual(d);
	against_rent(d, &f, &r);
	return r;
}
