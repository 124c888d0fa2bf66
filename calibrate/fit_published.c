/*
 * calibrate/fit_published.c - rows that others measured, into the files of a profile
 *
 * They keep the code of their source and are not averaged: which of two sources
 * is right is not ours to say. Sorted by shape, as the tables in the tree are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/node.h"
#include "base/stats.h"
#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

/* Fewer compared products say nothing; so many measured ones are a grid of our own. */
enum { FEW_COMPARED = 20, GRID = 200 };
static const double disagree = 0.15;

bool fit_published(const struct ft_measurement *m)
{
	return m->provenance && !strcmp(m->provenance, "published");
}

enum fit_origin fit_origin(const struct fit_input *in, const char *kind)
{
	enum fit_origin most = FIT_NOTHING;

	for (size_t i = 0; i < in->n; i++) {
		if (!measurement_is(&in->row[i], kind))
			continue;
		if (!fit_published(&in->row[i]))
			return FIT_MEASURED;
		most = FIT_PUBLISHED;
	}
	return most;
}

bool fit_has_code(const struct fit_input *in, const char *code)
{
	for (size_t i = 0; i < in->n_codes; i++)
		if (!strcmp(in->code[i], code))
			return true;
	return false;
}

void fit_list_codes(struct fit_input *in, struct arena *mem)
{
	in->code = ARENA_ARRAY(mem, in->n + 1, const char *);
	for (size_t i = 0; i < in->n; i++)
		if (fit_published(&in->row[i]) && !fit_has_code(in, in->row[i].source))
			in->code[in->n_codes++] = in->row[i].source;
}

/* ---- order ------------------------------------------------------------------- */

static int compare_numbers(const double *a, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_shape(const void *a, const void *b)
{
	const struct ft_measurement *x = *(const struct ft_measurement *const *)a;
	const struct ft_measurement *y = *(const struct ft_measurement *const *)b;
	const char *const words[][2] = { { x->fabric, y->fabric },
					 { x->dtype, y->dtype },
					 { x->impl, y->impl },
					 { x->pass, y->pass },
					 { x->kernel, y->kernel } };
	const double p[] = { x->causal, x->head_dim, x->sequence, x->batch,
			     x->heads,	x->kv_heads, x->n,	  x->k,
			     x->m,	x->gpus,     x->bytes };
	const double q[] = { y->causal, y->head_dim, y->sequence, y->batch,
			     y->heads,	y->kv_heads, y->n,	  y->k,
			     y->m,	y->gpus,     y->bytes };
	int order = 0;

	for (size_t i = 0; !order && i < 5; i++)
		order = strcmp(words[i][0], words[i][1]);
	if (!order)
		order = compare_numbers(p, q, 11);
	if (!order)
		order = strcmp(x->layout, y->layout);
	if (!order)
		order = compare_numbers(&x->time_us, &y->time_us, 1);
	return order ? order : strcmp(x->source, y->source);
}

/* ---- rows --------------------------------------------------------------------- */

/* As its source printed it: the shortest of 4 to 6 digits that says it. */
static void put_number(double v, FILE *out)
{
	char text[32];

	for (int digits = 4; digits <= 6; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (fabs(strtod(text, NULL) - v) <= 1e-9 * v)
			break;
	}
	fputs(text, out);
}

static void put_row(const struct ft_measurement *m, FILE *out)
{
	if (measurement_is(m, "gemm")) {
		fprintf(out, "%s,%s,%.0f,%.0f,%.0f,", m->dtype, m->layout, m->m, m->n,
			m->k);
		put_number(m->time_us, out);
	} else if (measurement_is(m, "attention")) {
		fprintf(out, "%s,%s,%s,%s,%.0f,%.0f,%.0f,%.0f,%.0f,", m->dtype, m->impl,
			m->pass, m->causal ? "true" : "false", m->head_dim, m->sequence,
			m->batch, m->heads, m->kv_heads);
		put_number(measurement_attention_flop(m) / m->time_us * 1e-6, out);
	} else {
		fprintf(out, "%s,%s,%.0f,%.0f,%.6g", m->fabric, m->kernel, m->gpus,
			m->bytes, m->time_us);
	}
	fprintf(out, ",%s\n", m->source);
}

bool fit_measured_fabric(const struct fit_input *in, const char *fabric)
{
	for (size_t i = 0; i < in->n; i++)
		if (measurement_is(&in->row[i], "collective") &&
		    !fit_published(&in->row[i]) && !strcmp(in->row[i].fabric, fabric))
			return true;
	return false;
}

/* Does a published row stand beside what was measured? */
bool fit_stands(const struct fit_input *in, const struct ft_measurement *m)
{
	enum ft_dtype dtype;

	if (measurement_is(m, "collective"))
		return !fit_measured_fabric(in, m->fabric);
	return !measurement_is(m, "gemm") ||
	       (ft_dtype_find(m->dtype, &dtype) && in->keep[dtype]);
}

static bool wanted(const struct fit_input *in, int fold, const char *kind,
		   const struct ft_measurement *m)
{
	return fit_published(m) && measurement_is(m, kind) && fit_fold(m) != fold &&
	       !m->sustained && fit_stands(in, m) &&
	       (!in->only_tuned || fit_from_tuner(in, m));
}

void fit_write_published(const struct fit_input *in, int fold, const char *kind,
			 FILE *out)
{
	struct arena mem = { 0 };
	const struct ft_measurement **row =
		ARENA_ARRAY(&mem, in->n + 1, const struct ft_measurement *);
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		if (wanted(in, fold, kind, &in->row[i]))
			row[n++] = &in->row[i];
	qsort(row, n, sizeof(*row), by_shape);
	for (size_t i = 0; i < n; i++)
		put_row(row[i], out);
	arena_release(&mem);
}

/* ---- provenance ----------------------------------------------------------------- */

/* That of a base of the same GPU stays: it says where its constants come from. */
void fit_published_provenance(const struct fit_input *in, const char *kind,
			      const struct ft_provenance *base, FILE *out)
{
	static const char bursts[] = "short bursts at full clocks: steps run at "
				     "`sustained` of them";
	const char *note = !strcmp(kind, "gemm") ? bursts : "";
	bool own = in->own_base && base && base->kind == FT_PUBLISHED;
	const char *more = own ? base->note : "";
	struct arena mem = { 0 };

	if (text_begins_with(more, note))
		note = "";
	node_put_field(out, "  provenance: {kind: published, source: ",
		       own ? base->source : "published rows, see SOURCES.md", ", ");
	node_put_field(out, "date: ", own ? base->date : in->date, ", ");
	node_put_field(out, "note: ",
		       arena_printf(&mem, "%s%s%s", note,
				    note[0] && more[0] ? "; " : "", more),
		       "}\n");
	arena_release(&mem);
}

/* ---- which ones stand -------------------------------------------------------------- */

static bool is_forward_product(const struct ft_measurement *m, const char *dtype)
{
	return measurement_is(m, "gemm") && !strcmp(m->dtype, dtype) &&
	       !strcmp(m->layout, "forward");
}

/* What others published of this product; NULL: nothing. */
static const struct ft_measurement *published_of(const struct fit_input *in,
						 const struct ft_measurement *m)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *p = &in->row[i];

		if (fit_published(p) && is_forward_product(p, m->dtype) &&
		    p->m == m->m && p->n == m->n && p->k == m->k)
			return p;
	}
	return NULL;
}

