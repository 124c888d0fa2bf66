/*
 * sim/collective.c - one collective among ranks wherever they lie
 *
 * A group of n ranks touches k scale-up domains with g ranks in each. Inside one
 * domain the profile's tables answer (sim/inside.c). Across domains every rank
 * brings its own share of the NICs, and the algorithms are NCCL's, with f the
 * bus factor and B = min(g * nic * efficiency, bus bandwidth of the domain):
 *   ring    base + (steps - net) * hop + net * net_hop + S f / (B e)
 *           steps = n-1, net = k-1; both twice for all_reduce
 *   tree    base + 2 ((g-1) hop + log2(k) net_hop) + 2 S / (B e)
 *   nvlstree  25 us + 2 log2(k) 20.9 us + 2 S / (0.85 min(g nic, 1.25 bus))
 *   sharp   base + 2 hop + switch_hop + max(S / (g nic), 2 (g-1)/g S / bus)
 *   all_to_all   base + (k-1) * 1.5 us + max(S (n-g)/n / nic, S (g-1)/n / port)
 * net_hop grows by eight times what the fabric's ring step (of a rank among eight)
 * has above NDR InfiniBand's. hops and e by protocol (LL, LL128, Simple) are the constants of NVIDIA/nccl
 * 2.30 (src/graph/tuning.cc), nvlstree's and sharp's too; the fastest is taken, as
 * NCCL's tuner does. Starts and hops of all_to_all, broadcast and sendrecv, and the
 * 0.75 of a port that all_to_all reaches, are assumed.
 * The linear term in ranks was checked against published multi-node ratios
 * (tests/test_collective.c). Limit: one collective alone; sharing is sim/rates.c.
 */
#include <math.h>
#include <string.h>

#include "foretoken/sim.h"
#include "sim/network.h"

struct protocol {
	const char *name;
	double ring_base_s, ring_hop_s, ring_net_s;
	double tree_base_s, tree_hop_s, tree_net_s;
	double efficiency, cap_bytes_per_s;
};

static const struct protocol protocols[] = {
	{ "LL", 6.6e-6, 0.6e-6, 2.7e-6, 6.8e-6, 0.6e-6, 5.0e-6, 0.5, 35e9 },
	{ "LL128", 14e-6, 1.9e-6, 4.0e-6, 14e-6, 1.25e-6, 8.5e-6, 0.92, 1e18 },
	{ "Simple", 8.4e-6, 3.4e-6, 14e-6, 8.4e-6, 4.0e-6, 14e-6, 1.0, 1e18 },
};

/* 4.58 us a rank: fitted on published ratios of 2 to 128 nodes */
static const double NDR_STEP_S = 4.58e-6;

enum {
	PROTOCOLS = sizeof(protocols) / sizeof(*protocols),
	LL_BYTES_PER_RANK = 16 * 1024,
	LL128_BYTES_PER_RANK = 256 * 1024,
};

/* What a group sees of the machine. */
struct paths {
	double n, g, k;
	double nic;      /* bytes/s of a rank that data reach */
	double bus;      /* of a ring through one domain */
	double extra_s;  /* of a network hop beyond the tuner's constants */
	bool amd, nvls;
	const char *only; /* the one algorithm wanted; NULL: the fastest */
};

/* Ranks of the group per domain, and domains it touches. */
static void spread_over(const struct ft_cluster *c, struct ft_group_shape shape,
			struct paths *p)
{
	int64_t per = shape.stride < c->domain_ranks ?
			      c->domain_ranks / shape.stride : 1;
	int64_t g = shape.size < per ? shape.size : per;

	p->n = (double)shape.size;
	p->g = (double)g;
	p->k = (double)((shape.size + g - 1) / g);
}

static bool beyond_leaf(const struct ft_cluster *c, const struct paths *p)
{
	double nodes = p->k * (double)c->domain_ranks / (double)c->ranks_per_node;

	return c->topology.tiers > 1 &&
	       nodes > (double)c->topology.nodes_per_leaf;
}

/* The share of a NIC's line rate that data reach: what the fabric's recipe says,
 * times what is left of it by the flows on an imperfect cluster's links. */
static double nic_share(const struct ft_cluster *c, const struct paths *p,
			enum ft_collective op)
{
	double eff = c->fabric->efficiency.value, nodes;

	if (beyond_leaf(c, p) && c->fabric->oversubscription > 1)
		eff /= c->fabric->oversubscription;
	if (!c->imperfections.given)
		return eff;
	nodes = ceil(p->k * (double)c->domain_ranks / (double)c->ranks_per_node);
	return eff * network_share(c, (int64_t)nodes,
				   op == FT_ALL_TO_ALL ? NETWORK_PAIRS :
							 NETWORK_RING);
}

