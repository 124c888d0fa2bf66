/* tests/test_graphed.c - under CUDA graphs of whole layers the host launches no kernel of a layer, and waits for none */
#include "tests/works.h"

#define PLAN \
	"{sequence_length: 1024, global_batch_size: 16, sharding: ddp, " \
	"cuda_graphs: full}"

static const char *const models[] = {
	"{name: llama3-8b, num_hidden_layers: 2}",
	"{name: glm4.5-air, num_hidden_layers: 2}",
	"{name: gpt-oss-20b, num_hidden_layers: 2}",
};

static const char *const stacks[] = {
	"megatron-core",
	"torch-2.11-eager",
	"torch-2.11-compile",
	"transformers-5-eager",
	"transformers-5-compile",
	"transformers-5-trainer",
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

		build(&p, models[i / STACKS], PLAN, stacks[i % STACKS], 8);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_ask_the_host_for_nothing),
	};

	return cmocka_run_group_tests_name("graphed", tests, NULL, NULL);
}
