/*
 * tests/test_outcome.c - each figure of an answer, counted anew
 *
 * Of plans drawn at random: what the step's graph, its classes and the scenario say is added up in
 * the obvious way, and each figure of the answer must be that.
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "study/evidence.h"
#include "study/traits.h"
#include "tests/check.h"
#include "tests/plan_drawn.h"

enum { STEPS = 40 };

/* A step with what it is of. */
struct step {
	const struct ft_scenario *s;
	const struct ft_graph *g;
	const struct ft_outcome *o;
};

static double sum_of(const double *bytes)
{
	double sum = 0;

	for (int m = 0; m < FT_MEMORIES; m++)
		sum += bytes[m];
	return sum;
}

/* Every moment of a class's program, one after the other; the fullest one's bytes. */
static double fullest_of(const struct ft_graph *g, const struct ft_class *k,
			 double most[FT_MEMORIES])
{
	double held[FT_MEMORIES];

	memcpy(held, k->base_bytes, sizeof(held));
	memcpy(most, held, sizeof(held));
	for (size_t i = 0; i < k->n_calls; i++)
		for (uint32_t r = 0; r < 2 * k->call[i].repeat; r++) {
			const struct ft_segment *seg = &g->segment[k->call[i].segment];
			double at[FT_MEMORIES];

			for (int m = 0; m < FT_MEMORIES; m++)
				at[m] = held[m] += r % 2 ? seg->net_bytes[m] : 0;
			for (int m = 0; m < FT_MEMORIES && r % 2 == 0; m++)
				at[m] += seg->peak_bytes[m];
			if (sum_of(at) > sum_of(most))
				memcpy(most, at, sizeof(at));
		}
	return sum_of(most);
}

static void memory_is_that_of_the_fullest_rank(const struct step *t)
{
	double ranks = (double)t->s->cluster->gpu->ranks_per_gpu, worst = 0;
	double most[FT_MEMORIES], of[FT_MEMORIES];

	for (size_t c = 0; c < t->g->n_classes; c++)
		if (fullest_of(t->g, &t->g->rank_class[c], most) > worst) {
			worst = sum_of(most);
			memcpy(of, most, sizeof(of));
		}
	near_frac(t->o->memory_total_bytes, worst * ranks, 1e-12);
	for (int m = 0; m < FT_MEMORIES; m++)
		near_frac(t->o->memory_bytes[m], of[m] * ranks, 1e-9);
	assert_int_equal(t->o->fits,
			 t->o->memory_total_bytes <=
				 t->s->cluster->gpu->memory_bytes.value * ranks);
}

static void rates_are_tokens_over_time(const struct step *t)
{
	const struct ft_outcome *o = t->o;
	const struct ft_plan *p = t->s->plan;
	double tokens = (double)p->global_batch * (double)p->sequence;
	double peak = t->s->cluster->gpu->peak_flop_per_s[p->precision].value *
		      (double)t->s->cluster->ranks * o->step_s;
	double flop = ft_plan_flop_per_token(t->s->model, p, t->s->model->causal);

	near_frac(o->step_s, 1e-12 * (double)o->run->step, 1e-12);
	near_frac(o->tokens_per_s, tokens / o->step_s, 1e-12);
	near_frac(o->tokens_low_per_s, tokens / o->step_high_s, 1e-12);
	near_frac(o->tokens_high_per_s, tokens / o->step_low_s, 1e-12);
	near_frac(o->tokens_per_s_per_gpu * (double)t->s->cluster->gpus,
		  o->tokens_per_s, 1e-12);
	near_frac(o->model_flop_per_s_per_gpu, flop * o->tokens_per_s_per_gpu, 1e-12);
	near_frac(o->mfu, flop * tokens / peak, 1e-12);
	near_frac(o->mfu_full,
		  ft_plan_flop_per_token(t->s->model, p, false) * tokens / peak, 1e-12);
	near_frac(o->hfu,
		  ((flop - ft_plan_dropped_flop_per_token(t->s->model, p)) * tokens +
		   t->g->recomputed_flop_per_rank * (double)t->s->cluster->ranks) /
			  peak,
		  1e-12);
}

