/*
 * tests/test_space.c - what a search considers: every legal plan, once
 *
 * The values that docs/plan.md tells are combined in the obvious way, all with all; what the rules
 * of plans let through is written down by what it does. The candidates of a search must be that.
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_plan.h"
#include "study/shelf.h"
#include "study/space.h"
#include "tests/check.h"

#define TRAINING "training: {sequence_length: 2048, global_batch_size: 16, "

/* A scenario that leaves some keys open, and what is searched though it is stated. */
static const struct open {
	const char *yaml, *free_key[4];
	int gather; /* overlap.param_gather; -1: as overlap.dp */
} opens[] = {
	{ "{model: {name: llama3-8b, num_hidden_layers: 6}, cluster: {gpu: h200, gpus: "
	  "4}, " TRAINING "}}",
	  { NULL },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 7}, cluster: {gpu: h200, gpus: "
	  "16}, stack: nemo-24, " TRAINING "parallel: {tp: 1}, recompute: none}}",
	  { NULL },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 13}, cluster: {gpu: h200, gpus: "
	  "16}, stack: nemo-24, " TRAINING "parallel: {tp: 4, cp: 1}, recompute: full, "
	  "micro_batch_size: 1, overlap: {param_gather: false}}}",
	  { "overlap.dp", "overlap.tp", "training.overlap.pp" },
	  0 },
	{ "{model: {name: mixtral-8x7b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, stack: torchtitan-2024, " TRAINING
	  "parallel: {tp: 2, cp: 1, vpp: 1}, micro_batch_size: 2}}",
	  { "overlap.ep" },
	  -1 },
	{ "{model: {name: deepseek-v2, num_hidden_layers: 3}, cluster: {gpu: h100-sxm, "
	  "gpus: 8}, " TRAINING "micro_batch_size: 1, parallel: {tp: 1, cp: 1, ep: 4}, "
	  "schedule: gpipe, sharding: hsdp}}",
	  { "shard" },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, stack: torch-2.11-eager, training: {sequence_length: 4096, "
	  "global_batch_size: 24, micro_batch_size: 1, recompute: selective}}",
	  { "sharding", "zero_group" },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
	  "gpus: 4}, training: {sequence_length: 2048, global_batch_size: 24, "
	  "micro_batch_size: 12, recompute: full, recompute_layers: 3}}",
	  { NULL },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, "
	  "gpus: 8}, " TRAINING "micro_batch_size: 2, parallel: {tp: 1, cp: 1}, "
	  "recompute: none, sharding: ddp}}",
	  { "offload_layers", "overlap.dp" },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, stack: llm-foundry-2023, " TRAINING "}}",
	  { NULL },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: a100-80g, "
	  "gpus: 8}, stack: generic-2022, " TRAINING
	  "micro_batch_size: 1, parallel: {tp: 1, cp: 1}, recompute: none}}",
	  { NULL },
	  -1 },
	{ "{model: {name: mixtral-8x7b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
	  "gpus: 8}, stack: nanotron-2025, " TRAINING
	  "micro_batch_size: 1, recompute: none}}",
	  { "sharding" },
	  -1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, " TRAINING "micro_batch_size: 1, parallel: {tp: 2, cp: 1}, "
	  "recompute: selective, recompute_modules: [mlp], overlap: {tp: false, dp: "
	  "true, pp: false, param_gather: false}}}",
	  { NULL },
	  0 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, "
	  "gpus: 8}, " TRAINING "micro_batch_size: 1, parallel: {tp: 1, cp: 1}, "
	  "sharding: zero1, offload_layers: 2, overlap: {dp: false}}}",
	  { NULL },
	  -1 },
	{ "{model: {name: mixtral-8x7b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, stack: nemo-24, " TRAINING
	  "micro_batch_size: 1, parallel: {pp: 1, "
	  "cp: 1}, recompute: none}}",
	  { NULL },
	  -1 },
	{ "{model: {name: mixtral-8x7b, num_hidden_layers: 4}, cluster: {gpu: gb200, "
	  "gpus: 16}, " TRAINING
	  "micro_batch_size: 1, parallel: {tp: 1, pp: 1, cp: 1}, "
	  "recompute: none, sharding: zero1}}",
	  { NULL },
	  -1 },
};

