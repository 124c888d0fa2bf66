/* base/node_write.c - a tree of nodes as one line of JSON */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"

/* Text that grows by doubling. */
struct line {
	struct arena *mem;
	char *text;
	size_t n, cap;
};

static void add(struct line *l, const char *text, size_t len)
{
	while (l->n + len + 1 > l->cap)
		l->text = ARENA_GROW(l->mem, l->text, &l->cap);
	memcpy(l->text + l->n, text, len);
	l->n += len;
}

static void add_quoted(struct line *l, const char *text)
{
	add(l, "\"", 1);
	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)*p;
		char code[8];

		if (c == '"' || c == '\\')
			snprintf(code, sizeof(code), "\\%c", c);
		else if (c < 0x20)
			snprintf(code, sizeof(code), "\\u%04x", c);
		else
			snprintf(code, sizeof(code), "%c", c);
		add(l, code, strlen(code));
	}
	add(l, "\"", 1);
}

bool node_is_number(const struct node *n)
{
	const char *p = n->text;
	size_t digits;

	if (n->kind != NODE_SCALAR || n->quoted)
		return false;
	p += *p == '-';
	digits = strspn(p, "0123456789");
	if (!digits || (digits > 1 && *p == '0'))
		return false;
	p += digits;
	if (*p == '.') {
		digits = strspn(p + 1, "0123456789");
		if (!digits)
			return false;
		p += 1 + digits;
	}
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '+' || p[1] == '-');
		digits = strspn(p, "0123456789");
		if (!digits)
			return false;
		p += digits;
	}
	return !*p;
}

bool node_is_bool(const struct node *n)
{
	return n->kind == NODE_SCALAR && !n->quoted &&
	       (!strcmp(n->text, "true") || !strcmp(n->text, "false"));
}

static void add_node(struct line *l, const struct node *n)
{
	if (n->kind == NODE_SCALAR) {
		if (node_is_null(n))
			add(l, "null", 4);
		else if (node_is_number(n) || node_is_bool(n))
			add(l, n->text, strlen(n->text));
		else
			add_quoted(l, n->text);
		return;
	}
	add(l, n->kind == NODE_MAP ? "{" : "[", 1);
	for (size_t i = 0; i < n->n; i++) {
		if (i)
			add(l, ", ", 2);
		if (n->kind == NODE_MAP) {
			add_quoted(l, n->key[i]);
			add(l, ": ", 2);
		}
		add_node(l, n->item[i]);
	}
	add(l, n->kind == NODE_MAP ? "}" : "]", 1);
}

char *node_flow(struct arena *mem, const struct node *n)
{
	struct line l = { .mem = mem };

	l.text = ARENA_GROW(mem, l.text, &l.cap);
	add_node(&l, n);
	l.text[l.n] = '\0';
	return l.text;
}
