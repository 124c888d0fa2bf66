/*
 * tests/test_split.c - what ranks of a tensor group exchange and hold of experts and of latent
 * attention; how experts are shared out within hsdp; buckets of unlike layers
 */
#include "tests/works.h"

#define PLAN(more) "{sequence_length: 1024, global_batch_size: 8, " more "}"

/* DeepSeek-V3's, a token: hidden state, latents and the key that is turned. */
enum {
	H = 7168,
	Q_LATENT = 1536,
	KV_LATENT = 512,
	TURNED = 64,
	SHARED = 2048,
	TOKENS = 1024
};

#define V3(dense) \
	"{name: deepseek-v3, num_hidden_layers: 1, first_k_dense_replace: " dense \
	", num_nextn_predict_layers: 0}"

/* Of one layer: attention gathers latents, the rest hidden states; forward, and again in backward
 * beside the gradient that comes in whole. */
static void latents_are_gathered_and_hidden_states_are_not(void **state)
{
	const double latents = Q_LATENT + KV_LATENT + TURNED;
	struct parts p;
	struct sum gathers, scatters;

	(void)state;
	build(&p, V3("1"), PLAN("parallel: {tp: 8}"), "megatron-core", 8);
	gathers = sum_in(p.graph, "forward", "tp_all_gather");
	scatters = sum_in(p.graph, "forward", "tp_reduce_scatter");
	near_frac(gathers.bytes, 8 * 2. * TOKENS * (latents + H), 1e-12);
	near_frac(scatters.bytes, 8 * 2. * TOKENS * (2. * H), 1e-12);
	/* inputs again, and gradients of outputs */
	gathers = sum_in(p.graph, "backward", "tp_all_gather");
	scatters = sum_in(p.graph, "backward", "tp_reduce_scatter");
	near_frac(gathers.bytes, 8 * 2. * TOKENS * (latents + H + 2. * H), 1e-12);
	near_frac(scatters.bytes, 8 * 2. * TOKENS * (latents + H), 1e-12);
	/* a rank projects its slice */
	assert_int_equal(work_of(p.graph, "q_down")->gemm.m, TOKENS / 8);
	drop(&p);
}

/* torchtitan gathers the hidden state, and projects all of it on each rank. */
static void dtensor_gathers_in_front_of_the_latents(void **state)
{
	struct parts p;

	(void)state;
	build(&p, V3("1"), PLAN("sharding: fsdp, parallel: {tp: 8}"),
	      "torch-2.11-compile", 8);
	near_frac(sum_in(p.graph, "forward", "tp_all_gather").bytes,
		  8 * 2. * TOKENS * (2. * H), 1e-12);
	assert_int_equal(work_of(p.graph, "q_down")->gemm.m, TOKENS);
	drop(&p);
}

/* Selective recomputation by operation saves no gathers: a layer's two run again. */
static void gathers_run_again_with_the_operations_behind_them(void **state)
{
	double gathered[2];

	(void)state;
	for (int again = 0; again < 2; again++) {
		struct parts p;

		build(&p, "{name: llama3-8b, num_hidden_layers: 1}",
		      again ? PLAN("sharding: fsdp, parallel: {tp: 8}, recompute: selective, "
				   "recompute_modules: op") :
			      PLAN("sharding: fsdp, parallel: {tp: 8}, recompute: none"),
		      "torch-2.11-compile", 8);
		gathered[again] = sum_in(p.graph, "backward", "tp_all_gather").bytes;
		drop(&p);
	}
	near_frac(gathered[1] - gathered[0], 8 * 2. * TOKENS * 2 * 4096, 1e-12);
}

