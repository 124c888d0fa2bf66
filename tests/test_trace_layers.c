/*
 * tests/test_trace_layers.c - a recorded step by layer: made-up steps whose layers are known and whose kernels take drawn
 * times, each layer and what is outside of all added up here, over the steps and ranks that are asked for
 */
#include <math.h>

#include "base/arena.h"
#include "foretoken/study_whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 120, RANKS = 2, STEPS = 3, LAYERS = 3, OPS = 29 };

static uint64_t seed = 151;

/* A letter a kernel: "a" is attention, "b" attention backward, other small letters products, capitals
 * kernels bound by memory, "W" the optimizer's. */
static const char word[OPS + 1] = "ENqaoNqaoNqaoHhhxbyyxbyyxbyyW";

/* Layers forward and backward, from their first product to the next one's, the last without the
 * norm that leads each: as tests/test_layers.c finds them. */
static const struct {
	int layer, backward, from, to;
} layers[] = {
	{ 0, 0, 2, 6 },	  { 1, 0, 6, 10 },  { 2, 0, 10, 13 },
	{ 2, 1, 16, 20 }, { 1, 1, 20, 24 }, { 0, 1, 24, 28 },
};

enum { PASSES = sizeof(layers) / sizeof(*layers) };

struct step {
	int begin[OPS + 1], took[OPS], mark; /* us; behind the last: its end */
};

struct drawn {
	int ranks, steps;
	struct step step[RANKS][STEPS];
};

static void draw(struct drawn *d)
{
	*d = (struct drawn){ .ranks = 1 + rnd_below(&seed, RANKS),
			     .steps = 1 + rnd_below(&seed, STEPS) };
	for (int r = 0; r < d->ranks; r++)
		for (int s = 0, at = 100; s < d->steps; s++, at += 50) {
			struct step *x = &d->step[r][s];

			x->mark = at;
			for (int i = 0; i < OPS; i++) {
				at += rnd_below(&seed, 3) ? 0 : 1 + rnd_below(&seed, 9);
				x->begin[i] = at;
				x->took[i] = 1 + rnd_below(&seed, 30);
				at += x->took[i];
			}
			x->begin[OPS] = at;
		}
}

static const char *name_of(char letter, char to[40])
{
	if (letter == 'a' || letter == 'b')
		snprintf(to, 40, "flash_%s", letter == 'a' ? "fwd" : "bwd");
	else
		snprintf(to, 40, "%s_%c",
			 letter == 'W' ? "FusedOptimizer" :
			 letter < 'a'  ? "elementwise" :
					 "gemm",
			 letter);
	return to;
}

static struct ft_recording *recorded(const struct drawn *d, int rank)
{
	char name[40], *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct ft_recording *r;

	fprintf(out,
		"{\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},\"traceEvents\":[\n",
		rank, RANKS);
	for (int s = 0; s < d->steps; s++) {
		const struct step *x = &d->step[rank][s];

		fprintf(out,
			"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
			"\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,"
			"\"args\":{}},\n",
			5 + s, x->mark, x->begin[OPS] - x->mark);
		for (int i = 0; i < OPS; i++)
			fprintf(out,
				"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":"
				"0,\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"stream\":7,"
				"\"correlation\":%d}},\n",
				name_of(word[i], name), x->begin[i], x->took[i],
				100 * s + i);
	}
	fputs("{\"ph\":\"M\",\"name\":\"end\"}]}\n", out);
	fclose(out);
	r = read_text(text);
	free(text);
	return r;
}

/* ---- added up ------------------------------------------------------------------------------ */

static enum ft_trace_kind kind_of(char letter)
{
	return letter == 'a' || letter == 'b' ? FT_TRACE_ATTENTION :
	       letter >= 'a'		      ? FT_TRACE_PRODUCTS :
						FT_TRACE_MEMORY;
}

