/* calibrate/probes/gpu/time.c - stream events around calls; launch costs; copies */
#include "calibrate/probes/gpu/gpu.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 20 };
static const double short_s = 20e-6;

#define QUEUE(call) \
	do { \
		enum probe_status q_ = (call)->queue(s, (call)->self); \
		if (q_ != PROBE_OK) \
			return q_; \
	} while (0)

/* All repetitions are queued before the first is waited for: the flush hides
 * what the host takes to queue the next. */
static enum probe_status repeat(struct probe_session *s, const struct gpu_call *call,
				bool cold, int reps, int batch, double *t_us)
{
	char *why = call->why;
	size_t n_why = call->n_why;

	for (int i = 0; i < reps; i++) {
		if (cold)
			GPU_TRY(G(MemsetAsync)(s->flush, i & 1, s->flush_bytes,
					       s->stream));
		GPU_TRY(G(EventRecord)(s->begin[i], s->stream));
		for (int j = 0; j < batch; j++)
			QUEUE(call);
		GPU_TRY(G(EventRecord)(s->end[i], s->stream));
	}
	GPU_TRY(G(StreamSynchronize)(s->stream));
	for (int i = 0; i < reps; i++) {
		float ms;

		GPU_TRY(G(EventElapsedTime)(&ms, s->begin[i], s->end[i]));
		t_us[i] = (double)ms * 1e3 / batch;
	}
	return PROBE_OK;
}

enum probe_status gpu_time(struct probe_session *s, const struct gpu_call *call,
			   bool cold, const struct probe_method *method,
			   struct probe_time *out)
{
	double t_us[PROBE_MOST_REPS];
	enum probe_status status;
	int batch, reps;

	for (int i = 0; i < method->warm_up; i++)
		QUEUE(call);
	status = repeat(s, call, cold, 2, 1, t_us);
	if (status != PROBE_OK)
		return status;
	batch = !cold && t_us[1] * 1e-6 < short_s ? BATCH : 1;
	reps = probe_reps(method, t_us[1] * 1e-6 * batch + (cold ? 70e-6 : 0));
	status = repeat(s, call, cold, reps, batch, t_us);
	if (status == PROBE_OK)
		probe_summary(t_us, reps, out);
	return status;
}

/* Back to back for as long as the method says; the last fifth counts. */
enum probe_status gpu_sustain(struct probe_session *s, const struct gpu_call *call,
			      const struct probe_method *method, struct probe_time *out)
{
	double t_us[PROBE_MOST_REPS], start, one_s;
	enum probe_status status = repeat(s, call, false, 3, 1, t_us);
	char *why = call->why;
	size_t n_why = call->n_why;
	int batch, n = 0;

	if (status != PROBE_OK)
		return status;
	one_s = t_us[2] * 1e-6;
	batch = (int)(0.02 / one_s) + 1;
	start = probe_now_s();
	while (probe_now_s() - start < method->sustained_s) {
		bool late = probe_now_s() - start > 0.8 * method->sustained_s;
		int at = n % PROBE_MOST_REPS;
		float ms;

		GPU_TRY(G(EventRecord)(s->begin[at], s->stream));
		for (int j = 0; j < batch; j++)
			QUEUE(call);
		GPU_TRY(G(EventRecord)(s->end[at], s->stream));
		if (late)
			gpu_clocks_read(s->clocks, out); /* while it runs */
		GPU_TRY(G(EventSynchronize)(s->end[at]));
		GPU_TRY(G(EventElapsedTime)(&ms, s->begin[at], s->end[at]));
		if (late)
			t_us[n++ % PROBE_MOST_REPS] = (double)ms * 1e3 / batch;
	}
	if (n > PROBE_MOST_REPS)
		n = PROBE_MOST_REPS;
	probe_summary(t_us, n, out);
	return PROBE_OK;
}

/* ---- launches ------------------------------------------------------------- */

static enum probe_status queue_empty(struct probe_session *s, void *self)
{
	(void)self;
	kernel_empty(s->stream);
	return PROBE_OK;
}

static enum probe_status queue_many(struct probe_session *s, void *self)
{
	for (int i = 0; i < *(int *)self; i++)
		kernel_empty(s->stream);
	return PROBE_OK;
}

