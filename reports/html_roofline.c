/* reports/html_roofline.c - a step's largest products and attentions under their GPU's roofs */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "reports/html_plots.h"
#include "reports/plot.h"

enum { ROOF_ITEMS = 12 };

/* The fastest format that the step's largest products can be in: the highest roof. */
static double roof_flop_per_s(const struct ft_scenario *s)
{
	return s->cluster->gpu->peak_flop_per_s[s->plan->precision].value;
}

/* "down" of "down (wgrad)"; "" where an item before it is called so. */
static const char *family(struct plots *p, const struct ft_run *run, size_t k)
{
	size_t len = strcspn(run->share[k].name, " ");

	for (size_t i = 0; i < k; i++)
		if (strcspn(run->share[i].name, " ") == len &&
		    !memcmp(run->share[i].name, run->share[k].name, len))
			return "";
	return arena_text_n(p->mem, run->share[k].name, len);
}

/* at: the height of its name */
struct dot {
	double flop_per_byte, tflop_per_s, at;
	const char *name;
};

/* The scenario's largest products and attentions; how many. */
static int dots_of(struct plots *p, size_t scenario, struct dot dot[ROOF_ITEMS])
{
	const struct ft_run *run = p->a->outcome[scenario].run;
	int n = 0;

	for (size_t k = 0; k < run->n_shares && n < ROOF_ITEMS; k++) {
		const struct ft_share *s = &run->share[k];

		if (s->kind != FT_GEMM && s->kind != FT_ATTENTION)
			continue;
		dot[n].flop_per_byte = s->flop / s->bytes;
		dot[n].at = dot[n].tflop_per_s = s->flop / s->time_s * 1e-12;
		dot[n++].name = scenario ? "" : family(p, run, k);
	}
	return n;
}

static int by_height(const void *a, const void *b)
{
	const struct dot *const *x = a, *const *y = b;

	return ((*x)->at > (*y)->at) - ((*x)->at < (*y)->at);
}

/* From the lowest on, a name moves up until it stands a line above each that it would cover. */
static void part_names(struct dot *dot, int n, double line)
{
	const double wide = 2.5; /* a name, on the axis of FLOP per byte */
	struct dot *named[ROOF_ITEMS];
	int placed = 0;

	for (int i = 0; i < n; i++)
		if (*dot[i].name)
			named[placed++] = &dot[i];
	qsort(named, (size_t)placed, sizeof(*named), by_height);
	for (int i = 1; i < placed; i++)
		for (int k = 0; k < i; k++) {
			double ratio =
				named[i]->flop_per_byte / named[k]->flop_per_byte;

			if (ratio < wide && ratio * wide > 1)
				named[i]->at = fmax(named[i]->at, named[k]->at + line);
		}
}

/* A block of points for each scenario; names at the largest of the first. */
static void roofline_rows(struct plots *p, FILE *out)
{
	double roof = 0;

	for (size_t i = 0; i < p->a->n; i++)
		roof = fmax(roof, roof_flop_per_s(p->a->scenario[i]) * 1e-12);
	fputs("# FLOP per byte, TFLOP/s, item, height of its name\n", out);
	for (size_t i = 0; i < p->a->n; i++) {
		struct dot dot[ROOF_ITEMS];
		int n = dots_of(p, i, dot);

		part_names(dot, n, 0.045 * roof);
		if (i)
			fputs("\n\n", out);
		for (int k = 0; k < n; k++)
			fprintf(out, "%.6g %.6g %s %.6g\n", dot[k].flop_per_byte,
				dot[k].tflop_per_s, gnuplot_cell(p->mem, dot[k].name),
				dot[k].at);
	}
}

char *plot_roofline(struct plots *p, struct ft_error *err)
{
	const char *script =
		"set logscale x\nset xlabel 'FLOP per byte'\n"
		"set ylabel 'TFLOP/s'\nset xrange [30:20000]\nset yrange [0:*]\n"
		"set key above\nset samples 400\n"
		"roof(x, peak, rate) = x * rate < peak ? x * rate : peak\n"
		"plot ";
	struct plot q;

	if (!plot_begin(&q, p->mem, p->dir, "roofline", err))
		return NULL;
	roofline_rows(p, q.data.out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_scenario *s = p->a->scenario[i];
		const char *quoted = gnuplot_quote(p->mem, p->a->label[i], err);

		if (!quoted) {
			file_abandon(&q.data);
			return NULL;
		}
		script = arena_printf(
			p->mem,
			"%s%sroof(x, %.9g, %.9g) ls %zu lw 1.5 notitle, dat index %zu using "
			"1:2 with points ls %zu pt %zu ps 1 title %s",
			script, i ? ", " : "", roof_flop_per_s(s) * 1e-12,
			s->cluster->gpu->memory_bytes_per_s.value * 1e-12, i % 5 + 1, i,
			i % 5 + 1, 5 + 2 * (i % 5), quoted);
	}
	script = arena_printf(
		p->mem,
		"%s, dat index 0 using 1:4:3 with labels left offset 0.6,0.5 "
		"font ',10' notitle",
		script);
	return plot_draw(&q, script, err);
}
