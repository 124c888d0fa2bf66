/* tests/test_input.c - the bytes of a recorded step's file, where the system does not give them */
#include <errno.h>

#include "base/arena.h"
#include "recorded/input.h"
#include "tests/check.h"

/* A disk that fails behind its first bytes. */
static ssize_t fails_later(void *at, char *to, size_t n)
{
	static const char first[] = "{\"traceEvents\":[";
	off_t *done = at;

	if (*done || n < sizeof(first)) {
		errno = EIO;
		return -1;
	}
	memcpy(to, first, sizeof(first) - 1);
	return *done = sizeof(first) - 1;
}

static int back_to_its_begin(void *at, off64_t *to, int whence)
{
	assert_true(*to == 0 && whence == SEEK_SET);
	*(off_t *)at = 0;
	return 0;
}

static void a_disk_that_fails_is_told_in_the_systems_words(void **state)
{
	const cookie_io_functions_t disk = { .read = fails_later,
					     .seek = back_to_its_begin };
	struct arena mem = { 0 };
	struct ft_error err = { .of_system = false };
	char bytes[4096];
	struct input *in;
	off_t at = 0;
	size_t n;

	(void)state;
	in = input_of(&mem, fopencookie(&at, "r", disk), "step.json", &err);
	ok_or_say(in, err);
	assert_false(input_read(in, bytes, sizeof(bytes), &n, &err));
	assert_string_equal(err.file, "step.json");
	assert_string_equal(err.text, strerror(EIO));
	assert_true(err.of_system);
	input_close(in);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disk_that_fails_is_told_in_the_systems_words),
	};

	return cmocka_run_group_tests_name("recorded/input", tests, NULL, NULL);
}
