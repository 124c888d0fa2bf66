/* study/space_document.c - a candidate written into the scenario's document; how simple it is */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "study/space.h"

static const char *word_of(enum axis axis, int64_t value, const struct ft_plan *p,
			   struct arena *mem)
{
	char text[FT_MODULES_TEXT];

	switch (axis) {
	case AXIS_SCHEDULE:
		return ft_schedule_name(p->schedule);
	case AXIS_SHARDING:
		return ft_sharding_name(p->sharding);
	case AXIS_RECOMPUTE:
		return ft_recompute_name(p->recompute);
	case AXIS_MODULES:
		return arena_text(mem, ft_modules_text((unsigned)value, text));
	case AXIS_OVERLAP_TP:
	case AXIS_OVERLAP_DP:
	case AXIS_OVERLAP_PP:
	case AXIS_OVERLAP_EP:
		return value ? "true" : "false";
	default:
		return arena_printf(mem, "%" PRId64, value);
	}
}

/* Is the key better left unsaid? What goes without saying need not stand there. */
static bool unsaid(const struct space *sp, enum axis axis, int64_t value,
		   const struct ft_plan *p)
{
	switch (axis) {
	case AXIS_EP:
	case AXIS_ETP:
		return !space_routed_layer(sp->scenario->model);
	case AXIS_VPP:
		return p->vpp == 1;
	case AXIS_CP:
		return p->cp == 1;
	case AXIS_SCHEDULE:
		return p->pp == 1;
	case AXIS_ZERO_GROUP:
	case AXIS_SHARD:
		return value == 0;
	case AXIS_MODULES:
		return value == 0 || p->recompute != FT_RECOMPUTE_SELECTIVE;
	case AXIS_LAYERS:
		return value < 0 || p->recompute != FT_RECOMPUTE_FULL;
	case AXIS_OFFLOAD:
	case AXIS_OVERLAP_TP:
	case AXIS_OVERLAP_DP:
	case AXIS_OVERLAP_PP:
	case AXIS_OVERLAP_EP:
		return sp->axis[axis].n == 1 && !sp->axis[axis].stated;
	default:
		return false;
	}
}

/* Is the key of plans that are sharded in another way? */
static bool unconcerned(enum axis axis, const struct ft_plan *p)
{
	return (axis == AXIS_ZERO_GROUP && !ft_plan_zero(p)) ||
	       (axis == AXIS_SHARD && p->sharding != FT_HSDP);
}

/* Take a key out of the map that holds it. */
static void drop(struct node *root, const char *dotted)
{
	const char *dot = strrchr(dotted, '.');
	char above[64];
	struct node *map;

	snprintf(above, sizeof(above), "%.*s", (int)(dot - dotted), dotted);
	map = node_path(root, above);
	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++)
		if (!strcmp(map->key[i], dot + 1)) {
			for (size_t k = i + 1; k < map->n; k++) {
				map->item[k - 1] = map->item[k];
				map->key[k - 1] = map->key[k];
				map->key_mark[k - 1] = map->key_mark[k];
			}
			map->n--;
			return;
		}
}

struct node *space_document(const struct space *sp, const struct candidate *c,
			    struct arena *mem)
{
	static const struct ft_mark here = { "the plan", 1, 1 };
	struct node *root = node_overlay(mem, sp->scenario->given, NULL);
	int64_t *layers =
		ARENA_ARRAY(mem, (size_t)sp->scenario->model->n_layers + 3, int64_t);
	struct ft_plan p;
	struct ft_error err;
	bool ok = space_plan(sp, c, &p, layers);

	for (int i = 0; ok && i < AXES; i++) {
		int64_t value = space_value(sp, c, (enum axis)i);
		struct node *word;
		const char *text;

		if (sp->axis[i].stated && !unconcerned((enum axis)i, &p))
			continue;
		if (unconcerned((enum axis)i, &p) ||
		    unsaid(sp, (enum axis)i, value, &p)) {
			drop(root, space_key((size_t)i)); /* what was freed */
			continue;
		}
		text = word_of((enum axis)i, value, &p, mem);
		word = node_read_text(mem, "the plan", text, strlen(text), &err);
		ok = word &&
		     node_put_node(mem, root, space_key((size_t)i), &here, word, &err);
	}
	return ok ? root : NULL;
}

double space_complexity(const struct space *sp, const struct candidate *c)
{
	double sum = 0;

	for (int i = 0; i < AXES; i++)
		if (i <= AXIS_ETP || i == AXIS_VPP)
			sum += log2((double)space_value(sp, c, (enum axis)i));
		else if (i != AXIS_MICRO_BATCH)
			sum += c->at[i] ? 1 : 0;
	return sum;
}
