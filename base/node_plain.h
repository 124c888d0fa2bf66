/*
 * base/node_plain.h - the YAML that most files are written in, read without libyaml
 *
 * Maps by indentation or in braces, lists, words, text in double quotes, comments; ASCII.
 * What has anything else (anchors, escapes, text over several lines, tabs, a mistake) is
 * left to libyaml, which takes six times as long. What is read here is what libyaml reads,
 * to the last mark: tests/test_node_plain.c holds one against the other.
 */
#ifndef BASE_NODE_PLAIN_H
#define BASE_NODE_PLAIN_H

#include "base/node.h"

/* NULL: not this reader's. */
struct node *node_read_plain(struct arena *mem, const char *name, const char *text,
			     size_t len);

/* The same document through libyaml, whatever it has; NULL on error. */
struct node *node_read_libyaml(struct arena *mem, const char *name, const char *text,
			       size_t len, struct ft_error *err);

#endif
