/*
 * calibrate/probes/gpu/collective.c - NCCL or RCCL among the first n devices, and a
 * product beside a collective
 *
 * A host thread a rank. Short ones go in batches (a training step's collectives
 * are queued ahead as well); the slowest rank's events count. bytes as nccl-tests
 * counts them: the whole buffer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/collective.h"

void gpu_collective_version(char *text, size_t n)
{
	int v = 0;

	(void)ncclGetVersion(&v);
#ifdef PROBE_HIP
	snprintf(text, n, "RCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
#else
	snprintf(text, n, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
#endif
}

void gpu_collective_close(struct probe_session *s)
{
	for (int n = 2; n <= GPU_MOST; n++)
		for (int i = 0; i < n; i++)
			if (s->comm[n][i])
				(void)ncclCommDestroy(s->comm[n][i]);
	for (int i = 0; i < GPU_MOST; i++) {
		(void)G(Free)(s->send[i]);
		(void)G(Free)(s->recv[i]);
		(void)G(Free)(s->counts[i]);
	}
}

static enum probe_status ccl_fail(char *why, size_t n_why, const char *what,
				  ncclResult_t r)
{
	snprintf(why, n_why, "%s: %s", what, ncclGetErrorString(r));
	return PROBE_FAILED;
}

static enum probe_status prepare(struct probe_session *s, struct group *g, char *why,
				 size_t n_why)
{
	ncclResult_t r = ncclSuccess;

	g->comm = s->comm[g->n];
	if (!g->comm[0])
		r = ncclCommInitAll(g->comm, g->n, NULL);
	if (r != ncclSuccess)
		return ccl_fail(why, n_why, "ncclCommInitAll", r);
	for (int i = 0; i < g->n; i++) {
		GPU_TRY(G(SetDevice)(i));
		if (!s->send[i]) {
			GPU_TRY(G(Malloc)((void **)&s->send[i], s->ring_bytes));
			GPU_TRY(G(Malloc)((void **)&s->recv[i], s->ring_bytes));
			GPU_TRY(G(Malloc)((void **)&s->counts[i],
					  KERNEL_HOLES * sizeof(float)));
			kernel_fill(s->send[i], s->ring_bytes / 2, KERNEL_BF16,
				    (uint64_t)(i + 1) << 40, NULL);
			GPU_TRY(G(DeviceSynchronize)());
		}
		GPU_TRY(G(StreamCreate)(&g->stream[i]));
		GPU_TRY(G(StreamCreate)(&g->compute[i]));
		for (int j = 0; j < MOST_EVENTS; j++) {
			GPU_TRY(G(EventCreate)(&g->begin[i][j]));
			GPU_TRY(G(EventCreate)(&g->end[i][j]));
		}
	}
	return PROBE_OK;
}

static void tidy(struct group *g)
{
	for (int i = 0; i < g->n; i++) {
		(void)G(SetDevice)(i);
		if (g->stream[i])
			(void)G(StreamDestroy)(g->stream[i]);
		if (g->compute[i])
			(void)G(StreamDestroy)(g->compute[i]);
		for (int j = 0; j < MOST_EVENTS; j++) {
			if (g->begin[i][j])
				(void)G(EventDestroy)(g->begin[i][j]);
			if (g->end[i][j])
				(void)G(EventDestroy)(g->end[i][j]);
		}
	}
	(void)G(SetDevice)(0);
}

static ncclResult_t all_to_all(struct probe_session *s, struct group *g, int i,
			       size_t each)
{
	ncclResult_t r = ncclSuccess;

	for (int j = 0; j < g->n && r == ncclSuccess; j++) {
		r = ncclSend(s->send[i] + (size_t)j * each * 2, each, ncclBfloat16, j,
			     g->comm[i], g->stream[i]);
		if (r == ncclSuccess)
			r = ncclRecv(s->recv[i] + (size_t)j * each * 2, each,
				     ncclBfloat16, j, g->comm[i], g->stream[i]);
	}
	return r;
}

/* Rank i's part of one collective. */
static ncclResult_t one_rank(struct probe_session *s, struct group *g, int i)
{
	size_t all = g->bytes / 2, each = all / (size_t)g->n;
	ncclComm_t c = g->comm[i];
	G(Stream_t) q = g->stream[i];
	ncclResult_t r;

	if (!strcmp(g->op, "all_reduce"))
		return ncclAllReduce(s->send[i], s->recv[i], all, ncclBfloat16, ncclSum,
				     c, q);
	if (!strcmp(g->op, "all_gather"))
		return ncclAllGather(s->send[i], s->recv[i], each, ncclBfloat16, c, q);
	if (!strcmp(g->op, "reduce_scatter"))
		return ncclReduceScatter(s->send[i], s->recv[i], each, ncclBfloat16,
					 ncclSum, c, q);
	if (!strcmp(g->op, "broadcast"))
		return ncclBroadcast(s->send[i], s->recv[i], all, ncclBfloat16, 0, c,
				     q);
	if (!strcmp(g->op, "all_to_all"))
		return all_to_all(s, g, i, each);
	r = ncclSend(s->send[i], all, ncclBfloat16, (i + 1) % g->n, c, q);
	if (r == ncclSuccess)
		r = ncclRecv(s->recv[i], all, ncclBfloat16, (i + g->n - 1) % g->n, c,
			     q);
	return r;
}

