/* reports/html_plots.c - breakdown, reasons, tornado, scaling and cash for gnuplot */
#include "reports/html_plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "reports/plot.h"

static const char *label(struct plots *p, size_t i)
{
	return p->a->label[i];
}

static const char stacked[] =
	"set style data histograms\nset style histogram rowstacked\n"
	"set style fill solid 0.95 border -1\nset boxwidth 0.5\n"
	"set key outside right top reverse Left invert\nset yrange [0:*]\n";

char *plot_breakdown(struct plots *p, struct ft_error *err)
{
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, "breakdown", err))
		return NULL;
	fputs("# scenario compute optimizer exposed_communication bubble host\n",
	      q.data.out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_breakdown *b = &p->a->outcome[i].breakdown;

		fprintf(q.data.out, "%s %.9g %.9g %.9g %.9g %.9g\n",
			gnuplot_cell(p->mem, label(p, i)), b->compute_s, b->optimizer_s,
			b->exposed_communication_s, b->bubble_s, b->host_s);
	}
	return plot_draw(
		&q,
		arena_printf(
			p->mem,
			"%sset ylabel 'seconds a step'\n"
			"plot dat using 2:xtic(1) ls 1 title 'compute', '' using 3 ls 5 "
			"title 'optimizer', '' using 4 ls 2 title 'exposed communication', "
			"'' using 5 ls 3 title 'pipeline bubble', '' using 6 ls 6 title "
			"'host'",
			stacked),
		err);
}

/* ---- reasons -------------------------------------------------------------------------- */

/* From the first scenario's dollars down and up to those of another. */
char *plot_waterfall(struct plots *p, size_t i, struct ft_error *err)
{
	const struct ft_verdict *v = p->a->verdict;
	double from = p->a->outcome[0].cost.usd_per_million_tokens, to;
	double low = from, high = from;
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, arena_printf(p->mem, "waterfall-%zu", i),
			err))
		return NULL;
	fputs("# row, name, from, to, kind (0: a scenario, 1: dearer, 2: cheaper), "
	      "label\n",
	      q.data.out);
	fprintf(q.data.out, "0 %s 0 %.9g 0 \"%.4f\"\n",
		gnuplot_cell(p->mem, label(p, 0)), from, from);
	for (int k = 0; k < FT_COST_PARTS; k++) {
		to = from + v->part_usd[i][k];
		fprintf(q.data.out, "%d \"%s\" %.9g %.9g %d \"%+.4f\"\n", k + 1,
			ft_part_of_cost_name((enum ft_part_of_cost)k), from, to,
			to > from ? 1 : 2, v->part_usd[i][k]);
		from = to;
		low = fmin(low, to);
		high = fmax(high, to);
	}
	fprintf(q.data.out, "%d %s 0 %.9g 0 \"%.4f\"\n", FT_COST_PARTS + 1,
		gnuplot_cell(p->mem, label(p, i)), from, from);
	return plot_draw(
		&q,
		arena_printf(
			p->mem,
			"set style fill solid 0.95 noborder\nunset key\n"
			"set ylabel 'USD per million tokens'\n"
			"set yrange [%.9g:%.9g]\nset xrange [-0.6:%d.6]\n"
			"set xtics rotate by -25\n"
			"color(k) = k == 0 ? 0x2a6f97 : k == 1 ? 0xb5482a : 0x3d7a5a\n"
			"high(a, b) = a > b ? a : b\n"
			"plot dat using 1:(($3+$4)/2):($1-0.35):($1+0.35):3:4:"
			"(color($5)):xtic(2) with boxxyerror lc rgb variable, "
			"'' using 1:(high($3,$4)):6 with labels offset 0,0.7",
			fmin(0, 1.1 * low), 1.1 * high, FT_COST_PARTS + 1),
		err);
}

/* ---- what moves the cost -------------------------------------------------------------- */

