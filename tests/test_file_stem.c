/* tests/test_file_stem.c - what a scenario is called after its file */
#include "base/arena.h"
#include "base/file.h"
#include "tests/check.h"

static void a_format_is_no_part_of_a_name_and_a_version_is(void **state)
{
	static const char *const names[][2] = {
		{ "h100.yaml", "h100" },
		{ "a/b.c/h100.yml", "h100" },
		{ "a/torch-2.11-eager.yaml", "torch-2.11-eager" },
		{ "qwen2.5-7b.json", "qwen2.5-7b" },
		{ "torch-2.11-eager", "torch-2.11-eager" },
		{ "llama3.1", "llama3.1" },
		{ "a.b/plan", "plan" },
		{ "plan", "plan" },
	};
	struct arena mem = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_string_equal(file_stem(&mem, names[i][0]), names[i][1]);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_is_no_part_of_a_name_and_a_version_is),
	};

	return cmocka_run_group_tests_name("file stem", tests, NULL, NULL);
}
