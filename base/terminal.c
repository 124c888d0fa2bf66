/* base/terminal.c - what differs where a person looks: width and colour */
#include "base/terminal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_terminal(FILE *out)
{
	int fd = fileno(out); /* -1: a stream of memory */

	return fd >= 0 && isatty(fd);
}

size_t terminal_width(FILE *out)
{
	struct winsize size;

	if (!is_terminal(out))
		return 0;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

static bool colours(FILE *out)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	return is_terminal(out) && !(none && *none) && term &&
	       strcmp(term, "dumb") != 0;
}

const char *terminal_begin(FILE *out, enum terminal_style style)
{
	static const char *const begin[] = { "\033[1;31m", "\033[1;33m", "\033[1m" };

	return colours(out) ? begin[style] : "";
}

const char *terminal_end(FILE *out)
{
	return colours(out) ? "\033[0m" : "";
}
