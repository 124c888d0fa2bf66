/* tests/key_parts.h - scenarios of every kind, and the files whose keys they read */
#ifndef TESTS_KEY_PARTS_H
#define TESTS_KEY_PARTS_H

#include "tests/keys.h"

#define COST "cost: {prices: neocloud-2026-09}}"
#define GIVEN \
	"cost: {prices: neocloud-2026-09, price_of: {hgx-h100-server: 250000 USD}}}"
#define RENT "cost: {usd_per_gpu_hour: 2 USD/h, prices: rent-2026}}"
#define RENTED "cost: {prices: rent-2026}}"
#define ON(gpu, n, fabric) \
	"cluster: {gpu: " gpu ", gpus: " n ", fabric: " fabric ", node: "
#define LLAMA "{model: {name: llama3-8b, num_hidden_layers: 4}, "
#define MIXTRAL "{model: {name: mixtral-8x7b, num_hidden_layers: 4}, "
#define OSS "{model: {name: gpt-oss-20b, num_hidden_layers: 4}, "
#define GPT "{model: {name: gpt-1.5b, num_hidden_layers: 4}, "
#define GEMMA "{model: {name: gemma2-9b, num_hidden_layers: 4}, "
#define IB ON("h100-sxm", "16", "ib-ndr-rail") "hgx-h100}, "
#define ROCE \
	ON("mi300x", "1024", "roce-400-rail") \
	"mi300x-8x, imperfections: {seed: 2, " \
	"failed_uplinks_frac: 0.3, slow_nics_frac: 0.02, slow_gpus: [{gpu: 400, speed_frac: 0.8}]}}, "
#define TRAIN(sequence, batch) \
	"training: {sequence_length: " sequence ", global_batch_size: " batch ", "

static const char zero1_pipeline[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096", "16") "parallel: {tp: 2, pp: 2, vpp: 2}, overlap: {tp: false}}, " COST;
static const char plain[] =
	LLAMA IB "stack: nemo-24, " TRAIN("4096", "32") "micro_batch_size: 1}, " GIVEN;
static const char tp_overlapped[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096",
	"16") "parallel: {tp: 8}, sharding: zero2, overlap: {tp: true, copy_engines: true}}, " COST;
static const char experts_fp8[] = MIXTRAL IB "stack: nemo-24, " TRAIN(
	"4096",
	"16") "precision: fp8, parallel: {tp: 2, cp: 2, ep: 8, etp: 2}, recompute: selective, cuda_graphs: partial}, " COST;
static const char blocks[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096", "16") "precision: fp8-block128, parallel: {tp: 2}}, " COST;
static const char experts_wide[] = MIXTRAL IB "stack: nemo-24, " TRAIN(
	"16384",
	"64") "precision: fp8, sharding: zero1, parallel: {ep: 4}, overlap: {dp: true}, recompute: selective, recompute_modules: moe_act}, " COST;
#define EXPERTS_AMD(precision) \
	MIXTRAL ON("mi300x", "8", "roce-400-rail") "mi300x-8x}, stack: primus-megatron-rocm7-ck, " TRAIN( \
		"2048", "16") "parallel: " \
			      "{ep: 4}, precision: " precision "}, " COST
static const char experts_amd[] = EXPERTS_AMD("bf16");
static const char experts_amd_fp8[] = EXPERTS_AMD("fp8");
static const char experts_paired[] = OSS IB "stack: nemo-24, " TRAIN(
	"4096",
	"32") "micro_batch_size: 1, precision: fp8, attention_precision: fp8, parallel: {ep: 4}, overlap: {ep: true}}, " COST;
static const char chosen_tokens[] =
	"{model: {name: glm-5.2, num_hidden_layers: 4, n_routed_experts: 8}, " IB
	"stack: nemo-24, " TRAIN("4096", "16") "sharding: zero1}, " COST;
