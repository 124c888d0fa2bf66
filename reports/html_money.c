/* reports/html_money.c - the report's purchase: the network drawn, the bill, what is paid */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "reports/html.h"
#include "reports/html_plots.h"
#include "reports/money.h"
#include "reports/network_svg.h"

/* ---- the network ------------------------------------------------------------------------ */

bool html_network(struct page *p)
{
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_cluster *c = p->a->scenario[i]->cluster;

		html_heading(p, i);
		if (!c->topology.leaf) {
			fputs("<p>One node, or no network between nodes.</p>\n",
			      p->out);
			continue;
		}
		fputs("<div class=\"picture\" tabindex=\"0\">", p->out);
		network_svg(p->out, c,
			    arena_printf(p->mem,
					 "Network: %" PRId64 " leaf, %" PRId64
					 " spine and %" PRId64
					 " core switches for %" PRId64 " nodes",
					 c->topology.leaf, c->topology.spine,
					 c->topology.core, c->nodes),
			    false);
		fputs("</div>\n", p->out);
		fputs("<p class=\"note\">Fabric ", p->out);
		html_text(p, c->fabric->name);
		fputs("; at most eight of a kind are drawn.</p>\n", p->out);
	}
	return true;
}

/* ---- the bill ----------------------------------------------------------------------------- */

/* Whole dollars with thousands apart; cents where a line is small. */
static void dollars(const struct page *p, double usd)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%.0f", fabs(usd));

	fputs(usd < 0 ? "-" : "", p->out);
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			putc(',', p->out);
		putc(digits[i], p->out);
	}
}

static void amount(const struct page *p, double usd)
{
	fputs("<td>", p->out);
	dollars(p, usd);
	fputs("</td>", p->out);
}

static void bill(const struct page *p, size_t i)
{
	static const char *const columns[] = { "<role",	    "<item",	  "count",
					       "each, USD", "total, USD", "low",
					       "high",	    "<price",	  "<source" };
	const struct ft_bom *b = p->a->outcome[i].bom;

	html_columns(
		p,
		arena_printf(p->mem, "%s, prices of book %s", p->a->label[i], b->book),
		columns, sizeof(columns) / sizeof(*columns));
	for (size_t k = 0; k < b->n_items; k++) {
		const struct ft_bom_item *x = &b->item[k];

		html_row(p, x->what);
		fputs("<td class=\"text\">", p->out);
		html_text(p, x->item);
		fprintf(p->out, "</td><td>%" PRId64 "</td>", x->count);
		amount(p, x->unit_usd);
		amount(p, x->total_usd);
		amount(p, x->low_usd);
		amount(p, x->high_usd);
		fprintf(p->out, "<td class=\"text\">%s %s</td><td class=\"text\">",
			ft_price_kind_name(x->kind), x->date);
		html_text(p, x->source);
		fputs("</td>", p->out);
		html_row_end(p);
	}
	html_row(p, "total");
	fputs("<td></td><td></td><td></td>", p->out);
	amount(p, b->total_usd);
	amount(p, b->low_usd);
	amount(p, b->high_usd);
	fputs("<td></td><td></td>", p->out);
	html_row_end(p);
	html_table_end(p);
}

bool html_bill(struct page *p)
{
	for (size_t i = 0; i < p->a->n; i++)
		bill(p, i);
	return true;
}

/* ---- cash --------------------------------------------------------------------------------- */

static double of_account(const struct ft_flows *f, enum ft_account account)
{
	double usd = 0;

	for (size_t i = 0; i < f->n; i++)
		usd += f->flow[i].account == account ? f->flow[i].usd : 0;
	return usd;
}

static void forms(const struct page *p, const struct ft_readings *r)
{
	struct money_form form[MONEY_FORMS];

	html_table(p, "An hour of a GPU, USD, in the forms in which others state it",
		   "form");
	for (int k = 0; k < MONEY_FORMS; k++) {
		money_forms(&r[0], form);
		html_row(p, form[k].name);
		for (size_t i = 0; i < p->a->n; i++) {
			money_forms(&r[i], form);
			fprintf(p->out, "<td>%.4f</td>", form[k].usd);
		}
		html_row_end(p);
	}
	html_row(p, "break-even with the rent given, hours used");
	for (size_t i = 0; i < p->a->n; i++)
		if (r[i].rent > 0 && r[i].break_even_utilization_frac < 1)
			fprintf(p->out, "<td>%.1f %% of %.2f USD/h</td>",
				100 * r[i].break_even_utilization_frac, r[i].rent);
		else if (r[i].rent > 0)
			fputs("<td>never</td>", p->out);
		else
			fputs("<td>-</td>", p->out);
	html_row_end(p);
	html_table_end(p);
}

bool html_cash(struct page *p)
{
	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };
	struct ft_readings r[FT_SIDES_MOST];
	struct ft_flows *f = arena_alloc(p->mem, p->a->n, sizeof(*f));

	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_deal d =
			ft_outcome_deal(p->a->scenario[i], &p->a->outcome[i]);

		ft_flows_of(&d, &f[i]);
		r[i] = ft_flows_read(&d);
		if (!html_picture(
			    p,
			    arena_printf(
				    p->mem,
				    "What %s costs each year, residual value left out; "
				    "with it %.1f million USD today",
				    p->a->label[i], r[i].npv_usd * 1e-6),
			    plot_cash(&q, i, p->err)))
			return false;
	}
	html_table(p, "Paid over the horizon, USD", "account");
	for (int a = 0; a < FT_ACCOUNTS; a++) {
		double any = 0;

		for (size_t i = 0; i < p->a->n; i++)
			any += fabs(of_account(&f[i], (enum ft_account)a));
		if (any == 0)
			continue;
		html_row(p, ft_account_name((enum ft_account)a));
		for (size_t i = 0; i < p->a->n; i++)
			amount(p, of_account(&f[i], (enum ft_account)a));
		html_row_end(p);
	}
	html_row(p, "net present value at the cost of capital");
	for (size_t i = 0; i < p->a->n; i++)
		amount(p, r[i].npv_usd);
	html_row_end(p);
	html_table_end(p);
	forms(p, r);
	return true;
}
