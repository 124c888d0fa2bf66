/* cost/cost.c - capital, power and throughput as dollars per million tokens */
#include <math.h>

#include "cost/capital.h"
#include "cost/finance.h"
#include "cost/goodput.h"
#include "cost/power.h"
#include "foretoken/cost.h"

/* For an interval alone: in 17 clusters P10 and P90 of a token's dollars are 0.5 % off those of 131,072 draws by the mean
 * square, 1.7 % at most; of 1,024 draws they are 0.9 and 2.3 % off, of 4,096 0.4 and 0.9 % for a tenth more time. */
enum { INTERVAL_DRAWS = 2048 };

/* A figure of the scenario, or else the book's. */
static double or_book(double given, const struct ft_number *of_book)
{
	return given >= 0 ? given : of_book->value;
}

double ft_cost_electricity_usd_per_kwh(const struct ft_cost_terms *terms,
				       const struct ft_prices *prices)
{
	return or_book(terms->electricity_usd_per_kwh,
		       &prices->electricity_usd_per_kwh);
}

double ft_cost_pue(const struct ft_cost_terms *terms, const struct ft_prices *prices)
{
	return or_book(terms->pue, &prices->pue);
}

double goodput_failures_per_hour(const struct ft_cluster *cluster,
				 const struct ft_prices *prices)
{
	return ft_parts_job_failures_per_hour(cluster->parts) *
	       prices->failure_factor.value;
}

/* Seconds between two failures of the whole cluster; 0: nothing fails. */
static double mtbf_of(const struct ft_purchase *p)
{
	double given = p->terms->failures.failures_per_1000_node_days;
	double per_hour = goodput_failures_per_hour(p->cluster, p->prices);

	if (given >= 0)
		return given > 0 ? goodput_mtbf_s(given, (double)p->cluster->nodes) : 0;
	return per_hour > 0 ? 3600 / per_hour : 0;
}

static struct ft_reliability reliability_of(const struct ft_purchase *p,
					    const struct ft_throughput *t)
{
	const struct ft_failure_terms *f = &p->terms->failures;
	const struct ft_cluster *c = p->cluster;
	int64_t per =
		c->node->nodes_per_price_item > 0 ? c->node->nodes_per_price_item : 1;
	double nodes = (double)c->nodes, mtbf_s = mtbf_of(p);

	return (struct ft_reliability){
		.recovery = f->recovery,
		.gpus = (double)c->gpus,
		/* no more than the job has */
		.blast_gpus = fmin((double)(c->node->gpus * per), (double)c->gpus),
		.mtbf_s = mtbf_s,
		.save_s = f->storage_bytes_per_s > 0 ?
				  t->checkpoint_bytes / f->storage_bytes_per_s :
				  or_book(f->checkpoint_s, &p->prices->checkpoint_s),
		.interval_s = f->interval_s,
		.restart_s = or_book(f->restart_s, &p->prices->restart_s),
		.repair_s = or_book(f->repair_s, &p->prices->repair_s),
		.failover_s = or_book(f->failover_s, &p->prices->failover_s),
		.spares = f->spares,
		.flap_rate_per_s =
			f->flaps_per_1000_node_days * nodes / (1000 * 86400.0),
		.flap_s = or_book(f->flap_s, &p->prices->flap_s),
		.straggler_frac = f->straggler_frac,
	};
}

enum ft_capital cost_capital_of(enum ft_part_class part_class)
{
	switch (part_class) {
	case FT_PART_NETWORK:
		return FT_CAPITAL_NETWORK;
	case FT_PART_SERVER:
	case FT_PART_SPARE:
		return FT_CAPITAL_SERVERS;
	default:
		return FT_CAPITAL_OTHER;
	}
}

struct ft_deal ft_deal_of(const struct ft_purchase *p, const struct ft_throughput *t)
{
	struct ft_deal d = {
		.gpus = (double)p->cluster->gpus,
		.colocation_usd_per_kw_month =
			p->prices->colocation_usd_per_kw_month.value,
		.maintenance_frac = p->prices->maintenance_frac.value,
		.power = power_of(p->cluster, t),
		.goodput = p->terms->goodput,
		.failures = reliability_of(p, t),
		.tokens_per_s = t->tokens_per_s,
		.terms = *p->terms,
	};

