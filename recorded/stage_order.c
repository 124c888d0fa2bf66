/*
 * recorded/stage_order.c - which schedule a pipeline ran, told by its marks or its sends
 *
 * Of V = n v chunks stage s of n holds those at the places that ft_plan_place says: s, n + s,
 * 2 n + s, ..., in a V s and 2 n - 1 - s. A forward pass's result goes to the stage of the next
 * place, a backward pass's to that of the one before; what its neighbour on the same stage needs,
 * and gradients of weights, are not sent. So a stage's sends number m times those of one
 * micro-batch, and their order is the schedule's.
 */
#include "recorded/stages.h"

bool neighbour(const struct layout *l, int64_t here, const struct ft_slot *s, bool to,
	       int64_t *stage, int64_t *chunk)
{
	int64_t at = ft_plan_place(&l->plan, here, s->chunk);
	int64_t other = (s->kind == FT_SLOT_FORWARD) == to ? at + 1 : at - 1;

	if (s->kind == FT_SLOT_WEIGHTS || other < 0 ||
	    other >= l->plan.pp * l->plan.vpp)
		return false;
	*stage = ft_plan_stage(&l->plan, other);
	*chunk = other / l->plan.pp;
	return *stage != here;
}

/* Do the recorded sends go where the slots' results go? */
static bool sends_fit(const struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];
	size_t i = 0;
	int64_t to, chunk;

	for (size_t k = 0; k < s->n_slots; k++) {
		if (!neighbour(l, here, &s->slot[k], true, &to, &chunk))
			continue;
		while (i < s->n_cuts && !s->cut[i].sends)
			i++;
		if (i == s->n_cuts || s->cut[i++].peer != to)
			return false;
	}
	while (i < s->n_cuts && !s->cut[i].sends)
		i++;
	return i == s->n_cuts;
}

/* Micro-batches, by the sends of a stage; 0: they are of no such pipeline. */
static int64_t micro_batches(const struct layout *l, int64_t here)
{
	int64_t n = (int64_t)l->stage[here].n_sends, each = 0, to, chunk;

	for (int64_t c = 0; c < l->plan.vpp; c++)
		for (int back = 0; back < 2; back++) {
			struct ft_slot s = { back ? FT_SLOT_BACKWARD : FT_SLOT_FORWARD,
					     c, 0 };

			each += neighbour(l, here, &s, true, &to, &chunk);
		}
	return each > 0 && n % each == 0 ? n / each : 0;
}

/* A schedule; where it cuts backwards, autograd may have cut them. */
struct way {
	enum ft_schedule schedule;
	bool autograd;
};

static bool set_order(struct layout *l, const struct way *way, int64_t chunks)
{
	int64_t m = 0;

	l->plan = (struct ft_plan){ .schedule = way->schedule,
				    .pp = (int64_t)l->n,
				    .vpp = chunks };
	for (int64_t s = 0; s < (int64_t)l->n; s++) {
		int64_t of;

		if (l->stage[s].rank == NO_RANK)
			continue;
		of = micro_batches(l, s);
		if (!of || (m && of != m))
			return false;
		m = of;
	}
	if (!m || m >= PASSES_MOST / (int64_t)l->n / chunks)
		return false;
	l->plan.micro_batches = m;
	l->n_places = (size_t)(m * chunks);
	for (int64_t s = 0; s < (int64_t)l->n; s++) {
		struct stage *to = &l->stage[s];

		to->slot = ARENA_ARRAY(&l->scratch, ft_plan_most_slots(&l->plan),
				       struct ft_slot);
		to->n_slots = ft_plan_slots(&l->plan, s, to->slot);
		if (way->autograd)
			to->n_slots = ft_slots_by_autograd(s, to->slot, to->n_slots);
	}
	return true;
}

/* A mark calls a backward that nothing cuts whole, and of autograd's by its weights. */
static bool same_kind(enum ft_slot_kind slot, enum ft_slot_kind mark, bool splits)
{
	if (slot == FT_SLOT_WHOLE)
		return mark == FT_SLOT_WHOLE || mark == FT_SLOT_WEIGHTS;
	return mark == (slot == FT_SLOT_BACKWARD && !splits ? FT_SLOT_WHOLE : slot);
}

static bool marks_fit(const struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];
	bool splits = ft_schedule_splits(l->plan.schedule);

	if (s->n_marks != s->n_slots)
		return false;
	for (size_t i = 0; i < s->n_slots; i++) {
		const struct ft_slot *slot = &s->slot[i], *mark = &s->mark[i].slot;

		if (!same_kind(slot->kind, mark->kind, splits) ||
		    ft_plan_place(&l->plan, here, slot->chunk) != mark->chunk ||
		    slot->micro_batch != mark->micro_batch)
			return false;
	}
	return true;
}

/* How unlike the recorded passes are under the layout's order; more than 1: it is not theirs. */
static double unlike(struct layout *l)
{
	double sum = 0;
	size_t n = 0;

	for (int64_t s = 0; s < (int64_t)l->n; s++) {
		if (l->stage[s].rank == NO_RANK)
			continue;
		if (!sends_fit(l, s) || (l->marked && !marks_fit(l, s)))
			return 2;
		sum += l->marked ? 0 : passes_unlike(l, s);
		n++;
	}
	return sum / (double)n;
}

static const struct way ways[] = {
	{ FT_1F1B, false },	  { FT_GPIPE, false },	  { FT_ZERO_BUBBLE, false },
	{ FT_ZERO_BUBBLE, true }, { FT_ZBV, false },	  { FT_ZBV, true },
	{ FT_DUALPIPEV, false },  { FT_DUALPIPEV, true },
};

/* Of two that are as good, the one with fewer chunks; and then the first. What cuts backwards is
 * told by marks alone: by numbers of kernels 1F1B can look like it. */
static bool find_way(struct layout *l)
{
	const struct way *best = NULL;
	int64_t chunks = 0;
	double least = 1;

	for (int64_t v = 1; v <= (l->n > 1 ? CHUNKS_MOST : 0); v++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
			enum ft_schedule how = ways[i].schedule;
			double d = 2;

			if ((v == 2 || !ft_schedule_folds(how)) &&
			    (l->marked || !ft_schedule_splits(how)) &&
			    set_order(l, &ways[i], v))
				d = unlike(l);
			if (d < least) {
				least = d;
				best = &ways[i];
				chunks = v;
			}
		}
	return best && set_order(l, best, chunks);
}

/* Do marks say that backward passes are cut in two? */
static bool any_cut(const struct layout *l)
{
	for (size_t s = 0; s < l->n; s++)
		for (size_t i = 0; i < l->stage[s].n_marks; i++)
			if (l->stage[s].mark[i].slot.kind == FT_SLOT_BACKWARD ||
			    l->stage[s].mark[i].slot.kind == FT_SLOT_WEIGHTS)
				return true;
	return false;
}

bool order_find(struct layout *l)
{
	if (find_way(l))
		return true;
	if (!l->marked || any_cut(l))
		return false;
	l->marked = false; /* in an order of their own */
	return find_way(l);
}
