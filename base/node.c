/* base/node.c - trees of nodes: looking up, putting, overlaying */
#include "base/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"

static struct node *new_node(struct arena *mem, enum node_kind kind,
			     const struct ft_mark *at)
{
	struct node *n = ARENA_NEW(mem, struct node);

	n->kind = kind;
	if (at)
		n->mark = *at;
	return n;
}

struct node *node_map(struct arena *mem, const struct ft_mark *at)
{
	return new_node(mem, NODE_MAP, at);
}

struct node *node_scalar(struct arena *mem, const struct ft_mark *at, const char *text)
{
	struct node *n = new_node(mem, NODE_SCALAR, at);

	n->text = arena_text(mem, text);
	return n;
}

/* Maps larger than this are looked up by hash. */
enum { INDEX_FROM = 16, FEW_KEYS = 4 };

static uint32_t hash_of(const char *key)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 16777619u;
	return h;
}

/* Where key is, or where it would be put. */
static uint32_t *indexed(const struct node *map, const char *key)
{
	size_t i = hash_of(key) & (map->n_index - 1);

	while (map->index[i] && strcmp(map->key[map->index[i] - 1], key))
		i = (i + 1) & (map->n_index - 1);
	return &map->index[i];
}

static size_t slot(const struct node *map, const char *key)
{
	if (map->index) {
		uint32_t at = *indexed(map, key);

		return at ? at - 1 : map->n;
	}
	for (size_t i = 0; i < map->n; i++)
		if (text_same(map->key[i], key))
			return i;
	return map->n;
}

/* The last key of a map into its index, which is at most half full. */
static void note_last(struct arena *mem, struct node *map)
{
	if (map->n <= INDEX_FROM)
		return;
	if (2 * map->n <= map->n_index) {
		*indexed(map, map->key[map->n - 1]) = (uint32_t)map->n;
		return;
	}
	map->n_index = map->n_index ? 2 * map->n_index : 4 * INDEX_FROM;
	while (map->n_index < 2 * map->n)
		map->n_index *= 2;
	map->index = ARENA_ARRAY(mem, map->n_index, uint32_t);
	for (size_t i = 0; i < map->n; i++)
		*indexed(map, map->key[i]) = (uint32_t)i + 1;
}

void node_append(struct arena *mem, struct node *list, struct node *value)
{
	assert(list->kind == NODE_LIST);
	if (list->n == list->cap)
		list->item = ARENA_GROW(mem, list->item, &list->cap);
	list->item[list->n++] = value;
}

struct node *node_copy(struct arena *mem, const struct node *n, int depth,
		       bool (*may)(void *of, const struct node *node, int depth),
		       void *of)
{
	struct node *c;

	if (!may(of, n, depth))
		return NULL;
	c = ARENA_NEW(mem, struct node);
	*c = (struct node){
		.kind = n->kind, .mark = n->mark, .text = n->text, .quoted = n->quoted
	};
	for (size_t i = 0; i < n->n; i++) {
		struct node *item = node_copy(mem, n->item[i], depth + 1, may, of);

		if (!item)
			return NULL;
		if (n->kind == NODE_MAP)
			node_put(mem, c, n->key[i], &n->key_mark[i], item);
		else
			node_append(mem, c, item);
	}
	return c;
}

struct node *node_get(const struct node *map, const char *key)
{
	size_t i;

	if (!map || map->kind != NODE_MAP)
		return NULL;
	i = slot(map, key);
	return i < map->n ? map->item[i] : NULL;
}

struct node *node_path(const struct node *root, const char *dotted)
{
	const struct node *n = root;
	char key[128];

	while (n) {
		size_t len = strcspn(dotted, ".");

		if (!len || len >= sizeof(key))
			return NULL;
		memcpy(key, dotted, len);
		key[len] = '\0';
		n = node_get(n, key);
		if (!dotted[len])
			return (struct node *)n;
		dotted += len + 1;
	}
	return NULL;
}

