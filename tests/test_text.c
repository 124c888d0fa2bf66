/* tests/test_text.c - words, months and names, against the obvious way, on drawn texts */
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/limits.h"
#include "base/text.h"
#include "tests/check.h"

static bool matches(const regex_t *form, const char *text)
{
	return !regexec(form, text, 0, NULL, 0);
}

/* n of these letters, or fewer. */
static void draw(uint64_t *seed, const char *letters, size_t n, char *to)
{
	n = rnd(seed) % (n + 1);
	for (size_t i = 0; i < n; i++)
		*to++ = letters[rnd(seed) % strlen(letters)];
	*to = '\0';
}

/* By a long double, which holds all that so few letters say, and by whether they say nothing. */
static void a_whole_number_is_one_however_it_is_written(void **state)
{
	static const char *const whole[] = { "4",    "4.0",   "4.",   "4e3",   "4E+3",
					     ".5e1", "40e-1", "-2.0", "0.000", "0e9" };
	static const int64_t value[] = { 4, 4, 4, 4000, 4000, 5, 4, -2, 0, 0 };
	static const char *const none[] = {
		"",    ".",    "e3",  "4e",
		"4e+", "4e 3", "4.5", "4e-1",
		"nan", "0x10", "1k",  "1.0.0",
		"inf", "4 ",   "--4", "9223372036854775807.5"
	};
	int64_t is;
	bool beyond;
	regex_t form;
	uint64_t seed = 7;
	char text[16];
	int seen = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
		assert_true(text_whole(whole[i], &is, &beyond));
		assert_int_equal(is, value[i]);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_false(text_whole(none[i], &is, &beyond));
		assert_false(beyond);
	}
	assert_true(text_whole("-9223372036854775808", &is, &beyond));
	assert_true(is == INT64_MIN);
	assert_false(text_whole("9223372036854775808", &is, &beyond) || !beyond);
	assert_false(text_whole("1e19", &is, &beyond) || !beyond);
	assert_int_equal(
		regcomp(&form, "^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?$",
			REG_EXTENDED | REG_NOSUB),
		0);
	for (int i = 0; i < 400000; i++) {
		long double x;
		bool is_whole;

		draw(&seed, "0012345.e+-", 8, text);
		x = strtold(text, NULL);
		is_whole = matches(&form, text) && fabsl(x) < 0x1p63L &&
			   x == floorl(x) &&
			   (x != 0 || strcspn(text, "12345e") == strcspn(text, "e"));
		if (text_whole(text, &is, &beyond) != is_whole)
			fail_msg("'%s'", text);
		if (is_whole)
			assert_int_equal(is, (int64_t)x);
		seen += is_whole && strchr(text, 'e');
	}
	assert_true(seen > 1000);
	regfree(&form);
}

