/*
 * study/evidence_file.h - study/ranges.yaml and the runs that it names, as loaded
 */
#ifndef STUDY_EVIDENCE_FILE_H
#define STUDY_EVIDENCE_FILE_H

#include "base/arena.h"
#include "study/evidence.h"

enum { MOST_TRAITS = 32 };

/* Rows of measurements/steps/ of one group; some groups have two sources. */
struct group {
	const char *name;
	size_t source;
};

struct run {
	const char *id;
	size_t source;
	struct ft_traits traits;
	double log_ratio;	     /* ln(measured / predicted) */
	double tokens_per_s_per_gpu; /* measured */
};

struct ft_evidence {
	struct arena mem;
	double distance[MOST_TRAITS]; /* by ft_trait_table */
	double widening, missing_sources;
	size_t n, n_groups, n_sources, sources_cap;
	struct run *run;
	struct group
		*group; /* [n_groups] of all runs, of these and of the other file */
	const char **source; /* [n_sources] */
};

#endif
