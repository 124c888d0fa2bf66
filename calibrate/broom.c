/* calibrate/broom.c - a temporary folder that goes when the program does, whatever ends it */
#include "calibrate/broom.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void sweep_at_the_end(int end, char *folder, broom_remove *remove, void *of)
{
	char none;
	int failed;

	signal(SIGINT, SIG_IGN); /* those of a terminal come here, too */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	failed = mkdtemp(folder) ? 0 : errno;
	if (write(end, failed ? (char *)&failed : folder,
		  failed ? sizeof(failed) : strlen(folder)) > 0)
		while (read(end, &none, 1) < 0 && errno == EINTR)
			;
	if (!failed)
		remove(folder, of);
	_exit(0);
}

void broom_sweep(const struct broom *b)
{
	close(b->end);
	while (waitpid(b->child, NULL, 0) < 0 && errno == EINTR)
		;
}

bool broom_take(struct broom *b, char *folder, broom_remove *remove, void *of)
{
	size_t n = strlen(folder);
	int ends[2], why;
	ssize_t got;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	b->child = fork();
	if (b->child == 0) {
		close(ends[1]);
		sweep_at_the_end(ends[0], folder, remove, of);
	}
	why = errno;
	close(ends[0]);
	b->end = ends[1];
	if (b->child < 0) {
		close(b->end);
		errno = why;
		return false;
	}
	do
		got = read(b->end, folder, n);
	while (got < 0 && errno == EINTR);
	if (got == (ssize_t)n)
		return true;
	why = EIO;
	if (got == (ssize_t)sizeof(why))
		memcpy(&why, folder, sizeof(why));
	broom_sweep(b);
	errno = why;
	return false;
}
