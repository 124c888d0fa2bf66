/* tests/test_casts.c - formats of 8 and 4 bit beside their products: bytes of casts, of what travels */
#include <math.h>

#include "tests/works.h"

#define SMALL \
	"{model_type: llama, hidden_size: 512, num_hidden_layers: 3, " \
	"num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1024, " \
	"intermediate_size: 1536}"

enum { S = 1024, H = 512, F = 1536, Q = 512, KV = 2 * 256, LAYERS = 3, PASSES = 2 };

/* Bytes an element, read and written, from the recipes' definitions: 2 to find the largest
 * value, 2 to read again, the formats written along rows and columns, and their scales. */
static const struct {
	const char *precision, *recipe;
	double all, rows; /* of both directions; of rows alone, for frozen weights */
	double gathered, both; /* of what travels under tp, of a gradient */
	bool norm_casts;       /* the norm before does not write the format itself */
} recipes[] = {
	{ "fp8", "delayed", 2 + 1 + 1, 2 + 1, 1, 1, false },
	{ "fp8", "tensorwise", 2 + 2 + 1 + 1, 2 + 2 + 1, 1, 1, true },
	{ "fp8", "blockwise", 2 + 2 * (1 + 4. / 128), 2 + 1 + 4. / 128, 1 + 4. / 128,
	  2 * (1 + 4. / 128), true },
	{ "fp8-block128", "blockwise", 2 + 2 * (1 + 4. / 128), 2 + 1 + 4. / 128,
	  1 + 4. / 128, 2 * (1 + 4. / 128), true },
	{ "mxfp8", "mxfp8", 2 + 2 * (1 + 1. / 32), 2 + 1 + 1. / 32, 1 + 1. / 32,
	  2 * (1 + 1. / 32), true },
	{ "mxfp4", "mxfp8", 2 + 2 * (.5 + 1. / 32), 2 + .5 + 1. / 32, .5 + 1. / 32,
	  2 * (.5 + 1. / 32), true },
	{ "nvfp4", "nvfp4", 2 + 2 + .5 + 2 + .5 + 2. / 16, 2 + 2 + .5 + 1. / 16,
	  .5 + 1. / 16, 2 * (.5 + 1. / 16), true },
	{ "bf16", NULL, 0, 0, 2, 2, false },
};

enum { RECIPES = sizeof(recipes) / sizeof(*recipes) };

static void build_recipe(struct parts *p, int i, const char *more, const char *stack)
{
	char plan[400];

	snprintf(plan, sizeof(plan),
		 "{sequence_length: %d, global_batch_size: 16, sharding: ddp, "
		 "precision: %s%s%s%s}",
		 S, recipes[i].precision, recipes[i].recipe ? ", fp8_recipe: " : "",
		 recipes[i].recipe ? recipes[i].recipe : "", more);
	build(p, SMALL, plan, stack, 8);
}

/* Elements that are cast in a layer: forward what goes into the output projection and
 * into the second product; backward the gradients of all four products' outputs. */
static const double elements = (double)S * ((Q + F) + (H + 2 * F + H + Q + KV));
static const double norm_elements = (double)S * 2 * H;

static void casts_read_and_write_what_the_recipe_says(void **state)
{
	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		double n = elements + (recipes[i].norm_casts ? norm_elements : 0);
		bool delayed =
			recipes[i].recipe && !strcmp(recipes[i].recipe, "delayed");
		struct parts p;

		build_recipe(&p, i, "", "megatron-core");
		near_frac(sum_of(p.graph, "cast_fp8").bytes,
			  PASSES * LAYERS * n * recipes[i].all, 1e-12);
		/* what the norms wrote along rows is wanted along columns as well */
		near_frac(sum_of(p.graph, "transpose_fp8").bytes,
			  delayed ? PASSES * LAYERS * 2 * norm_elements : 0, 1e-12);
		drop(&p);
	}
}

/* A frozen weight has no gradient, so nothing is wanted along columns. */
static void frozen_weights_want_rows_alone(void **state)
{
	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		double n = elements + (recipes[i].norm_casts ? norm_elements : 0);
		struct parts p;

		build_recipe(&p, i, ", lora: {rank: 8}", "megatron-core");
		near_frac(sum_of(p.graph, "cast_fp8").bytes,
			  PASSES * LAYERS * n * recipes[i].rows, 1e-12);
		assert_true(sum_of(p.graph, "transpose_fp8").n == 0);
		drop(&p);
	}
}