/* Of one scenario its interval alone; of several the draws of the verdict. */
static bool odds_of(struct plots *p, struct ft_odds *odds, struct ft_error *err)
{
	struct ft_side side[FT_SIDES_MOST];

	if (p->a->verdict) {
		*odds = p->a->verdict->odds;
		return true;
	}
	for (size_t i = 0; i < p->a->n; i++)
		side[i] = ft_outcome_side(p->a->scenario[i], &p->a->outcome[i]);
	return ft_odds_of(side, p->a->n, 512, odds, err);
}

enum { BARS = 10 };

/* The bars of one scenario, beside those of the others: a block of data and how to draw it. */
static const char *tornado_bars(struct plots *p, const struct ft_odds *odds,
				size_t bars, size_t i, FILE *data, struct ft_error *err)
{
	double all = (double)p->a->n, half = 0.38 / all;
	double at = (double)i / all * 0.8 - 0.4 + 0.4 / all;
	const char *quoted = gnuplot_quote(p->mem, label(p, i), err);

	for (size_t c = 0; c < bars; c++)
		fprintf(data, "%.4g \"%s\" %.9g %.9g\n", (double)(bars - 1 - c) - at,
			odds->cause[c].name, odds->cause[c].low[i],
			odds->cause[c].high[i]);
	fputs("\n\n", data);
	return quoted ? arena_printf(p->mem,
				     "dat index %zu using (%.9g):1:3:4:($1-%.4g):"
				     "($1+%.4g) with boxxyerror ls %zu title %s",
				     i, p->a->outcome[i].cost.usd_per_million_tokens,
				     half, half, i % 5 + 1, quoted) :
			NULL;
}

char *plot_tornado(struct plots *p, struct ft_error *err)
{
	struct ft_odds odds;
	const char *script = "", *tics = "";
	size_t bars;
	struct plot q;

	if (!odds_of(p, &odds, err) || !plot_begin(&q, p->mem, p->dir, "tornado", err))
		return NULL;
	bars = odds.n_causes < BARS ? odds.n_causes : BARS;
	p->widest = odds.n_causes ? odds.cause[0].name : NULL;
	fputs("# row, cause, P10, P90; a block for each scenario\n", q.data.out);
	for (size_t c = 0; c < bars; c++)
		tics = arena_printf(p->mem, "%s%s'%s' %zu", tics, c ? ", " : "",
				    odds.cause[c].name, bars - 1 - c);
	for (size_t i = 0; script && i < p->a->n; i++) {
		const char *more = tornado_bars(p, &odds, bars, i, q.data.out, err);

		script = more ? arena_printf(p->mem, "%s%s%s", script,
					     i ? ", " : "plot ", more) :
				NULL;
	}
	if (script)
		script = arena_printf(
			p->mem,
			"set xlabel 'USD per million tokens'\n"
			"set style fill solid 0.9 noborder\nset ytics (%s)\n"
			"set yrange [-0.6:%zu - 0.4]\nset grid xtics noytics\n"
			"set key outside above\nset lmargin 28\n%s",
			tics, bars, script);
	q.height = (int)(120 + 34 * bars);
	return plot_draw(&q, script, err);
}

/* ---- scaling --------------------------------------------------------------------------- */

/* The scenario at another size; gpus 0 when it cannot be. false when something could not be
 * read. */
static bool at_size(const struct ft_scenario *s, double times, struct scaled *to,
		    struct ft_error *err)
{
	int64_t gpus = (int64_t)(times * (double)s->cluster->gpus);
	struct ft_scenario *scaled;
	struct ft_outcome o;

	*err = (struct ft_error){ 0 };
	if (gpus < 1)
		return true;
	scaled = ft_scenario_resized(s, gpus, times, err);
	if (scaled && ft_study_simulate(scaled, NULL, NULL, &o, err)) {
		*to = (struct scaled){ (double)gpus,
				       o.tokens_per_s,
				       o.tokens_low_per_s,
				       o.tokens_high_per_s,
				       o.cost.usd_per_million_tokens,
				       o.cost.usd_per_million_tokens_low,
				       o.cost.usd_per_million_tokens_high };
		ft_outcome_release(&o);
	}
	ft_scenario_free(scaled);
	return !err->of_system;
}

