/* models/inside.c - keys of a config's maps inside, "attn_config.kv_n_heads": lifted out, or told as not read */

#include "base/arena.h"
#include "base/node.h"
#include "base/text.h"
#include "models/config.h"
#include "models/family.h"

bool config_says_something(const struct node *n)
{
	static const char *const nothing[] = { "0", "false", "none" };

	for (size_t i = 0; i < 3; i++)
		if (n->kind == NODE_SCALAR && text_same(n->text, nothing[i]))
			return false;
	return !node_is_null(n) && (n->kind == NODE_SCALAR || n->n);
}

void config_lift_inside(struct arena *mem, const struct family *family,
			const struct node *map, struct node *out)
{
	const char *own, *common;

	for (size_t i = 0; (own = family_inner_key(family, i, &common)); i++) {
		struct node *value = node_path(map, own);

		if (!node_is_null(value))
			node_put(mem, out, common, &value->mark, value);
	}
}

const char *config_unread_inside(struct arena *mem, const struct family *family,
				 const struct node *map, size_t i,
				 const struct ft_mark **mark)
{
	for (size_t k = 0; k < map->n; k++) {
		const struct node *in = map->item[k];

		if (family_key_of(map->key[k]) != INSIDE || in->kind != NODE_MAP)
			continue;
		for (size_t at = 0; at < in->n; at++) {
			if (family_reads_inside(family, map->key[k], in->key[at]) ||
			    !config_says_something(in->item[at]) || i--)
				continue;
			*mark = &in->key_mark[at];
			return arena_printf(mem, "%s.%s", map->key[k], in->key[at]);
		}
	}
	return NULL;
}

bool config_known_inside(struct arena *mem, const struct family *family,
			 const struct node *map, struct ft_error *err)
{
	const struct ft_mark *mark;
	const char *key = map ? config_unread_inside(mem, family, map, 0, &mark) : NULL,
		   *common;
	const char *own = family_inner_key(family, 0, &common);

	if (!key)
		return true;
	return ft_fail(err, mark,
		       "%s is not read in a model of type %s%s%s; leave it out", key,
		       family->type, own ? ", which reads others, such as " : "",
		       own ? own : "");
}
