/* tests/indexed.h - a small model whose indexers choose tokens and a plan for it, and a scenario of a large one */
#ifndef TESTS_INDEXED_H
#define TESTS_INDEXED_H

#include "foretoken/study.h"
#include "tests/counted.h"
#include "tests/parts.h"

#define KEYS(layers) \
	"hidden_size: 512, num_hidden_layers: " layers ", num_attention_heads: 8, " \
	"q_lora_rank: 128, kv_lora_rank: 64, qk_nope_head_dim: 32, " \
	"qk_rope_head_dim: 16, v_head_dim: 48, intermediate_size: 1024, " \
	"first_k_dense_replace: " layers ", n_routed_experts: 8, " \
	"num_experts_per_tok: 2, moe_intermediate_size: 256, vocab_size: 512"
#define INDEX ", index_n_heads: 4, index_head_dim: 32, index_topk: 128"
#define NO_INDEX ", index_n_heads: 4, index_head_dim: 32, index_topk: 0"
#define MODEL(layers, more) "{model_type: deepseek_v32, " KEYS(layers) INDEX more "}"
#define DENSE(layers) "{model_type: deepseek_v3, " KEYS(layers) "}"
#define PLAN(more) \
	"{sequence_length: 512, global_batch_size: 32, sharding: ddp, " \
	"sequence_parallel: true" more "}"

enum {
	H = 512,
	HEADS = 8,
	QRANK = 128,
	LATENT = 64,
	NOPE = 32,
	ROPE = 16,
	VALUE = 48,
	INDEX_HEADS = 4,
	INDEX_DIM = 32,
	TOPK = 128,
	TOKENS = 512,
	PASSES = 4
};

static const double index_matrices =
	QRANK * INDEX_HEADS * INDEX_DIM + H * (INDEX_DIM + INDEX_HEADS);

/* DeepSeek-V3.2, with these keys of its model and of its plan, on eight H200; mem must outlive it. */
static inline struct ft_scenario *of_eight(struct ft_shelf *shelf, struct arena *mem,
					   const char *stack, const char *model,
					   const char *training, struct ft_error *err)
{
	const char *text = arena_printf(
		mem,
		"{model: {name: deepseek-v3.2, %s}, cluster: {gpu: h200, gpus: 8}, "
		"stack: %s, training: {sequence_length: 4096, global_batch_size: 8, %s}}",
		model, stack, training);

	return ft_scenario_from(shelf,
				node_read_text(mem, "s", text, strlen(text), err), "s",
				true, err);
}

#endif
