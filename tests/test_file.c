/* tests/test_file.c - whole files in and out: what is read, written, replaced and left, on a disk and in a pipe */
#include <dirent.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "tests/check.h"

static char folder[64];

static const char *in_folder(struct arena *mem, const char *leaf)
{
	return arena_printf(mem, "%s/%s", folder, leaf);
}

static size_t entries(void)
{
	DIR *dir = opendir(folder);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

static void any_bytes(char *to, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (char)rnd(seed);
}

static void put(const char *path, const char *bytes, size_t n)
{
	struct file_out f;
	struct ft_error err;

	ok_or_say(file_begin(&f, path, &err), err);
	assert_int_equal(fwrite(bytes, 1, n, f.out), n);
	ok_or_say(file_commit(&f, &err), err);
}

/* The bytes, or that they are more than may be. */
static void is_read(const char *path, const char *bytes, size_t n, size_t limit)
{
	struct arena mem = { 0 };
	struct ft_error err = { .text = "" };
	size_t len = 0;
	char *got = file_read(&mem, path, limit, &len, &err);

	if (n <= limit) {
		ok_or_say(got, err);
		assert_int_equal(len, n);
		assert_memory_equal(got, bytes, n);
		assert_int_equal(got[n], '\0');
	} else {
		assert_null(got);
		assert_string_equal(err.file, path);
		assert_string_equal(
			err.text,
			arena_printf(&mem, "is too large: more than %zu bytes", limit));
	}
	arena_release(&mem);
}

/* Around the first block of 4096 bytes and its doubles, and limits around the size. */
static void bytes_are_read_up_to_their_limit(void **state)
{
	enum { MOST = 40000 };
	static const size_t near[] = {
		0, 1, 4094, 4095, 4096, 8191, 8192, 16384, 33000
	};
	static char bytes[MOST];
	struct arena mem = { 0 };
	const char *path = in_folder(&mem, "read");
	uint64_t seed = 1;

	(void)state;
	any_bytes(bytes, MOST, &seed);
	for (size_t i = 0; i < sizeof(near) / sizeof(*near); i++)
		for (size_t n = near[i]; n < near[i] + 3; n++)
			for (size_t limit = n ? n - 1 : 0; limit < n + 3; limit++) {
				int ends[2];

				put(path, bytes, n);
				is_read(path, bytes, n, limit);
				assert_int_equal(pipe(ends), 0);
				assert_int_equal(write(ends[1], bytes, n), n);
				close(ends[1]);
				is_read(arena_printf(&mem, "/dev/fd/%d", ends[0]),
					bytes, n, limit);
				close(ends[0]);
			}
	unlink(path);
	arena_release(&mem);
}

static void what_cannot_be_read_is_said(void **state)
{
	static const struct {
		const char *leaf, *says;
		bool of_system; /* not by a mistake of who asks */
	} cases[] = {
		{ "none", "No such file or directory", false },
		{ "file/below", "Not a directory", false },
		{ "loop", "Too many levels of symbolic links", true },
		{ "", "is a folder, not a file", false },
	};
	struct arena mem = { 0 };

	(void)state;
	put(in_folder(&mem, "file"), "x", 1);
	assert_int_equal(symlink("loop", in_folder(&mem, "loop")), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_error err = { .text = "" };
		size_t len;

		assert_null(file_read(&mem, in_folder(&mem, cases[i].leaf), 10, &len,
				      &err));
		assert_string_equal(err.text, cases[i].says);
		assert_int_equal(err.of_system, cases[i].of_system);
	}
	unlink(in_folder(&mem, "loop"));
	unlink(in_folder(&mem, "file"));
	arena_release(&mem);
}

/* Whoever reads meanwhile sees the old one; nothing else lies there before or after. */
static void a_file_is_replaced_whole_or_not_at_all(void **state)
{
	struct arena mem = { 0 };
	const char *path = in_folder(&mem, "out");
	mode_t mask = umask(0);

	(void)state;
	put(path, "old", 3);
	for (int kept = 0; kept < 2; kept++) {
		struct file_out f;
		struct ft_error err;
		struct stat st;

		ok_or_say(file_begin(&f, path, &err), err);
		fputs("new and longer", f.out);
		fflush(f.out);
		is_read(path, "old", 3, 100);
		assert_int_equal(entries(), f.nameless ? 1 : 2);
		if (kept)
			ok_or_say(file_commit(&f, &err), err);
		else
			file_abandon(&f);
		file_abandon(&f); /* does nothing then */
		assert_int_equal(entries(), 1);
		is_read(path, kept ? "new and longer" : "old", kept ? 14 : 3, 100);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0666); /* as umask lets it be */
	}
	umask(mask);
	unlink(path);
	arena_release(&mem);
}