	d.terms.pue = ft_cost_pue(p->terms, p->prices);
	power_set(&d);
	if (!p->prices->colocation_includes_power)
		d.electricity_usd_per_kwh =
			ft_cost_electricity_usd_per_kwh(p->terms, p->prices);
	if (p->bom->rented)
		d.rent_usd_per_gpu_hour = p->bom->total_usd / d.gpus;
	for (size_t i = 0; !p->bom->rented && i < p->bom->n_items; i++)
		d.capital_usd[cost_capital_of(p->bom->item[i].part_class)] +=
			p->bom->item[i].total_usd;
	if (!p->bom->rented && !p->bom->n_items) /* a bill of one sum */
		d.capital_usd[FT_CAPITAL_SERVERS] = p->bom->total_usd;
	return d;
}

double ft_deal_average_w(const struct ft_deal *d)
{
	double used = d->terms.utilization_frac;

	return used * d->it_w + (1 - used) * d->idle_w;
}

double ft_deal_goodput(const struct ft_deal *d)
{
	return d->goodput > 0 ? d->goodput : goodput_time_use(&d->failures).productive;
}

double ft_deal_usd_per_million_tokens(const struct ft_deal *d)
{
	double each = d->tokens_per_s / d->gpus;
	/* on demand, hours that are not used are not paid either */
	double kept = d->terms.utilization_frac * ft_deal_goodput(d);

	return ft_deal_usd_per_gpu_hour(d) * 1e6 / (3600 * each * kept);
}

/* Dollars per GPU and hour, account by account. */
static void set_rates(const struct ft_deal *d, struct ft_cost *cost)
{
	double years = d->terms.horizon_years, i = d->terms.cost_of_capital_frac;
	double recovery = finance_recovery(i, years) * years;
	struct ft_flows f;

	ft_flows_of(d, &f);
	for (size_t k = 0; k < f.n; k++) {
		const struct ft_flow *x = &f.flow[k];
		double running = x->usd / f.gpu_hours;
		double capital = running * recovery * finance_worth(i, x->month);

		switch (x->account) {
		case FT_ACCOUNT_RENT:
			cost->rent_usd_per_gpu_hour += running;
			break;
		case FT_ACCOUNT_PREPAYMENT:
			cost->rent_usd_per_gpu_hour += capital;
			break;
		case FT_ACCOUNT_COLOCATION:
			cost->colocation_usd_per_gpu_hour += running;
			break;
		case FT_ACCOUNT_ELECTRICITY:
			cost->electricity_usd_per_gpu_hour += running;
			break;
		case FT_ACCOUNT_MAINTENANCE:
			cost->maintenance_usd_per_gpu_hour += running;
			break;
		case FT_ACCOUNT_STAFF:
		case FT_ACCOUNT_LICENCES:
		case FT_ACCOUNT_INSURANCE:
			cost->staff_usd_per_gpu_hour += running;
			break;
		default:
			cost->capital_usd_per_gpu_hour += capital;
		}
	}
	cost->usd_per_gpu_hour = ft_deal_usd_per_gpu_hour(d);
}

/* P10 and P90, by draws of all that is uncertain; the values alone where none are asked. */
static bool set_interval(const struct ft_purchase *p, const struct ft_throughput *t,
			 struct ft_cost *cost, struct ft_error *err)
{
	const struct ft_side side = { .purchase = *p, .throughput = *t };
	struct ft_odds odds;

	cost->usd_per_million_tokens_low = cost->usd_per_million_tokens_high =
		cost->usd_per_million_tokens;
	cost->usd_per_gpu_hour_low = cost->usd_per_gpu_hour_high =
		cost->usd_per_gpu_hour;
	cost->facility_provisioned_w_low = cost->facility_provisioned_w_high =
		cost->facility_provisioned_w;
	cost->average_power_w_low = cost->average_power_w_high = cost->average_power_w;
	cost->joules_per_token_low = cost->joules_per_token_high =
		cost->joules_per_token;
	if (p->point || !(t->tokens_per_s > 0))
		return true;
	if (!ft_odds_of(&side, 1, INTERVAL_DRAWS, &odds, err))
		return false;
	ft_odds_ranges(&odds, 0, cost);
	return true;
}

