/* tests/drawn.h - scenarios drawn at random, and what must hold of any answer by itself */
#ifndef TESTS_DRAWN_H
#define TESTS_DRAWN_H

#include <math.h>

#include "base/arena.h"
#include "foretoken/study.h"
#include "tests/check.h"

static const struct kind {
	const char *gpu, *better;
	const char *fabric[4], *stack[6];
} kinds[] = {
#define NVIDIA_STACKS \
	{ \
		"nemo-24.11", "megatron-bridge-26", "torch-2.11-compile", \
			"torch-2.11-eager", "maxtext-2025", "nemo-25.02" \
	}
#define NEW_STACKS \
	{ \
		"megatron-bridge-26", "torch-2.11-compile", "torch-2.11-eager", \
			"maxtext-2025", "nemo-25.02", "megatron-bridge-26" \
	}
#define AMD_STACKS \
	{ \
		"primus-megatron-rocm7", "torch-2.11-compile", "torch-2.11-eager", \
			"maxtext-2025", "primus-megatron-rocm7", "torch-2.11-compile" \
	}
	{ "h100-sxm",
	  "h200",
	  { "ib-ndr-rail", "ib-ndr-rail-sharp", "roce-400-rail", "roce-400-tor" },
	  NVIDIA_STACKS },
	{ "h200",
	  NULL,
	  { "ib-ndr-rail", "spectrum-x-400-rail", "efa-400-rail", "roce-400-rail" },
	  NVIDIA_STACKS },
	{ "a100-80g",
	  NULL,
	  { "ib-hdr-rail", "ib-ndr-rail", "roce-400-rail", "ib-hdr-rail" },
	  NVIDIA_STACKS },
	{ "b200",
	  "b300",
	  { "ib-ndr-rail", "ib-xdr-rail", "roce-400-rail", "spectrum-x-400-rail" },
	  NEW_STACKS },
	{ "b300",
	  NULL,
	  { "ib-ndr-rail", "ib-xdr-rail", "roce-400-rail", "spectrum-x-400-rail" },
	  NEW_STACKS },
	{ "gb200",
	  "gb300",
	  { "ib-ndr-rail", "ib-xdr-rail", "roce-400-rail", "ib-xdr-rail" },
	  NEW_STACKS },
	{ "gb300",
	  NULL,
	  { "ib-ndr-rail", "ib-xdr-rail", "roce-400-rail", "ib-xdr-rail" },
	  NEW_STACKS },
	{ "mi300x",
	  "mi325x",
	  { "roce-400-rail", "roce-400-tor", "ib-ndr-rail", "roce-400-rail" },
	  AMD_STACKS },
	{ "mi325x",
	  NULL,
	  { "roce-400-rail", "roce-400-tor", "ib-ndr-rail", "roce-400-rail" },
	  AMD_STACKS },
	{ "mi355x",
	  NULL,
	  { "roce-400-rail", "roce-400-tor", "ib-xdr-rail", "roce-400-rail" },
	  AMD_STACKS },
};

static const char *const models[] = {
	"llama3-8b",	"llama3-70b",	 "llama2-7b",	    "llama3.1-405b",
	"mistral-7b",	"qwen2.5-7b",	 "mpt-7b",	    "mpt-30b",
	"gpt3-175b",	"mixtral-8x7b",	 "mixtral-8x22b",   "gpt-oss-20b",
	"gpt-oss-120b", "qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v2",
	"deepseek-v3",	"gpt-1.5b",
};

static const int64_t sizes[] = { 4,   8,   16,	32,  48,  64,	72,  96,
				 128, 192, 256, 512, 576, 1024, 1152 };

#define PICK(seed, list) (list)[rnd(seed) % (sizeof(list) / sizeof(*(list)))]

static inline int64_t power(uint64_t *seed, int most)
{
	return INT64_C(1) << rnd(seed) % (uint32_t)(most + 1);
}

/* 1 twice as often as all else. */
static inline int64_t some(uint64_t *seed, int most)
{
	return rnd(seed) % 2 ? 1 : power(seed, most);
}

struct machine {
	const struct kind *kind;
	const char *fabric;
	int64_t gpus;
};

static inline const char *draw(struct arena *mem, uint64_t *seed,
			       const struct machine *m)
{
	static const char *const shardings[] = { "ddp", "zero1", "zero2", "fsdp",
						 "hsdp" };
	static const char *const precisions[] = { "bf16", "bf16", "fp8" };
	static const char *const recomputes[] = { "none", "selective", "full" };
	int64_t tp = some(seed, 3), pp = some(seed, 3),
		cp = rnd(seed) % 4 ? 1 : power(seed, 2);
	int64_t vpp = pp > 1 ? some(seed, 2) : 1, ep = some(seed, 4),
		mb = some(seed, 2);
	int64_t dp = m->gpus / (tp * pp * cp);
	int64_t batch = (dp < 1 ? 1 : dp) * mb * pp * some(seed, 3);

	return arena_printf(
		mem,
		"{model: %s, cluster: {gpu: %s, gpus: %lld, fabric: %s}, stack: %s, "
		"training: {sequence_length: %d, global_batch_size: %lld, "
		"micro_batch_size: %lld, precision: %s, parallel: {tp: %lld, pp: %lld, "
		"vpp: %lld, cp: %lld, ep: %lld}, sharding: %s, recompute: %s}}",
		PICK(seed, models), m->kind->gpu, (long long)m->gpus, m->fabric,
		PICK(seed, m->kind->stack), 1024 << rnd(seed) % 6, (long long)batch,
		(long long)mb, PICK(seed, precisions), (long long)tp, (long long)pp,
		(long long)vpp, (long long)cp, (long long)ep, PICK(seed, shardings),
		PICK(seed, recomputes));
}

/* What cannot be of any answer; NULL: nothing. */
static inline bool within(double low, double x, double high)
{
	return isfinite(x) && low <= x && x <= high;
}

/* faster: a stack whose products are faster than the profile's may be so above the roofline, too. */
static inline const char *wrong_with(const struct ft_outcome *o, double faster)
{
	const struct ft_breakdown *b = &o->breakdown;
	double sum = b->compute_s + b->exposed_communication_s + b->bubble_s +
		     b->host_s + b->optimizer_s;
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		double x = ft_outcome_at(o, f[i].value);

		if (!within(0, x, INFINITY))
			return f[i].key;
		if (f[i].high &&
		    !within(ft_outcome_at(o, f[i].low), x, ft_outcome_at(o, f[i].high)))
			return "an interval";
	}
	if (fabs(sum - o->step_s) > 1e-9 * o->step_s)
		return "the parts' sum";
	for (size_t i = 0; i < o->run->n_shares;
	     i++) { /* caches may be faster than memory */
		const struct ft_share *s = &o->run->share[i];

		if (s->kind != FT_MEMORY_BOUND &&
		    s->roofline_s * fmin(1, faster) > s->time_s)
			return "an item above the roofline";
		if (s->kind == FT_GEMM && !(s->roofline_s > 0 && s->flop > 0))
			return "a product without a roofline";
	}
	if (!(o->step_s > 0 && o->step_low_s > 0 && o->cost.usd_per_million_tokens > 0))
		return "a step or cost of nothing";
	return o->mfu > 0 && o->mfu <= o->hfu && o->hfu < 1 ? NULL : "mfu or hfu";
}

#endif
