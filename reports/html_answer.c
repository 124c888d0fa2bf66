/* reports/html_answer.c - the report's first screen: verdict, numbers, reasons, crossovers */
#include <math.h>

#include "base/arena.h"
#include "reports/html.h"
#include "reports/html_plots.h"
#include "reports/money.h"
#include "reports/show.h"

bool html_verdict(struct page *p)
{
	char text[FT_SENTENCE];

	html_text(p, ft_verdict_sentence(p->a->verdict, p->a->label, text));
	return true;
}

/* "0.4203" over "0.37 to 0.55". */
static void ranged(const struct page *p, enum ft_show show, double value, double low,
		   double high)
{
	char text[SHOWN];
	struct shown as = shown_as(show, value);

	fprintf(p->out, "<td>%s<small>", shown_number(&as, value, text));
	if (high > low) {
		fprintf(p->out, "%s to ", shown_number(&as, low, text));
		fprintf(p->out, "%s", shown_number(&as, high, text));
	}
	fputs("</small></td>", p->out);
}

/* A row of the table of five: its name with the unit of the first. */
static void name_row(const struct page *p, const char *name, enum ft_show show,
		     double value)
{
	struct shown as = shown_as(show, value);

	html_row(p, *as.unit ? arena_printf(p->mem, "%s, %s", name, as.unit) : name);
}

/* Of one GPU or of many: in three digits. What has no range (a PUE of one's own) shows none. */
static void millions(const struct page *p, double value, double low, double high)
{
	char a[SHOWN], b[SHOWN];

	fprintf(p->out, "<td>%s", shown_digits(value * 1e-6, a));
	if (low < high)
		fprintf(p->out, "<small>%s to %s</small>", shown_digits(low * 1e-6, a),
			shown_digits(high * 1e-6, b));
	fputs("</td>", p->out);
}

bool html_numbers(struct page *p)
{
	const struct ft_outcome *o = p->a->outcome;

	fputs("<div class=\"numbers\">", p->out);
	html_table(
		p,
		"Likely values (the modes; of the draws half lie above P50), P10 to P90 below",
		"of the cluster");
	html_row(p, "USD per million tokens");
	for (size_t i = 0; i < p->a->n; i++)
		ranged(p, FT_SHOW_USD_PER_MTOKEN, o[i].cost.usd_per_million_tokens,
		       o[i].cost.usd_per_million_tokens_low,
		       o[i].cost.usd_per_million_tokens_high);
	html_row_end(p);
	name_row(p, "tokens/s", FT_SHOW_COUNT, o[0].tokens_per_s);
	for (size_t i = 0; i < p->a->n; i++)
		ranged(p, FT_SHOW_COUNT, o[i].tokens_per_s, o[i].tokens_low_per_s,
		       o[i].tokens_high_per_s);
	html_row_end(p);
	html_row(p, "capital, million USD (all lines at P10, at P90)");
	for (size_t i = 0; i < p->a->n; i++)
		if (o[i].bom->rented)
			fputs("<td>rented</td>", p->out);
		else
			millions(p, o[i].bom->total_usd, o[i].bom->low_usd,
				 o[i].bom->high_usd);
	html_row_end(p);
	html_row(p, "MW at full load, PUE included");
	for (size_t i = 0; i < p->a->n; i++)
		millions(p, o[i].cost.facility_provisioned_w,
			 o[i].cost.facility_provisioned_w_low,
			 o[i].cost.facility_provisioned_w_high);
	html_row_end(p);
	html_row(p, "USD per GPU-hour");
	for (size_t i = 0; i < p->a->n; i++)
		ranged(p, FT_SHOW_USD_PER_HOUR, o[i].cost.usd_per_gpu_hour,
		       o[i].cost.usd_per_gpu_hour_low, o[i].cost.usd_per_gpu_hour_high);
	html_row_end(p);
	html_table_end(p);
	fputs("</div>\n", p->out);
	return true;
}

static const char *amount(const struct page *p, double v)
{
	char text[SHOWN];

	return arena_text(p->mem, shown_amount(v, text));
}

static const char *digits(const struct page *p, double v)
{
	char text[SHOWN];

	return arena_text(p->mem, shown_digits(v, text));
}

