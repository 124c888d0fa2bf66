/* tests/test_input.c - the bytes of a recorded step's file, where the system does not give them */
#include <errno.h>

#include "base/arena.h"
#include "recorded/input.h"
#include "tests/check.h"

/* The first bytes of a file: as it is, packed by gzip, by zstd. */
static const struct begin {
	const char *bytes;
	size_t n;
} begins[] = {
	{ "{\"traceEvents\":[", 16 },
	{ "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10 },
	{ "\x28\xb5\x2f\xfd\x04\x58", 6 },
};

struct disk {
	const struct begin *begin;
	bool done;
};

/* It fails behind its first bytes. */
static ssize_t fails_later(void *at, char *to, size_t n)
{
	struct disk *d = at;

	if (d->done || n < d->begin->n) {
		errno = EIO;
		return -1;
	}
	memcpy(to, d->begin->bytes, d->begin->n);
	d->done = true;
	return (ssize_t)d->begin->n;
}

static int back_to_its_begin(void *at, off64_t *to, int whence)
{
	assert_true(*to == 0 && whence == SEEK_SET);
	((struct disk *)at)->done = false;
	return 0;
}

static void a_disk_that_fails_is_told_in_the_systems_words(void **state)
{
	const cookie_io_functions_t calls = { .read = fails_later,
					      .seek = back_to_its_begin };

	(void)state;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct disk disk = { .begin = &begins[i] };
		struct arena mem = { 0 };
		struct ft_error err = { .of_system = false };
		char bytes[4096];
		struct input *in = input_of(&mem, fopencookie(&disk, "r", calls),
					    "step.json", &err);
		bool ok = true;
		size_t n = 1;

		ok_or_say(in, err);
		while (ok && n)
			ok = input_read(in, bytes, sizeof(bytes), &n, &err);
		assert_false(ok);
		assert_string_equal(err.file, "step.json");
		assert_string_equal(err.text, strerror(EIO));
		assert_true(err.of_system);
		input_close(in);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disk_that_fails_is_told_in_the_systems_words),
	};

	return cmocka_run_group_tests_name("recorded/input", tests, NULL, NULL);
}
