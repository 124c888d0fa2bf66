/* tests/found.h - what searches might have found: plans that are known, figures that are drawn */
#ifndef TESTS_FOUND_H
#define TESTS_FOUND_H

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/reports.h"
#include "tests/check.h"

enum { DRAWS = 40, BEST = 9, PLANS = 8, SIZES = 3 };

static uint64_t seed = 91;

static int below(int n)
{
	return (int)(rnd(&seed) % (uint32_t)n);
}

static double drawn_number(double most)
{
	return most * (1 + below(1000000)) * 1e-6;
}

/* Plans of 16 GPUs with what their row of the table says, before its figures; and what is told of
 * them beside the table, in the order in which it is told. */
static const struct {
	const char *training, *row[11];
	const char *overlap[4], *zero_group, *shard;
	int64_t shares; /* ranks that a replica's state could be shared among */
} known[PLANS] = {
	{ "sharding: zero1, recompute: none, parallel: {tp: 2}",
	  { "2", "1", "1", "8", "1", "1", "1", "1", "zero1", "-", "none" },
	  { "false", "true", "false", "false" },
	  "8",
	  NULL,
	  8 },
	{ "sharding: zero1, zero_group: 4, recompute: full, parallel: {tp: 2}",
	  { "2", "1", "1", "8", "1", "1", "1", "1", "zero1", "-", "full" },
	  { "false", "true", "false", "false" },
	  "4",
	  NULL,
	  8 },
	{ "sharding: zero1, recompute: full, recompute_layers: 5, micro_batch_size: 2, "
	  "parallel: {pp: 2}, schedule: gpipe",
	  { "1", "2", "1", "8", "1", "1", "1", "2", "zero1", "gpipe",
	    "full, 5 layers" },
	  { "false", "true", "false", "false" },
	  "8",
	  NULL,
	  8 },
	{ "sharding: ddp, recompute: selective, recompute_modules: [core_attn], "
	  "parallel: {tp: 4, pp: 2, vpp: 2}, overlap: {dp: false}",
	  { "4", "2", "2", "2", "1", "1", "1", "1", "ddp", "interleaved",
	    "selective [core_attn]" },
	  { "false", "false", "false", "false" },
	  "1",
	  NULL,
	  2 },
	{ "sharding: hsdp, shard: 8, recompute: none, offload_layers: 3",
	  { "1", "1", "1", "16", "1", "1", "1", "1", "hsdp", "-", "none, 3 offloaded" },
	  { "false", "true", "false", "false" },
	  NULL,
	  "8",
	  16 },
	{ "sharding: hsdp, shard: 4, recompute: selective",
	  { "1", "1", "1", "16", "1", "1", "1", "1", "hsdp", "-", "selective" },
	  { "false", "true", "false", "false" },
	  NULL,
	  "4",
	  16 },
	{ "sharding: fsdp, recompute: none, parallel: {cp: 2}",
	  { "1", "1", "1", "8", "2", "1", "1", "1", "fsdp", "-", "none" },
	  { "false", "true", "false", "false" },
	  NULL,
	  "16",
	  16 },
	{ "sharding: zero1, recompute: none, parallel: {tp: 2}, overlap: {tp: true, dp: "
	  "false}",
	  { "2", "1", "1", "8", "1", "1", "1", "1", "zero1", "-", "none" },
	  { "true", "false", "false", "false" },
	  "8",
	  NULL,
	  8 },
};

static struct {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *of[PLANS];
} made;

static inline int load(void **state)
{
	(void)state;
	made.shelf = ft_shelf_new();
	for (int i = 0; i < PLANS; i++) {
		struct ft_error err;
		const char *text = arena_printf(
			&made.mem,
			"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: "
			"{gpu: h200, gpus: 16}, training: {sequence_length: 2048, "
			"global_batch_size: 64, %s%s}}",
			strstr(known[i].training, "micro_batch") ?
				"" :
				"micro_batch_size: 1, ",
			known[i].training);
		struct node *root =
			node_read_text(&made.mem, "s", text, strlen(text), &err);

		ok_or_say(root, err);
		made.of[i] = ft_scenario_from(made.shelf, root, "s", true, &err);
		ok_or_say(made.of[i], err);
	}
	return 0;
}

