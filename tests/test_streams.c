/* tests/test_streams.c - a residual of several streams: what its kernels move, what stages send, what is kept */
#include "tests/compressed.h"

/* Of n streams of h: as long as a copy of so many times all of them, by fused kernels and by what a compiler makes; no less than what each
 * reads and writes. */
static void streams_move_what_was_measured(void **state)
{
	static const struct {
		const char *name, *back;
		double fused[2], compiled[2], least[2];
		bool ends;
	} want[] = {
		{ "streams_weights",
		  "streams_weights_back",
		  { 1.6, 6 },
		  { 7.5, 12.5 },
		  { 1, 3 },
		  true },
		{ "streams_sum",
		  "streams_sum_back",
		  { 1.25, 2.2 },
		  { 1.3, 2.6 },
		  { 1.2, 2.2 },
		  true },
		{ "streams_mix",
		  "streams_mix_back",
		  { 2.2, 3.9 },
		  { 13.6, 19.9 },
		  { 2.2, 3.4 },
		  false },
		{ "streams_gradient",
		  "streams_gradient",
		  { 4, 4 },
		  { 4, 4 },
		  { 4, 4 },
		  false },
	};
	double all = 2. * TOKENS * H * STREAMS;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MODEL("1", RATIOS("0")), PLAN(""),
		      i ? "megatron-bridge-26.02" : "megatron-bridge-26.06", 8);
		for (size_t k = 0; k < sizeof(want) / sizeof(*want); k++) {
			double times = PASSES * (want[k].ends ? 3 : 2);
			const double *x = i ? want[k].compiled : want[k].fused;

			near_frac(sum_of(p.graph, want[k].name).bytes,
				  times * x[0] * all, 1e-12);
			near_frac(sum_of(p.graph, want[k].back).bytes,
				  times * x[1] * all, 1e-12);
			assert_true(x[0] >= want[k].least[0] &&
				    x[1] >= want[k].least[1]);
		}
		near_frac(sum_of(p.graph, "streams_square").bytes,
			  2. * PASSES *
				  ((i ? 41 * 8 : 400) * TOKENS * STREAMS * STREAMS +
				   (i ? 40 * 4.2e6 : 0)),
			  1e-12);
		assert_true(launches_of(p.graph, "streams_square_back") ==
			    2. * PASSES * (i ? 118 : 1));
		drop(&p);
	}
}

/* All streams go from stage to stage; a predicted token's projection is one of its embedding and one of each stream. */
static void stages_and_predicted_tokens_have_all_streams(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL("2", RATIOS("0, 4")), PLAN(", parallel: {pp: 2}"),
	      "megatron-bridge-26.06", 8);
	near_frac(sum_of(p.graph, "pp_activation").bytes,
		  sum_of(p.graph, "pp_activation").n * 2. * TOKENS * H * STREAMS,
		  1e-12);
	drop(&p);
	build(&p, MODEL("1", RATIOS("4") ", num_nextn_predict_layers: 1"), PLAN(""),
	      "megatron-bridge-26.06", 8);
	near_frac(sum_of(p.graph, "mtp_projection").flop,
		  PASSES * 6. * (1 + STREAMS) * TOKENS * H * H, 1e-12);
	drop(&p);
}

/* The most of activations at once on the first stage. */
static double most_kept(const struct ft_graph *g)
{
	const struct ft_class *c = g->rank_class;
	double now = 0, most = 0;

	for (size_t i = 0; i < c->n_calls; i++)
		for (uint32_t k = 0; k < c->call[i].repeat; k++) {
			const struct ft_segment *s = &g->segment[c->call[i].segment];

			most = fmax(most, now + s->peak_bytes[FT_MEMORY_ACTIVATIONS]);
			now += s->net_bytes[FT_MEMORY_ACTIVATIONS];
		}
	return most;
}

/* Where mhc runs again the streams of all layers of a chunk are made at once, so that of one micro-batch nothing is won, and of two at a time what
 * one keeps, but for the streams that came in; whether passes run side by side or not. Nothing stays. */