static bool paths_of(const struct ft_cluster *c, struct ft_group_shape shape,
		     enum ft_collective op, struct paths *p,
		     struct ft_error *err)
{
	struct ft_collective_result in;

	spread_over(c, shape, p);
	p->amd = !strcmp(c->gpu->vendor, "amd") || !strcmp(c->gpu->vendor, "AMD");
	p->bus = 1e18;
	p->nvls = !strcmp(c->node->scale_up, "nvlink") &&
		  c->gpu->peak_flop_per_s[FT_FP8].value > 0;
	p->extra_s = 0;
	p->nic = 0;
	if (p->k > 1) {
		if (c->fabric->wiring == FT_WIRING_NONE)
			return ft_fail(err, &c->gpus_mark, "a group spans nodes "
				       "but the cluster has no fabric");
		p->nic = c->nic_bytes_per_s * nic_share(c, p, op);
		/* the recipe's step is of a rank among eight: a hop is eight */
		p->extra_s += 8 * fmax(0, c->fabric->ring_step_s.value -
					  NDR_STEP_S);
		p->extra_s = c->fabric->hop_s.value *
			     (double)(c->topology.tiers > 1 ?
				      2 * c->topology.tiers - 2 : 0) +
			     fmax(0, c->fabric->latency_s.value - 2e-6);
	}
	if (p->g > 1) {
		const double large = 16 * 1024.0 * 1024 * 1024;
		bool nvlink = !strcmp(c->node->scale_up, "nvlink");

		/* what a ring reaches, in-switch reduction aside */
		if (!ft_collective_inside(c->gpu, nvlink ? "nvlink-no-nvls" :
							   c->node->scale_up,
					  FT_ALL_REDUCE, (int64_t)p->g, large,
					  &in, err))
			return false;
		p->bus = large * 2 * (p->g - 1) / p->g / in.duration.time_s;
	}
	return true;
}

static double bandwidth(const struct paths *p)
{
	return fmin(p->g * p->nic, p->bus);
}

static double ring_s(const struct paths *p, const struct protocol *q,
		     enum ft_collective op, double bytes)
{
	double times = op == FT_ALL_REDUCE ? 2 : 1;
	double steps = times * (p->n - 1), net = times * (p->k - 1);
	double b = fmin(bandwidth(p) * q->efficiency, q->cap_bytes_per_s);
	double f = ft_collective_bus_factor(op, (int64_t)p->n);

	return q->ring_base_s +
	       (steps - net) * q->ring_hop_s +
	       net * (q->ring_net_s + p->extra_s) + bytes * f / b;
}

static double tree_s(const struct paths *p, const struct protocol *q,
		     double bytes)
{
	double b = fmin(bandwidth(p) * q->efficiency * 0.92,
			q->cap_bytes_per_s);

	return q->tree_base_s +
	       2 * ((p->g - 1) * q->tree_hop_s +
		    log2(p->k) * (q->tree_net_s + p->extra_s)) +
	       2 * bytes / b;
}

/* Reduction in the NVLink switch of each domain, trees across them. */
static double nvls_tree_s(const struct paths *p, double bytes)
{
	const double hop = 25e-6, net_hop = 20.9e-6, efficiency = 0.85;

	return hop + 2 * log2(p->k) * (net_hop + p->extra_s) +
	       2 * bytes / (efficiency * fmin(p->g * p->nic, 1.25 * p->bus));
}

static double sharp_s(const struct paths *p, double bytes)
{
	const double switch_hop = 31e-6, hop = 3.7e-6;
	double inside = p->g > 1 ? 2 * (p->g - 1) / p->g * bytes / p->bus : 0;

	return 8.4e-6 + 2 * hop + switch_hop + p->extra_s +
	       fmax(bytes / (p->g * p->nic), inside);
}

static void take(const struct paths *p, struct ft_collective_result *out,
		 double time_s, const char *algorithm, const char *protocol)
{
	if (p->only && strcmp(p->only, algorithm))
		return;
	if (out->algorithm && time_s >= out->duration.time_s)
		return;
	out->duration.time_s = time_s;
	out->algorithm = algorithm;
	out->protocol = protocol;
}

static void by_rings(const struct ft_cluster *c, const struct paths *p,
		     enum ft_collective op, double bytes,
		     struct ft_collective_result *out)
{
	double f = ft_collective_bus_factor(op, (int64_t)p->n);