/* What frameworks lack, by the sources that their stacks name. */
static const struct lack {
	const char *stack;
	enum axis size[6];
	enum ft_sharding sharding[4];
	int sizes, shardings;
} lacks[] = {
	{ "llm-foundry-2023",
	  { AXIS_TP, AXIS_PP, AXIS_CP, AXIS_EP, AXIS_ETP, AXIS_VPP },
	  { FT_ZERO1, FT_ALONE },
	  6,
	  2 },
	{ "torchtitan-2024",
	  { AXIS_EP, AXIS_ETP },
	  { FT_ZERO1, FT_ZERO2, FT_ALONE },
	  2,
	  3 },
	{ "nanotron-2025",
	  { AXIS_VPP, AXIS_ETP },
	  { FT_ZERO2, FT_FSDP, FT_HSDP, FT_ALONE },
	  2,
	  4 },
};

struct plans {
	struct arena mem;
	const char **of;
	size_t n, cap;
};

struct values {
	int64_t of[200];
	size_t n;
};

/* All axes' values, and the plan that is being put together. */
struct all {
	const struct space *sp;
	struct values axis[AXES];
	int64_t at[AXES];
	bool stated[AXES];
	struct plans *to;
};

/* What a plan does. Two that do the same have the same words. */
static const char *words_of(struct arena *mem, const struct ft_plan *p,
			    const struct ft_stack *k)
{
	bool torch = k->layout.tensor_parallel == FT_TP_DTENSOR ||
		     k->layout.fsdp_copy_in_bytes > 0;
	bool replicas = p->dp * p->cp > 1;
	bool sharded = p->sharding == FT_FSDP || p->sharding == FT_HSDP;
	int schedule = p->pp > 1 ? (int)p->schedule : -1;
	bool differs = p->sharding == FT_ALONE ?
			       torch :
			       k->layout.autocast && p->sharding == FT_DDP &&
				       !ft_stack_runs(k, "none");
	int sharding = replicas || differs ? (int)p->sharding :
		       sharded		   ? (int)FT_FSDP :
					     -1;

	return arena_printf(
		mem,
		"tp%d pp%d cp%d ep%d etp%d mb%d vpp%d schedule%d sharding%d shard%d "
		"recompute%d modules%x layers%d offload%d overlap%d%d%d%d",
		(int)p->tp, (int)p->pp, (int)p->cp, (int)p->ep, (int)p->etp,
		(int)p->micro_batch, (int)p->vpp, schedule, sharding,
		replicas ? (int)p->shard : 1, (int)p->recompute,
		p->recompute == FT_RECOMPUTE_SELECTIVE ? p->recompute_modules : 0,
		(int)p->recompute_layers, (int)p->offload_layers,
		p->tp > 1 && p->overlap_tp, replicas && !sharded && p->overlap_dp,
		p->pp > 1 && p->overlap_pp, p->ep > 1 && p->overlap_ep);
}

static void put(struct plans *to, const char *words)
{
	if (to->n == to->cap)
		to->of = realloc(to->of, (to->cap += 4096) * sizeof(*to->of));
	to->of[to->n++] = words;
}

static void add(struct values *v, int64_t value)
{
	v->of[v->n++] = value;
}

/* ---- the values of docs/plan.md ---------------------------------------------------------- */

static void add_sizes(struct all *a, const struct ft_scenario *s)
{
	const struct ft_layer *last = &s->model->layer[s->model->n_layers - 1];

	for (int64_t i = 1; i <= s->cluster->ranks || i <= 4096; i++) {
		bool divides = s->cluster->ranks % i == 0;

		if (divides && i <= s->cluster->domain_ranks)
			add(&a->axis[AXIS_TP], i);
		if (divides && i <= s->model->n_layers + 2)
			add(&a->axis[AXIS_PP], i);
		if (divides && (i == 1 || s->plan->sequence / i >= 1024))
			add(&a->axis[AXIS_CP], i);
		if (last->experts ? last->experts % i == 0 && i <= s->cluster->ranks :
				    i == 1)
			add(&a->axis[AXIS_EP], i);
		if (last->experts ? last->expert_intermediate % i == 0 && i <= 8 :
				    i == 1)
			add(&a->axis[AXIS_ETP], i);
		if (i <= 16)
			add(&a->axis[AXIS_MICRO_BATCH], i);
		if (i <= s->model->n_layers)
			add(&a->axis[AXIS_VPP], i);
	}
}