/* What the host spends on one launch, far from a full queue. */
static enum probe_status enqueue(struct probe_session *s, struct probe_time *out,
				 char *why, size_t n_why)
{
	enum { ROUNDS = 32, LAUNCHES = 200 };
	double t_us[ROUNDS];

	for (int i = -2; i < ROUNDS; i++) {
		double start = probe_now_s();

		for (int j = 0; j < LAUNCHES; j++)
			kernel_empty(s->stream);
		if (i >= 0)
			t_us[i] = (probe_now_s() - start) * 1e6 / LAUNCHES;
		GPU_TRY(G(StreamSynchronize)(s->stream));
	}
	probe_summary(t_us, ROUNDS, out);
	return PROBE_OK;
}

static enum probe_status graph(struct probe_session *s, struct probe_time *out,
			       char *why, size_t n_why)
{
	enum { ROUNDS = 32, NODES = 100 };
	double t_us[ROUNDS];
	G(GraphExec_t) ready;
	G(Graph_t) g;
	float ms;

	GPU_TRY(G(StreamBeginCapture)(s->stream, G(StreamCaptureModeThreadLocal)));
	for (int i = 0; i < NODES; i++)
		kernel_empty(s->stream);
	GPU_TRY(G(StreamEndCapture)(s->stream, &g));
#ifdef PROBE_HIP
	GPU_TRY(hipGraphInstantiate(&ready, g, NULL, NULL, 0));
#else
	GPU_TRY(cudaGraphInstantiate(&ready, g, 0));
#endif
	for (int i = -2; i < ROUNDS; i++) {
		GPU_TRY(G(EventRecord)(s->begin[0], s->stream));
		GPU_TRY(G(GraphLaunch)(ready, s->stream));
		GPU_TRY(G(EventRecord)(s->end[0], s->stream));
		GPU_TRY(G(StreamSynchronize)(s->stream));
		GPU_TRY(G(EventElapsedTime)(&ms, s->begin[0], s->end[0]));
		if (i >= 0)
			t_us[i] = (double)ms * 1e3 / NODES;
	}
	(void)G(GraphExecDestroy)(ready);
	(void)G(GraphDestroy)(g);
	probe_summary(t_us, ROUNDS, out);
	return PROBE_OK;
}

enum probe_status gpu_launch(struct probe_session *s, const struct probe_cell *cell,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why)
{
	struct gpu_call call = { queue_empty, NULL, why, n_why };
	enum probe_status status;
	int many = 100;

	if (!strcmp(cell->kernel, "enqueue"))
		return enqueue(s, out, why, n_why);
	if (!strcmp(cell->kernel, "graph"))
		return graph(s, out, why, n_why);
	if (!strcmp(cell->kernel, "event_pair"))
		return gpu_time(s, &call, true, method, out);
	/* gap: kernels that follow each other on a stream, start to start; the
	 * flush lets the host run ahead */
	call = (struct gpu_call){ queue_many, &many, why, n_why };
	status = gpu_time(s, &call, true, method, out);
	out->median_us /= many;
	out->p10_us /= many;
	out->p90_us /= many;
	return status;
}

/* ---- copies ---------------------------------------------------------------- */

struct transfer {
	char *from, *to;
	size_t bytes;
	int kind; /* 0: to the device, 1: from it, 2: peer, 3: peers both ways */
	int a, b;
	char *far[2]; /* on device b */
	G(Stream_t) back;
};

static enum probe_status queue_transfer(struct probe_session *s, void *self)
{
	struct transfer *t = self;
	G(Error_t) e;

	if (t->kind < 2)
		e = G(MemcpyAsync)(t->to, t->from, t->bytes,
				   t->kind ? G(MemcpyDeviceToHost) :
					     G(MemcpyHostToDevice),
				   s->stream);
	else
		e = G(MemcpyPeerAsync)(t->far[0], t->b, t->from, t->a, t->bytes,
				       s->stream);
	return e == G(Success) ? PROBE_OK : PROBE_FAILED;
}

static enum probe_status host_copy(struct probe_session *s,
				   const struct probe_cell *cell,
				   const struct probe_method *method,
				   struct probe_time *out, char *why, size_t n_why)
{
	bool pageable = strstr(cell->kernel, "pageable") != NULL;
	struct transfer t = { .bytes = (size_t)cell->bytes,
			      .kind = cell->kernel[0] == 'd' };
	struct gpu_call call = { queue_transfer, &t, why, n_why };
	enum probe_status status;
	void *host = NULL;

