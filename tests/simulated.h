/* tests/simulated.h - what a scenario given as a text answers */
#ifndef TESTS_SIMULATED_H
#define TESTS_SIMULATED_H

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

/* The scenario of a text, on the shelf's parts; NULL with *err. Its document is not kept: what refuses it later says no line. */
static inline struct ft_scenario *scenario_of(struct ft_shelf *shelf, const char *text,
					      struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *root = node_read_text(&mem, "s", text, strlen(text), err);
	struct ft_scenario *s =
		root ? ft_scenario_from(shelf, root, "s", true, err) : NULL;

	if (s)
		s->given = NULL;
	arena_release(&mem);
	return s;
}

/* Seconds of the items whose names begin so in a step (NULL: of the step). */
static inline double simulated_s(const char *text, const char *item)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_outcome o;
	struct ft_scenario *s = scenario_of(shelf, text, &err);
	double answer = 0;

	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	for (size_t i = 0; item && i < o.run->n_shares; i++)
		if (!strncmp(o.run->share[i].name, item, strlen(item)))
			answer += o.run->share[i].time_s;
	if (!item)
		answer = o.step_s;
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return answer;
}

#endif
