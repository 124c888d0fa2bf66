/* tests/bench/bench_evq.c - events per second of the queue, hold model */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include <stdio.h>

#include "base/clock.h"
#include "sim/evq.h"

static uint64_t seed = 88172645463325252u;

static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

/* ties: increments from a handful of values, as synchronous ranks make them */
static void hold(size_t pending, bool ties)
{
	struct arena mem = { 0 };
	struct event *ev = ARENA_ARRAY(&mem, pending, struct event);
	const size_t rounds = 4000000;
	struct evq q;
	double t;

	evq_init(&q, &mem);
	for (size_t i = 0; i < pending; i++)
		evq_put(&q, &ev[i], ties ? rnd() % 4 : rnd() % 1000000);
	t = clock_now_s();
	for (size_t i = 0; i < rounds; i++) {
		struct event *e = evq_take(&q);

		evq_put(&q, e, q.now + (ties ? 1 + rnd() % 4 : rnd() % 1000000));
	}
	t = clock_now_s() - t;
	printf("evq %8zu pending, %-6s %6.1f M take+put/s\n", pending,
	       ties ? "ties" : "spread", (double)rounds / t * 1e-6);
	arena_release(&mem);
}

int main(void)
{
	for (size_t n = 100; n <= 1000000; n *= 10) {
		hold(n, false);
		hold(n, true);
	}
	return 0;
}
