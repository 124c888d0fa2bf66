/* models/plan.c - a `training` map against a model and a number of ranks */
#include "foretoken/models.h"

#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/whole.h"
#include "models/recipe.h"
#include "models/lora.h"
#include "models/interleave.h"
#include "models/schedule.h"
#include "models/stages.h"

struct owned {
	struct ft_plan plan;
	struct arena mem;
};

/* What a plan is read from: each check can point at the key to change. */
struct draft {
	struct arena *mem;
	struct reader top, parallel, overlap;
	const struct ft_model *model;
	const struct ft_plan_context *context;
	struct ft_plan *plan;
};

static const char *const sharding_names[] = { "none", "ddp",  "zero1", "zero2",
					      "fsdp", "hsdp", "zero3" };
static const char *const recompute_names[] = { "none", "selective", "full" };
static const char *const start_names[] = { "steady", "together" };

const char *ft_sharding_name(enum ft_sharding sharding)
{
	return sharding_names[sharding];
}

const char *ft_recompute_name(enum ft_recompute recompute)
{
	return recompute_names[recompute];
}

static enum ft_dtype read_dtype(struct reader *r, const char *key, size_t n,
				const enum ft_dtype *allowed)
{
	const char *names[FT_DTYPES];

	for (size_t i = 0; i < n; i++)
		names[i] = ft_dtype_name(allowed[i]);
	return allowed[read_choice(r, key, names, n, 0)];
}

static void read_sizes(struct draft *d)
{
	struct reader *top = &d->top, *p = &d->parallel;
	struct ft_plan *plan = d->plan;

	if (read_need(top, "sequence_length"))
		plan->sequence = read_int(top, "sequence_length", 1, LIMIT_SEQUENCE, 1);
	if (read_need(top, "global_batch_size"))
		plan->global_batch =
			read_int(top, "global_batch_size", 1, LIMIT_BATCH, 1);
	plan->micro_batch = read_int(top, "micro_batch_size", 1, LIMIT_BATCH, 1);
	plan->tp = read_int(p, "tp", 1, LIMIT_BATCH, 1);
	plan->pp = read_int(p, "pp", 1, LIMIT_BATCH, 1);
	plan->cp = read_int(p, "cp", 1, LIMIT_BATCH, 1);
	plan->ep = read_int(p, "ep", 1, LIMIT_BATCH, 1);
	plan->etp = read_int(p, "etp", 1, LIMIT_BATCH, 1);
	plan->vpp = read_int(p, "vpp", 1, 1 << 16, 1);
	if (plan->pp == 1)
		plan->vpp = 1; /* nothing to interleave with */
}

static void read_words(struct draft *d)
{
	static const enum ft_dtype precisions[] = { FT_BF16,	     FT_FP16,  FT_FP8,
						    FT_FP8_BLOCK128, FT_MXFP8, FT_NVFP4,
						    FT_MXFP4 };
	struct reader *r = &d->top, *o = &d->overlap;
	struct ft_plan *plan = d->plan;
	int sharding = read_choice(r, "sharding", sharding_names, 7, FT_ZERO1);

	plan->sharding = sharding == 6 ? FT_FSDP : (enum ft_sharding)sharding;
	schedule_read(r, plan);
	plan->recompute = (enum ft_recompute)read_choice(
		r, "recompute", recompute_names, 3, FT_RECOMPUTE_NONE);
	plan->step_start = (enum ft_step_start)read_choice(r, "step_start", start_names,
							   2, FT_STEADY);
	if (!strcmp(read_text(r, "precision", ""), "fp32"))
		reader_fail(r, "precision", "fp32 is not simulated; use bf16");
	plan->precision = read_dtype(r, "precision", 7, precisions);
	plan->reshard_stated = read_has(r, "reshard_after_forward");
	plan->reshard_after_forward =
		read_bool(r, "reshard_after_forward", plan_reshards(plan));
	plan->sequence_parallel =
		read_bool(r, "sequence_parallel", plan->tp > 1) && plan->tp > 1;
	plan->overlap_tp = read_bool(o, "tp", false);
	plan->overlap_dp = read_bool(o, "dp", true);
	plan->overlap_pp = read_bool(o, "pp", true);
	plan->copy_engines = read_bool(o, "copy_engines", false);
	recipe_read(r, o, plan);
	lora_read(r, d->model, d->context, plan);
}