static void the_range_is_what_the_evidence_says(const struct step *t)
{
	struct ft_traits traits = traits_of(t->s, t->o->run);
	struct evidence_answer said;
	struct ft_error err;

	ok_or_say(evidence_ask(t->s->evidence, &traits, t->s->group, &said, &err), err);
	near_frac(log(t->o->step_low_s / t->o->step_s), said.low, 1e-9);
	near_frac(log(t->o->step_high_s / t->o->step_s), said.high, 1e-9);
	assert_true(t->o->step_low_s < t->o->step_high_s);
	assert_int_equal(t->o->gpu_measured, said.gpu_measured);
	assert_int_equal(t->o->stack_measured, said.stack_measured);
	assert_int_equal(t->o->attention_measured, said.attention_measured);
	assert_int_equal(t->o->n_nearest, said.n_nearest);
	assert_memory_equal(t->o->nearest, said.nearest, sizeof(said.nearest));
}

static bool is_part(const struct ft_share *x, const struct ft_work *w)
{
	enum ft_work_kind kind = ft_work_is_host_copy(w) ? FT_COMMUNICATION : w->kind;
	size_t n = strlen(w->name);
	char layout[40] = "";

	if (w->kind == FT_GEMM && strcmp(w->name, "newton_schulz") != 0)
		snprintf(layout, sizeof(layout), " (%s)",
			 ft_layout_name(w->gemm.layout));
	return x->kind == kind && !strncmp(x->name, w->name, n) &&
	       !strcmp(x->name + n, layout);
}

/* What a work adds to its share when it runs once, time and name aside. */
static void add_work(struct ft_share *x, const struct ft_work *w,
		     const struct ft_gpu *gpu, double times)
{
	double flop = ft_work_flop(w), peak = gpu->peak_flop_per_s[w->dtype].value;
	double memory_s = ft_work_bytes(w) / gpu->memory_bytes_per_s.value;

	x->count += times;
	x->flop += times * flop;
	x->bytes += times * ft_work_bytes(w);
	if (x->kind != FT_COMMUNICATION && (peak > 0 || flop <= 0))
		x->roofline_s += times * fmax(memory_s, flop > 0 ? flop / peak : 0);
}

/* What goes from stage to stage is counted where it is sent. */
static bool is_receive(const struct ft_op *op)
{
	return op->stream == FT_STREAM_RECV_FORWARD ||
	       op->stream == FT_STREAM_RECV_BACKWARD;
}

/* Each op of each call of each class. */
static void a_share_is_all_works_of_its_name(const struct step *t)
{
	double classes = (double)t->g->n_classes;

	for (size_t i = 0; i < t->o->run->n_shares; i++) {
		const struct ft_share *x = &t->o->run->share[i];
		struct ft_share anew = { .kind = x->kind, .optimizer = true };

		for (size_t c = 0; c < t->g->n_classes; c++)
			for (size_t j = 0; j < t->g->rank_class[c].n_calls; j++) {
				const struct ft_call *call =
					&t->g->rank_class[c].call[j];
				const struct ft_segment *seg =
					&t->g->segment[call->segment];

				for (size_t k = 0; k < seg->n_ops; k++) {
					const struct ft_work *w =
						&t->g->work[seg->op[k].work];

					if (!is_part(x, w))
						continue;
					anew.optimizer &= seg->op[k].optimizer;
					if (is_receive(&seg->op[k]))
						continue;
					add_work(&anew, w, t->s->cluster->gpu,
						 call->repeat / classes);
				}
			}
		assert_true(x->time_s > 0 && x->time_s <= t->o->step_s);
		near_frac(x->count, anew.count, 1e-9);
		near_frac(x->flop, anew.flop, 1e-9);
		near_frac(x->bytes, anew.bytes, 1e-9);
		near_frac(x->roofline_s, anew.roofline_s, 1e-9);
		assert_int_equal(x->optimizer, anew.optimizer);
		assert_true(
			!i || x[-1].time_s > x->time_s ||
			(x[-1].time_s >= x->time_s && strcmp(x[-1].name, x->name) < 0));
	}
}

