/* tests/hip_on_cpu/rccl.c - RCCL's operations among ranks of one process: each is carried
 * out by whoever posts its last part. -DBREAK_OP='"broadcast"' spoils one element of
 * that operation on the last rank, so that a check can be seen to fail */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip_on_cpu/numbers.h"
#include "calibrate/probes/gpu/hip_min.h"
#include "calibrate/probes/gpu/kernels.h"

#ifndef BREAK_OP
#define BREAK_OP ""
#endif

enum { RANKS = 4, AHEAD = 256 };

struct part {
	const char *op;
	const void *from;
	void *to;
	size_t n;
};

struct world {
	pthread_mutex_t lock;
	int n, posted[RANKS], done;
	struct part part[RANKS][AHEAD];
	/* messages from a to b: how many sent, received, and the posted ends */
	int sent[RANKS][RANKS], taken[RANKS][RANKS];
	struct part out[RANKS][RANKS][AHEAD], in[RANKS][RANKS][AHEAD];
};

struct ncclComm {
	struct world *w;
	int rank;
};

const char *ncclGetErrorString(ncclResult_t r)
{
	return r == ncclSuccess ? "no error" : "error";
}
ncclResult_t ncclGetVersion(int *v)
{
	*v = 12345;
	return ncclSuccess;
}
ncclResult_t ncclGroupStart(void)
{
	return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void)
{
	return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t *c, int n, const int *devices)
{
	struct world *w = calloc(1, sizeof(*w));

	(void)devices;
	pthread_mutex_init(&w->lock, NULL);
	w->n = n;
	for (int i = 0; i < n; i++) {
		c[i] = calloc(1, sizeof(**c));
		c[i]->w = w;
		c[i]->rank = i;
	}
	return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t c)
{
	if (c->rank == c->w->n - 1)
		free(c->w);
	free(c);
	return ncclSuccess;
}

static void sum(struct world *w, int at, size_t first, size_t n, void *to)
{
	for (size_t i = 0; i < n; i++) {
		float x = 0;

		for (int r = 0; r < w->n; r++)
			x += number_load(w->part[r][at].from, first + i, KERNEL_BF16);
		number_store(to, i, KERNEL_BF16, x);
	}
}

static void spoil(const char *op, void *to, size_t n)
{
	if (!strcmp(op, BREAK_OP))
		((uint16_t *)to)[n - 1] ^= 0x0140;
}

static void carry_out(struct world *w, int at)
{
	const char *op = w->part[0][at].op;
	size_t n = w->part[0][at].n;

	for (int r = 0; r < w->n; r++) {
		struct part *p = &w->part[r][at];

		if (!strcmp(op, "all_reduce"))
			sum(w, at, 0, n, p->to);
		else if (!strcmp(op, "reduce_scatter"))
			sum(w, at, (size_t)r * n, n, p->to);
		else if (!strcmp(op, "broadcast"))
			memcpy(p->to, w->part[0][at].from, 2 * n);
		else
			for (int j = 0; j < w->n; j++)
				memcpy((char *)p->to + 2 * (size_t)j * n,
				       w->part[j][at].from, 2 * n);
		if (r == w->n - 1)
			spoil(op, p->to, n);
	}
}

static ncclResult_t post(ncclComm_t c, const char *op, const void *from, void *to,
			 size_t n)
{
	struct world *w = c->w;
	int least;

	pthread_mutex_lock(&w->lock);
	w->part[c->rank][w->posted[c->rank]++ % AHEAD] =
		(struct part){ op, from, to, n };
	least = w->posted[0];
	for (int r = 1; r < w->n; r++)
		least = w->posted[r] < least ? w->posted[r] : least;
	while (w->done < least)
		carry_out(w, w->done++ % AHEAD);
	pthread_mutex_unlock(&w->lock);
	return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t t,
			   ncclRedOp_t op, ncclComm_t c, hipStream_t s)
{
	(void)t, (void)op, (void)s;
	return post(c, "all_reduce", from, to, n);
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t t,
			   ncclComm_t c, hipStream_t s)
{
	(void)t, (void)s;
	return post(c, "all_gather", from, to, n);
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t n, ncclDataType_t t,
			       ncclRedOp_t op, ncclComm_t c, hipStream_t s)
{
	(void)t, (void)op, (void)s;
	return post(c, "reduce_scatter", from, to, n);
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t t,
			   int root, ncclComm_t c, hipStream_t s)
{
	(void)t, (void)s;
	return root ? (ncclResult_t)1 : post(c, "broadcast", from, to, n);
}

/* Whoever comes second copies. */
static ncclResult_t meet(ncclComm_t c, int from, int to, struct part p)
{
	struct world *w = c->w;
	bool sends = p.from != NULL;
	int *mine = sends ? &w->sent[from][to] : &w->taken[from][to];
	int i, other;

	pthread_mutex_lock(&w->lock);
	i = (*mine)++;
	(sends ? w->out : w->in)[from][to][i % AHEAD] = p;
	other = sends ? w->taken[from][to] : w->sent[from][to];
	if (i < other) {
		struct part *out = &w->out[from][to][i % AHEAD];
		struct part *in = &w->in[from][to][i % AHEAD];

		memcpy(in->to, out->from, 2 * out->n);
		if (to == w->n - 1)
			spoil("send", in->to, out->n);
	}
	pthread_mutex_unlock(&w->lock);
	return ncclSuccess;
}
ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t t, int to,
		      ncclComm_t c, hipStream_t s)
{
	(void)t, (void)s;
	return meet(c, c->rank, to, (struct part){ "send", from, NULL, n });
}
ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t t, int from, ncclComm_t c,
		      hipStream_t s)
{
	(void)t, (void)s;
	return meet(c, from, c->rank, (struct part){ "send", NULL, to, n });
}