/* Record a mistake at the first of these keys of `parallel` that was given, or
 * at the cluster's size when none was. NULL ends the list. */
static bool blame(struct draft *d, const char *const *keys, const char *text)
{
	struct ft_error *err = d->top.err;

	if (d->top.failed || d->parallel.failed)
		return false;
	for (; *keys; keys++)
		if (read_has(&d->parallel, *keys)) {
			struct ft_mark at = reader_mark(&d->parallel, *keys);

			d->parallel.failed = true;
			return ft_fail(err, &at, "%s", text);
		}
	d->top.failed = true;
	return ft_fail(err, &d->context->gpus, "%s", text);
}

#define BLAME(d, keys, ...) blame(d, keys, arena_printf((d)->mem, __VA_ARGS__))

static const char *const at_tp[] = { "tp", NULL };
static const char *const at_pp[] = { "pp", "vpp", NULL };
static const char *const at_vpp[] = { "vpp", "pp", NULL };
static const char *const at_cp[] = { "cp", NULL };
static const char *const at_ep[] = { "ep", "etp", NULL };
static const char *const at_etp[] = { "etp", "ep", NULL };
/* The first of them at which their product stops to divide the ranks. */
static const char *const *at_split(const struct ft_plan *p, long long ranks)
{
	if (ranks % p->tp)
		return at_tp;
	return ranks % (p->tp * p->pp) ? at_pp : at_cp;
}

static bool set_dp(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	long long tp = plan->tp, pp = plan->pp, cp = plan->cp;
	long long ranks = d->context->ranks;
	/* Each factor fits 30 bits, so the first product fits 60. */
	bool fits = tp * pp <= ranks && tp * pp * cp <= ranks;

	plan->ranks = ranks;
	if (!fits || ranks % (tp * pp * cp))
		return BLAME(d, at_split(plan, ranks),
			     "tp %lld x pp %lld x cp %lld does not divide the "
			     "%lld ranks of the cluster",
			     tp, pp, cp, ranks);
	plan->dp = ranks / (tp * pp * cp);
	return true;
}

/* Splits of one layer over tp. kv_heads below tp are replicated. */
static bool check_layer(struct draft *d, const struct ft_layer *l)
{
	long long tp = d->plan->tp, kv = l->kv_heads;

	if (l->short_conv && l->linear_heads % tp)
		return BLAME(d, at_tp,
			     "tp %lld does not divide the %lld channels of a "
			     "convolution",
			     tp, (long long)l->linear_heads);
	if (l->linear_heads % tp || l->linear_key_heads % tp)
		return BLAME(d, at_tp,
			     "tp %lld does not divide the %lld %s and %lld heads of %s",
			     tp, (long long)l->linear_key_heads,
			     l->state_chunk ? "groups" : "key heads",
			     (long long)l->linear_heads,
			     l->state_chunk ? "a state space" : "a delta rule");
	if (l->heads % tp)
		return BLAME(d, at_tp,
			     "tp %lld does not divide the %lld attention heads", tp,
			     (long long)l->heads);
	if (kv % tp && tp % kv)
		return BLAME(d, at_tp,
			     "tp %lld neither divides the %lld key-value heads "
			     "nor is a multiple of them",
			     tp, kv);
	if (l->intermediate % tp || l->shared_intermediate % tp)
		return BLAME(d, at_tp, "tp %lld does not divide the MLP width %lld", tp,
			     (long long)(l->intermediate + l->shared_intermediate));
	return true;
}

