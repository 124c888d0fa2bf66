/*
 * tests/test_whatif_groups.c - which groups of a recorded step are data-parallel, which tensor-parallel, and how
 * many ranks there are: drawn recordings, whose groups are known, against what is made of them
 */
#include <math.h>

#include "study/whatif.h"
#include "tests/made_recording.h"

enum { DRAWS = 400, GROUPS = 6 };

static uint64_t seed = 21;

struct known {
	const char *about;
	int size, stride;
	int gathers, scatters, reduces, broadcasts, exchanges;
	double elements; /* of its largest message */
	bool dp_word, tp_word, expert_word;
	bool by_fsdp; /* some of its collectives are marked */
	int fsdp;     /* so many are */
};

struct drawn {
	struct known of[GROUPS];
	int n, world; /* 0: not told */
	struct made text;
	int calls;
};

static struct known *more(struct drawn *d, const char *about, int size, int stride)
{
	struct known *g = &d->of[d->n++];

	assert_true(d->n <= GROUPS);
	*g = (struct known){ .about = about, .size = size, .stride = stride };
	return g;
}

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static void draw_groups(struct drawn *d)
{
	static const char *const dp_words[] = {
		"dp",	      "DP_GROUP",     "data", "DATA_PARALLEL", "mesh_dp_shard",
		"dp_replica", "DataParallel", "fsdp"
	};
	static const char *const tp_words[] = { "tp", "tensor", "TENSOR_MODEL_PARALLEL",
						"mesh_tp_data" };
	static const char *const edp_words[] = { "expert_data", "EXPERT_DATA_PARALLEL",
						 "expt_dp", "edp" };
	int tp = 1 << rnd_below(&seed, 3), dp = 2 << rnd_below(&seed, 3);
	struct known *g;

	*d = (struct drawn){ .n = 0 };
	g = more(d, "default", dp, tp);
	g->by_fsdp = rnd_below(&seed, 3) == 0;
	if (rnd_below(&seed, 2)) {
		g->dp_word = true;
		g->about = PICK(dp_words);
	}
	if (tp > 1) {
		g = more(d, "default_1", tp, 1);
		if (rnd_below(&seed, 2)) {
			g->tp_word = true;
			g->about = PICK(tp_words);
		}
	}
	if (rnd_below(&seed, 3) == 0) {
		g = more(d, PICK(edp_words), 2 + rnd_below(&seed, 3), 2 * tp);
		g->expert_word = true;
	}
	if (rnd_below(&seed, 4) == 0) /* another one whose use must tell */
		more(d, "pipeline", 2 << rnd_below(&seed, 2),
		     tp << rnd_below(&seed, 2));
	d->world = rnd_below(&seed, 2) ? tp * dp * (1 + rnd_below(&seed, 2)) : 0;
}

static void collective(struct drawn *d, struct known *g, const char *op,
		       const char *kernel_name)
{
	static const char *const dtypes[] = { "BFloat16", "Float" };
	int n = ++d->calls, part = 8 + rnd_below(&seed, 4000);
	bool gathers = !strcmp(op, "_allgather_base");
	bool scatters = !strcmp(op, "_reduce_scatter_base");
	int whole = part * g->size;

	if (g->by_fsdp && rnd_below(&seed, 2)) {
		g->fsdp += strcmp(op, "all_to_all") != 0;
		add(&d->text,
		    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":"
		    "1,\"tid\":1,\"ts\":%d,\"dur\":8,\"args\":{}},\n",
		    n % 2 ? "FSDP::all_gather (x)" : "FSDP::post_backward_reduce",
		    n * 20);
	}
	call(&d->text, "cudaLaunchKernel", n, n * 20 + 2, 3);
	add(&d->text,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":"
	    "%d,\"dur\":9,\"args\":{\"stream\":7,\"correlation\":%d,\"Collective name\":"
	    "\"%s\",\"In msg nelems\":%d,\"Out msg nelems\":%d,\"Group size\":%d,\"dtype\":"
	    "\"%s\",\"Process Group Name\":\"%d\",\"Process Group Description\":\"%s\","
	    "\"Process Group Ranks\":\"[",
	    kernel_name, 1000 + n * 10, n, op, gathers ? part : whole,
	    scatters ? part : whole, g->size, PICK(dtypes), (int)(g - d->of), g->about);
	for (int i = 0; i < g->size; i++)
		add(&d->text, i ? ", %d" : "%d", i * g->stride);
	add(&d->text, "]\"}},\n");
	if (strcmp(op, "all_to_all") != 0)
		g->elements = fmax(g->elements, whole);
}

