/*
 * tests/test_host_state.c - state that waits in host memory: bytes that go and come, the host's update, and memory that is free,
 * each by a closed form
 */
#include <math.h>

#include "foretoken/study_plan.h"
#include "tests/simulated.h"
#include "tests/works.h"

#define MODEL \
	"{model_type: llama, hidden_size: 2048, num_hidden_layers: 4, " \
	"num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 32000, " \
	"intermediate_size: 8192}"
#define PLAN \
	"{sequence_length: 1024, micro_batch_size: 1, global_batch_size: %d, " \
	"sharding: %s, offload_state: %s%s}"

enum { RANKS = 4 };

static void built(struct parts *p, const char *stack, int batch, const char *sharding,
		  const char *offload, const char *more)
{
	char plan[400];

	snprintf(plan, sizeof(plan), PLAN, batch, sharding, offload, more);
	build(p, MODEL, plan, stack, RANKS);
}

static double root_numbers(const struct parts *p)
{
	return ft_model_embedding_parameters(p->model, 1) +
	       ft_model_head_parameters(p->model, 1) + (double)p->model->hidden_size;
}

/* A shard comes for each pass that gathers it: FSDP1 keeps the root's until its backward; all gradients go, once for each reduction. */
static void shards_come_for_each_gather(void **state)
{
	static const struct {
		const char *stack, *more;
		int batch;
		double layers_in, root_in,
			out; /* times a rank's layers, root, and all */
	} ways[] = {
		{ "torch-2.11-eager", "", RANKS, 2, 2, 1 },
		{ "torch-2.11-fsdp1", "", RANKS, 2, 1, 1 },
		{ "torch-2.11-eager", "", 2 * RANKS, 4, 4, 2 },
		{ "torch-2.11-eager", ", reshard_after_forward: false", RANKS, 1, 1,
		  1 },
		{ "torch-2.11-eager", ", sync_each_micro_batch: false", 2 * RANKS, 4, 4,
		  1 },
		{ "torch-2.11-eager", ", recompute: full", RANKS, 2, 2, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct parts p;
		double all, root;

		built(&p, ways[i].stack, ways[i].batch, "fsdp", "all", ways[i].more);
		all = ft_model_parameters(p.model) / RANKS;
		root = root_numbers(&p) / RANKS;
		near_frac(
			sum_of(p.graph, "state_in").bytes,
			4 * (ways[i].layers_in * (all - root) + ways[i].root_in * root),
			1e-9);
		near_frac(sum_of(p.graph, "state_out").bytes, 4 * ways[i].out * all,
			  1e-9);
		drop(&p);
	}
}

/* Gradients go in their own format, new weights come back in 16 bit; under zero2 a later micro-batch's bring the sum back first. */
static void gradients_go_and_weights_come_back(void **state)
{
	static const struct {
		const char *stack, *sharding;
		int batch;
		double in, out; /* bytes of a number of the rank's share */
	} ways[] = {
		{ "megatron-core", "zero1", RANKS, 2, 2 },
		{ "megatron-core", "zero1", 4 * RANKS, 2, 2 },
		{ "megatron-core", "ddp", RANKS, 2 * RANKS, 2 * RANKS },
		{ "generic", "zero2", RANKS, 2, 4 },
		{ "generic", "zero2", 3 * RANKS, 2 + 2 * 4, 3 * 4 },
		{ "generic", "fsdp", RANKS, 2, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct parts p;
		double share;

		built(&p, ways[i].stack, ways[i].batch, ways[i].sharding, "optimizer",
		      "");
		share = ft_model_parameters(p.model) / RANKS;
		near_frac(sum_of(p.graph, "state_in").bytes, ways[i].in * share, 1e-9);
		near_frac(sum_of(p.graph, "state_out").bytes, ways[i].out * share,
			  1e-9);
		assert_true(sum_of(p.graph, "adam").n < 1);
		drop(&p);
	}
}

/* What is held all step long: 12 or 16 bytes less of each number of the share. */
static void memory_is_free(void **state)
{
	static const struct {
		const char *stack, *sharding, *offload;
		double less; /* bytes of a number of the rank's share */
	} ways[] = {
		{ "torch-2.11-eager", "fsdp", "all", 12 },
		{ "generic", "fsdp", "optimizer", 8 + 2 },
		{ "megatron-core", "zero1", "optimizer", 12 },
		{ "megatron-core", "ddp", "optimizer", 12 * RANKS },
		{ "generic", "zero2", "optimizer", 12 + 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct parts with, without;
		double less, share;

		built(&with, ways[i].stack, RANKS, ways[i].sharding, ways[i].offload,
		      "");
		built(&without, ways[i].stack, RANKS, ways[i].sharding, "none", "");
		share = ft_model_parameters(with.model) / RANKS;
		less = ft_memory_sum(without.graph->rank_class->base_bytes) -
		       ft_memory_sum(with.graph->rank_class->base_bytes);
		near_frac(less, ways[i].less * share, 1e-9);
		drop(&with);
		drop(&without);
	}
}

static void as_much_waits_on_the_host(void **state)
{
	struct parts p;

	(void)state;
	built(&p, "torch-2.11-eager", RANKS, "fsdp", "all", "");
	near_frac(ft_plan_host_bytes(p.model, p.plan),
		  16 * ft_model_parameters(p.model) / RANKS, 1e-12);
	drop(&p);
	built(&p, "megatron-core", RANKS, "ddp", "optimizer", "");
	near_frac(ft_plan_host_bytes(p.model, p.plan),
		  14 * ft_model_parameters(p.model), 1e-12);
	drop(&p);
	built(&p, "megatron-core", RANKS, "zero1", "none", "");
	assert_true(ft_plan_host_bytes(p.model, p.plan) <= 0);
	drop(&p);
}

/* What waits on the host is what ranks keep where nothing does, on the average over stages: 12 bytes a number and 2 of its gradient; a
 * shared table is there twice in a pipeline, and experts of predicted tokens are spread as all others are. */
static void hosts_hold_what_ranks_would(void **state)
{
	static const struct {
		const char *model, *plan;
	} of[] = {
		{ "{name: llama3.2-1b, num_hidden_layers: 4}", "parallel: {pp: 2}" },
		{ "{name: llama3.2-1b, num_hidden_layers: 4}", "parallel: {pp: 1}" },
		{ "{name: deepseek-v2-lite, num_hidden_layers: 4, num_nextn_predict_layers: 1}",
		  "parallel: {ep: 4}" },
		{ "{name: deepseek-v2-lite, num_hidden_layers: 4, num_nextn_predict_layers: 2}",
		  "parallel: {pp: 2, ep: 2}" },
	};
	static const char *const shared[] = { "ddp", "zero1" };

	(void)state;
	for (int i = 0; i < 8; i++) {
		const char *model = of[i / 2].model;
		struct parts there, host;
		char plan[400];
		double kept = 0;

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 128, global_batch_size: 16, sharding: %s, %s}",
			shared[i % 2], of[i / 2].plan);
		build(&there, model, plan, "megatron-core", 8);
		for (size_t c = 0; c < there.graph->n_classes; c++)
			kept += there.graph->rank_class[c]
					.base_bytes[FT_MEMORY_OPTIMIZER] /
				(double)there.graph->n_classes;
		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 128, global_batch_size: 16, gradient_dtype: "
			"bf16, offload_state: optimizer, sharding: %s, %s}",
			shared[i % 2], of[i / 2].plan);
		build(&host, model, plan, "megatron-core", 8);
		near_frac(ft_plan_host_bytes(host.model, host.plan), 14 * kept / 12,
			  1e-4);
		drop(&there);
		drop(&host);
	}
}

