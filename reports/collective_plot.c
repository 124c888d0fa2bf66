/* reports/collective_plot.c - bus bandwidth by size, and by number of GPUs */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/plain.h"
#include "foretoken/reports.h"
#include "reports/plot.h"

/* By size a curve is of one op and number of GPUs, by GPUs of one op and size. */
static bool same_curve(const struct ft_collective_line *a,
		       const struct ft_collective_line *b, bool by_gpus)
{
	return a->op == b->op && (by_gpus ? a->bytes == b->bytes : a->gpus == b->gpus);
}

static void put_curve(struct plot *q, const struct ft_collective_line *l, size_t from,
		      size_t n, bool by_gpus)
{
	for (size_t i = from; i < n; i++)
		if (same_curve(&l[from], &l[i], by_gpus))
			fprintf(q->data.out, "%.0f %.9g\n",
				by_gpus ? (double)l[i].gpus : l[i].bytes,
				l[i].bytes / l[i].result.duration.time_s * 1e-9 *
					ft_collective_bus_factor(l[i].op, l[i].gpus));
}

static const char *title(struct plot *q, const struct ft_collective_line *l,
			 bool by_gpus)
{
	const char *op = ft_collective_name(l->op);

	if (!by_gpus)
		return arena_printf(q->mem, "%s, %" PRId64 " GPUs", op, l->gpus);
	if (l->bytes >= 1048576)
		return arena_printf(q->mem, "%s, %.4g MiB", op, l->bytes / 1048576);
	return arena_printf(q->mem, "%s, %.4g KiB", op, l->bytes / 1024);
}

static const char *range(struct plot *q, const struct ft_collective_line *l, size_t n)
{
	double least = l->bytes, most = l->bytes;

	for (size_t i = 1; i < n; i++) {
		least = fmin(least, l[i].bytes);
		most = fmax(most, l[i].bytes);
	}
	return plot_range(q->mem, least, most);
}

/* The rows, a block for each curve; the plot command grows with them. */
static const char *blocks(struct plot *q, const struct ft_collective_line *l, size_t n,
			  bool by_gpus, struct ft_error *err)
{
	const char *quoted,
		*script = arena_printf(
			q->mem,
			"set logscale x 2\nset xlabel '%s'\nset ylabel 'bus bandwidth, "
			"GB/s'\n%s%sset key %s top reverse Left\nset yrange [0:*]\nplot ",
			by_gpus ? "GPUs" : "bytes",
			by_gpus ? "" : "set format x '%.0b %BB'\n",
			by_gpus ? "" : range(q, l, n), by_gpus ? "right" : "left");
	size_t curve = 0;

	for (size_t i = 0; i < n; i++) {
		size_t before = 0;

		while (!same_curve(&l[before], &l[i], by_gpus))
			before++;
		if (before < i)
			continue;
		fprintf(q->data.out, "%s# %s: %s, GB/s\n", i ? "\n\n" : "",
			title(q, &l[i], by_gpus), by_gpus ? "GPUs" : "bytes");
		put_curve(q, l, i, n, by_gpus);
		quoted = gnuplot_quote(q->mem, title(q, &l[i], by_gpus), err);
		if (!quoted)
			return NULL;
		script = arena_printf(q->mem,
				      "%s%sdat index %zu using 1:2 with "
				      "linespoints lw 2 pt 7 ps 0.5 title %s",
				      script, curve ? ", " : "", curve, quoted);
		curve++;
	}
	return script;
}

static bool draw(struct arena *mem, const char *dir,
		 const struct ft_collective_line *line, size_t n, bool by_gpus,
		 struct ft_error *err)
{
	const char *name = by_gpus ? "busbw-by-gpus" : "busbw";
	struct plot q;

	return plot_begin(&q, mem, dir, name, err) &&
	       plot_draw(&q, blocks(&q, line, n, by_gpus, err), err);
}

bool ft_report_collectives_plot(const char *dir, const struct ft_collective_line *line,
				size_t n, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_mark at = { dir, 0, 0 };
	struct arena mem = { 0 };
	bool sizes = false, ok;

	for (size_t i = 1; i < n; i++)
		sizes |= line[i].gpus != line[0].gpus;
	if (mkdir(dir, 0777) && errno != EEXIST)
		return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
	ok = draw(&mem, dir, line, n, false, err) &&
	     (!sizes || draw(&mem, dir, line, n, true, err));
	arena_release(&mem);
	return ok;
}
