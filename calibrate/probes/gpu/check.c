/*
 * calibrate/probes/gpu/check.c - attention's results against double precision
 *
 * The last batch's first and last heads of the last group, three queries each. For the
 * backward pass the gradient of the output is zero but for these six rows while the
 * check runs: then dK and dV of that group are sums over six queries, whatever the
 * length, and all their rows are compared. Everything written is also searched for
 * holes (numbers that are none), which the outputs were filled with.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/attention.h"
#include "calibrate/probes/reference.h"

enum { QUERIES = 3, SAMPLES = 2 * QUERIES };

/* Of O, dQ, dK, dV: as a whole, and of the worst row. */
struct errors {
	double all[4], row[4];
};

struct check {
	struct attention_run *run;
	size_t query[SAMPLES], head[SAMPLES]; /* of the last batch */
	int n;
	size_t kv;	    /* their group */
	float *k, *v, *row; /* row: four times d numbers */
	double *p, *d_k, *d_v;
	double *out[2], *want[2]; /* O and dQ of the samples */
	double *whole;		  /* dK, dV as they came */
};

static void *get(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

static struct check check_of(struct attention_run *r)
{
	size_t s = (size_t)r->sequence, d = (size_t)r->head_dim;
	size_t group = (size_t)(r->heads / r->kv_heads);
	struct check c = { .run = r, .kv = (size_t)r->kv_heads - 1 };
	size_t row[QUERIES] = { s / 5, s / 2 + 3, s - 1 };

	for (size_t h = 0; h < (group > 1 ? 2 : 1); h++)
		for (int i = 0; i < QUERIES; i++) {
			c.query[c.n] = row[i] < s ? row[i] : 0;
			c.head[c.n++] = (size_t)r->heads - 1 - (h ? group - 1 : 0);
		}
	c.k = get(s * d, sizeof(float));
	c.v = get(s * d, sizeof(float));
	c.row = get(4 * d, sizeof(float));
	c.p = get(s, sizeof(double));
	c.d_k = get(s * d, sizeof(double));
	c.d_v = get(s * d, sizeof(double));
	c.whole = get(s * d, sizeof(double));
	for (int i = 0; i < 2; i++) {
		/* and one row that has to be zero */
		c.out[i] = get((SAMPLES + 1) * d, sizeof(double));
		c.want[i] = get((SAMPLES + 1) * d, sizeof(double));
	}
	return c;
}

static void check_free(struct check *c)
{
	free(c->k);
	free(c->v);
	free(c->row);
	free(c->p);
	free(c->d_k);
	free(c->d_v);
	free(c->whole);
	for (int i = 0; i < 2; i++) {
		free(c->out[i]);
		free(c->want[i]);
	}
}

/* Where a row of a tensor of the last batch begins, in numbers. */
static size_t place_of(const struct attention_run *r, int tensor, size_t row,
		       size_t head)
{
	bool few = tensor == A_K || tensor == A_V || tensor == A_DK || tensor == A_DV;
	size_t heads = (size_t)(few ? r->kv_heads : r->heads);
	size_t rows = (size_t)((r->batch - 1) * r->sequence);

	return ((rows + row) * heads + head) * (size_t)r->head_dim;
}

static enum probe_status fetch(struct probe_session *s, const struct attention_run *r,
			       int tensor, size_t head, size_t first, size_t rows,
			       float *host, char *why, size_t n_why)
{
	size_t d = (size_t)r->head_dim, most = s->n_gathered / d;
	size_t stride = place_of(r, tensor, 1, 0) - place_of(r, tensor, 0, 0);

	for (size_t at = 0; at < rows; at += most) {
		size_t n = rows - at < most ? rows - at : most;

		kernel_block(r->at[tensor], place_of(r, tensor, first + at, head), n, d,
			     stride, r->dtype, s->gathered, s->stream);
		GPU_TRY(G(StreamSynchronize)(s->stream));
		GPU_TRY(G(Memcpy)(host + at * d, s->gathered, n * d * sizeof(*host),
				  G(MemcpyDeviceToHost)));
	}
	for (size_t i = 0; i < rows * d; i++)
		host[i] = (float)((double)host[i] / r->factor[tensor]);
	return PROBE_OK;
}

static enum probe_status no_holes(struct probe_session *s,
				  const struct attention_run *r, int tensor,
				  double *error, char *why, size_t n_why)
{
	float count[KERNEL_HOLES];

	kernel_holes(r->at[tensor], r->numbers[tensor], r->dtype, s->gathered,
		     s->stream);
	GPU_TRY(G(StreamSynchronize)(s->stream));
	GPU_TRY(G(Memcpy)(count, s->gathered, sizeof(count), G(MemcpyDeviceToHost)));
	for (int i = 0; i < KERNEL_HOLES; i++)
		if (count[i] > 0)
			*error = NAN;
	return PROBE_OK;
}

/* Six rows alone give small gradients, which 8 bits hardly resolve: e4m3 numbers of
 * dO times a power of two, at most 64, by their exponents. Below 7 before, so
 * below 448 after; zero stays. */
static void amplify(const struct attention_run *r, char *row, size_t n)
{
	unsigned more = 0;

	while (r->fp8 && more < 6 && (int64_t)256 << more < r->sequence)
		more++;
	for (size_t i = 0; i < n; i++) {
		unsigned char x = (unsigned char)row[i];

		if (more && (x & 0x78))
			row[i] = (char)(unsigned char)(x + (more << 3));
	}
}

/* The samples' rows of dO, to the host or from there. */
static enum probe_status move_rows(const struct check *c, char *host, bool to_host,
				   char *why, size_t n_why)
{
	const struct attention_run *r = c->run;
	size_t e = attention_element(r, A_DO), row = (size_t)r->head_dim * e;

	for (int i = 0; i < c->n; i++, host += row) {
		char *at = r->at[A_DO] + place_of(r, A_DO, c->query[i], c->head[i]) * e;

		if (to_host)
			GPU_TRY(G(Memcpy)(host, at, row, G(MemcpyDeviceToHost)));
		else
			GPU_TRY(G(Memcpy)(at, host, row, G(MemcpyHostToDevice)));
	}
	return PROBE_OK;
}

/* dO zero but for the samples. */
static enum probe_status thin(struct probe_session *s, const struct check *c,
			      char *kept, char *why, size_t n_why)
{
	const struct attention_run *r = c->run;
	size_t e = attention_element(r, A_DO);
	enum probe_status status;

	GPU_TRY(G(StreamSynchronize)(s->stream));
	status = move_rows(c, kept, true, why, n_why);
	if (status != PROBE_OK)
		return status;
	amplify(r, kept, SAMPLES * (size_t)r->head_dim * e);
	GPU_TRY(G(MemsetAsync)(r->at[A_DO], 0, r->numbers[A_DO] * e, s->stream));
	GPU_TRY(G(StreamSynchronize)(s->stream));
	return move_rows(c, kept, false, why, n_why);
}

/* One sampled query: its O and dQ as they came and as they should be. */
static enum probe_status sample(struct probe_session *s, struct check *c, int i,
				char *why, size_t n_why)
{
	static const int tensors[4] = { A_Q, A_O, A_DO, A_DQ };
	struct attention_run *r = c->run;
	size_t d = (size_t)r->head_dim, at = (size_t)i * d;
	struct reference_head h = { c->k, c->v,
				    r->causal ? c->query[i] + 1 : (size_t)r->sequence,
				    d };
	enum probe_status status = PROBE_OK;

	for (int t = 0; t < (r->trains ? 4 : 2) && status == PROBE_OK; t++)
		status = fetch(s, r, tensors[t], c->head[i], c->query[i], 1,
			       c->row + (size_t)t * d, why, n_why);
	reference_query(&h, c->row, c->p, c->want[0] + at);
	if (r->trains)
		reference_query_back(&h, c->row, c->row + 2 * d, c->p, c->want[1] + at,
				     c->d_k, c->d_v);
	for (size_t j = 0; j < d; j++) {
		c->out[0][at + j] = (double)c->row[d + j];
		c->out[1][at + j] = (double)c->row[3 * d + j];
	}
	return status;
}

static void set_errors(struct errors *e, int i, const double *out, const double *want,
		       size_t rows, size_t d)
{
	e->all[i] = reference_distance(out, want, rows * d);
	e->row[i] = reference_worst_row(out, want, rows, d);
}

/* All rows of dK (2) or dV (3) of the group. */
static enum probe_status whole(struct probe_session *s, struct check *c, int i,
			       const double *want, struct errors *e, char *why,
			       size_t n_why)
{
	struct attention_run *r = c->run;
	size_t n = (size_t)(r->sequence * r->head_dim);
	float *host = get(n, sizeof(*host));
	enum probe_status status = fetch(s, r, i == 2 ? A_DK : A_DV, c->kv, 0,
					 (size_t)r->sequence, host, why, n_why);

	for (size_t j = 0; j < n; j++)
		c->whole[j] = (double)host[j];
	set_errors(e, i, c->whole, want, (size_t)r->sequence, (size_t)r->head_dim);
	free(host);
	return status;
}

/* A query whose output has no gradient, between the sampled ones, has none itself. */
static enum probe_status silent(struct probe_session *s, struct check *c, char *why,
				size_t n_why)
{
	size_t d = (size_t)c->run->head_dim;
	enum probe_status status = fetch(s, c->run, A_DQ, c->head[0], c->query[0] + 1,
					 1, c->row, why, n_why);

	for (size_t j = 0; j < d; j++)
		c->out[1][(size_t)c->n * d + j] = (double)c->row[j];
	return status;
}

static enum probe_status compare(struct probe_session *s, struct check *c,
				 struct errors *e, char *why, size_t n_why)
{
	static const int written[4] = { A_O, A_DQ, A_DK, A_DV };
	struct attention_run *r = c->run;
	size_t rows = (size_t)r->sequence, d = (size_t)r->head_dim;
	enum probe_status status = fetch(s, r, A_K, c->kv, 0, rows, c->k, why, n_why);

	if (status == PROBE_OK)
		status = fetch(s, r, A_V, c->kv, 0, rows, c->v, why, n_why);
	for (int i = 0; i < c->n && status == PROBE_OK; i++)
		status = sample(s, c, i, why, n_why);
	set_errors(e, 0, c->out[0], c->want[0], (size_t)c->n, d);
	if (r->trains && status == PROBE_OK) {
		status = silent(s, c, why, n_why);
		set_errors(e, 1, c->out[1], c->want[1], (size_t)(c->n + 1), d);
		if (status == PROBE_OK)
			status = whole(s, c, 2, c->d_k, e, why, n_why);
		if (status == PROBE_OK)
			status = whole(s, c, 3, c->d_v, e, why, n_why);
	}
	for (int i = 0; i < (r->trains ? 4 : 1) && status == PROBE_OK; i++)
		status = no_holes(s, r, written[i], &e->all[i], why, n_why);
	return status;
}

/* fp8 keeps three bits behind the point; small P and dS keep fewer. */
static enum probe_status judge(const struct attention_run *r, const struct errors *e,
			       double *worst, char *why, size_t n_why)
{
	static const char *const names[4] = { "O", "dQ", "dK", "dV" };
	double limit[2] = { r->fp8 ? 0.1 : 2e-2, r->fp8 ? 0.15 : 2e-2 };
	double most = r->fp8 ? 0.4 : 0.1; /* a wrong row is off by about 1 */

	*worst = 0;
	for (int i = 0; i < (r->trains ? 4 : 1); i++) {
		if (!(e->all[i] < limit[i > 0]) || !(e->row[i] < most)) {
			*worst = fmax(e->all[i], e->row[i]);
			snprintf(why, n_why,
				 "%s differs from double precision "
				 "by %.2e, its worst row by %.2e",
				 names[i], e->all[i], e->row[i]);
			return PROBE_WRONG;
		}
		*worst = fmax(*worst, e->all[i]);
	}
	return PROBE_OK;
}

enum probe_status attention_check(struct probe_session *s,
				  const struct attention_engine *engine,
				  struct attention_run *r, double *worst, char *why,
				  size_t n_why)
{
	struct check c = check_of(r);
	struct errors error = { { 0 }, { 0 } };
	char *kept = get(SAMPLES, (size_t)r->head_dim * 2);
	enum probe_status status = PROBE_OK;

	if (r->trains)
		status = thin(s, &c, kept, why, n_why);
	for (int pass = 0; pass <= r->trains && status == PROBE_OK; pass++) {
		r->backward = pass;
		status = engine->queue(s, r, why, n_why);
	}
	if (status == PROBE_OK)
		status = compare(s, &c, &error, why, n_why);
	if (status == PROBE_OK)
		status = judge(r, &error, worst, why, n_why);
	if (r->trains) /* it is timed with the whole gradient */
		attention_fill(s, r, A_DO);
	free(kept);
	check_free(&c);
	return status;
}
