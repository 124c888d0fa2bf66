/*
 * traces/adapters.c - low-rank adapters beside frozen products (LoRA, arXiv 2106.09685)
 *
 * Beside a product of k inputs and n outputs: k x rank, rank x n, a scaling (4 bytes an output, which a compiler writes with the
 * addition) and an addition, in 16 bit; with dropout a masked copy of the input. Adapters in fp32 under autocast have their
 * input, and its gradient, cast to fp32 and back, 12 bytes a number, with the mask between both casts (PEFT's lora/layer.py, read
 * 2026-11-29), and their own copy of the input is kept. Backward: the output's gradient scaled, two
 * gradients of each of the two, and the addition to the input's gradient. Source: PEFT's lora/layer.py and NeMo's
 * ParallelLinearAdapter (read 2026-11-29); each kernel of a layer alone is in
 * measurements/probes/h200-2026-11-29-adapters-unseen.jsonl.gz. Under tensor parallelism each product is
 * split once, and the rank-wide tensor between the two is gathered or summed (Megatron's
 * adapters).
 */
#include "traces/block.h"
#include "traces/sharding.h"

/* The targets of a site, which share their input. */
static bool at_site(enum adapter_site site, enum ft_lora_target target)
{
	static const enum adapter_site sites[FT_LORA_TARGETS] = {
		[FT_LORA_QKV] = SITE_QKV,   [FT_LORA_Q] = SITE_QKV,
		[FT_LORA_K] = SITE_QKV,	    [FT_LORA_V] = SITE_QKV,
		[FT_LORA_OUT] = SITE_OUT,   [FT_LORA_GATE_UP] = SITE_UP,
		[FT_LORA_GATE] = SITE_UP,   [FT_LORA_UP] = SITE_UP,
		[FT_LORA_DOWN] = SITE_DOWN,
	};

	return sites[target] == site;
}

/* One adapter's sizes on a rank. */
struct adapter {
	int64_t tokens, rank, in, out;
	bool row; /* beside a row-split product: its input is split */
};

static struct adapter adapter_of(const struct builder *b, const struct layer_sizes *s,
				 enum ft_lora_target target)
{
	int64_t layer = s->l - b->model->layer;
	struct ft_lora_shape shape = ft_lora_shape(b->model, layer, target);
	struct adapter a = { .tokens = s->tokens,
			     .rank = b->plan->lora.rank,
			     .in = shape.in,
			     .out = shape.out };

	a.row = at_site(SITE_OUT, target) || at_site(SITE_DOWN, target);
	if (a.row)
		a.in /= b->plan->tp;
	else
		a.out /= b->plan->tp;
	return a;
}

static void product(struct builder *b, const char *name, enum ft_layout layout,
		    struct edges e)
{
	bool narrow = ft_dtype_bytes(b->plan->precision) < 2;

	put_product(b,
		    &(struct ft_work){ .kind = FT_GEMM,
				       .name = name,
				       .dtype = narrow ? FT_BF16 : b->plan->precision,
				       .gemm.layout = layout,
				       .gemm.m = e.m,
				       .gemm.n = e.n,
				       .gemm.k = e.k,
				       .gemm.groups = 1 });
}

/* The first product: a share of the rank, or of the sum. */
static void down_product(struct builder *b, const struct adapter *a,
			 enum ft_layout layout)
{
	int64_t tp = b->plan->tp, part = a->rank > tp ? a->rank / tp : 1;

	product(b, "lora_a", layout,
		(struct edges){ a->tokens, a->row ? a->rank : part, a->in });
}

/* The second: a share of the outputs, or of the tokens. */
static void up_product(struct builder *b, const struct adapter *a,
		       enum ft_layout layout)
{
	int64_t m = a->row ? a->tokens / b->plan->tp : a->tokens;

	product(b, "lora_b", layout, (struct edges){ m, a->out, a->rank });
}

static void between(struct builder *b, const struct adapter *a, bool backward)
{
	bool sum = a->row != backward;

	if (put_collective(b, "tp_lora", FT_STREAM_TP,
			   sum ? FT_REDUCE_SCATTER : FT_ALL_GATHER, FT_GROUP_TP,
			   2 * (double)(a->tokens * a->rank)))
		need(b, FT_STREAM_TP);
}

/* PEFT's policy for FullyShardedDataParallel (peft/utils/other.py, fsdp_auto_wrap_policy, read 2026-11-29) wraps what has a weight that
 * learns and no parts: an adapter's two weights, each gathered in front of its product, which waits, in each pass, and reduced behind
 * its backward. Their bytes are so few that the layer's own unit is not counted without them. */
