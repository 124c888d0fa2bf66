/*
 * traces/routed.c - how many copies of tokens go where
 *
 * The fullest rank of an ep group sets the pace, by the stack's expert_spread, where routing is
 * neither forced nor padded.
 */
#include "traces/routed.h"

#include <math.h>

#include <gsl/gsl_cdf.h>

bool runs_all_experts(const struct builder *b)
{
	return b->model->all_experts && b->rules->model_classes;
}

int64_t experts_used(const struct builder *b, const struct ft_layer *l)
{
	return runs_all_experts(b) ? l->experts : l->experts_per_token;
}

int64_t experts_rows(const struct builder *b)
{
	bool all = b->rules->static_buffers && !(b->plan->capacity_factor > 0);

	return all ? b->plan->ep : 1;
}

/* Tokens of the fullest of n ranks over the mean's, where the loads of E experts have the deviation c: those of
 * ranks with E / n of them, which add up to E, are normal numbers of which the largest is expected
 * c sqrt(n / (E - 1)) z above the mean, z the normal quantile of (n - 3/8) / (n + 1/4) (Blom). */
static double fullest(double spread, int64_t experts, int64_t ranks)
{
	double n = (double)ranks;

	if (ranks < 2)
		return 1;
	return 1 + spread * sqrt(n / ((double)experts - 1)) *
			   gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25));
}

static double uneven(const struct builder *b, const struct ft_layer *l)
{
	if (b->plan->capacity_factor > 0)
		return b->plan->capacity_factor;
	if (b->plan->force_balance)
		return 1;
	return fullest(b->rules->expert_spread, l->experts, b->plan->ep);
}

/* Copies that a capacity drops are not sent. Source: megatron/core/transformer/moe/token_dispatcher.py, which masks their experts for DeepEP
 * (read 2026-12-01). */
static struct ft_fanout fanout_of(const struct builder *b, const struct ft_layer *l)
{
	double copies = (double)l->experts_per_token * ft_plan_kept_frac(b->plan);

	if (b->plan->force_balance && b->rules->forced_in_turn)
		return (struct ft_fanout){ copies, 0, (double)l->experts };
	if (l->groups_per_token < l->groups)
		return (struct ft_fanout){ copies, (double)l->groups_per_token,
					   (double)l->groups };
	return (struct ft_fanout){ .copies = copies };
}

struct routed routed_of(const struct builder *b, const struct ft_layer *l)
{
	const struct ft_plan *p = b->plan;
	struct routed r = { .h = ft_layer_expert_hidden(b->model, l) };
	double sent = (double)l->experts_per_token;
	int64_t mean;

	r.direct = p->dispatcher != FT_DISPATCH_ALLTOALL;
	if (r.direct) {
		r.fanout = fanout_of(b, l);
		sent = ft_fanout_reached(r.fanout, (double)p->ep);
	}
	r.tokens = p->sequence_parallel ? b->tokens / p->tp : b->tokens;
	mean = r.tokens * experts_used(b, l) * p->etp;
	r.copies = (int64_t)((double)mean * uneven(b, l));
	/* arrays for what all ranks could send are as long however it is spread */
	r.rows = experts_rows(b) > 1 ? mean * experts_rows(b) : r.copies;
	r.gathered = p->etp;
	r.local = l->experts / p->ep;
	r.width = l->expert_intermediate / p->etp;
	r.bytes = 2 * (double)(r.tokens * r.h) * sent;
	if (!r.direct || !(b->plan->capacity_factor > 0))
		r.bytes *= uneven(b, l); /* that the fullest rank takes in */
	r.gated = b->model->activation == FT_SWIGLU;
	return r;
}
