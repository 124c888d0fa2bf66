/* cost/odds_at.c - deals at a draw of what is uncertain about them */
#include <math.h>
#include <stddef.h>

#include "cost/odds.h"
#include "cost/power.h"

/* What of a deal a draw sets; bills and powers have several amounts of one kind, which add up.
 * What is not here is set in a way of its own. */
static const struct set {
	size_t at; /* in a deal */
	bool adds;
} sets[] = {
	[OF_RENT] = { offsetof(struct ft_deal, rent_usd_per_gpu_hour), false },
	[OF_COLOCATION] = { offsetof(struct ft_deal, colocation_usd_per_kw_month),
			    false },
	[OF_ELECTRICITY] = { offsetof(struct ft_deal, electricity_usd_per_kwh), false },
	[OF_MAINTENANCE] = { offsetof(struct ft_deal, maintenance_frac), false },
	[OF_TOKENS] = { offsetof(struct ft_deal, tokens_per_s), false },
	[OF_CLOCK_EXPONENT] = { offsetof(struct ft_deal, power.clock_exponent), false },
	[OF_MEMORY_FRAC] = { offsetof(struct ft_deal, power.memory_frac), false },
	[OF_WAITING_FRAC] = { offsetof(struct ft_deal, power.waiting_frac), false },
	[OF_IDLE_W] = { offsetof(struct ft_deal, power.idle_w), false },
	[OF_LIMIT_W] = { offsetof(struct ft_deal, power.limit_w), false },
	[OF_OTHERS_W] = { offsetof(struct ft_deal, power.others_w), true },
	[OF_OTHERS_TYPICAL_W] = { offsetof(struct ft_deal, power.others_typical_w),
				  true },
	[OF_SPARES_W] = { offsetof(struct ft_deal, power.spares_w), true },
	[OF_CHECKPOINT] = { offsetof(struct ft_deal, failures.save_s), false },
	[OF_RESTART] = { offsetof(struct ft_deal, failures.restart_s), false },
	[OF_REPAIR] = { offsetof(struct ft_deal, failures.repair_s), false },
	[OF_FAILOVER] = { offsetof(struct ft_deal, failures.failover_s), false },
	[OF_FLAP] = { offsetof(struct ft_deal, failures.flap_s), false },
};

/* times: the amount over its likely value. */
static void apply(struct ft_deal *d, const struct use *u, double times)
{
	double amount = u->likely * times, used = d->terms.utilization_frac, *at;

	if (u->target < OF_RENT) {
		d->capital_usd[u->target - OF_CAPITAL] += amount - u->likely;
	} else if (u->target == OF_OVERHEAD) {
		d->terms.pue = 1 + (d->terms.pue - 1) * times;
	} else if (u->target == OF_FAILURES) {
		d->failures.mtbf_s /= times;
	} else if (u->target == OF_UTILIZATION) {
		d->terms.utilization_frac = used / (used + (1 - used) * times);
	} else {
		at = (double *)((char *)d + sets[u->target].at);
		*at = sets[u->target].adds ? *at + amount - u->likely : amount;
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
				      split_look_up(m->input[use->input].table,
						    z[use->input]));
		}
		power_set(&d);
		read_out(&d, side[i].of);
	}
}
