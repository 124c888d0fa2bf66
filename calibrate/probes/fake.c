/*
 * calibrate/probes/fake.c - a machine whose times follow a known model, with noise of
 * a known size: what the fit must find again (tests/test_calibrate.sh)
 *
 *   product      5 us + max(flop / (0.7 x 400 TFLOP/s), bytes / 3 TB/s)
 *   attention    4 us + flop / (0.6 x 400 TFLOP/s), backward 0.5 x; fp8 1.5 times,
 *                unfused 0.2 times as fast
 *   memory       2 us + bytes / 3 TB/s; warm 1.5 us + bytes / 5 TB/s
 *   collective   8 us + 0.02 us sqrt(bytes / KiB) + bytes busfactor / 300 GB/s
 *   launch       enqueue 3 us, gap 1.5 us, graph 1 us; beside: x 1.25 and x 1.1
 *
 * noise: each repetition is off by a normal 2 %.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/backend.h"

struct probe_session {
	struct probe_random random;
};

static const double noise_frac = 0.02, flop_per_s = 400e12;

static double product_us(const struct probe_cell *c)
{
	double m = (double)c->m, n = (double)c->n, k = (double)c->k;
	double e = !strcmp(c->dtype, "fp8") ? 1 : 2;
	double rate = 0.7 * flop_per_s * (e < 2 ? 2 : 1);
	double bytes = e * (m * k + n * k) + 2 * m * n;

	if (c->sustained)
		rate *= 0.9;
	return 5 + 1e6 * fmax(2 * m * n * k / rate, bytes / 3e12);
}

static double attention_us(const struct probe_cell *c)
{
	double s = (double)c->sequence, rate = flop_per_s;
	double flop = 4 * (double)(c->batch * c->heads * c->head_dim) * s * s *
		      (c->causal ? 0.5 : 1);

	if (!strcmp(c->dtype, "fp8"))
		rate *= 1.5;
	if (!strcmp(c->impl, "unfused"))
		rate *= 0.2;
	if (!strcmp(c->pass, "backward"))
		return 4 + 1e6 * 2.5 * flop / (0.5 * rate);
	return 4 + 1e6 * flop / (0.6 * rate);
}

/* Bytes read and written for one number of the source. */
static double traffic(const struct probe_cell *c)
{
	if (!strcmp(c->kernel, "adamw"))
		return 28;
	if (!strcmp(c->kernel, "cast"))
		return 6;
	return !strcmp(c->kernel, "add") || !strcmp(c->kernel, "swiglu") ? 6 : 4;
}

static double collective_us(const struct probe_cell *c)
{
	double n = (double)c->gpus, b = (double)c->bytes, f = (n - 1) / n;

	if (!strcmp(c->kernel, "all_reduce"))
		f *= 2;
	if (!strcmp(c->kernel, "sendrecv") || !strcmp(c->kernel, "broadcast"))
		f = 1;
	return 8 + 0.02 * sqrt(b / 1024) + b * f / 300e3;
}

static double exact_us(const struct probe_cell *c)
{
	switch (c->kind) {
	case PROBE_GEMM:
	case PROBE_BESIDE:
		return product_us(c);
	case PROBE_ATTENTION:
		return attention_us(c);
	case PROBE_MEMORY:
		return (c->warm ? 1.5 : 2) +
		       traffic(c) * (double)(c->m * c->n) / (c->warm ? 5e6 : 3e6);
	case PROBE_LAUNCH:
		return c->kernel[0] == 'e' ? 3 : c->kernel[1] == 'a' ? 1.5 : 1;
	case PROBE_TRANSFER:
		return 5 + (double)c->bytes / 50e3;
	default:
		return collective_us(c);
	}
}

static enum probe_status fake_run(struct probe_session *s, const struct probe_cell *c,
				  const struct probe_method *method,
				  struct probe_time *out, char *why, size_t n_why)
{
	double t_us[PROBE_MOST_REPS], exact = exact_us(c);
	int reps = method->most_reps;

	(void)why, (void)n_why;
	if (c->kind == PROBE_BESIDE)
		exact *= 1.25;
	for (int i = 0; i < reps; i++)
		t_us[i] = exact * (1 + noise_frac * probe_normal(&s->random));
	probe_summary(t_us, reps, out);
	if (c->kind == PROBE_BESIDE) {
		out->alone_us = exact / 1.25;
		out->other_alone_us = collective_us(c);
		out->other_us = 1.1 * out->other_alone_us;
	}
	out->power_w = c->sustained ? 690 : 400;
	out->clock_mhz = c->sustained ? 1500 : 1980;
	return PROBE_OK;
}

static enum probe_status fake_open(struct probe_session **s, uint64_t seed,
				   struct probe_device *d, char *why, size_t n_why)
{
	(void)why, (void)n_why;
	*s = calloc(1, sizeof(**s));
	if (!*s)
		abort();
	(*s)->random.state = seed;
	*d = (struct probe_device){ .devices = 4,
				    .compute_units = 100,
				    .memory_bytes = 80e9,
				    .cache_bytes = 50e6 };
	snprintf(d->name, sizeof(d->name), "Fake GPU");
	snprintf(d->driver, sizeof(d->driver), "none");
	snprintf(d->fabric, sizeof(d->fabric), "nvlink");
	snprintf(d->fused, sizeof(d->fused), "cudnn");
	d->fused_fp8 = true;
	return PROBE_OK;
}

static void fake_close(struct probe_session *s)
{
	free(s);
}

const struct probe_backend *probe_fake(void)
{
	static const struct probe_backend backend = {
		PROBE_ABI, "fake", fake_open, fake_run, fake_close,
	};

	return &backend;
}
