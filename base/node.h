/*
 * base/node.h - a YAML or JSON document as a tree that remembers positions
 *
 * JSON is read as the YAML it is, so there is one reader. Scalars stay text
 * until a reader (base/reader.h) asks for a dimension. Every node knows its
 * file, line and column, so that a mistake in meaning can point at its place.
 * Nodes belong to the arena they were read into.
 */
#ifndef BASE_NODE_H
#define BASE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "foretoken/base.h"

struct arena;

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	struct ft_mark mark;
	const char *text;	  /* scalar */
	bool quoted;		  /* scalar in quotes: never null, never a number */
	size_t n, cap;		  /* list, map */
	struct node **item;	  /* [n] values */
	const char **key;	  /* [n] map */
	struct ft_mark *key_mark; /* [n] map */
	uint32_t *index;	  /* [n_index] of a large map: place + 1 by hash */
	size_t n_index;
	/* of what was laid upon another (base/extends.h): */
	const struct node *provenance; /* that counts here; NULL: the nearest above */
	bool inherited;		       /* it comes from what is extended */
	const struct node *below;      /* of the whole map: what it extends */
};

/* One document; NULL on error. name is what errors call the text. */
struct node *node_read_file(struct arena *mem, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));
struct node *node_read_text(struct arena *mem, const char *name, const char *text,
			    size_t len, struct ft_error *err)
	__attribute__((warn_unused_result));

struct node *node_map(struct arena *mem, const struct ft_mark *at);
struct node *node_scalar(struct arena *mem, const struct ft_mark *at, const char *text);

/* The value of key in a map; NULL when map is NULL, no map, or lacks it. */
struct node *node_get(const struct node *map, const char *key);

/* "a.b.c" from a root; NULL when absent. */
struct node *node_path(const struct node *root, const char *dotted);

/* Put value under a key, replacing what was there. */
void node_put(struct arena *mem, struct node *map, const char *key,
	      const struct ft_mark *key_mark, struct node *value);

/* Put value behind the last of a list. */
void node_append(struct arena *mem, struct node *list, struct node *value);

/* A value of its own for each use of an anchor: what is changed in one stays out of the others.
 * may is asked for each value at its depth; NULL where it says no. */
struct node *node_copy(struct arena *mem, const struct node *node, int depth,
		       bool (*may)(void *of, const struct node *node, int depth),
		       void *of);

/* Put text at "a.b.c", making maps on the way; a scalar in the way becomes a
 * map {name: scalar}. false (with *err) when the path is no path. */
bool node_put_path(struct arena *mem, struct node *root, const char *dotted,
		   const struct ft_mark *at, const char *text, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same with a value that is a node. */
bool node_put_node(struct arena *mem, struct node *root, const char *dotted,
		   const struct ft_mark *at, struct node *value, struct ft_error *err)
	__attribute__((warn_unused_result));

/* "a.b=c" as given to --set; c is read as YAML (so lists and maps work). */
bool node_set(struct arena *mem, struct node *root, const char *assignment,
	      struct ft_error *err) __attribute__((warn_unused_result));

/* The same of an option of its own, "--price " say, whose keys all stand below `head`,
 * "cost.price_of.": errors show the option as it was typed. */
bool node_set_below(struct arena *mem, struct node *root, const char *head,
		    const char *option, const char *assignment, struct ft_error *err)
	__attribute__((warn_unused_result));

/* A copy of over laid upon base: maps merge, all else replaces. Texts are not copied: those
 * of both have to outlive it. */
struct node *node_overlay(struct arena *mem, const struct node *base,
			  const struct node *over);

/* text as YAML between double quotes, whatever it holds. */
void node_put_quoted(FILE *out, const char *text);
/* before, the text quoted, behind. */
void node_put_field(FILE *out, const char *before, const char *text,
		    const char *behind);

/* Is it an unquoted null, ~ or nothing? */
bool node_is_null(const struct node *n);

/* Is it a scalar that JSON would write bare: a number, true or false? */
bool node_is_number(const struct node *n);
bool node_is_bool(const struct node *n);

/* Is it a scalar that is a whole number from least to most? */
bool node_whole(const struct node *n, int64_t least, int64_t most, int64_t *value)
	__attribute__((warn_unused_result));

/* Is it a scalar of this text, or of the same whole number? */
bool node_says(const struct node *n, const char *text);

/* The tree as one line of JSON, which reads back as the same tree. */
char *node_flow(struct arena *mem, const struct node *n);

#endif
