/* cli/cmd_compare.c - foretoken compare SCENARIO SCENARIO ... */
#include <stdlib.h>

#include "cli/commands.h"
#include "foretoken/reports.h"

enum { MOST = 16 };

struct args {
	struct shared shared;
	const char *report;
};

static const struct argp_option options[] = {
	{ "report", 'r', "DIR", 0, "Write an HTML report with plots", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		return 0;
	case 'r':
		a->report = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &shared_argp, 0, NULL, 0 },
					      { &price_argp, 0, NULL, 0 },
					      { 0 } };

static const struct argp argp = {
	options,
	parse,
	"SCENARIO SCENARIO...",
	"Show scenarios side by side: what differs, the results, and why they differ."
	"\vExample: foretoken compare examples/01-first-answer/h100.yaml "
	"examples/01-first-answer/mi300x.yaml",
	children,
	NULL,
	NULL,
};

static bool all_of(const struct args *a, struct ft_shelf *shelf,
		   const struct ft_scenario **s, struct ft_outcome *o, size_t *n,
		   struct ft_error *err)
{
	for (*n = 0; *n < a->shared.word.n; (*n)++) {
		s[*n] = ft_scenario_load(shelf, a->shared.word.word[*n],
					 a->shared.set.word, a->shared.set.n, true,
					 err);
		if (!s[*n])
			return false;
		if (!ft_study_simulate(s[*n], NULL, NULL, &o[*n], err)) {
			ft_scenario_free((struct ft_scenario *)s[*n]);
			return false;
		}
	}
	return true;
}

static bool print(const struct args *a, const struct ft_answers *answers,
		  struct ft_error *err)
{
	if (a->report && !ft_report_html(a->report, answers, err))
		return false;
	if (a->shared.json)
		ft_report_compare_json(stdout, answers);
	else
		ft_report_compare(stdout, answers);
	return true;
}

int cmd_compare(int argc, char **argv)
{
	const struct ft_scenario *s[MOST];
	struct ft_outcome o[MOST];
	struct args a = { .shared = { .what = "SCENARIO", .least = 2, .most = MOST } };
	struct ft_shelf *shelf;
	const char **labels;
	struct ft_error err;
	size_t n;
	char *command = command_line(argc, argv);
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	ok = all_of(&a, shelf, s, o, &n, &err);
	labels = ok ? ft_study_labels(s, n) : NULL;
	if (ok)
		ok = print(&a, &(struct ft_answers){ s, o, labels, n, command }, &err);
	for (size_t i = 0; i < n; i++) {
		ft_outcome_release(&o[i]);
		ft_scenario_free((struct ft_scenario *)s[i]);
	}
	ft_labels_free(labels);
	ft_shelf_free(shelf);
	free(command);
	return ok ? finish_output() : complain(&err);
}
