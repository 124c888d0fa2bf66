/*
 * tests/test_grid.c - the combinations of a sweep, counted in the obvious way
 *
 * An odometer whose first wheel turns fastest shows all of them; a shard has every n-th.
 */
#include "study/sweep_grid.h"
#include "tests/check.h"

enum { WHEELS = 4, VALUES = 5, SETS = 3 };

static const char *const words[] = { "1", "null", "[a, b]", "{x: 1, y: [2, 3]}",
				     "h100-sxm" };

/* A sweep that is drawn, and the wheels of its odometer. */
struct drawn {
	struct ft_sweep sweep;
	const char *set[SETS], *vary[WHEELS];
	int wheel[WHEELS][VALUES]; /* words */
	int n[WHEELS];
};

static void draw_wheel(struct drawn *d, struct arena *mem, uint64_t *seed, size_t w)
{
	const char *text = arena_printf(mem, "vary.k%zu=", w);
	int first = rnd_below(seed, VALUES);

	d->n[w] = 1 + rnd_below(seed, VALUES);
	for (int i = 0; i < d->n[w]; i++) {
		d->wheel[w][i] = (first + i) % VALUES;
		text = arena_printf(mem, "%s%s%s", text,
				    !i		  ? "" :
				    rnd(seed) % 2 ? "," :
						    ", ",
				    words[d->wheel[w][i]]);
	}
	d->vary[w] = text;
}

static void draw_sweep(struct drawn *d, struct arena *mem, uint64_t *seed)
{
	*d = (struct drawn){ .sweep = { .sets = d->set, .vary = d->vary } };
	d->sweep.n_sets = (size_t)rnd_below(seed, SETS + 1);
	d->sweep.n_vary = (size_t)rnd_below(seed, WHEELS + 1);
	for (size_t i = 0; i < d->sweep.n_sets; i++)
		d->set[i] = arena_printf(mem, "set.k%zu=%d", i % 2, rnd_below(seed, 9));
	for (size_t w = 0; w < d->sweep.n_vary; w++)
		draw_wheel(d, mem, seed, w);
	d->sweep.shards = rnd_below(seed, 8);
	d->sweep.shard = d->sweep.shards ? 1 + rnd_below(seed, d->sweep.shards) : 0;
}

static void assert_shown(const struct drawn *d, const struct grid *g, struct arena *mem,
			 size_t i, const int at[WHEELS])
{
	const char *sets[GRID_SETS + GRID_VARY], *text = "";
	const char *told = grid_settings(g, mem, i, sets);

	for (size_t k = 0; k < d->sweep.n_sets; k++) {
		assert_string_equal(sets[k], d->set[k]);
		text = arena_printf(mem, "%s%s ", text, d->set[k]);
	}
	for (size_t w = 0; w < d->sweep.n_vary; w++) {
		const char *set =
			arena_printf(mem, "vary.k%zu=%s", w, words[d->wheel[w][at[w]]]);

		assert_string_equal(sets[d->sweep.n_sets + w], set);
		text = arena_printf(mem, "%s%s%s", text, w ? " " : "", set);
	}
	assert_string_equal(told, text);
}

/* To the next combination; false: that was the last. */
static bool turn(const struct drawn *d, int at[WHEELS])
{
	for (size_t w = 0; w < d->sweep.n_vary; w++) {
		at[w] = (at[w] + 1) % d->n[w];
		if (at[w])
			return true;
	}
	return false;
}

static void a_shard_has_every_nth_of_an_odometer(void **state)
{
	uint64_t seed = 20261128;

	(void)state;
	for (int draws = 0; draws < 300; draws++) {
		int at[WHEELS] = { 0 }, shown = 0;
		struct arena mem = { 0 };
		struct ft_error err;
		struct drawn d;
		struct grid g;
		size_t n = 0;

		draw_sweep(&d, &mem, &seed);
		ok_or_say(grid_open(&g, &d.sweep, &err), err);
		do
			if (!d.sweep.shards ||
			    shown % d.sweep.shards == d.sweep.shard - 1)
				assert_shown(&d, &g, &mem, n++, at);
		while (shown++, turn(&d, at));
		assert_int_equal(g.total, n);
		grid_release(&g);
		arena_release(&mem);
	}
}

