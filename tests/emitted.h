/* tests/emitted.h - the lines that a framework's arguments must have, by conditions on the plan */
#ifndef TESTS_EMITTED_H
#define TESTS_EMITTED_H

#include "tests/emitted_titan.h"

/* Without repeats: "Ett|tt|tL". */
static const char *layout(struct lines *l)
{
	const char *text = "\"E";

	for (int64_t c = 0; c < l->p->pp * l->p->vpp; c++) {
		if (c)
			text = arena_printf(l->mem, "%s|", text);
		for (int64_t i = 0; i < l->p->stage_layers[c]; i++)
			text = arena_printf(l->mem, "%st", text);
	}
	for (int64_t i = 0; i < l->s->model->predicted; i++)
		text = arena_printf(l->mem, "%sm", text);
	return arena_printf(l->mem, "%sL\"", text);
}

/* Groups that Megatron Core interleaves, where those of pp would leave a rest. */
static void megatron_groups(struct lines *l)
{
	long long pp = l->p->pp, m = l->p->micro_batches, n = 0;

	if (pp == 1 || l->p->vpp == 1)
		return;
	for (long long size = m; size >= pp; size--)
		n = m % size && m % size < pp ? n : size;
	no_name(l, !n,
		arena_printf(l->mem,
			     "%lld micro-batches; Megatron Core interleaves no fewer "
			     "than the stages, %lld",
			     m, pp));
	is_int(l, n > pp,
	       l->of == FT_MEGATRON ?
		       "microbatch_group_size_per_virtual_pipeline_stage" :
		       "microbatch_group_size_per_vp_stage",
	       n);
	no_name(l, n > pp,
		arena_printf(
			l->mem,
			"micro-batches in groups of %lld and a rest of %lld, which "
			"Megatron Core refuses; groups of %lld keep more activations",
			pp, m % pp, n));
}

/* Messages run beside kernels in interleaved pipelines alone. */
static void megatron_messages(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool beside = p->overlap_pp && p->vpp > 1, nemo = l->of == FT_NEMO;
	bool apart =
		p->pp > 1 && !nemo && !p->overlap_pp && !(p->pp == 2 && p->vpp > 1);

	is(l, p->pp > 1 && nemo, "overlap_p2p_comm", beside ? "true" : "false");
	is(l, p->pp > 1 && nemo, "batch_p2p_comm", beside ? "false" : "true");
	no_name(l, p->pp > 1 && p->overlap_pp && p->vpp == 1,
		"overlap.pp: true; Megatron Core has it in interleaved pipelines only");
	is(l, apart && l->of == FT_MEGATRON, "no_overlap_p2p_communication", "");
	is(l, apart && l->of == FT_PRIMUS, "overlap_p2p_comm", "false");
	no_name(l, p->pp == 2 && p->vpp > 1 && !nemo && !p->overlap_pp,
		"overlap.pp: false; Megatron interleaves two stages with it only");
}

static void megatron_split(struct lines *l)
{
	const struct ft_plan *p = l->p;
	int64_t first = p->stage_layers[0];
	bool even = all_chunks_are(p, first, first);
	bool ends = !even && all_chunks_are(p, first, first + 1);
	const struct ft_layout_rules *rules = &l->s->stack->layout;
	enum ft_context_parallel how =
		p->lora.rank ? rules->context_parallel_lora : rules->context_parallel;

	is_int(l, true, "tensor_model_parallel_size", p->tp);
	is_int(l, true, "pipeline_model_parallel_size", p->pp);
	is_int(l, p->vpp > 1 && (even || ends),
	       l->of == FT_NEMO ? "virtual_pipeline_model_parallel_size" :
				  "num_virtual_stages_per_pipeline_rank",
	       p->vpp);
	megatron_groups(l);
	is(l, !even && !ends, "pipeline_model_parallel_layout", layout(l));
	is(l, ends, "account_for_embedding_in_pipeline_split", "");
	is(l, ends, "account_for_loss_in_pipeline_split", "");
	is_int(l, true, "context_parallel_size", p->cp);
	is(l, p->cp > 1 && how == FT_CP_ALL_TO_ALL, "cp_comm_type", "a2a");
	no_name(l, p->cp > 1 && how == FT_CP_GATHERED_RING,
		"context_parallel: gathered_ring");
	is_int(l, l->routed, "expert_model_parallel_size", p->ep);
	is_int(l, l->routed, "expert_tensor_parallel_size", p->etp);
	is(l, p->sequence_parallel, "sequence_parallel", "");
	is(l, l->of == FT_PRIMUS && p->tp > 1 && !p->sequence_parallel,
	   "sequence_parallel", "false"); /* true is its default */
	no_name(l, p->pp > 1 && p->schedule != FT_1F1B && p->schedule != FT_INTERLEAVED,
		arena_printf(l->mem, "schedule: %s; Megatron Core runs 1F1B",
			     ft_schedule_name(p->schedule)));
	is(l, p->tp > 1 && p->overlap_tp && p->sequence_parallel, "tp_comm_overlap",
	   "");
	no_name(l, p->tp > 1 && p->overlap_tp && !p->sequence_parallel,
		"overlap.tp: true without sequence_parallel, which Megatron refuses");
	megatron_messages(l);
	is(l, p->ep > 1 && p->overlap_ep && ft_plan_pairs(p),
	   "overlap_moe_expert_parallel_comm", "");
	no_name(l, p->ep > 1 && p->overlap_ep && !ft_plan_pairs(p),
		"overlap.ep: true, which pairs no passes of this plan");
}

