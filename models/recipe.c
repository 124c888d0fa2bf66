/* models/recipe.c - how a plan's step is run: graphs, recomputation, experts, scaling, and what replicas share */
#include "models/recipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/text.h"
#include "base/whole.h"

static const char *const graphs_names[] = { "none", "router", "partial", "full" };
static const char *const dispatcher_names[] = { "alltoall", "deepep", "hybridep" };
static const char *const scaling_names[] = { "delayed", "tensorwise", "blockwise",
					     "mxfp8", "nvfp4" };
static const char *const optimizer_names[FT_OPTIMIZERS] = {
	[FT_ADAM] = "adam",
	[FT_ADAM_8BIT] = "adam8bit",
	[FT_ADAFACTOR] = "adafactor",
	[FT_SGD] = "sgd",
	[FT_SGD_MOMENTUM] = "sgd-momentum",
	[FT_MUON] = "muon"
};

static const char *const offload_names[FT_OFFLOADS] = { "none", "optimizer", "all" };
static const char *const master_names[FT_MASTERS] = { "fp32", "fp16", "remainder" };

/* A module by every name that a framework has for it. */
static const struct {
	const char *name;
	unsigned module;
} modules[] = {
	{ "core_attn", FT_MODULE_CORE_ATTENTION },
	{ "out_proj", FT_MODULE_OUT_PROJECTION },
	{ "mla_up_proj", FT_MODULE_MLA_UP },
	{ "mhc", FT_MODULE_STREAMS },
	{ "mlp", FT_MODULE_MLP },
	{ "mlpwi", FT_MODULE_MLP_UP },
	{ "mlpwo", FT_MODULE_MLP_DOWN },
	{ "moe", FT_MODULE_EXPERTS },
	{ "moe_act", FT_MODULE_ACTIVATION },
	{ "act", FT_MODULE_ACTIVATION },
	{ "layernorm", FT_MODULE_NORM },
	{ "norm", FT_MODULE_NORM },
	{ "op", FT_MODULE_OPS },
};

enum { MODULES = sizeof(modules) / sizeof(*modules) };

const char *ft_modules_text(unsigned set, char text[FT_MODULES_TEXT])
{
	size_t n = 0;

	snprintf(text, FT_MODULES_TEXT, "[");
	for (size_t i = 0; i < MODULES; i++) {
		unsigned before = 0;

		for (size_t k = 0; k < i; k++)
			before |= modules[k].module;
		if (!(set & modules[i].module) || before & modules[i].module)
			continue;
		n = strlen(text);
		snprintf(text + n, FT_MODULES_TEXT - n, "%s%s", n > 1 ? ", " : "",
			 modules[i].name);
	}
	n = strlen(text);
	snprintf(text + n, FT_MODULES_TEXT - n, "]");
	return text;
}

const char *ft_graphs_name(enum ft_graphs graphs)
{
	return graphs_names[graphs];
}

const char *ft_dispatcher_name(enum ft_dispatcher dispatcher)
{
	return dispatcher_names[dispatcher];
}

const char *ft_scaling_name(enum ft_scaling scaling)
{
	return scaling_names[scaling];
}

const char *ft_optimizer_name(enum ft_optimizer optimizer)
{
	return optimizer_names[optimizer];
}

const char *ft_master_name(enum ft_master master)
{
	return master_names[master];
}

const char *ft_offload_name(enum ft_offload offload)
{
	return offload_names[offload];
}

static unsigned module_of(const char *word, size_t len)
{
	for (size_t i = 0; i < MODULES; i++)
		if (strlen(modules[i].name) == len &&
		    !strncmp(modules[i].name, word, len))
			return modules[i].module;
	return 0;
}

