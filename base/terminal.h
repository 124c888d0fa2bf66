/*
 * base/terminal.h - what differs where a person looks: width and colour
 *
 * Of the stream that is written to: a file or a pipe has neither, so that what programs read
 * does not depend on where they run. NO_COLOR (no-color.org) and TERM=dumb turn colour off.
 */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include <stddef.h>
#include <stdio.h>

enum terminal_style { TERMINAL_ERROR, TERMINAL_WARNING, TERMINAL_WINNER };

/* Columns of the terminal, 80 where it does not say; 0: it is none. */
size_t terminal_width(FILE *out);

/* What begins and ends a style on that stream; "" where there is no colour. */
const char *terminal_begin(FILE *out, enum terminal_style style);
const char *terminal_end(FILE *out);

#endif
