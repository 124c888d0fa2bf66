/* tests/test_evidence.c - ranges and nearest runs: laws of study/evidence.h, on runs made up here */
#include <math.h>

#include "study/evidence_file.h"
#include "tests/check.h"

enum { MOST_RUNS = 400 };

/* Evidence that a test fills; no arena of its own. */
struct made {
	struct ft_evidence e;
	struct run run[MOST_RUNS];
	struct group group[MOST_RUNS]; /* of each run */
	const char *source[MOST_RUNS];
};

static struct ft_traits plain(void)
{
	return (struct ft_traits){ .gpu = "g",
				   .generation = "gen",
				   .stack = "s",
				   .stack_root = "s",
				   .model = "dense",
				   .precision = "bf16",
				   .sharding = "ddp",
				   .optimizer = "adam",
				   .trained = "all",
				   .offload_state = "none",
				   .attention = "heads",
				   .flop_per_token = 1e9,
				   .gpus = 8,
				   .sequence = 4096,
				   .micro_tokens = 4096,
				   .micro_batches = 1,
				   .tp = 1,
				   .pp = 1,
				   .cp = 1,
				   .ep = 1 };
}

/* All traits weigh the same. */
static struct made *make(void)
{
	struct made *m = calloc(1, sizeof(*m));

	m->e.run = m->run;
	m->e.group = m->group;
	m->e.source = m->source;
	for (int i = 0; i < MOST_TRAITS; i++)
		m->e.distance[i] = 1;
	return m;
}

static struct run *add(struct made *m, const char *source, double log_ratio)
{
	struct run *r = &m->run[m->e.n++];
	size_t s = 0;

	while (s < m->e.n_sources && strcmp(m->source[s], source))
		s++;
	if (s == m->e.n_sources)
		m->source[m->e.n_sources++] = source;
	m->group[m->e.n_groups++] = (struct group){ source, s };
	*r = (struct run){
		.id = source, .source = s, .traits = plain(), .log_ratio = log_ratio
	};
	return r;
}

static struct evidence_answer ask(struct made *m, struct ft_traits of,
				  const char *group)
{
	struct evidence_answer a;
	struct ft_error err = { 0 };

	ok_or_say(evidence_ask(&m->e, &of, group, &a, &err), err);
	return a;
}

/* Ten sources, one run each, all alike: the quantiles of a sorted list, each value at the
 * middle of its tenth. 0.1 lies at the middle between the first two, at 0.05 and 0.15. */
static void alike_runs_give_plain_quantiles(void **state)
{
	static const char *const name[] = { "a", "b", "c", "d", "e",
					    "f", "g", "h", "i", "j" };
	struct made *m = make();
	struct evidence_answer a;

	(void)state;
	for (int i = 0; i < 10; i++)
		add(m, name[(i * 7) % 10], 0.1 * ((i * 7) % 10) - 0.45);
	a = ask(m, plain(), NULL);
	near_frac(a.low, (-0.45 - 0.35) / 2, 1e-9);
	near_frac(a.high, (0.45 + 0.35) / 2, 1e-9);
	m->e.missing_sources = 1e9; /* hardly anything is known: the extremes */
	a = ask(m, plain(), NULL);
	near_frac(a.low, -0.45, 1e-9);
	near_frac(a.high, 0.45, 1e-9);
	free(m);
}

static void a_source_counts_once_however_many_runs_it_has(void **state)
{
	struct made *few = make(), *many = make();
	struct evidence_answer a, b;

	(void)state;
	for (int i = 0; i < 300; i++) {
		if (i < 3)
			add(few, "large", 0.2 + 0.01 * i);
		add(many, "large", 0.2 + 0.01 * (i / 100));
	}
	add(few, "small", -0.3);
	add(many, "small", -0.3);
	a = ask(few, plain(), NULL);
	b = ask(many, plain(), NULL);
	near_frac(a.low, b.low, 0.05);
	near_frac(a.high, b.high, 0.05);
	assert_true(b.low < -0.25);
	free(few);
	free(many);
}

