/* base/node_plain.c - the plain part of YAML, in one pass */
#include "base/node_plain.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"

enum { DEEPEST = 32, LONGEST_KEY = 500, BLOCK = 16, MOST_ANCHORS = 8 };

/* A value that has a name. */
struct anchor {
	const char *name; /* [len] */
	size_t len;
	const struct node *value;
};

struct plain {
	struct arena *mem;
	const char *name;
	const char *p, *line; /* where we are, and where that line begins */
	int number;	      /* of the line, from 1 */
	size_t made, n_anchors;
	struct anchor anchor[MOST_ANCHORS];
};

static struct ft_mark here(const struct plain *r)
{
	return (struct ft_mark){ r->name, r->number, (int)(r->p - r->line) + 1 };
}

static int column(const struct plain *r)
{
	return (int)(r->p - r->line);
}

/* Over blanks, comments and ends of lines. */
static void to_token(struct plain *r)
{
	for (;;) {
		while (*r->p == ' ')
			r->p++;
		if (*r->p == '#')
			r->p += strcspn(r->p, "\n");
		if (*r->p != '\n')
			return;
		r->line = ++r->p;
		r->number++;
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || !c;
}

static bool is_entry(const struct plain *r)
{
	return *r->p == '-' && is_blank(r->p[1]);
}

/* One more value, so deep; NULL: too many. */
static bool may_hold(struct plain *r, int depth)
{
	return depth <= DEEPEST && ++r->made <= LIMIT_YAML_VALUES;
}

static struct node *new_node(struct plain *r, enum node_kind kind, int depth)
{
	struct node *n;

	if (!may_hold(r, depth))
		return NULL;
	n = ARENA_NEW(r->mem, struct node);
	n->kind = kind;
	n->mark = here(r);
	return n;
}

/* ---- words ----------------------------------------------------------------------- */

static bool begins_word(const struct plain *r)
{
	char c = *r->p, after = c ? r->p[1] : c;

	if (c == '-')
		return isalnum((unsigned char)after) || after == '.';
	if (c == '.')
		return column(r) > 0; /* "..." ends a document */
	return isalnum((unsigned char)c) || (c && strchr("_/~+(<=$", c));
}

/* Where the word at p ends: before what follows it, blanks included; NULL: it is declined. */
static const char *word_end(const char *p, bool flow)
{
	for (;; p++) {
		p += strcspn(p, flow ? "\n:#,[]{}?" : "\n:#");
		if (*p == '#') {
			if (p[-1] == ' ')
				return p;
		} else if (*p != ':') {
			return *p == '?' ? NULL : p;
		} else if (is_blank(p[1])) {
			return p;
		} else if (flow && strchr(",[]{}?:", p[1])) {
			return NULL;
		}
	}
}

/* Behind the quote that closes the one at p; NULL: it is declined. */
static const char *quoted_end(const char *p)
{
	const char *end = p + 1 + strcspn(p + 1, *p == '"' ? "\"\\\n" : "'\n");

	return *end == *p && (*p == '"' || end[1] != '\'') ? end + 1 : NULL;
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

/* The text at p, which is passed over with the blanks behind it; NULL: it is declined. */
static char *text_here(struct plain *r, bool flow)
{
	const char *begin = r->p, *end;

	if (is_quote(*begin)) {
		r->p = quoted_end(begin);
		return r->p ? arena_text_n(r->mem, begin + 1,
					   (size_t)(r->p - begin) - 2) :
			      NULL;
	}
	if (!begins_word(r))
		return NULL;
	end = r->p = word_end(begin, flow);
	while (end && end[-1] == ' ')
		end--;
	return end ? arena_text_n(r->mem, begin, (size_t)(end - begin)) : NULL;
}

static struct node *scalar(struct plain *r, bool flow, int depth)
{
	struct node *n = new_node(r, NODE_SCALAR, depth);

	if (!n)
		return NULL;
	n->quoted = is_quote(*r->p);
	n->text = text_here(r, flow);
	return n->text ? n : NULL;
}

/* A key of a map and the colon behind it, passed over; NULL: it is declined. */
static const char *key_here(struct plain *r, const struct node *map, bool flow)
{
	bool quotes = is_quote(*r->p);
	const char *key = text_here(r, flow);

	/* a map that looks its keys up takes none of another length than it says */
	if (!key || !*key || strlen(key) > LONGEST_KEY || *r->p != ':' ||
	    !strcmp(key, "<<") || node_get(map, key))
		return NULL;
	r->p++;
	return is_blank(*r->p) || (flow && quotes) ? key : NULL;
}

/* ---- within brackets ------------------------------------------------------------- */

static struct node *flow_value(struct plain *r, bool flow, int depth);

/* Behind an item: 1: another follows; 0: the bracket closes; -1: declined. */
static int flow_next(struct plain *r, char close)
{
	to_token(r);
	if (*r->p == close) {
		r->p++;
		return 0;
	}
	if (*r->p != ',')
		return -1;
	r->p++;
	to_token(r);
	return *r->p == close ? -1 : 1;
}

static bool flow_map(struct plain *r, struct node *n, int depth)
{
	int more;

	do {
		struct ft_mark at = here(r);
		const char *key = key_here(r, n, true);
		struct node *item;

		if (!key)
			return false;
		to_token(r);
		item = flow_value(r, true, depth + 1);
		if (!item)
			return false;
		node_put(r->mem, n, key, &at, item);
		more = flow_next(r, '}');
	} while (more > 0);
	return !more;
}

static bool flow_list(struct plain *r, struct node *n, int depth)
{
	int more;

	do {
		struct node *item = flow_value(r, true, depth + 1);

		if (!item)
			return false;
		node_append(r->mem, n, item);
		more = flow_next(r, ']');
	} while (more > 0);
	return !more;
}

/* A value that is no block; flow: within brackets. */
static struct node *flow_value(struct plain *r, bool flow, int depth)
{
	bool map = *r->p == '{';
	struct node *n;

	if (!map && *r->p != '[')
		return scalar(r, flow, depth);
	n = new_node(r, map ? NODE_MAP : NODE_LIST, depth);
	if (!n)
		return NULL;
	r->p++;
	to_token(r);
	if (*r->p == (map ? '}' : ']'))
		r->p++;
	else if (!(map ? flow_map(r, n, depth) : flow_list(r, n, depth)))
		return NULL;
	return n;
}

/* ---- blocks ---------------------------------------------------------------------- */

static struct node *block_value(struct plain *r, const struct node *within, int depth);

static int indent_of(const struct node *block)
{
	return block->mark.column - 1;
}

static struct node *block_map(struct plain *r, int depth)
{
	struct node *n = new_node(r, NODE_MAP, depth);

	while (n && *r->p && column(r) == indent_of(n)) {
		struct ft_mark at = here(r);
		const char *key = key_here(r, n, false);
		struct node *item = key ? block_value(r, n, depth + 1) : NULL;

		if (!item)
			return NULL;
		node_put(r->mem, n, key, &at, item);
	}
	return n;
}

static struct node *block_list(struct plain *r, int depth)
{
	struct node *n = new_node(r, NODE_LIST, depth);

	while (n && *r->p && column(r) == indent_of(n) && is_entry(r)) {
		struct node *item;

		r->p++;
		item = block_value(r, n, depth + 1);
		if (!item)
			return NULL;
		node_append(r->mem, n, item);
	}
	return n;
}

/* Does a key stand here? */
static bool is_key(struct plain *r)
{
	const char *end = NULL;

	if (is_quote(*r->p))
		end = quoted_end(r->p);
	else if (begins_word(r))
		end = word_end(r->p, false);
	return end && *end == ':';
}

/* A value on lines of its own. */
static struct node *block_below(struct plain *r, const struct node *within, int depth)
{
	bool map = within->kind == NODE_MAP, dash = is_entry(r);
	int indent = indent_of(within);

	/* the entries of a list may stand below their key */
	if (!*r->p || column(r) < indent || (column(r) == indent && !(map && dash)))
		return NULL;
	return dash ? block_list(r, depth) : block_map(r, depth);
}

/* A value that is no block, alone on the rest of its line. */
static struct node *value_beside(struct plain *r, int depth)
{
	struct node *n = flow_value(r, false, depth);
	int number = r->number;

	if (!n)
		return NULL;
	to_token(r);
	return *r->p && r->number == number ? NULL : n;
}

/* ---- names of values ------------------------------------------------------------- */

/* Over the name behind & or *, and the blanks behind it; its length, 0: it is declined. */
static size_t name_here(struct plain *r, const char **name)
{
	const char *end = *name = ++r->p;

	while (isalnum((unsigned char)*end) || *end == '_' || *end == '-')
		end++;
	r->p = end;
	return is_blank(*end) ? (size_t)(end - *name) : 0;
}

static bool may_copy(void *plain, const struct node *n, int depth)
{
	(void)n;
	return may_hold(plain, depth);
}

/* *NAME, alone on the rest of its line; the last value of that name. */
static struct node *value_again(struct plain *r, int depth)
{
	int number = r->number;
	const char *name;
	size_t len = name_here(r, &name);

	to_token(r);
	if (!len || (*r->p && r->number == number))
		return NULL;
	for (size_t i = r->n_anchors; i-- > 0;)
		if (r->anchor[i].len == len && !memcmp(r->anchor[i].name, name, len))
			return node_copy(r->mem, r->anchor[i].value, depth, may_copy,
					 r);
	return NULL;
}

/* A map that &NAME stands in front of. It begins there. */
static struct node *value_named(struct plain *r, const struct node *within, int depth)
{
	struct ft_mark at = here(r);
	int number = r->number;
	struct node *n;
	const char *name;
	size_t len = name_here(r, &name);

	to_token(r);
	if (!len || r->n_anchors == MOST_ANCHORS)
		return NULL;
	if (r->number == number)
		n = *r->p == '{' ? value_beside(r, depth) : NULL;
	else
		n = is_entry(r) ? NULL : block_below(r, within, depth);
	if (!n)
		return NULL;
	n->mark = at;
	r->anchor[r->n_anchors++] = (struct anchor){ name, len, n };
	return n;
}

/* What follows a key of a map or the dash of a list, up to the next token. */
static struct node *block_value(struct plain *r, const struct node *within, int depth)
{
	int indent = indent_of(within), number = r->number;
	struct node *n;

	to_token(r);
	if (r->number != number)
		n = block_below(r, within, depth);
	else if (within->kind == NODE_MAP && *r->p == '&')
		n = value_named(r, within, depth);
	else if (within->kind == NODE_MAP && *r->p == '*')
		n = value_again(r, depth);
	else if (within->kind != NODE_MAP && is_key(r))
		n = block_map(r, depth);
	else
		n = value_beside(r, depth);
	/* what stands further in belongs to this value, or nowhere */
	return n && (!*r->p || column(r) <= indent) ? n : NULL;
}

/* A character that can be seen, a blank or an end of line? 1: none of these. */
static unsigned char is_odd(char c)
{
	return ((unsigned char)(c - ' ') > '~' - ' ') & (c != '\n');
}

/* In blocks, which compilers turn into vectors. */
static bool is_plain(const char *text, size_t len)
{
	unsigned char odd = 0;
	size_t i = 0;

	for (; len - i >= BLOCK; i += BLOCK)
		for (size_t j = 0; j < BLOCK; j++)
			odd |= is_odd(text[i + j]);
	for (; i < len; i++)
		odd |= is_odd(text[i]);
	return !odd;
}

struct node *node_plain_text(struct arena *mem, const char *name, const char *text,
			     size_t len)
{
	struct plain r = { .mem = mem, .name = name, .p = text, .line = text };
	struct node *root;

	if (!is_plain(text, len))
		return NULL;
	r.number = 1;
	to_token(&r);
	if (*r.p == '{' || *r.p == '[')
		root = flow_value(&r, false, 0);
	else
		root = *r.p ? block_map(&r, 0) : NULL;
	if (!root)
		return NULL;
	to_token(&r);
	return *r.p ? NULL : root;
}
