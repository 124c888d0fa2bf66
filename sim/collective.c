/*
 * sim/collective.c - one collective among ranks wherever they lie
 *
 * Inside one domain the profile's tables answer (sim/inside.c). Across domains the
 * library's tuner names algorithm and protocol (sim/tuner.h), and the laws of
 * sim/across.h say how long that takes.
 */
#include <math.h>
#include <string.h>

#include "foretoken/sim.h"
#include "sim/across.h"
#include "sim/collective.h"

/* ring_step of the fabric that the laws were fitted on */
static const double NDR_STEP_S = 4.58e-6;

/* Ranks of the group per domain, and domains it touches. */
static void spread_over(const struct ft_cluster *c, struct ft_group_shape shape,
			struct paths *p)
{
	int64_t per =
		shape.stride < c->domain_ranks ? c->domain_ranks / shape.stride : 1;
	int64_t g = shape.size < per ? shape.size : per;

	p->n = (double)shape.size;
	p->g = (double)g;
	p->k = (double)((shape.size + g - 1) / g);
}

struct network_sends collective_sends(const struct ft_cluster *c, enum ft_collective op,
				      struct ft_group_shape shape)
{
	int64_t domain = c->domain_ranks / c->ranks_per_node;
	struct network_sends x = { .pattern = op == FT_ALL_TO_ALL ? NETWORK_PAIRS :
								    NETWORK_RING };
	struct paths p;

	spread_over(c, shape, &p);
	x.members = (int64_t)p.k;
	x.stride = shape.stride > c->domain_ranks ? shape.stride / c->ranks_per_node :
		   domain > 1			  ? domain :
						    1;
	return x;
}

/* share: of a NIC's line rate, beside what the fabric's recipe takes off. */
static bool paths_of(const struct ft_cluster *c, struct ft_group_shape shape,
		     double share, struct paths *p, struct ft_error *err)
{
	struct ft_collective_result in;

	spread_over(c, shape, p);
	p->amd = !strcmp(c->gpu->vendor, "amd");
	p->bus = 1e18;
	p->port = c->node->scale_up_bytes_per_s.value;
	if (c->fabric->wiring == FT_WIRING_NONE)
		return ft_fail(err, &c->gpus_mark,
			       "a group spans nodes but the "
			       "cluster has no fabric");
	p->nic = c->nic_bytes_per_s * c->fabric->efficiency.value * share;
	p->stretch = fmax(1, c->fabric->ring_step_s.value / NDR_STEP_S);
	p->extra_s =
		c->fabric->hop_s.value * (double)(c->topology.tiers > 1 ?
							  2 * c->topology.tiers - 2 :
							  0) +
		fmax(0, c->fabric->latency_s.value - 2e-6);
	if (p->g > 1) {
		const double large = 16 * 1024.0 * 1024 * 1024;
		bool nvlink = !strcmp(c->node->scale_up, "nvlink");

		/* what a ring reaches, in-switch reduction aside */
		if (!ft_collective_inside(
			    c->gpu, nvlink ? "nvlink-no-nvls" : c->node->scale_up,
			    FT_ALL_REDUCE,
			    (struct ft_group_shape){ (int64_t)p->g, shape.stride },
			    large, &in, err))
			return false;
		p->bus = large * 2 * (p->g - 1) / p->g / in.duration.time_s;
	}
	return true;
}

/* ---- by which algorithm ------------------------------------------------------- */

struct asked {
	const struct ft_cluster *c;
	const struct paths *p;
	enum ft_collective op;
	double bytes;
};

/* A SHARP network reduces for NVLS as well: both are sharp here. */
static const char *name_of(enum tuner_algorithm a)
{
	return tuner_algorithm_name(a == TUNER_NVLS ? TUNER_COLLNET_DIRECT : a);
}

static bool wanted(const char *name, const char *asked)
{
	return !asked || !strcmp(name, asked);
}

