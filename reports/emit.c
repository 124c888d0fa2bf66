/*
 * reports/emit.c - a plan as the arguments of the framework that is to run it
 *
 * Names are those of the frameworks' own sources and documentation, read on 2026-11-22:
 * Megatron-LM's megatron/training/arguments.py and the parallelism guide of Megatron Core
 * 0.18 (docs.nvidia.com/megatron-core), which has the layout of a pipeline, too;
 * torchtitan/config/job_config.py (pytorch/torchtitan, commit 000204a4); NeMo and Megatron
 * Bridge take the fields of Megatron Core's ModelParallelConfig and TransformerConfig; Primus
 * takes Megatron-LM's arguments, with underscores, as overrides of its module pre_trainer.
 * Those of experts, optimizers and host memory were read on 2026-11-23. What pipelines
 * take: megatron/core/pipeline_parallel/schedules.py, read on 2026-11-30; what modules and dispatchers
 * take: megatron/core/transformer/transformer_config.py and moe/token_dispatcher.py, on 2026-11-30; keys of Primus that are
 * not the arguments' names (fp8, overlap_p2p_comm), and its own defaults: its configs/modules/megatron/trainer_base.yaml and
 * configs/models/megatron/language_model.yaml, on 2026-11-30.
 * What has no name there is said in a comment, and nothing is made up for it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "base/whole.h"
#include "reports/emit.h"

static const char *const names[FT_FRAMEWORKS] = { "megatron", "torchtitan", "nemo",
						  "primus" };

const char *ft_framework_name(enum ft_framework framework)
{
	return names[framework];
}

bool emit_even_stages(const struct ft_plan *p)
{
	for (int64_t c = 1; c < p->pp * p->vpp; c++)
		if (p->stage_layers[c] != p->stage_layers[0])
			return false;
	return true;
}

/* The first and the last chunk one less each: embedding and head count as layers. */
static bool ends_count(const struct ft_plan *p)
{
	int64_t last = p->pp * p->vpp - 1;

	for (int64_t c = 1; c < last; c++)
		if (p->stage_layers[c] != p->stage_layers[0] + 1)
			return false;
	return last > 0 && p->stage_layers[last] == p->stage_layers[0];
}

bool emit_routed(const struct sheet *t)
{
	for (int64_t i = 0; i < t->s->model->n_layers; i++)
		if (t->s->model->layer[i].experts)
			return true;
	return false;
}

/* ---- Megatron Core and those who use it ------------------------------------------------ */

/* A chunk's letters, and how many chunks from it on are like it, the last apart. */
static int64_t layout_run(const struct ft_plan *p, int64_t chunk)
{
	int64_t n = 1;

	while (chunk + n < p->pp * p->vpp - 1 &&
	       p->stage_layers[chunk + n] == p->stage_layers[chunk])
		n++;
	return n;
}

/* The chunks in the order of the model, as in "Et|(tt|)*30tmL": t is a layer, m what predicts
 * a further token, E the embedding, L the head. */
static void megatron_layout(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t last = p->pp * p->vpp - 1;
	char *text = NULL;
	size_t len;
	FILE *out = allocated(open_memstream(&text, &len));

	putc('E', out);
	for (int64_t c = 0, n; c < last; c += n) {
		n = layout_run(p, c);
		fputs(n > 1 ? "(" : "", out);
		for (int64_t i = 0; i < p->stage_layers[c]; i++)
			putc('t', out);
		putc('|', out);
		if (n > 1)
			fprintf(out, ")*%" PRId64, n);
	}
	for (int64_t i = 0; i < p->stage_layers[last]; i++)
		putc('t', out);
	for (int64_t i = 0; i < t->s->model->predicted; i++)
		putc('m', out);
	putc('L', out);
	memory_close(out, &text);
	emit(t, "pipeline_model_parallel_layout", "\"%s\"", text);
	free(text);
}

/* Megatron Core interleaves groups of n micro-batches, pp of them unless told, and refuses n beyond pp to m and a last group of
 * fewer than pp; a plan's last group may be narrower (models/interleave.h). The least n that it takes; 0: none. */
static int64_t group_size(int64_t pp, int64_t m)
{
	for (int64_t n = pp; n <= m; n++)
		if (m % n == 0 || m % n >= pp)
			return n;
	return 0;
}

