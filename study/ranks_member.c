/* study/ranks_member.c - a rank that works for rank 0: its batch, and what it says */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "study/crew.h"
#include "study/ranks.h"

static const double BEAT_S = 1, ASK_S = 0.05, BATCH_S = 0.5, GIVE_UP_S = 300;

void ranks_fail(struct ft_ranks *r, const struct ft_error *why)
{
	pthread_mutex_lock(&r->lock);
	if (!r->failed)
		r->err = *why;
	r->failed = r->over = true;
	pthread_mutex_unlock(&r->lock);
}

static void ask(struct ft_ranks *r)
{
	double now = clock_now_s();

	if (r->over || r->batch->lease.id || now - r->asked_s < ASK_S)
		return;
	r->asked_s = now;
	ranks_say(
		r, 0,
		(struct ranks_head){ .kind = RANKS_ASK, .n = r->wanted, .job = r->job },
		NULL, 0);
}

/* ---- what rank 0 says ---------------------------------------------------------------- */

static void begin_batch(struct ft_ranks *r, const struct ranks_head *h,
			const char *bytes, size_t n)
{
	struct ranks_batch *b = r->batch;
	uint64_t item;

	if (b->lease.id || r->over || h->n > RANKS_BATCH || n != h->n * sizeof(item))
		return;
	for (uint32_t i = 0; i < h->n; i++) {
		memcpy(&item, bytes + i * sizeof(item), sizeof(item));
		b->lease.item[i] = (size_t)item;
		b->there[i] = false;
		b->key[i][0] = '\0';
		b->n_bytes[i] = 0;
	}
	b->lease.id = h->lease;
	b->lease.n = h->n;
	b->round = h->flag ? RANKS_ROUND_KEYS : RANKS_ROUND_RUN;
	b->waits = false;
	b->next = b->ended = 0;
	b->begun_s = clock_now_s();
}

static void fail_refused(struct ft_ranks *r)
{
	if (!r->failed)
		ft_fail(&r->err, NULL,
			"this rank has another foretoken, or other files, than rank 0");
	r->failed = r->over = true;
}

static void obey(struct ft_ranks *r, const struct ranks_head *h, const char *bytes,
		 size_t n)
{
	struct ranks_batch *b = r->batch;

	if (h->kind == RANKS_QUIT || h->kind == RANKS_END) {
		r->over = r->quit = true;
		if (h->kind == RANKS_END) {
			r->ended = true;
			r->all_there = h->flag;
		}
	} else if (h->kind == RANKS_OVER && h->phase < r->phase) {
		ranks_say(r, 0, (struct ranks_head){ RANKS_BYE, h->phase, 0, 0, 0, 0 },
			  NULL, 0);
	} else if (h->phase != r->phase) {
		return;
	} else if (h->kind == RANKS_WORK) {
		begin_batch(r, h, bytes, n);
	} else if (h->kind == RANKS_KNOWN && b->waits && h->lease == b->lease.id &&
		   n == b->lease.n) {
		for (uint32_t i = 0; i < b->lease.n; i++)
			b->there[i] = bytes[i];
		b->round = RANKS_ROUND_RUN;
		b->waits = false;
		b->next = b->ended = 0;
	} else if (h->kind == RANKS_OVER) {
		r->over = true;
	} else if (h->kind == RANKS_REFUSED) {
		fail_refused(r);
	}
}

void ranks_hear(struct ft_ranks *r)
{
	double now = clock_now_s();
	const char *bytes;
	size_t n;
	int from;

	while ((bytes = r->channel->take(r->channel->context, &from, &n))) {
		struct ranks_head h;

		if (n < sizeof(h) || from != 0)
			continue;
		memcpy(&h, bytes, sizeof(h));
		r->heard_s = now;
		obey(r, &h, bytes + sizeof(h), n - sizeof(h));
	}
	if (now - r->told_s > BEAT_S) {
		r->told_s = now;
		ranks_say(r, 0, (struct ranks_head){ .kind = RANKS_ALIVE }, NULL, 0);
	}
	if (now - r->heard_s > GIVE_UP_S && !r->over) {
		ft_fail(&r->err, NULL, "rank 0 is silent");
		r->failed = r->over = true;
	}
}

/* ---- the batch ---------------------------------------------------------------------- */

