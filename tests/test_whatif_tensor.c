/*
 * tests/test_whatif_tensor.c - what tensor parallelism of another size leaves of each kernel of a drawn recording:
 * products by the side that is not the model's own features, attention by its heads, memory-bound kernels by their
 * rows or by what is sharded; the rest keeps its time, and is told
 */
#include <math.h>

#include "study/whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 200, KERNELS = 24, TOKENS = 256, HIDDEN = 1024, OTHER = 768 };

static uint64_t seed = 33;

enum kind { PRODUCT, ATTENTION, ADD, OPTIMIZER, GATHERED, COPY, UNKNOWN, KINDS };

struct kernel {
	enum kind kind;
	bool shaped; /* its operator was recorded */
	int tokens;
	int out, in; /* features; of what is added, its rows' length */
	int us;
};

struct drawn {
	struct kernel of[KERNELS];
	int n;
	bool sequence; /* gathers and scatters, else reduces */
	struct made text;
};

static int side(void)
{
	static const int sides[] = { HIDDEN, HIDDEN, OTHER, 512, 2048 };

	return sides[rnd_below(&seed, 5)];
}

static void draw(struct drawn *d)
{
	*d = (struct drawn){ .n = 4 + rnd_below(&seed, KERNELS - 3),
			     .sequence = rnd_below(&seed, 3) == 0 };
	for (int i = 0; i < d->n; i++)
		d->of[i] = (struct kernel){ .kind = (enum kind)rnd_below(&seed, KINDS),
					    .shaped = rnd_below(&seed, 4) > 0,
					    .tokens = rnd_below(&seed, 5) ? TOKENS :
									    2 * TOKENS,
					    .out = side(),
					    .in = side(),
					    .us = 1 + rnd_below(&seed, 90) };
}

/* ---- written --------------------------------------------------------------------------- */

static void put_operator(struct drawn *d, const struct kernel *k, int id)
{
	char dims[160];

	if (k->kind == PRODUCT)
		snprintf(dims, sizeof(dims),
			 "[[%d,%d],[%d,%d]],\"Input Strides\":[[%d,1],[1,%d]]",
			 k->tokens, k->in, k->in, k->out, k->in, k->in);
	else
		snprintf(dims, sizeof(dims),
			 "[[%d,%d],[%d,%d],[]],\"Input Strides\":[[%d,1],[%d,1],[]]",
			 k->tokens, k->out, k->tokens, k->out, k->out, k->out);
	add(&d->text,
	    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":"
	    "%d,\"dur\":8,\"args\":{\"External id\":%d,\"Input Dims\":%s,\"Input type\":["
	    "\"c10::BFloat16\",\"c10::BFloat16\"]}},\n",
	    k->kind == PRODUCT ? "aten::mm" : "aten::add", id * 20, id, dims);
}

static void put_mark(struct drawn *d, const char *name, int id)
{
	add(&d->text,
	    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,\"tid\":"
	    "1,\"ts\":%d,\"dur\":9,\"args\":{}},\n",
	    name, id * 20);
}

static void put_kernel(struct drawn *d, const struct kernel *k, int id)
{
	static const char *const names[] = { "gemm",	    "flash_fwd",
					     "elementwise", "elementwise",
					     "elementwise", "Memcpy DtoD",
					     "something" };
	bool by_operator = k->shaped && (k->kind == PRODUCT || k->kind == ADD);

	if (by_operator)
		put_operator(d, k, id);
	if (k->kind == OPTIMIZER)
		put_mark(d, "Optimizer.step#AdamW.step", id);
	if (k->kind == GATHERED)
		put_mark(d, "FSDP::all_gather (x)", id);
	call(&d->text, "cudaLaunchKernel", id, id * 20 + 2, 3);
	add(&d->text,
	    "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%d,"
	    "\"dur\":%d,\"args\":{\"stream\":7,\"correlation\":%d%s",
	    k->kind == COPY ? "gpu_memcpy" : "kernel", names[k->kind], 5000 + id * 100,
	    k->us, id, by_operator ? "" : "}},\n");
	if (by_operator)
		add(&d->text, ",\"External id\":%d}},\n", id);
}