static void megatron_groups(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t m = p->micro_batches, n = group_size(p->pp, m);

	if (p->pp == 1 || p->vpp == 1 || n == p->pp)
		return;
	if (!n) {
		emit_unknown(t,
			     "%" PRId64 " micro-batches; Megatron Core interleaves no "
			     "fewer than the stages, %" PRId64,
			     m, p->pp);
		return;
	}
	emit_int(t,
		 t->of == FT_MEGATRON ?
			 "microbatch_group_size_per_virtual_pipeline_stage" :
			 "microbatch_group_size_per_vp_stage",
		 n);
	emit_unknown(t,
		     "micro-batches in groups of %" PRId64 " and a rest of %" PRId64
		     ", which Megatron Core refuses; groups of %" PRId64
		     " keep more activations",
		     p->pp, m % p->pp, n);
}

static void megatron_split(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool even = emit_even_stages(p) || ends_count(p);

	emit_int(t, "tensor_model_parallel_size", p->tp);
	emit_int(t, "pipeline_model_parallel_size", p->pp);
	if (p->vpp > 1 && even) /* a layout says it */
		emit_int(t,
			 t->of == FT_NEMO ? "virtual_pipeline_model_parallel_size" :
					    "num_virtual_stages_per_pipeline_rank",
			 p->vpp);
	megatron_groups(t);
	if (!even) {
		megatron_layout(t);
	} else if (!emit_even_stages(p)) {
		emit(t, "account_for_embedding_in_pipeline_split", "%s", "");
		emit(t, "account_for_loss_in_pipeline_split", "%s", "");
	}
	emit_int(t, "context_parallel_size", p->cp);
	emit_megatron_context(t);
	if (emit_routed(t)) { /* left out, etp would be tp */
		emit_int(t, "expert_model_parallel_size", p->ep);
		emit_int(t, "expert_tensor_parallel_size", p->etp);
	}
	emit_megatron_sequence(t);
	if (p->pp > 1 && p->schedule != FT_1F1B && p->schedule != FT_INTERLEAVED)
		emit_unknown(t, "schedule: %s; Megatron Core runs 1F1B",
			     ft_schedule_name(p->schedule));
	if (p->pp > 1 && p->flushes > 1)
		emit_unknown(t,
			     "pipeline_flushes: %" PRId64
			     "; Megatron Core drains a pipeline once a step",
			     p->flushes);
}

/* Megatron's Muon deals whole matrices to the ranks by an optimizer of its own, which overlaps nothing. */
static bool megatron_muon(const struct sheet *t)
{
	return t->p->optimizer == FT_MUON && t->of != FT_NEMO &&
	       t->p->sharding <= FT_ZERO1;
}

static void megatron_replicas(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool gather = p->overlap_gather && ft_plan_divides(p);

	if (p->overlap_dp && megatron_muon(t))
		emit_unknown(t, "overlap.dp: true");
	else if (p->overlap_dp)
		emit(t, "overlap_grad_reduce", "%s", "");
	if (gather && megatron_muon(t))
		emit_unknown(t, "overlap.param_gather: true");
	else if (gather && !p->overlap_dp)
		emit_unknown(t, "overlap.param_gather: true without overlap.dp, which "
				"Megatron refuses");
	else if (gather)
		emit(t, "overlap_param_gather", "%s", "");
}

/* Megatron Core sends beside kernels in interleaved pipelines alone, one message by one. */
static void megatron_messages(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool beside = p->overlap_pp && p->vpp > 1;

	if (p->pp == 1)
		return;
	if (p->overlap_pp && !beside)
		emit_unknown(t, "overlap.pp: true; Megatron Core has it in interleaved "
				"pipelines only");
	if (t->of == FT_NEMO)
		emit(t, "overlap_p2p_comm", "%s", beside ? "true" : "false");
	if (t->of == FT_NEMO)
		emit(t, "batch_p2p_comm", "%s", beside ? "false" : "true");
	if (t->of == FT_NEMO || p->overlap_pp)
		return;
	if (p->pp == 2 && p->vpp > 1)
		emit_unknown(t,
			     "overlap.pp: false; Megatron interleaves two stages with "
			     "it only");
	else if (t->of == FT_PRIMUS)
		emit(t, "overlap_p2p_comm", "false");
	else
		emit(t, "no_overlap_p2p_communication", "%s", "");
}

static void megatron_overlaps(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->overlap_tp && p->tp > 1 && !p->sequence_parallel)
		emit_unknown(t, "overlap.tp: true without sequence_parallel, which "
				"Megatron refuses");
	else if (p->overlap_tp && p->tp > 1)
		emit(t, "tp_comm_overlap", "%s", "");
	megatron_messages(t);
	if (ft_plan_pairs(p))
		emit(t, "overlap_moe_expert_parallel_comm", "%s", "");
	else if (p->overlap_ep && p->ep > 1)
		emit_unknown(t, "overlap.ep: true, which pairs no passes of this plan");
}

