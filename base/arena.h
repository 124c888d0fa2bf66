/*
 * base/arena.h - memory that goes all at once
 *
 * What an arena hands out is zeroed, aligned for anything and lives until
 * arena_release. Nothing is freed alone. There is no failure to check: too
 * little memory ends the program, here and nowhere else. A zeroed struct is
 * an empty arena. Under AddressSanitizer each allocation is a block of its own, so
 * that a step beyond its end is seen.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdio.h>

#include "foretoken/base.h"

struct arena_block;

struct arena {
	struct arena_block *top;
	char *next, *end;      /* what is left of top */
	struct ft_digest read; /* of all files read into it, in their order */
};

/* One line on stderr and exit 1, at once: nothing half-written is completed. */
void out_of_memory(void) __attribute__((noreturn));
/* What a library allocated, if it could. */
void *allocated(void *p) __attribute__((returns_nonnull));
/* Ends a stream into memory: its text is whole. */
void memory_close(FILE *memory, char *const *text);

/* For a program's main, ahead of all else: memory that was used once stays the process's, and comes
 * in pages as large as there are. A step touches some thousand small pages, for the first time
 * each: a quarter of its time. */
void arena_keep_pages(void);

void *arena_alloc(struct arena *mem, size_t n, size_t size);
/* The same not zeroed, for what is written at once. */
void *arena_bytes(struct arena *mem, size_t n);
void arena_release(struct arena *mem);

#define ARENA_NEW(mem, type) ((type *)arena_alloc(mem, 1, sizeof(type)))
#define ARENA_ARRAY(mem, n, type) ((type *)arena_alloc(mem, n, sizeof(type)))

/* Double *cap (16 at first). The array becomes longer where it lies if nothing was handed out since and
 * its block has room; otherwise it is copied and stays behind. */
void *arena_grow(struct arena *mem, const void *old, size_t *cap, size_t size);
#define ARENA_GROW(mem, old, cap) arena_grow(mem, old, cap, sizeof(*(old)))

char *arena_text(struct arena *mem, const char *text);
char *arena_text_n(struct arena *mem, const char *text, size_t len);
char *arena_printf(struct arena *mem, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
