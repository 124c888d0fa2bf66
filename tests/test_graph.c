/* tests/test_graph.c - built graphs: their arithmetic, and their text */
#include "tests/parts.h"

#include <math.h>
#include <unistd.h>

#include "base/file.h"

/* FLOPs of all products and attention of one rank of each class, times ranks. */
static double flop_of(const struct ft_graph *g)
{
	double flop = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		for (size_t i = 0; i < g->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &g->rank_class[c].call[i];
			const struct ft_segment *s = &g->segment[call->segment];

			for (size_t j = 0; j < s->n_ops; j++)
				flop += (double)call->repeat *
					(double)g->rank_class[c].ranks *
					ft_work_flop(&g->work[s->op[j].work]);
		}
	return flop;
}

static void products_add_up_to_the_models_flops(void **state)
{
	static const struct {
		const char *model, *training;
		int64_t ranks;
	} cases[] = {
		{ "llama3-8b", "{sequence_length: 4096, global_batch_size: 16}", 8 },
		{ "llama3-70b",
		  "{sequence_length: 4096, global_batch_size: 32, "
		  "parallel: {tp: 4, pp: 4}}",
		  32 },
		{ "llama3-70b",
		  "{sequence_length: 8192, global_batch_size: 16, "
		  "parallel: {tp: 2, pp: 2, cp: 2, vpp: 4}}",
		  16 },
		{ "mixtral-8x7b",
		  "{sequence_length: 4096, global_batch_size: 16, "
		  "parallel: {tp: 2, ep: 4}, moe_force_balance: true}",
		  8 },
		{ "gpt3-175b",
		  "{sequence_length: 2048, global_batch_size: 64, "
		  "parallel: {tp: 8, pp: 8}, sharding: ddp}",
		  64 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parts p;
		double model, causal, full;

		build(&p, cases[i].model, cases[i].training, "nemo-24", cases[i].ranks);
		/* backward attention is 2.5 times forward; model FLOPs count 2. No
		 * window: the full square is twice the causal half */
		causal = ft_model_flop_per_token(p.model, p.plan->tp, p.plan->sequence,
						 true);
		full = ft_model_flop_per_token(p.model, p.plan->tp, p.plan->sequence,
					       false);
		model = p.graph->tokens * (causal + (full - causal) / 6);
		near_frac(flop_of(p.graph), model, 0.004);
		drop(&p);
	}
}

static double gradient_bytes(const struct ft_graph *g, enum ft_collective op,
			     enum ft_group group)
{
	double bytes = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++) {
			const struct ft_work *w = &g->work[s->op[j].work];

			if (w->kind == FT_COMMUNICATION && w->communication.op == op &&
			    w->communication.group == group &&
			    w->communication.bytes > 1e6)
				bytes += call->repeat * w->communication.bytes;
		}
	}
	return bytes;
}

static void every_parameter_is_reduced_once(void **state)
{
	struct parts p;
	double n;

	(void)state;
	build(&p, "llama3-8b",
	      "{sequence_length: 4096, global_batch_size: 32, "
	      "sharding: fsdp, gradient_dtype: fp32}",
	      "torch-2.11-compile", 8);
	n = ft_model_parameters(p.model);
	/* four micro-batches, reduced after each; gathered twice for each */
	near_frac(gradient_bytes(p.graph, FT_REDUCE_SCATTER, FT_GROUP_SHARD), 4 * 4 * n,
		  0.001);
	near_frac(gradient_bytes(p.graph, FT_ALL_GATHER, FT_GROUP_SHARD), 4 * 2 * 2 * n,
		  0.001);
	drop(&p);
	build(&p, "llama3-8b",
	      "{sequence_length: 4096, global_batch_size: 32, "
	      "sharding: ddp, gradient_dtype: bf16}",
	      "nemo-24", 8);
	near_frac(gradient_bytes(p.graph, FT_ALL_REDUCE, FT_GROUP_DP), 2 * n, 0.03);
	drop(&p);
}

