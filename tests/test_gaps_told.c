/*
 * tests/test_gaps_told.c - recorded steps beside predicted ones: what tables, JSON and the
 * data of the plot say, of times that are drawn
 */
#include <math.h>

#include <jansson.h>

#include "foretoken/reports.h"
#include "tests/printed.h"
#include "tests/scratch.h"

enum { DRAWS = 30, LAYERS = 40 };

static uint64_t seed = 71;

static double drawn_s(void)
{
	return rnd_below(&seed, 8) ? (double)rnd_below(&seed, 1000000) * 1e-7 : 0;
}

/* ---- a step beside another ------------------------------------------------------------ */

struct gaps {
	struct ft_trace_gap gap[FT_TRACE_GAPS];
	struct ft_trace_layers l;
	struct ft_trace_time of[2][LAYERS][2];
};

static struct ft_trace_time drawn_time(void)
{
	struct ft_trace_time t = { drawn_s(), { 0 } };

	for (int k = 0; k < FT_TRACE_KINDS; k++)
		t.kind_s[k] = drawn_s();
	return t;
}

static void draw_side(struct ft_trace_side *s, struct ft_trace_time of[LAYERS][2])
{
	*s = (struct ft_trace_side){
		.layers = rnd_below(&seed, 5) ? 1 + rnd_below(&seed, LAYERS) : 0,
		.why = "nothing repeats",
		.in_forward = 3 + rnd_below(&seed, 9),
		.told = rnd_below(&seed, 3) ? 0 : 1 + rnd_below(&seed, 5),
		.in_backward = rnd_below(&seed, 3) ? 5 + rnd_below(&seed, 9) : 0,
		.layer = of,
		.outside = drawn_time()
	};
	for (int64_t i = 0; i < s->layers; i++)
		for (int k = 0; k < 2; k++)
			of[i][k] = drawn_time();
}

static void draw_gaps(struct gaps *g)
{
	static const char *const what[FT_TRACE_GAPS] = { "p", "a",   "mem",	"c",
							 "o", "q",   "exposed", "b",
							 "i", "step" };

	for (int i = 0; i < FT_TRACE_GAPS; i++)
		g->gap[i] =
			(struct ft_trace_gap){ what[i], drawn_s(), drawn_s(), i > 4 };
	if (rnd_below(&seed, 6))
		g->gap[FT_TRACE_GAPS - 1].recorded_s += 0.05;
	else
		g->gap[FT_TRACE_GAPS - 1].recorded_s = 0;
	draw_side(&g->l.recorded, g->of[0]);
	draw_side(&g->l.predicted, g->of[1]);
}

static double step_of(const struct gaps *g)
{
	return g->gap[FT_TRACE_GAPS - 1].recorded_s;
}

static int64_t both_of(const struct gaps *g)
{
	int64_t a = g->l.recorded.layers, b = g->l.predicted.layers;

	return a < b ? a : b;
}

/* Both times in ms, their difference, and that in percent of the recorded step. */
static void pair_is(const struct printed *p, size_t line, size_t c, double a, double b,
		    double step)
{
	PRINTED_IS(p, line, c, "%.3f", 1e3 * a);
	PRINTED_IS(p, line, c + 1, "%.3f", 1e3 * b);
	PRINTED_IS(p, line, c + 2, "%+.3f", 1e3 * (b - a));
	PRINTED_IS(p, line, c + 3, "%+.1f", step > 0 ? 100 * (b - a) / step : 0.0);
}

#define FOUR ">recorded ms", ">predicted ms", ">difference ms", ">% of the step"

static void parts_are(const struct gaps *g, const char *text, bool of_step)
{
	const char *head = of_step ? "where the step goes" : "durations, added up";
	struct printed p;
	size_t line = 1;

	printed_read(&p, text, head);
	PRINTED_HEADS(&p, head, FOUR);
	for (int i = 0; i < FT_TRACE_GAPS; i++) {
		if (g->gap[i].of_step != of_step)
			continue;
		PRINTED_IS(&p, line, 0, "%s", g->gap[i].what);
		pair_is(&p, line++, 1, g->gap[i].recorded_s, g->gap[i].predicted_s,
			step_of(g));
	}
	assert_int_equal(p.lines, line);
	printed_drop(&p);
}

static const char *pass_of(size_t backward)
{
	return backward ? "backward" : "forward";
}

static void layers_are(const struct gaps *g, const char *text)
{
	int64_t n = both_of(g);
	struct printed p;

	printed_read(&p, text, "layer");
	PRINTED_HEADS(&p, "layer", "pass", FOUR);
	assert_int_equal(p.lines, 2 * n + 2);
	for (int64_t i = 0; i < 2 * n; i++) {
		size_t line = 1 + (size_t)i, back = i >= n;

		PRINTED_IS(&p, line, 0, "%d", (int)(i % n));
		PRINTED_IS(&p, line, 1, "%s", pass_of(back));
		pair_is(&p, line, 2, g->of[0][i % n][back].all_s,
			g->of[1][i % n][back].all_s, step_of(g));
	}
	PRINTED_IS(&p, p.lines - 1, 0, "-");
	PRINTED_IS(&p, p.lines - 1, 1, "outside layers");
	pair_is(&p, p.lines - 1, 2, g->l.recorded.outside.all_s,
		g->l.predicted.outside.all_s, step_of(g));
	printed_drop(&p);
}

