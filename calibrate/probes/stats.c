/* calibrate/probes/stats.c - order statistics, random numbers and cell names, for
 * every program that probes */
#include "calibrate/probes/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t next(struct probe_random *r)
{
	uint64_t x = (r->state += UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

double probe_uniform(struct probe_random *r)
{
	return ((double)(next(r) >> 11) + 0.5) / 9007199254740992.0;
}

double probe_normal(struct probe_random *r)
{
	double u = probe_uniform(r), v = probe_uniform(r);

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between the two samples that a quantile falls between. */
static double quantile(const double *t, int n, double q)
{
	double at = q * (n - 1);
	int low = (int)at;

	if (low + 1 >= n)
		return t[n - 1];
	return t[low] + (at - low) * (t[low + 1] - t[low]);
}

void probe_summary(double *t_us, int n, struct probe_time *out)
{
	qsort(t_us, (size_t)n, sizeof(*t_us), by_size);
	out->median_us = quantile(t_us, n, 0.5);
	out->p10_us = quantile(t_us, n, 0.1);
	out->p90_us = quantile(t_us, n, 0.9);
	out->reps = n;
}

double probe_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int probe_reps(const struct probe_method *method, double one_s)
{
	double n = method->cell_s / (one_s > 1e-7 ? one_s : 1e-7);

	if (n < method->least_reps)
		return method->least_reps;
	if (n > method->most_reps)
		n = method->most_reps;
	return n > PROBE_MOST_REPS ? PROBE_MOST_REPS : (int)n;
}

const char *probe_kind_name(enum probe_kind kind)
{
	static const char *const names[PROBE_KINDS] = {
		"gemm",	    "attention",  "memory", "launch",
		"transfer", "collective", "beside",
	};

	return names[kind];
}

static void word(char *id, const char *text)
{
	size_t at = strlen(id);

	if (text && text[0])
		snprintf(id + at, PROBE_CELL_ID - at, " %s", text);
}

static void number(char *id, const char *name, int64_t value)
{
	size_t at = strlen(id);

	if (value)
		snprintf(id + at, PROBE_CELL_ID - at, " %s%lld", name,
			 (long long)value);
}

void probe_cell_id(const struct probe_cell *c, char id[PROBE_CELL_ID])
{
	snprintf(id, PROBE_CELL_ID, "%s", probe_kind_name(c->kind));
	word(id, c->kernel);
	word(id, c->dtype);
	word(id, c->layout);
	word(id, c->impl);
	word(id, c->pass);
	number(id, "m", c->m);
	number(id, "n", c->n);
	number(id, "k", c->k);
	number(id, "b", c->batch);
	number(id, "h", c->heads);
	number(id, "kv", c->kv_heads);
	number(id, "s", c->sequence);
	number(id, "d", c->head_dim);
	number(id, "bytes", c->bytes);
	number(id, "gpus", c->gpus);
	if (c->kind == PROBE_TRANSFER && c->from != c->to) {
		size_t at = strlen(id);

		snprintf(id + at, PROBE_CELL_ID - at, " %lld-%lld", (long long)c->from,
			 (long long)c->to);
	}
	word(id, c->causal ? "causal" : "");
	word(id, c->warm ? "warm" : "");
	word(id, c->accumulate ? "accumulate" : "");
	word(id, c->sustained ? "sustained" : "");
}
