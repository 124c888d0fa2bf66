/* study/keys.c - the table of a scenario's keys, and a scenario with all of them */
#include "study/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"

/* The shortest decimals that read back as the same number. */
static const char *exact(struct arena *mem, double x, const char *unit)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, x);
		if (strtod(text, NULL) == x)
			break;
	}
	return arena_printf(mem, "%s%s", text, unit);
}

static const char *whole(struct arena *mem, int64_t n)
{
	return arena_printf(mem, "%" PRId64, n);
}

#define VALUE(name, expression) \
	static const char *name(struct arena *mem, const struct ft_scenario *s) \
	{ \
		(void)mem; \
		return expression; \
	}
#define BOUGHT(name, expression) VALUE(name, s->prices->n_rents ? NULL : (expression))
#define NUMBER(name, expression) VALUE(name, whole(mem, expression))
#define TRUTH(name, expression) VALUE(name, (expression) ? "true" : "false")

VALUE(stack, s->stack->name)
VALUE(ccl, s->ccl->name)
VALUE(gpu, s->cluster->gpu->name)
NUMBER(gpus, s->cluster->gpus)
VALUE(node, s->cluster->node->name)
VALUE(fabric, s->cluster->fabric->name)
NUMBER(ufm_ports, s->cluster->ufm_ports)
VALUE(lora_rank, s->plan->lora.rank ? whole(mem, s->plan->lora.rank) : NULL)
VALUE(lora_frozen, s->plan->lora.rank ? ft_dtype_name(s->plan->lora.frozen) : NULL)
NUMBER(sequence, s->plan->sequence)
VALUE(document, s->plan->document ? whole(mem, s->plan->document) : NULL)
NUMBER(global_batch, s->plan->global_batch)
NUMBER(micro_batch, s->plan->micro_batch)
VALUE(precision, ft_dtype_name(s->plan->precision))
NUMBER(tp, s->plan->tp)
NUMBER(pp, s->plan->pp)
NUMBER(cp, s->plan->cp)
NUMBER(ep, s->plan->ep)
NUMBER(etp, s->plan->etp)
NUMBER(vpp, s->plan->vpp)
VALUE(sharding, ft_sharding_name(s->plan->sharding))
NUMBER(shard, s->plan->shard)
VALUE(schedule, ft_schedule_name(s->plan->schedule))
TRUTH(sequence_parallel, s->plan->sequence_parallel)
VALUE(recompute, ft_recompute_name(s->plan->recompute))
VALUE(gradient_dtype, ft_dtype_name(s->plan->gradient_dtype))
TRUTH(master_weights, s->plan->master_weights)
TRUTH(reshard, s->plan->reshard_after_forward)
TRUTH(overlap_tp, s->plan->overlap_tp)
TRUTH(overlap_dp, s->plan->overlap_dp)
TRUTH(overlap_pp, s->plan->overlap_pp)
VALUE(graphs, ft_graphs_name(s->plan->graphs))
VALUE(scaling, ft_scaling_name(s->plan->scaling))
VALUE(attention_precision, s->plan->attention_precision == FT_FP8 ? "fp8" : "bf16")
VALUE(expert_precision, ft_dtype_name(s->plan->expert_precision))
VALUE(optimizer, ft_optimizer_name(s->plan->optimizer))
NUMBER(recompute_layers, s->plan->recompute_layers)
NUMBER(offload_layers, s->plan->offload_layers)
NUMBER(zero_group, s->plan->zero_group)
VALUE(dispatcher, ft_dispatcher_name(s->plan->dispatcher))
VALUE(capacity, exact(mem, s->plan->capacity_factor, ""))
TRUTH(force_balance, s->plan->force_balance)
TRUTH(grouped_experts, s->plan->grouped_experts)
TRUTH(overlap_ep, s->plan->overlap_ep)
TRUTH(overlap_gather, s->plan->overlap_gather &&scenario_gathers_ahead(s))
TRUTH(copy_engines, s->plan->copy_engines)
VALUE(step_start, s->plan->step_start == FT_STEADY ? "steady" : "together")
VALUE(prices, s->prices->name)
VALUE(horizon, terms_ahead(s) ? exact(mem, s->terms.horizon_years, " y") : NULL)
VALUE(capital, terms_ahead(s) ? exact(mem, s->terms.cost_of_capital_frac, "") : NULL)