static bool unknown_module(struct reader *r, const char *word, size_t len)
{
	const char *names[MODULES];
	struct arena mem = { 0 };

	for (size_t i = 0; i < MODULES; i++)
		names[i] = modules[i].name;
	reader_fail(r, "recompute_modules", "'%.*s' is not one of %s",
		    (int)(len < 40 ? len : 40), word, text_join(&mem, names, MODULES));
	arena_release(&mem);
	return false;
}

/* "a,b" adds a and b. */
static bool add_modules(struct reader *r, const char *words, unsigned *set)
{
	while (*words) {
		size_t len = strcspn(words, ", ");
		unsigned module = module_of(words, len);

		if (len && !module)
			return unknown_module(r, words, len);
		*set |= module;
		words += len + strspn(words + len, ", ");
	}
	return true;
}

/* A list of modules, or one text with commas between them as a table's cell has it. */
static unsigned read_modules(struct reader *r)
{
	const struct node *n = read_node(r, "recompute_modules");
	size_t count = !n ? 0 : n->kind == NODE_LIST ? n->n : 1;
	unsigned set = 0;

	for (size_t i = 0; i < count && !r->failed; i++) {
		const struct node *item = n->kind == NODE_LIST ? n->item[i] : n;

		if (item->kind == NODE_SCALAR)
			add_modules(r, item->text, &set);
		else
			reader_fail(r, "recompute_modules",
				    "should be a list of names");
	}
	if (set & FT_MODULE_OPS && set != FT_MODULE_OPS)
		reader_fail(r, "recompute_modules",
			    "op is a choice of its own, of every operation; leave the "
			    "other modules out, or op");
	return set;
}

/* The scaling that goes without saying for a format. */
static enum ft_scaling usual_scaling(enum ft_dtype precision)
{
	switch (precision) {
	case FT_FP8_BLOCK128:
		return FT_SCALING_BLOCKWISE;
	case FT_MXFP8:
	case FT_MXFP4:
		return FT_SCALING_MX;
	case FT_NVFP4:
		return FT_SCALING_NV;
	default:
		return FT_SCALING_DELAYED;
	}
}

static bool scaling_fits(enum ft_dtype precision, enum ft_scaling scaling)
{
	if (precision == FT_FP8)
		return scaling != FT_SCALING_MX && scaling != FT_SCALING_NV;
	return scaling == usual_scaling(precision);
}

static void read_scaling(struct reader *r, struct ft_plan *plan)
{
	static const char *const attention[] = { "bf16", "fp8" };
	const char *const experts[] = { ft_dtype_name(plan->precision), "bf16" };
	bool narrow = ft_dtype_bytes(plan->precision) < 2;

	plan->scaling = (enum ft_scaling)read_choice(r, "fp8_recipe", scaling_names, 5,
						     usual_scaling(plan->precision));
	if (read_has(r, "fp8_recipe") && narrow &&
	    !scaling_fits(plan->precision, plan->scaling))
		reader_fail(r, "fp8_recipe", "precision %s is not scaled by recipe %s",
			    ft_dtype_name(plan->precision),
			    scaling_names[plan->scaling]);
	if (plan->precision == FT_FP8 && plan->scaling == FT_SCALING_BLOCKWISE)
		plan->precision = FT_FP8_BLOCK128; /* another name of it */
	plan->attention_precision =
		read_choice(r, "attention_precision", attention, 2, 0) && narrow ?
			FT_FP8 :
		plan->precision == FT_FP16 ? FT_FP16 :
					     FT_BF16;
	plan->expert_precision =
		read_choice(r, "expert_precision", experts, narrow ? 2 : 1, 0) ?
			FT_BF16 :
			plan->precision;
}

/* Without master weights all is in 16 bit. */
static void read_gradients(struct reader *r, struct ft_plan *plan)
{
	static const enum ft_dtype formats[] = { FT_FP32, FT_BF16, FT_FP16 };
	const char *names[3];
	int usual;

	plan->master_weights = read_bool(r, "master_weights", true);
	usual = plan->master_weights ? 0 : plan->precision == FT_FP16 ? 2 : 1;
	for (int i = 0; i < 3; i++)
		names[i] = ft_dtype_name(formats[i]);
	plan->gradient_dtype =
		formats[read_choice(r, "gradient_dtype", names, 3, usual)];
}

