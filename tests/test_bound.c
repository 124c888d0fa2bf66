/* tests/test_bound.c - outlines and bounds against whole steps, on plans drawn at random */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"
#include "tests/few.h"
#include "tests/plan_drawn.h"

#ifdef TESTS_FEW
enum { FEW = 60, PLANS = FEW, DUALS_FEW = 10, DUALS = DUALS_FEW };
#else
enum { FEW = 60, PLANS = 700, DUALS_FEW = 10, DUALS = 70 };
#endif

struct tally {
	int steps, bounded;
	double sum, loose; /* of bound / step */
	double least;
};

/* The outline counts what the step runs, and its memory is the step's. */
static void outline_is_the_step(const struct ft_scenario *s, const struct ft_outline *o,
				const struct ft_graph *g, double peak_bytes)
{
	double *a = calloc(g->n_works, sizeof(*a)), *b = calloc(g->n_works, sizeof(*b));

	assert_int_equal(o->graph.n_works, g->n_works);
	assert_int_equal(o->graph.host_runs_ahead, g->host_runs_ahead);
	for (size_t c = 0; c < g->n_classes; c++)
		for (int which = 0; which < 2; which++) {
			const struct ft_graph *x = which ? g : &o->graph;
			const struct ft_class *k = &x->rank_class[c];

			for (size_t i = 0; i < k->n_calls; i++) {
				const struct ft_segment *seg =
					&x->segment[k->call[i].segment];

				for (size_t j = 0; j < seg->n_ops; j++) {
					const struct ft_work *w =
						&x->work[seg->op[j].work];
					size_t at = 0;

					while (!ft_work_same(&g->work[at], w) ||
					       strcmp(g->work[at].name, w->name))
						at++;
					(which ? a : b)[at] += k->call[i].repeat;
				}
			}
		}
	for (size_t i = 0; i < g->n_works; i++)
		assert_true(a[i] == b[i]);
	near_frac(ft_outline_peak_bytes(o) * (double)s->cluster->gpu->ranks_per_gpu,
		  peak_bytes, 1e-9);
	free(a);
	free(b);
}

static void hold(const char *text, struct ft_shelf *shelf, struct tally *t)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "drawn", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome out;
	struct ft_outline *o;
	struct ft_graph *g;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "drawn", true, &err);
	if (s && ft_study_simulate(s, NULL, NULL, &out, &err)) {
		struct ft_sim_job job = { .cluster = s->cluster,
					  .stack = s->stack,
					  .ccl = s->ccl,
					  .start = s->plan->step_start };
		struct ft_bound bound, loose;
		struct ft_sketch *sketch;
		struct ft_sketched *sketched;

		t->steps++;
		sketch = ft_sketch_build(s->model, s->plan, s->stack, &err);
		ok_or_say(sketch, err);
		sketched = ft_sim_sketch(&job, sketch, s->memo, &err);
		ok_or_say(sketched, err);
		loose = ft_sketched_bound(sketched, s->plan);
		ft_sketched_free(sketched);
		ft_sketch_free(sketch);
		assert_true(loose.busy_s <=
			    out.run->gpu_busy_frac * out.step_s * (1 + 1e-9));
		if (loose.step > out.run->step)
			fail_msg("sketched bound %.9f s above step %.9f s of %s",
				 ft_s_from_ps(loose.step), out.step_s, text);
		t->loose += ft_s_from_ps(loose.step) / out.step_s;
		g = ft_graph_build(s->model, s->plan, s->stack, &err);
		ok_or_say(g, err);
		o = ft_outline_build(s->model, s->plan, s->stack, &err);
		if (!o)
			assert_string_equal(err.text, "");
		if (o) {
			outline_is_the_step(s, o, g, out.memory_total_bytes);
			ok_or_say(ft_sim_bound(&job, o, s->memo, false, &bound, &err),
				  err);
			assert_true(bound.busy_s <=
				    out.run->gpu_busy_frac * out.step_s * (1 + 1e-9));
			if (bound.step > out.run->step)
				fail_msg("bound %.9f s above step %.9f s of %s",
					 ft_s_from_ps(bound.step), out.step_s, text);
			t->bounded++;
			t->sum += ft_s_from_ps(bound.step) / out.step_s;
			t->least =
				fmin(t->least, ft_s_from_ps(bound.step) / out.step_s);
		}
		ft_outline_free(o);
		ft_graph_free(g);
		ft_outcome_release(&out);
	} else if (s) {
		assert_null(strstr(err.text, "cannot finish"));
	}
	ft_scenario_free(s);
	arena_release(&mem);
}

/* On one GPU nothing runs beside the kernels: it is busy for as long as the bound says, and that is
 * the step but for the host. */