static const char *electricity(struct arena *mem, const struct ft_scenario *s)
{
	double usd = ft_cost_electricity_usd_per_kwh(&s->terms, s->prices);

	if (s->prices->n_rents || s->prices->colocation_includes_power)
		return NULL;
	return exact(mem, usd, " USD/kWh");
}

VALUE(offload_state, ft_offload_name(s->plan->offload_state))
VALUE(offload_threads, s->plan->offload_state == FT_OFFLOAD_NONE ?
			       NULL :
			       whole(mem, s->plan->offload_threads))

static const char *rent(struct arena *mem, const struct ft_scenario *s)
{
	double usd = s->terms.usd_per_gpu_hour;

	return usd > 0 ? exact(mem, usd, " USD/h") : NULL;
}

VALUE(moment_dtype, s->plan->optimizer == FT_ADAM ? ft_moment_name(s->plan) : NULL)
VALUE(master_dtype, s->plan->master_weights && s->plan->sharding != FT_FSDP &&
				    s->plan->sharding != FT_HSDP ?
			    ft_master_name(s->plan->master) :
			    NULL)
TRUTH(fused_experts, s->plan->fused_experts)
TRUTH(indexer_loss, s->plan->indexer_loss)
TRUTH(fp8_gates, s->plan->fp8_gates)
TRUTH(sync_each, !s->plan->sync_last)
VALUE(flushes, s->plan->pp > 1 ? whole(mem, s->plan->flushes) : NULL)
VALUE(optics, s->cluster->fabric->optics)
VALUE(site, s->cluster->parts->site)
VALUE(pue, exact(mem, ft_cost_pue(&s->terms, s->prices), ""))
VALUE(utilization, exact(mem, s->terms.utilization_frac, ""))
#define GIVEN(name, value, unit) \
	VALUE(name, (value) > 0 ? exact(mem, value, unit) : NULL)
GIVEN(burn_in, s->terms.burn_in_s, " s")
VALUE(start, *s->terms.start ? s->terms.start : NULL)
GIVEN(tax, s->terms.tax_frac, "")
GIVEN(duty, s->terms.duty_frac, "")
GIVEN(insurance, s->terms.insurance_frac, "")
GIVEN(staff, s->terms.staff_usd_per_year, " USD/y")
GIVEN(licences, s->terms.licences_usd_per_gpu_year, " USD/y")
GIVEN(prepaid, s->terms.prepaid_frac, "")
VALUE(take_or_pay, s->prices->n_rents && !s->terms.take_or_pay ? "false" : NULL)
GIVEN(against, s->terms.against_usd_per_gpu_hour, " USD/h")
GIVEN(asked_tokens, s->asked.tokens, "")
GIVEN(asked_days, s->asked.days, "")
GIVEN(asked_budget, s->asked.budget_usd, " USD")
GIVEN(asked_megawatts, s->asked.megawatts, "")
GIVEN(asked_flop, s->asked.flop, "")
BOUGHT(residual, s->terms.n_residuals ? NULL : exact(mem, s->terms.residual_frac, ""))
/* A map says more than a word could. */
static bool goodput_is_map(const struct ft_scenario *s)
{
	const struct node *n = node_path(s->given, "cost.goodput");

	return n && n->kind == NODE_MAP;
}

VALUE(goodput, goodput_is_map(s)    ? NULL :
	       s->terms.goodput > 0 ? exact(mem, s->terms.goodput, "") :
				      "auto")
/* Of that map; told where the goodput depends on it. */
#define LOST(name, applies, field) \
	VALUE(name, \
	      goodput_is_map(s) && (applies) ? \
		      exact(mem, \
			    s->terms.failures.field >= 0 ? s->terms.failures.field : \
							   s->prices->field.value, \
			    " s") : \
		      NULL)
LOST(repair,
     s->terms.failures.recovery == FT_RECOVERY_COLD || !s->terms.failures.spares,
     repair_s)
LOST(failover, s->terms.failures.recovery == FT_RECOVERY_FAULT_TOLERANT, failover_s)
LOST(flap, s->terms.failures.flaps_per_1000_node_days > 0, flap_s)

enum { BOTH = KEY_TOLD | KEY_COLUMN };

