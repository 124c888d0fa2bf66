/* sim/memory_svg.c - the memory of a rank over a step, by category, as an SVG chart */
#include "sim/memory_svg.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/job.h"
#include "sim/svg_axis.h"

/* In pixels. */
enum {
	LEFT = 64,
	TOP = 64,
	WIDTH = 900,
	HEIGHT = 320,
	RIGHT = 190,
	BOTTOM = 48,
	TICKS = 10,
	LABEL = 15 /* from one to the next */
};

struct sample {
	ft_ps at;
	double bytes[FT_MEMORIES];
};

struct memory_chart {
	struct arena *mem;
	const struct ft_graph *graph;
	size_t class; /* that is drawn */
	double (*before)
		[FT_MEMORIES]; /* [n_calls] of its program: held when one begins */
	struct sample *sample; /* [n] */
	size_t n, cap;
};

/* From the bottom up: what stays all step long, then what comes and goes. */
static const enum ft_memory order[FT_MEMORIES] = { FT_MEMORY_WEIGHTS,
						   FT_MEMORY_OPTIMIZER,
						   FT_MEMORY_GRADIENTS, FT_MEMORY_OTHER,
						   FT_MEMORY_ACTIVATIONS };
/* Each lighter or darker than its neighbours: readable in grey. */
static const char *const fills[FT_MEMORIES] = { "#1f4e79", "#c9a227", "#5d8a66",
						"#d9d9d9", "#7fb2d9" };

struct memory_chart *memory_chart_new(struct arena *mem, const struct ft_graph *graph)
{
	struct memory_chart *c = ARENA_NEW(mem, struct memory_chart);
	double most = -1;

	*c = (struct memory_chart){ .mem = mem, .graph = graph };
	for (size_t i = 0; i < graph->n_classes; i++) {
		struct ft_class_result r;

		result_memory(graph, i, &r);
		if (r.peak_total_bytes > most) {
			most = r.peak_total_bytes;
			c->class = i;
		}
	}
	c->before = arena_alloc(mem, graph->rank_class[c->class].n_calls + 1,
				sizeof(*c->before));
	result_memory_before(graph, c->class, c->before);
	return c;
}

static void put(struct memory_chart *c, ft_ps at, const double bytes[FT_MEMORIES])
{
	if (c->n == c->cap)
		c->sample = ARENA_GROW(c->mem, c->sample, &c->cap);
	c->sample[c->n].at = at;
	memcpy(c->sample[c->n++].bytes, bytes, sizeof(c->sample->bytes));
}

void memory_chart_op(struct memory_chart *c, const struct memory_op *o)
{
	const struct ft_segment *s;
	const struct ft_op *first;
	double within[FT_MEMORIES], behind[FT_MEMORIES];

	if (o->class != c->class || o->stream != FT_STREAM_COMPUTE)
		return;
	s = &c->graph->segment[c->graph->rank_class[o->class].call[o->call].segment];
	for (first = s->op; first < o->op && first->stream != FT_STREAM_COMPUTE;
	     first++)
		;
	if (first != o->op)
		return;
	for (int m = 0; m < FT_MEMORIES; m++) {
		double now = c->before[o->call][m] + o->turn * s->net_bytes[m];

		within[m] = now + s->peak_bytes[m];
		behind[m] = now + s->net_bytes[m];
	}
	put(c, o->from,
	    ft_memory_sum(behind) > ft_memory_sum(within) ? behind : within);
}

/* ---- the drawing ------------------------------------------------------------------- */

struct drawing {
	FILE *out;
	ft_ps step;
	double top_bytes; /* of the axis */
	const struct sample
		*column[WIDTH]; /* the fullest call in each; NULL: as before */
	const struct sample *peak;
};

static double y_of(const struct drawing *d, double bytes)
{
	return TOP + HEIGHT * (1 - bytes / d->top_bytes);
}

static void survey(struct drawing *d, const struct memory_chart *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct sample *s = &c->sample[i];
		int x = (int)((double)s->at / (double)d->step * WIDTH);
		const struct sample **column = &d->column[x < WIDTH ? x : WIDTH - 1];

		if (!*column ||
		    ft_memory_sum(s->bytes) > ft_memory_sum((*column)->bytes))
			*column = s;
		if (!d->peak || ft_memory_sum(s->bytes) > ft_memory_sum(d->peak->bytes))
			d->peak = s;
	}
}

/* The sum of the first n categories, in the order of the drawing. */
static double upto(const struct sample *s, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += s->bytes[order[i]];
	return sum;
}

/* One category's band: its upper edge from left to right, its lower one back. */
static void draw_band(const struct drawing *d, const struct sample *first, int k)
{
	const struct sample *s = first;

	fprintf(d->out, "<path fill=\"%s\" d=\"M%d %.2f", fills[k], LEFT,
		y_of(d, upto(s, k + 1)));
	for (int x = 0; x < WIDTH; x++)
		if (d->column[x] && d->column[x] != s) {
			s = d->column[x];
			fprintf(d->out, "H%dV%.2f", LEFT + x, y_of(d, upto(s, k + 1)));
		}
	fprintf(d->out, "H%dV%.2f", LEFT + WIDTH, y_of(d, upto(s, k)));
	for (int x = WIDTH - 1; x >= 0; x--) {
		const struct sample *before = NULL;

		if (!d->column[x])
			continue;
		for (int b = x - 1; b >= 0 && !before; b--)
			before = d->column[b];
		fprintf(d->out, "H%dV%.2f", LEFT + x,
			y_of(d, upto(before ? before : first, k)));
	}
	fprintf(d->out, "H%dZ\"><title>%s</title></path>\n", LEFT,
		ft_memory_name(order[k]));
}

