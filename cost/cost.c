/* cost/cost.c - capital, power and throughput as dollars per million tokens */
#include <assert.h>
#include <math.h>

#include "cost/finance.h"
#include "cost/goodput.h"
#include "cost/power.h"
#include "foretoken/cost.h"

enum { HOURS = 8760 }; /* of a year */

static void set_power(const struct ft_cluster *cluster, const struct ft_throughput *t,
		      const struct ft_cost_terms *terms, struct ft_cost *cost)
{
	const struct ft_throughput idle = { 0 };

	cost->it_power_w = power_it_w(cluster, t);
	cost->facility_power_w = cost->it_power_w * terms->pue;
	cost->average_power_w =
		terms->pue *
		(terms->utilization_frac * cost->it_power_w +
		 (1 - terms->utilization_frac) * power_it_w(cluster, &idle));
	cost->provisioned_w = power_provisioned_w(cluster);
}

double ft_cost_electricity_usd_per_kwh(const struct ft_cost_terms *terms,
				       const struct ft_prices *prices)
{
	return terms->electricity_usd_per_kwh >= 0 ?
		       terms->electricity_usd_per_kwh :
		       prices->electricity_usd_per_kwh.value;
}

/* What is paid at once; or the rent of an hour. */
static void set_capital(const struct ft_purchase *p, struct ft_cost *cost)
{
	double each = p->bom->total_usd / (double)p->cluster->gpus;

	if (p->bom->rented) {
		cost->rent_usd_per_gpu_hour = each;
		return;
	}
	cost->capex_usd = p->bom->total_usd;
	cost->capex_network_usd = p->bom->network_usd;
	cost->capex_usd_per_gpu = each;
}

/* Dollars per GPU and hour, part by part. */
static void set_rates(const struct ft_cluster *cluster, const struct ft_prices *prices,
		      const struct ft_cost_terms *terms, struct ft_cost *cost)
{
	double gpu_hours = (double)cluster->gpus * HOURS;
	double kwh_usd = ft_cost_electricity_usd_per_kwh(terms, prices);

	if (cost->rent_usd_per_gpu_hour > 0) {
		cost->usd_per_gpu_hour = cost->rent_usd_per_gpu_hour;
		return;
	}
	cost->capital_usd_per_gpu_hour =
		finance_per_year_usd(cost->capex_usd, terms->residual_frac,
				     terms->cost_of_capital_frac,
				     terms->horizon_years) /
		gpu_hours;
	cost->maintenance_usd_per_gpu_hour =
		cost->capex_usd * prices->maintenance_frac.value / gpu_hours;
	cost->colocation_usd_per_gpu_hour = cost->provisioned_w / 1000 *
					    prices->colocation_usd_per_kw_month.value *
					    12 / gpu_hours;
	if (!prices->colocation_includes_power)
		cost->electricity_usd_per_gpu_hour =
			cost->average_power_w / 1000 * HOURS * kwh_usd / gpu_hours;
	cost->usd_per_gpu_hour =
		cost->capital_usd_per_gpu_hour + cost->maintenance_usd_per_gpu_hour +
		cost->colocation_usd_per_gpu_hour + cost->electricity_usd_per_gpu_hour;
}

static double goodput(const struct ft_cluster *cluster, const struct ft_prices *prices,
		      const struct ft_cost_terms *terms)
{
	double rate = prices->failures_per_1000_node_days.value;

	if (terms->goodput > 0)
		return terms->goodput;
	if (rate <= 0)
		return 1;
	return goodput_frac(prices->checkpoint_s.value, prices->restart_s.value,
			    goodput_mtbf_s(rate, (double)cluster->nodes));
}

/* Widths of price (of the share that is capital) and throughput, as if
 * independent. */
static void set_interval(const struct ft_bom *bom, const struct ft_throughput *t,
			 struct ft_cost *cost)
{
	double usd = cost->usd_per_million_tokens;
	double share =
		(cost->capital_usd_per_gpu_hour + cost->maintenance_usd_per_gpu_hour +
		 cost->rent_usd_per_gpu_hour) /
		cost->usd_per_gpu_hour;
	double low = t->low > 0 && t->low < t->tokens_per_s ? t->low : t->tokens_per_s;
	double high = t->high > t->tokens_per_s ? t->high : t->tokens_per_s;
	double cheap = share * (1 - bom->low_usd / bom->total_usd);
	double dear = share * (bom->high_usd / bom->total_usd - 1);
	double fast = 1 - t->tokens_per_s / high;
	double slow = t->tokens_per_s / low - 1;

	cost->usd_per_million_tokens_low = usd * (1 - hypot(cheap, fast));
	cost->usd_per_million_tokens_high = usd * (1 + hypot(dear, slow));
}

static void set_tokens(const struct ft_purchase *p, const struct ft_throughput *t,
		       struct ft_cost *cost)
{
	double each = t->tokens_per_s / (double)p->cluster->gpus;
	double kept = cost->utilization_frac * cost->goodput;

	cost->usd_per_million_tokens =
		cost->usd_per_gpu_hour * 1e6 / (3600 * each * kept);
	cost->tokens_per_usd = 1e6 / cost->usd_per_million_tokens;
	/* power is drawn by tokens that are lost again, too, and between jobs */
	cost->joules_per_token = cost->average_power_w / (t->tokens_per_s * kept);
	cost->provisioned_joules_per_token =
		cost->provisioned_w * p->terms->pue / t->tokens_per_s;
	set_interval(p->bom, t, cost);
}

/* No tokens at any price: said, as dollars of 0 would win every comparison. */
static bool no_goodput(const struct ft_cluster *cluster, const struct ft_prices *prices,
		       struct ft_error *err)
{
	return ft_fail(
		err, NULL,
		"goodput is 0: a cluster of %lld nodes fails every %.0f s, and a "
		"checkpoint takes %.0f s, a restart %.0f s; set cost.goodput, or "
		"take a price book with fewer failures_per_1000_node_days",
		(long long)cluster->nodes,
		goodput_mtbf_s(prices->failures_per_1000_node_days.value,
			       (double)cluster->nodes),
		prices->checkpoint_s.value, prices->restart_s.value);
}

bool ft_cost_compute(const struct ft_purchase *p, const struct ft_throughput *t,
		     struct ft_cost *cost, struct ft_error *err)
{
	if (!(p->terms->horizon_years > 0) || !(p->bom->total_usd > 0))
		return ft_fail(
			err, NULL,
			"the bill of materials is empty, or cost.horizon is not above 0");
	if (!(t->tokens_per_s >= 0) || !isfinite(t->tokens_per_s))
		return ft_fail(err, NULL, "tokens/s is not a number");
	*cost = (struct ft_cost){
		.utilization_frac = p->terms->utilization_frac,
		.goodput = goodput(p->cluster, p->prices, p->terms),
	};
	set_capital(p, cost);
	for (int k = 0; k < FT_PRICE_KINDS; k++)
		cost->by_kind_frac[k] = p->bom->by_kind_usd[k] / p->bom->total_usd;
	if (!(cost->goodput > 0))
		return no_goodput(p->cluster, p->prices, err);
	set_power(p->cluster, t, p->terms, cost);
	set_rates(p->cluster, p->prices, p->terms, cost);
	if (t->tokens_per_s > 0) /* else what an hour costs is all that is asked */
		set_tokens(p, t, cost);
	return (isfinite(cost->usd_per_gpu_hour) && cost->usd_per_gpu_hour > 0 &&
		isfinite(cost->usd_per_million_tokens)) ||
	       ft_fail(err, NULL,
		       "the cost is not a finite number of dollars; check `cost` "
		       "and the price book");
}
