/* cost/terms.c - the `cost` map of a scenario */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/cost.h"

/* The ends of a horizon, as docs/limits.md has them. */
enum { HORIZON_LEAST_DAYS = 4, HORIZON_MOST_YEARS = 100 };

static const char *const recovery_names[FT_RECOVERIES] = {
	[FT_RECOVERY_HOT] = "hot",
	[FT_RECOVERY_COLD] = "cold",
	[FT_RECOVERY_FAULT_TOLERANT] = "fault_tolerant",
};

/* A share that must lie in (0, 1]. */
static double read_share(struct reader *r, const char *key, double fallback)
{
	double share = read_quantity(r, key, DIM_FRAC, fallback);

	if (!r->failed && !(share > 0 && share <= 1))
		reader_fail(r, key, "should be above 0 and at most 1");
	return share;
}

/* A quantity above 0, or 0 where it is not given; 0 itself is refused. */
static double read_some(struct reader *r, const char *key, enum dimension dim)
{
	double x = read_quantity(r, key, dim, 0);

	if (!r->failed && read_has(r, key) && !(x > 0))
		reader_fail(r, key, "should be above 0");
	return x;
}

/* A figure that is the book's unless it is given; 0 only where nothing may be. */
static double read_own(struct reader *r, const char *key, enum dimension dim)
{
	return read_has(r, key) ? read_quantity(r, key, dim, 0) : -1;
}

/* Keys that the way of recovering leaves without effect. */
static void check_recovery(struct reader *r, const struct ft_failure_terms *f)
{
	bool whole = f->recovery == FT_RECOVERY_FAULT_TOLERANT;

	if (!whole && read_has(r, "failover"))
		reader_fail(r, "failover",
			    "has an effect only under 'recovery: fault_tolerant'");
	for (int i = 0; whole && i < 4; i++) {
		static const char *const keys[] = { "checkpoint", "interval",
						    "storage_bandwidth", "restart" };

		if (read_has(r, keys[i]))
			reader_fail(r, keys[i],
				    "has no effect under 'recovery: fault_tolerant': "
				    "the job does not go back to a checkpoint");
	}
	if (f->recovery == FT_RECOVERY_COLD && read_has(r, "spares"))
		reader_fail(r, "spares", "has no effect under 'recovery: cold'");
	if (!whole && read_has(r, "checkpoint") && read_has(r, "storage_bandwidth"))
		reader_fail(r, "checkpoint",
			    "follows from storage_bandwidth; give one of the two");
	if (!r->failed && !(f->straggler_frac < 1))
		reader_fail(r, "straggler_frac", "should be below 1");
}

/* Refuses times of events that cannot come, or that nothing waits for. */
static void check_waits(struct reader *r, const struct ft_failure_terms *f)
{
	if (f->recovery != FT_RECOVERY_COLD && f->spares && read_has(r, "repair"))
		reader_fail(r, "repair",
			    "has an effect only under 'recovery: cold' and 'spares: "
			    "false': else a spare node is there meanwhile");
	if (!read_has(r, "flaps_per_1000_node_days") && read_has(r, "flap"))
		reader_fail(r, "flap",
			    "has an effect only with flaps_per_1000_node_days");
}

static void read_failures(const struct node *map, struct ft_failure_terms *f,
			  struct ft_error *err, bool *ok)
{
	struct reader r = reader_open(map, err);

	f->recovery = (enum ft_recovery)read_choice(&r, "recovery", recovery_names,
						    FT_RECOVERIES, FT_RECOVERY_HOT);
	f->failures_per_1000_node_days =
		read_own(&r, "failures_per_1000_node_days", DIM_NONE);
	if (!r.failed && read_has(&r, "failures_per_1000_node_days") &&
	    f->failures_per_1000_node_days < 0)
		reader_fail(&r, "failures_per_1000_node_days",
			    "should not be negative");
	f->checkpoint_s = read_own(&r, "checkpoint", DIM_S);
	f->restart_s = read_own(&r, "restart", DIM_S);
	f->storage_bytes_per_s = read_some(&r, "storage_bandwidth", DIM_BYTES_PER_S);
	f->interval_s = read_some(&r, "interval", DIM_S);
	f->repair_s = read_own(&r, "repair", DIM_S);
	f->failover_s = read_own(&r, "failover", DIM_S);
	f->spares = read_bool(&r, "spares", f->spares);
	f->flaps_per_1000_node_days =
		read_quantity(&r, "flaps_per_1000_node_days", DIM_NONE, 0);
	f->flap_s = read_own(&r, "flap", DIM_S);
	f->straggler_frac = read_quantity(&r, "straggler_frac", DIM_FRAC, 0);
	check_recovery(&r, f);
	check_waits(&r, f);
	*ok = reader_close(&r);
}

