/* reports/json.h - Jansson values of our answers, and writing them */
#ifndef REPORTS_JSON_H
#define REPORTS_JSON_H

#include <jansson.h>

#include "base/json_text.h"
#include "foretoken/reports.h"

/* id: no two answers shown together have the same. */
json_t *json_of_outcome(const struct ft_scenario *scenario,
			const struct ft_outcome *outcome, const char *id);
json_t *json_of_number(double value); /* null when not finite */
json_t *json_of_breakdown(const struct ft_breakdown *b);
json_t *json_of_node(const struct node *n);

void json_put(json_t *object, const char *key, double value);
void json_put_int(json_t *object, const char *key, int64_t value);
void json_put_text(json_t *object, const char *key, const char *text);
void json_put_bool(json_t *object, const char *key, bool value);

/* Writes, ends the line, and drops the value. */
void json_print(FILE *out, json_t *value);

#endif
