/*
 * tests/test_scan.c - layers as turns of a scan (JAX): casts, what is stacked, and the update, by closed forms,
 * beside a layer of the same model without a scan
 */
#include <math.h>

#include "foretoken/sim.h"
#include "tests/works.h"

#define SCAN "jax-0.11"
#define MODEL \
	"{model_type: llama, num_hidden_layers: 3, hidden_size: 4096, num_attention_heads: 32, " \
	"num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 32000}"
#define PREDICTING \
	"{model_type: llama, num_hidden_layers: 3, hidden_size: 4096, num_attention_heads: 32, " \
	"num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 32000, num_nextn_predict_layers: 2}"
#define PLAN(more) \
	"{sequence_length: 4096, micro_batch_size: 2, global_batch_size: 2, sharding: fsdp, " \
	"gradient_dtype: bf16, " more "}"
#define FULL PLAN("recompute: full")
#define THRICE \
	"{sequence_length: 4096, micro_batch_size: 2, global_batch_size: 6, sharding: fsdp, " \
	"gradient_dtype: bf16, recompute: full}"
#define NONE PLAN("recompute: none")
#define SHARED(more) \
	"{sequence_length: 4096, micro_batch_size: 2, global_batch_size: 4, sharding: fsdp, " \
	"gradient_dtype: bf16, recompute: " more "}"

enum { LAYERS = 3 };

static const double h = 4096, f = 14336, q = 4096, kv = 1024, tokens = 2 * 4096;

static double layer(void)
{
	return h * (2 * q + 2 * kv) + 3 * h * f + 2 * h;
}

static double root(void)
{
	return 2 * 32000 * h + h;
}

/* 6 bytes a parameter in each pass of each layer, of the root's in one; nothing where weights are in
 * 16 bit, or where there is no scan. */
static void weights_are_cast_in_each_pass(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, FULL, SCAN, 1);
	near_frac(sum_in(p.graph, NULL, "weight_casts").bytes,
		  6 * (2 * LAYERS * layer() + root()), 1e-9);
	drop(&p);
	build(&p, MODEL, PLAN("recompute: full, master_weights: false"), SCAN, 1);
	assert_true(sum_in(p.graph, NULL, "weight_casts").n == 0);
	drop(&p);
	build(&p, MODEL, FULL, "torch-2.11-compile", 1);
	assert_true(sum_in(p.graph, NULL, "weight_casts").n == 0 &&
		    sum_in(p.graph, NULL, "scan_keep").n == 0 &&
		    sum_in(p.graph, NULL, "scan_gradients").n == 0);
	drop(&p);
}

/* With nothing computed again they are cast once, and copied out of their row for backward, 4 bytes a number, with
 * what products and attention read: norms' outputs, queries, keys, values, and attention's own output. */
static void kept_weights_are_copied_out(void **state)
{
	double read = 2 * h + q + 2 * kv + q;
	struct parts p;

	(void)state;
	build(&p, MODEL, NONE, SCAN, 1);
	near_frac(sum_in(p.graph, NULL, "weight_casts").bytes,
		  6 * (LAYERS * layer() + root()), 1e-9);
	near_frac(sum_in(p.graph, NULL, "scan_take").bytes,
		  4 * LAYERS * (layer() + tokens * read), 1e-9);
	drop(&p);
	build(&p, MODEL, FULL, SCAN, 1);
	assert_true(sum_in(p.graph, NULL, "scan_take").n == 0);
	drop(&p);
}

/* Where ranks share them, they are gathered once, and not copied; with all computed again twice. */
static void kept_weights_are_gathered_once(void **state)
{
	struct parts p;
	double once;

	(void)state;
	build(&p, MODEL, SHARED("none"), SCAN, 2);
	once = sum_in(p.graph, NULL, "fsdp_gather").bytes;
	near_frac(once, 2 * (LAYERS * layer() + root()), 1e-9);
	assert_true(sum_in(p.graph, NULL, "scan_take").n == 0);
	drop(&p);
	build(&p, MODEL, SHARED("full"), SCAN, 2);
	near_frac(sum_in(p.graph, NULL, "fsdp_gather").bytes,
		  once + 2 * LAYERS * layer(), 1e-9);
	drop(&p);
}

/* Logits are read twice, and their gradient is written in fp32 and cast: 16 bytes each. */
static void a_loss_has_its_gradient_in_two_widths(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MODEL, FULL, SCAN, 1);
	near_frac(sum_in(p.graph, NULL, "loss").bytes +
			  sum_in(p.graph, NULL, "loss_back").bytes +
			  sum_in(p.graph, NULL, "loss_cast_back").bytes,
		  16 * tokens * 32000, 1e-9);
	drop(&p);
}

/* Three bytes for each that a turn keeps: its input alone, or, with nothing computed again, beside what
 * a compiled layer of PyTorch keeps also a gate's numbers, norms and rotated ones in fp32, and weights. */
