/*
 * tests/test_host_alone.c - what one activity of a recorded host takes alone: drawn launches, waits and annotations
 * of two threads, whose times are worked out here from what was drawn. No kernel is a product: those of another thread
 * in an optimizer's step would be passes that run inside of it (recorded/updates.c; tests/test_fit_hosts.sh)
 */
#include <math.h>

#include "base/stats.h"
#include "study/host_rows.h"
#include "tests/made_recording.h"

enum { DRAWS = 150, CALLS = 36, SPANS = 12 };

static uint64_t seed = 61;

static const struct mark {
	const char *name;
	enum ft_host of;
	int part;
} marks[] = {
	{ "FSDP::pre_forward (layer)", FT_HOST_SHARD_FORWARD, 0 },
	{ "FSDP::post_forward (layer)", FT_HOST_SHARD_FORWARD, 1 },
	{ "FSDP::post_backward_accumulate (x)", FT_HOST_SHARD_BACKWARD, 0 },
	{ "FSDP::post_backward_reshard (x)", FT_HOST_SHARD_BACKWARD, 1 },
	{ "FSDP::post_backward_reduce (x)", FT_HOST_SHARD_BACKWARD, 2 },
	{ "Optimizer.step#AdamW.step", FT_HOST_OPTIMIZER, 0 },
	{ "something else", FT_HOSTS, 0 },
};

enum { MARKS = sizeof(marks) / sizeof(*marks) };

/* Microseconds. */
struct drawn_call {
	enum { KERNEL, COLLECTIVE, SYNC, RECORD } kind;
	int thread, at, us;
};

struct drawn_span {
	const struct mark *mark;
	int thread, at, us;
};

struct drawn {
	struct drawn_call call[CALLS];
	struct drawn_span span[SPANS];
	int calls, spans;
};

/* Calls in the order of their start; each thread's are over before its next. */
static void draw(struct drawn *d)
{
	int at = 100;

	*d = (struct drawn){ .calls = 4 + rnd_below(&seed, CALLS - 3),
			     .spans = rnd_below(&seed, SPANS + 1) };
	for (int i = 0; i < d->calls; i++) {
		static const int kinds[] = { KERNEL, KERNEL, COLLECTIVE, SYNC, RECORD };

		d->call[i].kind = kinds[i ? rnd_below(&seed, 5) : 0];
		d->call[i].thread = 1 + (rnd_below(&seed, 4) == 0);
		d->call[i].at = at;
		d->call[i].us = 1 + rnd_below(&seed, 30);
		at += 1 + rnd_below(&seed, 40);
	}
	for (int i = 0; i < d->spans; i++)
		d->span[i] = (struct drawn_span){ &marks[rnd_below(&seed, MARKS)],
						  1 + rnd_below(&seed, 2),
						  100 + rnd_below(&seed, at - 100),
						  5 + rnd_below(&seed, 200) };
}

static struct ft_recording *record(const struct drawn *d)
{
	static const char *const names[] = { "cudaLaunchKernel", "cudaLaunchKernel",
					     "cudaStreamSynchronize",
					     "cudaEventRecord" };
	struct made m = begin(0);

	for (int i = 0; i < d->spans; i++)
		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,"
		    "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{}},\n",
		    d->span[i].mark->name, d->span[i].thread, d->span[i].at,
		    d->span[i].us);
	for (int i = 0; i < d->calls; i++) {
		const struct drawn_call *c = &d->call[i];

		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,"
		    "\"tid\":%d,\"ts\":%d,\"dur\":%d,\"args\":{\"correlation\":%d}},\n",
		    names[c->kind], c->thread, c->at, c->us, i);
		if (c->kind == KERNEL || c->kind == COLLECTIVE)
			kernel(&m,
			       c->kind == KERNEL ? "elementwise" :
						   "ncclDevKernel_AllReduce",
			       i, 7, 3000 + 20 * i, 10);
	}
	return end(&m);
}

/* ---- worked out --------------------------------------------------------------------------- */

static bool launches(const struct drawn_call *c)
{
	return c->kind == KERNEL || c->kind == COLLECTIVE;
}

/* What the host waited before this call, all threads together, no moment twice. */
static double waited_us(const struct drawn *d, int call)
{
	double sum = 0;

	for (int us = 0; us < 4000; us++) {
		bool waits = false;

		for (int i = 0; i < call; i++)
			waits |= d->call[i].kind == SYNC && d->call[i].at <= us &&
				 us < d->call[i].at + d->call[i].us;
		sum += waits;
	}
	return sum;
}

