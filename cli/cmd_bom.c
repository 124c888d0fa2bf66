/* cli/cmd_bom.c - foretoken bom SCENARIO */
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	const char *scenario;
	struct words set;
	bool json, csv;
};

static const struct argp_option options[] = {
	{ "set", 's', "KEY=VALUE", 0, "Override a key, e.g. cluster.gpus=2048", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "csv", 'c', NULL, 0, "Print CSV", 0 },
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
	case 'c':
		a->csv = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->scenario)
			argp_usage(state);
		a->scenario = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->scenario)
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
	"Print the bill of materials of a scenario's cluster; only `cluster` and "
	"`cost.prices` are read."
	"\vExample: foretoken bom examples/01-first-answer/h100.yaml "
	"--set cluster.gpus=1016 --set cluster.ufm_ports=4",
	NULL,
	NULL,
	NULL,
};

int cmd_bom(int argc, char **argv)
{
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct ft_bom *bom = NULL;
	struct args a = { 0 };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.scenario, a.set.word, a.set.n, false, &err);
	if (s && ft_scenario_prices(s, &err))
		bom = ft_bom_build(s->cluster, s->prices, &err);
	if (bom && a.json)
		ft_report_bom_json(stdout, s->cluster, bom);
	else if (bom && a.csv)
		ft_report_bom_csv(stdout, bom);
	else if (bom)
		ft_report_bom(stdout, s->cluster, bom);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	if (!bom)
		return complain(&err);
	ft_bom_free(bom);
	return finish_output();
}
