/* reports/evidence_network.c - what an answer says of its network: what was asked of it in vain, or is built otherwise */
#include <math.h>
#include <stdio.h>

#include "base/node.h"
#include "reports/evidence.h"

/* Faults of what this size has none of: a sweep over sizes may state them all the same. */
const char *evidence_faults(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	const struct ft_cluster *c = s->cluster;
	const struct ft_imperfections *x = &c->imperfections;
	bool network = c->topology.tiers > 0;
	bool uplinks = c->topology.tiers > 1 || c->fabric->graph;
	bool failed = x->failed_uplinks_frac > 0 && !uplinks;
	bool slow = x->slow_nics_frac > 0 && !network;

	(void)o;
	if (!failed && !slow)
		return "";
	snprintf(text, SENTENCE, "%s, so that %s%s%s change%s nothing.",
		 network ? "The network has no uplinks" : "There is no network",
		 failed ? "failed_uplinks_frac" : "", failed && slow ? " and " : "",
		 slow ? "slow_nics_frac" : "", failed && slow ? "" : "s");
	return text;
}

/* Keys of the fabric that a network of so few tiers, or of such routing, has no use for. */
const char *evidence_fabric(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	const struct ft_cluster *c = s->cluster;
	int tiers = (int)c->topology.tiers;
	const struct {
		const char *key;
		bool idle;
	} keys[] = {
		{ "oversubscription", tiers < 2 },
		{ "spare_spines", tiers < 2 },
		{ "core_oversubscription", tiers < 3 },
		{ "queue_pairs", c->fabric->adaptive },
	};
	size_t n = 0, idle = 0;

	(void)o;
	for (size_t i = 0; !c->fabric->graph && i < sizeof(keys) / sizeof(*keys); i++) {
		char path[64];

		snprintf(path, sizeof(path), "cluster.fabric.%s", keys[i].key);
		if (keys[i].idle && !node_is_null(node_path(s->given, path)))
			n += (size_t)snprintf(text + n, SENTENCE - n, "%s%s",
					      idle++ ? ", " : "", keys[i].key);
	}
	if (!idle)
		return "";
	snprintf(text + n, SENTENCE - n,
		 " change%s nothing in a network of %d tier%s with %s routing.",
		 idle > 1 ? "" : "s", tiers, tiers == 1 ? "" : "s",
		 c->fabric->adaptive ? "adaptive" : "hashed");
	return text;
}

const char *evidence_rails(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	const struct ft_cluster *c = s->cluster;

	bool links = c->imperfections.failed_uplinks_frac > 0;
	bool spines = c->imperfections.failed_spines > 0;

	(void)o;
	if ((!links && !spines) || c->fabric->graph || c->topology.tiers < 2 ||
	    c->topology.nodes_per_leaf < c->nodes)
		return "";
	snprintf(text, SENTENCE,
		 "All NICs of a rail share a leaf, so that %s%s%s slow%s only what "
		 "crosses rails.",
		 links ? "failed_uplinks_frac" : "", links && spines ? " and " : "",
		 spines ? "failed_spines" : "", links && spines ? "" : "s");
	return text;
}

const char *evidence_ports(const struct ft_cluster *c, char text[SENTENCE])
{
	const char *fabric = *c->fabric->name ? c->fabric->name : "the fabric";
	double planes = (double)c->topology.planes;
	double port = c->fabric->port_bytes_per_s.value * 8e-9;
	double nic = c->node->nic_bytes_per_s.value * 8e-9;

	if (!c->topology.tiers || c->fabric->graph || fabs(nic / port - 1) < 0.01)
		return "";
	if (planes * port < nic * 0.99)
		snprintf(text, SENTENCE,
			 "NICs of %.4g Gb/s run at %.4g Gb/s, as ports of %s do%s.",
			 nic, planes * port, fabric, planes > 1 ? ", in planes" : "");
	else if (planes > 1)
		snprintf(
			text, SENTENCE,
			"NICs of %.4g Gb/s have %.0f links of %.4g Gb/s, each to a plane "
			"of switches of its own.",
			nic, planes, fmin(port, nic / planes));
	else
		snprintf(
			text, SENTENCE,
			"NICs of %.4g Gb/s use %.0f %% of the ports of %.4g Gb/s of %s; "
			"switch.split lets several share one.",
			nic, 100 * nic / port, port, fabric);
	return text;
}

/* Is a ratio that is asked for built as another one? */
static bool otherwise(double asked, double built)
{
	return asked > 0 && fabs(built / asked - 1) >= 0.01;
}

/* Of the fullest leaf: a leaf has whole ports, and more uplinks where that takes fewer spines. */
static double leaf_built(const struct ft_topology *t)
{
	return (double)t->leaf_down / (double)t->leaf_up;
}

/* Below the top tier, in cables down over cables up. */
static double core_built(const struct ft_topology *t)
{
	return t->tiers == 3 ?
		       (double)t->cables_leaf_spine / (double)t->cables_spine_core :
		       (double)t->cables_spine_core / (double)t->cables_core_top;
}

const char *evidence_ratios(const struct ft_cluster *c, char text[SENTENCE])
{
	const struct ft_topology *t = &c->topology;
	double leaf = c->fabric->oversubscription;
	double core = c->fabric->core_oversubscription;
	bool leaves = t->tiers > 1 && leaf != 1 && otherwise(leaf, leaf_built(t));
	bool cores = t->tiers > 2 && core > 1 && otherwise(core, core_built(t));
	size_t n;

	if (c->fabric->graph || (!leaves && !cores))
		return "";
	n = (size_t)snprintf(text, SENTENCE, "Switches have whole ports, so that ");
	if (leaves)
		n += (size_t)snprintf(text + n, SENTENCE - n,
				      "an oversubscription of %.4g is built as %.4g%s",
				      leaf, leaf_built(t), cores ? ", and " : ".");
	if (cores)
		snprintf(text + n, SENTENCE - n,
			 "a core_oversubscription of %.4g is built as %.4g.", core,
			 core_built(t));
	return text;
}

const char *evidence_built(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	(void)o;
	return evidence_ratios(s->cluster, text);
}

const char *evidence_links(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	(void)o;
	return evidence_ports(s->cluster, text);
}
