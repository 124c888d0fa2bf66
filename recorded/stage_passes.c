/*
 * recorded/stage_passes.c - the forward and backward passes of a recorded stage
 *
 * Kernels up to a send are a pass, whose result is sent. The first stage's last backward passes
 * and the last stage's last forward passes send nothing: they stand before a pass that does,
 * which has its usual number of kernels, or before the update. What is received is asked for
 * between passes: where that parts them all, it tells.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/stages.h"

/* Slots whose kernels stand together: the last one sends, or none does (at the end). */
struct region {
	size_t slot, n_slots; /* the first; */
	size_t from, to;      /* kernels */
	size_t cut, n_cuts;   /* between them, the last one a send */
	bool sent;
};

/* The next region; false: there is none. */
static bool next_region(const struct layout *l, int64_t here, struct region *r)
{
	const struct stage *s = &l->stage[here];
	int64_t to, chunk;

	r->slot += r->n_slots;
	r->cut += r->n_cuts;
	r->from = r->to;
	r->n_slots = r->n_cuts = 0;
	if (r->slot == s->n_slots)
		return false;
	do
		r->sent = neighbour(l, here, &s->slot[r->slot + r->n_slots++], true,
				    &to, &chunk);
	while (!r->sent && r->slot + r->n_slots < s->n_slots);
	while (r->cut + r->n_cuts < s->n_cuts && !s->cut[r->cut + r->n_cuts].sends)
		r->n_cuts++;
	r->to = s->kernel.n;
	if (r->sent)
		r->to = s->cut[r->cut + r->n_cuts++].at;
	return true;
}

/* Kernels of a pass, by kind and chunk; 0: not known. */
struct usual {
	size_t n[FT_SLOT_UPDATE][CHUNKS_MOST];
};

static size_t *usual_of(struct usual *u, const struct ft_slot *s)
{
	return &u->n[s->kind][s->chunk];
}

/* Where receives part all slots of a region; at[i]: where the i-th of them ends. */
static bool parted_by_receives(const struct stage *s, const struct region *r,
			       size_t *at)
{
	size_t n = 0, last = r->from;

	for (size_t i = r->cut; i < r->cut + r->n_cuts; i++) {
		if (s->cut[i].at == last || s->cut[i].at >= r->to)
			continue;
		if (n + 1 == r->n_slots)
			return false;
		at[n++] = last = s->cut[i].at;
	}
	at[n] = r->to;
	return n + 1 == r->n_slots;
}

/* By numbers of kernels: the one that sends has its usual one, the others share the rest. */
static bool parted_by_numbers(const struct stage *s, const struct region *r,
			      struct usual *u, size_t *at)
{
	size_t last = r->slot + r->n_slots - 1, silent = r->n_slots - r->sent;
	size_t sends = r->sent ? *usual_of(u, &s->slot[last]) : 0, each;

	if (r->sent && (!sends || r->to - r->from <= sends))
		return false;
	each = r->sent ? (r->to - r->from - sends) / silent :
			 *usual_of(u, &s->slot[r->slot]);
	for (size_t i = 0; i < silent; i++)
		at[i] = r->from + (i + 1) * each;
	if (r->sent) {
		at[silent - 1] = r->to - sends;
		at[silent] = r->to;
	}
	return each > 0;
}

/* Of the last, behind which there is the update, no more than usual. */
static bool part(const struct stage *s, const struct region *r, struct usual *u,
		 size_t *at)
{
	size_t last = r->n_slots - 1, most;

	if (r->n_slots == 1 && r->sent) {
		at[0] = r->to;
		return r->to > r->from;
	}
	if (r->n_slots > 1 && parted_by_receives(s, r, at)) {
		most = r->sent ? 0 : at[0] - r->from;
		if (most && at[last] - at[last - 1] > most)
			at[last] = at[last - 1] + most;
		return true;
	}
	return parted_by_numbers(s, r, u, at);
}

/* From passes that stand alone, the last of each kind. */
static void find_usual(const struct layout *l, int64_t here, struct usual *u)
{
	struct region r = { 0 };

	memset(u, 0, sizeof(*u));
	while (next_region(l, here, &r))
		if (r.n_slots == 1 && r.sent)
			*usual_of(u, &l->stage[here].slot[r.slot]) = r.to - r.from;
}

/* ---- what is kept ------------------------------------------------------------------- */

static size_t add_pass(struct layout *l, const struct stage *s, const uint32_t *op,
		       size_t n)
{
	struct ft_replay *p = l->p;
	const struct ft_recording *r = p->rank[s->rank].r;
	const struct ft_rec_op *first = op_of(r, op[0]), *last = op_of(r, op[n - 1]);
	struct pass *pass;

	if (p->n_passes == p->pass_cap)
		p->pass = ARENA_GROW(&p->mem, p->pass, &p->pass_cap);
	pass = &p->pass[p->n_passes];
	*pass = (struct pass){ (size_t)s->rank, n, ARENA_ARRAY(&p->mem, n, uint32_t),
			       last->start + last->duration - first->start };
	memcpy(pass->op, op, n * sizeof(*op));
	return p->n_passes++;
}

