/* study/validate_rows.c - the rows of a file of steps on all cores, gathered in the file's order */
#include <pthread.h>
#include <unistd.h>

#include "base/plain.h"
#include "study/tally.h"
#include "study/traits.h"

enum { MOST_THREADS = 32, ROWS_A_THREAD = 4 };

/* Where a row's results are in its worker's tally: from here up to the next mark. */
struct mark {
	size_t checks, sides, failures;
};

struct place {
	const struct worker *worker;
	struct mark from, to;
};

struct shift {
	const struct csv *rows;
	struct place *place;  /* [n_rows] */
	pthread_mutex_t lock; /* of all below */
	size_t next, done;
	struct ft_progress progress;
	bool stop;
	struct ft_error err;
};

/* A thread has a shelf and an arena of its own. */
struct worker {
	struct shift *shift;
	struct arena mem;
	struct ft_validation v;
	struct tally t;
	pthread_t thread;
};

static bool take(struct shift *s, size_t *row)
{
	bool any;

	pthread_mutex_lock(&s->lock);
	any = !s->stop && s->next < s->rows->n_rows;
	if (any)
		*row = s->next++;
	pthread_mutex_unlock(&s->lock);
	return any;
}

static void give(struct shift *s, bool ok, const struct ft_error *why)
{
	pthread_mutex_lock(&s->lock);
	s->done++;
	if (!ok && why->of_system && !s->stop) {
		s->stop = true;
		s->err = *why;
	}
	if (s->progress.tell)
		s->progress.tell(s->progress.context, s->done, s->done,
				 s->rows->n_rows);
	pthread_mutex_unlock(&s->lock);
}

static struct mark mark_of(const struct worker *w)
{
	return (struct mark){ w->v.n_checks, w->t.n_side, w->v.n_failures };
}

static void *work(void *arg)
{
	PLAIN_NUMBERS;
	struct worker *w = arg;
	size_t i;

	w->t.shelf = ft_shelf_new();
	while (take(w->shift, &i)) {
		struct place *p = &w->shift->place[i];
		struct ft_error why = { 0 };
		bool ok;

		p->worker = w;
		p->from = mark_of(w);
		ok = validate_row(&w->t, w->shift->rows, i, &why);
		if (!ok)
			tally_row_failure(&w->t, w->shift->rows, i, &why);
		p->to = mark_of(w);
		give(w->shift, ok, &why);
	}
	ft_shelf_free(w->t.shelf);
	return NULL;
}

/* Adds a copy of a worker's check, since the worker's memory is freed first. */
static void add_check(struct tally *t, const struct ft_check *check, bool scored)
{
	struct ft_check c = *check;
	struct ft_traits *traits = ARENA_NEW(t->mem, struct ft_traits);

	*traits = traits_copy(t->mem, check->traits);
	c.traits = traits;
	c.id = arena_text(t->mem, check->id);
	tally_check(t, &c, scored);
}

static void gather(struct tally *t, const struct place *p)
{
	const struct worker *w = p->worker;

	for (size_t i = p->from.checks; i < p->to.checks; i++)
		add_check(t, &w->v.check[i], true);
	for (size_t i = p->from.sides; i < p->to.sides; i++)
		add_check(t, &w->t.side[i], false);
	for (size_t i = p->from.failures; i < p->to.failures; i++) {
		struct ft_error why = { 0 };
		const struct ft_failure *f = &w->v.failure[i];

		ft_fail(&why, NULL, "%s", f->reason);
		tally_failure(t, arena_text(t->mem, f->id), &why);
	}
}

static size_t threads_for(size_t rows)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = cores > 1 ? (size_t)cores : 1;

	if (n > rows / ROWS_A_THREAD + 1)
		n = rows / ROWS_A_THREAD + 1;
	return n < MOST_THREADS ? n : MOST_THREADS;
}

bool validate_steps(struct tally *t, const struct csv *rows,
		    struct ft_progress progress, struct ft_error *err)
{
	size_t n = threads_for(rows->n_rows), started = 1;
	struct worker worker[MOST_THREADS];
	struct shift s = { .rows = rows,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .progress = progress };

	if (!rows_are_steps(t, rows, err))
		return false;
	s.place = ARENA_ARRAY(t->mem, rows->n_rows + 1, struct place);
	for (size_t i = 0; i < n; i++) {
		struct worker *w = &worker[i];

		*w = (struct worker){ .shift = &s };
		w->t = (struct tally){
			.mem = &w->mem, .v = &w->v, .sets = t->sets, .n_sets = t->n_sets
		};
	}
	while (started < n &&
	       !pthread_create(&worker[started].thread, NULL, work, &worker[started]))
		started++;
	work(&worker[0]);
	for (size_t i = 1; i < started; i++)
		pthread_join(worker[i].thread, NULL);
	for (size_t i = 0; i < rows->n_rows && !s.stop; i++)
		gather(t, &s.place[i]);
	for (size_t i = 0; i < n; i++)
		arena_release(&worker[i].mem);
	if (s.stop)
		*err = s.err;
	return !s.stop;
}