/* Beside the chart, at the heights of the bands where they are fullest, kept apart. */
static void draw_labels(const struct drawing *d)
{
	double y = TOP + HEIGHT + LABEL;

	for (int k = 0; k < FT_MEMORIES; k++) {
		double bytes = d->peak->bytes[order[k]];
		double middle = y_of(d, upto(d->peak, k) + bytes / 2) + 4;

		if (bytes < 5e5)
			continue;
		y = fmin(middle, y - LABEL);
		fprintf(d->out,
			"<rect x=\"%d\" y=\"%.2f\" width=\"10\" height=\"10\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%.2f\">%s %.1f GB</text>\n",
			LEFT + WIDTH + 10, y - 9, fills[k], LEFT + WIDTH + 25, y,
			ft_memory_name(order[k]), 1e-9 * bytes);
	}
}

static void draw_axes(const struct drawing *d)
{
	double unit_ps, length, tick;
	const char *unit = svg_time_unit(d->step, &unit_ps);

	length = (double)d->step / unit_ps;
	tick = svg_tick(length, TICKS);
	for (int i = 0; i * tick <= length; i++)
		fprintf(d->out, "<text class=\"x\" x=\"%.2f\" y=\"%d\">%g%s%s</text>\n",
			LEFT + WIDTH * (i * tick) / length, TOP + HEIGHT + 16, i * tick,
			i ? "" : " ", i ? "" : unit);
	fprintf(d->out,
		"<text class=\"x\" x=\"%d\" y=\"%d\">time of the step in %s</text>\n",
		LEFT + WIDTH / 2, TOP + HEIGHT + 36, unit);
	tick = svg_tick(1e-9 * d->top_bytes, TICKS);
	for (int i = 0; i * tick <= 1e-9 * d->top_bytes; i++)
		fprintf(d->out,
			"<path class=\"grid\" d=\"M%d %.2fh%d\"/><text class=\"y\" x=\"%d\" "
			"y=\"%.2f\">%g%s</text>\n",
			LEFT, y_of(d, 1e9 * i * tick), WIDTH, LEFT - 6,
			y_of(d, 1e9 * i * tick) + 4, i * tick, i ? "" : " GB");
}

static void draw_capacity(const struct drawing *d, double capacity)
{
	fprintf(d->out,
		"<path class=\"most\" d=\"M%d %.2fh%d\"/><text x=\"%d\" y=\"%.2f\">what "
		"a process can use: %.1f GB</text>\n",
		LEFT, y_of(d, capacity), WIDTH, LEFT + 6, y_of(d, capacity) - 5,
		1e-9 * capacity);
}

static void draw_head(const struct drawing *d, const struct memory_chart *c,
		      const char *title)
{
	double unit_ps;
	const char *unit = svg_time_unit(d->step, &unit_ps);

	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\">\n<style>text{font:12px sans-serif;fill:#222}"
		".x{text-anchor:middle}.y{text-anchor:end}.title{font-size:15px;"
		"font-weight:bold}.grid{stroke:#999;stroke-width:.5;stroke-dasharray:2 3}"
		".most{stroke:#222;stroke-width:1.5;stroke-dasharray:8 4}</style>\n<rect "
		"width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"title\" "
		"x=\"%d\" y=\"22\">",
		LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM, LEFT + WIDTH + RIGHT,
		TOP + HEIGHT + BOTTOM, LEFT);
	if (title) {
		text_put_xml(d->out, title);
		fputs(": ", d->out);
	}
	fputs("memory of a rank over a step", d->out);
	fprintf(d->out, "</text>\n<text x=\"%d\" y=\"42\">", LEFT);
	text_put_xml(d->out, c->graph->rank_class[c->class].name);
	fprintf(d->out, "%s; at most %.1f GB, at %.4g %s</text>\n",
		c->graph->n_classes > 1 ? ", the fullest stage" : "",
		1e-9 * ft_memory_sum(d->peak->bytes), (double)d->peak->at / unit_ps,
		unit);
}

void memory_chart_write(FILE *out, struct memory_chart *c, const char *title,
			ft_ps step, double capacity_bytes)
{
	struct drawing d = { .out = out, .step = step };

	if (!c->n) /* no kernel ran */
		put(c, 0, c->before[0]);
	survey(&d, c);
	d.top_bytes = 1.08 * fmax(capacity_bytes, ft_memory_sum(d.peak->bytes));
	draw_head(&d, c, title);
	draw_axes(&d);
	for (int k = 0; k < FT_MEMORIES; k++)
		draw_band(&d, &c->sample[0], k);
	draw_capacity(&d, capacity_bytes);
	draw_labels(&d);
	fputs("</svg>\n", out);
}
