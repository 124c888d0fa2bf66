/*
 * tests/test_recorded.c - recordings: read, ordered, replayed
 *
 * The replay of a recording with nothing changed must be the recording; how the order of
 * its operations is found is tried on made-up ranks whose truth is known.
 */
#include "recorded/replay.h"
#include "tests/made_recording.h"

static void refused(const char *text, const char *why)
{
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(put(text, strlen(text)), &err);

	assert_null(r);
	if (!strstr(err.text, why))
		fail_msg("said '%s', not '%s'", err.text, why);
}

/* ---- reading ---------------------------------------------------------------------------- */

static void times_are_exact_and_begin_at_0(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;
	const struct ft_rec_op *op;

	(void)state;
	call(&m, "cudaLaunchKernel", 1, 1790857026000001.5, 2);
	add(&m,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,"
	    "\"ts\":1790857026000003.000001,\"dur\":0.123456,"
	    "\"args\":{\"stream\":7,\"correlation\":1}},\n");
	r = end(&m);
	op = ft_recording_op(r, 0);
	assert_int_equal(ft_recording_call(r, 0)->start, 500000);
	assert_int_equal(op->start, 2000001);
	assert_int_equal(op->duration, 123456);
	assert_int_equal(op->call, 0);
	assert_int_equal(op->rec_class, FT_REC_GEMM);
	assert_string_equal(ft_recording_device(r), "NVIDIA H200");
	assert_int_equal(ft_recording_rank(r), 0);
	assert_int_equal(ft_recording_world(r), 2);
	ft_recording_free(r);
}

static void what_is_no_trace_is_refused_in_words(void **state)
{
	(void)state;
	refused("", "ends in the middle");
	refused("{}", "lacks 'traceEvents'");
	refused("[1, 2]", "holds no kernels");
	refused("7", "lacks 'traceEvents'");
	refused("[[[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1}]]]",
		"holds no kernels");
	refused("{\"traceEvents\":[]}", "holds no kernels");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\","
		"\"ts\":1,\"dur\":1,\"args\":{\"stream\":7}},",
		"ends in the middle");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"dur\":1}]}",
		"no 'ts'");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":-5}]}",
		"negative");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":99e17,\"dur\":1}]}",
		"100,000 s");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1}]}",
		"no 'dur' that is a number");
	refused("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":\"5\"}]}",
		"no 'dur' that is a number");
	refused("{\"traceEvents\":[}", "parse error");
	refused("\x1f\x8b\x07 no gzip at all, whatever it begins with", "damaged");
	refused("\x28\xb5\x2f\xfd no zstd", "damaged");
}

/* As Chrome takes it, too: no device and no rank are told. */
static void a_list_of_events_is_read(void **state)
{
	struct ft_recording *r =
		read_text("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\","
			  "\"pid\":0,\"tid\":7,\"ts\":4,\"dur\":2,\"args\":{"
			  "\"stream\":7,\"grid\":[1,1,1],\"deep\":{\"a\":[{}]}}},\n"
			  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"attn_fwd\","
			  "\"pid\":0,\"tid\":7,\"ts\":9,\"dur\":3,\"args\":{"
			  "\"stream\":7}}]");

	(void)state;
	assert_int_equal(ft_recording_ops(r), 2);
	assert_int_equal(ft_recording_op(r, 1)->start, 5000000);
	assert_int_equal(ft_recording_op(r, 1)->rec_class, FT_REC_ATTENTION);
	assert_string_equal(ft_recording_device(r), "");
	assert_int_equal(ft_recording_rank(r), FT_REC_NONE);
	ft_recording_free(r);
}

static void a_deep_document_is_refused(void **state)
{
	char text[400] = "{\"traceEvents\":";

	(void)state;
	memset(text + strlen(text), '[', 200);
	refused(text, "nested too deeply");
}

