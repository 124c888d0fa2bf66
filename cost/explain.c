/* cost/explain.c - why two deals differ, and what would make them equal */
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

#include "base/arena.h"
#include "foretoken/cost.h"

const char *ft_part_of_cost_name(enum ft_part_of_cost part)
{
	static const char *const names[FT_COST_PARTS] = {
		[FT_COST_GPU_PRICE] = "GPU price",
		[FT_COST_NETWORK] = "network",
		[FT_COST_FINANCE] = "finance and facility",
		[FT_COST_POWER] = "power",
		[FT_COST_THROUGHPUT] = "throughput",
		[FT_COST_GOODPUT] = "goodput",
	};

	return names[part];
}

/* Of one GPU, so that parts of clusters of different sizes can be exchanged. */
static struct ft_deal of_one_gpu(const struct ft_deal *d)
{
	struct ft_deal one = *d;

	one.gpus = 1;
	for (int c = 0; c < FT_CAPITALS; c++)
		one.capital_usd[c] /= d->gpus;
	one.it_w /= d->gpus;
	one.idle_w /= d->gpus;
	one.provisioned_w /= d->gpus;
	one.tokens_per_s /= d->gpus;
	one.terms.staff_usd_per_year /= d->gpus;
	return one;
}

/* What part of the cost each input belongs to. */
static void take(struct ft_deal *to, const struct ft_deal *from,
		 enum ft_part_of_cost part)
{
	struct ft_cost_terms was = to->terms;

	switch (part) {
	case FT_COST_GPU_PRICE:
		to->capital_usd[FT_CAPITAL_SERVERS] =
			from->capital_usd[FT_CAPITAL_SERVERS];
		to->rent_usd_per_gpu_hour = from->rent_usd_per_gpu_hour;
		break;
	case FT_COST_NETWORK:
		to->capital_usd[FT_CAPITAL_NETWORK] =
			from->capital_usd[FT_CAPITAL_NETWORK];
		break;
	case FT_COST_FINANCE:
		to->capital_usd[FT_CAPITAL_OTHER] = from->capital_usd[FT_CAPITAL_OTHER];
		to->maintenance_frac = from->maintenance_frac;
		to->colocation_usd_per_kw_month = from->colocation_usd_per_kw_month;
		to->terms = from->terms;
		to->terms.pue = was.pue;
		to->terms.utilization_frac = was.utilization_frac;
		break;
	case FT_COST_POWER:
		to->it_w = from->it_w;
		to->idle_w = from->idle_w;
		to->provisioned_w = from->provisioned_w;
		to->electricity_usd_per_kwh = from->electricity_usd_per_kwh;
		to->terms.pue = from->terms.pue;
		break;
	case FT_COST_THROUGHPUT:
		to->tokens_per_s = from->tokens_per_s;
		break;
	default:
		to->goodput = from->goodput;
		to->failures = from->failures;
		to->terms.utilization_frac = from->terms.utilization_frac;
	}
}

/* How often of all orders exactly this many others come before a part. */
static double order_share(int before)
{
	double ways = 1; /* before! (parts - 1 - before)! / parts! */

	for (int k = 0; k < before; k++)
		ways *= (double)(k + 1) / (FT_COST_PARTS - 1 - k);
	return ways / FT_COST_PARTS;
}

void ft_deals_explain(const struct ft_deal *a, const struct ft_deal *b,
		      double part_usd[FT_COST_PARTS])
{
	enum { SETS = 1 << FT_COST_PARTS };
	const struct ft_deal first = of_one_gpu(a), second = of_one_gpu(b);
	double usd[SETS];

	for (int set = 0; set < SETS; set++) {
		struct ft_deal d = first;

		for (int p = 0; p < FT_COST_PARTS; p++)
			if (set >> p & 1)
				take(&d, &second, (enum ft_part_of_cost)p);
		usd[set] = ft_deal_usd_per_million_tokens(&d);
	}
	for (int p = 0; p < FT_COST_PARTS; p++) {
		part_usd[p] = 0;
		for (int set = 0; set < SETS; set++)
			if (!(set >> p & 1))
				part_usd[p] +=
					order_share(__builtin_popcount((unsigned)set)) *
					(usd[set | 1 << p] - usd[set]);
	}
}

/* ---- crossovers ---------------------------------------------------------------------- */

/* An input that is varied: turn() multiplies it in b, and in a too where both share it. */
struct knob {
	struct ft_deal a, b;
	void (*turn)(struct ft_deal *d, double times);
	bool both;
	double least, most; /* times what it is now */
};

static void turn_servers(struct ft_deal *d, double times)
{
	d->capital_usd[FT_CAPITAL_SERVERS] *= times;
}

static void turn_rent(struct ft_deal *d, double times)
{
	d->rent_usd_per_gpu_hour *= times;
}

