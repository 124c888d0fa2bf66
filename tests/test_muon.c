/*
 * tests/test_muon.c - what an update by Muon computes, moves and sends, counted matrix by matrix
 *
 * The oracle is the method's definition and PyTorch's text: five steps of X X', A A and B X for each
 * matrix, of which FSDP2's DTensors divide the rows.
 */
#include <math.h>
#include <stdlib.h>

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
#define LLAMA_8B \
	"{model_type: llama, hidden_size: 4096, num_hidden_layers: 2, vocab_size: 32000, " \
	"num_attention_heads: 32, num_key_value_heads: 8, intermediate_size: 14336}"
#define MIXTRAL \
	"{model_type: mixtral, hidden_size: 1024, num_hidden_layers: 6, vocab_size: 4096, " \
	"num_attention_heads: 16, num_key_value_heads: 4, intermediate_size: 512, " \
	"num_local_experts: 8, num_experts_per_tok: 2}"
#define MANY \
	"{sequence_length: 2048, global_batch_size: 768, optimizer: muon, sharding: fsdp}"
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

/* With two ranks each wide matrix is gathered; a tall one's squares are summed. */
static void rows_of_dtensors_are_divided(void **state)
{
	(void)state;
	for (int ranks = 1; ranks <= 2; ranks++) {
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

/* What rank 0 of so many called, one GPU a host, in an update of two layers of Llama 3 8B:
 * measurements/probes/h100-2026-11-27-one-of-many-unseen.jsonl.gz, shapes of its own part. */
static const struct {
	int64_t ranks;
	const char *name;
	int times, rows, columns;
} recorded[] = {
	{ 2, "muon_gather", 50, 2048, 4096 },
	{ 2, "muon_sum", 40, 4096, 4096 },
	{ 2, "muon_gather", 20, 4096, 2048 },
	{ 2, "muon_gather", 20, 4096, 512 },
	{ 2, "muon_gather", 20, 512, 1024 },
	{ 2, "muon_gather", 20, 512, 4096 },
	{ 2, "muon_sum", 14, 1, 1 },
	{ 2, "muon_gather", 10, 14336, 2048 },
	{ 2, "muon_gather", 10, 2048, 14336 },
	{ 8, "muon_sum", 80, 4096, 4096 },
	{ 8, "muon_sum", 40, 1024, 1024 },
	{ 8, "muon_gather", 20, 512, 4096 },
	{ 8, "muon_scatter", 20, 4096, 4096 },
	{ 8, "muon_turn", 20, 4096, 512 },
	{ 8, "muon_turn", 20, 512, 4096 },
	{ 8, "muon_sum", 14, 1, 1 },
	{ 8, "muon_turn", 12, 128, 4096 },
	{ 8, "muon_turn", 6, 512, 14336 },
	{ 8, "muon_turn", 4, 1024, 512 },
	{ 8, "muon_turn", 4, 4096, 128 },
	{ 8, "muon_turn", 2, 14336, 512 },
	{ 8, "muon_turn", 2, 4096, 1792 },
	{ 64, "muon_sum", 80, 4096, 4096 },
	{ 64, "muon_gather", 20, 16, 4096 },
	{ 64, "muon_gather", 20, 64, 4096 },
	{ 64, "muon_sum", 20, 1024, 1024 },
	{ 64, "muon_scatter", 20, 1024, 1024 },
	{ 64, "muon_scatter", 20, 4096, 4096 },
	{ 64, "muon_turn", 20, 16, 4096 },
	{ 64, "muon_turn", 20, 4096, 16 },
	{ 64, "muon_turn", 20, 4096, 64 },
	{ 64, "muon_turn", 20, 64, 4096 },
	{ 64, "muon_sum", 14, 1, 1 },
	{ 64, "muon_turn", 6, 64, 14336 },
	{ 64, "muon_turn", 2, 14336, 64 },
	{ 64, "muon_turn", 2, 4096, 224 },
	{ 256, "muon_sum", 80, 4096, 4096 },
	{ 256, "muon_gather", 20, 16, 4096 },
	{ 256, "muon_gather", 20, 4, 1024 },
	{ 256, "muon_gather", 20, 4, 4096 },
	{ 256, "muon_gather", 20, 4096, 4 },
	{ 256, "muon_scatter", 20, 4096, 4096 },
	{ 256, "muon_turn", 20, 16, 4096 },
	{ 256, "muon_turn", 20, 4096, 16 },
	{ 256, "muon_sum", 14, 1, 1 },
	{ 256, "muon_turn", 6, 16, 14336 },
	{ 256, "muon_turn", 2, 14336, 16 },
	{ 256, "muon_turn", 2, 4096, 56 },
};

/* Its products' FLOPs. */
static const struct {
	int64_t ranks;
	double flop;
} multiplied[] = { { 2, 22183506083840. },
		   { 8, 11252814315520. },
		   { 64, 7457136967680. },
		   { 256, 7007675351040. } };

static void what_is_sent_is_as_recorded(void **state)
{
	static const char *const names[] = { "muon_gather", "muon_sum", "muon_scatter",
					     "muon_turn" };

	(void)state;
	for (size_t i = 0; i < sizeof(multiplied) / sizeof(*multiplied); i++) {
		int64_t ranks = multiplied[i].ranks;
		double all = 0;
		struct parts p;

		build(&p, LLAMA_8B, MANY, "torch-2.11-eager", ranks);
		p.plan->ranks_per_node = 1;
		rebuild(&p);
		near_frac(sum_of(p.graph, "newton_schulz").flop, multiplied[i].flop,
			  1e-12);
		for (int k = 0; k < 4; k++) {
			double times = 0, bytes = 0;

			for (size_t j = 0; j < sizeof(recorded) / sizeof(*recorded);
			     j++)
				if (recorded[j].ranks == ranks &&
				    !strcmp(recorded[j].name, names[k])) {
					times += recorded[j].times;
					bytes += 2. * recorded[j].times *
						 recorded[j].rows *
						 recorded[j].columns *
						 (double)(k ? 1 : ranks);
				}
			near_frac(sum_of(p.graph, names[k]).n, times, 1e-12);
			near_frac(sum_of(p.graph, names[k]).bytes, bytes, 1e-12);
			all += times;
		}
		near_frac(host_times(p.graph, FT_HOST_REDISTRIBUTE), all, 1e-12);
		drop(&p);
	}
}

/* 48 ranks of one host find it cheaper to gather k and v, 1024 x 4096, in each step than to keep them turned. */
static void a_host_has_other_prices(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LLAMA_8B, MANY, "torch-2.11-eager", 48);
	assert_true(sum_of(p.graph, "muon_scatter").n == 2 * 5 * 2);
	p.plan->ranks_per_node = 48;
	rebuild(&p);
	assert_true(sum_of(p.graph, "muon_scatter").n == 2 * 5 * 4);
	drop(&p);
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

static const double joined[][2] = {
	{ Q + 2 * KV, H }, { H, Q }, { 2 * F, H }, { H, F }
};

static int larger(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* What the first of so many ranks is dealt of so many layers, the largest first, to and fro. */
static double dealt_flop(int layers, int ranks)
{
	double each[4 * LAYERS], sum = 0;
	int n = 0;

	for (int l = 0; l < layers; l++)
		for (int i = 0; i < 4; i++)
			each[n++] = flop_of(joined[i]);
	qsort(each, (size_t)n, sizeof(*each), larger);
	for (int i = 0; i < n; i++) {
		int round = i / ranks, at = i % ranks;

		sum += (round % 2 ? ranks - 1 - at : at) == 0 ? each[i] : 0;
	}
	return sum;
}

/* Ranks that an optimizer is divided among are dealt matrices, and Megatron's q, k and v are one, as up and gate. With
 * more ranks than matrices the first has the largest, and the update takes no longer among more. */
static void other_stacks_deal_whole_matrices(void **state)
{
	static const int ranks[] = { 1, 2, 8, 16, 64 };
	struct parts p;

	(void)state;
	for (int i = 0; i < 5; i++) {
		build(&p, LLAMA,
		      "{sequence_length: 2048, global_batch_size: 64, optimizer: muon, "
		      "sharding: zero1}",
		      "megatron-core", ranks[i]);
		near_flop(&p, ranks[i] * dealt_flop(LAYERS, ranks[i]));
		assert_true(sum_of(p.graph, "muon_gather").n == 0);
		drop(&p);
	}
	build(&p, LLAMA, PLAN("sharding: zero1, parallel: {pp: 2}"), "megatron-core",
	      8);
	near_flop(&p, 8 * dealt_flop(LAYERS / 2, 4));
	drop(&p);
}

/* Replicas that share the work do so alike, and send each update of 16 bit to all. A replica alone has all. */
static void replicas_share_the_work(void **state)
{
	double matrices = LAYERS * (2. * Q * H + 2. * KV * H + 3. * F * H);
	struct parts p;

	(void)state;
	for (int ranks = 1; ranks <= 8; ranks *= 8) {
		bool shared = ranks > 1;

		build(&p, LLAMA, PLAN("sharding: ddp"), "megatron-core", ranks);
		p.stack->layout.shared_muon = true;
		rebuild(&p);
		near_flop(&p, ranks * dealt_flop(LAYERS, ranks));
		assert_true(sum_of(p.graph, "muon_sum").n == shared);
		near_frac(sum_of(p.graph, "muon_sum").bytes, shared * 2 * matrices,
			  1e-12);
		near_frac(sum_of(p.graph, "muon_apply").bytes, shared * 18 * matrices,
			  1e-12);
		drop(&p);
	}
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

/* A token predicted ahead has a layer's matrices, and a projection of both hidden states and embeddings. They are the
 * last stage's. What Adam updates is embedding, head and norms then as before. */
static void predicted_tokens_are_updated_too(void **state)
{
	static const char *const plans[] = { PLAN("sharding: ddp"),
					     PLAN("sharding: ddp, parallel: {pp: 2}") };
	static const double projection[2] = { H, 2 * H };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p, q;

		build(&p, LLAMA, plans[i], "megatron-core", 1 + i);
		build(&q,
		      "{model_type: llama, hidden_size: 1024, num_hidden_layers: 6, "
		      "vocab_size: 4096, num_attention_heads: 16, "
		      "num_key_value_heads: 4, intermediate_size: 3072, "
		      "num_nextn_predict_layers: 2}",
		      plans[i], "megatron-core", 1 + i);
		p.stack->layout.fused_qkv = q.stack->layout.fused_qkv = false;
		p.stack->layout.fused_gate_up = q.stack->layout.fused_gate_up = false;
		rebuild(&p), rebuild(&q);
		near_frac(sum_of(q.graph, "newton_schulz").flop -
				  sum_of(p.graph, "newton_schulz").flop,
			  2 * (layer_flop() + flop_of(projection)), 1e-12);
		drop(&p);
		drop(&q);
	}
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
		cmocka_unit_test(what_is_sent_is_as_recorded),
		cmocka_unit_test(a_host_has_other_prices),
		cmocka_unit_test(the_rest_is_adam),
		cmocka_unit_test(other_stacks_deal_whole_matrices),
		cmocka_unit_test(replicas_share_the_work),
		cmocka_unit_test(experts_and_tensor_ranks),
		cmocka_unit_test(flat_tensors_are_no_matrices),
		cmocka_unit_test(predicted_tokens_are_updated_too),
		cmocka_unit_test(adapters_are_updated_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