enum probe_status collective_queue(struct probe_session *s, struct group *g, char *why,
				   size_t n_why)
{
	ncclResult_t r = ncclGroupStart(), end;

	for (int i = 0; i < g->n && r == ncclSuccess; i++)
		r = one_rank(s, g, i);
	end = ncclGroupEnd();
	if (r == ncclSuccess)
		r = end;
	return r == ncclSuccess ? PROBE_OK : ccl_fail(why, n_why, g->op, r);
}

static enum probe_status mark(struct group *g, bool end, int at, char *why,
			      size_t n_why)
{
	for (int i = 0; i < g->n; i++) {
		GPU_TRY(G(SetDevice)(i));
		GPU_TRY(G(EventRecord)(end ? g->end[i][at] : g->begin[i][at],
				       g->stream[i]));
	}
	return PROBE_OK;
}

enum probe_status collective_wait(struct group *g, char *why, size_t n_why)
{
	for (int i = 0; i < g->n; i++) {
		GPU_TRY(G(SetDevice)(i));
		GPU_TRY(G(StreamSynchronize)(g->stream[i]));
	}
	return PROBE_OK;
}

static int batch_for(size_t bytes)
{
	return bytes <= (size_t)4 << 20 ? 20 : bytes <= (size_t)64 << 20 ? 5 : 2;
}

/* One host thread a rank: a single one could not queue short collectives of
 * eight devices as fast as they run. */
struct rank {
	struct probe_session *s;
	struct group *g;
	const struct probe_method *method;
	pthread_barrier_t *together;
	pthread_t thread;
	int i, batch, *reps;
	double *t_us; /* [rank][PROBE_MOST_REPS] of all ranks */
	bool failed;
};

static void call_alone(struct rank *r)
{
	bool ok = ncclGroupStart() == ncclSuccess;

	ok = one_rank(r->s, r->g, r->i) == ncclSuccess && ok;
	ok = ncclGroupEnd() == ncclSuccess && ok;
	r->failed |= !ok;
}

