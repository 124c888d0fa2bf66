/*
 * calibrate/fit_published_rates.c - published products of other conditions than the
 * rest: those of tuners, and those that ran for seconds
 *
 * tuned: rows of the sources that the base's `gemm.tuned` names are the best of many
 * kernels, timed in the tuner's way. A profile of them alone predicts the other cold
 * bursts of the same format; what theirs take against the measured time is one factor
 * for the format, the median. Formats with fewer than five such rows have none: what
 * is called there is the tuner's kernel.
 *
 * sustained: rows of seconds against bursts of the same product, or, where fewer than
 * two of them have one, against the burst that the profile predicts; the law of
 * sim/kernel.c is solved for the rate, since of a kernel that leaves power unused only
 * a part of the loss is seen.
 */
#include <math.h>
#include <string.h>

#include "base/node.h"
#include "base/stats.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

enum { FEWEST_TUNED = 5, FEWEST_SUSTAINED = 2, MOST_RATIOS = 512 };

/* A row says little of the clock where less than this part of a loss is seen. */
static const double least_seen = 0.25;

bool fit_tuners_code(const struct fit_input *in, const char *code)
{
	const struct ft_gemm_tuned *t = &in->base->gemm_tuned;

	for (size_t i = 0; i < t->n_sources; i++)
		if (!strcmp(t->source[i], code))
			return true;
	return false;
}

bool fit_from_tuner(const struct fit_input *in, const struct ft_measurement *m)
{
	return measurement_is(m, "gemm") && fit_tuners_code(in, m->source);
}

static bool of_format(const struct ft_measurement *m, enum ft_dtype dtype)
{
	return measurement_is(m, "gemm") && fit_published(m) &&
	       !strcmp(m->dtype, ft_dtype_name(dtype));
}

static bool same_sizes(const struct ft_measurement *a, const struct ft_measurement *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k;
}

/* gpu: the profile of tuners' rows alone; it divides them by the factor it has. */
static void compare(struct fit_input *in, int fold, const struct ft_gpu *gpu)
{
	double ratio[MOST_RATIOS];

	for (int d = 0; d < FT_DTYPES; d++) {
		size_t n = 0;

		for (size_t i = 0; i < in->n && gpu->gemm[d].n_rows; i++) {
			const struct ft_measurement *m = &in->row[i];

			if (n < MOST_RATIOS && of_format(m, (enum ft_dtype)d) &&
			    !m->sustained && !m->warm && fit_fold(m) != fold &&
			    !fit_from_tuner(in, m))
				ratio[n++] = gpu->gemm_tuned.time[d].value *
					     measurement_predict_us(gpu, m) /
					     m->time_us;
		}
		if (n >= FEWEST_TUNED)
			in->tuned[d] = fit_ratio_of(ratio, n);
	}
}

struct ft_gpu *fit_write_and_load(const struct fit_input *in, int fold,
				  const char *folder, const struct ft_fit *fit,
				  struct ft_error *err)
{
	char path[4300];

	snprintf(path, sizeof(path), "%s/%s.yaml", folder, in->options->name);
	return fit_write_rows(in, fold, folder, err) &&
			       fit_write_profile(in, fold, folder, fit, err) ?
		       ft_gpu_load(path, NULL, err) :
		       NULL;
}

bool fit_tuned(struct fit_input *in, int fold, const char *folder, struct ft_error *err)
{
	struct ft_gpu *gpu;

	memset(in->tuned, 0, sizeof(in->tuned));
	memset(in->clock, 0, sizeof(in->clock));
	if (!(in->families & FT_FIT_GEMM) || !in->base->gemm_tuned.n_sources)
		return true;
	in->only_tuned = true;
	gpu = fit_write_and_load(in, fold, folder, NULL, err);
	in->only_tuned = false;
	if (gpu)
		compare(in, fold, gpu);
	ft_gpu_free(gpu);
	return gpu != NULL;
}

