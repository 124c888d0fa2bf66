/*
 * tests/test_sharding.c - weights and gradients of FSDP, with others and in a group of one rank; what PyTorch's
 * steps copy and keep besides
 */
#include <math.h>

#include "tests/counted.h"

#define MODEL "{name: llama3-8b, num_hidden_layers: 2}"
#define MOE "{name: mixtral-8x7b, num_hidden_layers: 2}"
#define PLAN(batch) \
	"{sequence_length: 128, micro_batch_size: 1, global_batch_size: " batch ", "

/* Parameters of a layer, and of embedding, head and last norm. */
static const double layer =
	2 * 4096.0 * 4096 + 2 * 1024.0 * 4096 + 3 * 4096.0 * 14336 + 2 * 4096;
static const double root = 2 * 128256.0 * 4096 + 4096;

/* The stream of all works of this name; FT_STREAMS where they are on several or none. */
static int stream_of(const struct ft_graph *g, const char *name)
{
	int stream = -1;

	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++) {
			const struct ft_op *op = &g->segment[s].op[i];

			if (strcmp(g->work[op->work].name, name))
				continue;
			if (stream >= 0 && stream != op->stream)
				return FT_STREAMS;
			stream = op->stream;
		}
	return stream < 0 ? FT_STREAMS : stream;
}

/* Forward and backward gather each layer; the root is gathered again behind the head. */
static void a_rank_alone_copies_on_the_compute_stream(void **state)
{
	const double gathers = 2 * (2 * layer + root), all = 2 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("1") "sharding: fsdp, gradient_dtype: fp32}",
	      "torch-2.11-eager", 1);
	assert_int_equal(stream_of(p.graph, "fsdp_copy_in"), FT_STREAM_COMPUTE);
	assert_int_equal(stream_of(p.graph, "fsdp_copy_out"), FT_STREAM_COMPUTE);
	assert_int_equal(stream_of(p.graph, "fsdp_keep"), FT_STREAM_REDUCE);
	near_frac(sum_in(p.graph, NULL, "fsdp_copy_in").bytes, 6 * gathers, 1e-9);
	near_frac(sum_in(p.graph, NULL, "fsdp_copy_out").bytes, 4 * gathers, 1e-9);
	near_frac(sum_in(p.graph, NULL, "fsdp_pack").bytes, 6 * all, 1e-9);
	near_frac(sum_in(p.graph, NULL, "fsdp_keep").bytes, 8 * all, 1e-9);
	assert_true(sum_in(p.graph, NULL, "fsdp_gather").n == 0);
	assert_true(sum_in(p.graph, NULL, "fsdp_reduce").n == 0);
	/* a kernel a tensor: seven products and two norms of a layer; embedding, norm and head */
	assert_true(launches_of(p.graph, "fsdp_copy_in") == 2 * (2 * 9 + 3));
	assert_true(launches_of(p.graph, "fsdp_copy_out") == 2 * (2 * 9 + 3));
	drop(&p);
}

static void ranks_of_a_group_copy_beside_the_products(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("8") "sharding: fsdp}", "torch-2.11-eager", 8);
	assert_int_equal(stream_of(p.graph, "fsdp_copy_in"), FT_STREAM_COPY);
	near_frac(sum_in(p.graph, NULL, "fsdp_copy_in").bytes,
		  6 * 2 * (2 * layer + root) / 8, 1e-9);
	assert_true(sum_in(p.graph, NULL, "fsdp_keep").n == 0);
	/* one for all tensors of a unit, two layers and the root, for both passes */
	assert_true(launches_of(p.graph, "fsdp_copy_out") == 2 * 3);
	assert_true(sum_in(p.graph, NULL, "fsdp_gather").n == 2 * 3);
	assert_true(sum_in(p.graph, NULL, "fsdp_reduce").n == 3);
	drop(&p);
}

/* Of a library that copies nothing in or out (XLA, FSDP of 2023) a rank alone does nothing. */
static void a_library_without_copies_keeps_gradients_where_they_are(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("1") "sharding: fsdp}", "maxtext-2025", 1);
	assert_true(sum_in(p.graph, NULL, "fsdp_copy_in").n == 0);
	assert_true(sum_in(p.graph, NULL, "fsdp_keep").n == 0);
	drop(&p);
}

/* DTensor runs the loss over a split vocabulary op by op, whether blocks are compiled or not:
 * 36 and 34 bytes a logit, casts aside. Whole vocabularies keep the stack's own loss. */
