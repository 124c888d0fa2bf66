/* reports/plot.c - gnuplot run as a program on files we wrote */
#include "reports/plot.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

enum { LARGEST_SVG = 8 * 1024 * 1024 };

extern char **environ;

bool plot_begin(struct plot *p, struct arena *mem, const char *dir, const char *name,
		struct ft_error *err)
{
	*p = (struct plot){ .mem = mem, .dir = dir, .name = name };
	return file_begin(&p->data, arena_printf(mem, "%s/%s.dat", dir, name), err);
}

static bool run_gnuplot(const char *script, struct ft_error *err)
{
	char name[] = "gnuplot";
	char *argv[] = { name, (char *)script, NULL };
	int status = 0, why;
	pid_t pid;

	why = posix_spawnp(&pid, "gnuplot", NULL, NULL, argv, environ);
	if (why == ENOENT)
		return ft_fail(err, NULL,
			       "the report's plots need gnuplot; "
			       "install gnuplot-nox, or run without --report");
	if (why || waitpid(pid, &status, 0) != pid)
		return ft_fail(err, NULL, "gnuplot cannot be run: %s",
			       strerror(why ? why : errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return ft_fail(err, NULL, "gnuplot failed on %s", script);
	return true;
}

char *plot_draw(struct plot *p, const char *script, int height, struct ft_error *err)
{
	const char *base = arena_printf(p->mem, "%s/%s", p->dir, p->name);
	const char *gp = arena_printf(p->mem, "%s.gp", base);
	const char *svg = arena_printf(p->mem, "%s.svg", base);
	struct file_out f;
	size_t len;

	if (!file_commit(&p->data, err) || !file_begin(&f, gp, err))
		return NULL;
	fprintf(f.out,
		"# redraw with: gnuplot %s.gp\n"
		"set terminal svg size 720,%d font 'sans-serif,13' background '#ffffff'\n"
		"set output '%s'\n"
		"dat = '%s.dat'\n"
		"set style line 1 lc rgb '#2a6f97'\nset style line 2 lc rgb '#e07a5f'\n"
		"set style line 3 lc rgb '#f2cc8f'\nset style line 4 lc rgb '#81b29a'\n"
		"set style line 5 lc rgb '#6d597a'\nset style line 6 lc rgb '#9a9a9a'\n"
		"set border 3 lc rgb '#555555'\nset tics nomirror\n"
		"set grid ytics lc rgb '#dddddd'\n%s\n",
		p->name, height, svg, base, script);
	if (!file_commit(&f, err) || !run_gnuplot(gp, err))
		return NULL;
	return file_read(p->mem, svg, LARGEST_SVG, &len, err);
}
