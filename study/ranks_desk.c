/* study/ranks_desk.c - rank 0: leases, results, and ranks that are lost */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "study/crew.h"
#include "study/ranks.h"

static const double SILENT_S = 10, BEAT_S = 1;

static void put_back(struct ft_ranks *r, size_t item)
{
	if (r->n_back == r->cap_back) {
		r->cap_back = 2 * r->cap_back + RANKS_BATCH;
		r->back = allocated(realloc(r->back, r->cap_back * sizeof(*r->back)));
	}
	r->back[r->n_back++] = item;
}

/* The lease is over; items that have no result come back. */
static void end_lease(struct ft_ranks *r, struct ranks_lease *l, const bool *done)
{
	for (uint32_t i = 0; l->id && i < l->n; i++)
		if (!done || !done[i])
			put_back(r, l->item[i]);
	l->id = 0;
}

/* Takes an item that came back without a result; false: there is none. */
static bool came_back(struct ft_ranks *r, size_t *item)
{
	if (!r || !r->n_back)
		return false;
	*item = r->back[--r->n_back];
	return true;
}

/* Does another rank have items? Their results, or the items, are still to come. */
static bool may_come(const struct ft_ranks *r)
{
	if (!ranks_shared(r))
		return false;
	for (int i = 1; i < r->channel->ranks; i++)
		if (r->other[i].lease.id)
			return true;
	return r->n_back > 0;
}

/* ---- what ranks say ----------------------------------------------------------------- */

/* Many to begin with, fewer towards the end, so that all end together. */
static size_t share_of(const struct ft_ranks *r, const struct ranks_desk *desk,
		       uint32_t wanted)
{
	size_t share = (desk->left(desk->context) + r->n_back) /
		       (2 * (size_t)r->channel->ranks);
	size_t most = wanted < RANKS_BATCH ? wanted : RANKS_BATCH;

	return share < 1 ? 1 : share < most ? share : most;
}

static void lease(struct ft_ranks *r, int to, const struct ranks_desk *desk,
		  uint32_t wanted)
{
	struct ranks_lease *l = &r->other[to].lease;
	uint64_t item[RANKS_BATCH];

	if (!l->id) {
		size_t most = share_of(r, desk, wanted);

		l->n = 0;
		while (l->n < most && (came_back(r, &l->item[l->n]) ||
				       desk->next(desk->context, &l->item[l->n])))
			l->n++;
		if (!l->n)
			return; /* it asks again */
		l->id = ++r->leases;
	}
	for (uint32_t i = 0; i < l->n; i++)
		item[i] = l->item[i];
	ranks_say(r, to,
		  (struct ranks_head){ .kind = RANKS_WORK,
				       .n = l->n,
				       .flag = desk->known != NULL,
				       .lease = l->id },
		  item, l->n * sizeof(*item));
}

static void say_known(struct ft_ranks *r, int to, const struct ranks_desk *desk,
		      const char *keys)
{
	struct ranks_lease *l = &r->other[to].lease;
	char there[RANKS_BATCH];

	for (uint32_t i = 0; i < l->n; i++) {
		const char *key = keys + (size_t)i * RANKS_KEY;

		there[i] = *key && desk->known &&
			   desk->known(desk->context, l->item[i], key);
	}
	ranks_say(r, to,
		  (struct ranks_head){ .kind = RANKS_KNOWN, .n = l->n, .lease = l->id },
		  there, l->n);
}

static void take_results(struct ft_ranks *r, struct ranks_lease *l,
			 const struct ranks_desk *desk, const char *at, size_t n)
{
	bool done[RANKS_BATCH] = { false };
	uint32_t place[2];

	while (n >= sizeof(place)) {
		memcpy(place, at, sizeof(place));
		at += sizeof(place);
		n -= sizeof(place);
		if (place[0] >= l->n || place[1] > n)
			break;
		if (place[1] && !done[place[0]])
			desk->result(desk->context, l->item[place[0]], at, place[1]);
		done[place[0]] = true; /* of no length: it was there */
		at += place[1];
		n -= place[1];
	}
	end_lease(r, l, done);
}

