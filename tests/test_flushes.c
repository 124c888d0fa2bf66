/*
 * tests/test_flushes.c - pipelines that a step drains several times: the order of passes, how long a run
 * takes, what is gathered, reduced and held, counted by hand
 */
#include "foretoken/study.h"
#include "tests/counted.h"

#define LLAMA "{name: llama3-8b, num_hidden_layers: 8}"

/* Parameters of a layer, and of what the first and the last of two stages hold besides. */
static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double words = 128256.0 * 4096;

/* Each micro-batch runs once in each direction, and none before those of an earlier run are done. */
static void runs_come_one_behind_the_other(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct ft_plan p = { .pp = 2 + (int64_t)(rnd(&seed) % 5), .vpp = 1 };
		int64_t run = p.pp * (1 + (int64_t)(rnd(&seed) % 4)), done = 0;
		struct ft_slot *slot;
		size_t n;

		p.flushes = 1 + (int64_t)(rnd(&seed) % 4);
		p.micro_batches = run * p.flushes;
		p.schedule = (enum ft_schedule)(rnd(&seed) % FT_SCHEDULES);
		if (p.schedule == FT_INTERLEAVED || ft_schedule_folds(p.schedule))
			p.vpp = 2;
		if (p.schedule == FT_DUALPIPEV && run < 2 * p.pp)
			continue;
		assert_int_equal(ft_plan_run(&p), run);
		slot = calloc(ft_plan_most_slots(&p), sizeof(*slot));
		n = ft_plan_slots(&p, (int64_t)(rnd(&seed) % (uint64_t)p.pp), slot);
		for (size_t k = 0; k < n; k++) {
			assert_true(slot[k].micro_batch >= 0 &&
				    slot[k].micro_batch < p.micro_batches);
			done += slot[k].kind != FT_SLOT_WEIGHTS;
			assert_true(slot[k].micro_batch / run ==
				    (done - 1) / (run * 2 * p.vpp));
		}
		assert_true(done == p.micro_batches * 2 * p.vpp);
		free(slot);
	}
}

/* Parts of a step; host and sends cost next to nothing beside its passes. */
static struct ft_breakdown parts_of(struct ft_shelf *shelf, int flushes, int batch,
				    const char *more, double *step_s)
{
	struct arena mem = { 0 };
	const char *text = arena_printf(
		&mem,
		"{model: {name: gpt3-175b, num_hidden_layers: 16, vocab_size: 512}, "
		"cluster: {gpu: h100-sxm, gpus: 4}, stack: megatron-core, "
		"training: {sequence_length: 2048, micro_batch_size: 1, "
		"global_batch_size: %d, pipeline_flushes: %d, parallel: {pp: 4}%s}}",
		batch, flushes, more);
	struct ft_error err;
	struct node *n = node_read_text(&mem, "one", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome out;
	struct ft_breakdown parts;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "one", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &out, &err), err);
	parts = out.breakdown;
	*step_s = out.step_s;
	ft_outcome_release(&out);
	ft_scenario_free(s);
	arena_release(&mem);
	return parts;
}

/* A run of eight micro-batches takes as long whether it is the second of a step or the fourth, and has a bubble
 * of pp - 1 = 3 of its passes. */
static void each_run_has_a_bubble_of_its_own(void **state)
{
	static const char *const ways[] = { "", ", schedule: gpipe" };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		double step[5];
		struct ft_breakdown of[5];

		for (int n = 1; n <= 4; n++)
			of[n] = parts_of(shelf, n, 8 * n, ways[i], &step[n]);
		near_frac(step[4] - step[3], step[3] - step[2], 1e-3);
		near_frac(step[4], 4 * step[1], 0.05);
		near_frac(of[4].bubble_s - of[3].bubble_s,
			  3.0 / 8 * (of[4].compute_s - of[3].compute_s), 0.03);
		near_frac(of[4].compute_s, 4 * of[1].compute_s, 0.02);
	}
	ft_shelf_free(shelf);
}

/* PyTorch reduces behind each run, adds the shards up, and gathers for the next; AutoModel does both once. Two
 * stages, two replicas, four layers each. */
