/* study/ranks.c - ranks from the first phase to the end of all */
#include "study/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "study/crew.h"

/* How long a rank may be silent, and how long a member waits for rank 0 at the end. */
static const double SILENT_S = 10, GIVE_UP_S = 300;

struct ft_ranks *ft_ranks_new(const struct ft_channel *channel)
{
	struct ft_ranks *r = allocated(calloc(1, sizeof(*r)));

	r->channel = channel;
	r->wanted = 1;
	r->all_there = true;
	r->heard_s = clock_now_s();
	r->other = calloc((size_t)channel->ranks, sizeof(*r->other));
	r->batch = calloc(1, sizeof(*r->batch));
	if (!r->other || !r->batch)
		out_of_memory();
	for (int i = 0; i < channel->ranks; i++)
		r->other[i].heard_s = r->heard_s;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void ft_ranks_free(struct ft_ranks *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < RANKS_BATCH; i++)
		free(r->batch->bytes[i]);
	pthread_mutex_destroy(&r->lock);
	free(r->batch);
	free(r->back);
	free(r->other);
	free(r);
}

bool ft_ranks_first(const struct ft_ranks *r)
{
	return !r || r->channel->rank == 0;
}

bool ranks_shared(const struct ft_ranks *r)
{
	return r && r->channel->ranks > 1;
}

bool ranks_member(const struct ft_ranks *r)
{
	return r && r->channel->rank > 0;
}

void ranks_begin(struct ft_ranks *r, uint64_t job)
{
	r->phase++;
	r->job = job;
	r->over = r->quit || r->failed;
	r->asked_s = 0;
	r->n_back = 0;
	r->batch->lease.id = 0;
	for (int i = 1; i < r->channel->ranks; i++) {
		r->other[i].bye = false;
		r->other[i].lease.id = 0;
	}
}

void ranks_say(struct ft_ranks *r, int to, struct ranks_head head, const void *bytes,
	       size_t n)
{
	char *all = allocated(malloc(sizeof(head) + n));

	if (!head.phase)
		head.phase = r->phase;
	memcpy(all, &head, sizeof(head));
	if (n)
		memcpy(all + sizeof(head), bytes, n);
	r->channel->send(r->channel->context, to, all, sizeof(head) + n);
	free(all);
}

static void doze(void)
{
	struct timespec moment = { 0, 2000000 };

	nanosleep(&moment, NULL);
}

/* Rank 0: all are told to quit, and say that they have, or are silent. */
static bool dismiss(struct ft_ranks *r)
{
	bool all = false;
	double told_s = 0;

	while (!all) {
		double now = clock_now_s();
		bool tell = now - told_s > 0.2;

		ranks_tend(r, NULL);
		all = true;
		for (int i = 1; i < r->channel->ranks; i++) {
			struct ranks_other *o = &r->other[i];

			if (o->gone || o->lost)
				continue;
			all = false;
			if (tell)
				ranks_say(r, i,
					  (struct ranks_head){ .kind = RANKS_QUIT },
					  NULL, 0);
			o->lost = now - o->heard_s > SILENT_S;
		}
		if (tell)
			told_s = now;
		doze();
	}
	for (int i = 1; i < r->channel->ranks; i++)
		r->all_there = r->all_there && r->other[i].gone;
	for (int i = 1; i < r->channel->ranks; i++)
		ranks_say(
			r, i,
			(struct ranks_head){ .kind = RANKS_END, .flag = r->all_there },
			NULL, 0);
	return r->all_there;
}

/* A member: it says that it is gone, and waits for the end. */
static bool leave(struct ft_ranks *r, const struct ft_error *failed)
{
	struct ft_error none = { .text = "" };

	if (!failed && r->failed)
		failed = &r->err;
	ranks_say(r, 0,
		  (struct ranks_head){ .kind = RANKS_GONE, .flag = failed != NULL },
		  failed ? failed : &none, sizeof(none));
	while (!r->ended && clock_now_s() - r->heard_s < GIVE_UP_S) {
		ranks_hear(r);
		doze();
	}
	return r->ended && r->all_there;
}

bool ft_ranks_end(struct ft_ranks *r, const struct ft_error *failed, char *lost,
		  size_t n)
{
	size_t at = 0;
	bool all;

	if (n)
		*lost = '\0';
	if (r->channel->ranks == 1)
		return true;
	if (ranks_member(r))
		return leave(r, failed);
	all = dismiss(r);
	for (int i = 1; !failed && i < r->channel->ranks && at < n; i++) {
		const struct ranks_other *o = &r->other[i];
		int len = 0;

		if (o->gone && o->why.text[0])
			len = snprintf(lost + at, n - at, "%srank %d ended: %s",
				       at ? "; " : "", i, o->why.text);
		else if (!o->gone)
			len = snprintf(lost + at, n - at, "%srank %d was lost",
				       at ? "; " : "", i);
		at += len > 0 ? (size_t)len : 0;
	}
	return all;
}
