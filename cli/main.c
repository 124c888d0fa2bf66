/* cli/main.c - foretoken COMMAND: the table of commands */
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <jansson.h>

#include "base/arena.h"
#include "base/text.h"
#include "cli/commands.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "simulate", cmd_simulate, "speed, bottleneck and cost of a scenario" },
	{ "compare", cmd_compare, "scenarios side by side, and why they differ" },
	{ "plan", cmd_plan,
	  "the best parallel plan for a model on a cluster, and why" },
	{ "validate", cmd_validate, "predictions compared with measured rows" },
	{ "sweep", cmd_sweep, "many variants of a scenario, kept in an SQLite file" },
	{ "merge", cmd_merge, "put the SQLite files of several sweeps into one" },
	{ "bom", cmd_bom, "the bill of materials of a cluster" },
	{ "prices", cmd_prices, "an item's price in many books, over time" },
	{ "collective", cmd_collective, "times of collectives on a cluster's network" },
	{ "kernel", cmd_kernel, "predicted times of single kernels" },
	{ "trace", cmd_trace, "step graphs and recorded steps: show, replay, compare" },
	{ "calibrate", cmd_calibrate, "GPU profiles from measurements" },
	{ "serve", cmd_serve, "a local page and a JSON API" },
	{ "runs", cmd_runs, "the measured runs that predictions are compared with" },
	{ "explain", cmd_explain, "what a key, an item or a word of an answer means" },
	{ "new", cmd_new, "a commented skeleton of a scenario, GPU, stack ..." },
	{ "doctor", cmd_doctor, "which optional programs are installed" },
	{ "list", cmd_list, "known GPUs, nodes, models, fabrics, stacks ..." },
};

enum { COMMANDS = sizeof(commands) / sizeof(*commands), USAGE = 64 };

static void help(FILE *out)
{
	fputs("Usage: foretoken COMMAND [ARGUMENT...]\n"
	      "Predict tokens/s and USD per million tokens of transformer training on a\n"
	      "cluster that need not exist yet.\n\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].what);
	fputs("\nExample: foretoken simulate examples/01-first-answer/h100.yaml\n"
	      "Each command takes --help.\n",
	      out);
}

static int unknown(const char *name)
{
	const char *names[COMMANDS], *near;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	near = text_nearest(name, names, COMMANDS);
	fprintf(stderr, "foretoken: error: there is no command '%s'", name);
	if (near)
		fprintf(stderr, "; did you mean '%s'?", near);
	fputs("\nTry 'foretoken --help'.\n", stderr);
	return USAGE;
}

/* Memory for Jansson: too little ends the program, so that no answer lacks a part. */
static void *alloc_or_end(size_t n)
{
	return allocated(malloc(n ? n : 1));
}

int main(int argc, char **argv)
{
	char name[64];

	arena_keep_pages();
	gsl_set_error_handler_off();
	json_set_alloc_funcs(alloc_or_end, free);
	if (atexit(check_output))
		out_of_memory();
	argp_err_exit_status = USAGE;
	if (argc < 2) {
		help(stderr);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help")) {
		help(stdout);
		return finish_output();
	}
	if (!strcmp(argv[1], "--version")) {
		puts("foretoken " FORETOKEN_VERSION);
		return finish_output();
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name)) {
			snprintf(name, sizeof(name), "foretoken %s", argv[1]);
			argv[1] = name;
			return commands[i].run(argc - 1, argv + 1);
		}
	return unknown(argv[1]);
}
