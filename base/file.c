/* base/file.c - reading whole, writing beside and renaming, finding our data */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/text.h"

static bool fail_path(struct ft_error *err, const char *path, const char *what)
{
	struct ft_mark at = { path, 0, 0 };

	return ft_fail(err, &at, "%s", what);
}

char *file_read(struct arena *mem, const char *path, size_t limit, size_t *len,
		struct ft_error *err)
{
	FILE *f = fopen(path, "rb");
	size_t cap = 0, n = 0;
	char *text = NULL;
	struct stat st;

	if (!f) {
		fail_path(err, path, strerror(errno));
		return NULL;
	}
	if (!fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
		fail_path(err, path, "is a folder, not a file");
		goto out;
	}
	cap = st.st_size > 0 && (uintmax_t)st.st_size < limit ? (size_t)st.st_size + 1 :
								4096;
	text = arena_alloc(mem, cap + 1, 1);
	for (;;) {
		size_t got = fread(text + n, 1, cap - n, f);

		n += got;
		if (n > limit) {
			fail_path(err, path, "is too large to be what it should be");
			text = NULL;
			goto out;
		}
		if (!got)
			break;
		if (n == cap) {
			char *more = arena_alloc(mem, 2 * cap + 1, 1);

			memcpy(more, text, n);
			text = more;
			cap *= 2;
		}
	}
	if (ferror(f)) {
		fail_path(err, path, "cannot be read");
		text = NULL;
		goto out;
	}
	text[n] = '\0';
	*len = n;
	digest_bytes(&mem->read, text, n);
out:
	fclose(f);
	return text;
}

bool file_begin(struct file_out *f, const char *path, struct ft_error *err)
{
	*f = (struct file_out){ 0 };
	if (strlen(path) >= sizeof(f->path))
		return fail_path(err, path, "is too long a path");
	memcpy(f->path, path, strlen(path) + 1);
	snprintf(f->beside, sizeof(f->beside), "%s.part%ld", path, (long)getpid());
	f->out = fopen(f->beside, "wb");
	if (!f->out) {
		int why = errno;
		struct ft_mark at = { path, 0, 0 };

		return ft_fail(err, &at, "cannot be written: %s", strerror(why));
	}
	return true;
}

bool file_commit(struct file_out *f, struct ft_error *err)
{
	struct ft_mark at = { f->path, 0, 0 };
	bool bad = ferror(f->out) != 0;

	bad |= fflush(f->out) != 0;
	bad |= fsync(fileno(f->out)) != 0 && errno != EINVAL;
	bad |= fclose(f->out) != 0;
	f->out = NULL;
	if (bad || rename(f->beside, f->path)) {
		ft_fail(err, &at, "cannot be written: %s", strerror(errno));
		unlink(f->beside);
		return false;
	}
	return true;
}

void file_abandon(struct file_out *f)
{
	if (!f->out)
		return;
	fclose(f->out);
	f->out = NULL;
	unlink(f->beside);
}

bool file_folder(const char *path, struct ft_error *err)
{
	struct ft_mark at = { path, 0, 0 };

	if (!mkdir(path, 0777) || errno == EEXIST)
		return true;
	return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
}

bool file_exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

/* The folders that may hold ours: $FORETOKEN_DATA; the tree the program was
 * built in (build/rel/foretoken and build/rel/tests/x lie in it); the prefix. */
static const char *data_root(struct arena *mem)
{
	const char *given = getenv("FORETOKEN_DATA");
	char self[PATH_MAX];
	ssize_t n;

	if (given && *given)
		return given;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		for (int up = 0; up < 5; up++) {
			char *slash = strrchr(self, '/');
			char *probe;

			if (!slash)
				break;
			*slash = '\0';
			probe = arena_printf(mem, "%s/hw/gpus", self);
			if (file_exists(probe))
				return arena_text(mem, self);
			probe = arena_printf(mem, "%s/share/foretoken", self);
			if (file_exists(probe))
				return probe;
		}
	}
	if (file_exists("hw/gpus"))
		return ".";
	return FORETOKEN_PREFIX "/share/foretoken";
}

bool file_is_path(const char *name)
{
	return strchr(name, '/') || text_ends_with(name, ".yaml") ||
	       text_ends_with(name, ".yml") || text_ends_with(name, ".json");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **file_list(struct arena *mem, const char *folder, size_t *n)
{
	DIR *dir = opendir(arena_printf(mem, "%s/%s", data_root(mem), folder));
	const char **name = NULL;
	struct dirent *e;
	size_t cap = 0;

	*n = 0;
	while (dir && (e = readdir(dir))) {
		if (!text_ends_with(e->d_name, ".yaml"))
			continue;
		if (*n == cap)
			name = ARENA_GROW(mem, name, &cap);
		name[(*n)++] = arena_text_n(mem, e->d_name, strlen(e->d_name) - 5);
	}
	if (dir)
		closedir(dir);
	if (*n)
		qsort(name, *n, sizeof(*name), by_name);
	return name;
}

const char *file_find(struct arena *mem, const char *folder, const char *name,
		      const struct ft_mark *at, struct ft_error *err)
{
	const char *path, *near, **known;
	size_t n;

	if (file_is_path(name)) {
		if (file_exists(name))
			return arena_text(mem, name);
		/* a path in a file may be meant from that file's folder */
		if (at && at->file && name[0] != '/') {
			path = file_beside(mem, at->file, name);
			if (file_exists(path))
				return path;
		}
		ft_fail(err, at, "there is no file %s", name);
		return NULL;
	}
	path = arena_printf(mem, "%s/%s/%s.yaml", data_root(mem), folder, name);
	if (file_exists(path))
		return path;
	known = file_list(mem, folder, &n);
	near = text_nearest(name, known, n);
	if (near)
		ft_fail(err, at, "unknown name '%s' in %s/; did you mean '%s'?", name,
			folder, near);
	else
		ft_fail(err, at, "unknown name '%s' in %s/; known: %s", name, folder,
			n ? text_join(mem, known, n) : "none");
	return NULL;
}

char *file_beside(struct arena *mem, const char *path, const char *leaf)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return arena_text(mem, leaf);
	return arena_printf(mem, "%.*s/%s", (int)(slash - path), path, leaf);
}
