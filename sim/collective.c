/*
 * sim/collective.c - one collective among ranks wherever they lie
 *
 * Inside one domain the profile's tables answer (sim/inside.c). Across domains a row of the
 * table of algorithms (sim/algorithm.h) is chosen: by our clock; by the library's prices
 * where the library is known to choose otherwise; or by a rule that the fabric brings.
 * sim/across.h says how long it takes, and how much the best row would have saved.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/whole.h"
#include "foretoken/sim.h"
#include "sim/algorithm.h"
#include "sim/collective.h"
#include "sim/tuner.h"

/* Ranks of a group from rank `start` on that lie before a place. */
static int64_t ranks_before(struct ft_group_shape s, int64_t start, int64_t place)
{
	int64_t n = place > start ? ceil_div(place - start, s.stride) : 0;

	return n < s.size ? n : s.size;
}

/* The fewest ranks of a group in a domain that it touches, and how many it touches. What lies
 * between its first and its last domain repeats after `stride` of them. */
static void spread_from(int64_t domain, struct ft_group_shape s, int64_t start,
			int64_t *fewest, int64_t *touched)
{
	int64_t first = start / domain, n = 0;
	int64_t last = (start + (s.size - 1) * s.stride) / domain;

	*fewest = s.size;
	for (int64_t d = first; d <= last; d++) {
		if (d - first > s.stride && d < last)
			d = last;
		n = ranks_before(s, start, (d + 1) * domain) -
		    ranks_before(s, start, d * domain);
		*fewest = n && n < *fewest ? n : *fewest;
	}
	*touched = last - first + 1;
}

/* Of groups that do not fill domains alike, the one with the fewest ranks in a domain, and so
 * with the fewest NICs there: rings and trees of a library have as many channels everywhere. */
static void spread_unevenly(const struct ft_cluster *c, int64_t domain,
			    struct ft_group_shape s, struct group *g)
{
	int64_t span = s.size * s.stride;
	int64_t bases = s.tiles ? domain / whole_divisor(span, domain) : 1;
	int64_t fewest = s.size, most = 1;

	if (s.tiles && (bases > c->ranks / span))
		bases = c->ranks / span > 1 ? c->ranks / span : 1;
	for (int64_t b = 0; b < bases && fewest > 1; b++)
		for (int64_t o = 0; o < (s.tiles ? s.stride : 1) && fewest > 1; o++) {
			int64_t n, k;

			spread_from(domain, s, b * span + o, &n, &k);
			if (k > 1 &&
			    (most == 1 || n < fewest || (n == fewest && k > most))) {
				fewest = n;
				most = k;
			}
		}
	g->per_domain = (double)fewest;
	g->domains = (double)most;
}

/* Ranks of the group per domain of so many, and domains it touches. Of a rack that is a domain,
 * schedulers give a job segments of nodes in which its groups lie, equal ones of groups that no
 * rack holds; of a server a job has all GPUs. */
static void spread_over(const struct ft_cluster *c, int64_t domain,
			struct ft_group_shape s, struct group *g)
{
	int64_t per = domain / s.stride;
	int64_t span = s.size * s.stride, domains;

	g->ranks = (double)s.size;
	g->stride = (double)s.stride;
	if (domain <= c->ranks_per_node && s.stride < domain &&
	    (domain % s.stride || (domain % span && span % domain))) {
		spread_unevenly(c, domain, s, g);
		return;
	}
	per = per > 1 ? per : 1;
	per = s.size < per ? s.size : per;
	domains = ceil_div(s.size, per);
	g->domains = (double)domains;
	g->per_domain = (double)(s.size / domains);
}

/* Domains of one node send as one: their NICs are the node's. */
struct network_sends collective_sends(const struct ft_cluster *c, enum ft_collective op,
				      struct ft_group_shape shape)
{
	int64_t node = c->ranks_per_node;
	int64_t member = c->domain_ranks > node ? c->domain_ranks : node;
	struct network_sends x = { .pattern = op == FT_ALL_TO_ALL ? NETWORK_PAIRS :
								    NETWORK_RING };
	struct group g;

	spread_over(c, member, shape, &g);
	x.members = (int64_t)g.domains;
	x.stride = (shape.stride > member ? shape.stride : member) / node;
	return x;
}

struct ft_links links_of(const struct ft_cluster *c)
{
	return (struct ft_links){ c->node->scale_up,
				  c->node->scale_up_bytes_per_s.value };
}

