/* sim/timeline_svg.c - the Gantt chart of a simulated step, one SVG file */
#include "sim/timeline_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/svg_axis.h"

/* In pixels. A pass gets PASS of them on average, within what a screen scrolls well. */
enum {
	LEFT = 96,
	RIGHT = 112,
	TOP = 84,
	BOX = 24,
	LANE = 5,
	ROW = BOX + 2 * (LANE + 1) + 10,
	PASS = 30,
	NARROWEST = 1000,
	WIDEST = 12000,
	DIGIT = 6, /* of the boxes' font */
	TICKS = 12 /* about */
};

enum lane { COLLECTIVES, SENDS, LANES };

struct span {
	ft_ps from, to;
};

struct spans {
	struct span *span;
	size_t n, cap;
};

struct row {
	struct span *pass; /* [n_slots + 1], the last: of none; to == 0: not run */
	struct spans lane[LANES];
};

struct gantt {
	struct arena *mem;
	const struct ft_graph *graph;
	struct row *row; /* [n_classes] */
};

struct gantt *gantt_new(struct arena *mem, const struct ft_graph *graph)
{
	struct gantt *g = ARENA_NEW(mem, struct gantt);

	*g = (struct gantt){ mem, graph,
			     ARENA_ARRAY(mem, graph->n_classes, struct row) };
	for (size_t c = 0; c < graph->n_classes; c++)
		g->row[c].pass =
			ARENA_ARRAY(mem, graph->rank_class[c].n_slots + 1, struct span);
	return g;
}

/* ---- what ran ----------------------------------------------------------------- */

static void put_span(struct gantt *g, struct spans *s, ft_ps from, ft_ps to)
{
	struct span *last = s->n ? &s->span[s->n - 1] : NULL;

	if (last && from <= last->to && from >= last->from) {
		last->to = to > last->to ? to : last->to;
		return;
	}
	if (s->n == s->cap)
		s->span = ARENA_GROW(g->mem, s->span, &s->cap);
	s->span[s->n++] = (struct span){ from, to };
}

void gantt_op(struct gantt *g, size_t class, int stream, size_t slot, ft_ps from,
	      ft_ps to)
{
	struct row *row = &g->row[class];
	struct span *pass = &row->pass[slot];

	if (stream >= FT_STREAM_GATHER) {
		put_span(g, &row->lane[ft_stream_sends(stream) ? SENDS : COLLECTIVES],
			 from, to);
		return;
	}
	if (stream != FT_STREAM_COMPUTE)
		return;
	if (!pass->to)
		pass->from = from;
	pass->to = to;
}

/* ---- the drawing ---------------------------------------------------------------- */

struct drawing {
	FILE *out;
	const struct gantt *g;
	ft_ps end;
	double width;		     /* of the axis */
	int64_t chunks;		     /* of the schedule; 0: no slots */
	bool ran[FT_SLOT_KINDS + 1]; /* what the legend explains */
	double unit_ps;		     /* of the axis */
	const char *unit;
};

static const char *const kind_class[FT_SLOT_KINDS + 1] = { "f", "b", "w", "v",
							   "d", "u", "o" };

static double x_of(const struct drawing *d, ft_ps t)
{
	return LEFT + d->width * (double)t / (double)d->end;
}

static void draw_axis(const struct drawing *d, double y, double height)
{
	double length = (double)d->end / d->unit_ps, tick = svg_tick(length, TICKS);

	for (int i = 0; i * tick <= length; i++) {
		double x = LEFT + d->width * (i * tick) / length;

		fprintf(d->out,
			"<path class=\"grid\" d=\"M%.2f %.2fv%.2f\"/>"
			"<text class=\"axis\" x=\"%.2f\" y=\"%.2f\">%g%s%s</text>\n",
			x, y, height, x, y + height + 14, i * tick, i ? "" : " ",
			i ? "" : d->unit);
	}
	fprintf(d->out,
		"<text class=\"axis\" x=\"%.2f\" y=\"%.2f\">time of the step in %s</text>\n",
		LEFT + d->width / 2, y + height + 30, d->unit);
}

static void say_pass(const struct drawing *d, const struct ft_class *class,
		     const struct ft_slot *s, const struct span *at)
{
	static const char *const words[FT_SLOT_KINDS] = { "forward",
							  "backward",
							  "gradients of weights",
							  "whole backward",
							  "flush of the pipeline",
							  "update" };

	fputs("<title>", d->out);
	text_put_xml(d->out, class->name);
	fprintf(d->out, ": %s", s ? words[s->kind] : "of no pass");
	if (s && s->kind != FT_SLOT_UPDATE)
		fprintf(d->out, " %s micro-batch %" PRId64,
			s->kind == FT_SLOT_FLUSH ? "behind" : "of", s->micro_batch + 1);
	if (s && ft_slot_is_pass(s->kind) && d->chunks > 1)
		fprintf(d->out, ", chunk %" PRId64, s->chunk + 1);
	fprintf(d->out, ", %.6g to %.6g %s</title>", (double)at->from / d->unit_ps,
		(double)at->to / d->unit_ps, d->unit);
}

