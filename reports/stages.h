/* reports/stages.h - what each stage of a pipeline keeps, and where its step goes */
#ifndef REPORTS_STAGES_H
#define REPORTS_STAGES_H

#include <stdio.h>

#include <jansson.h>

#include "reports/html.h"

/* As a table: all stages of a short pipeline; of a long one the first, the last, and those that keep most
 * and compute longest. Nothing where there is one stage. */
void stages_table(FILE *out, const struct ft_scenario *s, const struct ft_outcome *o);

/* All of them. */
json_t *stages_json(const struct ft_scenario *s, const struct ft_outcome *o);
void stages_html(struct page *p, size_t scenario);

#endif
