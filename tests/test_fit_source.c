/*
 * tests/test_fit_source.c - which GPU and which day a fitted profile says it is of: drawn runs of a store, ours and
 * others', with and without a device
 */
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 25, RUNS = 5, LINE = 512 };

static uint64_t seed = 31;

/* A run of one row; its row's own day, where it has one. */
struct run {
	bool published, of_source, named;
	const char *date, *own_date;
};

static const char *any_date(void)
{
	static const char *const dates[] = { "2025-12-31", "2026-01-02", "2026-03-04",
					     "2026-11-01" };

	return dates[rnd_below(&seed, 4)];
}

static struct run any_run(bool others)
{
	return (struct run){ .published = others || rnd_below(&seed, 4) == 0,
			     .of_source = rnd_below(&seed, 3) == 0,
			     .named = rnd_below(&seed, 2),
			     .date = any_date(),
			     .own_date = rnd_below(&seed, 2) ? any_date() : "" };
}

static bool is_own(const struct run *r)
{
	return !r->published && !r->of_source;
}

static const char *date_of(const struct run *r)
{
	return r->own_date[0] ? r->own_date : r->date;
}

static void import(struct ft_store *s, const char *folder, const struct run *r, int i)
{
	struct ft_probe_run run = { .backend = "csv",
				    .device = r->named ? "A GPU" : "",
				    .date = r->date,
				    .provenance =
					    r->published ? "published" : "measured" };
	char path[128];
	struct ft_error err;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d.csv", folder, i);
	f = fopen(path, "w");
	assert_non_null(f);
	/* in the order of the runs, as the store gives rows by their shape */
	fprintf(f,
		"op,fabric,gpus,bytes,measured.time_us,source,date\n"
		"all_reduce,nvlink,8,%d,%d,%s,%s\n",
		10240 * (i + 1), 20 + i, r->of_source || r->published ? "s1" : "",
		r->own_date);
	fclose(f);
	ok_or_say(ft_store_import(s, FT_IMPORT_CSV, path, &run, &n, &err), err);
	assert_int_equal(n, 1);
}

/* Of ours if there are any: the first's device, the last day. Of others' measurements alone no day is
 * told but their own. */
static void expect(const struct run *run, const char **device, const char **date)
{
	bool any = false, all = true, first = true;

	*device = *date = "";
	for (int i = 0; i < RUNS; i++) {
		any |= is_own(&run[i]);
		all &= run[i].published;
	}
	for (int i = 0; i < RUNS; i++) {
		if (any && !is_own(&run[i]))
			continue;
		if (first)
			*device = run[i].named ? "A GPU" : "";
		first = false;
		if ((any || all) && strcmp(date_of(&run[i]), *date) > 0)
			*date = date_of(&run[i]);
	}
}

/* The first line of the profile with this text. */
static bool says(const char *folder, const char *text)
{
	char path[128], line[LINE];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/mine.yaml", folder);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, text) != NULL;
	fclose(f);
	return found;
}

static void a_profile_is_of_what_was_measured_last(void **state)
{
	const struct scratch *x = *state;

	for (int i = 0; i < DRAWS; i++) {
		const struct ft_fit_options options = { .name = "mine",
							.base = "h100-sxm",
							.folder = x->folder,
							.families =
								FT_FIT_COLLECTIVES };
		const char *device, *date;
		struct run run[RUNS];
		struct ft_error err;
		struct ft_fit fit;
		struct ft_store *s;
		char text[LINE];

		s = ft_store_open(":memory:", true, &err);
		ok_or_say(s, err);
		for (int k = 0; k < RUNS; k++) {
			run[k] = any_run(i % 5 == 0);
			import(s, x->folder, &run[k], k);
		}
		ok_or_say(ft_fit(s, &options, &fit, &err), err);
		expect(run, &device, &date);
		snprintf(text, sizeof(text), "title: \"%s\"\n", device);
		if (!says(x->folder, text))
			fail_msg("no %s", text);
		snprintf(text, sizeof(text), "date: \"%s", date);
		if (!says(x->folder, text))
			fail_msg("no %s", text);
		ft_store_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_profile_is_of_what_was_measured_last),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
