/* cli/cmd_new.c - foretoken new gpu|node|fabric|stack|prices|scenario */
#include <string.h>

#include "cli/commands.h"
#include "cli/new.h"

static const struct {
	const char *kind, *text;
} skeletons[] = {
	{ "scenario", new_scenario_yaml }, { "gpu", new_gpu_yaml },
	{ "node", new_node_yaml },	   { "fabric", new_fabric_yaml },
	{ "stack", new_stack_yaml },	   { "prices", new_prices_yaml },
};

enum { SKELETONS = sizeof(skeletons) / sizeof(*skeletons) };

/* "scenario, gpu, ..., prices" */
static const char *all_of_them(char text[64])
{
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < SKELETONS; i++)
		n += (size_t)snprintf(text + n, 64 - n, "%s%s", i ? ", " : "",
				      skeletons[i].kind);
	return text;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **text = state->input;
	char kinds[64];

	switch (key) {
	case ARGP_KEY_ARG:
		if (*text)
			argp_error(state, "one skeleton at a time");
		for (size_t i = 0; !*text && i < SKELETONS; i++)
			if (!strcmp(arg, skeletons[i].kind))
				*text = skeletons[i].text;
		if (!*text)
			argp_error(state, "there is no skeleton of '%s'; there are %s",
				   arg, all_of_them(kinds));
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "say which: %s", all_of_them(kinds));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	NULL,
	parse,
	"scenario|gpu|node|fabric|stack|prices",
	"Print a commented skeleton, which works as it is."
	"\vExample: foretoken new scenario > mine.yaml && foretoken simulate mine.yaml",
	NULL,
	NULL,
	NULL,
};

int cmd_new(int argc, char **argv)
{
	const char *text = NULL;

	parse_arguments(&argp, argc, argv, &text);
	fputs(text, stdout);
	return finish_output();
}
