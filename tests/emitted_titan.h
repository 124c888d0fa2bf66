/* tests/emitted_titan.h - the lines that torchtitan's configuration must have, by conditions on the plan */
#ifndef TESTS_EMITTED_TITAN_H
#define TESTS_EMITTED_TITAN_H

#include "tests/emitted_lines.h"

static void titan_pipeline(struct lines *l)
{
	static const char *const schedule[FT_SCHEDULES] = {
		[FT_1F1B] = "\"1F1B\"",
		[FT_INTERLEAVED] = "\"Interleaved1F1B\"",
		[FT_GPIPE] = "\"GPipe\"",
		[FT_ZERO_BUBBLE] = "\"InterleavedZeroBubble\"",
		[FT_ZBV] = "\"ZBVZeroBubble\"",
		[FT_DUALPIPEV] = "\"DualPipeV\"",
	};
	const struct ft_plan *p = l->p;
	bool even = all_chunks_are(p, p->stage_layers[0], p->stage_layers[0]);

	is_int(l, true, "local_batch_size",
	       p->pp > 1 ? p->global_batch / p->dp : p->micro_batch);
	is_int(l, true, "pipeline_parallel_degree", p->pp);
	is(l, p->pp > 1, "pipeline_parallel_schedule", schedule[p->schedule]);
	is_int(l, p->pp > 1, "pipeline_parallel_microbatch_size", p->micro_batch);
	is_int(l, p->pp > 1 && even, "pipeline_parallel_layers_per_stage",
	       p->stage_layers[0]);
	is_int(l, p->pp > 1 && even, "pipeline_parallel_first_stage_less_layers", 0);
	is_int(l, p->pp > 1 && even, "pipeline_parallel_last_stage_less_layers", 0);
	no_name(l, p->pp > 1 && p->schedule == FT_ZERO_BUBBLE && p->vpp == 1,
		"schedule: zero-bubble with one chunk a stage; torchtitan's "
		"InterleavedZeroBubble takes two or more");
	no_name(l, p->pp > 1 && !even,
		"layers are not even over the pipeline's stages");
	no_name(l, p->pp > 1 && p->vpp == 1 && ft_plan_run(p) < p->pp,
		arena_printf(l->mem,
			     "%lld micro-batches, fewer than the stages, %lld, which "
			     "PyTorch's schedules of one chunk a stage refuse",
			     (long long)ft_plan_run(p), (long long)p->pp));
	if (p->pp > 1 && p->vpp > 1 && p->schedule != FT_ZBV &&
	    p->schedule != FT_DUALPIPEV && ft_plan_run(p) >= p->pp)
		no_name(l, ft_plan_run(p) % (ft_plan_run(p) / p->pp),
			arena_printf(l->mem,
				     "%lld micro-batches, which are not %lld equal "
				     "rounds, as PyTorch's schedules want",
				     (long long)ft_plan_run(p),
				     (long long)(ft_plan_run(p) / p->pp)));
}

/* Experts over ranks of tp, cp and those that divide the weights; 0: these are none. */
static void titan_dealt(struct lines *l, int64_t ranks)
{
	int64_t ep = l->p->ep, inner = l->p->cp * l->p->tp;
	bool fits = ranks && ranks % ep == 0 && ep % inner == 0;

	is_int(l, ep > 1 && fits, "expert_parallel_degree", ep);
	no_name_of(l, ep > 1 && !ranks, "ep ", ep);
	no_name(l, ep > 1 && ranks && !fits,
		arena_printf(l->mem,
			     "ep %lld; torchtitan takes a multiple of cp x tp, %lld, "
			     "that divides dp_shard x cp x tp, %lld",
			     (long long)ep, (long long)inner, (long long)ranks));
	no_name_of(l, l->p->etp > 1, "etp ", l->p->etp);
}

static void titan_sharding(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool fsdp = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	bool odd = fsdp && p->shard % p->cp;
	int64_t shard = !fsdp ? 1 : odd ? p->shard : p->shard / p->cp;

	no_name(l, odd,
		arena_printf(l->mem,
			     "a shard group of %lld ranks, which cp %lld does not "
			     "divide",
			     (long long)p->shard, (long long)p->cp));
	no_name(l, p->sharding == FT_DDP && p->cp > 1,
		arena_printf(l->mem,
			     "sharding: ddp with cp %lld; torchtitan shards weights "
			     "over cp",
			     (long long)p->cp));
	no_name(l,
		p->sharding == FT_DDP && p->cp == 1 && p->dp > 1 && p->tp * p->pp > 1,
		"sharding: ddp beside other parallelism, which torchtitan refuses");
	no_name(l, fsdp && p->sync_last && p->micro_batches > 1,
		"sync_each_micro_batch: false");
	is_int(l, !odd, "data_parallel_replicate_degree", p->dp / shard);
	is_int(l, !odd, "data_parallel_shard_degree", shard);
	titan_dealt(l, odd ? 0 : shard * p->cp * p->tp);
	is(l, fsdp, "fsdp_reshard_after_forward",
	   p->reshard_after_forward ? "\"always\"" : "\"never\"");
	no_name(l, p->sharding == FT_ZERO1, "sharding: zero1");
	no_name(l, p->sharding == FT_ZERO2, "sharding: zero2");
}

