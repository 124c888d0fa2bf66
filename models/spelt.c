/*
 * models/spelt.c - names under which a model's keys were written: in its mistakes, and two for one thing
 *
 * What a type calls hidden_size its config may write as n_embd; models are read under common names
 * (config_rename), and so are their mistakes. The words of a mistake that are common names are turned
 * back here, but for those in quotes, which are the writer's: a key of the scenario's own map counts before one of the file that it is laid upon.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "models/config.h"
#include "models/family.h"
#include "models/layer_lists.h"

/* llama4_text's intermediate_size is the common moe_intermediate_size, and no common intermediate_size. */
static const char *spelt(const struct family *family, const char *common,
			 const struct node *const map[2])
{
	bool means_itself = !strcmp(family_common_name(family, common), common);

	for (size_t i = 0; i < 2; i++) {
		const char *own;

		if (means_itself && node_get(map[i], common))
			return common;
		for (size_t k = 0; (own = family_other_name(family, common, k)); k++)
			if (node_path(map[i], own))
				return own;
	}
	return common;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

void config_spell(const struct family *family, const struct node *over,
		  const struct node *base, struct ft_error *err)
{
	const struct node *const map[2] = { over, base };
	struct arena mem = { 0 };
	const char *at = err->text, *out = "";
	bool quoted = false, was_quoted = false;

	while (*at) {
		size_t len = 0, gap;
		const char *word;

		while (in_word(at[len]))
			len++;
		word = arena_text_n(&mem, at, len);
		for (gap = len; at[gap] && !in_word(at[gap]); gap++)
			quoted ^= at[gap] == '\'' && /* no "model's" */
				  (gap > len || !len || !in_word(at[gap + 1]));
		out = arena_printf(&mem, "%s%s%.*s", out,
				   was_quoted ? word : spelt(family, word, map),
				   (int)(gap - len), at + len);
		at += gap;
		was_quoted = quoted;
	}
	snprintf(err->text, sizeof(err->text), "%s", out);
	arena_release(&mem);
}

/* Null says nothing; of a list, said_once takes what all items are. */
static bool same_value(const struct node *a, const struct node *b)
{
	if (node_is_null(a) || node_is_null(b))
		return true;
	return a->kind != NODE_SCALAR || b->kind != NODE_SCALAR ||
	       text_same(a->text, b->text);
}

static bool named_otherwise(const struct family *family, const char *one,
			    const char *other, const struct ft_mark *at,
			    struct ft_error *err)
{
	return ft_fail(err, at,
		       "%s says the same of a model of type %s as %s, and says it "
		       "otherwise; " SAY_ONE,
		       one, family->type, other);
}

/* Tables of learned positions alone have as many rows as a config says, and others say it twice (Qwen). */
bool config_named_once(const struct family *family, const struct node *map,
		       struct ft_error *err)
{
	const char *own, *common;

	for (size_t i = 0; map && i < map->n; i++) {
		const char *key = family_common_name(family, map->key[i]);
		bool idle = !family_is_common(key) ||
			    (!strcmp(key, "max_position_embeddings") &&
			     family->positions != FT_LEARNED);

		for (size_t k = 0; !idle && k < i; k++)
			if (!strcmp(key, family_common_name(family, map->key[k])) &&
			    !same_value(map->item[i], map->item[k]))
				return named_otherwise(family, map->key[i], map->key[k],
						       &map->key_mark[i], err);
		for (size_t k = 0; (own = family_inner_key(family, k, &common)); k++)
			if (!strcmp(key, common) &&
			    !same_value(map->item[i], node_path(map, own)))
				return named_otherwise(family, map->key[i], own,
						       &map->key_mark[i], err);
	}
	return true;
}