static void what_is_kept_is_stacked(void **state)
{
	struct parts p, torch;
	double more = tokens * (4 * f + 14 * h + 4 * (q + kv)) + 2 * layer();

	(void)state;
	build(&p, MODEL, FULL, SCAN, 1);
	near_frac(kept_by_layer(p.graph), 2 * h * tokens, 1e-12);
	near_frac(sum_in(p.graph, NULL, "scan_keep").bytes, LAYERS * 3 * 2 * h * tokens,
		  1e-12);
	drop(&p);
	build(&p, MODEL, NONE, SCAN, 1);
	build(&torch, MODEL, NONE, "torch-2.11-compile", 1);
	near_frac(kept_by_layer(p.graph), kept_by_layer(torch.graph) + more, 1e-9);
	near_frac(sum_in(p.graph, NULL, "scan_keep").bytes,
		  LAYERS * 3 * kept_by_layer(p.graph), 1e-9);
	drop(&torch);
	drop(&p);
}

/* Arrays of gradients, in fp32, are laid for all layers with the first turn backward, and what turns kept
 * goes behind the last. */
static void gradients_are_stacked(void **state)
{
	struct parts p;
	double first, later = 0, goes;

	(void)state;
	build(&p, MODEL, FULL, SCAN, 1);
	near_frac(sum_in(p.graph, NULL, "scan_gradients").bytes, LAYERS * 10 * layer(),
		  1e-9);
	first = 0;
	for (size_t i = 0; i < p.graph->n_segments; i++) {
		const struct ft_segment *s = &p.graph->segment[i];

		if (strncmp(s->name, "backward", 8))
			continue;
		assert_true(fabs(s->net_bytes[FT_MEMORY_ACTIVATIONS]) < 1);
		if (s->net_bytes[FT_MEMORY_GRADIENTS] > 0)
			first += s->net_bytes[FT_MEMORY_GRADIENTS];
		else
			later++;
	}
	near_frac(first, LAYERS * 4 * layer(), 1e-9);
	assert_true(later > 0);
	goes = segment_of(p.graph, "embed_back")->net_bytes[FT_MEMORY_ACTIVATIONS];
	near_frac(-goes, LAYERS * 2 * h * tokens, 1e-9);
	drop(&p);
}

/* Stages of a pipeline lay and free theirs layer by layer. */
static void stages_are_not_stacked(void **state)
{
	struct parts p;
	int backward = 0;

	(void)state;
	build(&p, MODEL, PLAN("recompute: full, parallel: {pp: 3}"), "maxtext-2025", 3);
	for (size_t i = 0; i < p.graph->n_segments; i++) {
		const struct ft_segment *s = &p.graph->segment[i];

		if (strncmp(s->name, "backward", 8))
			continue;
		near_frac(-s->net_bytes[FT_MEMORY_ACTIVATIONS], 2 * h * tokens, 1e-9);
		near_frac(s->net_bytes[FT_MEMORY_GRADIENTS], 4 * layer(), 1e-9);
		backward++;
	}
	assert_true(backward > 0);
	assert_true(
		!(segment_of(p.graph, "embed_back")->net_bytes[FT_MEMORY_ACTIVATIONS] <
		  -1));
	drop(&p);
}

/* Of gradients, the most that a step holds behind a segment, and what is left in the end. */
static double most_gradients(const char *plan, const char *stack, double *left)
{
	double held = 0, most = 0;
	struct parts p;

	build(&p, MODEL, plan, stack, 1);
	for (size_t i = 0; i < p.graph->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &p.graph->rank_class[0].call[i];

		held += call->repeat *
			p.graph->segment[call->segment].net_bytes[FT_MEMORY_GRADIENTS];
		most = fmax(most, held);
	}
	drop(&p);
	*left = held;
	return most;
}

/* Micro-batches are turns of a scan, too: their sums are held beside the layers' gradients of one, and what is kept
 * is copied once more. A step of one micro-batch has nothing to sum up. */
static void sums_are_beside_a_turn_s_gradients(void **state)
{
	static const char *const stack[] = { SCAN, "jax-0.11-unrolled" };
	double all = 4 * (LAYERS * layer() + root()), left;
	struct parts p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		near_frac(most_gradients(FULL, stack[i], &left), all, 1e-9);
		near_frac(left, all, 1e-9);
		near_frac(most_gradients(THRICE, stack[i], &left),
			  all + 4 * LAYERS * layer(), 1e-9);
		near_frac(left, all, 1e-9);
	}
	build(&p, MODEL, THRICE, SCAN, 1);
	near_frac(sum_in(p.graph, NULL, "scan_keep").bytes,
		  3 * LAYERS * 5 * 2 * h * tokens, 1e-12);
	drop(&p);
}

/* What a step holds behind each of its segments is never less than nothing; in the end it is what it began with,
 * but for gradients, which the next step's replace. */
static void all_is_given_back_on(const char *stack, const char *model, const char *plan)
{
	struct parts p;

	build(&p, model, plan, stack, 1);
	for (int m = 0; m < FT_MEMORIES; m++) {
		const struct ft_class *class = &p.graph->rank_class[0];
		double held = 0;

		for (size_t i = 0; i < class->n_calls; i++) {
			const struct ft_call *call = &class->call[i];

			held += call->repeat *
				p.graph->segment[call->segment].net_bytes[m];
			assert_true(class->base_bytes[m] + held > -1);
		}
		assert_true(fabs(held) < 1 || m == FT_MEMORY_GRADIENTS);
	}
	drop(&p);
}

