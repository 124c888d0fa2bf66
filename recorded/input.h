/*
 * recorded/input.h - the bytes of a file, unpacked while they are read
 *
 * Plain, gzip (zlib) or zstd (libzstd), told by the first bytes, not by the name. What
 * unpacks to more than LIMIT_TRACE_MIB, or beyond LIMIT_TRACE_FREE_MIB to more than
 * LIMIT_TRACE_RATIO times its packed size, is refused.
 */
#ifndef RECORDED_INPUT_H
#define RECORDED_INPUT_H

#include <stdio.h>

#include "base/arena.h"

struct input;

struct input *input_open(struct arena *mem, const char *path, struct ft_error *err);

/* An open stream that can be rewound, which input_close closes; called: in messages. NULL:
 * an error, and the stream is closed. */
struct input *input_of(struct arena *mem, FILE *from, const char *called,
		       struct ft_error *err);

/* Up to n unpacked bytes; *got 0: the end. */
bool input_read(struct input *in, void *to, size_t n, size_t *got, struct ft_error *err)
	__attribute__((warn_unused_result));
bool input_packed(const struct input *in);
void input_close(struct input *in);

#endif
