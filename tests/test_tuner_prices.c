/*
 * tests/test_tuner_prices.c - the library's prices against counted steps, on random machines
 *
 * Every constant of the library is drawn, so that none can stand for another. Beside each
 * price stands the obvious thing: its steps walked one by one, and its bytes over the
 * slowest of what they pass.
 */
#include "tests/check.h"

#include <math.h>

#include "sim/tuner.h"

enum { MACHINES = 4000 };

static double draw(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return (double)(*s >> 11) / 9007199254740992.0;
}

static double around(uint64_t *s, double x)
{
	return x * (0.5 + 1.5 * draw(s));
}

static int pick(uint64_t *s, int n)
{
	return (int)(draw(s) * n);
}

/* Each double of x around `value`. */
static void fill(uint64_t *s, double *x, size_t bytes, double value)
{
	for (size_t i = 0; i < bytes / sizeof(*x); i++)
		x[i] = around(s, value);
}
#define FILL(s, x, value) fill(s, (double *)&(x), sizeof(x), value)

static struct ft_ccl_tuning any_library(uint64_t *s)
{
	struct ft_ccl_tuning t = { .channels = 1 + pick(s, 16), .n_speeds = 5 };

	for (size_t i = 0; i < t.n_speeds; i++)
		t.speeds_bytes_per_s[i] = (40 - 8 * (double)i) * 1e9;
	FILL(s, t.net_overhead_s, 2e-6);
	FILL(s, t.ring.base_s, 5e-6);
	FILL(s, t.ring.hop_s, 2e-6);
	FILL(s, t.ring.hop_net_s, 8e-6);
	FILL(s, t.ring.share_frac, 0.6);
	FILL(s, t.ring.correction, 0.7);
	FILL(s, t.ring.ll_most_bytes_per_s, 80e9);
	FILL(s, t.ring.ll128_channel_bytes_per_s, 10e9);
	FILL(s, t.ring.plateau, 1.5);
	FILL(s, t.tree.base_s, 5e-6);
	FILL(s, t.tree.hop_s, 2e-6);
	FILL(s, t.tree.hop_net_s, 8e-6);
	FILL(s, t.tree.share_frac, 0.6);
	FILL(s, t.tree.share_more_frac, 0.6);
	FILL(s, t.tree.narrow_frac, 0.8);
	FILL(s, t.tree.correction, 0.7);
	FILL(s, t.tree.channel_bytes_per_s, 10e9);
	FILL(s, t.tree.ll128_channel_bytes_per_s, 5e9);
	FILL(s, t.nvls.hop_s, 2e-5);
	FILL(s, t.nvls.share_frac, 0.7);
	FILL(s, t.nvls_tree.hop_s, 2e-5);
	FILL(s, t.nvls_tree.hop_net_s, 1e-5);
	FILL(s, t.nvls_tree.channel_bytes_per_s, 30e9);
	FILL(s, t.sharp.hop_s, 3e-6);
	FILL(s, t.sharp.hop_net_s, 1e-5);
	FILL(s, t.sharp.share_frac, 0.8);
	FILL(s, t.sharp.gather_share_frac, 0.8);
	FILL(s, t.sharp.arity_s, 1e-6);
	FILL(s, t.pat.base_s, 8e-6);
	FILL(s, t.pat.hop_net_s, 1e-5);
	FILL(s, t.pat.overlap, 3);
	FILL(s, t.pat.rank_s, 2e-6);
	FILL(s, t.pat.share_frac, 0.7);
	t.windows.growth = around(s, 2);
	if (pick(s, 5) == 0) /* no limit */
		t.ring.ll128_channel_bytes_per_s = 0;
	if (pick(s, 5) == 0)
		t.tree.channel_bytes_per_s[0] = t.tree.channel_bytes_per_s[1] = 0;
	return t;
}

static struct group any_group(uint64_t *s, const struct ft_ccl_tuning *t)
{
	struct group g = { .tuning = t,
			   .per_domain = 2 + pick(s, 7),
			   .domains = 1 + pick(s, 3) * pick(s, 6) };

	g.ranks = g.per_domain * g.domains;
	g.ring = (struct search){ t->channels, around(s, 20e9), around(s, 12e9) };
	g.nvls = (struct search){ g.per_domain, around(s, 40e9), around(s, 20e9) };
	return g;
}

/* ---- the obvious thing ------------------------------------------------------------- */

static int kind(const struct group *g) /* one node, two, more */
{
	return g->domains == 1 ? 0 : g->domains == 2 ? 1 : 2;
}

/* Bytes that pass a rank's place on the bus. */
static double bus_bytes(const struct group *g, enum ft_collective op, double bytes)
{
	double parts = 0;

	for (int pass = 0; pass < (op == FT_ALL_REDUCE ? 2 : 1); pass++)
		for (int k = 1; k < (int)g->ranks; k++)
			parts++;
	return bytes * parts / g->ranks;
}

static double least(double a, double limit)
{
	return limit > 0 && limit < a ? limit : a;
}

