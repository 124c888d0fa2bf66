/* tests/test_share.c - max-min shares: small systems, invariants, and updates
 * against solving from scratch, which is against an obvious solver */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "sim/share.h"

static void small_systems_have_their_known_shares(void **state)
{
	/* A 1 {f1 f2}, B 0.4 {f1 f3}: f1 = 0.2, f2 = 0.8, f3 = 0.2 */
	const double caps[] = { 1, 0.4 };
	const uint32_t ab[] = { 0, 1 }, a[] = { 0 }, b[] = { 1 };
	struct arena mem = { 0 };
	struct share s;

	(void)state;
	share_init(&s, &mem, caps, 2);
	share_add(&s, ab, NULL, 2);
	share_add(&s, a, NULL, 1);
	share_add(&s, b, NULL, 1);
	share_solve(&s);
	near_frac(s.flow[0].rate, 0.2, 1e-12);
	near_frac(s.flow[1].rate, 0.8, 1e-12);
	near_frac(s.flow[2].rate, 0.2, 1e-12);
	arena_release(&mem);
}

/* Classes of one, two and three flows on a link; then another in place of the first. */
static void classes_share_a_link_by_their_size(void **state)
{
	const uint32_t ab[] = { 0, 1 };
	struct arena mem = { 0 };
	struct share s;

	(void)state;
	share_init(&s, &mem, (const double[]){ 1.2, 0.1 }, 2);
	for (int i = 1; i <= 3; i++)
		share_add(&s, ab, (const float[]){ (float)i }, 1);
	share_solve(&s);
	for (int i = 0; i < 3; i++)
		near_frac(s.flow[i].rate, 1.2 / 6, 1e-12);
	share_drop(&s, 0);
	share_update(&s, 0);
	near_frac(s.flow[1].rate, 1.2 / 5, 1e-12);
	/* held back by a link of its own: the rest goes to the others */
	assert_int_equal(share_add(&s, ab, NULL, 2), 0); /* the number is free */
	share_update(&s, 0);
	near_frac(s.flow[0].rate, 0.1, 1e-12);
	near_frac(s.flow[2].rate, 1.1 / 5, 1e-12);
	arena_release(&mem);
}

/* 2.5 for three, of which one gets 0.2 elsewhere: what is left is more than two can use. */
static void no_flow_has_more_than_alone(void **state)
{
	const uint32_t ab[] = { 0, 1 };
	struct arena mem = { 0 };
	struct share s;

	(void)state;
	share_init(&s, &mem, (const double[]){ 2.5, 0.2 }, 2);
	share_add(&s, ab, NULL, 2);
	share_add(&s, ab, NULL, 1);
	share_add(&s, ab, NULL, 1);
	share_add(&s, ab, NULL, 0); /* on no link */
	share_solve(&s);
	near_frac(s.flow[0].rate, 0.2, 1e-12);
	for (int i = 1; i < 4; i++)
		assert_true(s.flow[i].rate == 1);
	share_drop(&s, 2);
	share_update(&s, 2);
	assert_true(s.flow[1].rate == 1 && s.flow[2].rate == 0);
	arena_release(&mem);
}

/* The obvious solver: raise everyone by a tiny common step of the level to the
 * next thing that stops someone, found by looking at everything. */
static void obvious(const struct share *s, double *rate)
{
	bool *fixed = calloc(s->n_flows + 1, sizeof(bool));
	double level = 0;

	for (size_t f = 0; f < s->n_flows; f++) {
		rate[f] = 0;
		fixed[f] = !s->flow[f].active;
	}
	for (;;) {
		double step = INFINITY;

		for (size_t l = 0; l < s->n_links; l++) {
			double room = s->link[l].capacity, uses = 0;

			for (size_t f = 0; f < s->n_flows; f++)
				for (int h = 0; h < s->flow[f].hops; h++)
					if (s->flow[f].link[h] == l &&
					    s->flow[f].active) {
						double use = (double)s->flow[f].use[h];

						room -= rate[f] * use;
						uses += fixed[f] ? 0 : use;
					}
			if (uses > 0 && room / uses < step)
				step = room > 0 ? room / uses : 0;
		}
		for (size_t f = 0; f < s->n_flows; f++)
			if (!fixed[f] && 1 - level < step)
				step = 1 - level;
		if (isinf(step))
			break;
		level += step;
		for (size_t f = 0; f < s->n_flows; f++)
			if (!fixed[f])
				rate[f] = level;
		for (size_t f = 0; f < s->n_flows; f++) {
			bool stop = !fixed[f] && rate[f] >= 1 - 1e-12;

			for (int h = 0; h < s->flow[f].hops && !fixed[f]; h++) {
				double load = 0;

				for (size_t g = 0; g < s->n_flows; g++)
					for (int k = 0; k < s->flow[g].hops; k++)
						if (s->flow[g].link[k] ==
							    s->flow[f].link[h] &&
						    s->flow[g].active)
							load += rate[g] *
								(double)s->flow[g]
									.use[k];
				stop |= load >= s->link[s->flow[f].link[h]].capacity *
							(1 - 1e-9);
			}
			if (stop)
				fixed[f] = true;
		}
	}
	free(fixed);
}

