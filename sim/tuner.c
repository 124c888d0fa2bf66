/* sim/tuner.c - NCCL's and RCCL's price of each algorithm and protocol */
#include "sim/tuner.h"

#include <math.h>
#include <string.h>

enum link_kind { SCALE_UP, PCI, NET, LINK_KINDS };

/* us: before the first byte, and for each hop; LL, LL128, Simple; 0 in a column that
 * the algorithm does not run. PAT and the switches' reductions run Simple alone. */
static const double nccl_base[TUNER_ALGORITHMS][TUNER_PROTOCOLS] = {
	[TUNER_TREE] = { 6.8, 14.0, 8.4 },
	[TUNER_RING] = { 6.6, 14.0, 8.4 },
	[TUNER_PAT] = { 0, 0, 8.0 },
};

static const double nccl_hop[LINK_KINDS][TUNER_ALGORITHMS][TUNER_PROTOCOLS] = {
	[SCALE_UP] = {
		[TUNER_TREE] = { 0.6, 1.25, 4.0 },
		[TUNER_RING] = { 0.6, 1.9, 3.4 },
		[TUNER_COLLNET_DIRECT] = { 0, 0, 3.7 },
		[TUNER_COLLNET_CHAIN] = { 0, 0, 2.8 },
		[TUNER_NVLS] = { 0, 0, 25 },
		[TUNER_NVLS_TREE] = { 0, 0, 25 },
		[TUNER_PAT] = { 0, 0, 4.0 },
	},
	[PCI] = {
		[TUNER_TREE] = { 1.0, 1.9, 4.0 },
		[TUNER_RING] = { 1.0, 2.5, 5.7 },
		[TUNER_COLLNET_DIRECT] = { 0, 0, 3.7 },
		[TUNER_COLLNET_CHAIN] = { 0, 0, 2.8 },
		[TUNER_PAT] = { 0, 0, 4.0 },
	},
	[NET] = {
		[TUNER_TREE] = { 5.0, 8.5, 14 },
		[TUNER_RING] = { 2.7, 4.0, 14 },
		[TUNER_COLLNET_DIRECT] = { 0, 0, 31 },
		[TUNER_COLLNET_CHAIN] = { 0, 0, 30 },
		[TUNER_NVLS] = { 0, 0, 18 },
		[TUNER_NVLS_TREE] = { 0, 0, 20.9 },
		[TUNER_PAT] = { 0, 0, 14 },
	},
};

/* GB/s, on 1, 2 and more nodes; Volta to Blackwell. */
static const double ll_most[][3] = {
	{ 39, 39, 20.4 },
	{ 87.7, 22.5, 19 },
	{ 141, 45, 35 },
	{ 282, 90, 70 },
};
/* GB/s a channel */
static const double ring_ll128_most[] = { 20, 20, 36.7, 40 };
static const double tree_ll128_most[][3] = {
	{ 20, 20, 20 },
	{ 20, 20, 20 },
	{ 36.7, 36.7, 29 },
	{ 55.6, 31.67, 20 },
};
static const double tree_most[][3] = {
	{ 26.5, 18.5, 10 },
	{ 24, 23.6, 17.8 },
	{ 38.7, 41.4, 36 },
	{ 70, 42.8, 24 },
};
static const double nvls_tree_most[][3] = {
	{ 26.5, 18.5, 10 },
	{ 24, 23.6, 17.8 },
	{ 0, 57.7, 45.5 },
	{ 0, 96, 80 },
};
static const double nvls_efficiency[] = { 0, 0, 0.85, 0.74 };

/* Of a tree's bandwidth, by log2(bytes / 64). */
static const double tree_correction[TUNER_PROTOCOLS][24] = {
	{ 1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
	  .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1,  1 },
	{ 1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
	  .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1,  1 },
	{ .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
	  .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9 },
};

/* RCCL: hops, and what each pair makes of the bus on up to 2 and on more nodes. */
struct rccl {
	double up[2][3], net[2][3], ratio[2][2][3]; /* [tree, ring] */
	double ll_bytes[2], ll128_bytes[2];	    /* all_reduce, others; 0: by time */
};

static const struct rccl rccl[] = {
	{ /* MI250 */
	  { { .8, 1.4, 2.5 }, { .8, 2.2, 3.6 } },
	  { { 11.8, 18.2, 20.8 }, { 9.5, 19.8, 15.1 } },
	  { { { .04, .22, .91 }, { .04, .34, 1 } },
	    { { .04, .22, .95 }, { .04, .34, 1 } } },
	  { 0, 0 },
	  { 0, 0 } },
	{ /* MI300X: LL128 as LL, which the tables leave out */
	  { { .9, .9, 2.3 }, { .8, .8, 2.1 } },
	  { { 10.5, 10.5, 25 }, { 9.5, 9.5, 320 } },
	  { { { .06, .06, .11 }, { .08, .08, 1 } },
	    { { .06, .06, .59 }, { .08, .08, 1 } } },
	  { 524288, 65536 },
	  { 4.4e6, 4.4e6 } },
	{ /* MI350 */
	  { { .9, .9, 2.3 }, { .8, .8, 2.1 } },
	  { { 10.5, 10.5, 25 }, { 9.5, 9.5, 320 } },
	  { { { .06, .06, .11 }, { .08, .08, 1 } },
	    { { .06, .06, .59 }, { .08, .08, 1 } } },
	  { 262144, 65536 },
	  { 70.6e6, 8388608 } },
};

