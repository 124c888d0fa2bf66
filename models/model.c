/* models/model.c - from a name, a path or a map to a model in its arena */
#include "foretoken/models.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/text.h"
#include "models/config.h"
#include "models/family.h"

/* What a handle points at: the model first, and the memory it lies in. */
struct owned {
	struct ft_model model;
	struct arena mem;
};

enum { MOST_PARTS = 2 }; /* maps inside each other */

/* What the scenario says: the preset or file, and the keys laid upon it. */
struct wish {
	const char *name, *path; /* path NULL: all given inline */
	const struct node *base, *over;
	const struct node *type;
	const struct node
		*outer[MOST_PARTS]; /* what base is a part of, outermost first */
	size_t n_outer;
};

/* Behind a mistake about where the model is: what else it may be, where no name is near. */
static void say_what_else(struct ft_error *err)
{
	size_t n = strlen(err->text);

	if (!err->of_system && !text_ends_with(err->text, "?"))
		snprintf(err->text + n, sizeof(err->text) - n, "%s",
			 "; a model that is no preset is read from its config.json, "
			 "which is named as model: ./config.json");
}

/* Does it say what the model is, or only how it differs from another? */
static bool find_base(struct arena *mem, const struct node *node, struct wish *wish,
		      struct ft_error *err)
{
	const struct node *name =
		node->kind == NODE_SCALAR ? node : node_get(node, "name");

	if (node->kind == NODE_LIST)
		return ft_fail(err, &node->mark, "a model is a name, a path or a map");
	if (node->kind == NODE_MAP)
		wish->over = node;
	wish->type = node_get(wish->over, "model_type");
	if (!name && !wish->type)
		return ft_fail(err, &node->mark,
			       "a model needs a name or a model_type");
	wish->name = name && name->text ? name->text : "inline";
	if (!name)
		return true;
	if (name->kind != NODE_SCALAR)
		return ft_fail(err, &name->mark, "a model's name is a word");
	if (wish->type && !(file_is_path(name->text) && file_may_name(&name->mark) &&
			    file_exists(name->text))) {
		struct ft_error ignored;

		wish->path =
			file_find(mem, "models", name->text, &name->mark, &ignored);
		return true; /* a whole model under a name of its own */
	}
	wish->path = file_find(mem, "models", name->text, &name->mark, err);
	if (!wish->path)
		say_what_else(err);
	return wish->path != NULL;
}

/* A config of several parts (text, vision) keeps the decoder's in a map inside, which
 * may be inside another (Qwen Omni). Only what the parts share is taken from outside. */
static bool enter_part(struct arena *mem, struct wish *wish)
{
	static const char *const parts[] = { "text_config", "llm_config",
					     "language_config", "thinker_config" };
	static const char *const shared[] = { "tie_word_embeddings", "vocab_size" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct node *part = node_get(wish->base, parts[i]);

		if (!part || part->kind != NODE_MAP || !part->n)
			continue;
		for (size_t k = 0; k < 2; k++) {
			struct node *value = node_get(wish->base, shared[k]);

			if (value && !node_get(part, shared[k]))
				node_put(mem, part, shared[k], &value->mark, value);
		}
		wish->outer[wish->n_outer++] = wish->base;
		wish->base = part;
		return true;
	}
	return false;
}

static bool read_base(struct arena *mem, const struct node *node, struct wish *wish,
		      struct ft_error *err)
{
	struct node *type;

	if (!find_base(mem, node, wish, err))
		return false;
	if (!wish->path)
		return true;
	wish->base = node_read_file(mem, wish->path, err);
	if (!wish->base && !err->line) /* it is no file; else a mistake in it */
		say_what_else(err);
	if (!wish->base)
		return false;
	while (wish->n_outer < MOST_PARTS && enter_part(mem, wish))
		;
	type = node_get(wish->base, "model_type");
	if (!wish->type)
		wish->type = type;
	if (!wish->type)
		return config_typeless(wish->base, err);
	return true;
}

/* A vocab_size that is given goes without the preset's padding, which was for the
 * preset's. Our presets may say `name` nowhere, a config.json anything. */
static void settle_vocab(struct arena *mem, const struct node *over, struct node *map)
{
	static const struct ft_mark here = { "", 1, 1 };

	if (node_get(over, "vocab_size") && !node_get(over, "vocab_size_multiple"))
		node_put(mem, map, "vocab_size_multiple", &here,
			 node_scalar(mem, &here, "null"));
}

static const struct ft_provenance *without_provenance(struct arena *mem,
						      const struct wish *wish)
{
	struct ft_provenance *from = ARENA_NEW(mem, struct ft_provenance);

	from->kind = wish->path ? FT_PUBLISHED : FT_ASSUMED;
	from->source = wish->path ? wish->path : "the scenario";
	from->date = from->note = "";
	return from;
}

