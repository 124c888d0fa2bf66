/* tests/test_recompute.c - what runs again before a backward, what is kept, what waits in host memory */
#include <math.h>

#include "tests/works.h"

#define DENSE \
	"{model_type: llama, hidden_size: 512, num_hidden_layers: 8, " \
	"num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1024, " \
	"intermediate_size: 1536}"
#define PLAIN \
	"{model_type: gpt2, n_embd: 512, n_layer: 8, n_head: 8, vocab_size: 1024, " \
	"n_positions: 1024}"
#define ROUTED \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 8, " \
	"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, " \
	"num_experts: 16, num_experts_per_tok: 4, moe_intermediate_size: 256}"
#define LATENT \
	"{name: deepseek-v3, num_hidden_layers: 8, first_k_dense_replace: 8, " \
	"num_nextn_predict_layers: 0}"
#define LINEAR \
	"{name: qwen3-next-80b-a3b, num_hidden_layers: 8, num_nextn_predict_layers: 0}"
#define PLAN(more) \
	"{sequence_length: 1024, global_batch_size: 8, sharding: ddp, " more "}"

enum { S = 1024, H = 512, F = 1536, LAYERS = 8 };

/* Bytes that a layer keeps. */
struct module {
	const char *model, *modules;
	const char *again[10]; /* works of one layer that run once more */
	double fewer;	       /* bytes a token that a layer keeps no longer */
};

static const struct module modules[] = {
	{ DENSE, "core_attn", { "attention" }, 0 },
	{ DENSE, "mlp", { "gate_up", "activation", "down" }, 6 * F },
	{ DENSE, "act", { "activation" }, 2 * F },
	{ DENSE, "moe_act", { "activation" }, 2 * F },
	{ DENSE, "norm", { "norm", "add_norm" }, 4 * H },
	{ DENSE,
	  "[layernorm, act]",
	  { "norm", "add_norm", "activation" },
	  4 * H + 2 * F },
	{ DENSE,
	  "mlpwi",
	  { "gate_up", "attention", "norm", "add_norm" },
	  6 * F + 6 * H },
	{ DENSE,
	  "'mlpwi, mlpwo'",
	  { "gate_up", "activation", "attention", "norm", "add_norm" },
	  6 * F + 6 * H },
	{ DENSE,
	  "out_proj",
	  { "attention_out", "attention", "norm", "add_norm" },
	  8 * H },
	{ DENSE,
	  "op",
	  { "norm", "query_copy", "rope", "attention_out", "add_norm", "activation",
	    "down", "add" },
	  2 * F + 6 * H - 4 * 8 },
	{ ROUTED, "moe_act", { "expert_activation" }, 2 * 256 * 4 },
	{ ROUTED,
	  "moe",
	  { "router", "top_k", "permute", "sort_by_expert", "expert_up",
	    "expert_activation", "expert_down", "unsort", "unpermute" },
	  (6 * 256 + 2 * H) * 4 },
	{ LATENT, "mla_up_proj", { "q_up", "kv_up", "rope", "latent_join" }, 0 },
	{ LATENT,
	  "'mla_up_proj,mlp'",
	  { "q_up", "kv_up", "rope", "latent_join", "gate_up", "activation", "down" },
	  0 },
};

enum { MODULES = sizeof(modules) / sizeof(*modules) };

static void build_module(struct parts *p, const struct module *m)
{
	char plan[400];

	snprintf(plan, sizeof(plan),
		 PLAN("recompute: selective, recompute_modules: %s, "
		      "moe_force_balance: true"),
		 m->modules);
	build(p, m->model, plan, "megatron-core", 8);
}

/* Forward works of that name are those that are no dgrad and no wgrad. */
static double forwards(const struct ft_graph *g, const char *name)
{
	double n = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++) {
			const struct ft_work *w = &g->work[s->op[j].work];
			bool back =
				(w->kind == FT_GEMM && w->gemm.layout != FT_FORWARD) ||
				(w->kind == FT_ATTENTION &&
				 w->attention.pass != FT_PASS_FORWARD);

			n += !strcmp(w->name, name) && !back ? call->repeat : 0;
		}
	}
	return n;
}

static bool named(const struct module *m, const char *name)
{
	for (int k = 0; k < 10 && m->again[k]; k++)
		if (!strcmp(m->again[k], name))
			return true;
	return false;
}

