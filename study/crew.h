/*
 * study/crew.h - threads that share a job, while the calling thread watches
 *
 * Sweeps and searches hand out their work under a lock of their own; a crew starts the
 * threads, tells the one that watches of SIGINT and SIGTERM, and ends with the last of
 * them. Where no thread can be started, the calling thread does the work.
 */
#ifndef STUDY_CREW_H
#define STUDY_CREW_H

#include <signal.h>
#include <stdbool.h>

enum { CREW_MOST = 256 };

struct crew {
	int threads;
	bool brisk;	      /* watched more often: for messages */
	bool stop_on_signals; /* held back from the program while the crew is open */
	sigset_t signals, before;
};

/* asked threads; 0: as many as cores are there. */
struct crew crew_open(int asked, bool stop_on_signals);
void crew_close(struct crew *crew);

/* work(context, i) on each thread i. Every few milliseconds, and once more when all have
 * ended (over), watch(context, signalled, over). */
void crew_run(const struct crew *crew, void (*work)(void *context, int i),
	      void (*watch)(void *context, bool signalled, bool over), void *context);

#endif