static void megatron_sharding(struct lines *l)
{
	const struct ft_plan *p = l->p;
	int64_t same = p->dp * p->cp;
	bool fsdp = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	bool megatron_fsdp = fsdp || p->sharding == FT_ZERO2;
	bool gather = p->overlap_gather && p->sharding != FT_DDP;
	bool muon = p->optimizer == FT_MUON && l->of != FT_NEMO && !megatron_fsdp;

	is(l, (p->sharding == FT_ZERO1 || (megatron_fsdp && l->of != FT_NEMO)) && !muon,
	   "use_distributed_optimizer", "");
	is(l, megatron_fsdp, "use_megatron_fsdp", "");
	is(l, megatron_fsdp && l->of == FT_MEGATRON, "no_gradient_accumulation_fusion",
	   "");
	is(l, megatron_fsdp && l->of == FT_PRIMUS, "gradient_accumulation_fusion",
	   "false");
	is(l, megatron_fsdp && l->of != FT_NEMO, "ckpt_format", "fsdp_dtensor");
	no_name(l, megatron_fsdp && p->sync_last && p->micro_batches > 1,
		"sync_each_micro_batch: false");
	is(l, megatron_fsdp, "data_parallel_sharding_strategy",
	   fsdp ? "optim_grads_params" : "optim_grads");
	is_int(l, p->sharding != FT_DDP && same / p->shard > 1,
	       "num_distributed_optimizer_instances", same / p->shard);
	is(l, same > 1 && p->overlap_dp && !muon, "overlap_grad_reduce", "");
	no_name(l, same > 1 && p->overlap_dp && muon, "overlap.dp: true");
	is(l, same > 1 && gather && !muon && p->overlap_dp, "overlap_param_gather", "");
	no_name(l, same > 1 && gather && !muon && !p->overlap_dp,
		"overlap.param_gather: true without overlap.dp, which Megatron refuses");
	no_name(l, same > 1 && gather && muon, "overlap.param_gather: true");
}

static void megatron_modules(struct lines *l)
{
	static const struct {
		unsigned module;
		const char *name;
	} known[] = {
		{ FT_MODULE_CORE_ATTENTION, "core_attn" },
		{ FT_MODULE_ACTIVATION, "moe_act" },
		{ FT_MODULE_NORM, "layernorm" },
		{ FT_MODULE_MLA_UP, "mla_up_proj" },
		{ FT_MODULE_STREAMS, "mhc" },
		{ FT_MODULE_MLP, "mlp" },
		{ FT_MODULE_EXPERTS, "moe" },
	};
	const char *list = "";
	bool plain = l->of == FT_MEGATRON;

	for (int i = 0; i < 7; i++) {
		bool dense_activation =
			known[i].module == FT_MODULE_ACTIVATION && !l->routed;

		if (!(l->p->recompute_modules & known[i].module))
			continue;
		no_name(l, dense_activation,
			"recompute_modules: the activation of a dense MLP");
		if (!dense_activation)
			list = arena_printf(l->mem, "%s%s%s", list,
					    !*list ? "" :
					    plain  ? " " :
						     ", ",
					    known[i].name);
	}
	is(l, *list, "recompute_modules",
	   plain ? list : arena_printf(l->mem, "[%s]", list));
	no_name(l, l->p->recompute_modules & FT_MODULE_OPS,
		"recompute_modules: names of another framework");
	no_name(l, strstr(list, "moe_act") && !l->p->grouped_experts,
		"recompute_modules: moe_act without grouped_experts, which Megatron "
		"refuses");
	no_name(l,
		(strstr(list, "moe_act") || strstr(list, "layernorm")) &&
			strcmp(ft_dtype_name(l->p->precision), "fp8") == 0 &&
			strcmp(ft_scaling_name(l->p->scaling), "delayed") == 0,
		"recompute_modules: moe_act or layernorm with fp8_recipe: delayed, "
		"which Megatron refuses");
}

