/*
 * tests/test_wrappers.c - what PyTorch's wrappers do around a model's passes: DDP with what a pass returns, FSDP2's streams
 */
#include "tests/counted.h"

#define LLAMA \
	"{model_type: llama, hidden_size: 512, intermediate_size: 1536, num_hidden_layers: 4, num_attention_heads: 8, " \
	"num_key_value_heads: 4, vocab_size: 1000}"
#define TRAINER "transformers-5-trainer"
#define COMPILED "transformers-5-trainer-compile"
#define NARROW "master_weights: false, gradient_dtype: bf16"

enum { TOKENS = 2048 };

/* DDP clones what a pass returns, where it looks for unused parameters; a compiled loss writes the logits in fp32 alone, and its backward pass
 * is given zeros of that size. */
static void what_is_returned_is_copied(void **state)
{
	static const struct {
		const char *stack, *again;
		double cast, copy, zero,
			width; /* bytes a logit; the last: at the loss's fullest moment */
	} how[] = {
		{ TRAINER, "none", 6, 8, 0, 12 },
		{ TRAINER, "full", 6, 0, 0, 12 },
		{ TRAINER, "full, recompute_layers: 0", 6, 8, 0, 12 },
		{ COMPILED, "none", 4, 8, 4, 10 },
		{ COMPILED, "full", 4, 0, 4, 6 },
		{ COMPILED, "full, recompute_layers: 0", 4, 8, 4, 10 },
		{ "transformers-5-eager", "none", 0, 0, 0, 12 },
		{ "torch-2.11-compile", "none", 0, 0, 0, 4 },
	};
	const double logits = 1000. * TOKENS;

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		char plan[200];
		struct parts p;

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 1024, global_batch_size: 4, micro_batch_size: 2, sharding: ddp, "
			"recompute: %s}",
			how[i].again);
		build(&p, LLAMA, plan, how[i].stack, 2);
		near_frac(1 + sum_of(p.graph, "outputs_cast").bytes,
			  1 + how[i].cast * logits, 1e-12);
		near_frac(1 + sum_of(p.graph, "outputs_copy").bytes,
			  1 + how[i].copy * logits, 1e-12);
		near_frac(1 + sum_of(p.graph, "outputs_zero").bytes,
			  1 + how[i].zero * logits, 1e-12);
		near_frac(segment_of(p.graph, "head_back")->peak_bytes[FT_MEMORY_OTHER],
			  how[i].width * logits, 0.3);
		drop(&p);
	}
}

/* A forward gather waits for no weights itself: its stream has waited for those before, in front of the copy out of the ones between.
 * A backward one waits for the weights that it is launched behind. */
static void forward_gathers_are_one_unit_ahead(void **state)
{
	struct parts p;
	int marks = 0, ahead = 0, behind = 0;

	(void)state;
	build(&p, LLAMA, "{sequence_length: 128, global_batch_size: 8, sharding: fsdp}",
	      "torch-2.11-eager", 8);
	for (size_t s = 0; s < p.graph->n_segments; s++)
		for (size_t i = 0; i < p.graph->segment[s].n_ops; i++) {
			const struct ft_segment *seg = &p.graph->segment[s];
			const struct ft_op *op = &seg->op[i];
			const struct ft_work *w = &p.graph->work[op->work];
			bool waiting = op->wait[0] == FT_EVENT_UNSHARDED;

			if (op->stream != FT_STREAM_COPY)
				continue;
			if (w->memory.bytes <= 0) {
				assert_true(waiting && !op->launches);
				assert_int_equal(seg->op[i + 1].record,
						 FT_EVENT_UNSHARDED);
				marks++;
			} else {
				ahead += op->wait[0] == FT_EVENT_NONE;
				behind += waiting;
			}
		}
	assert_int_equal(ahead, marks);
	assert_true(ahead > 0 && behind > 0);
	drop(&p);
}