static void modules_run_again_what_they_name_and_nothing_else(void **state)
{
	(void)state;
	for (int i = 0; i < MODULES; i++) {
		const struct module *m = &modules[i];
		struct parts with, without;

		build_module(&with, m);
		build(&without, m->model,
		      PLAN("recompute: none, moe_force_balance: true"), "megatron-core",
		      8);
		for (size_t k = 0; k < with.graph->n_works; k++) {
			const char *name = with.graph->work[k].name;
			double n = forwards(with.graph, name) -
				   forwards(without.graph, name);

			if (n != (named(m, name) ? LAYERS : 0))
				fail_msg("%s: %s runs %g times more", m->modules, name,
					 n);
		}
		if (m->fewer)
			near_frac(kept_by_layer(without.graph) -
					  kept_by_layer(with.graph),
				  S * m->fewer, 1e-12);
		else
			assert_true(kept_by_layer(with.graph) <=
				    kept_by_layer(without.graph));
		drop(&with);
		drop(&without);
	}
}

/* A product whose output no backward reads does not run again: with a norm behind it one
 * does. */
static void outputs_that_no_backward_reads_stay_away(void **state)
{
	static const char *const types[] = { "llama", "gemma2" };

	(void)state;
	for (int behind = 0; behind < 2; behind++) {
		char model[300];
		struct parts p;

		snprintf(
			model, sizeof(model),
			"{model_type: %s, hidden_size: 512, num_hidden_layers: 8, "
			"num_attention_heads: 8, num_key_value_heads: 4, head_dim: 64, "
			"vocab_size: 1024, intermediate_size: 1536}",
			types[behind]);
		build(&p, model, PLAN("recompute: selective, recompute_modules: mlpwo"),
		      "maxtext-2025", 8);
		assert_true(forwards(p.graph, "down") == (1 + behind) * LAYERS);
		drop(&p);
	}
}

/* Where the stack stops at what a backward reads last, the MLP's second product runs once, unless
 * something behind it or beside it reads what it gives; attention and the first product run again
 * everywhere, and the FLOPs that are told are those that run. */
static const struct stop {
	const char *model, *more, *stack;
	bool dropout, again;
	const char *product;
} stops[] = {
	{ DENSE, "", "torch-2.11-eager", false, false, "down" },
	{ DENSE, "parallel: {tp: 2}", "torch-2.11-eager", false, false, "down" },
	{ DENSE, "", "torch-2.11-eager", true, true, "down" },
	{ DENSE, "", "torch-2.11-compile", false, true, "down" },
	{ DENSE, "", "torchtitan-2024", false, false, "down" },
	{ DENSE, "", "jax-0.11", false, false, "down" },
	{ DENSE, "", "megatron-core", false, true, "down" },
	{ PLAIN, "", "transformers-5-eager", false, false, "down" },
	{ DENSE, "lora: {rank: 8, targets: q_proj}", "torch-2.11-eager", false, false,
	  "down" },
	{ DENSE, "lora: {rank: 8, targets: down_proj}", "torch-2.11-eager", false, true,
	  "down" },
	{ "{model_type: gemma2, hidden_size: 512, num_hidden_layers: 8, "
	  "num_attention_heads: 8, num_key_value_heads: 4, head_dim: 64, "
	  "vocab_size: 1024, intermediate_size: 1536}",
	  "", "torch-2.11-eager", false, true, "down" },
	{ ROUTED, "moe_force_balance: true", "torch-2.11-eager", false, true,
	  "expert_down" },
};

enum { STOPS = sizeof(stops) / sizeof(*stops) };

static void what_no_backward_reads_does_not_run_again(void **state)
{
	(void)state;
	for (int i = 0; i < STOPS; i++) {
		const struct stop *s = &stops[i];
		struct parts with, without;
		char plan[300];
		double more, told;

		snprintf(plan, sizeof(plan), PLAN("recompute: full, %s"), s->more);
		build(&with, s->model, plan, s->stack, 8);
		build(&without, s->model, plan, s->stack, 8);
		with.stack->layout.dropout = s->dropout;
		rebuild(&with);
		without.stack->layout.dropout = s->dropout;
		without.plan->recompute = FT_RECOMPUTE_NONE;
		rebuild(&without);
		more = forwards(with.graph, s->product) -
		       forwards(without.graph, s->product);
		if (more != (s->again ? LAYERS : 0))
			fail_msg("%s %s: %s runs %g times more", s->stack, s->more,
				 s->product, more);
		assert_true(forwards(with.graph, "attention") ==
			    2 * forwards(without.graph, "attention"));
		told = with.graph->recomputed_flop_per_rank;
		near_frac(sum_of(with.graph, NULL).flop -
				  sum_of(without.graph, NULL).flop,
			  told, strstr(s->more, "lora") ? 0.02 : 0.002);
		drop(&with);
		drop(&without);
	}
}

