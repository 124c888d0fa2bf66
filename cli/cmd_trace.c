/* cli/cmd_trace.c - foretoken trace show|replay: step graphs as text */
#include <string.h>

#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	const char *verb, *scenario, *graph;
	struct words set;
	bool json;
};

static const struct argp_option options[] = {
	{ "set", 's', "KEY=VALUE", 0, "Override a key", 0 },
	{ "graph", 'g', "FILE", 0, "replay: file with the graph to run", 0 },
	{ "json", 'j', NULL, 0, "replay: print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 's':
		words_add(&a->set, arg, state);
		return 0;
	case 'g':
		a->graph = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else if (!a->scenario)
			a->scenario = arg;
		else
			argp_usage(state);
		return 0;
	case ARGP_KEY_END:
		if (!a->scenario ||
		    (strcmp(a->verb, "show") && strcmp(a->verb, "replay")) ||
		    (!strcmp(a->verb, "replay") && !a->graph))
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"show SCENARIO\nreplay SCENARIO --graph FILE",
	"show prints the step graph of a scenario as text that can be edited; "
	"replay simulates such a text on the scenario's cluster."
	"\vExample: foretoken trace show examples/01-first-answer/h100.yaml "
	"> step.graph",
	NULL,
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

	if (ok && a->json)
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
	struct args a = { 0 };
	struct ft_error err;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.scenario, a.set.word, a.set.n, true, &err);
	ok = s && (!strcmp(a.verb, "show") ? show(s, &err) : replay(&a, s, &err));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return ok ? finish_output() : complain(&err);
}
