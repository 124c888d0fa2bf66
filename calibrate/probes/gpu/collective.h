/* calibrate/probes/gpu/collective.h - a group of ranks, one device each, and one operation */
#ifndef CALIBRATE_PROBE_GPU_COLLECTIVE_H
#define CALIBRATE_PROBE_GPU_COLLECTIVE_H

#include "calibrate/probes/gpu/gpu.h"

enum { MOST_EVENTS = 64 };

struct group {
	int n;
	ncclComm_t *comm;
	const char *op;
	size_t bytes;
	G(Stream_t) stream[GPU_MOST], compute[GPU_MOST];
	G(Event_t) begin[GPU_MOST][MOST_EVENTS], end[GPU_MOST][MOST_EVENTS];
};

enum probe_status collective_queue(struct probe_session *s, struct group *g, char *why,
				   size_t n_why);
enum probe_status collective_wait(struct group *g, char *why, size_t n_why);

/* calibrate/probes/gpu/agree.c: run it once and compare what every rank received;
 * WRONG when it is not what it should be. */
enum probe_status collective_check(struct probe_session *s, struct group *g,
				   double *error, char *why, size_t n_why);

#endif
