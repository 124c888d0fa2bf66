/* tests/test_graphed.c - under CUDA graphs of whole layers the host launches no kernel of a layer, and waits for none; its
 * kernels take less by what the stack says; and plans that graphs do not go with are refused */
#include "tests/simulated.h"
#include "tests/works.h"

#define PLAN \
	"{sequence_length: 1024, global_batch_size: 1, micro_batch_size: 1, " \
	"sharding: %s, cuda_graphs: full}"

static const char *const models[] = {
	"{name: llama3-8b, num_hidden_layers: 2}",
	"{name: glm4.5-air, num_hidden_layers: 2}",
	"{name: gpt-oss-20b, num_hidden_layers: 2}",
};

static const char *const stacks[] = {
	"megatron-core",
	"torch-2.11-compile",
	"transformers-5-compile",
	"transformers-5-trainer-compile",
};

static bool is_of_layer(const struct ft_segment *s)
{
	return !strncmp(s->name, "forward", 7) || !strncmp(s->name, "backward", 8);
}

static void graphs_ask_the_host_for_nothing(void **state)
{
	static const enum ft_host never[] = {
		FT_HOST_SYNC,
		FT_HOST_EXPERT,
		FT_HOST_PIECE,
		FT_HOST_BLOCK_FORWARD,
		FT_HOST_BLOCK_BACKWARD,
		FT_HOST_TENSOR_OP,
		FT_HOST_EXPERTS_FORWARD,
		FT_HOST_EXPERTS_BACKWARD,
	};
	enum {
		MODELS = sizeof(models) / sizeof(*models),
		STACKS = sizeof(stacks) / sizeof(*stacks)
	};

	(void)state;
	for (int i = 0; i < MODELS * STACKS; i++) {
		struct parts p;
		char plan[200];

		snprintf(plan, sizeof(plan), PLAN, i % STACKS ? "none" : "ddp");
		build(&p, models[i / STACKS], plan, stacks[i % STACKS], 1);
		for (size_t k = 0; k < p.graph->n_segments; k++) {
			const struct ft_segment *s = &p.graph->segment[k];

			for (size_t n = 0; n < s->n_ops; n++)
				assert_false(s->op[n].graphed && s->op[n].host_waits);
			for (size_t n = 0;
			     is_of_layer(s) && n < sizeof(never) / sizeof(*never); n++)
				if (s->host[never[n]] > 0)
					fail_msg("%s, %s: %s costs %s",
						 models[i / STACKS], stacks[i % STACKS],
						 s->name, ft_host_name(never[n]));
		}
		drop(&p);
	}
}

#define SCENARIO(stack, graphs, more) \
	"model: {name: llama3-8b, num_hidden_layers: 2}\n" \
	"cluster: {gpu: h200, gpus: 1, fabric: none}\n" \
	"stack: " stack "\n" \
	"training: {sequence_length: 512, micro_batch_size: 1, sharding: none, " \
	"cuda_graphs: " graphs ", " more "}\n"

#define SHARDED(stack) \
	"model: {name: llama3-8b, num_hidden_layers: 2}\n" \
	"cluster: {gpu: h200, gpus: 1, fabric: none}\n" \
	"stack: " stack "\n" \
	"training: {sequence_length: 512, global_batch_size: 1, " \
	"micro_batch_size: 1, sharding: fsdp, cuda_graphs: full}\n"

/* Seconds of a step, or of items of it, under a stack whose graphed kernels take that much less. */
static double takes_s(const char *graphs, double less_us, const char *item)
{
	char path[64], text[600];
	FILE *f = fopen(own_path(path, "graphed.yaml"), "w");
	double answer;

	assert_non_null(f);
	fprintf(f,
		"{extends: torch-2.11-compile, title: x, rates: {graphed_kernel: %g us}}",
		less_us);
	fclose(f);
	snprintf(text, sizeof(text), SCENARIO("%s", "%s", "global_batch_size: 1"), path,
		 graphs);
	answer = simulated_s(text, item);
	unlink(path);
	return answer;
}

/* Items of a layer take that much less for each of their kernels, and the head, which no graph holds, as long as before. */
static void a_graphed_kernel_takes_less(void **state)
{
	(void)state;
	near_frac(takes_s("full", 0, "down (forward)") -
			  takes_s("full", 1, "down (forward)"),
		  2 * 1e-6, 1e-3);
	near_frac(takes_s("full", 0, "attention_out") -
			  takes_s("full", 1, "attention_out"),
		  2 * 3 * 1e-6, 1e-3);
	near_frac(takes_s("full", 1, "head"), takes_s("full", 0, "head"), 1e-9);
	near_frac(takes_s("none", 1, NULL), takes_s("none", 0, NULL), 1e-12);
}

/* However much the stack says, no kernel takes less than half of what it took alone. */
static void a_kernel_keeps_half_of_its_time(void **state)
{
	double gaps_s = 2 * 2.2e-6;
	double alone_s = takes_s("full", 0, "down (forward)") - gaps_s;

	(void)state;
	near_frac(takes_s("full", 1e6, "down (forward)"), alone_s / 2, 1e-3);
}

static void refused(const char *text, const char *says)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err = { 0 };
	struct ft_outcome o;
	struct ft_scenario *s = scenario_of(shelf, text, &err);

	if (s && ft_study_simulate(s, NULL, NULL, &o, &err))
		fail_msg("not refused: %s", text);
	if (!strstr(err.text, says))
		fail_msg("'%s' lacks '%s'", err.text, says);
	if (s)
		ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* Each was tried on an H200: an error of PyTorch's, or slower than without. */
static void what_graphs_do_not_go_with_is_refused(void **state)
{
	(void)state;
	refused(SCENARIO("transformers-5-eager", "full", "global_batch_size: 1"),
		"cuda_graphs: full is not in stack transformers-5-eager, which has none");
	refused(SCENARIO("torch-2.11-compile", "partial", "global_batch_size: 1"),
		"which has none, full (its runs.cuda_graphs)");
	refused(SCENARIO("torch-2.11-compile", "full", "global_batch_size: 2"),
		"several micro-batches a step, 2 here");
	refused(SCENARIO("torch-2.11-compile", "full",
			 "global_batch_size: 1, recompute: full"),
		"recomputation under stack torch-2.11-compile");
	refused(SHARDED("torch-2.11-compile"),
		"does not go with sharding: fsdp under stack torch-2.11-compile (its "
		"runs.graphed_sharding); use sharding: none, or cuda_graphs: none");
	/* which has no step of one rank by itself */
	refused(SHARDED("torchtitan-2024"),
		"(its runs.graphed_sharding); use cuda_graphs: none");
	/* of which no layer is computed again */
	near_frac(simulated_s(SCENARIO("torch-2.11-compile", "full",
				       "global_batch_size: 1, recompute: full, "
				       "recompute_layers: 0"),
			      NULL),
		  simulated_s(SCENARIO("torch-2.11-compile", "full",
				       "global_batch_size: 1, recompute: none"),
			      NULL),
		  1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_ask_the_host_for_nothing),
		cmocka_unit_test(a_graphed_kernel_takes_less),
		cmocka_unit_test(a_kernel_keeps_half_of_its_time),
		cmocka_unit_test(what_graphs_do_not_go_with_is_refused),
	};

	return cmocka_run_group_tests_name("graphed", tests, NULL, NULL);
}