/* Scores of an indexer in fp32, of 32 heads and of 64. */
#define MASKED(heads) \
	"{model: {name: glm-5.2, num_hidden_layers: 4, n_routed_experts: 8, index_n_heads: " heads \
	"}, cluster: {gpu: h100-sxm, gpus: 1, fabric: none, node: hgx-h100}, " \
	"stack: transformers-5-eager, " TRAIN("4096", "1") "sharding: none}, " COST
static const char masked[] = MASKED("32");
static const char masked_wide[] = MASKED("64");
static const char capped[] =
	GEMMA IB "stack: nemo-24, " TRAIN("4096", "16") "parallel: {tp: 2}}, " COST;
static const char adapters_cp[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"16384",
	"16") "precision: fp8, parallel: {cp: 4}, lora: {rank: 8, targets: all}}, " COST;
static const char unfused[] = GPT
	ON("a100-80g", "8", "ib-hdr-rail") "hgx-a100}, stack: megatron-lm-2022, " TRAIN(
		"2048", "128") "micro_batch_size: 8, sharding: ddp}, " COST;
static const char unfused_stages[] = LLAMA
	ON("a100-80g", "8", "ib-hdr-rail") "hgx-a100}, stack: megatron-lm-2022, " TRAIN(
		"512", "8") "micro_batch_size: 1, parallel: {tp: 2, pp: 2}}, " COST;
static const char unfused_odd[] = GPT
	ON("a100-80g", "8", "ib-hdr-rail") "hgx-a100}, stack: megatron-lm-2022, " TRAIN(
		"512", "8") "micro_batch_size: 1, sharding: ddp}, " COST;
static const char windowed[] =
	"{model: {name: mistral-7b, num_hidden_layers: 2, sliding_window: 512}, " IB
	"stack: llm-foundry-2023, " TRAIN("4096", "16") "sharding: ddp}, " COST;
static const char experts_grouped[] =
	MIXTRAL IB "stack: nemo-24, " TRAIN("4096", "16") "parallel: {ep: 2}}, " COST;
static const char experts_forced[] = MIXTRAL IB "stack: nemo-24, " TRAIN(
	"4096",
	"16") "parallel: {ep: 4}, moe_dispatcher: deepep, moe_force_balance: true}, " COST;
static const char slotted[] = MIXTRAL IB "stack: maxtext-2025, " TRAIN(
	"4096", "16") "parallel: {ep: 8}, moe_capacity_factor: 1.25}, " COST;
static const char chunked[] =
	LLAMA ON("h100-sxm", "2", "none") "hgx-h100}, stack: torch-2.11-eager, " TRAIN(
		"4096",
		"8") "micro_batch_size: 1, sharding: ddp, parallel: {pp: 2, vpp: 2}}, " COST;
static const char fsdp_eager[] = LLAMA IB "stack: torch-2.11-eager, " TRAIN(
	"4096",
	"32") "sharding: fsdp, recompute: selective, overlap: {dp: true}}, " COST;
static const char hsdp_tp_eager[] = LLAMA IB "stack: torch-2.11-eager, " TRAIN(
	"4096",
	"32") "parallel: {tp: 2}, sharding: hsdp, shard: 4, overlap: {tp: false}}, " COST;
static const char ddp_eager[] = GPT IB "stack: torch-2.11-eager, " TRAIN(
	"2048", "32") "sharding: ddp, recompute: full, step_start: together}, " COST;
static const char ddp_tp_eager[] = LLAMA IB "stack: torch-2.11-eager, " TRAIN(
	"2048", "32") "parallel: {tp: 2, pp: 2}, sharding: ddp}, " COST;
static const char split_eager[] = LLAMA IB "stack: torch-2.11-eager, " TRAIN(
	"2048",
	"32") "parallel: {pp: 2}, sharding: fsdp, schedule: zero-bubble, pipeline_flushes: 2}, " COST;
