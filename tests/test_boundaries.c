/*
 * tests/test_boundaries.c - what stages of a pipeline send each other, and when hosts wait for
 * it; gradients that stay whole
 */
#include <math.h>

#include "tests/simulated.h"
#include "tests/works.h"

#define MODEL \
	"{name: gpt, num_hidden_layers: 4, hidden_size: 1024, num_attention_heads: 16, intermediate_size: 4096}"
#define PLAN(more) \
	"{sequence_length: 512, micro_batch_size: 2, global_batch_size: 8, " more "}"

static const double whole =
	2 * 2 * 512.0 * 1024; /* a micro-batch's activations in 16 bit */

/* Receives, and those of them that a host waits for. */
static int receives(const struct ft_graph *g, bool awaited)
{
	int n = 0;

	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++) {
			const struct ft_op *op = &g->segment[s].op[i];

			n += (op->stream == FT_STREAM_RECV_FORWARD ||
			      op->stream == FT_STREAM_RECV_BACKWARD) &&
			     (!awaited || op->host_waits);
		}
	return n;
}

/* Two stages, four micro-batches: each sends and receives four tensors in both directions. */
static void tensor_ranks_send_slices_that_are_gathered_again(void **state)
{
	static const struct {
		const char *stack, *plan;
		double bytes, gathers;
		int64_t ranks;
	} row[] = {
		{ "megatron-lm-2022", PLAN("parallel: {tp: 2, pp: 2}"), whole / 2, 8,
		  4 },
		{ "megatron-lm-2022", PLAN("parallel: {pp: 2}"), whole, 0, 2 },
		{ "megatron-lm-2022",
		  PLAN("sequence_parallel: true, parallel: {tp: 2, pp: 2}"), whole / 2,
		  0, 4 },
		{ "megatron-core",
		  PLAN("sequence_parallel: false, parallel: {tp: 2, pp: 2}"), whole, 0,
		  4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct sum sent, gathered;
		struct parts p;

		build(&p, MODEL, row[i].plan, row[i].stack, row[i].ranks);
		sent = sum_of(p.graph, "pp_activation");
		gathered = sum_of(p.graph, "pp_all_gather");
		assert_true(sent.n == 8); /* both ends of each */
		near_frac(sent.bytes, 8 * row[i].bytes, 1e-12);
		assert_true(gathered.n == row[i].gathers);
		near_frac(gathered.bytes, row[i].gathers * whole, 1e-12);
		drop(&p);
	}
}

static void hosts_wait_for_what_they_receive(void **state)
{
	static const struct {
		const char *stack, *plan;
		bool waits;
	} row[] = {
		{ "megatron-lm-2022", PLAN("parallel: {pp: 2}"), true },
		{ "megatron-lm-2022", PLAN("overlap: {pp: true}, parallel: {pp: 2}"),
		  false },
		{ "megatron-core", PLAN("overlap: {pp: false}, parallel: {pp: 2}"),
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct parts p;

		build(&p, MODEL, row[i].plan, row[i].stack, 8);
		assert_true(receives(p.graph, false) > 0);
		assert_int_equal(receives(p.graph, true),
				 row[i].waits ? receives(p.graph, false) : 0);
		drop(&p);
	}
}

/* Where hosts set the pace and wait for what arrives, m micro-batches on two stages take m + 1
 * slots: nothing is launched ahead while the pipeline fills. */
static void a_host_bound_pipeline_fills_at_the_hosts_pace(void **state)
{
	double step[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char text[600];

		snprintf(
			text, sizeof(text),
			"{model: {name: gpt, num_hidden_layers: 24, hidden_size: 1024, "
			"num_attention_heads: 16, intermediate_size: 4096}, cluster: {gpu: "
			"a100-80g, gpus: 2}, stack: megatron-lm-2022, training: "
			"{sequence_length: 1024, micro_batch_size: 1, global_batch_size: %d, "
			"precision: fp16, sharding: ddp, recompute: full, parallel: {pp: 2}}}",
			i ? 8 : 4);
		step[i] = simulated_s(text, NULL);
	}
	near_frac((step[1] - step[0]) / 4, step[0] / 5, 0.06);
}

/* DeepSpeed's optimizer of bf16 divides the update, not the gradients. */
static void an_update_is_divided_and_gradients_are_not(void **state)
{
	static const struct {
		const char *stack, *plan;
		enum ft_collective op;
	} row[] = {
		{ "megatron-deepspeed-2022", PLAN("sharding: zero1"), FT_ALL_REDUCE },
		{ "megatron-deepspeed-2022", PLAN("sharding: zero1, precision: fp16"),
		  FT_REDUCE_SCATTER },
		{ "megatron-lm-2022", PLAN("sharding: zero1"), FT_REDUCE_SCATTER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct parts p;

		build(&p, MODEL, row[i].plan, row[i].stack, 2);
		assert_int_equal(work_of(p.graph, "gradient_reduce")->communication.op,
				 row[i].op);
		assert_non_null(work_of(p.graph, "zero_gather"));
		drop(&p);
	}
}

/* Of four micro-batches, by hand: gradients of all arrive in tensors of their own, and inputs but
 * those that are open at most, of each chunk that has a neighbour there; and of each chunk but the model's
 * last outputs of those that are open. */
static void stages_hold_what_they_receive_and_sent(void **state)
{
	static const struct {
		const char *plan;
		double tensors[2]; /* of the two stages */
	} row[] = {
		{ PLAN("schedule: 1f1b, parallel: {pp: 2}"), { 4 + 2, 4 - 1 } },
		{ PLAN("schedule: gpipe, parallel: {pp: 2}"), { 4 + 4, 4 - 4 } },
		{ PLAN("parallel: {pp: 2, vpp: 2}"),
		  { 4 + (4 - 2) + 4 + 5, (4 - 3) + 4 + (4 - 1) + 3 } },
		{ PLAN("schedule: zbv, parallel: {pp: 2, vpp: 2}"),
		  { 4 + (4 - 1) + 4, (4 - 3) + 4 + 4 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ft_graph *without;
		struct ft_error err;
		struct parts p;

		build(&p, MODEL, row[i].plan, "torch-2.11-eager", 2);
		p.stack->layout.receive_buffers = false;
		without = ft_graph_build(p.model, p.plan, p.stack, &err);
		ok_or_say(without, err);
		for (int s = 0; s < 2; s++) {
			double more =
				p.graph->rank_class[s].base_bytes[FT_MEMORY_OTHER] -
				without->rank_class[s].base_bytes[FT_MEMORY_OTHER];

			if (fabs(more / whole - row[i].tensors[s]) > 1e-9)
				fail_msg("%s, stage %d: %g tensors, not %g",
					 row[i].plan, s, more / whole,
					 row[i].tensors[s]);
		}
		ft_graph_free(without);
		drop(&p);
	}
}

/* The most that a segment of this name takes beside what it found. */
static double most_in(const struct ft_graph *g, const char *name)
{
	double most = 0;

	for (size_t s = 0; s < g->n_segments; s++)
		if (!strncmp(g->segment[s].name, name, strlen(name)))
			most = fmax(most, g->segment[s].peak_bytes[FT_MEMORY_OTHER]);
	return most;
}

/* Few tokens and a large head: its gradient of a further micro-batch comes beside that of the
 * logits and is added up; that of a first one does not. The embedding's likewise. */
static void a_gradient_that_is_added_up_is_there_twice(void **state)
{
	static const struct {
		const char *stack, *plan;
		bool adds;
	} row[] = {
		{ "torch-2.11-compile",
		  "{sequence_length: 128, micro_batch_size: 1, "
		  "global_batch_size: 2, sharding: ddp, parallel: {pp: 2}}",
		  true },
		{ "torch-2.11-compile",
		  "{sequence_length: 128, micro_batch_size: 1, "
		  "global_batch_size: 1, sharding: ddp, parallel: {pp: 2}}",
		  false },
	};
	const double logits = 128.0 * 51200, head = 1024.0 * 51200;
	const double table =
		4 * (head + 128.0 * 1024); /* of fp32 weights, positions as well */

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		double most;
		struct parts p;

		build(&p,
		      "{name: gpt, num_hidden_layers: 4, hidden_size: 1024, num_attention_heads: 16, "
		      "intermediate_size: 4096, vocab_size: 51200}",
		      row[i].plan, row[i].stack, 2);
		most = most_in(p.graph, "head_back");
		assert_true(most > 0);
		near_frac(1 + most_in(p.graph, "embed_back"),
			  1 + (row[i].adds ? table : 0), 1e-9);
		if (row[i].adds)
			near_frac(most, 2 * logits + 2 * head, 1e-9);
		else
			assert_true(most < 2 * head);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_hold_what_they_receive_and_sent),
		cmocka_unit_test(a_gradient_that_is_added_up_is_there_twice),
		cmocka_unit_test(tensor_ranks_send_slices_that_are_gathered_again),
		cmocka_unit_test(hosts_wait_for_what_they_receive),
		cmocka_unit_test(a_host_bound_pipeline_fills_at_the_hosts_pace),
		cmocka_unit_test(an_update_is_divided_and_gradients_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
