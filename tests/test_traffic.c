/* tests/test_traffic.c - what a step's graph moves and asks of the host: counted, not simulated */
#include "tests/parts.h"

#include <math.h>

/* Of one class: bytes of the works of that name, times the times they run; *times. */
static double bytes_of(const struct ft_graph *g, size_t class, const char *name,
		       double *times)
{
	double bytes = 0;

	*times = 0;
	for (size_t i = 0; i < g->rank_class[class].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[class].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++) {
			const struct ft_work *w = &g->work[s->op[j].work];

			if (strcmp(w->name, name))
				continue;
			*times += (double)call->repeat;
			bytes += (double)call->repeat * ft_work_bytes(w);
		}
	}
	return bytes;
}

static double host_units(const struct ft_graph *g, enum ft_host activity)
{
	double units = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];

		units +=
			(double)call->repeat * g->segment[call->segment].host[activity];
	}
	return units;
}

/* All weights are gathered once a step, whether in one go or in buckets: 2 bytes each. */
static void zero_gathers_each_weight_once(void **state)
{
	static const char *const overlaps[] = { "true", "false" };
	static const int64_t ranks[] = { 8, 64, 512 };
	double times, once = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			struct parts p;
			char training[200];
			double bytes;

			snprintf(training, sizeof(training),
				 "{sequence_length: 1024, global_batch_size: 1024, "
				 "sharding: zero1, overlap: {dp: %s}}",
				 overlaps[k]);
			build(&p, "{name: llama3-8b, num_hidden_layers: 7}", training,
			      "nemo-24", ranks[i]);
			bytes = bytes_of(p.graph, 0, "zero_gather", &times);
			if (once > 0)
				near_frac(bytes, once, 1e-12);
			once = bytes;
			if (k)
				assert_true(times == 1);
			else if (ranks[i] == 512) /* 3 layers of 218 M to 512 M */
				assert_true(times == 1 + 3);
			else
				assert_true(times == 1 + 7);
			drop(&p);
		}
}

/* A shard lies over neighbours; its copies are a shard apart. */
static void hsdp_groups_are_as_far_apart_as_they_are(void **state)
{
	struct parts p;
	const struct ft_group_shape *g;

	(void)state;
	build(&p, "llama3-8b",
	      "{sequence_length: 1024, global_batch_size: 64, parallel: {tp: 2}, "
	      "sharding: hsdp, shard: 4}",
	      "torch-2.11-eager", 64);
	g = p.graph->group;
	assert_int_equal(g[FT_GROUP_SHARD].size, 4);
	assert_int_equal(g[FT_GROUP_SHARD].stride, 2);
	assert_int_equal(g[FT_GROUP_REPLICA].size, 8);
	assert_int_equal(g[FT_GROUP_REPLICA].stride, 8);
	drop(&p);
}

static void groups_of_experts_and_pipelines_lie_as_ranks_do(void **state)
{
	struct parts p;
	const struct ft_group_shape *g;

	(void)state;
	build(&p, "mixtral-8x7b",
	      "{sequence_length: 1024, global_batch_size: 64, "
	      "parallel: {tp: 2, cp: 2, pp: 2, ep: 4, etp: 2}}",
	      "nemo-24", 64);
	g = p.graph->group;
	assert_int_equal(g[FT_GROUP_CP].size, 2);
	assert_int_equal(g[FT_GROUP_CP].stride, 2);
	assert_int_equal(g[FT_GROUP_DP].size,
			 16); /* cp's ranks hold the same weights */
	assert_int_equal(g[FT_GROUP_EP].size, 4);
	assert_int_equal(g[FT_GROUP_EP].stride, 2);
	assert_int_equal(g[FT_GROUP_EDP].size, 4);
	assert_int_equal(g[FT_GROUP_EDP].stride, 8);
	assert_int_equal(g[FT_GROUP_PP].size, 2);
	assert_int_equal(g[FT_GROUP_PP].stride, 32);
	drop(&p);
}

