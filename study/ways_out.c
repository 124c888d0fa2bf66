/*
 * study/ways_out.c - where no plan fits: the cheapest changes that make one fit
 *
 * Asked in this order: keys that the scenario states, freed one by one and all; what is
 * searched on demand (activations in host memory); a step without fp32 master weights; then
 * two, four and eight times the GPUs. Memory alone is looked at, exactly: of each way to divide the model
 * of the plan that keeps least besides, since all plans would take minutes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/node.h"
#include "study/search.h"
#include "study/shelf.h"

struct light {
	size_t at;	   /* in the space */
	uint64_t division; /* places on the axes that divide the model */
	double kept; /* what the other axes make a rank keep: less is lighter, in no unit */
};

static const enum axis divisions[] = { AXIS_TP,		AXIS_PP,   AXIS_CP,
				       AXIS_EP,		AXIS_ETP,  AXIS_SHARDING,
				       AXIS_ZERO_GROUP, AXIS_SHARD };

static struct light weigh(const struct space *sp, size_t at)
{
	const struct candidate *c = &sp->candidate[at];
	struct light l = { .at = at };

	for (size_t i = 0; i < sizeof(divisions) / sizeof(*divisions); i++)
		l.division = l.division << 8 | c->at[divisions[i]];
	l.kept = (double)space_value(sp, c, AXIS_MICRO_BATCH) +
		 1e-3 * (double)space_value(sp, c, AXIS_VPP);
	if (space_value(sp, c, AXIS_RECOMPUTE) != FT_RECOMPUTE_FULL)
		l.kept *= 8;
	if (space_value(sp, c, AXIS_LAYERS) >= 0)
		l.kept *= 2;
	return (struct light){ l.at, l.division,
			       l.kept /
				       (1 + (double)space_value(sp, c, AXIS_OFFLOAD)) };
}

static int lightest_first(const void *a, const void *b)
{
	const struct light *x = a, *y = b;

	if (x->division != y->division)
		return x->division < y->division ? -1 : 1;
	if (x->kept != y->kept)
		return x->kept < y->kept ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The lightest plan of each division; how many. */
static size_t lightest(const struct space *sp, struct light **found)
{
	struct light *all = allocated(calloc(sp->n + 1, sizeof(*all)));
	size_t n = 0;

	for (size_t i = 0; i < sp->n; i++)
		all[i] = weigh(sp, i);
	qsort(all, sp->n, sizeof(*all), lightest_first);
	for (size_t i = 0; i < sp->n; i++)
		if (!i || all[i].division != all[n - 1].division)
			all[n++] = all[i];
	*found = all;
	return n;
}

/* The least memory that a plan of this document takes, of the GPU's or, where that is fuller, of the node's; INFINITY: none. */
static struct fullness least_memory(const struct search_job *j, struct ft_shelf *shelf,
				    const struct node *root,
				    const char *const *free_key, size_t n_free)
{
	struct ft_error err;
	struct ft_scenario *s = scenario_open(shelf, root, "a way out", &err);
	struct fullness least = { INFINITY, false };
	struct light *light;
	size_t n;
	struct space space;
	int64_t *layers;

	if (j->stop || !s || !space_open(&space, s, free_key, n_free, &err)) {
		ft_scenario_free(s);
		return least;
	}
	layers = allocated(calloc((size_t)s->model->n_layers + 3, sizeof(*layers)));
	n = lightest(&space, &light);
	for (size_t i = 0; i < n && least.frac > 1 && !j->stop; i++) {
		struct ft_plan p;
		struct ft_outline *o = NULL;

		if (space_plan(&space, &space.candidate[light[i].at], &p, layers))
			o = ft_outline_build(s->model, &p, s->stack, &err);
		if (o) {
			struct fullness is = search_peak(s, &p, o, NULL);

			least = is.frac < least.frac ? is : least;
		}
		ft_outline_free(o);
	}
	free(light);
	free(layers);
	space_close(&space);
	ft_scenario_free(s);
	return least;
}

static void put(struct ft_plans *plans, struct fullness memory, const char *text)
{
	size_t n = plans->n_ways;

	if (memory.frac > 1 || n == FT_WAYS_MOST)
		return;
	plans->way[n].memory_frac = memory.frac;
	plans->way[n].of_node = memory.of_node;
	snprintf(plans->way[n].text, sizeof(plans->way[n].text), "%s", text);
	plans->n_ways++;
}

static void by_freeing(const struct search_job *j, struct ft_shelf *shelf,
		       struct ft_plans *plans)
{
	const char *all[AXES];
	char text[FT_WHY];
	size_t n = 0;

	for (int i = 0; i < AXES; i++) {
		const char *key = j->space.axis[i].key;

		if (!j->space.axis[i].stated)
			continue;
		all[n++] = key;
		snprintf(text, sizeof(text), "--free %s", key + strlen("training."));
		put(plans, least_memory(j, shelf, j->root, &key, 1), text);
	}
	if (n > 1 && !plans->n_ways)
		put(plans, least_memory(j, shelf, j->root, all, n),
		    "free all of the keys that the scenario states (--free KEY each)");
}

/* With one key of the scenario set to something else. */
static void by_setting(const struct search_job *j, struct ft_shelf *shelf,
		       struct ft_plans *plans, const char *key, const char *value,
		       const char *text)
{
	struct arena mem = { 0 };
	struct node *root = node_overlay(&mem, j->root, NULL);
	static const struct ft_mark here = { "a way out", 1, 1 };
	struct ft_error err;

	if (node_put_path(&mem, root, key, &here, value, &err))
		put(plans,
		    least_memory(j, shelf, root, j->search->free_key,
				 j->search->n_free),
		    text);
	arena_release(&mem);
}

void ways_out(const struct search_job *j, struct ft_plans *plans)
{
	static const char *const offload[] = { "training.offload_layers" };
	struct ft_shelf *shelf = ft_shelf_new();
	int64_t gpus = j->space.scenario->cluster->gpus;
	char value[32], text[FT_WHY];

	by_freeing(j, shelf, plans);
	put(plans, least_memory(j, shelf, j->root, offload, 1),
	    "--free offload_layers: activations wait in host memory");
	if (j->space.scenario->plan->offload_state == FT_OFFLOAD_NONE)
		by_setting(j, shelf, plans, "training.offload_state", "optimizer",
			   "--set training.offload_state=optimizer: the optimizer's "
			   "state waits on the host, which updates it");
	if (j->space.scenario->plan->master_weights)
		by_setting(
			j, shelf, plans, "training.master_weights", "false",
			"--set training.master_weights=false: weights, gradients and "
			"optimizer in 16 bits");
	for (int64_t times = 2; times <= 8; times *= 2) {
		size_t before = plans->n_ways;

		snprintf(value, sizeof(value), "%" PRId64, times * gpus);
		snprintf(text, sizeof(text), "--set cluster.gpus=%s: %d times the GPUs",
			 value, (int)times);
		by_setting(j, shelf, plans, "cluster.gpus", value, text);
		if (plans->n_ways > before)
			break;
	}
	ft_shelf_free(shelf);
}