/* Room for more keys: four at first, as most maps have few. */
static void widen(struct arena *mem, struct node *map)
{
	size_t cap = map->cap, same = cap, again = cap;

	if (!cap) {
		map->cap = FEW_KEYS;
		map->item = ARENA_ARRAY(mem, FEW_KEYS, struct node *);
		map->key = ARENA_ARRAY(mem, FEW_KEYS, const char *);
		map->key_mark = ARENA_ARRAY(mem, FEW_KEYS, struct ft_mark);
		return;
	}
	map->item = ARENA_GROW(mem, map->item, &cap);
	map->key = ARENA_GROW(mem, map->key, &same);
	map->key_mark = ARENA_GROW(mem, map->key_mark, &again);
	map->cap = cap;
}

void node_put(struct arena *mem, struct node *map, const char *key,
	      const struct ft_mark *key_mark, struct node *value)
{
	size_t i;

	assert(map->kind == NODE_MAP);
	i = slot(map, key);
	if (i == map->n) {
		if (map->n == map->cap)
			widen(mem, map);
		map->key[map->n++] = arena_text(mem, key);
		note_last(mem, map);
	}
	map->key_mark[i] = key_mark ? *key_mark : value->mark;
	map->item[i] = value;
}

/* The map under key of parent, made (or made of a scalar) when need be. */
static struct node *enter(struct arena *mem, struct node *parent, const char *key,
			  const struct ft_mark *at)
{
	struct node *n = node_get(parent, key), *map;

	if (n && n->kind == NODE_MAP)
		return n;
	if (n && n->kind == NODE_LIST)
		return NULL;
	map = node_map(mem, at);
	if (n && !node_is_null(n))
		node_put(mem, map, "name", &n->mark, n);
	node_put(mem, parent, key, at, map);
	return map;
}

/* "a.b.c", whose words stand in one line from `at` on (NULL: nowhere), but for the first `hidden` characters. */
struct dotted {
	const char *path;
	size_t hidden;
	const struct ft_mark *at;
};

static bool put_below(struct arena *mem, struct node *root, struct dotted to,
		      struct node *value, struct ft_error *err)
{
	const char *rest = to.path;
	struct ft_mark here = to.at ? *to.at : (struct ft_mark){ 0 };
	const struct ft_mark *at = to.at ? &here : NULL;
	char key[128];

	for (;;) {
		size_t len = strcspn(rest, "."), from = (size_t)(rest - to.path);

		if (!len || len >= sizeof(key))
			return ft_fail(err, to.at, "'%.80s' is not a key", to.path);
		memcpy(key, rest, len);
		key[len] = '\0';
		if (at && from > to.hidden)
			here.column = to.at->column + (int)(from - to.hidden);
		if (!rest[len])
			break;
		root = enter(mem, root, key, at);
		if (!root)
			return ft_fail(err, to.at, "'%s' is a list, not a map", key);
		rest += len + 1;
	}
	/* model.name over {name: X, ...} and over plain X mean the same */
	node_put(mem, root, key, at, value);
	return true;
}

bool node_put_node(struct arena *mem, struct node *root, const char *dotted,
		   const struct ft_mark *at, struct node *value, struct ft_error *err)
{
	return put_below(mem, root, (struct dotted){ dotted, strlen(dotted), at },
			 value, err);
}

bool node_put_path(struct arena *mem, struct node *root, const char *dotted,
		   const struct ft_mark *at, const char *text, struct ft_error *err)
{
	return node_put_node(mem, root, dotted, at, node_scalar(mem, at, text), err);
}

/* A value behind as many blanks as stand before it, so that all in it is read at its column. */
static const char *placed(struct arena *mem, int before, const char *value)
{
	return strchr(value, '\n') ? value :
				     arena_printf(mem, "%*s%s", before, "", value);
}

