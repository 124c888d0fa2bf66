/* cli/cmd_compare.c - foretoken compare SCENARIO SCENARIO ... */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "foretoken/reports.h"

enum { MOST = FT_SIDES_MOST };

struct args {
	struct shared shared;
	const char *report;
	enum ft_basis basis;
	int64_t draws;
	bool csv, at_best;
};

static const struct argp_option options[] = {
	{ "report", 'r', "DIR", 0, "Write an HTML report with plots", 0 },
	{ "at", 'a', "BASIS", 0,
	  "Make clusters alike in: gpus (as they are), money, megawatts or time. The "
	  "first stays as it is; the others get the size that is worth the same",
	  0 },
	{ "each-at-best", 'b', NULL, 0,
	  "Compare each scenario under its fastest plan that fits: what it leaves open of "
	  "its plan is searched, as `foretoken plan` does",
	  0 },
	{ "draws", 'd', "N", 0, "Number of draws of prices and errors (default: 16384)",
	  0 },
	{ "csv", 'c', NULL, 0, "Print CSV", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		state->child_inputs[2] = &a->shared;
		return 0;
	case 'r':
		a->report = arg;
		return 0;
	case 'b':
		a->at_best = true;
		return 0;
	case 'c':
		a->csv = true;
		return 0;
	case 'd':
		if (!whole_argument(arg, 16, FT_DRAWS_MOST, &a->draws))
			argp_error(state, "--draws: a whole number from 16 to %d",
				   FT_DRAWS_MOST);
		return 0;
	case 'a':
		for (int b = 0; b < FT_BASES; b++)
			if (!strcmp(arg, ft_basis_name((enum ft_basis)b))) {
				a->basis = (enum ft_basis)b;
				return 0;
			}
		argp_error(state, "--at %s: write gpus, money, megawatts or time", arg);
		return 0;
	case ARGP_KEY_END:
		if (a->csv && a->shared.json)
			argp_error(state, "--csv or --json, not both");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO SCENARIO...",
	"Show scenarios side by side: what differs, the results, and why they differ."
	"\vExample: foretoken compare examples/01-first-answer/h100.yaml "
	"examples/01-first-answer/mi300x.yaml",
	asked_children,
	NULL,
	NULL,
};

static struct ft_scenario *load(const struct args *a, struct ft_shelf *shelf,
				const char *path, struct ft_error *err)
{
	struct ft_scenario *s;
	struct progress bar = progress_begin("plan");
	struct ft_search search = { .sets = a->shared.set.word,
				    .n_sets = a->shared.set.n,
				    .top = 1,
				    .progress = { progress_tell, &bar } };

	bar.quiet = a->shared.quiet;
	s = a->at_best ? ft_scenario_at_best(shelf, path, &search, err) :
			 ft_scenario_to_run(shelf, path, &search, err);
	if (s)
		s->memory_chart = a->report != NULL;
	return s;
}

/* *n: scenarios that are loaded. */
static bool load_all(const struct args *a, struct ft_shelf *shelf,
		     const struct ft_scenario **s, size_t *n, struct ft_error *err)
{
	for (*n = 0; *n < a->shared.word.n; ++*n) {
		s[*n] = load(a, shelf, a->shared.word.word[*n], err);
		if (!s[*n])
			return false;
	}
	return true;
}

/* The answer, which no report that fails takes away, and the report's files. */
static bool print(const struct args *a, const struct ft_answers *answers,
		  struct ft_error *err)
{
	if (a->shared.json)
		ft_report_compare_json(stdout, answers);
	else if (a->csv)
		ft_report_compare_csv(stdout, answers);
	else
		ft_report_compare(stdout, answers);
	for (size_t i = 0; !a->shared.quiet && i < answers->n; i++)
		remark_idle_keys(answers->scenario[i], answers->label[i]);
	return !a->report || ft_report_html(a->report, answers, err);
}

/* The answers, the odds, and all of it printed. */
static bool conclude(const struct args *a, const char *command,
		     const struct ft_scenario **s, size_t n, struct ft_error *err)
{
	struct ft_verdict *v = malloc(sizeof(*v));
	const struct ft_compared how = { a->basis, (size_t)a->draws };
	struct ft_outcome o[MOST];
	const char **labels;
	bool ok;

	if (!v)
		return ft_fail(err, NULL, "out of memory");
	ok = ft_study_compare(s, o, n, &how, v, err);
	if (ok) {
		labels = ft_study_labels(s, n);
		ok = print(
			a,
			&(struct ft_answers){ s, o, labels, n, command, v, a->basis },
			err);
		ft_labels_free(labels);
		for (size_t i = 0; i < n; i++)
			ft_outcome_release(&o[i]);
	}
	free(v);
	return ok;
}

int cmd_compare(int argc, char **argv)
{
	const struct ft_scenario *s[MOST];
	struct args a = { .shared = { .what = "SCENARIO", .least = 2, .most = MOST },
			  .draws = FT_DRAWS };
	struct ft_shelf *shelf;
	struct ft_error err;
	size_t n;
	char *command = command_line(argc, argv);
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	ok = load_all(&a, shelf, s, &n, &err) && conclude(&a, command, s, n, &err);
	for (size_t i = 0; i < n; i++)
		ft_scenario_free((struct ft_scenario *)s[i]);
	ft_shelf_free(shelf);
	free(command);
	return ok ? finish_output() : complain(&err);
}
