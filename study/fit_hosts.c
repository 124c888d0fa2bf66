/*
 * study/fit_hosts.c - the host constants of a stack, from what a recorded host took
 *
 * With sections y, times A and constants x, of the stack b: x = b + W z with the least z
 * that brings A x nearest to y. Operation by operation all constants may move. By layer
 * only those that a section is there for (blocks, their tensor-parallel or routed part,
 * the ends, the loop around a micro-batch); the others are as annotations say, or stay.
 * A constant is solved where its axis lies in the space of A's rows.
 */
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "base/plain.h"
#include "study/host_rows.h"
#include "study/stack_there.h"

static const double SMALLEST = 1e-7; /* singular value, of the greatest: not 0 */
static const double ROUNDING_S = 1e-9;
static const double LEAST_S = 1e-5; /* of a constant that is 0, to move from there */

const char *ft_host_told_name(enum ft_host_told told)
{
	static const char *const names[FT_HOST_TOLDS] = {
		"not in this step", "not told: kept", "by itself",     "the rest",
		"the rest, shared", "by sections",    "less than 0: 0"
	};

	return names[told];
}

static double crowd(const struct ft_scenario *s)
{
	return ft_sim_host_factor(s->cluster, s->stack);
}

/* ---- which may move -------------------------------------------------------------------- */

static bool has_experts(const struct host_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].times[FT_HOST_EXPERTS_FORWARD] > 0)
			return true;
	return false;
}

/* Those that take what a section's other activities leave. */
static bool takes_rest(const struct host_rows *rows, const struct ft_plan *plan, int h)
{
	bool experts = has_experts(rows), tensor = plan->tp > 1 && !experts;

	switch (h) {
	case FT_HOST_BLOCK_FORWARD:
	case FT_HOST_BLOCK_BACKWARD:
		return !experts && !tensor;
	case FT_HOST_TENSOR_FORWARD:
	case FT_HOST_TENSOR_BACKWARD:
	case FT_HOST_TENSOR_OP:
		return tensor;
	case FT_HOST_EXPERTS_FORWARD:
	case FT_HOST_EXPERTS_BACKWARD:
		return experts;
	case FT_HOST_ENDS_FORWARD:
	case FT_HOST_ENDS_BACKWARD:
	case FT_HOST_TABLE_FRESH: /* the root's, mostly */
	case FT_HOST_STEP:
	case FT_HOST_OPTIMIZER: /* unless an annotation tells it */
	case FT_HOST_MICRO_BATCH:
		return true;
	default:
		return false;
	}
}

static bool in_rows(const struct host_rows *rows, int h)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].times[h] > 0)
			return true;
	return false;
}

/* ---- least squares ------------------------------------------------------------------------ */

struct solution {
	double by[FT_HOSTS];	/* what x gains */
	double known[FT_HOSTS]; /* 1: its axis lies in the space of the rows */
};

/* Of M = U S V', of n columns: V S^-1 U' y, and the squares of V's rows. */
static void solve(gsl_matrix *m, const gsl_vector *y, struct solution *out)
{
	gsl_matrix *v = allocated(gsl_matrix_alloc(FT_HOSTS, FT_HOSTS));
	gsl_vector *s = allocated(gsl_vector_alloc(FT_HOSTS));
	gsl_vector *work = allocated(gsl_vector_alloc(FT_HOSTS));

	*out = (struct solution){ { 0 }, { 0 } };
	gsl_linalg_SV_decomp(m, v, s, work);
	for (size_t k = 0; k < FT_HOSTS; k++) {
		double dot = 0;

		if (gsl_vector_get(s, k) <= SMALLEST * gsl_vector_get(s, 0))
			continue;
		for (size_t i = 0; i < y->size; i++)
			dot += gsl_matrix_get(m, i, k) * gsl_vector_get(y, i);
		for (size_t h = 0; h < FT_HOSTS; h++) {
			double x = gsl_matrix_get(v, h, k);

			out->by[h] += x * dot / gsl_vector_get(s, k);
			out->known[h] += x * x;
		}
	}
	gsl_matrix_free(v);
	gsl_vector_free(s);
	gsl_vector_free(work);
}

/* What cannot be told apart changes by the same part of itself. */
static double weight(const struct ft_host_fit *fit, int h)
{
	return fmax(fit->of[h].was_s, LEAST_S);
}

static double left_s(const struct host_row *row, const struct ft_host_fit *fit,
		     bool as_it_was, double pace, double crowded)
{
	double s = row->time_s * pace;

	for (int h = 0; h < FT_HOSTS; h++)
		s -= row->times[h] * crowded *
		     (as_it_was ? fit->of[h].was_s : fit->of[h].is_s);
	return s;
}

