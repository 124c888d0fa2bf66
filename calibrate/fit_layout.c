/*
 * calibrate/fit_layout.c - what the layouts of a product cost, by the tool
 *
 * dgrad and wgrad: a backward product against the forward one of the same sizes
 * (after its operands are turned), both from one source; median, P10 and P90.
 * accumulate: products added to an fp32 gradient against the profile's own
 * prediction, which counts the extra bytes already. All number formats together:
 * they differ by less than their scatter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

enum { FEWEST = 10 };

struct fit_ratio fit_ratio_of(double *v, size_t n)
{
	stats_sort(v, n);
	return (struct fit_ratio){ stats_median(v, n), stats_quantile(v, n, 0.1),
				   stats_quantile(v, n, 0.9), n };
}

static bool plain(const struct ft_measurement *m, const char *layout)
{
	return measurement_is(m, "gemm") && !m->accumulate && !m->sustained &&
	       !fit_published(m) && !strcmp(m->layout, layout);
}

/* Is f the forward product that b, of a layer of m n k, is? */
static bool same_product(const struct ft_measurement *b, const struct ft_measurement *f)
{
	enum ft_layout layout;
	struct ft_product p;

	if (!ft_layout_find(b->layout, &layout))
		return false;
	p = ft_product_of(layout, b->m, b->n, b->k);
	return f->m == p.m && f->n == p.n && f->k == p.k &&
	       !strcmp(f->dtype, b->dtype) && fit_from_torch(f) == fit_from_torch(b);
}

static void against_forward(const struct fit_input *in, int fold, const char *layout,
			    struct fit_ratio *out)
{
	struct arena mem = { 0 };
	double *ratio = ARENA_ARRAY(&mem, in->n + 1, double);
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *b = &in->row[i];
		double sum = 0;
		size_t found = 0;

		if (!plain(b, layout) || fit_fold(b) == fold)
			continue;
		for (size_t j = 0; j < in->n; j++) {
			const struct ft_measurement *f = &in->row[j];

			if (!plain(f, "forward") || !same_product(b, f))
				continue;
			sum += f->time_us;
			found++;
		}
		if (found)
			ratio[n++] = b->time_us / (sum / (double)found);
	}
	*out = (struct fit_ratio){ .n = 0 };
	if (n >= FEWEST)
		*out = fit_ratio_of(ratio, n);
	arena_release(&mem);
}

void fit_layouts(struct fit_input *in, int fold)
{
	in->dgrad = in->wgrad = in->accumulate = (struct fit_ratio){ .n = 0 };
	if (!(in->families & FT_FIT_LAYOUT))
		return;
	against_forward(in, fold, "dgrad", &in->dgrad);
	against_forward(in, fold, "wgrad", &in->wgrad);
}

bool fit_accumulate(struct fit_input *in, int fold, const struct ft_gpu *gpu)
{
	struct arena mem = { 0 };
	double *ratio = ARENA_ARRAY(&mem, in->n + 1, double);
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];
		double us;

		if (!measurement_is(m, "gemm") || !m->accumulate || m->sustained ||
		    fit_fold(m) == fold)
			continue;
		us = measurement_predict_us(gpu, m);
		if (us > 0)
			ratio[n++] = m->time_us / us;
	}
	if (n >= FEWEST)
		in->accumulate = fit_ratio_of(ratio, n);
	arena_release(&mem);
	return n >= FEWEST;
}

static void put(const struct fit_input *in, const char *name, const struct fit_ratio *r,
		const char *what, FILE *out)
{
	struct arena mem = { 0 };

	if (!r->n)
		return;
	fprintf(out, "    %s: {value: %.3f, low: %.3f, high: %.3f, ", name, r->value,
		r->low, r->high);
	fit_put_measured(
		in, strcmp(name, "accumulate") ? "gemm" : FIT_ACCUMULATE, out,
		arena_printf(&mem, "median, P10 and P90 of %zu %s", r->n, what),
		"}}\n");
	arena_release(&mem);
}

/* While accumulate is being fitted the profile must not have it. */
void fit_layout_yaml(const struct fit_input *in, FILE *out)
{
	bool hide = in->families & FT_FIT_ACCUMULATE && !in->accumulate.n &&
		    fit_origin(in, "gemm") == FIT_MEASURED;

	if (!in->dgrad.n && !in->wgrad.n && !in->accumulate.n && !hide)
		return;
	fputs("  layout:\n", out);
	put(in, "dgrad", &in->dgrad,
	    "products against forward ones of the "
	    "same sizes",
	    out);
	put(in, "wgrad", &in->wgrad,
	    "products against forward ones of the "
	    "same sizes",
	    out);
	put(in, "accumulate", &in->accumulate,
	    "products against their "
	    "prediction without it",
	    out);
	if (hide)
		fputs("    accumulate: 1\n", out);
}