static const struct scenario_key keys[] = {
	{ "name", KEY_COLUMN, NULL, "names the answer when there is no title" },
	{ "title", KEY_COLUMN, NULL,
	  "what tables, plots and reports call the scenario" },
	{ "model", KEY_COLUMN, NULL,
	  "a preset, a path to a YAML file or config.json, or a map" },
	{ "cluster.gpu", KEY_COLUMN | KEY_FILE, gpu,
	  "a GPU profile, a path, or {extends: NAME, key: value}" },
	{ "cluster.gpus", KEY_COLUMN, gpus, "number of GPUs (cards)" },
	{ "cluster.node", BOTH | KEY_FILE, node,
	  "the server; default: the one its GPU names" },
	{ "cluster.fabric", BOTH | KEY_FILE, fabric,
	  "the network; default: the one the node names" },
	{ "cluster.optics", BOTH, optics,
	  "who makes the optical modules: generic, nvidia; default: as the fabric says" },
	{ "cluster.site", BOTH | KEY_FILE, site,
	  "what stands around the servers: front end, storage, racks, spares" },
	{ "cluster.ufm_ports", KEY_COLUMN, ufm_ports,
	  "leaf ports taken by fabric management" },
	{ "cluster.imperfections", 0, NULL, "faults of a real cluster: a map" },
	{ "cluster.imperfections.seed", 0, NULL, "seed of all random choices" },
	{ "cluster.imperfections.placement", 0, NULL,
	  "where the job's nodes are: packed, or scattered in random order" },
	{ "cluster.imperfections.failed_uplinks_frac", 0, NULL,
	  "share of links between leaves and spines that have failed" },
	{ "cluster.imperfections.failed_spines", 0, NULL,
	  "spine switches that have failed" },
	{ "cluster.imperfections.slow_nics_frac", 0, NULL, "share of slow NICs" },
	{ "cluster.imperfections.slow_nic_rate_frac", 0, NULL,
	  "share of their rate that slow NICs keep" },
	{ "cluster.imperfections.gpu_speed_spread_frac", 0, NULL,
	  "standard deviation of the GPUs' speed" },
	{ "cluster.imperfections.slow_gpus", 0, NULL,
	  "GPUs that are slower than the others: [{gpu: 3, speed_frac: 0.8}]" },
	{ "stack", BOTH | KEY_FILE, stack, "the software stack; default: generic" },
	{ "ccl", BOTH | KEY_FILE, ccl,
	  "the communication library; default: the one the stack names" },
	{ "training.sequence_length", KEY_COLUMN, sequence, "tokens per sequence" },
	{ "training.document_length", KEY_COLUMN, document,
	  "tokens of each document packed into a sequence; default: one document" },
	{ "training.global_batch_size", KEY_COLUMN, global_batch,
	  "sequences per step, over all replicas" },
	{ "training.micro_batch_size", BOTH, micro_batch,
	  "sequences per replica and micro-batch" },
	{ "training.precision", BOTH, precision, "number format of matrix products" },
	{ "training.parallel.tp", BOTH, tp, "tensor parallel size" },
	{ "training.parallel.pp", BOTH, pp, "pipeline stages" },
	{ "training.parallel.cp", BOTH, cp, "context parallel size" },
	{ "training.parallel.ep", BOTH, ep, "expert parallel size" },
	{ "training.parallel.etp", BOTH, etp, "tensor parallel size inside an expert" },
	{ "training.parallel.vpp", BOTH, vpp,
	  "model chunks per pipeline stage (interleaving)" },
	{ "training.parallel.stage_layers", KEY_COLUMN, NULL,
	  "layers of each chunk, as a list" },
	{ "training.sharding", BOTH, sharding,
	  "what replicas divide among themselves: none (one alone), ddp, zero1, zero2, fsdp, "
	  "hsdp" },
	{ "training.shard", KEY_COLUMN, shard, "ranks per shard group (hsdp)" },
	{ "training.schedule", BOTH, schedule, "pipeline schedule" },
	{ "training.pipeline_flushes", KEY_COLUMN, flushes,
	  "how often a step drains its pipeline" },
	{ "training.sequence_parallel", BOTH, sequence_parallel,
	  "activations split over tp between products" },
	{ "training.recompute", BOTH, recompute,
	  "activations computed again in backward: none, selective, full" },
	{ "training.recompute_modules", KEY_COLUMN, NULL,
	  "what selective recomputes: core_attn, mla_up_proj, mlp, moe_act, norm ..." },
	{ "training.recompute_layers", KEY_COLUMN, recompute_layers,
	  "number of layers that full recomputation applies to; default: all" },
	{ "training.offload_layers", KEY_COLUMN, offload_layers,
	  "layers whose activations wait in host memory" },
	{ "training.offload_state", KEY_COLUMN, offload_state,
	  "what waits in host memory and is updated there: none, optimizer, or all (fsdp: weights, too)" },
	{ "training.offload_threads", KEY_COLUMN, offload_threads,
	  "the processor's threads that a rank's update there may use; default: 1, as torchrun sets" },
	{ "training.cuda_graphs", BOTH, graphs,
	  "what CUDA or HIP graphs hold: none, router, partial, full" },
	{ "training.fp8_recipe", KEY_COLUMN, scaling,
	  "how 8- and 4-bit scales are found: delayed, tensorwise, blockwise, mxfp8, nvfp4" },
	{ "training.attention_precision", KEY_COLUMN, attention_precision,
	  "number format of attention in 8- and 4-bit steps: bf16, fp8" },
	{ "training.expert_precision", KEY_COLUMN, expert_precision,
	  "number format of routed experts' products: that of precision, or bf16" },
	{ "training.optimizer", KEY_COLUMN, optimizer,
	  "adam, adam8bit, adafactor, sgd, sgd-momentum or muon" },
	{ "training.zero_group", KEY_COLUMN, zero_group,
	  "ranks that share zero1's or zero2's state; default: dp x cp" },
	{ "training.moe_dispatcher", BOTH, dispatcher,
	  "how tokens travel to experts: alltoall, deepep, hybridep" },
	{ "training.moe_capacity_factor", KEY_COLUMN, capacity,
	  "experts' inputs are padded or cut to this times their even share; 0: no token is dropped" },
	{ "training.moe_force_balance", KEY_COLUMN, force_balance,
	  "routing is forced to be even" },
	{ "training.grouped_experts", KEY_COLUMN, grouped_experts,
	  "one product for all local experts, not one for each" },
	{ "training.fused_experts", KEY_COLUMN, fused_experts,
	  "products, activation and casts of experts in one kernel" },
	{ "training.indexer_loss", KEY_COLUMN, indexer_loss,
	  "indexers that choose the tokens a query sees are trained" },
	{ "training.fp8_activation_input", KEY_COLUMN, fp8_gates,
	  "gated activations keep their input in 8 bit" },
	{ "training.gradient_dtype", BOTH, gradient_dtype,
	  "number format in which gradients are reduced" },
	{ "training.master_weights", BOTH, master_weights,
	  "the optimizer keeps fp32 weights" },
	{ "training.moment_dtype", KEY_COLUMN, moment_dtype,
	  "number format of Adam's moments" },
	{ "training.master_dtype", KEY_COLUMN, master_dtype,
	  "master weights: fp32, fp16 or remainder" },
	{ "training.sync_each_micro_batch", KEY_COLUMN, sync_each,
	  "fsdp reduces gradients in each micro-batch, not only in the last" },
	{ "training.reshard_after_forward", BOTH, reshard,
	  "fsdp frees gathered weights after forward" },
	{ "training.overlap.tp", BOTH, overlap_tp,
	  "tensor parallel collectives run beside products" },
	{ "training.overlap.dp", BOTH, overlap_dp,
	  "gradient reductions run beside backward" },
	{ "training.overlap.pp", BOTH, overlap_pp,
	  "pipeline sends run beside compute" },
	{ "training.overlap.ep", BOTH, overlap_ep,
	  "expert exchanges run beside another micro-batch's compute" },
	{ "training.overlap.param_gather", KEY_COLUMN, overlap_gather,
	  "weights are gathered beside the next forward; default: as overlap.dp" },
	{ "training.overlap.copy_engines", BOTH, copy_engines,
	  "copies between GPUs take no compute units" },
	{ "training.lora.rank", KEY_COLUMN, lora_rank,
	  "adapters of this rank beside frozen weights (LoRA)" },
	{ "training.lora.targets", KEY_COLUMN, NULL,
	  "what has adapters: attention (default), mlp, all, or a list of modules" },
	{ "training.lora.dropout", KEY_COLUMN, NULL, "a mask on the adapters' inputs" },
	{ "training.lora.fp32_adapters", KEY_COLUMN, NULL,
	  "adapters in fp32 under autocast, as PEFT keeps them unless told otherwise" },
	{ "training.lora.frozen_precision", KEY_COLUMN, lora_frozen,
	  "number format in which the frozen weights are kept" },
	{ "training.step_start", BOTH, step_start,
	  "steady: back-to-back steps; together: all ranks start with empty queues" },
	{ "cost.prices", BOTH | KEY_FILE, prices, "the price book" },
	{ "cost.price_of", KEY_COLUMN, NULL,
	  "prices of items that you know better than the book: {ITEM: 31000 USD}" },
	{ "cost.usd_per_gpu_hour", KEY_COLUMN, rent,
	  "rent of a GPU for an hour, all inclusive: the cluster is not bought" },
	{ "cost.horizon", BOTH, horizon, "time over which capital is written off" },
	{ "cost.cost_of_capital_frac", BOTH, capital, "interest per year" },
	{ "cost.residual_frac", BOTH, residual,
	  "value left at the end, as a share of capital" },
	{ "cost.electricity", BOTH, electricity,
	  "price of electricity; default: the price book's" },
	{ "cost.pue", BOTH, pue,
	  "power usage effectiveness of the building; default: the price book's" },
	{ "cost.utilization_frac", BOTH, utilization,
	  "share of the paid hours in which the cluster trains" },
	{ "cost.goodput.repair", KEY_TOLD, repair, "time to repair a node" },
	{ "cost.goodput.failover", KEY_TOLD, failover,
	  "time a fault-tolerant job takes to go on" },
	{ "cost.goodput.flap", KEY_TOLD, flap,
	  "time the job waits for a link that flaps" },
	{ "cost.goodput.recovery", 0, NULL,
	  "what happens at a failure: hot (a spare takes over), cold (the job waits), "
	  "fault_tolerant (the others go on)" },
	{ "cost.goodput.failures_per_1000_node_days", 0, NULL,
	  "failures that stop the job; instead of those of all parts" },
	{ "cost.goodput.checkpoint", 0, NULL,
	  "time for which a checkpoint stops the job" },
	{ "cost.goodput.restart", 0, NULL,
	  "time from a failure until the job trains again" },
	{ "cost.goodput.storage_bandwidth", 0, NULL,
	  "bandwidth at which a checkpoint stores weights and optimizer state" },
	{ "cost.goodput.interval", 0, NULL, "time between checkpoints" },
	{ "cost.goodput.spares", 0, NULL,
	  "spare nodes are there beside the GPUs that train" },
	{ "cost.goodput.flaps_per_1000_node_days", 0, NULL,
	  "links that go down and come back" },
	{ "cost.goodput.straggler_frac", 0, NULL,
	  "share by which slow parts slow down the job" },
	{ "cost.goodput", BOTH, goodput,
	  "share of the training time that moves training forward; auto: from failures; or a "
	  "map of how it fails and recovers" },
	{ "cost.residual_by_year", KEY_COLUMN, NULL,
	  "value left after each year, as shares of capital; instead of residual_frac" },
	{ "cost.tranches", KEY_COLUMN, NULL,
	  "parts of the cluster that arrive later: [{month: 0, share: 40 %}, ...]" },
	{ "cost.burn_in", KEY_COLUMN, burn_in,
	  "time after arrival in which nothing is trained; default: none" },
	{ "cost.start", KEY_COLUMN, start,
	  "month of the first payment; default: that of the price book's date" },
	{ "cost.tax_frac", KEY_COLUMN, tax, "sales tax on what is bought" },
	{ "cost.duty_frac", KEY_COLUMN, duty, "import duty on what is bought" },
	{ "cost.insurance_frac", KEY_COLUMN, insurance,
	  "insurance per year, as a share of capital" },
	{ "cost.staff", KEY_COLUMN, staff,
	  "cost per year of the people who run the cluster" },
	{ "cost.licences_per_gpu", KEY_COLUMN, licences,
	  "software and its support, per year and GPU, owned or rented" },
	{ "cost.prepaid_frac", KEY_COLUMN, prepaid,
	  "share of the rent of the horizon that is paid at the start" },
	{ "cost.take_or_pay", KEY_COLUMN, take_or_pay,
	  "rent is owed for hours that are not used, too; default: true" },
	{ "cost.against", KEY_COLUMN, against,
	  "a rent with which owning is compared: break-even, internal rate of return" },
	{ "run.tokens", KEY_COLUMN, asked_tokens, "tokens to be trained" },
	{ "run.days", KEY_COLUMN, asked_days, "days it may take" },
	{ "run.budget", KEY_COLUMN, asked_budget, "dollars it may cost" },
	{ "run.megawatts", KEY_COLUMN, asked_megawatts,
	  "power that the fleet may draw at full load, PUE included" },
	{ "run.flop", KEY_COLUMN, asked_flop,
	  "model FLOPs to be spent; instead of tokens" },
};

