/* cli/calibrate_args.c - options of foretoken calibrate, and which actions they are of */
#include <stddef.h>
#include <string.h>

#include "cli/calibrate.h"

enum {
	BASE = 256,
	DEVICE,
	FORMAT,
	SOURCE,
	DATE,
	FABRIC,
	ONLY,
	PROBE,
	LIMIT,
	COLLECTIVES,
	QUICK,
	PUBLISHED,
	WITH_IN_STEP
};

static const struct argp_option options[] = {
	{ "store", 's', "FILE", 0, "The file of measurements (default: calibrate.db)",
	  0 },
	{ "backend", 'b', "NAME", 0, "probe: cuda, hip, cpu or fake", 0 },
	{ "quick", QUICK, NULL, 0, "probe: measure few, small shapes", 0 },
	{ "limit", LIMIT, "SECONDS", 0, "probe: stop after this time", 0 },
	{ "probe", PROBE, "FILE", 0, "probe: path of the program foretoken-probe", 0 },
	{ "format", FORMAT, "NAME", 0,
	  "import: probe, csv, nccl-tests, "
	  "attention or kineto",
	  0 },
	{ "source", SOURCE, "TEXT", 0, "import: source of the rows", 0 },
	{ "date", DATE, "YYYY-MM-DD", 0, "import: date of the measurement", 0 },
	{ "published", PUBLISHED, NULL, 0,
	  "import: the rows were published by others; "
	  "each row names its source",
	  0 },
	{ "fabric", FABRIC, "NAME", 0,
	  "import: nvlink, nvlink-no-nvls, nvlink-mesh, "
	  "xgmi, pcie",
	  0 },
	{ "device", DEVICE, "TEXT", 0,
	  "Only rows of this device; import: name of the device", 0 },
	{ "run", 'r', "N", 0, "show, export: only this run", 0 },
	{ "name", 'n', "NAME", 0, "fit: name of the profile", 0 },
	{ "base", BASE, "NAME", 0,
	  "fit: profile that gives what was not measured "
	  "(default: the one of --name)",
	  0 },
	{ "only", ONLY, "FAMILY,...", 0,
	  "fit: gemm, attention, memory, "
	  "collectives, sustained, launch, interference, layout, accumulate",
	  0 },
	{ "with-in-step", WITH_IN_STEP, NULL, 0,
	  "fit: use kernels of recorded "
	  "training steps, too",
	  0 },
	{ "out", 'o', "DIR", 0, "fit, plot: folder for the files (default: .)", 0 },
	{ "gpu", 'g', "NAME", 0,
	  "export, plot: the profile; import: only rows of "
	  "this GPU",
	  0 },
	{ "collectives", COLLECTIVES, NULL, 0,
	  "export: collectives instead of "
	  "kernels",
	  0 },
	{ "json", 'j', NULL, 0, "runs, fit: print JSON", 0 },
	{ 0 },
};

/* Actions, as bits; their names in the same order. */
enum {
	A_PROBE = 1,
	A_IMPORT = 2,
	A_RUNS = 4,
	A_SHOW = 8,
	A_DIFF = 16,
	A_EXPORT = 32,
	A_FIT = 64,
	A_PLOT = 128,
	A_ALL = 255
};

static const char *const action_names[] = { "probe", "import", "runs", "show",
					    "diff",  "export", "fit",  "plot" };

enum { ACTIONS = sizeof(action_names) / sizeof(*action_names) };

