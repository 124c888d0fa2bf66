/*
 * reports/evidence.h - what an answer says of its own certainty, in sentences and tables
 */
#ifndef REPORTS_EVIDENCE_H
#define REPORTS_EVIDENCE_H

#include "foretoken/reports.h"
#include "reports/table.h"

enum { SENTENCE = 400, WARNINGS = 3 * SENTENCE };

/* The k-th sentence on the range of an answer; NULL: no more. text has room for it. */
const char *evidence_sentence(const struct ft_scenario *scenario,
			      const struct ft_outcome *outcome, int k,
			      char text[SENTENCE]);

/* What was found where the plan was left open; "": it was not. */
const char *evidence_search(const struct ft_scenario *scenario,
			    const struct ft_outcome *outcome, char text[SENTENCE]);

/* That little of the memory is left, where that matters; "": it does not. */
const char *evidence_memory(const struct ft_scenario *scenario,
			    const struct ft_outcome *outcome, char text[SENTENCE]);

/* reports/evidence_network.c: at which rate links run where NICs and ports are not alike, and the oversubscriptions that are built
 * where they are not those asked for; "": they are. The same and others as sentences of an answer: faults and keys of the fabric
 * that change nothing, and faults that change less than one might think. */
const char *evidence_ports(const struct ft_cluster *cluster, char text[SENTENCE]);
const char *evidence_ratios(const struct ft_cluster *cluster, char text[SENTENCE]);

typedef const char *evidence_said(const struct ft_scenario *scenario,
				  const struct ft_outcome *outcome,
				  char text[SENTENCE]);
evidence_said evidence_links, evidence_built, evidence_faults, evidence_fabric,
	evidence_rails;

/* What to mind when answers are compared; NULL: nothing. */
const char *evidence_warning(const struct ft_answers *answers, char text[WARNINGS]);

/* The measured runs nearest, as a table. */
void evidence_table(FILE *out, const struct ft_outcome *outcome);

/* A row of errors: n, MAPE, bias, median, p90, max. */
void errors_row(struct table *t, const char *name, const struct ft_summary *s);

#endif
