/* cli/trace.h - what the verbs of foretoken trace share */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "cli/commands.h"
#include "foretoken/study_whatif.h"

struct trace_args {
	struct shared shared;
	const char *timeline, *chakra, *plot, *goal;
	const char *fit, *date; /* of compare: the stack to write */
	double pace;
	const char *verb, *graph, *scenario; /* scenario: of compare, the last word */
	struct ft_whatif_request ask;
};

/* cli/trace_recorded.c: show and replay of recordings. */
bool trace_recorded(struct trace_args *a, struct ft_error *err);

/* "attention=1.5", "dp=8", "all_gather": words of the command line; false: said why. */
bool trace_speedup(struct trace_args *a, const char *word,
		   const struct argp_state *state);
bool trace_scale(struct trace_args *a, const char *word,
		 const struct argp_state *state);
bool trace_without(struct trace_args *a, const char *word,
		   const struct argp_state *state);
bool trace_pace(struct trace_args *a, const char *word, const struct argp_state *state);
bool trace_tokens(struct trace_args *a, const char *word,
		  const struct argp_state *state);

#endif