static void turn_network(struct ft_deal *d, double times)
{
	d->capital_usd[FT_CAPITAL_NETWORK] *= times;
}

static void turn_tokens(struct ft_deal *d, double times)
{
	d->tokens_per_s *= times;
}

static void turn_electricity(struct ft_deal *d, double times)
{
	d->electricity_usd_per_kwh *= times;
}

static void turn_years(struct ft_deal *d, double times)
{
	d->terms.horizon_years *= times;
}

/* Years in which all tranches are there and burnt in for half of the time or more, as cost.burn_in has to be, and of which
 * cost.residual_by_year has the last one. */
static void bound_years(const struct ft_deal *d, struct knob *k)
{
	const struct ft_cost_terms *t = &d->terms;
	double burn_years = t->burn_in_s / (365 * 86400.), least = 2 * burn_years;

	for (size_t i = 0; i < t->n_tranches; i++)
		least = fmax(least, 1.001 * (t->tranche[i].month / 12 + burn_years));
	k->least = fmax(k->least, least / t->horizon_years);
	if (t->n_residuals)
		k->most = fmin(k->most, (double)t->n_residuals / t->horizon_years);
}

static double gap(double ln_times, void *context)
{
	const struct knob *k = context;
	struct ft_deal a = k->a, b = k->b;

	k->turn(&b, exp(ln_times));
	if (k->both)
		k->turn(&a, exp(ln_times));
	return ft_deal_usd_per_million_tokens(&b) - ft_deal_usd_per_million_tokens(&a);
}

/* By how much to turn the knob; NaN when not between its ends. */
static double equal_at(struct knob *k)
{
	gsl_function f = { gap, k };
	gsl_root_fsolver *s;
	double low = log(k->least), high = log(k->most);

	if (!(low < high) || !(gap(low, k) * gap(high, k) < 0))
		return NAN;
	s = allocated(gsl_root_fsolver_alloc(gsl_root_fsolver_brent));
	gsl_root_fsolver_set(s, &f, low, high);
	for (int i = 0; i < 100 && high - low > 1e-9; i++) {
		gsl_root_fsolver_iterate(s);
		low = gsl_root_fsolver_x_lower(s);
		high = gsl_root_fsolver_x_upper(s);
	}
	low = gsl_root_fsolver_root(s);
	gsl_root_fsolver_free(s);
	return exp(low);
}

static int nearest_first(const void *x, const void *y)
{
	const struct ft_crossover *a = x, *b = y;
	double da = fabs(log(a->value / a->now)), db = fabs(log(b->value / b->now));

	return (da > db) - (da < db);
}

size_t ft_deals_crossovers(const struct ft_deal *a, const struct ft_deal *b,
			   double servers, double flop_per_token,
			   struct ft_crossover crossover[FT_CROSSOVERS_MOST])
{
	const struct {
		const char *what, *unit;
		double now;
		void (*turn)(struct ft_deal *d, double times);
		bool both;   /* turned in both, where it is the same in both */
		double of_a; /* then */
	} knobs[] = {
		{ "price of a server", "USD",
		  b->capital_usd[FT_CAPITAL_SERVERS] / servers, turn_servers, false,
		  0 },
		{ "rent", "USD/GPU-hour", b->rent_usd_per_gpu_hour, turn_rent, false,
		  0 },
		{ "price of the network", "USD", b->capital_usd[FT_CAPITAL_NETWORK],
		  turn_network, false, 0 },
		{ "model FLOP/s per GPU", "TFLOP/s",
		  b->tokens_per_s / b->gpus * flop_per_token * 1e-12, turn_tokens,
		  false, 0 },
		{ "electricity of both", "USD/kWh", b->electricity_usd_per_kwh,
		  turn_electricity, true, a->electricity_usd_per_kwh },
		{ "years of use of both", "years", b->terms.horizon_years, turn_years,
		  true, a->terms.horizon_years },
	};
	double apart =
		ft_deal_usd_per_million_tokens(b) / ft_deal_usd_per_million_tokens(a);
	size_t n = 0;

	if (fabs(apart - 1) < 1e-9) /* they cross here */
		return 0;
	for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++) {
		struct knob k = { *a, *b, knobs[i].turn, knobs[i].both, 1 / 4., 4 };
		/* the same in other units may differ in its last bits */
		bool same = fabs(knobs[i].now - knobs[i].of_a) <= 1e-12 * knobs[i].now;
		bool asked = knobs[i].now > 0 && (same || !knobs[i].both);
		double times;

		if (k.turn == turn_years) {
			bound_years(a, &k);
			bound_years(b, &k);
		}
		times = asked ? equal_at(&k) : NAN;
		if (times > 0)
			crossover[n++] =
				(struct ft_crossover){ knobs[i].what, knobs[i].unit,
						       knobs[i].now,
						       knobs[i].now * times };
	}
	qsort(crossover, n, sizeof(*crossover), nearest_first);
	return n;
}