static void a_split_vocabulary_takes_the_loss_apart(void **state)
{
	static const char *const stacks[] = { "torch-2.11-eager",
					      "torch-2.11-compile" };
	const double logits = 128.0 * 128256;

	(void)state;
	for (int s = 0; s < 2; s++) {
		struct parts whole, split;

		build(&whole, MODEL, PLAN("8") "sharding: fsdp}", stacks[s], 8);
		build(&split, MODEL,
		      PLAN("4") "sharding: fsdp, "
				"parallel: {tp: 2}}",
		      stacks[s], 8);
		near_frac(sum_in(whole.graph, NULL, "loss").bytes, (s ? 2 : 8) * logits,
			  1e-9);
		near_frac(sum_in(split.graph, NULL, "loss").bytes, 36 * logits / 2,
			  1e-9);
		near_frac(sum_in(split.graph, NULL, "loss_back").bytes, 34 * logits / 2,
			  1e-9);
		near_frac(sum_in(split.graph, NULL, "loss_cast").bytes, 6 * logits / 2,
			  1e-9);
		drop(&whole);
		drop(&split);
	}
}

/* Copies that stay on their rank are in the order of experts already. */
static void copies_that_stay_are_sorted_once(void **state)
{
	struct parts alone, apart;

	(void)state;
	build(&alone, MOE, PLAN("8") "sharding: ddp}", "torch-2.11-eager", 8);
	build(&apart, MOE, PLAN("8") "sharding: ddp, parallel: {ep: 2}}",
	      "torch-2.11-eager", 8);
	assert_true(sum_in(alone.graph, NULL, "permute").n == 2);
	assert_true(sum_in(alone.graph, NULL, "sort_by_expert").n == 0);
	assert_true(sum_in(alone.graph, NULL, "unsort_back").n == 0);
	assert_true(sum_in(apart.graph, NULL, "sort_by_expert").n == 2);
	assert_true(sum_in(apart.graph, NULL, "unsort_back").n == 2);
	assert_true(sum_in(alone.graph, NULL, "expert_join_back").bytes ==
		    sum_in(apart.graph, NULL, "expert_join_back").bytes);
	drop(&alone);
	drop(&apart);
}

/* The most that segments of a name keep of a category, beyond what they hold before. */
static double most(const struct ft_graph *g, const char *name, enum ft_memory category,
		   bool net)
{
	double most = 0;

	for (size_t i = 0; i < g->n_segments; i++)
		if (!strncmp(g->segment[i].name, name, strlen(name)))
			most = fmax(most, net ? g->segment[i].net_bytes[category] :
						g->segment[i].peak_bytes[category]);
	return most;
}

/* 6f + 14h + 4 kv bytes a token of a layer in bf16 (h 4,096, f 14,336, kv 1,024), 2f + 6h less
 * where a compiler casts products' inputs again. 8 H100 kept 13.0 h less, that is 53,250. */
static void compiled_narrow_products_keep_no_inputs(void **state)
{
	static const char *const precision[] = { "bf16", "fp8" };
	double kept[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char plan[200];
		struct parts p;

		snprintf(plan, sizeof(plan), PLAN("8") "sharding: fsdp, precision: %s}",
			 precision[i]);
		build(&p, MODEL, plan, "torch-2.11-compile", 8);
		kept[i] = most(p.graph, "forward", FT_MEMORY_ACTIVATIONS, true) / 128;
		drop(&p);
	}
	near_frac(kept[0], 6 * 14336.0 + 14 * 4096.0 + 4 * 1024.0, 1e-9);
	near_frac(kept[0] - kept[1], 53250, 0.01);
}

/* Behind the last backward of eight ranks: the root's gradients in 16 bit and packed in fp32,
 * before its shard is there; of two, packed, reduced and the embedding's; of one, packed and
 * kept. Reduced in bf16: packed, reduced, widened, and the embedding's. */
