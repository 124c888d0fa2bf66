/* base/gnuplot.c - scripts that hold no foreign words, run without a shell */
#include "base/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"

extern char **environ;

enum { QUOTE = 0x22 };

/* In XML ]]> ends a section and may stand in no text, and gnuplot writes > as it is: a space of no width (U+200B) parts them. */
static char *put(char *to, const char *text, const char *at)
{
	if (*at == '>' && at - text > 1 && at[-1] == ']' && at[-2] == ']')
		to = stpcpy(to, "\xe2\x80\x8b");
	*to++ = *at;
	return to;
}

const char *gnuplot_quote(struct arena *mem, const char *text, struct ft_error *err)
{
	char *quoted = arena_alloc(mem, 4 * strlen(text) + 3, 1), *p = quoted;

	*p++ = '\'';
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 127) {
			ft_fail(err, NULL, "a plot's text holds a control character");
			return NULL;
		}
		if (*at == '\'')
			*p++ = '\'';
		p = put(p, text, at);
	}
	*p++ = '\'';
	*p = '\0';
	return quoted;
}

const char *gnuplot_cell(struct arena *mem, const char *text)
{
	char *cell = arena_alloc(mem, 4 * strlen(text) + 3, 1), *p = cell;

	*p++ = QUOTE;
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*p++ = ' ';
		else if (*at == QUOTE || *at == '\\') /* gnuplot reads octal numbers */
			p = stpcpy(p, *at == QUOTE ? "\\042" : "\\134");
		else
			p = put(p, text, at);
	*p++ = QUOTE;
	*p = '\0';
	return cell;
}

bool gnuplot_script(struct arena *mem, const char *folder, const char *name,
		    const char *terminal, const char *script, struct ft_error *err)
{
	struct file_out f;

	if (!file_begin(&f, arena_printf(mem, "%s/%s.gp", folder, name), err))
		return false;
	/* foretoken itself takes the figure from stdout, so that it appears whole */
	fprintf(f.out,
		"# redraw with: gnuplot %s.gp\n"
		"set terminal svg %s\n"
		"if (!exists('to_stdout')) set output '%s.svg'\n%s\n",
		name, terminal, name, script);
	return file_commit(&f, err);
}

/* 0, or why the program cannot run; *status is what it ended with. */
static int run(const char *folder, int out, char *const argv[], int *status)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int why = posix_spawn_file_actions_init(&actions);

	if (why)
		return why;
	why = posix_spawn_file_actions_addchdir_np(&actions, folder);
	if (!why)
		why = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!why)
		why = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (why)
		return why;
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* gnuplot does not say that a disk was full: a figure without its end is none. */
static bool is_whole(int fd, off_t size)
{
	char end[17] = "";
	off_t from = size > 16 ? size - 16 : 0;

	return pread(fd, end, 16, from) > 0 && strstr(end, "</svg>");
}

bool gnuplot_run(struct arena *mem, const char *folder, const char *name,
		 struct ft_error *err)
{
	struct ft_mark at = { .file = arena_printf(mem, "%s/%s.gp", folder, name) };
	char program[] = "gnuplot", plain[] = "-d", e[] = "-e", set[] = "to_stdout = 1";
	char *argv[] = {
		program, plain, e, set, arena_printf(mem, "%s.gp", name), NULL
	};
	struct file_out f;
	int status = 0, why;
	struct stat st;

	if (!file_begin(&f, arena_printf(mem, "%s/%s.svg", folder, name), err))
		return false;
	why = run(folder, fileno(f.out), argv, &status);
	if (why == ENOENT)
		ft_fail(err, NULL,
			"plots need gnuplot, which is not installed; install "
			"gnuplot-nox");
	else if (why)
		ft_fail(err, NULL, "gnuplot cannot be run: %s", strerror(why));
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		ft_fail(err, &at, "gnuplot failed on this script");
	else if (fstat(fileno(f.out), &st) || !st.st_size)
		ft_fail(err, &at, "gnuplot drew nothing from this script");
	else if (!is_whole(fileno(f.out), st.st_size))
		ft_fail(err, &at,
			"gnuplot did not write all of this script's figure; is the disk "
			"full?");
	else
		return file_commit(&f, err);
	file_abandon(&f);
	return false;
}
