/* cli/cmd_explain.c - foretoken explain KEY */
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "cli/commands.h"
#include "foretoken/study.h"

/* Who reads the keys below a word. */
static const struct {
	const char *head, *reader;
} readers[] = {
	{ "model", "models/: the operations of a step, FLOPs, parameters" },
	{ "cluster", "hw/: rates of GPUs, links of the network, the table of parts" },
	{ "stack", "stacks/: which operations exist, what launching them costs" },
	{ "ccl", "stacks/ccl/: which algorithm a collective runs" },
	{ "training", "models/plan.c, recipe.c: the step graph and its memory" },
	{ "cost",
	  "cost/terms.c: dollars per GPU-hour and million tokens; tokens/s stay" },
	{ "run", "study/run.c: days, dollars and fleets for what is asked" },
	{ "name", "study/scenario.c: names the answer" },
	{ "title", "study/scenario.c: names the answer" },
};

/* Scenarios that leave all they can to defaults: each key's is told from the first that has
 * a use for it. */
static const struct {
	const char *name, *text;
} usual[] = {
	{ "Llama 3 8B on 8 H100",
	  "{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, "
	  "training: {sequence_length: 8192, global_batch_size: 16}}" },
	{ "Mixtral 8x7B in fp8 on 8 H100",
	  "{model: mixtral-8x7b, cluster: {gpu: h100-sxm, gpus: 8}, training: "
	  "{sequence_length: 8192, global_batch_size: 16, precision: fp8}}" },
};

enum { USUAL = sizeof(usual) / sizeof(*usual) };

struct explainer {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *usual[USUAL];
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **word = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*word)
			argp_error(state, "one KEY at a time");
		*word = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "KEY is missing; 'foretoken list keys' has them all");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	NULL,
	parse,
	"KEY",
	"What a key of a scenario means, its default, and who reads it. KEY may be the last "
	"word of one, or a map of several."
	"\vExample: foretoken explain training.zero_group",
	NULL,
	NULL,
	NULL,
};

static bool ends_in(const char *path, const char *word)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot + 1, word);
}

/* The key itself, a key below it, or one that ends in it. */
static bool is_meant(const char *path, const char *word)
{
	size_t n = strlen(word);

	return !strcmp(path, word) || (!strncmp(path, word, n) && path[n] == '.') ||
	       ends_in(path, word);
}

static const char *reader_of(const char *path)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		size_t n = strlen(readers[i].head);

		if (!strncmp(path, readers[i].head, n) && (!path[n] || path[n] == '.'))
			return readers[i].reader;
	}
	return "study/scenario.c";
}

static void tell(struct explainer *e, const char *path, const char *about)
{
	const char *value = "none", *of = NULL;

	for (int i = 0; i < USUAL && !of; i++) {
		const struct node *n = node_path(e->usual[i]->resolved, path);

		if (node_is_null(n))
			continue;
		of = usual[i].name;
		value = n->kind == NODE_SCALAR ? n->text : node_flow(&e->mem, n);
	}
	printf("%s\n  %s\n  default   %s", path, about, value);
	if (of)
		printf(" (%s; a stack, GPU or node may say another)", of);
	printf("\n  read by   %s\n  more      man foretoken-scenario\n",
	       reader_of(path));
}

static bool explain(struct explainer *e, const char *word, struct ft_error *err)
{
	const char *names[256], *path, *about, *near;
	size_t n = 0, told = 0;

	for (size_t i = 0; (path = ft_scenario_key(i, &about)); i++) {
		if (n < sizeof(names) / sizeof(*names))
			names[n++] = path;
		if (!is_meant(path, word))
			continue;
		if (told++)
			putchar('\n');
		tell(e, path, about);
	}
	if (told)
		return true;
	near = text_nearest(word, names, n);
	return ft_fail(
		err, NULL,
		"a scenario has no key '%.60s'%s%s%s; 'foretoken list keys' has them "
		"all",
		word, near ? "; did you mean '" : "", near ? near : "",
		near ? "'?" : "");
}

static bool open_usual(struct explainer *e, struct ft_error *err)
{
	e->shelf = ft_shelf_new();
	for (int i = 0; i < USUAL; i++) {
		const char *text = usual[i].text;
		struct node *root =
			node_read_text(&e->mem, "usual", text, strlen(text), err);

		e->usual[i] =
			root ? ft_scenario_from(e->shelf, root, "usual", true, err) :
			       NULL;
		if (!e->usual[i])
			return false;
	}
	return true;
}

int cmd_explain(int argc, char **argv)
{
	const char *word = NULL;
	struct explainer e = { 0 };
	struct ft_error err;
	bool ok;

	parse_arguments(&argp, argc, argv, &word);
	ok = open_usual(&e, &err) && explain(&e, word, &err);
	for (int i = 0; i < USUAL; i++)
		ft_scenario_free(e.usual[i]);
	ft_shelf_free(e.shelf);
	arena_release(&e.mem);
	return ok ? finish_output() : complain(&err);
}