/* Of Adam alone, whose kernels have them. */
static void read_state(struct reader *r, struct ft_plan *plan)
{
	static const enum ft_dtype formats[] = { FT_FP32, FT_BF16, FT_FP16, FT_FP8 };
	const char *names[4];
	int chosen;

	for (int i = 0; i < 4; i++)
		names[i] = ft_dtype_name(formats[i]);
	chosen = read_choice(r, "moment_dtype", names, 4, 0);
	plan->moment_dtype = read_has(r, "moment_dtype") ? formats[chosen] : FT_DTYPES;
	plan->master = (enum ft_master)read_choice(r, "master_dtype", master_names,
						   FT_MASTERS, FT_MASTER_FP32);
	if (plan->moment_dtype != FT_DTYPES && plan->optimizer != FT_ADAM)
		reader_fail(r, "moment_dtype",
			    "optimizer %s has none of Adam's moments",
			    ft_optimizer_name(plan->optimizer));
	if (read_has(r, "master_dtype") && !plan->master_weights)
		reader_fail(r, "master_dtype", "master_weights: false keeps none");
	if (plan->master == FT_MASTER_REMAINDER && plan->precision == FT_FP16)
		reader_fail(r, "master_dtype",
			    "remainder: weights in fp16 are no half of those in fp32, "
			    "only those in bf16 are");
}

/* The host updates weights in fp32 by Adam, with moments in fp32. */
static void read_offload(struct reader *r, struct ft_plan *plan)
{
	bool fp32 = plan->master_weights && plan->master == FT_MASTER_FP32 &&
		    (plan->moment_dtype == FT_DTYPES || plan->moment_dtype == FT_FP32);

	plan->offload_layers = read_int(r, "offload_layers", 0, LIMIT_LAYERS, 0);
	plan->offload_state = (enum ft_offload)read_choice(
		r, "offload_state", offload_names, FT_OFFLOADS, FT_OFFLOAD_NONE);
	plan->offload_threads =
		read_int(r, "offload_threads", 1, LIMIT_HOST_THREADS, 1);
	if (plan->offload_state == FT_OFFLOAD_NONE) {
		if (read_has(r, "offload_threads"))
			reader_fail(
				r, "offload_threads",
				"nothing is updated on the host; say offload_state: "
				"optimizer or all, or leave it out");
		return;
	}
	if (plan->optimizer != FT_ADAM || !fp32)
		reader_fail(
			r, "offload_state",
			"only adam with master weights and moments in fp32 is known "
			"to run on the host");
}

const char *plan_offload_wrong(const struct ft_plan *plan)
{
	bool sharded = plan->sharding == FT_FSDP || plan->sharding == FT_HSDP;

	if (plan->offload_state == FT_OFFLOAD_ALL && !sharded)
		return "all: weights wait in host memory under sharding: fsdp or hsdp "
		       "alone; use optimizer";
	if (plan->offload_state != FT_OFFLOAD_NONE && plan->offload_layers)
		return "copies of weights or gradients beside those of offload_layers "
		       "are not simulated; leave one out";
	return NULL;
}