/* Where weights are gathered in place, a unit is there before its first product, not behind it. */
static void a_unit_in_place_is_there_before_its_kernels(void **state)
{
	static const char *const stacks[] = { "megatron-core", "torch-2.11-fsdp1",
					      "deepseek-2024", "torch-2.11-eager" };
	size_t n = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(stacks) / sizeof(*stacks); k++) {
		struct parts p;

		build(&p, LLAMA,
		      "{sequence_length: 128, global_batch_size: 8, sharding: fsdp}",
		      stacks[k], 8);
		for (size_t s = 0; s < p.graph->n_segments; s++)
			for (size_t i = 0; i < p.graph->segment[s].n_ops; i++) {
				const struct ft_op *op = &p.graph->segment[s].op[i];
				const char *name = p.graph->work[op->work].name;

				if (op->record != FT_EVENT_UNSHARDED)
					continue;
				assert_true(!strcmp(name, "fsdp_unsharded") ||
					    !strcmp(name, "fsdp_copy_out"));
				n++;
			}
		drop(&p);
	}
	assert_true(n >= 4 * 4);
}

/* Bytes of gradients in front of each call of a segment whose name begins so, the first, and behind the step. */
static double gradients_at(const struct ft_graph *g, const char *name, double *behind)
{
	const struct ft_class *c = &g->rank_class[0];
	double now = c->base_bytes[FT_MEMORY_GRADIENTS], first = -1;

	for (size_t i = 0; i < c->n_calls; i++) {
		const struct ft_segment *s = &g->segment[c->call[i].segment];

		if (first < 0 && !strncmp(s->name, name, strlen(name)))
			first = now;
		now += (double)c->call[i].repeat * s->net_bytes[FT_MEMORY_GRADIENTS];
	}
	*behind = now;
	return first;
}

/* Lightning clears gradients between a forward pass and its backward pass: those of the step before are there until then, all of them, or
 * a rank's share. Others clear them in front of the step. Either way a step leaves one set. */
static void gradients_stay_until_the_next_backward(void **state)
{
	static const struct {
		const char *stack, *plan;
		double bytes; /* a parameter and rank */
		bool stay;
	} how[] = {
		{ "lightning-2", "sharding: none", 4, true },
		{ "lightning-2", "sharding: none, " NARROW, 2, true },
		{ "lightning-2", "sharding: ddp", 4, true },
		{ "lightning-2-compile", "sharding: ddp, " NARROW, 2, true },
		{ "lightning-2-fsdp1", "sharding: fsdp", 2, true },
		{ "lightning-2-fsdp1", "sharding: fsdp, " NARROW, 1, true },
		{ "transformers-5-eager", "sharding: none", 4, false },
		{ "transformers-5-trainer", "sharding: ddp", 4, false },
		{ "transformers-5-fsdp1", "sharding: fsdp", 2, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(*how); i++) {
		bool alone = strstr(how[i].plan, "none");
		double front, loss, behind, all;
		char plan[200];
		struct parts p;

		snprintf(
			plan, sizeof(plan),
			"{sequence_length: 128, global_batch_size: 8, micro_batch_size: 2, recompute: none, %s}",
			how[i].plan);
		build(&p, LLAMA, plan, how[i].stack, alone ? 1 : 2);
		all = how[i].bytes * (double)ft_model_parameters(p.model);
		front = gradients_at(p.graph, "forward", &behind);
		near_frac(1 + front, 1 + (how[i].stay ? all : 0), 1e-9);
		loss = gradients_at(p.graph, "backward", &behind);
		assert_true(loss >= 0 && loss < 0.3 * all);
		near_frac(behind, all, 1e-9);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_returned_is_copied),
		cmocka_unit_test(forward_gathers_are_one_unit_ahead),
		cmocka_unit_test(a_unit_in_place_is_there_before_its_kernels),
		cmocka_unit_test(gradients_stay_until_the_next_backward),
	};

	return cmocka_run_group_tests_name("wrappers", tests, NULL, NULL);
}
