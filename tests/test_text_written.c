/*
 * tests/test_text_written.c - drawn texts with all that means something to YAML and CSV, written as a field of either,
 * are read back as they were
 */
#include "base/arena.h"
#include "base/csv.h"
#include "base/node.h"
#include "tests/check.h"

enum { DRAWS = 600, TEXT = 24, FIELDS = 3 };

static uint64_t seed = 139;

/* Bytes of ASCII, most of which mean something, and letters of two and three bytes. */
static void draw(char to[4 * TEXT], bool lines)
{
	static const char marks[] = "\"\\'#:,-{}[]&*!|>%@` ~?=;";
	static const char *const letters[] = { "\xc3\xa9", "\xe2\x82\xac" };
	int n = rnd_below(&seed, TEXT);
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		int kind = rnd_below(&seed, 6);

		if (kind < 3)
			to[len++] = marks[rnd_below(&seed, (int)sizeof(marks) - 1)];
		else if (kind == 3)
			to[len++] = (char)('a' + rnd_below(&seed, 26));
		else if (kind == 4 && lines)
			to[len++] = "\n\t\r"[rnd_below(&seed, 3)];
		else
			for (const char *s = letters[rnd_below(&seed, 2)]; *s; s++)
				to[len++] = *s;
	}
	to[len] = '\0';
}

static void fields_of_yaml_come_back(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		char text[FIELDS][4 * TEXT], *all = NULL;
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *root;
		size_t len = 0;
		FILE *out = open_memstream(&all, &len);

		for (int k = 0; k < FIELDS; k++)
			draw(text[k], true);
		node_put_field(out, "a: ", text[0], "\n");
		node_put_field(out, "b: {c: ", text[1], ", d: ");
		node_put_quoted(out, text[2]);
		fputs("}\n", out);
		fclose(out);
		root = node_read_text(&mem, "written", all, len, &err);
		ok_or_say(root, err);
		assert_string_equal(node_get(root, "a")->text, text[0]);
		assert_string_equal(node_path(root, "b.c")->text, text[1]);
		assert_string_equal(node_path(root, "b.d")->text, text[2]);
		arena_release(&mem);
		free(all);
	}
}

/* What drives a terminal is written so that it does not, and not taken back. */
static void control_characters_are_written_out(void **state)
{
	(void)state;
	for (int c = 1; c <= 127; c++) {
		const char text[] = { 'x', (char)c, 'y', '\0' };
		struct arena mem = { 0 };
		struct ft_error err = { 0 };
		char *all = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&all, &len);
		struct node *root;

		node_put_field(out, "a: ", text, "\n");
		fclose(out);
		for (size_t i = 0; i + 1 < len; i++)
			assert_in_range(all[i], ' ', 126);
		root = node_read_text(&mem, "written", all, len, &err);
		if (c >= ' ' && c < 127) {
			assert_string_equal(node_get(root, "a")->text, text);
		} else if (!strchr("\n\t\r", c)) {
			assert_null(root);
			assert_string_equal(err.text, "holds a control character");
		}
		arena_release(&mem);
		free(all);
	}
}

/* As csv_cell writes it for spreadsheets, a formula's first sign has an apostrophe in front. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

static void cells_of_csv_come_back(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		char text[FIELDS][4 * TEXT], want[4 * TEXT + 2], *all = NULL;
		struct arena mem = { 0 };
		struct ft_error err;
		struct csv *t;
		size_t len = 0;
		FILE *out = open_memstream(&all, &len);

		for (int k = 0; k < FIELDS; k++)
			draw(text[k], false);
		fputs("first,second,third\nx,", out);
		csv_put(out, text[0], false);
		csv_put(out, text[1], true);
		fputs("y,,", out);
		csv_cell(out, text[2]);
		fputs("\n", out);
		fclose(out);
		t = csv_read_text(&mem, "written", all, len, &err);
		ok_or_say(t, err);
		assert_int_equal(t->n_rows, 2);
		assert_string_equal(csv_text(t, 0, 1), text[0]);
		assert_string_equal(csv_text(t, 0, 2), text[1]);
		snprintf(want, sizeof(want), "%s%s", is_formula(text[2]) ? "'" : "",
			 text[2]);
		assert_string_equal(csv_text(t, 1, 2), want);
		arena_release(&mem);
		free(all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_yaml_come_back),
		cmocka_unit_test(control_characters_are_written_out),
		cmocka_unit_test(cells_of_csv_come_back),
	};

	return cmocka_run_group_tests_name("text written", tests, NULL, NULL);
}