static bool are_units(const struct builder *b)
{
	return b->rules->adapter_units && is_fsdp(b->plan) && b->plan->shard > 1;
}

static double adapter_bytes(const struct builder *b, int64_t weights)
{
	return (b->plan->lora.fp32 ? 4 : 2) * (double)weights;
}

static void adapter_unit(struct builder *b, int64_t weights, bool backward)
{
	if (!are_units(b))
		return;
	host(b, backward ? FT_HOST_SHARD_BACKWARD : FT_HOST_SHARD_FORWARD, 1);
	if (put_collective(b, "adapter_gather", FT_STREAM_GATHER, FT_ALL_GATHER,
			   FT_GROUP_SHARD, adapter_bytes(b, weights)))
		need(b, FT_STREAM_GATHER);
}

static void adapter_reduced(struct builder *b, int64_t weights)
{
	if (!are_units(b))
		return;
	host(b, FT_HOST_SHARD_BACKWARD, 1);
	put_collective(b, "adapter_reduce", FT_STREAM_REDUCE, FT_REDUCE_SCATTER,
		       FT_GROUP_SHARD, adapter_bytes(b, weights));
}

static void one(struct builder *b, const struct adapter *a, bool backward)
{
	double in = (double)(a->tokens * a->in), out = (double)(a->tokens * a->out);
	bool dropout = b->plan->lora.dropout;
	double casts = b->plan->lora.fp32 ? 12 * in : 0;
	double dropped = !dropout ? 0 : b->plan->lora.fp32 ? 9 * in : 5 * in;

	if (!b->graphed)
		host(b, FT_HOST_ADAPTER, 1);
	if (a->row)
		out /= (double)b->plan->tp;
	if (!backward) {
		put_memory(b, "lora_cast", "cast_autocast", casts, 4);
		put_memory(b, "lora_dropout", "dropout", dropped, 1);
		adapter_unit(b, a->rank * a->in, false);
		down_product(b, a, FT_FORWARD);
		between(b, a, false);
		adapter_unit(b, a->rank * a->out, false);
		up_product(b, a, FT_FORWARD);
		if (b->rules->fusion != FT_FUSION_COMPILED)
			put_memory(b, "lora_scale", "mul", 4 * out, 1);
		put_memory(b, "lora_add", "add", 6 * out, 1);
		return;
	}
	put_memory(b, "lora_scale", "mul", 4 * out, 1);
	adapter_unit(b, a->rank * a->out, true);
	up_product(b, a, FT_DGRAD);
	up_product(b, a, FT_WGRAD);
	adapter_reduced(b, a->rank * a->out);
	between(b, a, true);
	adapter_unit(b, a->rank * a->in, true);
	down_product(b, a, FT_DGRAD);
	down_product(b, a, FT_WGRAD);
	adapter_reduced(b, a->rank * a->in);
	put_memory(b, "lora_dropout", "mul", dropped, 1);
	put_memory(b, "lora_cast", "cast_autocast", casts, 4);
	put_memory(b, "lora_add", "add", 6 * in, 1);
}

void adapters(struct builder *b, const struct layer_sizes *s, enum adapter_site site,
	      bool backward)
{
	for (int t = 0; t < FT_LORA_TARGETS && !s->shared; t++) {
		struct adapter a;

		if (!ft_lora_laid(b->model, &b->plan->lora, s->l - b->model->layer,
				  (enum ft_lora_target)t) ||
		    !at_site(site, (enum ft_lora_target)t))
			continue;
		a = adapter_of(b, s, (enum ft_lora_target)t);
		b->adapting = true;
		one(b, &a, backward);
		b->adapting = false;
	}
}

/* The input of a frozen product is kept for an adapter's gradient alone, once for all of a
 * site, or dropped and masked for each. */
double adapters_saved(const struct builder *b, const struct layer_sizes *s,
		      const double input[SITES])
{
	double sum = 0;

	if (!b->plan->lora.rank)
		return 0;
	for (int site = 0; site < SITES; site++) {
		bool kept = false;

		for (int t = 0; t < FT_LORA_TARGETS; t++) {
			struct adapter a;

			if (!ft_lora_laid(b->model, &b->plan->lora,
					  s->l - b->model->layer,
					  (enum ft_lora_target)t) ||
			    !at_site((enum adapter_site)site, (enum ft_lora_target)t))
				continue;
			a = adapter_of(b, s, (enum ft_lora_target)t);
			sum += 2 * (double)a.rank;
			if (b->plan->lora.dropout)
				sum += 3 * (double)a.in;
			else if (b->plan->lora.fp32)
				sum += 2 * (double)a.in;
			else
				kept = true;
		}
		sum -= kept ? 0 : input[site];
	}
	return sum;
}