static bool is_amd(const struct tuner_input *in)
{
	return in->generation >= TUNER_MI250;
}

static const struct rccl *rccl_of(const struct tuner_input *in)
{
	return &rccl[in->generation - TUNER_MI250];
}

static int by_nodes(const struct tuner_input *in)
{
	return in->nodes <= 1 ? 0 : in->nodes <= 2 ? 1 : 2;
}

static const struct tuner_graph *graph_of(const struct tuner_input *in,
					  enum tuner_algorithm a)
{
	switch (a) {
	case TUNER_TREE:
		return &in->tree;
	case TUNER_RING:
	case TUNER_PAT:
		return &in->ring;
	case TUNER_NVLS:
	case TUNER_NVLS_TREE:
		return &in->nvls;
	default:
		return &in->collnet;
	}
}

/* ---- which pairs there are ---------------------------------------------------- */

static bool enabled(const struct tuner_input *in, enum ft_collective op,
		    enum tuner_algorithm a, enum tuner_protocol p)
{
	bool reduce = op == FT_ALL_REDUCE;
	bool one_sided = op == FT_ALL_GATHER || op == FT_REDUCE_SCATTER;
	bool switches = a != TUNER_TREE && a != TUNER_RING;

	if (!(graph_of(in, a)->channels > 0) || (switches && p != TUNER_SIMPLE))
		return false;
	if (is_amd(in))
		return a == TUNER_RING || (a == TUNER_TREE && reduce &&
					   !(p == TUNER_SIMPLE && in->nodes <= 1 &&
					     in->generation >= TUNER_MI300));
	switch (a) {
	case TUNER_RING:
		return true;
	case TUNER_TREE:
		return reduce;
	case TUNER_PAT:
		return one_sided && in->nodes > 1 && in->ranks == in->nodes;
	case TUNER_NVLS:
		return (reduce || one_sided) && (in->nodes <= 1 || in->sharp);
	case TUNER_NVLS_TREE:
		return reduce && in->nodes > 1;
	default:
		return in->sharp && in->nodes > 1 &&
		       (reduce || (one_sided && a == TUNER_COLLNET_DIRECT));
	}
}

/* ---- bandwidth ---------------------------------------------------------------- */

static double ring_bus(const struct tuner_input *in, enum tuner_protocol p, double bus)
{
	int g = (int)in->generation;
	/* on several nodes the row is that of the host's maker */
	int row = in->nodes > 1 ? in->amd_cpu && g == TUNER_VOLTA ? 1 : g : g;

	if (p == TUNER_LL)
		return fmin(ll_most[row][by_nodes(in)], 0.5 * bus);
	if (p == TUNER_LL128)
		return fmin(0.92 * bus, in->ring.channels * ring_ll128_most[g]);
	return bus;
}

static double tree_bus(const struct tuner_input *in, enum tuner_protocol p, double bus)
{
	int g = (int)in->generation, n = by_nodes(in);

	bus = fmin(0.92 * bus, in->tree.channels * tree_most[g][n]);
	if (p == TUNER_LL)
		return fmin(bus / 3.8, ll_most[g][n]);
	if (p == TUNER_LL128)
		return fmin(bus * (in->nodes <= 1 ? 7.0 / 9 : 120.0 / 128),
			    in->tree.channels * tree_ll128_most[g][n]);
	return bus;
}

static double nvls_bus(const struct tuner_input *in, enum ft_collective op, bool tree)
{
	const struct tuner_graph *x = &in->nvls;
	double ppn = in->ranks / in->nodes, ch = x->channels, rate;

	if (ch < 2)
		return 0;
	rate = x->intra * nvls_efficiency[in->generation] * (ch - 1) / ch;
	rate *= op == FT_ALL_REDUCE ? 2 : (ppn - 1) / ppn;
	if (in->nodes > 1)
		rate = fmin(rate, x->inter * (tree && in->nodes <= 2 ? 2 : 1));
	if (tree)
		rate = fmin(rate, nvls_tree_most[in->generation][by_nodes(in)]);
	return ch * rate;
}

