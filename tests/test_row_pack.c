/*
 * tests/test_row_pack.c - rows as bytes: what is packed comes back, of bytes that end too early
 * nothing is taken, and no byte is left over
 */
#include <math.h>

#include "base/arena.h"
#include "study/row_pack.h"
#include "tests/check.h"

enum { VALUES = 5 };

static const char *drawn_text(uint64_t *seed, struct arena *mem)
{
	static const char *const text[] = { NULL, "", "a", "training.parallel.tp=2",
					    "ä\n\t\"" };
	size_t i = rnd(seed) % 6;

	if (i < 5)
		return text[i];
	return arena_printf(mem, "%0*d", (int)(rnd(seed) % 3000), 7);
}

/* Every number that the table has, each another one. */
static void draw_numbers(struct ft_outcome *o, uint64_t *seed)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		const size_t at[] = { f[i].value, f[i].low, f[i].high };

		for (int k = 0; k < (f[i].high ? 3 : 1); k++) {
			double v = rnd(seed) / 7. - 1e8;

			memcpy((char *)o + at[k], &v, sizeof(v));
		}
	}
	o->fits = rnd(seed) % 2;
}

static struct sweep_row draw(uint64_t *seed, struct arena *mem, bool failed, int values)
{
	struct sweep_row row = { .settings = "" };

	for (size_t i = 0; i < sizeof(row.key); i++)
		((char *)&row.key)[i] = (char)rnd(seed);
	row.label = drawn_text(seed, mem);
	row.settings = drawn_text(seed, mem);
	row.settings = row.settings ? row.settings : "s";
	row.error = failed ? "it cannot be" : NULL;
	row.value = ARENA_ARRAY(mem, (size_t)values + 1, const char *);
	for (int i = 0; i < values; i++)
		row.value[i] = drawn_text(seed, mem);
	if (!failed)
		draw_numbers(&row.outcome, seed);
	return row;
}

static void same_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void same_row(const struct sweep_row *a, const struct sweep_row *b, int values)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	assert_memory_equal(a->key, b->key, sizeof(a->key));
	same_text(a->label, b->label);
	same_text(a->settings, b->settings);
	same_text(a->error, b->error);
	for (int i = 0; i < values; i++)
		same_text(a->value[i], b->value[i]);
	if (a->error)
		return;
	assert_int_equal(a->outcome.fits, b->outcome.fits);
	for (size_t i = 0; i < n; i++) {
		const size_t at[] = { f[i].value, f[i].low, f[i].high };

		for (int k = 0; k < (f[i].high ? 3 : 1); k++)
			near_frac(ft_outcome_at(&a->outcome, at[k]),
				  ft_outcome_at(&b->outcome, at[k]), 0);
	}
}

/* Rows one behind the other, as ranks send them. */
static void rows_come_back(void **state)
{
	enum { ROWS = 7 };
	uint64_t seed = 11;

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct arena mem = { 0 };
		struct pack p = { 0 };
		struct sweep_row row[ROWS];
		struct unpack u;
		int values = round % (VALUES + 1);

		for (int i = 0; i < ROWS; i++) {
			row[i] = draw(&seed, &mem, i % 3 == 1, values);
			pack_row(&p, &row[i], (size_t)values);
		}
		u = (struct unpack){ p.bytes, p.n, false };
		for (int i = 0; i < ROWS; i++) {
			struct sweep_row is;

			memset(&is, 0x5a, sizeof(is));
			assert_true(unpack_row(&u, &mem, &is, (size_t)values));
			same_row(&row[i], &is, values);
			assert_true(!is.outcome.run && !is.outcome.bom &&
				    !is.outcome.memory_svg);
		}
		assert_int_equal(u.n, 0);
		assert_false(u.bad);
		pack_release(&p);
		assert_true(!p.bytes && !p.n && !p.cap);
		arena_release(&mem);
	}
}

static void what_ends_early_is_no_row(void **state)
{
	uint64_t seed = 12;

	(void)state;
	for (int failed = 0; failed < 2; failed++) {
		struct arena mem = { 0 };
		struct pack p = { 0 };
		struct sweep_row row = draw(&seed, &mem, failed, 2), is;

		row.label = "a label";
		pack_row(&p, &row, 2);
		for (size_t n = 0; n <= p.n; n++) {
			char *some = malloc(n + 1); /* so that beyond is no row's */
			struct unpack u = { some, n, false };

			memcpy(some, p.bytes, n);
			assert_int_equal(unpack_row(&u, &mem, &is, 2), n == p.n);
			assert_int_equal(u.bad, n < p.n);
			free(some);
		}
		pack_release(&p);
		arena_release(&mem);
	}
}

/* Once it ended too early all that follows is 0. */
static void behind_the_end_there_is_nothing(void **state)
{
	struct unpack u = { "abcdef", 6, false };
	char to[4];

	(void)state;
	unpack_bytes(&u, to, 4);
	assert_memory_equal(to, "abcd", 4);
	assert_int_equal(u.n, 2);
	unpack_bytes(&u, to, 3);
	assert_memory_equal(to, "\0\0\0d", 4);
	assert_true(u.bad);
	unpack_bytes(&u, to, 1);
	assert_memory_equal(to, "\0", 1);
	assert_true(u.bad);
}

/* A row is of a setting: one without is not a row, whole as its bytes may be. */
static void a_row_without_settings_is_none(void **state)
{
	uint64_t seed = 13;

	(void)state;
	for (int failed = 0; failed < 2; failed++) {
		struct arena mem = { 0 };
		struct pack p = { 0 };
		struct sweep_row row = draw(&seed, &mem, failed, 0), is;
		struct unpack u;

		row.settings = NULL;
		pack_row(&p, &row, 0);
		u = (struct unpack){ p.bytes, p.n, false };
		assert_false(unpack_row(&u, &mem, &is, 0));
		assert_false(u.bad);
		pack_release(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(what_ends_early_is_no_row),
		cmocka_unit_test(behind_the_end_there_is_nothing),
		cmocka_unit_test(a_row_without_settings_is_none),
	};

	return cmocka_run_group_tests_name("study/row_pack", tests, NULL, NULL);
}
