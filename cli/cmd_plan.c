/* cli/cmd_plan.c - foretoken plan SCENARIO... */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/ranks.h"
#include "foretoken/reports.h"

enum { MOST = 16 };

struct args {
	struct shared shared;
	struct words free_key;
	struct ft_search search;
	const char *front;
	int emit; /* a framework; below 0: tables */
};

static const struct argp_option options[] = {
	{ "top", 'n', "N", 0, "How many plans to show (default: 5)", 0 },
	{ "free", 'f', "KEY", 0,
	  "Search this key, too: one that the scenario states, such as parallel.tp, or one "
	  "that is searched on request only, such as overlap.dp or offload_layers",
	  0 },
	{ "rank-by", 'r', "tokens|usd|days", 0,
	  "Best is fastest (tokens, the default), cheapest per token (usd), or soonest "
	  "through run.tokens (days)",
	  0 },
	{ "db", 'd', "FILE", 0,
	  "Keep each simulated plan in an SQLite file, as sweep does; a search that was "
	  "stopped goes on from there",
	  0 },
	{ "emit", 'e', "megatron|torchtitan|nemo|primus", 0,
	  "Print the best plan as that framework's arguments or configuration instead",
	  0 },
	{ "front", 'P', "DIR", 0,
	  "Draw the plans that no other beats in time, dollars and memory", 0 },
	{ "threads", 't', "N", 0,
	  "Number of threads (default: one per core; under mpirun one)", 0 },
	{ "exhaustive", 'x', NULL, 0,
	  "Simulate every plan that fits, whatever its bound says", 0 },
	{ 0 },
};

static int number(const char *what, const char *arg, int most, struct argp_state *state)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 1 || n > most)
		argp_error(state, "%s takes 1 to %d", what, most);
	return (int)n;
}

static enum ft_rank_by rank_by(const char *arg, struct argp_state *state)
{
	static const char *const names[] = { "tokens", "usd", "days" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(arg, names[i]))
			return (enum ft_rank_by)i;
	argp_error(state, "--rank-by takes tokens, usd or days, not '%.40s'", arg);
	return FT_RANK_TOKENS;
}

static int framework(const char *arg, struct argp_state *state)
{
	for (int i = 0; i < FT_FRAMEWORKS; i++)
		if (!strcmp(arg, ft_framework_name((enum ft_framework)i)))
			return i;
	argp_error(state,
		   "--emit takes megatron, torchtitan, nemo or primus, not '%.40s'",
		   arg);
	return -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		state->child_inputs[2] = &a->shared;
		return 0;
	case 'n':
		a->search.top = (size_t)number("--top", arg, FT_PLANS_MOST, state);
		return 0;
	case 'f':
		words_add(&a->free_key, arg, state);
		return 0;
	case 'r':
		a->search.rank_by = rank_by(arg, state);
		return 0;
	case 'd':
		a->search.db = arg;
		return 0;
	case 'e':
		a->emit = framework(arg, state);
		return 0;
	case 'P':
		a->front = arg;
		return 0;
	case 't':
		a->search.threads = number("--threads", arg, 256, state);
		return 0;
	case 'x':
		a->search.exhaustive = true;
		return 0;
	case ARGP_KEY_END:
		if (a->emit >= 0 && a->shared.json)
			argp_error(state, "--emit or --json, not both");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO...",
	"Find the best way to train a model on a cluster: every legal combination of tp, pp, "
	"vpp, cp, ep, etp, micro-batch, schedule, sharding and recomputation that the "
	"scenario leaves out. What it states is held; --free KEY frees it. Plans are "
	"left out only when a proved bound says that they cannot be among those shown. "
	"cluster.gpus may be a list of sizes. Under mpirun the ranks share the search; see "
	"docs/many-machines.md."
	"\vExample: foretoken plan examples/17-best-plan/h200.yaml --rank-by usd --top 3",
	asked_children,
	NULL,
	NULL,
};

static bool print(const struct args *a, const struct ft_planning *g,
		  struct ft_error *err)
{
	if (a->front && !ft_report_plans_plot(a->front, g, err))
		return false;
	for (size_t i = 0; a->emit >= 0 && i < g->n; i++) {
		const struct ft_plans *p = g->plans[i];

		printf("%s# %s%s\n", i ? "\n" : "", p->label,
		       p->n ? "" : ": no plan fits");
		if (p->n)
			ft_report_plan_arguments(stdout, p->best[0].scenario,
						 (enum ft_framework)a->emit);
	}
	if (a->emit >= 0)
		return true;
	if (a->shared.json)
		ft_report_plans_json(stdout, g);
	else
		ft_report_plans(stdout, g);
	return true;
}

/* Search all; what was found before an error or a stop stays in plans. */
static bool search(const struct args *a, struct ft_plans **plans, size_t *n,
		   struct ft_error *err)
{
	for (size_t i = 0; i < a->shared.word.n; i++) {
		struct progress bar = progress_begin("plan");
		struct ft_search s = a->search;
		size_t more = 0;
		bool ok;

		bar.lines = s.ranks != NULL;
		bar.quiet = a->shared.quiet;
		if (ft_ranks_first(s.ranks))
			s.progress = (struct ft_progress){ progress_tell, &bar };
		ok = ft_study_plans(a->shared.word.word[i], &s, plans + *n, &more, err);
		*n += more;
		if (!ok || plans[*n - 1]->interrupted)
			return ok;
	}
	return true;
}

static void say_stopped(const struct ft_plans *last)
{
	fputs(last->simulated ?
		      "foretoken: stopped; with --db the same command goes on\n" :
		      "foretoken: stopped before the first step was simulated; "
		      "state more keys\n",
	      stderr);
}

/* The searches, and what they found printed. */
static int answer(const struct args *a, struct ft_error *err, bool *ok)
{
	struct ft_plans *plans[MOST * FT_SIZES_MOST];
	struct ft_run_answer run = { 0 };
	bool first = ft_ranks_first(a->search.ranks), stopped;
	size_t n = 0;
	int status = 0;

	*ok = search(a, plans, &n, err);
	if (*ok && first && a->shared.word.n == 1 && n > 1)
		ft_plans_run(plans, n, &run);
	if (*ok && first)
		*ok = print(a,
			    &(struct ft_planning){ plans, n, a->search.rank_by, &run },
			    err);
	stopped = n && plans[n - 1]->interrupted;
	if (first && stopped && !a->shared.quiet)
		say_stopped(plans[n - 1]);
	for (size_t i = 0; i < n; i++)
		ft_plans_free(plans[i]);
	if (first)
		status = *ok ? finish_output() : complain(err);
	return stopped ? 130 : status;
}

int cmd_plan(int argc, char **argv)
{
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = MOST },
			  .emit = -1,
			  .search = { .top = 5, .stop_on_signals = true } };
	struct ranks_session session;
	struct ft_error err;
	int status;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	if (!ranks_session_open(&session))
		return 1;
	a.search.free_key = a.free_key.word;
	a.search.n_free = a.free_key.n;
	a.search.sets = a.shared.set.word;
	a.search.n_sets = a.shared.set.n;
	a.search.ranks = session.ranks;
	if (!a.search.threads)
		a.search.threads = ranks_session_threads(&session);
	status = answer(&a, &err, &ok);
	return ranks_session_close(&session, ok ? NULL : &err, status);
}
