/*
 * tests/faults/shim.c - the N-th call of a kind fails: LD_PRELOAD=shim.so FAULT=KIND:N[+]
 *
 * Kinds: malloc, read, write, open, rename, sync. With a + all later ones fail as well. N 0
 * counts: FAULT_COUNT names a file for the number. A stream's writes fail when it is
 * flushed or closed. Children of the program run without it. glibc on Linux.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

enum kind { NONE, MALLOC, READ, WRITE, OPEN, RENAME, SYNC };

static struct {
	enum kind kind;
	long n, seen;
	bool on; /* later ones, too */
	char count[256];
} fault;

__attribute__((constructor)) static void begin(void)
{
	static const char *const names[] = { "",     "malloc", "read", "write",
					     "open", "rename", "sync" };
	const char *text = getenv("FAULT"), *to = getenv("FAULT_COUNT");
	const char *colon = text ? strchr(text, ':') : NULL;

	unsetenv("LD_PRELOAD");
	if (to)
		snprintf(fault.count, sizeof(fault.count), "%s", to);
	for (int k = 1; colon && k <= SYNC; k++)
		if (!strncmp(text, names[k], (size_t)(colon - text)) &&
		    strlen(names[k]) == (size_t)(colon - text)) {
			fault.n = atol(colon + 1);
			fault.on = strchr(colon, '+') != NULL;
			fault.kind = (enum kind)k;
		}
}

/* By its name: a program that counts what it ran (tests/coverage.c) ends faults first. */
void faults_end(void);
__attribute__((destructor)) void faults_end(void)
{
	enum kind was = fault.kind;
	FILE *f;

	fault.kind = NONE;
	if (was == NONE || fault.n || !fault.count[0])
		return;
	f = fopen(fault.count, "w");
	if (f) {
		fprintf(f, "%ld\n", fault.seen);
		fclose(f);
	}
}

static bool fails(enum kind kind, int why)
{
	long i;

	if (fault.kind != kind)
		return false;
	i = __atomic_add_fetch(&fault.seen, 1, __ATOMIC_SEQ_CST);
	if (!fault.n || (i != fault.n && !(fault.on && i > fault.n)))
		return false;
	errno = why;
	return true;
}

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))real(#name))

/* ---- memory ---------------------------------------------------------------------- */

void *malloc(size_t n)
{
	return fails(MALLOC, ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails(MALLOC, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails(MALLOC, ENOMEM) ? NULL : __libc_realloc(p, n);
}

/* ---- reading --------------------------------------------------------------------- */

enum { ERROR_SEEN = 0x20 }; /* glibc's mark on a stream */

static size_t stream_fails(FILE *f)
{
	f->_flags |= ERROR_SEEN;
	return 0;
}

size_t fread(void *to, size_t size, size_t n, FILE *f)
{
	return fails(READ, EIO) ? stream_fails(f) :
				  REAL(size_t, fread, void *, size_t, size_t,
				       FILE *)(to, size, n, f);
}

size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *f);
size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *f)
{
	return fails(READ, EIO) ? stream_fails(f) :
				  REAL(size_t, __fread_chk, void *, size_t, size_t,
				       size_t, FILE *)(to, room, size, n, f);
}

ssize_t read(int fd, void *to, size_t n)
{
	return fails(READ, EIO) ? -1 :
				  REAL(ssize_t, read, int, void *, size_t)(fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	return fails(READ, EIO) ?
		       -1 :
		       REAL(ssize_t, pread, int, void *, size_t, off_t)(fd, to, n, at);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
	return fails(READ, EIO) ? -1 :
				  REAL(ssize_t, pread64, int, void *, size_t,
				       off64_t)(fd, to, n, at);
}

struct dirent *readdir(DIR *d)
{
	return fails(READ, EIO) ? NULL : REAL(struct dirent *, readdir, DIR *)(d);
}

/* ---- writing --------------------------------------------------------------------- */

ssize_t write(int fd, const void *from, size_t n)
{
	return fails(WRITE, ENOSPC) ?
		       -1 :
		       REAL(ssize_t, write, int, const void *, size_t)(fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
	return fails(WRITE, ENOSPC) ? -1 :
				      REAL(ssize_t, pwrite, int, const void *, size_t,
					   off_t)(fd, from, n, at);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
	return fails(WRITE, ENOSPC) ? -1 :
				      REAL(ssize_t, pwrite64, int, const void *, size_t,
					   off64_t)(fd, from, n, at);
}

int fflush(FILE *f)
{
	if (f && fails(WRITE, ENOSPC)) {
		f->_flags |= ERROR_SEEN;
		return EOF;
	}
	return REAL(int, fflush, FILE *)(f);
}

int fclose(FILE *f)
{
	bool bad = fails(WRITE, ENOSPC);
	int r = REAL(int, fclose, FILE *)(f);

	if (bad)
		errno = ENOSPC;
	return bad ? EOF : r;
}

int ftruncate(int fd, off_t n)
{
	return fails(WRITE, ENOSPC) ? -1 : REAL(int, ftruncate, int, off_t)(fd, n);
}

/* ---- files ------------------------------------------------------------------------ */

static mode_t mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return fails(OPEN, EIO) ?
		       -1 :
		       REAL(int, open, const char *, int, ...)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return fails(OPEN, EIO) ?
		       -1 :
		       REAL(int, open64, const char *, int, ...)(path, flags, mode);
}

FILE *fopen(const char *path, const char *how)
{
	return fails(OPEN, EMFILE) ?
		       NULL :
		       REAL(FILE *, fopen, const char *, const char *)(path, how);
}

FILE *fdopen(int fd, const char *how)
{
	return fails(OPEN, ENOMEM) ? NULL :
				     REAL(FILE *, fdopen, int, const char *)(fd, how);
}

DIR *opendir(const char *path)
{
	return fails(OPEN, EMFILE) ? NULL : REAL(DIR *, opendir, const char *)(path);
}

int rename(const char *from, const char *to)
{
	return fails(RENAME, EIO) ?
		       -1 :
		       REAL(int, rename, const char *, const char *)(from, to);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	return fails(RENAME, EIO) ?
		       -1 :
		       REAL(int, linkat, int, const char *, int, const char *,
			    int)(from_fd, from, to_fd, to, flags);
}

int fsync(int fd)
{
	return fails(SYNC, EIO) ? -1 : REAL(int, fsync, int)(fd);
}

int fdatasync(int fd)
{
	return fails(SYNC, EIO) ? -1 : REAL(int, fdatasync, int)(fd);
}
