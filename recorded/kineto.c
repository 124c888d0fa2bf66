/*
 * recorded/kineto.c - the JSON of PyTorch's profiler (Kineto), read as a stream
 *
 * yajl reports each token; an event is assembled in one place and kept, or not, when
 * its map ends, so that keys may come in any order and memory is bounded by what is
 * kept. Times are decimal microseconds, often since 1970: whole microseconds count
 * from the first event's, fractions are added exactly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/limits.h"
#include "recorded/input.h"
#include "recorded/recording.h"

enum { CHUNK = 1 << 18, LONGEST_US = 1000000000 }; /* a recording: 1000 s and less */

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
	K_KEPT /* args that say what an operator or collective was */
};

struct word {
	const char *text;
	enum key key;
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

struct reader {
	struct ft_recording *r;
	struct input *in;
	yajl_handle parser;
	int depth;
	enum section section;
	enum key key;	/* whose value comes next */
	bool in_args, in_event, comma, events_seen;
	struct event e;
	int64_t base_us;
	bool based;
	int64_t line, column; /* of the chunk's begin, from 1 */
	char why[160];
	char name[LIMIT_TRACE_TEXT_BYTES], args[LIMIT_TRACE_TEXT_BYTES];
	unsigned char chunk[CHUNK];
};

static int stop(struct reader *k, const char *why)
{
	snprintf(k->why, sizeof(k->why), "%s", why);
	return 0;
}

/* ---- keys -------------------------------------------------------------------------- */

static const struct word of_event[] = {
	{ "ph", K_PHASE },  { "cat", K_CATEGORY }, { "name", K_NAME },
	{ "pid", K_PID },   { "tid", K_TID },	   { "ts", K_TS },
	{ "dur", K_DUR },   { "args", K_ARGS },	   { NULL, K_NONE },
};

static const struct word of_args[] = {
	{ "correlation", K_CORRELATION },
	{ "External id", K_EXTERNAL },
	{ "external id", K_EXTERNAL },
	{ "stream", K_STREAM },
	{ "device", K_DEVICE },
	{ "wait_on_cuda_event_record_corr_id", K_WAIT_RECORD },
	{ "Input Dims", K_KEPT },
	{ "Input type", K_KEPT },
	{ "Input Strides", K_KEPT },
	{ "Concrete Inputs", K_KEPT },
	{ "Collective name", K_KEPT },
	{ "In msg nelems", K_KEPT },
	{ "Out msg nelems", K_KEPT },
	{ "Group size", K_KEPT },
	{ "dtype", K_KEPT },
	{ "Process Group Name", K_KEPT },
	{ "Process Group Description", K_KEPT },
	{ "Process Group Ranks", K_KEPT },
	{ "Src Rank", K_KEPT },
	{ "Dst Rank", K_KEPT },
	{ "bytes", K_KEPT },
	{ NULL, K_NONE },
};

static const struct word of_distributed[] = {
	{ "rank", K_RANK }, { "world_size", K_WORLD }, { NULL, K_NONE }
};

static enum key find(const struct word *w, const char *text, size_t len)
{
	for (; w->text; w++)
		if (w->text[0] == text[0] && !strncmp(w->text, text, len) &&
		    !w->text[len])
			return w->key;
	return K_NONE;
}

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

/* ---- a kept argument, as JSON again ------------------------------------------------ */

static void put(struct reader *k, const char *text, size_t len)
{
	/* beyond the bound: too long to be of use; told by its length when it ends */
	if (k->e.args_len + len <= sizeof(k->args))
		memcpy(k->args + k->e.args_len, text, len);
	k->e.args_len += len;
}

static void put_quoted(struct reader *k, const char *text, size_t len)
{
	put(k, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			put(k, "\\", 1);
		if ((unsigned char)text[i] >= 0x20)
			put(k, &text[i], 1);
	}
	put(k, "\"", 1);
}

static void put_comma(struct reader *k)
{
	if (k->comma)
		put(k, ",", 1);
	k->comma = true;
}

static bool keeping(const struct reader *k)
{
	return k->in_args && k->key == K_KEPT;
}

/* ---- numbers and texts -------------------------------------------------------------- */

/* "123.456" microseconds, exactly; six digits behind the point are a picosecond. */
static struct moment moment_of(const char *text, size_t len, bool *negative)
{
	struct moment m = { 0, 0, true };
	int64_t unit = 1000000;
	size_t i = 0;
	bool point = false;