/* A shared expert is split over the group like an MLP: it gathers and scatters as one. */
static void a_shared_expert_exchanges_as_an_mlp_does(void **state)
{
	static const char *const shared[] = { "0", "1" };
	double gathered[2][2], scattered[2][2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		char model[200];

		snprintf(model, sizeof(model),
			 "{name: deepseek-v3, num_hidden_layers: 1, "
			 "first_k_dense_replace: 0, num_nextn_predict_layers: 0, "
			 "n_shared_experts: %s}",
			 shared[i]);
		build(&p, model, PLAN("parallel: {tp: 8, ep: 8}"), "megatron-core", 8);
		for (int k = 0; k < 2; k++) {
			const char *pass = k ? "backward" : "forward";

			gathered[i][k] = sum_in(p.graph, pass, "tp_all_gather").bytes;
			scattered[i][k] =
				sum_in(p.graph, pass, "tp_reduce_scatter").bytes;
		}
		if (i) {
			near_frac(sum_in(p.graph, "forward", "shared_up").flop,
				  8 * 2. * TOKENS * 2 * SHARED / 8 * H, 1e-12);
			near_frac(sum_in(p.graph, "backward", "shared_down").flop,
				  8 * 2 * 2. * TOKENS * SHARED / 8 * H, 1e-12);
		}
		drop(&p);
	}
	near_frac(gathered[1][0] - gathered[0][0], 8 * 2. * TOKENS * H, 1e-12);
	near_frac(scattered[1][0] - scattered[0][0], 8 * 2. * TOKENS * H, 1e-12);
	near_frac(gathered[1][1] - gathered[0][1], 8 * 2. * TOKENS * 2 * H, 1e-12);
	near_frac(scattered[1][1] - scattered[0][1], 8 * 2. * TOKENS * H, 1e-12);
}

/* A predicted token adds a layer, and the inputs and outputs of two norms: 8 h a token. */
static void a_predicted_token_keeps_what_it_joins(void **state)
{
	struct parts p;
	double net;

	(void)state;
	build(&p,
	      "{name: deepseek-v3, num_hidden_layers: 1, first_k_dense_replace: 0, "
	      "num_nextn_predict_layers: 1}",
	      PLAN("parallel: {tp: 2, ep: 8}"), "megatron-core", 8);
	net = segment_of(p.graph, "head")->net_bytes[FT_MEMORY_ACTIVATIONS];
	near_frac(
		net - segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_ACTIVATIONS],
		8. * H * TOKENS / 2, 1e-12);
	near_frac(left_over(p.graph, FT_MEMORY_ACTIVATIONS), 0, 1e-12);
	drop(&p);
}

/* Router and down-projections are whole on each rank, and a rank has a key-value head. */
static void what_is_not_split_is_held_whole(void **state)
{
	struct parts p;
	double all, whole = H * 256. + 256 + H * (1536. + 512 + 64), norms;

	(void)state;
	build(&p, V3("0"), PLAN("parallel: {tp: 8, ep: 8}"), "megatron-core", 8);
	norms = ft_layer_norm_parameters(p.model, 0);
	all = ft_layer_attention_parameters(p.model, 0) +
	      ft_layer_dense_parameters(p.model, 0);
	near_frac(ft_layer_rank_parameters(p.model, 0, 8),
		  (all - whole) / 8 + whole + norms, 1e-12);
	near_frac(ft_layer_rank_parameters(p.model, 0, 1), all + norms, 1e-12);
	drop(&p);
	build(&p, "llama3-8b", PLAN("parallel: {tp: 16}"), "megatron-core", 16);
	near_frac(16 * (ft_layer_rank_parameters(p.model, 0, 16) -
			ft_layer_norm_parameters(p.model, 0)) -
			  ft_layer_attention_parameters(p.model, 0) -
			  ft_layer_dense_parameters(p.model, 0),
		  8 * 4096. * 2 * 128, 1e-12); /* 8 heads more than there are */
	drop(&p);
}

/* Of 16 ranks in two copies each expert's weights lie over 16 / ep / 2 ranks, and their gradients
 * are summed over both copies. */
static void hsdp_keeps_as_many_copies_of_experts_as_of_the_rest(void **state)
{
	static const int shards[] = { 16, 8, 4, 1 };

	(void)state;
	for (int ep = 1; ep <= 4; ep *= 4)
		for (int i = 0; i < 4; i++) {
			struct parts p;
			char plan[200];
			double copies = 16. / shards[i], edp = 16. / ep, over, experts;
			const struct ft_group_shape *g;

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 1024, global_batch_size: 16, "
				 "sharding: hsdp, shard: %d, parallel: {ep: %d}}",
				 shards[i], ep);
			build(&p, "{name: mixtral-8x7b, num_hidden_layers: 1}", plan,
			      "torch-2.11-compile", 16);
			over = edp > copies ? edp / copies : 1;
			g = p.graph->group;
			near_frac((double)ft_plan_expert_shard(p.plan), over, 1e-12);
			near_frac((double)g[FT_GROUP_EXPERT_SHARD].size, over, 1e-12);
			near_frac((double)g[FT_GROUP_EXPERT_REPLICA].size, edp / over,
				  1e-12);
			assert_int_equal(g[FT_GROUP_EXPERT_SHARD].stride, ep);
			near_frac((double)g[FT_GROUP_EXPERT_REPLICA].stride, ep * over,
				  1e-12);
			experts = ft_layer_expert_parameters(p.model, 0) / ep;
			near_frac(sum_over_ranks(p.graph, "hsdp_reduce_experts", -1)
					  .bytes,
				  edp > over ? 16 * 4 * experts / over : 0, 1e-9);
			near_frac(
				p.graph->rank_class[0].base_bytes[FT_MEMORY_OPTIMIZER],
				8 * (experts / over +
				     (ft_model_parameters(p.model) -
				      ft_layer_expert_parameters(p.model, 0)) /
					     shards[i]),
				1e-9);
			drop(&p);
		}
}