static void one_gpu_is_busy_for_its_bound(void **state)
{
	static const char *const models[] = { "llama3-8b", "gpt-1.5b", "mixtral-8x7b" };
	static const char *const recompute[] = { "none", "selective", "full" };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (int i = 0; i < 3 * 3 * 2; i++) {
		struct arena mem = { 0 };
		const char *text = arena_printf(
			&mem,
			"{model: {name: %s, num_hidden_layers: 3}, cluster: {gpu: "
			"h200, gpus: 1}, stack: %s, training: {sequence_length: 1024, "
			"global_batch_size: 4, micro_batch_size: %d, recompute: %s}}",
			models[i % 3], i / 9 ? "torch-2.11-eager" : "megatron-core",
			i % 2 + 1, recompute[i / 3 % 3]);
		struct ft_error err;
		struct node *n = node_read_text(&mem, "one", text, strlen(text), &err);
		struct ft_scenario *s;
		struct ft_outline *o;
		struct ft_outcome out;
		struct ft_bound bound;
		struct ft_sim_job job;

		ok_or_say(n, err);
		s = ft_scenario_from(shelf, n, "one", true, &err);
		ok_or_say(s, err);
		ok_or_say(ft_study_simulate(s, NULL, NULL, &out, &err), err);
		o = ft_outline_build(s->model, s->plan, s->stack, &err);
		ok_or_say(o, err);
		job = (struct ft_sim_job){ .cluster = s->cluster,
					   .stack = s->stack,
					   .ccl = s->ccl,
					   .start = s->plan->step_start };
		ok_or_say(ft_sim_bound(&job, o, s->memo, false, &bound, &err), err);
		near_frac(bound.busy_s,
			  out.breakdown.compute_s + out.breakdown.optimizer_s, 1e-9);
		assert_true(ft_s_from_ps(bound.step) > bound.busy_s * (1 - 1e-9));
		ft_outline_free(o);
		ft_outcome_release(&out);
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* A bound that is looser is as right, and a search takes longer by it: when what a step takes
 * changes, these follow; else they only grow. */
static void is_as_tight_as_ever(const struct tally *t, double mean, double least,
				double loose)
{
	print_message("of %d: %.7f on average, least %.7f; sketched %.7f\n", t->steps,
		      t->sum / t->bounded, t->least, t->loose / t->steps);
	assert_true(t->sum / t->bounded > mean - 1e-6);
	assert_true(t->least > least - 1e-6);
	assert_true(t->loose / t->steps > loose - 1e-6);
}

static void no_step_is_shorter_than_its_bound(void **state)
{
	struct tally t = { .least = 1 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 1; t.steps < PLANS;) {
		struct arena mem = { 0 };

		hold(drawn(&mem), shelf, &t);
		arena_release(&mem);
		if (t.steps == FEW)
			is_as_tight_as_ever(&t, 0.9096254, 0.5764634, 0.4462365);
	}
	print_message("%d steps, %d bounded: %.3f of the step on average, at least "
		      "%.3f; sketched %.3f\n",
		      t.steps, t.bounded, t.sum / t.bounded, t.least,
		      t.loose / t.steps);
	assert_true(t.bounded > t.steps / 2);
	ft_shelf_free(shelf);
}

/* DualPipeV, in which some backwards are whole and others in two parts. */
static void nor_is_one_of_dualpipev(void **state)
{
	struct tally t = { .least = 1 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 7; t.steps < DUALS;) {
		struct arena mem = { 0 };

		hold(drawn_dual(&mem), shelf, &t);
		arena_release(&mem);
		if (t.steps == DUALS_FEW)
			is_as_tight_as_ever(&t, 0.9759762, 0.9223338, 0.3272313);
	}
	print_message("%d steps, %d bounded: %.3f of the step on average, at least "
		      "%.3f\n",
		      t.steps, t.bounded, t.sum / t.bounded, t.least);
	assert_true(t.bounded > t.steps / 2 && t.bounded < t.steps);
	ft_shelf_free(shelf);
}

/* The same plans, whose pipelines are drained up to eight times a step. */
static void nor_is_one_of_pipelines_drained_again(void **state)
{
	static const int64_t flushes[] = { 2, 2, 4, 8 };
	struct tally t = { .least = 1 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 23; t.steps < DUALS;) {
		struct arena mem = { 0 };
		const char *text = drawn(&mem);
		const char *at = strstr(text, "sequence_length");

		if (!strstr(text, "pp: 1,"))
			hold(arena_printf(&mem, "%.*spipeline_flushes: %d, %s",
					  (int)(at - text), text,
					  (int)flushes[below(4)], at),
			     shelf, &t);
		arena_release(&mem);
		if (t.steps == DUALS_FEW)
			is_as_tight_as_ever(&t, 0.8827421, 0.7480495, 0.4475411);
	}
	assert_true(t.bounded > t.steps / 2);
	ft_shelf_free(shelf);
}

static void nor_is_one_of_models_as_transformers_writes_them(void **state)
{
	struct tally t = { .least = 1 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 17; t.steps < DUALS;) {
		struct arena mem = { 0 };

		hold(drawn_written(&mem), shelf, &t);
		arena_release(&mem);
		if (t.steps == DUALS_FEW)
			is_as_tight_as_ever(&t, 0.9721903, 0.8817486, 0.6623267);
	}
	print_message("%d steps, %d bounded: %.3f of the step on average, at least "
		      "%.3f; sketched %.3f\n",
		      t.steps, t.bounded, t.sum / t.bounded, t.least,
		      t.loose / t.steps);
	assert_true(t.bounded > t.steps / 2);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_gpu_is_busy_for_its_bound),
		cmocka_unit_test(no_step_is_shorter_than_its_bound),
		cmocka_unit_test(nor_is_one_of_dualpipev),
		cmocka_unit_test(nor_is_one_of_pipelines_drained_again),
		cmocka_unit_test(nor_is_one_of_models_as_transformers_writes_them),
	};

	return cmocka_run_group_tests_name("bound", tests, NULL, NULL);
}
