/*
 * tests/test_told_waits.c - recordings in which the profiler tells for which event a stream waits
 */
#include "tests/made_recording.h"

/* Compute waits for a gather, as the profiler tells, and begins as another kernel ends. An event
 * that is told of a launch, or of a call that is not there, tells nothing. */
static struct ft_recording *told_to_wait(int wait, int record)
{
	struct made m = begin(0);

	call(&m, "cudaLaunchKernel", 1, 0, 5);
	call(&m, "cudaEventRecord", 2, 5, 0.5);
	call(&m, "cudaLaunchKernel", 3, 6, 1);
	call(&m, "cudaEventRecord", 4, 7, 0.5);
	call(&m, "cudaStreamWaitEvent", 5, 8, 1);
	call(&m, "cudaLaunchKernel", 6, 10, 5);
	call(&m, "cudaDeviceSynchronize", 7, 20, 195);
	add(&m,
	    "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait Event\",\"pid\":0,"
	    "\"tid\":7,\"ts\":8,\"dur\":0,\"args\":{\"stream\":7,\"correlation\":%d,"
	    "\"wait_on_stream\":20,\"wait_on_cuda_event_record_corr_id\":%d}},\n",
	    wait, record);
	kernel(&m, "ncclDevKernel_AllGather", 1, 20, 8, 100);
	kernel(&m, "elementwise", 3, 21, 9, 101);
	kernel(&m, "gemm", 6, 7, 110, 100);
	return end(&m);
}

static void a_profiler_tells_what_is_waited_for(void **state)
{
	/* of the gather, the other kernel, the product */
	const ft_ps gather[] = { 200000000, 101000000, 100000000 },
		    other[] = { 100000000, 201000000, 100000000 };
	static const struct {
		int wait, record;
		int64_t told, by_time;
		ft_ps after_gather, after_other;
	} row[] = {
		{ 5, 2, 1, 0, 310000000, 210000000 },
		{ 5, 4, 1, 0, 210000000, 310000000 },
		{ 5, 99, 0, 1, 210000000, 310000000 },
		{ 6, 2, 0, 1, 210000000, 310000000 },
		{ 98, 2, 0, 1, 210000000, 310000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ft_recording *r = told_to_wait(row[i].wait, row[i].record);
		struct ft_error err;
		struct ft_replay *p = ft_replay_build(one(r), 1, &err);

		ok_or_say(p, err);
		is_as_recorded(p);
		assert_int_equal(ft_replay_counts(p)->waits_told, row[i].told);
		assert_int_equal(ft_replay_counts(p)->waits_by_time, row[i].by_time);
		assert_int_equal(step_with(p, gather, 1), row[i].after_gather);
		assert_int_equal(step_with(p, other, 1), row[i].after_other);
		ft_replay_free(p);
		ft_recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profiler_tells_what_is_waited_for),
	};
	int failed = cmocka_run_group_tests_name("told waits", tests, NULL, NULL);

	unlink(made_path());
	return failed;
}