static void the_last_reduction_is_held_beside_what_it_reduces(void **state)
{
	static const struct {
		const char *plan;
		int64_t ranks;
		double bytes; /* a parameter of the root, gradients kept included */
	} row[] = {
		{ PLAN("8") "sharding: fsdp, gradient_dtype: fp32}", 8, 2 + 4 },
		{ PLAN("2") "sharding: fsdp, gradient_dtype: fp32}", 2, 4 + 2 + 1 },
		{ PLAN("1") "sharding: fsdp, gradient_dtype: fp32}", 1, 4 + 4 },
		{ PLAN("2") "sharding: fsdp, gradient_dtype: bf16}", 2, 2 + 1 + 2 + 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct parts p;

		build(&p, MODEL, row[i].plan, "torch-2.11-compile", row[i].ranks);
		near_frac(
			most(p.graph, "embed_back", FT_MEMORY_OTHER, false) +
				most(p.graph, "embed_back", FT_MEMORY_GRADIENTS, true),
			row[i].bytes * root, 1e-5);
		drop(&p);
	}
}

/* PyTorch's pipelines keep the logits of each micro-batch, and make one tensor of them in
 * the end; logits are of two bytes, 128 tokens of a micro-batch. Beside their gradient stands that
 * of the head's weights, before it is added to the one of before. Autocast's copy of these stays from forward to backward. */
static void a_pipeline_keeps_its_outputs_twice_in_the_end(void **state)
{
	const double logits = 128.0 * 128256, copy = 2 * 4096.0 * 128256;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("8") "sharding: ddp, parallel: {pp: 2}}",
	      "torch-2.11-compile", 2);
	near_frac(most(p.graph, "head.", FT_MEMORY_OTHER, true), copy + 2 * logits,
		  1e-9);
	near_frac(most(p.graph, "head_back", FT_MEMORY_OTHER, false),
		  2 * logits + 2 * 4096.0 * 128256, 1e-9);
	near_frac(most(p.graph, "flush", FT_MEMORY_OTHER, false), 8 * 2 * logits, 1e-9);
	drop(&p);
	build(&p, MODEL, PLAN("8") "sharding: ddp}", "torch-2.11-compile", 1);
	near_frac(most(p.graph, "head.", FT_MEMORY_OTHER, true), copy, 1e-9);
	drop(&p);
}

/* Pipelines of two stages, eight micro-batches on each of two replicas, four layers. */
#define PIPELINE(more) \
	"{sequence_length: 128, micro_batch_size: 1, global_batch_size: 16, " \
	"sharding: fsdp, gradient_dtype: fp32, " more "}"
#define FOUR "{name: llama3-8b, num_hidden_layers: 4}"

static const char *const pipelines[] = {
	PIPELINE("parallel: {pp: 2}"),
	PIPELINE("parallel: {pp: 2, vpp: 2}, schedule: interleaved"),
	PIPELINE("parallel: {pp: 2, vpp: 2}, schedule: zbv"),
	PIPELINE("parallel: {pp: 2, vpp: 2}, schedule: dualpipev"),
	PIPELINE("parallel: {pp: 2}, schedule: zero-bubble"),
};
enum { PIPELINES = sizeof(pipelines) / sizeof(*pipelines), MICRO_BATCHES = 8 };

/* The same plan where weights are to be gathered for each pass. */
static const char *resharding(char room[400], const char *plan)
{
	snprintf(room, 400, "{reshard_after_forward: true, %s", plan + 1);
	return room;
}

/* Each layer is gathered for the forward and for the backward of each micro-batch, also the
 * one that no layer before it has gathered: behind a transfer, and where a V turns. So is the
 * head; the embedding's table is needed forward alone. */
static void a_pipeline_gathers_each_layer_for_each_pass(void **state)
{
	const double table = 128256.0 * 4096, head = table + 4096;

	(void)state;
	for (int i = 0; i < PIPELINES; i++) {
		/* zbv and dualpipev: both ends are one unit, on the first stage */
		double ends = i == 2 || i == 3 ? 2 * (table + head) : table + 2 * head;
		char room[400];
		struct parts p;

		build(&p, FOUR, resharding(room, pipelines[i]), "torch-2.11-eager", 4);
		near_frac(sum_in(p.graph, NULL, "fsdp_gather").bytes,
			  MICRO_BATCHES * 2 * (2 * 4 * layer + ends), 1e-9);
		near_frac(sum_in(p.graph, NULL, "fsdp_reduce").bytes,
			  4 * (4 * layer + table + head), 1e-9);
		drop(&p);
	}
}

/* PyTorch's pipelines gather once and reduce once, in the format of gradients, in which those
 * of other micro-batches have been added up, at the rate of what is not vectorized. */
static void a_pipeline_that_stays_whole_gathers_and_reduces_once(void **state)
{
	const double all = 4 * layer + root;

	(void)state;
	for (int i = 0; i < PIPELINES; i++) {
		struct parts p;

		build(&p, FOUR, pipelines[i], "torch-2.11-eager", 4);
		near_frac(sum_in(p.graph, NULL, "fsdp_gather").bytes, 2 * all, 1e-9);
		near_frac(sum_in(p.graph, NULL, "fsdp_reduce").bytes, 4 * all, 1e-9);
		near_frac(sum_in(p.graph, NULL, "fsdp_pack").bytes, 8 * all, 1e-9);
		near_frac(sum_in(p.graph, NULL, "gradient_cast").bytes,
			  6 * (all - 4096), 1e-3);
		near_frac(sum_in(p.graph, NULL, "accumulate").bytes,
			  (MICRO_BATCHES - 1) * 10 * (all - 4096), 1e-3);
		drop(&p);
	}
}

