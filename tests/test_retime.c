/*
 * tests/test_retime.c - recorded kernels on another GPU
 *
 * The obvious one beside each: a product's ratio is that of the two predictions of its
 * shape; a stand-in is looked for again by halving.
 */
#include <math.h>

#include "base/arena.h"
#include "foretoken/hw.h"
#include "foretoken/recorded.h"
#include "foretoken/sim.h"
#include "tests/check.h"

static const char shapes[] =
	"measurements/traces/h100-8b4L-fsdp2-s4096-b1-eager-shapes.rank0.kineto.json.gz";

struct setting {
	struct ft_gpu *h100, *h200;
	struct ft_recording *r;
	struct ft_retiming *up;
};

static struct ft_gpu *gpu(const char *name)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load(name, NULL, &err);

	ok_or_say(g, err);
	return g;
}

static struct setting begin(void)
{
	struct setting s = { gpu("h100-sxm"), gpu("h200"), NULL, NULL };
	struct ft_error err;

	s.r = ft_recording_read(shapes, &err);
	ok_or_say(s.r, err);
	s.up = ft_retiming_new(s.h100, s.h200);
	return s;
}

static void end(struct setting *s)
{
	ft_retiming_free(s->up);
	ft_recording_free(s->r);
	ft_gpu_free(s->h100);
	ft_gpu_free(s->h200);
}

static double predicted_s(const struct ft_gpu *g, const struct ft_work *w)
{
	struct ft_prediction p;
	struct ft_error err;

	ok_or_say(ft_kernel_predict(g, w, FT_CLOCK_SUSTAINED, &p, &err), err);
	return p.time_s;
}

static void products_and_attention_go_by_their_shapes(void **state)
{
	struct setting s = begin();
	size_t products = 0, attentions = 0;

	(void)state;
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s.r, i);
		const struct ft_rec_work *w = ft_recording_work(s.r, op);
		struct ft_work work;
		double ratio, spread;

		if (op->is_copy || !w ||
		    !((op->rec_class == FT_REC_GEMM && w->work.kind == FT_GEMM) ||
		      (op->rec_class == FT_REC_ATTENTION &&
		       w->work.kind == FT_ATTENTION)))
			continue;
		assert_int_equal(ft_retime(s.up, s.r, op, NULL, &ratio, &spread),
				 FT_RETIMED_BY_WORK);
		work = w->work;
		if (work.kind == FT_ATTENTION)
			work.attention.impl = NULL;
		near_frac(ratio,
			  predicted_s(s.h200, &work) / predicted_s(s.h100, &work),
			  1e-12);
		assert_true(spread > 0);
		products += work.kind == FT_GEMM;
		attentions += work.kind == FT_ATTENTION;
	}
	assert_true(products > 80 && attentions > 8);
	end(&s);
}

/* Llama's layers are told by shapes: each product's layout, and their sum. */
static void shapes_are_those_of_the_model(void **state)
{
	struct setting s = begin();
	int64_t gate[FT_LAYOUTS] = { 0 };

	(void)state;
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s.r, i);
		const struct ft_rec_work *w = ft_recording_work(s.r, op);

		if (w && op->rec_class == FT_REC_GEMM && w->work.kind == FT_GEMM &&
		    w->work.gemm.m == 4096 && w->work.gemm.n == 14336 &&
		    w->work.gemm.k == 4096)
			gate[w->work.gemm.layout]++;
	}
	for (int l = 0; l < FT_LAYOUTS; l++) /* gate and up of four layers */
		assert_int_equal(gate[l], 8);
	end(&s);
}

/* The bytes that an H100 is predicted to take so long for, by halving. */
static double bytes_for(const struct ft_gpu *g, const char *curve, double time_s)
{
	double low = 1, high = 1e13;

	for (int i = 0; i < 200; i++) {
		double middle = (low + high) / 2;
		struct ft_work w = { .kind = FT_MEMORY_BOUND,
				     .memory = { .kernel = curve, .bytes = middle } };

		if (predicted_s(g, &w) < time_s)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void stand_ins_take_as_long_as_the_kernel(void **state)
{
	struct setting s = begin();
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s.r, i);
		double time_s = (double)op->duration * 1e-12, ratio, spread;
		struct ft_work w = { .kind = FT_MEMORY_BOUND };

		if (op->rec_class != FT_REC_OPTIMIZER || op->is_copy || time_s < 1e-4)
			continue;
		assert_int_equal(ft_retime(s.up, s.r, op, NULL, &ratio, &spread),
				 FT_RETIMED_BY_STAND_IN);
		w.memory.kernel = "adamw";
		w.memory.bytes = bytes_for(s.h100, "adamw", time_s);
		near_frac(ratio, predicted_s(s.h200, &w) / predicted_s(s.h100, &w),
			  0.02);
		n++;
	}
	assert_true(n > 20);
	end(&s);
}

/* Half the features that come out: the ratio of the two products' predictions. */
static void a_part_of_a_product_goes_by_its_shape(void **state)
{
	static const struct ft_rec_left half = { 1, 0.5, 1, 0.5 };
	struct setting s = begin();
	size_t products = 0, attentions = 0;

	(void)state;
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s.r, i);
		const struct ft_rec_work *w = ft_recording_work(s.r, op);
		bool product =
			op->rec_class == FT_REC_GEMM && w && w->work.kind == FT_GEMM;
		struct ft_work all, part;
		double ratio, spread;

		if (!product && !(op->rec_class == FT_REC_ATTENTION && w &&
				  w->work.kind == FT_ATTENTION))
			continue;
		all = w->work;
		if (!product)
			all.attention.impl = NULL;
		part = all;
		if (product) {
			part.gemm.n /= 2;
		} else {
			part.attention.heads /= 2;
			part.attention.kv_heads /= 2;
		}
		assert_int_equal(ft_retime(s.up, s.r, op, &half, &ratio, &spread),
				 FT_RETIMED_BY_WORK);
		near_frac(ratio, predicted_s(s.h200, &part) / predicted_s(s.h100, &all),
			  1e-12);
		products += product;
		attentions += !product;
	}
	assert_true(products > 80 && attentions > 8);
	end(&s);
}

