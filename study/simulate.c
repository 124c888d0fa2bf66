/* study/simulate.c - one scenario to one answer */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/node.h"
#include "base/plain.h"
#include "foretoken/study.h"
#include "study/evidence.h"
#include "study/traits.h"

/* State or activations, not both: plan_offload_wrong. */
static double node_bytes(const struct ft_scenario *s, const struct ft_graph *g)
{
	return s->plan->offload_state != FT_OFFLOAD_NONE ?
		       ft_plan_node_bytes(s->model, s->plan) :
		       ft_graph_host_bytes(g, s->cluster->ranks_per_node);
}

/* Per-rank peaks become per-card totals; the fullest stage counts. */
static void memory(const struct ft_scenario *s, const struct ft_graph *g,
		   struct ft_outcome *o)
{
	const struct ft_class_result *worst = &o->run->rank_class[0];
	double ranks = (double)s->cluster->gpu->ranks_per_gpu;

	o->host_memory_bytes = node_bytes(s, g);
	for (size_t i = 1; i < o->run->n_classes; i++)
		if (o->run->rank_class[i].peak_total_bytes > worst->peak_total_bytes)
			worst = &o->run->rank_class[i];
	for (int m = 0; m < FT_MEMORIES; m++)
		o->memory_bytes[m] = worst->peak_bytes[m] * ranks;
	o->memory_total_bytes = worst->peak_total_bytes * ranks;
	o->fits = worst->peak_total_bytes <= s->cluster->gpu->memory_bytes.value &&
		  ft_node_memory_frac(s->cluster->node, o->host_memory_bytes) <= 1;
}

static void rates(const struct ft_scenario *s, const struct ft_graph *g,
		  struct ft_outcome *o)
{
	double ranks = (double)s->cluster->ranks;
	double gpus = (double)s->cluster->gpus;
	double peak = s->cluster->gpu->peak_flop_per_s[s->plan->precision].value;
	double causal = ft_plan_flop_per_token(s->model, s->plan, s->model->causal);
	double full = ft_plan_flop_per_token(s->model, s->plan, false);

	o->tokens_per_s = g->tokens / o->step_s;
	o->tokens_per_s_per_gpu = o->tokens_per_s / gpus;
	o->model_flop_per_s_per_gpu = causal * o->tokens_per_s_per_gpu;
	o->tokens_low_per_s = g->tokens / o->step_high_s;
	o->tokens_high_per_s = g->tokens / o->step_low_s;
	o->extrapolated_frac = o->run->extrapolated_frac;
	o->breakdown = o->run->breakdown;
	if (peak <= 0)
		return;
	o->mfu = causal * o->tokens_per_s / (ranks * peak);
	o->mfu_full = full * o->tokens_per_s / (ranks * peak);
	o->hfu = o->mfu -
		 ft_plan_dropped_flop_per_token(s->model, s->plan) * o->tokens_per_s /
			 (ranks * peak) +
		 g->recomputed_flop_per_rank / (o->step_s * peak);
}

/* P10 and P90 of the step, and who says so. */
static bool range(const struct ft_scenario *s, struct ft_outcome *o,
		  struct ft_error *err)
{
	struct evidence_answer said;

	o->step_s = ft_s_from_ps(o->run->step);
	o->traits = traits_of(s, o->run);
	if (!evidence_ask(s->evidence, &o->traits, s->group, &said, err))
		return false;
	o->step_low_s = o->step_s * exp(said.low);
	o->step_high_s = o->step_s * exp(said.high);
	o->gpu_measured = said.gpu_measured;
	o->stack_measured = said.stack_measured;
	o->attention_measured = said.attention_measured;
	o->n_nearest = said.n_nearest;
	memcpy(o->nearest, said.nearest, sizeof(o->nearest));
	return true;
}

