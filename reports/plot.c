/* reports/plot.c - a plot's data, its script, and the SVG that gnuplot makes of them */
#include "reports/plot.h"

#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/limits.h"
#include "base/text.h"

bool plot_begin(struct plot *p, struct arena *mem, const char *dir, const char *name,
		struct ft_error *err)
{
	*p = (struct plot){
		.mem = mem, .dir = dir, .name = name, .height = PLOT_HEIGHT
	};
	return file_begin(&p->data, arena_printf(mem, "%s/%s.dat", dir, name), err);
}

bool plot_is_svg(const char *file, struct ft_error *err)
{
	const char *slash = strrchr(file, '/'), *leaf = slash ? slash + 1 : file;

	return (strlen(leaf) > 4 && text_ends_with(leaf, ".svg")) ||
	       ft_fail(err, &(struct ft_mark){ .file = file },
		       "should be the name of an SVG file: figure.svg");
}

bool plot_begin_as(struct plot *p, struct arena *mem, const char *file,
		   struct ft_error *err)
{
	struct ft_mark at = { .file = file };
	const char *slash = strrchr(file, '/'), *leaf = slash ? slash + 1 : file;
	size_t n = strlen(leaf);
	const char *name;

	if (!plot_is_svg(file, err))
		return false;
	name = arena_text_n(mem, leaf, n - 4);
	if (!text_is_name(name))
		return ft_fail(err, &at,
			       "has a name with other than letters, digits and "
			       "._+- before .svg");
	return plot_begin(p, mem,
			  slash ? arena_text_n(mem, file, (size_t)(leaf - file)) : ".",
			  name, err);
}

char *plot_draw(struct plot *p, const char *script, struct ft_error *err)
{
	size_t len;

	if (!script) {
		file_abandon(&p->data);
		return NULL;
	}
	if (!file_commit(&p->data, err) ||
	    !gnuplot_script(
		    p->mem, p->dir, p->name,
		    arena_printf(p->mem,
				 "size 720,%d font 'sans-serif,13' background "
				 "'#ffffff' noenhanced",
				 p->height),
		    arena_printf(p->mem,
				 "dat = '%s.dat'\n"
				 "set style line 1 lc rgb '#2a6f97'\n"
				 "set style line 2 lc rgb '#e07a5f'\n"
				 "set style line 3 lc rgb '#f2cc8f'\n"
				 "set style line 4 lc rgb '#81b29a'\n"
				 "set style line 5 lc rgb '#6d597a'\n"
				 "set style line 6 lc rgb '#9a9a9a'\n"
				 "set border 3 lc rgb '#555555'\nset tics nomirror\n"
				 "set grid ytics lc rgb '#dddddd'\n%s",
				 p->name, script),
		    err) ||
	    !gnuplot_run(p->mem, p->dir, p->name, err))
		return NULL;
	return file_read(p->mem, arena_printf(p->mem, "%s/%s.svg", p->dir, p->name),
			 LIMIT_SVG_BYTES, &len, err);
}

const char *plot_range(struct arena *mem, double least, double most)
{
	if (!(least > 0) || least < most)
		return "";
	return arena_printf(mem, "set xrange [%.9g:%.9g]\n", least / 2, most * 2);
}