/* auto, a share, or a map of how the job fails and recovers. */
static bool read_goodput(struct reader *r, struct ft_cost_terms *terms)
{
	const struct node *n = read_node(r, "goodput");
	bool ok = true;

	terms->failures = (struct ft_failure_terms){
		.failures_per_1000_node_days = -1,
		.checkpoint_s = -1,
		.restart_s = -1,
		.repair_s = -1,
		.failover_s = -1,
		.flap_s = -1,
		.spares = true,
	};
	if (n && n->kind == NODE_MAP)
		read_failures(n, &terms->failures, r->err, &ok);
	else if (n && (n->kind != NODE_SCALAR || strcmp(n->text, "auto") != 0))
		terms->goodput = read_share(r, "goodput", 1);
	r->failed |= !ok;
	return ok;
}

static void read_residuals(struct reader *r, struct ft_cost_terms *terms)
{
	const struct node *list = read_node(r, "residual_by_year");
	double last = 1;

	terms->residual_frac = read_quantity(r, "residual_frac", DIM_FRAC, 0.1);
	if (!list)
		return;
	if (read_has(r, "residual_frac"))
		reader_fail(r, "residual_frac",
			    "is said by residual_by_year; give one of the two");
	if (list->kind != NODE_LIST || !list->n || list->n > FT_RESIDUALS)
		reader_fail(r, "residual_by_year",
			    "should be a list of 1 to %d shares, as [0.6, 0.35, 0.2]",
			    (int)FT_RESIDUALS);
	for (size_t i = 0; !r->failed && i < list->n; i++) {
		double frac;
		char why[256];

		if (list->item[i]->kind != NODE_SCALAR ||
		    !quantity_parse(list->item[i]->text, DIM_FRAC, &frac, why,
				    sizeof(why)) ||
		    !(frac >= 0 && frac <= last))
			reader_fail(r, "residual_by_year",
				    "should hold shares from 0 to 1 that do not grow");
		else
			terms->residual_by_year[terms->n_residuals++] = last = frac;
	}
}

/* [{month: 3, share: 50 %}]: part of the cluster arrives at the start of a month. */
static bool read_tranches(struct reader *r, struct ft_cost_terms *terms)
{
	const struct node *list = read_node(r, "tranches");
	double sum = 0;

	if (!list)
		return true;
	if (list->kind != NODE_LIST || !list->n || list->n > FT_TRANCHES)
		return reader_fail(
			r, "tranches",
			"should be a list of 1 to %d maps, as [{month: 0, share: 40 %%}, "
			"{month: 3, share: 60 %%}]",
			(int)FT_TRANCHES);
	for (size_t i = 0; !r->failed && i < list->n; i++) {
		struct reader t = reader_open(list->item[i], r->err);
		struct ft_tranche *to = &terms->tranche[i];

		to->month =
			(double)read_int(&t, "month", 0, 12 * HORIZON_MOST_YEARS, 0);
		read_need(&t, "share");
		to->frac = read_quantity(&t, "share", DIM_FRAC, 0);
		sum += to->frac;
		if (!t.failed && to->month >= 12 * terms->horizon_years)
			reader_fail(&t, "month", "lies after the horizon");
		r->failed |= !reader_close(&t);
	}
	terms->n_tranches = list->n;
	if (!r->failed && fabs(sum - 1) > 1e-9)
		return reader_fail(r, "tranches",
				   "have shares that add up to %.4g, not 1", sum);
	return !r->failed;
}

/* When things are bought and what is paid beside them. */
static void read_finance(struct reader *r, struct ft_cost_terms *terms)
{
	const char *start = read_text(r, "start", "");
	int year, month;

	if (*start && (strlen(start) != 7 || !text_month(start, &year, &month)))
		reader_fail(r, "start", "should be a month, as 2027-01");
	snprintf(terms->start, sizeof(terms->start), "%.7s", start);
	read_residuals(r, terms);
	read_tranches(r, terms);
	terms->burn_in_s = read_quantity(r, "burn_in", DIM_S, 0);
	terms->tax_frac = read_quantity(r, "tax_frac", DIM_FRAC, 0);
	terms->duty_frac = read_quantity(r, "duty_frac", DIM_FRAC, 0);
	terms->insurance_frac = read_quantity(r, "insurance_frac", DIM_FRAC, 0);
	terms->staff_usd_per_year = read_quantity(r, "staff", DIM_USD_PER_YEAR, 0);
	terms->licences_usd_per_gpu_year =
		read_quantity(r, "licences_per_gpu", DIM_USD_PER_YEAR, 0);
	terms->prepaid_frac = read_quantity(r, "prepaid_frac", DIM_FRAC, 0);
	terms->take_or_pay = read_bool(r, "take_or_pay", true);
	terms->against_usd_per_gpu_hour = read_some(r, "against", DIM_USD_PER_HOUR);
}

