/*
 * tests/test_recorded_marks.c - what marks of a program say of drawn recordings: steps and where each ends,
 * kernels of the optimizer and of FSDP, transfers that a kernel sends without saying so; each found here in
 * the obvious way; and what is told twice
 */
#include "tests/check.h"
#include "tests/made_recording.h"

enum { DRAWS = 60, MARKS = 8, KERNELS = 12, TURNS = 14 };

static uint64_t seed = 1;

static void annotation(struct made *m, const char *name, int at, int dur)
{
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,"
	    "\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{}},\n",
	    name, at, dur);
}

struct mark {
	const char *name;
	int at, dur;
};

/* Marks of one name, one after another: each begins where the last has ended, or later. */
static size_t draw_marks(struct mark *to, const char *name, int from)
{
	size_t n = (size_t)rnd_below(&seed, 3);

	for (size_t i = 0; i < n; i++) {
		to[i] = (struct mark){ name, from + 1 + rnd_below(&seed, 40),
				       rnd_below(&seed, 60) };
		from = to[i].at + to[i].dur;
	}
	return n;
}

static bool marked(const struct mark *m, size_t n, const char *name, int at)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(m[i].name, name) && m[i].at <= at &&
		    at <= m[i].at + m[i].dur)
			return true;
	return false;
}

/* Kernels and what they are where no mark says more. */
static const struct {
	const char *name;
	enum ft_rec_class is;
} kernels[] = {
	{ "vectorized_elementwise_kernel", FT_REC_MEMORY },
	{ "multi_tensor_apply_kernel", FT_REC_MEMORY },
	{ "sm90_xmma_gemm_bf16", FT_REC_GEMM },
	{ "flash_fwd_kernel", FT_REC_ATTENTION },
	{ "FusedAdamMathFunctor", FT_REC_OPTIMIZER },
	{ "kernel_of_nobody", FT_REC_OTHER },
};

#define UPDATE "Optimizer.step#AdamW.step"
#define GATHER "FSDP::all_gather"
#define COPIED "FSDP::all_gather_copy_out"
#define REDUCE "FSDP::post_backward_reduce"

static void kernels_belong_to_the_marks_that_launch_them(void **state)
{
	static const char *const names[] = { UPDATE, GATHER, COPIED, REDUCE };
	int seen[4] = { 0 };

	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct made m = begin(0);
		struct mark mark[MARKS];
		int at[KERNELS], kind[KERNELS];
		size_t n = 0;
		struct ft_recording *r;

		for (int k = 0; k < 4; k++)
			n += draw_marks(&mark[n], names[k], rnd_below(&seed, 30));
		for (size_t i = n; i-- > 0;) /* in no order */
			annotation(&m, mark[i].name, mark[i].at, mark[i].dur);
		for (int i = 0; i < KERNELS; i++) {
			at[i] = 12 * i + rnd_below(&seed, 12);
			kind[i] = rnd_below(&seed, 6);
			call(&m, "cudaLaunchKernel", i + 1, at[i], 0);
			kernel(&m, kernels[kind[i]].name, i + 1, 7, 300 + i, 1);
		}
		r = end(&m);
		for (size_t i = 0; i < KERNELS; i++) {
			const struct ft_rec_op *op = ft_recording_op(r, i);
			enum ft_rec_class is = kernels[kind[i]].is;
			bool gathers = marked(mark, n, GATHER, at[i]);
			bool updates = marked(mark, n, UPDATE, at[i]);
			bool reduces = marked(mark, n, REDUCE, at[i]);

			seen[0] += is == FT_REC_MEMORY && updates;
			seen[1] += gathers;
			seen[2] += reduces;
			seen[3] += marked(mark, n, COPIED, at[i]) && !gathers;
			if (is == FT_REC_MEMORY && updates)
				is = FT_REC_OPTIMIZER;
			assert_int_equal(op->rec_class, is);
			assert_int_equal(op->in_fsdp, gathers || reduces);
			assert_int_equal(op->on_shard,
					 is == FT_REC_OPTIMIZER ||
						 (is == FT_REC_MEMORY && gathers));
		}
		ft_recording_free(r);
	}
	for (int i = 0; i < 4; i++)
		assert_true(seen[i] > DRAWS / 4);
}

/* ZeroRedundancyOptimizer steps another inside of its own step, and goes on behind it. */
static void an_update_inside_of_another_is_one(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;

	(void)state;
	annotation(&m, UPDATE, 10, 20);
	annotation(&m, "Optimizer.step#ZeroRedundancyOptimizer.step", 10, 80);
	annotation(&m, UPDATE, 40, 10);
	annotation(&m, UPDATE, 100, 10);
	for (int i = 0; i < 6; i++) {
		call(&m, "cudaLaunchKernel", i + 1, 20 * i + 5, 1);
		kernel(&m, "vectorized_elementwise_kernel", i + 1, 7, 300 + i, 1);
	}
	r = end(&m);
	assert_int_equal(ft_recording_updates(r), 2);
	assert_int_equal(ft_recording_update(r, 0)->duration, 80 * 1000000);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(ft_recording_op(r, i)->rec_class,
				 i ? FT_REC_OPTIMIZER : FT_REC_MEMORY);
	ft_recording_free(r);
}

