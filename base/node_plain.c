/*
 * base/node_plain.c - the YAML that most files are written in, read without libyaml
 *
 * Each function reads what begins at r->p and leaves r->p behind it; NULL or false: this is
 * not plain, and all is left to libyaml. Where YAML's rules are intricate, it gives up.
 */
#include "base/node_plain.h"

#include <string.h>

#include "base/arena.h"
#include "base/limits.h"

enum { DEEPEST = 20, LONGEST_KEY = 100 };

struct reading {
	struct arena *mem;
	const char *name;
	const char *p, *end;
	const char *line; /* the one that p is in */
	int number;	  /* of that line */
};

static char at(const struct reading *r, size_t ahead)
{
	return (size_t)(r->end - r->p) > ahead ? r->p[ahead] : '\n';
}

static bool ended(const struct reading *r)
{
	return r->p == r->end;
}

static int column(const struct reading *r)
{
	return (int)(r->p - r->line);
}

static struct ft_mark here(const struct reading *r)
{
	return (struct ft_mark){ r->name, r->number, column(r) + 1 };
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

/* To the end of the line, if nothing but a comment is in the way. */
static bool to_line_end(struct reading *r)
{
	while (at(r, 0) == ' ')
		r->p++;
	if (at(r, 0) == '#' && (r->p == r->line || r->p[-1] == ' '))
		while (at(r, 0) != '\n')
			r->p++;
	return at(r, 0) == '\n';
}

/* To what comes next, maybe lines below. */
static void to_next(struct reading *r)
{
	while (to_line_end(r) && !ended(r)) {
		r->line = ++r->p;
		r->number++;
	}
}

static struct node *node_at(struct reading *r, enum node_kind kind)
{
	struct node *n = ARENA_NEW(r->mem, struct node);

	n->kind = kind;
	n->mark = here(r);
	return n;
}

/* ---- words ------------------------------------------------------------------------ */

static struct node *quoted(struct reading *r)
{
	struct node *n = node_at(r, NODE_SCALAR);
	const char *begin = ++r->p;

	for (; at(r, 0) != '"'; r->p++)
		if (at(r, 0) == '\n' || at(r, 0) == '\\')
			return NULL;
	n->quoted = true;
	n->text = arena_text_n(r->mem, begin, (size_t)(r->p++ - begin));
	return n;
}

/* What may begin a word: no sign of YAML's. */
static bool begins_word(const struct reading *r)
{
	char c = at(r, 0), next = at(r, 1);

	if (c == '-' || c == '.')
		return is_letter_or_digit(next) || (c == '-' && next == '.');
	return is_letter_or_digit(c) || (c != '\n' && strchr("_/+~($<=", c));
}

static struct node *word(struct reading *r, bool in_flow)
{
	const char *begin = r->p, *end;
	struct node *n;

	if (!begins_word(r))
		return NULL;
	n = node_at(r, NODE_SCALAR);
	for (; at(r, 0) != '\n'; r->p++) {
		char c = at(r, 0);

		if (c == '#' && r->p[-1] == ' ')
			break;
		if (c == ':' && (in_flow || at(r, 1) == ' ' || at(r, 1) == '\n'))
			return NULL;
		if (in_flow && strchr(",]}", c))
			break;
		if (in_flow && strchr("[{?", c))
			return NULL;
	}
	for (end = r->p; end[-1] == ' ';)
		end--;
	n->text = arena_text_n(r->mem, begin, (size_t)(end - begin));
	return n;
}

/* A key of map and its colon. */
static const char *key(struct reading *r, const struct node *map)
{
	const char *begin = r->p, *text;
	size_t len;

	if (!is_letter_or_digit(at(r, 0)) && at(r, 0) != '_')
		return NULL;
	while (is_letter_or_digit(at(r, 0)) ||
	       (at(r, 0) != '\n' && strchr("_./+-", at(r, 0))))
		r->p++;
	len = (size_t)(r->p - begin);
	if (len > LONGEST_KEY || at(r, 0) != ':' ||
	    (at(r, 1) != ' ' && at(r, 1) != '\n'))
		return NULL;
	r->p++;
	text = arena_text_n(r->mem, begin, len);
	return node_get(map, text) ? NULL : text;
}

/* ---- in braces and brackets --------------------------------------------------------- */

static struct node *flow(struct reading *r, int depth);

static struct node *in_flow(struct reading *r, int depth)
{
	if (at(r, 0) == '{' || at(r, 0) == '[')
		return flow(r, depth);
	return at(r, 0) == '"' ? quoted(r) : word(r, true);
}

/* One entry of a map or a list. */
static bool entry(struct reading *r, struct node *of, int depth)
{
	struct ft_mark mark = here(r);
	const char *name = NULL;
	struct node *item;

	if (of->kind == NODE_MAP) {
		name = key(r, of);
		if (!name)
			return false;
		to_next(r);
	}
	item = in_flow(r, depth + 1);
	if (!item)
		return false;
	if (name)
		node_put(r->mem, of, name, &mark, item);
	else
		node_append(r->mem, of, item);
	to_next(r);
	return true;
}

static struct node *flow(struct reading *r, int depth)
{
	char close = at(r, 0) == '{' ? '}' : ']';
	struct node *n = node_at(r, close == '}' ? NODE_MAP : NODE_LIST);

