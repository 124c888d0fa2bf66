/* study/idle_keys.c - what a plan says in vain: keys that would do nothing, a format that the GPU has not */
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "study/keys.h"

static bool narrow(const struct ft_scenario *s)
{
	return ft_dtype_bytes(s->plan->precision) < 2;
}

static bool sharded_units(const struct ft_scenario *s)
{
	return s->plan->sharding == FT_FSDP || s->plan->sharding == FT_HSDP;
}

/* What a scan keeps, it keeps for backward by what is computed again. */
static bool units_may_stay(const struct ft_scenario *s)
{
	return sharded_units(s) && !s->stack->layout.scan_layers;
}

static bool shard_groups(const struct ft_scenario *s)
{
	return s->plan->sharding == FT_HSDP;
}

static bool zero(const struct ft_scenario *s)
{
	return ft_plan_zero(s->plan);
}

static bool buckets(const struct ft_scenario *s)
{
	return !sharded_units(s);
}

static bool routed(const struct ft_scenario *s)
{
	for (int64_t l = 0; l < s->model->n_layers; l++)
		if (s->model->layer[l].experts)
			return true;
	return false;
}

/* Not where the model's class computes all tokens in every expert. */
static bool chosen(const struct ft_scenario *s)
{
	return routed(s) && !(s->model->all_experts && s->stack->layout.model_classes);
}

/* Not where what is chosen is a mask, as in attention that is not fused, whose indexers are not trained, nor where the model is frozen. */
static bool trains_indexers(const struct ft_scenario *s)
{
	const struct ft_model *m = s->model;
	bool choose = false;

	for (int64_t l = 0; l < m->n_layers; l++)
		choose |= ft_layer_chooses(&m->layer[l]);
	return choose && !s->stack->layout.masked_choice && !s->plan->lora.rank &&
	       !ft_stack_unfused(s->stack, m->sinks, m->plain != FT_PLAIN_NOT,
				 m->score_cap);
}

static bool again_whole(const struct ft_scenario *s)
{
	return s->plan->recompute == FT_RECOMPUTE_FULL;
}

static bool again_some(const struct ft_scenario *s)
{
	return s->plan->recompute == FT_RECOMPUTE_SELECTIVE;
}

static bool attends(const struct ft_scenario *s)
{
	for (int64_t l = 0; l < s->model->n_layers; l++)
		if (ft_layer_attends(&s->model->layer[l]))
			return true;
	return false;
}

/* Not graphs of routers where no layer has one. */
static bool graphs_something(const struct ft_scenario *s)
{
	return s->plan->graphs != FT_GRAPHS_ROUTER || routed(s);
}

static bool split(const struct ft_scenario *s)
{
	return s->plan->tp > 1;
}

static bool whole_weights(const struct ft_scenario *s)
{
	return !sharded_units(s);
}

static bool staged(const struct ft_scenario *s)
{
	return s->plan->pp > 1;
}

static bool narrow_experts(const struct ft_scenario *s)
{
	return narrow(s) && routed(s);
}

#define NARROW narrow, "with an 8-bit or 4-bit precision"
#define ROUTED routed, "in models with experts"

/* What is stated as `nothing` asks for nothing, and may stand anywhere. */
struct idle_key {
	const char *path; /* below training; of those that are told, all of it */
	bool (*counts)(const struct ft_scenario *s);
	const char *where, *nothing;
};

static const struct idle_key keys[] = {
	{ "recompute_layers", again_whole, "under 'recompute: full'", "0" },
	{ "recompute_modules", again_some, "under 'recompute: selective'", NULL },
	{ "fp8_recipe", NARROW, NULL },
	{ "attention_precision", NARROW, "bf16" },
	{ "expert_precision", narrow_experts,
	  "with an 8-bit or 4-bit precision in models with experts", NULL },
	{ "shard", shard_groups, "with sharding hsdp", NULL },
	{ "zero_group", zero, "with sharding zero1 or zero2", NULL },
	{ "overlap.dp", buckets, "with sharding ddp, zero1 or zero2", "true" },
	/* FSDP gathers each unit ahead, whatever is said */
	{ "overlap.param_gather", whole_weights, "with sharding zero1 or zero2", NULL },
	{ "overlap.param_gather", zero, "with sharding zero1 or zero2", "false" },
	{ "reshard_after_forward", units_may_stay,
	  "with sharding fsdp or hsdp, under a stack that does not scan the layers",
	  "true" },
	{ "sync_each_micro_batch", sharded_units, "with sharding fsdp or hsdp",
	  "true" },
	{ "parallel.ep", ROUTED, "1" },
	{ "parallel.etp", ROUTED, "1" },
	{ "overlap.ep", ROUTED, "false" },
	{ "moe_dispatcher", ROUTED, NULL },
	{ "moe_capacity_factor", chosen, "where each token goes to some of the experts",
	  "0" },
	{ "moe_force_balance", chosen, "where each token goes to some of the experts",
	  "false" },
	{ "grouped_experts", ROUTED, NULL },
	{ "fused_experts", ROUTED, "false" },
	{ "indexer_loss", trains_indexers,
	  "where indexers that choose tokens are trained: not with adapters, nor under "
	  "a stack that makes a mask of the choice",
	  NULL },
	{ "cuda_graphs", graphs_something,
	  "as partial or full in a model without experts", NULL },
};
enum { KEYS = sizeof(keys) / sizeof(*keys) };