	for (int i = 0; i < PROTOCOLS; i++) {
		/* measured rings of many nodes keep to Simple from a few KiB a
		 * rank on; RCCL's LL128 stays inside a node */
		if (i == 0 && bytes / p->n >= LL_BYTES_PER_RANK)
			continue;
		if (i == 1 && (p->amd || p->k > 2 ||
			       bytes / p->n >= LL128_BYTES_PER_RANK))
			continue;
		take(p, out, ring_s(p, &protocols[i], op, bytes), "ring",
		     protocols[i].name);
		if (op == FT_ALL_REDUCE)
			take(p, out, tree_s(p, &protocols[i], bytes), "tree",
			     protocols[i].name);
	}
	if (op == FT_ALL_REDUCE && p->nvls && p->g >= 8)
		take(p, out, nvls_tree_s(p, bytes), "nvlstree", "Simple");
	out->scale_up_bytes = p->g > 1 ? bytes * f : 0;
	out->nic_bytes = bytes * f / p->g;
	if (op == FT_ALL_REDUCE && c->fabric->sharp) {
		take(p, out, sharp_s(p, bytes), "sharp", "Simple");
		if (out->algorithm && !strcmp(out->algorithm, "sharp"))
			out->nic_bytes = bytes / p->g;
	}
}

static void by_pairs(const struct ft_cluster *c, const struct paths *p,
		     double bytes, struct ft_collective_result *out)
{
	double net = bytes * (p->n - p->g) / p->n;
	double in = bytes * (p->g - 1) / p->n;
	double port = c->node->scale_up_bytes_per_s.value * 0.75;
	double t = fmax(net / p->nic, p->g > 1 ? in / port : 0);

	out->scale_up_bytes = in;
	out->nic_bytes = net;
	take(p, out, 12e-6 + (p->k - 1) * 1.5e-6 + p->extra_s + t, "direct",
	     "Simple");
}

static void by_one_path(const struct paths *p, enum ft_collective op,
			double bytes, struct ft_collective_result *out)
{
	bool point = op == FT_SENDRECV;
	double b = point ? p->nic : bandwidth(p);
	double hops = point ? 1 : p->k - 1;

	out->nic_bytes = point ? bytes : bytes / p->g;
	take(p, out, 10e-6 + hops * (4e-6 + p->extra_s) + bytes / b,
	     point ? "direct" : "ring", "Simple");
}

static bool inside(const struct ft_cluster *c, enum ft_collective op,
		   double bytes, int64_t n, const char *algorithm,
		   struct ft_collective_result *out, struct ft_error *err)
{
	if (!ft_collective_inside(c->gpu, c->node->scale_up, op, n, bytes, out,
				  err))
		return false;
	if (algorithm && strcmp(algorithm, out->algorithm))
		return ft_fail(err, NULL, "inside one domain the tables hold what "
			       "the library chose, which is %s", out->algorithm);
	return true;
}

bool ft_collective_by(const struct ft_cluster *c, enum ft_collective op,
		      double bytes, struct ft_group_shape shape,
		      const char *algorithm, struct ft_collective_result *out,
		      struct ft_error *err)
{
	struct paths p = { .only = algorithm };

	*out = (struct ft_collective_result){ .domains = 1 };
	spread_over(c, shape, &p);
	if (p.k <= 1)
		return inside(c, op, bytes, shape.size, algorithm, out, err);
	if (!paths_of(c, shape, op, &p, err))
		return false;
	out->domains = (int64_t)p.k;
	switch (op) {
	case FT_ALL_TO_ALL:
		by_pairs(c, &p, bytes, out);
		break;
	case FT_BROADCAST:
	case FT_SENDRECV:
		by_one_path(&p, op, bytes, out);
		break;
	default:
		by_rings(c, &p, op, bytes, out);
	}
	if (!out->algorithm)
		return ft_fail(err, NULL, "%s cannot run as '%s' here; there are "
			       "ring, tree, nvlstree, sharp and direct, as the "
			       "operation, the GPUs and the fabric allow",
			       ft_collective_name(op), algorithm);
	out->duration.spread_frac = 0.15; /* fitted law 7.5 %, routing beside it */
	return true;
}

bool ft_collective_predict(const struct ft_cluster *c, enum ft_collective op,
			   double bytes, struct ft_group_shape shape,
			   struct ft_collective_result *out,
			   struct ft_error *err)
{
	return ft_collective_by(c, op, bytes, shape, NULL, out, err);
}