/* Of one shape: a cube, whose edges grow by a fifth of an octave. */
static struct ft_work cube(int rung)
{
	int64_t side = llround(128 * pow(2, rung / 5.) / 64) * 64;

	return (struct ft_work){ .kind = FT_GEMM,
				 .dtype = FT_BF16,
				 .gemm = { .layout = FT_FORWARD,
					   .m = side,
					   .n = side,
					   .k = side,
					   .groups = 1 } };
}

/* A product of unknown shape is divided as the cube is that takes most nearly as long. */
static void a_part_of_an_unknown_product_goes_by_a_cube(void **state)
{
	static const char unknown[] =
		"measurements/traces/"
		"h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz";
	static const struct ft_rec_left half = { 1, 0.5, 1, 0.5 };
	struct setting s = begin();
	struct ft_error err;
	size_t n = 0;

	(void)state;
	ft_recording_free(s.r);
	s.r = ft_recording_read(unknown, &err);
	ok_or_say(s.r, err);
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		const struct ft_rec_op *op = ft_recording_op(s.r, i);
		double time_s = (double)op->duration * 1e-12, all, left, spread;
		double nearest = INFINITY;
		struct ft_work w = { .kind = FT_GEMM }, part;

		if (op->rec_class != FT_REC_GEMM || ft_recording_work(s.r, op))
			continue;
		for (int rung = 0; rung < 40; rung++) {
			struct ft_work c = cube(rung);
			double off = fabs(log(predicted_s(s.h100, &c) / time_s));

			if (off < nearest) {
				nearest = off;
				w = c;
			}
		}
		part = w;
		part.gemm.n /= 2;
		assert_int_equal(ft_retime(s.up, s.r, op, NULL, &all, &spread),
				 FT_RETIMED_BY_STAND_IN);
		assert_int_equal(ft_retime(s.up, s.r, op, &half, &left, &spread),
				 FT_RETIMED_BY_STAND_IN);
		near_frac(left / all,
			  predicted_s(s.h200, &part) / predicted_s(s.h200, &w), 1e-9);
		n++;
	}
	assert_true(n > 80);
	end(&s);
}

/*
 * One program on both GPUs, kernel by kernel: what is bound by memory goes by its bandwidth, and what walks
 * strides or odd rows by the die, which is the same. Kernels of 0.2 ms and more; updates of weights, whose
 * speed goes with their size, apart.
 */
static void kernels_go_as_the_other_gpu_recorded(void **state)
{
	static const char *const names[] = { "gpt-oss-20b-2L-s4096-b1",
					     "qwen3-30b-a3b-4L-s4096-b1",
					     "llama3-8b-4L-s4096-b2" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct arena mem = { 0 };
		struct setting s = begin();
		struct ft_error err;
		struct ft_recording *r[2];
		double seen = 0, near = 0;

		for (int g = 0; g < 2; g++) {
			r[g] = ft_recording_read(
				arena_printf(&mem,
					     "measurements/traces/%s-transformers-%s-"
					     "eager.rank0.kineto.json.gz",
					     g ? "h200" : "h100", names[i]),
				&err);
			ok_or_say(r[g], err);
		}
		assert_int_equal(ft_recording_ops(r[0]), ft_recording_ops(r[1]));
		for (size_t k = 0; k < ft_recording_ops(r[0]); k++) {
			const struct ft_rec_op *a = ft_recording_op(r[0], k),
					       *b = ft_recording_op(r[1], k);
			double ratio, spread;

			if (a->rec_class != FT_REC_MEMORY ||
			    a->duration < 200 * 1000000 ||
			    strcmp(ft_recording_text(r[0], a->name),
				   ft_recording_text(r[1], b->name)) != 0)
				continue;
			ft_retime(s.up, r[0], a, NULL, &ratio, &spread);
			seen++;
			near += fabs(ratio / ((double)b->duration /
					      (double)a->duration) -
				     1) < 0.09;
		}
		print_message("# %s: %g kernels, %g near\n", names[i], seen, near);
		assert_true(seen > 20 && near > 0.9 * seen);
		ft_recording_free(r[0]);
		ft_recording_free(r[1]);
		end(&s);
		arena_release(&mem);
	}
}

static void one_gpu_is_as_fast_as_itself(void **state)
{
	struct setting s = begin();
	struct ft_retiming *same = ft_retiming_new(s.h100, s.h100);

	(void)state;
	for (size_t i = 0; i < ft_recording_ops(s.r); i++) {
		double ratio, spread;

		ft_retime(same, s.r, ft_recording_op(s.r, i), NULL, &ratio, &spread);
		near_frac(ratio, 1, 1e-12);
		assert_true(spread <= 0);
	}
	ft_retiming_free(same);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_and_attention_go_by_their_shapes),
		cmocka_unit_test(shapes_are_those_of_the_model),
		cmocka_unit_test(stand_ins_take_as_long_as_the_kernel),
		cmocka_unit_test(a_part_of_a_product_goes_by_its_shape),
		cmocka_unit_test(a_part_of_an_unknown_product_goes_by_a_cube),
		cmocka_unit_test(kernels_go_as_the_other_gpu_recorded),
		cmocka_unit_test(one_gpu_is_as_fast_as_itself),
	};

	return cmocka_run_group_tests_name("retime", tests, NULL, NULL);
}
