/*
 * sim/timeline.h - a step as Chrome trace JSON, which ui.perfetto.dev opens
 *
 * One process per part (ranks that do the same). Its rows: the phase that an instant counts
 * as; the host with the calls that it launches; a row per stream with complete events ("X").
 * A receive's row shows when its data was on the way. Flows ("s" to "f") go from the launch
 * to the operation and from the send to the receive; each has its own id and ends in the
 * slice that encloses it (bp "e"). Counters ("C"): memory by category, use of links, power.
 * Times are microseconds with six decimals: picoseconds, exactly.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include <stdio.h>

#include "foretoken/traces.h"

/* Where in the step a call stands. */
struct timeline_place {
	const char *segment;
	const char *pass;    /* "forward", "backward"; NULL: outside layers */
	int64_t micro_batch; /* -1: not known, nor is its layer */
	int64_t layer;	     /* of the model, from 0 */
};

struct timeline_op {
	const struct ft_work *work;
	const struct timeline_place *place;
	size_t part;
	int stream;
	ft_ps from, to;
};

/* One end of a flow: a moment within a slice of a row. */
struct timeline_end {
	size_t part;
	int row; /* a stream, or TIMELINE_HOST */
	ft_ps at;
};

/* Rows beside the streams; from FOLDED on those of what is received in a V's second half. */
enum { TIMELINE_PHASE = 100, TIMELINE_HOST = 101, TIMELINE_FOLDED = 200 };

void timeline_begin(FILE *out);
/* folded: its stages are folded into a V and receive from both sides at once. */
void timeline_part(FILE *out, size_t part, const char *name, bool folded);
void timeline_op(FILE *out, const struct timeline_op *op);
/* A call of the host, launched from..to. */
void timeline_call(FILE *out, size_t part, const struct timeline_place *place,
		   ft_ps from, ft_ps to);
void timeline_phase(FILE *out, size_t part, const char *phase, ft_ps from, ft_ps to);
void timeline_flow(FILE *out, const char *what, uint64_t id,
		   const struct timeline_end *from, const struct timeline_end *to);
/* Bytes by category; shares of what the part's port and NIC can carry. */
void timeline_memory(FILE *out, size_t part, ft_ps at, const double bytes[FT_MEMORIES]);
void timeline_links(FILE *out, size_t part, ft_ps at, double port_frac,
		    double nic_frac);
/* What a card of the part draws from then on. */
void timeline_power(FILE *out, size_t part, ft_ps at, double watts);
void timeline_finish(FILE *out, ft_ps end);

#endif