static bool has_one_scale(int i)
{
	return recipes[i].recipe && (!strcmp(recipes[i].recipe, "delayed") ||
				     !strcmp(recipes[i].recipe, "tensorwise"));
}

/* A GPU whose products take any layout wants no copy along columns of what has one scale:
 * neither casts nor norms' outputs are turned, and one narrow copy of a weight is kept. */
static void nothing_is_turned_where_products_take_any_layout(void **state)
{
	/* embedding, head and the last norm, which have no narrow copies */
	const double ends = (2. * 1024 + 1) * H;

	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		double n = elements + (recipes[i].norm_casts ? norm_elements : 0);
		double weights, with;
		struct parts p;

		build_recipe(&p, i, "", "megatron-core");
		weights = p.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS];
		p.plan->any_layout = true;
		rebuild(&p);
		with = has_one_scale(i) ? recipes[i].rows : recipes[i].all;
		near_frac(sum_of(p.graph, "cast_fp8").bytes, PASSES * LAYERS * n * with,
			  1e-12);
		assert_true(sum_of(p.graph, "transpose_fp8").n == 0);
		near_frac(weights -
				  p.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS],
			  has_one_scale(i) ? ft_model_parameters(p.model) - ends : 0,
			  1e-9);
		drop(&p);
	}
}

/* Under sequence parallelism slices are cast, and gathered narrow: two inputs and two
 * gradients a layer are cast by halves. What has one scale is turned when it is whole, all
 * four; a scale that is found first is agreed on before each of the four casts. */
static void slices_are_cast_before_they_are_gathered(void **state)
{
	const double whole = (double)S * ((Q + F) / 2. + (2 * F + Q + KV) / 2.);
	const double slices = (double)S * 4 * H / 2;

	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		bool one = has_one_scale(i), delayed = one && !recipes[i].norm_casts;
		bool found_first = recipes[i].norm_casts &&
				   (one || !strcmp(recipes[i].recipe, "nvfp4"));
		double cast_slices = delayed ? slices / 2 : slices;
		const double passes = 2 * PASSES * LAYERS; /* dp 4 */
		struct parts p;

		build_recipe(&p, i, ", parallel: {tp: 2}", "megatron-core");
		near_frac(sum_of(p.graph, "cast_fp8").bytes,
			  passes * (whole * recipes[i].all +
				    cast_slices *
					    (one ? recipes[i].rows : recipes[i].all)),
			  1e-12);
		near_frac(sum_of(p.graph, "transpose_fp8").bytes,
			  one ? passes * 2 * (double)S * 4 * H : 0, 1e-12);
		near_frac(sum_of(p.graph, "tp_amax").bytes,
			  found_first ? passes * 4 * 4 : 0, 1e-12);
		drop(&p);
	}
}

/* Forward two products take gathered inputs; backward two gradients are gathered, and the
 * two inputs once more. DTensor gathers in 16 bit, and keeps the inputs. */
static void what_travels_under_tp_has_the_format_of_the_product(void **state)
{
	const double slice = PASSES * 2 * LAYERS * (double)(S * H); /* dp 4: 4 passes */

	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		struct parts p;

		build_recipe(&p, i, ", parallel: {tp: 2}", "megatron-core");
		near_frac(sum_in(p.graph, "forward", "tp_all_gather").bytes,
			  2 * slice * recipes[i].gathered, 1e-12);
		near_frac(sum_in(p.graph, "backward", "tp_all_gather").bytes,
			  2 * slice * (recipes[i].gathered + recipes[i].both), 1e-12);
		drop(&p);
		build_recipe(&p, i, ", parallel: {tp: 2}", "torch-2.11-compile");
		near_frac(sum_in(p.graph, "forward", "tp_all_gather").bytes,
			  2 * slice * 2, 1e-12);
		near_frac(sum_in(p.graph, "backward", "tp_all_gather").bytes,
			  2 * slice * 2, 1e-12);
		drop(&p);
	}
}

/* Weights are gathered in a byte where one scale serves a whole tensor and the stack
 * keeps them so. */
