/* tests/test_factors.c - what cost/factors.yaml may say: loadings are read as they stand, mistakes are told at their line */
#include "tests/check.h"

#include <sys/stat.h>

#include "base/arena.h"
#include "cost/factors.h"

static const char *const causes[CAUSES] = {
	"servers_nvidia", "servers_amd", "network_nvidia", "network",	  "optics",
	"storage",	  "management",	 "rent_nvidia",	   "rent_amd",	  "colocation",
	"electricity",	  "pue",	 "watts",	   "maintenance", "failures",
	"checkpoint",	  "restart",	 "recovery",	   "utilization", "throughput"
};

/* A file in which `which` has this map, each on a line of its own from the third on; NULL: it is left out. */
static const struct factors *load(struct arena *mem, const char *which, const char *map,
				  const char *idle, struct ft_error *err)
{
	char dir[] = "/tmp/ft-test-factors-XXXXXX", cost[64], path[80];
	const struct factors *f;
	FILE *out;

	assert_non_null(mkdtemp(dir));
	snprintf(cost, sizeof(cost), "%s/cost", dir);
	snprintf(path, sizeof(path), "%s/factors.yaml", cost);
	assert_int_equal(mkdir(cost, 0700), 0);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs("provenance: {kind: assumed, date: 2026-11-28}\nloadings:\n", out);
	for (int c = 0; c < CAUSES; c++)
		if (strcmp(causes[c], which) != 0)
			fprintf(out, "  %s: {common: 0.5}\n", causes[c]);
		else if (map)
			fprintf(out, "  %s: %s\n", causes[c], map);
	fprintf(out, "idle_hours: %s\n", idle);
	fclose(out);
	setenv("FORETOKEN_DATA", dir, 1);
	f = factors_load(mem, err);
	unsetenv("FORETOKEN_DATA");
	unlink(path);
	rmdir(cost);
	rmdir(dir);
	return f;
}

static const char idle[] = "{low: 0.5, high: 2}";

/* Factors are numbered as they are met; a cause without a map's key has none of it. */
static void loadings_are_read_as_they_stand(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	const struct factors *f =
		load(&mem, "optics", "{scarce: 0.6, common: 0.8}", idle, &err);

	(void)state;
	ok_or_say(f, err);
	assert_int_equal(f->n, 2);
	assert_string_equal(f->name[0], "common");
	assert_string_equal(f->name[1], "scarce");
	for (int c = 0; c < CAUSES; c++) {
		assert_true(f->loading[c][0] == (c == CAUSE_OPTICS ? 0.8 : 0.5));
		assert_true(f->loading[c][1] == (c == CAUSE_OPTICS ? 0.6 : 0));
	}
	assert_true(f->idle_low == 0.5 && f->idle_high == 2);
	arena_release(&mem);
}

/* Nothing in common, and as many factors as there is room for, one of which is `common`. */
static void a_cause_may_have_none_and_many(void **state)
{
	static const char eleven[] = "{a: 0.1, b: 0.1, c: 0.1, d: 0.1, e: 0.1, f: 0.1, "
				     "g: 0.1, h: 0.1, i: 0.1, j: 0.1, k: 0.1}";
	struct arena mem = { 0 };
	struct ft_error err;
	const struct factors *f = load(&mem, "pue", "{}", "{low: 1, high: 1}", &err);

	(void)state;
	ok_or_say(f, err);
	assert_int_equal(f->n, 1);
	assert_true(f->loading[CAUSE_PUE][0] == 0);
	f = load(&mem, "throughput", eleven, idle, &err);
	ok_or_say(f, err);
	assert_int_equal(f->n, FACTORS_MOST);
	assert_true(f->loading[CAUSE_THROUGHPUT][FACTORS_MOST - 1] == 0.1);
	arena_release(&mem);
}

static void mistakes_are_told_at_their_line(void **state)
{
	static const struct {
		const char *which, *map, *idle, *says;
		int line;
	} wrong[] = {
		{ "servers_amd", NULL, idle, "lacks the key 'servers_amd'", 3 },
		{ "servers_amd", "0.7", idle, "should be a map of keys and values", 4 },
		{ "servers_amd", "[0.7]", idle, "should be a map of keys and values",
		  4 },
		{ "servers_amd", "{a: much}", idle, "a: 'much' is not a number", 4 },
		{ "servers_amd", "{a: -0.1}", idle, "a: -0.1 is negative", 4 },
		{ "servers_amd", "{a: 0.7, b: 0.8}", idle,
		  "has loadings whose squares exceed 1", 4 },
		{ "throughput",
		  "{a: 0.1, b: 0.1, c: 0.1, d: 0.1, e: 0.1, f: 0.1, g: 0.1, h: 0.1, "
		  "i: 0.1, j: 0.1, k: 0.1, l: 0.1}",
		  idle, "l: is one factor too many", 22 },
		{ "", NULL, "{low: 0.5}", "needs a low above 0 and up to 1", 23 },
		{ "", NULL, "{high: 2}", "needs a low above 0 and up to 1", 23 },
		{ "", NULL, "{low: 1.1, high: 2}", "needs a low above 0 and up to 1",
		  23 },
		{ "", NULL, "{low: 0.5, high: 0.9}", "a high of 1 or more", 23 },
		{ "", NULL, "{low: 0.5, high: 2, middle: 1}", "unknown key 'middle'",
		  23 },
		{ "", NULL, "2", "should be a map of keys and values", 23 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };

		assert_null(
			load(&mem, wrong[i].which, wrong[i].map, wrong[i].idle, &err));
		if (!strstr(err.text, wrong[i].says) || err.line != wrong[i].line)
			fail_msg("%zu: line %d, '%s'; wanted line %d, '%s'", i,
				 err.line, err.text, wrong[i].line, wrong[i].says);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loadings_are_read_as_they_stand),
		cmocka_unit_test(a_cause_may_have_none_and_many),
		cmocka_unit_test(mistakes_are_told_at_their_line),
	};

	return cmocka_run_group_tests_name("factors", tests, NULL, NULL);
}
