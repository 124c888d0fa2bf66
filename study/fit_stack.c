/* study/fit_stack.c - a stack fitted to a file of one's own runs, and how far off it is */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "base/stats.h"
#include "base/text.h"
#include "study/fit_factors.h"
#include "study/shelf.h"
#include "study/stack_there.h"
#include "study/tally.h"

enum { LEAST_ROWS = 4, LEAST_GROUPS = 4 };

/* A row with its scenario, ready to be run under changed stacks. */
struct fitted_row {
	struct ft_scenario *scenario;
	struct ft_graph *graph;
	const struct ft_stack *stack; /* as it was given */
	const char *group;
	size_t at;     /* in the file */
	double step_s; /* under it */
};

struct fitting {
	struct tally t;
	size_t n;
	struct fitted_row *row;
	struct fit_run *run; /* [n] */
	size_t done, total;
	struct ft_progress progress;
};

static const char *const names[FT_FIT_FACTORS] = { "host", "gemm", "attention",
						   "memory_bound", "collective" };

const char *ft_fit_factor_name(size_t factor)
{
	return names[factor];
}

static struct ft_stack changed(const struct ft_stack *was,
			       const double ln_factor[FT_FIT_FACTORS])
{
	struct ft_stack s = *was;

	for (int i = 0; i < FT_HOSTS; i++)
		number_scale(&s.host_s[i], exp(ln_factor[0]));
	number_scale(&s.gemm_factor, exp(ln_factor[1]));
	for (size_t i = 0; i < s.n_gemm_on; i++)
		number_scale(&s.gemm_on[i].factor, exp(ln_factor[1]));
	number_scale(&s.attention_factor, exp(ln_factor[2]));
	number_scale(&s.memory_factor, exp(ln_factor[3]));
	number_scale(&s.collective_factor, exp(ln_factor[4]));
	return s;
}

/* The row's answer under its stack with these factors. */
static bool step_under(struct fitted_row *r, const double ln_factor[FT_FIT_FACTORS],
		       struct ft_outcome *o, struct ft_error *err)
{
	struct ft_stack s = changed(r->stack, ln_factor);
	bool ok;

	r->scenario->stack = &s;
	ok = ft_study_simulate(r->scenario, r->graph, NULL, o, err);
	r->scenario->stack = r->stack;
	return ok;
}

static void tell(struct fitting *f)
{
	f->done++;
	if (f->progress.tell)
		f->progress.tell(f->progress.context, f->done, f->done,
				 f->done > f->total ? f->done : f->total);
}

/* Refuses a row whose measured value is so far off that its unit is probably wrong: a
 * fit to it would be nonsense. */
static bool not_in_doubt(const struct csv *rows, size_t i, const char *key,
			 double measured, double predicted, struct ft_error *err)
{
	struct ft_mark at = csv_mark(rows, i, -1);

	if (!ft_check_doubtful(&(struct ft_check){
		    .key = key, .measured = measured, .predicted = predicted }))
		return true;
	return ft_fail(err, &at,
		       "%s is measured as %.5g and predicted as %.5g: is it in another "
		       "unit?",
		       key, measured, predicted);
}

/* As given: the scenario, its graph, its step, and ln(measured / step). */
static bool begin_row(struct fitting *f, const struct csv *rows, size_t i,
		      struct ft_error *err)
{
	static const double ones[FT_FIT_FACTORS];
	struct fitted_row *r = &f->row[f->n];
	struct node *root = row_scenario(&f->t, rows, i, err);
	const char *key;
	double measured, predicted;
	struct ft_outcome o;

	*r = (struct fitted_row){ .group = csv_text(rows, i, csv_column(rows, "group")),
				  .at = i };
	r->scenario = root ? scenario_lenient(f->t.shelf, root, rows->file, err) : NULL;
	if (!r->scenario)
		return false;
	r->stack = r->scenario->stack;
	r->graph = ft_graph_build(r->scenario->model, r->scenario->plan, r->stack, err);
	if (!r->graph || !row_scored(&f->t, rows, i, &key, &measured, err) ||
	    !step_under(r, ones, &o, err))
		return false;
	ft_outcome_get(&o, key, &predicted);
	r->step_s = o.step_s;
	f->run[f->n].ratio = strcmp(key, "step_s") ? log(predicted / measured) :
						     log(measured / predicted);
	ft_outcome_release(&o);
	return not_in_doubt(rows, i, key, measured, predicted, err);
}

static void drop_row(struct fitted_row *r)
{
	ft_graph_free(r->graph);
	ft_scenario_free(r->scenario);
}

/* By their files: GPUs of another generation may have another attention under it. */
static bool same_stack(const struct ft_stack *a, const struct ft_stack *b)
{
	return !strcmp(a->name, b->name) && a->digest.low == b->digest.low &&
	       a->digest.high == b->digest.high;
}

