/* tests/bench/bench_share.c - max-min on a rail-optimised fat tree */
#include <stdint.h>

#include "base/arena.h"
#include <stdio.h>

#include "base/clock.h"
#include "sim/share.h"

static uint64_t seed = 1;

static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

/* GPU up and down links, leaf up and down links of 32 uplinks; rail ring: to the
 * next node; shift: to the node half the cluster away, ECMP over the uplinks. */
static void rail(uint32_t gpus, bool shift)
{
	const uint32_t up = 32;
	uint32_t leaves = (gpus / 8 + 31) / 32 * 8, links = 2 * gpus + 2 * leaves * up;
	struct arena mem = { 0 };
	double *cap = ARENA_ARRAY(&mem, links, double), t, scratch, update;
	int reps = gpus > 65536 ? 3 : 20, events = 400;
	struct share s;

	for (uint32_t i = 0; i < links; i++)
		cap[i] = 1;
	share_init(&s, &mem, cap, links);
	for (uint32_t src = 0; src < gpus; src++) {
		uint32_t dst =
			shift ? (src + 8 * (gpus / 16)) % gpus : (src + 8) % gpus;
		uint32_t ls = src / 256 * 8 + src % 8, ld = dst / 256 * 8 + dst % 8;
		uint32_t link[4] = { src, gpus + dst }, n = 2, spine = rnd() % up;

		if (ls != ld) {
			link[n++] = 2 * gpus + ls * up + spine;
			link[n++] = 2 * gpus + (leaves + ld) * up + spine;
		}
		share_add(&s, link, NULL, n);
	}
	t = clock_now_s();
	for (int i = 0; i < reps; i++)
		share_solve(&s);
	scratch = (clock_now_s() - t) / reps;
	t = clock_now_s();
	for (int i = 0; i < events; i++) {
		uint32_t f = rnd() % gpus, link[4], n;

		if (!s.flow[f].active)
			continue;
		n = s.flow[f].hops;
		for (uint32_t k = 0; k < n; k++)
			link[k] = s.flow[f].link[k];
		share_drop(&s, f);
		share_update(&s, f);
		share_update(&s, share_add(&s, link, NULL, n));
	}
	update = (clock_now_s() - t) / (2 * events);
	printf("share %7u flows, %-10s scratch %8.3f ms (%5.1f M rates/s), "
	       "update %6.2f us\n",
	       gpus, shift ? "half shift" : "rail ring", scratch * 1e3,
	       gpus / scratch * 1e-6, update * 1e6);
	arena_release(&mem);
}

int main(void)
{
	for (uint32_t gpus = 1024; gpus <= 131072; gpus *= gpus == 1024 ? 16 : 8) {
		rail(gpus, false);
		rail(gpus, true);
	}
	return 0;
}
