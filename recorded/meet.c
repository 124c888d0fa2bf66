/*
 * recorded/meet.c - collectives that several ranks recorded, found by group and order
 *
 * A group is told by its number and its ranks; the i-th collective that a rank launched
 * in a group since its recording began meets the i-th of the others if name and bytes agree, and they are no
 * more than the group has ranks. The i-th send of a rank
 * to another meets the other's i-th receive from it; where one kernel does several, all are to
 * meet the same one. Clocks are aligned by the ends of what
 * meets: a rank is moved by the median of its ends' lateness. A send that then ended before its
 * receive began was buffered, and meets nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "recorded/replay.h"

static const ft_ps CLOCK_PS = 10000000;	  /* what clocks may be apart */
static const ft_ps APART_PS = 1000000000; /* no drift of clocks within a recording */

/* One collective of one rank, to be sorted. */
struct seen {
	const struct ft_rec_collective *what;
	int64_t from, to; /* of send and receive: ranks; else NONE */
	size_t rank;
	uint32_t op;
	size_t turn; /* in its group, by the order of launch */
};

static int by_group(const struct seen *x, const struct seen *y)
{
	int order = strcmp(x->what->ranks, y->what->ranks);

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return order ? order : strcmp(x->what->group, y->what->group);
}

/* qsort is not stable: the last comparisons are by what cannot be equal. */
static int by_launch(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int order = by_group(x, y);

	if (!order)
		order = whole_order((int64_t)x->rank, (int64_t)y->rank);
	return order ? order : whole_order((int64_t)x->turn, (int64_t)y->turn);
}

static int by_turn(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int order = by_group(x, y);

	if (!order)
		order = whole_order((int64_t)x->turn, (int64_t)y->turn);
	return order ? order : whole_order((int64_t)x->rank, (int64_t)y->rank);
}

static ft_ps launch_of(const struct ft_recording *r, const struct ft_rec_op *op)
{
	return op->call == FT_REC_NONE ? op->start :
					 call_of(r, (size_t)op->call)->start;
}

/* Does the recording say enough of a collective to find it on other ranks? */
static bool is_told(const struct ft_recording *r, const struct ft_rec_collective *c)
{
	return c && c->ranks[0] && c->size > 1 &&
	       (c->op != FT_SENDRECV ||
		(c->peer != FT_REC_NONE && r->rank != FT_REC_NONE));
}

/* When each stream begins what was launched in the recording; INT64_MAX: it never does. */
static ft_ps *first_launched(const struct ft_recording *r, struct arena *scratch)
{
	ft_ps *first = ARENA_ARRAY(scratch, r->stream.n, ft_ps);

	for (size_t s = 0; s < r->stream.n; s++)
		first[s] = INT64_MAX;
	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *o = op_of(r, i);

		if (o->call != FT_REC_NONE && o->start < first[o->stream])
			first[o->stream] = o->start;
	}
	return first;
}

/* Was it launched before the recording began? Of those each rank has as many as it was
 * behind, so that they would shift the order of all others. */
static bool was_launched_before(const struct ft_rec_op *o, const ft_ps *first)
{
	return o->call == FT_REC_NONE && first[o->stream] < INT64_MAX &&
	       o->start < first[o->stream];
}

/* The collectives of a rank whose group, or other end, is told, in the order of launch. */
static size_t list(struct ft_replay *p, size_t rank, struct arena *scratch,
		   struct seen *to)
{
	const struct ft_recording *r = p->rank[rank].r;
	struct timed_op *l = ARENA_ARRAY(scratch, r->op.n, struct timed_op);
	const ft_ps *first = first_launched(r, scratch);
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < r->op.n; i++)
		if (op_of(r, i)->rec_class == FT_REC_COLLECTIVE &&
		    !was_launched_before(op_of(r, i), first))
			l[n++] = (struct timed_op){ launch_of(r, op_of(r, i)),
						    (uint32_t)i };
	qsort(l, n, sizeof(*l), by_time_and_op);
	for (size_t i = 0; i < n; i++) {
		const struct ft_rec_collective *c =
			ft_recording_collective(r, op_of(r, l[i].op));

		for (; c; c = c->also) {
			int64_t here = c->op == FT_SENDRECV ? r->rank : FT_REC_NONE;

			if (is_told(r, c))
				to[kept++] = (struct seen){ c,
							    c->sends ? here : c->peer,
							    c->sends ? c->peer : here,
							    rank,
							    l[i].op,
							    i };
		}
	}
	return kept;
}