/* A runtime's call with the driver's inside it is one launch; one call launches a graph's kernels. */
static void launches_of_what_is_not_there_are_counted(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;

	(void)state;
	call(&m, "cudaLaunchKernel", 1, 10, 3);
	kernel(&m, "gemm", 1, 7, 20, 5);
	call(&m, "cudaLaunchKernel", 2, 14, 3);
	call(&m, "cuLaunchKernel", 2, 15, 1);
	call(&m, "cudaGraphLaunch", 3, 18, 3);
	kernel(&m, "gemm", 3, 7, 30, 5);
	kernel(&m, "gemm", 3, 7, 36, 5);
	call(&m, "cudaMemsetAsync", 4, 22, 3);
	call(&m, "cudaEventRecord", 5, 26, 1);
	r = end(&m);
	assert_int_equal(ft_recording_counts(r)->without_op, 2);
	assert_int_equal(ft_recording_counts(r)->without_call, 0);
	ft_recording_free(r);
}

static void a_negative_duration_is_repaired_and_told(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;

	(void)state;
	kernel(&m, "gemm", 1, 7, 10, -5);
	kernel(&m, "gemm", 2, 7, 20, 5);
	add(&m, "{\"ph\":\"?\",\"cat\":\"kernel\",\"name\":\"x\",\"ts\":1},\n");
	r = end(&m);
	assert_int_equal(ft_recording_counts(r)->negative, 1);
	assert_int_equal(ft_recording_counts(r)->unknown_phases, 1);
	assert_int_equal(ft_recording_counts(r)->without_call, 2);
	assert_int_equal(ft_recording_op(r, 0)->duration, 0);
	ft_recording_free(r);
}

/* Names are JSON; args come back as JSON whatever they held. */
static void hostile_names_stay_names(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;

	(void)state;
	add(&m, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\\\"b\\u0000c<script>\","
		"\"ts\":1,\"dur\":1,\"args\":{\"stream\":7,\"Collective name\":"
		"{\"x\":[1]},\"dtype\":[{\"y\":2}],\"Group size\":\"\\\"\"}},\n");
	r = end(&m);
	assert_string_equal(ft_recording_text(r, ft_recording_op(r, 0)->name), "a\"b");
	assert_null(ft_recording_collective(r, ft_recording_op(r, 0)));
	ft_recording_free(r);
}

/* ---- replay -------------------------------------------------------------------------------- */

static void unchanged_replays_are_the_recordings(void **state)
{
	static const char *const files[] = {
		"measurements/traces/h100-8b16L-tp2-s4096-b1-eager.rank0.kineto.json.gz",
		"measurements/traces/h100-8b8L-tp4-s4096-b1-eager.rank0.kineto.json.gz",
		"measurements/traces/h100-mixtral4L-ep2-s4096-b1.rank0.kineto.json.gz",
		"measurements/traces/h100-qwen3moe8L-ep4-s4096-b1.rank0.kineto.json.gz",
	};
	struct ft_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct ft_recording *r = ft_recording_read(files[i], &err);
		struct ft_replay *p;
		double other = 0, all = 0;

		ok_or_say(r, err);
		p = ft_replay_build(one(r), 1, &err);
		ok_or_say(p, err);
		is_as_recorded(p);
		for (size_t k = 0; k < ft_recording_ops(r); k++) {
			const struct ft_rec_op *op = ft_recording_op(r, k);

			all += (double)op->duration;
			other += op->rec_class == FT_REC_OTHER ? (double)op->duration :
								 0;
		}
		assert_true(other < 0.01 * all);
		ft_replay_free(p);
		ft_recording_free(r);
	}
}

/* A step of two kernels on one stream, and a host that waits for them. */
static struct ft_recording *two_kernels(void)
{
	struct made m = begin(0);

	call(&m, "cudaLaunchKernel", 1, 0, 5);
	call(&m, "cudaLaunchKernel", 2, 10, 5);
	call(&m, "cudaDeviceSynchronize", 3, 20, 195);
	kernel(&m, "gemm", 1, 7, 8, 100);
	kernel(&m, "flash_fwd", 2, 7, 109, 100);
	return end(&m);
}

