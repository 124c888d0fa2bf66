/* calibrate/probes/plan_gemm.c - which matrix products: the linear layers of known
 * transformers at tp 1 to 8, and a lattice of odd sizes between them */
#include "calibrate/probes/plan.h"

/* Features of linear layers: hidden, heads' width of q, of k and v, and of the
 * feed-forward layer; gated ones have two of those side by side. */
static const struct shape {
	int hidden, q, kv, ffn;
	bool gated;
} shapes[] = {
	{ 4096, 4096, 1024, 14336, true },     /* 8B */
	{ 8192, 8192, 1024, 28672, true },     /* 70B */
	{ 16384, 16384, 1024, 53248, true },   /* 405B */
	{ 1600, 1600, 1600, 6400, false },     /* GPT 1.5B */
	{ 4096, 4096, 4096, 16384, false },    /* GPT 7B */
	{ 5120, 5120, 5120, 20480, false },    /* GPT 13B */
	{ 12288, 12288, 12288, 49152, false }, /* GPT 175B */
	{ 6144, 6144, 1024, 16384, true },     /* 8 experts of 22B */
	{ 2048, 4096, 512, 768, true },	       /* 128 small experts, 30B */
	{ 4096, 8192, 512, 1536, true },       /* 128 experts, 235B */
	{ 7168, 16384, 512, 2048, true },      /* 256 experts, 671B */
};

enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static const int64_t most_flop = INT64_C(30000000000000);

static void put(struct probe_plan *plan, const char *dtype, const char *layout,
		int64_t m, int64_t n, int64_t k, bool accumulate)
{
	struct probe_cell c = { .kind = PROBE_GEMM,
				.dtype = dtype,
				.layout = layout,
				.m = m,
				.n = n,
				.k = k,
				.accumulate = accumulate };

	if (n < 64 || k < 64 || n % 16 || k % 16 || 2 * m * n > most_flop / k)
		return;
	probe_plan_put(plan, &c);
}

/* Every layout and format of one layer at one number of tokens; `turn` picks the
 * rarer ones, so that each weight shape meets all of them at some m. */
static void layer(struct probe_plan *plan, int64_t m, int64_t n, int64_t k, int turn)
{
	put(plan, "bf16", "forward", m, n, k, false);
	if (turn % 3 == 0)
		put(plan, "bf16", "dgrad", m, n, k, false);
	if (turn % 3 == 1)
		put(plan, "bf16", "wgrad", m, n, k, false);
	if (turn % 6 == 2)
		put(plan, "bf16", "wgrad", m, n, k, true);
	if (turn % 2 == 0)
		put(plan, "fp8", "forward", m, n, k, false);
	if (turn % 8 == 3)
		put(plan, "fp8", "dgrad", m, n, k, false);
	if (turn % 8 == 5)
		put(plan, "fp8", "wgrad", m, n, k, true);
	if (turn % 12 == 7)
		put(plan, "fp16", "forward", m, n, k, false);
}

static void transformer(struct probe_plan *plan, const struct shape *s, int tp,
			int64_t m, int *turn)
{
	int64_t ffn = s->gated ? 2 * s->ffn : s->ffn;

	layer(plan, m, (s->q + 2 * s->kv) / tp, s->hidden, (*turn)++);
	layer(plan, m, s->hidden, s->q / tp, (*turn)++);
	layer(plan, m, ffn / tp, s->hidden, (*turn)++);
	layer(plan, m, s->hidden, s->ffn / tp, (*turn)++);
}

static void transformers(struct probe_plan *plan)
{
	static const int64_t tokens[] = { 2048, 4096, 8192, 16384, 32768 };
	int turn = 0;

	for (int i = 0; i < N_SHAPES; i++)
		for (int tp = 1; tp <= 8; tp *= 2)
			for (int j = 0; j < 2; j++) {
				int pick = (2 * i + tp + 3 * j + turn) % 5;

				transformer(plan, &shapes[i], tp, tokens[pick], &turn);
			}
	/* the output layer */
	for (int i = 0; i < 3; i++)
		for (int tp = 1; tp <= 8; tp *= 2)
			layer(plan, tokens[(i + tp) % 4], 128256 / tp, shapes[i].hidden,
			      turn++);
	/* few tokens an expert, or small micro-batches */
	for (int i = 0; i < N_SHAPES; i++)
		transformer(plan, &shapes[i], 1, i % 2 ? 512 : 1024, &turn);
}

/* Sizes that no model has, spread over the whole range by a golden-ratio walk
 * in the logarithms. */
static void odd_sizes(struct probe_plan *plan, int count)
{
	double x = 0.5, y = 0.5, z = 0.5;

	for (int i = 0; i < count; i++) {
		int64_t m = 128, n = 256, k = 256;

		x += 0.8191725134, y += 0.6710436067, z += 0.5497004779;
		x -= (int)x, y -= (int)y, z -= (int)z;
		for (double u = x * 7; u > 0; u -= 0.25)
			m = m * 119 / 100 + 1;
		for (double u = y * 6.5; u > 0; u -= 0.25)
			n = n * 119 / 100 + 1;
		for (double u = z * 6; u > 0; u -= 0.25)
			k = k * 119 / 100 + 1;
		layer(plan, m, n / 16 * 16, k / 16 * 16, i);
	}
}

void probe_plan_gemm(struct probe_plan *plan, enum probe_effort effort)
{
	static const int64_t sustained[][3] = {
		{ 8192, 8192, 8192 },
		{ 8192, 28672, 8192 },
	};

	if (effort == PROBE_QUICK) {
		for (int64_t m = 32; m <= 256; m *= 2)
			for (int64_t n = 64; n <= 256; n *= 2)
				for (int64_t k = 64; k <= 256; k *= 2)
					put(plan, "fp32", "forward", m, n, k, false);
		return;
	}
	transformers(plan);
	odd_sizes(plan, 96);
	for (int i = 0; i < 2; i++)
		for (int d = 0; d < 2; d++) {
			struct probe_cell c = {
				.kind = PROBE_GEMM,
				.layout = "forward",
				.dtype = d ? "fp8" : "bf16",
				.m = sustained[i][0],
				.n = sustained[i][1],
				.k = sustained[i][2],
				.sustained = true,
			};

			probe_plan_put(plan, &c);
			c.sustained = false; /* the burst it is held against */
			probe_plan_put(plan, &c);
		}
}
