/*
 * recorded/kineto.h - reading Kineto's JSON, inside: the event that is being assembled
 */
#ifndef RECORDED_KINETO_H
#define RECORDED_KINETO_H

#include <yajl/yajl_parse.h>

#include "base/limits.h"
#include "recorded/input.h"
#include "recorded/recording.h"

enum { CHUNK = 1 << 18 };

enum section { NOWHERE, EVENTS, DEVICES, DISTRIBUTED };

/* Keys of an event, of its args, and of distributedInfo. */
enum key {
	K_NONE,
	K_PHASE,
	K_CATEGORY,
	K_NAME,
	K_PID,
	K_TID,
	K_TS,
	K_DUR,
	K_ARGS,
	K_CORRELATION,
	K_EXTERNAL,
	K_STREAM,
	K_DEVICE,
	K_WAIT_RECORD,
	K_RANK,
	K_WORLD,
	K_LABEL, /* what metadata calls a process or a thread */
	K_KEPT	 /* args that say what an operator or collective was */
};

enum category {
	C_NONE,
	C_KERNEL,
	C_MEMCPY,
	C_RUNTIME,
	C_OPERATOR,
	C_ANNOTATION,
	C_SYNC
};

/* Decimal microseconds. */
struct moment {
	int64_t us, ps;
	bool given;
};

struct event {
	enum category category;
	char phase;
	int64_t pid, tid, correlation, external, stream, device;
	int64_t wait_record;
	struct moment ts, dur;
	bool negative;
	size_t name_len, args_len;
};

/* The first GPU of JAX's profiler, and the threads of its process that are streams. */
struct xla_gpu {
	bool named;
	int64_t pid, number;
	int64_t stream[LIMIT_TRACE_LANES];
	size_t streams;
	int64_t other[LIMIT_TRACE_LANES]; /* processes that are other GPUs */
	size_t others;
};

struct reader {
	struct ft_recording *r;
	struct input *in;
	yajl_handle parser;
	int depth;
	enum section section;
	enum key key; /* whose value comes next */
	bool in_args, in_event, comma, events_seen;
	struct event e;
	int64_t base_us;
	bool based;
	int64_t line, column; /* of the chunk's begin, from 1 */
	char why[160], label[64];
	struct xla_gpu gpu;
	char name[LIMIT_TRACE_TEXT_BYTES], args[LIMIT_TRACE_TEXT_BYTES];
	unsigned char chunk[CHUNK];
};

/* ---- recorded/kineto_words.c: keys, categories, numbers ---------------------------- */

enum key key_of_event(const char *text, size_t len);
enum key key_of_args(const char *text, size_t len);
enum key key_of_distributed(const char *text, size_t len);
enum category category_of(const char *text, size_t len);

/* "123.456" microseconds, exactly; six digits behind the point are a picosecond. */
struct moment moment_of(const char *text, size_t len, bool *negative);
int64_t whole_of(const char *text, size_t len);

/* ---- recorded/kineto_keep.c: what is kept of an event -------------------------------- */

/* Says why reading ends; returns 0, as yajl wants it. */
int reader_stop(struct reader *k, const char *why);

/* A kept argument becomes JSON again: raw text, a quoted string, a comma if one is due. */
void args_put(struct reader *k, const char *text, size_t len);
void args_put_quoted(struct reader *k, const char *text, size_t len);
void args_put_comma(struct reader *k);

/* Is the value that comes next part of a kept argument? */
bool args_keeping(const struct reader *k);

/* ---- recorded/xla.c: JAX's profiler, whose JSON has no categories -------------------- */

/* A process or a thread is named: a GPU, one of its streams, or neither. */
int xla_named(struct reader *k);

/* The steps of such a recording, which marks none on its GPUs: turns of the same kernels on its busiest stream. */
void xla_steps(struct ft_recording *r);

/* What an event without a category is, by its process and thread; C_NONE: nothing that is kept. */
enum category xla_category(struct reader *k);

/* The event is complete: into the tables, or not. */
int event_end(struct reader *k);

#endif
