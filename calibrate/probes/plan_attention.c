/*
 * calibrate/probes/plan_attention.c - which attention: the machine's fused one over heads,
 * lengths and batches of known transformers; a few cells in fp8; unfused as a check
 * beside a fused one, and over a small grid where there is none
 */
#include "calibrate/probes/plan.h"

struct heads {
	int64_t q, kv, d;
};

static const int64_t most_scores = INT64_C(1) << 37;

static void put(struct probe_plan *plan, const struct probe_cell *like,
		const struct heads *h, int64_t b, int64_t s, bool causal)
{
	static const char *const passes[] = { "forward", "backward" };
	struct probe_cell c = *like;

	c.kind = PROBE_ATTENTION;
	c.batch = b;
	c.heads = h->q;
	c.kv_heads = h->kv;
	c.head_dim = h->d;
	c.sequence = s;
	c.causal = causal;
	for (int i = 0; i < 2 && b * h->q * s * s <= most_scores; i++) {
		c.pass = passes[i];
		probe_plan_put(plan, &c);
	}
}

static void plan_fused(struct probe_plan *plan, const char *impl)
{
	static const struct heads heads[] = {
		{ 32, 8, 128 },	 { 64, 8, 128 },  { 8, 1, 128 },   { 16, 2, 128 },
		{ 32, 32, 128 }, { 12, 12, 128 }, { 16, 16, 64 },  { 25, 25, 64 },
		{ 64, 8, 64 },	 { 4, 4, 128 },	  { 40, 40, 128 },
	};
	struct probe_cell like = { .dtype = "bf16", .impl = impl };

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		for (int64_t s = 512; s <= 32768; s *= 2)
			for (int64_t b = 1; b <= 4; b *= 4) {
				const struct heads *h = &heads[i];
				bool full = h->q == 32 || h->q == 16;

				if (b > 1 && s > 8192)
					continue;
				put(plan, &like, h, b, s, true);
				if (full && s > 512 && b == 1)
					put(plan, &like, h, b, s, false);
			}
}

/* About 16 Ki tokens each; one sequence alone as well. */
static void plan_fp8(struct probe_plan *plan, const char *impl)
{
	static const struct heads heads[] = { { 32, 8, 128 }, { 64, 8, 128 } };
	struct probe_cell like = { .dtype = "fp8", .impl = impl };

	for (int i = 0; i < 2; i++)
		for (int64_t s = 1024; s <= 16384; s *= 2) {
			put(plan, &like, &heads[i], 16384 / s, s, true);
			put(plan, &like, &heads[i], 1, s, true);
			if (s == 4096)
				put(plan, &like, &heads[i], 4, s, false);
		}
}

static void plan_unfused(struct probe_plan *plan, bool alone)
{
	static const struct heads heads[] = {
		{ 32, 8, 128 },	 { 16, 16, 64 }, { 64, 8, 128 },
		{ 32, 32, 128 }, { 8, 1, 128 },
	};
	struct probe_cell like = { .dtype = "bf16", .impl = "unfused" };

	for (int i = 0; i < (alone ? 5 : 2); i++)
		for (int64_t s = alone ? 512 : 1024; s <= (alone ? 8192 : 4096);
		     s *= alone ? 2 : 4) {
			put(plan, &like, &heads[i], 1, s, true);
			if (!i)
				put(plan, &like, &heads[i], 1, s, false);
			if (s <= 2048)
				put(plan, &like, &heads[i], 4, s, true);
		}
}

void probe_plan_attention(struct probe_plan *plan, enum probe_effort effort,
			  const struct probe_device *device)
{
	struct probe_cell like = { .kind = PROBE_ATTENTION,
				   .dtype = "bf16",
				   .impl = device->fused,
				   .pass = "forward",
				   .batch = 1,
				   .heads = 2,
				   .kv_heads = 2,
				   .head_dim = 32,
				   .causal = true };

	if (effort == PROBE_QUICK) {
		for (like.sequence = 32; like.sequence <= 128; like.sequence *= 2)
			probe_plan_put(plan, &like);
		return;
	}
	if (device->fused[0])
		plan_fused(plan, device->fused);
	if (device->fused_fp8)
		plan_fp8(plan, device->fused);
	plan_unfused(plan, !device->fused[0]);
}
