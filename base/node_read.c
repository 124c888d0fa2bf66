/* base/node_read.c - YAML (and so JSON) text to nodes, through libyaml */
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"

enum {
	LARGEST_FILE = 16 * 1024 * 1024,
	DEEPEST = 64,
	MOST_NODES = 1000000, /* aliases can make a small file explode */
};

struct conversion {
	struct arena *mem;
	yaml_document_t *doc;
	const char *name;
	size_t made;
	struct ft_error *err;
};

static struct ft_mark mark_of(const struct conversion *c, yaml_mark_t m)
{
	return (struct ft_mark){ c->name, (int)m.line + 1, (int)m.column + 1 };
}

static struct node *convert(struct conversion *c, int index, int depth);

static bool convert_list(struct conversion *c, const yaml_node_t *y, struct node *n,
			 int depth)
{
	size_t count =
		(size_t)(y->data.sequence.items.top - y->data.sequence.items.start);

	n->kind = NODE_LIST;
	n->item = ARENA_ARRAY(c->mem, count, struct node *);
	for (size_t i = 0; i < count; i++) {
		n->item[i] = convert(c, y->data.sequence.items.start[i], depth + 1);
		if (!n->item[i])
			return false;
		n->n++;
	}
	n->cap = n->n;
	return true;
}

static bool convert_map(struct conversion *c, const yaml_node_t *y, struct node *n,
			int depth)
{
	n->kind = NODE_MAP;
	for (yaml_node_pair_t *p = y->data.mapping.pairs.start;
	     p < y->data.mapping.pairs.top; p++) {
		yaml_node_t *k = yaml_document_get_node(c->doc, p->key);
		struct ft_mark at = mark_of(c, k->start_mark);
		const char *key;
		struct node *value;

		if (k->type != YAML_SCALAR_NODE)
			return ft_fail(c->err, &at, "a key must be a word");
		key = (const char *)k->data.scalar.value;
		if (strlen(key) != k->data.scalar.length)
			return ft_fail(c->err, &at, "a key holds a NUL byte");
		if (node_get(n, key))
			return ft_fail(c->err, &at, "'%.80s' is given twice", key);
		value = convert(c, p->value, depth + 1);
		if (!value)
			return false;
		node_put(c->mem, n, key, &at, value);
	}
	return true;
}

static struct node *convert(struct conversion *c, int index, int depth)
{
	yaml_node_t *y = yaml_document_get_node(c->doc, index);
	struct node *n = ARENA_NEW(c->mem, struct node);

	n->mark = mark_of(c, y->start_mark);
	if (depth > DEEPEST || ++c->made > MOST_NODES) {
		ft_fail(c->err, &n->mark,
			depth > DEEPEST ? "is nested too deeply" :
					  "holds too many values");
		return NULL;
	}
	switch (y->type) {
	case YAML_SEQUENCE_NODE:
		return convert_list(c, y, n, depth) ? n : NULL;
	case YAML_MAPPING_NODE:
		return convert_map(c, y, n, depth) ? n : NULL;
	default:
		break;
	}
	n->kind = NODE_SCALAR;
	n->quoted = y->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	n->text = arena_text_n(c->mem, (const char *)y->data.scalar.value,
			       y->data.scalar.length);
	if (strlen(n->text) != y->data.scalar.length) {
		ft_fail(c->err, &n->mark, "holds a NUL byte");
		return NULL;
	}
	return n;
}

static void report(const yaml_parser_t *p, const char *name, struct ft_error *err)
{
	struct ft_mark at = { name, (int)p->problem_mark.line + 1,
			      (int)p->problem_mark.column + 1 };

	if (p->error == YAML_READER_ERROR)
		at.line = at.column = 0;
	ft_fail(err, &at, "is not valid YAML: %s",
		p->problem ? p->problem : "unreadable");
}

struct node *node_read_text(struct arena *mem, const char *name, const char *text,
			    size_t len, struct ft_error *err)
{
	struct conversion c = { .mem = mem, .err = err };
	struct node *root = NULL;
	yaml_document_t doc;
	yaml_parser_t parser;

	c.name = arena_text(mem, name);
	if (!yaml_parser_initialize(&parser)) {
		ft_fail(err, NULL, "the YAML reader cannot start");
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &doc)) {
		report(&parser, c.name, err);
		goto out;
	}
	c.doc = &doc;
	if (yaml_document_get_root_node(&doc)) {
		root = convert(&c, 1, 0);
	} else {
		struct ft_mark at = { c.name, 1, 1 };

		ft_fail(err, &at, "is empty");
	}
	yaml_document_delete(&doc);
	if (root) { /* what follows must parse, and be nothing */
		if (!yaml_parser_load(&parser, &doc)) {
			report(&parser, c.name, err);
			root = NULL;
		} else {
			if (yaml_document_get_root_node(&doc)) {
				ft_fail(err, &root->mark,
					"holds more than one document");
				root = NULL;
			}
			yaml_document_delete(&doc);
		}
	}
out:
	yaml_parser_delete(&parser);
	return root;
}

struct node *node_read_file(struct arena *mem, const char *path, struct ft_error *err)
{
	size_t len;
	char *text = file_read(mem, path, LARGEST_FILE, &len, err);

	return text ? node_read_text(mem, path, text, len, err) : NULL;
}
