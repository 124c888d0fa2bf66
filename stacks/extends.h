/*
 * stacks/extends.h - a file laid upon the one that it extends, and so on
 */
#ifndef STACKS_EXTENDS_H
#define STACKS_EXTENDS_H

#include "base/node.h"

/* The map of folder/NAME.yaml (or of a path); NULL on error. At most 8 deep. */
struct node *extends_gather(struct arena *mem, const char *folder, const char *name,
			    const struct ft_mark *at, struct ft_error *err)
	__attribute__((warn_unused_result));

#endif
