/* tests/test_recording_is.c - which files are recordings, by what they begin with */

#include "foretoken/recorded.h"
#include "tests/check.h"

enum { LOOK = 65536 }; /* so far it is looked */

static bool is(const char *leaf, const char *text, size_t n, size_t spaces)
{
	char name[64];
	FILE *f = fopen(own_path(name, leaf), "wb");
	bool answer;

	assert_non_null(f);
	for (size_t i = 0; i < spaces; i++)
		putc(" \t\r\n"[i % 4], f);
	fwrite(text, 1, n, f);
	fclose(f);
	answer = ft_recording_is(name);
	unlink(name);
	return answer;
}

#define IS(leaf, text, spaces) is(leaf, text, sizeof(text) - 1, spaces)

static void packed_files_and_databases_are(void **state)
{
	(void)state;
	assert_true(IS("a", "\x1f\x8b\x08\0", 0));
	assert_true(IS("a", "\x28\xb5\x2f\xfd", 0));
	assert_true(IS("a", "SQLite format 3\0.", 0));
	assert_true(IS("a.et", "x", 0));
	/* too short, or with something else in front */
	assert_false(IS("a", "\x1f\x8b\x08", 0));
	assert_false(IS("a", "\x28\xb5\x2f", 0));
	assert_false(IS("a", "SQLite format 3", 0));
	assert_false(IS("a", "SQLite format 4\0.", 0));
	assert_false(IS("a", "\x28\xb5\x2f\xfe", 0));
	assert_false(IS("a", "\x1f\x8b\x08\0", 1));
	assert_false(IS("a.et", "", 0));
	assert_false(IS("a.etc", "x", 0));
	assert_false(ft_recording_is("/nowhere/at/all.et"));
	assert_false(ft_recording_is("tests"));
}

/* Objects whose key is seen within the first 64 KiB. */
static void objects_are_by_their_key(void **state)
{
	static const char events[] = "{\"traceEvents\"",
			  schema[] = "{\"schemaVersion\"";

	(void)state;
	for (size_t spaces = 0; spaces < 9; spaces++) {
		assert_true(IS("a", "{\"traceEvents\": []}", spaces));
		assert_true(IS("a", "{\"a\": {\"schemaVersion\": 1}}", spaces));
		assert_false(IS("a", "[\"traceEvents\"]", spaces));
		assert_false(IS("a", "{traceEvents: []}", spaces));
		assert_false(IS("a", "{\"traceEvent\": []}", spaces));
		assert_false(IS("a", "model: {\"traceEvents\": 1}", spaces));
	}
	for (size_t at = LOOK - 40; at < LOOK + 2; at++) {
		assert_int_equal(IS("a", events, at), at + sizeof(events) - 1 <= LOOK);
		assert_int_equal(IS("a", schema, at), at + sizeof(schema) - 1 <= LOOK);
	}
	assert_false(IS("a", "", 0));
	assert_false(IS("a", "", 2 * LOOK));
}

/* A list of events alone, which Chrome takes, too. */
static void lists_are_by_their_first_event(void **state)
{
	(void)state;
	for (size_t spaces = 0; spaces < 9; spaces++) {
		assert_true(IS("a", "[{\"ph\": \"X\"}]", spaces));
		assert_true(IS("a", "[\n {\"name\": \"k\", \"ph\": \"X\"}", spaces));
		assert_false(IS("a", "[]", spaces));
		assert_false(IS("a", "[1, {\"ph\": \"X\"}]", spaces));
		assert_false(IS("a", "[{\"name\": \"k\"}]", spaces));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_files_and_databases_are),
		cmocka_unit_test(objects_are_by_their_key),
		cmocka_unit_test(lists_are_by_their_first_event),
	};

	return cmocka_run_group_tests_name("recorded/recording", tests, NULL, NULL);
}