static bool check_experts(struct draft *d, const struct ft_layer *l)
{
	long long ep = d->plan->ep, etp = d->plan->etp;

	if (l->experts % ep)
		return BLAME(d, at_ep, "ep %lld does not divide the %lld experts", ep,
			     (long long)l->experts);
	if (l->expert_intermediate % etp)
		return BLAME(d, at_etp,
			     "etp %lld does not divide the expert width %lld", etp,
			     (long long)l->expert_intermediate);
	return true;
}

static bool check_layers(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	long long within = plan->tp * plan->cp * plan->dp;
	bool routed = false;

	for (int64_t i = 0; i < d->model->n_layers; i++)
		routed = routed || d->model->layer[i].experts;
	if (!routed)
		plan->ep = plan->etp = 1; /* they cannot apply */
	if (plan->ep * plan->etp > within || within % (plan->ep * plan->etp))
		return BLAME(d, at_ep,
			     "ep %lld x etp %lld does not divide the %lld ranks "
			     "of a pipeline stage (tp x cp x dp)",
			     (long long)plan->ep, (long long)plan->etp, within);
	plan->edp = within / (plan->ep * plan->etp);
	for (int64_t i = 0; i < d->model->n_layers; i++)
		if (!check_layer(d, &d->model->layer[i]) ||
		    !check_experts(d, &d->model->layer[i]))
			return false;
	return true;
}

/* A causal sequence is cut into 2 cp pieces, one early and one late for each
 * rank; sequence parallelism cuts what a rank has by tp. */
static bool check_sequence(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	long long sequence = plan->sequence, cp = plan->cp, tp = plan->tp;

	if (cp > 1 && d->context->no_context)
		return BLAME(
			d, at_cp,
			"cp %lld: %s, which no context group shares; leave cp out, "
			"or take a stack whose attention is fused here",
			cp, d->context->no_context);
	if (cp > 1 && sequence % (2 * cp))
		return BLAME(d, at_cp,
			     "sequence_length %lld is not a multiple of 2 x cp = "
			     "%lld",
			     sequence, 2 * cp);
	if (plan->sequence_parallel && sequence / cp % tp)
		return BLAME(d, at_tp,
			     "tp %lld does not divide the %lld tokens a rank "
			     "has of a sequence; or set sequence_parallel: "
			     "false",
			     tp, sequence / cp);
	return true;
}

static bool set_batches(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	int64_t whole = plan->dp * plan->micro_batch, mine;

	if (plan->global_batch % (d->context->ragged_batch ? plan->dp : whole))
		return reader_fail(&d->top, "global_batch_size",
				   d->context->ragged_batch ?
					   "%lld is not a multiple of dp %lld" :
					   "%lld is not a multiple of dp %lld x "
					   "micro_batch_size %lld = %lld",
				   (long long)plan->global_batch, (long long)plan->dp,
				   (long long)plan->micro_batch, (long long)whole);
	mine = plan->global_batch / plan->dp;
	plan->micro_batches = ceil_div(mine, plan->micro_batch);
	if ((double)plan->pp * (double)plan->vpp * (double)plan->micro_batches >
	    LIMIT_CHUNK_RUNS)
		return reader_fail(
			&d->top, "global_batch_size",
			"%lld micro-batches x pp %lld x vpp %lld is too much "
			"to simulate, at most %d in all; take a larger "
			"micro_batch_size",
			(long long)plan->micro_batches, (long long)plan->pp,
			(long long)plan->vpp, (int)LIMIT_CHUNK_RUNS);
	plan->last_micro_batch = mine - (plan->micro_batches - 1) * plan->micro_batch;
	return schedule_flushes(plan) ||
	       reader_fail(&d->top, "pipeline_flushes",
			   "%lld runs of the pipeline are not of the same size: each "
			   "replica has %lld micro-batches of %lld sequences%s",
			   (long long)plan->flushes, (long long)plan->micro_batches,
			   (long long)plan->micro_batch,
			   plan->last_micro_batch == plan->micro_batch ?
				   "" :
				   ", the last a smaller one");
}

