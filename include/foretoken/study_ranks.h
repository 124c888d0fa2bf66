/*
 * foretoken/study_ranks.h - one sweep or search shared by the processes of many machines
 *
 * Rank 0 hands out the work in batches, works as well, and alone writes files; the others
 * ask for a batch and send back what they found. A rank that is silent for ten seconds is
 * lost: its batch goes to others. Nothing here knows MPI: a channel carries messages.
 */
#ifndef FORETOKEN_STUDY_RANKS_H
#define FORETOKEN_STUDY_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Messages between the processes of one job, which are numbered from 0. Those from one
 * process to another arrive whole and in their order, or not at all when one has died. One
 * thread at a time calls. */
struct ft_channel {
	int rank, ranks;
	void *context;
	/* Never waits; the bytes are copied. */
	void (*send)(void *context, int to, const void *bytes, size_t n);
	/* The next message that has come, valid until the next call; NULL: none. */
	const void *(*take)(void *context, int *from, size_t *n);
};

struct ft_ranks;

/* The channel must outlive it. It is for one sweep, or for any number of searches. */
struct ft_ranks *ft_ranks_new(const struct ft_channel *channel);

/* Is this the process that writes and prints? Always so without ranks (NULL). */
bool ft_ranks_first(const struct ft_ranks *ranks);

/* The end of all ranks' work, waited for; failed: why this one had to end (NULL: it did
 * not). true: all were there until now. Rank 0's `lost`, of n bytes: what is to be said of
 * ranks that were not, or "". */
bool ft_ranks_end(struct ft_ranks *ranks, const struct ft_error *failed, char *lost,
		  size_t n);
void ft_ranks_free(struct ft_ranks *ranks);

#ifdef __cplusplus
}
#endif
#endif