static void a_row_s_own_source_is_silent(void **state)
{
	struct made *m = make();
	struct evidence_answer a;

	(void)state;
	add(m, "mine", 0.9);
	add(m, "mine", 0.9);
	m->group[1].name = "another file of mine";
	add(m, "other", 0.1);
	assert_true(ask(m, plain(), NULL).high > 0.5);
	a = ask(m, plain(), "another file of mine");
	near_frac(a.high, 0.1, 1e-9);
	assert_true(a.n_nearest == 1);
	assert_string_equal(a.nearest[0].source, "other");
	a = ask(m, plain(), "nobody's");
	assert_true(a.n_nearest == 2);
	free(m);
}

static void nearer_sources_count_more_and_far_ones_widen(void **state)
{
	struct made *m = make();
	struct ft_traits far = plain();
	struct evidence_answer a, b;

	(void)state;
	add(m, "x", -0.2);
	add(m, "x", 0.2);
	add(m, "y", 1)->traits.model = "experts";
	add(m, "y", 1)->traits.model = "experts";
	a = ask(m, plain(), NULL);
	far.model = "experts";
	b = ask(m, far, NULL);
	assert_true(b.high >= a.high && b.low > a.low);
	far = plain();
	far.gpu = "unknown";
	far.gpus = 1024;
	b = ask(m, far, NULL);
	near_frac(b.high, a.high, 1e-9); /* both as much farther */
	m->e.widening = 0.5;
	b = ask(m, far, NULL);
	assert_true(b.high > a.high && b.low < a.low);
	assert_true(a.gpu_measured && !b.gpu_measured && b.stack_measured);
	free(m);
}

/* In quadrature, and only what the plan's kernels are less certain than the runs'. */
static void uncertain_kernels_widen(void **state)
{
	struct made *m = make();
	struct ft_traits x = plain();
	struct evidence_answer a, b;

	(void)state;
	add(m, "x", -0.1)->traits.kernel_spread_frac = 0.1;
	add(m, "y", 0.1)->traits.kernel_spread_frac = 0.1;
	x.kernel_spread_frac = 0.05;
	a = ask(m, x, NULL);
	near_frac(a.high, 0.1, 1e-9);
	x.kernel_spread_frac = sqrt(0.01 + 0.04);
	b = ask(m, x, NULL);
	near_frac(b.high, hypot(0.1, 1.2816 * 0.2), 1e-6);
	near_frac(b.low, -b.high, 1e-9);
	x.kernel_spread_frac = sqrt(0.01 + 0.03);
	x.host_spread_frac = 0.1; /* as good as kernels */
	near_frac(ask(m, x, NULL).high, b.high, 1e-9);
	free(m);
}

/* How far clocks may be higher says nothing of how slow a step may be. */
static void unsure_clocks_widen_their_side(void **state)
{
	struct made *m = make();
	struct ft_traits x = plain();
	struct evidence_answer a;

	(void)state;
	add(m, "x", -0.1);
	add(m, "y", 0.1);
	x.clock_faster_frac = 0.2;
	a = ask(m, x, NULL);
	near_frac(a.low, -hypot(0.1, 1.2816 * 0.2), 1e-6);
	near_frac(a.high, 0.1, 1e-9);
	x.clock_slower_frac = 0.1;
	a = ask(m, x, NULL);
	near_frac(a.low, -hypot(0.1, 1.2816 * 0.2), 1e-6);
	near_frac(a.high, hypot(0.1, 1.2816 * 0.1), 1e-6);
	free(m);
}

static void the_prediction_is_in_its_own_range(void **state)
{
	struct made *m = make();
	struct evidence_answer a;

	(void)state;
	add(m, "x", 0.2);
	add(m, "y", 0.3);
	a = ask(m, plain(), NULL);
	assert_true(a.low == 0 && a.high > 0.2);
	free(m);
}