static void streams_shift_what_follows(void **state)
{
	const ft_ps half[] = { 50000000, 100000000 }, none[] = { 0, 0 };
	struct ft_recording *r = two_kernels();
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(one(r), 1, &err);

	(void)state;
	ok_or_say(p, err);
	is_as_recorded(p);
	assert_int_equal(step_with(p, NULL, 1), 209000000);
	assert_int_equal(step_with(p, half, 1), 159000000);
	/* without work the second launch counts: begun at 10, its latency behind */
	assert_in_range(step_with(p, none, 1), 10000000, 20000000);
	/* a host ten times slower: its second launch begins at 100 */
	assert_in_range(step_with(p, none, 10), 100000000, 110000000);
	ft_replay_free(p);
	ft_recording_free(r);
}

/* Compute waits for a gather on another stream, as the host told it to. */
static struct ft_recording *gather_then_compute(void)
{
	struct made m = begin(0);

	call(&m, "cudaLaunchKernel", 1, 0, 5);
	call(&m, "cudaEventRecord", 2, 6, 1);
	call(&m, "cudaStreamWaitEvent", 3, 8, 1);
	call(&m, "cudaLaunchKernel", 4, 10, 5);
	call(&m, "cudaDeviceSynchronize", 5, 20, 195);
	kernel(&m, "ncclDevKernel_AllGather", 1, 20, 8, 100);
	kernel(&m, "gemm", 4, 7, 110, 100);
	return end(&m);
}

static void events_order_streams(void **state)
{
	const ft_ps slow[] = { 300000000, 100000000 }, fast[] = { 10000000, 100000000 };
	struct ft_recording *r = gather_then_compute();
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(one(r), 1, &err);

	(void)state;
	ok_or_say(p, err);
	is_as_recorded(p);
	assert_int_equal(p->rank[0].cause[1], FT_REC_BY_EVENT);
	assert_int_equal(ft_replay_counts(p)->waits_by_time, 1);
	assert_int_equal(step_with(p, slow, 1), 410000000);
	assert_int_equal(step_with(p, fast, 1), 120000000);
	ft_replay_free(p);
	ft_recording_free(r);
}

/* A compute kernel behind a wait, long after all that was launched: of streams with a
 * collective, a later copy (or collective), and its own. The event is recorded behind the
 * copy, or behind a kernel of its own stream. */
static struct ft_recording *waits_long(const char *second, bool own_last)
{
	struct made m = begin(0);
	int at = 0;

	if (!own_last)
		call(&m, "cudaLaunchKernel", 3, at += 10, 5);
	call(&m, "cudaLaunchKernel", 1, at += 10, 5);
	call(&m, "cudaLaunchKernel", 2, at += 10, 5);
	if (own_last)
		call(&m, "cudaLaunchKernel", 3, at += 10, 5);
	call(&m, "cudaEventRecord", 4, 40, 1);
	call(&m, "cudaStreamWaitEvent", 5, 45, 1);
	call(&m, "cudaLaunchKernel", 6, 50, 5);
	call(&m, "cudaDeviceSynchronize", 7, 60, 445);
	kernel(&m, "ncclDevKernel_AllReduce", 1, 20, 50, 50);
	kernel(&m, second, 2, 24, 60, 50);
	kernel(&m, "gemm", 3, 7, 70, 50);
	kernel(&m, "gemm", 6, 7, 400, 100);
	return end(&m);
}

/* When the last operation begins, if another one takes a second longer. */
static ft_ps last_begins(const struct ft_replay *p, int longer)
{
	struct arena mem = { 0 };
	struct ft_replay_times times = ft_replay_recorded(p, &mem);
	ft_ps begin;

	times.op[0][longer] += 1000000000000;
	begin = ft_replay_run(p, &times, &mem).op_begin[0][3];
	arena_release(&mem);
	return begin;
}

