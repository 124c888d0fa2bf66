/*
 * reports/emit_titan.c - a plan as sections of torchtitan's configuration
 *
 * Names: torchtitan/config/job_config.py (pytorch/torchtitan, commit 000204a4, read on
 * 2026-11-22; expert_parallel_comm_backend, moe_force_load_balance and dtype on 2026-11-23).
 * context_parallel_rotate_method, and what it refuses at its start, read on 2026-11-30: torchtitan/distributed/parallel_dims.py and
 * tensor_parallel.py and dual_pipe_v.py, torchtitan/models/llama3/infra/parallelize.py, and PyTorch's
 * torch/distributed/pipelining/schedules.py.
 */
#include <inttypes.h>
#include <stdio.h>

#include "reports/emit.h"

/* PyTorch's schedules of one chunk a stage want a micro-batch for each stage, those that go round (not ZBV and DualPipeV, which
 * fold) equal rounds of at least pp. */
static void titan_micro_batches(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t m = ft_plan_run(p), rounds = m / p->pp;

	if (p->vpp == 1 && m < p->pp)
		emit_unknown(t,
			     "%" PRId64
			     " micro-batches, fewer than the stages, %" PRId64
			     ", which PyTorch's schedules of one chunk a stage refuse",
			     m, p->pp);
	if (p->vpp > 1 && !ft_schedule_folds(p->schedule) && rounds && m % rounds)
		emit_unknown(t,
			     "%" PRId64 " micro-batches, which are not %" PRId64
			     " equal rounds, as PyTorch's schedules want",
			     m, rounds);
}

static void titan_pipeline(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	emit_int(t, "pipeline_parallel_degree", p->pp);
	if (p->pp == 1)
		return;
	if (p->schedule == FT_ZERO_BUBBLE && p->vpp == 1)
		emit_unknown(
			t, "schedule: zero-bubble with one chunk a stage; torchtitan's "
			   "InterleavedZeroBubble takes two or more");
	emit(t, "pipeline_parallel_schedule", "\"%s\"",
	     p->schedule == FT_GPIPE	   ? "GPipe" :
	     p->schedule == FT_ZERO_BUBBLE ? "InterleavedZeroBubble" :
	     p->schedule == FT_ZBV	   ? "ZBVZeroBubble" :
	     p->schedule == FT_DUALPIPEV   ? "DualPipeV" :
	     p->schedule == FT_INTERLEAVED ? "Interleaved1F1B" :
					     "1F1B");
	emit_int(t, "pipeline_parallel_microbatch_size", p->micro_batch);
	titan_micro_batches(t);
	if (!emit_even_stages(p)) {
		emit_unknown(t, "layers are not even over the pipeline's stages");
		return;
	}
	/* it counts the ends as a layer each, unless told otherwise */
	emit_int(t, "pipeline_parallel_layers_per_stage", p->stage_layers[0]);
	emit_int(t, "pipeline_parallel_first_stage_less_layers", 0);
	emit_int(t, "pipeline_parallel_last_stage_less_layers", 0);
}

static void titan_shards_otherwise(struct sheet *t, bool fsdp)
{
	const struct ft_plan *p = t->p;

	if (fsdp && p->shard % p->cp)
		emit_unknown(t,
			     "a shard group of %" PRId64 " ranks, which cp %" PRId64
			     " does not divide",
			     p->shard, p->cp);
	if (p->sharding == FT_DDP && p->cp > 1)
		emit_unknown(t,
			     "sharding: %s with cp %" PRId64
			     "; torchtitan shards weights over cp",
			     ft_sharding_name(p->sharding), p->cp);
	else if (p->sharding == FT_DDP && p->dp > 1 && p->dp < p->ranks)
		emit_unknown(t, "sharding: ddp beside other parallelism, which "
				"torchtitan refuses");
	if (fsdp && p->sync_last && p->micro_batches > 1)
		emit_unknown(t, "sync_each_micro_batch: false");
	if (p->sharding == FT_ZERO1 || p->sharding == FT_ZERO2)
		emit_unknown(t, "sharding: %s", ft_sharding_name(p->sharding));
}