static void add_words(struct all *a, const struct ft_scenario *s, bool all_shardings)
{
	const struct ft_stack *k = s->stack;
	bool foundry = !strcmp(k->name, "llm-foundry-2023");
	bool torch = !strncmp(k->name, "torch", 5) || foundry;
	bool named = strncmp(k->name, "generic", 7);
	bool routed = s->model->layer[s->model->n_layers - 1].experts > 0;
	bool compressed = s->model->layer[0].compressed; /* no core runs again */
	unsigned up = (s->model->layer[0].kv_lora_rank ? FT_MODULE_MLA_UP : 0) |
		      (compressed ? FT_MODULE_MLA_UP | FT_MODULE_STREAMS : 0);
	unsigned norm = FT_MODULE_NORM, core = FT_MODULE_CORE_ATTENTION;

	add(&a->axis[AXIS_SCHEDULE], FT_1F1B);
	add(&a->axis[AXIS_SCHEDULE], FT_GPIPE);
	if (k->layout.split_backward) {
		add(&a->axis[AXIS_SCHEDULE], FT_ZERO_BUBBLE);
		add(&a->axis[AXIS_SCHEDULE], FT_ZBV);
	}
	if (k->layout.split_backward && k->layout.dual_pipe)
		add(&a->axis[AXIS_SCHEDULE], FT_DUALPIPEV);
	all_shardings |= !named || foundry; /* its stack lists zero2, too */
	for (int i = FT_ALONE; i <= FT_HSDP; i++)
		if (all_shardings || i == FT_DDP || (torch && i == FT_ALONE) ||
		    i == (int)s->plan->sharding ||
		    (torch ? i == FT_FSDP || i == FT_HSDP : i == FT_ZERO1))
			add(&a->axis[AXIS_SHARDING], i);
	for (int i = FT_RECOMPUTE_NONE; i <= FT_RECOMPUTE_FULL; i++)
		add(&a->axis[AXIS_RECOMPUTE], i);
	add(&a->axis[AXIS_MODULES], s->plan->recompute_modules);
	add(&a->axis[AXIS_MODULES], routed ? FT_MODULE_ACTIVATION : norm);
	add(&a->axis[AXIS_MODULES],
	    routed ? FT_MODULE_ACTIVATION | norm | up : core | norm);
	add(&a->axis[AXIS_MODULES], compressed ? FT_MODULE_ACTIVATION | norm | up :
				    routed ? core | FT_MODULE_ACTIVATION | norm | up :
					     FT_MODULE_MLP);
	if (routed)
		add(&a->axis[AXIS_MODULES], FT_MODULE_EXPERTS | norm | up);
	for (int i = 1; i <= 4; i++) {
		int64_t n = s->model->n_layers;
		int64_t some = s->stack->runs.recompute_by_stride ? n / i : n * i / 4;

		if (some > 0)
			add(&a->axis[AXIS_LAYERS], some);
	}
}

/* What goes without saying, and all when it is freed. */
static void add_others(struct all *a, const struct ft_scenario *s, const bool *freed)
{
	const bool own[4] = { s->plan->overlap_tp, s->plan->overlap_dp,
			      s->plan->overlap_pp, s->plan->overlap_ep };

	for (int i = 0; i < 4; i++) {
		add(&a->axis[AXIS_OVERLAP_TP + i], own[i]);
		if (freed[AXIS_OVERLAP_TP + i])
			add(&a->axis[AXIS_OVERLAP_TP + i], !own[i]);
	}
	for (int i = 0; i <= 4; i++)
		if (!i || freed[AXIS_OFFLOAD])
			add(&a->axis[AXIS_OFFLOAD], s->model->n_layers * i / 4);
	add(&a->axis[AXIS_SHARD], 0);
	add(&a->axis[AXIS_ZERO_GROUP], 0);
	add(&a->axis[AXIS_ZERO_GROUP], s->cluster->ranks_per_node);
	for (int64_t i = 1; i <= s->cluster->ranks; i++) {
		if (s->cluster->ranks % i == 0 && freed[AXIS_SHARD])
			add(&a->axis[AXIS_SHARD], i);
		if (s->cluster->ranks % i == 0 && freed[AXIS_ZERO_GROUP])
			add(&a->axis[AXIS_ZERO_GROUP], i);
	}
}

