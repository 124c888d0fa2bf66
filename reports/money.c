/* reports/money.c - verdicts, fleets and finance as tables */
#include "reports/money.h"

#include <math.h>

#include "base/plain.h"
#include "reports/show.h"
#include "reports/table.h"

/* "12.3" with as many digits as it needs: four. */
static void put4(struct table *t, double v)
{
	table_put(t, "%.4g", v);
}

static void put_amount(struct table *t, double v)
{
	char text[SHOWN];

	table_put(t, "%s", shown_amount(v, text));
}

static void put_usd(struct table *t, double usd)
{
	char text[SHOWN];

	table_put(t, "%s", shown_text(FT_SHOW_USD, usd, text));
}

static void put_digits(struct table *t, double v)
{
	char text[SHOWN];

	table_put(t, "%s", shown_digits(v, text));
}

const char *money_beyond(const struct ft_fleet *f, char text[BEYOND])
{
	size_t n = 0;

	text[0] = '\0';
	for (int l = 0; l < FT_LIMITS; l++)
		if (f->beyond[l])
			n += (size_t)snprintf(text + n, BEYOND - n, "%s%s",
					      n ? ", " : "",
					      ft_limit_name((enum ft_limit)l));
	return text;
}

bool money_none_keeps(const struct ft_run_answer *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (ft_fleet_keeps(&a->fleet[i]))
			return false;
	return a->n > 1;
}

/* What each lacks, and what each goes beyond. */
static void say_limits(FILE *out, const struct ft_run_answer *a)
{
	char text[BEYOND];

	for (size_t i = 0; i < a->n; i++)
		if (a->fleet[i].none)
			fprintf(out, "%s: %s\n", a->fleet[i].question,
				a->fleet[i].none);
		else if (money_beyond(&a->fleet[i], text)[0])
			fprintf(out, "%s: beyond the %s\n", a->fleet[i].question, text);
	if (money_none_keeps(a))
		fputs(NONE_KEEPS "\n", out);
	if (a->left_out)
		fprintf(out, LEFT_OUT "\n", (long long)a->left_out);
}

void money_fleets(FILE *out, const struct ft_run_answer *a)
{
	struct table t;

	if (!a->n)
		return;
	t = TABLE_OPEN(out, "fleet", ">GPUs", ">T tokens", ">days P50", ">P90",
		       ">M USD P50", ">P90", ">MW", ">P90", ">MWh", ">failures");
	for (size_t i = 0; i < a->n; i++) {
		const struct ft_fleet *f = &a->fleet[i];

		table_row(&t);
		table_put(&t, "%s", f->question);
		if (f->none) {
			table_put(&t, "none");
			continue;
		}
		put_amount(&t, (double)f->gpus);
		table_put(&t, "%.3g", f->tokens * 1e-12);
		for (int k = 1; k < 3; k++)
			put_digits(&t, f->days[k]);
		for (int k = 1; k < 3; k++)
			put_digits(&t, f->usd[k] * 1e-6);
		put_digits(&t, f->megawatts);
		put_digits(&t, f->megawatts_high);
		put_digits(&t, f->energy_mwh);
		put_digits(&t, f->failures);
	}
	table_close(&t);
	say_limits(out, a);
	putc('\n', out);
}

/* ---- verdict -------------------------------------------------------------------------- */

static void why(FILE *out, const struct ft_answers *a, size_t i)
{
	const struct ft_verdict *v = a->verdict;
	struct table t;
	double all = 0;

	fprintf(out, "\nWhy %s costs another amount than %s, USD per million tokens:\n",
		a->label[i], a->label[0]);
	t = TABLE_OPEN(out, "part", ">difference");
	for (int p = 0; p < FT_COST_PARTS; p++) {
		table_row(&t);
		table_put(&t, "%s", ft_part_of_cost_name((enum ft_part_of_cost)p));
		table_put(&t, "%+.4f", v->part_usd[i][p]);
		all += v->part_usd[i][p];
	}
	table_row(&t);
	table_put(&t, "all");
	table_put(&t, "%+.4f", all);
	table_close(&t);
}