	if (depth > DEEPEST)
		return NULL;
	r->p++;
	to_next(r);
	while (at(r, 0) != close) {
		if (!entry(r, n, depth))
			return NULL;
		if (at(r, 0) == close)
			break;
		if (at(r, 0) != ',')
			return NULL;
		r->p++;
		to_next(r);
		if (at(r, 0) == close)
			return NULL;
	}
	r->p++;
	return n;
}

/* ---- by indentation ------------------------------------------------------------------ */

static struct node *block(struct reading *r, int depth);

/* A value on the line of its key or dash, and the end of that line. */
static struct node *on_line(struct reading *r, int depth)
{
	struct node *n;

	if (at(r, 0) == '{' || at(r, 0) == '[')
		n = flow(r, depth);
	else
		n = at(r, 0) == '"' ? quoted(r) : word(r, false);
	if (!n || !to_line_end(r))
		return NULL;
	to_next(r);
	return n;
}

/* What a key has, behind its colon. What stands further right than the key on the next line
 * would go on with it, and is nobody's here: the document does not end. */
static struct node *of_key(struct reading *r, int indent, int depth)
{
	struct node *n;

	if (!to_line_end(r))
		return on_line(r, depth);
	to_next(r);
	if (ended(r) || column(r) <= indent)
		return NULL;
	n = block(r, depth);
	return n && (ended(r) || column(r) <= indent) ? n : NULL;
}

static struct node *block_map(struct reading *r, int depth)
{
	struct node *n = node_at(r, NODE_MAP);
	int indent = column(r);

	while (!ended(r) && column(r) == indent) {
		struct ft_mark mark = here(r);
		const char *name = key(r, n);
		struct node *item = name ? of_key(r, indent, depth + 1) : NULL;

		if (!item)
			return NULL;
		node_put(r->mem, n, name, &mark, item);
	}
	return n;
}

static bool begins_key(const struct reading *r)
{
	struct reading ahead = *r;

	return key(&ahead, NULL) != NULL;
}

static struct node *block_list(struct reading *r, int depth)
{
	struct node *n = node_at(r, NODE_LIST);
	int indent = column(r);

	while (!ended(r) && column(r) == indent) {
		struct node *item;

		if (at(r, 0) != '-' || at(r, 1) != ' ')
			return NULL;
		r->p++;
		if (to_line_end(r))
			return NULL;
		item = begins_key(r) ? block_map(r, depth + 1) : on_line(r, depth + 1);
		if (!item || (!ended(r) && column(r) > indent))
			return NULL;
		node_append(r->mem, n, item);
	}
	return n;
}

static struct node *block(struct reading *r, int depth)
{
	if (depth > DEEPEST)
		return NULL;
	return at(r, 0) == '-' ? block_list(r, depth) : block_map(r, depth);
}

/* ---- a document ------------------------------------------------------------------------ */

static bool is_printable_ascii(const char *text, size_t len)
{
	bool all = true;

	for (size_t i = 0; i < len; i++)
		all = all && ((text[i] >= ' ' && text[i] < 127) || text[i] == '\n');
	return all;
}

struct node *node_read_plain(struct arena *mem, const char *name, const char *text,
			     size_t len)
{
	struct reading r = { .mem = mem, .name = name, .number = 1 };
	struct node *root;

	/* no more values than bytes */
	if (len > LIMIT_YAML_VALUES || !is_printable_ascii(text, len))
		return NULL;
	r.p = r.line = text;
	r.end = text + len;
	to_next(&r);
	if (ended(&r) || column(&r))
		return NULL;
	if (at(&r, 0) == '{')
		root = on_line(&r, 0);
	else
		root = block(&r, 0);
	return root && ended(&r) ? root : NULL;
}
