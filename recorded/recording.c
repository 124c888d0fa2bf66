/* recorded/recording.c - the tables of a recording */
#include "base/limits.h"
#include "base/text.h"
#include "recorded/chakra.h"

#include <stdio.h>
#include <string.h>

void *table_add(struct arena *mem, struct table_rows *t)
{
	if (t->n == t->n_blocks << TABLE_SHIFT) {
		if (t->n_blocks == t->cap)
			t->block = ARENA_GROW(mem, t->block, &t->cap);
		t->block[t->n_blocks++] = arena_alloc(mem, TABLE_BLOCK, t->row_bytes);
	}
	return table_at(t, t->n++);
}

/* ---- texts ------------------------------------------------------------------------- */

/* FNV-1a, 64 bits. */
static uint64_t hash(const char *text, size_t len)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return h ^ h >> 32;
}

static const char *text_at(const struct texts *t, size_t i)
{
	return *(const char **)table_at(&t->text, i);
}

static void rehash(struct ft_recording *r)
{
	struct texts *t = &r->texts;

	t->n_slots = t->n_slots ? 2 * t->n_slots : 1024;
	t->slot = ARENA_ARRAY(&r->mem, t->n_slots, uint32_t);
	for (size_t i = 0; i < t->text.n; i++) {
		const char *text = text_at(t, i);
		size_t s = hash(text, strlen(text)) & (t->n_slots - 1);

		while (t->slot[s])
			s = (s + 1) & (t->n_slots - 1);
		t->slot[s] = (uint32_t)i + 1;
	}
}

int32_t text_number(struct ft_recording *r, const char *text, size_t len)
{
	struct texts *t = &r->texts;
	size_t s;

	len = strnlen(text, len); /* a NUL in a name ends it */
	if (2 * t->text.n >= t->n_slots)
		rehash(r);
	for (s = hash(text, len) & (t->n_slots - 1); t->slot[s];
	     s = (s + 1) & (t->n_slots - 1)) {
		const char *known = text_at(t, t->slot[s] - 1);

		if (!strncmp(known, text, len) && !known[len])
			return (int32_t)t->slot[s] - 1;
	}
	t->slot[s] = (uint32_t)t->text.n + 1;
	*(const char **)table_add(&r->mem, &t->text) = arena_text_n(&r->mem, text, len);
	return (int32_t)t->text.n - 1;
}

/* Few in any file; the reader ends where there are more than LIMIT_TRACE_LANES. */
int16_t lane_number(struct ft_recording *r, struct table_rows *lanes, int64_t of,
		    int64_t number)
{
	struct lane *l;

	for (size_t i = lanes->n; i-- > 0;) {
		l = table_at(lanes, i);
		if (l->of == of && l->number == number)
			return (int16_t)i;
	}
	l = table_add(&r->mem, lanes);
	*l = (struct lane){ of, number };
	return (int16_t)(lanes->n - 1);
}

bool lanes_fit(const struct ft_recording *r)
{
	return r->stream.n <= LIMIT_TRACE_LANES && r->thread.n <= LIMIT_TRACE_LANES;
}

/* ---- the handle ---------------------------------------------------------------------- */

static struct ft_recording *empty(const char *path)
{
	struct arena mem = { 0 };
	struct ft_recording *r = ARENA_NEW(&mem, struct ft_recording);

	r->mem = mem;
	r->file = arena_text(&r->mem, path);
	r->device = "";
	r->rank = r->world = FT_REC_NONE;
	r->texts.text.row_bytes = sizeof(char *);
	r->op.row_bytes = sizeof(struct ft_rec_op);
	r->call.row_bytes = sizeof(struct ft_rec_call);
	r->span.row_bytes = r->annotation.row_bytes = sizeof(struct ft_rec_span);
	r->work.row_bytes = sizeof(struct ft_rec_work);
	r->sync.row_bytes = sizeof(struct told_sync);
	r->stream.row_bytes = r->thread.row_bytes = sizeof(struct lane);
	return r;
}

static const char sqlite_magic[] = "SQLite format 3"; /* and a NUL */

static bool begins_with(const char *path, const char *magic, size_t len)
{
	char first[16] = "";
	FILE *f = fopen(path, "rbe");
	bool is = f && fread(first, 1, len, f) == len && !memcmp(first, magic, len);

	if (f)
		fclose(f);
	return is;
}

/* What was read, in order and told apart; NULL: it was not read, or is empty. */
static struct ft_recording *whole(struct ft_recording *r, bool was_read,
				  struct ft_error *err)
{
	if (was_read && recording_finish(r, err)) {
		recording_classify(r);
		recording_works(r);
		recording_collectives(r);
		return r;
	}
	ft_recording_free(r);
	return NULL;
}