/* What a ring reaches in a domain, reduction in the switch aside. */
static bool find_bus(const struct ft_cluster *c, struct group *g, struct ft_error *err)
{
	const double large = 16 * 1024.0 * 1024 * 1024;
	bool nvlink = !strcmp(c->node->scale_up, "nvlink");
	struct ft_collective_call call = {
		.op = FT_ALL_REDUCE,
		.bytes = large,
		.shape = { (int64_t)g->per_domain, (int64_t)g->stride },
	};
	struct ft_links links = links_of(c);
	struct ft_collective_result in;

	if (nvlink)
		links.fabric = "nvlink-no-nvls";
	if (!ft_collective_inside(c->gpu, &links, NULL, &call, &in, err))
		return false;
	g->bus_bytes_per_s =
		large * 2 * (g->per_domain - 1) / g->per_domain / in.duration.time_s;
	return true;
}

/* share: of a NIC's line rate, beside what the fabric's recipe takes off. */
static bool group_of(const struct ft_cluster *c, const struct ft_ccl *ccl, double share,
		     struct group *g, struct ft_error *err)
{
	const struct ft_fabric *f = c->fabric;
	double switches =
		c->topology.tiers > 1 ? (double)(2 * c->topology.tiers - 2) : 0;

	g->cluster = c;
	g->ccl = ccl;
	g->tuning = ft_ccl_tuning(ccl, c->gpu->ccl_generation);
	if (!g->tuning)
		return ft_ccl_unknown(ccl, c->gpu->ccl_generation, NULL, err);
	if (f->wiring == FT_WIRING_NONE)
		return ft_fail(err, &c->gpus_mark,
			       "a group spans nodes but the "
			       "cluster has no fabric");
	g->bus_bytes_per_s = 1e18;
	g->port_bytes_per_s = c->node->scale_up_bytes_per_s.value;
	g->nic_bytes_per_s = c->nic_bytes_per_s * f->efficiency.value * share;
	g->stretch = f->ring_step_s.value / g->tuning->network.ring_step_s;
	g->extra_s = f->hop_s.value * switches + f->latency_s.value -
		     g->tuning->network.latency_s;
	g->peer_s = f->exchange_peer_s.value;
	g->sharp = f->sharp;
	if (g->per_domain > 1 && !find_bus(c, g, err))
		return false;
	tuner_search(g, g->bus_bytes_per_s, g->per_domain * c->nic_bytes_per_s);
	return true;
}

/* ---- by which row -------------------------------------------------------------- */

/* A fabric may come with a tuner of its own, as EFA does. */
static const char *by_fabric(const struct group *g,
			     const struct ft_collective_call *call)
{
	const struct ft_fabric *f = g->cluster->fabric;
	double from = f->rings_from.value;

	if (!(from > 0) || call->op != FT_ALL_REDUCE || call->algorithm ||
	    g->ranks > (double)f->rings_ranks)
		return NULL;
	return call->bytes >= from * g->ranks ? "ring" : "tree";
}

static struct choice choose(const struct group *g,
			    const struct ft_collective_call *call, const char **by)
{
	struct ft_collective_call asked = *call;

	asked.algorithm = by_fabric(g, call);
	if (asked.algorithm) {
		*by = "fabric";
		return choose_by_time(g, &asked);
	}
	if (call->algorithm || call->protocol)
		*by = "asked";
	else if (g->ccl->choice == FT_BY_LIBRARY)
		*by = "library";
	else
		*by = "time";
	return g->ccl->choice == FT_BY_LIBRARY ? choose_by_library(g, call) :
						 choose_by_time(g, call);
}

static bool cannot(const struct ft_collective_call *call, struct ft_error *err)
{
	struct arena mem = { 0 };
	const char **name = ARENA_ARRAY(&mem, n_algorithms, const char *);

	for (size_t i = 0; i < n_algorithms; i++)
		name[i] = algorithms[i].name;
	ft_fail(err, NULL,
		"%s cannot run as '%s%s%s' here; there are %s, by LL, LL128 and "
		"Simple, as the operation, the GPUs and the fabric allow",
		ft_collective_name(call->op), call->algorithm ? call->algorithm : "",
		call->algorithm && call->protocol ? " " : "",
		call->protocol ? call->protocol : "",
		text_join(&mem, name, n_algorithms));
	arena_release(&mem);
	return false;
}

