/* study/verdict.c - whose tokens are cheaper, with which odds, and why */
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/whole.h"
#include "foretoken/study_decide.h"

/* Do both cost the same in every draw, so that they share those in which they are the cheapest? */
static bool twins(const struct ft_odds *odds, size_t i, size_t k)
{
	return i != k && odds->cheapest_frac[i] > 0 && odds->cheapest_frac[k] > 0 &&
	       odds->below[i][k] <= 0 && odds->below[k][i] <= 0;
}

static size_t twins_of(const struct ft_odds *odds, size_t i)
{
	size_t n = 0;

	for (size_t k = 0; k < odds->n; k++)
		n += twins(odds, i, k);
	return n;
}

/* In which share of the draws a scenario is the cheapest, its twins counted as one with it. */
static double often(const struct ft_odds *odds, size_t i)
{
	return odds->cheapest_frac[i] * (double)(1 + twins_of(odds, i));
}

/* Of two that are equally often the cheapest, the one of fewer dollars. */
static bool more_often(const struct ft_odds *odds, size_t i, size_t k)
{
	double x = often(odds, i), y = often(odds, k);

	if (x < y || x > y)
		return x > y;
	return odds->p50[FT_DRAWN_USD][i] < odds->p50[FT_DRAWN_USD][k];
}

/* The scenario that is the cheapest most often, of those that fit where any does, other than one and
 * (apart) its twins; n: none. */
static size_t most_often(const struct ft_verdict *v, const struct ft_outcome *o,
			 size_t except, bool apart)
{
	const struct ft_odds *odds = &v->odds;
	size_t best = odds->n;

	for (size_t i = 0; i < odds->n; i++)
		if (i != except && (o[i].fits || !v->n_fit) &&
		    !(apart && except < odds->n && twins(odds, i, except)) &&
		    (best == odds->n || more_often(odds, i, best)))
			best = i;
	return best;
}

/* The best scenario and its rival, which fits if it is not the only one to. A twin is the rival only
 * where there is no other. */
static void decide(struct ft_verdict *v, const struct ft_outcome *o)
{
	const struct ft_odds *odds = &v->odds;

	v->best = most_often(v, o, odds->n, true);
	v->second = most_often(v, o, v->best, true);
	v->probability = often(odds, v->best);
	v->n_twins = twins_of(odds, v->best);
	if (v->second == odds->n) {
		v->second = most_often(v, o, v->best, false);
		v->probability = odds->cheapest_frac[v->best];
		v->n_twins = 0;
	}
	if (v->second == odds->n) /* none but the best fits */
		v->second = !v->best;
	v->tie = !v->n_fit || v->probability < FT_ODDS_DECIDED;
}

/* Servers (or racks) that the bill lists, spares too. */
static double servers_of(const struct ft_scenario *s)
{
	int64_t per = s->cluster->node->nodes_per_price_item;

	return (double)(ceil_div(s->cluster->nodes, per) +
			s->cluster->parts->spare_nodes / per);
}

/* What would make the second as cheap as the best. A server is told at what is paid for it, as --price takes it: with the
 * adapters that a book lists apart. */
static void cross(struct ft_verdict *v, const struct ft_scenario *second,
		  const struct ft_bom *bill, const struct ft_deal *deal)
{
	double servers = servers_of(second);

	v->n_crossovers =
		ft_deals_crossovers(&deal[v->best], &deal[v->second], servers,
				    ft_plan_flop_per_token(second->model, second->plan,
							   second->model->causal),
				    v->crossover);
	for (size_t k = 0; k < v->n_crossovers; k++)
		if (!strcmp(v->crossover[k].what, "price of a server")) {
			v->crossover[k].now += bill->apart_usd / servers;
			v->crossover[k].value += bill->apart_usd / servers;
		}
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
		v->n_fit += o[i].fits;
	}
	if (!ft_odds_of(side, n, draws, &v->odds, err))
		return false;
	decide(v, o);
	if (v->n_fit < 2)
		return true;
	v->likely_otherwise = ft_deal_usd_per_million_tokens(&deal[v->second]) <
			      ft_deal_usd_per_million_tokens(&deal[v->best]);
	if (v->likely_otherwise)
		return true;
	cross(v, s[v->second], o[v->second].bom, deal);
	return true;
}