/* PyTorch sends keys and values from rank to rank by all-to-all, or gathers them behind the first block. */
static void titan_context(struct sheet *t)
{
	static const char *const name[] = {
		[FT_CP_RING] = "alltoall",
		[FT_CP_GATHERED_RING] = "allgather",
		[FT_CP_ALL_GATHER] = NULL,
		[FT_CP_ALL_TO_ALL] = NULL,
	};
	enum ft_context_parallel how = emit_context(t);

	emit_int(t, "context_parallel_degree", t->p->cp);
	if (t->p->cp == 1)
		return;
	if (name[how])
		emit(t, "context_parallel_rotate_method", "\"%s\"", name[how]);
	else
		emit_unknown(t, "context_parallel: %s",
			     how == FT_CP_ALL_GATHER ? "all_gather" : "all_to_all");
}

/* Over how many ranks of dp weights are divided; 0: torchtitan has no such mesh. */
static int64_t titan_shard(const struct ft_plan *p)
{
	if (p->sharding != FT_FSDP && p->sharding != FT_HSDP)
		return 1;
	return p->shard % p->cp ? 0 : p->shard / p->cp;
}

static void titan_sharding(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool fsdp = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	int64_t shard = titan_shard(p);

	titan_shards_otherwise(t, fsdp);
	if (shard) {
		emit_int(t, "data_parallel_replicate_degree", p->dp / shard);
		emit_int(t, "data_parallel_shard_degree", shard);
	}
	if (fsdp)
		emit(t, "fsdp_reshard_after_forward", "\"%s\"",
		     p->reshard_after_forward ? "always" : "never");
}

/* Experts are dealt to all ranks of tp and cp and to some of those that divide the weights. */
static void titan_dealt(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t inner = p->tp * p->cp, shard = titan_shard(p);

	if (p->etp > 1)
		emit_unknown(t, "etp %" PRId64, p->etp);
	if (p->ep == 1)
		return;
	if (!shard)
		emit_unknown(t, "ep %" PRId64, p->ep);
	else if (p->ep % inner || shard * inner % p->ep)
		emit_unknown(t,
			     "ep %" PRId64
			     "; torchtitan takes a multiple of cp x tp, %" PRId64
			     ", that divides dp_shard x cp x tp, %" PRId64,
			     p->ep, inner, shard * inner);
	else
		emit_int(t, "expert_parallel_degree", p->ep);
}

static void titan_experts(struct sheet *t)
{
	static const char *const backend[] = {
		[FT_DISPATCH_ALLTOALL] = "standard",
		[FT_DISPATCH_DEEPEP] = "deepep",
		[FT_DISPATCH_HYBRIDEP] = "hybridep",
	};
	const struct ft_plan *p = t->p;

	if (!emit_routed(t))
		return;
	emit(t, "expert_parallel_comm_backend", "\"%s\"", backend[p->dispatcher]);
	if (p->capacity_factor > 0)
		emit_unknown(t, "moe_capacity_factor: %g", p->capacity_factor);
	if (!p->grouped_experts)
		emit_unknown(t, "grouped_experts: false");
	if (p->fused_experts)
		emit_unknown(t, "fused_experts: true");
	if (p->overlap_ep)
		emit_unknown(t, "overlap.ep: true");
}

/* Weights and state wait on the host together, or not at all: enable_cpu_offload. */
static void titan_offload(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->offload_layers)
		emit_unknown(t, "offload_layers: %" PRId64, p->offload_layers);
	if (p->offload_state == FT_OFFLOAD_OPTIMIZER)
		emit_unknown(t, "offload_state: optimizer");
	if (p->offload_state == FT_OFFLOAD_ALL)
		emit_unknown(t,
			     "offload_threads: %" PRId64 ", which OMP_NUM_THREADS sets",
			     p->offload_threads);
}

