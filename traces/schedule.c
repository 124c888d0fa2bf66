/*
 * traces/schedule.c - when a stage runs which forward and which backward
 *
 * 1f1b: min(pp-1-s, m) forwards, then one forward and one backward in turn, then
 * the backwards left. interleaved: the same over vpp chunks of layers, micro-
 * batches taken in groups of pp, with 2(pp-1-s) + (vpp-1)pp forwards first
 * (Narayanan et al., SC21). gpipe: all forwards, then all backwards.
 */
#include "traces/build.h"

/* All forwards of a stage in order: groups of pp micro-batches, chunk by chunk. */
static size_t forward_order(const struct ft_plan *p, struct slot *slot)
{
	size_t n = 0;

	if (p->vpp == 1) {
		for (int64_t m = 0; m < p->micro_batches; m++)
			slot[n++] = (struct slot){ true, 0, m };
		return n;
	}
	for (int64_t at = 0; at < p->micro_batches; at += p->pp)
		for (int64_t c = 0; c < p->vpp; c++)
			for (int64_t m = at; m < at + p->pp && m < p->micro_batches;
			     m++)
				slot[n++] = (struct slot){ true, c, m };
	return n;
}

size_t schedule_slots(struct arena *mem, const struct ft_plan *p, int64_t stage,
		      struct slot *slot)
{
	size_t total = (size_t)(p->micro_batches * p->vpp), n = 0, warm;
	struct slot *order = ARENA_ARRAY(mem, total, struct slot);
	int64_t ahead = p->pp - 1 - stage;

	forward_order(p, order);
	if (p->schedule == FT_GPIPE)
		warm = total;
	else if (p->vpp > 1)
		warm = (size_t)(2 * ahead + (p->vpp - 1) * p->pp);
	else
		warm = (size_t)ahead;
	if (warm > total)
		warm = total;
	for (size_t f = 0, back = 0; back < total;) {
		bool forward = f < total && (f < warm || f - warm <= back);
		struct slot s = order[forward ? f : back];

		/* in turn: forward number warm+i comes before backward number i */
		if (forward) {
			f++;
		} else {
			s.chunk = p->vpp - 1 - s.chunk;
			back++;
		}
		s.forward = forward;
		slot[n++] = s;
	}
	return n;
}
