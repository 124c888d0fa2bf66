/* models/model.c - from a name, a path or a map to a model in its arena */
#include "foretoken/models.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/text.h"
#include "models/config.h"

/* What a handle points at: the model first, and the memory it lies in. */
struct owned {
	struct ft_model model;
	struct arena mem;
};

/* What the scenario says: the preset or file, and the keys laid upon it. */
struct wish {
	const char *name, *path; /* path NULL: all given inline */
	const struct node *base, *over;
	const struct node *type;
	const struct node *outer; /* the config that base is the text part of */
};

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
	return wish->path != NULL;
}

/* A config of several parts (text, vision) keeps the decoder's in a map inside. Only
 * what the parts share is taken from outside it. */
static void enter_text_part(struct arena *mem, struct wish *wish)
{
	static const char *const parts[] = { "text_config", "llm_config",
					     "language_config" };
	static const char *const shared[] = { "tie_word_embeddings", "vocab_size" };

	for (size_t i = 0; i < 3; i++) {
		struct node *part = node_get(wish->base, parts[i]);

		if (!part || part->kind != NODE_MAP || !part->n)
			continue;
		wish->outer = wish->base;
		wish->base = part;
		for (size_t k = 0; k < 2; k++) {
			struct node *value = node_get(wish->outer, shared[k]);

			if (value && !node_get(part, shared[k]))
				node_put(mem, part, shared[k], &value->mark, value);
		}
		return;
	}
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
	if (!wish->base)
		return false;
	enter_text_part(mem, wish);
	type = node_get(wish->base, "model_type");
	if (!wish->type)
		wish->type = type;
	if (!wish->type)
		return ft_fail(err, &wish->base->mark, "model_type is missing");
	return true;
}

/* A vocab_size that is given is used as it is: the preset's padding was for
 * the preset's. Our presets may say `name` nowhere, a config.json anything. */
static void settle_vocab(struct arena *mem, const struct node *over, struct node *map)
{
	static const struct ft_mark here = { "", 1, 1 };

	if (node_get(over, "vocab_size") && !node_get(over, "vocab_size_multiple"))
		node_put(mem, map, "vocab_size_multiple", &here,
			 node_scalar(mem, &here, "0"));
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

/* A number of a model that is larger than any model's; keys as the map has them. */
static bool at_most(const struct node *map, const char *key, int64_t value,
		    int64_t most, struct ft_error *err)
{
	const struct node *n = node_get(map, key);

	return value <= most ||
	       ft_fail(err, n ? &n->mark : &map->mark,
		       "%s: %lld is larger than %lld, the most that is simulated", key,
		       (long long)value, (long long)most);
}

static bool layer_bounded(const struct node *map, const struct ft_layer *l,
			  struct ft_error *err)
{
	const struct {
		const char *key;
		int64_t value, most;
	} bound[] = {
		{ "num_attention_heads", l->heads, LIMIT_HEADS },
		{ "num_key_value_heads", l->kv_heads, LIMIT_HEADS },
		{ "head_dim", l->qk_head_dim, LIMIT_HEAD_DIM },
		{ "head_dim", l->v_head_dim, LIMIT_HEAD_DIM },
		{ "q_lora_rank", l->q_lora_rank, LIMIT_HIDDEN },
		{ "kv_lora_rank", l->kv_lora_rank, LIMIT_HIDDEN },
		{ "intermediate_size", l->intermediate, LIMIT_MLP },
		{ "moe_intermediate_size", l->expert_intermediate, LIMIT_MLP },
		{ "n_shared_experts", l->shared_intermediate, LIMIT_MLP },
		{ "num_local_experts", l->experts, LIMIT_EXPERTS },
		{ "linear_num_value_heads", l->linear_heads, LIMIT_HEADS },
		{ "linear_num_key_heads", l->linear_key_heads, LIMIT_HEADS },
		{ "linear_key_head_dim", l->linear_key_dim, LIMIT_HEAD_DIM },
		{ "linear_value_head_dim", l->linear_value_dim, LIMIT_HEAD_DIM },
		{ "linear_conv_kernel_dim", l->linear_taps, LIMIT_HEAD_DIM },
	};

	for (size_t i = 0; i < sizeof(bound) / sizeof(*bound); i++)
		if (!at_most(map, bound[i].key, bound[i].value, bound[i].most, err))
			return false;
	return true;
}

static bool bounded(const struct node *map, const struct ft_model *m,
		    struct ft_error *err)
{
	if (!at_most(map, "hidden_size", m->hidden_size, LIMIT_HIDDEN, err) ||
	    !at_most(map, "num_hidden_layers", m->n_layers, LIMIT_LAYERS, err) ||
	    !at_most(map, "vocab_size", m->vocab_size, LIMIT_VOCABULARY, err) ||
	    !at_most(map, "vocab_size_multiple", m->vocab_multiple, LIMIT_VOCABULARY,
		     err) ||
	    !at_most(map, "max_position_embeddings", m->max_positions, LIMIT_SEQUENCE,
		     err))
		return false;
	for (int64_t i = 0; i < m->n_layers; i++)
		if (!layer_bounded(map, &m->layer[i], err))
			return false;
	return true;
}

/* Of the part that is read, then of what is around it. */
static void set_passed_over(struct arena *mem, const struct family *family,
			    const struct wish *wish, struct ft_model *model)
{
	size_t more = wish->outer ? wish->outer->n : 0, n;
	const char **in = config_passed_over(mem, family, wish->base, &n);
	const char **all = ARENA_ARRAY(mem, n + more + 1, const char *);

	for (size_t i = 0; i < n; i++)
		all[i] = in[i];
	for (size_t i = 0; i < more; i++) {
		const char *key = wish->outer->key[i];

		if (wish->outer->item[i] != wish->base && strcmp(key, "model_type") &&
		    node_get(wish->base, key) != wish->outer->item[i])
			all[n++] = key;
	}
	model->passed_over = all;
	model->n_passed_over = n;
}

static bool load(struct arena *mem, const struct node *node, struct ft_model *model,
		 struct ft_error *err)
{
	struct wish wish = { 0 };
	const struct family *family;
	struct node *map;
	bool json;

	if (!read_base(mem, node, &wish, err))
		return false;
	family = config_family(wish.type, wish.base ? wish.base : wish.over, err);
	if (!family)
		return false;
	json = wish.path && text_ends_with(wish.path, ".json");
	map = node_map(mem, &node->mark);
	if (wish.base)
		map = config_rename(mem, family, wish.base, json);
	if (json)
		set_passed_over(mem, family, &wish, model);
	map->mark = node->mark;
	if (wish.over) {
		struct node *over = config_rename(mem, family, wish.over, false);

		if (wish.base)
			settle_vocab(mem, over, map);
		map = node_overlay(mem, map, over);
	}
	model->preset = !wish.path || !file_is_path(wish.name);
	model->config = map;
	map = node_overlay(mem, NULL, map);
	config_complete(mem, family, map);
	if (!set_name(mem, node, &wish, model, err))
		return false;
	if (!config_read(mem, family, map, model, err) || !bounded(map, model, err))
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

void ft_model_stretch(struct ft_model *model, int64_t sequence)
{
	if (model->positions == FT_LEARNED && model->max_positions < sequence)
		model->max_positions = sequence;
}
