/* tests/test_node_plain.c - the reader of plain YAML, against libyaml */
#include <ftw.h>

#include "tests/check.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/node_plain.h"

static bool same_mark(const struct ft_mark *a, const struct ft_mark *b)
{
	return a->line == b->line && a->column == b->column;
}

/* The same values at the same places. */
static bool same(const struct node *a, const struct node *b)
{
	if (a->kind != b->kind || a->quoted != b->quoted || a->n != b->n ||
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

/* What is taken is what libyaml reads. Returns whether it is taken. */
static bool taken_as_by_libyaml(const char *text, size_t len)
{
	struct arena mem = { 0 };
	struct node *plain = node_plain_text(&mem, "x", text, len), *whole;
	struct ft_error err;
	bool taken = plain;

	whole = taken ? node_read_events(&mem, "x", text, len, &err) : NULL;
	if (taken && (!whole || !same(plain, whole)))
		fail_msg("read otherwise than by libyaml (%s):\n%.*s",
			 whole ? "other nodes" : err.text, (int)len, text);
	arena_release(&mem);
	return taken;
}

static bool text_taken(const char *text)
{
	return taken_as_by_libyaml(text, strlen(text));
}

/* ---- files ------------------------------------------------------------------------ */

enum { FILES = 4000 };
static char *file[FILES]; /* nftw takes no argument of its caller's */
static size_t files;

static int note(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	size_t n = strlen(path);

	(void)at;
	if (kind == FTW_F && st->st_size < 1 << 20 && files < FILES && n > 5 &&
	    (!strcmp(path + n - 5, ".yaml") || !strcmp(path + n - 5, ".json")))
		file[files++] = strdup(path);
	return 0;
}

static void find_files(void)
{
	static const char *const folders[] = { "hw",	   "models", "stacks", "cost",
					       "examples", "tests",  "study" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		nftw(folders[i], note, 8, FTW_PHYS);
}

static void files_of_the_tree_are_read_as_by_libyaml(void **state)
{
	size_t ours = 0, taken = 0;

	(void)state;
	find_files();
	for (size_t i = 0; i < files; i++) {
		bool preset =
			!strncmp(file[i], "hw/", 3) || !strncmp(file[i], "cost/", 5);
		struct arena mem = { 0 };
		struct ft_error err;
		size_t len;
		char *text = file_read(&mem, file[i], 1 << 20, &len, &err);

		ok_or_say(text, err);
		ours += preset;
		taken += taken_as_by_libyaml(text, len) && preset;
		arena_release(&mem);
	}
	/* those of the tree are plain, but for one whose notes go on for lines */
	assert_true(ours > 60 && taken + 1 >= ours);
}

/* A line lost, doubled or further in, a character put in or lost. */
static void spoil(char *text, size_t cap, uint64_t *seed)
{
	static const char put[] = "&x*x  \n\n\n::--#,,[]{}'\"?!&*|>%.ab1\t\\";
	size_t len = strlen(text), at = rnd(seed) % (len + 1);
	char c = put[rnd(seed) % (sizeof(put) - 1)];

	if (rnd(seed) % 3 == 0 && len)
		memmove(text + at, text + at + (at < len), len - at + (at == len));
	else if (len + 2 < cap) {
		memmove(text + at + 1, text + at, len - at + 1);
		text[at] = c;
	}
}

static void spoilt_pieces_of_files_are_read_as_by_libyaml(void **state)
{
	uint64_t seed = 3;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 6000; i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		size_t len, from;
		char *text =
			file_read(&mem, file[rnd(&seed) % files], 1 << 20, &len, &err);
		char piece[700];

		ok_or_say(text, err);
		from = len > 400 && rnd(&seed) % 4 ? rnd(&seed) % (len - 400) : 0;
		while (from && text[from - 1] != '\n')
			from--;
		snprintf(piece, sizeof(piece) - 50, "%s", text + from);
		for (uint32_t n = rnd(&seed) % 3; n-- > 0;)
			spoil(piece, sizeof(piece), &seed);
		taken += text_taken(piece);
		arena_release(&mem);
	}
	assert_true(taken > 600);
}

/* ---- made up ----------------------------------------------------------------------- */

static void texts_of_tokens_are_read_as_by_libyaml(void **state)
{
	static const char *const token[] = {
		"a: ", "b: ",	"key: ",  "\"q\": ", "'s': ",
		"- ",  "- ",	"-",	  "\n",	     "\n",
		"\n",  "\n  ",	"\n  ",	  "\n    ",  "\n ",
		"x",   "1.5 s", "-3",	  "{",	     "}",
		"[",   "]",	", ",	  ",",	     ": ",
		":",   " # c",	"#",	  "'t'",     "\"u\"",
		"?",   "a:b",	" ",	  "--",	     "...",
		"---", "{}",	"[]",	  "~",	     "\"\"",
		"''",  "\"",	"c:\n",	  "{a: 1}",  "[x, 2]",
		"'",   "a b: ", "\"k\":", "&x",	     "&x ",
		"*x",  "*x\n",	"&y-1\n", "d: *y-1", "e: &x\n  f: ",
	};
	uint64_t seed = 5;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 150000; i++) {
		char text[200] = "";

		for (uint32_t n = 1 + rnd(&seed) % 14; n-- > 0;)
			strcat(text,
			       token[rnd(&seed) % (sizeof(token) / sizeof(*token))]);
		taken += text_taken(text);
	}
	assert_true(taken > 1500);
}

/* What the reader is for is taken, and what it must not is not. */
static void what_is_plain_is_taken(void **state)
{
	static const char *const plain[] = {
		"a: 1",
		"a: 1\nb:\n  c: x y  # why\n\n  d: {e: 1.5 us, f: [1, 'two', \"three\"]}\n",
		"a:\n- 1\n- b: 2\n  c: 3\n-\n  d: 4\ne: 5\n",
		"{\"a\":1,\"b\":[{\"c\":\"d, e: f\"}],\n\"g\": {}}",
		"# top\n\nlist:\n  - {a: b}\n  - [c,\n     d]\nlast: -1\n",
		"at: ../x.yaml\n'q u': a:b#c\n",
		"a: &x\n  b: 1\nc: *x # again\nd: &x {e: [2]}\nf: *x\n",
	};
	static const char *const declined[] = {
		"",
		"a",
		"a:",
		"a: &x 1",
		"a: &x\n- 1\n",
		"a: &x\n  b: *x\n",
		"a: *x\n",
		"a: &x {}\nb: *x y\n",
		"a: &x {}\nb: *x: y\n",
		"a: &x {}\nb: [*x]\n",
		"a: &x {}\nb: &y *x\n",
		"a: &x {}\n*x : 1\n",
		"a: & {}\n",
		"a: |\n  b\n",
		"a: b\n  c",
		"a: b: c",
		"a: 1\na: 2",
		"{a: 1,}",
		"[a, b",
		"a: 'it''s'",
		"a: \"\\n\"",
		"\ta: 1",
		"a: \x7f",
		"a: \xc3\xa9",
		"--- \na: 1",
		"a: 1\n...\n",
		"? a\n: b",
		"{a: b\n c: d}",
		"[a: b]",
		"a: [b]c",
		"a: 'b' c",
		"- a\nb: c",
		"%x\na: 1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (!text_taken(plain[i]))
			fail_msg("declined:\n%s", plain[i]);
	for (size_t i = 0; i < sizeof(declined) / sizeof(*declined); i++)
		if (text_taken(declined[i]))
			fail_msg("taken:\n%s", declined[i]);
}

static void depth_is_bounded(void **state)
{
	char text[200];

	(void)state;
	for (size_t n = 1; n < 90; n++) {
		memset(text, '[', n);
		memset(text + n, ']', n);
		text[2 * n] = '\0';
		assert_int_equal(text_taken(text), n <= 33);
	}
}

/* A number within so many maps and lists, the first of them in lines of their own. */
static const char *nested(struct arena *mem, uint64_t *seed, int levels)
{
	int blocks = (int)(rnd(seed) % (uint64_t)(levels + 1));
	const char *text = "", *end = "";

	for (int i = 0; i < levels; i++) {
		bool map = rnd(seed) % 2 ||
			   (!i && blocks); /* a list in lines is not plain */

		if (i < blocks) {
			text = arena_printf(mem, "%s%s%*s%s", text, i ? "\n" : "", i,
					    "", map ? "a:" : "-");
			continue;
		}
		text = arena_printf(mem, "%s%s%s", text, i && i == blocks ? " " : "",
				    map ? "{a: " : "[");
		end = arena_printf(mem, "%s%s", map ? "}" : "]", end);
	}
	return arena_printf(mem, "%s%s1%s", text, blocks == levels ? " " : "", end);
}

static void depth_is_bounded_in_lines_and_in_brackets(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct arena mem = { 0 };
		int levels = 27 + i % 11;
		const char *text = nested(&mem, &seed, levels);

		if (text_taken(text) != (levels <= 32))
			fail_msg("%d levels:\n%s", levels, text);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_is_bounded_in_lines_and_in_brackets),
		cmocka_unit_test(files_of_the_tree_are_read_as_by_libyaml),
		cmocka_unit_test(spoilt_pieces_of_files_are_read_as_by_libyaml),
		cmocka_unit_test(texts_of_tokens_are_read_as_by_libyaml),
		cmocka_unit_test(what_is_plain_is_taken),
		cmocka_unit_test(depth_is_bounded),
	};

	return cmocka_run_group_tests_name("base/node_plain", tests, NULL, NULL);
}