/* The last part of a path, without its ending. */
static char *short_name(struct arena *mem, const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *leaf = slash ? slash + 1 : name;
	size_t len = strlen(leaf);

	if (text_ends_with(leaf, ".yaml") || text_ends_with(leaf, ".json"))
		len -= 5;
	else if (text_ends_with(leaf, ".yml"))
		len -= 4;
	return arena_text_n(mem, leaf, len);
}

/* A file may be called anything, so what a name cannot hold becomes a dash; a name
 * that was given is held to the rule. */
static bool set_name(struct arena *mem, const struct node *node,
		     const struct wish *wish, struct ft_model *model,
		     struct ft_error *err)
{
	const struct node *given =
		node->kind == NODE_MAP ? node_get(node, "name") : node;
	char *name = short_name(mem, wish->name);

	model->name = name;
	if (text_is_name(name))
		return true;
	if (!wish->path || !strchr(wish->name, '/'))
		return ft_fail(err, given ? &given->mark : &node->mark,
			       "'%.70s' " TEXT_NAME_RULE, name, (int)LIMIT_NAME_BYTES);
	if (strlen(name) > LIMIT_NAME_BYTES)
		name[LIMIT_NAME_BYTES] = '\0';
	for (size_t i = 0; name[i]; i++) {
		char one[2] = { name[i], '\0' };

		if (!text_is_name(one) && (!i || !strchr("._+ -", name[i])))
			name[i] = i ? '-' : 'x';
	}
	return true;
}

/* What follows from several keys, each of which is within its bound. */
static bool layer_bounded(const struct node *map, const struct ft_layer *l,
			  struct ft_error *err)
{
	const struct {
		const char *key;
		int64_t value, most;
	} bound[] = {
		{ "head_dim", l->qk_head_dim, LIMIT_HEAD_DIM },
		{ "intermediate_size", l->intermediate, LIMIT_MLP },
		{ "moe_intermediate_size", l->expert_intermediate, LIMIT_MLP },
		{ "n_shared_experts", l->shared_intermediate, LIMIT_MLP },
	};

	for (size_t i = 0; i < sizeof(bound) / sizeof(*bound); i++) {
		const struct node *n = node_get(map, bound[i].key);

		if (bound[i].value > bound[i].most)
			return ft_fail(err, n ? &n->mark : &map->mark,
				       "%s: %lld is not between 1 and %lld",
				       bound[i].key, (long long)bound[i].value,
				       (long long)bound[i].most);
	}
	return true;
}

static bool bounded(const struct node *map, const struct ft_model *m,
		    struct ft_error *err)
{
	for (int64_t i = 0; i < m->n_layers; i++)
		if (!layer_bounded(map, &m->layer[i], err))
			return false;
	return true;
}

/* Of the part that is read, then of what is around it. */
static void set_passed_over(struct arena *mem, const struct family *family,
			    const struct wish *wish, struct ft_model *model)
{
	size_t n, more = 0;
	const char **in = config_passed_over(mem, family, wish->base, &n), **all;

	for (size_t k = 0; k < wish->n_outer; k++)
		more += wish->outer[k]->n;
	all = ARENA_ARRAY(mem, n + more + 1, const char *);
	for (size_t i = 0; i < n; i++)
		all[i] = in[i];
	for (size_t k = wish->n_outer; k-- > 0;) {
		const struct node *outer = wish->outer[k];
		const struct node *part =
			k + 1 < wish->n_outer ? wish->outer[k + 1] : wish->base;

		for (size_t i = 0; i < outer->n; i++)
			if (outer->item[i] != part &&
			    strcmp(outer->key[i], "model_type") != 0 &&
			    node_get(part, outer->key[i]) != outer->item[i])
				all[n++] = outer->key[i];
	}
	model->passed_over = all;
	model->n_passed_over = n;
}

/* Behind those that were passed over: the keys of a map that made no difference. */
static void pass_over(struct arena *mem, const struct family *family,
		      const struct node *map, const struct config_idle *idle,
		      struct ft_model *model)
{
	size_t n = model->n_passed_over;
	const char **all = ARENA_ARRAY(mem, n + map->n + 1, const char *);

	for (size_t i = 0; i < n; i++)
		all[i] = model->passed_over[i];
	for (size_t i = 0; i < map->n; i++)
		if (config_is_idle(idle, family_common_name(family, map->key[i])))
			all[n++] = arena_text(mem, map->key[i]);
	model->passed_over = all;
	model->n_passed_over = n;
}

/* What is written down of a model, to be read again: keys that make a difference, under a name that
 * its type knows; of a map within, what was read stands beside it. */
