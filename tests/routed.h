/* tests/routed.h - routed models and their plans: one small one, and many drawn */
#ifndef TESTS_ROUTED_H
#define TESTS_ROUTED_H

#include "tests/works.h"

#define MOE \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 2, " \
	"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, " \
	"num_experts: 16, num_experts_per_tok: 4, moe_intermediate_size: 256, " \
	"n_shared_experts: 0}"
#define PLAN(more) \
	"{sequence_length: 512, global_batch_size: 32, sharding: ddp, " more "}"

static const char *const dispatchers[] = { "alltoall", "deepep", "hybridep" };

/* A routed model and its plan, drawn. */
struct drawn {
	int64_t h, width, layers, experts, per_token, tp, ep, micro_batches;
	bool sliced;
	const char *dispatcher;
	char model[400], plan[500];
};

enum { SEQUENCE = 512, RANKS = 16 };

static inline void draw(struct drawn *d, uint64_t *seed, const char *more)
{
	d->h = 64 << rnd(seed) % 3;
	d->width = 32 << rnd(seed) % 3;
	d->layers = 1 + rnd(seed) % 3;
	d->experts = 16 << rnd(seed) % 2;
	d->per_token = 1 + rnd(seed) % 8;
	d->tp = 1 << rnd(seed) % 3;
	d->ep = 1 << rnd(seed) % 5;
	d->micro_batches = 1 + rnd(seed) % 3;
	d->sliced = rnd(seed) % 2 || d->tp > 1; /* experts under tp want it */
	d->dispatcher = dispatchers[rnd(seed) % 3];
	snprintf(d->model, sizeof(d->model),
		 "{model_type: qwen3_moe, hidden_size: %d, num_hidden_layers: %d, "
		 "num_attention_heads: 8, vocab_size: 512, intermediate_size: 64, "
		 "num_experts: %d, num_experts_per_tok: %d, moe_intermediate_size: %d}",
		 (int)d->h, (int)d->layers, (int)d->experts, (int)d->per_token,
		 (int)d->width);
	snprintf(d->plan, sizeof(d->plan),
		 "{sequence_length: %d, global_batch_size: %d, sharding: ddp, "
		 "sequence_parallel: %s, parallel: {tp: %d, ep: %d}, "
		 "moe_dispatcher: %s%s}",
		 SEQUENCE, (int)(RANKS / d->tp * d->micro_batches),
		 d->sliced ? "true" : "false", (int)d->tp, (int)d->ep, d->dispatcher,
		 more);
}

#endif