	if (pageable) {
		host = malloc(t.bytes);
		if (host)
			memset(host, 1, t.bytes);
	} else {
#ifdef PROBE_HIP
		GPU_TRY(hipHostMalloc(&host, t.bytes, 0));
#else
		GPU_TRY(cudaMallocHost(&host, t.bytes));
#endif
	}
	if (!host)
		return PROBE_NO_MEMORY;
	t.from = t.kind ? s->region[0] : host;
	t.to = t.kind ? host : s->region[0];
	status = gpu_time(s, &call, false, method, out);
	if (pageable)
		free(host);
	else
#ifdef PROBE_HIP
		(void)hipHostFree(host);
#else
		(void)cudaFreeHost(host);
#endif
	return status;
}

/* Both ways at once: a stream for each, the slower of the two counts. */
static enum probe_status both_ways(struct probe_session *s, struct transfer *t,
				   struct probe_time *out, char *why, size_t n_why)
{
	enum { ROUNDS = 12 };
	double t_us[ROUNDS];

	for (int i = -2; i < ROUNDS; i++) {
		float one, other;

		GPU_TRY(G(EventRecord)(s->begin[0], s->stream));
		GPU_TRY(G(StreamWaitEvent)(s->side, s->begin[0], 0));
		GPU_TRY(G(MemcpyPeerAsync)(t->far[0], t->b, t->from, t->a, t->bytes,
					   s->stream));
		GPU_TRY(G(MemcpyPeerAsync)(t->to, t->a, t->far[1], t->b, t->bytes,
					   s->side));
		GPU_TRY(G(EventRecord)(s->end[0], s->stream));
		GPU_TRY(G(EventRecord)(s->end[1], s->side));
		GPU_TRY(G(StreamSynchronize)(s->stream));
		GPU_TRY(G(StreamSynchronize)(s->side));
		GPU_TRY(G(EventElapsedTime)(&one, s->begin[0], s->end[0]));
		GPU_TRY(G(EventElapsedTime)(&other, s->begin[0], s->end[1]));
		if (i >= 0)
			t_us[i] = 1e3 * (double)(one > other ? one : other);
	}
	probe_summary(t_us, ROUNDS, out);
	return PROBE_OK;
}

/* The pair's first device runs it; its source must lie there, so a copy from
 * another device than the first is queued by the first on its behalf. */
static enum probe_status peer_copy(struct probe_session *s,
				   const struct probe_cell *cell,
				   const struct probe_method *method,
				   struct probe_time *out, char *why, size_t n_why)
{
	struct transfer t = { .bytes = (size_t)cell->bytes,
			      .kind = 2,
			      .a = (int)cell->from,
			      .b = (int)cell->to };
	struct gpu_call call = { queue_transfer, &t, why, n_why };
	char *near[2] = { NULL, NULL };
	enum probe_status status = PROBE_OK;
	int can = 0;

	GPU_TRY(G(DeviceCanAccessPeer)(&can, t.a, t.b));
	if (!can)
		return PROBE_UNSUPPORTED;
	for (int side = 0; side < 2; side++) {
		GPU_TRY(G(SetDevice)(side ? t.b : t.a));
		if (G(DeviceEnablePeerAccess)(side ? t.a : t.b, 0) != G(Success))
			(void)G(GetLastError)(); /* it was on already */
		for (int i = 0; i < 2; i++)
			GPU_TRY(G(Malloc)((void **)(side ? &t.far[i] : &near[i]),
					  t.bytes));
	}
	GPU_TRY(G(SetDevice)(s->first));
	t.from = near[0];
	t.to = near[1];
	if (!strcmp(cell->kernel, "p2p_both"))
		status = both_ways(s, &t, out, why, n_why);
	else
		status = gpu_time(s, &call, false, method, out);
	for (int i = 0; i < 2; i++) {
		(void)G(Free)(near[i]);
		(void)G(Free)(t.far[i]);
	}
	return status;
}

enum probe_status gpu_transfer(struct probe_session *s, const struct probe_cell *cell,
			       const struct probe_method *method,
			       struct probe_time *out, char *why, size_t n_why)
{
	if ((size_t)cell->bytes > s->region_bytes)
		return PROBE_NO_MEMORY;
	if (!strncmp(cell->kernel, "p2p", 3))
		return peer_copy(s, cell, method, out, why, n_why);
	return host_copy(s, cell, method, out, why, n_why);
}
