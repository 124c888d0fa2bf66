/* cli/cmd_list.c - foretoken list gpus|nodes|fabrics|sites|models|stacks|ccl|prices|keys */
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	const char *kind;
	bool json;
};

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->kind)
			argp_usage(state);
		a->kind = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->kind)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"gpus|nodes|fabrics|sites|models|stacks|ccl|prices|keys",
	"List what foretoken knows, and where the numbers come from."
	"\vExample: foretoken list gpus",
	NULL,
	NULL,
	NULL,
};

int cmd_list(int argc, char **argv)
{
	struct args a = { 0 };
	struct ft_error err;

	parse_arguments(&argp, argc, argv, &a);
	if (!ft_report_list(stdout, a.kind, a.json, &err))
		return complain(&err);
	return finish_output();
}
