/*
 * tests/test_where_drawn.c - where a recorded step's time goes: drawn operations of several streams, looked at
 * microsecond by microsecond, in drawn windows; launches, queues and kernels counted
 */
#include <math.h>

#include "tests/made_recording.h"

enum { DRAWS = 150, OPS = 24, STREAMS = 3, LONG_US = 6000 };

static uint64_t seed = 89;

static const struct kind {
	const char *name;
	enum ft_rec_class of;
	enum { WORK, UPDATE, COLLECTIVE, TRANSFER, RING, SORTS } as;
} kinds[] = {
	{ "gemm_a", FT_REC_GEMM, WORK },
	{ "gemm_b", FT_REC_GEMM, WORK },
	{ "flash_fwd", FT_REC_ATTENTION, WORK },
	{ "elementwise", FT_REC_MEMORY, WORK },
	{ "nobodys", FT_REC_OTHER, WORK },
	{ "elementwise_u", FT_REC_OPTIMIZER, UPDATE },
	{ "elementwise", FT_REC_OPTIMIZER, UPDATE }, /* as others call another */
	{ "ncclDevKernel_AllReduce", FT_REC_COLLECTIVE, COLLECTIVE },
	{ "ncclDevKernel_SendRecv", FT_REC_COLLECTIVE, TRANSFER },
	{ "ncclDevKernel_SendRecv_Ring", FT_REC_COLLECTIVE,
	  RING }, /* of context ranks */
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* Microseconds. */
struct op {
	const struct kind *kind;
	int stream, call, at, us;
};

struct drawn {
	struct op op[OPS];
	int n, syncs, sync_us, allocations, allocation_us;
};

static void draw(struct drawn *d)
{
	int free_at[STREAMS] = { 1000, 1000, 1000 };

	*d = (struct drawn){ .n = 2 + rnd_below(&seed, OPS - 1) };
	for (int i = 0; i < d->n; i++) {
		struct op *o = &d->op[i];

		o->kind = &kinds[rnd_below(&seed, KINDS)];
		o->stream = rnd_below(&seed, STREAMS);
		o->call = 100 + 30 * i;
		o->at = free_at[o->stream] +
			(rnd_below(&seed, 2) ? rnd_below(&seed, 120) : 0);
		o->us = 1 + rnd_below(&seed, 150);
		free_at[o->stream] = o->at + o->us;
	}
}

static void put_op(struct made *m, const struct op *o, int i)
{
	if (o->kind->as == UPDATE)
		add(m,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"Optimizer.step#"
		    "A\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":8,\"args\":{}},\n",
		    o->call - 1);
	call(m, "cudaLaunchKernel", i, o->call, 5);
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":"
	    "%d,\"dur\":%d,\"args\":{\"stream\":%d,\"correlation\":%d",
	    o->kind->name, 7 + o->stream, o->at, o->us, 7 + o->stream, i);
	if (o->kind->as >= COLLECTIVE)
		add(m,
		    ",\"Collective name\":\"%s\",\"In msg nelems\":9,\"Out msg nelems\":9,"
		    "\"Group size\":2,\"dtype\":\"Float\",\"Process Group "
		    "Description\":\"%s\"",
		    o->kind->as == COLLECTIVE ? "allreduce" : "send",
		    o->kind->as == RING ? "mesh_cp" : "mesh_pp");
	add(m, "}},\n");
}

static struct ft_recording *record(struct drawn *d)
{
	struct made m = begin(0);

	for (int i = 0; i < d->n; i++) {
		put_op(&m, &d->op[i], i + 1);
		if (rnd_below(&seed, 4) == 0) {
			call(&m, "cudaStreamSynchronize", 500 + i, d->op[i].call + 10,
			     6);
			d->syncs++;
			d->sync_us += 6;
		} else if (rnd_below(&seed, 4) == 0) {
			call(&m, "cudaMalloc", 500 + i, d->op[i].call + 10, 4);
			d->allocations++;
			d->allocation_us += 4;
		}
	}
	return end(&m);
}

/* ---- looked at ----------------------------------------------------------------------------- */

static bool runs(const struct op *o, int us)
{
	return o->at <= us && us < o->at + o->us;
}

static void same(const char *what, double is_s, double want_us)
{
	if (fabs(is_s * 1e6 - want_us) > 1e-6)
		fail_msg("%s: %.9g us, counted %.9g", what, is_s * 1e6, want_us);
}

/* The first of these that runs takes a microsecond: update, other work, a collective or a context
 * ring, transfer. */
static void check_instants(const struct drawn *d, const struct ft_rec_where *w,
			   int from, int to)
{
	int update = 0, work = 0, exposed = 0, bubble = 0, idle = 0, any = 0,
	    last = from;
	double idle_s = 0;

	for (int us = from; us < to; us++) {
		bool now[SORTS] = { false };

		for (int i = 0; i < d->n; i++)
			now[d->op[i].kind->as] |= runs(&d->op[i], us);
		any += now[COLLECTIVE] || now[TRANSFER] || now[RING];
		if (now[UPDATE])
			update++;
		else if (now[WORK])
			work++;
		else if (now[COLLECTIVE] || now[RING])
			exposed++;
		else if (now[TRANSFER])
			bubble++;
		else
			idle++;
		if (now[UPDATE] || now[WORK] || now[COLLECTIVE] || now[TRANSFER] ||
		    now[RING])
			last = us + 1;
	}
	for (int c = 0; c < FT_REC_CAUSES; c++)
		idle_s += w->idle_s[c];
	same("step", w->step_s, to - from);
	same("optimizer", w->optimizer_s, update);
	same("compute", w->compute_s, work);
	same("exposed", w->exposed_s, exposed);
	same("bubble", w->bubble_s, bubble);
	same("collectives", w->collective_s, any);
	same("tail", w->tail_s, to - last);
	same("idle", idle_s + w->tail_s, idle);
}

