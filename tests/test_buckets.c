/*
 * tests/test_buckets.c - what replicas sum of their gradients, and copy and scale around that: bytes of drawn groups,
 * from the weights of a stage
 */
#include "tests/works.h"

enum { DRAWS = 120 };

static uint64_t seed = 67;

static const char *const shardings[] = { "ddp", "zero1", "zero2" };

struct drawn {
	int tp, pp, cp, dp, sharding, width;
	bool routed, scales; /* PyTorch's autocast */
	double copies;	     /* bytes a weight, beside a bucket */
};

static struct drawn draw(void)
{
	struct drawn d = { .tp = 1 << rnd_below(&seed, 2),
			   .pp = 1 << rnd_below(&seed, 2),
			   .cp = 1 << rnd_below(&seed, 2),
			   .dp = 1 << rnd_below(&seed, 3),
			   .sharding = rnd_below(&seed, 3),
			   .width = rnd_below(&seed, 2) ? 4 : 2,
			   .routed = rnd_below(&seed, 2),
			   .scales = rnd_below(&seed, 2),
			   .copies = rnd_below(&seed, 2) ? 8 : 0 };

	return d;
}

/* One layer's and the ends' weights on a rank: what is not of experts, and what is. */
static void count(const struct parts *p, double width, double *dense, double *experts)
{
	*dense = *experts = 0;
	for (size_t c = 0; c < p->graph->n_classes; c++)
		*dense += p->graph->rank_class[c].base_bytes[FT_MEMORY_WEIGHTS] / width;
	for (int64_t i = 0; i < p->model->n_layers; i++)
		*experts += ft_layer_expert_parameters(p->model, i) /
			    (double)(p->plan->ep * p->plan->etp);
	*dense -= *experts;
}

static void is_sum(const struct parts *p, const char *name, double want)
{
	double is = sum_of(p->graph, name).bytes;

	if (is < want - 1e-9 * want - 1e-6 || is > want + 1e-9 * want + 1e-6)
		fail_msg("%s: %.12g bytes, wanted %.12g", name, is, want);
}

/* Replicas are all ranks of other tokens. A group of one sums nothing and copies nothing. */
static void check(const struct parts *p, const struct drawn *d)
{
	bool many = d->dp * d->cp > 1, wide = d->scales && d->sharding == 0;
	double dense, experts;

	count(p, wide ? 4 : 2, &dense, &experts);
	is_sum(p, "bucket_copy", many ? d->copies * (dense + experts) : 0);
	is_sum(p, "bucket_scale", many && wide ? 2 * d->width * (dense + experts) : 0);
	is_sum(p, "gradient_reduce", many ? d->width * dense : 0);
	is_sum(p, "gradient_reduce_experts",
	       d->routed && p->plan->edp > 1 ? d->width * experts : 0);
	is_sum(p, "gradient_copies", 0); /* all replicas are of one group of shards */
}

static void replicas_sum_each_gradient_once(void **state)
{
	int alone = 0, copied = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = draw();
		struct arena mem = { 0 };
		struct parts p;

		build(&p,
		      d.routed ? "{name: mixtral-8x7b, num_hidden_layers: 2}" :
				 "{name: llama3-8b, num_hidden_layers: 2}",
		      arena_printf(&mem,
				   "{sequence_length: 2048, global_batch_size: %d, "
				   "micro_batch_size: 1, sharding: %s, gradient_dtype: "
				   "%s, parallel: {tp: %d, pp: %d, cp: %d}}",
				   d.dp, shardings[d.sharding],
				   d.width == 4 ? "fp32" : "bf16", d.tp, d.pp, d.cp),
		      "megatron-core", d.tp * d.pp * d.cp * d.dp);
		p.stack->layout.bucket_copy_bytes = d.copies;
		p.stack->layout.bucket_bytes = 25 << 20;
		p.stack->layout.autocast = d.scales;
		rebuild(&p);
		check(&p, &d);
		alone += d.dp * d.cp == 1;
		copied += d.dp * d.cp == 2 && d.copies > 0;
		drop(&p);
		arena_release(&mem);
	}
	assert_true(alone > 5 && copied > 5);
}

/* What is sharded is summed into shards, and these over the groups of shards; experts over the ranks that have the
 * same ones. */
static void shards_are_summed_in_groups_and_over_them(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		int tp = 1 << rnd_below(&seed, 2), dp = 2 << rnd_below(&seed, 3);
		int groups = i % 2 ? 2 : 1, ep = 1 << rnd_below(&seed, 2);
		bool routed = rnd_below(&seed, 2), wide = rnd_below(&seed, 2);
		double width = wide ? 4 : 2, dense, experts, same;
		struct arena mem = { 0 };
		const char *split = arena_printf(&mem, "parallel: {tp: %d, ep: %d}", tp,
						 routed ? ep : 1);
		struct parts p;

		build(&p,
		      routed ? "{name: mixtral-8x7b, num_hidden_layers: 2}" :
			       "{name: llama3-8b, num_hidden_layers: 2}",
		      arena_printf(&mem,
				   "{sequence_length: 2048, global_batch_size: %d, "
				   "micro_batch_size: 1, sharding: ddp, "
				   "gradient_dtype: %s, %s}",
				   dp, wide ? "fp32" : "bf16", split),
		      "megatron-core", tp * dp);
		count(&p, 2, &dense, &experts);
		p.plan->sharding = groups > 1 ? FT_HSDP : FT_FSDP;
		p.plan->shard = dp / groups;
		rebuild(&p);
		same = (double)ft_plan_expert_shard(p.plan);
		is_sum(&p, "fsdp_reduce", p.plan->shard > 1 ? width * dense : 0);
		is_sum(&p, "hsdp_reduce",
		       groups > 1 ? width * dense / (double)p.plan->shard : 0);
		is_sum(&p, "fsdp_reduce_experts", same > 1 ? width * experts : 0);
		is_sum(&p, "gradient_reduce", 0);
		drop(&p);
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_sum_each_gradient_once),
		cmocka_unit_test(shards_are_summed_in_groups_and_over_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
