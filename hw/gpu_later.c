/* hw/gpu_later.c - read once, by whoever asks first */
#include "hw/gpu_later.h"

#include "base/arena.h"
#include "base/plain.h"

enum { WAITS, READ, MISTAKEN };

void rows_desk_open(struct rows_desk *d, struct arena *mem)
{
	if (pthread_mutex_init(&d->lock, NULL))
		out_of_memory();
	d->mem = mem;
}

void rows_desk_close(struct rows_desk *d)
{
	pthread_mutex_destroy(&d->lock);
}

struct ft_rows_later *rows_later(struct arena *mem, struct rows_desk *desk,
				 const struct sheet *sheet)
{
	struct ft_rows_later *l = ARENA_NEW(mem, struct ft_rows_later);

	l->desk = desk;
	l->sheet = sheet;
	atomic_init(&l->state, WAITS);
	return l;
}

void rows_add(struct arena *mem, struct ft_rows_later *l, const struct sheet_run *run)
{
	if (l->n_runs == l->cap)
		l->run = ARENA_GROW(mem, l->run, &l->cap);
	l->run[l->n_runs++] = *run;
}

/* The lock is held. */
static int read_now(struct ft_rows_later *l, rows_reader *read)
{
	PLAIN_NUMBERS;
	struct ft_error why = { 0 }, *kept;

	if (read(l, &why))
		return READ;
	/* a sweep or a search is not to take it for a mistake of one plan */
	why.of_system = true;
	kept = ARENA_NEW(l->desk->mem, struct ft_error);
	*kept = why;
	l->why = kept;
	return MISTAKEN;
}

bool rows_read(struct ft_rows_later *l, rows_reader *read, struct ft_error *err)
{
	int state = atomic_load_explicit(&l->state, memory_order_acquire);

	if (state == WAITS) {
		pthread_mutex_lock(&l->desk->lock);
		state = atomic_load_explicit(&l->state, memory_order_relaxed);
		if (state == WAITS) {
			state = read_now(l, read);
			atomic_store_explicit(&l->state, state, memory_order_release);
		}
		pthread_mutex_unlock(&l->desk->lock);
	}
	if (state == READ)
		return true;
	*err = *l->why;
	return false;
}
