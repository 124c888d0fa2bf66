/*
 * reports/plot.h - plots: a data file and a gnuplot script beside each SVG
 *
 * A plot is redrawn by hand with `gnuplot NAME.gp` in its folder.
 */
#ifndef REPORTS_PLOT_H
#define REPORTS_PLOT_H

#include <stdio.h>

#include "base/file.h"

struct arena;

struct plot {
	struct arena *mem;
	const char *dir, *name;
	struct file_out data;
	int height; /* plot_begin sets that of one panel; the width is always 720 */
};

enum { PLOT_HEIGHT = 380 };

/* Write the rows to plot->data.out, then draw. */
bool plot_begin(struct plot *p, struct arena *mem, const char *dir, const char *name,
		struct ft_error *err) __attribute__((warn_unused_result));

/* Is it the name of an SVG file? */
bool plot_is_svg(const char *file, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same for one figure, whose name the user gave: FOLDER/NAME.svg. */
bool plot_begin_as(struct plot *plot, struct arena *mem, const char *file,
		   struct ft_error *err) __attribute__((warn_unused_result));

/* script: gnuplot commands that plot `dat`, which is 'NAME.dat'; terminal and output
 * are set; texts in it went through gnuplot_quote. NULL: an error that has been told.
 * The SVG's text, or NULL: gnuplot is missing or refused the script. */
char *plot_draw(struct plot *p, const char *script, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The range of a logarithmic x that has one value, a point in its middle; else "": gnuplot finds it. */
const char *plot_range(struct arena *mem, double least, double most);

#endif