bool node_set_below(struct arena *mem, struct node *root, const char *head,
		    const char *option, const char *assignment, struct ft_error *err)
{
	const char *eq = strchr(assignment, '=');
	struct ft_mark at = { arena_printf(mem, "%s%s", option, assignment), 1,
			      1 + (int)strlen(option) };
	struct node *value;
	const char *key, *text;

	if (!eq || eq == assignment)
		return ft_fail(err, &at,
			       *head ? "write %sITEM=USD, for example "
				       "--price hgx-h100-server=250000" :
				       "write %sKEY=VALUE, for example "
				       "--set training.parallel.tp=4",
			       option);
	key = arena_printf(mem, "%s%.*s", head, (int)(eq - assignment), assignment);
	if (!eq[1]) {
		at.column += (int)(eq + 1 - assignment);
		return ft_fail(err, &at, "no value behind '='; null takes a key away");
	}
	text = placed(mem, at.column + (int)(eq - assignment), eq + 1);
	value = node_read_text(mem, at.file, text, strlen(text), err);
	if (!value)
		return false;
	value->mark = at;
	value->mark.column += (int)(eq + 1 - assignment);
	return put_below(mem, root, (struct dotted){ key, strlen(head), &at }, value,
			 err);
}

bool node_set(struct arena *mem, struct node *root, const char *assignment,
	      struct ft_error *err)
{
	return node_set_below(mem, root, "", "--set ", assignment, err);
}

static struct node *copy(struct arena *mem, const struct node *n)
{
	struct node *c = ARENA_NEW(mem, struct node);

	*c = *n;
	c->cap = n->n;
	c->index = NULL;
	c->n_index = 0;
	if (!n->n)
		return c;
	c->item = ARENA_ARRAY(mem, n->n, struct node *);
	for (size_t i = 0; i < n->n; i++)
		c->item[i] = copy(mem, n->item[i]);
	if (n->kind == NODE_MAP) {
		c->key = ARENA_ARRAY(mem, n->n, const char *);
		c->key_mark = ARENA_ARRAY(mem, n->n, struct ft_mark);
		memcpy(c->key, n->key, n->n * sizeof(*c->key));
		memcpy(c->key_mark, n->key_mark, n->n * sizeof(*c->key_mark));
		note_last(mem, c);
	}
	return c;
}

struct node *node_overlay(struct arena *mem, const struct node *base,
			  const struct node *over)
{
	struct node *n;

	if (!base)
		return copy(mem, over);
	if (!over)
		return copy(mem, base);
	if (base->kind != NODE_MAP || over->kind != NODE_MAP)
		return copy(mem, over);
	n = copy(mem, base);
	n->mark = over->mark;
	for (size_t i = 0; i < over->n; i++)
		node_put(
			mem, n, over->key[i], &over->key_mark[i],
			node_overlay(mem, node_get(base, over->key[i]), over->item[i]));
	return n;
}

bool node_whole(const struct node *n, int64_t least, int64_t most, int64_t *value)
{
	bool beyond;

	return n->kind == NODE_SCALAR && text_whole(n->text, value, &beyond) &&
	       *value >= least && *value <= most;
}

bool node_says(const struct node *n, const char *text)
{
	int64_t is, wanted;
	bool beyond;

	if (n->kind != NODE_SCALAR)
		return false;
	return !strcmp(n->text, text) || (text_whole(text, &wanted, &beyond) &&
					  node_whole(n, wanted, wanted, &is));
}

bool node_is_null(const struct node *n)
{
	return !n ||
	       (n->kind == NODE_SCALAR && !n->quoted &&
		(!n->text[0] || text_same(n->text, "~") || text_same(n->text, "null") ||
		 text_same(n->text, "Null") || text_same(n->text, "NULL")));
}

void node_put_quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else if ((unsigned char)*text < ' ' || *text == 127)
			fprintf(out, "\\x%02x", (unsigned)(unsigned char)*text);
		else
			putc(*text, out);
	putc('"', out);
}

void node_put_field(FILE *out, const char *before, const char *text, const char *behind)
{
	fputs(before, out);
	node_put_quoted(out, text);
	fputs(behind, out);
}
