/*
 * tests/test_tally.c - what drawn checks add up to: each error, each summary and its list, counted in the
 * obvious way (study/tally.h)
 */
#include <math.h>

#include "base/stats.h"
#include "study/tally.h"
#include "tests/check.h"

enum { DRAWS = 400, MOST = 40, NAMES = 4 };

static uint64_t seed = 21;

static const char *const names[NAMES] = { "a", "b", "a b", "step_frac" };

static double about_one(void)
{
	return exp(8 * (rnd(&seed) / 2147483648.0 - 0.5));
}

static struct ft_check drawn(void)
{
	double predicted = about_one();
	struct ft_check c = { .id = names[rnd_below(&seed, NAMES)],
			      .group = names[rnd_below(&seed, NAMES)],
			      .key = names[rnd_below(&seed, NAMES)],
			      .measured = about_one(),
			      .predicted = predicted,
			      .is_rate = rnd_below(&seed, 2) };

	if (rnd_below(&seed, 5) == 0)
		c.measured = predicted;
	c.low = predicted * (rnd_below(&seed, 4) ? 0.3 : 1);
	c.high = predicted * (rnd_below(&seed, 4) ? 3 : 1);
	return c;
}

/* How much longer it is predicted to take than it took. */
static double error_of(const struct ft_check *c)
{
	return c->is_rate ? (c->measured - c->predicted) / c->predicted :
			    (c->predicted - c->measured) / c->measured;
}

static bool inside(const struct ft_check *c)
{
	return !(c->measured < c->low) && !(c->measured > c->high);
}

/* Slower than the range: of a rate, below it. */
static bool slow(const struct ft_check *c)
{
	return !inside(c) && (c->measured < c->low) == c->is_rate;
}

/* The least of n in order that nine of ten are not above. */
static double nine_of_ten(const double *of, size_t n)
{
	size_t i = 0;

	while (10 * (i + 1) < 9 * n)
		i++;
	return of[i];
}

/* Those of a name, by group or by key; NULL: all. */
static void is_summary_of(const struct ft_summary *s, const struct ft_check *c,
			  size_t n, const char *name, bool by_key)
{
	double size[MOST], sum = 0, sizes = 0;
	size_t here = 0, in = 0, behind = 0, before = 0;

	for (size_t i = 0; i < n; i++) {
		if (name && strcmp(name, by_key ? c[i].key : c[i].group) != 0)
			continue;
		size[here++] = fabs(error_of(&c[i]));
		sum += error_of(&c[i]);
		sizes += fabs(error_of(&c[i]));
		in += inside(&c[i]);
		behind += slow(&c[i]);
		before += !inside(&c[i]) && !slow(&c[i]);
	}
	assert_int_equal(s->n, here);
	if (!here)
		return;
	stats_sort(size, here);
	near_frac(s->mape, sizes / (double)here, 1e-12);
	near_frac(100 + s->bias, 100 + sum / (double)here, 1e-12);
	near_frac(s->median, (size[(here - 1) / 2] + size[here / 2]) / 2, 1e-12);
	near_frac(s->p90, nine_of_ten(size, here), 1e-12);
	near_frac(s->max, size[here - 1], 1e-12);
	near_frac(s->inside_interval_frac, (double)in / (double)here, 1e-12);
	near_frac(s->slow_frac, (double)behind / (double)here, 1e-12);
	near_frac(1 + s->fast_frac, 1 + (double)before / (double)here, 1e-12);
}

/* One for each name, in the order in which names come. */
static void are_summaries_of(const struct ft_summary *s, size_t n_s,
			     const struct ft_check *c, size_t n, bool by_key)
{
	size_t met = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = by_key ? c[i].key : c[i].group;
		bool known = false;

		for (size_t k = 0; k < i; k++)
			known = known || !strcmp(name, by_key ? c[k].key : c[k].group);
		if (known)
			continue;
		assert_true(met < n_s);
		assert_string_equal(s[met].name, name);
		is_summary_of(&s[met++], c, n, name, by_key);
	}
	assert_int_equal(met, n_s);
}

static void figures_are_those_of_the_checks(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		struct ft_validation v = { .n_checks = 0 };
		struct tally t = { .mem = &mem, .v = &v };
		struct ft_check scored[MOST], side[MOST];
		size_t n = 0, m = 0, all = (size_t)rnd_below(&seed, MOST);

		for (size_t k = 0; k < all; k++) {
			struct ft_check c = drawn();
			bool counts = rnd_below(&seed, 3) > 0;

			*(counts ? &scored[n++] : &side[m++]) = c;
			tally_check(&t, &c, counts);
		}
		tally_finish(&t);
		assert_int_equal(v.n_checks, n);
		assert_int_equal(v.n_others, m);
		for (size_t k = 0; k < all; k++) {
			const struct ft_check *c =
				k < n ? &v.check[k] : &v.other[k - n];
			const struct ft_check *was = k < n ? &scored[k] : &side[k - n];

			near_frac(100 + c->error_frac, 100 + error_of(was), 1e-12);
			assert_int_equal(c->inside, inside(was));
			assert_int_equal(c->slow, slow(was));
			assert_string_equal(c->id, was->id);
		}
		is_summary_of(&v.summary, scored, n, NULL, false);
		assert_string_equal(v.by, "group");
		are_summaries_of(v.group, v.n_groups, scored, n, false);
		are_summaries_of(v.by_key, v.n_keys, side, m, true);
		arena_release(&mem);
	}
}

/* More than 20 times as much, or as little, is another unit; not of a share, nor beside nothing. */
static void other_units_are_doubted(void **state)
{
	int doubted = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_check c = drawn();
		double far = c.measured > c.predicted ? c.measured / c.predicted :
							c.predicted / c.measured;
		bool share = !strcmp(c.key, "step_frac");

		assert_int_equal(ft_check_doubtful(&c), !share && far > 20);
		doubted += ft_check_doubtful(&c);
		c.predicted = 0;
		assert_false(ft_check_doubtful(&c));
	}
	assert_true(doubted > DRAWS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_those_of_the_checks),
		cmocka_unit_test(other_units_are_doubted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
