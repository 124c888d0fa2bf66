/*
 * study/search_ranks.c - a search shared by processes (study/ranks.h)
 *
 * An item of the first phase is a chunk of the space, whose bounds come back; an item of the
 * second is a candidate, whose row of a sweep's table does. All ranks have made the same
 * space; rank 0 alone knows the bounds and what is kept.
 */
#include <math.h>

#include "base/digest.h"
#include "base/node.h"
#include "base/plain.h"
#include "study/row_pack.h"
#include "study/search.h"

/* Of the search: processes that differ in it do not search together. */
uint64_t search_identity(const struct search_job *j)
{
	const struct ft_search *s = j->search;
	struct ft_digest d = { 0, 0 };
	struct arena mem = { 0 };
	const int how[] = { (int)j->phase, (int)s->rank_by, s->db != NULL };

	digest_text(&d, ft_version_build());
	digest_text(&d, node_flow(&mem, j->root));
	for (size_t i = 0; i < s->n_free; i++)
		digest_text(&d, s->free_key[i]);
	digest_bytes(&d, how, sizeof(how));
	arena_release(&mem);
	return d.low ^ d.high;
}

static size_t chunk_end(const struct search_job *j, size_t from)
{
	return from + SEARCH_CHUNK < j->space.n ? from + SEARCH_CHUNK : j->space.n;
}

/* ---- rank 0 ---------------------------------------------------------------------- */

static size_t left(void *job)
{
	const struct search_job *j = job;
	size_t next = j->next;

	if (j->phase == BOUNDING)
		return next < j->space.n ? (j->space.n - next) / SEARCH_CHUNK : 0;
	return j->n_order - next;
}

static bool known(void *job, size_t at, const char key[RANKS_KEY])
{
	struct search_job *j = job;
	struct found f = { .at = at };

	if (!search_knows(j, key, &f.outcome))
		return false;
	search_take_in(j, &f, true, NULL);
	return true;
}

static void fail_unreadable(struct search_job *j)
{
	struct ft_error why;

	ft_fail(&why, NULL, "another rank's result cannot be read");
	search_fail(j, &why);
}

static void take_bounds(void *job, size_t chunk, const char *bytes, size_t n)
{
	struct search_job *j = job;
	struct unpack from = { bytes, n, false };
	struct ft_error why;
	size_t refused, to = chunk_end(j, chunk);

	for (size_t i = chunk; i < to; i++) {
		struct candidate *c = &j->space.candidate[i];

		unpack_bytes(&from, &c->of_node, sizeof(c->of_node));
		unpack_bytes(&from, &c->memory, sizeof(c->memory));
		unpack_bytes(&from, &c->bound, sizeof(c->bound));
	}
	unpack_bytes(&from, &refused, sizeof(refused));
	unpack_bytes(&from, &why, sizeof(why));
	if (from.bad)
		fail_unreadable(j);
	else
		search_refuse(j, refused, &why);
	j->finished += to - chunk;
}

static void take_step(void *job, size_t at, const char *bytes, size_t n)
{
	struct search_job *j = job;
	struct unpack from = { bytes, n, false };
	struct found f = { .at = at };
	struct sweep_row row = { .label = NULL };
	struct ft_error why;
	bool ok;

	unpack_bytes(&from, &ok, sizeof(ok));
	if (ok)
		from.bad |= !unpack_row(&from, &j->rows, &row, AXES);
	else
		unpack_bytes(&from, &why, sizeof(why));
	if (from.bad) {
		fail_unreadable(j);
		return;
	}
	f.outcome = row.outcome;
	search_take_in(j, &f, ok, &why);
	if (ok && j->db)
		search_keep_row(j, row);
}

void search_begin_phase(struct search_job *j)
{
	bool bounds = j->phase == BOUNDING;

	j->desk = (struct ranks_desk){
		.context = j,
		.lock = &j->lock,
		.on = search_on,
		.next = search_next,
		.left = left,
		.known = !bounds && j->db ? known : NULL,
		.result = bounds ? take_bounds : take_step,
	};
	if (j->search->ranks)
		ranks_begin(j->search->ranks, search_identity(j));
}

/* ---- another rank: for rank 0 ------------------------------------------------------- */

static void bound_chunk(struct worker *w, const struct ranks_piece *p, struct pack *to)
{
	struct search_job *j = w->job;
	struct ft_error why = { .text = "" };
	size_t refused = 0;

	for (size_t i = p->item; i < chunk_end(j, p->item); i++) {
		struct candidate *c = &j->space.candidate[i];
		struct ft_error one;

		if (!search_bound(w, c, &one) && !refused++)
			why = one;
		pack_bytes(to, &c->of_node, sizeof(c->of_node));
		pack_bytes(to, &c->memory, sizeof(c->memory));
		pack_bytes(to, &c->bound, sizeof(c->bound));
	}
	pack_bytes(to, &refused, sizeof(refused));
	pack_bytes(to, &why, sizeof(why));
}

static void simulate_candidate(struct worker *w, const struct ranks_piece *p,
			       struct pack *to)
{
	struct arena mem = { 0 };
	struct ft_outcome o;
	struct ft_error why;
	struct ft_scenario *s = search_scenario(w, p->item, &mem, &why);
	bool ok = s && ft_study_simulate(s, NULL, NULL, &o, &why);

	pack_bytes(to, &ok, sizeof(ok));
	if (ok) {
		struct sweep_row row = search_row(s, &o, &mem);

		pack_row(to, &row, AXES);
		ft_outcome_release(&o);
	} else {
		pack_bytes(to, &why, sizeof(why));
	}
	ft_scenario_free(s);
	arena_release(&mem);
}

static void say_key(struct worker *w, const struct ranks_piece *p)
{
	struct arena mem = { 0 };
	struct ft_error why;
	struct ft_scenario *s = search_scenario(w, p->item, &mem, &why);
	char key[RANKS_KEY] = "";

	if (s)
		digest_hex(&s->digest, key);
	ranks_keyed(w->job->search->ranks, p->place, key);
	ft_scenario_free(s);
	arena_release(&mem);
}

void search_for_rank_0(void *workers, int i)
{
	PLAIN_NUMBERS;
	struct worker *w = (struct worker *)workers + i;
	struct ft_ranks *ranks = w->job->search->ranks;
	struct ranks_piece p;

	if (!w->shelf && !search_open(w, w->job)) {
		ranks_fail(ranks, &w->job->err);
		return;
	}
	while (ranks_take(ranks, &p)) {
		struct pack to = { NULL, 0, 0 };

		if (p.round == RANKS_ROUND_KEYS) {
			say_key(w, &p);
			continue;
		}
		if (w->job->phase == BOUNDING)
			bound_chunk(w, &p, &to);
		else
			simulate_candidate(w, &p, &to);
		ranks_found(ranks, p.place, to.bytes, to.n);
		pack_release(&to);
	}
}

void search_watch_for_rank_0(void *workers, bool stop, bool over)
{
	struct search_job *j = ((struct worker *)workers)->job;

	ranks_watch(j->search->ranks, stop, over);
	j->stop |= stop || ranks_dismissed(j->search->ranks);
}