static void a_month_is_digits_and_dashes(void **state)
{
	static const char *const odd[] = { "2026-+1", "2026- 1", "+202-01", " 202",
					   "2026-1",  "2026-13", "2026-00", "1969-12",
					   "20261-1", "2026-1-", "202-11",  "2026-",
					   "" };
	regex_t form;
	uint64_t seed = 1;
	char text[16];
	int year, month, seen = 0;

	(void)state;
	assert_int_equal(regcomp(&form, "^[0-9]{4}(-(0[1-9]|1[0-2])(-.*)?)?$",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		assert_false(text_month(odd[i], &year, &month));
	for (int i = 0; i < 20000; i++) {
		bool is;

		snprintf(text, sizeof(text), "%d", 1965 + (int)(rnd(&seed) % 60));
		draw(&seed, "--0112x+ ", 5, text + 4);
		is = matches(&form, text) && atoi(text) >= 1970;
		if (text_month(text, &year, &month) != is)
			fail_msg("%s is %s month", text, is ? "a" : "no");
		if (!is)
			continue;
		seen++;
		assert_int_equal(year, atoi(text));
		assert_int_equal(month, text[4] ? atoi(text + 5) : 1);
	}
	assert_true(text_month("1970", &year, &month));
	assert_true(seen > 500);
	regfree(&form);
}

static void a_name_is_of_these_letters(void **state)
{
	regex_t form;
	uint64_t seed = 2;
	char text[LIMIT_NAME_BYTES + 2];

	(void)state;
	assert_int_equal(regcomp(&form, "^[A-Za-z0-9][A-Za-z0-9._+ -]{0,63}$",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	for (int i = 0; i < 20000; i++) {
		draw(&seed, "aZ09zA._+ -aZ09zA._+ -/\"", i % 2 ? 4 : 65, text);
		if (text_is_name(text) != matches(&form, text))
			fail_msg("'%s'", text);
	}
	memset(text, 'n', sizeof(text));
	text[LIMIT_NAME_BYTES + 1] = '\0';
	assert_false(text_is_name(text));
	text[LIMIT_NAME_BYTES] = '\0';
	assert_true(text_is_name(text));
	for (int c = 1; c < 256; c++) {
		snprintf(text, sizeof(text), "a%c", c);
		assert_true(text_is_name(text) == matches(&form, text));
	}
	regfree(&form);
}

/* By the definition: the fewest letters put in, taken out or changed. */
static size_t edits(const char *a, const char *b)
{
	size_t in, out, other;

	if (!*a || !*b)
		return strlen(a) + strlen(b);
	if (*a == *b)
		return edits(a + 1, b + 1);
	in = edits(a, b + 1);
	out = edits(a + 1, b);
	other = edits(a + 1, b + 1);
	in = in < out ? in : out;
	return 1 + (in < other ? in : other);
}

static void bare(const char *word, char *to)
{
	for (; *word; word++)
		if (!strchr("-_. ", *word))
			*to++ = (char)(*word | 0x20);
	*to = '\0';
}

/* What base/text.h says of the word that was probably meant. */
static const char *meant(const char *word, const char *const *list, size_t n)
{
	char mine[80], other[80];
	const char *best = NULL;
	size_t least = SIZE_MAX, shortest = 0, far;

	bare(word, mine);
	for (size_t i = 0; i < n; i++) {
		bare(list[i], other);
		far = 2 * edits(mine, other);
		if (strlen(mine) >= 3 && far && !strncmp(other, mine, strlen(mine)))
			far = 1;
		if (far < least || (far == least && strlen(other) < shortest)) {
			least = far;
			shortest = strlen(other);
			best = list[i];
		}
	}
	bare(best, other);
	if (least <= 2 ||
	    3 * least <= 2 * (strlen(mine) + (mine[0] == other[0] ? 2 : 0)))
		return best;
	for (size_t i = 0; strlen(mine) >= 4 && i < n; i++) {
		bare(list[i], other);
		if (strstr(other, mine))
			return list[i];
	}
	return NULL;
}

static void the_nearest_word_is_the_nearest(void **state)
{
	uint64_t seed = 3;
	int found = 0;

	(void)state;
	for (int i = 0; i < 6000; i++) {
		char word[8], text[5][8];
		const char *list[5], *want, *got;

		draw(&seed, "abcA-_", 7, word);
		for (int k = 0; k < 5; k++) {
			draw(&seed, "abcB-.", 7, text[k]);
			list[k] = text[k];
		}
		want = meant(word, list, 5);
		got = text_nearest(word, list, 5);
		if (got != want)
			fail_msg("%s of %s %s %s %s %s is %s, not %s", word, text[0],
				 text[1], text[2], text[3], text[4], got ? got : "none",
				 want ? want : "none");
		found += want != NULL;
	}
	assert_true(found > 1000 && found < 6000);
}

static void long_words_have_no_nearest(void **state)
{
	char longest[66];
	const char *list[1] = { longest };

	(void)state;
	memset(longest, 'a', 65);
	longest[65] = '\0';
	assert_null(text_nearest(longest, list, 1));
	longest[64] = '\0';
	assert_ptr_equal(text_nearest(longest, list, 1), longest);
	assert_null(text_nearest("x", list, 0));
}

static void joined_words_come_apart(void **state)
{
	static const char *const words[] = { "one", "", "three" };
	struct arena mem = { 0 };

	(void)state;
	assert_string_equal(text_join(&mem, words, 3), "one, , three");
	assert_string_equal(text_join(&mem, words, 1), "one");
	assert_string_equal(text_join(&mem, words, 0), "");
	arena_release(&mem);
}

/* Each byte, in a room that is cut at every length. */
static void what_is_invisible_is_shown(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++)
		for (size_t room = 1; room < 9; room++) {
			const char text[] = { 'a', (char)c, (char)0x85, 'b', '\0' };
			bool pair = c == 0xc2, control = c < ' ' || c == 127 || pair;
			char want[16], to[16];
			size_t n;

			if (control)
				snprintf(want, sizeof(want), "a\\x%02x%cb", c, 0x85);
			else
				snprintf(want, sizeof(want), "%s", text);
			text_visible(text, to, room);
			n = strlen(to);
			assert_true(n < room && !strncmp(to, want, n));
			/* an escape is whole or not there */
			if (!(control && n == 1))
				assert_true(n == room - 1 || n == strlen(want));
			assert_true(!control || n <= 1 || n >= 5);
		}
}

/* What jansson takes for a text stays; of three drawn bytes, what it does not becomes what it takes. */
static void what_was_cut_is_whole_again(void **state)
{
	static const char *const cut[][2] = {
		{ "a\xe6\x97", "a?" },
		{ "\xe6\x97\xa5\xe6", "\xe6\x97\xa5?" },
		{ "'\xf0\x9f\x98' is", "'?' is" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\x80\x80x", "?x" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%s", cut[i][0]);
		text_mend(text);
		assert_string_equal(text, cut[i][1]);
	}
	for (unsigned long i = 0; i < 40000; i++) {
		unsigned long x = i * 0x9e3779b97f4a7c15u >> 32;
		char text[5] = { (char)x, (char)(0x80 + x / 256 % 128),
				 (char)(x >> 16 & (i & 1 ? 0xff : 0xbf)),
				 (char)(x >> 24) };
		char was[5];
		json_t *j = json_string(text);

		memcpy(was, text, sizeof(was));
		text_mend(text);
		if (j)
			assert_string_equal(text, was);
		json_decref(j);
		j = json_string(text);
		assert_non_null(j);
		json_decref(j);
	}
}

static void xml_holds_what_it_may(void **state)
{
	char text[256], *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);
	const char *at;

	(void)state;
	for (int c = 1; c < 256; c++)
		text[c - 1] = (char)c;
	text[255] = '\0';
	text_put_xml(f, text);
	assert_int_equal(fclose(f), 0);
	at = out;
	for (int c = 1; c < 256; c++) {
		const char *safe = c == '<'  ? "&lt;" :
				   c == '>'  ? "&gt;" :
				   c == '&'  ? "&amp;" :
				   c == '"'  ? "&quot;" :
				   c == '\'' ? "&#39;" :
					       NULL;
		char one[2] = { (char)c, '\0' };

		if (c < ' ' && !strchr("\t\n\r", c))
			safe = "?";
		if (!safe)
			safe = one;
		if (strncmp(at, safe, strlen(safe)) != 0)
			fail_msg("%d is %.6s, not %s", c, at, safe);
		at += strlen(safe);
	}
	assert_string_equal(at, "");
	free(out);
}

static void tails(void **state)
{
	(void)state;
	assert_true(text_ends_with("a.yaml", ".yaml"));
	assert_true(text_ends_with(".yaml", ".yaml"));
	assert_true(text_ends_with("x", ""));
	assert_false(text_ends_with("yaml", ".yaml"));
	assert_false(text_ends_with("a.yaml ", ".yaml"));
}

static void heads(void **state)
{
	(void)state;
	assert_true(text_begins_with("a.yaml", "a."));
	assert_true(text_begins_with("a.", "a."));
	assert_true(text_begins_with("a", ""));
	assert_false(text_begins_with("a", "a."));
	assert_false(text_begins_with("ba.", "a."));
}

/* A cell as gnuplot reads it: what stands between its quotes, with octal numbers as letters. */
static const char *read_cell(struct arena *mem, const char *cell)
{
	char *text = arena_alloc(mem, strlen(cell) + 1, 1), *p = text;
	const char *at = cell + 1;

	assert_int_equal(*cell, '"');
	for (; *at && *at != '"'; at++) {
		*p = *at;
		if (*at == '\\') {
			*p = (char)strtol(arena_text_n(mem, at + 1, 3), NULL, 8);
			at += 3;
		}
		p++;
	}
	assert_string_equal(at, "\"");
	*p = '\0';
	return text;
}

/* In a script a text is in quotes, those inside doubled; in data, cells cannot be left. */
static void plots_hold_texts_as_they_are_or_none(void **state)
{
	static const char letters[] = "ab'\"\\$`\n\x7f{}@ 0";
	uint64_t seed = 3;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct arena mem = { 0 };
		struct ft_error err = { .text = "" };
		const char *quoted, *cell;
		char text[9];
		size_t n = 0;

		draw(&seed, letters, sizeof(text) - 1, text);
		quoted = gnuplot_quote(&mem, text, &err);
		assert_int_equal(!quoted, strpbrk(text, "\n\x7f") != NULL);
		if (!quoted) {
			assert_string_equal(err.text,
					    "a plot's text holds a control character");
		} else {
			assert_int_equal(quoted[n++], '\'');
			for (const char *p = text; *p; p++) {
				assert_int_equal(quoted[n++], *p);
				if (*p == '\'')
					assert_int_equal(quoted[n++], '\'');
			}
			assert_string_equal(quoted + n, "'");
		}
		cell = read_cell(&mem, gnuplot_cell(&mem, text));
		assert_int_equal(strlen(cell), strlen(text));
		for (size_t i = 0; text[i]; i++)
			assert_int_equal(cell[i],
					 strchr("\n\x7f", text[i]) ? ' ' : text[i]);
		arena_release(&mem);
	}
}

/* ]]> may stand nowhere in XML. */
static void plots_end_no_section(void **state)
{
	static const char *const text[] = { "]]>", "x ]]> y", "]]]>]]>", "a]>b>]" };
	struct ft_error err;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct arena mem = { 0 };
		const char *part = i < 3 ? "]]\xe2\x80\x8b>" : "a]>b>]";

		assert_null(strstr(gnuplot_cell(&mem, text[i]), "]]>"));
		assert_null(strstr(gnuplot_quote(&mem, text[i], &err), "]]>"));
		assert_non_null(strstr(gnuplot_cell(&mem, text[i]), part));
		assert_non_null(strstr(gnuplot_quote(&mem, text[i], &err), part));
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_number_is_one_however_it_is_written),
		cmocka_unit_test(a_month_is_digits_and_dashes),
		cmocka_unit_test(a_name_is_of_these_letters),
		cmocka_unit_test(the_nearest_word_is_the_nearest),
		cmocka_unit_test(long_words_have_no_nearest),
		cmocka_unit_test(joined_words_come_apart),
		cmocka_unit_test(what_is_invisible_is_shown),
		cmocka_unit_test(what_was_cut_is_whole_again),
		cmocka_unit_test(xml_holds_what_it_may),
		cmocka_unit_test(tails),
		cmocka_unit_test(heads),
		cmocka_unit_test(plots_end_no_section),
		cmocka_unit_test(plots_hold_texts_as_they_are_or_none),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