static double collnet_bus(const struct tuner_input *in, enum ft_collective op,
			  enum tuner_algorithm a)
{
	const struct tuner_graph *x = &in->collnet;
	double ppn = in->ranks / in->nodes, per = ppn / x->channels;

	if (a == TUNER_COLLNET_CHAIN)
		return x->channels * x->intra;
	if (op != FT_ALL_REDUCE)
		return ppn * fmin(x->intra, 0.9 * x->inter);
	per -= (per - 1) / 2;
	return x->channels * x->intra / per *
	       (in->generation >= TUNER_HOPPER ? 0.85 : 1);
}

double tuner_tree_correction(enum tuner_protocol protocol, double bytes)
{
	int size = (int)fmin(23, fmax(0, floor(log2(bytes / 64))));

	return tree_correction[protocol][size];
}

/* What a caller sees of the bus: bytes of the buffer over time. */
static double algorithm_gb_s(const struct tuner_input *in, enum ft_collective op,
			     double bytes, enum tuner_algorithm a,
			     enum tuner_protocol p)
{
	const struct tuner_graph *x = graph_of(in, a);
	double bus = x->channels * (in->nodes <= 2 ? x->intra : x->inter);
	double ratio = in->ranks / (op == FT_ALL_REDUCE ? 2 * (in->ranks - 1) :
				    op == FT_ALL_GATHER || op == FT_REDUCE_SCATTER ?
							  in->ranks - 1 :
							  in->ranks);

	if (a == TUNER_RING || a == TUNER_TREE) {
		bus = is_amd(in) ? bus * rccl_of(in)->ratio[in->nodes > 2]
							   [a == TUNER_RING][p] :
		      a == TUNER_RING ? ring_bus(in, p, bus) :
					tree_bus(in, p, bus);
		if (a == TUNER_TREE)
			return 0.5 * bus *
			       (is_amd(in) ? 1 : tuner_tree_correction(p, bytes));
		return ratio * bus;
	}
	if (a == TUNER_PAT)
		return 0.75 * bus;
	if (a == TUNER_NVLS || a == TUNER_NVLS_TREE)
		return ratio * nvls_bus(in, op, a == TUNER_NVLS_TREE);
	return (op == FT_ALL_REDUCE ? 0.5 : 1) * collnet_bus(in, op, a);
}

/* ---- latency ------------------------------------------------------------------ */

static double hop_us(const struct tuner_input *in, bool net, enum tuner_algorithm a,
		     enum tuner_protocol p)
{
	if (is_amd(in))
		return (net ? rccl_of(in)->net : rccl_of(in)->up)[a == TUNER_RING][p];
	return nccl_hop[net ? NET : in->pcie ? PCI : SCALE_UP][a][p];
}

static double ring_us(const struct tuner_input *in, enum ft_collective op, double bytes,
		      enum tuner_protocol p)
{
	double twice = op == FT_ALL_REDUCE ? 2 : 1;
	double steps = twice * (in->ranks - 1), net = twice * (in->nodes - 1);
	double up = hop_us(in, false, TUNER_RING, p);
	double overhead = (in->amd_cpu ? 2 : 1) * (p == TUNER_SIMPLE ? 3 : 1), us;

	if (op == FT_BROADCAST || op == FT_SENDRECV || op == FT_ALL_TO_ALL) {
		steps = in->ranks;
		net = in->nodes > 1 ? in->nodes : 0;
	}
	if (in->nodes > 1)
		up = fmax(up, overhead);
	us = nccl_base[TUNER_RING][p] + (steps - net) * up +
	     net * hop_us(in, true, TUNER_RING, p);
	/* rings of many nodes on a plateau */
	if (!is_amd(in) && in->nodes > 1 && p == TUNER_SIMPLE && op == FT_ALL_REDUCE &&
	    bytes / (in->ring.channels * in->ranks) >= 64)
		us *= in->generation >= TUNER_AMPERE ? 1.4 : 1.9;
	return us;
}

static double latency_us(const struct tuner_input *in, enum ft_collective op,
			 double bytes, enum tuner_algorithm a, enum tuner_protocol p)
{
	double ppn = in->ranks / in->nodes, depth = floor(log2(in->nodes));
	double up = hop_us(in, false, a, p), net = hop_us(in, true, a, p);

	switch (a) {
	case TUNER_RING:
		return ring_us(in, op, bytes, p);
	case TUNER_TREE:
		return nccl_base[a][p] + 2 * ((ppn - 1) * up + depth * net);
	case TUNER_COLLNET_DIRECT:
		return 2 * (fmin(1, ppn - 1) * up + (ppn - 1) * 0.4) + net;
	case TUNER_COLLNET_CHAIN:
		return 2 * (ppn - 1) * up + net;
	case TUNER_NVLS:
		return up + (in->nodes > 1 ? net : 0);
	case TUNER_NVLS_TREE:
		return up + 2 * depth * net;
	default: /* PAT */
		return nccl_base[a][p] + depth * net / 3.5 + 2.8 * in->ranks;
	}
}

