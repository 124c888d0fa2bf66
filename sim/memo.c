/* sim/memo.c - predictions remembered: an open hash table of works */
#include <string.h>

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

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v;
	h *= 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = mix(h, (unsigned char)*text);
	return h;
}

static uint64_t hash(const struct ft_work *w, enum ft_clock clock)
{
	uint64_t h = mix(mix(w->kind, w->dtype), clock), bits;

	switch (w->kind) {
	case FT_GEMM:
		h = mix(mix(h, (uint64_t)w->gemm.m), (uint64_t)w->gemm.n);
		h = mix(mix(h, (uint64_t)w->gemm.k), (uint64_t)w->gemm.groups);
		return mix(h, w->gemm.layout * 2 + w->gemm.accumulate);
	case FT_ATTENTION:
		h = mix(mix(h, w->attention.pass), (uint64_t)w->attention.batch);
		h = mix(mix(h, (uint64_t)w->attention.heads),
			(uint64_t)w->attention.queries);
		return mix_text(h, w->attention.impl);
	default:
		memcpy(&bits, &w->memory.bytes, sizeof(bits));
		return mix_text(mix(h, bits), w->memory.kernel);
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same(const struct ft_work *a, const struct ft_work *b)
{
	if (a->kind != b->kind || a->dtype != b->dtype)
		return false;
	switch (a->kind) {
	case FT_GEMM:
		return a->gemm.m == b->gemm.m && a->gemm.n == b->gemm.n &&
		       a->gemm.k == b->gemm.k && a->gemm.groups == b->gemm.groups &&
		       a->gemm.layout == b->gemm.layout &&
		       a->gemm.accumulate == b->gemm.accumulate;
	case FT_ATTENTION:
		return a->attention.pass == b->attention.pass &&
		       a->attention.batch == b->attention.batch &&
		       a->attention.heads == b->attention.heads &&
		       a->attention.kv_heads == b->attention.kv_heads &&
		       a->attention.queries == b->attention.queries &&
		       a->attention.keys == b->attention.keys &&
		       a->attention.qk_head_dim == b->attention.qk_head_dim &&
		       a->attention.v_head_dim == b->attention.v_head_dim &&
		       a->attention.window == b->attention.window &&
		       a->attention.causal == b->attention.causal &&
		       same_text(a->attention.impl, b->attention.impl);
	default:
		return a->memory.bytes == b->memory.bytes &&
		       a->memory.row_bytes == b->memory.row_bytes &&
		       a->memory.warm == b->memory.warm &&
		       same_text(a->memory.kernel, b->memory.kernel);
	}
}

static struct recall *place(struct ft_memo *m, const struct ft_gpu *gpu,
			    const struct ft_work *w, enum ft_clock clock)
{
	size_t i = hash(w, clock) & (m->cap - 1);

	while (m->slot[i].used &&
	       !(m->slot[i].gpu == gpu && m->slot[i].clock == clock &&
		 same(&m->slot[i].work, w)))
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
