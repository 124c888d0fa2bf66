/* cost/terms.c - the `cost` map of a scenario */
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/reader.h"
#include "foretoken/cost.h"

/* A share that must lie in (0, 1]. */
static double read_share(struct reader *r, const char *key, double fallback)
{
	double share = read_quantity(r, key, DIM_FRAC, fallback);

	if (!r->failed && !(share > 0 && share <= 1))
		reader_fail(r, key, "should be above 0 and at most 1");
	return share;
}

static double read_goodput(struct reader *r)
{
	const struct node *n = read_node(r, "goodput");

	if (!n || (n->kind == NODE_SCALAR && !strcmp(n->text, "auto")))
		return 0;
	return read_share(r, "goodput", 1);
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

/* Read without a mistake, and still out of the range that makes sense. */
static void check_ranges(struct reader *r, const struct ft_cost_terms *terms)
{
	if (!r->failed &&
	    !(terms->horizon_years >= 0.01 && terms->horizon_years <= 100))
		reader_fail(r, "horizon", "should be between 4 d and 100 y");
	if (!r->failed && terms->residual_frac >= 1)
		reader_fail(
			r, "residual_frac",
			"should be below 1: a cluster sold for its full price would cost nothing");
	if (!r->failed && terms->cost_of_capital_frac > 1)
		reader_fail(r, "cost_of_capital_frac", "should be at most 1");
	if (!r->failed && !(terms->pue >= 1 && terms->pue < 10))
		reader_fail(r, "pue", "should be at least 1");
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
	terms->residual_frac = read_quantity(&r, "residual_frac", DIM_FRAC, 0.1);
	terms->electricity_usd_per_kwh =
		read_node(&r, "electricity") ?
			read_quantity(&r, "electricity", DIM_USD_PER_KWH, 0) :
			-1;
	terms->pue = read_quantity(&r, "pue", DIM_NONE, 1.25);
	terms->utilization_frac = read_share(&r, "utilization_frac", 0.9);
	terms->goodput = read_goodput(&r);
	check_ranges(&r, terms);
	return reader_close(&r);
}
