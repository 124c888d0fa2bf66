/*
 * tests/test_kineto.c - kernels of a recorded step become cells with shapes
 *
 * tests/data/kineto-step.json was written by hand: each operator once, with the
 * times that the cells below must have.
 */

#include "tests/check.h"

#include "calibrate/store.h"
#include "recorded/kineto.h"

static const struct ft_probe_run run = { .backend = "kineto",
					 .device = "",
					 .date = "",
					 .driver = "",
					 .fabric = "nvlink",
					 .libraries = "",
					 .source = "tests/data/kineto-step.json",
					 .provenance = "measured" };

static const struct ft_measurement *cells(struct ft_store **s, size_t *n)
{
	struct ft_error err;

	*s = ft_store_open(":memory:", true, &err);
	assert_non_null(*s);
	if (!ft_store_import(*s, FT_IMPORT_KINETO, run.source, &run, n, &err))
		fail_msg("%s", err.text);
	return ft_store_measurements(*s, NULL, 0, n, &err);
}

/* The only cell of a kind with this time. */
static const struct ft_measurement *timed(const struct ft_measurement *m, size_t n,
					  const char *kind, double time_us)
{
	const struct ft_measurement *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!measurement_is(&m[i], kind) || m[i].time_us < time_us - 1e-9 ||
		    m[i].time_us > time_us + 1e-9)
			continue;
		assert_null(found);
		found = &m[i];
	}
	if (!found)
		fail_msg("no %s of %g us", kind, time_us);
	return found;
}

static void product_is(const struct ft_measurement *m, const char *layout, double reps)
{
	assert_string_equal(m->layout, layout);
	assert_string_equal(m->dtype, "bf16");
	assert_true(m->m == 64 && m->n == 512 && m->k == 256);
	assert_true(m->reps == reps && m->in_step && m->warm);
}

/* One layer of 256 inputs and 512 outputs, seen from all sides. */
static void products_know_their_layout(void **state)
{
	struct ft_store *s;
	const struct ft_measurement *m, *forward;
	size_t n;

	(void)state;
	m = cells(&s, &n);
	/* mm 10, 12, 30; addmm 14; linear 16: one shape */
	forward = timed(m, n, "gemm", 14);
	product_is(forward, "forward", 5);
	assert_true(forward->p10_us == 10 && forward->p90_us == 30);
	product_is(timed(m, n, "gemm", 22), "dgrad", 1); /* two kernels */
	product_is(timed(m, n, "gemm", 21), "wgrad", 1);
	assert_string_equal(forward->device, "Made-up GPU");
	ft_store_close(s);
}

static void attention_knows_heads_and_pass(void **state)
{
	struct ft_store *s;
	const struct ft_measurement *m, *a;
	size_t n;

	(void)state;
	m = cells(&s, &n);
	a = timed(m, n, "attention", 9);
	assert_true(a->batch == 2 && a->sequence == 128 && a->heads == 8 &&
		    a->kv_heads == 2 && a->head_dim == 64 && a->causal);
	assert_string_equal(a->pass, "forward");
	assert_string_equal(a->impl, "fa2");
	a = timed(m, n, "attention", 19);
	assert_true(a->batch == 2 && a->sequence == 128 && a->heads == 8 &&
		    a->kv_heads == 2 && a->head_dim == 64 && !a->causal);
	assert_string_equal(a->pass, "backward");
	ft_store_close(s);
}

static void memory_kernels_count_rows_and_guess_nothing(void **state)
{
	struct ft_store *s;
	const struct ft_measurement *m, *a;
	size_t n;

	(void)state;
	m = cells(&s, &n);
	a = timed(m, n, "memory", 4);
	assert_string_equal(a->kernel, "layernorm");
	assert_true(a->m == 64 && a->n == 256);
	assert_string_equal(timed(m, n, "memory", 3)->kernel, "add");
	assert_string_equal(timed(m, n, "memory", 3.5)->kernel, "cast");
	/* a broadcast, a transposing copy, a kernel of nobody */
	assert_string_equal(timed(m, n, "trace", 3)->kernel, "broadcast_kernel");
	assert_string_equal(timed(m, n, "trace", 6)->kernel, "turning_copy_kernel");
	assert_string_equal(timed(m, n, "trace", 2)->kernel, "lonely_kernel");
	ft_store_close(s);
}

static void collectives_count_bytes_as_nccl_tests(void **state)
{
	struct ft_store *s;
	const struct ft_measurement *m, *c;
	size_t n;

	(void)state;
	m = cells(&s, &n);
	c = timed(m, n, "collective", 40); /* its own arguments */
	assert_string_equal(c->kernel, "all_gather");
	assert_true(c->bytes == 16000 && c->gpus == 8 && c->in_step);
	c = timed(m, n, "collective", 50); /* those of its operator */
	assert_string_equal(c->kernel, "all_reduce");
	assert_true(c->bytes == 2000 && c->gpus == 4);
	ft_store_close(s);
}

/* Microseconds and picoseconds of a number as JSON may write it. */
static void a_moment_is_read_to_the_picosecond(void **state)
{
	static const struct {
		const char *text;
		int64_t us, ps;
		bool negative;
	} known[] = {
		{ "0", 0, 0, false },
		{ "7", 7, 0, false },
		{ "-7.25", 7, 250000, true },
		{ "1234567890123456.123456", 1234567890123456, 123456, false },
		{ "12.0000019", 12, 1, false }, /* what is less is cut */
		{ "12.000001", 12, 1, false },
		{ "1.5e3", 1500, 0, false },
		{ "-25e-1", 2, 500000, true },
		{ "12.5E0", 12, 500000, false },
		{ "3e15", 3000000000000000, 0, false },
		{ "8.5e18", 8500000000000000000, 0, false },
		{ "1e19", INT64_MAX, 0, false },
		{ "-1e300", INT64_MAX, 0, true },
		{ "461168601842738790", 461168601842738790, 0, false },
		/* more digits than fit are read as a double is */
		{ "4611686018427387904", 4611686018427387904, 0, false },
		{ "99999999999999999999", INT64_MAX, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const char *text = known[i].text;
		bool negative;
		struct moment m = moment_of(text, strlen(text), &negative);

		if (m.us != known[i].us || m.ps != known[i].ps ||
		    negative != known[i].negative)
			fail_msg("%s: %lld us %lld ps %d", text, (long long)m.us,
				 (long long)m.ps, negative);
		assert_true(whole_of(text, strlen(text)) ==
			    (negative ? -known[i].us : known[i].us));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_know_their_layout),
		cmocka_unit_test(attention_knows_heads_and_pass),
		cmocka_unit_test(memory_kernels_count_rows_and_guess_nothing),
		cmocka_unit_test(collectives_count_bytes_as_nccl_tests),
		cmocka_unit_test(a_moment_is_read_to_the_picosecond),
	};

	return cmocka_run_group_tests_name("calibrate/kineto", tests, NULL, NULL);
}