static void all_is_given_back(const char *model, const char *plan)
{
	all_is_given_back_on(SCAN, model, plan);
}

/* Gradients come and go alike however weights are shared out, and with one micro-batch or several. */
static void gradients_are_given_back_under_any_sharding(void **state)
{
	static const char *const shardings[] = { "fsdp", "ddp", "zero1" };
	static const char *const stacks[] = { SCAN, "pax-2023", "maxtext-2025",
					      "pax-2023-unrolled" };

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < (i ? 3 : 2); k++) /* jax-0.11 has no zero1 */
			for (int batch = 1; batch <= 4; batch *= 2) {
				char plan[240];

				snprintf(plan, sizeof(plan),
					 "{sequence_length: 4096, micro_batch_size: 1, "
					 "global_batch_size: %d, sharding: %s, "
					 "gradient_dtype: bf16}",
					 batch, shardings[k]);
				all_is_given_back_on(stacks[i], MODEL, plan);
			}
}

/* Rows of layers that wait in host memory are not there to be given back. A layer of predicted tokens is no turn of
 * the scan, and gives back its own with its backward. */
static void what_is_kept_is_given_back_once(void **state)
{
	(void)state;
	for (int offloaded = 0; offloaded <= LAYERS; offloaded++) {
		char plan[240];

		snprintf(plan, sizeof(plan),
			 PLAN("recompute: full, offload_layers: %d"), offloaded);
		all_is_given_back(MODEL, plan);
		all_is_given_back(PREDICTING, plan);
	}
	all_is_given_back(PREDICTING, NONE);
}

/* The update moves as an addition does; PyTorch's has a curve of its own. */
static void the_update_is_compiled(void **state)
{
	static const char *const stack[] = { SCAN, "torch-2.11-compile" };
	static const char *const curve[] = { "add", "adamw" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		int n = 0;

		build(&p, MODEL, FULL, stack[i], 1);
		for (size_t k = 0; k < p.graph->n_works; k++)
			if (!strcmp(p.graph->work[k].name, "adam")) {
				assert_string_equal(p.graph->work[k].memory.kernel,
						    curve[i]);
				n++;
			}
		assert_int_equal(n, 1);
		drop(&p);
	}
}

/* Whole weights on each of four ranks are shards of one: a step of one rank is that of fsdp, and of four each has it with sums over
 * all, of 2 bytes a parameter. */
static void whole_weights_are_shards_of_a_group_of_one(void **state)
{
	static const char *const stacks[] = { SCAN, "jax-0.11-unrolled" };
	static const char *const ddp[] = {
		"{sequence_length: 4096, micro_batch_size: 1, global_batch_size: 4, "
		"sharding: ddp, gradient_dtype: bf16, recompute: full}",
		"{sequence_length: 4096, micro_batch_size: 1, global_batch_size: 16, "
		"sharding: ddp, gradient_dtype: bf16, recompute: full}",
	};
	static const char fsdp[] =
		"{sequence_length: 4096, micro_batch_size: 1, global_batch_size: 4, "
		"sharding: fsdp, gradient_dtype: bf16, recompute: full}";

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sum one, other;
		struct parts p, of;
		double peak, n;

		build(&p, MODEL, fsdp, stacks[i], 1);
		one = sum_of(p.graph, NULL);
		peak = ft_graph_peak_bytes(p.graph);
		n = ft_model_parameters(p.model);
		drop(&p);
		for (int ranks = 1; ranks <= 4; ranks += 3) {
			build(&of, MODEL, ddp[ranks > 1], stacks[i], ranks);
			other = sum_of(of.graph, "gradient_reduce");
			assert_true((other.n > 0) == (ranks > 1));
			if (ranks > 1)
				near_frac(other.bytes, 4 * 2 * n, 1e-9);
			near_frac(sum_of(of.graph, NULL).flop, one.flop, 1e-12);
			near_frac(sum_of(of.graph, NULL).bytes - other.bytes, one.bytes,
				  1e-12);
			near_frac(ft_graph_peak_bytes(of.graph), peak, 1e-12);
			drop(&of);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_cast_in_each_pass),
		cmocka_unit_test(kept_weights_are_copied_out),
		cmocka_unit_test(kept_weights_are_gathered_once),
		cmocka_unit_test(a_loss_has_its_gradient_in_two_widths),
		cmocka_unit_test(what_is_kept_is_stacked),
		cmocka_unit_test(gradients_are_stacked),
		cmocka_unit_test(stages_are_not_stacked),
		cmocka_unit_test(sums_are_beside_a_turn_s_gradients),
		cmocka_unit_test(what_is_kept_is_given_back_once),
		cmocka_unit_test(gradients_are_given_back_under_any_sharding),
		cmocka_unit_test(the_update_is_compiled),
		cmocka_unit_test(whole_weights_are_shards_of_a_group_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
