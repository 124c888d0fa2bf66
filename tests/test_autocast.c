/*
 * tests/test_autocast.c - one GPU as a script or Transformers' Trainer runs it: no wrapper, autocast over weights of
 * either format, dropout of a model's config, adapters in fp32, and a model that is compiled as a whole
 */
#include "tests/counted.h"

#define TRAINER "transformers-5-trainer"
#define LOOP "transformers-5-eager"
#define COMPILED "transformers-5-trainer-compile"
#define GPT(more) \
	"{model_type: gpt2, n_embd: 512, n_layer: 4, n_head: 8, n_positions: 1024, vocab_size: 1000" more \
	"}"
#define OPT \
	"{model_type: opt, hidden_size: 512, ffn_dim: 2048, num_hidden_layers: 4, num_attention_heads: 8, " \
	"max_position_embeddings: 2048, vocab_size: 1000}"
#define LLAMA \
	"{model_type: llama, hidden_size: 512, intermediate_size: 1536, num_hidden_layers: 4, num_attention_heads: 8, " \
	"num_key_value_heads: 4, vocab_size: 1000}"
#define ALONE(more) \
	"{sequence_length: 1024, global_batch_size: 2, micro_batch_size: 2, recompute: none, sharding: none" more \
	"}"
#define AGAIN(how) \
	"{sequence_length: 1024, global_batch_size: 2, micro_batch_size: 2, sharding: none, recompute: " how \
		NARROW "}"
#define NARROW ", master_weights: false, gradient_dtype: bf16"

enum { LAYERS = 4, H = 512, F = 2048, HEADS = 8, SEQUENCE = 1024, TOKENS = 2048 };

static double kept(const struct ft_graph *g)
{
	return kept_by_layer(g) / TOKENS;
}

struct kept_by {
	const char *model, *plan, *stack;
};

/* Bytes a token that a layer keeps more. */
static double more_kept(struct kept_by one, struct kept_by other)
{
	struct parts a, b;
	double more;

	build(&a, one.model, one.plan, one.stack, 1);
	build(&b, other.model, other.plan, other.stack, 1);
	more = kept(a.graph) - kept(b.graph);
	drop(&a);
	drop(&b);
	return more;
}

/* PyTorch's DDP holds gradients in its buckets; without it they come with the backward pass. */
static void one_rank_has_no_wrapper(void **state)
{
	static const char *const how[] = { "none", "ddp" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		char plan[160];
		struct parts p;
		double n;

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 1024, global_batch_size: 2, recompute: none, sharding: %s}",
			how[i]);
		build(&p, LLAMA, plan, "torch-2.11-eager", 1);
		n = ft_model_parameters(p.model);
		near_frac(1 + p.graph->rank_class[0].base_bytes[FT_MEMORY_GRADIENTS],
			  1 + i * 4 * n, 1e-12);
		near_frac(1 + p.graph->rank_class[0].base_bytes[FT_MEMORY_OTHER],
			  1 + i * 8 * n, 1e-12);
		drop(&p);
	}
}

static void none_is_of_one_rank(void **state)
{
	static const struct {
		int ranks;
		const char *parallel;
		bool legal;
	} kinds[] = { { 1, "", true },
		      { 2, "", false },
		      { 2, ", parallel: {tp: 2}", true },
		      { 4, ", parallel: {tp: 2}", false },
		      { 2, ", parallel: {cp: 2}", false },
		      { 2, ", parallel: {pp: 2}", true } };
	struct ft_model *model = model_from(LLAMA);

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct ft_plan_context context = { .ranks = kinds[i].ranks,
						   .ranks_per_node = 8 };
		struct ft_error err = { 0 };
		struct arena mem = { 0 };
		char text[200];
		struct ft_plan *plan;

		snprintf(
			text, sizeof(text),
			"{sequence_length: 1024, global_batch_size: 8, sharding: none%s}",
			kinds[i].parallel);
		plan = ft_plan_load(node_read_text(&mem, "p", text, strlen(text), &err),
				    model, &context, &err);
		assert_true(!!plan == kinds[i].legal);
		if (!plan)
			assert_non_null(strstr(err.text, "have to be summed"));
		ft_plan_free(plan);
		arena_release(&mem);
	}
	ft_model_free(model);
}