static void put_collective(struct drawn *d, int id, const char *op, const char *kernel,
			   int in, int out)
{
	call(&d->text, "cudaLaunchKernel", id, id * 20 + 2, 3);
	add(&d->text,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_%s\",\"pid\":0,"
	    "\"tid\":7,\"ts\":%d,\"dur\":9,\"args\":{\"stream\":7,\"correlation\":%d,"
	    "\"Collective name\":\"%s\",\"In msg nelems\":%d,\"Out msg nelems\":%d,"
	    "\"Group size\":2,\"dtype\":\"BFloat16\",\"Process Group Name\":\"1\","
	    "\"Process Group Description\":\"tp\",\"Process Group Ranks\":\"[0, 1]\"}},\n",
	    kernel, 5000 + id * 100, id, op, in, out);
}

static struct ft_recording *record(struct drawn *d)
{
	int whole = TOKENS * HIDDEN;

	add(&d->text, "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],"
		      "\"distributedInfo\":{\"rank\":0,\"world_size\":2},"
		      "\"traceEvents\":[\n");
	for (int i = 0; i < d->n; i++)
		put_kernel(d, &d->of[i], i + 1);
	if (d->sequence) {
		put_collective(d, d->n + 1, "_allgather_base", "AllGather", whole / 2,
			       whole);
		put_collective(d, d->n + 2, "_reduce_scatter_base", "ReduceScatter",
			       whole, whole / 2);
	} else {
		put_collective(d, d->n + 1, "allreduce", "AllReduce", 1000, 1000);
		put_collective(d, d->n + 2, "allreduce", "AllReduce", whole, whole);
	}
	return end(&d->text);
}

/* ---- what is left ------------------------------------------------------------------------- */

/* What products say that the hidden features are, those that have so many on one side; in sum, and
 * how many say anything. */
static int votes(const struct drawn *d, int *voters)
{
	int n = 0;

	*voters = 0;

	for (int i = 0; i < d->n; i++) {
		const struct kernel *k = &d->of[i];
		int hidden = HIDDEN * TOKENS / k->tokens;

		if (k->kind == PRODUCT && k->shaped &&
		    (k->out == hidden) != (k->in == hidden)) {
			n += hidden == HIDDEN ? 1 : -1;
			++*voters;
		}
	}
	return n;
}

static bool told(const struct drawn *d)
{
	int voters;

	return votes(d, &voters) > 0;
}

enum fate { DIVIDED, UNSHAPED, KEPT, WHOLE };

static enum fate expect(const struct drawn *d, const struct kernel *k, double frac,
			struct ft_rec_left *left)
{
	*left = (struct ft_rec_left){ 1, 1, 1, 1 };
	if (k->kind == PRODUCT && !(k->shaped && told(d))) {
		left->columns_frac = frac;
		return UNSHAPED;
	}
	if (k->kind == PRODUCT && (k->out == HIDDEN) == (k->in == HIDDEN))
		return KEPT;
	if (k->kind == PRODUCT && k->out == HIDDEN)
		left->inner_frac = frac;
	else if (k->kind == PRODUCT)
		left->columns_frac = frac;
	else if (k->kind == ATTENTION)
		left->heads_frac = frac;
	else if (k->kind == OPTIMIZER || k->kind == GATHERED)
		left->bytes_frac = frac;
	else if (k->kind == ADD && d->sequence)
		left->bytes_frac = frac;
	else if (k->kind != ADD || !k->shaped || !told(d))
		return KEPT;
	else if (k->out == HIDDEN)
		return WHOLE;
	else
		left->bytes_frac = frac;
	return DIVIDED;
}

