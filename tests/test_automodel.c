/*
 * tests/test_automodel.c - what FSDP leaves to autograd, and what it does in the last micro-batch alone; blocks made of
 * Transformer Engine's modules: as NeMo AutoModel has them, counted by hand
 */
#include "tests/counted.h"

#define STACK "nemo-automodel-2026"
#define LLAMA "{name: llama3-8b, num_hidden_layers: 2}"
#define PLAN(batch) \
	"{sequence_length: 128, micro_batch_size: 1, global_batch_size: " batch \
	", sharding: fsdp, "

enum { MICRO_BATCHES = 8 };

/* Parameters of a layer, and of embedding, head and last norm. */
static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double root = 2 * 128256.0 * 4096 + 4096;

static double held(const struct ft_graph *g, enum ft_memory category)
{
	const struct ft_class *c = &g->rank_class[0];
	double sum = c->base_bytes[category];

	for (size_t i = 0; i < c->n_calls; i++)
		sum += c->call[i].repeat *
		       g->segment[c->call[i].segment].net_bytes[category];
	return sum;
}

/* As many works, of as many bytes and FLOPs. */
static void same_steps(const struct parts *p, const struct parts *q)
{
	struct sum a = sum_of(p->graph, NULL), b = sum_of(q->graph, NULL);

	assert_true(a.n == b.n);
	near_frac(a.bytes, b.bytes, 1e-12);
	near_frac(a.flop, b.flop, 1e-12);
}

/* Two ranks: gradients are summed up whole in fp32, a cast of the first's, and reduced once; nothing is added to a
 * shard. Weights are gathered twice a micro-batch, or, if they stay behind forward, once in all. */
static void gradients_are_reduced_in_the_last_micro_batch(void **state)
{
	const double all = 2 * layer + root, added = all - 4096;

	(void)state;
	for (int stay = 0; stay < 2; stay++) {
		struct parts p;

		build(&p, LLAMA,
		      stay ? PLAN("16") "sync_each_micro_batch: false, "
					"reshard_after_forward: false}" :
			     PLAN("16") "sync_each_micro_batch: false}",
		      "torch-2.11-eager", 2);
		near_frac(sum_of(p.graph, "fsdp_reduce").bytes, 4 * all, 1e-9);
		near_frac(sum_of(p.graph, "fsdp_pack").bytes, 8 * all, 1e-9);
		assert_true(sum_of(p.graph, "fsdp_accumulate").n == 0);
		near_frac(sum_of(p.graph, "gradient_cast").bytes, 6 * added, 1e-3);
		near_frac(sum_of(p.graph, "accumulate").bytes,
			  (MICRO_BATCHES - 1) * 10 * added, 1e-3);
		assert_string_equal(work_of(p.graph, "accumulate")->memory.kernel,
				    "strided_add");
		near_frac(sum_of(p.graph, "fsdp_gather").bytes,
			  2 * all * (stay ? 1 : 2 * MICRO_BATCHES), 1e-9);
		near_frac(held(p.graph, FT_MEMORY_GRADIENTS), 4 * all, 1e-3);
		near_frac(held(p.graph, FT_MEMORY_WEIGHTS), (2 + 2 * stay) * all, 1e-9);
		drop(&p);
	}
}

/* One micro-batch is the last: the key changes nothing. */
static void the_only_micro_batch_is_the_last(void **state)
{
	struct parts p, q;

	(void)state;
	build(&p, LLAMA, PLAN("2") "sync_each_micro_batch: false}", STACK, 2);
	build(&q, LLAMA, PLAN("2") "sync_each_micro_batch: true}", STACK, 2);
	same_steps(&p, &q);
	drop(&p);
	drop(&q);
}

enum { H = 512, WIDTH = 256, EXPERTS = 16, PER_TOKEN = 4, T = 512 };
#define MOE \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 2, " \
	"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, " \
	"num_experts: 16, num_experts_per_tok: 4, moe_intermediate_size: 256}"
#define ROUTED(ep) \
	"{sequence_length: 512, micro_batch_size: 1, global_batch_size: 16, " \
	"sharding: fsdp, master_weights: false, moe_force_balance: true, " \
	"parallel: {ep: " ep "}}"

/* Experts of one rank alone: their gradients are autograd's, 6 bytes a number from the second of two micro-batches on.
 * Where two ranks have the same ones FSDP has them, too. */
static void experts_of_one_rank_are_not_gathered(void **state)
{
	static const char *const plans[] = { ROUTED("8"), ROUTED("4") };

	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		double experts = 2. * EXPERTS / (shared ? 4 : 8) * 3 * H * WIDTH;
		struct parts p, q;

		build(&p, MOE, plans[shared], STACK, 8);
		build(&q, MOE, plans[shared], STACK, 8);
		q.stack->layout.ignored_experts = false;
		rebuild(&q);
		if (shared) {
			same_steps(&p, &q);
			assert_true(sum_of(p.graph, "fsdp_reduce_experts").n > 0);
			drop(&p), drop(&q);
			continue;
		}
		near_frac(sum_of(q.graph, "fsdp_copy_out").bytes -
				  sum_of(p.graph, "fsdp_copy_out").bytes,
			  2 * 2 * 4 * experts, 1e-9);
		near_frac(sum_of(q.graph, "fsdp_copy_in").bytes -
				  sum_of(p.graph, "fsdp_copy_in").bytes,
			  2 * 2 * 6 * experts, 1e-9);
		near_frac(sum_of(q.graph, "fsdp_pack").bytes -
				  sum_of(p.graph, "fsdp_pack").bytes,
			  2 * 4 * experts, 1e-9);
		near_frac(sum_of(p.graph, "accumulate").bytes, 6 * experts, 1e-9);
		assert_true(sum_of(q.graph, "accumulate").n == 0);
		near_frac(held(p.graph, FT_MEMORY_GRADIENTS),
			  held(q.graph, FT_MEMORY_GRADIENTS), 1e-12);
		near_frac(held(p.graph, FT_MEMORY_WEIGHTS),
			  held(q.graph, FT_MEMORY_WEIGHTS), 1e-12);
		drop(&p), drop(&q);
	}
}