/* The mean of the bursts of m's product that frameworks ran; 0: none. */
static double burst_of(const struct fit_input *in, const struct ft_measurement *m)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *b = &in->row[i];

		if (measurement_is(b, "gemm") && !b->sustained && !b->warm &&
		    !fit_from_tuner(in, b) && !strcmp(b->dtype, m->dtype) &&
		    !strcmp(b->layout, m->layout) && same_sizes(b, m)) {
			sum += b->time_us;
			n++;
		}
	}
	return n > 0 ? sum / n : 0;
}

/* The rate of long runs that makes m of this burst; 0: m cannot tell. */
static double rate_of(struct ft_gpu *gpu, enum ft_dtype d,
		      const struct ft_measurement *m, double burst_us)
{
	struct ft_measurement other = *m;
	double burst, seen, was = gpu->sustained[d].value;

	other.sustained = false;
	burst = measurement_predict_us(gpu, &other);
	gpu->sustained[d].value = 0.5; /* as much again is lost, if all is seen */
	seen = measurement_predict_us(gpu, m) / burst - 1;
	gpu->sustained[d].value = was;
	if (!(burst > 0) || !(seen > least_seen))
		return 0;
	if (!(burst_us > 0))
		burst_us = burst;
	return 1 / (1 + fmax(0, (m->time_us / burst_us - 1) / seen));
}

/* Of the rows of seconds: those with a burst of their own, or all. */
static size_t rates_of(const struct fit_input *in, struct ft_gpu *gpu, enum ft_dtype d,
		       bool paired, double *rate)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n && n < MOST_RATIOS; i++) {
		const struct ft_measurement *m = &in->row[i];
		double burst_us;

		if (!m->sustained || !of_format(m, d))
			continue;
		burst_us = burst_of(in, m);
		if (paired && !(burst_us > 0))
			continue;
		rate[n] = rate_of(gpu, d, m, burst_us);
		n += rate[n] > 0;
	}
	return n;
}

void fit_clock(struct fit_input *in, struct ft_gpu *gpu)
{
	double rate[MOST_RATIOS];

	for (int d = 0; d < FT_DTYPES; d++) {
		size_t n = rates_of(in, gpu, (enum ft_dtype)d, true, rate);

		in->clock[d].n = 0;
		if (n < FEWEST_SUSTAINED)
			n = rates_of(in, gpu, (enum ft_dtype)d, false, rate);
		if (n >= FEWEST_SUSTAINED)
			in->clock[d] = fit_ratio_of(rate, n);
	}
}

static void put(const struct fit_input *in, enum ft_dtype d, const struct fit_ratio *r,
		const char *what, FILE *out)
{
	struct arena mem = { 0 };

	fprintf(out,
		"    %s: {value: %.3f, low: %.3f, high: %.3f, provenance: {kind: "
		"derived, source: \"published rows, see SOURCES.md\", ",
		ft_dtype_name(d), r->value, r->low, r->high);
	node_put_field(out, "date: ", in->date, ", ");
	node_put_field(out, "note: ",
		       arena_printf(&mem, "median, P10 and P90 of %zu %s", r->n, what),
		       "}}\n");
	arena_release(&mem);
}

static void put_all(const struct fit_input *in, const char *key,
		    const struct fit_ratio ratio[FT_DTYPES], const char *what,
		    FILE *out)
{
	bool begun = false;

	for (int d = 0; d < FT_DTYPES; d++) {
		if (!ratio[d].n)
			continue;
		if (!begun)
			fprintf(out, "  %s:\n", key);
		begun = true;
		put(in, (enum ft_dtype)d, &ratio[d], what, out);
		/* what was not run for seconds itself goes as its like */
		if (d == FT_BF16 && !ratio[FT_FP16].n)
			put(in, FT_FP16, &ratio[d], what, out);
	}
}

void fit_published_rates_yaml(const struct fit_input *in, FILE *out)
{
	put_all(in, "tuned", in->tuned,
		"products of frameworks, predicted from the tuners' rows", out);
	put_all(in, "sustained", in->clock,
		"products that ran for seconds, against bursts", out);
}