static bool dealt(const struct ft_scenario *s)
{
	return s->plan->ep > 1;
}

/* Copies are not spread evenly, where no capacity says how many a rank takes; or forced balance sends them elsewhere, which counts
 * where a kernel sends a token once to each rank. */
static bool may_be_forced(const struct ft_scenario *s)
{
	const struct ft_layout_rules *l = &s->stack->layout;
	bool direct = s->plan->dispatcher != FT_DISPATCH_ALLTOALL;

	return dealt(s) && ((l->expert_spread > 0 && !(s->plan->capacity_factor > 0)) ||
			    (l->forced_in_turn && direct));
}

/* A backward and a forward of two micro-batches side by side, as foretoken-scenario(5) has it. */
static bool paired(const struct ft_scenario *s)
{
	return ft_plan_pairs(s->plan) && ft_plan_run(s->plan) > 1;
}

/* Not in a pipeline whose stack reduces behind the last micro-batch in any case. */
static bool each_may_reduce(const struct ft_scenario *s)
{
	return !sharded_units(s) || s->plan->pp == 1 ||
	       !s->stack->layout.unsharded_pipeline;
}

static bool several(const struct ft_scenario *s)
{
	return !sharded_units(s) || s->plan->micro_batches > 1;
}

static bool one_kernel(const struct ft_scenario *s)
{
	return !ft_stack_unfused(s->stack, s->model->sinks,
				 s->model->plain != FT_PLAIN_NOT, s->model->score_cap);
}

/* Weights of experts are summed over ranks of their own. */
static bool replicated(const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;

	return p->dp * p->cp > 1 || (routed(s) && p->edp > 1);
}

/* A state that is divided among ranks: the experts' too, which have ranks of their own. */
static bool divided(const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;

	return p->shard > 1 || (routed(s) && ft_plan_expert_shard(p) > 1);
}

bool scenario_gathers_ahead(const struct ft_scenario *s)
{
	const struct ft_layout_rules *l = &s->stack->layout;
	bool parts = l->broadcast_parts && s->plan->sharding == FT_ZERO1;

	return zero(s) && divided(s) && l->gather_under_forward && !parts;
}

/* What copy engines may do: all that is no sum. */
static bool copies(const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;

	return p->tp > 1 || p->cp > 1 || p->pp > 1 || p->ep > 1 || divided(s);
}

/* A schedule that is run under its own name: by one chunk a stage or by several. */
static bool runs_as_said(const struct ft_scenario *s)
{
	const struct node *n = node_path(s->given, "training.schedule");

	return s->plan->pp == 1 || node_is_null(n) ||
	       node_says(n, ft_schedule_name(s->plan->schedule));
}

static bool networked(const struct ft_scenario *s)
{
	return s->cluster->topology.tiers > 0;
}

/* Not in fp32, where no product is grouped whatever is said; but operations on a gate's halves are others then. */
static bool may_be_grouped(const struct ft_scenario *s)
{
	const struct ft_layout_rules *l = &s->stack->layout;

	return !ft_plan_wide_experts(s->plan, l) || l->fusion != FT_FUSION_COMPILED;
}

static bool fails(const struct ft_scenario *s)
{
	return s->terms.failures.failures_per_1000_node_days != 0;
}

/* Without failures a job stops for a checkpoint only where it is told when. */
static bool saves(const struct ft_scenario *s)
{
	return fails(s) || s->terms.failures.interval_s > 0;
}

#define FAILS fails, "with failures_per_1000_node_days above 0"
#define SAVES saves, "with an interval, or with failures_per_1000_node_days above 0"