/* Later chunks are paler. */
static double opacity(const struct drawing *d, const struct ft_slot *s)
{
	if (!s || d->chunks < 2 || !ft_slot_is_pass(s->kind))
		return 1;
	return 1 - 0.6 * (double)s->chunk / (double)(d->chunks - 1);
}

/* half: 0 the whole height, 1 the upper half, 2 the lower: passes side by side. */
static void draw_pass(const struct drawing *d, const struct ft_class *class,
		      const struct ft_slot *s, const struct span *at, double y,
		      int half)
{
	double x = x_of(d, at->from), w = x_of(d, at->to) - x;
	double h = half ? BOX / 2.0 : BOX;
	char number[24] = "";

	if (half == 2)
		y += h;
	if (s && ft_slot_is_pass(s->kind))
		snprintf(number, sizeof(number), "%" PRId64, s->micro_batch + 1);
	fprintf(d->out,
		"<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
		"height=\"%.2f\" fill-opacity=\"%.2f\">",
		kind_class[s ? (int)s->kind : FT_SLOT_KINDS], x, y, w, h,
		opacity(d, s));
	say_pass(d, class, s, at);
	fputs("</rect>", d->out);
	if (*number && w >= DIGIT * (double)strlen(number))
		fprintf(d->out, "<text class=\"n\" x=\"%.2f\" y=\"%.2f\">%s</text>",
			x + w / 2, y + h / 2 + 3, number);
	putc('\n', d->out);
}

static int earlier(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1) :
				    (x->to > y->to) - (x->to < y->to);
}

/* What is less than a pixel apart is drawn as one. */
static void draw_lane(const struct drawing *d, const struct spans *s, enum lane lane,
		      double y)
{
	static const char *const classes[LANES] = { "c", "s" };
	ft_ps near = (ft_ps)((double)d->end / d->width);

	if (!s->n)
		return;
	qsort(s->span, s->n, sizeof(*s->span), earlier);
	fprintf(d->out, "<path class=\"%s\" d=\"", classes[lane]);
	for (size_t i = 0; i < s->n;) {
		struct span at = s->span[i++];
		double x = x_of(d, at.from);

		for (; i < s->n && s->span[i].from <= at.to + near; i++)
			at.to = s->span[i].to > at.to ? s->span[i].to : at.to;
		fprintf(d->out, "M%.2f %.2fh%.2fv%dH%.2fz", x, y,
			fmax(x_of(d, at.to) - x, 0.8), LANE, x);
	}
	fputs("\"/>\n", d->out);
}

static void draw_row(const struct drawing *d, size_t c, double bubble_frac, double y)
{
	const struct ft_class *class = &d->g->graph->rank_class[c];
	const struct row *row = &d->g->row[c];

	fprintf(d->out,
		"<rect class=\"idle\" x=\"%d\" y=\"%.2f\" width=\"%.2f\" "
		"height=\"%d\"/>\n<text class=\"name\" x=\"%d\" y=\"%.2f\">",
		LEFT, y, d->width, BOX, LEFT - 8, y + BOX / 2.0 + 4);
	text_put_xml(d->out, class->name);
	fprintf(d->out, "</text>\n<text x=\"%.2f\" y=\"%.2f\">bubble %.1f %%</text>\n",
		LEFT + d->width + 8, y + BOX / 2.0 + 4, 100 * bubble_frac);
	for (size_t i = 0; i <= class->n_slots; i++) {
		bool none = i == class->n_slots;
		bool side =
			i && !none && class->slot[i - 1].call == class->slot[i].call;

		if (!row->pass[i].to)
			continue;
		draw_pass(d, class, none ? NULL : &class->slot[i].slot, &row->pass[i],
			  y, side ? 2 : 0);
		if (side) /* its ops are those of both */
			draw_pass(d, class, &class->slot[i - 1].slot, &row->pass[i], y,
				  1);
	}
	for (int l = 0; l < LANES; l++)
		draw_lane(d, &row->lane[l], (enum lane)l, y + BOX + 1 + l * (LANE + 1));
}

static void legend_item(const struct drawing *d, double *x, const char *class,
			const char *text)
{
	fprintf(d->out,
		"<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"14\" height=\"12\"/>"
		"<text x=\"%.2f\" y=\"%d\">%s</text>\n",
		class, *x, TOP - 28, *x + 19, TOP - 18, text);
	*x += 19 + 6.6 * (double)strlen(text) + 16;
}