static const char alone_eager[] =
	LLAMA ON("h100-sxm", "1", "none") "hgx-h100}, stack: torch-2.11-eager, " TRAIN(
		"128",
		"2") "sharding: fsdp, reshard_after_forward: false, offload_layers: 4}, " COST;
static const char unwrapped[] =
	LLAMA ON("h100-sxm", "1", "none") "hgx-h100}, stack: torch-2.11-eager, " TRAIN(
		"128", "2") "sharding: none, master_weights: false}, " COST;
static const char experts_alone[] = MIXTRAL
	ON("h100-sxm", "8", "ib-ndr-rail") "hgx-h100}, stack: torch-2.11-eager, " TRAIN(
		"2048", "32") "sharding: fsdp, parallel: {ep: 8}}, " COST;
static const char adapters[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096",
	"16") "lora: {rank: 8, targets: mlp, dropout: true, frozen_precision: bf16}}, " COST;
static const char ragged[] = GPT IB "stack: llm-foundry-2023, " TRAIN(
	"2048", "48") "sharding: fsdp, micro_batch_size: 2}, " COST;
static const char ecmp[] = LLAMA ROCE "stack: primus-megatron-rocm7, " TRAIN(
	"4096",
	"1024") "parallel: {tp: 2, pp: 2, stage_layers: [1, 3]}, schedule: gpipe}, " COST;
static const char by_default[] =
	"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, gpus: 16}, " TRAIN(
		"4096", "64") "parallel: {tp: 2}, precision: fp16}, " COST;
static const char hsdp_by_default[] = LLAMA
	ON("mi300x", "16", "roce-400-rail") "mi300x-8x}, stack: torch-2.11-eager, " TRAIN(
		"4096", "32") "sharding: hsdp, parallel: {}, overlap: {}}, " COST;
static const char wide_heads[] =
	"{model: {name: llama3-8b, num_hidden_layers: 4, head_dim: 256}, " IB
	"stack: nemo-24, " TRAIN("4096", "16") "}, " COST;
static const char odd[] =
	"{model: {name: llama3-8b, num_hidden_layers: 4, intermediate_size: 14331}, " IB
	"stack: nemo-24, " TRAIN("4096", "64") "}, " COST;
static const char bare[] =
	LLAMA IB "stack: bare, " TRAIN("4096", "16") "parallel: {tp: 4}}, " COST;
static const char mesh[] =
	GPT ON("mi250", "8", "ib-mi250-800") "mi250-4x}, stack: rocm-5.7, " TRAIN(
		"2048", "16") "sharding: ddp}, " COST;
static const char mesh_node[] =
	GPT ON("mi250", "4", "ib-mi250-800") "mi250-4x}, stack: rocm-5.7, " TRAIN(
		"2048", "16") "sharding: ddp}, " COST;
static const char mesh_racks[] =
	GPT ON("mi250", "128", "ib-mi250-800") "mi250-4x}, stack: rocm-5.7, " TRAIN(
		"2048", "256") "sharding: ddp, offload_layers: 4}, " COST;
static const char site_large[] =
	GPT ON("h100-sxm", "2048", "ib-ndr-rail") "hgx-h100}, stack: nemo-24, " TRAIN(
		"1024", "2048") "sharding: ddp}, " COST;
static const char core[] = GPT
	ON("a100-80g", "2048", "ib-hdr-rail") "hgx-a100}, stack: megatron-lm-2022, " TRAIN(
		"1024", "2048") "sharding: ddp}, cost: {prices: mixnet-2025}}";
static const char kin[] = LLAMA
	ON("mi325x", "8", "roce-400-rail") "mi325x-8x}, stack: primus-megatron-rocm7, " TRAIN(
		"2048", "16") "parallel: {tp: 4}}, " COST;
static const char tor[] =
	GPT ON("h100-sxm", "128", "roce-400-tor") "hgx-h100}, stack: nemo-24, " TRAIN(
		"2048", "128") "sharding: ddp}, " COST;