static void each_key_has_one_column(void **state)
{
	static const char *const sets[] = { "b=1", "a.x=2", "b=3" },
				 *const vary[] = { "c=1,2", "a.y=1" },
				 *const keys[] = { "b", "a.x", "c", "a.y" };
	const struct ft_sweep s = {
		.sets = sets, .n_sets = 3, .vary = vary, .n_vary = 2
	};
	struct ft_error err;
	struct grid g;

	(void)state;
	ok_or_say(grid_open(&g, &s, &err), err);
	assert_int_equal(g.n_keys, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(g.key[i], keys[i]);
	grid_release(&g);
}

/* NULL: it is taken. */
static const char *refused(const struct ft_sweep *s, struct ft_error *err)
{
	struct grid g;
	bool ok = grid_open(&g, s, err);

	grid_release(&g);
	return ok ? NULL : err->text;
}

static void assert_refused(const char *set, const char *first, const char *second,
			   const char *why)
{
	const char *const vary[] = { first, second };
	const struct ft_sweep s = { .sets = &set,
				    .n_sets = set != NULL,
				    .vary = vary,
				    .n_vary = second ? 2 : 1 };
	struct ft_error err;
	const char *said = refused(&s, &err);

	if (!why && said)
		print_error("%s\n", said);
	assert_int_equal(!said, !why);
	assert_true(!why || strstr(said, why));
}

static void what_makes_no_difference_is_refused(void **state)
{
	(void)state;
	assert_refused(NULL, "a=1", "a=2", "--vary a replaces what --vary a says");
	assert_refused(NULL, "a.b=1", "a={b: 1}", "--vary a replaces what --vary a.b");
	assert_refused(NULL, "a={b: 1}", "a.b=1", NULL);
	assert_refused(NULL, "ab=1", "a=1", NULL);
	assert_refused("a.b=1", "a=1", NULL, "--vary a replaces what --set a.b says");
	assert_refused("a=1", "a.b=1", NULL, NULL);
	assert_refused(NULL, "a=1,2,1", NULL, "a=1 is given twice");
	assert_refused(NULL, "a=1,,2", NULL, "an empty value");
	assert_refused(NULL, "a=1,2,", NULL, "an empty value");
	assert_refused(NULL, "a=", NULL, "write --vary KEY=A,B,C, not 'a='");
	assert_refused(NULL, "=1", NULL, "write --vary KEY=A,B,C, not '=1'");
	assert_refused(NULL, "a", NULL, "write --vary KEY=A,B,C, not 'a'");
	assert_refused(NULL, "run.tokens=1T", NULL, "changes no column");
	assert_refused("run=1", "a=1", NULL, "changes no column");
	assert_refused(NULL, "runs=1", NULL, NULL);
	assert_refused(NULL, "cost.against=2 USD/h,3 USD/h", NULL,
		       "changes no column of a sweep; use simulate --finance");
	assert_refused("cost.start=2027-01", "a=1", NULL,
		       "changes no column of a sweep; use simulate --flows");
	assert_refused(NULL, "cost.starts=1", NULL, NULL);
	assert_refused(NULL, "title=x,y", NULL, "--vary title would give one row");
	assert_refused(NULL, "name=x,y", NULL, "--vary name would give one row");
	assert_refused("title=x", "a=1", NULL, NULL);
}

/* "KEY=0,1,...": n values */
static const char *counted(struct arena *mem, int key, int n)
{
	const char *text = arena_printf(mem, "k%d=0", key);

	for (int i = 1; i < n; i++)
		text = arena_printf(mem, "%s,%d", text, i);
	return text;
}

static void sweeps_end_where_their_limits_say(void **state)
{
	struct arena mem = { 0 };
	const char *vary[GRID_VARY + 1], *sets[GRID_SETS + 1];
	struct ft_sweep s = { .vary = vary, .sets = sets };
	struct ft_error err;

	(void)state;
	for (int i = 0; i <= GRID_VARY; i++)
		vary[i] = counted(&mem, i, 1);
	for (int i = 0; i <= GRID_SETS; i++)
		sets[i] = "set=1";
	s.n_vary = GRID_VARY;
	s.n_sets = GRID_SETS;
	assert_null(refused(&s, &err));
	s.n_vary++;
	assert_non_null(strstr(refused(&s, &err), "at most 16 keys can vary"));
	s.n_vary = 0;
	s.n_sets++;
	assert_non_null(strstr(refused(&s, &err), "and 256 be set"));
	s.n_sets = 0;
	s.n_vary = 1;
	vary[0] = counted(&mem, 0, GRID_VALUES);
	assert_null(refused(&s, &err));
	vary[0] = counted(&mem, 0, GRID_VALUES + 1);
	assert_non_null(strstr(refused(&s, &err), "more than 256 values of k0"));
	s.n_vary = 3;
	vary[0] = counted(&mem, 0, 250);
	vary[1] = counted(&mem, 1, 200);
	vary[2] = counted(&mem, 2, 200);
	assert_null(refused(&s, &err)); /* ten million */
	vary[2] = counted(&mem, 2, 201);
	assert_non_null(
		strstr(refused(&s, &err), "10050000 combinations are too many"));
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shard_has_every_nth_of_an_odometer),
		cmocka_unit_test(each_key_has_one_column),
		cmocka_unit_test(what_makes_no_difference_is_refused),
		cmocka_unit_test(sweeps_end_where_their_limits_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
