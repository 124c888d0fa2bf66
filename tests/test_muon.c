/*
 * tests/test_muon.c - what an update by Muon computes, moves and sends, counted matrix by matrix
 *
 * The oracle is the method's definition and PyTorch's text: five steps of X X', A A and B X for each
 * matrix, of which FSDP2's DTensors divide the rows.
 */
#include <math.h>

#include "tests/works.h"

enum {
	H = 1024,
	F = 3072,
	EXPERT = 512,
	Q = 1024,
	KV = 256,
	VOCABULARY = 4096,
	LAYERS = 6
};

#define LLAMA \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 6, vocab_size: 4096, " \
	"num_attention_heads: 16, num_key_value_heads: 4, intermediate_size: 3072}"
#define MIXTRAL \
	"{model_type: mixtral, hidden_size: 1024, num_hidden_layers: 6, vocab_size: 4096, " \
	"num_attention_heads: 16, num_key_value_heads: 4, intermediate_size: 512, " \
	"num_local_experts: 8, num_experts_per_tok: 2}"
#define PLAN(more) \
	"{sequence_length: 2048, global_batch_size: 16, optimizer: muon, " more "}"

static const double dense[][2] = { { Q, H }, { KV, H }, { KV, H }, { H, Q },
				   { F, H }, { F, H },	{ H, F } };

enum { MATRICES = sizeof(dense) / sizeof(*dense) };

static double smaller(const double *x)
{
	return fmin(x[0], x[1]);
}

/* Products of five steps: two with X, one of A with itself. */
static double flop_of(const double *x)
{
	double n = smaller(x);

	return 5 * (4 * n * x[0] * x[1] + 2 * n * n * n);
}

static double layer_flop(void)
{
	double sum = 0;

	for (int i = 0; i < MATRICES; i++)
		sum += flop_of(dense[i]);
	return sum;
}

/* What all ranks of a sharded matrix do more: of a tall one all of A A. */
static double repeated_flop(int ranks)
{
	double sum = 0;

	for (int i = 0; i < MATRICES; i++)
		if (dense[i][0] > dense[i][1])
			sum += 5 * 2 * pow(dense[i][1], 3) * (ranks - 1);
	return sum;
}

static void near_flop(const struct parts *p, double want)
{
	near_frac(sum_over_ranks(p->graph, "newton_schulz", -1).flop, want, 1e-12);
}

static void whole_matrices_on_each_replica(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LLAMA, PLAN("sharding: ddp"), "torch-2.11-eager", 8);
	near_flop(&p, 8 * LAYERS * layer_flop());
	assert_true(sum_of(p.graph, "muon_gather").n == 0);
	assert_true(host_times(p.graph, FT_HOST_MATRIX) == 0);
	drop(&p);
}

static void rows_of_dtensors_are_divided(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 8; ranks *= 2) {
		struct parts p;
		double gathered = 0, summed = 0, exchanges = 0;

		build(&p, LLAMA, PLAN("sharding: fsdp"), "torch-2.11-eager", ranks);
		near_flop(&p, LAYERS * (layer_flop() + repeated_flop(ranks)));
		for (int i = 0; i < MATRICES; i++) {
			double n = smaller(dense[i]), all = dense[i][0] * dense[i][1];
			bool tall = dense[i][0] > dense[i][1];

			gathered += tall ? 0 : 5 * 2 * (2 * all + n * n);
			summed += (tall ? 5 * 2 * 2 * n * n : 0) + 2;
			exchanges += 1 + (tall ? 10 : 15);
		}
		if (ranks == 1)
			gathered = summed = exchanges = 0;
		near_frac(sum_of(p.graph, "muon_gather").bytes, LAYERS * gathered,
			  1e-12);
		near_frac(sum_of(p.graph, "muon_sum").bytes, LAYERS * summed, 1e-12);
		near_frac(host_times(p.graph, FT_HOST_REDISTRIBUTE), LAYERS * exchanges,
			  1e-12);
		near_frac(host_times(p.graph, FT_HOST_MATRIX), LAYERS * MATRICES,
			  1e-12);
		drop(&p);
	}
}

