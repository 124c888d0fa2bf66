/*
 * recorded/works.c - the work of each operation; what is alike is asked once
 *
 * Layers repeat: operators of one name and arguments that launched a kernel of one name
 * did the same. They are found by hash.
 */
#include <stdlib.h>

#include "recorded/operator.h"
#include "recorded/recording.h"

struct asked {
	int32_t name, args, kernel;
	int32_t work; /* or FT_REC_NONE */
	bool used;
};

struct memory {
	struct asked *slot;
	size_t n_slots, n;
};

static size_t slot_of(const struct memory *m, const struct asked *a)
{
	uint64_t h = ((uint64_t)(uint32_t)a->args << 32 | (uint32_t)a->name) *
			     UINT64_C(0x9e3779b97f4a7c15) ^
		     (uint32_t)a->kernel * UINT64_C(0xc2b2ae3d27d4eb4f);
	size_t i = (size_t)(h >> 17) & (m->n_slots - 1);

	while (m->slot[i].used &&
	       (m->slot[i].name != a->name || m->slot[i].args != a->args ||
		m->slot[i].kernel != a->kernel))
		i = (i + 1) & (m->n_slots - 1);
	return i;
}

static void grow(struct memory *m, struct arena *scratch)
{
	struct memory old = *m;

	m->n_slots = old.n_slots ? 2 * old.n_slots : 256;
	m->slot = ARENA_ARRAY(scratch, m->n_slots, struct asked);
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slot[i].used)
			m->slot[slot_of(m, &old.slot[i])] = old.slot[i];
}

static int32_t ask(struct ft_recording *r, const struct asked *a)
{
	struct ft_rec_work w, *kept;
	json_t *args = json_loads(ft_recording_text(r, a->args), 0, NULL);
	bool told = args && operator_work(ft_recording_text(r, a->name), args,
					  ft_recording_text(r, a->kernel), &w);

	json_decref(args);
	if (!told)
		return FT_REC_NONE;
	kept = table_add(&r->mem, &r->work);
	*kept = w;
	return (int32_t)r->work.n - 1;
}

void recording_works(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	struct memory m = { 0 };

	for (size_t i = 0; i < r->op.n; i++) {
		struct ft_rec_op *op = op_of(r, i);
		const struct ft_rec_span *o = ft_recording_operator(r, op);
		struct asked a;
		size_t at;

		op->work = FT_REC_NONE;
		if (!o || o->args == FT_REC_NONE)
			continue;
		if (2 * m.n >= m.n_slots)
			grow(&m, &scratch);
		a = (struct asked){ o->name, o->args, op->name, FT_REC_NONE, true };
		at = slot_of(&m, &a);
		if (!m.slot[at].used) {
			a.work = ask(r, &a);
			m.slot[at] = a;
			m.n++;
		}
		op->work = m.slot[at].work;
	}
	arena_release(&scratch);
}

const struct ft_rec_work *ft_recording_work(const struct ft_recording *r,
					    const struct ft_rec_op *op)
{
	return op->work == FT_REC_NONE ? NULL : table_at(&r->work, (size_t)op->work);
}
