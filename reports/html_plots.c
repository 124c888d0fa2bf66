/* reports/html_plots.c - breakdown, scaling, cost and sensitivity for gnuplot */
#include "reports/html_plots.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/node.h"
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
		360, err);
}

/* The scenario at another size, the batch growing with it; *tokens 0 when it cannot
 * be. false when something could not be read. */
static bool tokens_at(const struct ft_scenario *s, double times, double *tokens,
		      struct ft_error *err)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct node *root = node_overlay(&mem, s->given, NULL);
	struct ft_mark at = { "scaling", 1, 1 };
	struct ft_scenario *scaled = NULL;
	struct ft_outcome o;
	char text[32];
	bool ok;

	*tokens = 0;
	*err = (struct ft_error){ 0 };
	snprintf(text, sizeof(text), "%.0f", times * (double)s->cluster->gpus);
	ok = node_put_path(&mem, root, "cluster.gpus", &at, text, err);
	snprintf(text, sizeof(text), "%.0f", times * (double)s->plan->global_batch);
	ok = ok &&
	     node_put_path(&mem, root, "training.global_batch_size", &at, text, err);
	if (ok)
		scaled = ft_scenario_from(shelf, root, "scaling", true, err);
	if (scaled && ft_study_simulate(scaled, NULL, NULL, &o, err)) {
		*tokens = o.tokens_per_s;
		ft_outcome_release(&o);
	}
	ft_scenario_free(scaled);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return !err->of_system;
}

/* The points of one scenario. */
static bool scaling_data(struct plots *p, size_t i, FILE *out, struct ft_error *err)
{
	const struct ft_scenario *s = p->a->scenario[i];

	fprintf(out, "# %s: GPUs, tokens/s, ideal\n",
		gnuplot_cell(p->mem, label(p, i)));
	for (double t = 0.125; t <= 4; t *= 2) {
		double tokens;

		if (!tokens_at(s, t, &tokens, err))
			return false;
		if (tokens > 0)
			fprintf(out, "%.0f %.9g %.9g\n", t * (double)s->cluster->gpus,
				tokens, t * p->a->outcome[i].tokens_per_s);
	}
	fputs("\n\n", out);
	return true;
}

char *plot_scaling(struct plots *p, struct ft_error *err)
{
	const char *script =
		"set logscale x 2\nset logscale y 10\nset xlabel 'GPUs'\nset ylabel "
		"'tokens/s'\nset format y '%.0s%c'\n"
		"set key left top reverse Left\nset grid xtics\nplot ";
	const char *quoted;
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, "scaling", err))
		return NULL;
	for (size_t i = 0; i < p->a->n; i++) {
		quoted = gnuplot_quote(p->mem, label(p, i), err);
		if (!quoted || !scaling_data(p, i, q.data.out, err)) {
			file_abandon(&q.data);
			return NULL;
		}
		script = arena_printf(
			p->mem,
			"%s%sdat index %zu using 1:2 with "
			"linespoints ls %zu lw 2 pt 7 title %s, '' index %zu "
			"using 1:3 with lines ls 6 dt 2 notitle",
			script, i ? ", " : "", i, i % 5 + 1, quoted, i);
	}
	return plot_draw(&q, script, 400, err);
}

char *plot_cost(struct plots *p, struct ft_error *err)
{
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, "cost", err))
		return NULL;
	fputs("# scenario capital colocation electricity maintenance\n", q.data.out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_cost *c = &p->a->outcome[i].cost;
		double per = c->usd_per_million_tokens / c->usd_per_gpu_hour;

		fprintf(q.data.out, "%s %.9g %.9g %.9g %.9g\n",
			gnuplot_cell(p->mem, label(p, i)),
			per * (c->capital_usd_per_gpu_hour + c->rent_usd_per_gpu_hour),
			per * c->colocation_usd_per_gpu_hour,
			per * c->electricity_usd_per_gpu_hour,
			per * c->maintenance_usd_per_gpu_hour);
	}
	return plot_draw(
		&q,
		arena_printf(
			p->mem,
			"%sset ylabel 'USD per million "
			"tokens'\nplot dat using 2:xtic(1) ls 1 title 'capital or rent', '' using "
			"3 ls 4 title 'colocation', '' using 4 ls 3 title 'electricity', "
			"'' using 5 ls 5 title 'maintenance'",
			stacked),
		360, err);
}

/* ---- sensitivity -------------------------------------------------------------- */

struct swing {
	const char *name;
	double low, high; /* USD per million tokens */
};

