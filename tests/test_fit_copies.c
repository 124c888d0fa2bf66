/*
 * tests/test_fit_copies.c - tables that a fit leaves as they were: those of the GPU's own profile that no family of the
 * fit writes and that are not beside the new one are copied, byte by byte
 */
#include "calibrate/fit.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 80, FILES = 3, TEXT = 400 };

static uint64_t seed = 271;

static const struct {
	int family;
	const char *tail;
} files[FILES] = { { FT_FIT_GEMM, "gemm.csv" },
		   { FT_FIT_ATTENTION, "attention.csv" },
		   { FT_FIT_COLLECTIVES, "collectives.csv" } };

/* "": there is none. */
static void keep(const char *folder, const char *name, const char *tail,
		 const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%s", folder, name, tail);
	unlink(path);
	if (!text[0])
		return;
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void holds(const char *folder, const char *tail, const char *want)
{
	char path[160], text[TEXT] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/mine.%s", folder, tail);
	f = fopen(path, "r");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	assert_string_equal(text, want);
}

static void draw_text(char text[TEXT])
{
	int n = rnd_below(&seed, 4) ? rnd_below(&seed, TEXT - 1) : 0;

	for (int i = 0; i < n; i++)
		text[i] = "0123,.\n#ab"[rnd_below(&seed, 10)];
	text[n] = '\0';
}

static void what_is_not_fitted_is_copied(void **state)
{
	const struct scratch *s = *state;
	char base[128];
	int copies = 0;

	snprintf(base, sizeof(base), "%s/theirs.yaml", s->folder);
	keep(s->folder, "theirs", "yaml", "name: theirs\n");
	for (int i = 0; i < DRAWS; i++) {
		struct ft_fit_options o = { .name = "mine", .base = base };
		struct fit_input in = { .options = &o,
					.own_base = rnd_below(&seed, 4) > 0 };
		char old[FILES][TEXT], is[FILES][TEXT];
		struct ft_error err;

		for (int k = 0; k < FILES; k++) {
			draw_text(old[k]);
			draw_text(is[k]);
			if (rnd_below(&seed, 2))
				is[k][0] = '\0';
			if (rnd_below(&seed, 2))
				in.families |= files[k].family;
			keep(s->folder, "theirs", files[k].tail, old[k]);
			keep(s->folder, "mine", files[k].tail, is[k]);
		}
		ok_or_say(fit_copy_rows(&in, s->folder, &err), err);
		for (int k = 0; k < FILES; k++) {
			bool copied = in.own_base && !is[k][0] &&
				      !(in.families & files[k].family);

			copies += copied && old[k][0];
			holds(s->folder, files[k].tail, copied ? old[k] : is[k]);
		}
	}
	assert_true(copies > 10);
}

static void a_base_that_is_not_there_is_told(void **state)
{
	const struct scratch *s = *state;
	struct ft_fit_options o = { .name = "mine", .base = "no such gpu" };
	struct fit_input in = { .options = &o };
	struct ft_error err;

	assert_false(fit_copy_rows(&in, s->folder, &err));
	assert_non_null(strstr(err.text, "no such gpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_fitted_is_copied),
		TEST(a_base_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests_name("copies of a fit", tests, NULL, NULL);
}
