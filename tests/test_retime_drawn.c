/*
 * tests/test_retime_drawn.c - kernels without shapes, of drawn times, on other GPUs: their stand-ins
 * are looked for here rung by rung, with each rung predicted anew
 */
#include <math.h>

#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "tests/made_recording.h"

enum { RUNGS = 48, KERNELS = 34 };

static uint64_t seed = 7;

/* From 0 to 1. */
static double part_of_one(void)
{
	return rnd(&seed) / 2147483648.0;
}

/* What a kernel of that name is held to be: of a curve, of products, or of attention. */
static const struct like {
	const char *name, *curve;
	enum ft_rec_class is;
	enum ft_dtype dtype;
	bool back;
} likes[] = {
	{ "FusedAdamMathFunctor", "adamw", FT_REC_OPTIMIZER, FT_BF16, false },
	{ "at::native::chunk_cat_cuda_kernel", "multi_copy", FT_REC_MEMORY, FT_BF16,
	  false },
	{ "at::native::split_with_sizes_copy_out", "multi_copy", FT_REC_MEMORY, FT_BF16,
	  false },
	{ "at::native::CatArrayBatchedCopy_vectorized", "concat", FT_REC_MEMORY,
	  FT_BF16, false },
	{ "at::native::CatArrayBatchedCopy<int>", "strided", FT_REC_MEMORY, FT_BF16,
	  false },
	{ "at::native::elementwise_kernel<128, 4, CUDAFunctor_add>", "strided",
	  FT_REC_MEMORY, FT_BF16, false },
	{ "at::native::unrolled_elementwise_kernel<MulFunctor>", "strided",
	  FT_REC_MEMORY, FT_BF16, false },
	{ "at::native::vectorized_elementwise_kernel<8, FillFunctor<c10::BFloat16>>",
	  "strided", FT_REC_MEMORY, FT_BF16, false },
	{ "at::native::vectorized_elementwise_kernel<8, CUDAFunctor_add>", "add",
	  FT_REC_MEMORY, FT_BF16, false },
	{ "at::native::cunn_SoftMaxForwardReg", "softmax", FT_REC_MEMORY, FT_BF16,
	  false },
	{ "cunn_SoftMaxForward", "cross_entropy", FT_REC_MEMORY, FT_BF16, false },
	{ "softmax_warp_forward", "softmax", FT_REC_MEMORY, FT_BF16, false },
	{ "triton_red_fused_silu_0", "silu", FT_REC_MEMORY, FT_BF16, false },
	{ "triton_poi_fused_gelu_0", "gelu", FT_REC_MEMORY, FT_BF16, false },
	{ "vectorized_layer_norm_kernel", "layernorm", FT_REC_MEMORY, FT_BF16, false },
	{ "elementwise_CUDAFunctor_add", "add", FT_REC_MEMORY, FT_BF16, false },
	{ "elementwise_MulFunctor", "mul", FT_REC_MEMORY, FT_BF16, false },
	{ "elementwise_FillFunctor", "copy", FT_REC_MEMORY, FT_BF16, false },
	{ "triton_poi_fused_7", "default", FT_REC_MEMORY, FT_BF16, false },
	{ "nvjet_hsh_gemm", NULL, FT_REC_GEMM, FT_BF16, false },
	{ "cutlass_gemm_e4m3", NULL, FT_REC_GEMM, FT_FP8, false },
	{ "flash_fwd_kernel", NULL, FT_REC_ATTENTION, FT_BF16, false },
	{ "flash_bwd_kernel", NULL, FT_REC_ATTENTION, FT_BF16, true },
	{ "flash_bwd_dot_do_o_kernel", NULL, FT_REC_ATTENTION, FT_BF16, true },
};

enum { LIKES = sizeof(likes) / sizeof(*likes) };

/* A fifth of an octave a rung from 128 on, in whole 64; of bytes 1.8 rungs an octave from 1024 on. */
static struct ft_work rung(const struct like *l, double number)
{
	int64_t side = 64 * (int64_t)floor(2 * pow(2, number / 5) + 0.5);

	if (l->is == FT_REC_GEMM)
		return (struct ft_work){
			.kind = FT_GEMM,
			.dtype = l->dtype,
			.gemm = { .m = side, .n = side, .k = side, .groups = 1 }
		};
	if (l->is == FT_REC_ATTENTION)
		return (struct ft_work){ .kind = FT_ATTENTION,
					 .dtype = l->dtype,
					 .attention = {
						 .pass = l->back ? FT_PASS_BACKWARD :
								   FT_PASS_FORWARD,
						 .batch = 1,
						 .heads = 32,
						 .kv_heads = 8,
						 .queries = side,
						 .keys = side,
						 .qk_head_dim = 128,
						 .v_head_dim = 128,
						 .causal = true } };
	return (struct ft_work){ .kind = FT_MEMORY_BOUND,
				 .dtype = l->dtype,
				 .memory = { .kernel = l->curve,
					     .bytes = 1024 * pow(2, number / 1.8) } };
}

static double predicted_s(const struct ft_gpu *g, const struct ft_work *w)
{
	struct ft_prediction p;
	struct ft_error err;

	if (!ft_kernel_predict(g, w, FT_CLOCK_SUSTAINED, &p, &err))
		return 0; /* a GPU without that format */
	return p.time_s;
}

/* The number on the ladder of what takes so long: none is shorter than the lowest, none longer
 * than the highest, and in between the logarithm of time is straight. */