void recipe_read(struct reader *r, struct reader *overlap, struct ft_plan *plan)
{
	read_gradients(r, plan);
	plan->graphs = (enum ft_graphs)read_choice(r, "cuda_graphs", graphs_names, 4,
						   FT_GRAPHS_NONE);
	plan->optimizer = (enum ft_optimizer)read_choice(
		r, "optimizer", optimizer_names, FT_OPTIMIZERS, FT_ADAM);
	read_state(r, plan);
	plan->dispatcher = (enum ft_dispatcher)read_choice(
		r, "moe_dispatcher", dispatcher_names, 3, FT_DISPATCH_ALLTOALL);
	plan->capacity_factor = read_quantity(r, "moe_capacity_factor", DIM_NONE, 0);
	plan->force_balance = read_bool(r, "moe_force_balance", false);
	plan->grouped_experts = read_bool(r, "grouped_experts", true);
	plan->fused_experts = read_bool(r, "fused_experts", false);
	plan->indexer_loss = read_bool(r, "indexer_loss", true);
	plan->fp8_gates = read_bool(r, "fp8_activation_input", false);
	plan->recompute_modules = read_modules(r);
	plan->recompute_layers = read_int(r, "recompute_layers", 0, LIMIT_LAYERS, 0);
	plan->document = read_int(r, "document_length", 0, LIMIT_SEQUENCE, 0);
	read_offload(r, plan);
	plan->zero_group = read_int(r, "zero_group", 1, LIMIT_BATCH, 0);
	plan->sync_last = !read_bool(r, "sync_each_micro_batch", true);
	plan->overlap_ep = read_bool(overlap, "ep", false);
	plan->overlap_gather = read_bool(overlap, "param_gather", plan->overlap_dp);
	read_scaling(r, plan);
}

/* Layers run again under full recomputation alone: all of them when nothing is said. */
static bool check_recompute_layers(struct reader *r, const struct ft_model *model,
				   struct ft_plan *plan)
{
	if (plan->recompute_layers > model->n_layers)
		return reader_fail(r, "recompute_layers",
				   "%lld is more than the model's %lld layers",
				   (long long)plan->recompute_layers,
				   (long long)model->n_layers);
	if (plan->recompute != FT_RECOMPUTE_FULL)
		plan->recompute_layers = 0;
	else if (!read_has(r, "recompute_layers"))
		plan->recompute_layers = model->n_layers;
	return true;
}

double ft_plan_kept_frac(const struct ft_plan *plan)
{
	return plan->capacity_factor > 0 ? fmin(plan->capacity_factor, 1) : 1;
}

int64_t ft_plan_stride(int64_t layers, int64_t asked)
{
	int64_t k = asked > 0 ? layers / asked : 0;

	return k > 0 && layers / k == asked ? k : 0;
}

/* Modules that not every model has: those of this one. Megatron Core's mlp is that of layers without experts; shared experts are
 * no part of it (megatron/core/transformer/transformer_config.py, recompute_modules, read 2026-11-30). */
static unsigned modules_of(const struct ft_model *model)
{
	unsigned set = 0;

	for (int64_t i = 0; i < model->n_layers; i++)
		set |= (model->layer[i].experts	     ? FT_MODULE_EXPERTS :
			model->layer[i].intermediate ? FT_MODULE_MLP :
						       0) |
		       (model->layer[i].kv_lora_rank || model->layer[i].compressed ?
				FT_MODULE_MLA_UP :
				0);
	return set | (model->streams > 1 ? FT_MODULE_STREAMS : 0);
}

/* What depends on the kinds of layers that the model has. */
static bool check_layers_for(struct reader *r, const struct ft_model *model,
			     const struct ft_plan *plan)
{
	unsigned has = modules_of(model), asked = plan->recompute_modules;

	if (asked & FT_MODULE_EXPERTS & ~has)
		return reader_fail(r, "recompute_modules",
				   "moe: the model has no experts");
	if (asked & FT_MODULE_MLP & ~has)
		return reader_fail(
			r, "recompute_modules",
			"mlp: the model has no layer without experts that has "
			"an MLP; moe computes a routed MLP again, with its "
			"shared experts");
	if (asked & FT_MODULE_MLA_UP & ~has)
		return reader_fail(r, "recompute_modules",
				   "mla_up_proj: the model has no latent attention");
	if (asked & FT_MODULE_STREAMS & ~has)
		return reader_fail(r, "recompute_modules",
				   "mhc: the model's residual is one stream");
	if (plan->tp > 1 && !plan->sequence_parallel && has & FT_MODULE_EXPERTS)
		return reader_fail(
			r, "sequence_parallel",
			"experts under tp %lld need it to be true: without it each "
			"rank would send all tokens to them",
			(long long)plan->tp);
	return true;
}

