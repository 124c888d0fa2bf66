/*
 * tests/test_evidence_drawn.c - ranges and nearest runs of drawn evidence, worked out as study/evidence.h says: run
 * by run, source by source
 */
#include <math.h>

#include "study/evidence_file.h"
#include "study/traits.h"
#include "tests/check.h"

enum { DRAWS = 600, RUNS = 24, SOURCES = 6, GROUPS = 5, WORDS = 11, NUMBERS = 9 };

static uint64_t seed = 41;

static const char *const names[] = { "gpu",	     "generation",
				     "stack",	     "stack_root",
				     "model",	     "precision",
				     "sharding",     "optimizer",
				     "trained",	     "offload_state",
				     "attention",    "flop_per_token",
				     "gpus",	     "sequence",
				     "micro_tokens", "micro_batches",
				     "tp",	     "pp",
				     "cp",	     "ep" };

struct made {
	struct ft_evidence e;
	bool unnamed[RUNS + 1];
	struct run run[RUNS];
	struct group group[GROUPS];
	const char *source[SOURCES];
	const char *word[RUNS + 1][WORDS];
	double number[RUNS + 1][NUMBERS];
};

static double part(void)
{
	return rnd_below(&seed, 1000) / 1000.;
}

/* Mostly like all others. The last of the drawn is what is asked about. */
static struct ft_traits draw_traits(struct made *m, size_t i)
{
	static const char *const words[] = { "a", "a", "a", "b",
					     "a word that is so long "
					     "that it fills what is "
					     "told of a run" };
	const char **w = m->word[i];
	double *x = m->number[i];

	for (int k = 0; k < WORDS; k++)
		w[k] = words[rnd_below(&seed, 5)];
	m->unnamed[i] = rnd_below(&seed, 6) == 0;
	for (int k = 0; k < NUMBERS; k++)
		x[k] = rnd_below(&seed, 3) ? 4 : 1 << rnd_below(&seed, 6);
	x[0] *= 1.25e9;
	return (struct ft_traits){ .gpu = w[0],
				   .generation = w[1],
				   .stack = w[2],
				   .stack_root = w[3],
				   .unnamed = m->unnamed[i],
				   .model = w[4],
				   .precision = w[5],
				   .sharding = w[6],
				   .optimizer = w[7],
				   .trained = w[8],
				   .offload_state = w[9],
				   .attention = w[10],
				   .flop_per_token = x[0],
				   .gpus = x[1],
				   .sequence = x[2],
				   .micro_tokens = x[3],
				   .micro_batches = x[4],
				   .tp = x[5],
				   .pp = x[6],
				   .cp = x[7],
				   .ep = x[8],
				   .kernel_spread_frac = part() * 0.2,
				   .host_spread_frac = part() * 0.2,
				   .clock_faster_frac = part() * 0.2,
				   .clock_slower_frac = part() * 0.2 };
}

static void draw(struct made *m)
{
	static const char *const sources[] = { "s0", "s1", "s2", "s3", "s4", "s5" };
	static const char *const groups[] = { "g0", "g1", "g2", "g3" };

	*m = (struct made){ .e = { .widening = part(),
				   .missing_sources = 3 * part() } };
	m->e.run = m->run;
	m->e.group = m->group;
	m->e.n_groups = (size_t)rnd_below(&seed, GROUPS + 1);
	m->e.source = m->source;
	m->e.n_sources = (size_t)(1 + rnd_below(&seed, SOURCES));
	m->e.n = (size_t)(1 + rnd_below(&seed, RUNS));
	for (size_t s = 0; s < m->e.n_sources; s++)
		m->source[s] = sources[s];
	for (size_t i = 0; i < m->e.n_groups; i++)
		m->group[i] = (struct group){
			groups[rnd_below(&seed, 4)],
			(size_t)rnd_below(&seed, (int)m->e.n_sources),
		};
	for (int t = 0; t < WORDS + NUMBERS; t++)
		m->e.distance[t] = /* hardly ever as far apart as another */
			rnd_below(&seed, 4) ? rnd_below(&seed, 999983) / 1e6 : 0;
	for (size_t i = 0; i < m->e.n; i++)
		m->run[i] = (struct run){
			.id = names[i % 16],
			.source = (size_t)rnd_below(&seed, (int)m->e.n_sources),
			.traits = draw_traits(m, i),
			/* some are equal */
			.log_ratio = rnd_below(&seed, 5) ? part() - 0.5 : 0.125,
		};
}

/* ---- as the header says ---------------------------------------------------------------- */

