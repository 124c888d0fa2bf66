/*
 * tests/test_deal.c - things of whole layers dealt to stages by their layers: all of them, and to
 * each its share, rounded; of those whose share is rounded most the first get one more
 */
#include "foretoken/models.h"
#include "tests/check.h"

enum { STAGES = 8, CHUNKS = 3, DRAWS = 5000 };

static uint64_t seed = 4;

static int64_t below(int64_t n)
{
	return (int64_t)(rnd(&seed) % (uint64_t)n);
}

/* How many stages come before this one: those that lack more, or as much and are earlier. */
static int64_t before(const int64_t *rest, int64_t n, int64_t s)
{
	int64_t count = 0;

	for (int64_t k = 0; k < n; k++)
		count += rest[k] > rest[s] || (rest[k] == rest[s] && k < s);
	return count;
}

static void shares_are_rounded_by_the_largest_rest(void **state)
{
	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		int64_t layers_of_place[STAGES * CHUNKS], of[STAGES * CHUNKS],
			own[STAGES * CHUNKS] = { 0 };
		int64_t rest[STAGES * CHUNKS], all = 0, whole = 0;
		struct ft_plan p = { .pp = 1 + below(STAGES),
				     .vpp = 1 + below(CHUNKS) };
		int64_t n;

		p.schedule = p.vpp == 2 && below(2) ? FT_ZBV :
			     p.vpp > 1		    ? FT_INTERLEAVED :
						      FT_1F1B;
		p.stage_layers = layers_of_place;
		for (int64_t i = 0; i < p.pp * p.vpp; i++)
			layers_of_place[i] = below(6);
		layers_of_place[below(p.pp * p.vpp)]++; /* one at least */
		for (int64_t s = 0; s < p.pp * p.vpp; s++)
			all += own[s] = layers_of_place[s];
		n = below(3 * all + 1);
		ft_plan_deal(&p, n, of);
		for (int64_t s = 0; s < p.pp * p.vpp; s++) {
			whole += own[s] * n / all;
			rest[s] = own[s] * n % all;
		}
		for (int64_t s = 0; s < p.pp * p.vpp; s++)
			assert_int_equal(of[s],
					 own[s] * n / all + (before(rest, p.pp * p.vpp,
								    s) < n - whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_rounded_by_the_largest_rest),
	};

	return cmocka_run_group_tests_name("models/stages", tests, NULL, NULL);
}
