/* cli/cmd_trace.c - foretoken trace show|replay: step graphs as text */
#include <string.h>

#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	const char *verb, *graph;
	struct shared shared;
};

static const struct argp_option options[] = {
	{ "graph", 'g', "FILE", 0, "replay: file with the graph to run", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		return 0;
	case 'g':
		a->graph = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->verb)
			return ARGP_ERR_UNKNOWN; /* the SCENARIO */
		if (strcmp(arg, "show") && strcmp(arg, "replay"))
			argp_error(state, "'%s' is neither show nor replay", arg);
		a->verb = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "show or replay is missing");
		return 0;
	case ARGP_KEY_END:
		if (!strcmp(a->verb, "replay") && !a->graph)
			argp_error(state, "--graph FILE is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &shared_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	options,
	parse,
	"show SCENARIO\nreplay SCENARIO --graph FILE",
	"show prints the step graph of a scenario as text that can be edited; "
	"replay simulates such a text on the scenario's cluster."
	"\vExample: foretoken trace show examples/01-first-answer/h100.yaml "
	"> step.graph",
	children,
	NULL,
	NULL,
};

static bool show(const struct ft_scenario *s, struct ft_error *err)
{
	struct ft_graph *g = ft_graph_build(s->model, s->plan, s->stack, err);

	if (!g)
		return false;
	ft_graph_write(g, stdout);
	ft_graph_free(g);
	return true;
}

static bool replay(const struct args *a, const struct ft_scenario *s,
		   struct ft_error *err)
{
	struct ft_graph *g = ft_graph_read(a->graph, s->cluster->ranks, err);
	struct ft_outcome o;
	bool ok = g && ft_study_simulate(s, g, NULL, &o, err);

	if (ok && a->shared.json)
		ft_report_outcome_json(stdout, s, &o);
	else if (ok)
		ft_report_outcome(stdout, s, &o);
	if (ok)
		ft_outcome_release(&o);
	ft_graph_free(g);
	return ok;
}

int cmd_trace(int argc, char **argv)
{
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = 1 } };
	struct ft_error err;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.shared.word.word[0], a.shared.set.word,
			     a.shared.set.n, true, &err);
	ok = s && (!strcmp(a.verb, "show") ? show(s, &err) : replay(&a, s, &err));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return ok ? finish_output() : complain(&err);
}
