/*
 * tests/test_host_work.c - what a step asks of the host, counted by hand: lists of blocks before gradients are
 * packed, tensors of an update, pieces of a compiled block under DDP, layers in checkpoints; and what a slower host makes of a step
 */
#include <math.h>

#include "tests/works.h"

#define LLAMA "{name: llama3-8b, num_hidden_layers: 2}"
#define GPT "{name: gpt-1.5b, num_hidden_layers: 3, tie_word_embeddings: false}"
#define PLAN(batch) \
	"{sequence_length: 128, micro_batch_size: 1, global_batch_size: " batch ", "

static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double root = 2 * 128256.0 * 4096 + 4096;

static double counted(const char *model, const char *plan, const char *stack, int gpus,
		      enum ft_host activity)
{
	struct parts p;
	double n;

	build(&p, model, plan, stack, gpus);
	n = host_times(p.graph, activity);
	drop(&p);
	return n;
}

/* Under a stack that changes one rule. */
static double counted_by(const char *model, const char *plan, const char *stack,
			 int gpus, enum ft_host activity)
{
	char name[64];
	const char *path = own_path(name, "host_work.yaml");
	FILE *f = fopen(path, "w");
	double n;

	fputs(stack, f);
	fclose(f);
	n = counted(model, plan, path, gpus, activity);
	unlink(path);
	return n;
}

/* FSDP2: two layers and the root, a block for each 2 KiB of a rank's share. */
static void the_host_lists_each_block_of_what_is_packed(void **state)
{
	static const char *const wide =
		PLAN("8") "sharding: fsdp, gradient_dtype: fp32}";
	static const char *const narrow =
		PLAN("8") "sharding: fsdp, gradient_dtype: bf16}";
	const double blocks =
		2 * ceil(4 * layer / 8 / 2048) + ceil(4 * root / 8 / 2048);

	(void)state;
	near_frac(counted(LLAMA, wide, "torch-2.11-eager", 8, FT_HOST_TABLE), blocks,
		  1e-12);
	near_frac(counted(LLAMA, narrow, "torch-2.11-compile", 8, FT_HOST_TABLE),
		  blocks / 2, 1e-3);
	assert_true(counted(LLAMA, wide, "torch-2.11-eager", 8, FT_HOST_TABLE_FRESH) ==
		    0);
}

static void what_packs_nothing_lists_nothing(void **state)
{
	(void)state;
	assert_true(counted(LLAMA, PLAN("8") "sharding: ddp}", "torch-2.11-eager", 8,
			    FT_HOST_TABLE) == 0);
	assert_true(counted(LLAMA, PLAN("8") "sharding: fsdp}", "maxtext-2025", 8,
			    FT_HOST_TABLE) == 0);
	assert_true(
		counted_by(LLAMA, PLAN("8") "sharding: fsdp}",
			   "{extends: torch-2.11-eager, layout: {table_block: 0 B}}", 8,
			   FT_HOST_TABLE) == 0);
}

/* Of one rank the root's list is longer than the layers', so that its memory is new if it is above table_kept (1 GB). Lists of
 * layers follow one another: theirs is new above table_kept_often (4 GiB). */
static void only_a_long_list_has_new_memory(void **state)
{
	static const char *const plan =
		PLAN("1") "sharding: fsdp, gradient_dtype: fp32}";

	(void)state;
	near_frac(counted(LLAMA, plan, "torch-2.11-eager", 1, FT_HOST_TABLE_FRESH),
		  ceil(4 * root / 2048), 1e-12);
	near_frac(counted(LLAMA, plan, "torch-2.11-eager", 1, FT_HOST_TABLE),
		  2 * ceil(4 * layer / 2048) + ceil(4 * root / 2048), 1e-12);
	near_frac(
		counted_by(
			LLAMA, plan,
			"{extends: torch-2.11-eager, layout: {table_kept_often: 0.8 GB}}",
			1, FT_HOST_TABLE_FRESH),
		2 * ceil(4 * layer / 2048) + ceil(4 * root / 2048), 1e-12);
	assert_true(
		counted_by(LLAMA, plan,
			   "{extends: torch-2.11-eager, layout: {table_kept: 5 GB}}", 1,
			   FT_HOST_TABLE_FRESH) == 0);
	assert_true(
		counted("{name: llama3-8b, num_hidden_layers: 2, vocab_size: 32000}",
			plan, "torch-2.11-eager", 1,
			FT_HOST_TABLE_FRESH) == 0); /* 1.05 GB, 1.2 layers */
}

/* With full gradients each micro-batch packs, with `sync_each_micro_batch: false` the last. */
static void each_reduction_lists_anew(void **state)
{
	static const char *const plan =
		PLAN("24") "sharding: fsdp, gradient_dtype: fp32}";
	static const char *const late =
		PLAN("24") "sharding: fsdp, gradient_dtype: "
			   "fp32, sync_each_micro_batch: false}";
	const double blocks =
		2 * ceil(4 * layer / 8 / 2048) + ceil(4 * root / 8 / 2048);

	(void)state;
	near_frac(counted(LLAMA, plan, "torch-2.11-eager", 8, FT_HOST_TABLE),
		  3 * blocks, 1e-12);
	near_frac(counted(LLAMA, late, "torch-2.11-eager", 8, FT_HOST_TABLE), blocks,
		  1e-12);
}