static int64_t stated(const struct ft_plan *p, int axis, const struct node *n)
{
	return axis == AXIS_SCHEDULE   ? (int64_t)p->schedule :
	       axis == AXIS_SHARDING   ? (int64_t)p->sharding :
	       axis == AXIS_RECOMPUTE  ? (int64_t)p->recompute :
	       axis == AXIS_MODULES    ? (int64_t)p->recompute_modules :
	       axis >= AXIS_OVERLAP_TP ? !strcmp(n->text, "true") :
					 atoll(n->text);
}

static void leave_out(struct all *a, const char *stack)
{
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		const struct lack *l = &lacks[i];
		struct values *v = &a->axis[AXIS_SHARDING], kept = { .n = 0 };

		if (strcmp(l->stack, stack) != 0)
			continue;
		for (int k = 0; k < l->sizes; k++)
			a->axis[l->size[k]] = (struct values){ .of = { 1 }, .n = 1 };
		for (size_t k = 0; k < v->n; k++) {
			bool has = true;

			for (int x = 0; x < l->shardings; x++)
				has &= v->of[k] != (int64_t)l->sharding[x];
			if (has)
				add(&kept, v->of[k]);
		}
		*v = kept;
	}
}

static void fill(struct all *a, const struct open *o, const struct ft_scenario *s)
{
	bool freed[AXES] = { false };

	for (int i = 0; i < AXES; i++)
		for (int k = 0; k < 4 && o->free_key[k]; k++) {
			const char *dot = strstr(space_key((size_t)i), o->free_key[k]);

			freed[i] |= dot && !strcmp(dot, o->free_key[k]);
		}
	add_sizes(a, s);
	add_words(a, s, freed[AXIS_SHARDING]);
	add_others(a, s, freed);
	leave_out(a, s->stack->name);
	for (int i = 0; i < AXES; i++) {
		const struct node *n = node_path(s->given, space_key((size_t)i));

		a->stated[i] = n && !freed[i];
		if (!a->stated[i])
			continue;
		a->axis[i].n = 0;
		add(&a->axis[i], stated(s->plan, i, n));
	}
}

/* ---- all with all --------------------------------------------------------------------- */

static bool equal_chunks(int64_t layers, int64_t chunks)
{
	return chunks <= layers + 2 &&
	       (layers % chunks == 0 || (layers + 2) % chunks == 0);
}

static bool chunks_are_tried(const struct all *a)
{
	int64_t layers = a->sp->scenario->model->n_layers;
	int64_t pp = a->at[AXIS_PP], vpp = a->at[AXIS_VPP];

	if (a->stated[AXIS_VPP] || vpp == 1 || equal_chunks(layers, pp * vpp))
		return true;
	for (int64_t v = 2; v <= layers; v++)
		if (equal_chunks(layers, pp * v))
			return false;
	return vpp <= 4 && pp * vpp <= layers + 2;
}