static void what_a_flush_gathers_and_reduces(void **state)
{
	static const char training[] =
		"{sequence_length: 128, micro_batch_size: 1, global_batch_size: 32, "
		"sharding: fsdp, pipeline_flushes: 4, reshard_after_forward: false, "
		"parallel: {pp: 2}}";
	const double stages = 8 * layer + 2 * words + 4096;
	struct parts p;

	(void)state;
	build(&p, LLAMA, training, "torch-2.11-eager", 4);
	near_frac(sum_of(p.graph, "fsdp_reduce").bytes, 4 * 4 * stages, 1e-9);
	near_frac(sum_of(p.graph, "fsdp_accumulate").bytes, 3 * 12 * stages / 2, 1e-9);
	near_frac(sum_of(p.graph, "fsdp_gather").bytes, 4 * 2 * stages, 1e-9);
	/* the whole gradients of a run leave, and their shards stay */
	near_frac(p.graph->rank_class[0].base_bytes[FT_MEMORY_GRADIENTS],
		  4 * (4 * layer + words) / 2, 1e-9);
	assert_true(left_over(p.graph, FT_MEMORY_GRADIENTS) == 0);
	drop(&p);
	build(&p, LLAMA, training, "nemo-automodel-2026", 4);
	near_frac(sum_of(p.graph, "fsdp_reduce").bytes, 4 * stages, 1e-9);
	near_frac(sum_of(p.graph, "fsdp_gather").bytes, 2 * stages, 1e-9);
	assert_true(sum_of(p.graph, "fsdp_accumulate").n == 0);
	drop(&p);
}

static double peak_in_flush(const struct ft_graph *g)
{
	double most = 0;

	for (size_t i = 0; i < g->n_segments; i++)
		if (!strncmp(g->segment[i].name, "flush", 5))
			most = fmax(most, g->segment[i].peak_bytes[FT_MEMORY_OTHER]);
	return most;
}

/* Logits of a run are joined behind it, and go; two bytes each, of 128 tokens. Under ddp PyTorch's gradients
 * are reduced by each run, and scaled. */
static void what_a_flush_ends_with(void **state)
{
	const double logits = 2 * 128.0 * 128256;
	struct parts p;

	(void)state;
	build(&p, LLAMA,
	      "{sequence_length: 128, micro_batch_size: 1, global_batch_size: 32, "
	      "sharding: ddp, pipeline_flushes: 4, parallel: {pp: 2}}",
	      "torch-2.11-eager", 4);
	near_frac(sum_of(p.graph, "join_outputs").bytes, 2 * 16 * logits, 1e-9);
	near_frac(peak_in_flush(p.graph), 4 * logits, 1e-9);
	assert_true(left_over(p.graph, FT_MEMORY_OTHER) == 0);
	near_frac(sum_of(p.graph, "gradient_scale").bytes,
		  4 * 8 * (8 * layer + 2 * words + 4096), 1e-9);
	drop(&p);
}

/* Nor does it save a reduction that nothing runs beside it: it comes behind each run, too. */
static void each_run_is_reduced_without_overlap(void **state)
{
	static const char *const shardings[] = { "ddp", "zero1", "zero2" };
	static const char *const stacks[] = { "generic", "torch-2.11-eager",
					      "megatron-core" };

	(void)state;
	for (int i = 0; i < 9; i++) {
		double bytes[2];

		for (int overlap = 0; overlap < 2; overlap++) {
			char training[300];
			struct parts p;

			snprintf(
				training, sizeof(training),
				"{sequence_length: 128, micro_batch_size: 1, "
				"global_batch_size: 32, sharding: %s, pipeline_flushes: 4, "
				"parallel: {pp: 2}, overlap: {dp: %s}}",
				shardings[i % 3], overlap ? "true" : "false");
			build(&p, LLAMA, training, stacks[i / 3], 4);
			bytes[overlap] = sum_of(p.graph, "gradient_reduce").bytes;
			drop(&p);
		}
		assert_true(bytes[0] > 0);
		near_frac(bytes[0], bytes[1], 1e-9);
	}
}

static void runs_that_are_not_alike_are_refused(void **state)
{
	static const char *const batch[] = { "24", "8" };
	static const char *const says[] = {
		"5 runs of the pipeline are not of the same size: each replica has 12 "
		"micro-batches of 1 sequences",
		"5 runs of the pipeline are not of the same size: each replica has 4 "
		"micro-batches of 1 sequences",
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct arena mem = { 0 };
		const char *text = arena_printf(
			&mem,
			"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 4}, "
			"stack: nemo-24, training: {sequence_length: 128, "
			"global_batch_size: %s, micro_batch_size: 1, "
			"pipeline_flushes: 5, parallel: {pp: 2}}}",
			batch[i]);
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_error err;
		struct node *n = node_read_text(&mem, "one", text, strlen(text), &err);

		ok_or_say(n, err);
		assert_null(ft_scenario_from(shelf, n, "one", true, &err));
		assert_non_null(strstr(err.text, says[i]));
		ft_shelf_free(shelf);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_come_one_behind_the_other),
		cmocka_unit_test(each_run_has_a_bubble_of_its_own),
		cmocka_unit_test(what_a_flush_gathers_and_reduces),
		cmocka_unit_test(what_a_flush_ends_with),
		cmocka_unit_test(each_run_is_reduced_without_overlap),
		cmocka_unit_test(runs_that_are_not_alike_are_refused),
	};

	return cmocka_run_group_tests_name("flushes", tests, NULL, NULL);
}
