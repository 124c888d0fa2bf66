/* cli/common.c - errors with their line, progress, and a checked stdout */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/arena.h"
#include "cli/commands.h"
#include "foretoken/study.h"

void words_add(struct words *w, const char *word, const struct argp_state *state)
{
	if (w->n == LIMIT_OPTION_WORDS)
		argp_error(state, "more than %d of these", (int)LIMIT_OPTION_WORDS);
	w->word[w->n++] = word;
}

/* Only a file that can be read again as it was: no pipe, no device. */
static FILE *open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	FILE *f = NULL;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/* What is shown of a line: its beginning, or, of a place behind that, what is about it. */
enum { SHOWN_WIDTH = 160, SHOWN_ABOUT = 110, SHOWN_BEFORE = 70 };

static int begin_of(int column)
{
	return column > SHOWN_WIDTH ? column - SHOWN_BEFORE : 0;
}

/* The line from that byte on, of a file or of an option such as "--set a=b" that stands for one. */
static bool line_of(const struct ft_error *err, int from, char *line, size_t n)
{
	FILE *f;
	int c = 0;

	if (text_begins_with(err->file, "--")) {
		snprintf(line, n, "%s",
			 (size_t)from < strlen(err->file) ? err->file + from : "");
		return true;
	}
	f = open_regular(err->file);
	if (!f)
		return false;
	for (int i = 1; i < err->line && c != EOF; i++)
		while ((c = getc(f)) != EOF && c != '\n')
			;
	for (int i = 0; i < from && c != EOF; i++)
		if ((c = getc(f)) == '\n')
			c = EOF;
	if (c == EOF || !fgets(line, (int)n, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(f);
	return line[0] || !from;
}

/* The first byte from here on that begins a letter of UTF-8. */
static char *letter(char *p)
{
	while (((unsigned char)*p & 0xc0) == 0x80)
		p++;
	return p;
}

/* Replaces control characters, which a terminal would obey, by question marks. */
static void put_questions(char *line)
{
	for (char *p = line; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 127)
			*p = '?';
}

static void caret(char *line, int from, int column)
{
	const char *before = from ? "..." : "";
	char *begin = from ? letter(line) : line, *end = begin;
	int width = from ? SHOWN_ABOUT : SHOWN_WIDTH;

	put_questions(line);
	while (*end && end - line < width)
		end++;
	end = letter(end);
	fprintf(stderr, "  %s%.*s%s\n  %*s", before, (int)(end - begin), begin,
		from && *end ? "..." : "", (int)strlen(before), "");
	for (int i = (int)(begin - line); i + 1 < column - from && line + i < end; i++)
		if (((unsigned char)line[i] & 0xc0) != 0x80)
			putc(line[i] == '\t' ? '\t' : ' ', stderr);
	fputs("^\n", stderr);
}

void remark_idle_keys(const struct ft_scenario *s, const char *label)
{
	const char *key, *where;

	for (size_t i = 0; (key = ft_scenario_idle(s, i, &where)); i++)
		fprintf(stderr, "foretoken: %s%s%s has an effect only %s\n", label,
			*label ? ": " : "", key, where);
}

int complain(const struct ft_error *err)
{
	int from = begin_of(err->column);
	char line[512], file[1024];

	fflush(stdout);
	text_visible(err->file, file, sizeof(file));
	if (!err->file[0])
		fputs("foretoken: ", stderr);
	else if (err->line <= 0)
		fprintf(stderr, "%s: ", file);
	else
		fprintf(stderr, "%s:%d:%d: ", file, err->line, err->column);
	fprintf(stderr, "%serror:%s %s\n", terminal_begin(stderr, TERMINAL_ERROR),
		terminal_end(stderr), err->text);
	if (err->file[0] && err->line > 0 && line_of(err, from, line, sizeof(line)))
		caret(line, from, err->column);
	return 1;
}

/* A word at *to; one that a shell would take apart stands in single quotes. */
static char *put_word(char *to, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_-+=,./:@%";

	if (*word && !word[strspn(word, plain)])
		return stpcpy(to, word);
	*to++ = '\'';
	for (; *word; word++) {
		if (*word == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *word;
	}
	*to++ = '\'';
	*to = '\0';
	return to;
}

char *command_line(int argc, char **argv)
{
	size_t n = strlen(argv[0]) + 1;
	char *text, *to;

	for (int i = 1; i < argc; i++)
		n += 4 * strlen(argv[i]) + 3; /* at worst all of it quotes */
	text = allocated(malloc(n));
	to = stpcpy(text, argv[0]);
	for (int i = 1; i < argc; i++) {
		*to++ = ' ';
		to = put_word(to, argv[i]);
	}
	return text;
}

bool beside_program(const char *leaf, char *path, size_t n)
{
	static const char *const places[] = { "/", "/../lib/foretoken/" };
	char program[PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (len < 0)
		return false;
	program[len] = '\0';
	slash = strrchr(program, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		int all = snprintf(path, n, "%s%s%s", program, places[i], leaf);

		if (all > 0 && (size_t)all < n && !access(path, R_OK))
			return true;
	}
	return false;
}

int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "foretoken: error: cannot write the answer: %s\n",
		strerror(errno));
	(void)!freopen("/dev/null", "w",
		       stdout); /* said once: check_output asks again */
	return 1;
}

void check_output(void)
{
	if (finish_output())
		_exit(1);
}

void parse_arguments(const struct argp *argp, int argc, char **argv, void *input)
{
	error_t why = argp_parse(argp, argc, argv, 0, NULL, input);

	if (why) {
		fprintf(stderr, "foretoken: error: the arguments cannot be read: %s\n",
			strerror(why));
		exit(1);
	}
}

bool whole_argument(const char *text, int64_t least, int64_t most, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return !errno && end != text && !*end && *out >= least && *out <= most;
}

struct progress progress_begin(const char *what)
{
	double now = clock_now_s();

	return (struct progress){ .what = what,
				  .to = stderr,
				  .terminal = isatty(STDERR_FILENO),
				  .begun_s = now,
				  .told_s = now,
				  .pace_s = now };
}

void progress_tell(void *context, size_t finished, size_t fresh, size_t total)
{
	progress_say(context, clock_now_s(), finished, fresh, total);
}