	*negative = len && text[0] == '-';
	for (i = *negative; i < len; i++) {
		if (text[i] == '.' && !point) {
			point = true;
		} else if (text[i] < '0' || text[i] > '9' ||
			   (!point && m.us > INT64_MAX / 20)) {
			char copy[64] = "";
			double v;

			memcpy(copy, text, len < 63 ? len : 63);
			v = strtod(copy, NULL);
			*negative = v < 0;
			v = v < 0 ? -v : v;
			m.us = v < 9e18 ? (int64_t)v : INT64_MAX;
			m.ps = v < 9e15 ? (int64_t)((v - (double)m.us) * 1e6) : 0;
			return m;
		} else if (!point) {
			m.us = 10 * m.us + (text[i] - '0');
		} else if (unit > 1) {
			unit /= 10;
			m.ps += unit * (text[i] - '0');
		}
	}
	return m;
}

static int64_t whole(const char *text, size_t len)
{
	bool negative;
	struct moment m = moment_of(text, len, &negative);

	return negative ? -m.us : m.us;
}

static int on_number(void *context, const char *text, size_t len)
{
	struct reader *k = context;
	struct event *e = &k->e;
	bool negative;

	if (keeping(k)) {
		put_comma(k);
		put(k, text, len);
		return 1;
	}
	switch (k->key) {
	case K_TS:
		e->ts = moment_of(text, len, &negative);
		if (negative)
			return stop(k, "an event's time is negative");
		break;
	case K_DUR:
		e->dur = moment_of(text, len, &e->negative);
		break;
	case K_PID:
		e->pid = whole(text, len);
		break;
	case K_TID:
		e->tid = whole(text, len);
		break;
	case K_CORRELATION:
		e->correlation = whole(text, len);
		break;
	case K_EXTERNAL:
		e->external = whole(text, len);
		break;
	case K_STREAM:
		e->stream = whole(text, len);
		break;
	case K_DEVICE:
		e->device = whole(text, len);
		break;
	case K_WAIT_RECORD:
		e->wait_record = whole(text, len);
		break;
	case K_RANK:
		k->r->rank = whole(text, len);
		break;
	case K_WORLD:
		k->r->world = whole(text, len);
		break;
	default:
		break;
	}
	return 1;
}

static enum category category_of(const char *text, size_t len)
{
	static const struct {
		const char *text;
		enum category is;
	} known[] = {
		{ "kernel", C_KERNEL },		  { "Kernel", C_KERNEL },
		{ "gpu_memcpy", C_MEMCPY },	  { "gpu_memset", C_MEMCPY },
		{ "Memcpy", C_MEMCPY },		  { "Memset", C_MEMCPY },
		{ "cuda_runtime", C_RUNTIME },	  { "cuda_driver", C_RUNTIME },
		{ "Runtime", C_RUNTIME },	  { "hip_runtime", C_RUNTIME },
		{ "cpu_op", C_OPERATOR },	  { "Operator", C_OPERATOR },
		{ "user_annotation", C_ANNOTATION }, { "cuda_sync", C_SYNC },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (is(text, len, known[i].text))
			return known[i].is;
	return C_NONE;
}

static int on_string(void *context, const unsigned char *bytes, size_t len)
{
	struct reader *k = context;
	const char *text = (const char *)bytes;

	if (keeping(k)) {
		put_comma(k);
		put_quoted(k, text, len);
	} else if (k->key == K_PHASE) {
		k->e.phase = len ? text[0] : ' ';
	} else if (k->key == K_CATEGORY) {
		k->e.category = category_of(text, len);
	} else if (k->key == K_NAME && k->section == DEVICES) {
		if (!k->r->device[0])
			k->r->device = arena_text_n(&k->r->mem, text, len);
	} else if (k->key == K_NAME) {
		k->e.name_len = len < sizeof(k->name) ? len : sizeof(k->name);
		memcpy(k->name, text, k->e.name_len);
	}
	return 1;
}

static int on_other(struct reader *k, const char *text)
{
	if (keeping(k)) {
		put_comma(k);
		put(k, text, strlen(text));
	}
	return 1;
}

static int on_null(void *context)
{
	return on_other(context, "null");
}

static int on_boolean(void *context, int value)
{
	return on_other(context, value ? "true" : "false");
}

/* ---- an event ----------------------------------------------------------------------- */

static int32_t args_of(struct reader *k)
{
	if (!k->e.args_len || k->e.args_len + 1 > sizeof(k->args))
		return FT_REC_NONE;
	put(k, "}", 1);
	return text_number(k->r, k->args, k->e.args_len);
}

static int keep_op(struct reader *k, ft_ps start, ft_ps duration)
{
	const struct event *e = &k->e;
	struct ft_rec_op *op = table_add(&k->r->mem, &k->r->op);
	int64_t stream = e->stream != FT_REC_NONE ? e->stream : e->tid;
	int64_t device = e->device != FT_REC_NONE ? e->device : e->pid;

	*op = (struct ft_rec_op){
		.start = start,
		.duration = duration,
		.correlation = e->correlation,
		.external_id = e->external,
		.name = text_number(k->r, k->name, e->name_len),
		.args = args_of(k),
		.call = FT_REC_NONE,
		.stream = lane_number(k->r, &k->r->stream, device, stream),
		.is_copy = e->category == C_MEMCPY,
	};
	return 1;
}

static int keep_call(struct reader *k, ft_ps start, ft_ps duration)
{
	const struct event *e = &k->e;
	enum ft_rec_call_kind kind = call_kind(k->name, e->name_len);
	struct ft_rec_call *call;

	if (kind == FT_REC_CALL_KINDS)
		return 1;
	call = table_add(&k->r->mem, &k->r->call);
	*call = (struct ft_rec_call){
		.start = start,
		.duration = duration,
		.correlation = e->correlation,
		.external_id = e->external,
		.name = text_number(k->r, k->name, e->name_len),
		.waits_for = FT_REC_NONE,
		.thread = lane_number(k->r, &k->r->thread, e->pid, e->tid),
		.stream = FT_REC_NONE,
		.kind = (uint8_t)kind,
	};
	return 1;
}

static int keep_span(struct reader *k, struct table_rows *to, ft_ps start,
		     ft_ps duration)
{
	const struct event *e = &k->e;
	struct ft_rec_span *s = table_add(&k->r->mem, to);

	*s = (struct ft_rec_span){
		.start = start,
		.duration = duration,
		.id = e->external,
		.name = text_number(k->r, k->name, e->name_len),
		.args = to == &k->r->span ? args_of(k) : FT_REC_NONE,
		.thread = lane_number(k->r, &k->r->thread, e->pid, e->tid),
	};
	return 1;
}

static int keep_sync(struct reader *k)
{
	struct told_sync *s = table_add(&k->r->mem, &k->r->sync);

	*s = (struct told_sync){ k->e.correlation, k->e.stream, k->e.wait_record };
	return 1;
}

static int keep(struct reader *k)
{
	const struct event *e = &k->e;
	ft_ps start, duration;

	if (!e->ts.given)
		return stop(k, "an event has no 'ts'");
	if (!k->based)
		k->base_us = e->ts.us;
	k->based = true;
	if (e->ts.us - k->base_us > LONGEST_US || k->base_us - e->ts.us > LONGEST_US ||
	    e->dur.us > LONGEST_US)
		return stop(k, "an event lies more than 1000 s from the first one");
	if (k->r->counts.kept == LIMIT_TRACE_EVENTS)
		return stop(k, "holds too many events");
	k->r->counts.kept++;
	k->r->counts.negative += e->negative;
	start = (e->ts.us - k->base_us) * 1000000 + e->ts.ps;
	duration = e->negative ? 0 : e->dur.us * 1000000 + e->dur.ps;
	switch (e->category) {
	case C_KERNEL:
	case C_MEMCPY:
		return keep_op(k, start, duration);
	case C_RUNTIME:
		return keep_call(k, start, duration);
	case C_OPERATOR:
		return keep_span(k, &k->r->span, start, duration);
	case C_ANNOTATION:
		return keep_span(k, &k->r->annotation, start, duration);
	case C_SYNC:
		return keep_sync(k);
	default:
		return 1;
	}
}

static int end_event(struct reader *k)
{
	k->r->counts.events++;
	if (!strchr("XiIMsftBEbenCNODP", k->e.phase) || !k->e.phase)
		k->r->counts.unknown_phases++;
	return k->e.phase == 'X' && k->e.category != C_NONE ? keep(k) : 1;
}

/* ---- structure ---------------------------------------------------------------------- */

static void begin_event(struct reader *k)
{
	k->in_event = true;
	k->comma = false;
	k->e = (struct event){ .correlation = FT_REC_NONE,
			       .external = FT_REC_NONE,
			       .stream = FT_REC_NONE,
			       .device = FT_REC_NONE,
			       .wait_record = FT_REC_NONE };
}

static int on_start_map(void *context)
{
	struct reader *k = context;

	if (++k->depth > LIMIT_TRACE_DEPTH)
		return stop(k, "is nested too deeply");
	if (k->section == EVENTS && k->depth == 3)
		begin_event(k);
	else if (k->in_event && k->depth == 4 && k->key == K_ARGS)
		k->in_args = true;
	if (k->key != K_KEPT)
		k->key = K_NONE;
	return 1;
}

static int on_map_key(void *context, const unsigned char *bytes, size_t len)
{
	struct reader *k = context;
	const char *text = (const char *)bytes;

	k->key = K_NONE;
	if (k->depth == 1) {
		k->section = is(text, len, "traceEvents")      ? EVENTS :
			     is(text, len, "deviceProperties") ? DEVICES :
			     is(text, len, "distributedInfo")  ? DISTRIBUTED :
								 NOWHERE;
	} else if (!len) {
		return 1;
	} else if (k->in_args && k->depth == 4) {
		k->key = find(of_args, text, len);
		if (k->key == K_KEPT) {
			put(k, k->e.args_len ? "," : "{", 1);
			put_quoted(k, text, len);
			put(k, ":", 1);
			k->comma = false;
		}
	} else if (k->in_event && k->depth == 3) {
		k->key = find(of_event, text, len);
	} else if (k->section == DISTRIBUTED && k->depth == 2) {
		k->key = find(of_distributed, text, len);
	} else if (k->section == DEVICES && k->depth == 3 && is(text, len, "name")) {
		k->key = K_NAME;
	}
	return 1;
}

static int on_end_map(void *context)
{
	struct reader *k = context;
	bool event = k->in_event && k->depth == 3;

	if (k->depth-- == 4)
		k->in_args = false;
	k->key = K_NONE;
	if (!event)
		return 1;
	k->in_event = false;
	return end_event(k);
}

static int on_start_array(void *context)
{
	struct reader *k = context;

	if (++k->depth > LIMIT_TRACE_DEPTH)
		return stop(k, "is nested too deeply");
	if (k->section == EVENTS && k->depth == 2)
		k->events_seen = true;
	if (keeping(k)) {
		put_comma(k);
		put(k, "[", 1);
		k->comma = false;
	}
	return 1;
}

static int on_end_array(void *context)
{
	struct reader *k = context;

	k->depth--;
	if (keeping(k)) {
		put(k, "]", 1);
		k->comma = true;
	} else {
		k->key = K_NONE;
	}
	return 1;
}

/* ---- the file ------------------------------------------------------------------------ */

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_map_key,
	.yajl_end_map = on_end_map,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

static void count_lines(struct reader *k, size_t n)
{
	const unsigned char *at = k->chunk, *end = k->chunk + n, *line;

	while ((line = memchr(at, '\n', (size_t)(end - at)))) {
		k->line++;
		k->column = 1;
		at = line + 1;
	}
	k->column += end - at;
}

/* Of a packed file the place is told in words: the user's file has no such line. */
static bool refuse(struct reader *k, const char *path, size_t n, struct ft_error *err)
{
	struct ft_mark at = { path, 0, 0 };
	unsigned char *said = NULL;

	count_lines(k, n);
	if (!k->why[0]) {
		said = yajl_get_error(k->parser, 0, NULL, 0);
		snprintf(k->why, sizeof(k->why), "%s", (const char *)said);
		k->why[strcspn(k->why, "\n")] = '\0';
		yajl_free_error(k->parser, said);
	}
	if (input_packed(k->in))
		return ft_fail(err, &at, "%s (unpacked: line %lld, column %lld)", k->why,
			       (long long)k->line, (long long)k->column);
	at.line = k->line < INT32_MAX ? (int)k->line : INT32_MAX;
	at.column = k->column < INT32_MAX ? (int)k->column : INT32_MAX;
	return ft_fail(err, &at, "%s", k->why);
}

static bool parse(struct reader *k, const char *path, struct ft_error *err)
{
	struct ft_mark at = { path, 0, 0 };
	yajl_status status = yajl_status_ok;
	size_t n;

	for (;;) {
		if (!input_read(k->in, k->chunk, sizeof(k->chunk), &n, err))
			return false;
		if (!n)
			break;
		status = yajl_parse(k->parser, k->chunk, n);
		if (status != yajl_status_ok)
			return refuse(k, path, yajl_get_bytes_consumed(k->parser), err);
		count_lines(k, n);
	}
	if (yajl_complete_parse(k->parser) != yajl_status_ok)
		return ft_fail(err, &at,
			       "ends in the middle of its JSON: the recording was cut "
			       "off; record it again");
	return k->events_seen || ft_fail(err, &at,
					 "is not a trace: it lacks 'traceEvents'");
}

bool kineto_read(struct ft_recording *r, const char *path, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct reader *k = ARENA_NEW(&mem, struct reader);
	bool ok;

	k->r = r;
	k->line = k->column = 1;
	k->in = input_open(&mem, path, err);
	k->parser = k->in ? yajl_alloc(&callbacks, NULL, k) : NULL;
	if (k->parser)
		yajl_config(k->parser, yajl_dont_validate_strings, 1);
	else if (k->in)
		out_of_memory();
	ok = k->parser && parse(k, path, err);
	r->origin_us = k->base_us;
	if (k->parser)
		yajl_free(k->parser);
	input_close(k->in);
	arena_release(&mem);
	return ok;
}