/* A layer is one block to the host, in each direction; recomputation walks it again. */
static void the_host_is_asked_once_a_block(void **state)
{
	static const char *const again[] = { "none", "full" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		char training[200];

		snprintf(
			training, sizeof(training),
			"{sequence_length: 1024, global_batch_size: 24, sharding: fsdp, "
			"recompute: %s}",
			again[i]);
		build(&p, "{name: llama3-8b, num_hidden_layers: 5}", training,
		      "torch-2.11-eager", 8);
		near_frac(host_units(p.graph, FT_HOST_BLOCK_FORWARD), 3 * 5 * (1 + i),
			  1e-12);
		near_frac(host_units(p.graph, FT_HOST_BLOCK_BACKWARD), 3 * 5, 1e-12);
		near_frac(host_units(p.graph, FT_HOST_OPTIMIZER), 1, 1e-12);
		drop(&p);
	}
}

/* Work that moves what a pencil says. */
static void work_counts_its_bytes(void **state)
{
	struct ft_work w = { .kind = FT_GEMM, .dtype = FT_BF16 };

	(void)state;
	w.gemm.m = 100;
	w.gemm.n = 20;
	w.gemm.k = 3;
	w.gemm.groups = 1;
	near_frac(ft_work_flop(&w), 2 * 100 * 20 * 3, 0);
	near_frac(ft_work_bytes(&w), 2 * (100 * 3 + 20 * 3 + 100 * 20), 0);
	w.gemm.groups = 5; /* five matrices of weights, the tokens once */
	near_frac(ft_work_bytes(&w), 2 * (100 * 3 + 5 * 20 * 3 + 100 * 20), 0);
	w.gemm.layout = FT_DGRAD; /* reads m n, writes m k */
	near_frac(ft_work_bytes(&w), 2 * (100 * 20 + 5 * 20 * 3 + 100 * 3), 0);
	w.gemm.layout = FT_WGRAD;
	near_frac(ft_work_bytes(&w), 2 * (100 * 20 + 100 * 3) + 5 * 20 * 3 * 2, 0);
	w.gemm.accumulate = true; /* reads and writes fp32 */
	near_frac(ft_work_bytes(&w), 2 * (100 * 20 + 100 * 3) + 5 * 20 * 3 * 8, 0);
	w = (struct ft_work){ .kind = FT_ATTENTION, .dtype = FT_BF16 };
	w.attention.batch = 2;
	w.attention.heads = 8;
	w.attention.kv_heads = 2;
	w.attention.queries = 64;
	w.attention.keys = 128;
	w.attention.qk_head_dim = 24;
	w.attention.v_head_dim = 16;
	near_frac(ft_work_bytes(&w), 2 * 2 * (64 * 8 + 128 * 2) * (24 + 16), 0);
	near_frac(ft_work_flop(&w), 2 * 2.0 * 8 * 64 * 128 * (24 + 16), 1e-12);
	w.attention.pass = FT_PASS_BACKWARD;
	near_frac(ft_work_bytes(&w), 2.5 * 2 * 2 * (64 * 8 + 128 * 2) * (24 + 16), 0);
	near_frac(ft_work_flop(&w), 2.5 * 2 * 2.0 * 8 * 64 * 128 * (24 + 16), 0.05);
	w = (struct ft_work){ .kind = FT_COMMUNICATION };
	w.communication.bytes = 77;
	near_frac(ft_work_bytes(&w), 77, 0);
	assert_true(ft_work_flop(&w) == 0);
}

/* Each gradient is reduced once a step, however layers fill the buckets. */
static void gradients_are_reduced_once(void **state)
{
	static const char *const shardings[] = { "zero1", "ddp" };
	double all = 0;

	(void)state;
	for (int layers = 3; layers < 16; layers += 4)
		for (int i = 0; i < 2; i++) {
			struct parts p;
			char model[100], training[200];
			double weights, gradients, times;

			snprintf(model, sizeof(model),
				 "{name: gpt-350m, num_hidden_layers: %d}", layers);
			snprintf(training, sizeof(training),
				 "{sequence_length: 1024, global_batch_size: 64, "
				 "sharding: %s, gradient_dtype: fp32}",
				 shardings[i]);
			build(&p, model, training, "nemo-24", 8);
			gradients = bytes_of(p.graph, 0, "gradient_reduce", &times);
			weights = bytes_of(p.graph, 0, "zero_gather", &times);
			if (!i)
				all = 2 * weights;
			/* of a tied head the last norm is left out */
			near_frac(gradients, all, 1e-4);
			drop(&p);
		}
}

