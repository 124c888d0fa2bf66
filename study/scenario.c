/* study/scenario.c - a scenario's document to loaded, checked parts */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/reader.h"
#include "foretoken/study.h"
#include "study/shelf.h"

struct whole {
	struct ft_scenario scenario; /* first: the handle is the arena's */
	struct arena mem;
	struct ft_model *model;
	struct ft_plan *plan;
	struct ft_shelf *shelf;
};

/* Keys whose absence is told; those of `training` a stack may set, too. */
static const char *const told[] = {
	"stack",
	"ccl",
	"cluster.node",
	"cluster.fabric",
	"training.micro_batch_size",
	"training.precision",
	"training.parallel.tp",
	"training.parallel.pp",
	"training.parallel.cp",
	"training.parallel.ep",
	"training.parallel.etp",
	"training.parallel.vpp",
	"training.sharding",
	"training.schedule",
	"training.sequence_parallel",
	"training.recompute",
	"training.gradient_dtype",
	"training.master_weights",
	"training.reshard_after_forward",
	"training.overlap.tp",
	"training.overlap.dp",
	"training.overlap.pp",
	"training.overlap.copy_engines",
	"training.step_start",
	"cost.prices",
	"cost.horizon",
	"cost.cost_of_capital_frac",
	"cost.residual_frac",
	"cost.electricity",
	"cost.pue",
	"cost.utilization_frac",
	"cost.goodput",
};

enum { TOLD = sizeof(told) / sizeof(*told) };

static void tell_assumed(struct whole *w, bool all)
{
	struct ft_scenario *s = &w->scenario;

	s->assumed = ARENA_ARRAY(&w->mem, TOLD, const char *);
	for (size_t i = 0; i < TOLD; i++)
		if (node_is_null(node_path(s->given, told[i])) &&
		    (all || strncmp(told[i], "training", 8)))
			s->assumed[s->n_assumed++] = told[i];
}

static bool load_plan(struct whole *w, const struct node *training,
		      struct ft_error *err)
{
	struct ft_scenario *s = &w->scenario;
	struct ft_plan_context context = {
		.ranks = s->cluster->ranks,
		.ranks_per_node = s->cluster->ranks_per_node,
		.ragged_batch = s->stack->layout.ragged_batch,
		.gpus = s->cluster->gpus_mark,
	};
	const struct node *laid = node_overlay(&w->mem, s->stack->defaults, training);

	w->plan = ft_plan_load(laid, s->model, &context, err);
	s->plan = w->plan;
	if (w->plan)
		ft_model_stretch(w->model, w->plan->sequence);
	return w->plan != NULL;
}

static bool load_work(struct whole *w, struct reader *r, struct ft_error *err)
{
	struct ft_scenario *s = &w->scenario;
	const struct node *model = read_need(r, "model");
	const struct node *training = read_need(r, "training");
	const struct node *stack = read_node(r, "stack");

	if (r->failed)
		return false;
	if (training->kind != NODE_MAP)
		return reader_fail(r, "training", "should be a map");
	if (stack && stack->kind != NODE_SCALAR)
		return reader_fail(r, "stack", "should be a name or a path");
	w->model = ft_model_load(model, err);
	s->model = w->model;
	if (!w->model)
		return false;
	s->stack = shelf_stack(w->shelf,
			       stack ? stack->text : s->cluster->gpu->default_stack,
			       stack ? &stack->mark : NULL, err);
	return s->stack && ft_scenario_ccl(s, err) && load_plan(w, training, err);
}

/* The scenario's own library, or the stack's for this GPU. */
const struct ft_ccl *ft_scenario_ccl(struct ft_scenario *s, struct ft_error *err)
{
	struct ft_shelf *shelf = ((struct whole *)s)->shelf;
	const struct node *given = node_get(s->given, "ccl");
	const struct node *stack = node_get(s->given, "stack");

	if (s->ccl)
		return s->ccl;
	if (!node_is_null(given)) {
		if (given->kind != NODE_SCALAR) {
			ft_fail(err, &given->mark, "ccl: should be a name or a path");
			return NULL;
		}
		s->ccl = shelf_ccl(shelf, given->text, &given->mark,
				   s->cluster->gpu->ccl_generation, err);
		return s->ccl;
	}
	if (!s->stack && stack && stack->kind == NODE_SCALAR)
		s->stack = shelf_stack(shelf, stack->text, &stack->mark, err);
	else if (!s->stack)
		s->stack =
			shelf_stack(shelf, s->cluster->gpu->default_stack, NULL, err);
	if (s->stack)
		s->ccl = shelf_ccl_of(shelf, s->stack, s->cluster->gpu->ccl_generation,
				      err);
	return s->ccl;
}

static bool load(struct whole *w, bool all, struct ft_error *err)
{
	struct ft_shelf *shelf = w->shelf;
	struct ft_scenario *s = &w->scenario;
	struct reader r = reader_open(s->given, err);
	const struct node *cluster = read_need(&r, "cluster");
	const struct node *cost = read_node(&r, "cost");

	reader_allow(&r, "name");
	reader_allow(&r, "title");
	reader_allow(&r, "ccl");
	if (!all) {
		reader_allow(&r, "model");
		reader_allow(&r, "training");
		reader_allow(&r, "stack");
	}
	if (!cluster || r.failed)
		return false;
	s->cluster = shelf_cluster(shelf, cluster,
				   all ? FT_GPU_ALL_ROWS : FT_GPU_COLLECTIVE_ROWS, err);
	if (!s->cluster)
		return false;
	if (all && !load_work(w, &r, err))
		return false;
	if (!ft_cost_terms_load(cost, &s->terms, err))
		return false;
	tell_assumed(w, all);
	return (!all || ft_scenario_prices(s, err)) && reader_close(&r);
}

const struct ft_prices *ft_scenario_prices(struct ft_scenario *s, struct ft_error *err)
{
	const struct node *book = node_path(s->given, "cost.prices");

	if (!s->prices)
		s->prices = shelf_prices(((struct whole *)s)->shelf, s->terms.prices,
					 book ? &book->mark : NULL, err);
	return s->prices;
}

struct ft_scenario *ft_scenario_from(struct ft_shelf *shelf, const struct node *root,
				     const char *name, bool all, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);

	w->mem = mem;
	w->scenario.file = arena_text(&w->mem, name);
	w->scenario.given = root;
	w->shelf = shelf;
	w->scenario.memo = shelf_memo(shelf);
	if (load(w, all, err))
		return &w->scenario;
	ft_scenario_free(&w->scenario);
	return NULL;
}

struct ft_scenario *ft_scenario_load(struct ft_shelf *shelf, const char *path,
				     const char *const *sets, size_t n, bool all,
				     struct ft_error *err)
{
	struct arena *mem = shelf_memory(shelf);
	struct node *root = node_read_file(mem, path, err);

	if (!root)
		return NULL;
	if (root->kind != NODE_MAP) {
		ft_fail(err, &root->mark,
			"a scenario is a map of model, cluster, "
			"training ...");
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (!node_set(mem, root, sets[i], err))
			return NULL;
	return ft_scenario_from(shelf, root, path, all, err);
}

void ft_scenario_free(struct ft_scenario *scenario)
{
	struct whole *w = (struct whole *)scenario;
	struct arena mem;

	if (!scenario)
		return;
	ft_model_free(w->model);
	ft_plan_free(w->plan);
	mem = w->mem;
	arena_release(&mem);
}