static void a_pipe_is_written_as_it_is(void **state)
{
	struct arena mem = { 0 };
	struct file_out f;
	struct ft_error err;
	char got[8] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	ok_or_say(file_begin(&f, arena_printf(&mem, "/dev/fd/%d", ends[1]), &err), err);
	assert_true(f.direct);
	fputs("hello", f.out);
	ok_or_say(file_commit(&f, &err), err);
	assert_int_equal(read(ends[0], got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
	close(ends[0]);
	close(ends[1]);
	arena_release(&mem);
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
	struct arena mem = { 0 };
	struct file_out f;
	struct ft_error err;
	char *path = arena_bytes(&mem, 5000);

	(void)state;
	assert_false(file_begin(&f, in_folder(&mem, "none/out"), &err));
	assert_string_equal(err.text, "cannot be written: No such file or directory");
	memset(path, 'n', sizeof(f.path));
	path[sizeof(f.path)] = '\0';
	assert_false(file_begin(&f, path, &err));
	assert_string_equal(err.text, "is too long a path");
	path[sizeof(f.path) - 1] = '\0';
	assert_true(!file_begin(&f, path, &err) || !file_commit(&f, &err));
	assert_string_equal(err.text, "cannot be written: File name too long");
	/* a folder took the name meanwhile */
	ok_or_say(file_begin(&f, in_folder(&mem, "taken"), &err), err);
	ok_or_say(file_folder(in_folder(&mem, "taken"), &err), err);
	ok_or_say(file_folder(in_folder(&mem, "taken"), &err), err);
	assert_false(file_commit(&f, &err));
	assert_string_equal(err.text, "cannot be written: Is a directory");
	assert_int_equal(entries(), 1);
	assert_int_equal(rmdir(in_folder(&mem, "taken")), 0);
	assert_false(file_folder(in_folder(&mem, "a/b"), &err));
	assert_string_equal(err.text, "cannot be made: No such file or directory");
	arena_release(&mem);
}

static void names_of_files_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		bool path;
	} names[] = { { "h100", false },    { "a/h100", true }, { "h100.yaml", true },
		      { "h100.yml", true }, { "h.json", true }, { "yaml", false },
		      { "h100.csv", false } };
	static const struct {
		const char *path, *stem;
	} stems[] = { { "a/b.c/nccl-2.20", "nccl-2.20" },
		      { "a/step.json", "step" },
		      { "step", "step" },
		      { "a.b/step", "step" },
		      { "step.v2", "step.v2" },
		      { "step.", "step" } };
	struct arena mem = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(file_is_path(names[i].name), names[i].path);
	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++)
		assert_string_equal(file_stem(&mem, stems[i].path), stems[i].stem);
	assert_true(file_may_name(NULL));
	assert_true(file_may_name(&(struct ft_mark){ .file = NULL }));
	assert_true(file_may_name(&(struct ft_mark){ .file = "a<" }));
	assert_false(file_may_name(&(struct ft_mark){ .file = "<a" }));
	assert_string_equal(file_beside(&mem, "a/b/c", "d"), "a/b/d");
	assert_string_equal(file_beside(&mem, "c", "d"), "d");
	assert_string_equal(file_input("-"), "/dev/stdin");
	assert_string_equal(file_input("--"), "--");
	arena_release(&mem);
}

static int make_folder(void **state)
{
	(void)state;
	own_path(folder, "files");
	return mkdir(folder, 0700);
}

static int drop_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_read_up_to_their_limit),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(a_file_is_replaced_whole_or_not_at_all),
		cmocka_unit_test(a_pipe_is_written_as_it_is),
		cmocka_unit_test(what_cannot_be_written_leaves_nothing),
		cmocka_unit_test(names_of_files_are_told_apart),
	};

	return cmocka_run_group_tests_name("base/file", tests, make_folder,
					   drop_folder);
}