/* Options that take a word, and flags: where each goes, and which actions it is of. */
#define AT(member) offsetof(struct calibrate_args, member)
static const struct {
	int key;
	size_t at;
	int of;
} word_options[] = {
	{ 's', AT(store), A_ALL },
	{ 'b', AT(backend), A_PROBE },
	{ LIMIT, AT(limit), A_PROBE },
	{ PROBE, AT(probe), A_PROBE },
	{ FORMAT, AT(format), A_IMPORT },
	{ SOURCE, AT(source), A_IMPORT },
	{ DATE, AT(date), A_IMPORT },
	{ FABRIC, AT(fabric), A_IMPORT },
	{ DEVICE, AT(device), A_IMPORT | A_SHOW | A_EXPORT | A_FIT | A_PLOT },
	{ 'n', AT(name), A_FIT },
	{ BASE, AT(base), A_FIT },
	{ ONLY, AT(only), A_FIT },
	{ 'o', AT(folder), A_FIT | A_PLOT },
	{ 'g', AT(gpu), A_IMPORT | A_EXPORT | A_PLOT },
}, flags[] = {
	{ QUICK, AT(quick), A_PROBE },	     { PUBLISHED, AT(published), A_IMPORT },
	{ WITH_IN_STEP, AT(with_in_step), A_FIT }, { COLLECTIVES, AT(collectives), A_EXPORT },
	{ 'j', AT(json), A_RUNS | A_FIT },
};

enum {
	WORD_OPTIONS = sizeof(word_options) / sizeof(*word_options),
	FLAGS = sizeof(flags) / sizeof(*flags)
};

static const char *option_name(int key)
{
	size_t i = 0;

	while (options[i].key != key)
		i++;
	return options[i].name;
}

/* An option that is given and does nothing in the action; NULL: all do something. */
static const char *idle_option(const struct calibrate_args *a, int action)
{
	for (size_t i = 0; i < WORD_OPTIONS; i++)
		if (!(word_options[i].of & action) &&
		    *(const char *const *)(const void *)((const char *)a +
							 word_options[i].at))
			return option_name(word_options[i].key);
	for (size_t i = 0; i < FLAGS; i++)
		if (!(flags[i].of & action) &&
		    *(const bool *)((const char *)a + flags[i].at))
			return option_name(flags[i].key);
	return a->run && !(action & (A_SHOW | A_EXPORT)) ? "run" : NULL;
}

/* What an action has no use for is wrong usage; actions that are none are told later. */
static void check_action(const struct calibrate_args *a, struct argp_state *state)
{
	const char *name = a->word.word[0], *idle;

	for (int i = 0; i < ACTIONS; i++) {
		if (strcmp(name, action_names[i]))
			continue;
		idle = idle_option(a, 1 << i);
		if (idle)
			argp_error(state, "--%s does nothing in %s", idle, name);
		if (1 << i == A_IMPORT && a->word.n < 2)
			argp_error(state, "import FILE...: a FILE is missing");
		if (!(1 << i & (A_IMPORT | A_DIFF)) && a->word.n > 1)
			argp_error(state, "'%s' is too much: %s takes no FILE",
				   a->word.word[1], name);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct calibrate_args *a = state->input;

	for (size_t i = 0; i < WORD_OPTIONS; i++)
		if (word_options[i].key == key) {
			*(const char **)(void *)((char *)a + word_options[i].at) = arg;
			return 0;
		}
	for (size_t i = 0; i < FLAGS; i++)
		if (flags[i].key == key) {
			*(bool *)((char *)a + flags[i].at) = true;
			return 0;
		}
	switch (key) {
	case 'r':
		if (!whole_argument(arg, 1, INT64_MAX, &a->run))
			argp_error(state,
				   "--run: '%s' is not a whole number of at least 1",
				   arg);
		return 0;
	case ARGP_KEY_ARG:
		words_add(&a->word, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!a->word.n)
			argp_error(state, "an action is missing: probe, import, runs, "
					  "show, diff, export, fit or plot");
		check_action(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"probe\nimport FILE...\nruns\nshow\ndiff RUN RUN\nexport\nfit\nplot",
	"Time this machine's GPUs, keep the measurements and fit a profile to them."
	"\vUsual order: probe, then fit --name mygpu --base h100-sxm, then plot --gpu "
	"./mygpu.yaml. docs/calibrate.md explains each step.",
	NULL,
	NULL,
	NULL,
};

void calibrate_parse(int argc, char **argv, struct calibrate_args *a)
{
	parse_arguments(&argp, argc, argv, a);
}
