/* tests/test_jump.c - a step whose repeated passes are jumped over, against all of it run */
#include <inttypes.h>

#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"
#include "tests/drawn.h"
#include "tests/few.h"
#include "tests/plan_drawn.h"

#ifdef TESTS_FEW
enum { PLANS = 60, SCENARIOS = 30, UNEVEN = 20, ALONE = 20 };
#else
enum { PLANS = 800, SCENARIOS = 200, UNEVEN = 150, ALONE = 150 };
#endif

struct tally {
	int steps, jumped;
	uint64_t events, events_jumped;
};

static void same_class(const struct ft_class_result *a, const struct ft_class_result *b)
{
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->compute, b->compute);
	assert_int_equal(a->exposed, b->exposed);
	assert_int_equal(a->bubble, b->bubble);
	assert_int_equal(a->host, b->host);
	assert_int_equal(a->optimizer, b->optimizer);
}

/* To the picosecond, and to the bit. */
static void same_run(const struct ft_run *a, const struct ft_run *b)
{
	assert_int_equal(a->step, b->step);
	assert_int_equal(a->n_classes, b->n_classes);
	for (size_t i = 0; i < a->n_classes; i++)
		same_class(&a->rank_class[i], &b->rank_class[i]);
	assert_int_equal(a->n_shares, b->n_shares);
	for (size_t i = 0; i < a->n_shares; i++) {
		assert_string_equal(a->share[i].name, b->share[i].name);
		assert_true(a->share[i].time_s == b->share[i].time_s);
		assert_true(a->share[i].count == b->share[i].count);
	}
	assert_memory_equal(&a->breakdown, &b->breakdown, sizeof(a->breakdown));
}

/* Both ways: the same step, or the same error. */
static bool same_both_ways(const struct ft_sim_job *job, struct ft_memo *memo,
			   const char *text, struct tally *t)
{
	struct ft_sim_job whole = *job;
	struct ft_error err[2];
	struct ft_run *jumped = ft_sim_run(job, NULL, NULL, memo, &err[0]), *all;

	whole.run_all = true;
	all = ft_sim_run(&whole, NULL, NULL, memo, &err[1]);
	if (!jumped || !all) {
		assert_true(!jumped && !all);
		assert_string_equal(err[0].text, err[1].text);
		return false;
	}
	assert_int_equal(all->jumped, 0);
	if (all->step != jumped->step)
		fail_msg("%" PRId64 " ps jumping, %" PRId64 " ps running: %s",
			 jumped->step, all->step, text);
	same_run(jumped, all);
	t->steps++;
	t->jumped += jumped->jumped > 0;
	t->events += jumped->events;
	t->events_jumped += jumped->jumped;
	ft_run_free(all);
	ft_run_free(jumped);
	return true;
}

/* What a person might write into a step's text: other streams, waits and events. */
static void change(struct ft_graph *g)
{
	struct ft_segment *seg = &g->segment[below((int64_t)g->n_segments)];
	struct ft_op *op = seg->n_ops ? &seg->op[below((int64_t)seg->n_ops)] : NULL;
	int n = 0;

	if (!op)
		return;
	while (n < FT_OP_WAITS && op->wait[n] != FT_EVENT_NONE)
		n++;
	switch (below(6)) {
	case 0:
		if (n)
			op->wait[n - 1] = FT_EVENT_NONE;
		break;
	case 1:
		if (n + 1 < FT_OP_WAITS) {
			op->wait[n] = (uint8_t)(FT_TAIL + below(FT_STREAMS));
			op->wait[n + 1] = FT_EVENT_NONE;
		}
		break;
	case 2:
		if (n + 1 < FT_OP_WAITS) {
			op->wait[n] = (uint8_t)below(FT_EVENTS);
			op->wait[n + 1] = FT_EVENT_NONE;
		}
		break;
	case 3:
		op->record = (uint8_t)below(FT_EVENTS);
		break;
	case 4:
		op->host_waits = true;
		break;
	default:
		if (op->stream < FT_STREAM_SEND_FORWARD)
			op->stream = (uint8_t)below(FT_STREAM_SEND_FORWARD);
	}
}

/* A drawn plan's step, edited so often. */
static void hold_edited(const char *text, struct ft_shelf *shelf,
			void (*edit)(struct ft_graph *), int64_t times, struct tally *t)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "drawn", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_graph *g = NULL;

	ok_or_say(n, err);
	s = ft_scenario_from(shelf, n, "drawn", true, &err);
	if (s)
		g = ft_graph_build(s->model, s->plan, s->stack, &err);
	if (g) {
		struct ft_sim_job job = { .graph = g,
					  .cluster = s->cluster,
					  .stack = s->stack,
					  .ccl = s->ccl,
					  .start = s->plan->step_start };

		for (int64_t i = 0; i < times; i++)
			edit(g);
		same_both_ways(&job, s->memo, text, t);
		ft_graph_free(g);
	}
	ft_scenario_free(s);
	arena_release(&mem);
}

/* changes: so many places of it are other than it was built. */
static void hold(const char *text, struct ft_shelf *shelf, int64_t changes,
		 struct tally *t)
{
	hold_edited(text, shelf, change, changes, t);
}

