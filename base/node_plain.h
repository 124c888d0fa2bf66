/*
 * base/node_plain.h - the plain part of YAML, read without libyaml
 *
 * Block maps and lists, brackets, words, quoted text on one line without escapes, and maps with a
 * name (&x) that keys have again (*x): what our files and all our JSON consist of, six times as fast as by libyaml. What is taken
 * gives the same nodes at the same places; all else is declined, mistakes as well, and
 * base/node_read.c begins again: errors are told there alone.
 */
#ifndef BASE_NODE_PLAIN_H
#define BASE_NODE_PLAIN_H

#include "base/node.h"

/* NULL: declined. name must outlive the nodes; behind text's len bytes stands a NUL. */
struct node *node_plain_text(struct arena *mem, const char *name, const char *text,
			     size_t len) __attribute__((warn_unused_result));

/* The obvious way, base/node_read.c: all of YAML. name must outlive the nodes. */
struct node *node_read_events(struct arena *mem, const char *name, const char *text,
			      size_t len, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
