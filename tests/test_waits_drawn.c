/*
 * tests/test_waits_drawn.c - for which operation a stream was told to wait: drawn recordings of two threads, in which
 * each wait is looked for here by the rules of recorded/waits.c, among all operations each time
 */
#include "base/arena.h"
#include "tests/made_recording.h"

enum { DRAWS = 300, EVENTS = 30, STREAMS = 3, THREADS = 2, PENDING = 8 };

static uint64_t seed = 157;

enum kind { KERNEL, COLLECTIVE, RECORD, WAIT };

/* Microseconds. Operations have a stream and times of their own. */
struct event {
	enum kind kind;
	int thread, at, stream, begin, took, told; /* told: the event's record, or -1 */
};

struct drawn {
	struct event of[EVENTS];
	int told, by_time, by_order, unresolved;
	int found
		[EVENTS]; /* of an operation: what its launch was told to wait for; or -1 */
};

/* ---- drawn ------------------------------------------------------------------------------ */

/* Of the ends of operations some are a few microseconds before others begin. */
static void draw(struct drawn *d)
{
	static const int kinds[] = { KERNEL, KERNEL, KERNEL, COLLECTIVE,
				     RECORD, WAIT,   WAIT };
	int free_us[STREAMS] = { 0 }, at = 0;

	*d = (struct drawn){ .told = 0 };
	for (int i = 0; i < EVENTS; i++) {
		struct event *e = &d->of[i];

		*e = (struct event){
			.kind = (enum kind)kinds[i ? rnd_below(&seed, 7) : 0],
			.thread = rnd_below(&seed, THREADS),
			.at = at,
			.stream = rnd_below(&seed, STREAMS),
			.told = -1
		};
		at += 2 + rnd_below(&seed, 9);
		if (e->kind == WAIT && rnd_below(&seed, 2)) {
			int k = rnd_below(&seed, i);

			e->told = d->of[k].kind == RECORD ? k : -1;
		}
		if (e->kind > COLLECTIVE)
			continue;
		e->begin = e->at + 2 + rnd_below(&seed, 12);
		if (e->begin < free_us[e->stream])
			e->begin = free_us[e->stream];
		e->took = 1 + rnd_below(&seed, rnd_below(&seed, 4) ? 12 : 60);
		free_us[e->stream] = e->begin + e->took;
	}
}

static struct ft_recording *recorded(const struct drawn *d)
{
	static const char *const calls[] = { "cudaLaunchKernel", "cudaLaunchKernel",
					     "cudaEventRecord", "cudaStreamWaitEvent" };
	struct made m = begin(0);

	for (int i = 0; i < EVENTS; i++) {
		const struct event *e = &d->of[i];

		add(&m,
		    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,"
		    "\"tid\":%d,\"ts\":%d,\"dur\":1,\"args\":{\"correlation\":%d}},\n",
		    calls[e->kind], e->thread, e->at, i);
		if (e->told >= 0)
			add(&m,
			    "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"w\",\"pid\":0,"
			    "\"tid\":7,\"ts\":%d,\"dur\":0,\"args\":{\"correlation\":%d,"
			    "\"wait_on_cuda_event_record_corr_id\":%d}},\n",
			    e->at, i, e->told);
		if (e->kind <= COLLECTIVE)
			kernel(&m,
			       e->kind == KERNEL ? "gemm" : "ncclDevKernel_AllReduce",
			       i, e->stream, e->begin, e->took);
	}
	return end(&m);
}

/* ---- looked for --------------------------------------------------------------------------- */

static bool is_op(const struct event *e)
{
	return e->kind <= COLLECTIVE;
}

static int end_of(const struct event *e)
{
	return e->begin + e->took;
}

/* Was a over when b began? Clocks of streams agree within a microsecond. */
static bool over(const struct event *a, const struct event *b)
{
	return end_of(a) <= b->begin + 1;
}

/* What a thread launched last before a call. */
static int launched_last(const struct drawn *d, int thread, int before)
{
	for (int i = before - 1; i >= 0; i--)
		if (is_op(&d->of[i]) && d->of[i].thread == thread)
			return i;
	return -1;
}

/* The last of a stream, launched not after `from`, that was over. */
static int last_over(const struct drawn *d, int stream, int from, int op)
{
	for (int i = from; i >= 0; i--)
		if (is_op(&d->of[i]) && d->of[i].stream == stream &&
		    over(&d->of[i], &d->of[op]))
			return i;
	return -1;
}

/* Of the last of each other stream that were over the one that ended last, just before. */
static int by_time(const struct drawn *d, int op)
{
	int best = -1;

	for (int s = 0; s < STREAMS; s++) {
		int x = s == d->of[op].stream ? -1 : last_over(d, s, op - 1, op);

		if (x >= 0 && (best < 0 || end_of(&d->of[x]) > end_of(&d->of[best])))
			best = x;
	}
	return best >= 0 && d->of[op].begin - end_of(&d->of[best]) <= 8 ? best : -1;
}

