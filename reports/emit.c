/*
 * reports/emit.c - a plan as the arguments of the framework that is to run it
 *
 * Names are those of the frameworks' own sources and documentation, read on 2026-11-22:
 * Megatron-LM's megatron/training/arguments.py and the parallelism guide of Megatron Core
 * 0.18 (docs.nvidia.com/megatron-core), which has the layout of a pipeline, too;
 * torchtitan/config/job_config.py (pytorch/torchtitan, commit 000204a4); NeMo and Megatron
 * Bridge take the fields of Megatron Core's ModelParallelConfig and TransformerConfig; Primus
 * takes Megatron-LM's arguments, with underscores, as overrides of its module pre_trainer.
 * What has no name there is said in a comment, and nothing is made up for it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "foretoken/reports.h"

struct sheet {
	FILE *out;
	enum ft_framework of;
	const struct ft_scenario *s;
	const struct ft_plan *p;
};

static const char *const names[FT_FRAMEWORKS] = { "megatron", "torchtitan", "nemo",
						  "primus" };

const char *ft_framework_name(enum ft_framework framework)
{
	return names[framework];
}

/* A name as the framework writes it: --a-b VALUE, a_b: VALUE, a_b = VALUE. value "" is a
 * flag. */
__attribute__((format(printf, 3, 4))) static void put(struct sheet *t, const char *name,
						      const char *fmt, ...)
{
	char value[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(value, sizeof(value), fmt, args);
	va_end(args);
	switch (t->of) {
	case FT_MEGATRON:
		fputs("--", t->out);
		for (const char *c = name; *c; c++)
			putc(*c == '_' ? '-' : *c, t->out);
		fprintf(t->out, "%s%s\n", *value ? " " : "", value);
		break;
	case FT_TORCHTITAN:
		fprintf(t->out, "%s = %s\n", name, *value ? value : "true");
		break;
	case FT_PRIMUS:
		fprintf(t->out, "      %s: %s\n", name, *value ? value : "true");
		break;
	default:
		fprintf(t->out, "  %s: %s\n", name, *value ? value : "true");
	}
}

static void put_int(struct sheet *t, const char *name, int64_t value)
{
	put(t, name, "%" PRId64, value);
}

/* What the framework has no name for. */
__attribute__((format(printf, 2, 3))) static void unknown(struct sheet *t,
							  const char *fmt, ...)
{
	va_list args;

	fputs("# not mapped: ", t->out);
	va_start(args, fmt);
	vfprintf(t->out, fmt, args);
	va_end(args);
	putc('\n', t->out);
}

static bool all_alike(const struct ft_plan *p)
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
	FILE *out = open_memstream(&text, &len);

	if (!out)
		out_of_memory();
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
	if (fclose(out))
		out_of_memory();
	put(t, "pipeline_model_parallel_layout", "\"%s\"", text);
	free(text);
}

static void megatron_split(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool even = p->pp == 1 || all_alike(p) || ends_count(p);

	put_int(t, "tensor_model_parallel_size", p->tp);
	put_int(t, "pipeline_model_parallel_size", p->pp);
	if (p->vpp > 1 && even) /* a layout says it */
		put_int(t,
			t->of == FT_NEMO ? "virtual_pipeline_model_parallel_size" :
					   "num_virtual_stages_per_pipeline_rank",
			p->vpp);
	if (!even) {
		megatron_layout(t);
	} else if (p->pp > 1 && !all_alike(p)) {
		put(t, "account_for_embedding_in_pipeline_split", "%s", "");
		put(t, "account_for_loss_in_pipeline_split", "%s", "");
	}
	put_int(t, "context_parallel_size", p->cp);
	if (p->ep > 1 || p->etp > 1) {
		put_int(t, "expert_model_parallel_size", p->ep);
		put_int(t, "expert_tensor_parallel_size", p->etp);
	}
	if (p->sequence_parallel)
		put(t, "sequence_parallel", "%s", "");
	if (p->pp > 1 && p->schedule != FT_1F1B && p->schedule != FT_INTERLEAVED)
		unknown(t, "schedule: %s; Megatron Core runs 1F1B",
			ft_schedule_name(p->schedule));
}

static void megatron_replicas(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->overlap_dp)
		put(t, "overlap_grad_reduce", "%s", "");
	if (p->overlap_gather && p->sharding != FT_DDP)
		put(t, "overlap_param_gather", "%s", "");
}