/* Which of the first two operations moves the last one when it takes longer; -1: none. */
static int moved_by(const char *second, bool own_last)
{
	struct ft_recording *r = waits_long(second, own_last);
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(one(r), 1, &err);
	int found = -1;

	ok_or_say(p, err);
	is_as_recorded(p);
	assert_int_equal(ft_replay_counts(p)->waits_by_order, 1);
	for (int i = 0; i < 2; i++)
		if (last_begins(p, i) > 500000000000) {
			assert_int_equal(found, -1);
			found = i;
		}
	ft_replay_free(p);
	ft_recording_free(r);
	return found;
}

static void an_event_is_of_what_was_launched_before_it(void **state)
{
	(void)state;
	/* behind what another stream got last */
	assert_int_equal(moved_by("memcpy", false), 1);
	/* its own stream's event tells nothing: the collective is meant, the later of two */
	assert_int_equal(moved_by("memcpy", true), 0);
	assert_int_equal(moved_by("ncclDevKernel_AllGather", true), 1);
}

/* Rank 1 comes 50 us late, its clock 1000 us ahead: rank 0 waits in its collective. */
static void ranks_meet_in_collectives(void **state)
{
	struct made a = begin(0), b = begin(1);
	const struct ft_recording *r[2];
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_replay *p;
	struct ft_replay_times times;
	struct ft_replayed t;
	struct ft_rec_skew s;

	(void)state;
	call(&a, "cudaLaunchKernel", 1, 0, 5);
	kernel(&a, "ncclDevKernel_AllReduce", 1, 20, 10, 80);
	call(&b, "cudaLaunchKernel", 1, 1000, 5);
	call(&b, "cudaLaunchKernel", 2, 1006, 5);
	kernel(&b, "gemm", 1, 7, 1010, 49);
	kernel(&b, "ncclDevKernel_AllReduce", 2, 7, 1060, 30);
	r[0] = end(&a);
	r[1] = end(&b);
	p = ft_replay_build(r, 2, &err);
	ok_or_say(p, err);
	is_as_recorded(p);
	assert_int_equal(ft_replay_counts(p)->matched, 2);
	times = ft_replay_recorded(p, &mem);
	assert_int_equal(times.op[0][0], 30000000); /* from when the last began */
	assert_int_equal(times.op[1][1], 30000000);
	t = ft_replay_as_recorded(p, &mem);
	s = ft_replay_skew(p, &t, 0, ft_replay_step(p, &t, 0, 0));
	near_frac(s.waiting_s, 50e-6, 1e-9);
	near_frac(s.transfer_s, 30e-6, 1e-9);
	assert_true(s.met > 0 && !(s.last > 0));
	s = ft_replay_skew(p, &t, 1, ft_replay_step(p, &t, 1, 0));
	near_frac(s.clock_s, 1000e-6, 1e-9);
	near_frac(s.last, 1, 1e-9);
	times.op[1][0] = 9000000; /* 40 us less late: both end 40 us earlier */
	t = ft_replay_run(p, &times, &mem);
	assert_int_equal(t.op_end[0][0], 50000000);
	assert_int_equal(t.op_end[1][1], 50000000);
	arena_release(&mem);
	ft_replay_free(p);
	ft_recording_free((struct ft_recording *)r[0]);
	ft_recording_free((struct ft_recording *)r[1]);
}

static void one_rank_twice_is_refused(void **state)
{
	struct ft_recording *r = two_kernels();
	const struct ft_recording *twice[] = { r, r };
	struct ft_error err;

	(void)state;
	assert_null(ft_replay_build(twice, 2, &err));
	assert_non_null(strstr(err.text, "is rank 0, and so is"));
	ft_recording_free(r);
}

/* ---- where ------------------------------------------------------------------------------------ */