/* Turns count within a group, from 0. */
static void count_turns(struct seen *s, size_t n)
{
	qsort(s, n, sizeof(*s), by_launch);
	for (size_t i = 0; i < n; i++)
		s[i].turn =
			i && s[i - 1].rank == s[i].rank && !by_group(&s[i - 1], &s[i]) ?
				s[i - 1].turn + 1 :
				0;
	qsort(s, n, sizeof(*s), by_turn);
}

static bool agree(const struct seen *s, size_t n)
{
	if (s->what->op == FT_SENDRECV)
		return n == 2 && s[0].what->sends != s[1].what->sends &&
		       !(s[0].what->bytes < s[1].what->bytes ||
			 s[0].what->bytes > s[1].what->bytes);
	if (s->what->size > 0 && (int64_t)n > s->what->size)
		return false; /* no group has more ranks than it says */
	for (size_t i = 1; i < n; i++)
		if (s[i].rank == s[i - 1].rank ||
		    strcmp(s[i].what->name, s[0].what->name) ||
		    s[i].what->bytes > s[0].what->bytes ||
		    s[i].what->bytes < s[0].what->bytes)
			return false;
	return true;
}

/* A kernel that sends and receives meets one other, which receives and sends. One that
 * meets several ends when the last of them does, which no meeting says: it is parted. */
static void meet(struct ft_replay *p, const struct seen *s, size_t n)
{
	int32_t first = p->rank[s->rank].meeting[s->op];
	struct meeting met = { .n = n };
	bool again = first != FT_REC_NONE;

	if (n < 2 || !agree(s, n))
		return;
	for (size_t i = 0; i < n; i++) {
		int32_t m = p->rank[s[i].rank].meeting[s[i].op];

		again &= m == first;
		met.parted |= m != FT_REC_NONE;
		if (m != FT_REC_NONE)
			p->meeting[m].parted |= m != first;
	}
	if (again)
		return;
	if (first != FT_REC_NONE)
		p->meeting[first].parted = true;
	for (size_t i = 0; i < n; i++)
		p->rank[s[i].rank].meeting[s[i].op] = (int32_t)p->n_meetings;
	p->meeting[p->n_meetings++] = met;
}

static void part(struct ft_replay *p)
{
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			int32_t *m = &p->rank[k].meeting[i];

			if (*m != FT_REC_NONE && p->meeting[*m].parted)
				*m = FT_REC_NONE;
		}
}

/* ---- clocks ----------------------------------------------------------------------------- */

static ft_ps end_at(const struct rank *k, size_t op)
{
	const struct ft_rec_op *o = op_of(k->r, op);

	return o->start + o->duration;
}

/* Sets a rank's clock by another's, so that their collectives end together in the median;
 * false: they have none in common. */
static bool align(struct ft_replay *p, size_t rank, size_t to, struct arena *scratch)
{
	struct rank *k = &p->rank[rank], *other = &p->rank[to];
	ft_ps *end = ARENA_ARRAY(scratch, p->n_meetings, ft_ps);
	bool *has = ARENA_ARRAY(scratch, p->n_meetings, bool);
	ft_ps *late = ARENA_ARRAY(scratch, k->r->op.n, ft_ps);
	size_t n = 0;

	for (size_t i = 0; i < other->r->op.n; i++)
		if (other->meeting[i] != FT_REC_NONE) {
			end[other->meeting[i]] = end_at(other, i);
			has[other->meeting[i]] = true;
		}
	for (size_t i = 0; i < k->r->op.n; i++)
		if (k->meeting[i] != FT_REC_NONE && has[k->meeting[i]])
			late[n++] = end_at(k, i) - end[k->meeting[i]];
	if (!n)
		return false;
	qsort(late, n, sizeof(*late), by_whole);
	k->shift = other->shift - late[n / 2];
	return true;
}