static const char efa[] =
	GPT ON("h100-sxm", "128", "efa-400-rail") "hgx-h100}, stack: nemo-24, " TRAIN(
		"2048", "128") "sharding: ddp}, " COST;

static const char on_host[] = LLAMA IB "stack: generic, " TRAIN(
	"4096",
	"32") "sharding: fsdp, "
	      "micro_batch_size: 1, offload_state: all, offload_threads: 64}, " COST;
static const char on_one_host[] =
	"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, gpus: 1}, stack: generic, " TRAIN(
		"4096",
		"2") "sharding: fsdp, micro_batch_size: 1, offload_state: all}, " COST;

static const char bought[] = LLAMA IB "stack: nemo-24, run: {tokens: 1T, days: 400}, " TRAIN(
	"4096",
	"64") "micro_batch_size: 1}, cost: {prices: neocloud-2026-09, tax_frac: 0.1, "
	      "duty_frac: 0.1, insurance_frac: 0.01, staff: 1 MUSD/y, licences_per_gpu: 4500 USD/y, "
	      "burn_in: 20 d, "
	      "start: 2027-01, against: 2 USD/h, residual_by_year: [0.5, 0.3, 0.2, 0.1], "
	      "tranches: [{month: 0, share: 0.5}, {month: 2, share: 0.5}], goodput: "
	      "{recovery: hot, spares: false, storage_bandwidth: 1 GB/s, interval: 10 min, "
	      "restart: 5 min, repair: 1 h, failures_per_1000_node_days: 5, "
	      "flaps_per_1000_node_days: 3, flap: 5 s, straggler_frac: 0.02}}}";
static const char cold[] =
	LLAMA IB "stack: nemo-24, run: {flop: 1e21, budget: 1 MUSD}, " TRAIN(
		"4096",
		"64") "micro_batch_size: 1}, cost: {prices: neocloud-2026-09, goodput: "
		      "{recovery: cold, checkpoint: 10 s}}}";
static const char tolerant[] =
	LLAMA IB "stack: nemo-24, run: {days: 10, megawatts: 0.05}, " TRAIN(
		"4096",
		"64") "micro_batch_size: 1}, cost: {prices: neocloud-2026-09, goodput: "
		      "{recovery: fault_tolerant, failover: 30 s}}}";
