/*
 * tests/test_flat.c - FSDP with flat units: bytes in closed form, where they run, what waits for what; and losses
 * that a trainer computes besides
 */
#include "tests/counted.h"

#define MODEL "{name: llama3-8b, num_hidden_layers: 2}"
#define PLAN(batch, more) \
	"{sequence_length: 128, micro_batch_size: 1, global_batch_size: " batch ", " \
	"sharding: fsdp, " more "}"
#define WIDE "gradient_dtype: fp32"
#define NARROW "gradient_dtype: bf16"

/* Parameters of a layer, and of embedding, head and last norm. */
static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double root = 2 * 128256.0 * 4096 + 4096;

static double bytes_of(const struct parts *p, const char *name)
{
	return sum_in(p->graph, NULL, name).bytes;
}

/* Do all works of this name run on that stream? */
static bool all_on(const struct ft_graph *g, const char *name, enum ft_stream stream)
{
	bool any = false;

	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++) {
			const struct ft_op *op = &g->segment[s].op[i];

			if (strcmp(g->work[op->work].name, name))
				continue;
			if (op->stream != stream)
				return false;
			any = true;
		}
	return any;
}

static bool waits(const struct ft_op *op, int for_what)
{
	for (int i = 0; i < FT_OP_WAITS; i++)
		if (op->wait[i] == for_what)
			return true;
	return false;
}

/* Layers are gathered forward and backward, the root once. */
static void units_are_cast_joined_widened_and_divided(void **state)
{
	const double all = 2 * layer + root, gathers = 4 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("8", WIDE), "torch-2.11-fsdp1", 8);
	near_frac(bytes_of(&p, "fsdp_copy_in"), 6 * gathers / 8, 1e-9);
	near_frac(bytes_of(&p, "fsdp_gather"), 2 * gathers, 1e-9);
	near_frac(bytes_of(&p, "fsdp_join"), 4 * all, 1e-9);
	near_frac(bytes_of(&p, "fsdp_widen"), 6 * all, 1e-9);
	near_frac(bytes_of(&p, "fsdp_divide"), 8 * all, 1e-9);
	near_frac(bytes_of(&p, "fsdp_reduce"), 4 * all, 1e-9);
	assert_true(bytes_of(&p, "fsdp_copy_out") == 0);
	assert_true(bytes_of(&p, "fsdp_pack") == 0);
	assert_true(all_on(p.graph, "fsdp_copy_in", FT_STREAM_COMPUTE));
	assert_true(all_on(p.graph, "fsdp_join", FT_STREAM_COMPUTE));
	assert_true(all_on(p.graph, "fsdp_widen", FT_STREAM_COMPUTE));
	assert_true(all_on(p.graph, "fsdp_divide", FT_STREAM_COMPUTE));
	assert_true(launches_of(p.graph, "fsdp_copy_in") == 2 * 2 + 1);
	assert_true(launches_of(p.graph, "fsdp_join") == 3);
	drop(&p);
}

static void narrow_reductions_widen_nothing(void **state)
{
	const double all = 2 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("8", NARROW), "torch-2.11-fsdp1", 8);
	assert_true(bytes_of(&p, "fsdp_widen") == 0);
	near_frac(bytes_of(&p, "fsdp_divide"), 4 * all, 1e-9);
	near_frac(bytes_of(&p, "fsdp_reduce"), 2 * all, 1e-9);
	drop(&p);
}

/* Alone there is nobody to reduce with, and nothing to divide by. */
static void a_rank_alone_joins_and_widens(void **state)
{
	const double all = 2 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("1", WIDE), "torch-2.11-fsdp1", 1);
	near_frac(bytes_of(&p, "fsdp_join"), 4 * all, 1e-9);
	near_frac(bytes_of(&p, "fsdp_widen"), 6 * all, 1e-9);
	assert_true(bytes_of(&p, "fsdp_divide") == 0);
	assert_true(bytes_of(&p, "fsdp_reduce") == 0);
	assert_true(bytes_of(&p, "fsdp_gather") == 0);
	drop(&p);
}