static void say_done(struct ft_ranks *r)
{
	struct ranks_batch *b = r->batch;
	size_t n = 0, at = 0;
	uint32_t results = 0;
	char *all;

	for (uint32_t i = 0; i < b->lease.n; i++)
		n += 2 * sizeof(uint32_t) + b->n_bytes[i];
	all = allocated(malloc(n + 1));
	for (uint32_t i = 0; i < b->lease.n; i++) {
		uint32_t place[2] = { i, (uint32_t)b->n_bytes[i] };

		if (!b->n_bytes[i] && !b->there[i])
			continue;
		memcpy(all + at, place, sizeof(place));
		if (b->n_bytes[i])
			memcpy(all + at + sizeof(place), b->bytes[i], b->n_bytes[i]);
		at += sizeof(place) + b->n_bytes[i];
		results++;
	}
	ranks_say(r, 0,
		  (struct ranks_head){
			  .kind = RANKS_DONE, .n = results, .lease = b->lease.id },
		  all, at);
	free(all);
	b->lease.id = 0;
	r->asked_s = 0; /* the next, at once */
}

/* The next batch is to take half a second, and at most four times as many as this one. */
static void pace(struct ft_ranks *r)
{
	const struct ranks_batch *b = r->batch;
	double spent = clock_now_s() - b->begun_s;
	double fit = spent > 0 ? BATCH_S / spent * b->lease.n : RANKS_BATCH;
	double most = 4.0 * r->wanted;

	fit = fit < most ? fit : most;
	r->wanted = fit < 1 ? 1 : fit > RANKS_BATCH ? RANKS_BATCH : (uint32_t)fit;
}

/* The round's last item has ended. */
static void end_round(struct ft_ranks *r)
{
	struct ranks_batch *b = r->batch;

	if (b->round == RANKS_ROUND_KEYS) {
		b->waits = true;
		ranks_say(r, 0,
			  (struct ranks_head){ .kind = RANKS_KEYS,
					       .n = b->lease.n,
					       .lease = b->lease.id },
			  b->key, (size_t)b->lease.n * RANKS_KEY);
		return;
	}
	pace(r);
	say_done(r);
	ask(r);
}

static void end_item(struct ft_ranks *r)
{
	if (++r->batch->ended == r->batch->lease.n)
		end_round(r);
}

void ranks_keyed(struct ft_ranks *r, uint32_t place, const char *key)
{
	pthread_mutex_lock(&r->lock);
	memcpy(r->batch->key[place], key, strlen(key) + 1);
	end_item(r);
	pthread_mutex_unlock(&r->lock);
}

void ranks_found(struct ft_ranks *r, uint32_t place, const char *bytes, size_t n)
{
	struct ranks_batch *b = r->batch;

	pthread_mutex_lock(&r->lock);
	if (bytes) {
		char *copy = allocated(realloc(b->bytes[place], n));

		memcpy(copy, bytes, n);
		b->bytes[place] = copy;
		b->n_bytes[place] = n;
	}
	end_item(r);
	pthread_mutex_unlock(&r->lock);
}

/* An item of the batch that nobody has; those that are there end at once. */
static bool next_item(struct ft_ranks *r, uint32_t *place)
{
	struct ranks_batch *b = r->batch;

	while (b->lease.id && !b->waits && b->next < b->lease.n) {
		*place = b->next++;
		if (b->round == RANKS_ROUND_KEYS || !b->there[*place])
			return true;
		end_item(r);
	}
	return false;
}

bool ranks_take(struct ft_ranks *r, struct ranks_piece *p)
{
	struct timespec moment = { 0, 500000 };
	bool got = false, over = false;

	while (!got && !over) {
		pthread_mutex_lock(&r->lock);
		over = r->over;
		got = !over && next_item(r, &p->place);
		if (got) {
			p->item = r->batch->lease.item[p->place];
			p->round = r->batch->round;
		} else if (!over) {
			ask(r);
			ranks_hear(r);
		}
		pthread_mutex_unlock(&r->lock);
		if (!got && !over)
			nanosleep(&moment, NULL);
	}
	return got;
}

void ranks_watch(struct ft_ranks *r, bool stop, bool over)
{
	pthread_mutex_lock(&r->lock);
	ranks_hear(r);
	r->over |= stop;
	if (over) {
		if (r->batch->lease.id)
			say_done(r);
		ranks_say(r, 0, (struct ranks_head){ .kind = RANKS_BYE }, NULL, 0);
	}
	pthread_mutex_unlock(&r->lock);
}

bool ranks_dismissed(struct ft_ranks *r)
{
	bool quit;

	pthread_mutex_lock(&r->lock);
	quit = r->quit || r->failed;
	pthread_mutex_unlock(&r->lock);
	return quit;
}
