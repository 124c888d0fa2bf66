/*
 * recorded/skew.c - waiting apart from transfer, and who is waited for
 *
 * A collective begins to move data when the last of its ranks has begun: what a rank
 * spends in it before that is waiting. Of ranks that begin at the same moment the first
 * given counts as the last; where all do, none waits and none comes last.
 */
#include "recorded/replay.h"

struct last {
	ft_ps begin, first; /* of the last, and of the first to come */
	size_t rank;
};

static struct last *find_last(const struct ft_replay *p, const struct ft_replayed *t,
			      struct arena *scratch)
{
	struct last *last = ARENA_ARRAY(scratch, p->n_meetings, struct last);

	for (size_t m = 0; m < p->n_meetings; m++)
		last[m] = (struct last){ INT64_MIN, INT64_MAX, 0 };
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			int32_t m = p->rank[k].meeting[i];
			ft_ps begin = t->op_begin[k][i];

			if (m == FT_REC_NONE)
				continue;
			if (begin < last[m].first)
				last[m].first = begin;
			if (begin > last[m].begin) {
				last[m].begin = begin;
				last[m].rank = k;
			}
		}
	return last;
}

struct ft_rec_skew ft_replay_skew(const struct ft_replay *p,
				  const struct ft_replayed *t, size_t rank,
				  struct ft_rec_window w)
{
	struct ft_rec_skew s = { .clock_s = -(double)p->rank[rank].shift * 1e-12 };
	struct arena scratch = { 0 };
	const struct last *last = find_last(p, t, &scratch);
	const struct rank *k = &p->rank[rank];

	for (size_t i = 0; i < k->r->op.n; i++) {
		int32_t m = k->meeting[i];
		ft_ps begin = t->op_begin[rank][i];

		if (m == FT_REC_NONE || begin < w.from || begin >= w.to)
			continue;
		s.met++;
		s.last += last[m].rank == rank && last[m].first < last[m].begin;
		s.waiting_s += (double)(last[m].begin - begin) * 1e-12;
		s.transfer_s += (double)(t->op_end[rank][i] - last[m].begin) * 1e-12;
	}
	/* recordings begin at 0 each; what they began at tells the rest */
	s.clock_s += (double)(k->r->origin_us - p->rank[0].r->origin_us) * 1e-6;
	arena_release(&scratch);
	return s;
}