static void bottleneck(struct ft_outcome *o)
{
	const struct ft_breakdown *b = &o->breakdown;
	const struct {
		const char *text;
		double s;
	} part[] = {
		{ "compute kernels", b->compute_s },
		{ "communication that nothing hides", b->exposed_communication_s },
		{ "the pipeline bubble", b->bubble_s },
		{ "the host launching kernels", b->host_s },
		{ "the optimizer", b->optimizer_s },
	};
	const struct ft_share *top = o->run->n_shares ? &o->run->share[0] : NULL;
	int worst = 0, second;

	for (int i = 1; i < 5; i++)
		if (part[i].s > part[worst].s)
			worst = i;
	second = worst == 0 ? 1 : 0;
	for (int i = 0; i < 5; i++)
		if (i != worst && part[i].s > part[second].s)
			second = i;
	snprintf(o->bottleneck, sizeof(o->bottleneck),
		 "%.0f %% of the step goes to %s, then %.0f %% to %s; the largest "
		 "single item is %s.",
		 100 * part[worst].s / o->step_s, part[worst].text,
		 100 * part[second].s / o->step_s, part[second].text,
		 top ? top->name : "none");
}

/* Weights as they are trained and the optimizer's state; of adapters alone under LoRA. */
double checkpoint_bytes(const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;
	double trained = p->lora.rank ? ft_model_lora_parameters(s->model, &p->lora) :
					ft_model_parameters(s->model);
	double width = ft_moment_bytes(p, p->master_weights ? 4 : 2);
	double once = p->optimizer != FT_MUON ? 0 :
		      p->lora.rank	      ? trained :
						ft_model_matrix_parameters(s->model);

	return trained * (2 + ft_master_bytes(p)) +
	       trained * ft_optimizer_state_bytes(p->optimizer, width) - width * once;
}

/* A stack by what it takes: one that extends it and changes nothing is the same. */
static void digest_stack(struct ft_digest *d, const struct ft_stack *k)
{
	const double is[] = {
		k->gap_s.value,
		k->gemm_factor.value,
		k->attention_factor.value,
		k->memory_factor.value,
		k->collective_factor.value,
		k->dispatcher_factor.value,
		k->layout.fusion,
		k->layout.tensor_parallel,
	};

	digest_text(d, k->layout.attention);
	digest_bytes(d, is, sizeof(is));
	for (int i = 0; i < FT_HOSTS; i++)
		digest_bytes(d, &k->host_s[i].value, sizeof(k->host_s[i].value));
}

/* What is predicted: another plan of it has the same error, another GPU or stack its own. They and the model go by what
 * they are, since a scenario can tell the same ones in other words. */
static uint64_t job_of_prediction(const struct ft_scenario *s)
{
	const struct ft_gpu *gpu = s->cluster->gpu;
	const struct ft_model *m = s->model;
	const double is[] = {
		gpu->memory_bytes.value,
		gpu->memory_bytes_per_s.value,
		gpu->peak_flop_per_s[FT_BF16].value,
		gpu->peak_flop_per_s[FT_FP16].value,
		gpu->limit_w.value,
		(double)gpu->compute_units,
		(double)m->hidden_size,
		(double)m->n_layers,
		ft_model_parameters(m),
		ft_model_active_parameters(m),
	};
	struct ft_digest d = { 0 };
	uint64_t job;

	digest_stack(&d, s->stack);
	digest_text(&d, gpu->vendor);
	digest_bytes(&d, is, sizeof(is));
	digest_text(&d, ft_dtype_name(s->plan->precision));
	memcpy(&job, &d, sizeof(job));
	return job ? job : 1;
}

struct ft_side ft_outcome_side(const struct ft_scenario *s, const struct ft_outcome *o)
{
	return (struct ft_side){
		{ s->cluster, s->prices, o->bom, &s->terms, s->point },
		{ o->tokens_per_s, o->tokens_low_per_s, o->tokens_high_per_s,
		  o->run->gpu_busy_frac, o->run->gpu_memory_frac,
		  o->run->gpu_slowed_frac, o->run->gpu_waiting_frac,
		  o->run->gpu_bubble_frac, checkpoint_bytes(s), job_of_prediction(s) },
		!o->fits,
	};
}

struct ft_deal ft_outcome_deal(const struct ft_scenario *s, const struct ft_outcome *o)
{
	const struct ft_side side = ft_outcome_side(s, o);

