/*
 * study/ranks.h - the items of a job, handed out by rank 0 to other processes
 *
 * A sweep has one phase, a search two for each size; all ranks go through the same phases.
 * In each of them rank 0 keeps a desk: it leases each rank one batch of items at a time and
 * takes the results of a batch together, so that a batch is done whole or not at all. What a
 * lost rank had comes back to the desk. The others are members: their threads take items of
 * the batch, in two rounds where rank 0 has a table with results in it: first the keys of
 * all, of which it says which are there, then those that are not.
 *
 * Messages may be repeated: a request that was not answered is sent again, and a rank that
 * has a lease is told of the same lease again.
 */
#ifndef STUDY_RANKS_H
#define STUDY_RANKS_H

#include <pthread.h>
#include <stdint.h>

#include "base/arena.h"
#include "foretoken/study_ranks.h"

enum { RANKS_KEY = 33, RANKS_BATCH = 256 };

enum ranks_kind {
	RANKS_ASK,   /* n: items wanted; job */
	RANKS_WORK,  /* n items, uint64_t each; flag: their keys are wanted first */
	RANKS_KEYS,  /* n keys of the lease, RANKS_KEY bytes each, "" for none */
	RANKS_KNOWN, /* n bytes: 1: it is there */
	RANKS_DONE,  /* n times uint32_t place in the lease, uint32_t length, bytes */
	RANKS_OVER,  /* the phase is */
	RANKS_BYE,   /* of the phase */
	RANKS_ALIVE,
	RANKS_REFUSED, /* the job is another */
	RANKS_QUIT,    /* all phases are over */
	RANKS_GONE,    /* bytes: struct ft_error; flag: it is meant */
	RANKS_END      /* flag: all are there */
};

struct ranks_head {
	uint32_t kind, phase;
	uint32_t n, flag;
	uint64_t lease, job;
};

struct ranks_lease {
	uint64_t id; /* 0: none */
	uint32_t n;
	size_t item[RANKS_BATCH];
};

/* What rank 0 knows of another. */
struct ranks_other {
	double heard_s;
	bool lost, gone, bye;
	struct ft_error why; /* of one that had to end; text "" */
	struct ranks_lease lease;
};

/* Rank 0's answers; each is called with the lock of the job held. */
struct ranks_desk {
	void *context;
	pthread_mutex_t *lock;
	bool (*on)(void *context);		   /* false: stopped, or broken */
	bool (*next)(void *context, size_t *item); /* false: there is none */
	size_t (*left)(void *context); /* about so many are not handed out */
	/* Is it in the table? Then it is finished. NULL: nobody needs to ask. */
	bool (*known)(void *context, size_t item, const char key[RANKS_KEY]);
	void (*result)(void *context, size_t item, const char *bytes, size_t n);
};

enum ranks_round { RANKS_ROUND_KEYS, RANKS_ROUND_RUN };

/* A member's batch. */
struct ranks_batch {
	struct ranks_lease lease;
	enum ranks_round round;
	bool waits;	      /* for rank 0 */
	uint32_t next, ended; /* of this round: taken; ended */
	char key[RANKS_BATCH][RANKS_KEY];
	bool there[RANKS_BATCH];
	char *bytes[RANKS_BATCH]; /* NULL: no result */
	size_t n_bytes[RANKS_BATCH];
	double begun_s;
};

struct ft_ranks {
	const struct ft_channel *channel;
	uint32_t phase;
	uint64_t job; /* what it is, so that no rank works on another */
	bool over;    /* this phase */
	bool quit, ended, all_there;
	double told_s, asked_s, heard_s;
	/* rank 0 */
	const struct ranks_desk *desk;
	struct ranks_other *other; /* [ranks] */
	uint64_t leases;
	size_t *back; /* items that came back; [n_back] */
	size_t n_back, cap_back;
	/* a member */
	pthread_mutex_t lock; /* of all of a member's */
	struct ranks_batch *batch;
	uint32_t wanted; /* items, so that a batch takes about half a second */
	struct ft_error err;
	bool failed;
};

/* ---- ranks.c ------------------------------------------------------------------------ */

bool ranks_shared(const struct ft_ranks *r);
bool ranks_member(const struct ft_ranks *r);
void ranks_begin(struct ft_ranks *r, uint64_t job);
void ranks_say(struct ft_ranks *r, int to, struct ranks_head head, const void *bytes,
	       size_t n);

/* ---- ranks_desk.c: rank 0, the lock of the job held ---------------------------------- */

void ranks_tend(struct ft_ranks *r, const struct ranks_desk *desk);
/* For a thread of rank 0, or of a process without others (r NULL), and without the lock: the next item,
 * or one that came back; it waits while another rank has some that may. false: there is none. */
bool ranks_next(struct ft_ranks *r, const struct ranks_desk *desk, size_t *item);
/* The phase is over: until all others know. */
void ranks_finish(struct ft_ranks *r, const struct ranks_desk *desk);

/* ---- ranks_member.c: a member's threads ------------------------------------------------ */

struct ranks_piece {
	uint32_t place; /* in the batch */
	size_t item;
	enum ranks_round round;
};

/* Waits for the next; false: the phase is over. */
bool ranks_take(struct ft_ranks *r, struct ranks_piece *piece);
/* An item's key, "" when it has none; the round of keys. */
void ranks_keyed(struct ft_ranks *r, uint32_t place, const char *key);
/* What was found for it, copied; NULL: nothing, and rank 0 shall give it to another. */
void ranks_found(struct ft_ranks *r, uint32_t place, const char *bytes, size_t n);
/* For the thread that watches; stop: this rank is to end. over: its threads have ended, and
 * the phase is closed. */
void ranks_watch(struct ft_ranks *r, bool stop, bool over);
/* Has rank 0 ended it all? */
bool ranks_dismissed(struct ft_ranks *r);
/* This rank cannot go on. */
void ranks_fail(struct ft_ranks *r, const struct ft_error *why);
/* A message for a member; also while it waits for the end. */
void ranks_hear(struct ft_ranks *r);

#endif
