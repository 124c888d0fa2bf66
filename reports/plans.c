/* reports/plans.c - the plans that a search found, as tables, JSON and a plot */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/gnuplot.h"
#include "base/node.h"
#include "base/plain.h"
#include "reports/evidence.h"
#include "reports/json.h"
#include "reports/money.h"
#include "reports/plot.h"
#include "reports/show.h"
#include "reports/table.h"

static const char *recompute_text(const struct ft_planned *p,
				  char text[FT_MODULES_TEXT])
{
	const struct ft_plan *plan = p->scenario->plan;
	char set[FT_MODULES_TEXT];
	size_t n;

	if (plan->recompute == FT_RECOMPUTE_FULL &&
	    plan->recompute_layers < p->scenario->model->n_layers)
		snprintf(text, FT_MODULES_TEXT, "full, %" PRId64 " layers",
			 plan->recompute_layers);
	else if (plan->recompute == FT_RECOMPUTE_SELECTIVE && plan->recompute_modules)
		snprintf(text, FT_MODULES_TEXT, "selective %.140s",
			 ft_modules_text(plan->recompute_modules, set));
	else
		snprintf(text, FT_MODULES_TEXT, "%s",
			 ft_recompute_name(plan->recompute));
	n = strlen(text);
	if (plan->offload_layers)
		snprintf(text + n, FT_MODULES_TEXT - n, ", %" PRId64 " offloaded",
			 plan->offload_layers);
	if (plan->offload_state != FT_OFFLOAD_NONE)
		snprintf(text + n, FT_MODULES_TEXT - n,
			 ", %s on the host, threads: %" PRId64,
			 plan->offload_state == FT_OFFLOAD_ALL ? "state" : "optimizer",
			 plan->offload_threads);
	return text;
}

static void put_row(struct table *t, const char *rank, const struct ft_planned *p)
{
	const struct ft_plan *plan = p->scenario->plan;
	const struct ft_outcome *o = p->outcome;
	char text[FT_MODULES_TEXT], shown[SHOWN];

	table_row(t);
	table_put(t, "%s", rank);
	table_put(t, "%" PRId64, plan->tp);
	table_put(t, "%" PRId64, plan->pp);
	table_put(t, "%" PRId64, plan->vpp);
	table_put(t, "%" PRId64, plan->dp);
	table_put(t, "%" PRId64, plan->cp);
	table_put(t, "%" PRId64, plan->ep);
	table_put(t, "%" PRId64, plan->etp);
	table_put(t, "%" PRId64, plan->micro_batch);
	table_put(t, "%s", ft_sharding_name(plan->sharding));
	table_put(t, "%s", plan->pp > 1 ? ft_schedule_name(plan->schedule) : "-");
	table_put(t, "%s", recompute_text(p, text));
	table_put(t, "%s", shown_text(FT_SHOW_S, o->step_s, shown));
	table_put(t, "%.1f", o->tokens_per_s_per_gpu);
	table_put(t, "%.1f %%", 100 * o->mfu);
	table_put(t, "%.4f", o->cost.usd_per_million_tokens);
	table_put(t, "%s", shown_text(FT_SHOW_BYTES, o->memory_total_bytes, shown));
}

#define COLUMNS(first) \
	first, ">tp", ">pp", ">vpp", ">dp", ">cp", ">ep", ">etp", ">micro", \
		"sharding", "schedule", "recompute", ">step", ">tokens/s/GPU", ">MFU", \
		">USD/Mtokens", ">memory"

/* ---- one scenario -------------------------------------------------------------------- */

/* What a search that was stopped has not ruled out. */
static void put_open(FILE *out, const struct ft_plans *p)
{
	char shown[SHOWN];
	struct shown as = shown_as(FT_SHOW_COUNT, 0);

	fprintf(out, "; stopped before the end: %s plans are not ruled out",
		shown_number(&as, (double)p->open, shown));
	if (p->n && p->open)
		fprintf(out, ", better than the best by %.1f %% at most",
			100 * p->open_better_frac);
}

static void put_counts(FILE *out, const struct ft_plans *p)
{
	char shown[SHOWN];
	struct shown as = shown_as(FT_SHOW_COUNT, 0);

	fprintf(out, "%s legal plans", shown_number(&as, (double)p->considered, shown));
	if (p->bounded < p->considered)
		fprintf(out, ", %s of them looked at closely",
			shown_number(&as, (double)p->bounded, shown));
	if (p->refused)
		fprintf(out, ", %s refused by the stack or the model",
			shown_number(&as, (double)p->refused, shown));
	fprintf(out, ", %s fit", shown_number(&as, (double)p->feasible, shown));
	if (p->n && p->over_node)
		fprintf(out, ", %s too large for a node's memory",
			shown_number(&as, (double)p->over_node, shown));
	fprintf(out, ", %zu simulated", p->simulated);
	if (p->known)
		fprintf(out, ", %zu known from the database", p->known);
	if (p->n && !p->interrupted)
		fputs("; the bounds of all others are above the plans shown", out);
	if (p->interrupted)
		put_open(out, p);
	fputs(".\n", out);
}