static uint32_t random_flow(struct share *s, uint64_t *seed, size_t links)
{
	uint32_t link[4];
	float use[4];
	size_t hops = 1 + rnd(seed) % 4;

	for (size_t i = 0; i < hops; i++) {
		size_t j = 0;

		use[i] = (float)(1 + rnd(seed) % 8) / 4;
		link[i] = rnd(seed) % (uint32_t)links;
		while (j < i)
			if (link[j++] == link[i]) {
				link[i] = rnd(seed) % (uint32_t)links;
				j = 0;
			}
	}
	return share_add(s, link, use, hops);
}

static void invariants(const struct share *s)
{
	for (size_t l = 0; l < s->n_links; l++)
		assert_true(s->link[l].load <= s->link[l].capacity * (1 + 1e-9));
	for (size_t f = 0; f < s->n_flows; f++) {
		const struct share_flow *x = &s->flow[f];
		bool held = !x->active || x->rate >= 1 - 1e-9;

		/* it has all that it can use, or is on a full link on which none
		 * has more */
		for (int h = 0; h < x->hops && !held; h++) {
			const struct share_link *l = &s->link[x->link[h]];
			bool most = l->load >= l->capacity * (1 - 1e-7);

			for (uint32_t k = 0; k < l->n; k++)
				most &= s->flow[l->on[k] / SHARE_HOPS].rate <=
					x->rate * (1 + 1e-7);
			held = most;
		}
		assert_true(held);
	}
}

static void scratch_agrees_with_the_obvious_solver(void **state)
{
	uint64_t seed = 11;
	int free_flows = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct arena mem = { 0 };
		double caps[12], rate[64];
		struct share s;
		size_t links = 2 + rnd(&seed) % 10;

		if (links < 5)
			links = 5;
		for (size_t i = 0; i < links; i++)
			caps[i] = (1 + rnd(&seed) % 100) / 5.;
		share_init(&s, &mem, caps, links);
		for (int i = 0; i < 40; i++)
			random_flow(&s, &seed, links);
		share_solve(&s);
		invariants(&s);
		obvious(&s, rate);
		for (size_t f = 0; f < s.n_flows; f++) {
			near_frac(s.flow[f].rate, rate[f], 1e-6);
			free_flows += s.flow[f].rate == 1;
		}
		arena_release(&mem);
	}
	assert_in_range(free_flows, 240, 1200); /* of 2,400: some, and not most */
}

static void updates_agree_with_scratch(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct arena mem = { 0 };
		double caps[40], *rate = calloc(4096, sizeof(double));
		struct share s;

		for (int i = 0; i < 40; i++)
			caps[i] = (1 + rnd(&seed) % 100) / 10.;
		share_init(&s, &mem, caps, 40);
		for (int i = 0; i < 60; i++)
			random_flow(&s, &seed, 40);
		share_solve(&s);
		for (int change = 0; change < 100; change++) {
			uint32_t f = rnd(&seed) % (uint32_t)s.n_flows;

			if (s.flow[f].active && change % 2)
				share_drop(&s, f);
			else
				f = random_flow(&s, &seed, 40);
			share_update(&s, f);
			invariants(&s);
			for (size_t i = 0; i < s.n_flows; i++)
				rate[i] = s.flow[i].rate;
			share_solve(&s);
			for (size_t i = 0; i < s.n_flows; i++)
				near_frac(rate[i], s.flow[i].rate, 1e-6);
		}
		free(rate);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_systems_have_their_known_shares),
		cmocka_unit_test(classes_share_a_link_by_their_size),
		cmocka_unit_test(no_flow_has_more_than_alone),
		cmocka_unit_test(scratch_agrees_with_the_obvious_solver),
		cmocka_unit_test(updates_agree_with_scratch),
	};

	return cmocka_run_group_tests_name("sim/share", tests, NULL, NULL);
}
