/* reports/collective_plot.c - bus bandwidth by size, one curve a group */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "foretoken/reports.h"
#include "reports/plot.h"

static bool same_curve(const struct ft_collective_line *a,
		       const struct ft_collective_line *b)
{
	return a->op == b->op && a->gpus == b->gpus;
}

/* The rows, a block for each curve; the plot command grows with them. */
static const char *blocks(struct plot *q, const struct ft_collective_line *l,
			  size_t n)
{
	const char *script = "set termoption noenhanced\nset logscale x 2\nset xlabel 'bytes'\nset ylabel "
			     "'bus bandwidth, GB/s'\nset format x '%.0b %BB'\n"
			     "set key left top reverse Left\nset yrange [0:*]\nplot ";
	size_t curve = 0;

	for (size_t i = 0; i < n; i++) {
		double s = l[i].result.duration.time_s;
		bool first = i == 0 || !same_curve(&l[i], &l[i - 1]);

		if (first) {
			fprintf(q->data.out, "%s# %s, %" PRId64 " GPUs: bytes, "
				"GB/s\n", i ? "\n\n" : "",
				ft_collective_name(l[i].op), l[i].gpus);
			script = arena_printf(q->mem, "%s%sdat index %zu using 1:2 "
				"with linespoints lw 2 pt 7 ps 0.5 title '%s, "
				"%" PRId64 " GPUs'", script, curve ? ", " : "",
				curve, ft_collective_name(l[i].op), l[i].gpus);
			curve++;
		}
		fprintf(q->data.out, "%.0f %.9g\n", l[i].bytes,
			l[i].bytes / s * 1e-9 *
				ft_collective_bus_factor(l[i].op, l[i].gpus));
	}
	return script;
}

bool ft_report_collectives_plot(const char *dir,
				const struct ft_collective_line *line, size_t n,
				struct ft_error *err)
{
	struct ft_mark at = { dir, 0, 0 };
	struct arena mem = { 0 };
	struct plot q;
	bool ok;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
	ok = plot_begin(&q, &mem, dir, "busbw", err) &&
	     plot_draw(&q, blocks(&q, line, n), 440, err);
	arena_release(&mem);
	return ok;
}