/* What all segments of a class keep of a category. */
static double kept_in_all(const struct ft_graph *g, size_t class,
			  enum ft_memory category)
{
	const struct ft_class *c = &g->rank_class[class];
	double sum = c->base_bytes[category];

	for (size_t i = 0; i < c->n_calls; i++)
		sum += c->call[i].repeat *
		       g->segment[c->call[i].segment].net_bytes[category];
	return sum;
}

/* Of two replicas: half of what is kept in fp32, and all of it in 16 bit; gradients in fp32,
 * whole. */
static void a_pipeline_that_stays_whole_holds_it(void **state)
{
	const double table = 128256.0 * 4096;
	const double stage[] = { 2 * layer + table, 2 * layer + table + 4096 };
	struct parts p;

	(void)state;
	build(&p, FOUR, pipelines[0], "torch-2.11-eager", 4);
	for (size_t s = 0; s < 2; s++) {
		near_frac(kept_in_all(p.graph, s, FT_MEMORY_WEIGHTS),
			  (4. / 2 + 2) * stage[s], 1e-9);
		near_frac(kept_in_all(p.graph, s, FT_MEMORY_GRADIENTS), 4 * stage[s],
			  1e-9);
	}
	drop(&p);
}

/* Weights that are not freed behind a forward are there until the backward has run: of a
 * layer, 2 bytes each. Over a step nothing is left. */
static void weights_that_stay_are_held_until_backward(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("8") "sharding: fsdp, reshard_after_forward: false}",
	      "torch-2.11-eager", 8);
	near_frac(most(p.graph, "forward", FT_MEMORY_WEIGHTS, true), 2 * layer, 1e-9);
	near_frac(most(p.graph, "embed.", FT_MEMORY_WEIGHTS, true), 2 * root, 1e-9);
	near_frac(kept_in_all(p.graph, 0, FT_MEMORY_WEIGHTS),
		  4 * (2 * layer + root) / 8, 1e-9);
	assert_true(sum_in(p.graph, NULL, "fsdp_gather").n == 3);
	drop(&p);
}

/* Is there a work of this name that waits for the tail of that stream, in segments so named? */
static bool waits(const struct ft_graph *g, const char *segment, const char *name,
		  enum ft_stream stream)
{
	for (size_t s = 0; s < g->n_segments; s++)
		for (size_t i = 0; i < g->segment[s].n_ops; i++) {
			const struct ft_op *op = &g->segment[s].op[i];

			if (strcmp(g->segment[s].name, segment) ||
			    strcmp(g->work[op->work].name, name))
				continue;
			for (int w = 0; w < FT_OP_WAITS; w++)
				if (op->wait[w] == FT_TAIL + (int)stream)
					return true;
		}
	return false;
}

/* Of eight micro-batches: what each brings is added to the rank's shard in fp32, but for the
 * first, and the next one's compute waits for it. Sums of whole gradients are another thing. */
static void micro_batches_add_up_in_the_shards(void **state)
{
	const double all = 2 * layer + root;
	struct parts p;

	(void)state;
	build(&p, MODEL, PLAN("16") "sharding: fsdp}", "torch-2.11-eager", 2);
	near_frac(sum_in(p.graph, NULL, "fsdp_accumulate").bytes, 7 * 12 * all / 2,
		  1e-9);
	assert_true(sum_in(p.graph, NULL, "accumulate").n == 0);
	assert_true(waits(p.graph, "embed.0", "fsdp_copy_out", FT_STREAM_REDUCE));
	assert_false(
		waits(p.graph, "embed.0.first", "fsdp_copy_out", FT_STREAM_REDUCE));
	drop(&p);
	build(&p, FOUR, pipelines[0], "torch-2.11-eager", 4);
	assert_true(sum_in(p.graph, NULL, "fsdp_accumulate").n == 0);
	drop(&p);
}

/* DeepSpeed's BF16_Optimizer: of each of four micro-batches, also the first, 2 bytes a parameter
 * are cleared, 6 added up in 16 bit, 6 copied to fp32 and 12 added there; both sets stay. In
 * fp16 there is one, to which the second micro-batch and the later ones are added. */
