/*
 * tests/test_documents.c - sequences that are packed of documents: attention stays within each
 *
 * The oracle is the plan in which each document is a sequence of its own: the same tokens in a micro-batch,
 * the same kernels, the same step.
 */
#include "tests/simulated.h"
#include "tests/works.h"

#define LLAMA \
	"{model_type: llama, hidden_size: 1024, num_hidden_layers: 4, vocab_size: 4096, " \
	"num_attention_heads: 16, num_key_value_heads: 4, intermediate_size: 3072}"
#define WINDOWS(w) \
	"{model_type: gemma2, hidden_size: 1024, num_hidden_layers: 4, vocab_size: 4096, " \
	"num_attention_heads: 16, num_key_value_heads: 4, head_dim: 64, " \
	"intermediate_size: 3072, sliding_window: " w "}"
#define PACKED(document) \
	"{sequence_length: 4096, global_batch_size: 8, micro_batch_size: 2, " \
	"sharding: ddp, document_length: " document "}"
#define APART \
	"{sequence_length: 512, global_batch_size: 64, micro_batch_size: 16, sharding: ddp}"

static const char *const stacks[] = { "torch-2.11-compile", "megatron-core" };

/* Each work of either is done as often by the other. */
static void runs_the_same(const struct ft_graph *a, const struct ft_graph *b)
{
	assert_int_equal(a->n_works, b->n_works);
	for (size_t i = 0; i < a->n_works; i++)
		assert_true(times_of(a, &a->work[i]) == times_of(b, &a->work[i]));
}

static void documents_are_sequences_of_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts packed, apart;

		build(&packed, LLAMA, PACKED("512"), stacks[i], 4);
		build(&apart, LLAMA, APART, stacks[i], 4);
		runs_the_same(packed.graph, apart.graph);
		near_frac(ft_plan_flop_per_token(packed.model, packed.plan, true),
			  ft_plan_flop_per_token(apart.model, apart.plan, true), 1e-12);
		drop(&packed);
		drop(&apart);
	}
}

#define SPLIT(cp, more) \
	"{sequence_length: 4096, global_batch_size: 8, micro_batch_size: 2, sharding: ddp, " \
	"parallel: {cp: " cp "}" more "}"

/* A document as long as its sequence is what a sequence is without any: also where context ranks work
 * block by block. */
static void one_document_is_a_sequence(void **state)
{
	static const char *const said[][2] = {
		{ SPLIT("1", ", document_length: 4096"), SPLIT("1", "") },
		{ SPLIT("2", ", document_length: 4096"), SPLIT("2", "") },
		{ SPLIT("4", ", document_length: 4096"), SPLIT("4", "") },
	};

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct parts one, none;

		build(&one, LLAMA, said[i / 2][0], stacks[i % 2], 4);
		build(&none, LLAMA, said[i / 2][1], stacks[i % 2], 4);
		runs_the_same(one.graph, none.graph);
		drop(&one);
		drop(&none);
	}
}

/* Also where a window as long as the sequence is given to the kernel as a mask, as Transformers gives it. */
static void one_document_leaves_masks_as_they_are(void **state)
{
	static const char *const masking[] = { "transformers-5-eager", "vectorlm-2024",
					       "torch-2.11-compile" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct parts one, none;

		build(&one, WINDOWS("4096"), PACKED("4096"), masking[i], 4);
		build(&none, WINDOWS("4096"), PACKED("0"), masking[i], 4);
		runs_the_same(one.graph, none.graph);
		drop(&one);
		drop(&none);
	}
}

static double attention_flop(const char *model, const char *plan, const char *stack)
{
	struct parts p;
	double flop;

	build(&p, model, plan, stack, 4);
	flop = sum_of(p.graph, "attention").flop;
	drop(&p);
	return flop;
}

/* 4,096 tokens are eight documents of 500 and one of 96. */
static void what_is_left_is_a_document(void **state)
{
	double whole = attention_flop(LLAMA, PACKED("0"), stacks[0]);
	double pairs = 8 * 500. * 500 + 96. * 96;

	(void)state;
	near_frac(attention_flop(LLAMA, PACKED("500"), stacks[0]) / whole,
		  pairs / (4096. * 4096), 1e-9);
	near_frac(attention_flop(LLAMA, PACKED("4096"), stacks[0]), whole, 1e-12);
}

/* Every second layer of Gemma 2 has a window: within a longer document it stays, a shorter one replaces it. */
static void a_window_counts_where_it_is_shorter(void **state)
{
	double both = attention_flop(WINDOWS("256"), PACKED("1024"), stacks[0]);
	double window = attention_flop(WINDOWS("256"), PACKED("0"), stacks[0]);
	double document = attention_flop(LLAMA, PACKED("1024"), stacks[0]);
	double whole = attention_flop(LLAMA, PACKED("0"), stacks[0]);

	(void)state;
	near_frac(whole / 2 + both, window + document / 2, 1e-9);
	near_frac(attention_flop(WINDOWS("2048"), PACKED("1024"), stacks[0]), document,
		  1e-9);
}

/* Scores that are written are those of the whole square. */
static void unfused_attention_computes_all(void **state)
{
	(void)state;
	near_frac(attention_flop(LLAMA, PACKED("512"), "megatron-lm-2022"),
		  attention_flop(LLAMA, PACKED("0"), "megatron-lm-2022"), 1e-12);
}

static void a_document_fits_its_sequence(void **state)
{
	struct ft_plan_context context = { .ranks = 4, .ranks_per_node = 8 };
	struct ft_error err;
	struct parts p;
	struct node *t;

	(void)state;
	build(&p, LLAMA, PACKED("4096"), stacks[0], 4);
	t = node_read_text(&p.mem, "t", PACKED("4097"), strlen(PACKED("4097")), &err);
	assert_null(ft_plan_load(t, p.model, &context, &err));
	assert_non_null(strstr(err.text, "document_length: 4097 tokens are more than a "
					 "sequence's 4096"));
	drop(&p);
}

/* Long sequences of short documents take less. */
static void a_step_is_shorter(void **state)
{
	static const char *const text =
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, training: "
		"{sequence_length: 32768, global_batch_size: 8, sharding: fsdp, "
		"recompute: full%s}}";
	double step[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		char s[400];

		snprintf(s, sizeof(s), text, i ? ", document_length: 1024" : "");
		step[i] = simulated_s(s, NULL);
	}
	assert_true(step[1] < 0.8 * step[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_are_sequences_of_their_own),
		cmocka_unit_test(one_document_is_a_sequence),
		cmocka_unit_test(one_document_leaves_masks_as_they_are),
		cmocka_unit_test(what_is_left_is_a_document),
		cmocka_unit_test(a_window_counts_where_it_is_shorter),
		cmocka_unit_test(unfused_attention_computes_all),
		cmocka_unit_test(a_document_fits_its_sequence),
		cmocka_unit_test(a_step_is_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
