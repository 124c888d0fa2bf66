/* cli/cmd_runs.c - foretoken runs [KEY=VALUE]... */
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	struct words filter;
	const char *plot;
	bool json;
};

static const struct argp_option options[] = {
	{ "plot", 'p', "FILE", 0,
	  "Draw predicted against measured as FILE.svg, by gnuplot", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'p':
		a->plot = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		words_add(&a->filter, arg, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The keys, behind the options. */
static char *help_filter(int key, const char *text, void *input)
{
	const struct ft_trait *trait;
	size_t n = ft_trait_table(&trait), len = 0;
	char *out = NULL;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC || !(f = open_memstream(&out, &len)))
		return (char *)(uintptr_t)text;
	fputs("Keys:\n  id              the run's name\n"
	      "  source          where it was read\n",
	      f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "  %-15s %s%s\n", trait[i].name, trait[i].about,
			trait[i].number ? " (a number)" : "");
	fputs("\nExample: foretoken runs gpu=h100-sxm gpus=256.. precision=bf16 --plot "
	      "h100.svg",
	      f);
	fclose(f);
	return out;
}

static const struct argp argp = {
	options,
	parse,
	"[KEY=VALUE]...",
	"Browse the measured training runs that answers are compared with, and the error of "
	"each prediction. Words may hold * and ?, numbers may be ranges (64..512, 1024..)."
	"\v",
	NULL,
	help_filter,
	NULL,
};

int cmd_runs(int argc, char **argv)
{
	struct args a = { 0 };
	struct ft_error err;
	struct ft_runs *runs;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	runs = ft_runs_find(a.filter.word, a.filter.n, &err);
	ok = runs && (!a.plot || ft_report_runs_plot(a.plot, runs, &err));
	if (ok && a.json)
		ft_report_runs_json(stdout, runs);
	else if (ok)
		ft_report_runs(stdout, runs);
	ft_runs_free(runs);
	return ok ? finish_output() : complain(&err);
}
