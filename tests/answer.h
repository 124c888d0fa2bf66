/* tests/answer.h - all numbers of a scenario's answer in a row, to be compared */
#ifndef TESTS_ANSWER_H
#define TESTS_ANSWER_H

#include "foretoken/study_decide.h"
#include "tests/check.h"

enum { KEY_NUMBERS = 240 };

struct answer {
	bool refused;
	size_t n;
	double x[KEY_NUMBERS];
	char why[sizeof(((struct ft_error *)0)->text)];
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

/* What is paid in other forms, and the fleets that the scenario asks for. */
static inline void money_of(const struct ft_scenario *s, struct ft_outcome *o,
			    struct answer *a)
{
	const struct ft_side side = ft_outcome_side(s, o);
	const struct ft_deal d = ft_deal_of(&side.purchase, &side.throughput);
	const struct ft_readings r = ft_flows_read(&d);

	a->x[a->n++] = r.levelised;
	a->x[a->n++] = r.break_even_utilization_frac;
	for (size_t i = 0; i < o->asked.n; i++) {
		const struct ft_fleet *f = &o->asked.fleet[i];

		a->x[a->n++] = (double)f->gpus;
		a->x[a->n++] = f->tokens;
		a->x[a->n++] = f->days[1];
		a->x[a->n++] = f->usd[1];
	}
	assert_true(a->n < KEY_NUMBERS);
}

static inline struct answer answer_of(struct ft_shelf *shelf, const struct node *root)
{
	struct answer a = { 0 };
	struct ft_error err = { 0 };
	struct ft_outcome o;
	struct ft_scenario *s = ft_scenario_from(shelf, root, "keys", true, &err);

	if (s && ft_study_simulate(s, NULL, NULL, &o, &err)) {
		numbers_of(&o, &a);
		if (ft_study_run(s, &o, &err))
			money_of(s, &o, &a);
		else
			a.refused = true;
		ft_outcome_release(&o);
	} else {
		a.refused = true;
	}
	if (a.refused)
		snprintf(a.why, sizeof(a.why), "%s", err.text);
	ft_scenario_free(s);
	return a;
}

#endif