static void memory_comes_back(void **state)
{
	struct parts p;

	(void)state;
	build(&p, "llama3-70b",
	      "{sequence_length: 4096, global_batch_size: 64, "
	      "parallel: {tp: 4, pp: 4, vpp: 2}}",
	      "nemo-24", 32);
	for (size_t c = 0; c < p.graph->n_classes; c++) {
		double left = 0;

		for (size_t i = 0; i < p.graph->rank_class[c].n_calls; i++) {
			const struct ft_call *call = &p.graph->rank_class[c].call[i];

			left += call->repeat *
				p.graph->segment[call->segment]
					.net_bytes[FT_MEMORY_ACTIVATIONS];
		}
		assert_true(fabs(left) < 1);
	}
	drop(&p);
}

static char *text_of(const struct ft_graph *g, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	ft_graph_write(g, f);
	fclose(f);
	return text;
}

static void text_reads_back_the_same(void **state)
{
	static const struct {
		const char *model, *more;
		const char *has[5];
	} cases[] = {
		{ "llama3-8b", "recompute: full", { NULL } },
		{ "mixtral-8x7b", "recompute: full", { "host_waits=true" } },
		{ "gpt-1.5b", "recompute: full", { NULL } },
		{ "deepseek-v3", "recompute: full", { NULL } },
		{ "qwen3-30b-a3b",
		  "moe_dispatcher: deepep, cuda_graphs: partial, parallel: {ep: 8}, "
		  "overlap: {ep: true}",
		  { "graphed=true", "record=exchanged ", "record=exchanged_back",
		    "wait=exchanged_back", "fanout=" } },
	};
	char name[64];
	const char *path = own_path(name, "test.graph");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_graph *back;
		struct file_out f;
		struct ft_error err;
		struct parts p;
		char *a, *b, training[200];
		size_t na, nb;

		snprintf(training, sizeof(training),
			 "{sequence_length: 4096, global_batch_size: 16, %s}",
			 cases[i].more);
		build(&p, cases[i].model, training, "nemo-24", 8);
		a = text_of(p.graph, &na);
		for (int k = 0; k < 5 && cases[i].has[k]; k++)
			if (!strstr(a, cases[i].has[k]))
				fail_msg("%s: no %s", cases[i].model, cases[i].has[k]);
		ok_or_say(file_begin(&f, path, &err), err);
		fwrite(a, 1, na, f.out);
		ok_or_say(file_commit(&f, &err), err);
		back = ft_graph_read(path, 0, &err);
		ok_or_say(back, err);
		b = text_of(back, &nb);
		assert_int_equal(na, nb);
		assert_memory_equal(a, b, na);
		free(a);
		free(b);
		ft_graph_free(back);
		drop(&p);
	}
	unlink(path);
}