static bool gather(struct plots *p, struct ft_error *err)
{
	if (p->scaled)
		return true;
	p->scaled = arena_alloc(p->mem, p->a->n, sizeof(*p->scaled));
	for (size_t i = 0; i < p->a->n; i++)
		for (int k = 0; k < SIZES; k++)
			if (!at_size(p->a->scenario[i], ldexp(0.125, k),
				     &p->scaled[i][k], err))
				return false;
	return true;
}

/* Value, low and high of a point, as they are drawn; best: the most tokens/s per GPU. */
static void values_of(const struct scaled *x, bool usd, double best, double v[3])
{
	const double dollars[] = { x->usd, x->usd_low, x->usd_high };
	const double tokens[] = { x->tokens_per_s, x->tokens_low, x->tokens_high };

	for (int k = 0; k < 3; k++)
		v[k] = usd ? dollars[k] : 100 * tokens[k] / x->gpus / best;
}

static double best_of(const struct scaled x[SIZES])
{
	double best = 0;

	for (int k = 0; k < SIZES; k++)
		if (x[k].gpus > 0)
			best = fmax(best, x[k].tokens_per_s / x[k].gpus);
	return best;
}

/* The points of every scenario, a block each: GPUs, value, low, high. */
static bool write_points(struct plots *p, FILE *out, bool usd, struct ft_error *err)
{
	if (!gather(p, err))
		return false;
	for (size_t i = 0; i < p->a->n; i++) {
		double best = best_of(p->scaled[i]), v[3];

		fprintf(out, "# %s: GPUs, %s, P10, P90\n",
			gnuplot_cell(p->mem, label(p, i)),
			usd ? "USD per million tokens" : "share of the best");
		for (int k = 0; k < SIZES; k++) {
			const struct scaled *x = &p->scaled[i][k];

			if (!(x->gpus > 0))
				continue;
			values_of(x, usd, best, v);
			fprintf(out, "%.0f %.9g %.9g %.9g\n", x->gpus, v[0], v[1],
				v[2]);
		}
		fputs("\n\n", out);
	}
	return true;
}

/* gnuplot's, which differ in grey, too. */
static const int shapes[] = { 7, 5, 9, 13, 11 };

/* Where the name of each curve stands: beside its end, kept apart from the others. */
static const char *end_labels(struct plots *p, bool usd, struct ft_error *err)
{
	const char *text = "";
	double at[FT_SIDES_MOST], most = 0, top = INFINITY, v[3];
	size_t longest = 0;

	for (size_t i = 0; i < p->a->n; i++) {
		at[i] = 0;
		for (int k = 0; k < SIZES; k++) {
			if (!(p->scaled[i][k].gpus > 0))
				continue;
			values_of(&p->scaled[i][k], usd, best_of(p->scaled[i]), v);
			at[i] = v[0];
			most = fmax(most, v[2]);
		}
		longest = strlen(label(p, i)) > longest ? strlen(label(p, i)) : longest;
	}
	for (size_t placed = 0; placed < p->a->n; placed++) { /* from the top down */
		const char *quoted;
		size_t next = 0;

		for (size_t i = 1; i < p->a->n; i++)
			if (at[i] > at[next])
				next = i;
		top = fmin(at[next], top - 0.06 * most);
		at[next] = -INFINITY;
		quoted = gnuplot_quote(p->mem, label(p, next), err);
		if (!quoted)
			return NULL;
		text = arena_printf(
			p->mem,
			"%sset label %s at graph 1.03, first %.9g left point ls %zu pt %d offset 1\n",
			text, quoted, top, next % 5 + 1, shapes[next % 5]);
	}
	return arena_printf(p->mem, "%sset rmargin %zu\nset key off\n", text,
			    longest < 32 ? longest + 7 : 39);
}