static void deepspeed_has_two_sets_of_gradients(void **state)
{
	const double all = 2 * layer + root - 4096;
	struct parts p;

	(void)state;
	build(&p, MODEL,
	      PLAN("8") "sharding: zero1, precision: bf16, gradient_dtype: fp32}",
	      "megatron-deepspeed-2022", 2);
	near_frac(sum_in(p.graph, NULL, "gradient_clear").bytes, 4 * 2 * all, 1e-3);
	near_frac(sum_in(p.graph, NULL, "accumulate").bytes, 4 * 18 * all, 1e-3);
	near_frac(sum_in(p.graph, NULL, "gradient_cast").bytes, 4 * 6 * all, 1e-3);
	near_frac(kept_in_all(p.graph, 0, FT_MEMORY_GRADIENTS), 6 * all, 1e-3);
	drop(&p);
	build(&p, MODEL,
	      PLAN("8") "sharding: zero1, precision: fp16, gradient_dtype: fp16}",
	      "megatron-deepspeed-2022", 2);
	assert_true(sum_in(p.graph, NULL, "gradient_clear").n == 0);
	near_frac(sum_in(p.graph, NULL, "accumulate").bytes, 3 * 6 * all, 1e-3);
	near_frac(kept_in_all(p.graph, 0, FT_MEMORY_GRADIENTS), 2 * all, 1e-3);
	drop(&p);
}

/* Gathered ahead of the layers that need them, or all at the end: the same weights, of each stage. */
static void each_stage_gathers_all_that_it_holds(void **state)
{
	static const char *const plans[] = {
		PLAN("16") "sharding: zero1, parallel: {pp: 2}, "
			   "overlap: {param_gather: true}}",
		PLAN("16") "sharding: zero1, parallel: {pp: 2}, "
			   "overlap: {param_gather: false}}",
	};
	struct parts p[2];
	double bytes[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		build(&p[i], MODEL, plans[i], "megatron-core", 8);
		bytes[i] = sum_over_ranks(p[i].graph, "zero_gather", -1).bytes;
		drop(&p[i]);
	}
	near_frac(bytes[0], bytes[1], 1e-12);
	near_frac(bytes[0], 4 * 2 * (2 * layer + root), 1e-12);
}

/* Norms of no, one or two vectors, one on the embedding, a bias of the head: what a GPU holds
 * is what the model has. */
static void the_ends_hold_all_that_they_learn(void **state)
{
	static const char *const type[] = { "olmo", "bloom",	"gptj",
					    "phi",  "nanochat", "llama" };
	struct parts p;

	(void)state;
	for (size_t i = 0; i < sizeof(type) / sizeof(*type); i++) {
		struct arena mem = { 0 };
		const char *model = arena_printf(
			&mem,
			"{model_type: %s, hidden_size: 256, num_hidden_layers: 4, "
			"num_attention_heads: 4, intermediate_size: 512, "
			"vocab_size: 1000, tie_word_embeddings: false}",
			type[i]);

		for (int pp = 1; pp <= 2; pp++) {
			double held = 0;

			build(&p, model,
			      arena_printf(&mem, PLAN("8") "parallel: {pp: %d}}", pp),
			      "megatron-core", pp);
			for (size_t c = 0; c < p.graph->n_classes; c++)
				held += p.graph->rank_class[c]
						.base_bytes[FT_MEMORY_WEIGHTS];
			if (fabs(held - 2 * ft_model_parameters(p.model)) > 0.5)
				fail_msg("%s, pp %d: %.0f bytes", type[i], pp, held);
			drop(&p);
		}
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_alone_copies_on_the_compute_stream),
		cmocka_unit_test(each_stage_gathers_all_that_it_holds),
		cmocka_unit_test(ranks_of_a_group_copy_beside_the_products),
		cmocka_unit_test(
			a_library_without_copies_keeps_gradients_where_they_are),
		cmocka_unit_test(a_split_vocabulary_takes_the_loss_apart),
		cmocka_unit_test(copies_that_stay_are_sorted_once),
		cmocka_unit_test(compiled_narrow_products_keep_no_inputs),
		cmocka_unit_test(a_pipeline_keeps_its_outputs_twice_in_the_end),
		cmocka_unit_test(the_last_reduction_is_held_beside_what_it_reduces),
		cmocka_unit_test(a_pipeline_gathers_each_layer_for_each_pass),
		cmocka_unit_test(a_pipeline_that_stays_whole_gathers_and_reduces_once),
		cmocka_unit_test(a_pipeline_that_stays_whole_holds_it),
		cmocka_unit_test(weights_that_stay_are_held_until_backward),
		cmocka_unit_test(micro_batches_add_up_in_the_shards),
		cmocka_unit_test(the_ends_hold_all_that_they_learn),
		cmocka_unit_test(deepspeed_has_two_sets_of_gradients),
	};

	return cmocka_run_group_tests_name("sharding", tests, NULL, NULL);
}