/* The call before the first event, untimed, lines the ranks up. */
static void burst(struct rank *r, int at)
{
	G(Stream_t) q = r->g->stream[r->i];
	float ms = 0;

	pthread_barrier_wait(r->together);
	call_alone(r);
	r->failed |= G(EventRecord)(r->g->begin[r->i][0], q) != G(Success);
	for (int j = 0; j < r->batch; j++)
		call_alone(r);
	r->failed |= G(EventRecord)(r->g->end[r->i][0], q) != G(Success) ||
		     G(StreamSynchronize)(q) != G(Success) ||
		     G(EventElapsedTime)(&ms, r->g->begin[r->i][0],
					 r->g->end[r->i][0]) != G(Success);
	r->t_us[r->i * PROBE_MOST_REPS + at] = (double)ms * 1e3 / r->batch;
	pthread_barrier_wait(r->together);
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	r->failed |= G(SetDevice)(r->i) != G(Success);
	for (int i = 0; i < r->method->warm_up; i++)
		call_alone(r);
	r->failed |= G(StreamSynchronize)(r->g->stream[r->i]) != G(Success);
	burst(r, 0);
	burst(r, 0);
	if (r->i == 0)
		*r->reps = probe_reps(r->method, r->t_us[0] * 1e-6 * (r->batch + 1));
	pthread_barrier_wait(r->together);
	for (int i = 0; i < *r->reps; i++)
		burst(r, i);
	return NULL;
}

/* Of each repetition the slowest rank counts. */
static enum probe_status time_group(struct probe_session *s, struct group *g,
				    const struct probe_method *method,
				    struct probe_time *out, char *why, size_t n_why)
{
	size_t n = (size_t)g->n;
	double *t_us = calloc(n * PROBE_MOST_REPS, sizeof(*t_us));
	struct rank rank[GPU_MOST];
	pthread_barrier_t together;
	bool failed = false;
	int reps = 0;

	if (!t_us || pthread_barrier_init(&together, NULL, (unsigned)n))
		abort();
	for (size_t i = 0; i < n; i++) {
		rank[i] = (struct rank){
			s,     g,    method, &together, 0, (int)i, batch_for(g->bytes),
			&reps, t_us, false
		};
		if (pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]))
			abort();
	}
	for (size_t i = 0; i < n; i++) {
		pthread_join(rank[i].thread, NULL);
		failed |= rank[i].failed;
	}
	for (int j = 0; j < reps; j++)
		for (size_t i = 1; i < n; i++)
			if (t_us[i * PROBE_MOST_REPS + (size_t)j] > t_us[j])
				t_us[j] = t_us[i * PROBE_MOST_REPS + (size_t)j];
	probe_summary(t_us, reps, out);
	free(t_us);
	pthread_barrier_destroy(&together);
	if (failed)
		snprintf(why, n_why, "a rank of %s failed", g->op);
	return failed ? PROBE_FAILED : PROBE_OK;
}

enum probe_status gpu_collective(struct probe_session *s, const struct probe_cell *c,
				 const struct probe_method *method,
				 struct probe_time *out, char *why, size_t n_why)
{
	struct group g = { .n = (int)c->gpus,
			   .op = c->kernel,
			   .bytes = (size_t)c->bytes };
	enum probe_status status;

	if (g.bytes > s->ring_bytes)
		return PROBE_NO_MEMORY;
	if (g.n > s->devices || g.n > GPU_MOST)
		return PROBE_UNSUPPORTED;
	status = prepare(s, &g, why, n_why);
	if (status == PROBE_OK)
		status = collective_check(s, &g, &out->relative_error, why, n_why);
	if (status == PROBE_OK)
		status = time_group(s, &g, method, out, why, n_why);
	tidy(&g);
	return status;
}

/* ---- a product beside a collective ------------------------------------------ */

/* Median of the first half, when both are surely running. */
static enum probe_status median_of(G(Event_t) * begin, G(Event_t) * end, int n,
				   double *us, char *why, size_t n_why)
{
	struct probe_time t;
	double t_us[MOST_EVENTS];
	int half = n / 2 > 0 ? n / 2 : 1;

	for (int i = 0; i < half; i++) {
		float ms;

		GPU_TRY(G(EventElapsedTime)(&ms, begin[i], end[i]));
		t_us[i] = (double)ms * 1e3;
	}
	probe_summary(t_us, half, &t);
	*us = t.median_us;
	return PROBE_OK;
}

