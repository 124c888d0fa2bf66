/* base/extends.c - `extends` resolved, each number with the provenance of its file */
#include "base/extends.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"

static const char *text_at(const struct node *map, const char *key)
{
	const struct node *n = node_get(map, key);

	return n && n->kind == NODE_SCALAR ? n->text : "";
}

/* {kind: derived, source: "NAME (measured: probe)", date} */
static const struct node *derived(struct arena *mem, const struct node *from,
				  const char *name)
{
	struct node *p = node_map(mem, &from->mark);
	const char *source = text_at(from, "source");

	node_put(mem, p, "kind", NULL, node_scalar(mem, &from->mark, "derived"));
	node_put(mem, p, "source", NULL,
		 node_scalar(mem, &from->mark,
			     arena_printf(mem, "%s (%s%s%s)", name,
					  text_at(from, "kind"), source[0] ? ": " : "",
					  source)));
	node_put(mem, p, "date", NULL,
		 node_scalar(mem, &from->mark, text_at(from, "date")));
	return p;
}

/* Note on each node below n the provenance that counts there. below: the name of what is
 * extended, when n comes from there and is to be marked so; else NULL. */
static void stamp(struct arena *mem, struct node *n, const struct node *from,
		  const char *below, bool inherited)
{
	const struct node *own = node_get(n, "provenance");

	if (own && own->kind == NODE_MAP)
		from = below ? derived(mem, own, below) : own;
	if (!n->provenance)
		n->provenance = from;
	n->inherited |= inherited;
	for (size_t i = 0; n->kind != NODE_SCALAR && i < n->n; i++)
		stamp(mem, n->item[i], from, below, inherited);
	/* a number with a provenance of its own: {value, provenance} */
	if (below && own && node_get(n, "value"))
		node_put(mem, n, "provenance", NULL, (struct node *)from);
}

static struct node *lay(struct arena *mem, struct node *below, struct node *own,
			enum extends_as as)
{
	const char *name = text_at(below, "name");
	struct node *out;

	stamp(mem, below, NULL, as == EXTENDS_DERIVED ? name : NULL, true);
	stamp(mem, own, NULL, NULL, false);
	out = node_overlay(mem, below, own);
	out->below = below;
	return out;
}

/* Files of one kind, and how they extend each other. */
struct kind {
	struct arena *mem;
	const char *folder;
	enum extends_as as;
	struct ft_error *err;
};

/* A file that is being read, and the one that extends it. */
struct chain {
	const char *path;
	const struct chain *above;
	int length;
};

static bool goes_on(const struct chain *c, const struct node *parent,
		    struct ft_error *err)
{
	if (parent->kind != NODE_SCALAR)
		return ft_fail(
			err, &parent->mark,
			"extends: should be the name of another file of the same kind");
	for (const struct chain *a = c->above; a; a = a->above)
		if (!strcmp(a->path, c->path))
			return ft_fail(err, &parent->mark,
				       "files extend each other in a circle");
	if (c->length == LIMIT_EXTENDS)
		return ft_fail(err, &parent->mark,
			       "more than %d files extend one another", LIMIT_EXTENDS);
	return true;
}

static struct node *gather(const struct kind *k, const char *name,
			   const struct ft_mark *at, const struct chain *above)
{
	struct chain c = { file_find(k->mem, k->folder, name, at, k->err), above,
			   above ? above->length + 1 : 1 };
	struct node *own = c.path ? node_read_file(k->mem, c.path, k->err) : NULL;
	struct node *parent, *below;

	if (!own)
		return NULL;
	parent = node_get(own, "extends");
	if (!parent)
		return own;
	if (!goes_on(&c, parent, k->err))
		return NULL;
	if (k->as == EXTENDS_DERIVED && !node_get(own, "provenance")) {
		ft_fail(k->err, &own->mark,
			"lacks provenance: {kind, source, date} of the numbers that differ");
		return NULL;
	}
	below = gather(k, parent->text, &parent->mark, &c);
	return below ? lay(k->mem, below, own, k->as) : NULL;
}

struct node *extends_file(struct arena *mem, const char *folder, const char *name,
			  const struct ft_mark *at, enum extends_as as,
			  struct ft_error *err)
{
	return gather(&(struct kind){ mem, folder, as, err }, name, at, NULL);
}

/* A copy with dotted keys as maps in maps. */
static struct node *undotted(struct arena *mem, const struct node *map,
			     struct ft_error *err)
{
	struct node *out = node_map(mem, &map->mark);

	for (size_t i = 0; i < map->n; i++) {
		struct node *value = node_overlay(mem, NULL, map->item[i]);

		if (!node_put_node(mem, out, map->key[i], &map->key_mark[i], value,
				   err))
			return NULL;
	}
	return out;
}

static struct node *assumed(struct arena *mem, const struct ft_mark *at)
{
	struct node *p = node_map(mem, at);

	node_put(mem, p, "kind", NULL, node_scalar(mem, at, "assumed"));
	node_put(mem, p, "source", NULL, node_scalar(mem, at, "the scenario"));
	return p;
}

struct node *extends_value(struct arena *mem, const char *folder,
			   const struct node *value, struct ft_error *err)
{
	const struct node *extends = node_get(value, "extends");
	const struct node *base = extends ? extends : node_get(value, "name");
	struct node *below, *own;

	if (value->kind == NODE_SCALAR)
		return extends_file(mem, folder, value->text, &value->mark,
				    EXTENDS_DERIVED, err);
	if (!base || base->kind != NODE_SCALAR) {
		ft_fail(err, &value->mark,
			value->kind == NODE_MAP && !base && value->n ?
				"has keys but does not name what they change; add "
				"extends: NAME" :
				"should be a name, a path, or a map {extends: NAME, "
				"key: value}");
		return NULL;
	}
	own = undotted(mem, value, err);
	if (!own)
		return NULL;
	below = extends_file(mem, folder, base->text, &base->mark, EXTENDS_DERIVED,
			     err);
	if (!below || own->n == 1) /* nothing is changed: it is what it names */
		return below;
	if (!extends || !node_get(own, "name"))
		node_put(mem, own, "name", NULL,
			 node_scalar(mem, &value->mark,
				     arena_printf(mem, "%s modified",
						  text_at(below, "name"))));
	if (!node_get(own, "title"))
		node_put(mem, own, "title", NULL, node_get(own, "name"));
	if (!node_get(own, "provenance"))
		node_put(mem, own, "provenance", NULL, assumed(mem, &value->mark));
	return lay(mem, below, own, EXTENDS_DERIVED);
}
