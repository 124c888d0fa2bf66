/*
 * serve/worker.h - an answer computed by a process of its own
 *
 * A step can take long, a plan can take all memory, and out of memory ends a process: so each
 * answer is computed by a child that is bounded in time, memory and size, holds none of the
 * server's sockets, and dies with the server. It writes into a file without a name; the end
 * of a pipe says when it has ended. Only a process of one thread may start one.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include <signal.h>
#include <sys/types.h>

#include "serve/api.h"

enum worker_end {
	WORKER_DONE,
	WORKER_REFUSED, /* the file holds why */
	WORKER_BEYOND,	/* of a bound: *why says which */
	WORKER_BROKEN	/* our own mistake */
};

struct worker {
	pid_t pid;	/* 0: none */
	int ended;	/* at its end once the child has ended; a byte for each part */
	int answer;	/* the file */
	double until_s; /* when it is to be ended */
};

/* now_s: of a clock that never goes back. unblock: signals that the server holds back. false
 * with *err: the system has no more processes or files. */
bool worker_start(struct worker *w, const struct api_call *call,
		  const struct api_text *body, const sigset_t *unblock, double now_s,
		  struct ft_error *err);

/* Something is to be read at `ended`: has the child ended? Else a part was told. */
bool worker_has_ended(struct worker *w);

/* After its end, or to end it at once; the file stays open. */
enum worker_end worker_finish(struct worker *w, bool late, const char **why);

#endif