static void weights_are_gathered_in_a_byte_if_one_scale_serves(void **state)
{
	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		bool one = !strcmp(recipes[i].precision, "fp8") &&
			   strcmp(recipes[i].recipe, "blockwise") != 0;
		struct parts p;
		double n;

		build_recipe(&p, i, "", "megatron-core");
		n = ft_model_parameters(p.model);
		p.plan->sharding = FT_ZERO1;
		p.plan->shard = p.plan->zero_group = 8;
		for (int narrow = 0; narrow < 2; narrow++) {
			p.stack->layout.narrow_parameters = narrow;
			rebuild(&p);
			near_frac(sum_of(p.graph, "zero_gather").bytes,
				  n * (narrow && one ? 1 : 2), 1e-9);
		}
		drop(&p);
	}
}

/* Of fsdp, whose weights are gone when their layer is done: cast in each pass, rows forward and
 * columns backward; by Transformer Engine both forward. Where they are gathered in a byte their
 * owner casts them, once. */
static void gathered_weights_are_cast_by_each_pass(void **state)
{
	static const char *const stacks[] = { "torch-2.11-compile", "megatron-core" };
	const double n = 2. * H * Q + (double)H * KV + 3. * H * F + 2 * H;

	(void)state;
	for (int i = 0; i < RECIPES; i++)
		for (int te = 0; te < 2; te++) {
			bool narrow = recipes[i].recipe != NULL;
			struct parts p;

			build_recipe(&p, i, ", recompute: none", stacks[te]);
			assert_true(sum_of(p.graph, "weight_cast_fp8").n == 0);
			p.plan->sharding = FT_FSDP;
			p.plan->shard = 8;
			rebuild(&p);
			near_frac(sum_in(p.graph, "forward", "weight_cast_fp8").bytes,
				  PASSES * LAYERS * n *
					  (te ? recipes[i].all : recipes[i].rows),
				  1e-9);
			near_frac(1 + sum_in(p.graph, "backward", "weight_cast_fp8")
						  .bytes,
				  1 + PASSES * LAYERS * n * (te ? 0 : recipes[i].rows),
				  1e-9);
			assert_true(sum_of(p.graph, "cast_weights").n == 0);
			p.stack->layout.narrow_parameters = true;
			rebuild(&p);
			assert_true((sum_of(p.graph, "cast_weights").n > 0) ==
				    (narrow && recipes[i].gathered == 1));
			drop(&p);
		}
}

/* Recipe blockwise of precision fp8 and format fp8-block128 are one thing. */
static void blockwise_is_the_format_of_blocks(void **state)
{
	struct parts p;

	(void)state;
	build_recipe(&p, 2, "", "megatron-core");
	assert_true(p.plan->precision == FT_FP8_BLOCK128 &&
		    p.plan->expert_precision == FT_FP8_BLOCK128 &&
		    p.plan->scaling == FT_SCALING_BLOCKWISE);
	assert_true(work_of(p.graph, "down")->dtype == FT_FP8_BLOCK128);
	drop(&p);
}

/* So are frozen weights that are said to be in fp8: nothing unpacks them. */
static void frozen_weights_of_blocks_are_not_unpacked(void **state)
{
	static const char *const more[] = {
		", lora: {rank: 8}", ", lora: {rank: 8, frozen_precision: fp8}"
	};

	(void)state;
	for (int written = 1; written < 4;
	     written++) /* all in one scale, or as blocks */
		for (int i = 0; i < 2; i++) {
			bool other = i && !strcmp(recipes[written].precision,
						  "fp8-block128");
			struct parts p;

			build_recipe(&p, written, more[i], "megatron-core");
			assert_true((p.plan->lora.frozen != p.plan->precision) ==
				    other);
			assert_true((sum_of(p.graph, "unpack_weights").n > 0) == other);
			drop(&p);
		}
}

#define LATENT \
	"{model_type: deepseek_v3, hidden_size: 512, num_hidden_layers: 3, " \
	"num_attention_heads: 8, vocab_size: 1024, intermediate_size: 1536, " \
	"q_lora_rank: 128, kv_lora_rank: 64, qk_rope_head_dim: 32, " \
	"qk_nope_head_dim: 64, v_head_dim: 64, first_k_dense_replace: 3, " \
	"n_routed_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 64, " \
	"num_nextn_predict_layers: 0}"