/* The collective that began last, of those launched last on another stream. */
static int last_collective(const struct drawn *d, int op)
{
	int best = -1;

	for (int s = 0; s < STREAMS; s++)
		for (int i = op - 1; i >= 0 && s != d->of[op].stream; i--)
			if (is_op(&d->of[i]) && d->of[i].stream == s) {
				if (d->of[i].kind == COLLECTIVE &&
				    (best < 0 || d->of[i].begin > d->of[best].begin))
					best = i;
				break;
			}
	return best;
}

static int by_order(const struct drawn *d, int op)
{
	int from = -1;

	for (int i = op - 1; i >= 0 && from < 0; i--)
		if (d->of[i].kind == RECORD && d->of[i].thread == d->of[op].thread) {
			from = launched_last(d, d->of[i].thread, i);
			break;
		}
	if (from < 0 || d->of[from].stream == d->of[op].stream)
		from = last_collective(d, op);
	return from < 0 ? -1 : last_over(d, d->of[from].stream, from, op);
}

static int resolve(struct drawn *d, int wait, int op)
{
	const struct event *e = &d->of[wait];
	int found = e->told < 0 ? -1 : launched_last(d, d->of[e->told].thread, e->told);

	if (found >= 0 && over(&d->of[found], &d->of[op])) {
		d->told++;
		return found;
	}
	found = by_time(d, op);
	if (found >= 0) {
		d->by_time++;
		return found;
	}
	found = by_order(d, op);
	if (found >= 0)
		d->by_order++;
	else
		d->unresolved++;
	return found;
}

/* Waits count for the thread's next launch, of several the operation that ends last. */
static void look_for_all(struct drawn *d)
{
	for (int op = 0; op < EVENTS; op++) {
		int last = launched_last(d, d->of[op].thread, op), n = 0;

		d->found[op] = -1;
		for (int i = last + 1; is_op(&d->of[op]) && i < op; i++) {
			int x;

			if (d->of[i].kind != WAIT ||
			    d->of[i].thread != d->of[op].thread)
				continue;
			if (n++ == PENDING) {
				d->unresolved++;
				n--;
				continue;
			}
			x = resolve(d, i, op);
			if (x >= 0 &&
			    (d->found[op] < 0 ||
			     end_of(&d->of[x]) > end_of(&d->of[d->found[op]])))
				d->found[op] = x;
		}
	}
}

/* ---- against the replay --------------------------------------------------------------------- */

static size_t op_of_call(const struct ft_recording *r, int correlation)
{
	for (size_t i = 0; i < ft_recording_ops(r); i++)
		if (ft_recording_op(r, i)->correlation == correlation)
			return i;
	fail_msg("no operation %d", correlation);
	return 0;
}

/* Of two that end at the same moment either may be the one. */
static bool ends_alone(const struct drawn *d, int op)
{
	for (int i = 0; i < EVENTS; i++)
		if (i != op && is_op(&d->of[i]) &&
		    end_of(&d->of[i]) == end_of(&d->of[op]))
			return false;
	return true;
}

/* What is waited for takes a second longer: nothing that waits begins before it is over. */
static void is_waited_for(const struct ft_replay *p, int op, int found)
{
	const ft_ps second = INT64_C(1000000000000);
	const struct ft_recording *r = ft_replay_recording(p, 0);
	size_t i = op_of_call(r, op), x = op_of_call(r, found);
	struct arena mem = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &mem);
	struct ft_replayed t;

	times.op[0][x] += second;
	t = ft_replay_run(p, &times, &mem);
	if (t.op_begin[0][i] < second)
		fail_msg("operation %d does not wait for %d", op, found);
	arena_release(&mem);
}

static void waits_are_found_by_the_rules(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		const struct ft_replay_counts *c;
		struct ft_recording *r;
		struct ft_replay *p;
		struct ft_error err;
		struct drawn d;

		draw(&d);
		look_for_all(&d);
		r = recorded(&d);
		p = ft_replay_build(one(r), 1, &err);
		ok_or_say(p, err);
		is_as_recorded(p);
		c = ft_replay_counts(p);
		assert_int_equal(c->waits_told, d.told);
		assert_int_equal(c->waits_by_time, d.by_time);
		assert_int_equal(c->waits_by_order, d.by_order);
		assert_int_equal(c->waits_unresolved, d.unresolved);
		for (int op = 0; op < EVENTS; op++)
			if (is_op(&d.of[op]) && d.found[op] >= 0 &&
			    ends_alone(&d, d.found[op]))
				is_waited_for(p, op, d.found[op]);
		ft_replay_free(p);
		ft_recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_found_by_the_rules),
	};
	int status = cmocka_run_group_tests_name("waits", tests, NULL, NULL);

	unlink(made_path());
	return status;
}
