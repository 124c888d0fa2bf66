/*
 * recorded/stage_order.c - which schedule a pipeline ran, told by what its stages send
 *
 * Stage s of n holds, of V = n v chunks, the chunks s, n + s, 2 n + s, ... A forward pass's
 * result goes to the stage of the next chunk, a backward pass's to that of the one before;
 * the last forward pass and the last backward pass send nothing. So a stage's sends number
 * m v a way, less m at the ends, and their order is the schedule's.
 */
#include "recorded/stages.h"

bool neighbour(const struct layout *l, int64_t here, const struct ft_slot *s, bool to,
	       int64_t *stage, int64_t *chunk)
{
	int64_t n = (int64_t)l->n, at = s->chunk * n + here;
	int64_t other = (s->kind == FT_SLOT_FORWARD) == to ? at + 1 : at - 1;

	*stage = other % n;
	*chunk = other / n;
	return other >= 0 && other < n * l->plan.vpp;
}

/* Do the recorded sends go where the slots' results go? */
static bool sends_fit(const struct layout *l, int64_t here)
{
	const struct stage *s = &l->stage[here];
	size_t i = 0;
	int64_t to, chunk;

	for (size_t k = 0; k < l->n_slots; k++) {
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
static int64_t micro_batches(const struct layout *l, int64_t here, int64_t chunks)
{
	int64_t each = 2 * chunks - (here == 0) - (here + 1 == (int64_t)l->n);
	int64_t n = (int64_t)l->stage[here].n_sends;

	return each > 0 && n % each == 0 ? n / each : 0;
}

static bool set_order(struct layout *l, enum ft_schedule schedule, int64_t chunks)
{
	int64_t m = 0;

	for (int64_t s = 0; s < (int64_t)l->n; s++) {
		int64_t of;

		if (l->stage[s].rank == NO_RANK)
			continue;
		of = micro_batches(l, s, chunks);
		if (!of || (m && of != m))
			return false;
		m = of;
	}
	if (!m || m >= PASSES_MOST / (int64_t)l->n / chunks)
		return false;
	l->plan = (struct ft_plan){ .schedule = schedule,
				    .pp = (int64_t)l->n,
				    .vpp = chunks,
				    .micro_batches = m };
	l->n_slots = ft_plan_most_slots(&l->plan);
	l->n_places = l->n_slots / 2;
	for (size_t s = 0; s < l->n; s++) {
		l->stage[s].slot = ARENA_ARRAY(&l->scratch, l->n_slots, struct ft_slot);
		ft_plan_slots(&l->plan, (int64_t)s, l->stage[s].slot);
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
		if (!sends_fit(l, s))
			return 2;
		sum += passes_unlike(l, s);
		n++;
	}
	return sum / (double)n;
}

/* Of two that are as good, the one with fewer chunks; and then 1F1B. */
bool order_find(struct layout *l)
{
	static const enum ft_schedule kinds[] = { FT_1F1B, FT_GPIPE };
	enum ft_schedule best = FT_1F1B;
	int64_t chunks = 0;
	double least = 1;

	for (int64_t v = 1; v <= (l->n > 1 ? CHUNKS_MOST : 0); v++)
		for (int i = 0; i < 2; i++) {
			double d = set_order(l, kinds[i], v) ? unlike(l) : 2;

			if (d < least) {
				least = d;
				best = kinds[i];
				chunks = v;
			}
		}
	return chunks && set_order(l, best, chunks);
}