static void streams_come_back_all_at_once(void **state)
{
	static const struct {
		const char *more;
		int layers; /* of a chunk */
		double won; /* chunks of layers */
	} plan[] = {
		{ "", 4, 0 },
		{ ", parallel: {pp: 2}", 2, 1 },
		{ ", parallel: {pp: 2, vpp: 2}, schedule: interleaved", 1, 4 },
		{ ", parallel: {pp: 2, vpp: 2, ep: 2}, schedule: interleaved, "
		  "overlap: {ep: true}",
		  1, 5 },
	};
	double in = 2. * TOKENS * H * STREAMS, own = 4. * TOKENS * H * (STREAMS + 1);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct parts none, again;
		char text[300];

		snprintf(text, sizeof(text), PLAN("%s"), plan[i].more);
		build(&none, MODEL("4", RATIOS("0, 4, 128, 4")), text,
		      "megatron-bridge-26.06", 8);
		snprintf(text, sizeof(text),
			 PLAN("%s, recompute: selective, recompute_modules: mhc"),
			 plan[i].more);
		build(&again, MODEL("4", RATIOS("0, 4, 128, 4")), text,
		      "megatron-bridge-26.06", 8);
		near_frac(most_kept(none.graph) - most_kept(again.graph),
			  plan[i].won * (plan[i].layers * own - in), 1e-9);
		assert_true(left_over(again.graph, FT_MEMORY_ACTIVATIONS) ==
			    left_over(none.graph, FT_MEMORY_ACTIVATIONS));
		drop(&again);
		drop(&none);
	}
}

/* Without kernels for streams each half keeps them in fp32, too, and so does mhc; with them in 16 bit alone. */
static void unfused_streams_are_kept_wide(void **state)
{
	static const char *const plan[] = {
		PLAN(""), PLAN(", recompute: selective, recompute_modules: mhc")
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		double kept;

		build(&p, MODEL("1", RATIOS("0")), plan[i], "megatron-bridge-26.06", 8);
		kept = kept_by_layer(p.graph);
		p.stack->layout.fused_streams = false;
		rebuild(&p);
		near_frac(kept_by_layer(p.graph) - kept, 2. * 4 * TOKENS * H * STREAMS,
			  1e-9);
		drop(&p);
	}
}

/* A norm between halves adds nothing where streams do, nor does it when it runs again. */
static void norms_run_again_as_they_ran(void **state)
{
	struct parts once, again;

	(void)state;
	build(&once, MODEL("1", RATIOS("4")), PLAN(""), "megatron-bridge-26.06", 8);
	build(&again, MODEL("1", RATIOS("4")),
	      PLAN(", recompute: selective, recompute_modules: layernorm"),
	      "megatron-bridge-26.06", 8);
	assert_int_equal(sum_of(again.graph, "norm").n,
			 2 * sum_of(once.graph, "norm").n);
	assert_int_equal(sum_of(again.graph, "add_norm").n, 0);
	drop(&again);
	drop(&once);
}

/* Cut in two a backward does what it does in one, and what is trained of weights comes later. */
static void a_backward_in_two_does_the_same(void **state)
{
	static const char *const later[] = { "entry_parts", "index_q", "out_groups",
					     "q_up" };
	struct parts one, two;
	double weights = 0;

	(void)state;
	build(&one, MODEL("4", RATIOS("0, 4, 128, 4") ", num_nextn_predict_layers: 1"),
	      PLAN(", parallel: {pp: 2}"), "deepseek-2024", 8);
	build(&two, MODEL("4", RATIOS("0, 4, 128, 4") ", num_nextn_predict_layers: 1"),
	      PLAN(", parallel: {pp: 2}, schedule: zero-bubble"), "deepseek-2024", 8);
	near_frac(sum_of(two.graph, NULL).flop, sum_of(one.graph, NULL).flop, 1e-12);
	for (size_t i = 0; i < one.graph->n_works; i++) {
		const char *name = one.graph->work[i].name;

		if (sum_of(one.graph, name).n != sum_of(two.graph, name).n)
			fail_msg("%s: %zu and %zu", name,
				 (size_t)sum_of(one.graph, name).n,
				 (size_t)sum_of(two.graph, name).n);
	}
	for (size_t i = 0; i < two.graph->n_segments; i++) {
		const struct ft_segment *s = &two.graph->segment[i];

		for (size_t k = 0; strstr(s->name, "weights") && k < s->n_ops; k++)
			for (size_t j = 0; j < 4; j++)
				weights += !strcmp(two.graph->work[s->op[k].work].name,
						   later[j]);
	}
	assert_true(weights > 0);
	drop(&two);
	drop(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_move_what_was_measured),
		cmocka_unit_test(stages_and_predicted_tokens_have_all_streams),
		cmocka_unit_test(streams_come_back_all_at_once),
		cmocka_unit_test(unfused_streams_are_kept_wide),
		cmocka_unit_test(norms_run_again_as_they_ran),
		cmocka_unit_test(a_backward_in_two_does_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