/* At most a hundred bytes, and no character of UTF-8 cut. */
static int shown_bytes(const char *text)
{
	size_t n = strlen(text);

	if (n <= 100)
		return (int)n;
	for (n = 100; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		;
	return (int)n;
}

const char *ft_verdict_sentence(const struct ft_verdict *v, const char *const *label,
				char text[FT_SENTENCE])
{
	PLAIN_NUMBERS;
	const struct ft_odds *p = &v->odds;
	const double *p10 = p->p10[FT_DRAWN_USD], *p50 = p->p50[FT_DRAWN_USD],
		     *p90 = p->p90[FT_DRAWN_USD];
	size_t a = v->best, b = v->second;
	int first = shown_bytes(label[a]), second = shown_bytes(label[b]);

	if (!v->n_fit)
		snprintf(text, FT_SENTENCE,
			 "No plan fits in memory, so none is the cheaper one.");
	else if (v->n_fit == 1)
		snprintf(text, FT_SENTENCE,
			 "%.*s alone has a plan that fits in memory. USD per "
			 "million tokens, P50 (P10 to P90): %.4g (%.4g to %.4g).",
			 first, label[a], p50[a], p10[a], p90[a]);
	else if (twins(p, a, b))
		snprintf(text, FT_SENTENCE,
			 "%.*s and %.*s cost the same in every draw. USD per million "
			 "tokens, P50 (P10 to P90): %.4g (%.4g to %.4g).",
			 first, label[a], second, label[b], p50[a], p10[a], p90[a]);
	else
		snprintf(
			text, FT_SENTENCE,
			"%.*s%s is %s with probability %.2f: %s. USD per million tokens, P50 (P10 "
			"to P90): %.4g (%.4g to %.4g), against %.4g (%.4g to %.4g) with %.*s.",
			first, label[a], v->n_twins ? " (and what costs the same)" : "",
			p->n > 2 ? "the cheapest" : "cheaper", v->probability,
			v->tie ? "no clear winner" : "a clear winner", p50[a], p10[a],
			p90[a], p50[b], p10[b], p90[b], second, label[b]);
	return text;
}

/* The scenario at the size at which it is worth the same as the first. */
static bool make_alike(const struct ft_scenario **s, const struct ft_outcome *o,
		       size_t i, enum ft_basis basis, struct ft_error *err)
{
	int64_t gpus = ft_study_fleet_like(s[0], &o[0], s[i], basis, err);
	struct ft_scenario *sized =
		gpus ? ft_scenario_resized(s[i], gpus, 1, err) : NULL;

	if (!sized)
		return false;
	sized->memory_chart = s[i]->memory_chart;
	sized->searched = s[i]->searched;
	ft_scenario_free((struct ft_scenario *)s[i]);
	s[i] = sized;
	return true;
}

/* *n: outcomes that are held. */
static bool simulate_all(const struct ft_scenario **s, struct ft_outcome *o,
			 size_t asked, enum ft_basis basis, size_t *n,
			 struct ft_error *err)
{
	for (*n = 0; *n < asked; ++*n) {
		if (*n && basis != FT_EQUAL_GPUS && !make_alike(s, o, *n, basis, err))
			return false;
		if (!ft_study_simulate(s[*n], NULL, NULL, &o[*n], err))
			return false;
		if (!ft_study_run(s[*n], &o[*n], err)) {
			++*n;
			return false;
		}
	}
	return true;
}

bool ft_study_compare(const struct ft_scenario **s, struct ft_outcome *o, size_t n,
		      const struct ft_compared *how, struct ft_verdict *v,
		      struct ft_error *err)
{
	PLAIN_NUMBERS;
	size_t held;

	if (!simulate_all(s, o, n, how->basis, &held, err) ||
	    !ft_study_verdict(s, o, n, how->draws, v, err)) {
		for (size_t i = 0; i < held; i++)
			ft_outcome_release(&o[i]);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		ft_odds_ranges(&v->odds, i, &o[i].cost);
	return true;
}