static bool one_stack(const struct fitting *f, const struct csv *rows,
		      struct ft_error *err)
{
	for (size_t i = 1; i < f->n; i++)
		if (!same_stack(f->row[i].stack, f->row[0].stack))
			return ft_fail(
				err, NULL,
				"%s has runs under %s and under %s: fit one stack "
				"at a time, from a file of its own runs",
				rows->file, f->row[0].stack->name,
				f->row[i].stack->name);
	return true;
}

/* How each row answers to each factor alone. */
static bool find_replies(struct fitting *f, struct ft_error *err)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < FT_FIT_FACTORS; k++)
			for (int p = 0; p < FIT_POINTS; p++) {
				double factor[FT_FIT_FACTORS] = { 0 };
				struct ft_outcome o;

				factor[k] = fit_point(k, p);
				if (2 * p + 1 == FIT_POINTS)
					continue; /* 1: no reply */
				if (!step_under(&f->row[i], factor, &o, err))
					return false;
				f->run[i].reply[k][p] =
					log(o.step_s / f->row[i].step_s);
				ft_outcome_release(&o);
				tell(f);
			}
	return true;
}

/* Rows of one scenario are left out together: what was run again tells of the other run. */
static size_t find_scenarios(struct fitting *f, const struct csv *rows)
{
	size_t folds = 0;

	for (size_t i = 0; i < f->n; i++) {
		size_t j = 0;

		while (!rows_alike(rows, f->row[j].at, f->row[i].at))
			j++;
		f->run[i].fold = j < i ? f->run[j].fold : folds++;
	}
	return folds;
}

/* Groups when there are enough of them; else each row alone. */
static size_t find_folds(struct fitting *f, const struct csv *rows, bool *by_group)
{
	size_t groups = 0;

	for (size_t i = 0; i < f->n; i++) {
		size_t j = 0;

		while (strcmp(f->row[j].group, f->row[i].group) != 0)
			j++;
		f->run[i].fold = j < i ? f->run[j].fold : groups++;
	}
	*by_group = groups >= LEAST_GROUPS;
	return *by_group ? groups : find_scenarios(f, rows);
}

/* Errors in time, positive too slow: exp(-(ln measured - ln predicted)) - 1. */
static struct ft_summary sum_up(struct arena *mem, const double *rest, size_t n)
{
	double *error = ARENA_ARRAY(mem, n, double);
	struct ft_summary s = { .n = n };

	for (size_t i = 0; i < n; i++) {
		double e = exp(-rest[i]) - 1;

		s.bias += e / (double)n;
		s.mape += fabs(e) / (double)n;
		error[i] = fabs(e);
	}
	stats_sort(error, n);
	s.median = stats_median(error, n);
	s.p90 = stats_quantile(error, n, 0.9);
	s.max = error[n - 1];
	return s;
}

/* What is left of each row's error under factors simulated, not read off the replies. */
static bool left_under(struct fitting *f, size_t i,
		       const double ln_factor[FT_FIT_FACTORS], double *rest,
		       struct ft_error *err)
{
	struct ft_outcome o;

	if (!step_under(&f->row[i], ln_factor, &o, err))
		return false;
	*rest = f->run[i].ratio - log(o.step_s / f->row[i].step_s);
	ft_outcome_release(&o);
	tell(f);
	return true;
}

static bool judge(struct fitting *f, const struct csv *rows, struct ft_stack_fit *out,
		  struct ft_error *err)
{
	double *before = ARENA_ARRAY(f->t.mem, f->n, double);
	double *after = ARENA_ARRAY(f->t.mem, f->n, double);
	double *held = ARENA_ARRAY(f->t.mem, f->n, double);
	double ln_factor[FT_FIT_FACTORS];

	out->folds = find_folds(f, rows, &out->by_group);
	for (size_t fold = 0; fold < out->folds; fold++) {
		fit_factors(f->run, f->n, fold, ln_factor);
		for (size_t i = 0; i < f->n; i++)
			if (f->run[i].fold == fold &&
			    !left_under(f, i, ln_factor, &held[i], err))
				return false;
	}
	fit_factors(f->run, f->n, out->folds, out->ln_factor);
	for (size_t i = 0; i < f->n; i++) {
		before[i] = f->run[i].ratio;
		if (!left_under(f, i, out->ln_factor, &after[i], err))
			return false;
	}
	out->before = sum_up(f->t.mem, before, f->n);
	out->after = sum_up(f->t.mem, after, f->n);
	out->held_out = sum_up(f->t.mem, held, f->n);
	return true;
}