/* Embedding, head and norms are AdamW's: 28 bytes each. Momentum walks the matrices twice. */
static void the_rest_is_adam(void **state)
{
	double matrices = LAYERS * (2. * Q * H + 2. * KV * H + 3. * F * H);
	double rest = 2. * VOCABULARY * H + (2 * LAYERS + 1) * H;

	(void)state;
	for (int ranks = 1; ranks <= 4; ranks *= 2) {
		struct parts p;

		build(&p, LLAMA, PLAN("sharding: fsdp"), "torch-2.11-eager", ranks);
		near_frac(sum_of(p.graph, "adam").bytes, 28 * rest / ranks, 1e-12);
		near_frac(sum_of(p.graph, "momentum").bytes, 24 * matrices / ranks,
			  1e-12);
		near_frac(p.graph->rank_class[0].base_bytes[FT_MEMORY_OPTIMIZER],
			  4 * (matrices + 2 * rest) / ranks, 1e-12);
		drop(&p);
	}
}

/* Ranks that an optimizer is divided among are dealt matrices, and Megatron's q, k and v are one, as up and gate. */
static void other_stacks_deal_whole_matrices(void **state)
{
	static const double joined[][2] = {
		{ Q + 2 * KV, H }, { H, Q }, { 2 * F, H }, { H, F }
	};
	double sum = 0;
	struct parts p;

	(void)state;
	for (int i = 0; i < 4; i++)
		sum += flop_of(joined[i]);
	build(&p, LLAMA, PLAN("sharding: zero1"), "megatron-core", 8);
	near_flop(&p, LAYERS * sum);
	assert_true(sum_of(p.graph, "muon_gather").n == 0);
	drop(&p);
	build(&p, LLAMA, PLAN("sharding: zero1, parallel: {pp: 2}"), "megatron-core",
	      8);
	near_flop(&p, LAYERS * sum);
	drop(&p);
}

/* Experts are matrices of their own, and a rank has its share of them; so has a tensor rank of rows and columns. */
static void experts_and_tensor_ranks(void **state)
{
	static const double part[][2] = { { Q / 4, H }, { KV / 4, H }, { KV / 4, H },
					  { H, Q / 4 }, { F / 4, H },  { F / 4, H },
					  { H, F / 4 } };
	static const double router[2] = { 8, H }, expert[2] = { EXPERT, H };
	double attention = 0, split = 0;
	struct parts p;

	(void)state;
	for (int i = 0; i < MATRICES; i++) {
		attention += i < 4 ? flop_of(dense[i]) : 0;
		split += flop_of(part[i]);
	}
	build(&p, MIXTRAL, PLAN("sharding: ddp, parallel: {ep: 4}"), "torch-2.11-eager",
	      4);
	near_flop(&p, LAYERS * (4 * (attention + flop_of(router)) +
				8 * 3 * flop_of(expert)));
	near_frac(ft_model_matrix_parameters(p.model),
		  LAYERS * (2. * Q * H + 2. * KV * H + 8. * H + 24. * EXPERT * H),
		  1e-15);
	drop(&p);
	build(&p, LLAMA, PLAN("sharding: ddp, parallel: {tp: 4}"), "torch-2.11-eager",
	      4);
	near_flop(&p, LAYERS * 4 * split);
	drop(&p);
}

/* FSDP1 shards flat tensors, which have no rows. */
static void flat_tensors_are_no_matrices(void **state)
{
	struct ft_graph *graph;
	struct ft_error err;
	struct parts p;

	(void)state;
	build(&p, LLAMA, PLAN("sharding: fsdp"), "torch-2.11-eager", 2);
	p.stack->layout.flat_shards = true;
	graph = ft_graph_build(p.model, p.plan, p.stack, &err);
	assert_null(graph);
	assert_non_null(strstr(err.text, "optimizer: muon takes matrices"));
	p.plan->optimizer = FT_ADAM;
	rebuild(&p);
	drop(&p);
	build(&p, LLAMA, PLAN("sharding: ddp"), "torch-2.11-eager", 2);
	p.stack->layout.flat_shards = true;
	rebuild(&p);
	drop(&p);
}

static void adapters_are_updated_too(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LLAMA,
	      PLAN("sharding: ddp, lora: {rank: 8, targets: [q_proj, v_proj]}"),
	      "torch-2.11-eager", 1);
	/* both matrices of q's and of v's adapter, as one of 8 columns */
	near_flop(&p, LAYERS * 5 * (4 * 8. * 8 * (H + Q + H + KV) + 2 * 8. * 8 * 8));
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_matrices_on_each_replica),
		cmocka_unit_test(rows_of_dtensors_are_divided),
		cmocka_unit_test(the_rest_is_adam),
		cmocka_unit_test(other_stacks_deal_whole_matrices),
		cmocka_unit_test(experts_and_tensor_ranks),
		cmocka_unit_test(flat_tensors_are_no_matrices),
		cmocka_unit_test(adapters_are_updated_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