static void keep(struct layout *l, struct stage *s, const struct ft_slot *of,
		 const uint32_t *op, size_t n)
{
	s->pass[of->kind][place_of(l, of)] = add_pass(l, s, op, n);
}

/* Keeps the passes of a region, of which the i-th ends before kernel at[i]. */
static void keep_region(struct layout *l, struct stage *s, const struct region *r,
			const size_t *at)
{
	for (size_t i = 0; i < r->n_slots; i++) {
		size_t from = i ? at[i - 1] : r->from;

		if (at[i] > from)
			keep(l, s, &s->slot[r->slot + i], s->kernel.op + from,
			     at[i] - from);
	}
}

/* ---- all regions -------------------------------------------------------------------- */

/* The kernels of all passes, and by how many they differ from their usual number. */
struct tally {
	size_t all, off;
};

/* false: a pass would end behind its region. */
static bool count(const struct stage *s, const struct region *r, const size_t *at,
		  struct usual *u, struct tally *t)
{
	for (size_t i = 0; i < r->n_slots; i++) {
		size_t *of = usual_of(u, &s->slot[r->slot + i]);
		size_t n = at[i] - (i ? at[i - 1] : r->from);

		if (at[i] > r->to)
			return false;
		if (!*of)
			*of = n;
		t->all += n;
		t->off += n > *of ? n - *of : *of - n;
	}
	return true;
}

/* A region that cannot be parted though the number of what sends is known. */
static bool contradicts(const struct stage *s, const struct region *r, struct usual *u)
{
	return r->n_slots == 1 ||
	       (r->sent && *usual_of(u, &s->slot[r->slot + r->n_slots - 1]));
}

static double walk(struct layout *l, int64_t here, bool keeps)
{
	struct stage *s = &l->stage[here];
	size_t *at = ARENA_ARRAY(&l->scratch, s->n_slots, size_t);
	struct tally t = { 0, 0 };
	struct region r = { 0 };
	struct usual u;

	find_usual(l, here, &u);
	while (next_region(l, here, &r)) {
		bool parted = part(s, &r, &u, at);

		if (parted ? !count(s, &r, at, &u, &t) : contradicts(s, &r, &u))
			return 2;
		if (keeps && parted)
			keep_region(l, s, &r, at);
	}
	return t.all ? (double)t.off / (double)t.all : 0;
}

double passes_unlike(struct layout *l, int64_t here)
{
	return walk(l, here, false);
}

/* A stage's sends come in its order. */
static void take_sends(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	size_t i = 0;

	for (size_t k = 0; k < s->n_slots; k++) {
		const struct ft_slot *of = &s->slot[k];
		int64_t to, chunk;

		if (!neighbour(l, here, of, true, &to, &chunk))
			continue;
		while (!s->cut[i].sends) /* there is one: sends_fit */
			i++;
		s->send[is_back(of)][place_of(l, of)] = s->cut[i++].op;
	}
}

static void take_receives(struct layout *l, int64_t here, int64_t peer)
{
	struct stage *s = &l->stage[here];
	size_t i = 0;

	for (size_t k = 0; k < l->stage[peer].n_slots; k++) {
		struct ft_slot of = l->stage[peer].slot[k];
		int64_t to;

		if (!neighbour(l, peer, &of, true, &to, &of.chunk) || to != here)
			continue;
		while (i < s->n_cuts && (s->cut[i].sends || s->cut[i].peer != peer))
			i++;
		if (i == s->n_cuts)
			return;
		s->receive[is_back(&of)][place_of(l, &of)] = s->cut[i++].op;
	}
}

static void prepare(struct layout *l, struct stage *s)
{
	for (int kind = 0; kind < FT_SLOT_UPDATE; kind++) {
		s->pass[kind] = ARENA_ARRAY(&l->scratch, l->n_places, size_t);
		for (size_t i = 0; i < l->n_places; i++)
			s->pass[kind][i] = NO_PASS;
	}
	for (int back = 0; back < 2; back++) {
		s->send[back] = ARENA_ARRAY(&l->scratch, l->n_places, uint32_t);
		s->receive[back] = ARENA_ARRAY(&l->scratch, l->n_places, uint32_t);
		for (size_t i = 0; i < l->n_places; i++)
			s->send[back][i] = s->receive[back][i] = NO_OP;
	}
}

void passes_take(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	int64_t before = (here + (int64_t)l->n - 1) % (int64_t)l->n;
	int64_t behind = (here + 1) % (int64_t)l->n;

	prepare(l, s);
	for (size_t i = 0; l->marked && i < s->n_marks; i++)
		keep(l, s, &s->slot[i], s->marked.op + s->mark[i].from, s->mark[i].n);
	if (!l->marked)
		walk(l, here, true);
	take_sends(l, here);
	take_receives(l, here, before);
	if (behind != before)
		take_receives(l, here, behind);
}
