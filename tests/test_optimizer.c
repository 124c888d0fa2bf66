/*
 * tests/test_optimizer.c - what a rank does behind its last gradient, counted from the model's
 * parameters: of drawn plans without tensor parallelism and pipelines
 */
#include "tests/counted.h"

enum { DRAWS = 160, DENSE, EXPERTS };

static const char *const stacks[] = { "nemo-24", "torch-2.11-eager", "megatron-core",
				      "generic", "megatron-deepspeed-2022" };
static const char deepspeed[] = "megatron-deepspeed-2022"; /* has no fsdp */
static const char *const shardings[] = { "ddp", "zero1", "zero2", "fsdp" };
static const char *const models[] = { "{name: llama3-8b, num_hidden_layers: 2}",
				      "{name: mixtral-8x7b, num_hidden_layers: 2}" };

struct drawn {
	struct parts p;
	int64_t replicas;
	double dense, experts;	       /* parameters that the rank multiplies with */
	double own_dense, own_experts; /* those that it updates */
};

static uint64_t seed = 29;

/* All parameters, and those of routed experts: three matrices of each. */
static void count(struct drawn *d)
{
	const struct ft_model *m = d->p.model;
	const struct ft_plan *plan = d->p.plan;
	double over = plan->sharding == FT_DDP ? 1 : (double)d->replicas;

	for (int64_t i = 0; i < m->n_layers; i++) {
		const struct ft_layer *l = &m->layer[i];

		d->experts += 3. * (double)(l->experts * l->expert_intermediate) *
			      (double)m->hidden_size;
	}
	d->dense = ft_model_parameters(m) - d->experts;
	d->own_dense = d->dense / over;
	/* a rank of so many has its share of the experts, and replicas of that are fewer */
	d->own_experts = d->experts / (over > 1 ? over : (double)plan->ep);
	d->experts /= (double)plan->ep;
}

/* Stacks of PyTorch's have all, but some of them for whole tensors alone. */
static const char *optimizer_of(const char *stack, const char *sharding)
{
	static const char *const others[] = { "sgd", "sgd-momentum", "adam8bit",
					      "adafactor" };
	bool many = !strcmp(stack, "torch-2.11-eager") || !strcmp(stack, "generic");

	if (many && rnd_below(&seed, 2))
		return others[rnd_below(&seed, strcmp(sharding, "ddp") ? 2 : 4)];
	return rnd_below(&seed, 3) ? "adam" : "muon";
}

static void draw(struct drawn *d)
{
	static const char *const precisions[] = { "bf16", "bf16", "fp8" };
	int routed = rnd_below(&seed, 2), ep = routed ? 1 << rnd_below(&seed, 3) : 1;
	const char *stack = stacks[rnd_below(&seed, routed ? 3 : 5)];
	const char *sharding =
		shardings[rnd_below(&seed, strcmp(stack, deepspeed) ? 4 : 3)];
	char training[400];

	*d = (struct drawn){ .replicas = 4 << rnd_below(&seed, 2) };
	if (rnd_below(&seed, 6) == 0 && ep == 1)
		d->replicas = 1;
	snprintf(training, sizeof(training),
		 "{sequence_length: 1024, global_batch_size: 16, micro_batch_size: 1, "
		 "sharding: %s, gradient_dtype: %s, master_weights: %s, optimizer: %s, "
		 "precision: %s, parallel: {tp: 1, pp: 1, vpp: 1, ep: %d}, overlap: "
		 "{dp: false, param_gather: false}}",
		 sharding, rnd_below(&seed, 2) ? "fp32" : "bf16",
		 rnd_below(&seed, 3) ? "true" : "false", optimizer_of(stack, sharding),
		 precisions[rnd_below(&seed, 3)], ep);
	build(&d->p, models[routed], training, stack, d->replicas);
	count(d);
}