static double cost_with(const struct ft_scenario *s, const struct ft_outcome *o,
			const struct ft_cost_terms *terms, double bom_factor)
{
	struct ft_bom bom = *o->bom;
	struct ft_cost cost;
	struct ft_error err;

	bom.total_usd *= bom_factor;
	bom.low_usd *= bom_factor;
	bom.high_usd *= bom_factor;
	if (!ft_cost_compute(
		    &(struct ft_purchase){ s->cluster, s->prices, &bom, terms },
		    &(struct ft_throughput){
			    o->tokens_per_s, o->tokens_low_per_s, o->tokens_high_per_s,
			    o->run->gpu_busy_frac, o->run->gpu_memory_frac,
			    o->run->gpu_waiting_frac },
		    &cost, &err))
		return o->cost.usd_per_million_tokens;
	return cost.usd_per_million_tokens;
}

static size_t swings(const struct ft_scenario *s, const struct ft_outcome *o,
		     struct swing *w)
{
	struct ft_cost_terms t = s->terms, low = t, high = t;
	double price = ft_cost_electricity_usd_per_kwh(&t, s->prices);
	double base = o->cost.usd_per_million_tokens;
	size_t n = 0;

	w[n++] = (struct swing){ "throughput, P90 to P10",
				 base * o->tokens_per_s / o->tokens_high_per_s,
				 base * o->tokens_per_s / o->tokens_low_per_s };
	w[n++] = (struct swing){
		"prices, low to high",
		cost_with(s, o, &t, o->bom->low_usd / o->bom->total_usd),
		cost_with(s, o, &t, o->bom->high_usd / o->bom->total_usd)
	};
	low.utilization_frac = fmin(1, t.utilization_frac + 0.05);
	high.utilization_frac = t.utilization_frac - 0.1;
	w[n++] = (struct swing){ "utilisation, +5 to -10 points",
				 cost_with(s, o, &low, 1), cost_with(s, o, &high, 1) };
	if (o->bom->rented)
		return n;
	low = high = t;
	low.horizon_years = t.horizon_years + 1;
	high.horizon_years =
		t.horizon_years > 1.5 ? t.horizon_years - 1 : t.horizon_years;
	w[n++] = (struct swing){ "years of use, one more to one less",
				 cost_with(s, o, &low, 1), cost_with(s, o, &high, 1) };
	low = high = t;
	low.cost_of_capital_frac = fmax(0, t.cost_of_capital_frac - 0.03);
	high.cost_of_capital_frac = t.cost_of_capital_frac + 0.05;
	w[n++] = (struct swing){ "cost of capital, -3 to +5 points",
				 cost_with(s, o, &low, 1), cost_with(s, o, &high, 1) };
	low = high = t;
	low.electricity_usd_per_kwh = price / 2;
	high.electricity_usd_per_kwh = price * 2;
	w[n++] = (struct swing){ "electricity, half to double",
				 cost_with(s, o, &low, 1), cost_with(s, o, &high, 1) };
	return n;
}

static int by_width(const void *a, const void *b)
{
	const struct swing *x = a, *y = b;
	double dx = fabs(x->high - x->low), dy = fabs(y->high - y->low);

	return (dx > dy) - (dx < dy);
}

char *plot_sensitivity(struct plots *p, size_t i, struct ft_error *err)
{
	double base = p->a->outcome[i].cost.usd_per_million_tokens;
	struct swing w[8];
	size_t n = swings(p->a->scenario[i], &p->a->outcome[i], w);
	const char *title = gnuplot_quote(p->mem, label(p, i), err);
	struct plot q;

	qsort(w, n, sizeof(*w), by_width);
	if (!title || !plot_begin(&q, p->mem, p->dir,
				  arena_printf(p->mem, "sensitivity-%zu", i), err))
		return NULL;
	for (size_t k = 0; k < n; k++)
		fprintf(q.data.out, "%zu \"%s\" %.9g %.9g\n", k, w[k].name, w[k].low,
			w[k].high);
	return plot_draw(
		&q,
		arena_printf(
			p->mem,
			"set title %s\nset xlabel 'USD per million tokens'\n"
			"set style fill solid 0.95 noborder\nset yrange [-0.7:%zu - 0.3]\n"
			"unset key\nset grid xtics noytics\nbase = %.9g\n"
			"set arrow from base, graph 0 to base, graph 1 nohead lc rgb "
			"'#333333'\nplot dat using (base):1:(base < $3 ? base : $3):(base)"
			":($1-0.3):($1+0.3):ytic(2) with boxxyerror ls 4, '' using "
			"(base):1:(base):($4):($1-0.3):($1+0.3) with boxxyerror ls 2",
			title, n, base),
		320, err);
}