/* How many works of a graph a share is of. */
static int works_of(const struct ft_graph *g, const struct ft_share *x)
{
	int n = 0;

	for (size_t i = 0; i < g->n_works; i++)
		n += is_part(x, &g->work[i]);
	return n;
}

static void far_kernels_are_a_share_of_all_time(const struct step *t)
{
	double all = 0, most = 0, least = 0;

	for (size_t i = 0; i < t->o->run->n_shares; i++) {
		const struct ft_share *x = &t->o->run->share[i];
		double far_s = x->extrapolated ? x->time_s : 0;

		/* a share is marked when one of its works is */
		all += x->time_s;
		most += far_s;
		least += works_of(t->g, x) == 1 ? far_s : 0;
	}
	assert_true(t->o->extrapolated_frac <= most / all * (1 + 1e-9));
	assert_true(t->o->extrapolated_frac >= least / all * (1 - 1e-9));
	assert_int_equal(t->o->extrapolated_frac > 0, most > 0);
	assert_true(t->o->extrapolated_frac == t->o->run->extrapolated_frac);
}

/* Ends are padded to the step: of a pipeline as its bubble, else as waiting for others. */
static void ranks_spend_the_whole_step(const struct step *t)
{
	const struct ft_run *run = t->o->run;
	const struct ft_breakdown *b = &t->o->breakdown;
	double part[5] = { 0 }, ranks = 0, late = 0;
	double memory_s = 0, kernel_s = 0;

	for (size_t c = 0; c < run->n_classes; c++) {
		const struct ft_class_result *k = &run->rank_class[c];
		const ft_ps own[5] = { k->compute, k->optimizer, k->host, k->bubble,
				       k->exposed };

		for (int i = 0; i < 5; i++)
			part[i] += 1e-12 * (double)own[i] * (double)k->ranks;
		ranks += (double)k->ranks;
		late += (t->o->step_s - 1e-12 * (double)k->end) * (double)k->ranks;
	}
	for (size_t i = 0; i < run->n_shares; i++) {
		bool memory = run->share[i].kind == FT_MEMORY_BOUND;

		memory_s += memory ? run->share[i].time_s : 0;
		kernel_s += run->share[i].kind == FT_COMMUNICATION ?
				    0 :
				    run->share[i].time_s;
	}
	near_frac(b->compute_s, part[0] / ranks, 1e-9);
	near_frac(b->optimizer_s, part[1] / ranks, 1e-9);
	near_frac(b->compute_s + b->optimizer_s + b->host_s + b->bubble_s +
			  b->exposed_communication_s,
		  t->o->step_s, 1e-9);
	/* what a steady host adds behind the last kernel is the host's */
	assert_true(b->host_s >= part[2] / ranks * (1 - 1e-9));
	late -= b->host_s * ranks - part[2];
	assert_true(late > -1e-9 * t->o->step_s * ranks);
	near_frac(b->bubble_s + 1,
		  1 + (part[3] + (t->g->n_classes > 1 ? late : 0)) / ranks, 1e-9);
	near_frac(b->exposed_communication_s + 1,
		  1 + (part[4] + (t->g->n_classes > 1 ? 0 : late)) / ranks, 1e-9);
	near_frac(run->gpu_busy_frac, (b->compute_s + b->optimizer_s) / t->o->step_s,
		  1e-9);
	assert_true(run->gpu_slowed_frac >= 0);
	assert_true(run->gpu_slowed_frac <= run->gpu_busy_frac - run->gpu_memory_frac);
	near_frac(run->gpu_waiting_frac,
		  (b->bubble_s + b->exposed_communication_s) / t->o->step_s, 1e-9);
	near_frac(run->gpu_bubble_frac, b->bubble_s / t->o->step_s, 1e-9);
	near_frac(run->gpu_memory_frac, run->gpu_busy_frac * memory_s / kernel_s, 1e-9);
}

