/*
 * base/node_read.c - YAML (and so JSON) text to nodes, through libyaml's events where
 * base/node_plain.c declines
 *
 * Events come one by one, so that depth and number are bounded while reading: a
 * document that nests without end, or whose aliases multiply, stops at the limit.
 */
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/node_plain.h"
#include "base/text.h"

struct anchor {
	const char *name;
	const struct node *node;
};

struct reading {
	struct arena *mem;
	yaml_parser_t parser;
	const char *name, *text;
	size_t len, made, n_anchors, anchors_cap;
	struct anchor *anchor;
	struct ft_error *err;
};

static struct ft_mark mark_of(const struct reading *r, yaml_mark_t m)
{
	return (struct ft_mark){ r->name, (int)m.line + 1, (int)m.column + 1 };
}

/* Of a byte that is no text: the reader has none, as it is ahead of what is parsed. */
static struct ft_mark mark_of_byte(const struct reading *r, size_t offset)
{
	struct ft_mark at = { r->name, 1, 1 };

	for (size_t i = 0; i < offset && i < r->len; i++) {
		unsigned char c = (unsigned char)r->text[i];

		if (c == '\n')
			at.line++, at.column = 1;
		else
			at.column += (c & 0xc0) != 0x80;
	}
	return at;
}

static bool next(struct reading *r, yaml_event_t *event)
{
	struct ft_mark at;

	if (yaml_parser_parse(&r->parser, event))
		return true;
	at = mark_of(r, r->parser.problem_mark);
	if (r->parser.error == YAML_READER_ERROR)
		at = mark_of_byte(r, r->parser.problem_offset);
	if (r->parser.error == YAML_MEMORY_ERROR)
		out_of_memory();
	if (r->parser.error == YAML_SCANNER_ERROR && r->parser.problem &&
	    strstr(r->parser.problem, "start any token") &&
	    *r->parser.buffer.pointer == '\t')
		return ft_fail(r->err, &at,
			       "is not valid YAML: a tab stands where only spaces may");
	return ft_fail(r->err, &at, "is not valid %s: %s",
		       text_ends_with(r->name, ".json") ? "JSON" : "YAML",
		       r->parser.problem ? r->parser.problem : "unreadable");
}

/* One more value, so deep. */
static bool within(struct reading *r, const struct ft_mark *at, int depth)
{
	if (depth > LIMIT_YAML_DEPTH)
		return ft_fail(r->err, at, "is nested too deeply: more than %d levels",
			       (int)LIMIT_YAML_DEPTH);
	if (++r->made > LIMIT_YAML_VALUES)
		return ft_fail(r->err, at, "holds too many values: more than %d",
			       (int)LIMIT_YAML_VALUES);
	return true;
}

/* Text that can be printed: what drives a terminal has no business in a value. */
static bool plain(struct reading *r, const struct ft_mark *at, const char *text,
		  size_t len)
{
	if (strlen(text) != len)
		return ft_fail(r->err, at, "holds a NUL byte");
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && !strchr("\t\n\r", text[i])) ||
		    text[i] == 127)
			return ft_fail(r->err, at, "holds a control character");
	return true;
}

static void remember(struct reading *r, const yaml_char_t *name, const struct node *n)
{
	if (!name)
		return;
	if (r->n_anchors == r->anchors_cap)
		r->anchor = ARENA_GROW(r->mem, r->anchor, &r->anchors_cap);
	r->anchor[r->n_anchors++] =
		(struct anchor){ arena_text(r->mem, (const char *)name), n };
}

static bool may_copy(void *reading, const struct node *n, int depth)
{
	return within(reading, &n->mark, depth);
}

static struct node *alias(struct reading *r, const yaml_event_t *e, int depth)
{
	struct ft_mark at = mark_of(r, e->start_mark);
	const char *name = (const char *)e->data.alias.anchor;

