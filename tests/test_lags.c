/*
 * tests/test_lags.c - how long an operation takes to begin, once it may: the median behind its
 * stream's last, of those that were launched before that began; a tenth of the launches into an
 * idle stream took less than is taken for one
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/made_recording.h"

#include "base/stats.h"

enum { QUEUED = 9, LATE = 12, IDLE = 21, ROUNDS = 40 };

static uint64_t seed = 7;

/* Tenths of a microsecond. */
static double between(int low, int high)
{
	return (low + (int)(rnd(&seed) % (uint64_t)(high - low))) / 10.;
}

/* A stream as it is written: kernels of 100 us, numbered from 0. */
struct stream {
	struct made m;
	int n;
	double end; /* of the last */
};

static void op(struct stream *s, double called, double call_took, double at)
{
	char name[16];

	snprintf(name, sizeof(name), "k%d", s->n);
	call(&s->m, "cudaLaunchKernel", s->n, called, call_took);
	kernel(&s->m, name, s->n, 7, at, 100);
	s->end = at + 100;
	s->n++;
}

/* Many are launched at once, then some while the one before runs, then each by itself. The last
 * two: one launched into the idle stream, and one that was waiting behind it. */
static void write_stream(struct stream *s, double *behind, double *launch)
{
	*s = (struct stream){ .m = begin(0) };
	op(s, 0, 1, 40);
	for (int i = 0; i < QUEUED; i++) {
		behind[i] = between(5, 30);
		op(s, 2 + 2 * i, 1, s->end + behind[i]);
	}
	for (int i = 0; i < LATE; i++) /* begun before, over behind its beginning */
		op(s, s->end - 99, 45, s->end + between(60, 80));
	for (int i = 0; i < IDLE; i++) {
		double called = s->end + 30;

		launch[i] = between(40, 90);
		op(s, called, 2, called + launch[i]);
	}
	op(s, s->end - 150 + 120, 1, s->end + 1);
	stats_sort(behind, QUEUED);
	stats_sort(launch, IDLE);
}

/* With the n-th kernel as long as that, when the next begins. */
static double next_begins_us(const struct ft_replay *p, int n, double us, bool end)
{
	struct arena mem = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &mem);
	struct ft_replayed t;
	double at;

	times.op[0][n] = (ft_ps)(us * 1e6);
	t = ft_replay_run(p, &times, &mem);
	at = (double)(t.op_begin[0][n + 1] -
		      (end ? t.op_end[0][n] : t.call_begin[0][n + 1])) *
	     1e-6;
	arena_release(&mem);
	return at;
}

static void least_lags_are_those_of_what_waited_for_nothing_else(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		double behind[QUEUED], launch[IDLE], got;
		int idle = 1 + QUEUED + LATE; /* the first that was launched alone */
		struct stream s;
		struct ft_recording *r;
		struct ft_replay *p;
		struct ft_error err;

		write_stream(&s, behind, launch);
		r = end(&s.m);
		p = ft_replay_build(one(r), 1, &err);
		ok_or_say(p, err);
		is_as_recorded(p);
		/* the kernel before takes so long that the next waits for it alone */
		got = next_begins_us(p, idle + 1, 400, true);
		assert_true(fabs(got - behind[QUEUED * 5 / 10]) < 1e-3);
		/* or takes no time, so that its own launch is what it waits for */
		got = next_begins_us(p, s.n - 2, 1, false);
		assert_true(fabs(got - launch[IDLE / 10]) < 1e-3);
		ft_replay_free(p);
		ft_recording_free(r);
	}
	unlink(made_path());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_lags_are_those_of_what_waited_for_nothing_else),
	};

	return cmocka_run_group_tests_name("recorded/depend", tests, NULL, NULL);
}
