/* study/resize.c - the same job on more or fewer GPUs */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_decide.h"
#include "study/shelf.h"

/* A ZeRO group of all replicas, which an answer's scenario states, is one of all at another
 * size, too. */
static bool resize_group(const struct ft_scenario *s, struct node *root, int64_t gpus,
			 const struct ft_mark *at, struct ft_error *err)
{
	const struct ft_plan *p = s->plan;
	int64_t ranks = gpus * s->cluster->gpu->ranks_per_gpu;
	char text[32];

	if (node_is_null(node_path(root, "training.zero_group")) ||
	    p->zero_group != p->dp * p->cp)
		return true;
	snprintf(text, sizeof(text), "%" PRId64, ranks / (p->tp * p->pp));
	return node_put_path(shelf_memory(s->shelf), root, "training.zero_group", at,
			     arena_text(shelf_memory(s->shelf), text), err);
}

/* So is an hsdp group that fills a node, as far as replicas do: what it is where it is not stated. */
static bool resize_shard(const struct ft_scenario *s, struct node *root,
			 const struct ft_mark *at, struct ft_error *err)
{
	const struct ft_plan *p = s->plan;

	if (node_is_null(node_path(root, "training.shard")) ||
	    p->shard != ft_plan_near_shard(p, s->cluster->ranks_per_node))
		return true;
	return node_put_path(shelf_memory(s->shelf), root, "training.shard", at, "null",
			     err);
}

static const struct ft_mark at = { "another size", 1, 1 };

/* NULL on error. */
static struct node *resized(const struct ft_scenario *s, int64_t gpus,
			    double batch_times, struct ft_error *err)
{
	struct arena *mem = shelf_memory(s->shelf);
	struct node *root = node_overlay(mem, s->given, NULL);
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, gpus);
	if (!node_put_path(mem, root, "cluster.gpus", &at, arena_text(mem, text), err))
		return NULL;
	snprintf(text, sizeof(text), "%.0f",
		 batch_times * (double)s->plan->global_batch);
	if (!resize_group(s, root, gpus, &at, err) || !resize_shard(s, root, &at, err))
		return NULL;
	if (batch_times != 1 && !node_put_path(mem, root, "training.global_batch_size",
					       &at, arena_text(mem, text), err))
		return NULL;
	return root;
}

struct ft_scenario *ft_scenario_resized(const struct ft_scenario *s, int64_t gpus,
					double batch_times, struct ft_error *err)
{
	struct node *root = resized(s, gpus, batch_times, err);

	return root ? scenario_lenient(s->shelf, root, s->label, err) : NULL;
}

bool scenario_size_hindered(const struct ft_scenario *s, int64_t gpus)
{
	struct arena *mem = shelf_memory(s->shelf);
	struct ft_error ignored;
	struct node *root = resized(s, gpus, 1, &ignored);
	struct ft_scenario *other = NULL;

	if (!node_is_null(node_path(s->given, "cluster.imperfections")) && root &&
	    node_put_path(mem, root, "cluster.imperfections", &at, "null", &ignored))
		other = scenario_lenient(s->shelf, root, s->label, &ignored);
	ft_scenario_free(other);
	return other != NULL;
}

/* So many replicas fill whole nodes, and each has whole micro-batches. */
static bool can_be(const struct ft_scenario *s, int64_t replicas, int64_t ranks)
{
	const struct ft_plan *p = s->plan;
	int64_t per_node = s->cluster->ranks_per_node;

	return p->global_batch % (replicas * p->micro_batch) == 0 &&
	       (ranks < per_node ? per_node % ranks == 0 : ranks % per_node == 0);
}

size_t ft_study_fleets(const struct ft_scenario *s, int64_t gpus[FT_FLEETS])
{
	const struct ft_plan *p = s->plan;
	int64_t replica = p->tp * p->pp * p->cp,
		most = p->global_batch / p->micro_batch;
	int64_t per_gpu = s->cluster->gpu->ranks_per_gpu;
	size_t n = 0;

	for (int64_t dp = 1; dp <= most && n < FT_FLEETS; dp++)
		if (dp * replica == s->cluster->gpus * per_gpu ||
		    (can_be(s, dp, dp * replica) && dp * replica % per_gpu == 0))
			gpus[n++] = dp * replica / per_gpu;
	return n;
}