/* Steps that begin at different times, in no order of the file; a step lasts until the next begins. */
static void a_step_ends_where_the_next_begins(void **state)
{
	static const int order[] = { 2, 0, 3, 1 };
	int cut = 0;

	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct made m = begin(0);
		int at[5] = { 0 }, dur[4], overlaps = 0;
		struct ft_recording *r;
		char name[32];

		for (int i = 0; i < 4; i++) {
			at[i + 1] = at[i] + 10 + rnd_below(&seed, 20);
			dur[i] = 5 + rnd_below(&seed, 20);
		}
		for (int i = 0; i < 4; i++) {
			snprintf(name, sizeof(name), "ProfilerStep#%d", 5 + order[i]);
			annotation(&m, name, at[order[i]], dur[order[i]]);
		}
		for (int i = 0; i < 4; i++) {
			call(&m, "cudaLaunchKernel", i + 1, at[i] + 1, 1);
			kernel(&m, "gemm", i + 1, 7, 5 + at[i], 5);
		}
		r = end(&m);
		assert_int_equal(ft_recording_steps(r), 4);
		for (int i = 0; i < 4; i++) {
			const struct ft_rec_step *s = ft_recording_step(r, (size_t)i);
			bool long_one = i < 3 && at[i] + dur[i] > at[i + 1];
			int until = long_one ? at[i + 1] : at[i] + dur[i];

			overlaps += long_one;
			snprintf(name, sizeof(name), "ProfilerStep#%d", 5 + i);
			assert_string_equal(ft_recording_text(r, s->name), name);
			assert_true(s->marked && s->begin == at[i] * 1000000LL);
			assert_int_equal(s->end, until * 1000000LL);
		}
		assert_int_equal(ft_recording_counts(r)->overlapping_steps, overlaps);
		cut += overlaps;
		ft_recording_free(r);
	}
	assert_true(cut > DRAWS / 2);
}

/* A mark in which nothing is launched is no step, wherever it stands; what runs in it was launched before. */
static void a_step_without_operations_is_left_out(void **state)
{
	int left_out = 0, none = 0;

	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct made m = begin(0);
		struct ft_recording *r;
		bool holds[4];
		size_t kept = 0;
		char name[32];

		for (int i = 0; i < 4; i++) {
			holds[i] = rnd_below(&seed, 3) > 0;
			kept += holds[i];
			snprintf(name, sizeof(name), "ProfilerStep#%d", 5 + i);
			annotation(&m, name, 100 + 20 * i, 20);
			if (holds[i])
				call(&m, "cudaLaunchKernel", i + 1, 105 + 20 * i, 1);
			if (holds[i])
				kernel(&m, "gemm", i + 1, 7, 110 + 20 * i, 25);
		}
		kernel(&m, "gemm", 9, 8, 90, 4); /* before the first */
		r = end(&m);
		assert_int_equal(ft_recording_steps(r), kept ? kept : 1);
		assert_int_equal(ft_recording_step(r, 0)->marked, kept > 0);
		none += !kept;
		assert_int_equal(ft_recording_counts(r)->empty_steps, 4 - kept);
		for (int i = 0, s = 0; i < 4; i++) {
			snprintf(name, sizeof(name), "ProfilerStep#%d", 5 + i);
			if (holds[i])
				assert_string_equal(
					ft_recording_text(
						r, ft_recording_step(r, (size_t)s++)
							   ->name),
					name);
		}
		left_out += kept && kept < 4;
		ft_recording_free(r);
	}
	assert_true(left_out > DRAWS / 3 && none);
}

/* ---- transfers -------------------------------------------------------------------- */

struct turn {
	int thread, at;
	bool sends; /* else a kernel is launched that sends what came before */
};

static void put_turn(struct made *m, const struct turn *t, int number)
{
	if (t->sends)
		add(m,
		    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\","
		    "\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":0,\"args\":{\"External id\":"
		    "%d,\"Collective name\":\"send\",\"In msg nelems\":%d,\"Out msg "
		    "nelems\":%d,\"Group size\":2,\"dtype\":\"Float\",\"Process Group "
		    "Name\":\"0\"}},\n",
		    t->thread, t->at, 100 + number, 1000 + number, 1000 + number);
	else
		add(m,
		    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
		    "\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":0,\"args\":{\"correlation\":%d}"
		    "},\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
		    "\"ncclDevKernel_SendRecv\",\"pid\":0,\"tid\":20,\"ts\":%d,\"dur\":1,"
		    "\"args\":{\"stream\":20,\"correlation\":%d}},\n",
		    t->thread, t->at, number + 1, 500 + number, number + 1);
}