/* How far published products of a format are off from ours: those of the base by
 * its prediction, those of the store by products of one size. */
static size_t disagreements(const struct fit_input *in, const char *dtype, double *off)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i], *p;

		if (!is_forward_product(m, dtype) || m->sustained || fit_published(m))
			continue;
		p = in->n_codes ? published_of(in, m) : NULL;
		if (p)
			off[n++] = p->time_us / m->time_us - 1;
		else if (in->own_base && !in->n_codes)
			off[n++] = measurement_predict_us(in->base, m) / m->time_us - 1;
	}
	return n;
}

static size_t forward_products(const struct fit_input *in, const char *dtype)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		n += is_forward_product(&in->row[i], dtype) && !in->row[i].sustained &&
		     !fit_published(&in->row[i]);
	return n;
}

static void note_left_out(struct ft_fit *fit, const char *dtype, const char *why)
{
	size_t had = strlen(fit->note);

	snprintf(fit->note + had, sizeof(fit->note) - had,
		 "%spublished %s products are left out: %s", had ? "; " : "", dtype,
		 why);
}

void fit_judge_published(struct fit_input *in, struct ft_fit *fit, struct arena *mem)
{
	double *off = ARENA_ARRAY(mem, in->n + 1, double), median;

	for (int d = 0; d < FT_DTYPES; d++) {
		const char *name = ft_dtype_name((enum ft_dtype)d);
		size_t n = disagreements(in, name, off);
		size_t ours = forward_products(in, name);

		for (size_t i = 0; i < n; i++)
			off[i] = fabs(off[i]);
		stats_sort(off, n);
		median = n ? stats_median(off, n) : 0;
		in->keep[d] = true;
		if (!n || ((n < FEW_COMPARED || median <= disagree) && ours < GRID))
			continue;
		in->keep[d] = false;
		note_left_out(fit, name,
			      arena_printf(mem,
					   "measurements differ from them by %.0f %% "
					   "(median of %zu)",
					   100 * median, n));
	}
}
