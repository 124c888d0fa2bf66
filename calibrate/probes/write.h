/*
 * calibrate/probes/write.h - measurements as JSON lines, and what is already done
 *
 * Two kinds of lines: {"record":"run", ...} says on what and how everything
 * behind it was measured, {"record":"measurement", ...} is one cell. A line is
 * written whole and flushed, so a killed probe leaves at most one broken line,
 * at the end, which the reader skips.
 */
#ifndef CALIBRATE_PROBE_WRITE_H
#define CALIBRATE_PROBE_WRITE_H

#include <stdio.h>

#include "calibrate/probes/backend.h"

enum { PROBE_FORMAT = 1 };

bool probe_write_run(FILE *out, const struct probe_backend *backend,
		     const struct probe_device *device,
		     const struct probe_method *method, const char *date);
bool probe_write_cell(FILE *out, const struct probe_cell *cell,
		      enum probe_status status, const struct probe_time *time,
		      const char *why);

/* The ids of cells that need no second run: one a line, or JSON lines. */
struct probe_done {
	char **id;
	size_t n, cap;
};
bool probe_done_read(struct probe_done *done, FILE *in);
bool probe_done_has(const struct probe_done *done, const char *id);
void probe_done_free(struct probe_done *done);

#endif
