/* tests/test_pace.c - GPUs of one model differ, and all wait for the slowest */
#include <math.h>

#include "foretoken/hw.h"
#include "tests/simulated.h"

static double spread_of(const char *text)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", text, strlen(text), &err);
	struct ft_cluster *c = ft_cluster_load(n, &err);
	double spread;

	ok_or_say(c, err);
	spread = c->imperfections.gpu_speed_spread_frac;
	ft_cluster_free(c);
	arena_release(&mem);
	return spread;
}

static void the_node_says_how_far_its_gpus_differ(void **state)
{
	double usual = spread_of("{gpu: h100-sxm, gpus: 8}");

	(void)state;
	assert_true(usual > 0 && usual < 0.05);
	assert_true(spread_of("{gpu: h100-sxm, gpus: 8, imperfections: {seed: 2}}") ==
		    usual);
	assert_true(spread_of("{gpu: h100-sxm, gpus: 8, imperfections: "
			      "{gpu_speed_spread_frac: 0}}") == 0);
	assert_true(spread_of("{gpu: h100-sxm, gpus: 8, imperfections: "
			      "{gpu_speed_spread_frac: 0.07}}") == 0.07);
	assert_true(
		spread_of("{gpu: h100-sxm, gpus: 8, node: {extends: hgx-h100, "
			  "provenance: {kind: assumed}, gpu_speed_spread: 0.03}}") ==
		0.03);
}

/* The largest of n normals, on average, by drawing them (Box and Muller). */
static double largest_of(int n)
{
	enum { DRAWS = 20000 };
	const double turn = 2 * acos(-1);
	uint64_t seed = 5;
	double sum = 0;

	for (int i = 0; i < DRAWS; i++) {
		double most = -INFINITY;

		for (int k = 0; k < n; k++) {
			double u = (rnd(&seed) + 1.) / 0x80000001p0;
			double v = (rnd(&seed) + 1.) / 0x80000001p0;

			most = fmax(most, sqrt(-2 * log(u)) * cos(turn * v));
		}
		sum += most;
	}
	return sum / DRAWS;
}

static double products_s(int gpus, const char *spread)
{
	char text[600];

	snprintf(text, sizeof(text),
		 "{model: {name: llama3-8b, num_hidden_layers: 2}, "
		 "cluster: {gpu: h100-sxm, gpus: %d, imperfections: "
		 "{gpu_speed_spread_frac: %s}}, stack: nemo-24, training: "
		 "{sequence_length: 8192, global_batch_size: %d, sharding: ddp}}",
		 gpus, spread, gpus);
	return simulated_s(text, "gate_up (forward)");
}

static void all_wait_for_the_slowest_of_so_many(void **state)
{
	static const int gpus[] = { 8, 64, 512 };

	(void)state;
	assert_true(products_s(1, "0.05") == products_s(1, "0"));
	for (int i = 0; i < 3; i++)
		near_frac(products_s(gpus[i], "0.05") / products_s(gpus[i], "0"),
			  1 + 0.05 * largest_of(gpus[i]), 0.003);
}

/* A card held to half its power is slower by what clocks lose, not by nothing; one held to
 * more than its products ask for is as fast as one without a limit. */
static void steps_follow_the_power_limit(void **state)
{
	static const int limits[] = { 200, 350, 500, 700, 1400, 2800 };
	double before = INFINITY, step[6];

	(void)state;
	for (int i = 0; i < 6; i++) {
		char text[400];

		snprintf(
			text, sizeof(text),
			"{model: llama3-8b, stack: torch-2.11-compile, cluster: {gpus: 8, "
			"gpu: {extends: h100-sxm, power.limit: %d W}}, training: "
			"{sequence_length: 4096, global_batch_size: 32}}",
			limits[i]);
		step[i] = simulated_s(text, NULL);
		assert_true(step[i] <= before);
		before = step[i];
	}
	assert_true(step[1] / step[3] > 1.15 && step[1] / step[3] < 1.34);
	near_frac(step[5], step[4], 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_follow_the_power_limit),
		cmocka_unit_test(the_node_says_how_far_its_gpus_differ),
		cmocka_unit_test(all_wait_for_the_slowest_of_so_many),
	};

	return cmocka_run_group_tests_name("sim/durations", tests, NULL, NULL);
}
