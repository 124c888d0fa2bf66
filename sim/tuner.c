/* sim/tuner.c - NCCL's and RCCL's price of each algorithm and protocol */
#include "sim/tuner.h"

#include <math.h>

static int by_nodes(const struct group *g)
{
	return g->domains <= 1 ? 0 : g->domains <= 2 ? 1 : 2;
}

static double search_bytes_per_s(const struct group *g, const struct search *x)
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
	double bytes_per_s = search_bytes_per_s(g, &g->ring) * r->share_frac[p];

	if (p == FT_LL)
		bytes_per_s = at_most(bytes_per_s, r->ll_most_bytes_per_s[by_nodes(g)]);
	if (p == FT_LL128)
		bytes_per_s = at_most(bytes_per_s,
				      g->ring.channels * r->ll128_channel_bytes_per_s);
	if (g->domains > 1)
		bytes_per_s *= r->correction[p][size_index(bytes)];
	return ring_latency_s(g, p, op) + bytes / (per_bus(g, op) * bytes_per_s);
}

/* ---- trees ------------------------------------------------------------------- */

double tuner_tree_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		    double bytes)
{
	const struct ft_ccl_tree *t = &g->tuning->tree;
	int n = by_nodes(g);
	double share = n > 1 && p == FT_SIMPLE ? t->share_more_frac : t->share_frac[p];
	double bytes_per_s = search_bytes_per_s(g, &g->ring) * share,
	       rings = g->ring.channels;

	(void)op;
	if (n)
		bytes_per_s =
			at_most(bytes_per_s, rings * t->channel_bytes_per_s[n - 1]);
	bytes_per_s *= t->narrow_frac[p];
	if (p == FT_LL)
		bytes_per_s =
			at_most(bytes_per_s, g->tuning->ring.ll_most_bytes_per_s[n]);
	if (n && p == FT_LL128)
		bytes_per_s = at_most(bytes_per_s,
				      rings * t->ll128_channel_bytes_per_s[n - 1]);
	return t->base_s[p] +
	       2 * ((g->ranks / g->domains - 1) * t->hop_s[p] +
		    floor(log2(g->domains)) * t->hop_net_s[p]) +
	       bytes / (0.5 * bytes_per_s * t->correction[p][size_index(bytes)]);
}

/* Reduction in the NVLink switch: of a channel, both ways at once. */
static double nvls_bytes_per_s(const struct group *g)
{
	const struct search *x = &g->nvls;

	return 2 * x->intra_bytes_per_s * g->tuning->nvls.share_frac *
	       (x->channels - 1) / x->channels;
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
	double channel_bytes_per_s =
		fmin(nvls_bytes_per_s(g),
		     g->nvls.inter_bytes_per_s * (g->domains <= 2 ? 2 : 1));

	(void)p;
	channel_bytes_per_s =
		at_most(channel_bytes_per_s,
			g->tuning->nvls_tree.channel_bytes_per_s[by_nodes(g) - 1]);
	return g->tuning->nvls_tree.hop_s +
	       2 * floor(log2(g->domains)) * g->tuning->nvls_tree.hop_net_s +
	       bytes / (per_bus(g, op) * g->nvls.channels * channel_bytes_per_s);
}

/* CollNet, direct: a head for each NIC. */
double tuner_sharp_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		     double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double per = g->ranks / g->domains,
	       channel_bytes_per_s = g->nvls.inter_bytes_per_s;
	double bytes_per_s =
		op == FT_ALL_REDUCE ?
			0.5 * per * channel_bytes_per_s * t->sharp.share_frac :
			per * channel_bytes_per_s * t->sharp.gather_share_frac;

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
	       t->pat.rank_s * g->ranks +
	       bytes / (t->pat.share_frac * search_bytes_per_s(g, &g->ring));
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