/* Of all replicas: a micro-batch in each run of the pipeline. */
static long long sequences_of_one(const struct ft_plan *plan)
{
	return (long long)(plan->micro_batches / ft_plan_run(plan) * plan->micro_batch *
			   plan->dp);
}

static const char *in_a_run(const struct ft_plan *plan)
{
	return ft_plan_run(plan) < plan->micro_batches ? " in a run of the pipeline" :
							 "";
}

/* Its forwards and backwards of different micro-batches meet only in a pipeline that has
 * enough of them. */
static bool check_dualpipe(struct draft *d)
{
	const struct ft_plan *plan = d->plan;
	long long least = 2 * plan->pp;

	if (d->context->open)
		return true;
	if (plan->pp == 1)
		return BLAME(
			d, at_pp,
			"schedule dualpipev runs in a pipeline, pp 2 or more; with "
			"pp 1 set schedule: 1f1b");
	if (ft_plan_run(plan) >= least)
		return true;
	return reader_fail(&d->top, "global_batch_size",
			   "%lld is %lld micro-batches of each replica%s, schedule "
			   "dualpipev needs 2 x pp = %lld or more: global_batch_size "
			   "%lld, or a smaller micro_batch_size or pp",
			   (long long)plan->global_batch, (long long)ft_plan_run(plan),
			   in_a_run(plan), least, least * sequences_of_one(plan));
}

static bool set_schedule(struct draft *d)
{
	struct ft_plan *plan = d->plan;

	if (plan->schedule == FT_1F1B && plan->vpp > 1)
		plan->schedule = FT_INTERLEAVED;
	if (plan->schedule == FT_INTERLEAVED && plan->vpp == 1)
		plan->schedule = FT_1F1B; /* one chunk: the same thing */
	if (plan->schedule == FT_GPIPE && plan->vpp > 1)
		return reader_fail(&d->parallel, "vpp",
				   "schedule gpipe runs one chunk a stage, not "
				   "%lld",
				   (long long)plan->vpp);
	if (ft_schedule_folds(plan->schedule) && plan->pp > 1 && plan->vpp != 2)
		return BLAME(d, at_vpp,
			     "schedule %s runs two chunks a stage, not %lld; set "
			     "vpp: 2",
			     ft_schedule_name(plan->schedule), (long long)plan->vpp);
	return plan->schedule != FT_DUALPIPEV || check_dualpipe(d);
}

/* One copy of sharded state lies over dp x cp ranks: those that hold the same
 * part of the model. hsdp: over as many of them as a node has. */
static bool set_shard(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	int64_t same = plan->dp * plan->cp;
	int64_t near = ft_plan_near_shard(plan, d->context->ranks_per_node);
	int64_t shard = read_int(&d->top, "shard", 1, LIMIT_BATCH, near);

	plan_unwrap(plan, d->context);
	plan->shard = !ft_plan_divides(plan) ? 1 :
		      ft_plan_zero(plan)     ? plan->zero_group :
					       same;
	if (plan->sharding == FT_ALONE && same > 1)
		return reader_fail(
			&d->top, "sharding",
			"none is for one rank alone, but %lld ranks hold the same part "
			"of the model (dp x cp), and their gradients have to be "
			"summed; set ddp, or zero1, fsdp or another that divides "
			"their state",
			(long long)same);
	if (plan->sharding != FT_HSDP)
		return true;
	if (same % shard)
		return reader_fail(&d->top, "shard",
				   "%lld does not divide the %lld ranks of "
				   "dp x cp",
				   (long long)shard, (long long)same);
	plan->shard = shard;
	return true;
}

