/* base/find.c - where data of ours lie: names of GPUs, stacks, models ... become paths */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"

#ifndef FORETOKEN_PREFIX /* that of the installed libraries: scripts/install.mk */
#define FORETOKEN_PREFIX "/usr/local"
#endif

/* ROOT/leaf for a program in ROOT/place/...; NULL when it does not lie so. */
static const char *root_above(struct arena *mem, const char *program, const char *place,
			      const char *leaf)
{
	char *root = arena_text(mem, program), *slash;

	while ((slash = strrchr(root, '/'))) {
		bool here = !strcmp(slash + 1, place);

		*slash = '\0';
		if (here) {
			const char *found = arena_printf(mem, "%s%s", root, leaf);

			return file_exists(arena_printf(mem, "%s/hw/gpus", found)) ?
				       found :
				       NULL;
		}
	}
	return NULL;
}

/* PREFIX/share/foretoken of a shared library in PREFIX/lib, this code's own; else NULL. */
static const char *beside_library(struct arena *mem)
{
	static const char here; /* an address of this object */
	char path[PATH_MAX];
	Dl_info info;

	if (!dladdr(&here, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, "/libforetoken.so") ||
	    !realpath(info.dli_fname, path))
		return NULL;
	return root_above(mem, path, "lib", "/share/foretoken");
}

/* The folders that may hold ours: $FORETOKEN_DATA; what was installed with the shared
 * library; the tree in whose build/ the program lies; PREFIX/share/foretoken of a program
 * in PREFIX/bin; the prefix. Never the current folder: what lies there may be anybody's. */
static const char *data_root(struct arena *mem)
{
	const char *given = getenv("FORETOKEN_DATA"), *found;
	char self[PATH_MAX];
	ssize_t n;

	if (given && *given)
		return given;
	found = beside_library(mem);
	if (found)
		return found;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		found = root_above(mem, self, "build", "");
		if (!found)
			found = root_above(mem, self, "bin", "/share/foretoken");
		if (found)
			return found;
	}
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

const char **file_list(struct arena *mem, const char *folder, size_t *n,
		       struct ft_error *err)
{
	const char *path = arena_printf(mem, "%s/%s", data_root(mem), folder);
	struct ft_mark at = { .file = path };
	DIR *dir = opendir(path);
	const char **name;
	struct dirent *e;
	size_t cap = 0;
	bool ok;

	*n = 0;
	if (!dir) {
		file_fail(err, &at, "", errno);
		return NULL;
	}
	name = arena_grow(mem, NULL, &cap, sizeof(*name));
	for (errno = 0; (e = readdir(dir)); errno = 0) {
		if (!text_ends_with(e->d_name, ".yaml"))
			continue;
		if (*n == cap)
			name = ARENA_GROW(mem, name, &cap);
		name[(*n)++] = arena_text_n(mem, e->d_name, strlen(e->d_name) - 5);
	}
	ok = !errno || file_fail(err, &at, "", errno);
	closedir(dir);
	if (*n)
		qsort(name, *n, sizeof(*name), by_name);
	return ok ? name : NULL;
}

/* Is there a file? An error of another kind than its absence is told. */
static bool look(struct arena *mem, const char *path, const struct ft_mark *at,
		 bool *found, struct ft_error *err)
{
	struct stat st;

	*found = !stat(path, &st);
	if (*found || errno == ENOENT || errno == ENOTDIR)
		return true;
	return file_fail(err, at, arena_printf(mem, "%s: ", path), errno);
}

bool file_may_name(const struct ft_mark *at)
{
	return !at || !at->file || !text_begins_with(at->file, FILE_FOREIGN);
}

static const char *find_path(struct arena *mem, const char *name,
			     const struct ft_mark *at, struct ft_error *err)
{
	const char *path;
	bool found;

	if (!file_may_name(at)) {
		ft_fail(err, at,
			"'%.60s' is a path, and files are not read here; write the name "
			"of a preset, or the map itself",
			name);
		return NULL;
	}
	if (!look(mem, name, at, &found, err))
		return NULL;
	if (found)
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

static const char *find(struct arena *mem, const char *folder, const char *name,
			const struct ft_mark *at, struct ft_error *err)
{
	const char *path, *near, **known;
	struct ft_error ignored;
	bool found;
	size_t n;

	if (file_is_path(name))
		return find_path(mem, name, at, err);
	path = arena_printf(mem, "%s/%s/%s.yaml", data_root(mem), folder, name);
	if (!look(mem, path, at, &found, err))
		return NULL;
	if (found)
		return path;
	known = file_list(mem, folder, &n, &ignored);
	if (!known) {
		ft_fail(err, at,
			"'%s' cannot be looked up: there is no %s/%s; FORETOKEN_DATA "
			"names the folder that holds hw, models, stacks and cost",
			name, data_root(mem), folder);
		return NULL;
	}
	near = text_nearest(name, known, n);
	if (near && !strcmp(near, name))
		ft_fail(err, at, "there is no file %s, though its folder lists it",
			path);
	else if (near)
		ft_fail(err, at, "unknown name '%s' in %s/; did you mean '%s'?", name,
			folder, near);
	else
		ft_fail(err, at, "unknown name '%s' in %s/; known: %s", name, folder,
			n ? text_join(mem, known, n) : "none");
	return NULL;
}

const char *file_find(struct arena *mem, const char *folder, const char *name,
		      const struct ft_mark *at, struct ft_error *err)
{
	const char *path = find(mem, folder, name, at, err);

	if (!path)
		err->missing = !err->of_system;
	return path;
}
