/* tests/test_json_text.c - drawn texts, some not UTF-8, as JSON: each wrong byte is a question mark */
#include "base/json_text.h"
#include "tests/check.h"

static void what_is_a_character_stays(void **state)
{
	static const struct {
		const char *text, *json;
	} pieces[] = {
		{ "a", "a" },
		{ "\"\n", "\"\n" },
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "\xe2\x82\xac", "\xe2\x82\xac" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xff", "?" },
		{ "\xc0", "?" },
		{ "\xed\xa0\x80", "???" },	/* half of a pair */
		{ "\xf4\x90\x80\x80", "????" }, /* beyond the last */
		{ "\xc3.", "?." },		/* cut off */
		{ "\xe2\x82.", "??." },
		{ "\xf0\x9f\x98.", "???." },
	};
	enum { PIECES = sizeof(pieces) / sizeof(*pieces) };
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char text[64] = "", want[64] = "";
		size_t kinds = rnd(&seed) % 2 ? PIECES : 5;
		json_t *json;

		for (size_t i = rnd(&seed) % 9; i; i--) {
			size_t k = rnd(&seed) % kinds;

			strcat(text, pieces[k].text);
			strcat(want, pieces[k].json);
		}
		json = json_of_text(text);
		assert_string_equal(json_string_value(json), want);
		json_decref(json);
	}
}

/* At the end of a text as within it. */
static void what_is_cut_off_at_the_end_is_wrong(void **state)
{
	static const char *const cut[] = { "a\xc3", "a\xe2\x82", "a\xf0\x9f\x98" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		json_t *json = json_of_text(cut[i]);

		assert_int_equal(json_string_length(json), strlen(cut[i]));
		assert_int_equal(strspn(json_string_value(json) + 1, "?"), i + 1);
		json_decref(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_a_character_stays),
		cmocka_unit_test(what_is_cut_off_at_the_end_is_wrong),
	};

	return cmocka_run_group_tests_name("base/json_text", tests, NULL, NULL);
}