static void gone(struct ft_ranks *r, struct ranks_other *o, const struct ranks_head *h,
		 const char *bytes, size_t n)
{
	if (!o->gone)
		end_lease(r, &o->lease, NULL);
	o->gone = true;
	if (h->flag && n == sizeof(o->why))
		memcpy(&o->why, bytes, n);
}

/* A message of this phase. */
static void answer(struct ft_ranks *r, int from, const struct ranks_desk *desk,
		   const struct ranks_head *h, const char *bytes, size_t n)
{
	struct ranks_other *o = &r->other[from];
	bool leased = o->lease.id && o->lease.id == h->lease;

	if (h->kind == RANKS_ASK && h->job != r->job)
		ranks_say(r, from, (struct ranks_head){ .kind = RANKS_REFUSED }, NULL,
			  0);
	else if (h->kind == RANKS_ASK && r->over)
		ranks_say(r, from, (struct ranks_head){ .kind = RANKS_OVER }, NULL, 0);
	else if (h->kind == RANKS_ASK)
		lease(r, from, desk, h->n);
	else if (h->kind == RANKS_KEYS && leased && n == (size_t)o->lease.n * RANKS_KEY)
		say_known(r, from, desk, bytes);
	else if (h->kind == RANKS_DONE && leased)
		take_results(r, &o->lease, desk, bytes, n);
	else if (h->kind == RANKS_BYE)
		o->bye = true;
}

static void hear(struct ft_ranks *r, const struct ranks_desk *desk)
{
	const char *bytes;
	size_t n;
	int from;

	while ((bytes = r->channel->take(r->channel->context, &from, &n))) {
		struct ranks_head h;
		struct ranks_other *o;

		if (n < sizeof(h) || from < 1 || from >= r->channel->ranks)
			continue;
		memcpy(&h, bytes, sizeof(h));
		o = &r->other[from];
		o->heard_s = clock_now_s();
		o->lost = false;
		if (h.kind == RANKS_GONE)
			gone(r, o, &h, bytes + sizeof(h), n - sizeof(h));
		else if (desk && h.phase == r->phase)
			answer(r, from, desk, &h, bytes + sizeof(h), n - sizeof(h));
	}
}

void ranks_tend(struct ft_ranks *r, const struct ranks_desk *desk)
{
	double now = clock_now_s();
	bool beat;

	if (!ranks_shared(r))
		return;
	beat = now - r->told_s > BEAT_S;
	hear(r, desk);
	for (int i = 1; beat && i < r->channel->ranks; i++) {
		struct ranks_other *o = &r->other[i];

		if (o->gone)
			continue;
		ranks_say(r, i, (struct ranks_head){ .kind = RANKS_ALIVE }, NULL, 0);
		if (!o->lost && now - o->heard_s > SILENT_S) {
			o->lost = true;
			end_lease(r, &o->lease, NULL);
		}
	}
	if (beat)
		r->told_s = now;
}

bool ranks_next(struct ft_ranks *r, const struct ranks_desk *desk, size_t *item)
{
	struct timespec moment = { 0, 1000000 };
	bool got = false, wait = true;

	while (!got && wait) {
		bool on;

		pthread_mutex_lock(desk->lock);
		on = desk->on(desk->context);
		got = desk->next(desk->context, item) || (on && came_back(r, item));
		wait = !got && on && may_come(r);
		if (wait)
			ranks_tend(r, desk);
		pthread_mutex_unlock(desk->lock);
		if (wait)
			nanosleep(&moment, NULL);
	}
	return got;
}

void ranks_finish(struct ft_ranks *r, const struct ranks_desk *desk)
{
	double told_s = 0;
	bool all = !ranks_shared(r);

	if (r)
		r->over = true;
	while (!all) {
		struct timespec moment = { 0, 1000000 };
		double now = clock_now_s();
		bool tell = now - told_s > 0.1;

		ranks_tend(r, desk);
		all = true;
		for (int i = 1; i < r->channel->ranks; i++) {
			const struct ranks_other *o = &r->other[i];

			if (o->bye || o->gone || o->lost)
				continue;
			all = false;
			if (tell)
				ranks_say(r, i,
					  (struct ranks_head){ .kind = RANKS_OVER },
					  NULL, 0);
		}
		if (tell)
			told_s = now;
		if (!all)
			nanosleep(&moment, NULL);
	}
}