/* Where a framework wraps nothing that is alone, ddp of one replica is none. */
static void ddp_of_one_may_be_none(void **state)
{
	static const char training[] =
		"{sequence_length: 1024, global_batch_size: 8, sharding: ddp}";
	struct ft_model *model = model_from(LLAMA);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ft_plan_context context = { .ranks = 1 + i % 2,
						   .ranks_per_node = 8,
						   .unwrapped_alone = i / 2 };
		struct ft_error err = { 0 };
		struct arena mem = { 0 };
		struct ft_plan *plan = ft_plan_load(
			node_read_text(&mem, "p", training, strlen(training), &err),
			model, &context, &err);

		assert_non_null(plan);
		assert_int_equal(plan->sharding, i == 2 ? FT_ALONE : FT_DDP);
		ft_plan_free(plan);
		arena_release(&mem);
	}
	ft_model_free(model);
}

/* Copies of weights in 16 bit come with a layer's forward pass and go with its backward. */
static void copies_go_with_the_backward_pass(void **state)
{
	struct parts p;
	double layer;

	(void)state;
	build(&p, LLAMA, ALONE(""), TRAINER, 1);
	layer = 4. * H * H - 2. * H * H / 2 + 3. * H * 1536 + 2 * H;
	near_frac(segment_of(p.graph, "forward")->net_bytes[FT_MEMORY_OTHER], 2 * layer,
		  1e-12);
	near_frac(segment_of(p.graph, "backward")->net_bytes[FT_MEMORY_OTHER],
		  -2 * layer, 1e-12);
	drop(&p);
}

/* Those of layers that run again go with the loss where autocast is left behind it, and come once more with each backward pass;
 * beside them stands the loss, without its gradient. Where autocast has no cache each layer's go with it, where it reaches beyond the loss they stay. */
static void copies_of_a_checkpoint_go_with_the_loss(void **state)
{
	static const char *const stacks[] = { TRAINER, LOOP, "lightning-2",
					      "torch-2.11-eager" };
	double layer = 4. * H * H - 2. * H * H / 2 + 3. * H * 1536 + 2 * H;
	double head = 2. * H * 1000;

	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct ft_segment *up, *loss, *back;
		bool stays = i > 2, uncached = i == 2;
		struct parts p;

		build(&p, LLAMA,
		      "{sequence_length: 1024, global_batch_size: 2, micro_batch_size: 2, "
		      "recompute: full, sharding: none}",
		      stacks[i], 1);
		up = segment_of(p.graph, "forward");
		loss = segment_of(p.graph, "head");
		back = segment_of(p.graph, "backward");
		near_frac(1 + up->net_bytes[FT_MEMORY_OTHER],
			  1 + (uncached ? 0 : 2 * layer), 1e-12);
		near_frac(up->peak_bytes[FT_MEMORY_OTHER], 2 * layer, 1e-12);
		near_frac(1e6 + loss->net_bytes[FT_MEMORY_OTHER],
			  1e6 + head - (stays || uncached ? 0 : LAYERS * 2 * layer),
			  1e-12);
		near_frac(loss->peak_bytes[FT_MEMORY_OTHER],
			  head + (stays ? 2 : 10) * 1000. * TOKENS, 1e-12);
		near_frac(1 + back->net_bytes[FT_MEMORY_OTHER],
			  1 - (stays ? 2 * layer : 0), 1e-12);
		near_frac(1 + back->peak_bytes[FT_MEMORY_OTHER],
			  1 + (stays ? 0 : 2 * layer), 1e-12);
		drop(&p);
	}
}

/* A LayerNorm on 16-bit weights keeps its input in fp32; gelu_new's power leaves 12 where 6 were. What q, k and v of OPT read
 * is three copies. An RMS norm of Llama's class has its output in fp32 only where its weights are. */
