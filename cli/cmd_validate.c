/* cli/cmd_validate.c - foretoken validate RUNS.csv */
#include "base/file.h"
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	struct shared shared;
	bool rows;
	const char *by, *fit;
};

static const struct argp_option options[] = {
	{ "rows", 'r', NULL, 0, "Print every row, not only a summary of each group",
	  0 },
	{ "by", 'b', "WAY", 0,
	  "Group training steps by gpu, gpus, stack, plan, precision, model or size, "
	  "not by the file's groups",
	  0 },
	{ "fit-stack", 'f', "NAME", 0,
	  "Write NAME.yaml, the rows' stack fitted to them, and print how far off it is on "
	  "runs that were left out of the fit",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		return 0;
	case 'r':
		a->rows = true;
		return 0;
	case 'b':
		a->by = arg;
		return 0;
	case 'f':
		a->fit = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &shared_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	options,
	parse,
	"RUNS.csv",
	"Compare predictions with measured steps, kernels or collectives. Errors "
	"are in time: positive means predicted too slow."
	"\vExample: foretoken validate measurements/steps/h200-steps.csv --rows",
	children,
	NULL,
	NULL,
};

static int fit_stack(const struct args *a, struct progress *bar)
{
	struct ft_stack_fit fit;
	struct ft_error err;

	if (!ft_study_fit_stack(&(struct ft_stack_request){ a->shared.word.word[0],
							    a->fit,
							    a->shared.set.word,
							    a->shared.set.n,
							    { progress_tell, bar } },
				&fit, &err))
		return complain(&err);
	if (a->shared.json)
		ft_report_stack_fit_json(stdout, &fit);
	else
		ft_report_stack_fit(stdout, &fit);
	return finish_output();
}

int cmd_validate(int argc, char **argv)
{
	struct progress bar = progress_begin("row");
	struct ft_validation *v;
	bool any;
	struct args a = { .shared = { .what = "RUNS.csv", .least = 1, .most = 1 } };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	a.shared.word.word[0] = file_input(a.shared.word.word[0]);
	bar.quiet = a.shared.quiet;
	if (a.fit)
		return fit_stack(&a, &bar);
	v = ft_validate(a.shared.word.word[0], a.shared.set.word, a.shared.set.n,
			(struct ft_progress){ progress_tell, &bar }, &err);
	if (!v)
		return complain(&err);
	if (a.by && !ft_validation_by(v, a.by, &err)) {
		ft_validation_free(v);
		complain(&err);
		return 64; /* wrong usage */
	}
	if (a.shared.json)
		ft_report_validation_json(stdout, v);
	else
		ft_report_validation(stdout, v, a.rows);
	any = v->n_checks + v->n_others > 0;
	ft_validation_free(v);
	return finish_output() || !any; /* nothing was compared: no success */
}