#define PREDICTS(tied) \
	"{model_type: llama, hidden_size: 512, num_hidden_layers: 8, " \
	"num_attention_heads: 8, vocab_size: 32000, intermediate_size: 1536, " \
	"num_nextn_predict_layers: 1, tie_word_embeddings: " tied "}"

/* Of each weight of a stage one gradient, wherever tokens are predicted: at the end of a
 * pipeline, which has a copy of the embedding, or of a V, which is back where that lies. */
static void a_stage_reduces_what_it_holds(void **state)
{
	static const char *const schedules[] = {
		"1f1b, parallel: {pp: 4}", "zbv, parallel: {pp: 4, vpp: 2}",
		"dualpipev, parallel: {pp: 4, vpp: 2}"
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts p;
		char training[200];

		snprintf(training, sizeof(training),
			 "{sequence_length: 1024, global_batch_size: 16, sharding: "
			 "zero1, schedule: %s}",
			 schedules[i]);
		build(&p, PREDICTS("false"), training, "torch-2.11-eager", 8);
		for (size_t stage = 0; stage < 4; stage++) {
			const double *base = p.graph->rank_class[stage].base_bytes;
			double times;

			near_frac(bytes_of(p.graph, stage, "gradient_reduce", &times) /
					  4,
				  base[FT_MEMORY_WEIGHTS] / 2, 1e-4);
		}
		drop(&p);
	}
}

/* A tied head is the copy that predicted tokens are looked up in: one table less, of 32,000 x 512
 * weights in 2 bytes. */
static void a_tied_end_that_predicts_has_one_table(void **state)
{
	static const char *const models[] = { PREDICTS("true"), PREDICTS("false") };
	double last[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, models[i],
		      "{sequence_length: 1024, global_batch_size: 16, sharding: zero1, "
		      "parallel: {pp: 2}}",
		      "megatron-core", 4);
		last[i] = p.graph->rank_class[1].base_bytes[FT_MEMORY_WEIGHTS];
		drop(&p);
	}
	near_frac(last[1] - last[0], 2.0 * 32000 * 512, 1e-9);
}

/* Both ends of a pipeline sum what each rank keeps of a tied table's gradient, 32,000 x 512 in
 * 4 bytes: all of it, or its shard among 4 replicas. */
static void tied_ends_sum_what_a_rank_keeps(void **state)
{
	static const struct {
		const char *sharding;
		int shards;
	} rows[] = { { "ddp", 1 }, { "zero1", 1 }, { "zero2", 4 }, { "fsdp", 4 } };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct parts p;
		char training[200];
		double times;

		snprintf(training, sizeof(training),
			 "{sequence_length: 1024, global_batch_size: 16, sharding: %s, "
			 "gradient_dtype: fp32, parallel: {pp: 2}}",
			 rows[i].sharding);
		build(&p, PREDICTS("true"), training, "generic", 8);
		near_frac(bytes_of(p.graph, 1, "tied_embedding", &times),
			  4.0 * 32000 * 512 / rows[i].shards, 1e-9);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_gathers_each_weight_once),
		cmocka_unit_test(hsdp_groups_are_as_far_apart_as_they_are),
		cmocka_unit_test(groups_of_experts_and_pipelines_lie_as_ranks_do),
		cmocka_unit_test(the_host_is_asked_once_a_block),
		cmocka_unit_test(work_counts_its_bytes),
		cmocka_unit_test(gradients_are_reduced_once),
		cmocka_unit_test(a_stage_reduces_what_it_holds),
		cmocka_unit_test(a_tied_end_that_predicts_has_one_table),
		cmocka_unit_test(tied_ends_sum_what_a_rank_keeps),
	};

	return cmocka_run_group_tests_name("traffic", tests, NULL, NULL);
}
