/* tests/test_again.c - which of a pipeline's layers full recomputation runs again */
#include <math.h>

#include "tests/works.h"

#define DENSE \
	"{model_type: llama, hidden_size: 512, num_hidden_layers: 8, " \
	"num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1024, " \
	"intermediate_size: 1536}"
#define PLAN(more) \
	"{sequence_length: 1024, global_batch_size: 8, sharding: ddp, " more "}"

enum { S = 1024, H = 512, LAYERS = 8 };

/* Of two chunks of two layers on each of two stages each runs its first layer again, so that each of their forward passes
 * keeps the first one's input alone. */
static void each_chunk_runs_its_first_layer_again(void **state)
{
	struct parts p;
	int seen = 0;

	(void)state;
	build(&p, DENSE,
	      PLAN("recompute: full, recompute_layers: 4, parallel: {pp: 2, vpp: 2}"),
	      "megatron-core", 8);
	for (size_t i = 0; i < p.graph->rank_class[0].n_calls; i++) {
		const struct ft_call *c = &p.graph->rank_class[0].call[i];
		const struct ft_segment *s = &p.graph->segment[c->segment];
		double kept = s->net_bytes[FT_MEMORY_ACTIVATIONS];

		if (strncmp(s->name, "forward", 7))
			continue;
		assert_true((kept == 2 * S * H) == (seen++ % 2 == 0));
		assert_int_equal(c->repeat, 1);
	}
	assert_true(seen == 2 * 2 * p.plan->micro_batches);
	drop(&p);
}

/* As many run again as are asked for, in each stage its share, or one less or more. */
static void some_layers_run_again_a_share_of_each_stage(void **state)
{
	static const char *const splits[] = { "{pp: 1}", "{pp: 2}", "{pp: 2, vpp: 2}",
					      "{pp: 4}" };

	(void)state;
	for (int i = 0; i < 4 * (LAYERS + 1); i++) {
		int layers = i % (LAYERS + 1), pp;
		double all = 0;
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan),
			 PLAN("recompute: full, recompute_layers: %d, parallel: %s"),
			 layers, splits[i / (LAYERS + 1)]);
		build(&p, DENSE, plan, "megatron-core", 8);
		pp = (int)p.plan->pp;
		for (int c = 0; c < pp; c++) {
			struct ft_graph one = *p.graph;

			double n;

			one.rank_class += c;
			one.n_classes = 1;
			n = sum_of(&one, "rope").n / (double)p.plan->micro_batches;
			all += n;
			assert_true(fabs(n - (double)(LAYERS + layers) / pp) < 1);
		}
		near_frac(all, LAYERS + layers, 1e-12);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_chunk_runs_its_first_layer_again),
		cmocka_unit_test(some_layers_run_again_a_share_of_each_stage),
	};

	return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