	return ft_deal_of(&side.purchase, &side.throughput);
}

static bool money(const struct ft_scenario *s, struct ft_outcome *o,
		  struct ft_error *err)
{
	struct ft_side side;

	o->bom = ft_bom_build(s->cluster, s->prices, err);
	if (!o->bom)
		return false;
	side = ft_outcome_side(s, o);
	return ft_cost_compute(&side.purchase, &side.throughput, &o->cost, err);
}

/* The step with a chart of its memory. A simulation draws one picture: where a timeline is
 * written as well, the chart takes another one. NULL: why says what is wrong. */
static struct ft_run *run_charted(const struct ft_scenario *s, struct ft_sim_job job,
				  const struct ft_sim_job *beside, struct ft_outcome *o,
				  struct ft_error *why)
{
	struct ft_run *run;
	size_t n = 0;
	FILE *out = allocated(open_memstream(&o->memory_svg, &n));

	job.timeline = FT_TIMELINE_MEMORY;
	run = ft_sim_run(&job, beside, out, s->memo, why);
	if (fclose(out)) {
		ft_run_free(run);
		ft_fail(why, NULL, "the chart of memory cannot be kept: %s",
			strerror(errno));
		why->of_system = true;
		run = NULL;
	}
	if (run)
		return run;
	free(o->memory_svg);
	o->memory_svg = NULL;
	snprintf(o->memory_missing, sizeof(o->memory_missing), "%.199s", why->text);
	return NULL;
}

/* The step, and what is drawn of it. */
static struct ft_run *run(const struct ft_scenario *s, const struct ft_sim_job *job,
			  const struct ft_sim_job *beside, FILE *timeline,
			  struct ft_outcome *o, struct ft_error *err)
{
	struct ft_run *charted = NULL;

	if (s->memory_chart) {
		charted = run_charted(s, *job, beside, o, err);
		/* else it is too large to be drawn, or has no answer: that is told again */
		if (!charted && err->of_system)
			return NULL;
	}
	if (charted && !timeline)
		return charted;
	ft_run_free(charted);
	return ft_sim_run(job, beside, timeline, s->memo, err);
}

/* From the step to the whole answer; what o->run holds is released on failure. */
static bool answer(const struct ft_scenario *s, const struct ft_sim_job *job,
		   const struct ft_sim_job *beside, FILE *timeline,
		   struct ft_outcome *o, struct ft_error *err)
{
	*o = (struct ft_outcome){ 0 };
	o->run = run(s, job, beside, timeline, o, err);
	if (!o->run) {
		ft_outcome_release(o);
		return false;
	}
	memory(s, job->graph, o);
	if (!range(s, o, err)) {
		ft_outcome_release(o);
		return false;
	}
	rates(s, job->graph, o);
	bottleneck(o);
	if (money(s, o, err))
		return true;
	ft_outcome_release(o);
	return false;
}

static struct ft_sim_job job_of(const struct ft_scenario *s, const struct ft_graph *g)
{
	return (struct ft_sim_job){ .graph = g,
				    .cluster = s->cluster,
				    .stack = s->stack,
				    .ccl = s->ccl,
				    .start = s->plan->step_start,
				    .timeline = s->timeline,
				    .drawn_rank = s->timeline_rank,
				    .title = s->label };
}

bool ft_study_simulate(const struct ft_scenario *s, const struct ft_graph *given,
		       FILE *timeline, struct ft_outcome *o, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_graph *built = NULL;
	struct ft_sim_job job;
	bool ok;

	*o = (struct ft_outcome){ 0 };
	if (!given)
		built = ft_scenario_graph(s, err);
	if (!given && !built)
		return false;
	job = job_of(s, given ? given : built);
	ok = answer(s, &job, NULL, timeline, o, err);
	ft_graph_free(built);
	return ok;
}

bool ft_study_goal(const struct ft_scenario *s, FILE *out, struct ft_error *err)
{
	struct ft_graph *g = ft_scenario_graph(s, err);
	struct ft_sim_job job;
	bool ok;

	if (!g)
		return false;
	job = job_of(s, g);
	ok = ft_sim_goal(&job, s->memo, out, err);
	ft_graph_free(g);
	return ok;
}