/* Was it announced on the kernel's thread, after the kernel before and not after this one? */
static bool sent_by(const struct turn *turn, int send, int kernel)
{
	const struct turn *s = &turn[send], *k = &turn[kernel];

	if (!s->sends || s->thread != k->thread || s->at > k->at)
		return false;
	for (int i = 0; i < TURNS; i++)
		if (!turn[i].sends && turn[i].thread == k->thread &&
		    turn[i].at < k->at && turn[i].at >= s->at)
			return false;
	return true;
}

static void are_told(const struct ft_recording *r, const struct turn *turn,
		     int *several)
{
	size_t n = 0;

	for (int k = 0; k < TURNS; k++) {
		const char *args;
		int told = 0, last = -1;

		if (turn[k].sends)
			continue;
		args = ft_recording_text(r, ft_recording_op(r, n++)->args);
		for (int i = 0; i < TURNS; i++) {
			char said[32];

			snprintf(said, sizeof(said), "\"In msg nelems\":%d,", 1000 + i);
			assert_int_equal(!!strstr(args, said), sent_by(turn, i, k));
			told += sent_by(turn, i, k);
		}
		assert_int_equal(args[0] == '\0', told == 0);
		assert_int_equal(args[0] == '[', told > 1);
		*several += told > 1;
		/* in the order of their times, then of the file */
		for (const char *at = args; (at = strstr(at, "\"In msg nelems\":"));
		     at++) {
			int i = atoi(at + strlen("\"In msg nelems\":")) - 1000;

			assert_true(last < 0 || turn[last].at < turn[i].at ||
				    (turn[last].at == turn[i].at && last < i));
			last = i;
		}
	}
}

/* Two launches of a thread are never at one time; a launch and what it sends may be. */
static void a_kernel_sends_what_its_thread_announced(void **state)
{
	int several = 0;

	(void)state;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct made m = begin(0);
		struct turn turn[TURNS];
		struct ft_recording *r;

		for (int i = 0; i < TURNS; i++)
			turn[i] = (struct turn){ 1 + rnd_below(&seed, 2),
						 rnd_below(&seed, 30),
						 i > 0 && rnd_below(&seed, 3) };
		for (int i = 0; i < TURNS; i++)
			for (int k = 0; k < i; k++)
				if (!turn[i].sends && !turn[k].sends &&
				    turn[i].at == turn[k].at)
					turn[i].sends = true;
		for (int i = 0; i < TURNS; i++)
			put_turn(&m, &turn[i], i);
		r = end(&m);
		are_told(r, turn, &several);
		ft_recording_free(r);
	}
	assert_true(several > DRAWS);
}

/* A graph's kernels have one correlation, and two streams may run the same at once. */
static void what_is_told_twice_counts_once(void **state)
{
	struct made once = begin(0), again = begin(0);
	struct ft_recording *r, *s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct made *m = i ? &again : &once;

		for (int k = 0; k < 1 + i; k++) {
			call(m, "cudaGraphLaunch", 3, 18, 3);
			kernel(m, "gemm", 3, 7, 30, 5);
			kernel(m, "gemm", 3, 8, 30, 5);
			kernel(m, "gemm", 3, 7, 36, 5);
			kernel(m, "norm", 3, 8, 36, 5);
		}
		kernel(m, "gemm", 4, 7, 50, 5);
		kernel(m, "gemm", 5, 7, 50, 5);
	}
	r = end(&once);
	s = end(&again);
	assert_int_equal(ft_recording_counts(r)->twice, 0);
	assert_int_equal(ft_recording_counts(s)->twice, 5);
	assert_int_equal(ft_recording_ops(r), 6);
	assert_int_equal(ft_recording_ops(s), 6);
	assert_int_equal(ft_recording_calls(s), 1);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(ft_recording_op(r, i)->start,
				 ft_recording_op(s, i)->start);
		assert_int_equal(ft_recording_op(r, i)->stream,
				 ft_recording_op(s, i)->stream);
	}
	ft_recording_free(r);
	ft_recording_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_twice_counts_once),
		cmocka_unit_test(an_update_inside_of_another_is_one),
		cmocka_unit_test(kernels_belong_to_the_marks_that_launch_them),
		cmocka_unit_test(a_step_without_operations_is_left_out),
		cmocka_unit_test(a_step_ends_where_the_next_begins),
		cmocka_unit_test(a_kernel_sends_what_its_thread_announced),
	};
	int failed =
		cmocka_run_group_tests_name("marks of recordings", tests, NULL, NULL);

	unlink(made_path());
	return failed;
}