/* A pass that is run though it goes on as one before did is as right, and takes longer: when what
 * passes do changes, the least shares of events that are jumped over follow; else they only grow. */
static void tell(const struct tally *t, double least)
{
	double share = (double)t->events_jumped / (double)t->events;

	print_message("%d steps, %d with jumps; %.3f of all events jumped over\n",
		      t->steps, t->jumped, share);
	assert_true(share > least);
}

/* DualPipeV's micro-batches in the middle are alike, too. */
static void so_is_one_of_dualpipev(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 11; t.steps < UNEVEN;) {
		struct arena mem = { 0 };

		hold(drawn_dual(&mem), shelf, 0, &t);
		arena_release(&mem);
	}
	tell(&t, 0.45);
	assert_true(t.jumped > t.steps / 6);
	ft_shelf_free(shelf);
}

/* The host asks in each micro-batch. */
static void so_is_one_of_models_as_transformers_writes_them(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 19; t.steps < UNEVEN;) {
		struct arena mem = { 0 };

		hold(drawn_written(&mem), shelf, 0, &t);
		arena_release(&mem);
	}
	tell(&t, 0.38);
	assert_true(t.jumped > t.steps / 6);
	ft_shelf_free(shelf);
}

static void hold_all(int64_t changes, int plans, struct tally *t, double least)
{
	struct ft_shelf *shelf = ft_shelf_new();

	while (t->steps < plans) {
		struct arena mem = { 0 };

		hold(drawn(&mem), shelf, below(changes + 1), t);
		arena_release(&mem);
	}
	tell(t, least);
	ft_shelf_free(shelf);
}

static void a_step_is_the_same_as_if_all_of_it_had_been_run(void **state)
{
	struct tally t = { 0 };

	(void)state;
	seed = 7;
	hold_all(0, PLANS, &t, 0.32);
	assert_true(t.jumped > t.steps / 3);
}

static void so_is_one_that_was_edited(void **state)
{
	struct tally t = { 0 };

	(void)state;
	seed = 8;
	hold_all(8, PLANS / 2, &t, 0.28);
	assert_true(t.jumped > t.steps / 6);
}

static void so_is_that_of_any_scenario(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 9; t.steps < SCENARIOS;) {
		const struct kind *kind = &PICK(&seed, kinds);
		struct machine m = { kind, PICK(&seed, kind->fabric),
				     PICK(&seed, sizes) };
		struct arena mem = { 0 };

		hold(draw(&mem, &seed, &m), shelf, 0, &t);
		arena_release(&mem);
	}
	tell(&t, 0.31);
	assert_true(t.jumped > t.steps / 6);
	ft_shelf_free(shelf);
}

/* Pipelines with slow GPUs, whose collectives wait for each other while passes run. */
static const char *drawn_uneven(struct arena *mem)
{
	const char *slow = "";

	for (int64_t n = 1 + below(3); n-- > 0;)
		slow = arena_printf(mem, "%s%s{gpu: %d, speed_frac: 0.%d}", slow,
				    *slow ? ", " : "", (int)below(64),
				    (int)(5 + below(5)));
	return arena_printf(
		mem,
		"{model: {name: %s, num_hidden_layers: %s}, cluster: {gpu: h100-sxm, gpus: "
		"64, fabric: %s, imperfections: {%sslow_gpus: [%s]}}, stack: %s, training: "
		"{sequence_length: %s, global_batch_size: %s, micro_batch_size: 1, "
		"sharding: %s, schedule: %s, overlap: {dp: %s}, "
		"parallel: {tp: %s, pp: %s, vpp: %s}}}",
		ANY("llama3-8b", "gpt3-175b", "llama3-70b"), ANY("8", "16"),
		ANY("ib-ndr-rail", "roce-400-rail", "roce-400-rail"),
		ANY("", "placement: scattered, "), slow,
		ANY("nemo-24", "nemo-24.11", "generic", "torchtitan-2024"),
		ANY("2048", "8192"), ANY("64", "128", "256"),
		ANY("zero1", "zero1", "ddp", "zero2"),
		ANY("1f1b", "1f1b", "zero-bubble", "gpipe"),
		ANY("true", "true", "false"), ANY("2", "4", "8"), ANY("2", "4"),
		ANY("1", "2", "4"));
}

static void so_is_one_whose_pipelines_wait_for_each_other(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 13; t.steps < UNEVEN;) {
		struct arena mem = { 0 };

		hold(drawn_uneven(&mem), shelf, below(3) ? 0 : 1 + below(4), &t);
		arena_release(&mem);
	}
	tell(&t, 0.6);
	assert_true(t.jumped > t.steps / 2);
	ft_shelf_free(shelf);
}