static void check_sums(const struct drawn *d, const struct ft_rec_where *w, int from,
		       int to)
{
	double sum[FT_REC_CLASSES] = { 0 }, transfers = 0;
	int n[FT_REC_CLASSES] = { 0 };

	for (int i = 0; i < d->n; i++) {
		const struct op *o = &d->op[i];

		if (o->at < from || o->at >= to)
			continue;
		sum[o->kind->of] += o->us;
		n[o->kind->of]++;
		transfers += o->kind->as == TRANSFER ? o->us : 0;
	}
	for (int c = 0; c < FT_REC_CLASSES; c++) {
		same("class", w->class_s[c], sum[c]);
		assert_int_equal(w->class_n[c], n[c]);
	}
	same("transfers", w->sendrecv_s, transfers);
}

static void check_queue(const struct drawn *d, const struct ft_rec_where *w, int from,
			int to)
{
	double waited = 0;
	int most = 0;

	for (int us = from; us < to; us++) {
		int queued = 0;

		for (int i = 0; i < d->n; i++)
			queued += d->op[i].call <= us && us < d->op[i].at;
		most = queued > most ? queued : most;
		waited += queued;
	}
	assert_int_equal(w->queued_most, most);
	near_frac(1 + w->queued_mean, 1 + (to > from ? waited / (to - from) : 0), 1e-9);
}

/* By name and class, the longest sum first. */
static void check_kernels(const struct drawn *d, const struct ft_recording *r,
			  const struct ft_replay *p, const struct ft_replayed *t,
			  const int window[2])
{
	struct arena mem = { 0 };
	size_t n, seen = 0;
	struct ft_rec_kernel *k = ft_replay_kernels(
		p, 0, t,
		(struct ft_rec_window){ window[0] * INT64_C(1000000),
					window[1] * INT64_C(1000000) },
		&mem, &n);

	for (int i = 0; i < KINDS; i++) {
		int count = 0, least = LONG_US, most = 0;
		double sum = 0;

		for (int o = 0; o < d->n; o++)
			if (d->op[o].kind == &kinds[i] && d->op[o].at >= window[0] &&
			    d->op[o].at < window[1]) {
				count++;
				sum += d->op[o].us;
				least = d->op[o].us < least ? d->op[o].us : least;
				most = d->op[o].us > most ? d->op[o].us : most;
			}
		for (size_t j = 0; j < n; j++) {
			if (strcmp(ft_recording_text(r, k[j].name), kinds[i].name) ||
			    k[j].rec_class != kinds[i].of)
				continue;
			seen++;
			assert_int_equal(k[j].n, count);
			same("kernel", k[j].time_s, sum);
			same("shortest", k[j].shortest_s, least);
			same("longest", k[j].longest_s, most);
			count = 0;
		}
		assert_int_equal(count, 0);
	}
	assert_int_equal(seen, n);
	for (size_t j = 1; j < n; j++)
		assert_true(k[j - 1].time_s >= k[j].time_s);
	arena_release(&mem);
}

static void check_calls(const struct drawn *d, const struct ft_replay *p,
			const struct ft_replayed *t)
{
	struct ft_rec_where w = { .step_s = 0 };

	ft_replay_calls(p, t, 0, 0, &w);
	assert_int_equal(w.launches, d->n);
	same("launches", w.call_s, 5 * d->n);
	same("waits", w.sync_s, d->sync_us);
	same("allocations", w.allocation_s, d->allocation_us);
	assert_int_equal(w.allocations, d->allocations);
}

static void each_instant_is_of_the_first_that_runs(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		struct ft_recording *r;
		struct ft_replay *p;
		struct ft_replayed t;
		struct ft_error err;
		struct drawn d;
		int first; /* moment of the recording's 0 */

		draw(&d);
		r = record(&d);
		p = ft_replay_build(one(r), 1, &err);
		ok_or_say(p, err);
		t = ft_replay_as_recorded(p, &mem);
		first = 100 - (d.op[0].kind->as == UPDATE);
		for (int k = 0; k < d.n; k++) {
			d.op[k].at -= first;
			d.op[k].call -= first;
		}
		for (int k = 0; k < 4; k++) {
			int window[2] = { rnd_below(&seed, 2000), 0 };
			struct ft_rec_where w;

			window[1] = window[0] + 1 + rnd_below(&seed, LONG_US / 2);
			w = ft_replay_where(
				p, &t, 0,
				(struct ft_rec_window){ window[0] * INT64_C(1000000),
							window[1] * INT64_C(1000000) });
			check_instants(&d, &w, window[0], window[1]);
			check_sums(&d, &w, window[0], window[1]);
			check_queue(&d, &w, window[0], window[1]);
			check_kernels(&d, r, p, &t, window);
		}
		check_calls(&d, p, &t);
		ft_replay_free(p);
		ft_recording_free(r);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instant_is_of_the_first_that_runs),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
