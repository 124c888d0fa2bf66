/*
 * recorded/kineto.c - the JSON of PyTorch's profiler (Kineto), read as a stream
 *
 * yajl reports each token; an event is assembled in one place and kept, or not, when
 * its map ends, so that keys may come in any order and memory is bounded by what is
 * kept. Times are decimal microseconds, often since 1970: whole microseconds count
 * from the first event's, fractions are added exactly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recorded/kineto.h"

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

/* ---- values ------------------------------------------------------------------------- */

static int on_number(void *context, const char *text, size_t len)
{
	struct reader *k = context;
	struct event *e = &k->e;
	bool negative;

	if (args_keeping(k)) {
		args_put_comma(k);
		args_put(k, text, len);
		return 1;
	}
	switch (k->key) {
	case K_TS:
		e->ts = moment_of(text, len, &negative);
		if (negative)
			return reader_stop(k, "an event's time is negative");
		break;
	case K_DUR:
		e->dur = moment_of(text, len, &e->negative);
		break;
	case K_PID:
		e->pid = whole_of(text, len);
		break;
	case K_TID:
		e->tid = whole_of(text, len);
		break;
	case K_CORRELATION:
		e->correlation = whole_of(text, len);
		break;
	case K_EXTERNAL:
		e->external = whole_of(text, len);
		break;
	case K_STREAM:
		e->stream = whole_of(text, len);
		break;
	case K_DEVICE:
		e->device = whole_of(text, len);
		break;
	case K_WAIT_RECORD:
		e->wait_record = whole_of(text, len);
		break;
	case K_RANK:
		k->r->rank = whole_of(text, len);
		break;
	case K_WORLD:
		k->r->world = whole_of(text, len);
		break;
	default:
		break;
	}
	return 1;
}

static int on_string(void *context, const unsigned char *bytes, size_t len)
{
	struct reader *k = context;
	const char *text = (const char *)bytes;

	if (args_keeping(k)) {
		args_put_comma(k);
		args_put_quoted(k, text, len);
	} else if (k->key == K_PHASE) {
		k->e.phase = len ? text[0] : ' ';
	} else if (k->key == K_CATEGORY) {
		k->e.category = category_of(text, len);
	} else if (k->key == K_NAME && k->section == DEVICES) {
		if (!k->r->device[0])
			k->r->device = arena_text_n(&k->r->mem, text, len);
	} else if (k->key == K_LABEL) {
		snprintf(k->label, sizeof(k->label), "%.*s",
			 (int)(len < sizeof(k->label) ? len : sizeof(k->label)), text);
	} else if (k->key == K_NAME) {
		k->e.name_len = len < sizeof(k->name) ? len : sizeof(k->name);
		memcpy(k->name, text, k->e.name_len);
	}
	return 1;
}