/* What Megatron FSDP asks for besides. */
static void megatron_fsdp(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	emit(t, "use_megatron_fsdp", "%s", "");
	if (t->of == FT_MEGATRON)
		emit(t, "no_gradient_accumulation_fusion", "%s", "");
	if (t->of == FT_PRIMUS)
		emit(t, "gradient_accumulation_fusion", "false");
	if (t->of != FT_NEMO)
		emit(t, "ckpt_format", "fsdp_dtensor");
	if (p->sync_last && p->micro_batches > 1)
		emit_unknown(t, "sync_each_micro_batch: false");
	emit(t, "data_parallel_sharding_strategy", "%s",
	     p->sharding == FT_ZERO2 ? "optim_grads" : "optim_grads_params");
}

static void megatron_sharding(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t same = p->dp * p->cp;
	bool zero = p->sharding == FT_ZERO1, fsdp = !zero && ft_plan_divides(p);

	if ((zero || (fsdp && t->of != FT_NEMO)) && !megatron_muon(t))
		emit(t, "use_distributed_optimizer", "%s", "");
	if (fsdp)
		megatron_fsdp(t);
	if (ft_plan_divides(p) && p->shard < same)
		emit_int(t, "num_distributed_optimizer_instances", same / p->shard);
	if (same > 1)
		megatron_replicas(t);
}

/* The names that Megatron Core's list has. */
static void megatron_modules(struct sheet *t)
{
	unsigned set = t->p->recompute_modules;
	bool routed = emit_routed(t), list = t->of != FT_MEGATRON;
	char text[160] = "";
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

	for (int i = 0; i < 7; i++) {
		size_t n = strlen(text);
		bool has = known[i].module == FT_MODULE_ACTIVATION && !routed;

		if (set & known[i].module && !has)
			snprintf(text + n, sizeof(text) - n, "%s%s",
				 n    ? list ? ", " : " " :
				 list ? "[" :
					"",
				 known[i].name);
		if (set & known[i].module && has)
			emit_unknown(
				t, "recompute_modules: the activation of a dense MLP");
		set &= ~known[i].module;
	}
	if (*text)
		emit(t, "recompute_modules", "%s%s", text, list ? "]" : "");
	if (set)
		emit_unknown(t, "recompute_modules: names of another framework");
}

/* Of modules: what Megatron Core refuses. */
static void megatron_refused_modules(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool act = p->recompute_modules & FT_MODULE_ACTIVATION && emit_routed(t);

	if (act && !p->grouped_experts)
		emit_unknown(t, "recompute_modules: moe_act without grouped_experts, "
				"which Megatron refuses");
	if ((act || p->recompute_modules & FT_MODULE_NORM) && p->precision == FT_FP8 &&
	    p->scaling == FT_SCALING_DELAYED)
		emit_unknown(t, "recompute_modules: moe_act or layernorm with "
				"fp8_recipe: delayed, which Megatron refuses");
}

/* Megatron counts them by chunk of each stage. */
static void megatron_layers_again(struct sheet *t)
{
	int64_t n = t->p->recompute_layers, chunks = t->p->pp * t->p->vpp;

	if (n == t->s->model->n_layers) {
		emit(t, "recompute_method", "%s", "uniform");
		emit_int(t, "recompute_num_layers", 1);
		return;
	}
	if (n % chunks)
		emit_unknown(t, "recompute_layers: %" PRId64 " over %" PRId64 " chunks",
			     n, chunks);
	emit(t, "recompute_method", "%s", "block");
	emit_int(t, "recompute_num_layers", ceil_div(n, chunks));
}

static void megatron_recompute(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->recompute == FT_RECOMPUTE_NONE)
		return;
	emit(t, "recompute_granularity", "%s", ft_recompute_name(p->recompute));
	if (p->recompute == FT_RECOMPUTE_SELECTIVE) {
		megatron_modules(t);
		megatron_refused_modules(t);
	}
	if (p->recompute == FT_RECOMPUTE_FULL)
		megatron_layers_again(t);
}

/* A data set's packing, not an argument's. */
static void megatron_documents(struct sheet *t)
{
	if (t->p->document)
		emit_unknown(t, "document_length: %" PRId64, t->p->document);
}

