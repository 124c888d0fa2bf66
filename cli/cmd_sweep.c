/* cli/cmd_sweep.c - foretoken sweep SCENARIO --vary KEY=A,B --db FILE */
#include <stdlib.h>

#include "cli/commands.h"
#include "foretoken/study.h"

struct args {
	struct ft_sweep sweep;
	struct words set, vary;
};

static const struct argp_option options[] = {
	{ "vary", 'v', "KEY=A,B,C", 0, "Values of a key; several make a grid", 0 },
	{ "db", 'd', "FILE", 0, "SQLite file; made, or gone on with", 0 },
	{ "set", 's', "KEY=VALUE", 0, "Override a key in every scenario", 0 },
	{ "threads", 't', "N", 0, "Default: one a core", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	char *end;

	switch (key) {
	case 'v':
		words_add(&a->vary, arg, state);
		return 0;
	case 's':
		words_add(&a->set, arg, state);
		return 0;
	case 'd':
		a->sweep.db = arg;
		return 0;
	case 't':
		a->sweep.threads = (int)strtol(arg, &end, 10);
		if (*end || a->sweep.threads < 1 || a->sweep.threads > 256)
			argp_error(state, "--threads takes 1 to 256");
		return 0;
	case ARGP_KEY_ARG:
		if (a->sweep.scenario)
			argp_usage(state);
		a->sweep.scenario = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->sweep.scenario || !a->sweep.db || !a->vary.n)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Run every combination of the values given with --vary, one row each in the "
	"table `runs` of an SQLite file. What is there already is not run again."
	"\vExample: foretoken sweep examples/01-first-answer/h100.yaml --vary "
	"cluster.gpus=512,1024,2048 --vary training.parallel.tp=4,8 --db out.db",
	NULL,
	NULL,
	NULL,
};

int cmd_sweep(int argc, char **argv)
{
	size_t done, skipped, failed;
	struct args a = { 0 };
	struct ft_error err;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	a.sweep.sets = a.set.word;
	a.sweep.n_sets = a.set.n;
	a.sweep.vary = a.vary.word;
	a.sweep.n_vary = a.vary.n;
	a.sweep.progress = progress;
	if (!ft_study_sweep(&a.sweep, &done, &skipped, &failed, &err))
		return complain(&err);
	printf("%zu run, %zu there already, %zu impossible (see column error)\n", done,
	       skipped, failed);
	return finish_output();
}