static inline int drop(void **state)
{
	(void)state;
	for (int i = 0; i < PLANS; i++)
		ft_scenario_free(made.of[i]);
	ft_shelf_free(made.shelf);
	arena_release(&made.mem);
	return 0;
}

struct found {
	struct ft_plans p;
	int which[BEST];
	struct ft_planned best[BEST], front[BEST];
	struct ft_outcome o[BEST];
};

static void draw_outcome(struct ft_outcome *o, bool asked)
{
	memset(o, 0, sizeof(*o));
	o->step_s = drawn_number(below(2) ? 20 : 0.9);
	o->step_high_s = o->step_s * (1 + drawn_number(0.4));
	o->tokens_per_s = drawn_number(1e6);
	o->tokens_per_s_per_gpu = drawn_number(1e5);
	o->mfu = drawn_number(0.7);
	o->cost.usd_per_million_tokens = drawn_number(2);
	o->memory_total_bytes = drawn_number(below(2) ? 140e9 : 9e8);
	o->breakdown = (struct ft_breakdown){ drawn_number(1), drawn_number(2),
					      drawn_number(3), drawn_number(4),
					      drawn_number(5) };
	o->asked.n = asked;
	o->asked.fleet[0].days[1] = drawn_number(300);
	o->asked.fleet[0].usd[1] = drawn_number(1e8);
	o->asked.fleet[0].none = below(3) ? NULL : "too large";
}

static void draw_counts(struct ft_plans *p)
{
	p->combinations = drawn_number(1e6);
	p->wall_s = drawn_number(10);
	p->considered = 1 + (size_t)below(30000);
	p->bounded = below(2) ? p->considered : (size_t)below((int)p->considered);
	p->refused = below(2) ? 0 : 1 + (size_t)below(9000);
	p->feasible = (size_t)below(20000);
	p->over_gpu = below(2) ? 0 : 1 + (size_t)below(9000);
	p->over_node = below(2) ? 0 : 1 + (size_t)below(9000);
	p->simulated = (size_t)below(500);
	p->known = below(2) ? 0 : 1 + (size_t)below(50);
	p->n_left_out = (size_t)below(3);
	p->left_out[0] = "cp";
	p->left_out[1] = "hsdp";
	p->interrupted = below(3) == 0;
	p->open = p->interrupted && below(2) ? 1 + (size_t)below(5000) : 0;
	p->open_better_frac = drawn_number(0.3);
}

static inline void draw_found(struct found *f, bool asked)
{
	memset(&f->p, 0, sizeof(f->p));
	draw_counts(&f->p);
	f->p.label = "one";
	f->p.n = (size_t)below(BEST + 1);
	f->p.best = f->best;
	f->p.front = f->front;
	for (size_t i = 0; i < f->p.n; i++) {
		f->which[i] = below(PLANS);
		draw_outcome(&f->o[i], asked);
		f->best[i] = (struct ft_planned){
			.scenario = made.of[f->which[i]],
			.outcome = &f->o[i],
			.equal = !i || below(2),
		};
		snprintf(f->best[i].why, FT_WHY, "%d reasons", below(1000));
	}
	f->p.n_front = f->p.n ? 1 + (size_t)below((int)f->p.n) : 0;
	for (size_t i = 0; i < f->p.n_front; i++)
		f->front[i] = f->best[f->p.n - 1 - i];
	f->p.simplest = f->p.n ? (size_t)below((int)f->p.n) : 0;
	f->p.n_ways = f->p.n ? 0 : (size_t)below(4);
	for (size_t i = 0; i < f->p.n_ways; i++) {
		snprintf(f->p.way[i].text, FT_WHY, "change %d", below(100));
		f->p.way[i].memory_frac = drawn_number(1);
		f->p.way[i].of_node = below(2);
	}
}

#endif
