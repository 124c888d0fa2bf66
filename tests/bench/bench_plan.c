/*
 * tests/bench/bench_plan.c - searches: plans a second, and exact simulations of the best of them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/clock.h"
#include "study/search.h"

static const struct {
	const char *name, *text;
} cases[] = {
	{ "GPT-3 175B, 4,096 H100",
	  "{model: gpt3-175b, cluster: {gpu: h100-sxm, gpus: 4096}, stack: nemo-24, "
	  "training: {sequence_length: 2048, global_batch_size: 1536}}" },
	{ "Llama 3 70B, 512 H200",
	  "{model: llama3-70b, cluster: {gpu: h200, gpus: 512}, stack: "
	  "megatron-bridge-26, training: {sequence_length: 8192, global_batch_size: "
	  "1024}}" },
};

/* The best plans of a search, each simulated whole once more as the search does it, without ranges of
 * dollars: s each. */
static double exact_s(const struct ft_plans *p)
{
	struct ft_error err;
	double t = clock_now_s();

	for (size_t i = 0; i < p->n; i++) {
		struct ft_scenario scenario = *p->best[i].scenario;
		struct ft_outcome o;

		scenario.point = true;
		if (!ft_study_simulate(&scenario, NULL, NULL, &o, &err)) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		ft_outcome_release(&o);
	}
	return (clock_now_s() - t) / (double)p->n;
}

int main(void)
{
	arena_keep_pages();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_search s = { .top = 1, .threads = 1 };
		struct node *root = node_read_text(&mem, "bench", cases[i].text,
						   strlen(cases[i].text), &err);
		double t = clock_now_s();
		struct ft_plans *p = root ? plans_of(root, "bench", &s, &err) : NULL;

		if (!p) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		t = clock_now_s() - t;
		printf("plan %-24s %6zu plans, %5zu bounded, %5zu fit, %4zu simulated: %6.1f s on one "
		       "core, %6.0f plans/s\n",
		       cases[i].name, p->considered, p->bounded, p->feasible,
		       p->simulated, t, (double)p->considered / t);
		ft_plans_free(p);
		s.top = 50;
		p = plans_of(root, "bench", &s, &err);
		if (!p || !p->n) {
			fprintf(stderr, "%s\n", p ? "nothing fits" : err.text);
			return 1;
		}
		t = exact_s(p);
		printf("plan %-24s the best %zu simulated whole: %.2f ms each, %.0f a second on one core\n",
		       cases[i].name, p->n, t * 1e3, 1 / t);
		ft_plans_free(p);
		arena_release(&mem);
	}
	return 0;
}