static void bad_graph_text_has_line_and_column(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} cases[] = {
		{ "nonsense\n", 1, "begins with 'graph 1'" },
		{ "graph 2\n", 1, "version 1" },
		{ "graph 1\nwork 1 gemm x\n", 2, "numbered" },
		{ "graph 1\nwork 0 gemm x dtype=bf16 layout=forward m=1 n=2\n", 2,
		  "needs m=" },
		{ "graph 1\nwork 0 gemm x dtype=bf16 layout=forward m=1 n=2 k=3 "
		  "q=4\n",
		  2, "unknown option" },
		{ "graph 1\n  op work=0 stream=compute\n", 2, "below a segment" },
		{ "graph 1\nclass c ranks=1\n  call 7 x1\n", 3, "no such" },
		{ "graph 1\n", 2, "no class" },
		{ "graph 1\ntokens nan\n", 2, "number" },
		{ "graph 1\ntokens 0\n", 2, "not between" },
		{ "graph 1\ntokens -1\n", 2, "not between" },
		{ "graph 1\ntokens 1e300\n", 2, "not between" },
		{ "graph 1\nhost perhaps\n", 2, "host ahead, or host waits" },
		{ "graph 1\ngroup dp size=9223372036854775807\n", 2, "not between" },
		{ "graph 1\ngroup dp size=2 stride=9223372036854775807\n", 2,
		  "not between" },
		{ "graph 1\ngroup dp size=9\n", 2, "not between 1 and 8" },
		{ "graph 1\ngroup dp size=5 stride=2\n", 2, "does not fit 8 ranks" },
		{ "graph 1\nwork 0 memory x dtype=bf16 kernel=k bytes=-1e12\n", 2,
		  "not between" },
		{ "graph 1\nwork 0 memory x dtype=bf16 kernel=k bytes=1e308\n", 2,
		  "not between" },
		{ "graph 1\nwork 0 gemm x dtype=bf16 layout=forward "
		  "m=9223372036854775807 n=1 k=1\n",
		  2, "not between" },
		{ "graph 1\nwork 0 gemm x dtype=bf16 layout=forward m=1000000000 "
		  "n=1000000000 k=1000\n",
		  2, "multiplications" },
		{ "graph 1\nwork 0 memory x dtype=bf16 kernel=k bytes=1 warm=yes\n", 2,
		  "true or false" },
		{ "graph 1\nsegment 0 a\nhost launch -1e9\n", 3, "not between" },
		{ "graph 1\nclass c ranks=0\n", 2, "not between" },
		{ "graph 1\nclass c ranks=-1\n", 2, "not between" },
		{ "graph 1\ntokens 1\nclass c ranks=8\n", 3, "calls nothing" },
		{ "graph 1\nsegment 0 a\nclass c ranks=8\ncall 0 x0\n", 4,
		  "not between" },
		{ "graph 1\nsegment 0 a\nclass c ranks=8\ncall 0 x99999999999\n", 4,
		  "not between" },
		{ "graph 1\nsegment 0 a\nclass c ranks=8\ncall 0 x1\n", 5, "tokens" },
		{ "graph 1\ntokens 1\nsegment 0 a\nclass c ranks=7\ncall 0 x1\n", 4,
		  "the classes together have 7 ranks, but the cluster has 8" },
	};
	char name[64];
	const char *path = own_path(name, "bad.graph");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_error err;
		FILE *f = fopen(path, "w");

		fputs(cases[i].text, f);
		fclose(f);
		assert_null(ft_graph_read(path, 8, &err));
		assert_int_equal(err.line, cases[i].line);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s", err.text);
	}
	unlink(path);
}

/* What the whole lacks is no word's mistake, whatever the last line begins with. */
static void what_a_graph_lacks_is_told_at_a_line_s_begin(void **state)
{
	static const char *const lacking[] = {
		"graph 1\n   segment 0 a\n",
		"graph 1\nsegment 0 a\nclass c ranks=8\n   call 0 x1\n",
		"graph 1\ntokens 1\n   class c ranks=8\n",
		"graph 1\ntokens 1\nsegment 0 a\nclass c ranks=7\n   call 0 x1\n",
	};
	char name[64];
	const char *path = own_path(name, "lacks.graph");

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(lacking) / sizeof(*lacking); i++) {
		int n = (int)strlen(lacking[i / 2]) -
			(int)(i % 2); /* its end, or not */
		struct ft_error err;
		FILE *f = fopen(path, "w");

		fprintf(f, "%.*s", n, lacking[i / 2]);
		fclose(f);
		assert_null(ft_graph_read(path, 8, &err));
		assert_int_equal(err.column, 1);
	}
	unlink(path);
}