static void put_left_out(FILE *out, const struct ft_plans *p)
{
	for (size_t i = 0; i < p->n_left_out; i++)
		fprintf(out, "%s%s",
			i ? ", " : "Not searched, as the stack does not run them: ",
			p->left_out[i]);
	if (p->n_left_out)
		fputs(".\n", out);
}

static void put_flatness(FILE *out, const struct ft_plans *p)
{
	const struct ft_outcome *b = p->best[0].outcome;
	size_t equal = 0;

	if (p->n < 2)
		return;
	for (size_t i = 0; i < p->n; i++)
		equal += p->best[i].equal;
	fprintf(out,
		"%zu of these %zu are within the range of the best's prediction (up to "
		"%+.0f %%), so that no one can say which is faster",
		equal, p->n, 100 * (b->step_high_s / b->step_s - 1));
	if (p->simplest)
		fprintf(out, "; the simplest of them is number %zu", p->simplest + 1);
	else
		fputs("; the first is the simplest of them, too", out);
	fputs(".\n", out);
}

/* Which memory is too small. */
static void put_unfit(FILE *out, const struct ft_plans *p)
{
	struct shown as = shown_as(FT_SHOW_COUNT, 0);
	char gpu[SHOWN], node[SHOWN];

	if (p->over_gpu && p->over_node)
		fprintf(out,
			"No plan fits: %s are too large for a GPU's memory, %s for a "
			"node's (its host_memory_size).\n",
			shown_number(&as, (double)p->over_gpu, gpu),
			shown_number(&as, (double)p->over_node, node));
	else if (p->over_node)
		fputs("No plan fits in a node's memory (its host_memory_size).\n", out);
	else
		fputs("No plan fits in a GPU's memory.\n", out);
}

static void put_ways(FILE *out, const struct ft_plans *p)
{
	if (p->considered)
		put_unfit(out, p);
	for (size_t i = 0; i < p->n_ways; i++)
		fprintf(out, "%s %s (a plan takes %.0f %% of a %s memory)\n",
			i ? "         or" : "One fits with", p->way[i].text,
			100 * p->way[i].memory_frac,
			p->way[i].of_node ? "node's" : "GPU's");
	if (!p->n_ways)
		fputs("None fits with freed keys, half the optimizer or eight times the "
		      "GPUs either.\n",
		      out);
}

/* zero_group is of ZeRO, shard of sharded parameters: which says nothing here. */
static const char *not_of(const struct ft_plan *p)
{
	return p->sharding == FT_HSDP || p->sharding == FT_FSDP ? "zero_group" :
								  "shard";
}

/* A plan as it is, but with the groups that go without saying: all that share a state, or those of a node. */
static struct ft_plan usual_groups(const struct ft_scenario *s)
{
	struct ft_plan p = *s->plan;

	if (p.sharding == FT_ZERO1 || p.sharding == FT_ZERO2)
		p.zero_group = p.dp * p.cp;
	p.shard = p.sharding == FT_HSDP ?
			  ft_plan_near_shard(&p, s->cluster->ranks_per_node) :
			  p.shard;
	return p;
}

/* What the table has no column for, where it is not as in the first plan, or as goes without saying. */
static void put_unseen(FILE *out, const struct ft_scenario *s,
		       const struct ft_plan *first, const char *lead, const char *end)
{
	const struct ft_plan *p = s->plan, usual = usual_groups(s);
	bool alike = p->sharding == first->sharding &&
		     p->dp * p->cp == first->dp * first->cp;
	const struct {
		const char *key;
		int64_t is, was;
	} unseen[] = {
		{ "overlap.tp", p->overlap_tp, first->overlap_tp },
		{ "overlap.dp", p->overlap_dp, first->overlap_dp },
		{ "overlap.pp", p->overlap_pp, first->overlap_pp },
		{ "overlap.ep", p->overlap_ep, first->overlap_ep },
		{ "zero_group", p->zero_group,
		  alike ? first->zero_group : usual.zero_group },
		{ "shard", p->shard, alike ? first->shard : usual.shard },
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++) {
		if (unseen[i].is == unseen[i].was || !strcmp(unseen[i].key, not_of(p)))
			continue;
		fprintf(out, "%s%s ", n++ ? ", " : lead, unseen[i].key);
		if (i < 4)
			fputs(unseen[i].is ? "true" : "false", out);
		else
			fprintf(out, "%" PRId64, unseen[i].is);
	}
	fprintf(out, "%s\n", n ? end : "");
}

