/* tests/test_experts_wide.c - experts whose weights are in fp32 under autocast, against those in 16 bit */
#include "tests/counted.h"

#define MIXTURE \
	"{model_type: mixtral, hidden_size: 512, intermediate_size: 256, num_hidden_layers: 4, " \
	"num_attention_heads: 8, num_key_value_heads: 4, vocab_size: 1000, num_local_experts: 8, " \
	"num_experts_per_tok: 2}"
#define PLAN(more) \
	"{sequence_length: 1024, global_batch_size: 2, micro_batch_size: 2, recompute: none, " more \
	"}"

enum { LAYERS = 4, H = 512, TOKENS = 2048, EXPERTS = 8, CHOSEN = 2, WIDTH = 256 };

struct mixture {
	const char *plan;
	enum ft_dtype format;
	double products;      /* in one pass of all layers */
	int64_t rows, groups; /* of each */
	double bytes;	      /* that gates move, over 16 bit's */
};

/* How often the host waits for the GPU in a step. */
static double waits(const struct ft_graph *g)
{
	double n = 0;

	for (size_t i = 0; i < g->rank_class[0].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[0].call[i];
		const struct ft_segment *s = &g->segment[call->segment];

		for (size_t j = 0; j < s->n_ops; j++)
			n += s->op[j].host_waits ? call->repeat : 0;
	}
	return n;
}

/* Autocast leaves operands of grouped products as they are, so that weights in fp32 have one product an expert, all around
 * them twice as wide, and the host asks for the numbers of tokens; under FSDP and in 16 bit experts are one product. */
static void experts_are_as_their_weights(void **state)
{
	static const struct mixture kinds[] = {
		{ PLAN("sharding: ddp"), FT_FP32, LAYERS * EXPERTS,
		  TOKENS * CHOSEN / EXPERTS, 1, 2 },
		{ PLAN("sharding: fsdp"), FT_BF16, LAYERS, TOKENS * CHOSEN, EXPERTS,
		  1 },
		{ PLAN("sharding: none, master_weights: false, gradient_dtype: bf16"),
		  FT_BF16, LAYERS, TOKENS * CHOSEN, EXPERTS, 1 },
	};
	double gate = 0, waited = 0;

	(void)state;
	for (int i = 2; i >= 0; i--) {
		const struct ft_work *up;
		struct parts p;
		struct sum s;

		build(&p, MIXTURE, kinds[i].plan, "transformers-5-eager", 1);
		up = work_of(p.graph, "expert_up");
		assert_int_equal(up->dtype, kinds[i].format);
		assert_int_equal(up->gemm.m, kinds[i].rows);
		assert_int_equal(up->gemm.groups, kinds[i].groups);
		assert_true(times_of(p.graph, up) == kinds[i].products);
		s = sum_of(p.graph, "expert_up"); /* and both gradients */
		assert_true(s.n == 3 * kinds[i].products);
		near_frac(s.flop, 3 * LAYERS * 2.0 * TOKENS * CHOSEN * 2 * WIDTH * H,
			  1e-12);
		waited = i == 2 ? waits(p.graph) :
				  waited; /* two products, three passes */
		assert_true(waits(p.graph) == waited + (i ? 0 : 6 * LAYERS));
		s = sum_of(p.graph, "expert_activation");
		gate = i == 2 ? s.bytes : gate;
		near_frac(s.bytes, kinds[i].bytes * gate, 1e-12);
		drop(&p);
	}
}

/* Autocast casts what it reaches: of a layer all weights but its experts', and their gradients back. */
static void experts_in_fp32_are_not_cast(void **state)
{
	const double attention = 2.0 * H * H + 2.0 * H * H / 2, router = 8.0 * H;
	struct parts p;

	(void)state;
	build(&p, MIXTURE, PLAN("sharding: ddp"), "transformers-5-eager", 1);
	near_frac(sum_in(p.graph, "forward", "weight_cast").bytes,
		  LAYERS * 6 * (attention + router + 2.0 * H), 1e-12);
	near_frac(sum_in(p.graph, "backward", "gradient_cast").bytes,
		  LAYERS * 6 * (attention + router + 2.0 * H), 1e-12);
	drop(&p);
}