/* One round; which of those that move end below 0. */
static bool fit_once(const struct ft_host_fit_request *asked,
		     const struct host_rows *rows, const bool moves[FT_HOSTS],
		     struct solution *x, struct ft_host_fit *fit)
{
	size_t m = rows->n > FT_HOSTS ? rows->n : FT_HOSTS;
	gsl_matrix *a = allocated(gsl_matrix_calloc(m, FT_HOSTS));
	gsl_vector *y = allocated(gsl_vector_calloc(m));
	double crowded = crowd(asked->scenario);
	bool below = false;

	for (size_t i = 0; i < rows->n; i++) {
		double counts = sqrt((double)rows->row[i].n);

		gsl_vector_set(y, i,
			       counts * left_s(&rows->row[i], fit, false, asked->pace,
					       crowded));
		for (int h = 0; h < FT_HOSTS; h++)
			gsl_matrix_set(a, i, (size_t)h,
				       moves[h] ? counts * weight(fit, h) * crowded *
							  rows->row[i].times[h] :
						  0);
	}
	solve(a, y, x);
	for (int h = 0; h < FT_HOSTS; h++)
		if (moves[h] &&
		    fit->of[h].is_s + weight(fit, h) * x->by[h] < -ROUNDING_S) {
			fit->of[h].is_s = 0;
			fit->of[h].told = FT_HOST_BELOW;
			below = true;
		}
	gsl_matrix_free(a);
	gsl_vector_free(y);
	return below;
}

