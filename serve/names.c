/* serve/names.c - what a form offers: presets with their sources, keys with their meaning */
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/plain.h"
#include "foretoken/models.h"
#include "foretoken/reports.h"
#include "serve/api.h"

/* Keys whose values are names of presets, and which. */
static const struct {
	const char *key, *kind;
} named[] = {
	{ "model", "models" },
	{ "cluster.gpu", "gpus" },
	{ "cluster.node", "nodes" },
	{ "cluster.fabric", "fabrics" },
	{ "cluster.site", "sites" },
	{ "stack", "stacks" },
	{ "ccl", "ccl" },
	{ "cost.prices", "prices" },
};

enum { NAMED = sizeof(named) / sizeof(*named) };

bool api_names(const struct api_text *body, FILE *out, struct ft_error *err)
{
	(void)body;
	putc('{', out);
	for (size_t i = 0; i < NAMED; i++) {
		fprintf(out, "%s\"%s\": ", i ? "," : "", named[i].kind);
		if (!ft_report_list(out, named[i].kind, true, err))
			return false;
	}
	fputs("}\n", out);
	return true;
}

static void words(json_t *key, const char *const *word, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(word[i]));
	json_object_set_new(key, "choices", list);
}

/* What a key can be, where it is one of a few words. */
static void put_choices(json_t *key, const char *path)
{
	static const char *const starts[] = { "steady", "together" };
	const char *word[FT_DTYPES];
	size_t n = 0;

#define OF(name, function, kind, last) \
	if (!strcmp(path, "training." name)) \
		for (int i = 0; i <= (int)(last); i++) \
	word[n++] = function((enum kind)i)
	OF("sharding", ft_sharding_name, ft_sharding, FT_HSDP);
	OF("schedule", ft_schedule_name, ft_schedule, FT_SCHEDULES - 1);
	OF("recompute", ft_recompute_name, ft_recompute, FT_RECOMPUTE_FULL);
	OF("cuda_graphs", ft_graphs_name, ft_graphs, FT_GRAPHS_FULL);
	OF("moe_dispatcher", ft_dispatcher_name, ft_dispatcher, FT_DISPATCH_HYBRIDEP);
	OF("fp8_recipe", ft_scaling_name, ft_scaling, FT_SCALING_NV);
	OF("optimizer", ft_optimizer_name, ft_optimizer, FT_MUON);
	OF("gradient_dtype", ft_dtype_name, ft_dtype, FT_FP32);
#undef OF
	for (int i = 0; !strcmp(path, "training.precision") && i < FT_DTYPES; i++)
		if (i != FT_FP32)
			word[n++] = ft_dtype_name((enum ft_dtype)i);
	if (!strcmp(path, "training.step_start"))
		for (; n < 2; n++)
			word[n] = starts[n];
	if (n)
		words(key, word, n);
}

/* What the key is where nobody gives it, in the scenario whose values are all defaults. */
static const char start[] = "{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, "
			    "training: {sequence_length: 8192, global_batch_size: 64}}";

static json_t *key_of(const struct ft_scenario *s, const char *path, const char *about)
{
	const struct node *value =
		node_path(s->given, path) ? NULL : node_path(s->resolved, path);
	json_t *key = json_object();

	json_object_set_new(key, "name", json_string(path));
	json_object_set_new(key, "title", json_string(about));
	if (value && value->kind == NODE_SCALAR && !node_is_null(value)) {
		json_object_set_new(key, "default", json_string(value->text));
		if (node_is_bool(value)) {
			static const char *const truth[] = { "true", "false" };

			words(key, truth, 2);
		}
	}
	for (size_t i = 0; i < NAMED; i++)
		if (!strcmp(named[i].key, path))
			json_object_set_new(key, "names", json_string(named[i].kind));
	put_choices(key, path);
	return key;
}

bool api_keys(const struct api_text *body, FILE *out, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct node *root = node_read_text(&mem, "start", start, strlen(start), err);
	struct ft_scenario *s =
		root ? ft_scenario_from(shelf, root, "start", true, err) : NULL;
	json_t *list = json_array();
	const char *path, *about;

	(void)body;
	for (size_t i = 0; s && (path = ft_scenario_key(i, &about)); i++)
		json_array_append_new(list, key_of(s, path, about));
	if (s) {
		json_dumpf(list, out, JSON_INDENT(1));
		putc('\n', out);
	}
	json_decref(list);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return s != NULL;
}