static void megatron_recompute(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool full = p->recompute == FT_RECOMPUTE_FULL;
	bool all = p->recompute_layers == l->s->model->n_layers;
	int64_t chunks = p->pp * p->vpp, each = p->recompute_layers / chunks;

	is(l, p->recompute != FT_RECOMPUTE_NONE, "recompute_granularity",
	   full ? "full" : "selective");
	is(l, full, "recompute_method", all ? "uniform" : "block");
	if (each * chunks < p->recompute_layers) {
		no_name(l, full && !all,
			arena_printf(l->mem, "recompute_layers: %lld over %lld chunks",
				     (long long)p->recompute_layers,
				     (long long)chunks));
		each++;
	}
	is_int(l, full, "recompute_num_layers", all ? 1 : each);
	if (p->recompute == FT_RECOMPUTE_SELECTIVE)
		megatron_modules(l);
}

static void megatron_experts(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool fast = p->dispatcher != FT_DISPATCH_ALLTOALL;
	bool flex = fast && (p->ep > 1 || p->etp > 1);
	bool deepep = p->dispatcher == FT_DISPATCH_DEEPEP,
	     padded = p->capacity_factor > 0;
	const char *factor = arena_printf(l->mem, "%g", p->capacity_factor);

	if (!l->routed)
		return;
	is(l, true, "moe_token_dispatcher_type", flex ? "flex" : "alltoall");
	is(l, flex, "moe_flex_dispatcher_backend", deepep ? "deepep" : "hybridep");
	no_name(l, fast && !flex,
		deepep ? "moe_dispatcher: deepep of one rank" :
			 "moe_dispatcher: hybridep of one rank");
	is(l, p->grouped_experts, "moe_grouped_gemm", "");
	is(l, padded && !(flex && deepep), "moe_expert_capacity_factor", factor);
	is(l, padded && !(flex && deepep), "moe_pad_expert_input_to_capacity", "");
	no_name(l, padded && flex && deepep,
		arena_printf(l->mem,
			     "moe_capacity_factor: %s with deepep, which Megatron "
			     "refuses to pad",
			     factor));
	is(l, p->force_balance, "moe_router_force_load_balancing", "");
	no_name(l, p->fused_experts, "fused_experts: true");
}

static void megatron_formats(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool fp8 = p->precision == FT_FP8 || p->precision == FT_MXFP8 ||
		   p->precision == FT_FP8_BLOCK128;
	bool fsdp = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	bool alone = fp8 && l->s->stack->layout.narrow_parameters && !fsdp;

	is(l, true, p->precision == FT_FP16 ? "fp16" : "bf16", "");
	is(l, l->of == FT_PRIMUS && p->precision == FT_FP16, "bf16", "false");
	no_name(l, p->precision == FT_FP16 && l->routed,
		"fp16 with experts, which Megatron groups and spreads in bf16 alone");
	is(l, fp8, l->of == FT_PRIMUS ? "fp8" : "fp8_format", "hybrid");
	is(l, fp8, "fp8_recipe", ft_scaling_name(p->scaling));
	no_name(l, alone && p->sharding == FT_DDP,
		"weights in 8 bit alone, without a distributed optimizer");
	is(l, alone && p->sharding != FT_DDP, "fp8_param_gather", "");
	is(l, alone && p->sharding != FT_DDP && p->precision == FT_MXFP8,
	   "reuse_grad_buf_for_mxfp8_param_ag", "");
	no_name(l, p->precision == FT_NVFP4, "precision: nvfp4");
	is(l, p->gradient_dtype == FT_FP32, "accumulate_allreduce_grads_in_fp32", "");
	is(l, p->gradient_dtype == FT_BF16 && p->precision != FT_FP16,
	   "grad_reduce_in_bf16", "");
}