/* An execution trace, plain or packed. */
static bool is_chakra(const char *path)
{
	return text_ends_with(path, ".et") || text_ends_with(path, ".et.gz") ||
	       text_ends_with(path, ".et.zst");
}

struct ft_recording *ft_recording_read(const char *path, struct ft_error *err)
{
	struct ft_recording *r = empty(path);
	bool sqlite = begins_with(path, sqlite_magic, sizeof(sqlite_magic));

	return whole(r,
		     sqlite	     ? nsight_read(r, path, err) :
		     is_chakra(path) ? chakra_read(r, path, err) :
				       kineto_read(r, NULL, path, err),
		     err);
}

struct ft_recording *ft_recording_read_stream(FILE *from, const char *called,
					      struct ft_error *err)
{
	struct ft_recording *r = empty(called);

	return whole(r, kineto_read(r, from, called, err), err);
}

void ft_recording_free(struct ft_recording *r)
{
	struct arena mem;

	if (!r)
		return;
	mem = r->mem; /* r itself lies in it */
	arena_release(&mem);
}

/* The map of a trace; or a list of events alone, the first of which has a phase. */
static bool looks_like_trace(const char *text)
{
	text += text_begins_with(text, UTF8_MARK) ? strlen(UTF8_MARK) : 0;
	text += strspn(text, " \t\r\n");
	if (*text == '[')
		return text[1 + strspn(text + 1, " \t\r\n")] == '{' &&
		       strstr(text, "\"ph\"");
	return *text == '{' &&
	       (strstr(text, "\"traceEvents\"") || strstr(text, "\"schemaVersion\""));
}

bool ft_recording_is(const char *path)
{
	enum { LOOK = 65536 };
	struct arena mem = { 0 };
	char *text = ARENA_ARRAY(&mem, LOOK + 1, char);
	FILE *f = fopen(path, "rbe");
	size_t n = f ? fread(text, 1, LOOK, f) : 0;
	bool is = (n > sizeof(sqlite_magic) &&
		   !memcmp(text, sqlite_magic, sizeof(sqlite_magic))) ||
		  (n > 3 && (!memcmp(text, "\x1f\x8b", 2) ||
			     !memcmp(text, "\x28\xb5\x2f\xfd", 4))) ||
		  (n && is_chakra(path)) || (n && looks_like_trace(text));

	if (f)
		fclose(f);
	arena_release(&mem);
	return is;
}

/* ---- asking --------------------------------------------------------------------------- */

const char *ft_recording_file(const struct ft_recording *r)
{
	return r->file;
}

const char *ft_recording_device(const struct ft_recording *r)
{
	return r->device;
}

int64_t ft_recording_rank(const struct ft_recording *r)
{
	return r->rank;
}

int64_t ft_recording_world(const struct ft_recording *r)
{
	return r->world;
}

const struct ft_rec_counts *ft_recording_counts(const struct ft_recording *r)
{
	return &r->counts;
}

size_t ft_recording_ops(const struct ft_recording *r)
{
	return r->op.n;
}

size_t ft_recording_calls(const struct ft_recording *r)
{
	return r->call.n;
}

size_t ft_recording_spans(const struct ft_recording *r)
{
	return r->span.n;
}

size_t ft_recording_annotations(const struct ft_recording *r)
{
	return r->annotation.n;
}

size_t ft_recording_streams(const struct ft_recording *r)
{
	return r->stream.n;
}

size_t ft_recording_steps(const struct ft_recording *r)
{
	return r->n_steps;
}

const struct ft_rec_op *ft_recording_op(const struct ft_recording *r, size_t i)
{
	return op_of(r, i);
}

const struct ft_rec_call *ft_recording_call(const struct ft_recording *r, size_t i)
{
	return call_of(r, i);
}

size_t ft_recording_op_at(const struct ft_recording *r, size_t i)
{
	return r->op_order[i];
}

size_t ft_recording_call_at(const struct ft_recording *r, size_t i)
{
	return r->call_order[i];
}

const struct ft_rec_span *ft_recording_annotation(const struct ft_recording *r,
						  size_t i)
{
	return table_at(&r->annotation, i);
}

const struct ft_rec_step *ft_recording_step(const struct ft_recording *r, size_t i)
{
	return &r->step[i];
}

const char *ft_recording_text(const struct ft_recording *r, int32_t text)
{
	return text == FT_REC_NONE ? "" : text_at(&r->texts, (size_t)text);
}

int64_t ft_recording_stream(const struct ft_recording *r, int16_t stream)
{
	return ((const struct lane *)table_at(&r->stream, (size_t)stream))->number;
}

bool recording_far_copy(const struct ft_recording *r, const struct ft_rec_op *op)
{
	static const char *const words[] = { "HtoD", "DtoH", "HostToDevice",
					     "DeviceToHost", "PtoP" };
	const char *name = op->is_copy ? ft_recording_text(r, op->name) : "";

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}
