/* tests/plan_drawn.h - plans drawn at random, on clean, hashed and slowed machines */
#ifndef TESTS_PLAN_DRAWN_H
#define TESTS_PLAN_DRAWN_H

#include "base/arena.h"
#include "tests/check.h"

static uint64_t seed;

static int64_t below(int64_t n)
{
	return (int64_t)(rnd(&seed) % (uint64_t)n);
}

#define ANY(...) any_of((const char *const[]){ __VA_ARGS__, NULL })

static const char *any_of(const char *const *words)
{
	int n = 0;

	while (words[n])
		n++;
	return words[below(n)];
}

static const char *drawn(struct arena *mem)
{
	static const char *const machines[] = {
		"gpu: h100-sxm",
		"gpu: h200",
		"gpu: mi300x",
		"gpu: b200",
		"gpu: h100-sxm, fabric: roce-400-rail, imperfections: {placement: scattered}",
		"gpu: h100-sxm, imperfections: {slow_gpus: [{gpu: 3, speed_frac: 0.8}]}",
	};
	static const char *const small_models[] = {
		"{name: llama3-8b, num_hidden_layers: 16}",
		"{name: gpt3-175b, num_hidden_layers: 14}",
		"{name: mixtral-8x7b, num_hidden_layers: 8}",
		"{name: deepseek-v2, num_hidden_layers: 8}",
		"{name: qwen3-30b-a3b, num_hidden_layers: 12}",
	};
	int at = (int)below(6);
	const char *stack = at == 2 ? ANY("generic", "torch-2.11-compile") :
				      ANY("generic", "nemo-24", "torch-2.11-eager",
					  "megatron-core-moe-2025", "torchtitan-2024",
					  "torchtitan-2024-eager", "llm-foundry-2023");

	return arena_printf(
		mem,
		"{model: %s, cluster: {%s, gpus: %s}, stack: %s, training: "
		"{sequence_length: %s, global_batch_size: %s, micro_batch_size: %s, "
		"sharding: %s, recompute: %s, schedule: %s, step_start: %s, "
		"overlap: {tp: %s, dp: %s, pp: %s, ep: %s}, offload_%s, "
		"parallel: {tp: %s, pp: %s, cp: %s, ep: %s, vpp: %s}}}",
		small_models[below(5)], machines[at == 2 ? 2 : at],
		ANY("16", "32", "64"), stack, ANY("2048", "4096"),
		ANY("16", "32", "48", "128"), ANY("1", "1", "2"),
		ANY("ddp", "zero1", "zero2", "fsdp", "hsdp"),
		ANY("none", "selective", "full"),
		ANY("1f1b", "gpipe", "zero-bubble", "zbv"), ANY("steady", "together"),
		ANY("true", "false"), ANY("true", "false"), ANY("true", "false"),
		ANY("true", "false", "false"),
		ANY("layers: 0", "layers: 0", "layers: 3", "state: optimizer",
		    "state: all"),
		ANY("1", "2", "4", "8"), ANY("1", "2", "4", "8"), ANY("1", "1", "2"),
		ANY("1", "1", "2", "4"), ANY("1", "1", "2"));
}

/* Of DualPipeV, most of them with pairs. */
static inline const char *drawn_dual(struct arena *mem)
{
	int64_t pp = 2 << below(2);

	return arena_printf(
		mem,
		"{model: %s, cluster: {gpu: %s, gpus: %s}, stack: %s, training: "
		"{sequence_length: 2048, global_batch_size: %s, micro_batch_size: 1, "
		"sharding: %s, recompute: %s, schedule: dualpipev, step_start: %s, "
		"overlap: {tp: %s, dp: %s, pp: %s, ep: %s}, "
		"parallel: {tp: %s, pp: %d, cp: %s, ep: %s, vpp: 2}}}",
		ANY("{name: llama3-8b, num_hidden_layers: 16}",
		    "{name: mixtral-8x7b, num_hidden_layers: 8}",
		    "{name: qwen3-30b-a3b, num_hidden_layers: 12}"),
		ANY("h100-sxm", "h200"), ANY("8", "16"),
		ANY("torch-2.11-eager", "torchtitan-2024-eager"),
		ANY("32", "64", "128", "256"),
		ANY("ddp", "zero1", "zero2", "fsdp", "hsdp"),
		ANY("none", "selective", "full"), ANY("steady", "together"),
		ANY("true", "false"), ANY("true", "false"), ANY("true", "false"),
		ANY("true", "false"), ANY("1", "2"), (int)pp, ANY("1", "1", "2"),
		ANY("1", "2", "4"));
}

/* Of models as Transformers writes them: masks, plain sinks, single operations, a host that asks; also
 * under plans that Transformers does not run. */
static inline const char *drawn_written(struct arena *mem)
{
	static const char *const written[] = {
		"gemma2-9b, num_hidden_layers: 8",
		"gpt-oss-20b, num_hidden_layers: 8",
		"starcoder2-15b, num_hidden_layers: 8",
		"phi3-mini, num_hidden_layers: 8",
		"qwen3-30b-a3b, num_hidden_layers: 8",
		"deepseek-v2, num_hidden_layers: 8",
		"falcon-7b, num_hidden_layers: 8",
		"qwen3-next-80b-a3b, num_hidden_layers: 8, num_nextn_predict_layers: 1",
		"llama4-scout, num_hidden_layers: 8, attention_chunk_size: 1024",
	};

	return arena_printf(
		mem,
		"{model: {name: %s}, cluster: {gpu: %s, gpus: %s}, stack: %s, training: "
		"{sequence_length: %s, global_batch_size: %s, micro_batch_size: %s, "
		"sharding: %s, recompute: %s, schedule: %s, step_start: %s, "
		"reshard_after_forward: %s, overlap: {dp: %s, pp: %s}, "
		"parallel: {tp: %s, pp: %s, cp: %s, ep: %s, vpp: %s}}}",
		written[below(9)],
		ANY("h100-sxm", "h200", "b200", "a100-80g", "mi300x"), ANY("8", "16"),
		ANY("transformers-5-eager", "transformers-5-compile",
		    "tests/data/transformers-any-plan.yaml",
		    "tests/data/transformers-any-plan.yaml"),
		ANY("2048", "4096"), ANY("16", "32", "64", "256"), ANY("1", "1", "2"),
		ANY("ddp", "zero1", "fsdp", "fsdp", "hsdp"),
		ANY("none", "selective", "full"),
		ANY("1f1b", "1f1b", "gpipe", "zero-bubble", "zbv"),
		ANY("steady", "together"), ANY("true", "true", "false"),
		ANY("true", "false"), ANY("true", "false"), ANY("1", "1", "1", "2"),
		ANY("1", "1", "1", "2", "4"), ANY("1", "1", "1", "2"),
		ANY("1", "1", "1", "4"), ANY("1", "1", "1", "2"));
}

#endif
