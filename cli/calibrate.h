/*
 * cli/calibrate.h - what the actions of `foretoken calibrate` share
 */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "cli/commands.h"
#include "foretoken/calibrate.h"

struct calibrate_args {
	struct words word; /* the action, then its arguments */
	const char *store, *backend, *device, *name, *base, *folder, *format, *source,
		*date, *fabric, *gpu, *only, *probe, *limit;
	int64_t run;
	bool quick, json, collectives, published, with_in_step;
};

/* What is wrong usage ends the program with status 64. */
void calibrate_parse(int argc, char **argv, struct calibrate_args *a);

/* Runs foretoken-probe and keeps its lines in the store as they come. Returns an exit
 * status: 77 when the probe has no such device. */
int calibrate_probe(const struct calibrate_args *a, struct ft_store *store);
#endif
