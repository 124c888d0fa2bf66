/* study/single_rows.c - rows of single kernels and of single collectives: what both have */
#include "study/single_rows.h"

#include <string.h>

#include "base/stats.h"

const struct ft_gpu *garage_gpu(struct garage *g, const char *name,
				const struct ft_mark *at, struct ft_error *err)
{
	if (!*name) {
		ft_fail(err, at,
			"the row names no gpu; write a profile's name or path");
		return NULL;
	}
	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->asked[i], name))
			return g->gpu[i];
	if (g->n == sizeof(g->gpu) / sizeof(*g->gpu)) {
		ft_fail(err, at, "too many different GPUs in one file");
		return NULL;
	}
	g->asked[g->n] = name;
	g->gpu[g->n] = ft_gpu_load(name, at, err);
	return g->gpu[g->n] ? g->gpu[g->n++] : NULL;
}

void garage_close(struct garage *g)
{
	for (size_t i = 0; i < g->n; i++)
		ft_gpu_free(g->gpu[i]);
}

bool row_whole(const struct csv *t, size_t row, const char *column, int64_t fallback,
	       int64_t *out, struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, row, csv_column(t, column));
	double v;

	if (!csv_number(t, row, csv_column(t, column), (double)fallback, &v, err))
		return false;
	if (v < 0 || v > 1e15)
		return ft_fail(err, &at, "%s is out of range", column);
	*out = (int64_t)v;
	return (double)*out == v ||
	       ft_fail(err, &at, "%s should be a whole number", column);
}

/* The number in a cell, which is above 0 or 0 beside the other. */
static bool read_measured(const struct csv *t, size_t row, const char *column,
			  bool alone, double *value, struct ft_error *err)
{
	int at = csv_column(t, column);
	struct ft_mark mark = csv_mark(t, row, at);

	if (!csv_number(t, row, at, 0, value, err))
		return false;
	return *value > 0 || !*csv_text(t, row, at) || (*value >= 0 && !alone) ||
	       ft_fail(err, &mark, "%s is '%.40s', which is not above 0", column,
		       csv_text(t, row, at));
}

bool row_measured(const struct csv *t, size_t row, const char *rate_column, double *us,
		  double *rate, struct ft_error *err)
{
	static const char time_column[] = "measured.time_us";

	if (!read_measured(t, row, rate_column, false, rate, err) ||
	    !read_measured(t, row, time_column, !(*rate > 0), us, err))
		return false;
	return *us > 0 || *rate > 0 ||
	       ft_fail(err, NULL, "the row has no %s and no %s", time_column,
		       rate_column);
}

void check_time_or_rate(struct tally *t, struct ft_check *c,
			const struct ft_prediction *p, double us, struct rate rate)
{
	double reach = NORMAL_P90 * p->spread_frac;

	c->is_rate = us <= 0;
	c->key = c->is_rate ? rate.key : "time_us";
	c->measured = c->is_rate ? rate.measured : us;
	c->predicted = c->is_rate ? rate.work / p->time_s : p->time_s * 1e6;
	c->low = c->predicted / (1 + reach);
	c->high = c->predicted * (1 + reach);
	c->extrapolated_frac = p->extrapolated;
	tally_check(t, c, true);
}
