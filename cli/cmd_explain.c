/* cli/cmd_explain.c - foretoken explain KEY */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/tables.h"
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
	{ "DeepSeek-V3.2 on 256 H200",
	  "{model: deepseek-v3.2, cluster: {gpu: h200, gpus: 256}, training: "
	  "{sequence_length: 4096, global_batch_size: 2048, parallel: {pp: 8, ep: 32}}}" },
};

enum { USUAL = sizeof(usual) / sizeof(*usual) };

struct explainer {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *usual[USUAL];
	struct page_key *page;
	struct table_row *row;
	size_t n_page, n_row;
};

/* A word as copied out of a table, where rows below another are indented. */
static char *without_blanks(char *word)
{
	size_t len;

	word += strspn(word, " \t\n");
	for (len = strlen(word); len && strchr(" \t\n", word[len - 1]); len--)
		word[len - 1] = '\0';
	return word;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **word = state->input;

	if (key == ARGP_KEY_ARG) {
		arg = without_blanks(arg);
		if (!arg[0])
			key = ARGP_KEY_NO_ARGS;
	}
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
	"Explain a key of a scenario: what it means, its default, and who reads it. KEY may be "
	"the last word of a key, or a map of several keys. Keys of a stack, GPU, node, fabric, "
	"site, communication library or price book are explained from their manual pages, as "
	"stack.fusion or gpu.power. A row, item or number of an answer and a word of the "
	"glossary are explained from the documents."
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

/* The key itself, a key below it, or one that ends in it: its words, one behind the other. */
static bool is_meant(const char *path, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = path; n && at; at = strchr(at, '.')) {
		at += *at == '.';
		if (!strncmp(at, word, n) && (!at[n] || at[n] == '.'))
			return true;
	}
	return false;
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

/* In lines of a terminal's width, behind a margin: the first line's begins with a word, if any. */
static void tell_named(const char *name, const char *margin, const char *words)
{
	enum { WIDTH = 78 };
	int column = 0;

	while (*words) {
		int len = (int)strcspn(words, " ");

		if (column && column + 1 + len > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += column ? printf(" %.*s", len, words) :
				   printf("%s%.*s", name, len, words);
		name = margin;
		words += len;
		words += strspn(words, " ");
	}
	putchar('\n');
}

static void tell_words(const char *margin, const char *words)
{
	tell_named(margin, margin, words);
}

static void tell_default(struct explainer *e, const char *value, const char *of)
{
	tell_named("  default   ", "            ",
		   !of ? value :
			 arena_printf(&e->mem,
				      "%s (%s; a stack, GPU or node may say another)",
				      value, of));
}

static void tell(struct explainer *e, const char *path, const char *about)
{
	const char *said = ft_scenario_key_usual(path);
	const char *value = said ? said : "none", *of = NULL;

	for (int i = 0; i < USUAL && !of && !said; i++) {
		const struct node *n = node_path(e->usual[i]->resolved, path);

		if (node_is_null(n))
			continue;
		of = usual[i].name;
		value = n->kind == NODE_SCALAR ? n->text : node_flow(&e->mem, n);
	}
	puts(path);
	tell_words("  ", about);
	tell_default(e, value, of);
	printf("  read by   %s\n  more      man foretoken-scenario\n", reader_of(path));
}

/* A key of another file than a scenario, as its manual page tells it. */
static size_t tell_page_keys(const struct page_key *key, size_t n, const char *word,
			     bool (*is_it)(const struct page_key *, const char *),
			     bool before)
{
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_it(&key[i], word))
			continue;
		printf("%s%s, of %s\n", told++ || before ? "\n" : "", key[i].path,
		       key[i].of);
		tell_words("  ", key[i].about);
		if (key[i].usual)
			tell_named("  default   ", "            ", key[i].usual);
		printf("  more      man %s\n", key[i].page);
	}
	return told;
}

/* Rows of the documents' tables that have the word as a whole name, or as a part of it. */
static size_t tell_rows(struct explainer *e, const char *word, enum table_meant how,
			bool told)
{
	size_t found = 0;

	for (size_t i = 0; i < e->n_row; i++) {
		const struct table_row *row = &e->row[i];

		if (table_row_meant(row, word) != how)
			continue;
		if (told || found)
			putchar('\n');
		found++;
		tell_words("", row->json ? row->json : row->words);
		if (row->json)
			printf("  a number of an answer: %s\n", row->words);
		tell_words("  ", row->about);
		tell_named("  more      ", "            ",
			   arena_printf(&e->mem, "%s, under \"%s\"", row->page,
					row->section));
	}
	return found;
}

