/* tests/laid.h - a small fabric's links, laid out: 24 nodes or so, four to a leaf */
#ifndef TESTS_LAID_H
#define TESTS_LAID_H

#include "base/arena.h"
#include "sim/network_links.h"
#include "tests/check.h"

static const struct ft_fabric clos = { .name = "t",
				       .wiring = FT_WIRING_RAIL,
				       .radix = 8,
				       .planes = 1,
				       .port_bytes_per_s = { .value = 50e9 },
				       .oversubscription = 1,
				       .core_oversubscription = 1,
				       .rails_per_leaf = 1,
				       .ports_per_optic = 1,
				       .nic_ports_per_optic = 1,
				       .queue_pairs = 4 };

struct laid {
	struct arena mem;
	struct ft_fabric fabric;
	struct ft_cluster c;
	struct network w;
	struct network_part part[2];
	gsl_rng *rng;
};

static inline void lay(struct laid *l, const struct ft_fabric *fabric, int64_t nodes,
		       int nics, const struct ft_imperfections *im)
{
	struct ft_error err;

	*l = (struct laid){ .fabric = *fabric };
	l->c = (struct ft_cluster){ .fabric = &l->fabric,
				    .nodes = nodes,
				    .ranks_per_node = 2 * nics,
				    .nics_per_node = nics,
				    .nic_bytes_per_s = 25e9 };
	if (im)
		l->c.imperfections = *im;
	ok_or_say(ft_topology_build(&l->fabric, nodes, nics, 0, &l->c.topology, &err),
		  err);
	l->part[0] = (struct network_part){ 0, nodes / 2 };
	l->part[1] = (struct network_part){ nodes / 2, nodes - nodes / 2 };
	l->w = (struct network){ .mem = &l->mem,
				 .c = &l->c,
				 .nodes = nodes,
				 .part = l->part,
				 .n_parts = 2 };
	l->rng = gsl_rng_alloc(gsl_rng_taus);
	links_lay_out(&l->w, l->rng);
}

static inline void gone(struct laid *l)
{
	gsl_rng_free(l->rng);
	arena_release(&l->mem);
}

#endif