const char *ft_scenario_key(size_t i, const char **about)
{
	if (i >= sizeof(keys) / sizeof(*keys))
		return NULL;
	*about = keys[i].about;
	return keys[i].path;
}

/* Defaults that no answer states, in words; and keys that have none. */
static const struct {
	const char *path, *usual;
} usual[] = {
	{ "model", "none: it must be given" },
	{ "cluster.gpu", "none: it must be given" },
	{ "cluster.gpus", "none: it must be given" },
	{ "cluster.imperfections.seed", "1" },
	{ "cluster.imperfections.placement", "packed" },
	{ "cluster.imperfections.failed_uplinks_frac", "0" },
	{ "cluster.imperfections.failed_spines", "0" },
	{ "cluster.imperfections.slow_nics_frac", "0" },
	{ "cluster.imperfections.slow_nic_rate_frac", "0.5" },
	{ "cluster.imperfections.gpu_speed_spread_frac", "the node's" },
	{ "training.sequence_length", "none: it must be given" },
	{ "training.global_batch_size", "none: it must be given" },
	{ "training.pipeline_flushes", "1" },
	{ "training.recompute_layers", "all, under full recomputation" },
	{ "training.lora.targets", "attention" },
	{ "training.lora.dropout", "false" },
	{ "training.lora.fp32_adapters", "false" },
	{ "cost.goodput.recovery", "hot" },
	{ "cost.goodput.failures_per_1000_node_days", "from the parts' rates" },
	{ "cost.goodput.checkpoint", "the price book's" },
	{ "cost.goodput.restart", "the price book's" },
	{ "cost.goodput.repair", "the price book's" },
	{ "cost.goodput.failover", "the price book's" },
	{ "cost.goodput.flap", "the price book's" },
	{ "cost.goodput.interval", "the best" },
	{ "cost.goodput.spares", "true" },
	{ "cost.goodput.flaps_per_1000_node_days", "0" },
	{ "cost.goodput.straggler_frac", "0" },
	{ "cost.take_or_pay", "true" },
};

