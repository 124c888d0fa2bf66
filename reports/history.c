/* reports/history.c - an item's price in many books: table, JSON, plot over time */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/plain.h"
#include "base/text.h"
#include "reports/json.h"
#include "reports/plot.h"
#include "reports/table.h"

/* Amounts above a dollar or so are whole. */
static void put_usd(struct table *t, double usd, bool rent)
{
	table_put(t, rent ? "%.2f" : "%.0f", usd);
}

void ft_report_price_history(FILE *out, const struct ft_price_history *h)
{
	PLAIN_NUMBERS;
	struct table t = TABLE_OPEN(out, "date", ">low USD", ">likely USD", ">high USD",
				    "price", "book", "buyer", "source");

	fprintf(out, "%s%s\n\n", h->point[0].item,
		h->point[0].rent ? ", a GPU and hour" : "");
	for (size_t i = 0; i < h->n; i++) {
		const struct ft_price_point *p = &h->point[i];

		table_row(&t);
		table_put(&t, "%s", p->date);
		put_usd(&t, p->low, p->rent);
		put_usd(&t, p->usd, p->rent);
		put_usd(&t, p->high, p->rent);
		table_put(&t, "%s", ft_price_kind_name(p->kind));
		table_put(&t, "%s", p->book);
		table_put(&t, "%s", *p->buyer ? p->buyer : "-");
		table_put(&t, "%s", p->source);
	}
	table_close(&t);
}

void ft_report_price_history_json(FILE *out, const struct ft_price_history *h)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *rows = json_array();

	for (size_t i = 0; i < h->n; i++) {
		const struct ft_price_point *p = &h->point[i];
		json_t *o = json_object();

		json_put_text(o, "date", p->date);
		json_put(o, "usd", p->usd);
		json_put(o, "low_usd", p->low);
		json_put(o, "high_usd", p->high);
		json_put_text(o, "kind", ft_price_kind_name(p->kind));
		json_put_text(o, "book", p->book);
		json_put_text(o, "buyer", p->buyer);
		json_put_text(o, "vendor", p->vendor);
		json_put_text(o, "source", p->source);
		json_put_text(o, "address", p->address);
		json_array_append_new(rows, o);
	}
	json_put_text(j, "item", h->point[0].item);
	json_put_bool(j, "per_hour", h->point[0].rent);
	json_object_set_new(j, "prices", rows);
	json_print(out, j);
}

/* ---- plot ------------------------------------------------------------------------- */

/* "2026", "2026-07", "2026-07-15", and the first of "2025-2026", as a year. */
static double year_of(const char *date)
{
	int year = 0, month = 0, day = 0;
	int n = sscanf(date, "%4d-%2d-%2d", &year, &month, &day);

	if (n >= 2 && month >= 1 && month <= 12)
		return year + (month - 1) / 12. +
		       (n == 3 && day >= 1 && day <= 31 ? (day - 1) / 365. : 0.5 / 12);
	return year + 0.5;
}

/* A block for each book. */
static const char *blocks(struct plot *q, const struct ft_price_history *h,
			  struct ft_error *err)
{
	const char *head =
		gnuplot_quote(q->mem,
			      arena_printf(q->mem, "USD, %s%s", h->point[0].item,
					   h->point[0].rent ? ", a GPU and hour" : ""),
			      err);
	const char *script, *title;
	size_t block = 0;
	double first = floor(year_of(h->point[0].date));
	double last = floor(year_of(h->point[h->n - 1].date)) + 1; /* by date */

	if (!head)
		return NULL;
	script =
		arena_printf(q->mem,
			     "set ylabel %s\nset yrange [0:*]\nset xrange [%.0f:%.0f]\n"
			     "set xtics 1\nset mxtics 4\nset format x '%%.0f'\n"
			     "set key outside right top reverse Left\nplot ",
			     head, first, last);
	for (size_t i = 0; i < h->n; i++) {
		size_t before = 0;

		while (strcmp(h->point[before].book, h->point[i].book) != 0)
			before++;
		if (before < i)
			continue;
		fprintf(q->data.out, "%s# %s: year, USD, low, high\n",
			block ? "\n\n" : "", h->point[i].book);
		for (size_t k = i; k < h->n; k++)
			if (!strcmp(h->point[k].book, h->point[i].book))
				fprintf(q->data.out, "%.4f %.9g %.9g %.9g\n",
					year_of(h->point[k].date), h->point[k].usd,
					h->point[k].low, h->point[k].high);
		title = gnuplot_quote(q->mem, h->point[i].book, err);
		if (!title)
			return NULL;
		script = arena_printf(q->mem,
				      "%s%sdat index %zu using 1:2:3:4 with yerrorbars "
				      "ls %zu lw 2 pt 7 ps 0.8 title %s",
				      script, block ? ", " : "", block, block % 6 + 1,
				      title);
		block++;
	}
	return script;
}

bool ft_report_price_history_plot(const char *file, const struct ft_price_history *h,
				  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct plot q;
	bool ok = plot_begin_as(&q, &mem, file, err) &&
		  plot_draw(&q, blocks(&q, h, err), err);

	arena_release(&mem);
	return ok;
}
