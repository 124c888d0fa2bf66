/* tests/compressed.h - a small model of attention to compressed tokens, in streams of the residual, and a plan of it */
#ifndef TESTS_COMPRESSED_H
#define TESTS_COMPRESSED_H

#include "tests/counted.h"
#include "tests/parts.h"

#define KEYS(layers) \
	"model_type: deepseek_v4, hidden_size: 512, num_hidden_layers: " layers ", " \
	"num_attention_heads: 8, head_dim: 64, q_lora_rank: 128, o_groups: 4, " \
	"o_lora_rank: 32, sliding_window: 16, index_n_heads: 4, index_head_dim: 32, " \
	"index_topk: 32, hc_mult: 4, n_routed_experts: 8, num_experts_per_tok: 2, " \
	"moe_intermediate_size: 256, n_shared_experts: 1, vocab_size: 512"
#define MODEL(layers, more) "{" KEYS(layers) more "}"
#define RATIOS(list) ", compress_ratios: [" list "]"
#define PLAN(more) \
	"{sequence_length: 512, global_batch_size: 32, sharding: ddp" more "}"

enum {
	H = 512,
	HEADS = 8,
	DIM = 64,
	TURNED = 8,
	QRANK = 128,
	GROUPS = 4,
	RANK = 32,
	WINDOW = 16,
	INDEX_HEADS = 4,
	INDEX_DIM = 32,
	TOPK = 32,
	STREAMS = 4,
	TOKENS = 512,
	PASSES = 4
};

#endif
