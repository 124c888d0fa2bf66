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

static int below(int n)
{
	return (int)(rnd(&seed) % (uint64_t)n);
}

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

static void draw(struct drawn *d)
{
	static const char *const precisions[] = { "bf16", "bf16", "fp8" };
	int routed = below(2), ep = routed ? 1 << below(3) : 1;
	const char *stack = stacks[below(routed ? 3 : 5)];
	const char *sharding = shardings[below(strcmp(stack, deepspeed) ? 4 : 3)];
	char training[400];

	*d = (struct drawn){ .replicas = 4 << below(2) };
	if (below(6) == 0 && ep == 1)
		d->replicas = 1;
	snprintf(training, sizeof(training),
		 "{sequence_length: 1024, global_batch_size: 16, micro_batch_size: 1, "
		 "sharding: %s, gradient_dtype: %s, master_weights: %s, optimizer: %s, "
		 "precision: %s, parallel: {tp: 1, pp: 1, vpp: 1, ep: %d}, overlap: "
		 "{dp: false, param_gather: false}}",
		 sharding, below(2) ? "fp32" : "bf16", below(3) ? "true" : "false",
		 below(3) ? "adam" : "muon", precisions[below(3)], ep);
	build(&d->p, models[routed], training, stack, d->replicas);
	count(d);
}

static double moved_a_parameter(const struct drawn *d)
{
	const struct ft_plan *plan = d->p.plan;
	const struct ft_layout_rules *rules = &d->p.stack->layout;
	bool autocast = rules->autocast && plan->sharding == FT_DDP;

	if (rules->optimizer_bytes > 0)
		return rules->optimizer_bytes;
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

	expect(&d->p, "adam", 1, moved_a_parameter(d) * adams,
	       (double)rules->optimizer_kernels);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_is_counted_from_the_parameters),
	};

	return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
