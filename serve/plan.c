/*
 * serve/plan.c - POST /api/plan: a search for plans that tells how far it is
 *
 * Events: `progress`, four times a second; then `plans`, whose data are what `foretoken plan
 * --json` prints. The search ends by itself after LIMIT_SERVE_PLAN_S, with what it has found.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/reader.h"
#include "foretoken/reports.h"
#include "serve/api.h"

enum { FREE_MOST = 64 };

static const double TELL_S = 0.25;

struct request {
	struct arena mem;
	const struct node *scenario;
	const char *free_key[FREE_MOST];
	struct ft_search search;
};

struct teller {
	struct api_stream *to;
	double told_s; /* of the search; below 0: never */
	bool bounds;
	bool any; /* an event was sent */
};

static double left_s(const struct ft_search_state *s, double at_most_s)
{
	double all = s->finished ? s->spent_s * (double)s->total / (double)s->finished :
				   at_most_s;
	double left = all - s->spent_s, most = at_most_s - s->spent_s;

	return left < most ? left : most > 0 ? most : 0;
}

static void tell(void *context, const struct ft_search_state *s)
{
	PLAIN_NUMBERS;
	struct teller *t = context;
	json_t *j, *best;
	char *text;

	if (t->any && t->bounds == s->bounds && s->spent_s - t->told_s < TELL_S)
		return;
	t->told_s = s->spent_s;
	t->bounds = s->bounds;
	t->any = true;
	best = s->any ? json_pack("{s:f,s:f}", "step_s", s->best_step_s,
				  "usd_per_million_tokens",
				  s->best_usd_per_million_tokens) :
			json_null();
	j = json_pack("{s:s,s:I,s:I,s:I,s:I,s:f,s:f,s:o}", "phase",
		      s->bounds ? "bounds" : "steps", "finished",
		      (json_int_t)s->finished, "total", (json_int_t)s->total,
		      "considered", (json_int_t)s->considered, "simulated",
		      (json_int_t)s->simulated, "spent_s", s->spent_s, "at_most_left_s",
		      left_s(s, t->to->at_most_s), "best", best);
	text = allocated(json_dumps(j, JSON_COMPACT));
	api_event(t->to, "progress", text);
	free(text);
	json_decref(j);
}

/* {scenario: TEXT or MAP, rank_by: tokens, top: 5, free: [KEY, ...]} */
static bool read_request(struct request *q, const struct api_text *body,
			 struct ft_error *err)
{
	static const char *const ranks[] = { "tokens", "usd", "days" };
	struct node *root = node_read_text(&q->mem, FILE_FOREIGN "request", body->text,
					   body->n, err);
	const struct node *keys;
	struct reader r;

	if (!root)
		return false;
	if (root->kind != NODE_MAP)
		return ft_fail(err, &root->mark, "should be {\"scenario\": SCENARIO}");
	r = reader_open(root, err);
	q->scenario = read_need(&r, "scenario");
	q->search.rank_by =
		(enum ft_rank_by)read_choice(&r, "rank_by", ranks, 3, FT_RANK_TOKENS);
	q->search.top = (size_t)read_int(&r, "top", 1, FT_PLANS_MOST, 5);
	keys = read_node(&r, "free");
	if (keys && !r.failed && (keys->kind != NODE_LIST || keys->n > FREE_MOST))
		reader_fail(&r, "free", "should be a list of keys");
	for (size_t i = 0; keys && !r.failed && i < keys->n; i++) {
		if (keys->item[i]->kind != NODE_SCALAR)
			reader_fail(&r, "free", "should be a list of keys");
		else
			q->free_key[q->search.n_free++] = keys->item[i]->text;
	}
	q->search.free_key = q->free_key;
	return reader_close(&r);
}

static void say_plans(struct api_stream *to, struct ft_plans **plans, size_t n,
		      enum ft_rank_by by)
{
	struct ft_run_answer run = { 0 };
	struct ft_planning all = { plans, n, by, &run };
	char *text = NULL;
	size_t length = 0;
	FILE *out = allocated(open_memstream(&text, &length));

	if (n > 1)
		ft_plans_run(plans, n, &run);
	ft_report_plans_json(out, &all);
	memory_close(out, &text);
	api_event(to, "plans", text);
	free(text);
}

/* An error after the first event is an event. */
static bool say_error(struct api_stream *to, const struct ft_error *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = allocated(open_memstream(&text, &n));

	api_error(out, err);
	memory_close(out, &text);
	api_event(to, "error", text);
	free(text);
	return true;
}

static bool search(struct request *q, struct api_stream *to, struct ft_error *err)
{
	struct teller teller = { .to = to };
	struct ft_plans *plans[FT_SIZES_MOST];
	const char *text = q->scenario->kind == NODE_SCALAR ?
				   q->scenario->text :
				   node_flow(&q->mem, q->scenario);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = 0;
	bool ok;

	q->search.threads = cores < 1			     ? 1 :
			    cores < LIMIT_SERVE_PLAN_THREADS ? (int)cores :
							       LIMIT_SERVE_PLAN_THREADS;
	q->search.at_most_s = to->at_most_s;
	q->search.most = LIMIT_SERVE_PLAN_CANDIDATES;
	q->search.watch = tell;
	q->search.watch_context = &teller;
	ok = ft_study_plans_of(FILE_FOREIGN "scenario", text, &q->search, plans, &n,
			       err);
	if (ok)
		say_plans(to, plans, n, q->search.rank_by);
	for (size_t i = 0; i < n; i++)
		ft_plans_free(plans[i]);
	return ok || (teller.any && say_error(to, err));
}

bool api_plan(const struct api_text *body, struct api_stream *to, struct ft_error *err)
{
	struct request q = { .scenario = NULL };
	bool ok = read_request(&q, body, err) && search(&q, to, err);

	arena_release(&q.mem);
	return ok;
}
