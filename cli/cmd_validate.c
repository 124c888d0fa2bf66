/* cli/cmd_validate.c - foretoken validate RUNS.csv */
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	struct words file, set;
	bool json, rows;
};

static const struct argp_option options[] = {
	{ "set", 's', "KEY=VALUE", 0, "Override a key in every row", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "rows", 'r', NULL, 0, "Print every row, not only a summary of each group",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 's':
		words_add(&a->set, arg, state);
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'r':
		a->rows = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file.n)
			argp_usage(state);
		words_add(&a->file, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!a->file.n)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"RUNS.csv",
	"Compare predictions with measured steps, kernels or collectives. Errors "
	"are in time: positive means predicted too slow."
	"\vExample: foretoken validate measurements/steps/h200-steps.csv --rows",
	NULL,
	NULL,
	NULL,
};

int cmd_validate(int argc, char **argv)
{
	struct progress bar = progress_begin("row");
	struct ft_validation *v;
	struct args a = { 0 };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	v = ft_validate(a.file.word[0], a.set.word, a.set.n,
			(struct ft_progress){ progress_tell, &bar }, &err);
	if (!v)
		return complain(&err);
	if (a.json)
		ft_report_validation_json(stdout, v);
	else
		ft_report_validation(stdout, v, a.rows);
	ft_validation_free(v);
	return finish_output();
}
