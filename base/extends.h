/*
 * base/extends.h - a map laid upon the one that it extends, and so on
 *
 * A file with `extends: NAME` holds only what differs from NAME. Each number keeps the
 * provenance that it has in its own file. As a model of a machine (EXTENDS_DERIVED) a
 * number that comes from below is no measurement of the new one: its provenance becomes
 * `derived`, with the old one as its source. At most 8 deep.
 */
#ifndef BASE_EXTENDS_H
#define BASE_EXTENDS_H

#include "base/node.h"

enum extends_as {
	EXTENDS_SAME,	 /* another version of the same thing: stacks, libraries */
	EXTENDS_DERIVED, /* another thing: GPUs, nodes, fabrics */
};

/* The map of folder/NAME.yaml (or of a path); NULL on error. */
struct node *extends_file(struct arena *mem, const char *folder, const char *name,
			  const struct ft_mark *at, enum extends_as as,
			  struct ft_error *err) __attribute__((warn_unused_result));

/* value: a name, a path, or a map {extends: NAME, key: value ...} whose keys may be dotted
 * ("memory.bandwidth"); {name: NAME, key: value} extends NAME, too. A map without a name of
 * its own is called "NAME modified"; its numbers are assumed unless it says otherwise, and
 * those from below are derived. */
struct node *extends_value(struct arena *mem, const char *folder,
			   const struct node *value, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
