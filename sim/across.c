/* sim/across.c - laws of collectives across scale-up domains */
#include "sim/across.h"

#include <math.h>

static double bandwidth(const struct group *g)
{
	return fmin(g->per_domain * g->nic_bytes_per_s, g->bus_bytes_per_s);
}

/* A hop between nodes on this fabric. */
static double net_hop_s(const struct group *g, double library_s)
{
	return fmax(0, library_s + g->extra_s);
}

double across_wire_s(enum ft_collective op, double n, double bytes, double bytes_per_s)
{
	return bytes * ft_collective_bus_factor(op, (int64_t)n) / bytes_per_s;
}

double across_overlap_s(double inside_s, double net_s, double overlap_frac)
{
	return fmax(inside_s, net_s) + (1 - overlap_frac) * fmin(inside_s, net_s);
}

double across_sharp_net_s(double bytes, double g, double nic_bytes_per_s)
{
	return bytes / g / nic_bytes_per_s;
}

/* A message along the ring, from rank to rank: a step between nodes, a hop inside. */
static double broadcast_s(const struct group *g, double bytes)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;

	return g->tuning->pipeline.start_s +
	       (g->domains - 1) * r->step_s[FT_SIMPLE] * g->stretch +
	       (g->ranks - g->domains) * r->hop_s[FT_SIMPLE] + bytes / bandwidth(g);
}

static double ring_bytes_per_s(const struct group *g, enum ft_protocol p)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;
	double b = bandwidth(g) * r->efficiency_frac[p];

	if (p == FT_LL)
		return at_most(b, r->ll_most_bytes_per_s[g->domains > 2 ? 2 : 1]);
	if (p == FT_LL128)
		return at_most(b, g->tuning->channels * r->ll128_channel_bytes_per_s);
	return b;
}

double across_ring_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		     double bytes)
{
	const struct ft_ccl_ring *r = &g->tuning->ring;
	double steps = (op == FT_ALL_REDUCE ? 2 : 1) * (g->ranks - 1);

	if (op == FT_BROADCAST)
		return broadcast_s(g, bytes);
	return hypot(r->base_s[p] + steps * r->step_s[p] * g->stretch,
		     across_wire_s(op, g->ranks, bytes, ring_bytes_per_s(g, p)));
}

double across_tree_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		     double bytes)
{
	const struct ft_ccl_tree *t = &g->tuning->tree;
	const double *most =
		p == FT_LL128 ? t->ll128_channel_bytes_per_s : t->channel_bytes_per_s;
	double b = at_most(bandwidth(g) * t->efficiency_frac[p],
			   g->tuning->channels * most[g->domains > 2]);

	(void)op;
	return t->base_s[p] +
	       2 * ((g->per_domain - 1) * (t->hop_s[p] + t->wait_s[0]) +
		    log2(g->domains) * net_hop_s(g, t->hop_net_s[p] + t->wait_s[1])) +
	       2 * bytes / (b * t->lag[p][size_index(bytes)]);
}

/* Reduction in the NVLink switch of each domain, trees across them. */
double across_nvls_tree_s(const struct group *g, enum ft_protocol p,
			  enum ft_collective op, double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double most = t->nvls_tree.channel_bytes_per_s[g->domains > 2];
	double b = t->nvls_tree.efficiency_frac *
		   fmin(g->per_domain * g->nic_bytes_per_s,
			t->nvls_tree.bus_gain * g->bus_bytes_per_s);

	(void)p;
	(void)op;
	b = at_most(b, g->per_domain * most);
	return t->nvls_tree.hop_s +
	       2 * log2(g->domains) * net_hop_s(g, t->nvls_tree.hop_net_s) +
	       2 * bytes / b;
}

double across_sharp_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		      double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double n = g->per_domain, inside_s = 0, net_s;
	double latency_s = t->sharp.start_s + 2 * (n - 1) * t->sharp.arity_s +
			   2 * (n > 1 ? t->sharp.hop_s : 0) +
			   net_hop_s(g, t->sharp.hop_net_s);

	(void)p;
	if (n > 1)
		inside_s = across_wire_s(op, n, bytes, g->bus_bytes_per_s);
	net_s = across_sharp_net_s(bytes, n, g->nic_bytes_per_s);
	if (op == FT_ALL_REDUCE)
		return latency_s + fmax(net_s, inside_s);
	/* nothing is added up: each NIC takes in what other domains hold of its part */
	net_s *= (g->ranks - n) / g->ranks;
	return hypot(latency_s, fmax(net_s, inside_s));
}

double across_pat_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		    double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;

	(void)p;
	return t->pat.base_s +
	       log2(g->domains) * net_hop_s(g, t->pat.hop_net_s) / t->pat.overlap +
	       t->pat.rank_s * g->ranks +
	       across_wire_s(op, g->ranks, bytes, t->pat.share_frac * bandwidth(g));
}

/* What frameworks build of three calls; the calls inside are the profile's. */
double across_hierarchical_s(const struct group *g, enum ft_protocol p,
			     enum ft_collective op, double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double part = bytes / g->per_domain, inside_s = 0;
	struct group rail = *g;

	for (int i = 0; i < 2 && g->per_domain > 1; i++) {
		struct ft_collective_call call = {
			.op = i ? FT_ALL_GATHER : FT_REDUCE_SCATTER,
			.bytes = bytes,
			.shape = { (int64_t)g->per_domain, 1 },
		};
		struct ft_links links = links_of(g->cluster);
		struct ft_collective_result in;
		struct ft_error ignored;

		if (op != FT_ALL_REDUCE && op != call.op)
			continue;
		if (!ft_collective_inside(g->cluster->gpu, &links, g->ccl, &call, &in,
					  &ignored))
			return INFINITY;
		inside_s += in.duration.time_s;
	}
	rail.ranks = g->domains;
	rail.per_domain = 1;
	rail.bus_bytes_per_s = 1e18;
	return across_overlap_s(inside_s, across_ring_s(&rail, p, op, part),
				t->hierarchical.overlap_frac *
					fmin(1, part / t->hierarchical.chunk_bytes));
}

double across_direct_s(const struct group *g, enum ft_protocol p, enum ft_collective op,
		       double bytes)
{
	const struct ft_ccl_tuning *t = g->tuning;
	double net = bytes * (g->ranks - g->per_domain) / g->ranks * (1 - g->kept_frac);
	double in = bytes * (g->per_domain - 1) / g->ranks;

	(void)p;
	if (op == FT_SENDRECV)
		return t->pipeline.start_s + net_hop_s(g, t->pipeline.hop_s) +
		       bytes / g->nic_bytes_per_s;
	return t->pairs.start_s +
	       fmax(0, (g->domains - 1) * t->pairs.peer_s + g->extra_s) +
	       (g->ranks - g->per_domain) * g->peer_s +
	       fmax(net / (t->pairs.nic_share_frac * g->nic_bytes_per_s),
		    in > 0 ? in / (t->pairs.port_share_frac * g->port_bytes_per_s) : 0);
}