struct worked {
	double d[RUNS], w[RUNS], c[SOURCES], all;
	bool speaks[RUNS];
	int nearest[SOURCES]; /* -1: none of its runs speaks */
	int n;
};

static double trait_apart(const struct made *m, size_t i, int t)
{
	const char *const *a = m->word[i], *const *b = m->word[RUNS];

	if (t < WORDS)
		return m->e.distance[t] * (strcmp(a[t], b[t]) != 0);
	return m->e.distance[t] *
	       fabs(log(m->number[i][t - WORDS] / m->number[RUNS][t - WORDS]) / log(2));
}

static void find_speakers(const struct made *m, const char *group, struct worked *x)
{
	bool silent[SOURCES] = { false };

	for (size_t i = 0; i < m->e.n_groups; i++)
		silent[m->group[i].source] |= group && !strcmp(m->group[i].name, group);
	for (size_t i = 0; i < m->e.n; i++) {
		double sum = 0;

		x->speaks[i] =
			!silent[m->run[i].source] && m->unnamed[i] == m->unnamed[RUNS];
		x->n += x->speaks[i];
		for (int t = 0; t < WORDS + NUMBERS; t++)
			sum += trait_apart(m, i, t) * trait_apart(m, i, t);
		x->d[i] = sqrt(sum);
	}
}

static void work_out(const struct made *m, const char *group, struct worked *x)
{
	*x = (struct worked){ .n = 0 };
	find_speakers(m, group, x);
	for (size_t s = 0; s < m->e.n_sources; s++) {
		double sum = 0;

		x->nearest[s] = -1;
		for (size_t i = 0; i < m->e.n; i++)
			if (x->speaks[i] && m->run[i].source == s) {
				sum += exp(-x->d[i]);
				if (x->nearest[s] < 0 || x->d[i] < x->d[x->nearest[s]])
					x->nearest[s] = (int)i;
			}
		if (x->nearest[s] < 0)
			continue;
		x->c[s] = exp(-x->d[x->nearest[s]]);
		x->all += x->c[s];
		for (size_t i = 0; i < m->e.n; i++)
			if (x->speaks[i] && m->run[i].source == s)
				x->w[i] = x->c[s] * exp(-x->d[i]) / sum;
	}
}

/* Where weights that are added up by residual, each counted half at its own, reach this part of all. */
static double quantile(const struct made *m, const struct worked *x, double level)
{
	double from = NAN, value = NAN, want = level * x->all;

	for (int rank = 0; rank < x->n; rank++) {
		double below = 0, here, r = 0, w = 0;

		for (size_t i = 0; i < m->e.n; i++) {
			int before = 0;
			double sum = 0;

			for (size_t k = 0; k < m->e.n; k++)
				if (x->speaks[k] &&
				    (m->run[k].log_ratio < m->run[i].log_ratio ||
				     (m->run[k].log_ratio == m->run[i].log_ratio &&
				      k < i))) {
					before++;
					sum += x->w[k];
				}
			if (x->speaks[i] && before == rank)
				below = sum, r = m->run[i].log_ratio, w = x->w[i];
		}
		here = below + w / 2;
		if (here >= want)
			return rank && here > from ?
				       value + (r - value) * (want - from) /
						       (here - from) :
				       r;
		from = here;
		value = r;
	}
	return value;
}

/* On the side that is faster, or slower. */
static double own_spread_of(const struct ft_traits *of, bool faster)
{
	return hypot(hypot(of->kernel_spread_frac, of->host_spread_frac),
		     faster ? of->clock_faster_frac : of->clock_slower_frac);
}

/* How far a side goes from the middle, whose quantile is at `reach`. */
static double side(const struct made *m, const struct worked *x,
		   const struct ft_traits *of, double reach, bool faster)
{
	double own = own_spread_of(of, faster), known = 0, least = INFINITY;

	for (size_t i = 0; i < m->e.n; i++) {
		if (x->speaks[i])
			least = fmin(least, x->d[i]);
		known += x->w[i] / x->all *
			 pow(own_spread_of(&m->run[i].traits, faster), 2);
	}
	return hypot((1 + m->e.widening * least) * reach,
		     1.2816 * sqrt(fmax(0, own * own - known)));
}

static void check_range(const struct made *m, const struct worked *x,
			const struct evidence_answer *a, const struct ft_traits *of)
{
	double squares = 0, n, level, middle, low, high;

	for (size_t s = 0; s < m->e.n_sources; s++)
		squares += x->c[s] * x->c[s];
	n = x->all * x->all / squares;
	level = 0.1 * n / (n + m->e.missing_sources);
	middle = quantile(m, x, 0.5);
	low = middle - side(m, x, of, middle - quantile(m, x, level), true);
	high = middle + side(m, x, of, quantile(m, x, 1 - level) - middle, false);
	near_frac(a->low - 10, fmin(0, low) - 10, 1e-9);
	near_frac(a->high + 10, fmax(0, high) + 10, 1e-9);
}