/* 64 B, 128 B ... and what is larger than all of them. */
static int size_class(double bytes)
{
	int i = 0;

	for (double up = 128; bytes >= up && i < FT_CCL_SIZES - 1; up *= 2)
		i++;
	return i;
}

static int levels(double n) /* of a binary tree over n */
{
	int l = 0;

	for (int k = (int)n; k > 1; k /= 2)
		l++;
	return l;
}

static double channel(const struct group *g, const struct search *x)
{
	return kind(g) == 2 ? x->inter_bytes_per_s : x->intra_bytes_per_s;
}

static double ring_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		     double bytes)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;
	double wait = r->base_s[p], rate = 0;

	for (int pass = 0; pass < (op == FT_ALL_REDUCE ? 2 : 1); pass++)
		for (int k = 1; k < (int)g->ranks; k++) {
			double hop = r->hop_s[p];

			if (kind(g) && g->tuning->net_overhead_s[p] > hop)
				hop = g->tuning->net_overhead_s[p];
			wait += k < (int)g->domains ? r->hop_net_s[p] : hop;
		}
	if (kind(g) && p == FT_SIMPLE && op == FT_ALL_REDUCE)
		wait *= r->plateau;
	for (int c = 0; c < (int)g->ring.channels; c++)
		rate += channel(g, &g->ring) * r->share_frac[p];
	if (p == FT_LL)
		rate = least(rate, r->ll_most_bytes_per_s[kind(g)]);
	if (p == FT_LL128)
		rate = least(rate, r->ll128_channel_bytes_per_s * g->ring.channels);
	if (kind(g))
		rate *= r->correction[p][size_class(bytes)];
	return wait + bus_bytes(g, op, bytes) / rate;
}

static double tree_s(const struct group *g, enum ft_protocol p, double bytes)
{
	const struct ft_ccl_tree *t = &g->tuning->tree;
	double share = t->share_frac[p], wait = t->base_s[p], rate;

	for (int way = 0; way < 2; way++) { /* up and down */
		for (int k = 1; k < (int)g->per_domain; k++)
			wait += t->hop_s[p];
		for (int k = 0; k < levels(g->domains); k++)
			wait += t->hop_net_s[p];
	}
	if (kind(g) == 2 && p == FT_SIMPLE)
		share = t->share_more_frac;
	rate = g->ring.channels * channel(g, &g->ring) * share;
	if (kind(g))
		rate = least(rate,
			     g->ring.channels * t->channel_bytes_per_s[kind(g) - 1]);
	rate *= t->narrow_frac[p];
	if (p == FT_LL)
		rate = least(rate, g->tuning->ring.ll_most_bytes_per_s[kind(g)]);
	if (p == FT_LL128 && kind(g))
		rate = least(rate, g->ring.channels *
					   t->ll128_channel_bytes_per_s[kind(g) - 1]);
	/* all of it goes up, and down again */
	return wait + 2 * bytes / (rate * t->correction[p][size_class(bytes)]);
}

/* A head less than all carries the switch's two ways. */
static double switch_rate(const struct group *g)
{
	double both = 2 * g->nvls.intra_bytes_per_s * g->tuning->nvls.share_frac;

	return both - both / g->nvls.channels;
}

static double nvls_tree_s(const struct group *g, enum ft_collective op, double bytes)
{
	double net = g->nvls.inter_bytes_per_s * (kind(g) == 2 ? 1 : 2);
	double wait = g->tuning->nvls_tree.hop_s, rate = switch_rate(g);

	for (int k = 0; k < 2 * levels(g->domains); k++)
		wait += g->tuning->nvls_tree.hop_net_s;
	rate = least(rate, net);
	rate = least(rate, g->tuning->nvls_tree.channel_bytes_per_s[kind(g) - 1]);
	return wait + bus_bytes(g, op, bytes) / g->nvls.channels / rate;
}

static double sharp_s(const struct group *g, enum ft_collective op, double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double wait = t->sharp.hop_net_s, rate = 0;

	if (g->per_domain > 1)
		wait += 2 * t->sharp.hop_s;
	for (int k = 1; k < (int)g->per_domain; k++)
		wait += 2 * t->sharp.arity_s;
	for (int k = 0; k < (int)g->per_domain; k++)
		rate += g->nvls.inter_bytes_per_s *
			(op == FT_ALL_REDUCE ? t->sharp.share_frac / 2 :
					       t->sharp.gather_share_frac);
	return wait + bytes / rate;
}

static double pat_s(const struct group *g, double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double wait = t->pat.base_s;

	for (int k = 0; k < levels(g->domains); k++)
		wait += t->pat.hop_net_s / t->pat.overlap;
	for (int k = 0; k < (int)g->ranks; k++)
		wait += t->pat.rank_s;
	return wait +
	       bytes / (t->pat.share_frac * g->ring.channels * channel(g, &g->ring));
}

/* ---- one against the other ------------------------------------------------------------ */