static const char tolerant_by_book[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096", "64") "micro_batch_size: 1}, cost: {prices: neocloud-2026-09, goodput: "
		      "{recovery: fault_tolerant}}}";
static const char flapping[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096", "64") "micro_batch_size: 1}, cost: {prices: neocloud-2026-09, goodput: "
		      "{flaps_per_1000_node_days: 3}}}";
static const char let_cold[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096",
	"32") "micro_batch_size: 1}, cost: {prices: rent-2026, goodput: {recovery: cold}}}";
static const char let_tolerant[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096",
	"32") "micro_batch_size: 1}, cost: {prices: rent-2026, goodput: {recovery: fault_tolerant}}}";
static const char let_flapping[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096",
	"32") "micro_batch_size: 1}, cost: {prices: rent-2026, goodput: {flaps_per_1000_node_days: 3}}}";
static const char let[] = LLAMA IB "stack: nemo-24, " TRAIN(
	"4096", "32") "micro_batch_size: 1}, cost: {prices: "
		      "rent-2026, prepaid_frac: 0.2, take_or_pay: true}}";
static const char rent[] =
	LLAMA IB "stack: nemo-24, " TRAIN("4096", "32") "micro_batch_size: 1}, " RENT;
static const char rented[] =
	LLAMA IB "stack: nemo-24, " TRAIN("4096", "32") "micro_batch_size: 1}, " RENTED;

static const struct key_part parts[] = {
	{ "stack",
	  "stacks",
	  "megatron-core",
	  { plain, zero1_pipeline, tp_overlapped, experts_fp8, experts_wide,
	    experts_paired, experts_forced, adapters_cp, capped, chosen_tokens } },
	{ "stack",
	  "stacks",
	  "megatron-lm-2022",
	  { unfused, unfused_stages, unfused_odd } },
	{ "stack",
	  "stacks",
	  "torch-2.11-eager",
	  { fsdp_eager, hsdp_tp_eager, hsdp_by_default, ddp_eager, ddp_tp_eager,
	    split_eager, alone_eager, unwrapped, experts_alone } },
	{ "stack", "stacks", "llm-foundry-2023", { ragged, windowed } },
	{ "stack", "stacks", "generic", { on_host, on_one_host } },
	{ "stack", "stacks", "jax-0.11", { slotted } },
	{ "stack",
	  "stacks",
	  "primus-megatron-rocm7-ck",
	  { experts_amd, experts_amd_fp8 } },
	{ "", NULL, "scenario", { zero1_pipeline, plain,	   tp_overlapped,
				  experts_fp8,	  fsdp_eager,	   hsdp_tp_eager,
				  rent,		  ddp_eager,	   ecmp,
				  by_default,	  hsdp_by_default, adapters,
				  experts_wide,	  adapters_cp,	   bought,
				  cold,		  tolerant,	   let,
				  on_host,	  chosen_tokens } },
	{ "cluster.node",
	  "hw/nodes",
	  "hgx-h100",
	  { zero1_pipeline, fsdp_eager, by_default, on_host } },
	{ "cluster.node", "hw/nodes", "mi250-4x", { mesh, mesh_racks } },
	{ "cluster.site", "hw/sites", "standard", { plain, site_large, tor } },
	{ "cluster.fabric",
	  "hw/fabrics",
	  "ib-ndr-rail",
	  { zero1_pipeline, fsdp_eager } },
	{ "cluster.fabric", "hw/fabrics", "roce-400-rail", { ecmp } },
	{ "cluster.fabric", "hw/fabrics", "roce-400-tor", { tor } },
	{ "cluster.fabric", "hw/fabrics", "efa-400-rail", { efa } },
	{ "cluster.fabric", "hw/fabrics", "ib-hdr-rail", { core } },
	{ "cost.prices",
	  "cost/prices",
	  "neocloud-2026-09",
	  { zero1_pipeline, ecmp, cold, tolerant_by_book, flapping } },
	{ "cost.prices",
	  "cost/prices",
	  "rent-2026",
	  { rented, let_cold, let_tolerant, let_flapping } },
	{ "cluster.gpu", "hw/gpus", "mi250", { mesh, mesh_node } },
	{ "cluster.gpu", "hw/gpus", "mi325x", { kin } },
	{ "cluster.gpu",
	  "hw/gpus",
	  "h100-sxm",
	  { zero1_pipeline, chunked, fsdp_eager, experts_fp8, ddp_eager, ragged, bare,
	    by_default, experts_grouped, wide_heads, odd, blocks, chosen_tokens, masked,
	    masked_wide } },
};

enum { PARTS = sizeof(parts) / sizeof(*parts) };

/* The folder of what is written, with the measured rows that profiles name beside it. */
static void make_folder(struct arena *mem, const char *folder)
{
	struct ft_error err;
	const char *gpu = file_find(mem, "hw/gpus", "h100-sxm", NULL, &err);
	char *from = realpath(file_beside(mem, gpu, "."), NULL);
	FILE *f;

	assert_non_null(from);
	assert_int_equal(system(arena_printf(mem, "mkdir -p %s && ln -sf %s/*.csv %s/",
					     folder, from, folder)),
			 0);
	free(from);
	f = fopen(arena_printf(mem, "%s/bare.yaml", folder), "w");
	assert_non_null(f);
	fputs("{extends: nemo-24, layout: {attention: ''}, rates: {gap: 0 s}}\n", f);
	fclose(f);
}

#endif