static void megatron_overlaps(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->overlap_tp && p->tp > 1)
		put(t, "tp_comm_overlap", "%s", "");
	if (p->pp > 1 && t->of == FT_NEMO)
		put(t, "overlap_p2p_comm", "%s", p->overlap_pp ? "true" : "false");
	else if (p->pp > 1 && !p->overlap_pp)
		put(t, "no_overlap_p2p_communication", "%s", "");
	if (p->overlap_ep && p->ep > 1)
		put(t, "overlap_moe_expert_parallel_comm", "%s", "");
}

static void megatron_sharding(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t same = p->dp * p->cp;
	bool zero = p->sharding == FT_ZERO1, fsdp = !zero && p->sharding != FT_DDP;

	if (zero)
		put(t, "use_distributed_optimizer", "%s", "");
	if (fsdp) {
		put(t, "use_megatron_fsdp", "%s", "");
		put(t, "data_parallel_sharding_strategy", "%s",
		    p->sharding == FT_ZERO2 ? "optim_grads" : "optim_grads_params");
	}
	if (p->sharding != FT_DDP && p->shard < same)
		put_int(t, "num_distributed_optimizer_instances", same / p->shard);
	if (same > 1)
		megatron_replicas(t);
	megatron_overlaps(t);
}

/* The names that Megatron Core's list has. */
static void megatron_modules(struct sheet *t)
{
	unsigned set = t->p->recompute_modules;
	bool routed = false, list = t->of != FT_MEGATRON;
	char text[160] = "";
	static const struct {
		unsigned module;
		const char *name;
	} known[] = {
		{ FT_MODULE_CORE_ATTENTION, "core_attn" },
		{ FT_MODULE_ACTIVATION, "moe_act" },
		{ FT_MODULE_NORM, "layernorm" },
		{ FT_MODULE_MLA_UP, "mla_up_proj" },
		{ FT_MODULE_MLP, "mlp" },
		{ FT_MODULE_EXPERTS, "moe" },
	};

	for (int64_t i = 0; i < t->s->model->n_layers; i++)
		routed |= t->s->model->layer[i].experts > 0;
	for (int i = 0; i < 6; i++) {
		size_t n = strlen(text);
		bool has = known[i].module == FT_MODULE_ACTIVATION && !routed;

		if (set & known[i].module && !has)
			snprintf(text + n, sizeof(text) - n, "%s%s",
				 n    ? list ? ", " : " " :
				 list ? "[" :
					"",
				 known[i].name);
		if (set & known[i].module && has)
			unknown(t, "recompute_modules: the activation of a dense MLP");
		set &= ~known[i].module;
	}
	if (*text)
		put(t, "recompute_modules", "%s%s", text, list ? "]" : "");
	if (set)
		unknown(t, "recompute_modules: names of another framework");
}

static void megatron_recompute(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t layers = t->s->model->n_layers;

	if (p->recompute == FT_RECOMPUTE_NONE)
		return;
	put(t, "recompute_granularity", "%s", ft_recompute_name(p->recompute));
	if (p->recompute == FT_RECOMPUTE_SELECTIVE && p->recompute_modules)
		megatron_modules(t);
	if (p->recompute != FT_RECOMPUTE_FULL)
		return;
	put(t, "recompute_method", "%s",
	    p->recompute_layers < layers ? "block" : "uniform");
	put_int(t, "recompute_num_layers",
		p->recompute_layers < layers ?
			llround((double)p->recompute_layers / (double)p->pp) :
			1);
}

static void megatron_precision(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->precision == FT_FP16)
		put(t, "fp16", "%s", "");
	else if (p->precision != FT_FP32)
		put(t, "bf16", "%s", "");
	if (p->precision == FT_FP8 || p->precision == FT_FP8_BLOCK128 ||
	    p->precision == FT_MXFP8) {
		put(t, t->of == FT_NEMO ? "fp8" : "fp8_format", "hybrid");
		put(t, "fp8_recipe", "%s", ft_scaling_name(p->scaling));
	} else if (ft_dtype_bytes(p->precision) < 1) {
		unknown(t, "precision: %s", ft_dtype_name(p->precision));
	}
	if (p->gradient_dtype == FT_FP32 && t->of != FT_NEMO)
		put(t, "accumulate_allreduce_grads_in_fp32", "%s", "");
	if (p->graphs != FT_GRAPHS_NONE)
		unknown(t, "cuda_graphs: %s", ft_graphs_name(p->graphs));
	if (p->offload_layers)
		unknown(t, "offload_layers: %" PRId64, p->offload_layers);
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
	megatron_recompute(t);
	if (t->of == FT_NEMO) {
		put_int(t, "seq_length", p->sequence);
		fputs("ddp:\n", t->out);
		megatron_sharding(t);
		fputs("train:\n", t->out);
	}
	put_int(t, "micro_batch_size", p->micro_batch);
	put_int(t, "global_batch_size", p->global_batch);
	if (t->of != FT_NEMO) {
		put_int(t, "seq_length", p->sequence);
		megatron_precision(t);
	} else {
		unknown(t, "precision %s: choose the recipe's mixed_precision",
			ft_dtype_name(p->precision));
	}
}