static void kinds_are(const struct gaps *g, const char *text)
{
	struct printed p;
	size_t line = 1;

	printed_read(&p, text, "in layers");
	PRINTED_HEADS(&p, "in layers", "pass", FOUR);
	assert_int_equal(p.lines, 1 + 2 * FT_TRACE_KINDS);
	for (size_t back = 0; back < 2; back++)
		for (int k = 0; k < FT_TRACE_KINDS; k++, line++) {
			double sum[2] = { 0, 0 };

			for (int side = 0; side < 2; side++)
				for (int64_t i = 0; i < both_of(g); i++)
					sum[side] += g->of[side][i][back].kind_s[k];
			PRINTED_IS(&p, line, 0, "%s",
				   ft_trace_kind_name((enum ft_trace_kind)k));
			PRINTED_IS(&p, line, 1, "%s", pass_of(back));
			pair_is(&p, line, 2, sum[0], sum[1], step_of(g));
		}
	printed_drop(&p);
}

static void found_is(const char *text, const char *name, const struct ft_trace_side *s)
{
	char want[300], more[40] = "";

	if (s->in_backward)
		snprintf(more, sizeof(more), ", %d backward", (int)s->in_backward);
	if (s->layers && s->told == s->layers)
		snprintf(want, sizeof(want),
			 "\nThe %s step has %d layer%s: %d products and attention in "
			 "the first one forward%s.\n",
			 name, (int)s->layers, s->layers == 1 ? "" : "s",
			 (int)s->in_forward, more);
	else if (s->layers)
		snprintf(want, sizeof(want),
			 "\nThe %s step has %d layer%s, found where products and "
			 "attention repeat: %d of them in a layer forward%s.\n",
			 name, (int)s->layers, s->layers == 1 ? "" : "s",
			 (int)s->in_forward, more);
	else
		snprintf(want, sizeof(want),
			 "\nThe layers of the %s step are not known: %s.\n", name,
			 s->why);
	assert_non_null(strstr(text, want));
}

static void the_text_is(const struct gaps *g)
{
	int64_t n = both_of(g);
	char want[80], *text = NULL;

	PRINTED(text, ft_report_trace_gaps(out, g->gap, &g->l));
	parts_are(g, text, true);
	parts_are(g, text, false);
	found_is(text, "recorded", &g->l.recorded);
	found_is(text, "predicted", &g->l.predicted);
	snprintf(want, sizeof(want), "\nThe first %d are held beside each other.\n",
		 (int)n);
	assert_int_equal(!!strstr(text, "\nThe first "),
			 n && g->l.recorded.layers != g->l.predicted.layers);
	assert_int_equal(!!strstr(text, want), !!strstr(text, "\nThe first "));
	assert_int_equal(!!strstr(text, "\nlayer "), n > 0);
	assert_int_equal(!!strstr(text, "\nin layers "), n > 0);
	if (n) {
		layers_are(g, text);
		kinds_are(g, text);
	}
	free(text);
}

/* ---- its JSON --------------------------------------------------------------------------- */

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

static const char *word(const json_t *o, const char *key)
{
	const char *v = json_string_value(json_object_get(o, key));

	assert_non_null(v);
	return v;
}

static void time_is(const json_t *j, const struct ft_trace_time *t)
{
	const json_t *kinds = json_object_get(j, "kinds_s");

	near_frac(number(j, "time_s"), t->all_s, 1e-11);
	assert_int_equal(json_object_size(j), 2);
	assert_int_equal(json_object_size(kinds), FT_TRACE_KINDS);
	for (int k = 0; k < FT_TRACE_KINDS; k++)
		near_frac(number(kinds, ft_trace_kind_name((enum ft_trace_kind)k)),
			  t->kind_s[k], 1e-11);
}

static void side_is(const json_t *j, const struct ft_trace_side *s)
{
	const json_t *layers = json_object_get(j, "layers");

	if (!s->layers) {
		assert_string_equal(word(j, "not_found"), s->why);
		assert_int_equal(json_object_size(j), 1);
		return;
	}
	assert_int_equal(json_object_size(j), s->told ? 5 : 4);
	near_frac(number(j, "in_forward"), (double)s->in_forward, 1e-11);
	near_frac(number(j, "in_backward"), (double)s->in_backward, 1e-11);
	time_is(json_object_get(j, "outside"), &s->outside);
	assert_int_equal(json_array_size(layers), s->layers);
	for (int64_t i = 0; i < s->layers; i++) {
		const json_t *l = json_array_get(layers, (size_t)i);

		assert_int_equal(json_object_size(l), 2);
		time_is(json_object_get(l, "forward"), &s->layer[i][0]);
		time_is(json_object_get(l, "backward"), &s->layer[i][1]);
	}
}