/* FLOPs that are counted as done twice are those that run more; of a delta rule those of
 * its definition, of which its chunks do some more. */
static void recomputed_flops_are_those_that_run_more(void **state)
{
	static const char *const models[] = { DENSE, ROUTED, LATENT, LINEAR };
	enum { MODELS = 4 };
	static const char *const how[] = {
		"recompute: full",
		"recompute: full, recompute_layers: 4",
		"recompute: selective, recompute_modules: core_attn",
		"recompute: selective, recompute_modules: mlp",
		"recompute: selective, recompute_modules: moe",
		"recompute: selective, recompute_modules: 'mlpwi, out_proj'",
		"recompute: selective, recompute_modules: mla_up_proj",
		"recompute: selective, recompute_modules: op",
		"recompute: full, parallel: {tp: 2, ep: 4}",
		"recompute: full, parallel: {cp: 2}",
		"recompute: full, parallel: {pp: 2}",
		"recompute: full, moe_capacity_factor: 0.5",
		"recompute: selective, recompute_modules: moe, moe_capacity_factor: 0.5",
	};

	(void)state;
	for (size_t i = 0; i < MODELS * sizeof(how) / sizeof(*how); i++) {
		struct parts with, without;
		bool linear = i % MODELS == 3;
		double more;
		char plan[300];

		if (linear && strstr(how[i / MODELS], "selective"))
			continue;
		if ((strstr(how[i / MODELS], "moe") && i % MODELS != 1) ||
		    (strstr(how[i / MODELS], ": mlp") &&
		     !strstr(how[i / MODELS], "mlpwi") && i % MODELS == 1) ||
		    (strstr(how[i / MODELS], "mla") && i % MODELS != 2))
			continue; /* refused: the model has no such layer */
		snprintf(plan, sizeof(plan), PLAN("moe_force_balance: true, %s"),
			 how[i / MODELS]);
		build(&with, models[i % MODELS], plan, "megatron-core", 8);
		build(&without, models[i % MODELS], plan, "megatron-core", 8);
		without.plan->recompute = FT_RECOMPUTE_NONE;
		rebuild(&without);
		more = (sum_of(with.graph, NULL).flop -
			sum_of(without.graph, NULL).flop) /
		       (double)with.plan->pp;
		if (fabs(with.graph->recomputed_flop_per_rank - more) >
		    (linear ? 0.02 : 0.002) * more)
			fail_msg("%s %s: %g counted, %g run", models[i % MODELS], plan,
				 with.graph->recomputed_flop_per_rank, more);
		drop(&with);
		drop(&without);
	}
}

/* What waits in host memory is not kept; while it is on its way it is, a layer at a time. */
static void offloaded_layers_are_held_one_at_a_time(void **state)
{
	double all = 0;

	(void)state;
	for (int layers = 0; layers <= LAYERS; layers += 2) {
		double held = 0, most = 0, layer = 0;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN("offload_layers: %d"), layers);
		build(&p, DENSE, plan, "megatron-core", 8);
		for (size_t i = 0; i < p.graph->rank_class[0].n_calls; i++) {
			const struct ft_call *call = &p.graph->rank_class[0].call[i];
			const struct ft_segment *s = &p.graph->segment[call->segment];
			double peak = s->peak_bytes[FT_MEMORY_ACTIVATIONS];

			for (uint32_t k = 0; k < call->repeat; k++) {
				most = fmax(most, held + peak);
				held += s->net_bytes[FT_MEMORY_ACTIVATIONS];
				most = fmax(most, held);
			}
			layer = fmax(layer, peak);
		}
		assert_true(fabs(held) < 1);
		all = layers ? all : most;
		near_frac(most,
			  fmax(all - layers * layer, all * (LAYERS - layers) / LAYERS) +
				  (layers ? layer : 0) * (layers == LAYERS),
			  1e-9);
		drop(&p);
	}
}

/* Autocast keeps a plain layer's inputs of norms in fp32 beside: 6 h a token, of split features a part; and of the norms' outputs
 * a copy for each product but one, 2 h: of q, k and v two, of gate and up one (traces/autocast.h). */