/* Of the optimizer's state but its moments, which are not drawn. */
static void megatron_masters(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool half = p->master == FT_MASTER_FP16;
	bool named = l->of != FT_NEMO && p->master_weights && p->optimizer == FT_ADAM &&
		     p->sharding != FT_DDP;

	is(l, half && named, "use_precision_aware_optimizer", "");
	is(l, half && named, "exp_avg_dtype", "fp32");
	is(l, half && named, "exp_avg_sq_dtype", "fp32");
	is(l, half && named, "main_params_dtype", "fp16");
	no_name(l, half && !named, "moment_dtype: fp32, master_dtype: fp16");
}

static void megatron_rest(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool nemo = l->of == FT_NEMO, fsdp = p->sharding == FT_FSDP;
	bool narrow = p->attention_precision == FT_FP8, waits = p->offload_layers > 0;
	bool muon = p->optimizer == FT_MUON;
	bool moved = waits && nemo && p->pp == 1 && p->recompute == FT_RECOMPUTE_NONE &&
		     p->offload_layers < l->s->model->n_layers;

	is(l, !p->indexer_loss, "dsa_indexer_loss_coeff", "0.0");
	is(l, p->fp8_gates, "activation_func_fp8_input_store", "");
	no_name(l, p->gradient_dtype == (p->precision == FT_FP16 ? FT_BF16 : FT_FP16),
		p->precision == FT_FP16 ? "gradient_dtype: bf16" :
					  "gradient_dtype: fp16");
	is(l, narrow && nemo, "fp8_dot_product_attention", "true");
	no_name(l, narrow && !nemo, "attention_precision: fp8");
	no_name(l, p->expert_precision != p->precision, "expert_precision: bf16");
	is(l, moved, "cpu_offloading", "true");
	is_int(l, moved, "cpu_offloading_num_layers", p->offload_layers);
	is(l, moved, "cpu_offloading_activations", "true");
	is(l, moved, "cpu_offloading_weights", "false");
	no_name_of(l, p->document > 0, "document_length: ", p->document);
	no_name_of(l, waits && !moved, "offload_layers: ", p->offload_layers);
	no_name(l, p->graphs != FT_GRAPHS_NONE,
		arena_printf(l->mem, "cuda_graphs: %s", ft_graphs_name(p->graphs)));
	is(l, muon && !nemo && p->sharding == FT_DDP, "optimizer", "muon");
	is(l, muon && !nemo && p->sharding == FT_ZERO1, "optimizer", "dist_muon");
	no_name(l, muon && (nemo || (p->sharding != FT_DDP && p->sharding != FT_ZERO1)),
		"optimizer: muon");
	no_name(l, !p->master_weights, "master_weights: false");
	megatron_masters(l);
	no_name(l, (fsdp || p->sharding == FT_HSDP) && !p->reshard_after_forward,
		"reshard_after_forward: false");
	no_name(l, p->copy_engines, "overlap.copy_engines: true");
	no_name_of(l, p->lora.rank > 0, "lora: rank ", p->lora.rank);
	is_int(l, true, "seq_length", p->sequence);
	is_int(l, true, "micro_batch_size", p->micro_batch);
	is_int(l, true, "global_batch_size", p->global_batch);
}

static void nemo_alone(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool wide = p->precision == FT_BF16 || p->precision == FT_FP16;

	line(l, "# fields of the model's and of the training's configuration");
	line(l, "model:"), line(l, "ddp:"), line(l, "train:");
	is(l, true, "grad_reduce_in_fp32",
	   p->gradient_dtype == FT_FP32 ? "true" : "false");
	no_name(l, true,
		arena_printf(l->mem,
			     "precision %s%s%s: choose the recipe's mixed_precision",
			     ft_dtype_name(p->precision), wide ? "" : ", scaling ",
			     wide ? "" : ft_scaling_name(p->scaling)));
}

/* All of them, in no order. */
static void expect(struct lines *l)
{
	if (l->of == FT_TORCHTITAN) {
		titan(l);
		return;
	}
	megatron_split(l);
	megatron_sharding(l);
	megatron_recompute(l);
	megatron_experts(l);
	megatron_rest(l);
	if (l->of == FT_NEMO)
		nemo_alone(l);
	else
		megatron_formats(l);
	if (l->of == FT_PRIMUS) {
		line(l, "modules:"), line(l, "pre_trainer:");
		line(l, "framework: megatron"), line(l, "overrides:");
	}
}

#endif
