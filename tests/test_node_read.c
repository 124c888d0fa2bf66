/* tests/test_node_read.c - texts to nodes: what JSON writes otherwise than YAML, and how long a text may be */
#include "tests/check.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/node.h"

static struct node *yaml(struct arena *mem, const char *text, struct ft_error *err)
{
	return node_read_text(mem, "t.yaml", text, strlen(text), err);
}

/* JSON's two halves of a character are one; half of one is none, and a backslash of its own is text. */
static void halves_of_a_character_are_joined(void **state)
{
	static const char *const cases[][2] = {
		{ "[\"\\ud83d\\ude00\"]", "\xf0\x9f\x98\x80" },
		{ "[\"a\\uD83D\\uDE00z\"]", "a\xf0\x9f\x98\x80z" },
		{ "[\"\\\\ud83d\\\\ude00\"]", "\\ud83d\\ude00" },
		{ "[\"\\\\\\udbff\\udfff\"]", "\\\xf4\x8f\xbf\xbf" },
		{ "[\"\\ud83d\"]", NULL },
		{ "[\"\\ud83d\\u0041\"]", NULL },
		{ "[\"\\ude00\\ud83d\"]", NULL },
		{ "[\"\\ud8", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *n = yaml(&mem, cases[i][0], &err);

		assert_int_equal(n != NULL, cases[i][1] != NULL);
		if (n)
			assert_string_equal(n->item[0]->text, cases[i][1]);
		arena_release(&mem);
	}
}

/* What a file may not be, a text may not be. */
static void a_text_is_as_long_as_a_file(void **state)
{
	char *text = malloc(LIMIT_YAML_BYTES + 2);
	struct arena mem = { 0 };
	struct ft_error err;

	(void)state;
	memset(text, ' ', LIMIT_YAML_BYTES + 1);
	memcpy(text, "a: 1", 4);
	assert_non_null(node_read_text(&mem, "t", text, LIMIT_YAML_BYTES, &err));
	assert_null(node_read_text(&mem, "t", text, LIMIT_YAML_BYTES + 1, &err));
	assert_non_null(strstr(err.text, "is too large: more than 16777216 bytes"));
	assert_string_equal(err.file, "t");
	arena_release(&mem);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_of_a_character_are_joined),
		cmocka_unit_test(a_text_is_as_long_as_a_file),
	};

	return cmocka_run_group_tests_name("node_read", tests, NULL, NULL);
}