static void read_book(struct reader *r, struct ft_cost_terms *terms)
{
	bool rents = terms->usd_per_gpu_hour > 0;
	const char *book =
		read_text(r, "prices", rents ? FT_DEFAULT_RENTS : FT_DEFAULT_PRICES);

	if (strlen(book) >= sizeof(terms->prices))
		reader_fail(r, "prices", "is too long a path");
	snprintf(terms->prices, sizeof(terms->prices), "%s", book);
}

/* It must leave hours to train in. */
static void check_burn_in(struct reader *r, const struct ft_cost_terms *terms)
{
	if (!r->failed && terms->burn_in_s > 86400 * 365 * terms->horizon_years / 2)
		reader_fail(r, "burn_in", "takes more than half of the horizon");
	for (size_t i = 0; !r->failed && i < terms->n_tranches; i++)
		if (terms->tranche[i].month + terms->burn_in_s / (365 / 12.0 * 86400) >=
		    12 * terms->horizon_years)
			reader_fail(r, "burn_in",
				    "of the last tranche ends after the horizon");
}

/* Read without a mistake, and still out of the range that makes sense. */
static void check_ranges(struct reader *r, const struct ft_cost_terms *terms)
{
	const struct {
		const char *key;
		const double *at;
	} shares[] = {
		{ "cost_of_capital_frac", &terms->cost_of_capital_frac },
		{ "tax_frac", &terms->tax_frac },
		{ "duty_frac", &terms->duty_frac },
		{ "insurance_frac", &terms->insurance_frac },
		{ "prepaid_frac", &terms->prepaid_frac },
	};

	if (!r->failed && !(terms->horizon_years >= HORIZON_LEAST_DAYS / 365. &&
			    terms->horizon_years <= HORIZON_MOST_YEARS))
		reader_fail(r, "horizon", "should be between %d d and %d y",
			    (int)HORIZON_LEAST_DAYS, (int)HORIZON_MOST_YEARS);
	if (!r->failed && terms->residual_frac >= 1)
		reader_fail(
			r, "residual_frac",
			"should be below 1: a cluster sold for its full price would cost nothing");
	check_burn_in(r, terms);
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		if (!r->failed && *shares[i].at > 1)
			reader_fail(r, shares[i].key, "should be at most 1");
	if (read_has(r, "pue") && !r->failed && !(terms->pue >= 1 && terms->pue <= 10))
		reader_fail(r, "pue", "%g is not between 1 and 10", terms->pue);
}

bool ft_cost_terms_load(const struct node *node, struct ft_cost_terms *terms,
			struct ft_error *err)
{
	PLAIN_NUMBERS;
	const double year_s = 365 * 86400.0;
	struct reader r = reader_open(node, err);

	*terms = (struct ft_cost_terms){ 0 };
	terms->usd_per_gpu_hour_mark = reader_mark(&r, "usd_per_gpu_hour");
	if (read_has(&r, "usd_per_gpu_hour")) {
		terms->usd_per_gpu_hour =
			read_quantity(&r, "usd_per_gpu_hour", DIM_USD_PER_HOUR, 0);
		if (!r.failed && !(terms->usd_per_gpu_hour > 0))
			reader_fail(&r, "usd_per_gpu_hour", "should be above 0");
	}
	read_book(&r, terms);
	terms->price_of = read_node(&r, "price_of");
	if (terms->price_of && terms->price_of->kind != NODE_MAP)
		reader_fail(&r, "price_of", "should be a map, as {ITEM: 31000 USD}");
	terms->horizon_years = read_quantity(&r, "horizon", DIM_S, 4 * year_s) / year_s;
	terms->cost_of_capital_frac =
		read_quantity(&r, "cost_of_capital_frac", DIM_FRAC, 0.08);
	read_finance(&r, terms);
	if (terms->n_residuals && (double)terms->n_residuals < terms->horizon_years)
		reader_fail(
			&r, "residual_by_year",
			"has no share for the last year of the horizon; give one for "
			"each of its years, 0 where nothing is left");
	terms->electricity_usd_per_kwh = read_own(&r, "electricity", DIM_USD_PER_KWH);
	terms->pue = read_own(&r, "pue", DIM_NONE);
	terms->utilization_frac = read_share(&r, "utilization_frac", 0.9);
	read_goodput(&r, terms);
	check_ranges(&r, terms);
	return reader_close(&r);
}