/* In an order that is drawn; at least one collective of each group counts. */
static void run_one(struct drawn *d, struct known *g, int which)
{
	switch (which) {
	case 0:
		g->reduces++;
		collective(d, g, "allreduce", "ncclDevKernel_AllReduce");
		break;
	case 1:
		g->broadcasts++;
		collective(d, g, "broadcast", "ncclDevKernel_Broadcast");
		break;
	case 2:
		g->gathers++;
		collective(d, g, "_allgather_base", "ncclDevKernel_AllGather");
		break;
	case 3:
		g->scatters++;
		collective(d, g, "_reduce_scatter_base", "ncclDevKernel_ReduceScatter");
		break;
	default:
		g->exchanges++;
		collective(d, g, "all_to_all", "ncclDevKernel_SendRecv");
	}
}

static void run_groups(struct drawn *d)
{
	int of[GROUPS * 5], n = 0;

	for (int i = 0; i < d->n; i++) {
		bool in_slices = rnd_below(&seed, 2); /* gathers as often as scatters */
		int times = 1 + rnd_below(&seed, 2);

		for (int k = 0; k < times; k++) {
			of[n++] = 8 * i + (in_slices ? 2 : rnd_below(&seed, 4));
			if (in_slices)
				of[n++] = 8 * i + 3;
		}
		if (rnd_below(&seed, 4) == 0)
			of[n++] = 8 * i + 4;
	}
	while (n) {
		int k = rnd_below(&seed, n);

		run_one(d, &d->of[of[k] / 8], of[k] % 8);
		of[k] = of[--n];
	}
}

static struct ft_recording *record(struct drawn *d)
{
	struct made *m = &d->text;

	add(m, "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],");
	if (d->world)
		add(m, "\"distributedInfo\":{\"rank\":0,\"world_size\":%d},", d->world);
	add(m, "\"traceEvents\":[\n");
	run_groups(d);
	return end(m);
}

/* ---- what they are ------------------------------------------------------------------- */

static bool sharded(const struct known *g)
{
	return g->gathers || g->scatters;
}

/* Is it by the first that says anything: words, FSDP's marks, that it only reduces? */
static bool is_dp(const struct drawn *d, const struct known *g)
{
	bool words = false, marks = false;

	for (int i = 0; i < d->n; i++) {
		words |= d->of[i].dp_word;
		marks |= d->of[i].fsdp > 0;
	}
	if (g->expert_word)
		return false;
	if (words)
		return g->dp_word;
	if (marks)
		return g->fsdp > 0;
	return !sharded(g) && !g->tp_word;
}

static bool is_told_tp(const struct drawn *d)
{
	for (int i = 0; i < d->n; i++)
		if (d->of[i].tp_word)
			return true;
	return false;
}

static bool is_tp(const struct drawn *d, const struct known *g)
{
	if (is_told_tp(d))
		return g->tp_word;
	return !is_dp(d, g) && !g->expert_word && !g->fsdp && g->gathers &&
	       g->gathers == g->scatters;
}

/* The one size of those; 0: none, or several. */
static int dp_size(const struct drawn *d)
{
	const struct known *one = NULL;

	for (int i = 0; i < d->n; i++) {
		if (!is_dp(d, &d->of[i]))
			continue;
		if (one &&
		    (one->size != d->of[i].size || one->stride != d->of[i].stride))
			return 0;
		one = &d->of[i];
	}
	return one ? one->size : 0;
}

