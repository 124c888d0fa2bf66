/*
 * tests/test_adapters_laid.c - adapters are where a layer has the matrix that they are laid beside, and those that run again
 * are counted as what they are
 */
#include "tests/works.h"

enum { SEQUENCE = 512 };
#define PLAN(recompute, lora) \
	"{sequence_length: 512, global_batch_size: 8, sharding: zero1, gradient_dtype: fp32, " \
	"recompute: " recompute ", lora: {rank: 8, " lora "}}"

static double of_adapters(const struct parts *p)
{
	return sum_of(p->graph, "lora_a").flop + sum_of(p->graph, "lora_b").flop;
}

/* Layers that see keys and values of another have no such products, nor have those whose keys are values; each of the others
 * runs its adapters' two products three times. */
static void layers_without_a_matrix_have_none(void **state)
{
	static const struct {
		const char *model, *plan;
	} of[] = {
		{ "gemma4-e2b", PLAN("none", "targets: [q_proj, k_proj, v_proj]") },
		{ "gemma4-e4b", PLAN("none", "targets: [k_proj]") },
		{ "gemma4-31b", PLAN("none", "targets: [v_proj, o_proj]") },
		{ "llama3.2-1b", PLAN("none", "targets: [k_proj, v_proj]") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct parts p;
		double laid = 0;

		build(&p, of[i].model, of[i].plan, "megatron-core", 8);
		near_frac(of_adapters(&p),
			  6. * SEQUENCE *
				  ft_model_lora_parameters(p.model, &p.plan->lora),
			  1e-12);
		for (int64_t l = 0; l < p.model->n_layers; l++)
			for (int t = 0; t < FT_LORA_TARGETS; t++)
				laid += ft_lora_laid(p.model, &p.plan->lora, l,
						     (enum ft_lora_target)t);
		near_frac(host_times(p.graph, FT_HOST_ADAPTER), 2 * laid, 1e-12);
		drop(&p);
	}
}

/* Adapters run again with their layer or, where that is all that does, with its MLP. */
static void those_that_run_again_are_counted(void **state)
{
	static const char *const plans[] = {
		PLAN("full", "targets: all"),
		PLAN("full, recompute_layers: 3", "targets: attention"),
		PLAN("selective, recompute_modules: [mlp]", "targets: all"),
		PLAN("selective, recompute_modules: [core_attn]", "targets: all"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		struct parts p, alone;
		const char *model = "{name: llama3.2-1b, num_hidden_layers: 4}";

		build(&p, model, plans[i], "megatron-core", 8);
		build(&alone, model, PLAN("none", "targets: attention"),
		      "megatron-core", 8);
		alone.plan->lora = p.plan->lora;
		rebuild(&alone);
		near_frac(sum_of(p.graph, NULL).flop - sum_of(alone.graph, NULL).flop,
			  p.graph->recomputed_flop_per_rank, 1e-9);
		drop(&p);
		drop(&alone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_without_a_matrix_have_none),
		cmocka_unit_test(those_that_run_again_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