/* By how much each cause moves the second's dollars against the best's. */
static void causes(FILE *out, const struct ft_answers *a)
{
	const struct ft_verdict *v = a->verdict;
	struct table t;

	fprintf(out,
		"\nWhat moves USD per million tokens, one cause at a time at its P10 and "
		"P90:\n");
	t = TABLE_OPEN(out, "cause", ">first P10", ">P90", ">second P10", ">P90");
	for (size_t c = 0; c < v->odds.n_causes && c < 8; c++) {
		const struct ft_cause *x = &v->odds.cause[c];

		table_row(&t);
		table_put(&t, "%s", x->name);
		put4(&t, x->low[v->best]);
		put4(&t, x->high[v->best]);
		put4(&t, x->low[v->second]);
		put4(&t, x->high[v->second]);
	}
	table_close(&t);
	fprintf(out, "first: %s; second: %s\n", a->label[v->best], a->label[v->second]);
}

static void crossovers(FILE *out, const struct ft_answers *a)
{
	const struct ft_verdict *v = a->verdict;
	struct table t;

	if (v->likely_otherwise)
		fprintf(out, "\n%s " LIKELY_OTHERWISE "\n", a->label[v->second]);
	if (!v->n_crossovers)
		return;
	fprintf(out, "\n%s is as cheap as %s at:\n", a->label[v->second],
		a->label[v->best]);
	t = TABLE_OPEN(out, "one of", ">value", ">now", "");
	for (size_t k = 0; k < v->n_crossovers; k++) {
		table_row(&t);
		table_put(&t, "%s", v->crossover[k].what);
		put_amount(&t, v->crossover[k].value);
		put_amount(&t, v->crossover[k].now);
		table_put(&t, "%s", v->crossover[k].unit);
	}
	table_close(&t);
}

void money_verdict(FILE *out, const struct ft_answers *a)
{
	if (!a->verdict)
		return;
	for (size_t i = 1; i < a->n; i++)
		why(out, a, i);
	causes(out, a);
	crossovers(out, a);
}

/* ---- finance ---------------------------------------------------------------------------- */

static void against_rent(FILE *out, const struct ft_readings *r)
{
	if (!(r->rent > 0))
		return;
	fprintf(out, "\nAgainst a rent of %.4g USD per GPU-hour: ", r->rent);
	if (r->break_even_utilization_frac < 1)
		fprintf(out,
			"owning is cheaper when more than %.1f %% of the hours are used",
			100 * r->break_even_utilization_frac);
	else
		fputs("owning is not cheaper, however many hours are used", out);
	if (r->break_even_months > 0)
		fprintf(out, "; it is paid back in month %.0f", r->break_even_months);
	else
		fputs("; it is not paid back within the horizon", out);
	if (isfinite(r->irr_frac))
		fprintf(out, "; let at that rent it returns %.1f %% a year",
			100 * r->irr_frac);
	fputs(".\n", out);
}

void money_forms(const struct ft_readings *r, struct money_form form[MONEY_FORMS])
{
	form[0] =
		(struct money_form){ "annuity (the form of the answers)", r->annuity };
	form[1] = (struct money_form){ "levelised, month by month", r->levelised };
	form[2] = (struct money_form){ "straight line, no interest", r->straight_line };
	form[3] = (struct money_form){ "straight line and a loan's interest",
				       r->warehouse };
	form[4] = (struct money_form){ "annuity, no residual value, no upkeep",
				       r->semianalysis };
}

void ft_report_finance(FILE *out, const struct ft_scenario *s,
		       const struct ft_outcome *o)
{
	PLAIN_NUMBERS;
	const struct ft_deal d = ft_outcome_deal(s, o);
	const struct ft_readings r = ft_flows_read(&d);
	struct ft_flows f;
	struct table t = TABLE_OPEN(out, "an hour of a GPU, by form", ">USD");
	struct money_form form[MONEY_FORMS];

	money_forms(&r, form);
	for (size_t i = 0; i < MONEY_FORMS; i++) {
		table_row(&t);
		table_put(&t, "%s", form[i].name);
		table_put(&t, "%.4f", form[i].usd);
	}
	table_close(&t);
	putc('\n', out);
	ft_flows_of(&d, &f);
	t = TABLE_OPEN(out, "paid over the horizon", ">USD");
	for (int a = 0; a < FT_ACCOUNTS; a++) {
		double usd = 0;

		for (size_t i = 0; i < f.n; i++)
			usd += f.flow[i].account == (enum ft_account)a ? f.flow[i].usd :
									 0;
		if (usd == 0)
			continue;
		table_row(&t);
		table_put(&t, "%s", ft_account_name((enum ft_account)a));
		put_usd(&t, usd);
	}
	table_row(&t);
	table_put(&t, "net present value at %.3g %%",
		  100 * s->terms.cost_of_capital_frac);
	put_usd(&t, r.npv_usd);
	table_close(&t);
	against_rent(out, &r);
}