/* Sets a rank's clock by the profiler's own, unless that is 1,000 s off or more. */
static void trust_profiler(struct ft_replay *p, size_t rank)
{
	int64_t apart_us = p->rank[rank].r->origin_us - p->rank[0].r->origin_us;

	if (apart_us < 1000000000 && apart_us > -1000000000)
		p->rank[rank].shift = apart_us * 1000000;
}

/* By the first rank, or by one that was aligned before; so along a pipeline. */
static void align_all(struct ft_replay *p, struct arena *scratch)
{
	bool *aligned = ARENA_ARRAY(scratch, p->n_ranks, bool);
	bool more = true;

	aligned[0] = true;
	while (more) {
		more = false;
		for (size_t to = 0; to < p->n_ranks; to++)
			for (size_t k = 1; aligned[to] && k < p->n_ranks; k++)
				if (!aligned[k] && align(p, k, to, scratch))
					aligned[k] = more = true;
	}
	for (size_t k = 1; k < p->n_ranks; k++)
		if (!aligned[k])
			trust_profiler(p, k);
}

/* When the last rank of each meeting begins and the first ends. */
struct span {
	ft_ps last_begin, first_end;
};

static struct span *spans_of(const struct ft_replay *p, struct arena *scratch)
{
	struct span *s = ARENA_ARRAY(scratch, p->n_meetings, struct span);

	for (size_t m = 0; m < p->n_meetings; m++)
		s[m] = (struct span){ INT64_MIN, INT64_MAX };
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			int32_t m = p->rank[k].meeting[i];
			ft_ps begin = op_of(p->rank[k].r, i)->start + p->rank[k].shift;
			ft_ps end = end_at(&p->rank[k], i) + p->rank[k].shift;

			if (m == FT_REC_NONE)
				continue;
			if (begin > s[m].last_begin)
				s[m].last_begin = begin;
			if (end < s[m].first_end)
				s[m].first_end = end;
		}
	return s;
}

/* Can no rank be done with this collective before the last one has begun it? */
static bool needs_all(const struct ft_recording *r, size_t op)
{
	enum ft_collective c = ft_recording_collective(r, op_of(r, op))->op;

	return c == FT_ALL_REDUCE || c == FT_ALL_GATHER || c == FT_REDUCE_SCATTER ||
	       c == FT_ALL_TO_ALL;
}

/* What to do about recordings that do not fit: of a lost collective all that follow meet another. */
static const char *remedy(const struct ft_replay *p)
{
	for (size_t k = 0; k < p->n_ranks; k++)
		if (p->rank[k].r->counts.without_op)
			return "the profiler lost operations, perhaps one of these; record "
			       "again";
	return "give recordings of the same steps of one job";
}

/* Recordings of two jobs, or of different steps, may have collectives of the same names and
 * sizes; but then some end on one rank before they begin on the other, however clocks are set. */
static bool meetings_fit(const struct ft_replay *p, struct arena *scratch,
			 struct ft_error *err)
{
	const struct span *s = spans_of(p, scratch);

	for (size_t k = 1; k < p->n_ranks; k++) {
		const struct ft_recording *r = p->rank[k].r;
		size_t n = 0, not = 0;

		for (size_t i = 0; i < r->op.n; i++) {
			int32_t m = p->rank[k].meeting[i];

			if (m == FT_REC_NONE || !needs_all(r, i))
				continue;
			n++;
			not += s[m].last_begin > s[m].first_end + APART_PS;
		}
		if (4 * not > n)
			return ft_fail(
				err, &(struct ft_mark){ .file = r->file },
				"%zu of %zu collectives that it shares with the other "
				"recordings end on one rank before they begin on "
				"another: %s",
				not, n, remedy(p));
	}
	return true;
}