/* Every second layer has experts: all gradients are reduced, whichever closes a bucket. */
static void buckets_hold_layers_of_both_kinds(void **state)
{
	static const char *const shardings[] = { "ddp", "zero1", "zero2" };

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int ranks = 16; ranks <= 512; ranks *= 32) {
			struct parts p;
			char plan[200];
			double dense = 0, experts = 0;

			snprintf(
				plan, sizeof(plan),
				"{sequence_length: 1024, global_batch_size: %d, "
				"gradient_dtype: fp32, sharding: %s, parallel: {ep: 16}}",
				ranks, shardings[i]);
			build(&p, "{name: llama4-maverick, num_hidden_layers: 6}", plan,
			      "megatron-core", ranks);
			for (int64_t l = 0; l < p.model->n_layers; l++) {
				dense += ft_layer_rank_parameters(p.model, l, 1);
				experts += ft_layer_expert_parameters(p.model, l) / 16;
			}
			assert_true(p.model->layer[0].experts !=
				    p.model->layer[1].experts);
			near_frac(sum_in(p.graph, "backward", "gradient_reduce").bytes,
				  4 * dense, 1e-9);
			near_frac(sum_in(p.graph, "backward", "gradient_reduce_experts")
					  .bytes,
				  ranks > 16 ? 4 * experts : 0, 1e-9);
			if (i)
				near_frac(sum_in(p.graph, NULL, "zero_gather_experts")
						  .bytes,
					  ranks > 16 ? 2 * experts : 0, 1e-9);
			drop(&p);
		}
}

/* What a forward of a layer leaves in memory. */
static double kept_of(const struct ft_graph *g)
{
	const struct ft_class *c = &g->rank_class[0];

	for (size_t i = 0; i < c->n_calls; i++) {
		const struct ft_segment *s = &g->segment[c->call[i].segment];

		if (!strncmp(s->name, "forward", 7))
			return s->net_bytes[FT_MEMORY_ACTIVATIONS];
	}
	fail_msg("no forward");
	return 0;
}

/* Norms behind both halves of a layer keep their inputs, of each token 2 bytes a number. */
static void norms_behind_the_halves_keep_their_inputs(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 4; tp *= 2) {
		char training[160];
		struct parts p;
		struct ft_graph *more;
		struct ft_error err;

		snprintf(training, sizeof(training),
			 "{sequence_length: 1024, micro_batch_size: 3, "
			 "global_batch_size: 24, recompute: none, sharding: zero1, "
			 "parallel: {tp: %d}}",
			 tp);
		build(&p, "{name: llama3-8b, num_hidden_layers: 2}", training,
		      "nemo-24", 8);
		assert_int_equal(p.model->norms, 2);
		p.model->norms = 4;
		more = ft_graph_build(p.model, p.plan, p.stack, &err);
		ok_or_say(more, err);
		near_frac(kept_of(more) - kept_of(p.graph),
			  2 * 2 * 4096.0 * 3 * 1024 / tp, 1e-9);
		ft_graph_free(more);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latents_are_gathered_and_hidden_states_are_not),
		cmocka_unit_test(dtensor_gathers_in_front_of_the_latents),
		cmocka_unit_test(gathers_run_again_with_the_operations_behind_them),
		cmocka_unit_test(a_shared_expert_exchanges_as_an_mlp_does),
		cmocka_unit_test(a_predicted_token_keeps_what_it_joins),
		cmocka_unit_test(what_is_not_split_is_held_whole),
		cmocka_unit_test(hsdp_keeps_as_many_copies_of_experts_as_of_the_rest),
		cmocka_unit_test(buckets_hold_layers_of_both_kinds),
		cmocka_unit_test(norms_behind_the_halves_keep_their_inputs),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