static void autocast_keeps_what_it_casts(void **state)
{
	const char *narrow = ALONE(NARROW), *wide = ALONE("");

	(void)state;
	near_frac(more_kept((struct kept_by){ GPT(""), narrow, TRAINER },
			    (struct kept_by){ GPT(""), narrow, LOOP }),
		  2 * 2 * H + 6 * F, 1e-12);
	near_frac(1 + more_kept(
			      (struct kept_by){
				      OPT,
				      AGAIN("selective, recompute_modules: layernorm"),
				      TRAINER },
			      (struct kept_by){
				      OPT,
				      AGAIN("selective, recompute_modules: layernorm"),
				      LOOP }),
		  1, 1e-12);
	near_frac(more_kept((struct kept_by){ OPT, narrow, TRAINER },
			    (struct kept_by){ OPT, narrow, LOOP }),
		  2 * 2 * H + 2 * 2 * H, 1e-12);
	near_frac(1 + more_kept((struct kept_by){ LLAMA, narrow, TRAINER },
				(struct kept_by){ LLAMA, narrow, LOOP }),
		  1, 1e-12);
	near_frac(more_kept((struct kept_by){ LLAMA, wide, TRAINER },
			    (struct kept_by){ LLAMA, narrow, LOOP }),
		  2 * 2 * H + 2 * (2 + 1) * H, 1e-12);
}

/* Bytes of casts and of norms in fp32: 16 a norm each way, and of each further copy 6, backward 12. */
static void autocast_moves_what_it_casts(void **state)
{
	double h = (double)TOKENS * H, f = (double)TOKENS * F;
	struct parts p;

	(void)state;
	build(&p, OPT, ALONE(NARROW), TRAINER, 1);
	expect(&p, "autocast", LAYERS, (2 * 16 + 2 * 6) * h, 2 * 2 + 2);
	expect(&p, "autocast_back", LAYERS, (2 * 16 + 2 * 12) * h, 2 * 2 + 2 * 2);
	drop(&p);
	build(&p, OPT, AGAIN("full"), TRAINER, 1);
	expect(&p, "autocast", 2 * LAYERS, (2 * 16 + 2 * 6) * h, 2 * 2 + 2);
	drop(&p);
	build(&p, OPT, AGAIN("selective, recompute_modules: layernorm"), TRAINER, 1);
	expect(&p, "autocast", 2 * LAYERS, (2 * 16 + 2 * 6) * h, 2 * 2 + 2);
	drop(&p);
	build(&p, GPT(""), ALONE(NARROW), TRAINER, 1);
	expect(&p, "autocast", LAYERS, 2 * 16 * h, 2 * 2);
	expect(&p, "activation", LAYERS, 76 * f, 10);
	expect(&p, "activation_back", LAYERS, 118 * f, 17);
	drop(&p);
	build(&p, GPT(""), ALONE(NARROW), LOOP, 1);
	expect(&p, "autocast", 0, 0, 0);
	expect(&p, "activation", LAYERS, 36 * f, 8);
	expect(&p, "activation_back", LAYERS, 56 * f, 13);
	drop(&p);
}

/* Two masks of a byte a layer, a kernel each; a number drawn for each score that a causal token sees. */
static void a_config_that_drops_out_does(void **state)
{
	double h = (double)TOKENS * H, scores = (double)TOKENS * HEADS * SEQUENCE / 2;
	struct parts p;

	(void)state;
	build(&p, GPT(", resid_pdrop: 0.1, attn_pdrop: 0.1"), ALONE(NARROW), TRAINER,
	      1);
	assert_true(p.model->dropout && p.model->attention_dropout);
	near_frac(sum_of(p.graph, "dropout").bytes, LAYERS * 2 * (5 + 5) * h, 1e-12);
	assert_true(launches_of(p.graph, "dropout") == LAYERS * 2 * 2);
	near_frac(sum_of(p.graph, "attention_dropout").bytes,
		  LAYERS * (3 + 1.8) * scores, 1e-12);
	drop(&p);
	build(&p, GPT(", resid_pdrop: 0.0"), ALONE(NARROW), TRAINER, 1);
	expect(&p, "dropout", 0, 0, 0);
	expect(&p, "attention_dropout", 0, 0, 0);
	drop(&p);
	/* a stack that drops out does so in scores, too, inside of a fused kernel as outside */
	build(&p, GPT(""), ALONE(""), "megatron-lm-2026", 1);
	near_frac(sum_of(p.graph, "attention_dropout").bytes,
		  LAYERS * (3 + 1.8) * scores, 1e-12);
	drop(&p);
	near_frac(more_kept((struct kept_by){ GPT(", resid_pdrop: 0.1"), ALONE(NARROW),
					      TRAINER },
			    (struct kept_by){ GPT(""), ALONE(NARROW), TRAINER }),
		  2 * H, 1e-12);
}