/* Of two layers and two micro-batches: a norm is one kernel, a sum of residuals another; an expert's gate is one with
 * the router's weights, and two backward; copies move by Transformer Engine's permutation. */
static void blocks_are_made_of_modules(void **state)
{
	const double copies = T * PER_TOKEN, calls = 2 * 2;
	struct parts p;

	(void)state;
	build(&p, MOE, ROUTED("8"), STACK, 8);
	expect(&p, "add_norm", calls, 10. * T * H, 2);
	expect(&p, "norm_back", 2 * calls, 8. * T * H, 2);
	expect(&p, "rope", calls, 4. * T * (8 + 8) * H / 8, 2);
	expect(&p, "expert_activation", calls, 6 * copies * WIDTH, 1);
	expect(&p, "expert_activation_back", calls, 18 * copies * WIDTH, 2);
	expect(&p, "sort_by_expert", calls, 4 * copies * H, 2);
	expect(&p, "loss", 2, 4. * T * 512, 3);
	expect(&p, "loss_back", 2, 8. * T * 512, 3);
	assert_true(sum_of(p.graph, "loss_cast").n == 0);
	drop(&p);
}

/* gpt-oss: nothing is clamped by kernels of its own, and the host waits for no number. The first product's biases are added to
 * each expert's rows and all are joined (8 bytes), backward summed (2). */
static void clamped_gates_are_compiled(void **state)
{
	const double rows = 128. * 4, width = 2 * 2880, local = 4, calls = 2;
	struct parts p, q;

	(void)state;
	build(&p, "{name: gpt-oss-20b, num_hidden_layers: 2}",
	      "{sequence_length: 128, micro_batch_size: 1, global_batch_size: 8, "
	      "sharding: fsdp, master_weights: false, moe_force_balance: true, "
	      "parallel: {ep: 8}}",
	      STACK, 8);
	build(&q, "{name: gpt-oss-20b, num_hidden_layers: 2}",
	      "{sequence_length: 128, micro_batch_size: 1, global_batch_size: 8, "
	      "sharding: fsdp, master_weights: false, moe_force_balance: true, "
	      "moe_dispatcher: deepep, parallel: {ep: 8}}",
	      "megatron-core", 8);
	assert_true(sum_of(p.graph, "expert_clamp").n == 0);
	assert_true(sum_of(q.graph, "expert_clamp").n > 0);
	near_frac(sum_of(p.graph, "expert_clamp_back").bytes, calls * 7 * rows * 2880,
		  1e-12);
	near_frac(sum_of(p.graph, "expert_bias").bytes -
			  sum_of(q.graph, "expert_bias").bytes,
		  calls * 8 * rows * width, 1e-9);
	near_frac(sum_of(p.graph, "expert_bias_back").bytes -
			  sum_of(q.graph, "expert_bias_back").bytes,
		  calls * 2 * rows * width, 1e-9);
	assert_true(launches_of(p.graph, "expert_bias") -
			    launches_of(q.graph, "expert_bias") ==
		    calls * (local + 1));
	drop(&p);
	drop(&q);
}

/* Micro-batches that are in flight in a pipeline share one copy of them: 2 bytes beside the shard of two ranks (4 bytes), however
 * many there are. The first stage has a layer and the embedding. */
static void weights_that_stay_are_there_once(void **state)
{
	const double stage = 4096. * 128256 + 4096 * (2 * 4096. + 2 * 1024) +
			     3 * 4096. * 14336 + 2 * 4096;

	(void)state;
	for (int batch = 8; batch <= 32; batch *= 4) {
		struct parts p;
		char plan[256];
		double now, fullest;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 1024, global_batch_size: %d, sharding: "
			 "fsdp, reshard_after_forward: false, parallel: {pp: 4}}",
			 batch);
		build(&p, "{name: llama3-8b, num_hidden_layers: 4}", plan,
		      "nemo-automodel-2025-unpatched", 8);
		now = fullest = p.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS];
		for (size_t i = 0; i < p.graph->rank_class[0].n_calls; i++) {
			const struct ft_call *call = &p.graph->rank_class[0].call[i];

			now += call->repeat * p.graph->segment[call->segment]
						      .net_bytes[FT_MEMORY_WEIGHTS];
			fullest = fmax(fullest, now);
		}
		near_frac(fullest, (4. / 2 + 2) * stage, 1e-9);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_that_stay_are_there_once),
		cmocka_unit_test(gradients_are_reduced_in_the_last_micro_batch),
		cmocka_unit_test(the_only_micro_batch_is_the_last),
		cmocka_unit_test(experts_of_one_rank_are_not_gathered),
		cmocka_unit_test(blocks_are_made_of_modules),
		cmocka_unit_test(clamped_gates_are_compiled),
	};

	return cmocka_run_group_tests_name("traces: AutoModel", tests, NULL, NULL);
}
