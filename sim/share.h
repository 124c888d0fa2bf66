/*
 * sim/share.h - who gets how much: max-min fair rates of flows on links
 *
 *	maximise rates lexicographically from the smallest rate up, with
 *	sum over flows f on link l of rate_f use_fl <= capacity_l   for every link
 *	rate_f <= 1                                                 for every flow
 *
 * A rate is a share of what the flow would have alone. A class of k equal flows is one
 * flow whose uses are k times as large. Always true of a solution: no link is over its
 * capacity, and no flow can gain without one of smaller or equal rate losing. Source:
 * progressive filling
 * (Bertsekas, Gallager, Data Networks, 6.5.2). Fluid flows, not packets: limits are
 * latency and the unfairness of real congestion control.
 *
 * share_solve answers from scratch in O(F h log L) for F flows of h links.
 * share_update, after flows came or went, solves again only those whose rate can
 * have changed: flows reached from the changed ones over saturated links.
 */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum { SHARE_HOPS = 8 };

struct share_flow {
	double rate;		    /* (computed) 0 to 1 */
	uint32_t link[SHARE_HOPS];  /* (set) */
	float use[SHARE_HOPS];	    /* (set) what it takes of each link at rate 1 */
	uint32_t place[SHARE_HOPS]; /* ours: where it stands in each link's list */
	uint32_t mark;		    /* ours */
	uint8_t hops;		    /* (set) */
	bool active, fixed;
};

struct share_link {
	double capacity; /* (set) */
	double room,
		uses; /* ours, while solving: what is left, for uses of which sum */
	double load;  /* (computed) sum of rate x use on it */
	uint32_t *on; /* those that cross it: flow * SHARE_HOPS + hop */
	uint32_t n, cap;
	uint32_t mark, open;
};

struct share {
	struct arena *mem;
	size_t n_links, n_flows, flow_cap;
	struct share_link *link;
	struct share_flow *flow;
	uint32_t *some_flows, *some_links; /* what is being solved */
	size_t n_some_flows, n_some_links, some_flow_cap;
	struct share_level *heap;
	size_t n_heap, heap_cap;
	uint32_t *spare; /* numbers of dropped flows */
	size_t n_spare, spare_cap;
	uint32_t mark;
};

void share_init(struct share *s, struct arena *mem, const double *capacity,
		size_t n_links);

/* A flow over hops links (each at most once); its number. use NULL: 1 of each. Rates
 * are stale until the next solve or update. */
uint32_t share_add(struct share *s, const uint32_t *link, const float *use,
		   size_t hops);

/* Take a flow off its links; the next share_add may use its number again. */
void share_drop(struct share *s, uint32_t flow);

void share_solve(struct share *s);

/* After share_add or share_drop of flow, and nothing else since the last solve or
 * update. Flows that were looked at are some_flows[0 .. n_some_flows). */
void share_update(struct share *s, uint32_t flow);

#endif