double tuner_us(const struct tuner_input *in, enum ft_collective op, double bytes,
		enum tuner_algorithm a, enum tuner_protocol p)
{
	double gb_s;

	if (!enabled(in, op, a, p))
		return INFINITY;
	gb_s = algorithm_gb_s(in, op, bytes, a, p);
	return gb_s > 0 ? latency_us(in, op, bytes, a, p) + bytes / (1000 * gb_s) :
			  INFINITY;
}

/* RCCL fixes the protocol by size on newer parts; -1: whichever is the fastest. */
static int window(const struct tuner_input *in, enum ft_collective op, double bytes)
{
	int other = op != FT_ALL_REDUCE;

	if (!is_amd(in) || !(rccl_of(in)->ll_bytes[other] > 0))
		return -1;
	return bytes <= rccl_of(in)->ll_bytes[other]	? TUNER_LL :
	       bytes <= rccl_of(in)->ll128_bytes[other] ? TUNER_LL128 :
							  TUNER_SIMPLE;
}

struct tuner_choice tuner_choose(const struct tuner_input *in, enum ft_collective op,
				 double bytes)
{
	struct tuner_choice best = { TUNER_RING, TUNER_SIMPLE, INFINITY };
	int only = window(in, op, bytes);

	for (int a = 0; a < TUNER_ALGORITHMS; a++)
		for (int p = 0; p < TUNER_PROTOCOLS; p++) {
			double us = tuner_us(in, op, bytes, (enum tuner_algorithm)a,
					     (enum tuner_protocol)p);

			if ((only < 0 || p == only) && us < best.us)
				best = (struct tuner_choice){ (enum tuner_algorithm)a,
							      (enum tuner_protocol)p,
							      us };
		}
	return best;
}

const char *tuner_algorithm_name(enum tuner_algorithm algorithm)
{
	static const char *const names[] = { "tree", "ring",	 "sharp", "sharp",
					     "nvls", "nvlstree", "pat" };

	return names[algorithm];
}

const char *tuner_protocol_name(enum tuner_protocol protocol)
{
	static const char *const names[] = { "LL", "LL128", "Simple" };

	return names[protocol];
}

/* ---- what the search finds ---------------------------------------------------- */

static enum tuner_generation generation_of(const struct ft_gpu *gpu)
{
	const struct ft_number *peak = gpu->peak_flop_per_s;

	if (!strcmp(gpu->vendor, "amd"))
		return peak[FT_MXFP8].value > 0 ? TUNER_MI350 :
		       peak[FT_FP8].value > 0	? TUNER_MI300 :
						  TUNER_MI250;
	return peak[FT_NVFP4].value > 0 ? TUNER_BLACKWELL :
	       peak[FT_FP8].value > 0	? TUNER_HOPPER :
	       peak[FT_BF16].value > 0	? TUNER_AMPERE :
					  TUNER_VOLTA;
}

/* The speeds that the search tries, in GB/s a channel. */
static double tried(enum tuner_generation g, double gb_s)
{
	static const double menu[][9] = {
		[TUNER_VOLTA] = { 40, 30, 20, 18, 15, 12, 10, 9, 7 },
		[TUNER_AMPERE] = { 40, 30, 20, 18, 15, 12, 10, 9, 7 },
		[TUNER_HOPPER] = { 60, 50, 40, 30, 24, 20, 15, 12, 11 },
		[TUNER_BLACKWELL] = { 90, 80, 70, 60, 50, 45, 40, 30, 24 },
	};

	for (int i = 0; g <= TUNER_BLACKWELL && i < 9; i++)
		if (menu[g][i] <= gb_s)
			return menu[g][i];
	return gb_s;
}

struct tuner_input tuner_input_of(const struct ft_gpu *gpu, double ranks, double nodes,
				  double ring_gb_s, double net_gb_s)
{
	enum tuner_generation g = generation_of(gpu);
	double rings = g >= TUNER_MI250 ? 28 : g <= TUNER_AMPERE ? 12 : 16;
	double heads = ranks / nodes, inter = net_gb_s / rings;
	struct tuner_input in = { .generation = g, .ranks = ranks, .nodes = nodes };

	in.ring = (struct tuner_graph){ rings, tried(g, ring_gb_s / rings), inter };
	if (nodes > 1)
		in.ring.intra = fmin(in.ring.intra, inter);
	in.tree = in.ring;
	if (g == TUNER_HOPPER || g == TUNER_BLACKWELL)
		in.nvls = (struct tuner_graph){ heads, tried(g, ring_gb_s / heads),
						net_gb_s / heads };
	in.collnet = (struct tuner_graph){ heads, net_gb_s / heads, net_gb_s / heads };
	return in;
}