/* Frozen experts are in 16 bit, whatever the adapters are in. */
static void frozen_experts_are_in_16_bit(void **state)
{
	struct parts p;

	(void)state;
	build(&p, MIXTURE,
	      PLAN("sharding: ddp, lora: {rank: 8, targets: [q_proj, v_proj]}"),
	      "transformers-5-eager", 1);
	assert_int_equal(work_of(p.graph, "expert_up")->dtype, FT_BF16);
	drop(&p);
}

/* A layer keeps of each copy that goes to an expert what both products read and write, gate and up: twice the bytes in fp32. */
static void what_experts_keep_is_in_fp32(void **state)
{
	const double copies = 2 * TOKENS, each = 8 * 256.0 + 4 * H;
	char name[64];
	const char *narrow = own_path(name, "experts_wide.yaml");
	FILE *f = fopen(narrow, "w");
	double kept[2];

	(void)state;
	fputs("{extends: transformers-5-eager, layout: {experts_as_weights: false}}",
	      f);
	fclose(f);
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MIXTURE, PLAN("sharding: ddp"),
		      i ? "transformers-5-eager" : narrow, 1);
		kept[i] = segment_of(p.graph, "forward")
				  ->net_bytes[FT_MEMORY_ACTIVATIONS];
		drop(&p);
	}
	unlink(narrow);
	near_frac(kept[1] - kept[0], copies * each, 1e-12);
}

/* A class of Transformers gates halves of one product's rows, by kernels that are not vectorized; experts in layers of their own have their
 * gates apart, and so has a plain loop. */
static void gates_of_one_product_are_strided(void **state)
{
	static const struct {
		const char *stack, *plan;
		double vector,
			strided; /* bytes of a gate's number, forward and backward */
	} how[] = { { "transformers-5-eager", "", 14, 16 },
		    { "transformers-5-eager", ", grouped_experts: false", 30, 0 },
		    { "torch-2.11-eager", "", 30, 0 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char plan[200];
		struct parts p;
		double n = (double)TOKENS * CHOSEN * WIDTH * LAYERS, of[2] = { 0 };

		snprintf(plan, sizeof(plan),
			 PLAN("sharding: ddp, master_weights: false%s"), how[i].plan);
		build(&p, MIXTURE, plan, how[i].stack, 1);
		for (size_t w = 0; w < p.graph->n_works; w++) {
			const struct ft_work *k = &p.graph->work[w];

			if (!strncmp(k->name, "expert_activation", 17))
				of[!strcmp(k->memory.kernel, "strided")] +=
					times_of(p.graph, k) * k->memory.bytes;
		}
		near_frac(of[0], how[i].vector * n, 1e-12);
		near_frac(1 + of[1], 1 + how[i].strided * n, 1e-12);
		drop(&p);
	}
}

/* PyTorch's grouped products are one kernel; Megatron's are not. */
static void whose_blocks_have_their_tiles(void **state)
{
	static const char *const stack[] = { "transformers-5-eager", "megatron-core" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct parts p;

		build(&p, MIXTURE, PLAN("sharding: ddp, master_weights: false"),
		      stack[i], 1);
		assert_int_equal(work_of(p.graph, "expert_up")->gemm.static_tiles, !i);
		assert_false(work_of(p.graph, "router")->gemm.static_tiles);
		drop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experts_are_as_their_weights),
		cmocka_unit_test(experts_in_fp32_are_not_cast),
		cmocka_unit_test(frozen_experts_are_in_16_bit),
		cmocka_unit_test(what_experts_keep_is_in_fp32),
		cmocka_unit_test(whose_blocks_have_their_tiles),
		cmocka_unit_test(gates_of_one_product_are_strided),
	};

	return cmocka_run_group_tests_name("experts in fp32", tests, NULL, NULL);
}