	for (size_t i = r->n_anchors; i-- > 0;)
		if (!strcmp(r->anchor[i].name, name))
			return node_copy(r->mem, r->anchor[i].node, depth, may_copy, r);
	ft_fail(r->err, &at, "is not valid YAML: found undefined alias");
	return NULL;
}

static struct node *scalar(struct reading *r, const yaml_event_t *e)
{
	struct node *n = ARENA_NEW(r->mem, struct node);

	n->mark = mark_of(r, e->start_mark);
	n->kind = NODE_SCALAR;
	n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	n->text = arena_text_n(r->mem, (const char *)e->data.scalar.value,
			       e->data.scalar.length);
	if (!plain(r, &n->mark, n->text, e->data.scalar.length))
		return NULL;
	remember(r, e->data.scalar.anchor, n);
	return n;
}

static struct node *value(struct reading *r, yaml_event_t *e, int depth);

static struct node *list(struct reading *r, const yaml_event_t *begin, int depth)
{
	struct node *n = ARENA_NEW(r->mem, struct node), *item;
	yaml_event_t e;

	n->kind = NODE_LIST;
	n->mark = mark_of(r, begin->start_mark);
	for (;;) {
		if (!next(r, &e))
			return NULL;
		if (e.type == YAML_SEQUENCE_END_EVENT)
			break;
		item = value(r, &e, depth + 1);
		yaml_event_delete(&e);
		if (!item)
			return NULL;
		node_append(r->mem, n, item);
	}
	yaml_event_delete(&e);
	remember(r, begin->data.sequence_start.anchor, n);
	return n;
}