static void fleet(const struct page *p, const struct ft_fleet *f)
{
	char text[BEYOND];

	html_row(p, f->question);
	if (f->none) {
		fputs("<td class=\"text\" colspan=\"8\">none: ", p->out);
		html_text(p, f->none);
		fputs("</td>", p->out);
	} else {
		fprintf(p->out,
			"<td>%s</td><td>%.3g</td><td>%s to %s</td><td>%s to %s</td>"
			"<td>%s to %s</td><td>%s</td><td>%s</td>"
			"<td class=\"text\">%s</td>",
			amount(p, (double)f->gpus), f->tokens * 1e-12,
			digits(p, f->days[1]), digits(p, f->days[2]),
			digits(p, f->usd[1] * 1e-6), digits(p, f->usd[2] * 1e-6),
			digits(p, f->megawatts), digits(p, f->megawatts_high),
			digits(p, f->energy_mwh), digits(p, f->failures),
			money_beyond(f, text));
	}
	html_row_end(p);
}

bool html_fleets(struct page *p)
{
	static const char *const columns[] = { "<fleet", "GPUs",	"T tokens",
					       "days",	 "million USD", "MW",
					       "MWh",	 "failures",	"<beyond" };

	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_run_answer *asked = &p->a->outcome[i].asked;

		if (!asked->n)
			continue;
		html_heading(p, i);
		html_columns(p,
			     arena_printf(p->mem,
					  "Fleets, as %s; ranges are of P50 to P90",
					  p->a->label[i]),
			     columns, sizeof(columns) / sizeof(*columns));
		for (size_t k = 0; k < asked->n; k++)
			fleet(p, &asked->fleet[k]);
		html_table_end(p);
		if (money_none_keeps(asked))
			fputs("<p>" NONE_KEEPS "</p>\n", p->out);
		if (asked->left_out)
			fprintf(p->out, "<p>" LEFT_OUT "</p>\n",
				(long long)asked->left_out);
	}
	return true;
}

/* ---- why ------------------------------------------------------------------------------------ */

/* The part that moves the dollars of scenario i most. */
static int largest_part(const struct ft_verdict *v, size_t i)
{
	int most = 0;

	for (int k = 1; k < FT_COST_PARTS; k++)
		if (fabs(v->part_usd[i][k]) > fabs(v->part_usd[i][most]))
			most = k;
	return most;
}

bool html_reasons(struct page *p)
{
	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };
	const struct ft_verdict *v = p->a->verdict;

	for (size_t i = 1; i < p->a->n; i++) {
		int most = largest_part(v, i);

		if (!html_picture(
			    p,
			    arena_printf(
				    p->mem,
				    "From %s to %s, part by part: the largest part is "
				    "%s with %+.4f USD per million tokens",
				    p->a->label[0], p->a->label[i],
				    ft_part_of_cost_name((enum ft_part_of_cost)most),
				    v->part_usd[i][most]),
			    plot_waterfall(&q, i, p->err)))
			return false;
	}
	html_table(p,
		   "USD per million tokens against the first scenario; Shapley values: "
		   "no order effects, and they add up",
		   "part");
	for (int k = 0; k < FT_COST_PARTS; k++) {
		html_row(p, ft_part_of_cost_name((enum ft_part_of_cost)k));
		for (size_t i = 0; i < p->a->n; i++)
			fprintf(p->out, i ? "<td>%+.4f</td>" : "<td>-</td>",
				v->part_usd[i][k]);
		html_row_end(p);
	}
	html_table_end(p);
	return true;
}

bool html_crossovers(struct page *p)
{
	const struct ft_verdict *v = p->a->verdict;

	fputs("<h3>What would change the answer</h3>\n", p->out);
	if (v->likely_otherwise) {
		fputs("<p>", p->out);
		html_text(p, p->a->label[v->second]);
		fputs(" " LIKELY_OTHERWISE "</p>\n", p->out);
		return true;
	}
	if (!v->n_crossovers) {
		fputs("<p>No single price or rate between a quarter and four times what it "
		      "is would.</p>\n",
		      p->out);
		return true;
	}
	fputs("<p>", p->out);
	html_text(p, p->a->label[v->second]);
	fputs(" is as cheap as ", p->out);
	html_text(p, p->a->label[v->best]);
	fputs(" at one of</p>\n<ul>\n", p->out);
	for (size_t k = 0; k < v->n_crossovers; k++) {
		const struct ft_crossover *x = &v->crossover[k];

		fprintf(p->out, "<li>%s: <b>%s %s</b> (now %s, %+.0f %%)</li>\n",
			x->what, amount(p, x->value), x->unit, amount(p, x->now),
			100 * (x->value / x->now - 1));
	}
	fputs("</ul>\n", p->out);
	return true;
}

bool html_tornado(struct page *p)
{
	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };
	const char *svg = plot_tornado(&q, p->err);

	return html_picture(p,
			    arena_printf(p->mem,
					 "Swings of USD per million tokens, widest "
					 "first; the widest is %s",
					 q.widest ? q.widest : "none"),
			    svg);
}