/* What other optimizers than Adam read and write, kernel by kernel, of numbers of `width` bytes. */
static double moved_by_others(enum ft_optimizer optimizer, double width)
{
	double copies = width < 4 ? 2 * (width + 4) + (4 + width) : 0;

	switch (optimizer) {
	case FT_SGD: /* weight, gradient; weight */
		return 3 * width;
	case FT_SGD_MOMENTUM: /* the moment decays; takes the gradient; the weight takes it */
		return (2 + 3 + 3) * width;
	case FT_ADAM_8BIT: /* weight twice, gradient, two moments twice */
		return 3 * width + 4;
	default:
		/* in fp32: square, epsilon, means of rows and of columns, their product, times the gradient, two
		 * norms, over the norm, times the rate, its negative, into the weight */
		return 4 * (2 + 2 + 1 + 1 + 1 + 3 + 2 + 2 + 2 + 2 + 3) + copies;
	}
}

static double moved_a_parameter(const struct drawn *d)
{
	const struct ft_plan *plan = d->p.plan;
	const struct ft_layout_rules *rules = &d->p.stack->layout;
	bool autocast = rules->autocast && plan->sharding == FT_DDP;

	if (rules->optimizer_bytes > 0)
		return rules->optimizer_bytes;
	if (plan->optimizer != FT_ADAM && plan->optimizer != FT_MUON)
		return moved_by_others(plan->optimizer, plan->master_weights ? 4 : 2) +
		       (plan->master_weights && !autocast && plan->sharding != FT_FSDP ?
				2 :
				0);
	if (!plan->master_weights) /* weight and both moments both ways, and the gradient */
		return 2 * (2 + 4 + 1);
	/* the same in 4 bytes, and the weight in 2 where nothing casts it later */
	return 4 * (2 + 4 + 1) + (plan->sharding == FT_FSDP || autocast ? 0 : 2);
}

/* Of what it updates, the matrices of layers, which have no biases here: Muon's. */
static double own_matrices(const struct drawn *d)
{
	const struct ft_model *m = d->p.model;
	double sum = 0;

	for (int64_t i = 0; i < m->n_layers; i++)
		sum += ft_layer_attention_parameters(m, i) +
		       ft_layer_dense_parameters(m, i);
	return sum * d->own_dense / d->dense + d->own_experts;
}

/* fsdp: a layer's weights are there for one pass, which casts them; not what travels in 8 bit. */
static bool passes_cast_weights(const struct drawn *d)
{
	const struct ft_plan *plan = d->p.plan;
	bool fsdp = plan->sharding == FT_FSDP || plan->sharding == FT_HSDP;
	bool one_scale = plan->scaling == FT_SCALING_DELAYED ||
			 plan->scaling == FT_SCALING_TENSORWISE;

	return fsdp && !(d->p.stack->layout.narrow_parameters && one_scale);
}

static const char *item_of(enum ft_optimizer optimizer)
{
	switch (optimizer) {
	case FT_SGD:
	case FT_SGD_MOMENTUM:
		return "sgd";
	case FT_ADAM_8BIT:
		return ft_optimizer_name(optimizer);
	default:
		return "adam";
	}
}

static void update_is_counted(const struct drawn *d)
{
	const struct ft_plan *plan = d->p.plan;
	const struct ft_layout_rules *rules = &d->p.stack->layout;
	double own = d->own_dense + d->own_experts;
	double gradient = ft_dtype_bytes(plan->gradient_dtype);
	double adams = own - (plan->optimizer == FT_MUON ? own_matrices(d) : 0);
	/* words, last norm and head stay in 16 bit */
	double ends = (double)(2 * d->p.model->vocab_size + 1) *
		      (double)d->p.model->hidden_size;

	if (plan->optimizer == FT_ADAFACTOR) {
		near_frac(sum_of(d->p.graph, "adafactor").bytes,
			  moved_a_parameter(d) * own, 1e-12);
		assert_true(launches_of(d->p.graph, "adafactor") ==
			    24 * host_times(d->p.graph, FT_HOST_TENSOR_UPDATE));
	} else {
		expect(&d->p, item_of(plan->optimizer), 1, moved_a_parameter(d) * adams,
		       (double)rules->optimizer_kernels);
	}
	assert_true((host_times(d->p.graph, FT_HOST_TENSOR_UPDATE) > 0) ==
		    (plan->optimizer == FT_ADAFACTOR));
	assert_true((host_times(d->p.graph, FT_HOST_OPTIMIZER_TENSOR) > 0) !=
		    (plan->optimizer == FT_ADAFACTOR));
	expect(&d->p, "gradient_norm", rules->scaled_gradients,
	       (rules->tensor_parallel == FT_TP_DTENSOR ? 3 : 2) * gradient * own, 2);
	expect(&d->p, "norm_sum", rules->scaled_gradients && d->replicas > 1, 8, 0);
	expect(&d->p, "cast_weights",
	       ft_dtype_bytes(plan->precision) < 2 && !passes_cast_weights(d),
	       4 * (d->dense + d->experts - ends), 8);
	assert_true((sum_of(d->p.graph, "newton_schulz").n > 0) ==
		    (plan->optimizer == FT_MUON)); /* tests/test_muon.c has its work */
	assert_true(host_times(d->p.graph, FT_HOST_OPTIMIZER) == 1);
}