static void titan_experts(struct lines *l)
{
	const struct ft_plan *p = l->p;

	if (!l->routed)
		return;
	is(l, true, "expert_parallel_comm_backend",
	   p->dispatcher == FT_DISPATCH_ALLTOALL ? "\"standard\"" :
	   p->dispatcher == FT_DISPATCH_DEEPEP	 ? "\"deepep\"" :
						   "\"hybridep\"");
	no_name(l, p->capacity_factor > 0,
		arena_printf(l->mem, "moe_capacity_factor: %g", p->capacity_factor));
	no_name(l, !p->grouped_experts, "grouped_experts: false");
	no_name(l, p->fused_experts, "fused_experts: true");
	no_name(l, p->overlap_ep, "overlap.ep: true");
	if (p->force_balance)
		line(l, "[debug]");
	is(l, p->force_balance, "moe_force_load_balance", "true");
}

static void titan_recompute(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool selective = p->recompute == FT_RECOMPUTE_SELECTIVE;

	int64_t n = l->s->model->n_layers, k = 0;

	/* each k-th layer, as many as asked */
	for (int64_t by = 1; p->recompute == FT_RECOMPUTE_FULL && by <= n; by++)
		k = !k && n / by == p->recompute_layers ? by : k;
	is(l, true, "mode",
	   selective || k > 1		     ? "\"selective\"" :
	   p->recompute == FT_RECOMPUTE_FULL ? "\"full\"" :
					       "\"none\"");
	is(l, k > 1, "selective_ac_option",
	   arena_printf(l->mem, "\"%lld\"", (long long)k));
	is(l, selective, "selective_ac_option", "\"op\"");
	no_name(l, selective && p->recompute_modules & ~(unsigned)FT_MODULE_OPS,
		"recompute_modules");
	no_name(l,
		(selective || p->recompute == FT_RECOMPUTE_FULL) && p->ep > 1 &&
			p->pp > 1 && p->schedule == FT_DUALPIPEV,
		arena_printf(l->mem,
			     "recompute: %s with experts over ranks in DualPipeV, "
			     "which torchtitan refuses",
			     selective ? "selective" : "full"));
	no_name_of(l, p->recompute == FT_RECOMPUTE_FULL && !k,
		   "recompute_layers: ", p->recompute_layers);
}

static void titan_context(struct lines *l)
{
	const struct ft_layout_rules *rules = &l->s->stack->layout;
	enum ft_context_parallel how = l->p->lora.rank ? rules->context_parallel_lora :
							 rules->context_parallel;
	bool some = l->p->cp > 1;

	is_int(l, true, "context_parallel_degree", l->p->cp);
	is(l, some && how == FT_CP_RING, "context_parallel_rotate_method",
	   "\"alltoall\"");
	is(l, some && how == FT_CP_GATHERED_RING, "context_parallel_rotate_method",
	   "\"allgather\"");
	no_name(l, some && how == FT_CP_ALL_TO_ALL, "context_parallel: all_to_all");
}

static void titan(struct lines *l)
{
	const struct ft_plan *p = l->p;
	bool wide = p->precision == FT_BF16 || p->precision == FT_FP16;

	line(l, "[training]"), line(l, "[parallelism]");
	line(l, "[activation_checkpoint]");
	titan_pipeline(l);
	titan_sharding(l);
	titan_experts(l);
	titan_recompute(l);
	is_int(l, true, "global_batch_size", p->global_batch);
	is_int(l, true, "seq_len", p->sequence);
	is(l, !p->master_weights, "dtype", "\"bfloat16\"");
	no_name(l, p->master == FT_MASTER_FP16 && p->master_weights,
		"master_dtype: fp16");
	is_int(l, true, "tensor_parallel_degree", p->tp);
	is(l, p->tp > 1 && p->overlap_tp, "enable_async_tensor_parallel", "");
	if (p->tp > 1 && p->overlap_tp)
		line(l, "[compile]");
	is(l, p->tp > 1 && p->overlap_tp, "enable", "");
	titan_context(l);
	no_name(l, !wide,
		arena_printf(l->mem, "precision: %s, scaling %s",
			     ft_dtype_name(p->precision), ft_scaling_name(p->scaling)));
	no_name(l, p->precision == FT_FP16, "precision: fp16");
	no_name(l, p->attention_precision == FT_FP8, "attention_precision: fp8");
	no_name(l, p->expert_precision != p->precision, "expert_precision: bf16");
	no_name(l, p->gradient_dtype == FT_BF16, "gradient_dtype: bf16");
	no_name(l, p->gradient_dtype == FT_FP16, "gradient_dtype: fp16");
	no_name_of(l, p->document > 0, "document_length: ", p->document);
	no_name_of(l, p->offload_layers > 0, "offload_layers: ", p->offload_layers);
	no_name(l, p->graphs != FT_GRAPHS_NONE,
		arena_printf(l->mem, "cuda_graphs: %s", ft_graphs_name(p->graphs)));
	no_name(l, p->optimizer == FT_MUON, "optimizer: muon");
	no_name(l, p->tp > 1 && !p->sequence_parallel, "sequence_parallel: false");
	no_name(l, p->dp * p->cp > 1 && !p->overlap_dp, "overlap.dp: false");
	no_name(l, p->pp > 1 && !p->overlap_pp, "overlap.pp: false");
	no_name(l, p->copy_engines, "overlap.copy_engines: true");
	no_name(l, p->fp8_gates, "fp8_activation_input: true");
	no_name(l, !p->indexer_loss, "indexer_loss: false");
	no_name_of(l, p->lora.rank > 0, "lora: rank ", p->lora.rank);
}

#endif
