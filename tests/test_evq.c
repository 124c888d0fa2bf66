/* tests/test_evq.c - the event queue against a linear scan */
#include "tests/check.h"

#include "base/arena.h"
#include "sim/evq.h"

enum { N = 100 };

struct thing {
	struct event event;
	ft_ps at;
	uint64_t seq;
	bool pending;
};

/* The slow, obvious queue: scan everything for the earliest. */
static struct thing *obvious(struct thing *t)
{
	struct thing *best = NULL;

	for (int i = 0; i < N; i++)
		if (t[i].pending && (!best || t[i].at < best->at ||
				     (t[i].at == best->at && t[i].seq < best->seq)))
			best = &t[i];
	return best;
}

static void agrees_with_the_obvious_queue(void **state)
{
	static struct thing t[N];
	struct arena mem = { 0 };
	uint64_t seed = 7, seq = 0;
	struct evq q;

	(void)state;
	evq_init(&q, &mem);
	for (int i = 0; i < 200000; i++) {
		struct thing *x = &t[rnd(&seed) % N], *want;

		switch (rnd(&seed) % 4) {
		case 0:
		case 1:
			x->at = q.now + rnd(&seed) % 20;
			x->seq = seq++;
			x->pending = true;
			evq_put(&q, &x->event, x->at);
			break;
		case 2:
			evq_drop(&q, &x->event);
			x->pending = false;
			break;
		default:
			want = obvious(t);
			assert_ptr_equal(evq_take(&q), want ? &want->event : NULL);
			if (want)
				want->pending = false;
		}
	}
	arena_release(&mem);
}

/* As if all had been put so much later. */
static void what_is_pending_moves_on_together(void **state)
{
	struct arena mem = { 0 };
	struct event ev[4] = { { 0 } };
	struct evq q;

	(void)state;
	evq_init(&q, &mem);
	for (int i = 0; i < 4; i++)
		evq_put(&q, &ev[i], 5 + 3 * (i / 2));
	assert_ptr_equal(evq_take(&q), &ev[0]);
	assert_true(evq_comes_before(&q, &ev[1], &ev[2]) &&
		    evq_comes_before(&q, &ev[2], &ev[3]) &&
		    !evq_comes_before(&q, &ev[3], &ev[2]));
	evq_later(&q, 100);
	assert_int_equal(q.now, 105);
	assert_int_equal(evq_due(&q, &ev[3]), 108);
	evq_put(&q, &ev[0], 108); /* the newest of its time */
	assert_ptr_equal(evq_take(&q), &ev[1]);
	assert_int_equal(q.now, 105);
	assert_ptr_equal(evq_take(&q), &ev[2]);
	assert_ptr_equal(evq_take(&q), &ev[3]);
	assert_ptr_equal(evq_take(&q), &ev[0]);
	assert_int_equal(q.now, 108);
	arena_release(&mem);
}

static void equal_times_keep_their_order(void **state)
{
	struct arena mem = { 0 };
	struct event ev[4] = { { 0 } };
	struct evq q;

	(void)state;
	evq_init(&q, &mem);
	for (int i = 0; i < 4; i++)
		evq_put(&q, &ev[i], 7);
	evq_put(&q, &ev[1], 7); /* moved: now the newest */
	evq_drop(&q, &ev[2]);
	assert_ptr_equal(evq_take(&q), &ev[0]);
	assert_ptr_equal(evq_take(&q), &ev[3]);
	assert_ptr_equal(evq_take(&q), &ev[1]);
	assert_null(evq_take(&q));
	assert_int_equal(q.now, 7);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_times_keep_their_order),
		cmocka_unit_test(what_is_pending_moves_on_together),
		cmocka_unit_test(agrees_with_the_obvious_queue),
	};

	return cmocka_run_group_tests_name("sim/evq", tests, NULL, NULL);
}
