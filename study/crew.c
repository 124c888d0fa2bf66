/* study/crew.c - threads that share a job, while the calling thread watches */
#include "study/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MOMENT_NS = 5000000, BRISK_NS = 1000000 };

struct member {
	void (*work)(void *context, int i);
	void *context;
	int i;
	atomic_int *working;
};

struct crew crew_open(int asked, bool stop_on_signals)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int n = asked > 0 ? asked : cores > 0 ? (int)cores : 1;
	struct crew c = { .threads = n < CREW_MOST ? n : CREW_MOST,
			  .stop_on_signals = stop_on_signals };

	sigemptyset(&c.signals);
	sigaddset(&c.signals, SIGINT);
	sigaddset(&c.signals, SIGTERM);
	if (c.stop_on_signals)
		pthread_sigmask(SIG_BLOCK, &c.signals, &c.before);
	return c;
}

void crew_close(struct crew *c)
{
	if (c->stop_on_signals)
		pthread_sigmask(SIG_SETMASK, &c->before, NULL);
}

/* Wait a moment, or for a signal; true when one came. */
static bool signalled(const struct crew *c)
{
	struct timespec moment = { 0, c->brisk ? BRISK_NS : MOMENT_NS };

	if (c->stop_on_signals)
		return sigtimedwait(&c->signals, NULL, &moment) > 0;
	nanosleep(&moment, NULL);
	return false;
}

static void *begin(void *arg)
{
	struct member *m = arg;

	m->work(m->context, m->i);
	atomic_fetch_sub(m->working, 1);
	return NULL;
}

void crew_run(const struct crew *c, void (*work)(void *context, int i),
	      void (*watch)(void *context, bool signalled, bool over), void *context)
{
	atomic_int working = 0;
	pthread_t thread[CREW_MOST];
	struct member member[CREW_MOST];
	int started = 0;
	bool over;

	for (; started < c->threads; started++) {
		member[started] = (struct member){ work, context, started, &working };
		atomic_fetch_add(&working, 1);
		if (pthread_create(&thread[started], NULL, begin, &member[started])) {
			atomic_fetch_sub(&working, 1);
			break;
		}
	}
	if (!started)
		work(context, 0);
	do {
		bool stop = signalled(c);

		over = atomic_load(&working) == 0;
		watch(context, stop, over);
	} while (!over);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
}