static void draw_legend(const struct drawing *d)
{
	static const char *const words[FT_SLOT_KINDS + 1] = {
		"forward",	  "backward", "gradients of weights",
		"whole backward", "flush",    "optimizer",
		"of no pass"
	};
	double x = LEFT;

	for (int k = 0; k <= FT_SLOT_KINDS; k++) {
		bool input = k == FT_SLOT_BACKWARD && d->ran[FT_SLOT_WEIGHTS];

		if (d->ran[k])
			legend_item(d, &x, kind_class[k],
				    input ? "gradients of inputs" : words[k]);
	}
	legend_item(d, &x, "idle", "idle");
	legend_item(d, &x, "c", "collectives");
	if (d->g->graph->n_classes > 1)
		legend_item(d, &x, "s", "sends to neighbours");
	fprintf(d->out, "<text x=\"%.2f\" y=\"%d\">numbers: micro-batches%s</text>\n",
		x, TOP - 18, d->chunks > 1 ? "; paler: later chunks of layers" : "");
}

static void draw_head(const struct drawing *d, const char *title,
		      const struct ft_run *run, ft_ps last, double height)
{
	double bubble = run->breakdown.bubble_s / ft_s_from_ps(run->step);

	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
		"height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<style>text{font:12px "
		"sans-serif;fill:#222}.name{text-anchor:end}.axis,.n{text-anchor:middle}"
		".n{font-size:9px}.title{font-size:15px;font-weight:bold}"
		".grid{stroke:#999;stroke-width:.5;stroke-dasharray:2 3}"
		".f,.b,.w,.v,.d,.u,.o{stroke:#fff;stroke-width:.6}"
		".f{fill:#8ecae6}.b{fill:#7fc97f}.w{fill:#f6c667}.v{fill:#c5b358}.u{fill:#cc79a7}"
		".d{fill:#e6b8d0}"
		".o{fill:#bbb}.idle{fill:#eee}.c{fill:#d55e00}.s{fill:#33579a}"
		"</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text class=\"title\" x=\"%d\" y=\"22\">",
		LEFT + d->width + RIGHT, height, LEFT + d->width + RIGHT, height, LEFT);
	if (title) {
		text_put_xml(d->out, title);
		fputs(": ", d->out);
	}
	fprintf(d->out,
		"one step, %.4g %s</text>\n<text x=\"%d\" y=\"42\">Pipeline bubble: "
		"%.1f %% of the step, mean over all ranks; at the right that of each "
		"stage.%s%s</text>\n",
		(double)run->step / d->unit_ps, d->unit, LEFT, 100 * bubble,
		run->n_classes > d->g->graph->n_classes ?
			" Pipelines with slow GPUs are not drawn." :
			"",
		last < run->step ?
			" Behind the last kernel hosts still launch: they set "
			"the pace." :
			"");
}

/* What is there to be drawn, and how wide. */
static void survey(struct drawing *d)
{
	const struct ft_graph *g = d->g->graph;
	size_t most = 0;

	for (size_t c = 0; c < g->n_classes; c++) {
		const struct ft_class *k = &g->rank_class[c];

		most = k->n_slots > most ? k->n_slots : most;
		d->ran[FT_SLOT_KINDS] |= d->g->row[c].pass[k->n_slots].to > 0;
		for (size_t i = 0; i < k->n_slots; i++) {
			d->ran[k->slot[i].slot.kind] = true;
			if (k->slot[i].slot.chunk >= d->chunks)
				d->chunks = k->slot[i].slot.chunk + 1;
		}
	}
	d->width = fmin(fmax(PASS * (double)most, NARROWEST), WIDEST);
	d->unit = svg_time_unit(d->end, &d->unit_ps);
}

void gantt_write(FILE *out, const struct gantt *g, const char *title,
		 const struct ft_run *run)
{
	struct drawing d = { .out = out, .g = g, .end = run->step };
	double rows = ROW * (double)g->graph->n_classes;
	ft_ps last = 0;

	for (size_t c = 0; c < run->n_classes; c++)
		last = run->rank_class[c].end > last ? run->rank_class[c].end : last;
	survey(&d);
	draw_head(&d, title, run, last, TOP + rows + 40);
	draw_legend(&d);
	draw_axis(&d, TOP - 4, rows);
	for (size_t c = 0; c < g->graph->n_classes; c++) {
		const struct ft_class_result *r = &run->rank_class[c];

		ft_ps idle = r->bubble + (g->graph->n_classes > 1 ? last - r->end : 0);

		draw_row(&d, c, (double)idle / (double)run->step,
			 TOP + (double)c * ROW);
	}
	fputs("</svg>\n", out);
}
