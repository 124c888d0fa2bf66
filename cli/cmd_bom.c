/* cli/cmd_bom.c - foretoken bom SCENARIO */
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	struct shared shared;
	const char *plot;
	bool csv;
};

static const struct argp_option options[] = {
	{ "csv", 'c', NULL, 0, "Print CSV", 0 },
	{ "plot", 'P', "FILE", 0, "Draw the network as FILE.svg", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		return 0;
	case 'c':
		a->csv = true;
		return 0;
	case 'P':
		a->plot = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->csv && a->shared.json)
			argp_error(state, "--csv or --json, not both");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Print the bill of materials of a scenario's cluster; only `cluster`, "
	"`cost.prices` and `cost.price_of` are read."
	"\vExample: foretoken bom examples/01-first-answer/h100.yaml "
	"--set cluster.gpus=1016 --set cluster.ufm_ports=4",
	priced_children,
	NULL,
	NULL,
};

static bool draw(const struct args *a, const struct ft_cluster *c, struct ft_error *err)
{
	const struct own_files files = { .shared = &a->shared, .out = { a->plot } };

	return files_apart(&files, err) && ft_report_network(a->plot, c, err);
}

int cmd_bom(int argc, char **argv)
{
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct ft_bom *bom = NULL;
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = 1 } };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	s = ft_scenario_load(shelf, a.shared.word.word[0], a.shared.set.word,
			     a.shared.set.n, false, &err);
	if (s && ft_scenario_prices(s, &err))
		bom = ft_bom_bought(s->cluster, s->prices, &err);
	if (bom && a.plot && !draw(&a, s->cluster, &err)) {
		ft_bom_free(bom);
		bom = NULL;
	}
	if (bom && a.shared.json)
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
