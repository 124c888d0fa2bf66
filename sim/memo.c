/* sim/memo.c - predictions remembered: an open hash table of works */
#include "base/arena.h"
#include "foretoken/sim.h"

struct recall {
	const struct ft_gpu *gpu;
	struct ft_work work; /* texts are copies of the table's own */
	enum ft_clock clock;
	struct ft_prediction prediction;
	bool used;
};

struct ft_memo {
	struct arena mem; /* first: the handle is the arena's */
	struct recall *slot;
	size_t n, cap; /* cap: a power of two */
};

enum { FIRST_SLOTS = 1024 };

struct ft_memo *ft_memo_new(void)
{
	struct arena mem = { 0 };
	struct ft_memo *m = ARENA_NEW(&mem, struct ft_memo);

	m->mem = mem;
	m->cap = FIRST_SLOTS;
	m->slot = ARENA_ARRAY(&m->mem, m->cap, struct recall);
	return m;
}

void ft_memo_free(struct ft_memo *memo)
{
	struct arena mem;

	if (!memo)
		return;
	mem = memo->mem;
	arena_release(&mem);
}

static struct recall *place(struct ft_memo *m, const struct ft_gpu *gpu,
			    const struct ft_work *w, enum ft_clock clock)
{
	size_t i = (ft_work_hash(w) * 2 + clock) & (m->cap - 1);

	while (m->slot[i].used &&
	       !(m->slot[i].gpu == gpu && m->slot[i].clock == clock &&
		 ft_work_same(&m->slot[i].work, w)))
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

static void grow(struct ft_memo *m)
{
	struct recall *old = m->slot;
	size_t cap = m->cap;

	m->cap *= 2;
	m->slot = ARENA_ARRAY(&m->mem, m->cap, struct recall);
	for (size_t i = 0; i < cap; i++)
		if (old[i].used)
			*place(m, old[i].gpu, &old[i].work, old[i].clock) = old[i];
}

static void keep(struct ft_memo *m, struct recall *r, const struct ft_gpu *gpu,
		 const struct ft_work *w, enum ft_clock clock,
		 const struct ft_prediction *p)
{
	*r = (struct recall){ gpu, *w, clock, *p, true };
	r->work.name = "";
	if (w->kind == FT_ATTENTION && w->attention.impl)
		r->work.attention.impl = arena_text(&m->mem, w->attention.impl);
	if (w->kind == FT_MEMORY_BOUND)
		r->work.memory.kernel = arena_text(&m->mem, w->memory.kernel);
	if (2 * ++m->n > m->cap)
		grow(m);
}

bool ft_kernel_recall(struct ft_memo *memo, const struct ft_gpu *gpu,
		      const struct ft_work *work, enum ft_clock clock,
		      struct ft_prediction *out, struct ft_error *err)
{
	struct recall *r;

	if (!memo)
		return ft_kernel_predict(gpu, work, clock, out, err);
	r = place(memo, gpu, work, clock);
	if (r->used) {
		*out = r->prediction;
		return true;
	}
	if (!ft_kernel_predict(gpu, work, clock, out, err))
		return false;
	keep(memo, r, gpu, work, clock, out);
	return true;
}
