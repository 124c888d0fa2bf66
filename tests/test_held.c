/*
 * tests/test_held.c - what a rank holds all step long, against the table at the head of
 * traces/memory.c, for plans and frameworks that are drawn
 */
#include "tests/check.h"

#include "traces/memory.h"
#include "traces/casts.h"
#include "traces/sharding.h"

enum { DRAWS = 5000, LAYERS = 3 };

static uint64_t seed = 6;

static int64_t below(int64_t n)
{
	return (int64_t)(rnd(&seed) % (uint64_t)n);
}

/* A builder with what memory depends on. */
struct drawn {
	struct builder b;
	struct ft_model model;
	struct ft_layer layer[LAYERS];
	struct ft_plan plan;
	struct ft_layout_rules rules;
	struct held unit[LAYERS], stage, ends;
	struct ft_segment seg;
};

static struct held any_held(void)
{
	struct held h = { .dense = (double)below(1 << 20),
			  .experts = (double)below(1 << 20),
			  .tensors = 4 };

	h.matrices = h.dense / (double)(1 + below(3));

	if (!below(3)) {
		h.frozen = (double)below(1 << 20);
		h.frozen_experts = (double)below(1 << 20);
	}
	return h;
}

static void draw_plan(struct ft_plan *p)
{
	static const enum ft_dtype precisions[] = {
		FT_BF16, FT_FP16, FT_FP8, FT_MXFP8, FT_NVFP4, FT_FP8_BLOCK128
	};

	p->dp = 1 << below(4), p->cp = 1 << below(2), p->ep = 1;
	p->pp = 1 + below(2), p->tp = 1;
	p->edp = p->dp * p->cp;
	p->sharding = (enum ft_sharding)(FT_DDP + below(5));
	p->shard = p->sharding == FT_DDP ? 1 : p->dp * p->cp;
	if (p->sharding == FT_HSDP && p->shard > 1)
		p->shard /= 2;
	p->precision = precisions[below(6)];
	p->expert_precision =
		p->precision == FT_FP16 || below(3) ? p->precision : FT_BF16;
	p->scaling = (enum ft_scaling)below(4);
	p->gradient_dtype = below(2) ? FT_FP32 : FT_BF16;
	p->master_weights = below(4) > 0;
	p->optimizer = (enum ft_optimizer)below(FT_OPTIMIZERS);
	p->moment_dtype = p->optimizer != FT_ADAM || below(2) ? FT_DTYPES :
			  below(2)			      ? FT_BF16 :
								FT_FP8;
	p->master = p->master_weights ? (enum ft_master)below(3) : FT_MASTER_FP32;
	p->micro_batches = 1 + below(3);
	p->reshard_after_forward = below(2);
	p->lora.rank = below(4) ? 0 : 8;
}

