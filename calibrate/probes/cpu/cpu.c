/*
 * calibrate/probes/cpu/cpu.c - the CPU as a device: OpenBLAS (or three loops) for products,
 * memcpy and plain loops for memory, threads that copy for collectives
 *
 * Slow and noisy, but real: it lets calibration run from end to end anywhere.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/probes/backend.h"
#include "calibrate/probes/cpu/cpu.h"

#ifdef PROBE_OPENBLAS
#include <cblas.h>
#endif

enum { NUMBERS = 1 << 23 };

struct probe_session {
	float *x, *y, *z; /* NUMBERS each */
	char *flush;
	size_t flush_bytes;
	struct probe_random random;
};

struct task {
	struct probe_session *s;
	const struct probe_cell *cell;
	void (*run)(struct task *t);
};

static void product(struct task *t)
{
	int m = (int)t->cell->m, n = (int)t->cell->n, k = (int)t->cell->k;
	struct probe_session *s = t->s;

#ifdef PROBE_OPENBLAS
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, s->x, k, s->y,
		    k, 0, s->z, n);
#else
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float sum = 0;

			for (int q = 0; q < k; q++)
				sum += s->x[i * k + q] * s->y[j * k + q];
			s->z[i * n + j] = sum;
		}
#endif
}

static double check_product(struct probe_session *s, const struct probe_cell *c)
{
	double error = 0, size = 0;

	for (int r = 0; r < 16; r++) {
		size_t i = (size_t)(probe_uniform(&s->random) * (double)c->m);
		size_t j = (size_t)(probe_uniform(&s->random) * (double)c->n);
		size_t k = (size_t)c->k;
		double want = 0, got = (double)s->z[i * (size_t)c->n + j];

		for (size_t q = 0; q < k; q++)
			want += (double)s->x[i * k + q] * (double)s->y[j * k + q];
		error += (got - want) * (got - want);
		size += want * want;
	}
	return sqrt(error / size);
}

static void memory(struct task *t)
{
	probe_cpu_memory(t->cell->kernel, t->s->x, t->s->y, t->s->z, (size_t)t->cell->m,
			 (size_t)t->cell->n);
}

static void copies(struct task *t)
{
	memcpy(t->s->z, t->s->x, (size_t)t->cell->bytes);
}

static void attention(struct task *t)
{
	probe_cpu_attention(
		t->s->x, t->s->y, t->s->z, (size_t)(t->cell->batch * t->cell->heads),
		(size_t)t->cell->sequence, (size_t)t->cell->head_dim, t->cell->causal);
}

static void *nothing(void *arg)
{
	return arg;
}

static void launch(struct task *t)
{
	pthread_t thread;

	(void)t;
	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
}

static void collective(struct task *t)
{
	probe_cpu_collective(t->cell->kernel, t->s->x, t->s->z, (size_t)t->cell->bytes,
			     (int)t->cell->gpus);
}

static void time_task(struct task *t, const struct probe_method *method,
		      struct probe_time *out)
{
	double t_us[PROBE_MOST_REPS], start;
	int reps;

	t->run(t);
	start = probe_now_s();
	t->run(t);
	reps = probe_reps(method, probe_now_s() - start);
	for (int i = 0; i < reps; i++) {
		if (t->cell->kind == PROBE_MEMORY && !t->cell->warm)
			memset(t->s->flush, i, t->s->flush_bytes);
		start = probe_now_s();
		t->run(t);
		t_us[i] = (probe_now_s() - start) * 1e6;
	}
	probe_summary(t_us, reps, out);
}

/* Alone, the other alone, then one in a thread of its own beside the other. */
static void *repeat(void *arg)
{
	struct task *t = arg;

	for (int i = 0; i < 20; i++)
		t->run(t);
	return NULL;
}

static void time_beside(struct probe_session *s, const struct probe_cell *c,
			const struct probe_method *method, struct probe_time *out)
{
	struct task one = { s, c, product }, other = { s, c, collective };
	struct probe_time alone;
	pthread_t thread;

	time_task(&other, method, &alone);
	out->other_alone_us = alone.median_us;
	time_task(&one, method, &alone);
	out->alone_us = alone.median_us;
	out->other_us = out->other_alone_us;
	if (pthread_create(&thread, NULL, repeat, &other))
		return;
	time_task(&one, method, out);
	pthread_join(thread, NULL);
}

