/* cli/cmd_kernel.c - foretoken kernel --gpu NAME --csv FILE */
#include "base/file.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "foretoken/study.h"

struct args {
	const char *gpu, *csv;
};

static const struct argp_option options[] = {
	{ "gpu", 'g', "NAME", 0, "GPU profile: a name or a path", 0 },
	{ "csv", 'c', "FILE", 0,
	  "CSV file with the columns kernel,dtype,layout,m,n,k ...", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'g':
		a->gpu = arg;
		return 0;
	case 'c':
		a->csv = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->gpu)
			argp_error(state, "--gpu NAME is missing");
		if (!a->csv)
			argp_error(state, "--csv FILE is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	NULL,
	"Predict the time of each kernel in a CSV file: print its rows with two more columns, "
	"predicted.time_us and extrapolated. foretoken-runs(5) has the columns and their words."
	"\vExample: foretoken kernel --gpu h200 --csv kernels.csv",
	NULL,
	NULL,
	NULL,
};

int cmd_kernel(int argc, char **argv)
{
	struct ft_kernel_tally t;
	struct args a = { 0 };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	if (!ft_study_kernels(a.gpu, file_input(a.csv), stdout, &t, &err))
		return complain(&err);
	if (t.failed)
		fprintf(stderr,
			"foretoken: %swarning:%s %zu row%s cannot be predicted; "
			"the first, of line %d: %s\n",
			terminal_begin(stderr, TERMINAL_WARNING), terminal_end(stderr),
			t.failed, t.failed == 1 ? "" : "s", t.why.line, t.why.text);
	if (t.of_other_gpus)
		fprintf(stderr,
			"foretoken: %swarning:%s %zu row%s of another GPU by the column "
			"gpu; predicted for %s all the same\n",
			terminal_begin(stderr, TERMINAL_WARNING), terminal_end(stderr),
			t.of_other_gpus, t.of_other_gpus == 1 ? " is" : "s are", a.gpu);
	return finish_output();
}