bool recipe_check(struct reader *r, const struct ft_model *model, struct ft_plan *plan)
{
	int64_t same = plan->dp * plan->cp;

	if (plan->capacity_factor > CAPACITY_MOST)
		return reader_fail(r, "moe_capacity_factor",
				   "%g is not between 0 (dropless) and %d",
				   plan->capacity_factor, (int)CAPACITY_MOST);
	if (!check_layers_for(r, model, plan) ||
	    !check_recompute_layers(r, model, plan))
		return false;
	if (plan->document > plan->sequence)
		return reader_fail(r, "document_length",
				   "%lld tokens are more than a sequence's %lld",
				   (long long)plan->document,
				   (long long)plan->sequence);
	if (plan->offload_layers > model->n_layers)
		return reader_fail(r, "offload_layers",
				   "%lld is more than the model's %lld layers",
				   (long long)plan->offload_layers,
				   (long long)model->n_layers);
	if (read_has(r, "zero_group") && ft_plan_zero(plan) && same % plan->zero_group)
		return reader_fail(r, "zero_group",
				   "%lld does not divide the %lld ranks of dp x cp",
				   (long long)plan->zero_group, (long long)same);
	if (!plan->zero_group || !ft_plan_zero(plan))
		plan->zero_group = same;
	return true;
}

int64_t ft_plan_expert_shard(const struct ft_plan *p)
{
	int64_t copies = p->dp * p->cp / p->shard;

	if (!ft_plan_divides(p) || (p->sharding == FT_HSDP && p->shard == 1))
		return 1;
	return p->edp / whole_divisor(p->edp, copies);
}

/* Groups follow each other over all ranks: one that does not fill its node in whole groups has
 * neighbours that lie on two, unless the job has no second node. */
int64_t ft_plan_near_shard(const struct ft_plan *p, int64_t ranks_per_node)
{
	int64_t same = p->dp * p->cp, best = 1;
	bool one_node = p->pp * same * p->tp <= ranks_per_node;

	for (int64_t i = 1; i <= ranks_per_node / p->tp && i <= same; i++)
		if (same % i == 0 && (one_node || ranks_per_node % (i * p->tp) == 0))
			best = i;
	return best;
}

void plan_unwrap(struct ft_plan *p, const struct ft_plan_context *context)
{
	if (context->unwrapped_alone && !context->open && p->sharding == FT_DDP &&
	    p->dp * p->cp == 1)
		p->sharding = FT_ALONE;
}

bool ft_plan_divides(const struct ft_plan *p)
{
	return p->sharding > FT_DDP;
}

bool ft_plan_zero(const struct ft_plan *p)
{
	return p->sharding == FT_ZERO1 || p->sharding == FT_ZERO2;
}

bool plan_reshards(const struct ft_plan *p)
{
	return p->reshard_stated ? p->reshard_after_forward :
				   !(p->unsharded_pipeline && p->pp > 1);
}

bool recipe_check_last(struct reader *r, const struct ft_plan *plan,
		       const struct ft_plan_context *context)
{
	const char *wrong = context->open ? NULL : plan_offload_wrong(plan);

	if (wrong)
		return reader_fail(r, "offload_state", "%s", wrong);
	return context->pairs_again || !ft_plan_pairs_again(plan) ||
	       reader_fail(r, "recompute",
			   "overlap.ep pairs the passes of two micro-batches, and this "
			   "stack computes no experts or whole layers again in them "
			   "(its runs.recompute_in_pairs); use selective without moe, "
			   "or none");
}