static void check(const struct drawn *d, struct whatif *w, const struct ft_recording *r)
{
	double frac = (double)w->answer->tp_recorded / (double)w->answer->tp,
	       kept_s = 0;
	int64_t unshaped = 0, kept = 0;

	for (int i = 0; i < d->n; i++) {
		struct ft_rec_left want, is;
		enum fate fate = expect(d, &d->of[i], frac, &want);

		is = tensor_left(w, r, ft_recording_op(r, (size_t)i));
		if (memcmp(&is, &want, sizeof(is)) != 0)
			fail_msg("kernel %d of kind %d, %d to %d: %g %g %g %g, wanted "
				 "%g %g %g %g",
				 i, d->of[i].kind, d->of[i].in, d->of[i].out,
				 is.bytes_frac, is.columns_frac, is.inner_frac,
				 is.heads_frac, want.bytes_frac, want.columns_frac,
				 want.inner_frac, want.heads_frac);
		unshaped += fate == UNSHAPED;
		kept += fate == KEPT;
		kept_s += fate == KEPT ? d->of[i].us * 1e-6 : 0;
	}
	assert_int_equal(w->tensor.unshaped, unshaped);
	assert_int_equal(w->tensor.kept, kept);
	near_frac(w->tensor.kept_s, kept_s, 1e-12);
}

/* Two sentences: so many without shapes, so many that keep their time. */
static void check_notes(struct whatif *w)
{
	struct ft_whatif *a = w->answer;
	char text[64];
	size_t n = 0;

	a->n_notes = 0;
	tensor_end(w);
	if (w->tensor.unshaped) {
		snprintf(text, sizeof(text), "%lld products without",
			 (long long)w->tensor.unshaped);
		assert_memory_equal(a->note[n++], text, strlen(text));
	}
	if (w->tensor.kept) {
		snprintf(text, sizeof(text), "%lld kernels and copies (%.1f ms",
			 (long long)w->tensor.kept, 1e3 * w->tensor.kept_s);
		assert_memory_equal(a->note[n++], text, strlen(text));
	}
	assert_int_equal(a->n_notes, n);
}

static void each_kernel_is_divided_as_its_kind_is(void **state)
{
	static const int64_t sizes[] = { 1, 4, 8 };
	int wholes = 0, voters;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_whatif answer = { .n_notes = 0 };
		struct ft_whatif_request asked = { .tp = sizes[i % 3] };
		struct whatif w = { .answer = &answer, .asked = &asked };
		struct ft_recording *r;
		struct ft_replay *replay;
		struct ft_error err;
		struct drawn d;

		do
			draw(&d);
		while (votes(&d, &voters) < (voters > 0));
		r = record(&d);
		replay = ft_replay_build(one(r), 1, &err);
		ok_or_say(replay, err);
		asked.replay = replay;
		ok_or_say(groups_find(&w, &err), err);
		tensor_begin(&w);
		assert_true(w.tensor.hidden == (told(&d) ? HIDDEN : 0));
		check(&d, &w, r);
		check_notes(&w);
		wholes += told(&d);
		ft_replay_free(replay);
		ft_recording_free(r);
		arena_release(&w.mem);
	}
	assert_in_range(wholes, DRAWS / 3, DRAWS - 8);
}

/* Of the recorded size nothing is other, and nothing is said. */
static void of_the_recorded_size_all_stays(void **state)
{
	struct ft_whatif answer = { .n_notes = 0 };
	struct ft_whatif_request asked = { .tp = 2 };
	struct whatif w = { .answer = &answer, .asked = &asked };
	struct ft_recording *r;
	struct ft_error err;
	struct drawn d;

	(void)state;
	draw(&d);
	r = record(&d);
	asked.replay = ft_replay_build(one(r), 1, &err);
	ok_or_say(asked.replay, err);
	ok_or_say(groups_find(&w, &err), err);
	tensor_begin(&w);
	assert_true(w.tensor.hidden == 0);
	for (size_t i = 0; i < ft_recording_ops(r); i++) {
		struct ft_rec_left is = tensor_left(&w, r, ft_recording_op(r, i));

		assert_true(is.bytes_frac == 1 && is.columns_frac == 1 &&
			    is.inner_frac == 1 && is.heads_frac == 1);
	}
	assert_int_equal(w.tensor.kept + w.tensor.unshaped, 0);
	ft_replay_free((struct ft_replay *)(uintptr_t)asked.replay);
	ft_recording_free(r);
	arena_release(&w.mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_is_divided_as_its_kind_is),
		cmocka_unit_test(of_the_recorded_size_all_stays),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
