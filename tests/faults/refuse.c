/*
 * tests/faults/refuse.c - calls of the system fail while their names stand in a file:
 * LD_PRELOAD=refuse.so REFUSED=FILE. For servers, which are asked before, meanwhile and behind. glibc on Linux.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Without a call that may be refused itself. */
static bool refused(const char *name, int why)
{
	const char *file = getenv("REFUSED");
	char text[256] = " ";
	char word[64];
	long fd = file ? syscall(SYS_openat, AT_FDCWD, file, O_RDONLY) : -1;
	long n = fd >= 0 ? syscall(SYS_read, fd, text + 1, sizeof(text) - 3) : 0;

	if (fd >= 0)
		syscall(SYS_close, fd);
	if (n <= 0)
		return false;
	for (long i = 1; i <= n; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	text[n + 1] = ' ';
	text[n + 2] = '\0';
	snprintf(word, sizeof(word), " %s ", name);
	if (!strstr(text, word))
		return false;
	errno = why;
	return true;
}

extern void *__libc_malloc(size_t n);

/* Of a worker, what a server has started by fork(), and once that has begun to compute. */
void *malloc(size_t n)
{
	enum { BEGUN = 500 };
	static pid_t first;
	static int asked;

	if (!first)
		first = getpid();
	if (getpid() == first)
		return __libc_malloc(n);
	return ++asked > BEGUN && refused("malloc", ENOMEM) ? NULL : __libc_malloc(n);
}

/* Refused, it is an hour later. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	if (!r && clock == CLOCK_MONOTONIC && refused("now", 0))
		t->tv_sec += 3600;
	return (int)r;
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

int memfd_create(const char *name, unsigned flags)
{
	return refused("memfd_create", EMFILE) ?
		       -1 :
		       REAL(int, memfd_create, const char *, unsigned)(name, flags);
}

int pipe2(int fd[2], int flags)
{
	return refused("pipe2", EMFILE) ? -1 : REAL(int, pipe2, int[2], int)(fd, flags);
}

pid_t fork(void)
{
	return refused("fork", EAGAIN) ? -1 : REAL(pid_t, fork, void)();
}

int fcntl(int fd, int what, ...)
{
	va_list args;
	long given;

	va_start(args, what);
	given = va_arg(args, long);
	va_end(args);
	return refused("fcntl", EMFILE) ?
		       -1 :
		       REAL(int, fcntl, int, int, long)(fd, what, given);
}

int dup(int fd)
{
	return refused("dup", EMFILE) ? -1 : REAL(int, dup, int)(fd);
}

int dup2(int fd, int to)
{
	return refused("dup2", EBADF) ? -1 : REAL(int, dup2, int, int)(fd, to);
}

FILE *fdopen(int fd, const char *mode)
{
	return refused("fdopen", ENOMEM) ?
		       NULL :
		       REAL(FILE *, fdopen, int, const char *)(fd, mode);
}

/* Closed all the same: only what it says is a failure. Of files, not of texts in memory. */
int fclose(FILE *f)
{
	bool file = fileno(f) >= 0;
	int r = REAL(int, fclose, FILE *)(f);

	return file && refused("fclose", ENOSPC) ? EOF : r;
}

int fstat(int fd, struct stat *to)
{
	return refused("fstat", EIO) ? -1 :
				       REAL(int, fstat, int, struct stat *)(fd, to);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	return refused("pread", EIO) ?
		       -1 :
		       REAL(ssize_t, pread, int, void *, size_t, off_t)(fd, to, n, at);
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
	return refused("signalfd", EMFILE) ?
		       -1 :
		       REAL(int, signalfd, int, const sigset_t *, int)(fd, mask, flags);
}

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	return refused("getrandom", ENOSYS) ?
		       -1 :
		       REAL(ssize_t, getrandom, void *, size_t, unsigned)(to, n, flags);
}

int gethostname(char *to, size_t n)
{
	return refused("gethostname", ENAMETOOLONG) ?
		       -1 :
		       REAL(int, gethostname, char *, size_t)(to, n);
}