/* Queue products on device 0 and collectives on all, turn by turn so that both
 * start early; only device 0 computes, which is where times are read. */
static enum probe_status together(struct probe_session *s, struct group *g,
				  struct gpu_product *p, int products, int collectives,
				  double *product_us, double *collective_us, char *why,
				  size_t n_why)
{
	enum probe_status status = PROBE_OK;
	int a = 0, b = 0;

	while (status == PROBE_OK && (a < products || b < collectives)) {
		if (b < collectives) {
			status = mark(g, false, b, why, n_why);
			if (status == PROBE_OK)
				status = collective_queue(s, g, why, n_why);
			if (status == PROBE_OK)
				status = mark(g, true, b++, why, n_why);
		}
		GPU_TRY(G(SetDevice)(0));
		for (int i = 0; i < 4 && a < products; i++, a++) {
			GPU_TRY(G(EventRecord)(s->begin[a], s->stream));
			if (gpu_product_queue(s, p) != PROBE_OK)
				return PROBE_FAILED;
			GPU_TRY(G(EventRecord)(s->end[a], s->stream));
		}
	}
	if (status == PROBE_OK)
		status = collective_wait(g, why, n_why);
	GPU_TRY(G(SetDevice)(0));
	GPU_TRY(G(StreamSynchronize)(s->stream));
	if (status == PROBE_OK && products)
		status = median_of(s->begin, s->end, products, product_us, why, n_why);
	if (status == PROBE_OK && collectives)
		status = median_of(g->begin[0], g->end[0], collectives, collective_us,
				   why, n_why);
	return status;
}

static enum probe_status beside(struct probe_session *s, struct group *g,
				struct gpu_product *p, struct probe_time *out,
				char *why, size_t n_why)
{
	double t_us[8], other_us[8];
	enum probe_status status = PROBE_OK;
	struct probe_time other;
	int products, collectives;

	for (int i = 0; i < 2 && status == PROBE_OK; i++) { /* first: warm-up */
		status = together(s, g, p, 16, 0, &out->alone_us, NULL, why, n_why);
		if (status == PROBE_OK)
			status = together(s, g, p, 0, 16, NULL, &out->other_alone_us,
					  why, n_why);
	}
	if (status != PROBE_OK)
		return status;
	products = (int)(12e3 / out->alone_us) + 4;
	collectives = (int)(12e3 / out->other_alone_us) + 4;
	if (products > MOST_EVENTS)
		products = MOST_EVENTS;
	if (collectives > MOST_EVENTS)
		collectives = MOST_EVENTS;
	for (int i = 0; i < 8 && status == PROBE_OK; i++)
		status = together(s, g, p, products, collectives, &t_us[i],
				  &other_us[i], why, n_why);
	if (status != PROBE_OK)
		return status;
	probe_summary(other_us, 8, &other);
	out->other_us = other.median_us;
	probe_summary(t_us, 8, out);
	return PROBE_OK;
}

enum probe_status gpu_beside(struct probe_session *s, const struct probe_cell *c,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why)
{
	struct group g = { .n = (int)c->gpus,
			   .op = c->kernel,
			   .bytes = (size_t)c->bytes };
	struct probe_cell product = { .kind = PROBE_GEMM,
				      .layout = "forward",
				      .dtype = c->dtype,
				      .m = c->m,
				      .n = c->n,
				      .k = c->k };
	struct gpu_product *p = NULL;
	enum probe_status status;

	(void)method;
	if (g.n > s->devices || g.bytes > s->ring_bytes)
		return PROBE_UNSUPPORTED;
	status = prepare(s, &g, why, n_why);
	(void)G(SetDevice)(0);
	if (status == PROBE_OK)
		status = gpu_product_open(s, &product, &p, why, n_why);
	if (status == PROBE_OK)
		status = beside(s, &g, p, out, why, n_why);
	if (p)
		gpu_product_close(p);
	tidy(&g);
	return status;
}
