/*
 * calibrate/fit_units.c - times in another unit than microseconds
 *
 * Between the fastest and the slowest GPUs lie factors of 30, between units of time 1,000. What is 100 times
 * as fast as the base's peak, or as its memory, is no measurement: milliseconds were taken for microseconds.
 * Products as slow as that may be a CPU's, and are only told.
 */
#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

enum { FAR = 100 };

/* A GPU's links are about a tenth as fast as its memory. */
static const double LINKS_OF_MEMORY = 0.1;

/* Only products of a TFLOP take much longer than a call. */
static const double LARGE_FLOP = 1e12;

/* How many times the base's rate it is at; 0: not to be said. */
static double times_base(const struct fit_input *in, const struct ft_measurement *m)
{
	double s = m->time_us * 1e-6, peak = 0;
	double memory = in->base->memory_bytes_per_s.value;
	enum ft_dtype dtype;

	if (ft_dtype_find(m->dtype, &dtype))
		peak = in->base->peak_flop_per_s[dtype].value;
	if (measurement_is(m, "gemm"))
		return peak > 0 ? 2 * m->m * m->n * m->k / s / peak : 0;
	if (measurement_is(m, "attention"))
		return peak > 0 ? measurement_attention_flop(m) / s / peak : 0;
	if (measurement_is(m, "collective"))
		return m->bytes / s / (LINKS_OF_MEMORY * memory);
	return measurement_is(m, "memory") ? m->bytes / s / memory : 0;
}

static bool is_large(const struct ft_measurement *m)
{
	return measurement_is(m, "gemm") && 2 * m->m * m->n * m->k >= LARGE_FLOP;
}

bool fit_units(const struct fit_input *in, struct ft_fit *fit, struct ft_error *err)
{
	double most = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];
		double times = times_base(in, m);

		if (times > FAR)
			return ft_fail(
				err, NULL,
				"the measurement '%.100s' took %.3g us, which is %.0f "
				"times as fast as %s can be: are times in another unit "
				"than microseconds?",
				m->cell, m->time_us, times, in->base->name);
		if (is_large(m) && times > most)
			most = times;
	}
	if (most > 0 && most * FAR < 1 && !fit->note[0])
		snprintf(
			fit->note, sizeof(fit->note),
			"the fastest product runs at 1/%.0f of the peak of %s: are times "
			"in another unit than microseconds?",
			1 / most, in->base->name);
	return true;
}