static struct node *written(struct arena *mem, const struct family *family,
			    const struct node *config, const struct config_idle *idle)
{
	struct node *kept = node_map(mem, &config->mark);

	for (size_t i = 0; i < config->n; i++) {
		const char *key = config->key[i];

		if (config_is_idle(idle, key) || family_key_of(key) == INSIDE)
			continue;
		if (strcmp(family_common_name(family, key), key) != 0)
			key = family_own_name(family, key); /* it is another's here */
		node_put(mem, kept, key, &config->key_mark[i], config->item[i]);
	}
	return kept;
}

/* Keys that make no difference are told, but for those of a preset of ours, and left out of
 * what is written down; keys of another kind of model that a scenario states are refused. */
static bool settle_idle(struct arena *mem, const struct family *family,
			const struct wish *wish, const struct config_idle *idle,
			struct ft_model *model, struct ft_error *err)
{
	if (wish->over && !config_no_idle(family, wish->over, idle, err))
		return false;
	model->config = written(mem, family, model->config, idle);
	if (!idle->n)
		return true;
	if (!model->preset)
		pass_over(mem, family, wish->base, idle, model);
	if (wish->over)
		pass_over(mem, family, wish->over, idle, model);
	return true;
}

/* The keys under common names: the file's, and the scenario's upon them. */
static struct node *lay(struct arena *mem, const struct node *node,
			const struct wish *wish, const struct family *family,
			struct ft_model *model)
{
	bool json = wish->path && text_ends_with(wish->path, ".json");
	const struct ft_mark *at = model->preset ? &node->mark : &wish->base->mark;
	struct node *map = node_map(mem, at), *over;

	if (wish->base)
		map = config_rename(mem, family, wish->base, json);
	if (json)
		set_passed_over(mem, family, wish, model);
	if (wish->over) {
		over = config_rename(mem, family, wish->over, false);
		if (wish->base)
			settle_vocab(mem, over, map);
		map = node_overlay(mem, map, over);
	}
	map->mark = *at; /* where what is missing should stand */
	return map;
}

static bool load(struct arena *mem, const struct node *node, struct ft_model *model,
		 struct ft_error *err)
{
	struct wish wish = { 0 };
	struct config_idle idle = { 0 };
	struct config_keys keys;
	const struct family *family;
	struct node *map;

	if (!read_base(mem, node, &wish, err))
		return false;
	model->preset = !wish.path || !file_is_path(wish.name);
	family = config_family(
		wish.type, wish.base ? wish.base : wish.over,
		!model->preset && wish.type->mark.file == wish.base->mark.file, err);
	if (!family)
		return false;
	if (!config_named_once(family, wish.base, err) ||
	    !config_named_once(family, wish.over, err) ||
	    !config_known_inside(mem, family, wish.over, err))
		return false;
	map = lay(mem, node, &wish, family, model);
	model->config = map;
	map = node_overlay(mem, NULL, map);
	config_complete(mem, family, map);
	if (!set_name(mem, node, &wish, model, err))
		return false;
	keys = (struct config_keys){ map, wish.base ? wish.base->mark.file : NULL };
	if (!config_read(mem, family, &keys, model, &idle, err) ||
	    !bounded(map, model, err)) {
		config_spell(family, wish.over, wish.base, err);
		return false;
	}
	if (!settle_idle(mem, family, &wish, &idle, model, err))
		return false;
	if (!model->from)
		model->from = without_provenance(mem, &wish);
	return true;
}

struct ft_model *ft_model_load(const struct node *node, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct owned *owned = ARENA_NEW(&mem, struct owned);

	if (!load(&mem, node, &owned->model, err)) {
		arena_release(&mem);
		return NULL;
	}
	owned->model.digest = mem.read;
	owned->mem = mem;
	return &owned->model;
}

void ft_model_free(struct ft_model *model)
{
	struct arena mem;

	if (!model)
		return;
	mem = ((struct owned *)model)->mem;
	arena_release(&mem);
}

static void stretch(struct ft_model *model, int64_t sequence)
{
	if (model->positions != FT_LEARNED || model->max_positions >= sequence)
		return;
	model->stretched_from = model->max_positions;
	model->max_positions = sequence;
}

/* A window that is longer than a document sees all of it, as a chunk does; a shorter one stays as it is, but where entries
 * are seen beside it, which are the document's own. */
static void pack(struct ft_layer *l, int64_t document)
{
	bool within = l->window && l->window < document;

	if (within && l->entry_tokens)
		l->chunk = document;
	if (!ft_layer_attends(l) || within || (l->chunk && l->chunk <= document))
		return;
	l->window = 0;
	l->chunk = document;
}

void ft_model_fit(struct ft_model *model, const struct ft_plan *plan)
{
	bool packed = plan->document && plan->document < plan->sequence;

	stretch(model, plan->sequence);
	for (int64_t i = 0; packed && i < model->n_layers; i++)
		pack(&model->layer[i], plan->document);
}