static void draw(struct drawn *d)
{
	*d = (struct drawn){ .model = { .n_layers = LAYERS, .layer = d->layer } };
	d->b = (struct builder){ .model = &d->model,
				 .plan = &d->plan,
				 .rules = &d->rules,
				 .unit = d->unit,
				 .seg = &d->seg };
	draw_plan(&d->plan);
	d->b.format = d->plan.precision;
	d->rules.tensor_parallel = below(3) ? FT_TP_MEGATRON : FT_TP_DTENSOR;
	d->rules.fusion = (enum ft_fusion)below(3);
	d->rules.gradient_fusion = below(2);
	d->rules.narrow_parameters = below(2);
	d->rules.unsharded_pipeline = below(2);
	d->rules.whole_gradients = below(3) == 0;
	d->rules.fsdp_copy_out_bytes = (double)(2 * below(2));
	d->rules.bucket_copy_bytes = (double)(8 * below(2));
	d->b.autocast = below(4) == 0;
	for (int i = 0; i < LAYERS; i++)
		d->unit[i] = any_held();
	d->stage = any_held(), d->ends = any_held();
	d->ends.dense = d->stage.dense / 4;
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool is_sharded_whole(const struct drawn *d)
{
	return d->plan.sharding == FT_FSDP || d->plan.sharding == FT_HSDP;
}

/* Of FSDP in a pipeline whose weights stay gathered: its micro-batches share them. */
static bool keeps(const struct drawn *d)
{
	return is_sharded_whole(d) && d->plan.pp > 1 && !d->plan.reshard_after_forward;
}

static double whole_of(const struct held *h)
{
	return 2 * h->dense + 2 * h->experts + h->frozen + h->frozen_experts;
}

static double format_bytes(enum ft_dtype format)
{
	return format == FT_NVFP4 ? 0.5625 : format == FT_MXFP8 ? 1.03125 : 1;
}

/* One more gradient of the largest layer, which kernels hand on. */
static double stand_ins(const struct drawn *d)
{
	double most = 0;

	for (int i = 0; i < LAYERS; i++)
		most = d->unit[i].dense > most ? d->unit[i].dense : most;
	if (!d->rules.gradient_fusion || d->rules.fusion != FT_FUSION_KERNELS ||
	    d->plan.lora.rank || is_sharded_whole(d) || d->plan.micro_batches < 2)
		return 0;
	return 2 * most;
}

/* Of moments that have so many bytes: two each, of Muon's matrices one, or less. */
static double state_of(const struct drawn *d, double width)
{
	const struct held *h = &d->stage;
	double all = h->dense + h->experts;

	if (d->plan.moment_dtype == FT_BF16)
		width = 2;
	if (d->plan.moment_dtype == FT_FP8)
		width = 1;
	switch (d->plan.optimizer) {
	case FT_MUON:
		return width * (2 * h->dense - h->matrices + h->experts);
	case FT_ADAM_8BIT:
		return 2 * all + 2 * 4 * all / 256;
	case FT_SGD_MOMENTUM:
		return width * all;
	case FT_SGD:
	case FT_ADAFACTOR:
		return 0;
	default:
		return width * all * 2;
	}
}

static void mixed(const struct drawn *d, double want[FT_MEMORIES])
{
	const struct ft_plan *p = &d->plan;
	double ranks = (double)p->shard, width = p->gradient_dtype == FT_FP32 ? 4 : 2;
	double all = d->stage.dense + d->stage.experts;
	double copies = narrow_copies(&d->b) * format_bytes(p->precision);
	double each = p->precision == FT_BF16 || p->precision == FT_FP16 ? 2 :
		      d->rules.narrow_parameters			 ? copies :
									   copies + 2;
	double of_experts = p->expert_precision == FT_BF16 ? 2 : each;

	if (d->rules.tensor_parallel == FT_TP_MEGATRON) {
		want[FT_MEMORY_GRADIENTS] =
			width * all / (p->sharding == FT_ZERO2 ? ranks : 1);
		if (d->rules.whole_gradients && p->sharding == FT_ZERO1 &&
		    p->precision == FT_BF16)
			want[FT_MEMORY_GRADIENTS] += 2 * all;
	}
	want[FT_MEMORY_GRADIENTS] += stand_ins(d);
	if (p->sharding == FT_DDP && (p->dp * p->cp > 1 || p->pp == 1) &&
	    d->rules.tensor_parallel == FT_TP_DTENSOR && d->rules.bucket_copy_bytes > 0)
		want[FT_MEMORY_OTHER] = width * all;
	want[FT_MEMORY_WEIGHTS] = each * (d->stage.dense - d->ends.dense) +
				  of_experts * d->stage.experts + 2 * d->ends.dense +
				  d->stage.frozen + d->stage.frozen_experts;
	want[FT_MEMORY_OPTIMIZER] =
		(p->master_weights ? (p->master ? 2 : 4) * all + state_of(d, 4) :
				     state_of(d, 2)) /
		(p->sharding == FT_DDP ? 1 : ranks);
}

static void autocast(const struct drawn *d, double want[FT_MEMORIES])
{
	const struct ft_plan *p = &d->plan;
	double all = d->stage.dense + d->stage.experts;
	double width = p->gradient_dtype == FT_FP32 ? 4 : 2;
	bool copied = d->rules.tensor_parallel == FT_TP_DTENSOR &&
		      d->rules.bucket_copy_bytes > 0;

	want[FT_MEMORY_GRADIENTS] =
		width * all / (p->sharding == FT_ZERO2 ? (double)p->shard : 1);
	if (d->rules.whole_gradients && p->sharding == FT_ZERO1 &&
	    p->precision == FT_BF16)
		want[FT_MEMORY_GRADIENTS] += 2 * all;
	if (copied)
		want[FT_MEMORY_GRADIENTS] = 0; /* they come when they are computed */
	want[FT_MEMORY_WEIGHTS] = 4 * all + d->stage.frozen + d->stage.frozen_experts;
	want[FT_MEMORY_OPTIMIZER] = state_of(d, 4);
	if (p->sharding == FT_DDP && (p->dp * p->cp > 1 || p->pp == 1))
		want[FT_MEMORY_OTHER] = (copied		       ? width :
					 p->micro_batches == 1 ? 4 :
								 8) *
					all;
}

static void sharded(const struct drawn *d, double want[FT_MEMORIES])
{
	const struct ft_plan *p = &d->plan;
	double mine = (d->stage.dense + d->stage.experts) / (double)p->shard;
	double width = p->master_weights ? 4 : 2;

	want[FT_MEMORY_WEIGHTS] =
		width * mine +
		(d->stage.frozen + d->stage.frozen_experts) / (double)p->shard +
		(keeps(d) ? whole_of(&d->stage) : 0);
	want[FT_MEMORY_OPTIMIZER] = state_of(d, width) / (double)p->shard;
}

static void same(const double *is, const double *want)
{
	for (int m = 0; m < FT_MEMORIES; m++)
		near_frac(is[m], want[m], 1e-12);
}

static void a_rank_holds_what_the_table_says(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		double is[FT_MEMORIES], want[FT_MEMORIES] = { 0 };
		struct drawn d;

		draw(&d);
		base_bytes(&d.b, d.stage, d.ends, is);
		if (is_sharded_whole(&d))
			sharded(&d, want);
		else if (d.b.autocast)
			autocast(&d, want);
		else
			mixed(&d, want);
		same(is, want);
	}
}