/* y says nothing of the network, or what x says. */
static bool as_told(const struct ft_imperfections *x, const struct ft_imperfections *y)
{
	bool silent = !y->scattered && !y->failed_spines &&
		      y->failed_uplinks_frac <= 0 && y->slow_nics_frac <= 0;

	return silent || (x->seed == y->seed && x->scattered == y->scattered &&
			  x->failed_spines == y->failed_spines &&
			  x->failed_uplinks_frac == y->failed_uplinks_frac &&
			  x->slow_nics_frac == y->slow_nics_frac &&
			  x->slow_nic_rate_frac == y->slow_nic_rate_frac);
}

/* By its files and what else a scenario says of it: those that are changed share a name. */
static bool same_fabric(const struct ft_scenario *s, const struct ft_scenario *other)
{
	const struct ft_fabric *a = s->cluster->fabric, *b = other->cluster->fabric;
	const struct node *x = node_path(s->given, "cluster.fabric");
	const struct node *y = node_path(other->given, "cluster.fabric");
	struct arena mem = { 0 };
	bool same = !strcmp(a->name, b->name) && a->digest.low == b->digest.low &&
		    a->digest.high == b->digest.high;

	if (same && x && y && x->kind == NODE_MAP && y->kind == NODE_MAP)
		same = !strcmp(node_flow(&mem, x), node_flow(&mem, y));
	arena_release(&mem);
	return same;
}

/* One network under both: the first scenario tells what it is and what has failed. */
static bool share_a_network(const struct ft_scenario *s,
			    const struct ft_scenario *other, struct ft_error *err)
{
	const struct ft_cluster *a = s->cluster, *b = other->cluster;
	const struct ft_mark *at = &b->gpus_mark;

	if (!same_fabric(s, other))
		return ft_fail(err, at,
			       "jobs beside each other share one fabric, "
			       "but %s is on %s and %s on %s, which are not alike",
			       s->file, a->fabric->name, other->file, b->fabric->name);
	if (a->nics_per_node != b->nics_per_node ||
	    a->nic_bytes_per_s != b->nic_bytes_per_s)
		return ft_fail(err, at,
			       "jobs beside each other are on one network, "
			       "but the nodes of %s and %s have different NICs",
			       s->file, other->file);
	if (!as_told(&a->imperfections, &b->imperfections))
		return ft_fail(
			err, at,
			"the network is the one that %s describes: %s cannot have "
			"other faults or another placement",
			s->file, other->file);
	if (b->imperfections.n_slow_gpus)
		return ft_fail(err, at,
			       "slow_gpus are simulated in the first job "
			       "alone: take them out of %s, or name it first",
			       other->file);
	return true;
}

bool ft_study_simulate_beside(const struct ft_scenario *s,
			      const struct ft_scenario *other, FILE *timeline,
			      struct ft_outcome *o, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_graph *g = NULL, *h = NULL;
	struct ft_sim_job job, beside;
	struct ft_run *alone = NULL;
	bool ok = false;

	*o = (struct ft_outcome){ 0 };
	if (!share_a_network(s, other, err))
		return false;
	g = ft_scenario_graph(s, err);
	h = g ? ft_scenario_graph(other, err) : NULL;
	if (h) {
		job = job_of(s, g);
		beside = job_of(other, h);
		beside.idle = true; /* on the same nodes as when it trains */
		alone = ft_sim_run(&job, &beside, NULL, s->memo, err);
		beside.idle = false;
		ok = alone && answer(s, &job, &beside, timeline, o, err);
	}
	if (ok) {
		o->beside = other->file;
		o->step_alone_s = ft_s_from_ps(alone->step);
	}
	ft_run_free(alone);
	ft_graph_free(g);
	ft_graph_free(h);
	return ok;
}

void ft_outcome_release(struct ft_outcome *o)
{
	ft_run_free((struct ft_run *)o->run);
	ft_bom_free((struct ft_bom *)o->bom);
	free(o->memory_svg);
	o->run = NULL;
	o->bom = NULL;
	o->memory_svg = NULL;
}