static const struct known *tp_group(const struct drawn *d)
{
	const struct known *one = NULL;

	for (int i = 0; i < d->n; i++) {
		if (!is_tp(d, &d->of[i]))
			continue;
		if (one)
			return NULL;
		one = &d->of[i];
	}
	return one;
}

/* The fewest that hold all ranks named, and whole groups of each size. */
static int64_t world(const struct drawn *d)
{
	for (int64_t n = 1;; n++) {
		bool fits = true;

		for (int i = 0; i < d->n; i++)
			fits &= n % d->of[i].size == 0 &&
				n > (d->of[i].size - 1) * d->of[i].stride;
		if (fits)
			return n;
	}
}

/* Only what can be of data-parallel ranks makes a group. */
static void leave_exchanges(struct drawn *d)
{
	int n = 0;

	for (int i = 0; i < d->n; i++)
		if (sharded(&d->of[i]) || d->of[i].reduces || d->of[i].broadcasts)
			d->of[n++] = d->of[i];
	d->n = n;
}

/* ---- against what is made of them ------------------------------------------------------ */

struct found {
	struct arena mem;
	struct ft_replay *replay;
	struct ft_whatif answer;
	struct whatif w;
	struct ft_error err;
	bool done;
};

static void find(struct found *f, struct ft_replay *replay, int64_t dp, int64_t tp)
{
	struct ft_whatif_request asked = { .replay = replay, .dp = dp, .tp = tp };

	*f = (struct found){ .replay = replay };
	f->w.asked = &asked;
	f->w.answer = &f->answer;
	f->done = groups_find(&f->w, &f->err);
	arena_release(&f->w.mem);
}

static struct ft_replay *replay_of(struct ft_recording *r)
{
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(one(r), 1, &err);

	ok_or_say(p, err);
	return p;
}

static int64_t recorded_world(const struct drawn *d)
{
	int64_t most = d->world ? d->world : world(d);

	for (int i = 0; i < d->n; i++)
		most = d->of[i].size > most ? d->of[i].size : most;
	return most;
}

static void check_as_recorded(const struct drawn *d, struct ft_replay *replay)
{
	const struct known *tp = tp_group(d);
	struct found f;

	find(&f, replay, 0, 0);
	assert_true(f.done);
	if (f.answer.dp != dp_size(d) || f.answer.tp != (tp ? tp->size : 0) ||
	    f.answer.ranks != recorded_world(d))
		fail_msg("dp %d tp %d of %d ranks, known %d %d %d:\n%s",
			 (int)f.answer.dp, (int)f.answer.tp, (int)f.answer.ranks,
			 dp_size(d), tp ? tp->size : 0, (int)recorded_world(d),
			 d->text.text);
	assert_int_equal(f.answer.dp_recorded, f.answer.dp);
	assert_int_equal(f.answer.tp_recorded, f.answer.tp);
	assert_int_equal(f.answer.n_notes, !d->world && d->n ? 1 : 0);
}

/* Not all that gathers in it is FSDP's, as where a context group is of the same ranks. */
static bool is_shared(const struct drawn *d)
{
	for (int i = 0; i < d->n; i++) {
		const struct known *g = &d->of[i];

		if (is_dp(d, g) && g->fsdp && g->gathers + g->scatters > g->fsdp &&
		    !g->dp_word)
			return true;
	}
	return false;
}