/* Until none is below 0: those that were stay there. */
static void fit_rows(const struct ft_host_fit_request *asked,
		     const struct host_rows *rows, struct ft_host_fit *fit)
{
	bool moves[FT_HOSTS];
	struct solution x;

	do {
		for (int h = 0; h < FT_HOSTS; h++)
			moves[h] = in_rows(rows, h) &&
				   fit->of[h].told != FT_HOST_BELOW &&
				   (rows->by_op ||
				    (fit->of[h].told != FT_HOST_SPAN &&
				     takes_rest(rows, asked->scenario->plan, h)));
	} while (fit_once(asked, rows, moves, &x, fit));
	for (int h = 0; h < FT_HOSTS; h++) {
		struct ft_host_constant *c = &fit->of[h];

		if (!moves[h] || x.known[h] < 1e-6)
			continue;
		c->is_s = fmax(0, c->is_s + weight(fit, h) * x.by[h]);
		c->told = x.known[h] < 1 - 1e-6 ? FT_HOST_JOINT :
			  rows->by_op		? FT_HOST_SOLVED :
						  FT_HOST_REST;
	}
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void begin(const struct ft_host_fit_request *asked, const struct host_rows *rows,
		  struct ft_host_fit *fit)
{
	double crowded = crowd(asked->scenario);

	for (int h = 0; h < FT_HOSTS; h++) {
		const struct host_span *alone = &rows->alone[h];
		struct ft_host_constant *c = &fit->of[h];

		c->n = 0;
		c->was_s = c->is_s = asked->scenario->stack->host_s[h].value;
		c->told = in_rows(rows, h) ? FT_HOST_KEPT : FT_HOST_ABSENT;
		for (size_t i = 0; i < rows->n; i++)
			c->n += rows->row[i].times[h] > 0 ? rows->row[i].n : 0;
		if (!alone->n)
			continue;
		c->is_s = alone->time_s * asked->pace / crowded -
			  host_within_s(asked->scenario->stack, rows, (enum ft_host)h);
		c->is_s = fmax(0, c->is_s);
		c->n = alone->n;
		c->told = FT_HOST_SPAN;
	}
	fit->by_op = rows->by_op;
	fit->sections = 0;
	for (size_t i = 0; i < rows->n; i++)
		fit->sections += rows->row[i].n;
}

static double error_frac(const struct ft_host_fit_request *asked,
			 const struct host_rows *rows, const struct ft_host_fit *fit,
			 bool as_it_was)
{
	double off = 0, all = 0;

	for (size_t i = 0; i < rows->n; i++) {
		double n = (double)rows->row[i].n;

		off += n * fabs(left_s(&rows->row[i], fit, as_it_was, asked->pace,
				       crowd(asked->scenario)));
		all += n * rows->row[i].time_s * asked->pace;
	}
	return all > 0 ? off / all : 0;
}

static void fit_all(const struct ft_host_fit_request *asked,
		    const struct host_rows *rows, struct ft_host_fit *fit)
{
	begin(asked, rows, fit);
	fit_rows(asked, rows, fit);
	fit->before_frac = error_frac(asked, rows, fit, true);
	fit->after_frac = error_frac(asked, rows, fit, false);
}

/* By layer, launches as far apart as they are; where that leaves more than half of what sections were
 * off by, other work lies between them, and a launch stays as it is. */
static void fit_by_layer(const struct ft_host_fit_request *asked, struct arena *mem,
			 struct host_rows *rows, struct ft_host_fit *fit)
{
	host_rows_alone(asked, false, mem, rows);
	fit_all(asked, rows, fit);
	if (fit->after_frac <= fit->before_frac / 2)
		return;
	host_rows_alone(asked, true, mem, rows);
	fit_all(asked, rows, fit);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static bool is_told(const struct ft_host_constant *c)
{
	return c->told >= FT_HOST_SPAN;
}

static const char *source_of(const struct ft_host_fit_request *asked, struct arena *mem)
{
	const char *file = ft_recording_file(ft_replay_recording(asked->replay, 0));
	const char *name = strrchr(file, '/');

	return arena_printf(mem, "%s%s", name ? name + 1 : file,
			    ft_replay_ranks(asked->replay) > 1 ? " and other ranks" :
								 "");
}

static void write_constant(FILE *out, const struct ft_host_fit_request *asked,
			   const struct ft_host_constant *c, int h, struct arena *mem)
{
	bool measured = c->told == FT_HOST_SPAN || c->told == FT_HOST_SOLVED;
	char *said =
		arena_printf(mem, "%s: %s, %zu sample%s, times %.4g for the profiler",
			     source_of(asked, mem), ft_host_told_name(c->told), c->n,
			     c->n == 1 ? "" : "s", asked->pace);

	/* a range of the stack below is of another value */
	fprintf(out,
		"    %s: {value: %.6g us, low: null, high: null, provenance: {kind: %s, source: ",
		ft_host_name((enum ft_host)h), 1e6 * c->is_s,
		measured ? "measured" : "derived");
	node_put_quoted(out, said);
	if (asked->date)
		fprintf(out, ", date: %s", asked->date);
	fputs("}}\n", out);
}

static bool write_stack(const struct ft_host_fit_request *asked,
			const struct ft_host_fit *fit, struct arena *mem,
			struct ft_error *err)
{
	const struct ft_stack *s = asked->scenario->stack;
	struct file_out file;
	bool any = false;

	if (!file_begin(&file, fit->path, err))
		return false;
	fputs("# written by foretoken trace compare --fit-stack\n", file.out);
	node_put_field(file.out, "extends: ", stack_base(asked->scenario, mem), "\n");
	node_put_field(file.out, "title: ",
		       arena_printf(mem, "%s, its hosts fitted to %s", s->title,
				    source_of(asked, mem)),
		       "\n");
	for (int h = 0; h < FT_HOSTS; h++)
		any |= is_told(&fit->of[h]);
	if (any)
		fputs("rates:\n  host:\n", file.out);
	for (int h = 0; h < FT_HOSTS; h++)
		if (is_told(&fit->of[h]))
			write_constant(file.out, asked, &fit->of[h], h, mem);
	return file_commit(&file, err);
}

/* ---- all of it ------------------------------------------------------------------------------------- */

/* The scenario's step as it would be recorded, to find its moments. */
static const struct ft_replay *draw(struct ft_scenario *s, struct ft_trace_predicted *p,
				    struct ft_error *err)
{
	if (!ft_study_trace_predict(s, NULL, p, err))
		return NULL;
	if (!p->replay)
		*err = p->why;
	return p->replay;
}

static bool fit(const struct ft_host_fit_request *asked, struct ft_host_fit *out,
		struct arena *mem, struct ft_error *err)
{
	const struct ft_scenario *s = asked->scenario;
	struct ft_graph *g = ft_scenario_graph(s, err);
	struct ft_trace_predicted predicted = { .n = 0 };
	const struct ft_replay *p = g ? draw(asked->scenario, &predicted, err) : NULL;
	struct host_rows rows;
	bool ok = p && host_rows_find(asked, g, p, mem, &rows, err);

	if (ok) {
		if (rows.by_op)
			fit_all(asked, &rows, out);
		else
			fit_by_layer(asked, mem, &rows, out);
		ok = write_stack(asked, out, mem, err);
	}
	ft_trace_predicted_release(&predicted);
	ft_graph_free(g);
	return ok;
}

bool ft_study_fit_hosts(const struct ft_host_fit_request *asked,
			struct ft_host_fit *out, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	bool ok;

	*out = (struct ft_host_fit){ .pace = asked->pace };
	if (!stack_file(asked->name, out->path, sizeof(out->path), err))
		return false;
	if (asked->scenario->plan->pp > 1)
		return ft_fail(err, &(struct ft_mark){ .file = asked->scenario->file },
			       "has a pipeline: hosts are fitted to steps without one");
	ok = fit(asked, out, &mem, err);
	arena_release(&mem);
	return ok;
}
