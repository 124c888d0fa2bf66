/* reports/session.c - answers as JSON text, for programs that link the library */
#include "foretoken/reports_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/plain.h"
#include "foretoken/reports.h"

struct ft_session {
	struct ft_shelf *shelf;
	char error[8192];
};

struct ft_session *ft_session_new(void)
{
	struct ft_session *s = allocated(calloc(1, sizeof(*s)));

	s->shelf = ft_shelf_new();
	return s;
}

void ft_session_free(struct ft_session *s)
{
	if (!s)
		return;
	ft_shelf_free(s->shelf);
	free(s);
}

void ft_session_release(char *text)
{
	free(text);
}

const char *ft_session_error(const struct ft_session *s)
{
	return s->error;
}

/* Scenarios with their answers. */
struct asked {
	struct arena mem;
	size_t n;
	const struct ft_scenario *scenario[FT_SIDES_MOST];
	struct ft_outcome outcome[FT_SIDES_MOST];
};

static bool answer(struct ft_session *s, struct asked *a, const char *text,
		   struct ft_error *err)
{
	const char *name = arena_printf(&a->mem, "scenario %zu", a->n + 1);
	struct node *root = node_read_text(&a->mem, name, text, strlen(text), err);
	const struct ft_search search = { .top = 1 };
	struct ft_scenario *one;

	if (!root)
		return false;
	if (root->kind != NODE_MAP)
		return ft_fail(err, &root->mark,
			       "a scenario is a map of model, cluster, training ...");
	one = ft_scenario_to_run_from(s->shelf, root, name, &search, err);
	if (!one)
		return false;
	if (!ft_study_simulate(one, NULL, NULL, &a->outcome[a->n], err)) {
		ft_scenario_free(one);
		return false;
	}
	a->scenario[a->n++] = one;
	return ft_study_run(one, &a->outcome[a->n - 1], err);
}

static void release(struct asked *a)
{
	for (size_t i = 0; i < a->n; i++) {
		ft_outcome_release(&a->outcome[i]);
		ft_scenario_free((struct ft_scenario *)a->scenario[i]);
	}
	arena_release(&a->mem);
	free(a);
}

static void tell(struct ft_session *s, const struct ft_error *err)
{
	if (err->line)
		snprintf(s->error, sizeof(s->error), "%s:%d:%d: error: %s", err->file,
			 err->line, err->column, err->text);
	else
		snprintf(s->error, sizeof(s->error), "error: %s", err->text);
}

/* What a report writes, as text of the caller's. */
static char *written(const struct ft_answers *all)
{
	char *text = NULL;
	size_t n;
	FILE *out = allocated(open_memstream(&text, &n));

	if (all->n > 1)
		ft_report_compare_json(out, all);
	else
		ft_report_outcome_json(out, all->scenario[0], &all->outcome[0]);
	memory_close(out, &text);
	return text;
}

static char *compared(struct ft_session *s, struct asked *a, struct ft_error *err)
{
	struct ft_verdict *v = allocated(calloc(1, sizeof(*v)));
	const char **labels;
	char *text = NULL;

	if (!ft_study_verdict(a->scenario, a->outcome, a->n, FT_DRAWS, v, err)) {
		tell(s, err);
	} else {
		labels = ft_study_labels(a->scenario, a->n);
		for (size_t i = 0; i < a->n; i++)
			ft_odds_ranges(&v->odds, i, &a->outcome[i].cost);
		text = written(&(struct ft_answers){ a->scenario, a->outcome, labels,
						     a->n, "ft_session_compare", v,
						     FT_EQUAL_GPUS });
		ft_labels_free(labels);
	}
	free(v);
	return text;
}

static char *ask(struct ft_session *s, const char *const *scenario, size_t n)
{
	PLAIN_NUMBERS;
	struct asked *a = allocated(calloc(1, sizeof(*a)));
	struct ft_error err = { 0 };
	char *text = NULL;
	bool ok = true;

	s->error[0] = '\0';
	for (size_t i = 0; ok && i < n; i++)
		ok = answer(s, a, scenario[i], &err);
	if (!ok)
		tell(s, &err);
	else if (n > 1)
		text = compared(s, a, &err);
	else
		text = written(&(struct ft_answers){
			.scenario = a->scenario, .outcome = a->outcome, .n = 1 });
	release(a);
	ft_shelf_renew(&s->shelf);
	return text;
}

char *ft_session_simulate(struct ft_session *s, const char *scenario)
{
	return ask(s, &scenario, 1);
}

char *ft_session_compare(struct ft_session *s, const char *const *scenario, size_t n)
{
	if (n < 2 || n > FT_SIDES_MOST) {
		snprintf(s->error, sizeof(s->error),
			 "error: two to %d scenarios can be compared, not %zu",
			 (int)FT_SIDES_MOST, n);
		return NULL;
	}
	return ask(s, scenario, n);
}