/* The cheapest pair in the library's eyes, of those asked for. */
static struct tuner_choice choose(const struct asked *q, struct ft_collective_choice by)
{
	const struct paths *p = q->p;
	struct tuner_input in = tuner_input_of(q->c->gpu, p->n, p->k, p->bus / 1e9,
					       p->g * q->c->nic_bytes_per_s / 1e9);
	struct tuner_choice best = { TUNER_RING, TUNER_SIMPLE, INFINITY };

	in.sharp = q->c->fabric->sharp;
	if (!by.algorithm && !by.protocol)
		return tuner_choose(&in, q->op, q->bytes);
	for (int i = 0; i < TUNER_ALGORITHMS * TUNER_PROTOCOLS; i++) {
		enum tuner_algorithm a = (enum tuner_algorithm)(i / TUNER_PROTOCOLS);
		enum tuner_protocol r = (enum tuner_protocol)(i % TUNER_PROTOCOLS);
		double us = tuner_us(&in, q->op, q->bytes, a, r);

		if (us < best.us && wanted(name_of(a), by.algorithm) &&
		    wanted(tuner_protocol_name(r), by.protocol))
			best = (struct tuner_choice){ a, r, us };
	}
	return best;
}

static double law_s(const struct asked *q, struct tuner_choice by)
{
	switch (by.algorithm) {
	case TUNER_TREE:
		return across_tree_s(q->p, by.protocol, q->bytes);
	case TUNER_RING:
		return across_ring_s(q->p, by.protocol, q->op, q->bytes);
	case TUNER_NVLS_TREE:
		return across_nvls_tree_s(q->p, q->bytes);
	case TUNER_PAT:
		return across_pat_s(q->p, q->op, q->bytes);
	default:
		return across_sharp_s(q->p, q->bytes);
	}
}

/* What frameworks build of three calls; chunks of 32 MB and more overlap by 0.9
 * (AMD Primus, projection/collective_args.py). */
static bool hierarchical(const struct asked *q, struct ft_collective_result *out,
			 struct ft_error *err)
{
	const struct paths *p = q->p;
	double part = q->bytes / p->g, overlap = 0.9 * fmin(1, part / 32e6);
	struct paths rail = *p;
	struct ft_collective_result in = { 0 };
	double inside_s = 0;

	for (int i = 0; i < 2 && p->g > 1; i++) {
		enum ft_collective op = i ? FT_ALL_GATHER : FT_REDUCE_SCATTER;

		if (q->op != FT_ALL_REDUCE && q->op != op)
			continue;
		if (!ft_collective_inside(q->c->gpu, q->c->node->scale_up, op,
					  (struct ft_group_shape){ (int64_t)p->g, 1 },
					  q->bytes, &in, err))
			return false;
		inside_s += in.duration.time_s;
	}
	rail.n = p->k;
	rail.g = 1;
	rail.bus = 1e18;
	out->duration.time_s = across_overlap_s(
		inside_s, across_ring_s(&rail, TUNER_SIMPLE, q->op, part), overlap);
	out->algorithm = "hierarchical";
	out->protocol = "Simple";
	out->nic_bytes = part * ft_collective_bus_factor(q->op, (int64_t)p->k);
	return true;
}

/* A fabric may come with a tuner of its own, as EFA does. */
static const char *by_fabric(const struct asked *q)
{
	double from = q->c->fabric->rings_from.value;

	if (!(from > 0) || q->op != FT_ALL_REDUCE || q->p->n > 128)
		return NULL;
	return q->bytes >= from * q->p->n ? "ring" : "tree";
}

static bool reductions(const struct asked *q, struct ft_collective_choice given,
		       struct ft_collective_result *out, struct ft_error *err)
{
	double f = ft_collective_bus_factor(q->op, (int64_t)q->p->n);
	struct tuner_choice by;

	out->scale_up_bytes = q->p->g > 1 ? q->bytes * f : 0;
	if (given.algorithm && !strcmp(given.algorithm, "hierarchical") &&
	    wanted("Simple", given.protocol))
		return hierarchical(q, out, err);
	if (!given.algorithm)
		given.algorithm = by_fabric(q);
	by = choose(q, given);
	if (isinf(by.us))
		return true; /* none of that name */
	out->duration.time_s = law_s(q, by);
	out->algorithm = name_of(by.algorithm);
	out->protocol = tuner_protocol_name(by.protocol);
	out->nic_bytes = q->bytes * f / q->p->g;
	if (!strcmp(out->algorithm, "sharp"))
		out->nic_bytes = q->bytes / q->p->g;
	return true;
}