/* Inputs that norms wrote, or that came in slices, are turned once each: in front of the latents,
 * behind these, in front of the MLP. */
static void inputs_of_latents_are_turned_in_front_and_behind(void **state)
{
	(void)state;
	for (int tp = 1; tp <= 2; tp++) {
		double latents = 128 + 64 + 32;
		double row = H / (double)tp + latents + H,
		       gathered = tp > 1 ? H + H : 0;
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan),
			 "{sequence_length: %d, global_batch_size: 16, sharding: ddp, "
			 "precision: fp8, fp8_recipe: delayed, parallel: {tp: %d}}",
			 S, tp);
		build(&p, LATENT, plan, "megatron-core", 8);
		near_frac(sum_of(p.graph, "transpose_fp8").bytes,
			  tp * PASSES * LAYERS * 2 * S * (row + gathered), 1e-12);
		drop(&p);
	}
}

/* What a layer leaves for its backward. */
/* Two copies of a weight beside 16 bit, and the inputs of products, as long as the format says,
 * with its scales; those of weights in blocks of 128 x 128 are too few to count. */
static void copies_are_kept_in_the_width_of_the_format(void **state)
{
	const double ends = (2. * 1024 + 1) * H;

	(void)state;
	for (int i = 0; i < RECIPES; i++) {
		const char *recipe = recipes[i].recipe;
		double w = recipes[i].gathered, copies, bf16, n;
		bool blocks = recipe && !strcmp(recipe, "blockwise");
		struct parts p;

		if (!recipe)
			continue;
		build_recipe(&p, RECIPES - 1, "", "megatron-core");
		bf16 = kept_by_layer(p.graph);
		drop(&p);
		build_recipe(&p, i, "", "megatron-core");
		n = ft_model_parameters(p.model);
		copies = 2 * (blocks ? 1 : w);
		near_frac(p.graph->rank_class[0].base_bytes[FT_MEMORY_WEIGHTS],
			  2 * n + copies * (n - ends), 1e-12);
		near_frac(bf16 - kept_by_layer(p.graph),
			  (double)S * ((2 - w) * (2 * H + F) - w * Q), 1e-12);
		drop(&p);
	}
}