static double scale_up_bytes(const struct group *g,
			     const struct ft_collective_call *call)
{
	if (g->per_domain <= 1 || call->op == FT_BROADCAST || call->op == FT_SENDRECV)
		return 0;
	if (call->op == FT_ALL_TO_ALL)
		return call->bytes * (g->per_domain - 1) / g->ranks;
	return call->bytes * ft_collective_bus_factor(call->op, (int64_t)g->ranks);
}

/*
 * A token goes once to each rank that has one of its experts, and across the network once
 * to each domain: of the n ranks that its copies reach, the domains that they reach remain.
 */
static double kept_frac(const struct group *g, const struct ft_collective_call *call)
{
	if (call->op != FT_ALL_TO_ALL || call->fanout.copies <= 0)
		return 0;
	return 1 - ft_fanout_reached(call->fanout, g->domains) /
			   ft_fanout_reached(call->fanout, g->ranks);
}

/* A sum among ranks of several domains holds the sum among those of each: its least time. */
static bool least_time(const struct group *g, const struct ft_collective_call *call,
		       double *time_s, struct ft_error *err)
{
	struct ft_links links = links_of(g->cluster);
	struct ft_collective_call in = *call;
	struct ft_collective_result out = { .domains = 1 };

	*time_s = 0;
	if (call->op != FT_ALL_REDUCE || g->per_domain <= 1)
		return true;
	in.shape.size = (int64_t)g->per_domain;
	in.algorithm = in.protocol = NULL;
	if (!ft_collective_inside(g->cluster->gpu, &links, g->ccl, &in, &out, err))
		return false;
	*time_s = out.duration.time_s;
	return true;
}

static bool outside(const struct group *g, const struct ft_collective_call *call,
		    struct ft_collective_result *out, struct ft_error *err)
{
	struct ft_collective_call any = *call;
	struct choice c = choose(g, call, &out->chosen_by), best;
	double least_s;

	if (!c.algorithm)
		return cannot(call, err);
	if (!least_time(g, call, &least_s, err))
		return false;
	any.algorithm = any.protocol = NULL;
	best = choose_by_time(g, &any);
	out->domains = (int64_t)g->domains;
	out->algorithm = c.algorithm->name;
	out->protocol = ft_protocol_name(c.protocol);
	out->duration.time_s = fmax(
		least_s, c.algorithm->time_s(g, c.protocol, call->op, call->bytes));
	out->duration.spread_frac = g->tuning->spread_frac;
	out->regret_frac =
		fmax(0, out->duration.time_s / fmax(least_s, best.time_s) - 1);
	out->best_algorithm = best.algorithm->name;
	out->best_protocol = ft_protocol_name(best.protocol);
	out->nic_bytes =
		c.algorithm->nic_bytes(g, call->op, call->bytes) * (1 - g->kept_frac);
	out->scale_up_bytes = scale_up_bytes(g, call);
	return true;
}

static bool inside(const struct ft_cluster *c, const struct ft_ccl *ccl,
		   const struct ft_collective_call *call,
		   struct ft_collective_result *out, struct ft_error *err)
{
	struct ft_links links = links_of(c);

	if (!ft_collective_inside(c->gpu, &links, ccl, call, out, err))
		return false;
	if ((call->algorithm && strcmp(out->algorithm, call->algorithm)) ||
	    (call->protocol && strcmp(out->protocol, call->protocol)))
		return ft_fail(err, NULL,
			       "inside one domain the tables hold what "
			       "the library chose, which is %s by %s",
			       out->algorithm, out->protocol);
	return true;
}

bool collective_at(const struct ft_cluster *c, const struct ft_ccl *ccl,
		   const struct ft_collective_call *call, double share,
		   struct ft_collective_result *out, struct ft_error *err)
{
	struct group g = { 0 };

	*out = (struct ft_collective_result){ .domains = 1 };
	spread_over(c, c->domain_ranks, call->shape, &g);
	if (g.domains <= 1)
		return inside(c, ccl, call, out, err);
	g.kept_frac = kept_frac(&g, call);
	return group_of(c, ccl, share, &g, err) && outside(&g, call, out, err);
}

bool ft_collective_predict(const struct ft_cluster *c, const struct ft_ccl *ccl,
			   const struct ft_collective_call *call,
			   struct ft_collective_result *out, struct ft_error *err)
{
	struct network_sends sends = collective_sends(c, call->op, call->shape);

	double share = 1;

	*out = (struct ft_collective_result){ .domains = 1 };
	return (sends.members < 2 || network_share(c, &sends, &share, err)) &&
	       collective_at(c, ccl, call, share, out, err);
}