/* ---- torchtitan -------------------------------------------------------------------------- */

static void titan_pipeline(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	put_int(t, "pipeline_parallel_degree", p->pp);
	if (p->pp == 1)
		return;
	put(t, "pipeline_parallel_schedule", "\"%s\"",
	    p->schedule == FT_GPIPE	  ? "GPipe" :
	    p->schedule == FT_ZERO_BUBBLE ? "InterleavedZeroBubble" :
	    p->schedule == FT_ZBV	  ? "ZBVZeroBubble" :
	    p->schedule == FT_DUALPIPEV	  ? "DualPipeV" :
	    p->schedule == FT_INTERLEAVED ? "Interleaved1F1B" :
					    "1F1B");
	put_int(t, "pipeline_parallel_microbatch_size", p->micro_batch);
	if (all_alike(p))
		put_int(t, "pipeline_parallel_layers_per_stage", p->stage_layers[0]);
	else
		unknown(t, "layers are not even over the pipeline's stages");
}

static void titan_sharding(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool fsdp = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	int64_t shard = fsdp ? p->shard / (p->shard % p->cp ? 1 : p->cp) : 1;

	if (fsdp && p->shard % p->cp)
		unknown(t,
			"a shard group of %" PRId64 " ranks, which cp %" PRId64
			" does not divide",
			p->shard, p->cp);
	put_int(t, "data_parallel_replicate_degree", p->dp / (shard ? shard : 1));
	put_int(t, "data_parallel_shard_degree", shard);
	if (fsdp)
		put(t, "fsdp_reshard_after_forward", "\"%s\"",
		    p->reshard_after_forward ? "always" : "never");
	if (p->sharding == FT_ZERO1 || p->sharding == FT_ZERO2)
		unknown(t, "sharding: %s", ft_sharding_name(p->sharding));
}

static void titan(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	fputs("[training]\n", t->out);
	put_int(t, "local_batch_size",
		p->pp > 1 ? p->micro_batch * p->micro_batches : p->micro_batch);
	put_int(t, "global_batch_size", p->global_batch);
	put_int(t, "seq_len", p->sequence);
	fputs("\n[parallelism]\n", t->out);
	put_int(t, "tensor_parallel_degree", p->tp);
	if (p->overlap_tp && p->tp > 1)
		put(t, "enable_async_tensor_parallel", "%s", "");
	titan_pipeline(t);
	put_int(t, "context_parallel_degree", p->cp);
	if (p->ep > 1)
		put_int(t, "expert_parallel_degree", p->ep);
	if (p->etp > 1)
		unknown(t, "etp %" PRId64, p->etp);
	titan_sharding(t);
	fputs("\n[activation_checkpoint]\n", t->out);
	put(t, "mode", "\"%s\"", ft_recompute_name(p->recompute));
	if (p->recompute == FT_RECOMPUTE_SELECTIVE)
		put(t, "selective_ac_option", "\"op\"");
	if (p->recompute == FT_RECOMPUTE_SELECTIVE && p->recompute_modules)
		unknown(t, "recompute_modules");
	if (p->recompute == FT_RECOMPUTE_FULL &&
	    p->recompute_layers < t->s->model->n_layers)
		unknown(t, "recompute_layers: %" PRId64, p->recompute_layers);
	if (p->precision != FT_BF16)
		unknown(t, "precision: %s", ft_dtype_name(p->precision));
	if (p->offload_layers)
		unknown(t, "offload_layers: %" PRId64, p->offload_layers);
}

void ft_report_plan_arguments(FILE *out, const struct ft_scenario *s,
			      enum ft_framework framework)
{
	PLAIN_NUMBERS;
	struct sheet t = { out, framework, s, s->plan };

	if (framework == FT_TORCHTITAN)
		titan(&t);
	else
		megatron(&t);
}