/* Weights of a unit come gathered, and copied out where a framework does so. Those that stay
 * until the backward are weights; what is gone behind its layer is of the moment. */
static void units_come_and_go(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		double net[FT_MEMORIES] = { 0 }, peak[FT_MEMORIES] = { 0 }, whole;
		bool gathered = below(2), stays;
		struct drawn d;

		draw(&d);
		whole = whole_of(&d.unit[0]);
		stays = !d.plan.reshard_after_forward;
		if (gathered && is_sharded_whole(&d)) {
			peak[FT_MEMORY_OTHER] = stays ? 0 : whole;
			if (d.rules.fsdp_copy_out_bytes > 0)
				peak[FT_MEMORY_OTHER] +=
					2 * (d.unit[0].dense + d.unit[0].experts);
		} else if (gathered && stays) {
			peak[FT_MEMORY_OTHER] = -whole;
		}
		if (stays && !keeps(&d))
			net[FT_MEMORY_WEIGHTS] = peak[FT_MEMORY_WEIGHTS] = whole;
		unit_comes(&d.b, d.unit[0], gathered);
		same(d.seg.net_bytes, net);
		same(d.seg.peak_bytes, peak);
		unit_goes(&d.b, d.unit[0]);
		memset(net, 0, sizeof(net));
		same(d.seg.net_bytes, net);
		same(d.seg.peak_bytes, peak);
	}
}

static void formats_are_kept_with_their_scales(void **state)
{
	(void)state;
	assert_true(stored_width(FT_MXFP8) >= 1 + 1. / 32 &&
		    stored_width(FT_MXFP8) <= 1 + 1. / 32);
	assert_true(stored_width(FT_MXFP4) >= 0.5 + 1. / 32 &&
		    stored_width(FT_MXFP4) <= 0.5 + 1. / 32);
	for (int d = 0; d < FT_DTYPES; d++)
		if (d != FT_MXFP8 && d != FT_MXFP4 && d != FT_NVFP4)
			near_frac(stored_width((enum ft_dtype)d),
				  ft_dtype_bytes((enum ft_dtype)d), 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_holds_what_the_table_says),
		cmocka_unit_test(units_come_and_go),
		cmocka_unit_test(formats_are_kept_with_their_scales),
	};

	return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
