/* study/scenario.c - a scenario's document to loaded, checked parts */
#include <string.h>

#include "base/file.h"
#include "base/arena.h"
#include "base/digest.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/study.h"
#include "study/evidence.h"
#include "study/keys.h"
#include "study/shelf.h"
#include "study/stack_there.h"

struct whole {
	struct ft_scenario scenario; /* first: the handle is the arena's */
	struct arena mem;
	struct ft_model *model;
	struct ft_plan *plan;
	struct ft_prices *own_prices; /* the book with cost.price_of over it; or NULL */
};

static void tell_assumed(struct whole *w)
{
	struct ft_scenario *s = &w->scenario;
	const struct scenario_key *key;
	size_t n = scenario_keys(&key);

	s->assumed = ARENA_ARRAY(&w->mem, n, const char *);
	for (size_t i = 0; i < n; i++)
		if (key[i].flags & KEY_TOLD && !scenario_idle_value(s, key[i].path) &&
		    key[i].value(&w->mem, s) &&
		    node_is_null(node_path(s->given, key[i].path)))
			s->assumed[s->n_assumed++] = key[i].path;
}

bool ft_scenario_assumes(const struct ft_scenario *s, const char *key)
{
	for (size_t i = 0; i < s->n_assumed; i++)
		if (!strcmp(s->assumed[i], key))
			return true;
	return false;
}

static void add_digest(struct ft_digest *to, const struct ft_digest *part)
{
	digest_bytes(to, part, sizeof(*part));
}

/* Of what was given, of every file read, and of the program. name and title only name
 * the scenario. */
static void find_digest(struct whole *w)
{
	struct ft_scenario *s = &w->scenario;
	struct node *plain = node_map(&w->mem, &s->given->mark);

	for (size_t i = 0; i < s->given->n; i++)
		if (strcmp(s->given->key[i], "name") &&
		    strcmp(s->given->key[i], "title"))
			node_put(&w->mem, plain, s->given->key[i], NULL,
				 s->given->item[i]);
	digest_text(&s->digest, ft_version_build());
	digest_text(&s->digest, node_flow(&w->mem, plain));
	add_digest(&s->digest, &s->cluster->gpu->digest);
	add_digest(&s->digest, &s->cluster->node->digest);
	add_digest(&s->digest, &s->cluster->fabric->digest);
	add_digest(&s->digest, &s->cluster->parts->digest);
	add_digest(&s->digest, &s->prices->digest);
	add_digest(&s->digest, &s->model->digest);
	add_digest(&s->digest, &s->stack->digest);
	add_digest(&s->digest, &s->ccl->digest);
	add_digest(&s->digest, evidence_digest(s->evidence));
}

struct ft_plan_context scenario_plan_context(const struct ft_scenario *s)
{
	return (struct ft_plan_context){
		.ranks = s->cluster->ranks,
		.ranks_per_node = s->cluster->ranks_per_node,
		.ragged_batch = s->stack->layout.ragged_batch,
		.no_context = ft_stack_no_context(s->stack, s->model->sinks,
						  s->model->plain != FT_PLAIN_NOT,
						  s->model->score_cap),
		.any_layout = s->cluster->gpu->any_layout,
		.unsharded_pipeline = s->stack->layout.unsharded_pipeline,
		.unwrapped_alone = s->stack->layout.unwrapped_alone,
		.joins_qkv =
			ft_stack_joins_qkv(s->stack, s->model->joined_qkv != FT_APART),
		.joins_gate_up =
			ft_stack_joins_gate_up(s->stack, s->model->joined_gate_up),
		.pairs_again = s->stack->runs.recompute_in_pairs,
		.gpus = s->cluster->gpus_mark,
	};
}

/* `training` with the stack's defaults under it, of which those for its format of products
 * replace the others. */
static struct node *with_defaults(struct whole *w, const struct node *training)
{
	const struct ft_stack *stack = w->scenario.stack;
	struct node *all = node_overlay(&w->mem, stack->defaults, training);
	const struct node *format = node_get(all, "precision"), *these;

	these = node_get(stack->by_precision, format && format->kind == NODE_SCALAR ?
						      format->text :
						      ft_dtype_name(FT_BF16));
	if (!these || node_is_null(these))
		return all;
	return node_overlay(&w->mem, node_overlay(&w->mem, stack->defaults, these),
			    training);
}

static bool load_plan(struct whole *w, const struct node *training,
		      enum scenario_depth depth, struct ft_error *err)
{
	struct ft_scenario *s = &w->scenario;
	struct ft_plan_context context = scenario_plan_context(s);