static enum probe_status cpu_run(struct probe_session *s, const struct probe_cell *c,
				 const struct probe_method *method,
				 struct probe_time *out, char *why, size_t n_why)
{
	static void (*const by_kind[PROBE_KINDS])(struct task *) = {
		[PROBE_GEMM] = product,	   [PROBE_ATTENTION] = attention,
		[PROBE_MEMORY] = memory,   [PROBE_LAUNCH] = launch,
		[PROBE_TRANSFER] = copies, [PROBE_COLLECTIVE] = collective,
	};
	struct task t = { s, c, by_kind[c->kind] };

	if (c->m * c->n > NUMBERS || c->m * c->k > NUMBERS || c->n * c->k > NUMBERS ||
	    c->bytes > (int64_t)NUMBERS * 4 ||
	    c->batch * c->heads * c->sequence * c->head_dim * 3 > NUMBERS)
		return PROBE_NO_MEMORY;
	if (c->dtype[0] && strcmp(c->dtype, "fp32") && c->kind != PROBE_ATTENTION) {
		snprintf(why, n_why, "the CPU backend computes in fp32 only");
		return PROBE_UNSUPPORTED;
	}
	if (!strcmp(c->pass, "backward") ||
	    (c->kind == PROBE_TRANSFER && c->from != c->to))
		return PROBE_UNSUPPORTED;
	if (c->kind == PROBE_BESIDE) {
		time_beside(s, c, method, out);
		return PROBE_OK;
	}
	time_task(&t, method, out);
	if (c->kind != PROBE_GEMM)
		return PROBE_OK;
	memset(s->z, 0xff, sizeof(*s->z) * (size_t)(c->m * c->n));
	product(&t);
	out->relative_error = check_product(s, c);
	if (out->relative_error < 1e-4)
		return PROBE_OK;
	snprintf(why, n_why, "differs from double precision by %.2e",
		 out->relative_error);
	return PROBE_WRONG;
}

static void cpu_close(struct probe_session *s)
{
	free(s->x);
	free(s->y);
	free(s->z);
	free(s->flush);
	free(s);
}

static void name_cpu(char *name, size_t n)
{
	FILE *in = fopen("/proc/cpuinfo", "r");
	char line[256], *colon;

	snprintf(name, n, "CPU");
	while (in && fgets(line, sizeof(line), in)) {
		colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(name, n, "%.90s", colon + 2);
		break;
	}
	if (in)
		fclose(in);
}

static enum probe_status cpu_open(struct probe_session **out, uint64_t seed,
				  struct probe_device *d, char *why, size_t n_why)
{
	struct probe_session *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->flush_bytes = (size_t)8 << 20;
	s->random.state = seed;
	s->x = malloc(sizeof(float) * NUMBERS);
	s->y = malloc(sizeof(float) * NUMBERS);
	s->z = malloc(sizeof(float) * NUMBERS);
	s->flush = malloc(s->flush_bytes);
	if (!s->x || !s->y || !s->z || !s->flush) {
		snprintf(why, n_why, "needs %zu MB of memory",
			 (size_t)NUMBERS * 12 >> 20);
		cpu_close(s);
		return PROBE_NO_MEMORY;
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		/* a table of normals with a prime period */
		s->x[i] = i < 65521 ? (float)probe_normal(&s->random) : s->x[i - 65521];
		s->y[i] = i < 65519 ? (float)probe_normal(&s->random) : s->y[i - 65519];
	}
	memset(s->z, 0, sizeof(float) * NUMBERS);
	*d = (struct probe_device){ .devices = 2,
				    .memory_bytes = 1e9,
				    .cache_bytes = 8e6 };
	d->compute_units = (int)sysconf(_SC_NPROCESSORS_ONLN);
	name_cpu(d->name, sizeof(d->name));
	snprintf(d->fabric, sizeof(d->fabric), "pcie");
	snprintf(d->fused, sizeof(d->fused), "loops");
	snprintf(d->ccl, sizeof(d->ccl), "threads");
#ifdef PROBE_OPENBLAS
	snprintf(d->blas, sizeof(d->blas), "%.47s", OPENBLAS_VERSION);
#else
	snprintf(d->blas, sizeof(d->blas), "three loops");
#endif
	*out = s;
	return PROBE_OK;
}

const struct probe_backend *probe_cpu(void)
{
	static const struct probe_backend backend = {
		PROBE_ABI, "cpu", cpu_open, cpu_run, cpu_close,
	};

	return &backend;
}
