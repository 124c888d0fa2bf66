/*
 * base/gnuplot.h - plots by gnuplot, a program that can run commands
 *
 * So nothing of a user's reaches a script but through `gnuplot_quote`, there is no
 * shell, the user's own gnuplotrc is not read, and scripts name files relative to
 * their folder: `gnuplot NAME.gp` redraws a figure there.
 */
#ifndef BASE_GNUPLOT_H
#define BASE_GNUPLOT_H

#include "foretoken/base.h"

struct arena;

/* text as a gnuplot string in single quotes; one with control characters is an error. */
const char *gnuplot_quote(struct arena *mem, const char *text, struct ft_error *err)
	__attribute__((warn_unused_result));

/* text between double quotes for a data file; a control character becomes a space. */
const char *gnuplot_cell(struct arena *mem, const char *text);

/* Write folder/NAME.gp: it sets the terminal and the output, then does `script`.
 * terminal: what follows `set terminal svg`. */
bool gnuplot_script(struct arena *mem, const char *folder, const char *name,
		    const char *terminal, const char *script, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Run folder/NAME.gp, which makes folder/NAME.svg: whole, or as it was before. */
bool gnuplot_run(struct arena *mem, const char *folder, const char *name,
		 struct ft_error *err) __attribute__((warn_unused_result));

#endif