	w->plan = ft_plan_load(with_defaults(w, training), s->model, &context, err);
	s->plan = w->plan;
	if (w->plan)
		ft_model_fit(w->model, w->plan);
	return w->plan && scenario_multiplies(s, training, err) &&
	       (depth == SCENARIO_LENIENT ||
		scenario_no_idle_key(s, training, s->plan, 1, err));
}

static bool load_work(struct whole *w, struct reader *r, struct ft_error *err)
{
	struct ft_scenario *s = &w->scenario;
	const struct node *model = read_need(r, "model");
	const struct node *stack = read_node(r, "stack");

	if (r->failed)
		return false;
	if (stack && stack->kind != NODE_SCALAR)
		return reader_fail(r, "stack", "should be a name or a path");
	w->model = ft_model_load(model, err);
	s->model = w->model;
	if (!w->model)
		return false;
	s->stack = shelf_stack(
		w->scenario.shelf, stack ? stack->text : FT_STACK_UNNAMED,
		stack ? &stack->mark : NULL, s->cluster->gpu->ccl_generation, err);
	if (!s->stack)
		return false;
	s->evidence = shelf_evidence(w->scenario.shelf, s->stack->unnamed, err);
	if (!w->model->vocab_multiple)
		w->model->vocab_multiple = s->stack->layout.vocab_multiple;
	return s->evidence && stack_runs_there(s, stack, &w->mem, err) &&
	       ft_scenario_ccl(s, err);
}

/* The scenario's own library, or the stack's for this GPU. */
const struct ft_ccl *ft_scenario_ccl(struct ft_scenario *s, struct ft_error *err)
{
	struct ft_shelf *shelf = s->shelf;
	const char *generation = s->cluster->gpu->ccl_generation;
	const struct node *given = node_get(s->given, "ccl");
	const struct node *stack = node_get(s->given, "stack");

	if (s->ccl)
		return s->ccl;
	if (!node_is_null(given)) {
		if (given->kind != NODE_SCALAR) {
			ft_fail(err, &given->mark, "ccl: should be a name or a path");
			return NULL;
		}
		s->ccl = shelf_ccl(shelf, given->text, &given->mark, generation, err);
		return s->ccl;
	}
	if (!s->stack && stack && stack->kind == NODE_SCALAR)
		s->stack =
			shelf_stack(shelf, stack->text, &stack->mark, generation, err);
	else if (!s->stack)
		s->stack = shelf_stack(shelf, FT_STACK_UNNAMED, NULL, generation, err);
	if (s->stack)
		s->ccl = shelf_ccl_of(shelf, s->stack, generation, err);
	return s->ccl;
}

const struct ft_prices *ft_scenario_prices(struct ft_scenario *s, struct ft_error *err)
{
	const struct node *book = node_path(s->given, "cost.prices");
	struct whole *w = (struct whole *)s;

	if (s->prices)
		return s->prices;
	s->prices = shelf_prices(w->scenario.shelf, s->terms.prices,
				 book ? &book->mark : NULL, err);
	if (s->prices && !terms_count(s, err))
		s->prices = NULL;
	if (s->prices && (s->terms.price_of || s->terms.usd_per_gpu_hour > 0)) {
		w->own_prices = ft_prices_given(s->prices, s->cluster, &s->terms, err);
		s->prices = w->own_prices;
	}
	return s->prices;
}

/* All that is read from files. */
static bool load_parts(struct whole *w, struct reader *r, enum scenario_depth depth,
		       struct ft_error *err)
{
	bool all = depth != SCENARIO_CLUSTER;
	struct ft_scenario *s = &w->scenario;
	const struct node *cluster = read_need(r, "cluster");
	const struct node *cost = read_node(r, "cost");

	if (!cluster || r->failed)
		return false;
	s->cluster = shelf_cluster(w->scenario.shelf, cluster,
				   all ? FT_GPU_ALL_ROWS : FT_GPU_COLLECTIVE_ROWS, err);
	if (!s->cluster || !ft_cost_terms_load(cost, &s->terms, err))
		return false;
	s->terms.other_sizes = depth == SCENARIO_LENIENT;
	return !all || (load_work(w, r, err) && ft_scenario_prices(s, err));
}

/* The key of a scenario that ends in this word but is not a key where it stands; NULL when
 * none does, or when `path` is one, or leads to one. */
static const char *meant_elsewhere(const char *path)
{
	const struct scenario_key *key;
	size_t n = scenario_keys(&key), len = strlen(path);
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!strncmp(key[i].path, path, len) &&
		    (!key[i].path[len] || key[i].path[len] == '.'))
			return NULL;
		if (!found &&
		    !strcmp(text_last_word(key[i].path), text_last_word(path)))
			found = key[i].path;
	}
	return found;
}

