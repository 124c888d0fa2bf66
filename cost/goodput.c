/* cost/goodput.c - failures, checkpoints, recoveries: where the time of a job goes */
#include "cost/goodput.h"

#include <math.h>

#include <gsl/gsl_sf_lambert.h>

double goodput_mtbf_s(double failures_per_1000_node_days, double nodes)
{
	return 86400 * 1000 / (failures_per_1000_node_days * nodes);
}

double goodput_young_s(double save_s, double mtbf_s)
{
	return sqrt(2 * save_s * mtbf_s);
}

double goodput_best_s(double save_s, double mtbf_s)
{
	double x = save_s / mtbf_s;

	/* close to the branch point W loses digits, and Young's is exact enough */
	if (x < 1e-9)
		return goodput_young_s(save_s, mtbf_s);
	return mtbf_s * (1 + gsl_sf_lambert_W0(-exp(-x - 1)));
}

/* Back to the last checkpoint at each failure. */
static void rolled_back(const struct ft_reliability *r, double restart_s,
			struct ft_time_use *u)
{
	double m = r->mtbf_s, saved_s = r->save_s;
	double tau = r->interval_s > 0 ? r->interval_s : goodput_best_s(saved_s, m);
	double lost, again, all;

	u->interval_s = tau;
	if (!(tau > 0)) { /* checkpoints cost nothing: saved all the time */
		u->productive = exp(-restart_s / m);
		u->recovery = 1 - u->productive;
		return;
	}
	/* failures until tau and its checkpoint went through, and what each takes */
	lost = m * expm1((tau + saved_s) / m);
	again = expm1((tau + saved_s) / m) * m * expm1(restart_s / m);
	all = lost + again;
	if (!isfinite(all)) { /* no interval ever goes through */
		u->productive = 0;
		u->recovery = 1;
		return;
	}
	u->productive = tau / all;
	u->checkpoint = saved_s / all;
	u->wasted = fmax(0, (lost - tau - saved_s) / all);
	u->recovery = again / all;
}

/* Nothing fails: who states an interval stops for its checkpoints all the same. */
static void never_back(const struct ft_reliability *r, struct ft_time_use *u)
{
	double all = r->interval_s + r->save_s;

	if (!(r->interval_s > 0)) /* the best one has no end */
		return;
	u->interval_s = r->interval_s;
	u->productive = r->interval_s / all;
	u->checkpoint = r->save_s / all;
}

/* Moves a share of the productive time to something else. */
static void takes(struct ft_time_use *u, double share, double *to)
{
	share = fmin(1, fmax(0, share));
	*to += u->productive * share;
	u->productive *= 1 - share;
}

struct ft_time_use goodput_time_use(const struct ft_reliability *r)
{
	struct ft_time_use u = { .productive = 1 };
	bool cold = r->recovery == FT_RECOVERY_COLD;
	double out = 0;

	if (r->mtbf_s > 0 && r->recovery == FT_RECOVERY_FAULT_TOLERANT)
		takes(&u, r->failover_s / (r->mtbf_s + r->failover_s), &u.recovery);
	else if (r->mtbf_s > 0)
		rolled_back(r, r->restart_s + (cold ? r->repair_s : 0), &u);
	else if (r->recovery != FT_RECOVERY_FAULT_TOLERANT)
		never_back(r, &u);
	if (r->mtbf_s > 0 && !cold && !r->spares) /* GPUs that wait for a repair */
		out = r->blast_gpus * r->repair_s / (r->mtbf_s * r->gpus);
	takes(&u, out / (1 + out), &u.repair);
	takes(&u, r->flap_rate_per_s * r->flap_s / (1 + r->flap_rate_per_s * r->flap_s),
	      &u.stalls);
	takes(&u, r->straggler_frac, &u.stragglers);
	return u;
}