static void write_rates(FILE *out, const struct ft_stack *s,
			const double ln_factor[FT_FIT_FACTORS])
{
	struct ft_stack now = changed(s, ln_factor);
	const struct ft_number *rate[] = { &now.gemm_factor, &now.attention_factor,
					   &now.memory_factor, &now.collective_factor };

	fputs("rates:\n", out);
	for (int k = 1; k < FT_FIT_FACTORS; k++)
		if (ln_factor[k] != 0)
			fprintf(out, "  %s: %.4g\n", names[k], rate[k - 1]->value);
	if (ln_factor[1] != 0 && now.n_gemm_on > 0)
		fputs("  gemm_by_generation:\n", out);
	for (size_t i = 0; ln_factor[1] != 0 && i < now.n_gemm_on; i++)
		fprintf(out, "    %s: %.4g\n", now.gemm_on[i].generation,
			now.gemm_on[i].factor.value);
	if (ln_factor[0] == 0)
		return;
	fputs("  host:\n", out);
	for (int i = 0; i < FT_HOSTS; i++)
		if (now.host_s[i].value > 0)
			fprintf(out, "    %s: %.4g us\n", ft_host_name((enum ft_host)i),
				1e6 * now.host_s[i].value);
}

static bool write_stack(const struct fitting *f, const struct csv *rows,
			const struct ft_stack_fit *fit, struct ft_error *err)
{
	const struct ft_stack *s = f->row[0].stack;
	bool any = false;
	struct file_out file;

	if (!file_begin(&file, fit->path, err))
		return false;
	for (int k = 0; k < FT_FIT_FACTORS; k++)
		any |= fit->ln_factor[k] != 0;
	fprintf(file.out,
		"# written by foretoken validate --fit-stack; held out, runs are off by "
		"%.1f %% on average\n",
		100 * fit->held_out.mape);
	node_put_field(file.out, "extends: ", stack_base(f->row[0].scenario, f->t.mem),
		       "\n");
	fputs("title: ", file.out);
	node_put_field(file.out, "",
		       arena_printf(f->t.mem, "%s, fitted to %s", s->title, rows->file),
		       "\n");
	node_put_field(file.out, "provenance: {kind: derived, source: ",
		       arena_printf(f->t.mem, "%zu runs of %s", f->n, rows->file),
		       "}\n");
	if (any)
		write_rates(file.out, s, fit->ln_factor);
	return file_commit(&file, err);
}

static bool fit(struct fitting *f, const struct csv *rows, struct ft_stack_fit *out,
		struct ft_error *err)
{
	struct ft_error why;

	f->row = ARENA_ARRAY(f->t.mem, rows->n_rows, struct fitted_row);
	f->run = ARENA_ARRAY(f->t.mem, rows->n_rows, struct fit_run);
	f->total = rows->n_rows * ((FIT_POINTS - 1) * FT_FIT_FACTORS + 3);
	for (size_t i = 0; i < rows->n_rows; i++) {
		if (begin_row(f, rows, i, &why)) {
			f->n++;
		} else {
			drop_row(&f->row[f->n]);
			if (why.of_system) {
				*err = why;
				return false;
			}
			if (!out->n_failed++)
				out->why = why;
		}
		tell(f);
	}
	out->n = f->n;
	if (f->n < LEAST_ROWS)
		return ft_fail(
			err, NULL,
			"%s has %zu runs that can be used, and a fit needs %d%s%s",
			rows->file, f->n, LEAST_ROWS,
			out->n_failed ? "; the first that cannot: " : "",
			out->n_failed ? out->why.text : "");
	return one_stack(f, rows, err) && find_replies(f, err) &&
	       judge(f, rows, out, err) && write_stack(f, rows, out, err);
}

/* Tables of kernels and of collectives are known by their first column, as validate knows them. */
static bool are_steps(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	struct ft_mark at = csv_column_mark(rows, 0);

	if (!strcmp(rows->column[0], "kernel") || !strcmp(rows->column[0], "op"))
		return ft_fail(err, &at,
			       "a table of %s; --fit-stack takes measured steps",
			       rows->column[0][0] == 'k' ? "kernels" : "collectives");
	return rows_are_steps(t, rows, err);
}

bool ft_study_fit_stack(const struct ft_stack_request *asked, struct ft_stack_fit *out,
			struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct fitting f = { .progress = asked->progress };
	struct csv *rows;
	bool ok;

	*out = (struct ft_stack_fit){ 0 };
	if (!stack_file(asked->name, out->path, sizeof(out->path), err))
		return false;
	f.t = (struct tally){ .mem = &mem,
			      .v = ARENA_NEW(&mem, struct ft_validation),
			      .sets = asked->sets,
			      .n_sets = asked->n_sets,
			      .shelf = ft_shelf_new() };
	rows = csv_read_file(&mem, asked->runs, err);
	ok = rows && are_steps(&f.t, rows, err) && fit(&f, rows, out, err);
	for (size_t i = 0; i < f.n; i++)
		drop_row(&f.row[i]);
	ft_shelf_free(f.t.shelf);
	arena_release(&mem);
	return ok;
}
