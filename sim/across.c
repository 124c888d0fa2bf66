/* sim/across.c - laws of collectives across scale-up domains */
#include "sim/across.h"

#include <math.h>

struct protocol {
	double base_s, step_s, efficiency, cap_bytes_per_s; /* of a ring */
	double tree_base_s, tree_hop_s, tree_net_s, tree_efficiency;
};

static const struct protocol protocols[] = {
	[TUNER_LL] = { 6.6e-6, 4.0e-6, 0.5, 35e9, 6.8e-6, 0.6e-6, 5.0e-6, 1 / 3.8 },
	[TUNER_LL128] = { 14e-6, 6.2e-6, 0.78, 1e18, 14e-6, 1.25e-6, 8.5e-6,
			  120.0 / 128 },
	[TUNER_SIMPLE] = { 8.4e-6, 14e-6, 1, 1e18, 8.4e-6, 4.0e-6, 14e-6, 1 },
};

static double bandwidth(const struct paths *p)
{
	return fmin(p->g * p->nic, p->bus);
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

double across_ring_s(const struct paths *p, enum tuner_protocol q,
		     enum ft_collective op, double bytes)
{
	const struct protocol *x = &protocols[q];
	double steps = (op == FT_ALL_REDUCE ? 2 : 1) * (p->n - 1);
	double b = fmin(bandwidth(p) * x->efficiency, x->cap_bytes_per_s);

	return hypot(x->base_s + steps * x->step_s * p->stretch,
		     across_wire_s(op, p->n, bytes, b));
}

double across_tree_s(const struct paths *p, enum tuner_protocol q, double bytes)
{
	const struct protocol *x = &protocols[q];
	double e = (p->amd ? 0.59 : 0.92) * x->tree_efficiency *
		   tuner_tree_correction(q, bytes);

	return x->tree_base_s +
	       2 * ((p->g - 1) * x->tree_hop_s +
		    log2(p->k) * (x->tree_net_s + p->extra_s)) +
	       2 * bytes / (bandwidth(p) * e);
}

/* Reduction in the NVLink switch of each domain, trees across them. */
double across_nvls_tree_s(const struct paths *p, double bytes)
{
	const double hop = 25e-6, net_hop = 20.9e-6, efficiency = 0.85;

	return hop + 2 * log2(p->k) * (net_hop + p->extra_s) +
	       2 * bytes / (efficiency * fmin(p->g * p->nic, 1.25 * p->bus));
}

double across_sharp_s(const struct paths *p, double bytes)
{
	const double base = 8.4e-6, switch_hop = 31e-6, hop = 3.7e-6;
	double inside =
		p->g > 1 ? across_wire_s(FT_ALL_REDUCE, p->g, bytes, p->bus) : 0;

	return base + 2 * hop + switch_hop + p->extra_s +
	       fmax(across_sharp_net_s(bytes, p->g, p->nic), inside);
}

double across_pat_s(const struct paths *p, enum ft_collective op, double bytes)
{
	return 8e-6 + log2(p->k) * (14e-6 + p->extra_s) / 3.5 + 2.8e-6 * p->n +
	       across_wire_s(op, p->n, bytes, 0.75 * bandwidth(p));
}

double across_pairs_s(const struct paths *p, double bytes)
{
	double net = bytes * (p->n - p->g) / p->n / (p->amd ? 0.6 : 1);
	double in = bytes * (p->g - 1) / p->n;

	return 12e-6 + (p->k - 1) * 1.5e-6 + p->extra_s +
	       fmax(net / p->nic, p->g > 1 ? in / (0.75 * p->port) : 0);
}

double across_one_path_s(const struct paths *p, enum ft_collective op, double bytes)
{
	bool point = op == FT_SENDRECV;

	return 10e-6 + (point ? 1 : p->k - 1) * (4e-6 + p->extra_s) +
	       bytes / (point ? p->nic : bandwidth(p));
}
