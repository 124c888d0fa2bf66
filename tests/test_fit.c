/* tests/test_fit.c - curves and error bars of a fit */
#include "foretoken/hw.h"
#include "tests/scratch.h"

/* t(0.9) of 2 and 19 degrees of freedom are 1.8856 and 1.3277, z(0.9) 1.2816. */
static void an_error_bar_widens_for_few_shapes(void **state)
{
	(void)state;
	assert_true(fit_spread(0.1, 0.2, 2, 2) < 1e-9); /* cannot say */
	assert_true(fabs(fit_spread(0.1, 0.2, 3, 3) - 0.16989) < 1e-4);
	assert_true(fabs(fit_spread(0.1, 0.12816, 40, 20) - 0.10616) < 1e-4);
	assert_true(fabs(fit_spread(0.5, 0.12816, 9999, 9999) - 0.1) < 1e-4);
}

static void a_curve_is_found_again_despite_an_outlier(void **state)
{
	double bytes[12], time_s[12];
	struct fit_curve c;

	(void)state;
	for (int i = 0; i < 12; i++) {
		bytes[i] = 1e4 * (double)(1 << i);
		time_s[i] = (3e-6 + bytes[i] / 2e12) * (i % 2 ? 1.01 : 0.99);
	}
	time_s[4] *= 3;
	assert_true(fit_curve(bytes, time_s, 12, &c));
	assert_int_equal(c.outliers, 1);
	assert_true(c.start_s > 2.9e-6 && c.start_s < 3.1e-6);
	assert_true(c.bytes_per_s > 1.9e12 && c.bytes_per_s < 2.1e12);
}

/* Times that rise with the bytes, and times of the start alone, whose bandwidth is bounded by
 * the largest that was seen. */
static void rows_in_another_order_are_the_same_curve(void **state)
{
	(void)state;
	for (int rises = 0; rises < 2; rises++) {
		double bytes[6], time_s[6], back_bytes[6], back_s[6];
		struct fit_curve forth, back;

		for (int i = 0; i < 6; i++) {
			bytes[i] = back_bytes[5 - i] = 1e4 * (double)(1 << i);
			time_s[i] = back_s[5 - i] = 1e-5 + rises * bytes[i] / 1e10;
		}
		assert_true(fit_curve(bytes, time_s, 6, &forth));
		assert_true(fit_curve(back_bytes, back_s, 6, &back));
		assert_true(fabs(back.start_s / forth.start_s - 1) < 1e-6);
		assert_true(fabs(back.bytes_per_s / forth.bytes_per_s - 1) < 1e-6);
	}
}

static double noise(uint64_t *state)
{
	double u[2];

	for (int i = 0; i < 2; i++) {
		*state = *state * UINT64_C(6364136223846793005) +
			 UINT64_C(1442695040888963407);
		u[i] = ((double)(*state >> 33) + 0.5) / 2147483648.0;
	}
	return sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]);
}

static void noise_makes_no_endless_bandwidth(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int t = 0; t < 6000; t++) {
		double bytes[12], time_s[12], most = 0, fastest = 0;
		size_t n = 4 + (size_t)t % 9;
		struct fit_curve c;

		for (size_t i = 0; i < n; i++) {
			double slope = t % 3 ? -0.3 : 0;

			bytes[i] = 1e4 * pow(2, (double)i);
			time_s[i] = 1e-5 * pow(2, slope * (double)i) *
				    exp(0.8 * (t % 4) * noise(&random));
			most = fmax(most, time_s[i]);
			fastest = fmax(fastest, bytes[i] / time_s[i]);
		}
		assert_true(fit_curve(bytes, time_s, n, &c));
		assert_true(c.start_s >= 0 && c.start_s <= most);
		assert_true(c.bytes_per_s > 0 && c.bytes_per_s <= 30.001 * fastest);
	}
}

/* Two programs among 3 GPUs, one of which rounds 1024 bytes to whole shares; published
 * rows and other sizes stay. */
