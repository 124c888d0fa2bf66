/* tests/clusters.h - clusters from a text, for tests of what they are made of */
#ifndef TESTS_CLUSTERS_H
#define TESTS_CLUSTERS_H

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw.h"
#include "tests/check.h"

static struct arena documents; /* clusters name what stands in them */

static inline struct ft_cluster *load(const char *yaml, struct ft_error *err)
{
	struct node *node =
		node_read_text(&documents, "test.yaml", yaml, strlen(yaml), err);

	return node ? ft_cluster_load_rows(node, 0, err) : NULL;
}

static inline struct ft_cluster *good(const char *yaml)
{
	struct ft_error err;
	struct ft_cluster *cluster = load(yaml, &err);

	if (!cluster)
		fail_msg("%s: %s", yaml, err.text);
	return cluster;
}

#endif
