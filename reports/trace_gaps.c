/* reports/trace_gaps.c - a recorded step beside a predicted one: tables, JSON, plot */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/gnuplot.h"
#include "base/plain.h"
#include "foretoken/reports.h"
#include "reports/json.h"
#include "reports/plot.h"
#include "reports/table.h"

/* ---- tables ------------------------------------------------------------------------- */

/* What is left of a sum after rounding is no minus. */
static double ms(double s)
{
	return fabs(s) < 1e-9 ? 0 : 1e3 * s;
}

static void put_pair(struct table *t, double recorded_s, double predicted_s,
		     double step_s)
{
	double d = predicted_s - recorded_s;

	table_put(t, "%.3f", ms(recorded_s));
	table_put(t, "%.3f", ms(predicted_s));
	table_put(t, "%+.3f", 1e3 * d);
	table_put(t, "%+.1f", step_s > 0 ? 100 * d / step_s : 0);
}

static void put_gaps(FILE *out, const char *what, const struct ft_trace_gap *gap,
		     bool of_step, double step_s)
{
	struct table t = TABLE_OPEN(out, what, ">recorded ms", ">predicted ms",
				    ">difference ms", ">% of the step");

	for (int i = 0; i < FT_TRACE_GAPS; i++) {
		if (gap[i].of_step != of_step)
			continue;
		table_row(&t);
		table_put(&t, "%s", gap[i].what);
		put_pair(&t, gap[i].recorded_s, gap[i].predicted_s, step_s);
	}
	table_close(&t);
}

/* Layers that both sides have, from 0 on. */
static int64_t both(const struct ft_trace_layers *l)
{
	return l->recorded.layers < l->predicted.layers ? l->recorded.layers :
							  l->predicted.layers;
}

static void put_found(FILE *out, const char *of, const struct ft_trace_side *s)
{
	if (!s->layers) {
		fprintf(out, "The layers of the %s step are not known: %s.\n", of,
			s->why);
		return;
	}
	fprintf(out, "The %s step has %" PRId64 " layer%s", of, s->layers,
		s->layers == 1 ? "" : "s");
	if (s->told == s->layers)
		fprintf(out,
			": %" PRId64 " products and attention in the first one forward",
			s->in_forward);
	else
		fprintf(out,
			", found where products and attention repeat: %" PRId64
			" of them in a layer forward",
			s->in_forward);
	if (s->in_backward)
		fprintf(out, ", %" PRId64 " backward", s->in_backward);
	fputs(".\n", out);
	if (s->told && s->told != s->layers)
		fprintf(out,
			"In all it has %" PRId64
			": those that do not repeat are outside, and those that repeat "
			"together, or have the same place in two chunks, count as one.\n",
			s->told);
}

static void put_layers(FILE *out, const struct ft_trace_layers *l, double step_s)
{
	struct table t =
		TABLE_OPEN(out, "layer", "pass", ">recorded ms", ">predicted ms",
			   ">difference ms", ">% of the step");

	for (int pass = 0; pass < 2; pass++)
		for (int64_t i = 0; i < both(l); i++) {
			table_row(&t);
			table_put(&t, "%" PRId64, i);
			table_put(&t, pass ? "backward" : "forward");
			put_pair(&t, l->recorded.layer[i][pass].all_s,
				 l->predicted.layer[i][pass].all_s, step_s);
		}
	table_row(&t);
	table_put(&t, "-");
	table_put(&t, "outside layers");
	put_pair(&t, l->recorded.outside.all_s, l->predicted.outside.all_s, step_s);
	table_close(&t);
}

/* Of all its layers, of one kind. */
static double sum(const struct ft_trace_side *s, int pass, int kind, int64_t layers)
{
	double all_s = 0;

	for (int64_t i = 0; i < layers; i++)
		all_s += s->layer[i][pass].kind_s[kind];
	return all_s;
}

static void put_kinds(FILE *out, const struct ft_trace_layers *l, double step_s)
{
	struct table t =
		TABLE_OPEN(out, "in layers", "pass", ">recorded ms", ">predicted ms",
			   ">difference ms", ">% of the step");

	for (int pass = 0; pass < 2; pass++)
		for (int k = 0; k < FT_TRACE_KINDS; k++) {
			table_row(&t);
			table_put(&t, "%s", ft_trace_kind_name((enum ft_trace_kind)k));
			table_put(&t, pass ? "backward" : "forward");
			put_pair(&t, sum(&l->recorded, pass, k, both(l)),
				 sum(&l->predicted, pass, k, both(l)), step_s);
		}
	table_close(&t);
}