static void autocast_keeps_residuals_of_plain_layers(void **state)
{
	static const struct {
		const char *model;
		double more;
	} kinds[] = { { PLAIN, 6 + 2 * 2 }, { DENSE, 2 * (2 + 1) } };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (int tp = 1; tp <= 2; tp++) {
			double bytes[2];

			for (int cast = 0; cast < 2; cast++) {
				struct parts p;
				char plan[200];

				snprintf(plan, sizeof(plan),
					 PLAN("recompute: none, master_weights: %s, "
					      "parallel: {tp: %d}"),
					 cast ? "true" : "false", tp);
				build(&p, kinds[i].model, plan, "torch-2.11-eager", 8);
				bytes[cast] = kept_by_layer(p.graph);
				drop(&p);
			}
			assert_true(bytes[0] > 0);
			near_frac(1 + bytes[1] - bytes[0],
				  1 + S * kinds[i].more * H / tp, 1e-9);
		}
}

/* Of a layer that runs again whole only the input stays, in fp32, as embedding and sums are: 4 h a token. What is held all step long
 * under autocast, a parameter: 4 weight, 4 gradient, 8 optimizer, and buckets of 4, of one rank, too, and 4 for eight micro-batches' own,
 * which one rank has here (traces/base_bytes.c). */
static void autocast_holds_what_its_table_says(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 8; ranks += 7) {
		const double *base;
		struct parts p;
		double n;

		build(&p, DENSE, PLAN("recompute: full"), "torch-2.11-eager", ranks);
		n = ft_model_parameters(p.model);
		base = p.graph->rank_class[0].base_bytes;
		near_frac(base[FT_MEMORY_WEIGHTS], 4 * n, 1e-9);
		near_frac(base[FT_MEMORY_GRADIENTS], 4 * n, 1e-9);
		near_frac(base[FT_MEMORY_OPTIMIZER], 8 * n, 1e-9);
		near_frac(base[FT_MEMORY_OTHER], (ranks > 1 ? 4 : 8) * n, 1e-9);
		near_frac(kept_by_layer(p.graph), 4. * H * S, 1e-9);
		drop(&p);
		build(&p, DENSE, PLAN("recompute: full, master_weights: false"),
		      "torch-2.11-eager", ranks);
		near_frac(kept_by_layer(p.graph), 2. * H * S, 1e-9);
		drop(&p);
	}
}

/* A gather of a shard begins when its copy is there; without one, when memory is free for it.
 * Tails are waited for of streams that run something. */
static void what_is_waited_for_was_put_there(void **state)
{
	static const char *const plans[] = {
		"sharding: fsdp",    "parallel: {tp: 2}, overlap: {tp: true}",
		"parallel: {cp: 2}", "sharding: zero1, parallel: {pp: 2}",
		"parallel: {tp: 1}",
	};
	static const char *const stacks[] = { "torch-2.11-eager", "megatron-core" };

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		unsigned used = 0, awaited = 0;
		int gathers = 0;
		char plan[200];
		struct parts p;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 1024, global_batch_size: 8, %s}",
			 plans[i / 2]);
		build(&p, DENSE, plan, stacks[i % 2], 8);
		for (size_t k = 0; k < p.graph->n_segments; k++) {
			const struct ft_segment *seg = &p.graph->segment[k];
			bool copied = false;

			for (size_t j = 0; j < seg->n_ops; j++) {
				const struct ft_op *op = &seg->op[j];

				used |= 1u << op->stream;
				for (int w = 0;
				     w < FT_OP_WAITS && op->wait[w] != FT_EVENT_NONE;
				     w++)
					if (op->wait[w] >= FT_TAIL)
						awaited |= 1u
							   << (op->wait[w] - FT_TAIL);
				if (!strcmp(p.graph->work[op->work].name,
					    "fsdp_gather")) {
					assert_int_equal(
						op->wait[0] == FT_TAIL + FT_STREAM_COPY,
						copied);
					gathers++;
				}
				copied = op->stream == FT_STREAM_COPY;
			}
		}
		if (awaited & ~used)
			fail_msg("%s: streams %x are awaited, %x run", plan, awaited,
				 used);
		assert_int_equal(gathers > 0, i / 2 == 0);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_run_again_what_they_name_and_nothing_else),
		cmocka_unit_test(outputs_that_no_backward_reads_stay_away),
		cmocka_unit_test(what_no_backward_reads_does_not_run_again),
		cmocka_unit_test(recomputed_flops_are_those_that_run_more),
		cmocka_unit_test(offloaded_layers_are_held_one_at_a_time),
		cmocka_unit_test(autocast_keeps_residuals_of_plain_layers),
		cmocka_unit_test(autocast_holds_what_its_table_says),
		cmocka_unit_test(what_is_waited_for_was_put_there),
	};

	return cmocka_run_group_tests_name("traces/recompute", tests, NULL, NULL);
}
