/* cli/calibrate_probe.c - foretoken calibrate probe: a child process measures, we keep */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "cli/calibrate.h"

enum { SKIPPED = 77 };

static bool write_done(struct ft_store *store, const char *backend, FILE *out,
		       struct ft_error *err)
{
	const struct ft_measurement *m;
	size_t n;

	m = ft_store_measurements(store, NULL, 0, &n, err);
	for (size_t i = 0; m && i < n; i++)
		if (!strcmp(m[i].backend, backend) &&
		    (!strcmp(m[i].status, "ok") || !strcmp(m[i].status, "unsupported")))
			fprintf(out, "%s\n", m[i].cell);
	return m && !fflush(out);
}

/* foretoken-probe lies beside this program. */
static void find_probe(const struct calibrate_args *a, char *path, size_t n)
{
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (a->probe || len <= 0) {
		snprintf(path, n, "%s", a->probe ? a->probe : "foretoken-probe");
		return;
	}
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, n, "%s/foretoken-probe", self);
}

static pid_t start_probe(const struct calibrate_args *a, int file, int *from)
{
	char path[4200], done[32];
	const char *argv[10] = { path, "-b", a->backend ? a->backend : "cpu", "-d",
				 done };
	int at = 5, ends[2];
	pid_t child;

	find_probe(a, path, sizeof(path));
	snprintf(done, sizeof(done), "/proc/self/fd/%d",
		 file); /* the child has it, too */
	if (a->quick)
		argv[at++] = "-q";
	if (a->limit) {
		argv[at++] = "-l";
		argv[at++] = a->limit;
	}
	argv[at] = NULL;
	if (pipe(ends))
		return -1;
	child = fork();
	if (child == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execv(path, (char *const *)argv);
		fprintf(stderr,
			"foretoken: error: %s: %s; build it with `make "
			"probes`\n",
			path, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	*from = ends[0];
	return child;
}

/* Lines of the probe into the store, as they come. */
static bool drain(struct ft_store *store, FILE *in, size_t *n, struct ft_error *err)
{
	char *line = NULL;
	size_t cap = 0;
	bool ok = true, broken;

	while (ok && getline(&line, &cap, in) > 0) {
		ok = ft_store_line(store, line, "foretoken-probe", &broken, err);
		*n += ok && !broken;
	}
	free(line);
	return ft_store_end(store, err) && ok;
}

/* The cells that the store holds, in a file without a name, which nothing leaves behind; below 0: *err. */
static int done_file(const struct calibrate_args *a, struct ft_store *store,
		     struct ft_error *err)
{
	int file = memfd_create("done", 0), copy = file < 0 ? -1 : dup(file);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	bool ok = out && write_done(store, a->backend ? a->backend : "cpu", out, err);

	if (!out)
		ft_fail(err, NULL, "no more files: %s", strerror(errno));
	if (!out && copy >= 0)
		close(copy);
	if (out && fclose(out) && ok)
		ok = ft_fail(err, NULL, "what is done cannot be told: %s",
			     strerror(errno));
	if (ok)
		return file;
	if (file >= 0)
		close(file);
	return -1;
}

int calibrate_probe(const struct calibrate_args *a, struct ft_store *store)
{
	int from = -1, status = -1;
	struct ft_error err = { .text = "the probe cannot be started" };
	int done = done_file(a, store, &err);
	pid_t child = done < 0 ? -1 : start_probe(a, done, &from);
	bool ok = child > 0;
	size_t n = 0;
	FILE *in;

	if (done >= 0)
		close(done);
	if (child > 0) {
		in = fdopen(from, "r");
		ok = in && drain(store, in, &n, &err);
		if (in)
			fclose(in); /* a probe that still writes then stops */
		waitpid(child, &status, 0);
	}
	if (!ok)
		return complain(&err);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED ? SKIPPED :
									     1;
	printf("%zu lines into %s\n", n, a->store);
	return finish_output();
}