/* What the scenario has and no key says. */
static void titan_rest(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	char optimizer[40];
	const struct {
		bool is;
		const char *what;
	} flags[] = {
		{ p->optimizer != FT_ADAM, optimizer },
		{ p->tp > 1 && !p->sequence_parallel, "sequence_parallel: false" },
		{ p->dp * p->cp > 1 && !p->overlap_dp, "overlap.dp: false" },
		{ p->pp > 1 && !p->overlap_pp, "overlap.pp: false" },
		{ p->copy_engines, "overlap.copy_engines: true" },
		{ p->fp8_gates, "fp8_activation_input: true" },
		{ !p->indexer_loss, "indexer_loss: false" },
	};

	snprintf(optimizer, sizeof(optimizer), "optimizer: %s",
		 ft_optimizer_name(p->optimizer));
	if (ft_dtype_bytes(p->precision) < 2)
		emit_unknown(t, "precision: %s, scaling %s",
			     ft_dtype_name(p->precision), ft_scaling_name(p->scaling));
	else if (p->precision != FT_BF16)
		emit_unknown(t, "precision: %s", ft_dtype_name(p->precision));
	if (ft_dtype_bytes(p->attention_precision) < 2)
		emit_unknown(t, "attention_precision: %s",
			     ft_dtype_name(p->attention_precision));
	if (p->expert_precision != p->precision)
		emit_unknown(t, "expert_precision: %s",
			     ft_dtype_name(p->expert_precision));
	if (p->gradient_dtype != FT_FP32)
		emit_unknown(t, "gradient_dtype: %s", ft_dtype_name(p->gradient_dtype));
	if (p->document)
		emit_unknown(t, "document_length: %" PRId64, p->document);
	titan_offload(t);
	if (p->graphs != FT_GRAPHS_NONE)
		emit_unknown(t, "cuda_graphs: %s", ft_graphs_name(p->graphs));
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (flags[i].is)
			emit_unknown(t, "%s", flags[i].what);
	if (p->lora.rank)
		emit_unknown(t, "lora: rank %" PRId64, p->lora.rank);
}

/* All layers, each k-th, or operations of all. */
static void titan_recompute(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t every =
		p->recompute == FT_RECOMPUTE_FULL ?
			ft_plan_stride(t->s->model->n_layers, p->recompute_layers) :
			0;

	fputs("\n[activation_checkpoint]\n", t->out);
	emit(t, "mode", "\"%s\"",
	     ft_recompute_name(every > 1 ? FT_RECOMPUTE_SELECTIVE : p->recompute));
	if (every > 1)
		emit(t, "selective_ac_option", "\"%" PRId64 "\"", every);
	if (p->recompute == FT_RECOMPUTE_SELECTIVE)
		emit(t, "selective_ac_option", "\"op\"");
	if (p->recompute == FT_RECOMPUTE_SELECTIVE &&
	    p->recompute_modules & ~(unsigned)FT_MODULE_OPS)
		emit_unknown(t, "recompute_modules");
	if (p->recompute != FT_RECOMPUTE_NONE && p->ep > 1 && p->pp > 1 &&
	    p->schedule == FT_DUALPIPEV)
		emit_unknown(t,
			     "recompute: %s with experts over ranks in DualPipeV, "
			     "which torchtitan refuses",
			     ft_recompute_name(p->recompute));
	if (p->recompute == FT_RECOMPUTE_FULL && !every)
		emit_unknown(t, "recompute_layers: %" PRId64, p->recompute_layers);
}

void emit_titan(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	fputs("[training]\n", t->out);
	emit_int(t, "local_batch_size",
		 p->pp > 1 ? p->micro_batch * ft_plan_run(p) : p->micro_batch);
	emit_int(t, "global_batch_size", p->global_batch);
	emit_int(t, "seq_len", p->sequence);
	if (p->moment_dtype != FT_DTYPES)
		emit_unknown(t, "moment_dtype: %s", ft_dtype_name(p->moment_dtype));
	if (p->master_weights && p->master != FT_MASTER_FP32)
		emit_unknown(t, "master_dtype: %s", ft_master_name(p->master));
	if (!p->master_weights)
		emit(t, "dtype", "\"bfloat16\"");
	if (p->offload_state == FT_OFFLOAD_ALL)
		emit(t, "enable_cpu_offload", "true");
	fputs("\n[parallelism]\n", t->out);
	emit_int(t, "tensor_parallel_degree", p->tp);
	if (p->overlap_tp && p->tp > 1)
		emit(t, "enable_async_tensor_parallel", "%s", "");
	titan_pipeline(t);
	titan_context(t);
	titan_dealt(t);
	titan_sharding(t);
	titan_experts(t);
	titan_recompute(t);
	if (p->overlap_tp && p->tp > 1) /* the compiler does it */
		fputs("\n[compile]\nenable = true\n", t->out);
	if (emit_routed(t) && p->force_balance)
		fputs("\n[debug]\nmoe_force_load_balance = true\n", t->out);
	titan_rest(t);
}