/* Bands from P10 to P90 behind curves whose points differ in shape, for print in grey. */
static char *plot_sizes(struct plots *p, const char *name, const char *axis, bool usd,
			struct ft_error *err)
{
	const char *script, *names;
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, name, err))
		return NULL;
	names = write_points(p, q.data.out, usd, err) ? end_labels(p, usd, err) : NULL;
	if (!names) {
		file_abandon(&q.data);
		return NULL;
	}
	script = arena_printf(
		p->mem,
		"set logscale x 2\nset xlabel 'GPUs'\nset ylabel '%s'\n"
		"set yrange [0:*]\nset style fill transparent solid 0.18 noborder\n%splot ",
		axis, names);
	for (size_t i = 0; i < p->a->n; i++)
		script = arena_printf(
			p->mem,
			"%s%sdat index %zu using 1:3:4 with filledcurves ls %zu, dat "
			"index %zu using 1:2 with linespoints ls %zu lw 2 pt %d",
			script, i ? ", " : "", i, i % 5 + 1, i, i % 5 + 1,
			shapes[i % 5]);
	return plot_draw(&q, script, err);
}

char *plot_scaling_usd(struct plots *p, struct ft_error *err)
{
	return plot_sizes(p, "scaling-usd", "USD per million tokens, with P10 to P90",
			  true, err);
}

char *plot_efficiency(struct plots *p, struct ft_error *err)
{
	return plot_sizes(p, "efficiency",
			  "tokens/s per GPU, % of the best size, P10 to P90", false,
			  err);
}

/* ---- cash -------------------------------------------------------------------------------- */

/* What of a flow falls into a year. */
static double in_year(const struct ft_flow *f, int year)
{
	double from = 12.0 * year, to = from + 12, a, b;

	if (f->months == 0)
		return f->month >= from && f->month < to ? f->usd : 0;
	a = fmax(from, f->month);
	b = fmin(to, f->month + f->months);
	return b > a ? f->usd * (b - a) / f->months : 0;
}

char *plot_cash(struct plots *p, size_t i, struct ft_error *err)
{
	const struct ft_deal d = ft_outcome_deal(p->a->scenario[i], &p->a->outcome[i]);
	struct ft_flows f;
	struct plot q;
	int years;

	ft_flows_of(&d, &f);
	years = (int)ceil(f.months / 12);
	if (!plot_begin(&q, p->mem, p->dir, arena_printf(p->mem, "cash-%zu", i), err))
		return NULL;
	fputs("# year, purchases, rent, colocation, electricity, the rest\n",
	      q.data.out);
	for (int y = 0; y < years; y++) {
		double of[5] = { 0 };

		for (size_t k = 0; k < f.n; k++) {
			enum ft_account a = f.flow[k].account;
			int to = a < FT_ACCOUNT_RESALE ? 0 :
				 a == FT_ACCOUNT_PREPAYMENT || a == FT_ACCOUNT_RENT ?
							 1 :
				 a == FT_ACCOUNT_COLOCATION  ? 2 :
				 a == FT_ACCOUNT_ELECTRICITY ? 3 :
							       4;

			if (a != FT_ACCOUNT_RESALE)
				of[to] += in_year(&f.flow[k], y) * 1e-6;
		}
		fprintf(q.data.out, "%d %.6g %.6g %.6g %.6g %.6g\n", y + 1, of[0],
			of[1], of[2], of[3], of[4]);
	}
	return plot_draw(
		&q,
		arena_printf(
			p->mem,
			"%sset xlabel 'year'\nset ylabel 'million USD a year'\n"
			"plot dat using 2:xtic(1) ls 1 title 'purchases', '' using 3 "
			"ls 5 title 'rent', '' using 4 ls 4 title 'colocation', '' "
			"using 5 ls 3 title 'electricity', '' using 6 ls 6 title "
			"'maintenance, staff, licences, insurance'",
			stacked),
		err);
}
