/* base/arena.c - blocks that double, handed out from the front */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

enum {
	FIRST_BLOCK = 16 * 1024,
	LARGEST_BLOCK = 4 * 1024 * 1024,
	KEPT = 64 * 1024 * 1024,   /* as much stays with the process */
	AT_ONCE = 8 * 1024 * 1024, /* what it asks the system for */
	PAGE = 4096,
	LARGE_PAGE = 2 * 1024 * 1024
};

struct arena_block {
	struct arena_block *below;
	size_t size;
	alignas(max_align_t) char data[];
};

void out_of_memory(void)
{
	static const char text[] = "foretoken: error: out of memory\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void *allocated(void *p)
{
	if (!p)
		out_of_memory();
	return p;
}

void arena_keep_pages(void)
{
#if defined(__GLIBC__) && !EACH_ALONE
	uintptr_t from = (uintptr_t)sbrk(0), to;
	void *first;

	/* the heap begins a page ahead of a large one, which the first piece then leaves alone */
	if (from != (uintptr_t)-1)
		(void)sbrk((intptr_t)(2 * LARGE_PAGE - PAGE - from % LARGE_PAGE));
	mallopt(M_MMAP_THRESHOLD, KEPT / 2);
	mallopt(M_TRIM_THRESHOLD, KEPT);
	mallopt(M_TOP_PAD, AT_ONCE);
	first = malloc(1);
	from = ((uintptr_t)first + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	to = (uintptr_t)sbrk(0);
	/* a wish: without large pages it is as it was */
	if (first && to > from && to - from <= 2 * (uintptr_t)AT_ONCE)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	free(first);
#endif
}

void memory_close(FILE *memory, char *const *text)
{
	if (ferror(memory) | fclose(memory) || !*text)
		out_of_memory();
}

static void new_block(struct arena *mem, size_t want)
{
	size_t size = mem->top ? 2 * mem->top->size : FIRST_BLOCK;
	struct arena_block *b;

	if (size > LARGEST_BLOCK)
		size = LARGEST_BLOCK;
	if (size < want || EACH_ALONE)
		size = want;
	b = allocated(malloc(sizeof(*b) + size));
	b->below = mem->top;
	b->size = size;
	mem->top = b;
	mem->next = b->data;
	mem->end = b->data + size;
}

static size_t aligned(size_t bytes)
{
	const size_t align = EACH_ALONE ? 1 : alignof(max_align_t);

	return (bytes + align - 1) / align * align;
}

void *arena_bytes(struct arena *mem, size_t n)
{
	size_t want = aligned(n);
	char *p;

	if (!mem->top || EACH_ALONE || (size_t)(mem->end - mem->next) < want)
		new_block(mem, want);
	p = mem->next;
	mem->next += want;
	return p;
}

void *arena_alloc(struct arena *mem, size_t n, size_t size)
{
	if (size && n > (SIZE_MAX / 4) / size)
		out_of_memory();
	return memset(arena_bytes(mem, n * size), 0, n * size);
}

void arena_release(struct arena *mem)
{
	/* the arena itself may lie in one of its blocks: take what we need first */
	struct arena_block *b = mem->top;

	*mem = (struct arena){ 0 };
	while (b) {
		struct arena_block *below = b->below;

		free(b);
		b = below;
	}
}

/* The piece that was handed out last becomes longer where it lies, if its block has room. */
static bool lengthen(struct arena *mem, const void *piece, size_t had, size_t want)
{
	const char *end = (const char *)piece + aligned(had);

	if (EACH_ALONE || end != mem->next ||
	    (size_t)(mem->end - mem->next) < aligned(want) - aligned(had))
		return false;
	mem->next += aligned(want) - aligned(had);
	memset((char *)(uintptr_t)piece + had, 0, want - had);
	return true;
}

void *arena_grow(struct arena *mem, const void *old, size_t *cap, size_t size)
{
	size_t had = *cap;
	void *p;

	*cap = had ? 2 * had : 16;
	if (had && size && *cap <= (SIZE_MAX / 4) / size &&
	    lengthen(mem, old, had * size, *cap * size))
		return (void *)(uintptr_t)old;
	if (size && *cap > (SIZE_MAX / 4) / size)
		out_of_memory();
	p = arena_bytes(mem, *cap * size);
	if (had)
		memcpy(p, old, had * size);
	memset((char *)p + had * size, 0, (*cap - had) * size);
	return p;
}

char *arena_text_n(struct arena *mem, const char *text, size_t len)
{
	char *p = arena_bytes(mem, len + 1);

	memcpy(p, text, len);
	p[len] = '\0';
	return p;
}

char *arena_text(struct arena *mem, const char *text)
{
	return arena_text_n(mem, text, strlen(text));
}

char *arena_printf(struct arena *mem, const char *fmt, ...)
{
	va_list args;
	int len;
	char *p;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0)
		out_of_memory();
	p = arena_bytes(mem, (size_t)len + 1);
	va_start(args, fmt);
	vsnprintf(p, (size_t)len + 1, fmt, args);
	va_end(args);
	return p;
}