/* Seconds of a step on a host of so many sockets, whose memory has so many bytes/s. */
static double step_s(int threads, int sockets, double memory)
{
	char text[700];

	snprintf(text, sizeof(text),
		 "model: " MODEL "\ncluster: {gpu: h100-sxm, gpus: %d, "
		 "node: {extends: hgx-h100, host_sockets: %d, host_memory: %g GB/s}}\n"
		 "stack: torch-2.11-eager\ntraining: {sequence_length: 1024, "
		 "global_batch_size: %d, micro_batch_size: 1, sharding: fsdp, "
		 "offload_state: all, offload_threads: %d}\n",
		 RANKS, sockets, memory * 1e-9, RANKS, threads);
	return simulated_s(text, NULL);
}

/* Threads share the numbers, ranks of a socket share its memory: four on the first of two, or two on each of two of four. */
static void the_host_updates(void **state)
{
	/* of eight GPUs; times: of the node's memory over what a rank has */
	static const struct {
		int sockets, times;
	} ways[] = { { 1, 4 }, { 2, 8 }, { 4, 8 }, { 8, 8 } };
	struct parts p;
	double share, update, memory, factor = 1;

	(void)state;
	built(&p, "torch-2.11-eager", RANKS, "fsdp", "all", "");
	share = ft_model_parameters(p.model) / RANKS;
	factor += p.stack->host_crowding_frac.value * (RANKS - 1);
	update = factor * p.stack->host_s[FT_HOST_STATE_UPDATE].value / 1e6;
	memory = factor * p.stack->host_s[FT_HOST_STATE_MEMORY].value / 1e6;
	for (int threads = 1; threads <= 8; threads *= 2)
		near_frac(step_s(threads, 1, 1e15) - step_s(2 * threads, 1, 1e15),
			  share * update / (2 * threads), 1e-3);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		near_frac(step_s(16, ways[i].sockets, 10e9) - step_s(16, 1, 1e15),
			  28 * share * (ways[i].times / 10e9 - memory), 1e-3);
	drop(&p);
}