/* Kernels from one place of the word to another, and the time until what is there. */
static void add_ops(struct ft_trace_time *to, const struct step *x, int from, int end,
		    double share)
{
	double all = x->begin[end] - x->begin[from], idle = all;

	for (int i = from; i < end; i++) {
		to->kind_s[kind_of(word[i])] += x->took[i] * 1e-6 * share;
		idle -= x->took[i];
	}
	to->kind_s[FT_TRACE_IDLE] += idle * 1e-6 * share;
	to->all_s += all * 1e-6 * share;
}

static bool is_asked(const struct drawn *d, const char *asked, int s)
{
	return asked ? atoi(strchr(asked, '#') ? strchr(asked, '#') + 1 : asked) ==
			       5 + s :
		       s > 0 || d->steps == 1;
}

static void add_up(const struct drawn *d, const char *asked,
		   struct ft_trace_time layer[LAYERS][2], struct ft_trace_time *outside)
{
	int n = 0;

	for (int s = 0; s < d->steps; s++)
		n += d->ranks * is_asked(d, asked, s);
	for (int r = 0; r < d->ranks; r++)
		for (int s = 0; s < d->steps; s++) {
			const struct step *x = &d->step[r][s];
			int at = 0;

			if (!is_asked(d, asked, s))
				continue;
			outside->all_s += (x->begin[0] - x->mark) * 1e-6 / n;
			outside->kind_s[FT_TRACE_IDLE] +=
				(x->begin[0] - x->mark) * 1e-6 / n;
			for (int p = 0; p < PASSES; p++) {
				add_ops(outside, x, at, layers[p].from, 1.0 / n);
				add_ops(&layer[layers[p].layer][layers[p].backward], x,
					layers[p].from, layers[p].to, 1.0 / n);
				at = layers[p].to;
			}
			add_ops(outside, x, at, OPS, 1.0 / n);
		}
}

static void is_time(const struct ft_trace_time *is, const struct ft_trace_time *want)
{
	assert_true(fabs(is->all_s - want->all_s) < 1e-12);
	for (int k = 0; k < FT_TRACE_KINDS; k++)
		if (!(fabs(is->kind_s[k] - want->kind_s[k]) < 1e-12))
			fail_msg("%s: %.9g s, wanted %.9g",
				 ft_trace_kind_name((enum ft_trace_kind)k),
				 is->kind_s[k], want->kind_s[k]);
}

static void check(const struct drawn *d, const struct ft_replay *p, const char *asked)
{
	struct ft_trace_time layer[LAYERS][2] = { 0 }, outside = { 0 };
	struct ft_whatif_request q = { .replay = p, .step = asked };
	struct arena mem = { 0 };
	struct ft_trace_side is = ft_study_trace_layers(&q, false, &mem);

	add_up(d, asked, layer, &outside);
	assert_int_equal(is.layers, LAYERS);
	assert_int_equal(is.in_forward, 3); /* products and attention */
	assert_int_equal(is.in_backward, 4);
	for (int i = 0; i < LAYERS; i++)
		for (int b = 0; b < 2; b++)
			is_time(&is.layer[i][b], &layer[i][b]);
	is_time(&is.outside, &outside);
	arena_release(&mem);
}

static void layers_of_the_steps_asked_for_are_added_up(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_recording *r[RANKS];
		struct ft_replay *p;
		struct ft_error err;
		struct drawn d;

		draw(&d);
		for (int k = 0; k < d.ranks; k++)
			r[k] = recorded(&d, k);
		p = ft_replay_build((const struct ft_recording *const *)r,
				    (size_t)d.ranks, &err);
		ok_or_say(p, err);
		check(&d, p, NULL);
		check(&d, p, "5");
		check(&d, p, "ProfilerStep#5");
		ft_replay_free(p);
		for (int k = 0; k < d.ranks; k++)
			ft_recording_free(r[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_of_the_steps_asked_for_are_added_up),
	};
	int status = cmocka_run_group_tests_name("trace layers", tests, NULL, NULL);

	unlink(made_path());
	return status;
}