static void prices_are_steps_and_bytes(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_REDUCE, FT_ALL_GATHER,
						  FT_REDUCE_SCATTER };
	uint64_t s = 1;

	(void)state;
	for (int i = 0; i < MACHINES; i++) {
		struct ft_ccl_tuning t = any_library(&s);
		struct group g = any_group(&s, &t);
		double bytes = pow(2, 40 * draw(&s));
		enum ft_collective op = ops[pick(&s, 3)];

		for (int p = 0; p < FT_PROTOCOLS; p++) {
			near_frac(tuner_ring_s(&g, (enum ft_protocol)p, op, bytes),
				  ring_s(&g, (enum ft_protocol)p, op, bytes), 1e-9);
			near_frac(tuner_tree_s(&g, (enum ft_protocol)p, op, bytes),
				  tree_s(&g, (enum ft_protocol)p, bytes), 1e-9);
		}
		near_frac(tuner_nvls_s(&g, FT_SIMPLE, op, bytes),
			  t.nvls.hop_s + bus_bytes(&g, op, bytes) / g.nvls.channels /
						 switch_rate(&g),
			  1e-9);
		if (kind(&g))
			near_frac(tuner_nvls_tree_s(&g, FT_SIMPLE, op, bytes),
				  nvls_tree_s(&g, op, bytes), 1e-9);
		near_frac(tuner_sharp_s(&g, FT_SIMPLE, op, bytes),
			  sharp_s(&g, op, bytes), 1e-9);
		g.per_domain = 1;
		g.domains = g.ranks;
		near_frac(tuner_pat_s(&g, FT_SIMPLE, op, bytes), pat_s(&g, bytes),
			  1e-9);
		near_frac(tuner_sharp_s(&g, FT_SIMPLE, op, bytes),
			  sharp_s(&g, op, bytes), 1e-9);
	}
}

/* Sizes at which a window ends belong to it, those a hair larger to the next. */
static void windows_end_where_they_say(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_REDUCE, FT_ALL_GATHER,
						  FT_REDUCE_SCATTER };
	struct ft_ccl_tuning t = {
		.windows = { { 1e4, 1e6 }, { 2e4, 3e6 }, { 5e4, 7e6 }, 3 },
	};
	const double *up_to[] = { t.windows.all_reduce_bytes,
				  t.windows.all_gather_bytes,
				  t.windows.reduce_scatter_bytes };
	const double hair = 1 + 1e-9;

	(void)state;
	for (int k = 0; k < 3; k++)
		for (int domains = 2; domains <= 3; domains++) {
			struct group g = { .tuning = &t,
					   .ranks = 8 * domains,
					   .per_domain = 8,
					   .domains = domains };
			double each = k ? g.ranks : 1, *last = (double *)&up_to[k][1];
			double grown = up_to[k][1] * (!k && domains > 2 ? 3 : 1);
			double a = up_to[k][0] * each, b = grown * each;

			assert_int_equal(tuner_window(&g, ops[k], a), FT_LL);
			assert_int_equal(tuner_window(&g, ops[k], a * hair), FT_LL128);
			assert_int_equal(tuner_window(&g, ops[k], b), FT_LL128);
			assert_int_equal(tuner_window(&g, ops[k], b * hair), FT_SIMPLE);
			assert_int_equal(tuner_window(&g, FT_BROADCAST, a), -1);
			g.domains = 1;
			assert_int_equal(tuner_window(&g, ops[k], a), -1);
			g.domains = domains;
			*last = 0;
			assert_int_equal(tuner_window(&g, ops[k], a), -1);
			*last = grown / (!k && domains > 2 ? 3 : 1);
		}
}

/* A channel runs at the first of the speeds that it reaches; at less than all, as it can. */
static void a_search_takes_a_speed_that_is_reached(void **state)
{
	uint64_t s = 2;

	(void)state;
	for (int i = 0; i < MACHINES; i++) {
		struct ft_ccl_tuning t = any_library(&s);
		struct group g = any_group(&s, &t);
		double ring = around(&s, 20e9) * (1 + pick(&s, 20));
		double net = around(&s, 10e9) * (1 + pick(&s, 20));
		double rings = t.channels, each = ring / rings, speed = each;
		double head = ring / g.per_domain, head_speed = head;

		for (int k = (int)t.n_speeds - 1; k >= 0; k--) {
			if (t.speeds_bytes_per_s[k] <= each)
				speed = t.speeds_bytes_per_s[k];
			if (t.speeds_bytes_per_s[k] <= head)
				head_speed = t.speeds_bytes_per_s[k];
		}
		tuner_search(&g, ring, net);
		near_frac(g.ring.channels, rings, 1e-12);
		near_frac(g.ring.inter_bytes_per_s, net / rings, 1e-12);
		near_frac(g.ring.intra_bytes_per_s,
			  kind(&g) && net / rings < speed ? net / rings : speed, 1e-12);
		near_frac(g.nvls.channels, g.per_domain, 1e-12);
		near_frac(g.nvls.intra_bytes_per_s, head_speed, 1e-12);
		near_frac(g.nvls.inter_bytes_per_s, net / g.per_domain, 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prices_are_steps_and_bytes),
		cmocka_unit_test(windows_end_where_they_say),
		cmocka_unit_test(a_search_takes_a_speed_that_is_reached),
	};

	return cmocka_run_group_tests_name("tuner prices", tests, NULL, NULL);
}