/* A later micro-batch costs FSDP2's host copies and sums, and of large tensors new pages; FSDP1 adds on the GPU. */
static void later_micro_batches_are_joined(void **state)
{
	struct parts p;
	double join = 0, mapped = 0, share;

	(void)state;
	built(&p, "torch-2.11-eager", 2 * RANKS, "fsdp", "all", "");
	share = ft_model_parameters(p.model) / RANKS;
	for (size_t i = 0; i < p.graph->rank_class->n_calls; i++) {
		const struct ft_call *c = &p.graph->rank_class->call[i];
		const double *host = p.graph->segment[c->segment].host;

		join += c->repeat * host[FT_HOST_STATE_JOIN];
		mapped += c->repeat * host[FT_HOST_STATE_MAPPED];
	}
	near_frac(1e6 * join, share, 1e-9);
	/* words and head alone: 32000 x 2048 / 4 numbers of 4 bytes are beyond 32 MiB, 8192 x 2048 / 4 are not */
	near_frac(1e6 * mapped, 2 * 32000. * 2048 / RANKS, 1e-9);
	drop(&p);
}

/* FSDP1's host makes gradients of units beyond 32 MiB anew, once a step: here words and head, and layers whose share is that large. */
static void flat_gradients_are_made_anew(void **state)
{
	static const struct {
		const char *stack, *more;
		double times;
	} ways[] = {
		{ "torch-2.11-fsdp1", "", 1 },
		{ "torch-2.11-fsdp1", ", sync_each_micro_batch: false", 1 },
		{ "torch-2.11-eager", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct parts p;
		double views = 0;
		int batch = *ways[i].more ? 2 * RANKS : RANKS;

		built(&p, ways[i].stack, batch, "fsdp", "all", ways[i].more);
		for (size_t k = 0; k < p.graph->rank_class->n_calls; k++) {
			const struct ft_call *c = &p.graph->rank_class->call[k];

			views += c->repeat *
				 p.graph->segment[c->segment].host[FT_HOST_STATE_VIEWS];
		}
		near_frac(1e6 * views + 1,
			  ways[i].times * ft_model_parameters(p.model) / RANKS + 1,
			  1e-9);
		drop(&p);
	}
}

/* A node that says nothing of its memory is no node with memory without limit. */
static void a_node_without_memory_is_refused(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_outcome o;
	struct ft_scenario *s = scenario_of(
		shelf,
		"model: " MODEL "\ncluster: {gpu: h100-sxm, gpus: 4, "
		"node: {extends: hgx-h100, host_memory: 0 GB/s}}\nstack: generic\n"
		"training: {sequence_length: 1024, global_batch_size: 4, "
		"micro_batch_size: 1, offload_state: optimizer}\n",
		&err);

	(void)state;
	ok_or_say(s, err);
	assert_false(ft_study_simulate(s, NULL, NULL, &o, &err));
	assert_non_null(strstr(err.text, "has no host_memory"));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* 14 or 16 bytes a parameter wait in the memory of the one node: with less the plan does not fit, whatever the GPUs hold. */
static void a_node_holds_so_much(void **state)
{
	static const double sizes[] = { 0, 0.99,
					1.01 }; /* of what waits; 0: not said */
	double waits = 1e12;

	(void)state;
	for (int i = -1; i < 3; i++) { /* at first: how much waits */
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_scenario *s;
		struct ft_outcome o;
		struct ft_error err;
		char size[40] = "~", text[600];

		if (i)
			snprintf(size, sizeof(size), "%.0f B",
				 (i < 0 ? 1 : sizes[i]) * waits);
		snprintf(text, sizeof(text),
			 "model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 8, "
			 "node: {extends: hgx-h100, host_memory_size: %s}}\n"
			 "stack: torch-2.11-eager\ntraining: {sequence_length: 1024, "
			 "global_batch_size: 8, micro_batch_size: 1, sharding: fsdp, "
			 "offload_state: all}\n",
			 size);
		s = scenario_of(shelf, text, &err);
		ok_or_say(s, err);
		ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
		waits = o.host_memory_bytes;
		assert_true(waits > 14 * 8e9 && waits < 17 * 8.1e9);
		assert_int_equal(o.fits, i != 1);
		ft_outcome_release(&o);
		ft_scenario_free(s);
		ft_shelf_free(shelf);
	}
}

/* A search knows what a node holds: no plan fits that only the GPUs do, and what is said to help does help. */
static void a_search_holds_the_nodes_memory(void **state)
{
	static const struct ft_search how = { .top = 1, .threads = 1 };
	static const char *const size[] = { "60 GB", "70 GB" }; /* 64 GB wait */

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_plans *plans[FT_SIZES_MOST], *p;
		size_t n;
		struct ft_error err;
		char text[600];

		snprintf(text, sizeof(text),
			 "model: llama3-8b\ncluster: {gpu: h100-sxm, gpus: 16, "
			 "node: {extends: hgx-h100, host_memory_size: %s}}\n"
			 "stack: torch-2.11-eager\ntraining: {sequence_length: 1024, "
			 "global_batch_size: 32, parallel: {pp: 1, tp: 1}, "
			 "sharding: fsdp, offload_state: all}\n",
			 size[i]);
		ok_or_say(ft_study_plans_of("s", text, &how, plans, &n, &err), err);
		assert_int_equal(n, 1);
		p = plans[0];
		assert_true(p->considered > 1);
		assert_int_equal(p->n, i);
		if (i == 0) { /* neither what needs more of it nor another sharding */
			assert_int_equal(p->feasible, 0);
			assert_int_equal(p->n_ways, 1);
			assert_non_null(strstr(p->way[0].text, "cluster.gpus=32"));
			assert_true(fabs(p->way[0].memory_frac - 32.1 / 60) < 0.01);
			assert_true(p->way[0].of_node);
			assert_int_equal(p->over_node, p->considered);
			assert_int_equal(p->over_gpu, 0);
		}
		ft_plans_free(p);
	}
}

static void what_does_not_run_is_refused(void **state)
{
	static const struct {
		const char *stack, *training, *says;
	} wrong[] = {
		{ "torch-2.11-eager", "sharding: ddp, offload_state: all",
		  "under sharding: fsdp or hsdp alone" },
		{ "torch-2.11-fsdp1", "sharding: fsdp, offload_state: all",
		  "use sync_each_micro_batch: false" },
		{ "torch-2.11-eager", "offload_threads: 4",
		  "nothing is updated on the host" },
		{ "torch-2.11-eager",
		  "sharding: fsdp, offload_state: all, offload_layers: 2",
		  "leave one out" },
		{ "torch-2.11-eager",
		  "sharding: fsdp, offload_state: all, master_weights: false",
		  "only adam with master weights and moments in fp32" },
		{ "torch-2.11-eager",
		  "sharding: fsdp, offload_state: all, optimizer: muon",
		  "only adam with master weights" },
		{ "qwen-2023-zero3", "sharding: fsdp, offload_state: all",
		  "is not known of stack qwen-2023-zero3" },
		{ "jax-0.11", "sharding: fsdp, offload_state: optimizer",
		  "is not known of stack jax-0.11" },
		{ "torch-2.11-eager", "sharding: ddp, offload_state: optimizer",
		  "the GPU updates weights in fp32" },
		{ "megatron-core", "offload_state: some", "none, optimizer, all" },
		{ "megatron-core", "offload_state: optimizer, offload_threads: 0",
		  "offload_threads" },
	};
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_scenario *s;
		struct ft_outcome o;
		struct ft_error err;
		char text[500];

		snprintf(text, sizeof(text),
			 "model: " MODEL "\ncluster: {gpu: h100-sxm, gpus: 4}\n"
			 "stack: %s\ntraining: {sequence_length: 1024, "
			 "global_batch_size: 8, micro_batch_size: 1, %s}\n",
			 wrong[i].stack, wrong[i].training);
		s = scenario_of(shelf, text, &err);
		if (s)
			assert_false(ft_study_simulate(s, NULL, NULL, &o, &err));
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].training, err.text);
		ft_scenario_free(s);
	}
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shards_come_for_each_gather),
		cmocka_unit_test(hosts_hold_what_ranks_would),
		cmocka_unit_test(gradients_go_and_weights_come_back),
		cmocka_unit_test(memory_is_free),
		cmocka_unit_test(as_much_waits_on_the_host),
		cmocka_unit_test(the_host_updates),
		cmocka_unit_test(later_micro_batches_are_joined),
		cmocka_unit_test(flat_gradients_are_made_anew),
		cmocka_unit_test(a_node_without_memory_is_refused),
		cmocka_unit_test(a_node_holds_so_much),
		cmocka_unit_test(a_search_holds_the_nodes_memory),
		cmocka_unit_test(what_does_not_run_is_refused),
	};

	return cmocka_run_group_tests_name("traces/host_state", tests, NULL, NULL);
}
