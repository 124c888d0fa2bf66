/*
 * tests/test_recorded_xla.c - recordings of JAX's profiler: GPUs that are processes, streams that are threads, steps that are
 * turns of the same kernels
 */
#include "tests/made_recording.h"

#define NAMED(pid, what) \
	"{\"ph\":\"M\",\"pid\":" #pid \
	",\"name\":\"process_name\",\"args\":{\"name\":\"" what "\"}},"
#define THREAD(pid, tid, what) \
	"{\"ph\":\"M\",\"pid\":" #pid ",\"tid\":" #tid \
	",\"name\":\"thread_name\",\"args\":{\"name\":\"" what "\"}},"
#define RAN(pid, tid, ts, dur, what) \
	"{\"ph\":\"X\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur \
	",\"name\":\"" what \
	"\",\"args\":{\"hlo_module\":\"jit_step\",\"name\":\"jit(step)/add\"}},"
#define HEAD \
	NAMED(1, "/device:GPU:2") \
	THREAD(1, 14, "Stream #14(Compute,Memset)") \
	THREAD(1, 15, "Stream #15(Compute)") \
	THREAD(1, 90, "XLA Modules") \
	NAMED(2, "/device:GPU:3") \
	THREAD(2, 14, "Stream #14(Compute)") \
	NAMED(701, "/host:CPU") \
	THREAD(701, 3, "python3")

static struct ft_recording *read_events(const char *events)
{
	char text[40960];

	snprintf(text, sizeof(text),
		 "{\"displayTimeUnit\":\"ns\",\"metadata\":{},\"traceEvents\":[%s{}]}",
		 events);
	return read_text(text);
}

/* Kernels and copies of the first GPU's streams alone: not its modules, nor the host, nor another GPU. */
static void streams_of_the_first_gpu_are_read(void **state)
{
	struct ft_recording *r = read_events(
		HEAD RAN(1, 14, 10, 5, "loop_add_fusion_2")
			RAN(1, 90, 10, 9, "jit_step")
				RAN(1, 15, 12, 4, "ncclDevKernel_AllGather_RING_LL")
					RAN(1, 14, 15, 2.5, "MemcpyD2D") RAN(701, 3, 1,
									     30, "PjRt")
						RAN(2, 14, 10, 5, "loop_add_fusion_2"));
	const struct ft_rec_counts *c = ft_recording_counts(r);

	(void)state;
	assert_int_equal(ft_recording_ops(r), 3);
	assert_int_equal(ft_recording_calls(r), 0);
	assert_int_equal(ft_recording_streams(r), 2);
	assert_int_equal(ft_recording_stream(r, ft_recording_op(r, 1)->stream), 15);
	assert_int_equal(ft_recording_op(r, 0)->rec_class, FT_REC_MEMORY);
	assert_int_equal(ft_recording_op(r, 1)->rec_class, FT_REC_COLLECTIVE);
	assert_int_equal(ft_recording_op(r, 2)->rec_class, FT_REC_COPY);
	assert_int_equal(ft_recording_op(r, 2)->duration, 2500000);
	assert_int_equal(c->other_gpus, 1);
	assert_int_equal(c->unknown_phases, 0);
	ft_recording_free(r);
}

static void names_of_xla_are_classes(void **state)
{
	static const struct {
		const char *name;
		enum ft_rec_class is;
	} names[] = {
		{ "loop_convert_fusion_3", FT_REC_MEMORY },
		{ "wrapped_convert_1", FT_REC_MEMORY },
		{ "fusion_216", FT_REC_MEMORY },
		{ "input_add_reduce_fusion", FT_REC_MEMORY },
		{ "memcpy128", FT_REC_MEMORY },
		{ "gemm_fusion_dot_63", FT_REC_GEMM },
		{ "nvjet_sm90_tst_128x160_64x5_2x1_v_bz_NNT", FT_REC_GEMM },
		{ "cudnn_generated_fort_native_sdpa_sm90", FT_REC_ATTENTION },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char events[2048];
		struct ft_recording *r;

		snprintf(events, sizeof(events),
			 HEAD "{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":1,\"dur\":2,"
			      "\"name\":\"%s\"},",
			 names[i].name);
		r = read_events(events);
		if (ft_recording_op(r, 0)->rec_class != names[i].is)
			fail_msg("%s is of class %d", names[i].name,
				 ft_recording_op(r, 0)->rec_class);
		ft_recording_free(r);
	}
}

/* Three turns of two kernels are three steps; what is no whole number of turns is one. */
static void turns_are_steps(void **state)
{
	struct ft_recording *r = read_events(
		HEAD RAN(1, 14, 10, 5, "a_fusion") RAN(1, 14, 16, 3, "b_fusion")
			RAN(1, 14, 20, 5, "a_fusion") RAN(1, 15, 21, 1, "nccl")
				RAN(1, 14, 26, 3, "b_fusion")
					RAN(1, 14, 30, 5, "a_fusion")
						RAN(1, 14, 37, 4, "b_fusion"));
	const struct ft_rec_step *s;

	(void)state;
	assert_int_equal(ft_recording_steps(r), 3);
	s = ft_recording_step(r, 1);
	assert_true(s->marked && s->begin == 10000000 && s->end == 20000000);
	assert_int_equal(ft_recording_step(r, 2)->end, 31000000);
	ft_recording_free(r);
	r = read_events(HEAD RAN(1, 14, 10, 5, "a_fusion") RAN(1, 14, 16, 3, "b_fusion")
				RAN(1, 14, 20, 5, "a_fusion")
					RAN(1, 14, 26, 3, "c_fusion"));
	assert_int_equal(ft_recording_steps(r), 1);
	assert_false(ft_recording_step(r, 0)->marked);
	ft_recording_free(r);
}

/* However many there are. */
static void many_turns_are_steps(void **state)
{
	enum { TURNS = 100 };
	char events[32768] = HEAD;
	struct ft_recording *r;

	(void)state;
	for (int k = 0; k < 2 * TURNS; k++)
		snprintf(events + strlen(events), sizeof(events) - strlen(events),
			 "{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":%d,\"dur\":2,"
			 "\"name\":\"%s_fusion\"},",
			 3 * k, k % 2 ? "b" : "a");
	r = read_events(events);
	assert_int_equal(ft_recording_steps(r), TURNS);
	ft_recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_of_the_first_gpu_are_read),
		cmocka_unit_test(names_of_xla_are_classes),
		cmocka_unit_test(turns_are_steps),
		cmocka_unit_test(many_turns_are_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
