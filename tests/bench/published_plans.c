/*
 * tests/bench/published_plans.c - published plans against those that a search finds
 *
 *	published_plans SECONDS EACH FILE...
 *
 * Of every EACH-th row of files of measured steps, with its sizes, micro-batch, sharding and
 * recomputation left open and all else held: the step as published and as found, both as
 * predicted. A search that is not done after SECONDS tells the best so far.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "foretoken/study.h"
#include "study/search.h"
#include "study/shelf.h"
#include "study/tally.h"

static const char *const left_open[] = {
	"parallel.tp",	"parallel.pp", "parallel.cp", "parallel.ep", "parallel.etp",
	"parallel.vpp", "schedule",    "sharding",    "recompute",   "micro_batch_size",
};

static void print_plan(const struct ft_plan *p)
{
	printf("tp %d pp %d vpp %d cp %d ep %d micro %d %s", (int)p->tp, (int)p->pp,
	       (int)p->vpp, (int)p->cp, (int)p->ep, (int)p->micro_batch,
	       ft_recompute_name(p->recompute));
}

static bool found(const struct node *root, const char *id, double seconds,
		  const struct ft_scenario *s, const struct ft_outcome *published,
		  struct ft_error *err)
{
	struct ft_search search = {
		.free_key = left_open,
		.n_free = sizeof(left_open) / sizeof(*left_open),
		.top = 1,
		.at_most_s = seconds,
	};
	double t = clock_now_s();
	struct ft_plans *p = plans_of(root, id, &search, err);

	if (!p)
		return false;
	printf("%s | ", id);
	print_plan(s->plan);
	printf(" | %.3f s%s | ", published->step_s,
	       published->fits ? "" : ", does not fit");
	if (p->n) {
		print_plan(p->best[0].scenario->plan);
		printf(" | %.3f s | %.3f", p->best[0].outcome->step_s,
		       p->best[0].outcome->step_s / published->step_s);
	} else {
		printf("none | - | -");
	}
	printf(" | %zu plans, %zu simulated, %.0f s%s\n", p->considered, p->simulated,
	       clock_now_s() - t, p->interrupted ? ", not done" : "");
	fflush(stdout);
	ft_plans_free(p);
	return true;
}

static bool one(struct tally *t, const struct csv *rows, size_t i, double seconds,
		struct ft_error *err)
{
	const char *id = row_id(t, rows, i);
	struct node *root = row_scenario(t, rows, i, err);
	struct ft_scenario *s = root ? scenario_lenient(t->shelf, root, id, err) : NULL;
	struct ft_outcome o;
	bool ok = s && ft_study_simulate(s, NULL, NULL, &o, err);

	if (ok) {
		ok = found(root, id, seconds, s, &o, err);
		ft_outcome_release(&o);
	}
	ft_scenario_free(s);
	return ok;
}

int main(int argc, char **argv)
{
	int each = argc > 3 ? atoi(argv[2]) : 0;

	if (each < 1)
		return 2;
	for (int a = 3; a < argc; a++) {
		struct arena mem = { 0 };
		struct ft_validation v = { 0 };
		struct tally t = { .mem = &mem, .v = &v, .shelf = ft_shelf_new() };
		struct ft_error err;
		struct csv *rows = csv_read_file(&mem, argv[a], &err);

		for (size_t i = 0; rows && i < rows->n_rows; i += (size_t)each)
			if (!one(&t, rows, i, atof(argv[1]), &err))
				printf("%s | %s\n", row_id(&t, rows, i), err.text);
		if (!rows)
			fprintf(stderr, "%s\n", err.text);
		ft_shelf_free(t.shelf);
		arena_release(&mem);
	}
	return 0;
}