/* Whatever is sharded, split and not overlapped: ops have room for all they wait for. */
static void every_sharding_is_built_without_overlap(void **state)
{
	static const char *const stacks[] = { "internevo-2024", "megatron-core-te-2.11",
					      "torch-2.11-eager", "nemo-25.02" };
	static const char *const shardings[] = { "ddp", "zero1", "zero2", "fsdp",
						 "hsdp" };
	static const char *const models[] = { "llama3-8b", "mixtral-8x7b" };
	char training[256];
	struct parts p;

	(void)state;
	for (int i = 0; i < 4 * 5 * 2; i++) {
		snprintf(training, sizeof(training),
			 "{sequence_length: 4096, global_batch_size: 32, sharding: %s, "
			 "overlap: {tp: false, dp: false, pp: false}, "
			 "parallel: {tp: 2, pp: 2, cp: 2, ep: 2}}",
			 shardings[i / 4 % 5]);
		build(&p, models[i / 20], training, stacks[i % 4], 32);
		drop(&p);
	}
}

/* What is computed again is at most a forward pass: a third of the model's FLOPs. */
static void recomputation_sees_the_window_too(void **state)
{
	struct parts p;
	double mine, flop;

	(void)state;
	build(&p, "mistral-7b",
	      "{sequence_length: 32768, global_batch_size: 8, recompute: full}",
	      "nemo-24", 8);
	mine = p.graph->recomputed_flop_per_rank * 8;
	flop = p.graph->tokens * ft_model_flop_per_token(p.model, 1, 32768, true);
	assert_true(mine < flop / 3);
	assert_true(mine > 0.95 * flop / 3);
	drop(&p);
}

/* Of 36 sequences 4 replicas have 9 each, in micro-batches of 8 and a smaller one: a token
 * is computed again once, as in batches that come out even. */
static void recomputation_counts_a_smaller_micro_batch_as_it_is(void **state)
{
	double each[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;
		char training[200];

		snprintf(training, sizeof(training),
			 "{sequence_length: 1024, global_batch_size: %d, sharding: "
			 "fsdp, micro_batch_size: 8, recompute: full}",
			 i ? 36 : 32);
		build(&p, "{name: mpt-1b, num_hidden_layers: 2}", training,
		      "llm-foundry-2023", 4);
		each[i] = p.graph->recomputed_flop_per_rank * 4 / p.graph->tokens;
		drop(&p);
	}
	assert_true(fabs(each[1] / each[0] - 1) < 1e-12);
}

/* Each field by itself tells two works apart; the name alone does not. */
static void works_are_the_same_when_all_but_their_names_is(void **state)
{
	struct ft_work a = { .kind = FT_ATTENTION, .name = "a", .dtype = FT_BF16 };
	struct ft_work b = a;

	(void)state;
	b.name = "b";
	assert_true(ft_work_same(&a, &b));
	assert_true(ft_work_hash(&a) == ft_work_hash(&b));
	b.attention.v_head_dim = 64;
	assert_false(ft_work_same(&a, &b));
	b = a;
	b.attention.causal = true;
	assert_false(ft_work_same(&a, &b));
	b = a;
	b.attention.impl = "fa2";
	assert_false(ft_work_same(&a, &b));
	a = (struct ft_work){ .kind = FT_COMMUNICATION, .name = "a" };
	b = a;
	b.communication.copy_engine = true;
	assert_false(ft_work_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_add_up_to_the_models_flops),
		cmocka_unit_test(every_parameter_is_reduced_once),
		cmocka_unit_test(what_a_graph_lacks_is_told_at_a_line_s_begin),
		cmocka_unit_test(every_sharding_is_built_without_overlap),
		cmocka_unit_test(recomputation_sees_the_window_too),
		cmocka_unit_test(recomputation_counts_a_smaller_micro_batch_as_it_is),
		cmocka_unit_test(memory_comes_back),
		cmocka_unit_test(text_reads_back_the_same),
		cmocka_unit_test(bad_graph_text_has_line_and_column),
		cmocka_unit_test(works_are_the_same_when_all_but_their_names_is),
	};

	return cmocka_run_group_tests_name("traces", tests, NULL, NULL);
}