static void the_largest_part_is_told_first(const struct step *t)
{
	const struct ft_breakdown *b = &t->o->breakdown;
	const double part[5] = { b->compute_s, b->exposed_communication_s, b->bubble_s,
				 b->host_s, b->optimizer_s };
	static const char *const name[5] = {
		"compute kernels", "communication that nothing hides",
		"the pipeline bubble", "the host launching kernels", "the optimizer"
	};
	char want[400];
	int first = 0, then = 1;

	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++) {
			double rest = t->o->step_s;

			for (int k = 0; k < 5 && i != j; k++)
				if (k != i && (part[k] > part[i] ||
					       (k != j && part[k] > part[j])))
					rest = 0;
			if (i != j && rest > 0 && part[i] >= part[j]) {
				first = i;
				then = j;
			}
		}
	snprintf(want, sizeof(want),
		 "%.0f %% of the step goes to %s, then %.0f %% to %s; the largest "
		 "single item is %s.",
		 100 * part[first] / t->o->step_s, name[first],
		 100 * part[then] / t->o->step_s, name[then], t->o->run->share[0].name);
	if (part[first] > part[then])
		assert_string_equal(t->o->bottleneck, want);
}

/* Of each parameter that is trained: two bytes of weight; with a master copy that of 4 bytes and
 * moments of 4, else moments of 2. */
static void what_dollars_depend_on_is_the_answer(const struct step *t)
{
	struct ft_side side = ft_outcome_side(t->s, t->o);
	const struct ft_plan *p = t->s->plan;
	const struct ft_run *run = t->o->run;
	double weights = p->lora.rank ?
				 ft_model_lora_parameters(t->s->model, &p->lora) :
				 ft_model_parameters(t->s->model);
	double moments = 2,
	       once = p->lora.rank ? weights : ft_model_matrix_parameters(t->s->model);

	assert_true(side.throughput.tokens_per_s == t->o->tokens_per_s);
	assert_true(side.throughput.low == t->o->tokens_low_per_s);
	assert_true(side.throughput.high == t->o->tokens_high_per_s);
	assert_true(side.throughput.busy_frac == run->gpu_busy_frac);
	assert_true(side.throughput.memory_frac == run->gpu_memory_frac);
	assert_true(side.throughput.slowed_frac == run->gpu_slowed_frac);
	assert_true(side.throughput.waiting_frac == run->gpu_waiting_frac);
	assert_true(side.throughput.bubble_frac == run->gpu_bubble_frac);
	if (p->optimizer == FT_MUON)
		moments -= once / weights;
	near_frac(side.throughput.checkpoint_bytes / weights,
		  p->master_weights ? 6 + 4 * moments : 2 + 2 * moments, 1e-12);
	assert_int_equal(side.cannot_run, !t->o->fits);
}

static void each_figure_is_counted_anew(const struct step *t)
{
	rates_are_tokens_over_time(t);
	the_range_is_what_the_evidence_says(t);
	ranks_spend_the_whole_step(t);
	the_largest_part_is_told_first(t);
	what_dollars_depend_on_is_the_answer(t);
	memory_is_that_of_the_fullest_rank(t);
	a_share_is_all_works_of_its_name(t);
	far_kernels_are_a_share_of_all_time(t);
}

/* Bytes that no plan has: what is held grows and shrinks, and the fullest moment may be any. */
static void draw_memory(struct ft_graph *g)
{
	for (int m = 0; m < FT_MEMORIES; m++) {
		for (size_t c = 0; c < g->n_classes; c++)
			g->rank_class[c].base_bytes[m] = (double)below(1 << 30);
		for (size_t i = 0; i < g->n_segments; i++) {
			g->segment[i].net_bytes[m] =
				(double)(below(1 << 24) - (1 << 23));
			g->segment[i].peak_bytes[m] = (double)below(1 << 23);
		}
	}
}