const char *ft_scenario_key_usual(const char *path)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (!strcmp(usual[i].path, path))
			return usual[i].usual;
	return NULL;
}

size_t scenario_keys(const struct scenario_key **key)
{
	*key = keys;
	return sizeof(keys) / sizeof(*keys);
}

/* A preset's name stays a name; what a file of the user's says is written out, as the
 * file may be elsewhere when the answer is read again. */
static const struct node *model_of(const struct ft_scenario *s)
{
	return s->model->preset ? node_get(s->given, "model") : s->model->config;
}

struct node *scenario_resolve(struct arena *mem, const struct ft_scenario *s)
{
	static const struct ft_mark here = { "the scenario, resolved", 0, 0 };
	struct node *root = node_overlay(mem, node_map(mem, &here), s->given);
	struct ft_error ignored;

	node_put(mem, root, "model", &here, node_overlay(mem, NULL, model_of(s)));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct scenario_key *k = &keys[i];
		bool given = !node_is_null(node_path(s->given, k->path));
		const char *text, *idle;

		if (!k->value || (given && k->flags & KEY_FILE))
			continue;
		idle = scenario_idle_value(s, k->path);
		text = idle ? idle : k->value(mem, s);
		/* a scalar in the way is what was given: it stays */
		if (text && !node_put_path(mem, root, k->path, &here, text, &ignored))
			continue;
	}
	return root;
}
