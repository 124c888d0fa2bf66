/*
 * tests/test_memo.c - what is remembered is what would be predicted: works and collectives that
 * differ in one thing each, asked again and again in any order
 */
#include "base/arena.h"
#include "base/node.h"
#include "sim/collective.h"
#include "tests/ccl.h"

enum { ASKED = 6000 };

static uint64_t seed = 17;

static bool same_prediction(const struct ft_prediction *a,
			    const struct ft_prediction *b)
{
	return a->time_s == b->time_s && a->spread_frac == b->spread_frac &&
	       a->extrapolated == b->extrapolated;
}

/* Two or three values of each field: many are asked for twice, and most differ from some other
 * in one field. Texts are copies, so that they are compared by what they say. */
static void draw_gemm(struct ft_work *w)
{
	w->gemm.layout = (enum ft_layout)rnd_below(&seed, 3);
	w->gemm.m = 4096 << rnd_below(&seed, 2);
	w->gemm.n = 2048 << rnd_below(&seed, 2);
	w->gemm.k = 4096 << rnd_below(&seed, 2);
	w->gemm.groups = 1 + 7 * rnd_below(&seed, 2);
	w->gemm.accumulate = w->gemm.layout == FT_WGRAD && rnd_below(&seed, 2);
	w->gemm.fast = rnd_below(&seed, 2);
}

static void draw_attention(struct ft_work *w, char text[8])
{
	snprintf(text, 8, "%s", rnd_below(&seed, 2) ? "fa2" : "cudnn");
	w->attention.pass = rnd_below(&seed, 2) ? FT_PASS_FORWARD : FT_PASS_BACKWARD;
	w->attention.batch = 1 + rnd_below(&seed, 2);
	w->attention.heads = 32 << rnd_below(&seed, 2);
	w->attention.kv_heads = 8 << rnd_below(&seed, 2);
	w->attention.queries = 2048 << rnd_below(&seed, 2);
	w->attention.keys = 2048 << rnd_below(&seed, 2);
	w->attention.qk_head_dim = 64 << rnd_below(&seed, 2);
	w->attention.v_head_dim = 64 << rnd_below(&seed, 2);
	w->attention.window = 512 * rnd_below(&seed, 2);
	w->attention.causal = rnd_below(&seed, 2);
	w->attention.impl = rnd_below(&seed, 3) ? text : NULL;
}

static void draw_memory(struct ft_work *w, char text[8])
{
	static const char *const kernels[] = { "copy", "rmsnorm", "softmax" };

	snprintf(text, 8, "%s", kernels[rnd_below(&seed, 3)]);
	w->memory.kernel = text;
	w->memory.bytes = 1e6 * (1 + rnd_below(&seed, 12));
	w->memory.row_bytes = 4096 * rnd_below(&seed, 3);
	w->memory.warm = rnd_below(&seed, 2);
	w->memory.low_priority = rnd_below(&seed, 2);
}

static void works_are_remembered_as_they_are(void **state)
{
	struct ft_error err;
	struct ft_gpu *gpu[] = { ft_gpu_load("h100-sxm", NULL, &err),
				 ft_gpu_load("h200", NULL, &err) };
	struct ft_memo *memo = ft_memo_new();

	(void)state;
	ok_or_say(gpu[0] && gpu[1], err);
	for (int i = 0; i < ASKED; i++) {
		char text[8];
		struct ft_work w = { .kind = (enum ft_work_kind)rnd_below(&seed, 3),
				     .name = "w",
				     .dtype = FT_BF16 };
		const struct ft_gpu *of = gpu[rnd_below(&seed, 2)];
		enum ft_clock clock = (enum ft_clock)rnd_below(&seed, 2);
		struct ft_prediction want, got;

		if (w.kind == FT_GEMM) {
			w.dtype = rnd_below(&seed, 2) ? FT_BF16 : FT_FP8;
			draw_gemm(&w);
		} else if (w.kind == FT_ATTENTION) {
			draw_attention(&w, text);
		} else {
			draw_memory(&w, text);
		}
		ok_or_say(ft_kernel_predict(of, &w, clock, &want, &err), err);
		ok_or_say(ft_kernel_recall(memo, of, &w, clock, &got, &err), err);
		assert_true(same_prediction(&want, &got));
		memset(text, 'x', sizeof(text)); /* what is kept has its own */
	}
	ft_memo_free(memo);
	for (int i = 0; i < 2; i++)
		ft_gpu_free(gpu[i]);
}

static struct ft_cluster *cluster(const char *text)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct ft_cluster *c;

	ok_or_say(n, err);
	c = ft_cluster_load(n, &err);
	ok_or_say(c, err);
	arena_release(&mem);
	return c;
}

static void draw_call(struct ft_collective_call *c)
{
	/* of six neighbours those from rank 0 on are in one node, the next ones in two */
	static const int64_t members[] = { 6, 8, 16, 24 };

	*c = call_of((enum ft_collective)rnd_below(&seed, 4),
		     65536. * (1 + rnd_below(&seed, 20)), members[rnd_below(&seed, 4)],
		     1 + 7 * rnd_below(&seed, 2));
	c->shape.tiles = rnd_below(&seed, 2);
	if (c->op == FT_ALL_TO_ALL)
		c->fanout.copies = 8 * rnd_below(&seed, 2);
	if (c->fanout.copies > 0 && rnd_below(&seed, 3)) {
		c->fanout.groups = 2 + rnd_below(&seed, 2);
		c->fanout.of = 4 << rnd_below(&seed, 2);
	}
	if (rnd_below(&seed, 6) == 0)
		c->algorithm = "ring";
}

static void collectives_are_remembered_as_they_are(void **state)
{
	struct ft_cluster *of[] = {
		cluster("{gpu: h100-sxm, gpus: 256, fabric: ib-ndr-rail}"),
		cluster("{gpu: h100-sxm, gpus: 256, fabric: roce-400-rail}")
	};
	struct ft_ccl *ccl[] = { ccl_named("nccl-2.30"), ccl_named("nccl-2.20") };
	struct ft_memo *memo = ft_memo_new();
	int told = 0;

	(void)state;
	for (int i = 0; i < ASKED; i++) {
		const struct ft_cluster *c = of[rnd_below(&seed, 2)];
		const struct ft_ccl *by = ccl[rnd_below(&seed, 2)];
		struct ft_collective_call call;
		struct ft_collective_result want, got;
		struct ft_error err;
		bool ok;

		draw_call(&call);
		ok = collective_at(c, by, &call, 1, &want, &err);
		assert_int_equal(ok, collective_recall(memo, c, by, &call, &got, &err));
		if (!ok)
			continue;
		told++;
		assert_true(same_prediction(&want.duration, &got.duration));
		assert_string_equal(want.algorithm, got.algorithm);
		assert_string_equal(want.protocol, got.protocol);
		assert_true(want.nic_bytes == got.nic_bytes &&
			    want.regret_frac == got.regret_frac);
	}
	assert_true(told > ASKED / 2);
	ft_memo_free(memo);
	for (int i = 0; i < 2; i++) {
		ft_cluster_free(of[i]);
		ft_ccl_free(ccl[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(works_are_remembered_as_they_are),
		cmocka_unit_test(collectives_are_remembered_as_they_are),
	};

	return cmocka_run_group_tests_name("memo", tests, NULL, NULL);
}
