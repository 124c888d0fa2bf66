/* study/verdict.c - whose tokens are cheaper, with which odds, and why */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "foretoken/study_decide.h"

/* The scenario that is the cheapest most often, other than one; n: none. */
static size_t most_often(const struct ft_odds *odds, size_t except)
{
	size_t best = odds->n;

	for (size_t i = 0; i < odds->n; i++)
		if (i != except && (best == odds->n ||
				    odds->cheapest_frac[i] > odds->cheapest_frac[best]))
			best = i;
	return best;
}

/* Servers (or racks) that the bill lists, spares too. */
static double servers_of(const struct ft_scenario *s)
{
	int64_t per = s->cluster->node->nodes_per_price_item;

	return (double)((s->cluster->nodes + per - 1) / per +
			s->cluster->parts->spare_nodes);
}

bool ft_study_verdict(const struct ft_scenario *const *s, const struct ft_outcome *o,
		      size_t n, size_t draws, struct ft_verdict *v,
		      struct ft_error *err)
{
	struct ft_side side[FT_SIDES_MOST];
	struct ft_deal deal[FT_SIDES_MOST];

	*v = (struct ft_verdict){ 0 };
	for (size_t i = 0; i < n; i++) {
		side[i] = ft_outcome_side(s[i], &o[i]);
		deal[i] = ft_deal_of(&side[i].purchase, &side[i].throughput);
		ft_deals_explain(&deal[0], &deal[i], v->part_usd[i]);
	}
	if (!ft_odds_of(side, n, draws, &v->odds, err))
		return false;
	v->best = most_often(&v->odds, n);
	v->second = most_often(&v->odds, v->best);
	v->tie = v->odds.cheapest_frac[v->best] < FT_ODDS_DECIDED;
	v->n_crossovers = ft_deals_crossovers(
		&deal[v->best], &deal[v->second], servers_of(s[v->second]),
		ft_plan_flop_per_token(s[v->second]->model, s[v->second]->plan,
				       s[v->second]->model->causal),
		v->crossover);
	return true;
}

const char *ft_verdict_sentence(const struct ft_verdict *v, const char *const *label,
				char text[FT_SENTENCE])
{
	PLAIN_NUMBERS;
	const struct ft_odds *p = &v->odds;
	size_t a = v->best, b = v->second;

	snprintf(
		text, FT_SENTENCE,
		"%.100s is %s with probability %.2f: %s. USD per million tokens, P50 (P10 "
		"to P90): %.4g (%.4g to %.4g), against %.4g (%.4g to %.4g) with %.100s.",
		label[a], p->n > 2 ? "the cheapest" : "cheaper", p->cheapest_frac[a],
		v->tie ? "no clear winner" : "a clear winner", p->p50[a], p->p10[a],
		p->p90[a], p->p50[b], p->p10[b], p->p90[b], label[b]);
	return text;
}