static void direct(const struct asked *q, struct ft_collective_choice by,
		   struct ft_collective_result *out)
{
	const struct paths *p = q->p;
	bool pairs = q->op == FT_ALL_TO_ALL, point = q->op == FT_SENDRECV;
	const char *name = pairs || point ? "direct" : "ring";

	if (!wanted(name, by.algorithm) || !wanted("Simple", by.protocol))
		return;
	out->algorithm = name;
	out->protocol = "Simple";
	out->duration.time_s = pairs ? across_pairs_s(p, q->bytes) :
				       across_one_path_s(p, q->op, q->bytes);
	out->nic_bytes = pairs ? q->bytes * (p->n - p->g) / p->n :
			 point ? q->bytes :
				 q->bytes / p->g;
	out->scale_up_bytes = pairs ? q->bytes * (p->g - 1) / p->n : 0;
}

static bool inside(const struct ft_cluster *c, enum ft_collective op, double bytes,
		   struct ft_group_shape group, struct ft_collective_choice by,
		   struct ft_collective_result *out, struct ft_error *err)
{
	if (!ft_collective_inside(c->gpu, c->node->scale_up, op, group, bytes, out,
				  err))
		return false;
	if (!wanted(out->algorithm, by.algorithm) ||
	    !wanted(out->protocol, by.protocol))
		return ft_fail(err, NULL,
			       "inside one domain the tables hold what "
			       "the library chose, which is %s by %s",
			       out->algorithm, out->protocol);
	return true;
}

bool collective_at(const struct ft_cluster *c, enum ft_collective op, double bytes,
		   struct ft_group_shape shape, struct ft_collective_choice by,
		   double share, struct ft_collective_result *out, struct ft_error *err)
{
	struct paths p = { 0 };
	struct asked q = { .c = c, .p = &p, .op = op, .bytes = bytes };

	*out = (struct ft_collective_result){ .domains = 1 };
	spread_over(c, shape, &p);
	if (p.k <= 1)
		return inside(c, op, bytes, shape, by, out, err);
	if (!paths_of(c, shape, share, &p, err))
		return false;
	out->domains = (int64_t)p.k;
	if (op == FT_ALL_TO_ALL || op == FT_BROADCAST || op == FT_SENDRECV)
		direct(&q, by, out);
	else if (!reductions(&q, by, out, err))
		return false;
	if (!out->algorithm)
		return ft_fail(err, NULL,
			       "%s cannot run as '%s%s%s' here; there are "
			       "ring, tree, nvlstree, sharp, pat, hierarchical and "
			       "direct, by LL, LL128 and Simple, as the operation, the "
			       "GPUs and the fabric allow",
			       ft_collective_name(op), by.algorithm ? by.algorithm : "",
			       by.algorithm && by.protocol ? " " : "",
			       by.protocol ? by.protocol : "");
	out->duration.spread_frac = 0.15; /* fitted law 7.5 %, routing beside it */
	return true;
}

bool ft_collective_by(const struct ft_cluster *c, enum ft_collective op, double bytes,
		      struct ft_group_shape shape, struct ft_collective_choice by,
		      struct ft_collective_result *out, struct ft_error *err)
{
	struct network_sends sends = collective_sends(c, op, shape);

	return collective_at(c, op, bytes, shape, by,
			     sends.members > 1 ? network_share(c, &sends) : 1, out,
			     err);
}

bool ft_collective_predict(const struct ft_cluster *c, enum ft_collective op,
			   double bytes, struct ft_group_shape shape,
			   struct ft_collective_result *out, struct ft_error *err)
{
	struct ft_collective_choice any = { NULL, NULL };

	return ft_collective_by(c, op, bytes, shape, any, out, err);
}