static void recipes_that_do_not_fit_a_format_are_refused(void **state)
{
	static const struct {
		const char *training, *says;
	} wrong[] = {
		{ "precision: mxfp8, fp8_recipe: delayed", "not scaled by recipe" },
		{ "precision: fp8, fp8_recipe: nvfp4", "not scaled by recipe" },
		{ "precision: nvfp4, fp8_recipe: tensorwise", "not scaled by recipe" },
		{ "fp8_recipe: per-row", "per-row" },
		{ "recompute_modules: [core_attn, attn]", "'attn' is not one of" },
		{ "recompute_modules: 'act,mlpup'", "'mlpup' is not one of" },
		{ "recompute_modules: [[act]]", "a list of names" },
		{ "recompute_modules: [act, moe]", "the model has no experts" },
		{ "recompute_modules: mla_up_proj", "no latent attention" },
		{ "recompute_modules: [op, norm]", "op is a choice of its own" },
		{ "recompute_modules: 'core_attn,op'", "op is a choice of its own" },
		{ "moe_capacity_factor: 17", "between 0 (dropless) and 16" },
		{ "offload_layers: 4", "more than the model's 3 layers" },
		{ "zero_group: 3", "does not divide the 8 ranks" },
		{ "cuda_graphs: whole", "whole" },
		{ "optimizer: lion", "lion" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_plan_context context = { .ranks = 8, .ranks_per_node = 8 };
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *m = node_read_text(&mem, "m", SMALL, strlen(SMALL), &err);
		struct ft_model *model = ft_model_load(m, &err);
		struct node *t;
		char text[300];

		ok_or_say(model, err);
		snprintf(text, sizeof(text),
			 "{sequence_length: 1024, global_batch_size: 8,\n%s}",
			 wrong[i].training);
		t = node_read_text(&mem, "t", text, strlen(text), &err);
		ok_or_say(t, err);
		assert_null(ft_plan_load(t, model, &context, &err));
		if (!strstr(err.text, wrong[i].says) || err.line != 2)
			fail_msg("%s: %d: %s", wrong[i].training, err.line, err.text);
		ft_model_free(model);
		arena_release(&mem);
	}
}

/* A token's copy for the one expert that it goes to is as wide as the token: one cast for all
 * tokens, or one for each of the rank's 16 experts. They are not as long. */
static const char routed[] =
	"{model_type: mixtral, hidden_size: 512, num_hidden_layers: 2, "
	"num_attention_heads: 8, vocab_size: 1024, intermediate_size: 1536, "
	"num_local_experts: 16, num_experts_per_tok: 1}";

static void as_many_bytes_in_more_kernels_are_another_work(void **state)
{
	int launches[64] = { 0 }, seen[2] = { 0 };
	struct parts p;

	(void)state;
	build(&p, routed,
	      "{sequence_length: 1024, global_batch_size: 16, precision: mxfp8}",
	      "megatron-core", 8);
	assert_true(p.graph->n_works <= 64);
	for (size_t i = 0; i < p.graph->n_segments; i++)
		for (size_t j = 0; j < p.graph->segment[i].n_ops; j++) {
			const struct ft_op *op = &p.graph->segment[i].op[j];
			const struct ft_work *w = &p.graph->work[op->work];

			if (w->kind != FT_MEMORY_BOUND)
				continue;
			assert_true(!launches[op->work] ||
				    launches[op->work] == op->launches);
			launches[op->work] = op->launches;
			if (!strcmp(w->name, "cast_fp8") &&
			    fabs(w->memory.bytes - S * H * recipes[4].all) < 1)
				seen[op->launches == 16]++;
		}
	assert_true(seen[0] > 0 && seen[1] > 0);
	drop(&p);
}

/* The most kernels that one cast takes. */
static int kernels_of_casts(const char *stack, const char *more)
{
	char plan[200];
	struct parts p;
	int most = 0;

	snprintf(plan, sizeof(plan),
		 "{sequence_length: 1024, global_batch_size: 16, precision: fp8%s}",
		 more);
	build(&p, routed, plan, stack, 8);
	for (size_t i = 0; i < p.graph->n_segments; i++)
		for (size_t j = 0; j < p.graph->segment[i].n_ops; j++) {
			const struct ft_op *op = &p.graph->segment[i].op[j];

			if (!strcmp(p.graph->work[op->work].name, "cast_fp8") &&
			    op->launches > most)
				most = op->launches;
		}
	drop(&p);
	return most;
}

/* By torchao all at once, as grouped products are; by Transformer Engine one by one. */
static void experts_are_cast_as_their_library_does(void **state)
{
	(void)state;
	assert_int_equal(kernels_of_casts("torchtitan-2026-eager", ""), 1);
	assert_int_equal(
		kernels_of_casts("torchtitan-2026-eager", ", grouped_experts: false"),
		16);
	assert_int_equal(kernels_of_casts("nemo-automodel-2026", ""), 16);
	assert_int_equal(kernels_of_casts("megatron-core", ""), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(casts_read_and_write_what_the_recipe_says),
		cmocka_unit_test(frozen_weights_want_rows_alone),
		cmocka_unit_test(nothing_is_turned_where_products_take_any_layout),
		cmocka_unit_test(slices_are_cast_before_they_are_gathered),
		cmocka_unit_test(what_travels_under_tp_has_the_format_of_the_product),
		cmocka_unit_test(weights_are_gathered_in_a_byte_if_one_scale_serves),
		cmocka_unit_test(gathered_weights_are_cast_by_each_pass),
		cmocka_unit_test(blockwise_is_the_format_of_blocks),
		cmocka_unit_test(frozen_weights_of_blocks_are_not_unpacked),
		cmocka_unit_test(inputs_of_latents_are_turned_in_front_and_behind),
		cmocka_unit_test(copies_are_kept_in_the_width_of_the_format),
		cmocka_unit_test(recipes_that_do_not_fit_a_format_are_refused),
		cmocka_unit_test(as_many_bytes_in_more_kernels_are_another_work),
		cmocka_unit_test(experts_are_cast_as_their_library_does),
	};

	return cmocka_run_group_tests_name("traces/casts", tests, NULL, NULL);
}