/* Where the model is compiled as a whole attention is given a mask; heads of 128 and 256 take longer. */
static void masks_and_heads_make_dropout_longer(void **state)
{
	static const struct {
		const char *stack, *heads;
		double keys, forward, backward;
	} cases[] = {
		{ TRAINER, "8", 0.5, 3, 1.8 }, { COMPILED, "8", 1, 3.6, 1.95 },
		{ COMPILED, "4", 1, 5, 7.8 },  { TRAINER, "4", 0.5, 3, 1.8 },
		{ TRAINER, "2", 0.5, 12, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		char model[300];

		snprintf(model, sizeof(model),
			 "{model_type: gpt2, n_embd: 512, n_layer: 4, n_head: %s, "
			 "n_positions: 1024, vocab_size: 1000, attn_pdrop: 0.1}",
			 cases[i].heads);
		build(&p, model, ALONE(NARROW), cases[i].stack, 1);
		near_frac(sum_of(p.graph, "attention_dropout").bytes,
			  LAYERS * (cases[i].forward + cases[i].backward) * TOKENS *
				  atof(cases[i].heads) * SEQUENCE * cases[i].keys,
			  1e-12);
		drop(&p);
	}
}

/* Once behind each backward, and nothing is launched until it is answered. */
static void the_host_waits_for_each_loss(void **state)
{
	struct parts p;

	(void)state;
	for (int more = 0; more < 2; more++) {
		double runs_on = 0;

		build(&p, LLAMA,
		      more ? "{sequence_length: 1024, global_batch_size: 6, micro_batch_size: 2, "
			     "sharding: none}" :
			     ALONE(""),
		      TRAINER, 1);
		assert_true(launches_of(p.graph, "loss_look") == (more ? 3 : 1) * 2);
		for (size_t s = 0; s < p.graph->n_segments; s++)
			for (size_t o = 0; o < p.graph->segment[s].n_ops; o++) {
				const struct ft_op *op = &p.graph->segment[s].op[o];

				runs_on += !strcmp(p.graph->work[op->work].name,
						   "loss_look") &&
					   !op->host_waits;
			}
		assert_true(runs_on == 0);
		drop(&p);
	}
	build(&p, LLAMA, ALONE(""), LOOP, 1);
	expect(&p, "loss_look", 0, 0, 0);
	drop(&p);
}

/* accelerate has what a model returns in fp32: read in 16 bit, written in 32. */
static void what_trainer_returns_is_in_fp32(void **state)
{
	struct parts p;

	(void)state;
	build(&p, LLAMA, ALONE(""), TRAINER, 1);
	expect(&p, "outputs_cast", 1, 6.0 * TOKENS * 1000, 1);
	drop(&p);
	build(&p, LLAMA, ALONE(""), LOOP, 1);
	expect(&p, "outputs_cast", 0, 0, 0);
	drop(&p);
}

/* Scores that documents or a window leave out are not drawn for. */
static void what_is_left_out_is_not_dropped(void **state)
{
	static const char mistral[] =
		"{model_type: mistral, hidden_size: 512, intermediate_size: 1536, num_hidden_layers: 4, "
		"num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1000, "
		"attention_dropout: 0.1, sliding_window: 256}";
	static const struct {
		const char *model, *plan;
		double keys;
	} kinds[] = {
		{ GPT(", attn_pdrop: 0.1"), ALONE(NARROW ", document_length: 256"),
		  128 },
		{ GPT(", attn_pdrop: 0.1"), ALONE(NARROW ", document_length: 768"),
		  (768. * 768 + 256. * 256) / 2 / 1024 },
		{ mistral, ALONE(NARROW), 256 * (1 - 256. / 2048) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct parts p;

		build(&p, kinds[i].model, kinds[i].plan, "torch-2.11-eager", 1);
		near_frac(sum_of(p.graph, "attention_dropout").bytes,
			  LAYERS * (3 + 1.8) * TOKENS * HEADS * kinds[i].keys, 1e-12);
		drop(&p);
	}
}

/* A model that is compiled as a whole attends under its causal mask, and its head's odd edge is padded. */
static void a_whole_model_is_compiled(void **state)
{
	const struct ft_work *w;
	struct parts p;

	(void)state;
	build(&p,
	      "{model_type: gpt2, n_embd: 512, n_layer: 4, n_head: 8, n_positions: 1024, vocab_size: 1001}",
	      ALONE(""), COMPILED, 1);
	w = work_of(p.graph, "attention");
	assert_string_equal(w->attention.impl, "cudnn-masked");
	assert_false(w->attention.causal);
	assert_true(work_of(p.graph, "head")->gemm.n == 1008);
	drop(&p);
}

/* PEFT's adapters: weights, gradients and two moments in fp32, whatever the model's format. */
static void adapters_in_fp32_take_its_memory(void **state)
{
	static const char *const plans[] = {
		ALONE(NARROW ", lora: {rank: 8, targets: all-linear}"),
		ALONE(NARROW
		      ", lora: {rank: 8, targets: all-linear, fp32_adapters: true}")
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const double *base;
		struct parts p;
		double n, width = i ? 4 : 2;

		build(&p, LLAMA, plans[i], TRAINER, 1);
		n = ft_model_lora_parameters(p.model, &p.plan->lora);
		base = p.graph->rank_class[0].base_bytes;
		near_frac(base[FT_MEMORY_WEIGHTS] - 2 * ft_model_parameters(p.model),
			  width * n, 1e-9);
		near_frac(base[FT_MEMORY_OPTIMIZER], 2 * width * n, 1e-12);
		drop(&p);
	}
}

/* Modules as GPT-2, OPT, GPT-NeoX and Phi-3 call them. */
static void adapters_are_named_as_classes_name_them(void **state)
{
	static const struct {
		const char *targets, *as;
	} names[] = {
		{ "[c_attn, c_fc]", "[linear_qkv, linear_fc1]" },
		{ "[c_proj]", "[linear_proj, linear_fc2]" },
		{ "[fc1, fc2, out_proj]", "[linear_fc1, linear_fc2, linear_proj]" },
		{ "[query_key_value, dense, dense_h_to_4h, dense_4h_to_h]", "all" },
		{ "[qkv_proj, gate_up_proj]", "[linear_qkv, linear_fc1]" },
		{ "all-linear", "all" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		unsigned targets[2];

		for (int k = 0; k < 2; k++) {
			char plan[240];
			struct parts p;

			snprintf(plan, sizeof(plan),
				 ALONE(NARROW ", lora: {rank: 8, targets: %s}"),
				 k ? names[i].as : names[i].targets);
			build(&p, GPT(""), plan, TRAINER, 1);
			targets[k] = p.plan->lora.targets;
			drop(&p);
		}
		assert_true(targets[0] == targets[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_has_no_wrapper),
		cmocka_unit_test(none_is_of_one_rank),
		cmocka_unit_test(ddp_of_one_may_be_none),
		cmocka_unit_test(copies_go_with_the_backward_pass),
		cmocka_unit_test(copies_of_a_checkpoint_go_with_the_loss),
		cmocka_unit_test(autocast_keeps_what_it_casts),
		cmocka_unit_test(autocast_moves_what_it_casts),
		cmocka_unit_test(a_config_that_drops_out_does),
		cmocka_unit_test(what_is_left_out_is_not_dropped),
		cmocka_unit_test(masks_and_heads_make_dropout_longer),
		cmocka_unit_test(the_host_waits_for_each_loss),
		cmocka_unit_test(what_trainer_returns_is_in_fp32),
		cmocka_unit_test(a_whole_model_is_compiled),
		cmocka_unit_test(adapters_in_fp32_take_its_memory),
		cmocka_unit_test(adapters_are_named_as_classes_name_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