static void the_json_is(const struct gaps *g)
{
	const struct ft_trace_gap *step = &g->gap[FT_TRACE_GAPS - 1];
	const json_t *gaps, *by;
	char *text = NULL;
	json_t *j;

	PRINTED(text, ft_report_trace_gaps_json(out, g->gap, &g->l));
	j = json_loads(text, 0, NULL);
	gaps = json_object_get(j, "gaps");
	by = json_object_get(j, "by_layer");
	near_frac(number(j, "recorded_step_s"), step->recorded_s, 1e-11);
	near_frac(number(j, "predicted_step_s"), step->predicted_s, 1e-11);
	assert_int_equal(json_object_size(j), 4);
	assert_int_equal(json_array_size(gaps), FT_TRACE_GAPS - 1);
	for (size_t i = 0; i < FT_TRACE_GAPS - 1; i++) {
		const json_t *o = json_array_get(gaps, i);

		assert_int_equal(json_object_size(o), 4);
		assert_string_equal(word(o, "what"), g->gap[i].what);
		near_frac(number(o, "recorded_s"), g->gap[i].recorded_s, 1e-11);
		near_frac(number(o, "predicted_s"), g->gap[i].predicted_s, 1e-11);
		assert_int_equal(json_is_true(json_object_get(o, "part_of_step")),
				 g->gap[i].of_step);
	}
	assert_int_equal(json_object_size(by), 2);
	side_is(json_object_get(by, "recorded"), &g->l.recorded);
	side_is(json_object_get(by, "predicted"), &g->l.predicted);
	json_decref(j);
	free(text);
}

/* ---- and what is drawn of it -------------------------------------------------------------- */

static char *file_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1 << 16, 1);

	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
	fclose(f);
	return text;
}

/* The next line says these words and numbers, which are rounded to six digits. */
static char *data_is(char *at, const char *words, double a, double b)
{
	size_t n = strlen(words);
	double x, y;

	if (strncmp(at, words, n) || sscanf(at + n, " %lf %lf\n", &x, &y) != 2)
		fail_msg("'%.60s', wanted '%s %g %g'", at, words, a, b);
	assert_true(fabs(x - a) <= 6e-6 * a && fabs(y - b) <= 6e-6 * b);
	return strchr(at, '\n') + 1;
}

static char *words_are(char *at, const char *words)
{
	if (strncmp(at, words, strlen(words)) != 0)
		fail_msg("'%.60s', wanted '%s'", at, words);
	return at + strlen(words);
}

static void the_plot_is(const struct gaps *g, const char *folder)
{
	char path[128], label[64], *text, *at;
	struct ft_error err;

	snprintf(path, sizeof(path), "%s/gap.svg", folder);
	(void)!ft_report_trace_gaps_plot(path, g->gap, &g->l, &err); /* or no gnuplot */
	strcpy(path + strlen(path) - 3, "dat");
	at = text = file_text(path);
	at = words_are(at, "# what, recorded ms, predicted ms\n");
	for (int i = 0; i < FT_TRACE_GAPS; i++) {
		snprintf(label, sizeof(label), "\"%s\"", g->gap[i].what);
		at = data_is(at, label, 1e3 * g->gap[i].recorded_s,
			     1e3 * g->gap[i].predicted_s);
	}
	for (size_t back = 0; both_of(g) && back < 2; back++) {
		at = words_are(
			at,
			back ? "\n\n# layer, backward: recorded ms, predicted ms\n" :
			       "\n\n# layer, forward: recorded ms, predicted ms\n");
		for (int64_t i = 0; i < both_of(g); i++) {
			snprintf(label, sizeof(label), "%d", (int)i);
			at = data_is(at, label, 1e3 * g->of[0][i][back].all_s,
				     1e3 * g->of[1][i][back].all_s);
		}
	}
	assert_string_equal(at, "");
	free(text);
	strcpy(path + strlen(path) - 3, "gp");
	text = file_text(path);
	assert_non_null(strstr(text, both_of(g) ? "set multiplot layout 2,1\n" :
						  "set multiplot layout 1,1\n"));
	assert_int_equal(!!strstr(text, "index 2 using 1:3"), both_of(g) > 0);
	free(text);
}

static void gaps_are_told_as_they_are(void **state)
{
	const struct scratch *s = *state;
	static struct gaps g;

	for (int i = 0; i < DRAWS; i++) {
		draw_gaps(&g);
		the_text_is(&g);
		the_json_is(&g);
		if (i < 4)
			the_plot_is(&g, s->folder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gaps_are_told_as_they_are),
	};

	return cmocka_run_group_tests_name("gaps told", tests, NULL, NULL);
}