static double place_of(const struct ft_gpu *from, const struct like *l, double time_s)
{
	double before, behind = 0;
	struct ft_work w = rung(l, 0);
	int i = 1;

	before = predicted_s(from, &w);
	for (; i < RUNGS; i++) {
		w = rung(l, i);
		behind = predicted_s(from, &w);
		if (time_s <= behind)
			break;
		if (i + 1 < RUNGS)
			before = behind;
	}
	if (time_s <= before)
		return i < RUNGS ? i - 1 : RUNGS - 2;
	if (i == RUNGS)
		return RUNGS - 1;
	return i - 1 + log(time_s / before) / log(behind / before);
}

static double ratio_at(const struct ft_gpu *from, const struct ft_gpu *to,
		       const struct like *l, double place)
{
	int i = (int)fmin(floor(place), RUNGS - 2);
	struct ft_work a = rung(l, i), b = rung(l, i + 1);
	double low = predicted_s(to, &a) / predicted_s(from, &a);
	double high = predicted_s(to, &b) / predicted_s(from, &b);

	return exp(log(low) + (place - i) * (log(high) - log(low)));
}

static int64_t some_of(int64_t n, double frac)
{
	return (int64_t)fmax(1, floor((double)n * frac + 0.5));
}

/* How much of its time a part of the stand-in takes: of a product or of attention that of the
 * nearest rung, of bytes just so many. */
static double of_part(const struct ft_gpu *to, const struct like *l, double place,
		      const struct ft_rec_left *left)
{
	struct ft_work all =
		rung(l, l->curve ? place : fmin(RUNGS - 1, floor(place + 0.5)));
	struct ft_work part = all;

	if (l->is == FT_REC_GEMM) {
		part.gemm.n = some_of(all.gemm.n, left->columns_frac);
		part.gemm.k = some_of(all.gemm.k, left->inner_frac);
	} else if (l->is == FT_REC_ATTENTION) {
		part.attention.heads = some_of(32, left->heads_frac);
		part.attention.kv_heads = some_of(8, left->heads_frac);
	} else {
		part.memory.bytes *= left->bytes_frac;
	}
	return predicted_s(to, &part) / predicted_s(to, &all);
}

static struct ft_gpu *gpu(const char *name)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load(name, NULL, &err);

	ok_or_say(g, err);
	return g;
}

/* One kernel of each name and a few more, from no time at all to most of a second. */
static struct ft_recording *drawn(const struct like **is)
{
	struct made m = begin(0);
	double at = 100;

	for (int i = 0; i < KERNELS; i++) {
		double us = rnd(&seed) % 12 ? exp(log(1e6) * part_of_one()) : 0;

		is[i] = &likes[i < LIKES ? i : rnd_below(&seed, LIKES)];
		call(&m, "cudaLaunchKernel", i + 1, 2 * i, 1);
		kernel(&m, is[i]->name, i + 1, 7, at, us);
		at += us + 1;
	}
	return end(&m);
}

struct counts {
	int kernels, between, not_at_all, parts;
};

static void hold(struct ft_retiming *t, const struct ft_recording *r, size_t k,
		 const struct ft_gpu *const g[2], const struct like *l,
		 struct counts *n)
{
	const struct ft_rec_op *op = ft_recording_op(r, k);
	struct ft_work any = rung(l, 0);
	const struct ft_rec_left left = { .columns_frac = 0.25 + part_of_one() / 2,
					  .inner_frac = 0.25 + part_of_one() / 2,
					  .heads_frac = 0.25 + part_of_one() / 2,
					  .bytes_frac = 0.25 + part_of_one() / 2 };
	bool known = predicted_s(g[0], &any) > 0 && predicted_s(g[1], &any) > 0;
	double place, want, ratio, spread;

	if (op->rec_class != l->is)
		fail_msg("%s is of class %d", l->name, (int)op->rec_class);
	assert_int_equal(ft_retime(t, r, op, NULL, &ratio, &spread),
			 known ? FT_RETIMED_BY_STAND_IN : FT_RETIMED_NOT);
	n->not_at_all += !known;
	if (!known) {
		near_frac(ratio, 1, 1e-12);
		return;
	}
	place = place_of(g[0], l, (double)op->duration * 1e-12);
	want = ratio_at(g[0], g[1], l, place);
	near_frac(ratio, want, 1e-9);
	assert_true(spread >= 0);
	n->kernels++;
	n->between += place > floor(place);
	if (!l->curve && fabs(place - floor(place) - 0.5) < 1e-6)
		return; /* which of two is nearer is a matter of the last digit */
	ft_retime(t, r, op, &left, &ratio, &spread);
	near_frac(ratio, want * of_part(g[1], l, place, &left), 1e-9);
	n->parts++;
}

static void what_has_no_shape_goes_by_its_time_on_a_ladder(void **state)
{
	static const char *const pairs[][2] = { { "h100-sxm", "b200" },
						{ "a100-80g", "h200" },
						{ "b200", "mi300x" },
						{ "mi300x", "h100-sxm" },
						{ "h200", "a100-80g" } };
	struct counts n = { 0, 0, 0, 0 };

	(void)state;
	for (size_t p = 0; p < sizeof(pairs) / sizeof(*pairs); p++) {
		struct ft_gpu *a = gpu(pairs[p][0]), *b = gpu(pairs[p][1]);
		const struct ft_gpu *const g[] = { a, b };
		struct ft_retiming *t = ft_retiming_new(a, b);

		for (int round = 0; round < 3; round++) {
			const struct like *is[KERNELS];
			struct ft_recording *r = drawn(is);

			for (size_t k = 0; k < KERNELS; k++)
				hold(t, r, k, g, is[k], &n);
			ft_recording_free(r);
		}
		ft_retiming_free(t);
		ft_gpu_free(a);
		ft_gpu_free(b);
	}
	assert_true(n.kernels > 350 && n.between > 200 && n.not_at_all > 5);
	assert_true(n.parts > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_shape_goes_by_its_time_on_a_ladder),
	};
	int bad = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return bad;
}