static void unnamed_stacks_have_runs_of_their_own(void **state)
{
	struct made *m = make();
	struct ft_traits x = plain();
	struct evidence_answer a;
	struct ft_error err = { 0 };

	(void)state;
	add(m, "x", 0.2)->traits.unnamed = true;
	assert_false(evidence_ask(&m->e, &x, NULL, &a, &err));
	assert_non_null(strstr(err.text, "make residuals"));
	x.unnamed = true;
	near_frac(ask(m, x, NULL).high, 0.2, 1e-9);
	x.stack_root =
		FT_STACK_UNNAMED; /* what a stack is called says nothing of that */
	add(m, "y", 0.3)->traits.stack_root = FT_STACK_UNNAMED;
	near_frac(ask(m, x, NULL).high, ask(m, x, "y").high, 1e-9);
	x.unnamed = false;
	near_frac(ask(m, x, NULL).high, 0.3, 1e-9);
	free(m);
}

static void the_nearest_run_of_each_near_source_is_told(void **state)
{
	struct made *m = make();
	struct evidence_answer a;

	(void)state;
	add(m, "c", 0)->traits.gpus = 64;
	add(m, "a", 0)->traits.gpus = 32;
	add(m, "a", log(1.25))->traits.gpus = 16;
	add(m, "b", 0)->traits.tp = 1.5;
	add(m, "d", 0)->traits.gpus = 1024;
	a = ask(m, plain(), NULL);
	assert_true(a.n_nearest == FT_NEAREST);
	assert_string_equal(a.nearest[0].source, "b");
	assert_string_equal(a.nearest[1].source, "a");
	assert_string_equal(a.nearest[2].source, "c");
	near_frac(a.nearest[1].distance, 1, 1e-9);
	near_frac(a.nearest[1].error_frac, -0.2, 1e-9);
	assert_string_equal(a.nearest[1].differs, "gpus 16");
	free(m);
}

/* Of a run that is alike the file has 4.28637e+10 where the scenario has 42863689728. */
static void what_was_rounded_is_no_difference(void **state)
{
	struct made *m = make();
	struct ft_traits of = plain();
	struct evidence_answer a;

	(void)state;
	of.flop_per_token = 42863689728;
	add(m, "a", 0)->traits.flop_per_token = 4.28637e10;
	add(m, "b", 0)->traits.flop_per_token = 4.28637e10;
	m->run[1].traits.gpus = 9;
	add(m, "c", 0)->traits.flop_per_token = 4.28650e10;
	a = ask(m, of, NULL);
	assert_string_equal(a.nearest[0].differs, "");
	assert_string_equal(a.nearest[1].differs, "flop_per_token 4.29e+10");
	assert_string_equal(a.nearest[2].differs, "gpus 9");
	free(m);
}

static void the_tree_s_own_evidence_loads(void **state)
{
	struct ft_error err = { 0 };

	(void)state;
	for (int unnamed = 0; unnamed < 2; unnamed++) {
		struct ft_evidence *e = evidence_load(unnamed, &err);

		ok_or_say(e, err);
		assert_true(e->n > 100 && e->n_sources > 5);
		for (size_t i = 0; i < e->n; i++) {
			assert_true(isfinite(e->run[i].log_ratio));
			assert_int_equal(e->run[i].traits.unnamed, unnamed);
		}
		evidence_free(e);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(alike_runs_give_plain_quantiles),
		cmocka_unit_test(a_source_counts_once_however_many_runs_it_has),
		cmocka_unit_test(a_row_s_own_source_is_silent),
		cmocka_unit_test(nearer_sources_count_more_and_far_ones_widen),
		cmocka_unit_test(uncertain_kernels_widen),
		cmocka_unit_test(unsure_clocks_widen_their_side),
		cmocka_unit_test(the_prediction_is_in_its_own_range),
		cmocka_unit_test(unnamed_stacks_have_runs_of_their_own),
		cmocka_unit_test(the_nearest_run_of_each_near_source_is_told),
		cmocka_unit_test(what_was_rounded_is_no_difference),
		cmocka_unit_test(the_tree_s_own_evidence_loads),
	};

	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