void ft_report_trace_gaps(FILE *out, const struct ft_trace_gap gap[FT_TRACE_GAPS],
			  const struct ft_trace_layers *l)
{
	PLAIN_NUMBERS;
	double step_s = gap[FT_TRACE_GAPS - 1].recorded_s;

	put_gaps(out, "where the step goes", gap, true, step_s);
	putc('\n', out);
	put_gaps(out, "durations, added up", gap, false, step_s);
	putc('\n', out);
	put_found(out, "recorded", &l->recorded);
	put_found(out, "predicted", &l->predicted);
	if (!both(l))
		return;
	if (l->recorded.layers != l->predicted.layers)
		fprintf(out, "The first %" PRId64 " are held beside each other.\n",
			both(l));
	putc('\n', out);
	put_layers(out, l, step_s);
	putc('\n', out);
	put_kinds(out, l, step_s);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static json_t *gaps_json(const struct ft_trace_gap *gap)
{
	json_t *list = json_array();

	for (int i = 0; i < FT_TRACE_GAPS - 1; i++) {
		json_t *g = json_object();

		json_put_text(g, "what", gap[i].what);
		json_put(g, "recorded_s", gap[i].recorded_s);
		json_put(g, "predicted_s", gap[i].predicted_s);
		json_put_bool(g, "part_of_step", gap[i].of_step);
		json_array_append_new(list, g);
	}
	return list;
}

static json_t *time_json(const struct ft_trace_time *x)
{
	json_t *o = json_object(), *kinds = json_object();

	json_put(o, "time_s", x->all_s);
	for (int k = 0; k < FT_TRACE_KINDS; k++)
		json_put(kinds, ft_trace_kind_name((enum ft_trace_kind)k),
			 x->kind_s[k]);
	json_object_set_new(o, "kinds_s", kinds);
	return o;
}

static json_t *side_json(const struct ft_trace_side *s)
{
	json_t *o = json_object(), *list = json_array();

	if (!s->layers) {
		json_put_text(o, "not_found", s->why);
		json_decref(list);
		return o;
	}
	if (s->told)
		json_put_int(o, "told", s->told);
	json_put_int(o, "in_forward", s->in_forward);
	json_put_int(o, "in_backward", s->in_backward);
	for (int64_t i = 0; i < s->layers; i++) {
		json_t *l = json_object();

		json_object_set_new(l, "forward", time_json(&s->layer[i][0]));
		json_object_set_new(l, "backward", time_json(&s->layer[i][1]));
		json_array_append_new(list, l);
	}
	json_object_set_new(o, "layers", list);
	json_object_set_new(o, "outside", time_json(&s->outside));
	return o;
}

void ft_report_trace_gaps_json(FILE *out, const struct ft_trace_gap gap[FT_TRACE_GAPS],
			       const struct ft_trace_layers *l)
{
	PLAIN_NUMBERS;
	json_t *o = json_object(), *layers = json_object();

	json_put(o, "recorded_step_s", gap[FT_TRACE_GAPS - 1].recorded_s);
	json_put(o, "predicted_step_s", gap[FT_TRACE_GAPS - 1].predicted_s);
	json_object_set_new(o, "gaps", gaps_json(gap));
	json_object_set_new(layers, "recorded", side_json(&l->recorded));
	json_object_set_new(layers, "predicted", side_json(&l->predicted));
	json_object_set_new(o, "by_layer", layers);
	json_print(out, o);
}

/* ---- plot ----------------------------------------------------------------------------- */

/* Kinds in the first block, then a block for each pass of the layers. */
static const char *blocks(struct plot *q, const struct ft_trace_gap *gap,
			  const struct ft_trace_layers *l)
{
	const char *by_layer = arena_printf(
		q->mem,
		"set xlabel 'layer'\nset xtics norotate %" PRId64 "\n"
		"plot dat index 1 using 1:2 with linespoints ls 1 pt 7 ps 0.6 "
		"title 'forward, recorded', "
		"'' index 1 using 1:3 with linespoints ls 2 pt 7 ps 0.6 "
		"title 'predicted', "
		"'' index 2 using 1:2 with linespoints ls 1 pt 6 ps 0.6 dt 2 "
		"title 'backward, recorded', "
		"'' index 2 using 1:3 with linespoints ls 2 pt 6 ps 0.6 dt 2 "
		"title 'predicted'\n",
		both(l) / 16 + 1);

	fputs("# what, recorded ms, predicted ms\n", q->data.out);
	for (int i = 0; i < FT_TRACE_GAPS; i++)
		fprintf(q->data.out, "%s %.6g %.6g\n",
			gnuplot_cell(q->mem, gap[i].what), 1e3 * gap[i].recorded_s,
			1e3 * gap[i].predicted_s);
	for (int pass = 0; both(l) && pass < 2; pass++) {
		fprintf(q->data.out, "\n\n# layer, %s: recorded ms, predicted ms\n",
			pass ? "backward" : "forward");
		for (int64_t i = 0; i < both(l); i++)
			fprintf(q->data.out, "%" PRId64 " %.6g %.6g\n", i,
				1e3 * l->recorded.layer[i][pass].all_s,
				1e3 * l->predicted.layer[i][pass].all_s);
	}
	return arena_printf(
		q->mem,
		"set multiplot layout %d,1\nset ylabel 'ms'\nset yrange [0:*]\n"
		"set key outside right top\nset style fill solid 0.85\n"
		"set style data histograms\nset style histogram clustered gap 1\n"
		"set xtics rotate by -25\n"
		"plot dat index 0 using 2:xtic(1) ls 1 title 'recorded', "
		"'' index 0 using 3 ls 2 title 'predicted'\n%sunset multiplot",
		both(l) ? 2 : 1, both(l) ? by_layer : "");
}

bool ft_report_trace_gaps_plot(const char *file,
			       const struct ft_trace_gap gap[FT_TRACE_GAPS],
			       const struct ft_trace_layers *l, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct plot q;
	bool ok = plot_begin_as(&q, &mem, file, err);

	if (ok) {
		q.height *= both(l) ? 2 : 1;
		ok = plot_draw(&q, blocks(&q, gap, l), err);
	}
	arena_release(&mem);
	return ok;
}