static void check_scaled_dp(const struct drawn *d, struct ft_replay *replay)
{
	static const int64_t asked[] = { 1, 2, 3, 6, 8, 16 };
	int64_t to = PICK(asked), was = dp_size(d);
	int64_t ranks = recorded_world(d);
	bool experts = true;
	struct found f;

	for (int i = 0; i < d->n; i++)
		experts &=
			!d->of[i].expert_word || d->of[i].size * to % (was + !was) == 0;
	find(&f, replay, to, 0);
	if (!was) {
		assert_false(f.done);
		assert_non_null(strstr(f.err.text, "cannot be scaled by dp"));
	} else if (is_shared(d) || !experts) {
		assert_false(f.done);
		assert_true(
			(is_shared(d) && strstr(f.err.text, "for something else")) ||
			(!experts && strstr(f.err.text, "replicas of its experts")));
	} else if (ranks * to % was) {
		assert_false(f.done);
		assert_non_null(strstr(f.err.text, "no whole number of ranks"));
	} else {
		ok_or_say(f.done, f.err);
		assert_int_equal(f.answer.dp, to);
		assert_int_equal(f.answer.dp_recorded, was);
		assert_int_equal(f.answer.ranks, ranks * to / was);
		assert_int_equal(f.answer.ranks_recorded, ranks);
	}
}

static void check_scaled_tp(const struct drawn *d, struct ft_replay *replay)
{
	static const int64_t asked[] = { 1, 2, 3, 4, 8 };
	const struct known *tp = tp_group(d);
	int64_t to = PICK(asked), ranks = recorded_world(d);
	struct found f;

	find(&f, replay, 0, to);
	if (!tp) {
		assert_false(f.done);
		assert_non_null(strstr(f.err.text, "cannot be scaled by tp"));
	} else if (ranks * to % tp->size) {
		assert_false(f.done);
		assert_non_null(strstr(f.err.text, "no whole number of ranks"));
	} else {
		ok_or_say(f.done, f.err);
		assert_int_equal(f.answer.tp, to);
		assert_int_equal(f.answer.ranks, ranks * to / tp->size);
		assert_true(f.w.tensor.sequence == sharded(tp));
		near_frac(f.w.tensor.elements, tp->elements, 1e-12);
	}
}

static void groups_are_what_they_say_or_do(void **state)
{
	int dps = 0, tps = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d;
		struct ft_recording *r;
		struct ft_replay *replay;

		draw_groups(&d);
		r = record(&d);
		replay = replay_of(r);
		leave_exchanges(&d);
		check_as_recorded(&d, replay);
		check_scaled_dp(&d, replay);
		check_scaled_tp(&d, replay);
		dps += dp_size(&d) > 0;
		tps += tp_group(&d) != NULL;
		ft_replay_free(replay);
		ft_recording_free(r);
	}
	assert_in_range(dps, DRAWS / 4, DRAWS - DRAWS / 10);
	assert_in_range(tps, DRAWS / 8, DRAWS - DRAWS / 10);
}

/* ---- words ----------------------------------------------------------------------------- */

static void lists_of_ranks_say_how_far_apart_and_how_many(void **state)
{
	static const struct {
		const char *ranks;
		int64_t stride, up_to;
	} rows[] = {
		{ "", 1, 0 },
		{ "[]", 1, 0 },
		{ "[0]", 1, 1 },
		{ "[5]", 1, 6 },
		{ "[0, 1]", 1, 2 },
		{ "[0, 4, 8]", 4, 9 },
		{ "[3,5]", 2, 6 },
		{ "[8, 0]", 1, 9 },
		{ "[8, 8]", 1, 9 },
		{ "[0, 2147483646]", 2147483646, 2147483647 },
		{ "[0, 2147483647]", 1, 1 },
		{ "[7, ...", 1, 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (ranks_stride(rows[i].ranks) != rows[i].stride ||
		    ranks_up_to(rows[i].ranks) != rows[i].up_to)
			fail_msg("%s: %lld apart, up to %lld", rows[i].ranks,
				 (long long)ranks_stride(rows[i].ranks),
				 (long long)ranks_up_to(rows[i].ranks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_what_they_say_or_do),
		cmocka_unit_test(lists_of_ranks_say_how_far_apart_and_how_many),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