/* What the run that is asked for takes under a plan, and whether that is more than it may. */
static void put_run(FILE *out, const struct ft_planned *x)
{
	const struct ft_fleet *f = &x->outcome->asked.fleet[0];
	const struct ft_asked *q = &x->scenario->asked;
	char shown[SHOWN];

	if (!x->outcome->asked.n || f->none)
		return;
	fprintf(out, "The run takes %.1f days and %s under the first", f->days[1],
		shown_text(FT_SHOW_USD, f->usd[1], shown));
	if (q->days > 0 && f->days[1] > q->days)
		fprintf(out, ", longer than the %.6g days that it may take", q->days);
	if (q->budget_usd > 0 && f->usd[1] > q->budget_usd)
		fprintf(out, ", more than the %s that it may cost",
			shown_text(FT_SHOW_USD, q->budget_usd, shown));
	if (f->beyond[FT_LIMIT_MEGAWATTS])
		fprintf(out, ", and %.3g MW, more than the %.6g that it may draw",
			f->megawatts, q->megawatts);
	if (f->beyond[FT_LIMIT_HORIZON])
		fputs(", beyond the horizon of its dollars", out);
	fputs(".\n", out);
}

/* That the first fills the GPU, as simulate says it of such a plan. */
static void put_memory(FILE *out, const struct ft_planned *x)
{
	char text[SENTENCE];
	const char *said = evidence_memory(x->scenario, x->outcome, text);

	if (said[0])
		fprintf(out, "  %3d  %s\n", 1, said);
}

static void put_plans(FILE *out, const struct ft_plans *p)
{
	struct table t;
	struct ft_plan usual;
	char rank[24];

	put_counts(out, p);
	put_left_out(out, p);
	putc('\n', out);
	if (!p->n) {
		if (!p->interrupted)
			put_ways(out, p);
		return;
	}
	t = TABLE_OPEN(out, COLUMNS(">"));
	for (size_t i = 0; i < p->n; i++) {
		snprintf(rank, sizeof(rank), "%zu", i + 1);
		put_row(&t, rank, &p->best[i]);
	}
	table_close(&t);
	usual = usual_groups(p->best[0].scenario);
	fprintf(out, "\nWhy the first: %s", p->best[0].why);
	put_unseen(out, p->best[0].scenario, &usual, " It has ", ".");
	put_memory(out, &p->best[0]);
	for (size_t i = 1; i < p->n; i++) {
		fprintf(out, "  %3zu  %s", i + 1, p->best[i].why);
		put_unseen(out, p->best[i].scenario, p->best[0].scenario->plan, "; ",
			   "");
	}
	put_flatness(out, p);
	put_run(out, &p->best[0]);
}

/* ---- several --------------------------------------------------------------------------- */