/* Each micro-batch but the first adds its share: two reads and a write in fp32, one kernel a
 * unit. */
static void shares_of_micro_batches_are_added(void **state)
{
	const double all = 2 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("32", WIDE), "torch-2.11-fsdp1", 8);
	near_frac(bytes_of(&p, "fsdp_accumulate"), 3 * 12 * all / 8, 1e-9);
	near_frac(bytes_of(&p, "fsdp_reduce"), 4 * 4 * all, 1e-9);
	assert_true(all_on(p.graph, "fsdp_accumulate", FT_STREAM_COMPUTE));
	drop(&p);
}

/* What stacks that are not flat have, and a flat one could not use. */
static void copies_and_blocks_are_refused(void **state)
{
	static const char *const rest[] = { "fsdp_copy_out: 4 B",
					    "table_block: 4 KiB" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ft_error err;
		char path[64];
		FILE *f = fopen(own_path(path, "flat.yaml"), "w");

		assert_non_null(f);
		fprintf(f, "{extends: torch-2.11-fsdp1, title: x, layout: {%s}}",
			rest[i]);
		fclose(f);
		assert_null(ft_stack_load(path, NULL, &err));
		unlink(path);
		assert_non_null(
			strstr(err.text, "copies nothing out and packs no blocks"));
	}
}

/* Gathers and reductions of one group are one communicator's, which runs one after the other in
 * the order of their launches, whatever FSDP's units are. */
static void one_communicator_runs_one_collective_at_a_time(void **state)
{
	static const char *const stacks[] = { "torch-2.11-fsdp1", "torch-2.11-eager",
					      "torchtitan-2024", "llm-foundry-2023",
					      "megatron-core" };

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct parts p;
		int gathers = 0, reductions = 0;
		bool turns = k < 4; /* Megatron's are not known to */

		build(&p, MODEL, PLAN("8", WIDE), stacks[k], 8);
		for (size_t s = 0; s < p.graph->n_segments; s++)
			for (size_t i = 0; i < p.graph->segment[s].n_ops; i++) {
				const struct ft_op *op = &p.graph->segment[s].op[i];
				const char *name = p.graph->work[op->work].name;

				if (!strcmp(name, "fsdp_gather")) {
					assert_true(
						waits(op, FT_TAIL + FT_STREAM_REDUCE) ==
						turns);
					gathers++;
				} else if (!strcmp(name, "fsdp_reduce")) {
					assert_true(
						waits(op, FT_TAIL + FT_STREAM_GATHER) ==
						turns);
					reductions++;
				}
			}
		assert_true(gathers > 0 && reductions > 0);
		drop(&p);
	}
}

/* Composer's two: a cast to fp32 and a softmax each, of every micro-batch's logits. */
static void metrics_are_losses_once_more(void **state)
{
	const double logits = 4 * 128.0 * 128256;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("32", WIDE), "llm-foundry-2023", 8);
	near_frac(bytes_of(&p, "metric_cast"), 2 * 6 * logits, 1e-9);
	near_frac(bytes_of(&p, "metric_loss"), 2 * 8 * logits, 1e-9);
	assert_true(all_on(p.graph, "metric_loss", FT_STREAM_COMPUTE));
	drop(&p);
	build(&p, MODEL, PLAN("32", WIDE), "torch-2.11-fsdp1", 8);
	assert_true(bytes_of(&p, "metric_cast") == 0);
	assert_true(bytes_of(&p, "metric_loss") == 0);
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_cast_joined_widened_and_divided),
		cmocka_unit_test(narrow_reductions_widen_nothing),
		cmocka_unit_test(a_rank_alone_joins_and_widens),
		cmocka_unit_test(shares_of_micro_batches_are_added),
		cmocka_unit_test(copies_and_blocks_are_refused),
		cmocka_unit_test(one_communicator_runs_one_collective_at_a_time),
		cmocka_unit_test(metrics_are_losses_once_more),
	};

	return cmocka_run_group_tests_name("traces/flat", tests, NULL, NULL);
}