/* The `run` map: what is to be trained, and its bounds in days, dollars and megawatts. */
static bool read_asked(struct reader *r, struct ft_asked *to, struct ft_error *err)
{
	const struct node *run = read_node(r, "run");
	struct reader in = reader_open(run, err);
	const struct {
		const char *key;
		enum dimension dim;
		double *to;
	} asked[] = {
		{ "tokens", DIM_COUNT, &to->tokens },
		{ "days", DIM_NONE, &to->days },
		{ "budget", DIM_USD, &to->budget_usd },
		{ "megawatts", DIM_NONE, &to->megawatts },
		{ "flop", DIM_COUNT, &to->flop },
	};

	if (!run)
		return true;
	if (run->kind != NODE_MAP)
		return reader_fail(r, "run",
				   "should be a map, as {tokens: 15T, days: 60}");
	to->mark = run->mark;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		*asked[i].to = read_quantity(&in, asked[i].key, asked[i].dim, 0);
		if (!in.failed && read_has(&in, asked[i].key) && !(*asked[i].to > 0))
			reader_fail(&in, asked[i].key, "should be above 0");
	}
	return reader_close(&in);
}

/* A key put where it does not belong, in the maps whose keys all stand in the table. */
static bool keys_in_place(struct whole *w, const struct node *map, const char *head,
			  struct ft_error *err)
{
	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++) {
		const char *path = arena_printf(&w->mem, "%s%s", head, map->key[i]);
		const char *meant = meant_elsewhere(path);

		if (!strcmp(map->key[i], "dp") && strcmp(head, "training.overlap."))
			return ft_fail(err, &map->key_mark[i],
				       "dp is not a key: it follows from the GPUs and "
				       "tp x pp x cp; leave it out");
		if (meant)
			return ft_fail(err, &map->key_mark[i],
				       "a scenario has no key %s; did you mean %s?",
				       path, meant);
	}
	return true;
}

static bool all_in_place(struct whole *w, struct ft_error *err)
{
	const struct node *g = w->scenario.given;

	return keys_in_place(w, g, "", err) &&
	       keys_in_place(w, node_get(g, "training"), "training.", err) &&
	       keys_in_place(w, node_path(g, "training.parallel"), "training.parallel.",
			     err) &&
	       keys_in_place(w, node_get(g, "cost"), "cost.", err);
}

/* The training map without what a plan decides: sizes, and what depends on them. */
static struct node *without_sizes(struct arena *mem, const struct node *laid)
{
	static const char *const sizes[] = { "parallel", "micro_batch_size",
					     "zero_group", "shard" };
	struct node *rest = node_map(mem, &laid->mark);

	for (size_t i = 0; i < laid->n; i++) {
		bool keep = true;

		for (int k = 0; k < 4; k++)
			keep &= strcmp(laid->key[i], sizes[k]) != 0;
		if (keep)
			node_put(mem, rest, laid->key[i], &laid->key_mark[i],
				 laid->item[i]);
	}
	return rest;
}

/* All of a plan but its sizes, as of one rank. */
static bool load_open_plan(struct whole *w, const struct node *training,
			   struct ft_error *err)
{
	struct ft_scenario *s = &w->scenario;
	struct ft_plan_context context = scenario_plan_context(s);
	struct node *laid = with_defaults(w, training);

	context.ranks = context.ranks_per_node = 1;
	context.open = true;
	w->plan = ft_plan_load(without_sizes(&w->mem, laid), s->model, &context, err);
	s->plan = w->plan;
	if (w->plan)
		ft_model_fit(w->model, w->plan);
	return w->plan && scenario_multiplies(s, training, err);
}

static bool load(struct whole *w, enum scenario_depth depth, struct scenario_seen *seen,
		 struct ft_error *err)
{
	bool all = depth != SCENARIO_CLUSTER;
	static const char *const others[] = { "name",	  "title", "model",
					      "training", "stack", "ccl" };
	struct ft_scenario *s = &w->scenario;
	struct reader r = reader_open(s->given, err);
	const struct node *training;