static void one_plan(struct all *a)
{
	const struct ft_scenario *s = a->sp->scenario;
	struct ft_plan p = *s->plan;
	int64_t layers[100];

	p.tp = a->at[AXIS_TP], p.pp = a->at[AXIS_PP], p.cp = a->at[AXIS_CP];
	p.ep = a->at[AXIS_EP], p.etp = a->at[AXIS_ETP], p.vpp = a->at[AXIS_VPP];
	p.micro_batch = a->at[AXIS_MICRO_BATCH];
	p.schedule = (enum ft_schedule)a->at[AXIS_SCHEDULE];
	p.sharding = (enum ft_sharding)a->at[AXIS_SHARDING];
	p.zero_group = a->at[AXIS_ZERO_GROUP], p.shard = a->at[AXIS_SHARD];
	p.recompute = (enum ft_recompute)a->at[AXIS_RECOMPUTE];
	p.recompute_modules = (unsigned)a->at[AXIS_MODULES];
	p.recompute_layers = a->at[AXIS_LAYERS];
	p.offload_layers = a->at[AXIS_OFFLOAD];
	p.overlap_tp = a->at[AXIS_OVERLAP_TP], p.overlap_dp = a->at[AXIS_OVERLAP_DP];
	p.overlap_pp = a->at[AXIS_OVERLAP_PP], p.overlap_ep = a->at[AXIS_OVERLAP_EP];
	p.sequence_parallel = true;
	if (!ft_plan_vary(&p, s->model, &a->sp->context, layers))
		return;
	if (p.sharding == FT_HSDP && p.shard == p.dp * p.cp &&
	    !a->stated[AXIS_SHARDING]) /* is fsdp */
		return;
	put(a->to, words_of(&a->to->mem, &p, s->stack));
}

static void combine(struct all *a, int axis)
{
	if (axis == AXES) {
		one_plan(a);
		return;
	}
	for (size_t i = 0; i < a->axis[axis].n; i++) {
		a->at[axis] = a->axis[axis].of[i];
		if (axis == AXIS_CP &&
		    a->sp->context.ranks %
			    (a->at[AXIS_TP] * a->at[AXIS_PP] * a->at[AXIS_CP]))
			continue;
		if (axis == AXIS_VPP &&
		    (a->at[AXIS_PP] == 1 ? a->at[AXIS_VPP] > 1 : !chunks_are_tried(a)))
			continue;
		combine(a, axis + 1);
	}
}

static int by_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_plans(struct plans *p)
{
	free(p->of);
	arena_release(&p->mem);
}

static void candidates(struct plans *to, const struct space *sp, int gather)
{
	for (size_t i = 0; i < sp->n; i++) {
		int64_t layers[100];
		struct ft_plan p;

		assert_true(space_plan(sp, &sp->candidate[i], &p, layers));
		assert_int_equal(p.overlap_gather, gather < 0 ? p.overlap_dp : gather);
		put(to, words_of(&to->mem, &p, sp->scenario->stack));
	}
	qsort(to->of, to->n, sizeof(*to->of), by_words);
	for (size_t i = 1; i < to->n; i++)
		if (!strcmp(to->of[i - 1], to->of[i]))
			fail_msg("twice: %s", to->of[i]);
}

static void hold(const struct open *o)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "s", o->yaml, strlen(o->yaml), &err);
	struct ft_scenario *s = scenario_open(shelf, root, "s", &err);
	struct plans found = { .n = 0 }, want = { .n = 0 };
	struct all all = { .to = &want };
	struct space sp;
	size_t n_free = 0, k = 0;

	ok_or_say(s, err);
	while (n_free < 4 && o->free_key[n_free])
		n_free++;
	ok_or_say(space_open(&sp, s, o->free_key, n_free, &err), err);
	candidates(&found, &sp, o->gather);
	all.sp = &sp;
	fill(&all, o, s);
	combine(&all, 0);
	assert_true(want.n > 0);
	qsort(want.of, want.n, sizeof(*want.of), by_words);
	for (size_t i = 0; i < want.n; i++) {
		if (i && !strcmp(want.of[i - 1], want.of[i]))
			continue;
		if (k >= found.n || strcmp(found.of[k], want.of[i]) > 0)
			fail_msg("is not considered: %s of %s", want.of[i], o->yaml);
		if (strcmp(found.of[k], want.of[i]) < 0)
			fail_msg("is no plan: %s of %s", found.of[k], o->yaml);
		k++;
	}
	assert_int_equal(k, found.n);
	print_message("%zu plans\n", k);
	close_plans(&found);
	close_plans(&want);
	space_close(&sp);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

static void every_legal_plan_is_considered_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(opens) / sizeof(*opens); i++)
		hold(&opens[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_legal_plan_is_considered_once),
	};

	return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
