/* reports/runs.c - measured runs: a table, JSON, predicted against measured as a plot */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/stats.h"
#include "reports/json.h"
#include "reports/plot.h"
#include "reports/table.h"

/* Median and P90 of the absolute errors, and the share that is too slow. */
static void summary(FILE *out, const struct ft_runs *r)
{
	double *abs_error = calloc(r->n + 1, sizeof(*abs_error)), sum = 0;

	for (size_t i = 0; abs_error && i < r->n; i++) {
		abs_error[i] = fabs(r->run[i].error_frac);
		sum += abs_error[i];
	}
	if (abs_error && r->n) {
		stats_sort(abs_error, r->n);
		fprintf(out,
			"%zu runs; errors in time: mean of absolute values %.1f %%, "
			"median %.1f %%, P90 %.1f %%\n",
			r->n, 100 * sum / (double)r->n,
			100 * stats_median(abs_error, r->n),
			100 * stats_quantile(abs_error, r->n, 0.9));
	}
	free(abs_error);
}

void ft_report_runs(FILE *out, const struct ft_runs *r)
{
	PLAIN_NUMBERS;
	struct table t = TABLE_OPEN(out, "run", "GPU", ">GPUs", "stack", "plan",
				    "format", ">tokens/s/GPU", ">error");

	for (size_t i = 0; i < r->n; i++) {
		const struct ft_measured *m = &r->run[i];
		const struct ft_traits *x = m->traits;

		table_row(&t);
		table_put(&t, "%s", m->id);
		table_put(&t, "%s", x->gpu);
		table_put(&t, "%.0f", x->gpus);
		table_put(&t, "%s", x->stack);
		table_put(&t, "%s tp%.0f pp%.0f cp%.0f ep%.0f", x->sharding, x->tp,
			  x->pp, x->cp, x->ep);
		table_put(&t, "%s", x->precision);
		table_put(&t, "%.0f", m->tokens_per_s_per_gpu);
		table_put(&t, "%+.1f %%", 100 * m->error_frac);
	}
	table_close(&t);
	if (r->n)
		putc('\n', out);
	else
		fputs("no measured run is like that\n", out);
	summary(out, r);
}

static json_t *traits_json(const struct ft_traits *of)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		if (t[i].number)
			json_put(o, t[i].name, ft_trait_number(&t[i], of));
		else
			json_put_text(o, t[i].name, ft_trait_word(&t[i], of));
	return o;
}

void ft_report_runs_json(FILE *out, const struct ft_runs *r)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		json_t *o = json_object();

		json_put_text(o, "id", r->run[i].id);
		json_put_text(o, "source", r->run[i].source);
		json_put(o, "tokens_per_s_per_gpu", r->run[i].tokens_per_s_per_gpu);
		json_put(o, "error_frac", r->run[i].error_frac);
		json_object_set_new(o, "traits", traits_json(r->run[i].traits));
		json_array_append_new(list, o);
	}
	json_object_set_new(j, "runs", list);
	json_print(out, j);
}

/* A block of points for each GPU, and how it is drawn. */
static const char *points(struct arena *mem, const struct ft_runs *r, FILE *data)
{
	const char **gpu = ARENA_ARRAY(mem, r->n + 1, const char *);
	const char *script = "";
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const char *mine = r->run[i].traits->gpu;
		size_t k = 0;

		while (k < n && strcmp(gpu[k], mine) != 0)
			k++;
		if (k == n)
			gpu[n++] = mine;
	}
	for (size_t k = 0; k < n; k++) {
		fprintf(data, "# %s: measured, predicted, run\n", gpu[k]);
		for (size_t i = 0; i < r->n; i++)
			if (!strcmp(r->run[i].traits->gpu, gpu[k]))
				fprintf(data, "%.6g %.6g %s\n",
					r->run[i].tokens_per_s_per_gpu,
					r->run[i].tokens_per_s_per_gpu /
						(1 + r->run[i].error_frac),
					gnuplot_cell(mem, r->run[i].id));
		fputs("\n\n", data);
		script = arena_printf(
			mem,
			"%s, dat index %zu using 1:2 with points pt %zu ps "
			"0.6 title '%s'",
			script, k, 4 + k % 10, gpu[k]);
	}
	return script;
}

static const char *range(struct arena *mem, const struct ft_runs *r)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < r->n; i++) {
		least = fmin(least, r->run[i].tokens_per_s_per_gpu);
		most = fmax(most, r->run[i].tokens_per_s_per_gpu);
	}
	return plot_range(mem, least, most);
}

bool ft_report_runs_plot(const char *path, const struct ft_runs *r,
			 struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct plot q;
	bool ok = plot_begin_as(&q, &mem, path, err);

	if (ok) {
		q.height = 600; /* nearly a square, beside its key */
		ok = plot_draw(
			&q,
			arena_printf(
				&mem,
				"set logscale xy\nset xlabel "
				"'measured tokens/s per GPU'\nset ylabel 'predicted'\n"
				"set key outside right\nset format xy "
				"'%%.0s%%c'\nset autoscale fix\n%s"
				"plot x with lines lc rgb '#555555' title 'exact', "
				"1.1*x with lines dt 2 lc rgb '#999999' title '10 %%', "
				"x/1.1 with lines dt 2 lc rgb '#999999' notitle%s",
				range(&mem, r), points(&mem, r, q.data.out)),
			err);
	}
	arena_release(&mem);
	return ok;
}
