/* cli/apart.c - what a command writes is neither what it reads nor written twice */
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "cli/commands.h"

/* A file that is not there yet is known by its folder and its name. */
static bool same_name(const char *a, const char *b)
{
	const char *leaf_a = strrchr(a, '/'), *leaf_b = strrchr(b, '/');
	struct arena mem = { 0 };
	struct stat in_a, in_b;
	bool same = !strcmp(leaf_a ? leaf_a + 1 : a, leaf_b ? leaf_b + 1 : b) &&
		    !stat(file_beside(&mem, a, "."), &in_a) &&
		    !stat(file_beside(&mem, b, "."), &in_b) &&
		    in_a.st_dev == in_b.st_dev && in_a.st_ino == in_b.st_ino;

	arena_release(&mem);
	return same;
}

/* Pipes and devices may be named twice. */
static bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	bool is_a = !stat(a, &of_a), is_b = !stat(b, &of_b);

	if (is_a != is_b)
		return false;
	if (!is_a)
		return same_name(a, b);
	return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

static bool is_read(const struct own_files *f, const char *out)
{
	const struct shared *s = f->shared;
	bool read = false;

	for (size_t i = 0; i < sizeof(f->in) / sizeof(*f->in); i++)
		read |= f->in[i] && same_file(f->in[i], out);
	for (size_t i = 0; s && i < s->word.n; i++)
		read |= same_file(s->word.word[i], out);
	for (size_t i = 0; s && i < s->set.n; i++) {
		const char *value = strchr(s->set.word[i], '=');

		read |= value && same_file(value + 1, out);
	}
	return read;
}

bool files_apart(const struct own_files *f, struct ft_error *err)
{
	for (size_t i = 0; i < sizeof(f->out) / sizeof(*f->out); i++) {
		struct ft_mark at = { .file = f->out[i] };

		if (f->out[i] && is_read(f, f->out[i]))
			return ft_fail(
				err, &at,
				"is read, and would be written over: name another "
				"file to write");
		for (size_t k = 0; f->out[i] && k < i; k++)
			if (f->out[k] && same_file(f->out[k], f->out[i]))
				return ft_fail(
					err, &at,
					"would be written twice: name two files");
	}
	return true;
}
