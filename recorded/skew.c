/*
 * recorded/skew.c - waiting apart from transfer, and who is waited for
 *
 * A collective begins to move data when the last of its ranks has begun: what a rank
 * spends in it before that is waiting. Of ranks that begin at the same moment the first
 * given counts as the last.
 */
#include "recorded/replay.h"

struct last {
	ft_ps begin;
	size_t rank;
};

static struct last *find_last(const struct ft_replay *p, const struct ft_replayed *t,
			      struct arena *scratch)
{
	struct last *last = ARENA_ARRAY(scratch, p->n_meetings, struct last);

	for (size_t m = 0; m < p->n_meetings; m++)
		last[m].begin = INT64_MIN;
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			int32_t m = p->rank[k].meeting[i];

			if (m != FT_REC_NONE && t->op_begin[k][i] > last[m].begin)
				last[m] = (struct last){ t->op_begin[k][i], k };
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
		s.last += last[m].rank == rank;
		s.waiting_s += (double)(last[m].begin - begin) * 1e-12;
		s.transfer_s += (double)(t->op_end[rank][i] - last[m].begin) * 1e-12;
	}
	/* recordings begin at 0 each; what they began at tells the rest */
	s.clock_s += (double)(k->r->origin_us - p->rank[0].r->origin_us) * 1e-6;
	arena_release(&scratch);
	return s;
}
