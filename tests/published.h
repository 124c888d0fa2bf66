/* tests/published.h - a run of a measurement store that holds a published table */
#ifndef TESTS_PUBLISHED_H
#define TESTS_PUBLISHED_H

#include "foretoken/calibrate.h"

static const struct ft_probe_run published = { .backend = "csv",
					       .device = "",
					       .date = "2026-11",
					       .driver = "",
					       .fabric = "",
					       .libraries = "",
					       .source = "a table",
					       .provenance = "published" };

#endif