	for (int i = 0; i < 6; i++)
		reader_allow(&r, others[i]);
	if (!all_in_place(w, err) || !load_parts(w, &r, depth, err) ||
	    !read_asked(&r, &s->asked, err))
		return false;
	s->label = scenario_label(&w->mem, s, err);
	if (!s->label)
		return false;
	if (!all)
		return reader_close(&r);
	find_digest(w);
	*seen = (struct scenario_seen){ true, s->digest };
	training = read_need(&r, "training");
	if (training && training->kind != NODE_MAP)
		return reader_fail(&r, "training", "should be a map");
	if (!r.failed && depth == SCENARIO_OPEN)
		return load_open_plan(w, training, err) && reader_close(&r);
	if (r.failed || !load_plan(w, training, depth, err) || !reader_close(&r))
		return false;
	tell_assumed(w);
	s->resolved = scenario_resolve(&w->mem, s);
	return true;
}

static struct ft_scenario *from(struct ft_shelf *shelf, const struct node *root,
				const char *name, enum scenario_depth depth,
				struct scenario_seen *seen, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);

	w->mem = mem;
	w->scenario.file = arena_text(&w->mem, name);
	w->scenario.given = root;
	w->scenario.shelf = shelf;
	w->scenario.memo = shelf_memo(shelf);
	if (load(w, depth, seen, err))
		return &w->scenario;
	ft_scenario_free(&w->scenario);
	return NULL;
}

struct ft_scenario *ft_scenario_from(struct ft_shelf *shelf, const struct node *root,
				     const char *name, bool all, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct scenario_seen seen;

	return from(shelf, root, name, all ? SCENARIO_WHOLE : SCENARIO_CLUSTER, &seen,
		    err);
}

struct ft_scenario *scenario_open(struct ft_shelf *shelf, const struct node *root,
				  const char *name, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct scenario_seen seen;

	return from(shelf, root, name, SCENARIO_OPEN, &seen, err);
}

struct ft_scenario *scenario_lenient(struct ft_shelf *shelf, const struct node *root,
				     const char *name, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct scenario_seen seen;

	return from(shelf, root, name, SCENARIO_LENIENT, &seen, err);
}

/* "a.b=c", or as cli/shared.c puts it "--price ITEM=USD" or what is asked of the run: "--days=3". */
static bool set_one(struct arena *mem, struct node *root, const char *set,
		    struct ft_error *err)
{
	static const char price[] = "--price ";

	if (text_begins_with(set, price))
		return node_set_below(mem, root, "cost.price_of.", price,
				      set + strlen(price), err);
	if (text_begins_with(set, "--"))
		return node_set_below(mem, root, "run.", "--", set + 2, err);
	return node_set(mem, root, set, err);
}

#define NEW_SCENARIO "`foretoken new scenario` prints one"

bool scenario_set(struct arena *mem, struct node *root, const char *const *sets,
		  size_t n, struct ft_error *err)
{
	if (root->kind != NODE_MAP)
		return ft_fail(err, &root->mark,
			       "a scenario is a map of model, cluster, "
			       "training ...; " NEW_SCENARIO);
	if (node_get(root, "model_type") && !node_get(root, "cluster"))
		return ft_fail(err, &root->mark,
			       "is a model's config.json; a scenario names it, as "
			       "model: FILE; " NEW_SCENARIO);
	for (size_t i = 0; i < n; i++)
		if (!set_one(mem, root, sets[i], err))
			return false;
	return true;
}

/* "-" is standard input. */
struct node *scenario_read(struct arena *mem, const char *path, const char *const *sets,
			   size_t n, struct ft_error *err)
{
	struct node *root = node_read_file(mem, file_input(path), err);

	return root && scenario_set(mem, root, sets, n, err) ? root : NULL;
}

struct ft_scenario *ft_scenario_load(struct ft_shelf *shelf, const char *path,
				     const char *const *sets, size_t n, bool all,
				     struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct scenario_seen seen;

	struct node *root = scenario_read(shelf_memory(shelf), path, sets, n, err);

	return root ? from(shelf, root, path, all ? SCENARIO_WHOLE : SCENARIO_CLUSTER,
			   &seen, err) :
		      NULL;
}

struct ft_scenario *scenario_load_text(struct ft_shelf *shelf,
				       const struct scenario_text *of,
				       struct scenario_seen *seen, struct ft_error *err)
{
	struct arena *mem = shelf_memory(shelf);
	struct node *root =
		node_read_text(mem, of->name, of->text, strlen(of->text), err);

	return root && scenario_set(mem, root, of->sets, of->n_sets, err) ?
		       from(shelf, root, of->name, SCENARIO_WHOLE, seen, err) :
		       NULL;
}

void ft_scenario_free(struct ft_scenario *scenario)
{
	struct whole *w = (struct whole *)scenario;
	struct arena mem;

	if (!scenario)
		return;
	ft_model_free(w->model);
	ft_plan_free(w->plan);
	ft_prices_free(w->own_prices);
	mem = w->mem;
	arena_release(&mem);
}
