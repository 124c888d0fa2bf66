/*
 * tests/test_node_plain.c - the plain reader against libyaml
 *
 * What the plain reader takes, libyaml takes, and both make the same tree with the same
 * marks: of every file of ours, of parts of them, and of 60,000 parts that were spoilt.
 */
#include "tests/check.h"

#include <glob.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node_plain.h"
#include "base/plain.h"

enum { SPOILT = 60000, MOST = 700 };

static const char *const folders[] = {
	"hw/*/*.yaml",	  "models/*.yaml",	   "stacks/*.yaml", "stacks/ccl/*.yaml",
	"cost/*.yaml",	  "cost/prices/*.yaml",	   "study/*.yaml",  "examples/*/*.yaml",
	"cli/new/*.yaml", "tests/fuzz/corpus/*/*",
};

static uint64_t draw(uint64_t *s, uint64_t below)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return (*s >> 33) % below;
}

static bool same_mark(const struct ft_mark *a, const struct ft_mark *b)
{
	return !strcmp(a->file, b->file) && a->line == b->line &&
	       a->column == b->column;
}

static bool same(const struct node *a, const struct node *b)
{
	if (a->kind != b->kind || a->n != b->n || a->quoted != b->quoted ||
	    !same_mark(&a->mark, &b->mark))
		return false;
	if (a->kind == NODE_SCALAR)
		return !strcmp(a->text, b->text);
	for (size_t i = 0; i < a->n; i++)
		if (!same(a->item[i], b->item[i]) ||
		    (a->kind == NODE_MAP &&
		     (strcmp(a->key[i], b->key[i]) != 0 ||
		      !same_mark(&a->key_mark[i], &b->key_mark[i]))))
			return false;
	return true;
}

/* true: the plain reader took it. */
static bool held_against(const char *text, size_t len)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *plain = node_read_plain(&mem, "x", text, len), *all;
	bool took = plain != NULL;

	if (took) {
		all = node_read_libyaml(&mem, "x", text, len, &err);
		if (!all)
			fail_msg("libyaml refuses, line %d: %s\n%.*s", err.line,
				 err.text, (int)len, text);
		if (!same(plain, all))
			fail_msg("another tree:\n%s\n%s\n%.*s", node_flow(&mem, plain),
				 node_flow(&mem, all), (int)len, text);
	}
	arena_release(&mem);
	return took;
}

struct seeds {
	struct arena mem;
	size_t n, cap;
	const char **text;
};

static struct seeds read_seeds(void)
{
	struct seeds s = { .n = 0 };

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		glob_t found;

		assert_int_equal(glob(folders[i], 0, NULL, &found), 0);
		for (size_t k = 0; k < found.gl_pathc; k++) {
			struct ft_error err;
			size_t len;
			char *text = file_read(&s.mem, found.gl_pathv[k], 1 << 20, &len,
					       &err);

			if (!text)
				continue; /* a folder */
			if (s.n == s.cap)
				s.text = ARENA_GROW(&s.mem, s.text, &s.cap);
			s.text[s.n++] = text;
		}
		globfree(&found);
	}
	return s;
}

static void all_files_are_read_alike(void **state)
{
	struct seeds s = read_seeds();
	size_t took = 0;

	(void)state;
	for (size_t i = 0; i < s.n; i++)
		took += held_against(s.text[i], strlen(s.text[i]));
	print_message("# %zu of %zu files are plain\n", took, s.n);
	assert_true(took > s.n / 2);
	arena_release(&s.mem);
}

/* Some lines of a file, from a line that begins at the left if there is one. */
static size_t part_of(const char *text, uint64_t *seed, char *to)
{
	const char *p = text + draw(seed, strlen(text) + 1);
	size_t n;

	while (p > text && (p[-1] != '\n' || *p == ' ' || *p == '#'))
		p--;
	n = strlen(p);
	if (n > MOST / 2)
		n = 1 + (size_t)draw(seed, MOST / 2);
	memcpy(to, p, n);
	return n;
}

/* One change: a sign or a short text put in, signs taken out, indentation changed. */
static size_t spoil(char *text, size_t n, uint64_t *seed)
{
	static const char *const put[] = {
		":",   ": ", "-",  "- ",    "\n",	"\n  ", "\n- ", ",",
		"{",   "}",  "[",  "]",	    "#",	" #",	"\"",	"'",
		"&a ", "*a", "!",  "|",	    ">",	"?",	"? ",	"%",
		"@",   "\t", "\r", "---",   "...",	"\\",	"~",	"  ",
		" ",   "a",  "1",  "=",	    "<<",	".",	"\n\n", "null",
		"a: ", "{}", "[]", "\"x\"", "\xc3\xa9", "\x7f",
	};
	size_t where = (size_t)draw(seed, n + 1), len;
	const char *with;

	if (draw(seed, 3) == 0 && where < n) {
		len = 1 + (size_t)draw(seed, 4);
		if (where + len > n)
			len = n - where;
		memmove(text + where, text + where + len, n - where - len);
		return n - len;
	}
	with = put[draw(seed, sizeof(put) / sizeof(*put))];
	len = strlen(with);
	memmove(text + where + len, text + where, n - where);
	memcpy(text + where, with, len);
	return n + len;
}

static void spoilt_parts_are_read_alike(void **state)
{
	struct seeds s = read_seeds();
	uint64_t seed = 20261122;
	size_t took = 0;

	(void)state;
	for (int i = 0; i < SPOILT; i++) {
		char text[MOST];
		size_t n = part_of(s.text[draw(&seed, s.n)], &seed, text);

		for (uint64_t k = draw(&seed, 4); k > 0; k--)
			n = spoil(text, n, &seed);
		took += held_against(text, n);
	}
	print_message("# %zu of %d parts are plain\n", took, (int)SPOILT);
	assert_true(took > SPOILT / 20);
	arena_release(&s.mem);
}

/* ---- numbers ------------------------------------------------------------------------ */

/* Texts of the signs that numbers have: value and end are strtod's, to the bit. */
static void numbers_are_those_of_strtod(void **state)
{
	static const char signs[] = "0123456789012345678900..--+eEx infa,_TG\n";
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		char text[24], *a, *b;
		size_t n = (size_t)draw(&seed, sizeof(text));
		double x, y;

		for (size_t k = 0; k < n; k++)
			text[k] = signs[draw(&seed, i % 2 ? 22 : sizeof(signs) - 1)];
		text[n] = '\0';
		x = plain_number(text, &a);
		y = strtod(text, &b);
		if (a != b || memcmp(&x, &y, sizeof(x)))
			fail_msg("'%s': %.17g, %td read; strtod %.17g, %td", text, x,
				 a - text, y, b - text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_files_are_read_alike),
		cmocka_unit_test(spoilt_parts_are_read_alike),
		cmocka_unit_test(numbers_are_those_of_strtod),
	};

	return cmocka_run_group_tests_name("node_plain", tests, NULL, NULL);
}