static bool hold(struct ft_shelf *shelf, const char *text, struct arena *mem)
{
	struct ft_error err;
	struct node *n = node_read_text(mem, "drawn", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome o;
	struct ft_graph *g = NULL;
	bool ran;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "drawn", true, &err);
	if (s)
		g = ft_graph_build(s->model, s->plan, s->stack, &err);
	ran = g && ft_study_simulate(s, NULL, NULL, &o, &err);
	if (ran) {
		each_figure_is_counted_anew(&(struct step){ s, g, &o });
		ft_outcome_release(&o);
		draw_memory(g);
		ok_or_say(ft_study_simulate(s, g, NULL, &o, &err), err);
		memory_is_that_of_the_fullest_rank(&(struct step){ s, g, &o });
		ft_outcome_release(&o);
	}
	ft_graph_free(g);
	ft_scenario_free(s);
	return ran;
}

static void each_figure_of_an_answer_is_counted_anew(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	int n = 0, tried = 0;

	(void)state;
	for (seed = 7; n < STEPS;) {
		const char *text = drawn(&mem), *at = strstr(text, "training: {");

		assert_true(tried++ < 100 * STEPS);
		text = arena_printf(
			&mem, "%.*straining: {%s%s%s", (int)(at - text), text,
			ANY("", "optimizer: muon, ", "master_weights: false, "),
			ANY("", "", "lora: {rank: 8, targets: attention}, "),
			at + strlen("training: {"));
		n += hold(shelf, text, &mem);
		arena_release(&mem);
	}
	/* a card of two ranks */
	assert_true(hold(shelf,
			 "{model: llama3-8b, cluster: {gpu: mi250, gpus: 8}, training: "
			 "{sequence_length: 2048, global_batch_size: 16}}",
			 &mem));
	arena_release(&mem);
	ft_shelf_free(shelf);
}

/* Which predictions are wrong alike: those of one model and format, GPU and stack. */
static void jobs_are_alike_whatever_their_plan(void **state)
{
	static const struct {
		const char *model, *gpu, *stack, *training;
		bool alike;
	} other[] = {
		{ "llama3-8b", "h100-sxm", "generic", "micro_batch_size: 2", true },
		{ "llama3-8b", "h100-sxm", "generic", "parallel: {tp: 2}", true },
		{ "llama3-70b", "h100-sxm", "generic", "micro_batch_size: 1", false },
		{ "llama3-8b", "h200", "generic", "micro_batch_size: 1", false },
		{ "llama3-8b", "h100-sxm", "nemo-24", "micro_batch_size: 1", false },
		{ "llama3-8b", "h100-sxm", "generic", "precision: fp8", false },
	};
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	uint64_t first = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		const char *text = arena_printf(
			&mem,
			"{model: %s, cluster: {gpu: %s, gpus: 8}, stack: %s, training: "
			"{sequence_length: 2048, global_batch_size: 16, %s}}",
			other[i].model, other[i].gpu, other[i].stack,
			other[i].training);
		struct ft_error err;
		struct node *n = node_read_text(&mem, "job", text, strlen(text), &err);
		struct ft_scenario *s;
		struct ft_outcome o;
		uint64_t job;

		ok_or_say(n, err);
		s = ft_scenario_from(shelf, n, "job", true, &err);
		ok_or_say(s, err);
		ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
		job = ft_outcome_side(s, &o).throughput.job;
		first = i ? first : job;
		assert_int_equal(job == first, other[i].alike);
		ft_outcome_release(&o);
		ft_scenario_free(s);
	}
	ft_shelf_free(shelf);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_figure_of_an_answer_is_counted_anew),
		cmocka_unit_test(jobs_are_alike_whatever_their_plan),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