static int on_other(struct reader *k, const char *text)
{
	if (args_keeping(k)) {
		args_put_comma(k);
		args_put(k, text, strlen(text));
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
		return reader_stop(k, "is nested too deeply");
	if (k->section == EVENTS && k->depth == 3)
		begin_event(k);
	else if (k->in_event && k->depth == 4 && k->key == K_ARGS)
		k->in_args = true;
	if (k->key != K_KEPT)
		k->key = K_NONE;
	return 1;
}

static enum section section_of(const char *text, size_t len)
{
	return is(text, len, "traceEvents")	 ? EVENTS :
	       is(text, len, "deviceProperties") ? DEVICES :
	       is(text, len, "distributedInfo")	 ? DISTRIBUTED :
						   NOWHERE;
}

static void begin_arg(struct reader *k, const char *text, size_t len)
{
	k->key = key_of_args(text, len);
	if (k->key != K_KEPT)
		return;
	args_put(k, k->e.args_len ? "," : "{", 1);
	args_put_quoted(k, text, len);
	args_put(k, ":", 1);
	k->comma = false;
}

static int on_map_key(void *context, const unsigned char *bytes, size_t len)
{
	struct reader *k = context;
	const char *text = (const char *)bytes;

	k->key = K_NONE;
	if (k->depth == 1) {
		k->section = section_of(text, len);
	} else if (!len) {
		return 1;
	} else if (k->in_args && k->depth == 4) {
		begin_arg(k, text, len);
	} else if (k->in_event && k->depth == 3) {
		k->key = key_of_event(text, len);
	} else if (k->section == DISTRIBUTED && k->depth == 2) {
		k->key = key_of_distributed(text, len);
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
	return event_end(k);
}

static int on_start_array(void *context)
{
	struct reader *k = context;

	if (!k->depth) {
		k->section =
			EVENTS; /* a list of events alone, as Chrome takes it, too */
		k->depth = 1;
	}
	if (++k->depth > LIMIT_TRACE_DEPTH)
		return reader_stop(k, "is nested too deeply");
	if (k->section == EVENTS && k->depth == 2)
		k->events_seen = true;
	if (args_keeping(k)) {
		args_put_comma(k);
		args_put(k, "[", 1);
		k->comma = false;
	}
	return 1;
}

static int on_end_array(void *context)
{
	struct reader *k = context;

	k->depth--;
	if (args_keeping(k)) {
		args_put(k, "]", 1);
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
	struct ft_mark at = { .file = path };
	unsigned char *said = NULL;

	count_lines(k, n);
	if (!k->why[0]) {
		said = yajl_get_error(k->parser, 0, NULL, 0);
		snprintf(k->why, sizeof(k->why), "%s", (const char *)said);
		k->why[strcspn(k->why, "\n")] = '\0';
		yajl_free_error(k->parser, said);
	}
	if (input_packed(k->in))
		return ft_fail(err, &at, "%s (unpacked: line %lld, column %lld)",
			       k->why, (long long)k->line, (long long)k->column);
	at.line = k->line < INT32_MAX ? (int)k->line : INT32_MAX;
	at.column = k->column < INT32_MAX ? (int)k->column : INT32_MAX;
	return ft_fail(err, &at, "%s", k->why);
}

static bool parse(struct reader *k, const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	const size_t mark = strlen(UTF8_MARK);
	yajl_status status = yajl_status_ok;
	bool first = true;
	size_t n;

	for (;; first = false) {
		if (!input_read(k->in, k->chunk, sizeof(k->chunk), &n, err))
			return false;
		if (!n)
			break;
		if (first && n >= mark && !memcmp(k->chunk, UTF8_MARK, mark))
			memset(k->chunk, ' ', mark); /* some editors put it there */
		status = yajl_parse(k->parser, k->chunk, n);
		if (status != yajl_status_ok)
			return refuse(k, path, yajl_get_bytes_consumed(k->parser), err);
		count_lines(k, n);
	}
	if (yajl_complete_parse(k->parser) != yajl_status_ok)
		return ft_fail(err, &at,
			       "ends in the middle of its JSON: the recording was cut "
			       "off; record it again");
	return k->events_seen ||
	       ft_fail(err, &at, "is not a trace: it lacks 'traceEvents'");
}

/* Memory for yajl, which does not check for NULL: too little ends the program. */
static void *take_bytes(void *ctx, size_t n)
{
	void *p = malloc(n);

	(void)ctx;
	if (!p && n)
		out_of_memory();
	return p;
}

static void *resize_bytes(void *ctx, void *p, size_t n)
{
	void *q = realloc(p, n);

	(void)ctx;
	if (!q && n)
		out_of_memory();
	return q;
}

static void drop_bytes(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

bool kineto_read(struct ft_recording *r, FILE *from, const char *path,
		 struct ft_error *err)
{
	yajl_alloc_funcs memory = { take_bytes, resize_bytes, drop_bytes, NULL };
	struct arena mem = { 0 };
	struct reader *k = ARENA_NEW(&mem, struct reader);
	bool ok;

	k->r = r;
	k->line = k->column = 1;
	k->in = from ? input_of(&mem, from, path, err) : input_open(&mem, path, err);
	k->parser = k->in ? yajl_alloc(&callbacks, &memory, k) : NULL;
	if (k->parser)
		yajl_config(k->parser, yajl_dont_validate_strings, 1);
	ok = k->parser && parse(k, path, err);
	r->origin_us = k->base_us;
	if (ok && k->gpu.named)
		xla_steps(r);
	if (k->parser)
		yajl_free(k->parser);
	input_close(k->in);
	arena_release(&mem);
	return ok;
}