/* The key that e holds, if it may be one. */
static const char *key_of(struct reading *r, const yaml_event_t *e,
			  const struct node *map, const struct ft_mark *at)
{
	const char *key = (const char *)e->data.scalar.value;

	if (e->type != YAML_SCALAR_EVENT)
		ft_fail(r->err, at, "a key must be a word");
	else if (!plain(r, at, key, e->data.scalar.length))
		;
	else if (!strcmp(key, "<<") && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		ft_fail(r->err, at,
			"merge keys (<<) are not read; write the keys, or an alias "
			"(*NAME) as a value");
	else if (node_get(map, key))
		ft_fail(r->err, at, "'%.80s' is given twice", key);
	else
		return arena_text(r->mem, key);
	return NULL;
}

static struct node *map(struct reading *r, const yaml_event_t *begin, int depth)
{
	struct node *n = ARENA_NEW(r->mem, struct node), *item;
	yaml_event_t e;

	n->kind = NODE_MAP;
	n->mark = mark_of(r, begin->start_mark);
	for (;;) {
		struct ft_mark at;
		const char *key;

		if (!next(r, &e))
			return NULL;
		if (e.type == YAML_MAPPING_END_EVENT)
			break;
		at = mark_of(r, e.start_mark);
		key = key_of(r, &e, n, &at);
		yaml_event_delete(&e);
		if (!key || !next(r, &e))
			return NULL;
		item = value(r, &e, depth + 1);
		yaml_event_delete(&e);
		if (!item)
			return NULL;
		node_put(r->mem, n, key, &at, item);
	}
	yaml_event_delete(&e);
	remember(r, begin->data.mapping_start.anchor, n);
	return n;
}

/* What begins with e; the caller deletes e. */
static struct node *value(struct reading *r, yaml_event_t *e, int depth)
{
	struct ft_mark at = mark_of(r, e->start_mark);

	if (e->type == YAML_ALIAS_EVENT)
		return alias(r, e, depth);
	if (!within(r, &at, depth))
		return NULL;
	if (e->type == YAML_SEQUENCE_START_EVENT)
		return list(r, e, depth);
	if (e->type == YAML_MAPPING_START_EVENT)
		return map(r, e, depth);
	if (e->type == YAML_SCALAR_EVENT)
		return scalar(r, e);
	ft_fail(r->err, &at, "is not valid YAML: a value is missing");
	return NULL;
}

/* Events that say nothing, up to the one that begins the document's value. */
static struct node *document(struct reading *r)
{
	struct ft_mark top = { r->name, 1, 1 };
	struct node *root = NULL;
	yaml_event_t e;

	for (;;) {
		yaml_event_type_t type;

		if (!next(r, &e))
			return NULL;
		type = e.type;
		if (type == YAML_STREAM_END_EVENT)
			ft_fail(r->err, &top, "is empty");
		else if (type != YAML_STREAM_START_EVENT &&
			 type != YAML_DOCUMENT_START_EVENT)
			root = value(r, &e, 0);
		yaml_event_delete(&e);
		if (root || (type != YAML_STREAM_START_EVENT &&
			     type != YAML_DOCUMENT_START_EVENT))
			return root;
	}
}

/* What follows must parse, and be nothing. */
static bool over(struct reading *r, const struct node *root)
{
	yaml_event_t e;
	yaml_event_type_t type;

	do {
		if (!next(r, &e))
			return false;
		type = e.type;
		yaml_event_delete(&e);
	} while (type == YAML_DOCUMENT_END_EVENT);
	return type == YAML_STREAM_END_EVENT ||
	       ft_fail(r->err, &root->mark, "holds more than one document");
}

struct node *node_read_events(struct arena *mem, const char *name, const char *text,
			      size_t len, struct ft_error *err)
{
	struct reading r = {
		.mem = mem, .err = err, .name = name, .text = text, .len = len
	};
	struct node *root;

	if (!yaml_parser_initialize(&r.parser))
		out_of_memory();
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	root = document(&r);
	if (root && !over(&r, root))
		root = NULL;
	yaml_parser_delete(&r.parser);
	return root;
}

/* The number of four hexadecimal digits behind \u; -1: none stand here. */
static long escaped(const char *p)
{
	long value = 0;

	if (p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *at = p[i] ? strchr(digits, p[i]) : NULL;

		if (!at)
			return -1;
		value = value * 16 + (at - digits) % 16;
	}
	return value;
}

/* JSON writes a character beyond U+FFFF as two halves, \ud83d\ude00; YAML has \U0001f600 for it. */
static const char *joined_halves(struct arena *mem, const char *text, size_t *len)
{
	char *copy, *to;

	if (!strstr(text, "\\u"))
		return text;
	copy = to = arena_text_n(mem, text, *len);
	for (const char *p = text, *end = text + *len; p < end;) {
		long high = escaped(p), low = high >= 0 ? escaped(p + 6) : -1;

		if (high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			long all = 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);

			to += snprintf(to, 11, "\\U%08lx", (unsigned long)all);
			p += 12;
		} else {
			int n = *p == '\\' && p + 1 < end ? 2 : 1;

			while (n--)
				*to++ = *p++;
		}
	}
	*to = '\0';
	*len = (size_t)(to - copy);
	return copy;
}

/* Of text that ends with a NUL. */
static struct node *read_ended(struct arena *mem, const char *name, const char *text,
			       size_t len, struct ft_error *err)
{
	struct node *root = node_plain_text(mem, name, text, len);

	if (root)
		return root;
	text = joined_halves(mem, text, &len);
	return node_read_events(mem, name, text, len, err);
}

struct node *node_read_text(struct arena *mem, const char *name, const char *text,
			    size_t len, struct ft_error *err)
{
	struct ft_mark at = { .file = name };

	if (len > LIMIT_YAML_BYTES) {
		ft_fail(err, &at, "is too large: more than %d bytes",
			(int)LIMIT_YAML_BYTES);
		return NULL;
	}
	return read_ended(mem, arena_text(mem, name), arena_text_n(mem, text, len), len,
			  err);
}

struct node *node_read_file(struct arena *mem, const char *path, struct ft_error *err)
{
	size_t len;
	char *text = file_read(mem, path, LIMIT_YAML_BYTES, &len, err);

	return text ? read_ended(mem, arena_text(mem, path), text, len, err) : NULL;
}
