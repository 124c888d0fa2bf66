/*
 * recorded/recording.h - the tables of a recording, and how readers fill them
 *
 * A table is a list of blocks, so that it grows without copies: reading takes no more
 * memory than what is kept. Texts are kept once each, whoever uses them.
 */
#ifndef RECORDED_RECORDING_H
#define RECORDED_RECORDING_H

#include "base/arena.h"
#include "base/limits.h"
#include "base/whole.h"
#include "foretoken/recorded.h"

/* What an error says of an event that lies too far from the others. */
#define TOO_FAR "lies more than 100,000 s from the first one"
_Static_assert(LIMIT_TRACE_SECONDS == 100000, "TOO_FAR says how far");

enum { TABLE_SHIFT = 12, TABLE_BLOCK = 1 << TABLE_SHIFT };

struct table_rows {
	size_t n, row_bytes, n_blocks, cap;
	char **block;
};

static inline void *table_at(const struct table_rows *t, size_t i)
{
	return t->block[i >> TABLE_SHIFT] + (i & (TABLE_BLOCK - 1)) * t->row_bytes;
}

/* A new row at the end, zeroed. */
void *table_add(struct arena *mem, struct table_rows *t);

/* Texts by number, found by hash. */
struct texts {
	struct table_rows text; /* const char * */
	uint32_t *slot;		/* number + 1; 0: free */
	size_t n_slots;
};

struct ft_recording {
	struct arena mem;
	const char *file, *device;
	int64_t rank, world;
	struct texts texts;
	struct table_rows op, call, span, annotation;
	struct table_rows stream; /* struct lane */
	struct table_rows thread; /* struct lane */
	struct table_rows sync;	  /* struct told_sync */
	struct table_rows work;	  /* struct ft_rec_work */
	uint32_t *op_order, *call_order;
	uint32_t *span_by_id;
	struct ft_rec_collective **collective; /* by text of arguments; or NULL */
	size_t n_collective;
	size_t n_steps;
	struct ft_rec_step *step;
	size_t n_updates;
	struct ft_rec_span *update; /* by start */
	struct ft_rec_counts counts;
	int64_t origin_us; /* where times begin, by the profiler's clock */
};

/* A stream of a device, or a thread of a process. */
struct lane {
	int64_t of, number;
};

/* What the profiler said of a call that synchronises, where it was asked to. */
struct told_sync {
	int64_t correlation, stream, record; /* record: correlation of the event's */
};

int32_t text_number(struct ft_recording *r, const char *text, size_t len);
int16_t lane_number(struct ft_recording *r, struct table_rows *lanes, int64_t of,
		    int64_t number);

/* Are there no more streams and no more threads than may be? To be asked after each row. */
bool lanes_fit(const struct ft_recording *r);

/* n links that lead nowhere yet: FT_REC_NONE each. */
static inline int32_t *rec_nothing(struct arena *mem, size_t n)
{
	int32_t *a = ARENA_ARRAY(mem, n, int32_t);

	for (size_t i = 0; i < n; i++)
		a[i] = FT_REC_NONE;
	return a;
}

static inline struct ft_rec_op *op_of(const struct ft_recording *r, size_t i)
{
	return table_at(&r->op, i);
}

static inline struct ft_rec_call *call_of(const struct ft_recording *r, size_t i)
{
	return table_at(&r->call, i);
}

/* An operation and a moment of it: its launch, its end. */
struct timed_op {
	ft_ps at;
	uint32_t op;
};

/* For qsort, which is not stable: by the moment, then by the operation. */
static inline int by_time_and_op(const void *a, const void *b)
{
	const struct timed_op *x = a, *y = b;
	int order = whole_order(x->at, y->at);

	return order ? order : whole_order(x->op, y->op);
}

/* The number of an operator that ft_recording_operator gave. */
size_t span_number(const struct ft_recording *r, const struct ft_rec_span *span);

/* ---- recorded/names.c: what names mean -------------------------------------------- */

/* What a call of the runtime or driver does; FT_REC_CALL_KINDS: nothing that is kept. */
enum ft_rec_call_kind call_kind(const char *name, size_t len);

/* ---- recorded/kineto.c, recorded/finish.c ------------------------------------------- */

/* Fills the tables; times count from the file's first. from: a stream to read and close;
 * NULL: the file at path. */
bool kineto_read(struct ft_recording *r, FILE *from, const char *path,
		 struct ft_error *err) __attribute__((warn_unused_result));

/* recorded/nsight.c: the same of Nsight Systems' SQLite. */
bool nsight_read(struct ft_recording *r, const char *path, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Orders the tables, joins operations to calls, finds steps, moves times so that they
 * begin at 0. false: there is nothing that ran. */
bool recording_finish(struct ft_recording *r, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The step in whose marks an operation was launched, or began where no launch of it was recorded; n_steps: none. */
size_t recording_step_of(const struct ft_recording *r, size_t op);

/* recorded/twice.c: operations and calls that are told again are taken out; how many were. */
int64_t recording_once(struct ft_recording *r);

/* recorded/classify.c: what each operation is; the number of the span that holds a moment, of spans that are
 * sorted by start and do not overlap: n, none. */
void recording_classify(struct ft_recording *r);
size_t spans_find(const struct ft_rec_span *span, size_t n, ft_ps at);

/* recorded/updates.c: when weights were updated; by then operations' classes are known, but for the optimizer's. */
void recording_updates(struct ft_recording *r);

/* recorded/works.c: the work of each. */
void recording_works(struct ft_recording *r);

/* recorded/collective.c: what each collective was. */
void recording_collectives(struct ft_recording *r);

/* recorded/transfers.c: arguments for kernels that send and receive and have none. */
void recording_transfers(struct ft_recording *r);

/* Is it a copy to or from host memory or another GPU, by its name? */
bool recording_far_copy(const struct ft_recording *r, const struct ft_rec_op *op);

#endif
