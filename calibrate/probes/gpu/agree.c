/*
 * calibrate/probes/gpu/agree.c - what a collective delivered against what it should have
 *
 * Every rank's source is another stream of random numbers, its destination is filled
 * with what are no numbers. Of each rank all of the destination is searched for
 * holes, and elements are compared: the first and last of each rank's share, and
 * some anywhere. The error is the largest of any element, of a sum relative to the
 * magnitudes that are added. Copies are exact; sums in bf16 are not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/collective.h"

enum { ANYWHERE = 8, SAMPLES = 2 * GPU_MOST + ANYWHERE };

static enum probe_status element(const char *buffer, size_t at, double *value,
				 char *why, size_t n_why)
{
	uint16_t half;
	uint32_t bits;
	float f;

	GPU_TRY(G(Memcpy)(&half, buffer + 2 * at, sizeof(half), G(MemcpyDeviceToHost)));
	bits = (uint32_t)half << 16;
	memcpy(&f, &bits, sizeof(f));
	*value = (double)f;
	return PROBE_OK;
}

static enum probe_status poison(struct probe_session *s, struct group *g, char *why,
				size_t n_why)
{
	for (int i = 0; i < g->n; i++) {
		GPU_TRY(G(SetDevice)(i));
		GPU_TRY(G(MemsetAsync)(s->recv[i], 0xff, g->bytes, g->stream[i]));
		GPU_TRY(G(StreamSynchronize)(g->stream[i]));
	}
	return PROBE_OK;
}

static size_t received(const struct group *g)
{
	size_t all = g->bytes / 2, each = all / (size_t)g->n;

	if (!strcmp(g->op, "reduce_scatter"))
		return each;
	return strcmp(g->op, "all_gather") && strcmp(g->op, "all_to_all") ?
		       all :
		       each * (size_t)g->n;
}

static enum probe_status holes(struct probe_session *s, struct group *g, int i,
			       size_t *n, char *why, size_t n_why)
{
	float count[KERNEL_HOLES];

	GPU_TRY(G(SetDevice)(i));
	kernel_holes(s->recv[i], received(g), KERNEL_BF16, s->counts[i], g->stream[i]);
	GPU_TRY(G(StreamSynchronize)(g->stream[i]));
	GPU_TRY(G(Memcpy)(count, s->counts[i], sizeof(count), G(MemcpyDeviceToHost)));
	for (int k = 0; k < KERNEL_HOLES; k++)
		*n += (size_t)count[k];
	return PROBE_OK;
}

/* What element at of rank i's destination should be; size: of what is added. */
static enum probe_status expected(struct probe_session *s, struct group *g, int i,
				  size_t at, double *want, double *size, char *why,
				  size_t n_why)
{
	enum probe_status status = PROBE_OK;
	size_t index;
	int from;

	*want = *size = 0;
	if (!reference_collective(g->op, g->n, g->bytes / 2, i, at, &from, &index)) {
		snprintf(why, n_why, "nobody knows what %s gives", g->op);
		return PROBE_FAILED;
	}
	if (from >= 0) {
		status = element(s->send[from], index, want, why, n_why);
		*size = fabs(*want);
		return status;
	}
	for (int j = 0; j < g->n && status == PROBE_OK; j++) {
		double one = 0;

		status = element(s->send[j], index, &one, why, n_why);
		*want += one;
		*size += fabs(one);
	}
	return status;
}

/* Which elements of a rank are looked at; the random ones differ by cell. */
static int places(struct probe_session *s, const struct group *g, size_t at[SAMPLES])
{
	size_t n = received(g), each = n / (size_t)g->n;
	int k = 0;

	for (int j = 0; j < g->n && each; j++) {
		at[k++] = (size_t)j * each;
		at[k++] = j + 1 < g->n ? (size_t)(j + 1) * each - 1 : n - 1;
	}
	for (int j = 0; j < ANYWHERE; j++)
		at[k++] = (size_t)(probe_uniform(&s->random) * (double)n);
	return k;
}

static enum probe_status compare(struct probe_session *s, struct group *g,
				 double *error, char *why, size_t n_why)
{
	enum probe_status status = PROBE_OK;
	size_t at[SAMPLES], lost = 0;

	*error = 0;
	for (int i = 0; i < g->n && status == PROBE_OK; i++) {
		int k = places(s, g, at);

		status = holes(s, g, i, &lost, why, n_why);
		for (int j = 0; j < k && status == PROBE_OK; j++) {
			double out = 0, want = 0, size = 0;

			status = element(s->recv[i], at[j], &out, why, n_why);
			if (status == PROBE_OK)
				status = expected(s, g, i, at[j], &want, &size, why,
						  n_why);
			if (isnan(out))
				lost++;
			else if (out != want)
				*error = fmax(*error, fabs(out - want) / size);
		}
	}
	if (lost)
		*error = (double)NAN;
	return status;
}

enum probe_status collective_check(struct probe_session *s, struct group *g,
				   double *error, char *why, size_t n_why)
{
	bool sums = !strcmp(g->op, "all_reduce") || !strcmp(g->op, "reduce_scatter");
	enum probe_status status = poison(s, g, why, n_why);

	if (status == PROBE_OK)
		status = collective_queue(s, g, why, n_why);
	if (status == PROBE_OK)
		status = collective_wait(g, why, n_why);
	if (status == PROBE_OK)
		status = compare(s, g, error, why, n_why);
	(void)G(SetDevice)(s->first);
	if (status == PROBE_OK && !(*error <= (sums ? 2e-2 : 0))) {
		snprintf(why, n_why, "%s delivers something else, off by %.2e", g->op,
			 *error);
		status = PROBE_WRONG;
	}
	return status;
}