/* The flexible dispatcher is for two ranks or more; DeepEP pads nothing. */
static void megatron_dispatcher(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	const char *backend =
		p->dispatcher == FT_DISPATCH_DEEPEP ? "deepep" : "hybridep";
	bool flex = p->dispatcher != FT_DISPATCH_ALLTOALL && p->ep * p->etp > 1;

	emit(t, "moe_token_dispatcher_type", "%s", flex ? "flex" : "alltoall");
	if (flex)
		emit(t, "moe_flex_dispatcher_backend", "%s", backend);
	else if (p->dispatcher != FT_DISPATCH_ALLTOALL)
		emit_unknown(t, "moe_dispatcher: %s of one rank", backend);
	if (p->capacity_factor > 0 && flex && p->dispatcher == FT_DISPATCH_DEEPEP) {
		emit_unknown(t,
			     "moe_capacity_factor: %g with deepep, which Megatron "
			     "refuses to pad",
			     p->capacity_factor);
	} else if (p->capacity_factor > 0) {
		emit(t, "moe_expert_capacity_factor", "%g", p->capacity_factor);
		emit(t, "moe_pad_expert_input_to_capacity", "%s", "");
	}
}

static void megatron_experts(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (!emit_routed(t))
		return;
	megatron_dispatcher(t);
	if (p->grouped_experts)
		emit(t, "moe_grouped_gemm", "%s", "");
	if (p->force_balance)
		emit(t, "moe_router_force_load_balancing", "%s", "");
	if (p->fused_experts)
		emit_unknown(t, "fused_experts: true");
}

/* What the scenario has and no argument says. */
static void megatron_rest(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	emit_megatron_narrow(t);
	if (p->expert_precision != p->precision)
		emit_unknown(t, "expert_precision: %s",
			     ft_dtype_name(p->expert_precision));
	if (p->graphs != FT_GRAPHS_NONE)
		emit_unknown(t, "cuda_graphs: %s", ft_graphs_name(p->graphs));
	if (megatron_muon(t))
		emit(t, "optimizer", !ft_plan_divides(p) ? "muon" : "dist_muon");
	else if (p->optimizer != FT_ADAM)
		emit_unknown(t, "optimizer: %s", ft_optimizer_name(p->optimizer));
	if (!p->master_weights)
		emit_unknown(t, "master_weights: false");
	emit_megatron_state(t);
	if ((p->sharding == FT_FSDP || p->sharding == FT_HSDP) &&
	    !p->reshard_after_forward)
		emit_unknown(t, "reshard_after_forward: false");
	if (p->copy_engines)
		emit_unknown(t, "overlap.copy_engines: true");
	if (p->lora.rank)
		emit_unknown(t, "lora: rank %" PRId64, p->lora.rank);
}

static void megatron(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (t->of == FT_NEMO)
		fputs("# fields of the model's and of the training's configuration\n"
		      "model:\n",
		      t->out);
	if (t->of == FT_PRIMUS)
		fputs("modules:\n  pre_trainer:\n    framework: megatron\n"
		      "    overrides:\n",
		      t->out);
	megatron_split(t);
	if (t->of != FT_NEMO)
		megatron_sharding(t);
	megatron_overlaps(t);
	megatron_recompute(t);
	megatron_documents(t);
	emit_megatron_offload(t);
	megatron_experts(t);
	megatron_rest(t);
	if (t->of == FT_NEMO) {
		emit_int(t, "seq_length", p->sequence);
		fputs("ddp:\n", t->out);
		megatron_sharding(t);
		emit(t, "grad_reduce_in_fp32", "%s",
		     p->gradient_dtype == FT_FP32 ? "true" : "false");
		emit_megatron_gradients(t);
		fputs("train:\n", t->out);
	}
	emit_int(t, "micro_batch_size", p->micro_batch);
	emit_int(t, "global_batch_size", p->global_batch);
	if (t->of != FT_NEMO) {
		emit_int(t, "seq_length", p->sequence);
		emit_megatron_precision(t);
	} else {
		emit_unknown(t, "precision %s%s%s: choose the recipe's mixed_precision",
			     ft_dtype_name(p->precision),
			     ft_dtype_bytes(p->precision) < 2 ? ", scaling " : "",
			     ft_dtype_bytes(p->precision) < 2 ?
				     ft_scaling_name(p->scaling) :
				     "");
	}
}

void ft_report_plan_arguments(FILE *out, const struct ft_scenario *s,
			      enum ft_framework framework)
{
	PLAIN_NUMBERS;
	struct sheet t = { out, framework, s, s->plan };

	if (framework == FT_TORCHTITAN)
		emit_titan(&t);
	else
		megatron(&t);
}
