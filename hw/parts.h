/*
 * hw/parts.h - what a cluster consists of: facts of parts, the site around the servers,
 * where racks stand, and the table of lines made of all that
 */
#ifndef HW_PARTS_H
#define HW_PARTS_H

#include "foretoken/hw.h"

struct arena;
struct node;

/* ---- facts: hw/parts/NAME.yaml, and the `parts` map of a site upon them ---- */

struct catalogue {
	size_t n;
	struct ft_part *part;
};

bool catalogue_read(struct arena *mem, const struct node *more, struct catalogue *to,
		    struct ft_error *err) __attribute__((warn_unused_result));

/* NULL: not known. */
const struct ft_part *catalogue_find(const struct catalogue *from, const char *item);

/* Modules at both ends of a NIC's links carry what these do: where a port is faster than the
 * NIC, a NIC has two links or a cage two NICs, they are others than the recipe says, slower
 * or of twice the ports. */
void catalogue_modules(const struct catalogue *from, const struct ft_cluster *cluster,
		       const char **node, const char **leaf);

/* Copies and waits take as many watts where a card is capped, not as much of the cap. */
void catalogue_uncap(struct ft_part *part, const struct ft_gpu *gpu);

/* ---- site: hw/sites/NAME.yaml ------------------------------------------------ */

struct site {
	const char *name, *title;
	struct { /* network of storage, users, management */
		int64_t ports_per_node, radix, hall_nodes;
		double oversubscription;
		const char *switch_item, *optic_item, *cable_item;
	} front_end;
	struct {
		const char *item;
		double per_gpu_bytes, per_server_bytes;
		int64_t ports_per_server;
	} storage;
	struct {
		const char *item;
		int64_t servers, nodes_per_server; /* at least; one more for so many */
	} management;
	struct {
		const char *switch_item;
		int64_t ports;
	} out_of_band;
	struct
	{ /* rows of racks, side by side; slack: beside the way along the floor */
		const char *item, *pdu_item;
		int64_t pdus, row;
		double units, power_w, width_m, pitch_m, slack_m;
	} racks;
	const char *integration_item;
	struct ft_number spares_frac; /* of nodes, rounded down */
	struct catalogue catalogue;
};

/* value: a name, a path, or a map {extends: NAME, key: value}. */
bool site_read(struct arena *mem, const struct node *value, struct site *to,
	       struct ft_error *err) __attribute__((warn_unused_result));

/* ---- layout: how far it is --------------------------------------------------- */

enum { RACK_ITSELF_M = 2 }; /* cable within a rack */

/* Servers fill racks in order; a leaf stands in the middle of the racks of its nodes,
 * spines in the middle of their pod's, all above in the middle of the hall. */
struct layout {
	const struct site *site;
	int64_t nodes_per_rack, racks;	/* of servers */
	int64_t group_racks, pod_racks; /* below one leaf (or rail's leaves), one pod */
};

enum link_class { NODE_LEAF, LEAF_SPINE, SPINE_CORE, CORE_TOP, LINK_CLASSES };

/* The racks of servers of that size and power. */
struct layout layout_of(const struct ft_cluster *cluster, const struct site *site,
			double node_units, double node_w);

/* Does one of them fit a rack? */
bool layout_holds(const struct ft_cluster *cluster, const struct site *site,
		  double node_units, double node_w, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Of the links of a class those of at most so many metres. */
double layout_within_frac(const struct layout *layout, enum link_class class,
			  double metres);

/* ---- the table --------------------------------------------------------------- */

/* site: the value of the cluster's `site`. NULL on error. */
const struct ft_parts *parts_build(struct arena *mem, const struct ft_cluster *cluster,
				   const struct node *site, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
