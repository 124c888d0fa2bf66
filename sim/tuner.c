/* sim/tuner.c - NCCL's and RCCL's price of each algorithm and protocol */
#include "sim/tuner.h"

#include <math.h>

static int by_nodes(const struct group *g)
{
	return g->domains <= 1 ? 0 : g->domains <= 2 ? 1 : 2;
}

static double at_most(double bytes_per_s, double most_bytes_per_s)
{
	return most_bytes_per_s > 0 ? fmin(bytes_per_s, most_bytes_per_s) : bytes_per_s;
}

static int size_index(double bytes)
{
	return (int)fmin(FT_CCL_SIZES - 1, fmax(0, floor(log2(bytes / 64))));
}

static double bus_of(const struct group *g, const struct search *x)
{
	return x->channels *
	       (g->domains <= 2 ? x->intra_bytes_per_s : x->inter_bytes_per_s);
}

/* Bytes of the buffer over bytes on the bus. */
static double per_bus(const struct group *g, enum ft_collective op)
{
	return g->ranks / ((op == FT_ALL_REDUCE ? 2 : 1) * (g->ranks - 1));
}

/* ---- ring ------------------------------------------------------------------- */

static double ring_latency_s(const struct group *g, enum ft_protocol p,
			     enum ft_collective op)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;
	double twice = op == FT_ALL_REDUCE ? 2 : 1;
	double steps = twice * (g->ranks - 1), net = twice * (g->domains - 1);
	double hop = r->hop_s[p], s;

	if (g->domains > 1)
		hop = fmax(hop, g->tuning->net_overhead_s[p]);
	s = r->base_s[p] + (steps - net) * hop + net * r->hop_net_s[p];
	/* rings of many nodes on a plateau; the library spares sizes that are too small for
	 * Simple to be taken */
	if (g->domains > 1 && p == FT_SIMPLE && op == FT_ALL_REDUCE)
		s *= r->plateau;
	return s;
}

double tuner_ring_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		    double bytes)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;
	double bus = bus_of(g, &g->ring) * r->share[p];

	if (p == FT_LL)
		bus = at_most(bus, r->ll_most_bytes_per_s[by_nodes(g)]);
	if (p == FT_LL128)
		bus = at_most(bus, g->ring.channels * r->ll128_channel_bytes_per_s);
	if (g->domains > 1)
		bus *= r->correction[p][size_index(bytes)];
	return ring_latency_s(g, p, op) + bytes / (per_bus(g, op) * bus);
}

/* ---- trees ------------------------------------------------------------------- */

double tuner_tree_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		    double bytes)
{
	const struct ft_ccl_tree *t = &g->tuning->tree;
	int n = by_nodes(g);
	double share = n > 1 && p == FT_SIMPLE ? t->share_more : t->share[p];
	double bus = bus_of(g, &g->ring) * share, rings = g->ring.channels;

	(void)op;
	if (n)
		bus = at_most(bus, rings * t->channel_bytes_per_s[n - 1]);
	bus *= t->narrow[p];
	if (p == FT_LL)
		bus = at_most(bus, g->tuning->ring.ll_most_bytes_per_s[n]);
	if (n && p == FT_LL128)
		bus = at_most(bus, rings * t->ll128_channel_bytes_per_s[n - 1]);
	return t->base_s[p] +
	       2 * ((g->ranks / g->domains - 1) * t->hop_s[p] +
		    floor(log2(g->domains)) * t->hop_net_s[p]) +
	       bytes / (0.5 * bus * t->correction[p][size_index(bytes)]);
}

/* Reduction in the NVLink switch: of a channel, both ways at once. */
static double nvls_bytes_per_s(const struct group *g)
{
	const struct search *x = &g->nvls;

	return 2 * x->intra_bytes_per_s * g->tuning->nvls.share * (x->channels - 1) /
	       x->channels;
}

double tuner_nvls_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		    double bytes)
{
	(void)p;
	return g->tuning->nvls.hop_s +
	       bytes / (per_bus(g, op) * g->nvls.channels * nvls_bytes_per_s(g));
}

double tuner_nvls_tree_s(const struct group *g, enum ft_protocol p,
			 enum ft_collective op, double bytes)
{
	double rate = fmin(nvls_bytes_per_s(g),
			   g->nvls.inter_bytes_per_s * (g->domains <= 2 ? 2 : 1));

	(void)p;
	rate = at_most(rate, g->tuning->nvls_tree.channel_bytes_per_s[by_nodes(g) - 1]);
	return g->tuning->nvls_tree.hop_s +
	       2 * floor(log2(g->domains)) * g->tuning->nvls_tree.hop_net_s +
	       bytes / (per_bus(g, op) * g->nvls.channels * rate);
}

/* CollNet, direct: a head for each NIC. */
double tuner_sharp_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		     double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double per = g->ranks / g->domains, rate = g->nvls.inter_bytes_per_s;
	double bytes_per_s = op == FT_ALL_REDUCE ? 0.5 * per * rate * t->sharp.share :
						   per * rate * t->sharp.gather_share;

	(void)p;
	return 2 * (fmin(1, per - 1) * t->sharp.hop_s + (per - 1) * t->sharp.arity_s) +
	       t->sharp.hop_net_s + bytes / bytes_per_s;
}

double tuner_pat_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		   double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;

	(void)p;
	(void)op;
	return t->pat.base_s +
	       floor(log2(g->domains)) * t->pat.hop_net_s / t->pat.overlap +
	       t->pat.rank_s * g->ranks + bytes / (t->pat.share * bus_of(g, &g->ring));
}

/* ---- windows and the search ----------------------------------------------------- */

int tuner_window(const struct group *g, enum ft_collective op, double bytes)
{
	const double *up_to =
		op == FT_ALL_REDUCE	? g->tuning->windows.all_reduce_bytes :
		op == FT_ALL_GATHER	? g->tuning->windows.all_gather_bytes :
		op == FT_REDUCE_SCATTER ? g->tuning->windows.reduce_scatter_bytes :
					  NULL;
	double size = op == FT_ALL_REDUCE ? bytes : bytes / g->ranks, growth = 1;

	if (!up_to || g->domains <= 1 || !(up_to[1] > 0))
		return -1;
	if (op == FT_ALL_REDUCE && g->domains > 2)
		growth = g->tuning->windows.growth;
	return size <= up_to[0]		 ? FT_LL :
	       size <= growth * up_to[1] ? FT_LL128 :
					   FT_SIMPLE;
}

/* The fastest of the speeds that the search tries. */
static double tried(const struct ft_ccl_tuning *t, double bytes_per_s)
{
	for (size_t i = 0; i < t->n_speeds; i++)
		if (t->speeds_bytes_per_s[i] <= bytes_per_s)
			return t->speeds_bytes_per_s[i];
	return bytes_per_s;
}

void tuner_search(struct group *g, double ring_bytes_per_s, double net_bytes_per_s)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double rings = t->channels, heads = g->ranks / g->domains;

	g->ring = (struct search){ rings, tried(t, ring_bytes_per_s / rings),
				   net_bytes_per_s / rings };
	if (g->domains > 1)
		g->ring.intra_bytes_per_s =
			fmin(g->ring.intra_bytes_per_s, g->ring.inter_bytes_per_s);
	g->nvls = (struct search){ heads, tried(t, ring_bytes_per_s / heads),
				   net_bytes_per_s / heads };
}