static void set_tokens(const struct ft_deal *d, struct ft_cost *cost)
{
	cost->usd_per_million_tokens = ft_deal_usd_per_million_tokens(d);
	cost->tokens_per_usd = 1e6 / cost->usd_per_million_tokens;
	/* power is drawn by tokens that are lost again, too, and between jobs */
	cost->joules_per_token =
		cost->average_power_w /
		(d->tokens_per_s * d->terms.utilization_frac * cost->goodput);
	cost->provisioned_joules_per_token =
		cost->provisioned_w * d->terms.pue / d->tokens_per_s;
}

/* No tokens at any price: said, as dollars of 0 would win every comparison. */
static bool no_goodput(const struct ft_reliability *r, struct ft_error *err)
{
	if (r->interval_s > r->mtbf_s)
		return ft_fail(
			err, NULL,
			"goodput is 0: a cluster of %.0f GPUs fails every %.0f s, "
			"and a checkpoint is taken every %.0f s; leave "
			"cost.goodput.interval out for the best one",
			r->gpus, r->mtbf_s, r->interval_s);
	return ft_fail(
		err, NULL,
		"goodput is 0: a cluster of %.0f GPUs fails every %.0f s, and a checkpoint "
		"takes %.0f s, a restart %.0f s; set cost.goodput, or take a price "
		"book of a lower failure_factor",
		r->gpus, r->mtbf_s, r->save_s, r->restart_s);
}

static void set_capital(const struct ft_purchase *p, struct ft_cost *cost)
{
	for (int k = 0; k < FT_PRICE_KINDS; k++)
		cost->by_kind_frac[k] = p->bom->by_kind_usd[k] / p->bom->total_usd;
	if (p->bom->rented)
		return;
	cost->capex_usd = p->bom->total_usd;
	cost->capex_network_usd = p->bom->network_usd;
}

static void set_power(const struct ft_deal *d, struct ft_cost *cost)
{
	cost->facility_provisioned_w = d->provisioned_w * d->terms.pue;
	cost->it_power_w = d->it_w;
	cost->facility_power_w = d->it_w * d->terms.pue;
	cost->gpu_power_w = d->power.gpus > 0 ? power_of_gpu_w(&d->power) : 0;
	cost->average_power_w = ft_deal_average_w(d) * d->terms.pue;
	cost->provisioned_w = d->provisioned_w;
}

static bool some_input(const struct ft_purchase *p, const struct ft_throughput *t,
		       struct ft_error *err)
{
	if (!(p->terms->horizon_years > 0) || !(p->bom->total_usd > 0))
		return ft_fail(
			err, NULL,
			"the bill of materials is empty, or cost.horizon is not above 0");
	if (!(t->tokens_per_s >= 0) || !isfinite(t->tokens_per_s))
		return ft_fail(err, NULL, "tokens/s is not a number");
	return true;
}

bool ft_cost_compute(const struct ft_purchase *p, const struct ft_throughput *t,
		     struct ft_cost *cost, struct ft_error *err)
{
	struct ft_deal d;

	if (!some_input(p, t, err))
		return false;
	d = ft_deal_of(p, t);
	*cost = (struct ft_cost){
		.utilization_frac = p->terms->utilization_frac,
		.goodput = ft_deal_goodput(&d),
	};
	if (d.goodput > 0)
		cost->time.productive = d.goodput;
	else
		cost->time = goodput_time_use(&d.failures);
	if (!(cost->goodput > 1e-6))
		return no_goodput(&d.failures, err);
	set_capital(p, cost);
	set_power(&d, cost);
	set_rates(&d, cost);
	if (t->tokens_per_s > 0) /* else what an hour costs is all that is asked */
		set_tokens(&d, cost);
	if (!set_interval(p, t, cost, err))
		return false;
	return (isfinite(cost->usd_per_gpu_hour) && cost->usd_per_gpu_hour > 0 &&
		isfinite(cost->usd_per_million_tokens)) ||
	       ft_fail(err, NULL,
		       "the cost is not a finite number of dollars; check `cost` "
		       "and the price book");
}