/* These may stand: a sweep of tp, pp or ep begins at 1, one of failures at 0. They are told. */
static const struct idle_key told[] = {
	{ "training.sync_each_micro_batch", each_may_reduce,
	  "without a pipeline, which reduces behind its last micro-batch under this stack",
	  "true" },
	{ "training.sync_each_micro_batch", several, "with several micro-batches",
	  "true" },
	{ "training.sequence_parallel", split, "with tp above 1", "false" },
	{ "training.document_length", attends, "in models with attention", "0" },
	{ "training.attention_precision", one_kernel, "where attention is one kernel",
	  "bf16" },
	{ "training.overlap.tp", split, "with tp above 1", "false" },
	{ "training.overlap.pp", staged, "with pp above 1", "true" },
	{ "training.overlap.dp", replicated,
	  "where several ranks share in the sums of gradients", "true" },
	{ "training.overlap.param_gather", scenario_gathers_ahead,
	  "where several ranks share what zero1 or zero2 divides, under a stack with gather_under_forward",
	  "false" },
	{ "training.overlap.copy_engines", copies,
	  "where ranks gather, exchange or send something", "false" },
	{ "training.grouped_experts", may_be_grouped,
	  "where experts are in 16 bit, or no compiler fuses their operations",
	  "true" },
	{ "training.parallel.vpp", staged, "with pp above 1", "1" },
	{ "training.schedule", staged, "with pp above 1", "1f1b" },
	{ "training.schedule", runs_as_said,
	  "as interleaved with vpp above 1, and as 1f1b with vpp 1", NULL },
	{ "training.pipeline_flushes", staged, "with pp above 1", "1" },
	{ "training.overlap.ep", paired,
	  "with ep above 1 and several micro-batches, without fsdp and hsdp, and in a pipeline with vpp above 1, but not under zbv",
	  "false" },
	{ "training.moe_force_balance", may_be_forced,
	  "with ep above 1: without a capacity under a stack with expert_spread, or with deepep or hybridep under one with forced_in_turn",
	  "false" },
	{ "cluster.ufm_ports", networked, "where nodes have a network", "0" },
	{ "cluster.optics", networked, "where nodes have a network", "generic" },
	{ "cost.goodput.checkpoint", SAVES, NULL },
	{ "cost.goodput.storage_bandwidth", SAVES, NULL },
	{ "cost.goodput.restart", FAILS, NULL },
	{ "cost.goodput.repair", FAILS, NULL },
	{ "cost.goodput.failover", FAILS, NULL },
};
enum { TOLD = sizeof(told) / sizeof(*told) };

/* The value of a key that a map states and that has no effect; else NULL. */
static const struct node *idle(const struct ft_scenario *s, const struct node *map,
			       const struct idle_key *key)
{
	const struct node *n = node_path(map, key->path);

	if (node_is_null(n) || key->counts(s) ||
	    (key->nothing && node_says(n, key->nothing)))
		return NULL;
	return n;
}

/* What the stack sets unasked may be stated, as an answer's own scenario does. */
static bool goes_without_saying(const struct ft_scenario *s, const struct idle_key *key,
				const struct node *n)
{
	static const char below[] = "training.";
	const struct node *own = NULL;

	if (!strncmp(key->path, below, sizeof(below) - 1))
		own = node_path(s->stack->defaults, key->path + sizeof(below) - 1);
	return !node_is_null(own) && own->text && node_says(n, own->text);
}

const char *ft_scenario_idle(const struct ft_scenario *s, size_t i, const char **where)
{
	for (size_t k = 0; k < TOLD; k++) {
		const struct node *n = idle(s, s->given, &told[k]);

		if (n && !goes_without_saying(s, &told[k], n) && !i--) {
			*where = told[k].where;
			return told[k].path;
		}
	}
	return NULL;
}

const char *scenario_idle_value(const struct ft_scenario *s, const char *path)
{
	static const char below[] = "training.";

	if (strncmp(path, below, sizeof(below) - 1) != 0)
		return NULL;
	for (size_t i = 0; i < KEYS; i++)
		if (!strcmp(path + sizeof(below) - 1, keys[i].path) &&
		    !keys[i].counts(s))
			return keys[i].nothing ? keys[i].nothing : "null";
	return NULL;
}

bool scenario_no_idle_key(const struct ft_scenario *s, const struct node *training,
			  const struct ft_plan *plan, size_t n, struct ft_error *err)
{
	struct ft_scenario one = *s;

	for (size_t k = 0; k < KEYS; k++) {
		const struct node *in_vain = NULL;

		for (size_t i = 0; i < n && (in_vain || !i); i++) {
			one.plan = &plan[i];
			in_vain = idle(&one, training, &keys[k]);
		}
		if (in_vain)
			return ft_fail(err, &in_vain->mark, "%s has an effect only %s",
				       keys[k].path, keys[k].where);
	}
	return true;
}

/* Not every GPU multiplies in every format: refused where the precision was said. */
bool scenario_multiplies(const struct ft_scenario *s, const struct node *training,
			 struct ft_error *err)
{
	const struct ft_number *peak = s->cluster->gpu->peak_flop_per_s;
	const struct node *at = node_get(training, "precision");
	const char *has[FT_DTYPES];
	struct arena mem = { 0 };
	size_t n = 0;

	if (peak[s->plan->precision].value > 0)
		return true;
	for (int d = 0; d < FT_DTYPES; d++)
		if (peak[d].value > 0 && d != FT_FP32)
			has[n++] = ft_dtype_name((enum ft_dtype)d);
	ft_fail(err, at ? &at->mark : &s->cluster->gpus_mark,
		"precision: %s has no matrix products in %s; it has %s",
		s->cluster->gpu->name, ft_dtype_name(s->plan->precision),
		text_join(&mem, has, n));
	arena_release(&mem);
	return false;
}
