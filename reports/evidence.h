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

/* At which rate links run where NICs and ports are not alike; "": they are. */
const char *evidence_links(const struct ft_cluster *cluster, char text[SENTENCE]);

/* What to mind when answers are compared; NULL: nothing. */
const char *evidence_warning(const struct ft_answers *answers, char text[WARNINGS]);

/* The measured runs nearest, as a table. */
void evidence_table(FILE *out, const struct ft_outcome *outcome);

/* A row of errors: n, MAPE, bias, median, p90, max. */
void errors_row(struct table *t, const char *name, const struct ft_summary *s);

#endif