static void of_repeated_collectives_the_fastest_counts(void **state)
{
	struct ft_measurement row[5];
	static const double bytes[] = { 1024, 1020, 1014, 1024, 1024 };
	static const double time_us[] = { 11, 8, 9, 7, 12 };

	(void)state;
	for (int i = 0; i < 5; i++)
		row[i] = (struct ft_measurement){
			.kind = "collective",
			.kernel = i == 4 ? "broadcast" : "all_gather",
			.fabric = "nvlink",
			.bytes = bytes[i],
			.gpus = 3,
			.time_us = time_us[i],
			.provenance = i == 3 ? "published" : "measured",
		};
	assert_int_equal(fit_fastest(row, 5), 4);
	for (int i = 0; i < 4; i++)
		assert_true(row[i].time_us == time_us[i + 1]);
	row[1].kind = "gemm";
	row[2].kind = "gemm";
	assert_int_equal(fit_fastest(row, 3), 3);
}

/* Rows of an H100 in microseconds, in milliseconds and in nanoseconds: nothing said, refused, told. */
static void times_in_another_unit_are_seen(void **state)
{
	static const double us[] = { 1, 1e-3, 1e3 };
	struct ft_error err;
	struct ft_gpu *base = ft_gpu_load("h100-sxm", NULL, &err);
	struct ft_measurement row[] = {
		{ .kind = "gemm", .dtype = "bf16", .m = 8192, .n = 8192, .k = 8192 },
		{ .kind = "attention", .dtype = "bf16", .pass = "forward" },
		{ .kind = "memory", .dtype = "bf16", .bytes = 1e9 },
		{ .kind = "collective", .dtype = "", .bytes = 1e9 },
	};
	static const double time_us[] = { 1600, 900, 700, 3000 };

	(void)state;
	ok_or_say(base, err);
	row[1].batch = 1;
	row[1].heads = 32;
	row[1].sequence = 8192;
	row[1].head_dim = 128;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 3; k++) {
			struct fit_input in = { .row = &row[i], .n = 1, .base = base };
			struct ft_fit fit = { .note = "" };

			row[i].cell = "x";
			row[i].time_us = time_us[i] * us[k];
			assert_int_equal(fit_units(&in, &fit, &err), k != 1);
			assert_int_equal(fit.note[0] != '\0', k == 2 && i == 0);
			assert_true(k != 1 || strstr(err.text, "another unit"));
		}
	ft_gpu_free(base);
}

/* Held out is a size, whether a row says it by its rows or in bytes: else a kernel whose rows
 * say bytes is in one fold, and predicted by the base alone. */
static void sizes_in_bytes_are_dealt_into_all_folds(void **state)
{
	(void)state;
	for (int in_bytes = 0; in_bytes < 2; in_bytes++) {
		uint64_t shape[32];
		int of_fold[FIT_FOLDS] = { 0 };

		for (int i = 0; i < 32; i++) {
			struct ft_measurement m = { .kind = "memory",
						    .kernel = "copy" };

			m.m = in_bytes ? 0 : 1000 * (i + 1);
			m.n = in_bytes ? 0 : 4096;
			m.bytes = in_bytes ? 8192e3 * (i + 1) : 0;
			shape[i] = fit_shape(&m);
			for (int k = 0; k < i; k++)
				assert_true(shape[k] != shape[i]);
			of_fold[fit_fold(&m)]++;
		}
		for (int i = 0; i < FIT_FOLDS; i++)
			assert_in_range(of_fold[i], 1, 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_bar_widens_for_few_shapes),
		cmocka_unit_test(a_curve_is_found_again_despite_an_outlier),
		cmocka_unit_test(rows_in_another_order_are_the_same_curve),
		cmocka_unit_test(noise_makes_no_endless_bandwidth),
		cmocka_unit_test(of_repeated_collectives_the_fastest_counts),
		cmocka_unit_test(sizes_in_bytes_are_dealt_into_all_folds),
		cmocka_unit_test(times_in_another_unit_are_seen),
	};

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("calibrate/fit", tests, NULL, NULL);
}