/* Weights come back whole from those who updated a part, in the bytes that products take. */
static void weights_come_back(const struct drawn *d)
{
	const struct ft_plan *plan = d->p.plan;
	bool zero = plan->sharding == FT_ZERO1 || plan->sharding == FT_ZERO2;
	double width = sum_of(d->p.graph, "zero_gather").bytes / d->dense;

	if (zero && d->replicas > 1)
		assert_true(sum_of(d->p.graph, "zero_gather").n == 1 &&
			    (width == 1 || width == 2 || width == 4));
	else
		assert_true(sum_of(d->p.graph, "zero_gather").n == 0);
	expect(&d->p, "zero_gather_experts",
	       zero && d->experts > 0 && d->replicas > plan->ep, width * d->experts, 0);
}

static void an_update_is_counted_from_the_parameters(void **state)
{
	int gathered = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d;

		draw(&d);
		update_is_counted(&d);
		weights_come_back(&d);
		gathered += sum_of(d.p.graph, "zero_gather_experts").n > 0;
		drop(&d.p);
	}
	assert_true(gathered > 5);
}

/* Copies of the largest tensor, the table of words here, in fp32: two, four of one in 16 bit. */
static void adafactor_needs_room_for_a_while(void **state)
{
	static const struct {
		const char *more;
		double copies;
	} cases[] = { { "", 2 }, { ", master_weights: false", 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char training[160];
		double most = 0;
		struct parts p;

		snprintf(training, sizeof(training),
			 "{sequence_length: 64, global_batch_size: 1, sharding: none, "
			 "optimizer: adafactor%s}",
			 cases[i].more);
		build(&p, models[0], training, "transformers-5-trainer", 1);
		for (size_t k = 0; k < p.graph->n_segments; k++)
			for (size_t o = 0; o < p.graph->segment[k].n_ops; o++)
				if (!strcmp(p.graph->work
						    [p.graph->segment[k].op[o].work]
							    .name,
					    "adafactor"))
					most = p.graph->segment[k]
						       .peak_bytes[FT_MEMORY_OTHER];
		near_frac(most, cases[i].copies * 4 * 128256 * 4096, 1e-12);
		drop(&p);
	}
}

static void some_plans_have_no_such_optimizer(void **state)
{
	static const struct {
		const char *stack, *sharding;
		enum ft_optimizer optimizer;
		const char *says;
	} cases[] = {
		{ "megatron-core", "zero1", FT_ADAFACTOR,
		  "optimizer: adafactor is not in stack megatron-core, which has adam, "
		  "muon" },
		{ "torch-2.11-eager", "fsdp", FT_ADAM_8BIT,
		  "optimizer: adam8bit updates whole tensors, which sharding: fsdp" },
		{ "torchtitan-2024", "ddp", FT_SGD,
		  "optimizer: sgd is not in stack torchtitan-2024" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char training[160];
		struct ft_graph *graph;
		struct ft_error err;
		struct parts p;

		snprintf(training, sizeof(training),
			 "{sequence_length: 64, global_batch_size: 4, sharding: %s}",
			 cases[i].sharding);
		build(&p, models[0], training, cases[i].stack, 4);
		p.plan->optimizer = cases[i].optimizer;
		graph = ft_graph_build(p.model, p.plan, p.stack, &err);
		assert_null(graph);
		assert_non_null(strstr(err.text, cases[i].says));
		drop(&p);
	}
}

/* Bytes a parameter that Adam moves beyond those of moments and master weights in fp32, and holds meanwhile. Transformer Engine reads narrow
 * state and writes it in 4 bytes, and behind the update the other way round; what is a remainder is read and written in
 * 2 bytes for 4, and the weights' other half is read, which is not read else. Others' kernels read and write state as it is. */
static void narrow_state_is_widened_by_kernels_alone(void **state)
{
	static const struct {
		const char *stack, *more;
		double bytes, held;
	} cases[] = {
		{ "megatron-core", ", moment_dtype: bf16", 2 * (2 + 4 + 4 + 2), 8 },
		{ "megatron-core", ", moment_dtype: fp8", 2 * (1 + 4 + 4 + 1), 8 },
		{ "megatron-core", ", master_dtype: fp16", 2 + 4 + 4 + 2, 4 },
		{ "megatron-core", ", master_dtype: remainder", 2 - 4, 0 },
		{ "torch-2.11-eager", ", master_dtype: fp16", -(2 + 2), 0 },
		{ "torch-2.11-eager", ", master_dtype: remainder", -2, 0 },
		{ "torch-2.11-eager", ", moment_dtype: bf16", -2 * (2 + 2), 0 },
		{ "jax-0.11", ", moment_dtype: bf16", -2 * (2 + 2), 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double bytes[2], held[2], n = 0;

		for (int told = 0; told < 2; told++) {
			struct parts p;
			char plan[300];

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 1024, global_batch_size: 1, "
				 "micro_batch_size: 1, sharding: %s%s}",
				 i < 6 ? "zero1" : "fsdp", told ? cases[i].more : "");
			build(&p, models[0], plan, cases[i].stack, 1);
			n = ft_model_parameters(p.model);
			bytes[told] = sum_of(p.graph, "adam").bytes;
			held[told] = segment_of(p.graph, "optimizer")
					     ->peak_bytes[FT_MEMORY_OTHER];
			drop(&p);
		}
		near_frac(bytes[1] - bytes[0], cases[i].bytes * n, 1e-9);
		if (i < 6)
			near_frac(held[1] - held[0] + 1, cases[i].held * n + 1, 1e-9);
	}
}

/* The format that an answer states for Adam's moments, where nobody did, is the one that memory counts: it can be stated. */
static void moments_are_what_an_answer_calls_them(void **state)
{
	static const struct {
		const char *stack, *more, *name;
	} cases[] = {
		{ "megatron-core", "", "fp32" },
		{ "megatron-core", ", gradient_dtype: bf16", "fp32" },
		{ "megatron-core", ", master_weights: false", "bf16" },
		{ "megatron-core", ", master_weights: false, gradient_dtype: fp32",
		  "bf16" },
		{ "megatron-core", ", master_weights: false, precision: fp16", "fp16" },
		{ "torch-2.11-eager", ", master_weights: false, gradient_dtype: fp32",
		  "bf16" },
		{ "transformers-5-eager",
		  ", master_weights: false, lora: {rank: 8, fp32_adapters: true}",
		  "fp32" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double bytes[2];

		for (int told = 0; told < 2; told++) {
			struct parts p;
			char plan[300];

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 1024, global_batch_size: 8, "
				 "sharding: fsdp%s%s%s}",
				 cases[i].more, told ? ", moment_dtype: " : "",
				 told ? cases[i].name : "");
			build(&p, models[0], plan, cases[i].stack, 8);
			assert_string_equal(ft_moment_name(p.plan), cases[i].name);
			bytes[told] =
				p.graph->rank_class[0].base_bytes[FT_MEMORY_OPTIMIZER];
			drop(&p);
		}
		near_frac(bytes[1], bytes[0], 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_state_is_widened_by_kernels_alone),
		cmocka_unit_test(moments_are_what_an_answer_calls_them),
		cmocka_unit_test(an_update_is_counted_from_the_parameters),
		cmocka_unit_test(adafactor_needs_room_for_a_while),
		cmocka_unit_test(some_plans_have_no_such_optimizer),
	};

	return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
