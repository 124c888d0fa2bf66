/* cost/odds_at.c - deals at a draw of what is uncertain about them */
#include <math.h>

#include "cost/odds.h"
#include "cost/power.h"

/* What its power is computed from; false: it is something else. */
static bool apply_power(struct ft_power *p, const struct use *u, double amount)
{
	switch (u->target) {
	case OF_CLOCK_EXPONENT:
		p->clock_exponent = amount;
		return true;
	case OF_MEMORY_FRAC:
		p->memory_frac = amount;
		return true;
	case OF_WAITING_FRAC:
		p->waiting_frac = amount;
		return true;
	case OF_IDLE_W:
		p->idle_w = amount;
		return true;
	case OF_LIMIT_W:
		p->limit_w = amount;
		return true;
	case OF_OTHERS_W: /* many parts */
		p->others_w += amount - u->likely;
		return true;
	case OF_OTHERS_TYPICAL_W:
		p->others_typical_w += amount - u->likely;
		return true;
	case OF_SPARES_W:
		p->spares_w += amount - u->likely;
		return true;
	default:
		return false;
	}
}

/* What its goodput is computed from; false: it is something else. */
static bool apply_failures(struct ft_reliability *r, const struct use *u, double times)
{
	double amount = u->likely * times;

	switch (u->target) {
	case OF_FAILURES:
		r->mtbf_s /= times;
		return true;
	case OF_CHECKPOINT:
		r->save_s = amount;
		return true;
	case OF_RESTART:
		r->restart_s = amount;
		return true;
	case OF_REPAIR:
		r->repair_s = amount;
		return true;
	case OF_FAILOVER:
		r->failover_s = amount;
		return true;
	case OF_FLAP:
		r->flap_s = amount;
		return true;
	default:
		return false;
	}
}

/* times: the amount over its likely value. */
static void apply(struct ft_deal *d, const struct use *u, double times)
{
	double amount = u->likely * times;

	if (apply_power(&d->power, u, amount) || apply_failures(&d->failures, u, times))
		return;
	switch (u->target) {
	case OF_RENT:
		d->rent_usd_per_gpu_hour = amount;
		break;
	case OF_COLOCATION:
		d->colocation_usd_per_kw_month = amount;
		break;
	case OF_ELECTRICITY:
		d->electricity_usd_per_kwh = amount;
		break;
	case OF_OVERHEAD:
		d->terms.pue = 1 + (d->terms.pue - 1) * times;
		break;
	case OF_MAINTENANCE:
		d->maintenance_frac = amount;
		break;
	case OF_UTILIZATION:
		d->terms.utilization_frac =
			fmax(0.01, 1 - (1 - d->terms.utilization_frac) * times);
		break;
	case OF_TOKENS:
		d->tokens_per_s = amount;
		break;
	default: /* bills have several lines of one kind */
		d->capital_usd[u->target - OF_CAPITAL] += amount - u->likely;
	}
}

static void read_out(const struct ft_deal *d, double of[FT_DRAWN])
{
	double kept = d->tokens_per_s * ft_deal_goodput(d);
	double used = kept * d->terms.utilization_frac;
	double usd = ft_deal_usd_per_million_tokens(d);
	double average_w = ft_deal_average_w(d) * d->terms.pue;

	of[FT_DRAWN_USD] = usd;
	of[FT_DRAWN_HOUR] = usd * 1e-6 * used * 3600 / d->gpus;
	of[FT_DRAWN_KEPT] = kept;
	of[FT_DRAWN_FULL_W] = d->provisioned_w * d->terms.pue;
	of[FT_DRAWN_AVERAGE_W] = average_w;
	of[FT_DRAWN_JOULES] = average_w / used;
}

void odds_model_at(const struct odds_model *m, const double *z,
		   struct drawn side[FT_SIDES_MOST])
{
	size_t u = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct ft_deal d = m->deal[i];

		for (; u < m->n_uses && m->use[u].side == i; u++) {
			const struct use *use = &m->use[u];

			if (!isnan(z[use->input]))
				apply(&d, use,
				      split_look_up(&m->input[use->input].table,
						    z[use->input]));
		}
		power_set(&d);
		read_out(&d, side[i].of);
	}
}