/* A key of a model, or a number of an answer that no row names in full. */
static bool tell_other(const char *word)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);
	const char *key = text_begins_with(word, "model.") ? word + 6 : word;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, f[i].key) || ends_in(f[i].key, word)) {
			printf("%s\n  a number of an answer%s%s; see its table in "
			       "docs/reading-the-output.md\n",
			       f[i].key, f[i].label ? ": " : "",
			       f[i].label ? f[i].label + strspn(f[i].label, " ") : "");
			return true;
		}
	for (size_t i = 0; ft_model_key(i); i++)
		if (!strcmp(key, ft_model_key(i))) {
			printf("model.%s\n  a key of a model, as in a config.json of "
			       "Hugging Face\n  more      man foretoken-scenario\n",
			       key);
			return true;
		}
	return false;
}

static size_t tell_scenario_keys(struct explainer *e, const char *word)
{
	const char *path, *about;
	size_t told = 0;

	for (size_t i = 0; (path = ft_scenario_key(i, &about)); i++) {
		if (!is_meant(path, word))
			continue;
		if (told++)
			putchar('\n');
		tell(e, path, about);
	}
	return told;
}

/* What a word may be meant to be that is none: a key, from any of its words on, a map, or a name of
 * a row. */
static const char *nearest(struct explainer *e, const char *word)
{
	enum { MOST = 4096 };
	const char *names[MOST], *path, *about;
	const struct ft_outcome_field *f;
	size_t n = 0, n_fields = ft_outcome_fields(&f);

	for (size_t i = 0; (path = ft_scenario_key(i, &about)); i++)
		for (; n + 2 < MOST && *path; path += *path == '.') {
			names[n++] = path;
			names[n++] = arena_text_n(&e->mem, path, strcspn(path, "."));
			path += strcspn(path, ".");
		}
	for (size_t i = 0; n < MOST && i < e->n_page; i++)
		names[n++] = text_last_word(e->page[i].path);
	for (size_t i = 0; n < MOST && i < n_fields; i++)
		names[n++] = text_last_word(f[i].key);
	for (size_t i = 0; i < e->n_row; i++)
		for (size_t k = 0; n < MOST && k < e->row[i].within; k++)
			names[n++] = e->row[i].names[k];
	return text_nearest(word, names, n);
}

/* Keys that are meant, rows of the documents, and of other words those in whose words it stands. */
static bool tell_all(struct explainer *e, const char *word)
{
	bool key = tell_scenario_keys(e, word) ||
		   tell_page_keys(e->page, e->n_page, word, page_key_meant, false);
	bool told = tell_rows(e, word, TABLE_WHOLE, key) || key || tell_other(word);

	if (!key)
		told = tell_page_keys(e->page, e->n_page, word, page_key_names, told) ||
		       told;
	return told || tell_rows(e, word, TABLE_IN_PART, told) ||
	       tell_rows(e, word, TABLE_WITHIN, false);
}

/* A number of an answer by its whole path, "verdict.causes.cause": what its last words mean. */
static bool tell_path(struct explainer *e, const char *word)
{
	bool ours = false;
	const char *first = arena_text_n(&e->mem, word, strcspn(word, "."));

	for (size_t i = 0; i < e->n_row && !ours; i++)
		ours = table_row_meant(&e->row[i], first) == TABLE_WHOLE;
	while (ours && (word = strchr(word, '.')))
		if (tell_all(e, ++word))
			return true;
	return false;
}

/* Rows of a comparison have their unit behind them: "step, ms", "MFU, attention counted whole, %". */
static bool tell_without_unit(struct explainer *e, const char *word)
{
	const char *comma = strrchr(word, ',');

	return comma &&
	       tell_all(e, arena_text_n(&e->mem, word, (size_t)(comma - word)));
}

/* Commas and dots stand between names and are none. */
static bool has_letters(const char *word)
{
	while (*word && !isalnum((unsigned char)*word))
		word++;
	return *word;
}

static bool explain(struct explainer *e, const char *word, struct ft_error *err)
{
	const char *near;

	if (has_letters(word) &&
	    (tell_all(e, word) || tell_without_unit(e, word) || tell_path(e, word)))
		return true;
	near = has_letters(word) ? nearest(e, word) : NULL;
	if (near)
		return ft_fail(err, NULL,
			       "no key, row, item or word is called '%.60s'; "
			       "did you mean '%s'?",
			       word, near);
	return ft_fail(
		err, NULL,
		"no key, row, item or word is called '%.60s'; 'foretoken list keys' "
		"has the keys of a scenario, docs/reading-the-output.md and "
		"docs/glossary.md the words of answers",
		word);
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
	e.page = pages_keys(&e.mem, &e.n_page);
	e.row = tables_rows(&e.mem, &e.n_row);
	ok = open_usual(&e, &err) && explain(&e, word, &err);
	for (int i = 0; i < USUAL; i++)
		ft_scenario_free(e.usual[i]);
	ft_shelf_free(e.shelf);
	arena_release(&e.mem);
	return ok ? finish_output() : complain(&err);
}
