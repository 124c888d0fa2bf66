/* cli/cmd_prices.c - foretoken prices import|show */
#include <string.h>

#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	const char *verb, *db, *plot;
	struct words word; /* books, or the item */
	bool json;
};

static const struct argp_option options[] = {
	{ "db", 'd', "FILE", 0, "SQLite file with the history", 0 },
	{ "plot", 'p', "FILE", 0,
	  "show: draw the prices over time as FILE.svg, by gnuplot", 0 },
	{ "json", 'j', NULL, 0, "show: print JSON", 0 },
	{ 0 },
};

static void check(const struct args *a, struct argp_state *state)
{
	bool show = !strcmp(a->verb, "show");

	if (!a->word.n)
		argp_error(state, show ? "ITEM is missing" : "BOOK is missing");
	if (show && a->word.n > 1)
		argp_error(state, "show takes one ITEM");
	if (!show && !a->db)
		argp_error(state, "--db FILE is missing");
	if (!show && (a->plot || a->json))
		argp_error(state, "--plot and --json belong to show");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'd':
		a->db = arg;
		return 0;
	case 'p':
		a->plot = arg;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->verb) {
			words_add(&a->word, arg, state);
			return 0;
		}
		if (strcmp(arg, "import") && strcmp(arg, "show"))
			argp_error(state, "'%s' is neither import nor show", arg);
		a->verb = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "import or show is missing");
		return 0;
	case ARGP_KEY_END:
		check(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"import BOOK... --db FILE\nshow ITEM [--db FILE] [--plot FILE]",
	"import puts the lines of price books (names or paths) into an SQLite file, where they "
	"replace lines of the same book and date; show prints an item's price by date, in all "
	"books of the tree or in those of such a file."
	"\vExample: foretoken prices show hgx-h100-server --plot h100.svg",
	NULL,
	NULL,
	NULL,
};

static bool import(const struct args *a, struct ft_error *err)
{
	for (size_t i = 0; i < a->word.n; i++) {
		size_t n;

		if (!ft_price_history_import(a->db, a->word.word[i], &n, err))
			return false;
		printf("%s: %zu prices\n", a->word.word[i], n);
	}
	return true;
}

static bool show(const struct args *a, struct ft_error *err)
{
	struct ft_price_history *h = ft_price_history_load(a->word.word[0], a->db, err);
	bool ok;

	if (!h)
		return false;
	ok = !a->plot || ft_report_price_history_plot(a->plot, h, err);
	if (ok && a->json)
		ft_report_price_history_json(stdout, h);
	else if (ok)
		ft_report_price_history(stdout, h);
	ft_price_history_free(h);
	return ok;
}

int cmd_prices(int argc, char **argv)
{
	struct args a = { 0 };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	if (!strcmp(a.verb, "import") ? import(&a, &err) : show(&a, &err))
		return finish_output();
	return complain(&err);
}
