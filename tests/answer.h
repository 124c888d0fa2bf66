/* tests/answer.h - all numbers of a scenario's answer in a row, to be compared */
#ifndef TESTS_ANSWER_H
#define TESTS_ANSWER_H

#include "foretoken/study.h"
#include "tests/check.h"

enum { KEY_NUMBERS = 160 };

struct answer {
	bool refused;
	size_t n;
	double x[KEY_NUMBERS];
	char why[1024];
};

static inline void numbers_of(const struct ft_outcome *o, struct answer *a)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	assert_true(3 * n < KEY_NUMBERS);
	for (size_t i = 0; i < n; i++) {
		a->x[a->n++] = ft_outcome_at(o, f[i].value);
		a->x[a->n++] = f[i].high ? ft_outcome_at(o, f[i].low) : 0;
		a->x[a->n++] = f[i].high ? ft_outcome_at(o, f[i].high) : 0;
	}
	a->x[a->n++] = o->fits;
}

static inline struct answer answer_of(const struct node *root)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct answer a = { 0 };
	struct ft_error err = { 0 };
	struct ft_outcome o;
	struct ft_scenario *s = ft_scenario_from(shelf, root, "keys", true, &err);

	if (s && ft_study_simulate(s, NULL, NULL, &o, &err)) {
		numbers_of(&o, &a);
		ft_outcome_release(&o);
	} else {
		a.refused = true;
		snprintf(a.why, sizeof(a.why), "%s", err.text);
	}
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return a;
}

#endif
