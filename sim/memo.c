/* sim/memo.c - predictions remembered: open hash tables of works and of collectives */
#include <string.h>

#include "base/arena.h"
#include "foretoken/sim.h"
#include "sim/collective.h"

struct recall {
	const struct ft_gpu *gpu;
	struct ft_work work; /* texts are copies of the table's own */
	enum ft_clock clock;
	struct ft_prediction prediction;
	bool used;
};

/* A collective that meets no link of others. */
struct met {
	const struct ft_cluster *cluster;
	const struct ft_ccl *ccl;
	enum ft_collective op;
	double bytes;
	struct ft_group_shape shape;
	struct ft_fanout fanout;
	struct ft_collective_result result;
	bool used;
};

struct ft_memo {
	struct arena mem; /* first: the handle is the arena's */
	struct recall *slot;
	size_t n, cap; /* cap: a power of two */
	struct met *met;
	size_t n_met, met_cap; /* likewise */
};

enum { FIRST_SLOTS = 1024 };

struct ft_memo *ft_memo_new(void)
{
	struct arena mem = { 0 };
	struct ft_memo *m = ARENA_NEW(&mem, struct ft_memo);

	m->mem = mem;
	m->cap = FIRST_SLOTS;
	m->slot = ARENA_ARRAY(&m->mem, m->cap, struct recall);
	m->met_cap = FIRST_SLOTS;
	m->met = ARENA_ARRAY(&m->mem, m->met_cap, struct met);
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

size_t ft_memo_size(const struct ft_memo *m)
{
	return m->n + m->n_met;
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

static size_t met_hash(enum ft_collective op, double bytes, struct ft_group_shape shape)
{
	uint64_t h;

	memcpy(&h, &bytes, sizeof(h));
	h ^= (uint64_t)op << 8 ^ (uint64_t)shape.size << 16 ^
	     (uint64_t)shape.stride << 40;
	h *= 0x9e3779b97f4a7c15u;
	return (size_t)(h ^ h >> 32);
}

static struct met *met_place(struct ft_memo *m, const struct ft_cluster *cluster,
			     const struct ft_ccl *ccl,
			     const struct ft_collective_call *c)
{
	size_t i = met_hash(c->op, c->bytes, c->shape) & (m->met_cap - 1);

	for (;; i = (i + 1) & (m->met_cap - 1)) {
		struct met *x = &m->met[i];

		if (!x->used ||
		    (x->cluster == cluster && x->ccl == ccl && x->op == c->op &&
		     x->bytes == c->bytes && x->shape.size == c->shape.size &&
		     x->shape.stride == c->shape.stride &&
		     x->shape.tiles == c->shape.tiles &&
		     x->fanout.copies == c->fanout.copies &&
		     x->fanout.groups == c->fanout.groups &&
		     x->fanout.of == c->fanout.of))
			return x;
	}
}

static void met_grow(struct ft_memo *m)
{
	struct met *old = m->met;
	size_t cap = m->met_cap;

	m->met_cap *= 2;
	m->met = ARENA_ARRAY(&m->mem, m->met_cap, struct met);
	for (size_t i = 0; i < cap; i++)
		if (old[i].used) {
			struct ft_collective_call c = { .op = old[i].op,
							.bytes = old[i].bytes,
							.shape = old[i].shape,
							.fanout = old[i].fanout };

			*met_place(m, old[i].cluster, old[i].ccl, &c) = old[i];
		}
}

bool collective_recall(struct ft_memo *m, const struct ft_cluster *cluster,
		       const struct ft_ccl *ccl, const struct ft_collective_call *c,
		       struct ft_collective_result *out, struct ft_error *err)
{
	struct met *x;

	if (!m || c->algorithm || c->protocol)
		return collective_at(cluster, ccl, c, 1, out, err);
	x = met_place(m, cluster, ccl, c);
	if (x->used) {
		*out = x->result;
		return true;
	}
	if (!collective_at(cluster, ccl, c, 1, out, err))
		return false;
	*x = (struct met){ cluster,  ccl,	c->op, c->bytes,
			   c->shape, c->fanout, *out,  true };
	if (2 * ++m->n_met > m->met_cap)
		met_grow(m);
	return true;
}