static double median(double *v, int n)
{
	stats_sort(v, (size_t)n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Between two launches that follow each other, on one thread. */
static int pauses(const struct drawn *d, double *v)
{
	int n = 0;

	for (int i = 1; i < d->calls; i++)
		if (launches(&d->call[i]) && launches(&d->call[i - 1]) &&
		    d->call[i].thread == d->call[i - 1].thread)
			v[n++] = d->call[i].at - d->call[i - 1].at;
	return n;
}

static double alone_us(const struct drawn *d, const struct drawn_span *s,
		       double launch_us, double collective_us)
{
	double us = s->us;
	int first = -1, last = -1;

	for (int i = 0; i < d->calls; i++) {
		const struct drawn_call *c = &d->call[i];

		if (!launches(c) || c->thread != s->thread || c->at < s->at ||
		    c->at >= s->at + s->us)
			continue;
		us -= c->kind == COLLECTIVE ? collective_us : launch_us;
		first = first < 0 ? i : first;
		last = i;
	}
	return first < 0 ? us : us - (waited_us(d, last) - waited_us(d, first));
}

/* Within another update, or the same moments as one told before, of a thread before? */
static bool is_inner(const struct drawn *d, int i)
{
	const struct drawn_span *s = &d->span[i];
	bool inner = false;

	for (int j = 0; j < d->spans; j++) {
		const struct drawn_span *o = &d->span[j];
		bool within = o->at <= s->at && s->at + s->us <= o->at + o->us;
		bool before = o->us > s->us || o->thread < s->thread ||
			      (o->thread == s->thread && j < i);

		inner |= j != i && o->mark->of == FT_HOST_OPTIMIZER && within && before;
	}
	return inner && s->mark->of == FT_HOST_OPTIMIZER;
}

static void check_activity(const struct drawn *d, const struct host_rows *rows,
			   enum ft_host h, double launch_us, double collective_us)
{
	double sum = 0, most = 0;

	for (int part = 0; part < 3; part++) {
		double v[SPANS];
		int n = 0;

		for (int i = 0; i < d->spans; i++)
			if (d->span[i].mark->of == h && d->span[i].mark->part == part &&
			    !is_inner(d, i))
				v[n++] = alone_us(d, &d->span[i], launch_us,
						  collective_us);
		if (n)
			sum += median(v, n);
		most = fmax(most, n);
	}
	assert_int_equal(rows->alone[h].n, most);
	if (fabs(rows->alone[h].time_s * 1e6 - sum) > 1e-6)
		fail_msg("activity %d: %.9g us, worked out %.9g", h,
			 rows->alone[h].time_s * 1e6, sum);
}

static void check(const struct drawn *d, const struct ft_replay *replay,
		  struct ft_stack *stack, bool keep)
{
	const double pace = 0.8;
	struct ft_scenario scenario = { .stack = stack };
	struct ft_host_fit_request asked = { .replay = replay,
					     .scenario = &scenario,
					     .pace = pace };
	struct arena mem = { 0 };
	struct host_rows rows;
	double v[CALLS], launch_us = 9 / pace;
	int n = keep ? 0 : pauses(d, v);

	host_rows_alone(&asked, keep, &mem, &rows);
	if (n)
		launch_us = median(v, n);
	assert_int_equal(rows.alone[FT_HOST_LAUNCH].n, n);
	near_frac(1 + rows.alone[FT_HOST_LAUNCH].time_s * 1e6, 1 + (n ? launch_us : 0),
		  1e-9);
	for (int h = 0; h < FT_HOSTS; h++)
		if (h != FT_HOST_LAUNCH)
			check_activity(d, &rows, (enum ft_host)h, launch_us, 25 / pace);
	arena_release(&mem);
}

static void activities_take_what_is_left_without_launches_and_waits(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct ft_stack stack;
		struct ft_recording *r;
		struct ft_replay *replay;
		struct ft_error err;
		struct drawn d;

		draw(&d);
		stack.host_s[FT_HOST_LAUNCH].value = 9e-6;
		stack.host_s[FT_HOST_COLLECTIVE].value = 25e-6;
		r = record(&d);
		replay = ft_replay_build(one(r), 1, &err);
		ok_or_say(replay, err);
		check(&d, replay, &stack, i % 4 == 0);
		ft_replay_free(replay);
		ft_recording_free(r);
	}
}

/* Pairs of an annotation's activity and of one that lies within it. */
static bool lies_within(enum ft_host outer, int inner)
{
	return (outer == FT_HOST_SHARD_BACKWARD &&
		(inner == FT_HOST_TABLE || inner == FT_HOST_TABLE_FRESH)) ||
	       (outer == FT_HOST_OPTIMIZER &&
		(inner == FT_HOST_OPTIMIZER_TENSOR || inner == FT_HOST_SHARD_TENSOR));
}

/* Of the first of the rows with most sections among those that have the activity: each of the others so often as it
 * comes for one of these. */
static void what_lies_within_is_of_the_most_usual_section(void **state)
{
	enum { ROWS = 5 };
	int none = 0, some = 0;

	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct ft_stack stack = { .name = "x" };
		struct host_row row[ROWS] = { { 0 } };
		struct host_rows rows = { .n = (size_t)rnd_below(&seed, ROWS + 1),
					  .row = row };

		for (int h = 0; h < FT_HOSTS; h++)
			stack.host_s[h].value = 1e-6 * rnd_below(&seed, 100);
		for (size_t i = 0; i < rows.n; i++) {
			row[i].n = 1 + (size_t)rnd_below(&seed, 4);
			for (int h = 0; h < FT_HOSTS; h++)
				row[i].times[h] = rnd_below(&seed, 4) / 2.0;
		}
		for (int outer = 0; outer < FT_HOSTS; outer++) {
			int at = -1;
			double want = 0;

			for (int i = (int)rows.n - 1; i >= 0; i--)
				if (row[i].times[outer] > 0 &&
				    (at < 0 || row[i].n >= row[at].n))
					at = i;
			for (int h = 0; h < FT_HOSTS && at >= 0; h++)
				if (lies_within((enum ft_host)outer, h))
					want += stack.host_s[h].value *
						row[at].times[h] / row[at].times[outer];
			near_frac(1 + host_within_s(&stack, &rows, (enum ft_host)outer),
				  1 + want, 1e-12);
			some += want > 0;
			none += at < 0;
		}
	}
	assert_true(some > DRAWS && none > DRAWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			activities_take_what_is_left_without_launches_and_waits),
		cmocka_unit_test(what_lies_within_is_of_the_most_usual_section),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