void ft_report_plans(FILE *out, const struct ft_planning *g)
{
	PLAIN_NUMBERS;
	struct table t;

	for (size_t i = 0; i < g->n; i++) {
		if (g->n > 1)
			fprintf(out, "%s%s: ", i ? "\n" : "", g->plans[i]->label);
		put_plans(out, g->plans[i]);
	}
	if (g->n < 2)
		return;
	fputs("\nEach at its best:\n\n", out);
	t = TABLE_OPEN(out, COLUMNS("scenario"));
	for (size_t i = 0; i < g->n; i++)
		if (g->plans[i]->n)
			put_row(&t, g->plans[i]->label, &g->plans[i]->best[0]);
	table_close(&t);
	if (g->run && g->run->n) {
		fputs("\nWhat `run` asks, of these sizes at their best:\n\n", out);
		money_fleets(out, g->run);
	}
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *plan_json(const struct ft_planned *p)
{
	json_t *o = json_object(), *memory = json_object();
	const struct ft_outcome *x = p->outcome;

	json_object_set_new(o, "training",
			    json_of_node(node_get(p->scenario->resolved, "training")));
	json_put_int(o, "dp", p->scenario->plan->dp);
	json_put(o, "step_s", x->step_s);
	json_put(o, "tokens_per_s", x->tokens_per_s);
	json_put(o, "tokens_per_s_per_gpu", x->tokens_per_s_per_gpu);
	json_put(o, "mfu", x->mfu);
	json_put(o, "usd_per_million_tokens", x->cost.usd_per_million_tokens);
	json_put(memory, "total", x->memory_total_bytes);
	json_object_set_new(o, "memory_bytes_per_gpu", memory);
	json_object_set_new(o, "breakdown_s", json_of_breakdown(&x->breakdown));
	if (x->asked.n && !x->asked.fleet[0].none) {
		json_put(o, "days", x->asked.fleet[0].days[1]);
		json_put(o, "usd", x->asked.fleet[0].usd[1]);
	}
	json_put_bool(o, "equal", p->equal);
	json_put_text(o, "why", p->why);
	return o;
}

static json_t *plans_json(const struct ft_plans *p)
{
	json_t *o = json_object(), *best = json_array(), *front = json_array(),
	       *ways = json_array(), *left = json_array();

	json_put_text(o, "name", p->label);
	json_put(o, "combinations", p->combinations);
	json_put_int(o, "considered", (int64_t)p->considered);
	json_put_int(o, "bounded", (int64_t)p->bounded);
	json_put_int(o, "refused", (int64_t)p->refused);
	json_put_int(o, "feasible", (int64_t)p->feasible);
	json_put_int(o, "over_gpu_memory", (int64_t)p->over_gpu);
	json_put_int(o, "over_node_memory", (int64_t)p->over_node);
	json_put_int(o, "simulated", (int64_t)p->simulated);
	json_put_int(o, "known", (int64_t)p->known);
	json_put(o, "wall_s", p->wall_s);
	for (size_t i = 0; i < p->n_left_out; i++)
		json_array_append_new(left, json_string(p->left_out[i]));
	json_object_set_new(o, "left_out", left);
	json_put_bool(o, "interrupted", p->interrupted);
	json_put_int(o, "open", (int64_t)p->open);
	if (p->n && p->open)
		json_put(o, "open_better_frac", p->open_better_frac);
	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(best, plan_json(&p->best[i]));
	json_object_set_new(o, "best", best);
	if (p->n)
		json_put_int(o, "simplest", (int64_t)p->simplest);
	for (size_t i = 0; i < p->n_front; i++)
		json_array_append_new(front, plan_json(&p->front[i]));
	json_object_set_new(o, "front", front);
	for (size_t i = 0; i < p->n_ways; i++) {
		json_t *way = json_object();

		json_put_text(way, "change", p->way[i].text);
		json_put(way, "memory_frac", p->way[i].memory_frac);
		json_put_text(way, "memory", p->way[i].of_node ? "node" : "gpu");
		json_array_append_new(ways, way);
	}
	json_object_set_new(o, "ways_out", ways);
	return o;
}

void ft_report_plans_json(FILE *out, const struct ft_planning *g)
{
	PLAIN_NUMBERS;
	json_t *all = json_array(), *o;

	if (g->n == 1) {
		json_decref(all);
		json_print(out, plans_json(g->plans[0]));
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		json_array_append_new(all, plans_json(g->plans[i]));
	o = json_object();
	json_object_set_new(o, "plans", all);
	if (g->run && g->run->n)
		json_object_set_new(o, "fleets", money_fleet_array(g->run, 0));
	json_print(out, o);
}

/* ---- the front ---------------------------------------------------------------------------- */

/* A block of points for each scenario: dollars, tokens/s per GPU, GB, the plan in words. */
static const char *front_blocks(struct plot *q, const struct ft_planning *g,
				struct ft_error *err)
{
	const char *script = "set xlabel 'tokens/s per GPU'\n"
			     "set ylabel 'USD per million tokens'\n"
			     "set cblabel 'memory per GPU, GB'\n"
			     "set palette defined (0 '#2a6f97', 1 '#e07a5f')\n"
			     "set key top right\nplot ";

	for (size_t i = 0; i < g->n; i++) {
		const char *quoted = gnuplot_quote(q->mem, g->plans[i]->label, err);

		if (!quoted)
			return NULL;
		fprintf(q->data.out,
			"%s# tokens/s per GPU, USD per million tokens, GB\n",
			i ? "\n\n" : "");
		for (size_t k = 0; k < g->plans[i]->n_front; k++) {
			const struct ft_outcome *o = g->plans[i]->front[k].outcome;

			fprintf(q->data.out, "%.9g %.9g %.9g\n",
				o->tokens_per_s_per_gpu, o->cost.usd_per_million_tokens,
				o->memory_total_bytes * 1e-9);
		}
		script =
			arena_printf(q->mem,
				     "%s%sdat index %zu using 1:2:3 with linespoints "
				     "lw 1 pt %zu ps 1.2 palette title %s",
				     script, i ? ", " : "", i, 5 + 2 * (i % 5), quoted);
	}
	return script;
}

bool ft_report_plans_plot(const char *dir, const struct ft_planning *g,
			  struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct plot q;
	bool ok = file_folder(dir, err) && plot_begin(&q, &mem, dir, "front", err) &&
		  plot_draw(&q, front_blocks(&q, g, err), err);

	arena_release(&mem);
	return ok;
}
