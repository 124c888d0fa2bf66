/*
 * tests/test_limits.c - docs/limits.md says what base/limits.h says
 *
 * `test_limits --write` writes the page anew.
 */

#include "tests/check.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"

static const struct {
	const char *name;
	int value;
	const char *what, *message;
} limits[] = {
#define ROW(name, value, what, message) { #name, value, what, message },
	LIMITS(ROW)
#undef ROW
};

enum { N = sizeof(limits) / sizeof(*limits) };

static const char head[] =
	"# Limits\n"
	"\n"
	"What foretoken takes is bounded, so that no input takes all of the machine. Beyond a\n"
	"bound there is an error with its place and what to write instead, exit status 1 and no\n"
	"answer. Too little memory is one line, `foretoken: error: out of memory`, and exit\n"
	"status 1. The list is that of `base/limits.h`; `make check` holds the two together, and\n"
	"`build/rel/tests/test_limits --write` writes this page.\n"
	"\n"
	"| limit | value | of what | words of the error |\n"
	"| --- | ---: | --- | --- |\n";

static const char tail[] =
	"\n"
	"Numbers of data files have bounds of their own, which their errors name: times up to a\n"
	"year, fractions up to 100, rates of 0 or from 1 to 10^21 a second, efficiencies above 0;\n"
	"in a step graph bytes up to 10^18, host times up to 10^6 s, 10^18 multiplications of one\n"
	"work. A horizon is 4 days to 100 years, a residual below 100 %.\n"
	"\n"
	"Recorded traces are the one input that may take more than 512 MB: about 60 bytes a kernel\n"
	"and 40 a call are kept. All else takes less, and is read within seconds; `make fuzz-mutants`\n"
	"holds that on 50,000 spoilt inputs.\n";

static char *page(struct arena *mem)
{
	char *text = arena_text(mem, head);

	for (size_t i = 0; i < N; i++) {
		char value[32], spaced[48];
		size_t n = (size_t)snprintf(value, sizeof(value), "%d",
					    limits[i].value),
		       at = 0;

		for (size_t k = 0; k < n; k++) {
			if (k && (n - k) % 3 == 0)
				spaced[at++] = ',';
			spaced[at++] = value[k];
		}
		spaced[at] = '\0';
		text = arena_printf(mem, "%s| %s | %s | %s | %s |\n", text,
				    limits[i].name, spaced, limits[i].what,
				    limits[i].message);
	}
	return arena_printf(mem, "%s%s", text, tail);
}

static void the_page_lists_every_limit(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	size_t n;
	char *there = file_read(&mem, "docs/limits.md", 1 << 20, &n, &err);

	(void)state;
	if (!there)
		fail_msg("%s: %s", err.file, err.text);
	assert_string_equal(there, page(&mem));
	arena_release(&mem);
}

static void limits_have_names_of_their_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		assert_true(limits[i].value > 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(limits[i].name, limits[k].name);
	}
}

static int write_page(void)
{
	struct arena mem = { 0 };
	struct file_out f;
	struct ft_error err;

	if (file_begin(&f, "docs/limits.md", &err)) {
		fputs(page(&mem), f.out);
		if (file_commit(&f, &err)) {
			arena_release(&mem);
			return 0;
		}
	}
	fprintf(stderr, "%s: %s\n", err.file, err.text);
	return 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_lists_every_limit),
		cmocka_unit_test(limits_have_names_of_their_own),
	};

	if (argc > 1 && !strcmp(argv[1], "--write"))
		return write_page();
	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