/* Nine tensors a layer, embedding, head and norm; DTensors under FSDP alone. */
static void an_update_counts_its_tensors(void **state)
{
	static const char *const plain = PLAN("24") "sharding: ddp}";
	static const char *const wrapped = PLAN("24") "sharding: fsdp}";

	(void)state;
	assert_true(counted(LLAMA, plain, "torch-2.11-eager", 8,
			    FT_HOST_OPTIMIZER_TENSOR) == 21);
	assert_true(counted(LLAMA, plain, "torch-2.11-eager", 8,
			    FT_HOST_SHARD_TENSOR) == 0);
	assert_true(counted(LLAMA, wrapped, "torch-2.11-eager", 8,
			    FT_HOST_OPTIMIZER_TENSOR) == 21);
	assert_true(counted(LLAMA, wrapped, "torch-2.11-eager", 8,
			    FT_HOST_SHARD_TENSOR) == 21);
}

/* GPT has 16 a layer (six products and two norms, each with its bias), words, learned positions, a norm
 * with its bias and a head; a recording of 48 layers has 16 x 48 + 5. A head that is the embedding is
 * none of its own, and behind adapters all but those stays as it is: two for each of two targets. */
static void an_update_counts_what_is_trained(void **state)
{
	static const char *const plain = PLAN("24") "sharding: ddp}";
	static const char *const adapters =
		PLAN("24") "sharding: fsdp, lora: {rank: 16}}";

	(void)state;
	assert_true(counted(GPT, plain, "torch-2.11-eager", 8,
			    FT_HOST_OPTIMIZER_TENSOR) == 3 * 16 + 5);
	assert_true(counted("{name: gpt-1.5b, num_hidden_layers: 3}", plain,
			    "torch-2.11-eager", 8,
			    FT_HOST_OPTIMIZER_TENSOR) == 3 * 16 + 4);
	assert_true(counted(LLAMA, adapters, "torch-2.11-eager", 8,
			    FT_HOST_OPTIMIZER_TENSOR) == 2 * 2 * 2);
	assert_true(counted(LLAMA, adapters, "torch-2.11-eager", 8,
			    FT_HOST_SHARD_TENSOR) == 2 * 2 * 2);
}

/* Of a layer: Qwen3's four of attention, two norms on q and k, a router and three of experts, two norms; Mixtral's
 * without norms on q and k; DeepSeek-V3's first three q_a, q_b, kv_a, kv_b, o, two norms of latents, three of the MLP and
 * two norms; OLMo 2's two norms on q and k; Qwen2.5's three biases; Laguna's and Step's gate of attention's output, and of
 * Laguna's second layer a router, its bias, three of experts and three of the shared one; A.X-K1's norm behind them. */
