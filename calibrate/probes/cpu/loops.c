/* calibrate/probes/cpu/loops.c - the CPU backend's kernels */
#include "calibrate/probes/cpu/cpu.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static void rows(const char *kernel, const float *x, float *z, size_t n)
{
	float mean = 0, sum = 0, most = x[0];
	bool centre = kernel[0] == 'l', norm = centre || kernel[0] == 'r';

	for (size_t i = 0; i < n; i++) {
		mean += centre ? x[i] / (float)n : 0;
		most = x[i] > most ? x[i] : most;
	}
	for (size_t i = 0; i < n; i++)
		sum += norm ? (x[i] - mean) * (x[i] - mean) : expf(x[i] - most);
	if (norm)
		sum = sqrtf(sum / (float)n + 1e-6f);
	for (size_t i = 0; i < n; i++)
		z[i] = norm ? (x[i] - mean) / sum : expf(x[i] - most) / sum;
}

static float one(const char *kernel, float a, float b)
{
	switch (kernel[0]) {
	case 's': /* swiglu */
		return a / (1 + expf(-a)) * b;
	case 'g': /* gelu */
		return a / (1 + expf(-1.5957691f * (a + 0.044715f * a * a * a)));
	default: /* add, adamw and what only moves */
		return a + b;
	}
}

void probe_cpu_memory(const char *kernel, float *x, float *y, float *z, size_t m,
		      size_t n)
{
	if (!strcmp(kernel, "copy") || !strcmp(kernel, "concat")) {
		memcpy(z, x, m * n * sizeof(*z));
		return;
	}
	if (strstr(kernel, "norm") || !strcmp(kernel, "softmax") ||
	    !strcmp(kernel, "cross_entropy")) {
		for (size_t i = 0; i < m; i++)
			rows(kernel, x + i * n, z + i * n, n);
		return;
	}
	for (size_t i = 0; i < m * n; i++)
		z[i] = one(kernel, x[i], y[i]);
}

void probe_cpu_attention(const float *x, float *y, float *z, size_t heads,
			 size_t sequence, size_t head_dim, bool causal)
{
	size_t size = heads * sequence * head_dim;

	for (size_t r = 0; r < heads * sequence; r++) {
		size_t i = r % sequence, head = r - i;
		size_t keys = causal ? i + 1 : sequence;
		const float *q = x + r * head_dim;
		const float *k = x + size + head * head_dim, *v = k + size;
		float sum = 0;

		for (size_t c = 0; c < head_dim; c++)
			z[r * head_dim + c] = 0;
		for (size_t j = 0; j < keys; j++) {
			float s = 0;

			for (size_t c = 0; c < head_dim; c++)
				s += q[c] * k[j * head_dim + c];
			y[j] = expf(s / sqrtf((float)head_dim));
			sum += y[j];
		}
		for (size_t j = 0; j < keys; j++)
			for (size_t c = 0; c < head_dim; c++)
				z[r * head_dim + c] += y[j] / sum * v[j * head_dim + c];
	}
}

struct rank {
	pthread_t thread;
	const char *from;
	char *to;
	size_t bytes;
};

static void *move(void *arg)
{
	struct rank *r = arg;

	memcpy(r->to, r->from, r->bytes);
	return NULL;
}

void probe_cpu_collective(const char *op, const float *from, float *to, size_t bytes,
			  int n)
{
	enum { MOST = 16 };
	struct rank rank[MOST];
	size_t share = bytes / (size_t)n;
	int rounds = !strcmp(op, "all_reduce") ? 2 : 1;

	if (n > MOST)
		n = MOST;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < n; i++) {
			rank[i] = (struct rank){
				.from = (const char *)from + (size_t)i * share,
				.to = (char *)to + (size_t)i * share,
				.bytes = share,
			};
			if (pthread_create(&rank[i].thread, NULL, move, &rank[i]))
				rank[i].bytes = 0;
		}
		for (int i = 0; i < n; i++)
			if (rank[i].bytes)
				pthread_join(rank[i].thread, NULL);
	}
}
