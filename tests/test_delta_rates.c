/* tests/test_delta_rates.c - what a gated delta rule takes: published times of its kernels, and the steps along a sequence */
#include <math.h>

#include "foretoken/sim.h"
#include "tests/works.h"

#define ROWS "measurements/published/delta-rules.csv"

struct row {
	char gpu[16], pass[16];
	int keys, values, sequences, length;
	double us;
};

/* Of one layer: kernels of these names, each launch with its part of the bytes. */
static double takes_us(const struct ft_graph *g, const struct ft_gpu *gpu,
		       const char *chunks, const char *state)
{
	const struct ft_segment *s = NULL;
	double us = 0;

	for (size_t i = 0; i < g->n_segments && !us; i++) {
		s = &g->segment[i];
		for (size_t j = 0; j < s->n_ops; j++) {
			struct ft_work w = g->work[s->op[j].work];
			struct ft_prediction p;
			struct ft_error err;

			if (strcmp(w.name, chunks) && strcmp(w.name, state))
				continue;
			w.memory.bytes /= s->op[j].launches;
			assert_true(
				ft_kernel_predict(gpu, &w, FT_CLOCK_BURST, &p, &err));
			us += 1e6 * p.time_s * s->op[j].launches;
		}
	}
	return us;
}

static double rule_us(const struct ft_gpu *gpu, const struct row *r)
{
	bool forward = !strcmp(r->pass, "forward");
	char model[200], training[120];
	struct parts p;
	double us;

	snprintf(
		model, sizeof(model),
		"{name: qwen3-next-80b-a3b, num_hidden_layers: 1, linear_num_key_heads: %d, "
		"linear_num_value_heads: %d}",
		r->keys, r->values);
	snprintf(training, sizeof(training),
		 "{sequence_length: %d, global_batch_size: %d, micro_batch_size: %d}",
		 r->length, r->sequences, r->sequences);
	build(&p, model, training, "nemo-24", 1);
	us = takes_us(p.graph, gpu, forward ? "delta_chunks" : "delta_chunks_back",
		      forward ? "delta_state" : "delta_state_back");
	drop(&p);
	return us;
}

static void published_times_are_met(void **state)
{
	static const char *const gpus[] = { "h200", "gb200" };
	struct ft_gpu *gpu[2];
	struct ft_error err;
	double off[2][2] = { { 0 } };
	int n[2][2] = { { 0 } };
	FILE *in = fopen(ROWS, "r");
	char line[400];

	(void)state;
	assert_non_null(in);
	for (int i = 0; i < 2; i++)
		assert_non_null(gpu[i] = ft_gpu_load(gpus[i], NULL, &err));
	while (fgets(line, sizeof(line), in)) {
		struct row r;
		int g, pass;
		double e;

		if (sscanf(line, "%15[^,],%15[^,],%d,%d,%d,%d,%lf", r.gpu, r.pass,
			   &r.keys, &r.values, &r.sequences, &r.length, &r.us) != 7)
			continue;
		g = !strcmp(r.gpu, gpus[1]);
		pass = !strcmp(r.pass, "backward");
		e = fabs(log(rule_us(gpu[g], &r) / r.us));
		assert_true(e < 0.26);
		off[g][pass] += e;
		n[g][pass]++;
	}
	fclose(in);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(n[i][0], 54);
		assert_int_equal(n[i][1], 8);
		assert_true(off[i][0] / 54 < 0.075);
		assert_true(off[i][1] / 8 < 0.02);
		ft_gpu_free(gpu[i]);
	}
}

/* Few heads wait for each other's chunks: half as many take as long but for what all chunks do at once; of many sequences none
 * is waited for. */
static void few_heads_take_their_steps(void **state)
{
	struct row one = { .pass = "forward",
			   .keys = 1,
			   .values = 1,
			   .sequences = 1,
			   .length = 32768 };
	struct row many = { .pass = "forward",
			    .keys = 16,
			    .values = 16,
			    .sequences = 64,
			    .length = 512 };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load("h200", NULL, &err);
	const struct ft_memory_curve *c;
	double rate, start;

	(void)state;
	assert_non_null(gpu);
	c = ft_gpu_memory_curve(gpu, "delta_rule", false);
	rate = c->bytes_per_s.value, start = c->start_s.value;
	near_frac(rule_us(gpu, &one) * 1e-6,
		  6 * start + 32768 * 3584 / rate + 512 * c->step_s.value, 1e-6);
	near_frac(rule_us(gpu, &many) * 1e-6,
		  6 * start + 16. * 32768 * (3584 + 1536) / rate, 1e-6);
	ft_gpu_free(gpu);
}

/* A packed document carries its state to its own end alone. */
static void documents_end_a_chain(void **state)
{
	struct parts p;

	(void)state;
	build(&p, "qwen3-next-80b-a3b",
	      "{sequence_length: 8192, global_batch_size: 8, document_length: 1024, "
	      "parallel: {ep: 8}}",
	      "nemo-24", 8);
	for (size_t i = 0; i < p.graph->n_works; i++)
		if (!strcmp(p.graph->work[i].name, "delta_state"))
			assert_int_equal(p.graph->work[i].memory.steps, 16);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_times_are_met),
		cmocka_unit_test(few_heads_take_their_steps),
		cmocka_unit_test(documents_end_a_chain),
	};

	return cmocka_run_group_tests_name("delta rates", tests, NULL, NULL);
}