/* The three greatest differences, as far as they fit. */
static void check_differs(const struct made *m, size_t i, const struct ft_near *near)
{
	bool told[WORDS + NUMBERS] = { false };
	char want[sizeof(near->differs)] = "";

	for (int k = 0; k < 3; k++) {
		char text[96];
		int worst = -1;

		for (int t = 0; t < WORDS + NUMBERS; t++)
			if (!told[t] && trait_apart(m, i, t) > 0 &&
			    (worst < 0 ||
			     trait_apart(m, i, t) > trait_apart(m, i, worst) + 1e-12))
				worst = t;
		if (worst < 0)
			break;
		told[worst] = true;
		if (worst < WORDS)
			snprintf(text, sizeof(text), "%s%s %.63s", k ? ", " : "",
				 names[worst], m->word[i][worst]);
		else
			snprintf(text, sizeof(text),
				 worst == WORDS ? "%s%s %.3g" : "%s%s %.6g",
				 k ? ", " : "", names[worst],
				 m->number[i][worst - WORDS]);
		if (strlen(want) + strlen(text) >= sizeof(want))
			break;
		strcat(want, text);
	}
	assert_string_equal(near->differs, want);
}

static void check_nearest(const struct made *m, const struct worked *x,
			  const struct evidence_answer *a)
{
	bool told[SOURCES] = { false };
	size_t n = 0;

	for (; n < FT_NEAREST; n++) {
		int best = -1, run;

		for (size_t s = 0; s < m->e.n_sources; s++)
			if (!told[s] && x->nearest[s] >= 0 &&
			    (best < 0 ||
			     x->d[x->nearest[s]] < x->d[x->nearest[best]] - 1e-12))
				best = (int)s;
		if (best < 0)
			break;
		told[best] = true;
		run = x->nearest[best];
		assert_true(n < a->n_nearest);
		near_frac(1 + a->nearest[n].distance, 1 + x->d[run], 1e-9);
		if (strcmp(a->nearest[n].source, m->source[best]) != 0)
			continue; /* as near as another */
		assert_string_equal(a->nearest[n].id, m->run[run].id);
		near_frac(2 + a->nearest[n].error_frac, 1 + exp(-m->run[run].log_ratio),
			  1e-9);
		check_differs(m, (size_t)run, &a->nearest[n]);
	}
	assert_int_equal(a->n_nearest, n);
}

static void check(struct made *m, const char *group, int *refused)
{
	struct ft_traits of = draw_traits(m, RUNS);
	struct evidence_answer a;
	struct ft_error err;
	struct worked x;
	bool gpu = false, stack = false, attention = false;

	work_out(m, group, &x);
	if (!evidence_ask(&m->e, &of, group, &a, &err)) {
		assert_int_equal(x.n, 0);
		++*refused;
		return;
	}
	assert_true(x.n > 0);
	for (size_t i = 0; i < m->e.n; i++) {
		gpu |= x.speaks[i] && !strcmp(m->word[i][0], of.gpu);
		stack |= x.speaks[i] && !strcmp(m->word[i][2], of.stack);
		attention |= x.speaks[i] && !strcmp(m->word[i][10], of.attention);
	}
	assert_int_equal(a.gpu_measured, gpu);
	assert_int_equal(a.stack_measured, stack);
	assert_int_equal(a.attention_measured, attention);
	check_nearest(m, &x, &a);
	check_range(m, &x, &a, &of);
}

static void ranges_are_weighted_quantiles_of_what_was_measured(void **state)
{
	static const char *const groups[] = { NULL, "g0", "g2" };
	struct made *m = malloc(sizeof(*m));
	int refused = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		draw(m);
		check(m, groups[i % 3], &refused);
	}
	assert_in_range(refused, 1, DRAWS / 3);
	free(m);
}

/* The table of traits is the one above, in that order. */
static void traits_are_the_columns_of_the_table(void **state)
{
	const struct ft_trait *t;

	(void)state;
	assert_int_equal(ft_trait_table(&t), WORDS + NUMBERS);
	for (int i = 0; i < WORDS + NUMBERS; i++) {
		assert_string_equal(t[i].name, names[i]);
		assert_int_equal(t[i].number, i >= WORDS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_weighted_quantiles_of_what_was_measured),
		cmocka_unit_test(traits_are_the_columns_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
