/*
 * sim/queues.h - passes of a pipeline whose messages wait in queues
 *
 * A library that runs a schedule as one list of passes, sends and receives (`messages_in_turn` of the stack) has one queue of messages
 * on each rank. Stages take their passes in turns, one each; a pass goes on once what it receives is listed. Behind it
 * stands its send, and in the list of the stage that gets it, behind the last pass there so far, the receive. A message holds the
 * head of its queue from the end of the pass in front of it until the other end is at the head of its own, and
 * for the transfer: so a receive waits beside passes, and what stands behind it waits, too.
 *
 * Times are seconds; a run begins at 0. Nothing is freed.
 */
#ifndef SIM_QUEUES_H
#define SIM_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

enum { CHANNELS = 4 }; /* forward or backward, each in both directions */

/* Of a segment, or of the calls of a pass. */
struct brings {
	double compute_s, transfer_s;
	unsigned receives, sends; /* channels */
};

struct message {
	unsigned channel;
	bool send;
	size_t behind; /* so many passes */
};

/* From begin to end, s. */
struct span {
	double begin, end;
};

struct stage {
	struct brings *pass;
	size_t n; /* passes of a run */
	struct message *queue;
	size_t n_queue;
	/* of a run, as far as it has come */
	size_t at, head, taken[CHANNELS], listed[CHANNELS];
	double free_s;		 /* when the message before the head was over */
	double sent_s[CHANNELS]; /* without queues: when the send before was over */
	double *arrived[CHANNELS];
	size_t n_arrived[CHANNELS];
	struct span *ran, *waited; /* passes; messages */
};

struct pipeline {
	struct stage *stage;
	size_t n;
};

/* Puts the messages in order, once. false: a pass waits for what nobody sends. */
bool queues_list(struct pipeline *pipeline);

/* The passes one behind the other, and their messages; false as above. */
bool queues_run(struct pipeline *pipeline);

/* Of the last run: the end of the last pass, and the share of a stage's passes beside which one of its messages waits. */
double queues_length_s(const struct pipeline *pipeline);
double queues_share_beside(const struct stage *stage);

/* What each message takes longer, so that a run in which none waits for another is as long as one in queues. */
double queues_longer_s(struct pipeline *pipeline, double in_queues_s);

#endif