/* 128 of one part: gathers ahead, or the host that sets the pace; few are run. */
static void micro_batches_without_a_pipeline_are_added(void **state)
{
	static const char *const how[] = {
		"stack: torchtitan-2024, training: {sequence_length: 8192, sharding: fsdp, ",
		"stack: torch-2.11-eager, training: {sequence_length: 256, sharding: fsdp, ",
		"stack: torch-2.11-compile, training: {sequence_length: 512, sharding: ddp, ",
	};
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		struct arena mem = { 0 };
		struct tally t = { 0 };

		hold(arena_printf(&mem,
				  "{model: {name: llama3-8b, num_hidden_layers: 8}, "
				  "cluster: {gpu: h100-sxm, gpus: 16}, %s"
				  "global_batch_size: 2048, micro_batch_size: 1}}",
				  how[i]),
		     shelf, 0, &t);
		assert_int_equal(t.steps, 1);
		assert_true(t.events_jumped * 10 > t.events * 9);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* Many micro-batches of one part: what the host does, what leaves for host memory, experts on
 * ranks of their own, adapters and graphs. */
static const char *drawn_alone(struct arena *mem)
{
	static const char *const small[] = {
		"llama3-8b, num_hidden_layers: 4",
		"gpt3-175b, num_hidden_layers: 2",
		"mixtral-8x7b, num_hidden_layers: 3",
		"deepseek-v2, num_hidden_layers: 3",
		"qwen3-30b-a3b, num_hidden_layers: 3",
	};
	int at = (int)below(5);

	return arena_printf(
		mem,
		"{model: {name: %s}, cluster: {gpu: %s, gpus: %s}, stack: %s, "
		"training: {sequence_length: %s, global_batch_size: %s, "
		"micro_batch_size: 1, sharding: %s, recompute: %s, overlap: {tp: %s, "
		"dp: %s, ep: %s}, offload_%s%s%s%s, parallel: {tp: %s, cp: "
		"%s%s}}}",
		small[at], ANY("h100-sxm", "h200", "b200"), ANY("8", "16", "32"),
		ANY("generic", "torch-2.11-eager", "torch-2.11-compile",
		    "torchtitan-2024", "torchtitan-2024-eager", "megatron-bridge-26",
		    "nemo-25.02", "megatron-core-moe-2025"),
		ANY("256", "512", "2048", "8192"), ANY("512", "1024", "992"),
		ANY("ddp", "zero1", "zero2", "fsdp", "hsdp"),
		ANY("none", "selective", "full"), ANY("true", "false"),
		ANY("true", "false"), ANY("true", "false"),
		ANY("layers: 0", "layers: 0", "layers: 1", "layers: 2",
		    "state: optimizer", "state: all"),
		ANY("", "", ", cuda_graphs: full", ", cuda_graphs: partial"),
		at ? "" : ANY("", "", ", lora: {rank: 16}"),
		ANY("", "", ", step_start: together"), ANY("1", "1", "2", "4"),
		ANY("1", "1", "2"), at < 2 ? "" : ANY("", ", ep: 2", ", ep: 4"));
}

static void so_is_one_of_many_micro_batches_of_one_part(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (seed = 17; t.steps < ALONE;) {
		struct arena mem = { 0 };

		hold(drawn_alone(&mem), shelf, below(2) ? 0 : 1 + below(8), &t);
		arena_release(&mem);
	}
	tell(&t, 0.82);
	assert_true(t.jumped > t.steps / 2);
	ft_shelf_free(shelf);
}

/* Its gathers become sends to its own stage, of which the update takes some hundred. */
static void send_to_itself(struct ft_graph *g)
{
	struct ft_segment *last = &g->segment[g->n_segments - 1];

	for (size_t i = 0; i < g->n_segments; i++)
		for (size_t k = 0; k < g->segment[i].n_ops; k++)
			if (g->segment[i].op[k].stream == FT_STREAM_GATHER)
				g->segment[i].op[k].stream = FT_STREAM_SEND_FORWARD;
	for (size_t k = 0; k < last->n_ops; k++)
		last->op[k].stream = FT_STREAM_RECV_FORWARD;
	g->rank_class[0].call[g->rank_class[0].n_calls - 1].repeat = 100;
}

static void what_was_sent_and_not_yet_taken_tells_states_apart(void **state)
{
	struct tally t = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	hold_edited("{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: "
		    "h100-sxm, gpus: 8}, stack: torch-2.11-eager, training: "
		    "{sequence_length: 512, global_batch_size: 512, "
		    "micro_batch_size: 1, sharding: fsdp}}",
		    shelf, send_to_itself, 1, &t);
	assert_int_equal(t.steps, 1);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_the_same_as_if_all_of_it_had_been_run),
		cmocka_unit_test(so_is_one_that_was_edited),
		cmocka_unit_test(so_is_one_of_models_as_transformers_writes_them),
		cmocka_unit_test(so_is_one_of_dualpipev),
		cmocka_unit_test(so_is_that_of_any_scenario),
		cmocka_unit_test(so_is_one_whose_pipelines_wait_for_each_other),
		cmocka_unit_test(micro_batches_without_a_pipeline_are_added),
		cmocka_unit_test(so_is_one_of_many_micro_batches_of_one_part),
		cmocka_unit_test(what_was_sent_and_not_yet_taken_tells_states_apart),
	};

	return cmocka_run_group_tests_name("jump", tests, NULL, NULL);
}