static void a_layer_of_each_family_has_its_tensors(void **state)
{
	static const char *const plain = PLAN("24") "sharding: ddp}";
	static const struct {
		const char *model;
		int of_layers, ends;
	} cases[] = {
		{ "{name: qwen3-30b-a3b, num_hidden_layers: 2}", 2 * 12, 3 },
		{ "{name: mixtral-8x7b, num_hidden_layers: 2}", 2 * 10, 3 },
		{ "{name: deepseek-v3, num_hidden_layers: 3, num_nextn_predict_layers: 0}",
		  3 * 12, 3 },
		{ "{name: olmo2-7b, num_hidden_layers: 2}", 2 * 11, 3 },
		{ "{name: qwen2.5-7b, num_hidden_layers: 2}", 2 * 12, 3 },
		{ "{name: laguna-xs.2, num_hidden_layers: 2}", 12 + 17, 3 },
		{ "{name: step-3.5-flash, num_hidden_layers: 2}", 2 * 12, 3 },
		{ "{name: a.x-k1, num_hidden_layers: 2}", 12 + 18, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal((int)counted(cases[i].model, plain, "torch-2.11-eager",
					      8, FT_HOST_OPTIMIZER_TENSOR),
				 cases[i].of_layers + cases[i].ends);
}

/* Of the last micro-batch: DDP's, which wraps no stage of a pipeline. */
static void gradients_have_hooks_where_ddp_wraps_the_model(void **state)
{
	static const char *const whole = PLAN("24") "sharding: ddp}";
	static const char *const stages =
		PLAN("24") "sharding: ddp, parallel: {pp: 2}}";

	(void)state;
	assert_true(counted(LLAMA, whole, "torch-2.11-eager", 8,
			    FT_HOST_GRADIENT_HOOK) == 2 * 9);
	assert_true(counted(LLAMA, stages, "torch-2.11-eager", 8,
			    FT_HOST_GRADIENT_HOOK) == 0);
}

/*
 * GPT of 1.5B: down 41 MB, up 41, out and v and k 31, q 10 in fp32, of a bucket of 26 MB: four pieces a layer, so three cuts,
 * as a recording has them. Of Llama's 235, 235, 235, 67, 67, 17 and 17 the last two share a bucket.
 */
static void a_compiled_block_is_cut_where_a_bucket_is_full(void **state)
{
	static const char *const plan = PLAN("16") "sharding: ddp}";
	static const char *const sharded = PLAN("16") "sharding: fsdp}";
	static const char *const stages =
		PLAN("16") "sharding: ddp, parallel: {pp: 2}}";

	(void)state;
	assert_true(counted(GPT, plan, "torch-2.11-compile", 8, FT_HOST_PIECE) ==
		    2 * 3 * 3);
	assert_true(counted(LLAMA, plan, "torch-2.11-compile", 8, FT_HOST_PIECE) ==
		    2 * 2 * 5);
	assert_true(counted(GPT, plan, "torch-2.11-eager", 8, FT_HOST_PIECE) == 0);
	assert_true(counted(GPT, stages, "torch-2.11-compile", 8, FT_HOST_PIECE) == 0);
	assert_true(counted(GPT, sharded, "torch-2.11-compile", 8, FT_HOST_PIECE) == 0);
	assert_true(counted_by(GPT, plan,
			       "{extends: torch-2.11-compile, layout: {bucket: 1 GB}}",
			       8, FT_HOST_PIECE) == 0);
}

/* Once a layer and micro-batch, in each pass; weights are cast again under autocast. */
static void a_layer_in_a_checkpoint_costs_the_host_more(void **state)
{
	static const enum ft_host of[2][2] = {
		{ FT_HOST_CHECKPOINT_FORWARD, FT_HOST_CHECKPOINT_BACKWARD },
		{ FT_HOST_SELECTIVE_FORWARD, FT_HOST_SELECTIVE_BACKWARD },
	};
	static const char *const plans[] = {
		PLAN("16") "sharding: ddp, recompute: full}",
		PLAN("16") "sharding: ddp, recompute: selective}",
		PLAN("16") "sharding: ddp}",
		PLAN("16") "sharding: ddp, recompute: full, recompute_layers: 1}",
		PLAN("16") "sharding: ddp, recompute: selective, "
			   "recompute_modules: mlp}",
	};
	static const double layers[][2] = {
		{ 3, 0 }, { 0, 3 }, { 0, 0 }, { 1, 0 }, { 0, 0 }
	};

	(void)state;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 2; k++)
			for (int pass = 0; pass < 2; pass++)
				assert_true(counted(GPT, plans[i], "torch-2.11-eager",
						    8,
						    of[k][pass]) == 2 * layers[i][k]);
	for (int i = 0; i < 5; i++) {
		struct parts p;

		build(&p, GPT, plans[i], "torch-2.11-eager", 8);
		near_frac(1 + sum_in(p.graph, "backward", "weight_cast").bytes,
			  1 + sum_in(p.graph, "forward", "weight_cast").bytes *
					  layers[i][0] / 3,
			  1e-12);
		drop(&p);
	}
}

/* Each micro-batch casts the gradients of products to fp32, and adds them up there; a table's weights and gradients are
 * fp32 already. */
static void autocast_casts_all_but_the_table(void **state)
{
	struct parts p;
	const struct ft_model *m;
	double all, table;

	(void)state;
	build(&p, GPT, PLAN("16") "sharding: ddp}", "torch-2.11-eager", 8);
	m = p.model;
	all = ft_model_parameters(m);
	table = (double)(m->hidden_size * (ft_model_vocab(m, 1) + m->max_positions));
	near_frac(sum_in(p.graph, NULL, "weight_cast").bytes, 2 * 6 * (all - table),
		  1e-9);
	near_frac(sum_in(p.graph, NULL, "gradient_cast").bytes, 2 * 6 * (all - table),
		  1e-9);
	near_frac(sum_in(p.graph, NULL, "accumulate").bytes, 12 * all, 1e-9);
	drop(&p);
	/* one that is tied gets the head's gradient, too: a sum more in each micro-batch */
	build(&p, "{name: gpt-1.5b, num_hidden_layers: 3, tie_word_embeddings: true}",
	      PLAN("16") "sharding: ddp}", "torch-2.11-eager", 8);
	m = p.model;
	near_frac(sum_in(p.graph, NULL, "accumulate").bytes,
		  12 * (ft_model_parameters(m) + table +
			(double)(m->hidden_size * ft_model_vocab(m, 1))),
		  1e-9);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_lists_each_block_of_what_is_packed),
		cmocka_unit_test(what_packs_nothing_lists_nothing),
		cmocka_unit_test(only_a_long_list_has_new_memory),
		cmocka_unit_test(each_reduction_lists_anew),
		cmocka_unit_test(an_update_counts_its_tensors),
		cmocka_unit_test(an_update_counts_what_is_trained),
		cmocka_unit_test(a_layer_of_each_family_has_its_tensors),
		cmocka_unit_test(gradients_have_hooks_where_ddp_wraps_the_model),
		cmocka_unit_test(a_compiled_block_is_cut_where_a_bucket_is_full),
		cmocka_unit_test(a_layer_in_a_checkpoint_costs_the_host_more),
		cmocka_unit_test(autocast_casts_all_but_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