static bool set_stages(struct draft *d)
{
	struct ft_plan *plan = d->plan;
	int64_t chunks = plan->pp * plan->vpp, layers = d->model->n_layers;

	if (read_has(&d->parallel, "stage_layers")) {
		plan->stage_layers = stages_read(d->mem, &d->parallel, "stage_layers",
						 chunks, layers);
		return !d->parallel.failed;
	}
	plan->stage_layers = stages_even(d->mem, layers, chunks);
	if (plan->stage_layers)
		return true;
	return BLAME(d, at_pp,
		     "pp %lld x vpp %lld wants more stages than the model's "
		     "%lld layers",
		     (long long)plan->pp, (long long)plan->vpp, (long long)layers);
}

/* Has some chunk nothing to run? Its passes wait for none. */
static bool some_are_empty(const struct ft_plan *plan)
{
	for (int64_t c = 1; c < plan->pp * plan->vpp - 1; c++)
		if (!plan->stage_layers[c])
			return true;
	return false;
}

static bool check_circle(struct draft *d)
{
	const struct ft_plan *plan = d->plan;
	int64_t nearest;

	/* of those with empty chunks the engine says it */
	if (interleave_ends(plan) || some_are_empty(plan))
		return true;
	nearest = interleave_nearest(plan);
	return reader_fail(
		&d->top, "global_batch_size",
		"%lld is %lld micro-batches of each replica%s, which vpp %lld has in "
		"groups of pp %lld: passes of the %lld left over wait for each other "
		"without end; nearest is %lld micro-batches, global_batch_size %lld, or "
		"another micro_batch_size, vpp or pp",
		(long long)plan->global_batch, (long long)ft_plan_run(plan),
		in_a_run(plan), (long long)plan->vpp, (long long)plan->pp,
		(long long)(ft_plan_run(plan) % plan->pp), (long long)nearest,
		(long long)nearest * sequences_of_one(plan));
}

static bool close_all(struct draft *d)
{
	bool top, parallel, overlap;

	reader_allow(&d->top, "parallel");
	reader_allow(&d->top, "overlap");
	reader_allow(&d->top, "shard");
	reader_allow(&d->parallel, "stage_layers");
	/* The first mistake is the one in *err: no close may write over it. */
	if (d->top.failed || d->parallel.failed || d->overlap.failed)
		return false;
	top = reader_close(&d->top);
	parallel = top && reader_close(&d->parallel);
	overlap = parallel && reader_close(&d->overlap);
	return overlap;
}

static bool load(struct draft *d)
{
	read_sizes(d);
	if (d->top.failed || d->parallel.failed)
		return false;
	read_words(d);
	reader_allow(&d->parallel, "stage_layers");
	if (d->top.failed || d->overlap.failed)
		return false;
	return set_dp(d) && check_layers(d) && check_sequence(d) && set_batches(d) &&
	       recipe_check(&d->top, d->model, d->plan) && set_schedule(d) &&
	       set_shard(d) && set_stages(d) && check_circle(d) &&
	       recipe_check_last(&d->top, d->plan, d->context) && close_all(d);
}

struct ft_plan *ft_plan_load(const struct node *node, const struct ft_model *model,
			     const struct ft_plan_context *context,
			     struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);
	struct draft d = {
		.mem = &mem, .model = model, .context = context, .plan = &owned->plan
	};

	owned->plan.any_layout = context->any_layout;
	owned->plan.ranks_per_node = context->ranks_per_node;
	owned->plan.unsharded_pipeline = context->unsharded_pipeline;
	d.top = reader_open(node, err);
	d.parallel = reader_open(read_node(&d.top, "parallel"), err);
	d.overlap = reader_open(read_node(&d.top, "overlap"), err);
	if (d.top.failed || !load(&d)) {
		arena_release(&mem);
		return NULL;
	}
	owned->mem = mem;
	return &owned->plan;
}

void ft_plan_free(struct ft_plan *plan)
{
	struct arena mem;

	if (!plan)
		return;
	mem = ((struct owned *)plan)->mem;
	arena_release(&mem);
}