static void every_instant_counts_once(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_replay *p;
	struct ft_replayed t;
	struct ft_rec_where w;

	(void)state;
	call(&m, "cudaLaunchKernel", 1, 0, 5);
	call(&m, "cudaLaunchKernel", 2, 6, 4);
	call(&m, "cudaLaunchKernel", 3, 300, 5);
	kernel(&m, "gemm", 1, 7, 10, 100);
	kernel(&m, "ncclDevKernel_AllReduce", 2, 20, 60, 100);
	kernel(&m, "FusedAdamMathFunctor", 3, 7, 310, 40);
	r = end(&m);
	p = ft_replay_build(one(r), 1, &err);
	ok_or_say(p, err);
	t = ft_replay_as_recorded(p, &mem);
	w = ft_replay_where(p, &t, 0, ft_replay_step(p, &t, 0, 0));
	ft_replay_calls(p, &t, 0, 0, &w);
	near_frac(w.step_s, 350e-6, 1e-12);
	near_frac(w.compute_s, 100e-6, 1e-12);
	near_frac(w.exposed_s, 50e-6, 1e-9);
	near_frac(w.collective_s, 100e-6, 1e-9);
	near_frac(w.optimizer_s, 40e-6, 1e-9);
	near_frac(w.idle_s[FT_REC_BY_LAUNCH], 160e-6, 1e-9);
	assert_int_equal(w.launches, 3);
	assert_int_equal(w.queued_most, 2);
	arena_release(&mem);
	ft_replay_free(p);
	ft_recording_free(r);
}

/* Calls for memory, of CUDA, its driver and HIP, that the host makes between two launches; one that asks
 * how much there is takes none. The step stays as it was recorded. */
static void calls_for_memory_are_told(void **state)
{
	static const char *const names[] = { "cudaMalloc", "cudaFree", "hipMallocAsync",
					     "cuMemUnmap", "cudaMemGetInfo" };
	struct made m = begin(0);
	struct ft_recording *r;
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_replay *p;
	struct ft_replayed t;
	struct ft_rec_where w = { .launches = 0 };

	(void)state;
	call(&m, "cudaLaunchKernel", 1, 0, 5);
	for (int i = 0; i < 5; i++)
		call(&m, names[i], 10 + i, 10 + 20 * i, 11 + i);
	call(&m, "cudaLaunchKernel", 2, 120, 5);
	kernel(&m, "gemm", 1, 7, 10, 10);
	kernel(&m, "gemm", 2, 7, 130, 10);
	r = end(&m);
	p = ft_replay_build(one(r), 1, &err);
	ok_or_say(p, err);
	is_as_recorded(p);
	t = ft_replay_as_recorded(p, &mem);
	ft_replay_calls(p, &t, 0, 0, &w);
	assert_int_equal(w.allocations, 4);
	near_frac(w.allocation_s, (11 + 12 + 13 + 14) * 1e-6, 1e-12);
	assert_int_equal(w.launches, 2);
	near_frac(w.call_s, 10e-6, 1e-12);
	assert_true(!(w.sync_s > 0));
	arena_release(&mem);
	ft_replay_free(p);
	ft_recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_exact_and_begin_at_0),
		cmocka_unit_test(what_is_no_trace_is_refused_in_words),
		cmocka_unit_test(a_list_of_events_is_read),
		cmocka_unit_test(a_deep_document_is_refused),
		cmocka_unit_test(launches_of_what_is_not_there_are_counted),
		cmocka_unit_test(a_negative_duration_is_repaired_and_told),
		cmocka_unit_test(hostile_names_stay_names),
		cmocka_unit_test(unchanged_replays_are_the_recordings),
		cmocka_unit_test(streams_shift_what_follows),
		cmocka_unit_test(events_order_streams),
		cmocka_unit_test(an_event_is_of_what_was_launched_before_it),
		cmocka_unit_test(ranks_meet_in_collectives),
		cmocka_unit_test(one_rank_twice_is_refused),
		cmocka_unit_test(every_instant_counts_once),
		cmocka_unit_test(calls_for_memory_are_told),
	};
	int failed = cmocka_run_group_tests_name("recorded", tests, NULL, NULL);

	unlink(made_path());
	return failed;
}
