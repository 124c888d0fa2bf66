/*
 * reports/money.h - verdicts, fleets and finance, as text, CSV and JSON
 */
#ifndef REPORTS_MONEY_H
#define REPORTS_MONEY_H

#include <jansson.h>

#include "foretoken/reports.h"

/* What the scenario's `run` asked; nothing where it asked nothing. */
void money_fleets(FILE *out, const struct ft_run_answer *answer);

/* The limits that a fleet goes beyond: "days, megawatts"; "". */
enum { BEYOND = 64 };
const char *money_beyond(const struct ft_fleet *fleet, char text[BEYOND]);

/* Fleets were asked for, and each goes beyond some limit. */
bool money_none_keeps(const struct ft_run_answer *answer);
#define NONE_KEEPS "No fleet keeps to all that is asked."
#define LEFT_OUT \
	"Sizes of %lld GPUs and fewer are left out: a step of theirs is too much to simulate."

/* Behind the second's name: why nothing is said of what would make it as cheap. */
#define LIKELY_OTHERWISE \
	"is the cheaper one at likely values already; the odds are of draws, whose ranges are skewed."

/* Why dollars differ, what moves them, and what would change the verdict. */
void money_verdict(FILE *out, const struct ft_answers *answers);

/* Rows of the comparison's CSV: parts, odds, causes, crossovers, fleets. */
void money_csv(FILE *out, const struct ft_answers *answers);

/* An hour of a GPU, in the forms in which others state it. */
enum { MONEY_FORMS = 5 };
struct money_form {
	const char *name;
	double usd;
};
void money_forms(const struct ft_readings *readings,
		 struct money_form form[MONEY_FORMS]);

json_t *money_fleets_json(const struct ft_run_answer *answer);
/* From the fleet `from` on, as an array. */
json_t *money_fleet_array(const struct ft_run_answer *answer, size_t from);
json_t *money_finance_json(const struct ft_scenario *scenario,
			   const struct ft_outcome *outcome);
json_t *money_verdict_json(const struct ft_answers *answers);
json_t *money_differences_json(const struct ft_answers *answers);

#endif