/* Where all ranks of a job are given, each of its collectives is on another, too: a rank of which none is comes from another
 * job, or from other steps. One alone may lie at an end of the recording. */
static bool all_meet(const struct ft_replay *p, struct ft_error *err)
{
	for (size_t k = 0; k < p->n_ranks; k++) {
		const struct ft_recording *r = p->rank[k].r;
		size_t n = 0, met = 0;

		if (r->world != (int64_t)p->n_ranks)
			continue;
		for (size_t i = 0; i < r->op.n; i++)
			if (is_told(r, ft_recording_collective(r, op_of(r, i))) &&
			    needs_all(r, i)) {
				n++;
				met += p->rank[k].meeting[i] != FT_REC_NONE;
			}
		if (n > 1 && !met)
			return ft_fail(
				err, &(struct ft_mark){ .file = r->file },
				"none of its %zu collectives is in the recordings of "
				"the other ranks: give recordings of the same steps "
				"of one job",
				n);
	}
	return true;
}

static void part_buffered(struct ft_replay *p, struct arena *scratch)
{
	const struct span *s = spans_of(p, scratch);

	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			int32_t *m = &p->rank[k].meeting[i];

			if (*m == FT_REC_NONE ||
			    ft_recording_collective(p->rank[k].r,
						    op_of(p->rank[k].r, i))
					    ->op != FT_SENDRECV ||
			    s[*m].last_begin <= s[*m].first_end + CLOCK_PS)
				continue;
			*m = FT_REC_NONE;
		}
}

/* Collectives that met; and those whose peers are not recorded, or do not fit. */
static void count(struct ft_replay *p)
{
	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			const struct ft_recording *r = p->rank[k].r;
			const struct ft_rec_collective *c =
				ft_recording_collective(r, op_of(r, i));

			if (p->rank[k].meeting[i] != FT_REC_NONE)
				p->counts.matched++;
			else if (c && (c->op == FT_SENDRECV || is_told(r, c)))
				p->counts.unmatched++;
		}
}

/* Sends and receives of kernels: the most that can meet. */
static size_t transfers(const struct ft_recording *r)
{
	size_t n = r->op.n;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_collective *c =
			ft_recording_collective(r, op_of(r, i));

		for (; c && c->also; c = c->also)
			n++;
	}
	return n;
}

bool ranks_meet(struct ft_replay *p, struct ft_error *err)
{
	struct arena scratch = { 0 };
	struct seen *s;
	size_t n = 0, most = 0;
	bool fit;

	if (!ranks_alike(p, err))
		return false;
	for (size_t i = 0; i < p->n_ranks; i++)
		most += transfers(p->rank[i].r);
	s = ARENA_ARRAY(&scratch, most, struct seen);
	p->meeting = ARENA_ARRAY(&p->mem, most, struct meeting);
	for (size_t i = 0; i < p->n_ranks; i++)
		n += list(p, i, &scratch, s + n);
	count_turns(s, n);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1;
		     j < n && !by_group(&s[i], &s[j]) && s[i].turn == s[j].turn; j++)
			;
		meet(p, s + i, j - i);
	}
	part(p);
	align_all(p, &scratch);
	fit = all_meet(p, err) && meetings_fit(p, &scratch, err);
	part_buffered(p, &scratch);
	count(p);
	arena_release(&scratch);
	return fit;
}

size_t transfers_untold(const struct ft_replay *p)
{
	size_t n = 0;

	for (size_t k = 0; k < p->n_ranks; k++)
		for (size_t i = 0; i < p->rank[k].r->op.n; i++) {
			const struct ft_rec_op *op = op_of(p->rank[k].r, i);
			const struct ft_rec_collective *c =
				ft_recording_collective(p->rank[k].r, op);

			n += op->rec_class == FT_REC_COLLECTIVE &&
			     (c ? c->op == FT_SENDRECV && c->peer == FT_REC_NONE :
				  strstr(ft_recording_text(p->rank[k].r, op->name),
					 "SendRecv") != NULL);
		}
	return n;
}
