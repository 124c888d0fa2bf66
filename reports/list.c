/* reports/list.c - what the data folders hold, with where it comes from */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/text.h"
#include "reports/json.h"
#include "reports/table.h"

static const struct {
	const char *kind, *folder;
} kinds[] = {
	{ "gpus", "hw/gpus" },	     { "nodes", "hw/nodes" },
	{ "fabrics", "hw/fabrics" }, { "sites", "hw/sites" },
	{ "models", "models" },	     { "stacks", "stacks" },
	{ "ccl", "stacks/ccl" },     { "prices", "cost/prices" },
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static const char *text_of(const struct node *map, const char *key)
{
	const struct node *n = node_get(map, key);

	return n && n->kind == NODE_SCALAR ? n->text : "";
}

/* Some are long: what is left out is marked, and no character of UTF-8 is cut. */
static void put_source(struct table *t, const char *source)
{
	size_t n = strlen(source), most = 70;
	bool cut = n > most;

	for (n = cut ? most - 3 : n; cut && ((unsigned char)source[n] & 0xc0) == 0x80;
	     n--)
		;
	table_put(t, "%.*s%s", (int)n, source, cut ? "..." : "");
}

static bool one(struct arena *mem, const char *folder, const char *name,
		struct table *t, json_t *list, struct ft_error *err)
{
	const char *path = file_find(mem, folder, name, NULL, err);
	struct node *node = path ? node_read_file(mem, path, err) : NULL;
	const struct node *from = node_get(node, "provenance");
	json_t *o;

	if (!node)
		return false;
	if (list) {
		o = json_object();
		json_put_text(o, "name", name);
		json_put_text(o, "title", text_of(node, "title"));
		json_put_text(o, "kind", text_of(from, "kind"));
		json_put_text(o, "source", text_of(from, "source"));
		json_put_text(o, "date", text_of(from, "date"));
		json_array_append_new(list, o);
		return true;
	}
	table_row(t);
	table_put(t, "%s", name);
	table_put(t, "%s", text_of(node, "title"));
	table_put(t, "%s", text_of(from, "kind"));
	table_put(t, "%s", text_of(from, "date"));
	put_source(t, text_of(from, "source"));
	return true;
}

/* The keys of a scenario. */
static void list_keys(FILE *out, bool json)
{
	json_t *list = json ? json_array() : NULL;
	struct table t = { 0 };
	const char *key, *about;

	if (!json)
		t = TABLE_OPEN(out, "key", "what it means");
	for (size_t i = 0; (key = ft_scenario_key(i, &about)); i++) {
		if (json) {
			json_t *o = json_object();

			json_put_text(o, "name", key);
			json_put_text(o, "title", about);
			json_array_append_new(list, o);
			continue;
		}
		table_row(&t);
		table_put(&t, "%s", key);
		table_put(&t, "%s", about);
	}
	if (json)
		json_print(out, list);
	else
		table_close(&t);
}

bool ft_report_list(FILE *out, const char *kind, bool json, struct ft_error *err)
{
	PLAIN_NUMBERS;
	static const char *const heads[] = { "name", "title", "provenance", "date",
					     "source" };
	struct arena mem = { 0 };
	const char *folder = NULL, **name;
	json_t *list = NULL;
	struct table t;
	bool ok = true;
	size_t n;

	if (!strcmp(kind, "keys")) {
		list_keys(out, json);
		return true;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kind, kinds[i].kind))
			folder = kinds[i].folder;
	if (!folder)
		return ft_fail(err, NULL,
			       "'%.40s' is not one of gpus, nodes, "
			       "fabrics, sites, models, stacks, ccl, prices, keys",
			       kind);
	name = file_list(&mem, folder, &n, err);
	ok = name != NULL;
	if (json)
		list = json_array();
	else
		t = table_open(out, heads, 5);
	for (size_t i = 0; ok && i < n; i++)
		ok = one(&mem, folder, name[i], &t, list, err);
	if (!json && ok)
		table_close(&t);
	else if (!json)
		table_drop(&t);
	else if (ok)
		json_print(out, list);
	else
		json_decref(list);
	arena_release(&mem);
	return ok;
}
