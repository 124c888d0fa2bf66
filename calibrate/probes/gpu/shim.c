/* calibrate/probes/gpu/shim.c - the loader of attention_shim.h */
#include "calibrate/probes/gpu/shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* It becomes a column of files: lower case, digits, dash, and nobody else's. */
static int good_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n > 0 && n < 24 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
	       strcmp(name, "unfused") && strcmp(name, "cudnn");
}

static const struct ft_shim *believed(const struct ft_shim *s, char *why, size_t n_why)
{
	if (!s)
		snprintf(why, n_why, FT_SHIM_FILE ": says it cannot run here");
	else if (s->version != FT_SHIM_VERSION)
		snprintf(why, n_why,
			 FT_SHIM_FILE ": is of version %d, this "
				      "probe wants %d; build it again",
			 (int)s->version, FT_SHIM_VERSION);
	else if (!good_name(s->name))
		snprintf(why, n_why,
			 FT_SHIM_FILE ": its name must be lower "
				      "case, not 'cudnn' or 'unfused'");
	else if (!s->workspace || !s->run)
		snprintf(why, n_why, FT_SHIM_FILE ": lacks a function");
	else
		return s;
	return NULL;
}

const struct ft_shim *shim_load(const char *folder, char *why, size_t n_why)
{
	const struct ft_shim *(*get)(void) = NULL;
	char path[4300] = FT_SHIM_FILE;
	void *lib;

	why[0] = '\0';
	if (folder) {
		snprintf(path, sizeof(path), "%.4200s/" FT_SHIM_FILE, folder);
		if (access(path, F_OK))
			snprintf(path, sizeof(path), FT_SHIM_FILE);
	}
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		const char *said = dlerror();

		if (strchr(path, '/'))
			snprintf(why, n_why, "%s", said ? said : path);
		return NULL;
	}
	*(void **)&get = dlsym(lib, FT_SHIM_GET);
	if (!get) {
		snprintf(why, n_why, "%s: lacks " FT_SHIM_GET, path);
		dlclose(lib);
		return NULL;
	}
	return believed(get(), why, n_why);
}
