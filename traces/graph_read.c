/* traces/graph_read.c - the text of traces/graph_write.c back to a graph */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "foretoken/traces.h"

enum { MOST_WORDS = 24, LARGEST_GRAPH = 256 * 1024 * 1024 };

struct whole {
	struct ft_graph graph; /* first: the handle is the arena's */
	struct arena mem;
};

struct word {
	const char *text, *value; /* "m=5": m and 5; value NULL without '=' */
	int column;
	bool used;
};

struct lines {
	struct arena *mem;
	struct ft_graph *g;
	struct ft_mark at;
	struct word word[MOST_WORDS];
	size_t n;
	size_t work_cap, segment_cap, class_cap, op_cap, call_cap;
	bool class_open;
	struct ft_error *err;
};

static bool fail(struct lines *l, size_t word, const char *what)
{
	struct ft_mark at = l->at;

	at.column = word < l->n ? l->word[word].column : 1;
	return ft_fail(l->err, &at, "%s", what);
}

static const char *option(struct lines *l, const char *key)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->word[i].value && !l->word[i].used &&
		    !strcmp(l->word[i].text, key)) {
			l->word[i].used = true;
			return l->word[i].value;
		}
	return NULL;
}

static bool number(struct lines *l, const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = text ? strtod(text, &end) : 0;
	if (!text || end == text || *end || !isfinite(*out))
		return fail(l, 0, "a number is missing or is none");
	return true;
}

static bool whole(struct lines *l, const char *key, int64_t fallback, int64_t *out)
{
	const char *text = option(l, key);
	char *end;

	*out = fallback;
	if (!text)
		return true;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (end == text || *end || errno || *out < 0)
		return fail(l, 0, "a whole number is missing or is none");
	return true;
}

static int find(const char *text, const char *(*name)(int), int n)
{
	for (int i = 0; text && i < n; i++)
		if (!strcmp(text, name(i)))
			return i;
	return -1;
}

static const char *group_at(int i)
{
	return ft_group_name((enum ft_group)i);
}
static const char *stream_at(int i)
{
	return ft_stream_name((enum ft_stream)i);
}
static const char *host_at(int i)
{
	return ft_host_name((enum ft_host)i);
}
static const char *memory_at(int i)
{
	return ft_memory_name((enum ft_memory)i);
}
static const char *event_at(int i)
{
	return ft_event_name((enum ft_event)i);
}
static const char *layout_at(int i)
{
	return ft_layout_name((enum ft_layout)i);
}

static const char *keep(struct lines *l, const char *text)
{
	return arena_text(l->mem, text);
}

static bool truth(struct lines *l, const char *key)
{
	const char *text = option(l, key);

	return text && !strcmp(text, "true");
}

static bool read_gemm(struct lines *l, struct ft_work *w)
{
	int layout = find(option(l, "layout"), layout_at, FT_LAYOUTS);

	if (layout < 0)
		return fail(l, 0, "layout= is forward, dgrad or wgrad");
	w->gemm.layout = (enum ft_layout)layout;
	w->gemm.accumulate = truth(l, "accumulate");
	if (!whole(l, "m", 0, &w->gemm.m) || !whole(l, "n", 0, &w->gemm.n) ||
	    !whole(l, "k", 0, &w->gemm.k) || !whole(l, "groups", 1, &w->gemm.groups))
		return false;
	return (w->gemm.m && w->gemm.n && w->gemm.k) ||
	       fail(l, 0, "a gemm needs m=, n= and k=");
}

static const char *pass_at(int i)
{
	static const char *const passes[] = { "forward", "backward", "both" };

	return passes[i];
}

static bool read_attention(struct lines *l, struct ft_work *w)
{
	int pass = find(option(l, "pass"), pass_at, 3);
	const char *impl = option(l, "impl");

	if (pass < 0)
		return fail(l, 0, "pass= is forward, backward or both");
	w->attention.pass = (enum ft_pass)pass;
	w->attention.causal = truth(l, "causal");
	w->attention.impl = impl ? keep(l, impl) : NULL;
	return whole(l, "batch", 1, &w->attention.batch) &&
	       whole(l, "heads", 1, &w->attention.heads) &&
	       whole(l, "kv_heads", 1, &w->attention.kv_heads) &&
	       whole(l, "queries", 1, &w->attention.queries) &&
	       whole(l, "keys", 1, &w->attention.keys) &&
	       whole(l, "qk_head_dim", 1, &w->attention.qk_head_dim) &&
	       whole(l, "v_head_dim", 1, &w->attention.v_head_dim) &&
	       whole(l, "window", 0, &w->attention.window);
}

static bool read_memory(struct lines *l, struct ft_work *w)
{
	const char *kernel = option(l, "kernel"), *row = option(l, "row_bytes");

	if (!kernel)
		return fail(l, 0, "a memory-bound work needs kernel=");
	w->memory.kernel = keep(l, kernel);
	w->memory.warm = truth(l, "warm");
	w->memory.low_priority = truth(l, "low_priority");
	if (row && !number(l, row, &w->memory.row_bytes))
		return false;
	return number(l, option(l, "bytes"), &w->memory.bytes);
}

static bool read_communication(struct lines *l, struct ft_work *w)
{
	const char *op = option(l, "op");
	int group = find(option(l, "group"), group_at, FT_GROUPS);
	const char *fanout = option(l, "fanout");

	if (!op || !ft_collective_find(op, &w->communication.op) || group < 0)
		return fail(l, 0, "a communication needs op= and group=");
	w->communication.group = (enum ft_group)group;
	w->communication.copy_engine = truth(l, "copy_engine");
	if (fanout && !number(l, fanout, &w->communication.fanout))
		return false;
	return number(l, option(l, "bytes"), &w->communication.bytes);
}

static bool read_work(struct lines *l)
{
	static const char *const kinds[] = { "gemm", "attention", "memory",
					     "communication" };
	static bool (*const readers[])(struct lines *, struct ft_work *) = {
		read_gemm,
		read_attention,
		read_memory,
		read_communication,
	};
	struct ft_graph *g = l->g;
	struct ft_work *w;
	const char *dtype;

	if (l->n < 4 || strtoull(l->word[1].text, NULL, 10) != g->n_works)
		return fail(l, 1,
			    "write: work NUMBER KIND NAME ..., numbered "
			    "from 0");
	if (g->n_works == l->work_cap)
		g->work = ARENA_GROW(l->mem, g->work, &l->work_cap);
	w = &g->work[g->n_works++];
	*w = (struct ft_work){ .name = keep(l, l->word[3].text) };
	dtype = option(l, "dtype");
	if (!dtype || !ft_dtype_find(dtype, &w->dtype))
		return fail(l, 0, "dtype= is missing or unknown");
	for (int i = 0; i < 4; i++)
		if (!strcmp(l->word[2].text, kinds[i])) {
			w->kind = (enum ft_work_kind)i;
			return readers[i](l, w);
		}
	return fail(l, 2, "a work is gemm, attention, memory or communication");
}

static bool read_waits(struct lines *l, struct ft_op *op)
{
	for (int i = 0; i < FT_OP_WAITS; i++) {
		const char *text = option(l, "wait");
		int code;

		op->wait[i] = FT_EVENT_NONE;
		if (!text)
			continue;
		if (!strncmp(text, "tail:", 5)) {
			code = find(text + 5, stream_at, FT_STREAMS);
			code = code < 0 ? -1 : code + FT_TAIL;
		} else {
			code = find(text, event_at, FT_EVENTS);
		}
		if (code < 0)
			return fail(l, 0,
				    "wait= names neither an event nor "
				    "tail:STREAM");
		op->wait[i] = (uint8_t)code;
	}
	return true;
}

static bool read_op(struct lines *l)
{
	struct ft_graph *g = l->g;
	struct ft_segment *s = g->n_segments ? &g->segment[g->n_segments - 1] : NULL;
	const char *record = option(l, "record");
	int stream = find(option(l, "stream"), stream_at, FT_STREAMS), event;
	int64_t work, launches;
	struct ft_op *op;

	if (!s || l->class_open)
		return fail(l, 0, "an op stands below a segment");
	if (!whole(l, "work", -1, &work) || !whole(l, "launches", 0, &launches))
		return false;
	if (work < 0 || (size_t)work >= g->n_works || stream < 0)
		return fail(l, 0, "an op needs work= (a number above) and stream=");
	event = record ? find(record, event_at, FT_EVENTS) : FT_EVENT_NONE;
	if (event < 0)
		return fail(l, 0, "record= names no event");
	if (launches > 255)
		return fail(l, 0, "launches= is at most 255");
	if (s->n_ops == l->op_cap)
		s->op = ARENA_GROW(l->mem, s->op, &l->op_cap);
	op = &s->op[s->n_ops++];
	*op = (struct ft_op){ .work = (uint32_t)work,
			      .stream = (uint8_t)stream,
			      .launches = (uint8_t)launches,
			      .optimizer = truth(l, "optimizer"),
			      .record = (uint8_t)event };
	return read_waits(l, op);
}

static bool read_segment(struct lines *l)
{
	struct ft_graph *g = l->g;

	if (l->n < 3 || strtoull(l->word[1].text, NULL, 10) != g->n_segments)
		return fail(l, 1, "write: segment NUMBER NAME, numbered from 0");
	if (g->n_segments == l->segment_cap)
		g->segment = ARENA_GROW(l->mem, g->segment, &l->segment_cap);
	g->segment[g->n_segments++] =
		(struct ft_segment){ .name = keep(l, l->word[2].text) };
	l->op_cap = 0;
	return true;
}

static bool read_class(struct lines *l)
{
	struct ft_graph *g = l->g;
	struct ft_class *c;

	if (l->n < 2)
		return fail(l, 0, "write: class NAME ranks=N");
	if (g->n_classes == l->class_cap)
		g->class = ARENA_GROW(l->mem, g->class, &l->class_cap);
	c = &g->class[g->n_classes++];
	*c = (struct ft_class){ .name = keep(l, l->word[1].text) };
	l->call_cap = 0;
	l->class_open = true;
	return whole(l, "ranks", 1, &c->ranks);
}

static bool read_call(struct lines *l)
{
	struct ft_graph *g = l->g;
	struct ft_class *c = g->n_classes ? &g->class[g->n_classes - 1] : NULL;
	unsigned long long segment, repeat;

	if (!c || l->n < 3 || l->word[2].text[0] != 'x')
		return fail(l, 0, "write below a class: call SEGMENT xTIMES");
	segment = strtoull(l->word[1].text, NULL, 10);
	repeat = strtoull(l->word[2].text + 1, NULL, 10);
	if (segment >= g->n_segments || !repeat || repeat > 1000000000)
		return fail(l, 1, "no such segment, or no such count");
	if (c->n_calls == l->call_cap)
		c->call = ARENA_GROW(l->mem, c->call, &l->call_cap);
	c->call[c->n_calls++] = (struct ft_call){ (uint32_t)segment, (uint32_t)repeat };
	return true;
}

static bool read_group(struct lines *l)
{
	int group = l->n > 1 ? find(l->word[1].text, group_at, FT_GROUPS) : -1;

	if (group < 0)
		return fail(l, 1, "unknown group");
	if (!whole(l, "size", 1, &l->g->group[group].size) ||
	    !whole(l, "stride", 1, &l->g->group[group].stride))
		return false;
	return (l->g->group[group].size > 0 && l->g->group[group].stride > 0) ||
	       fail(l, 1, "a group's size and stride are at least 1");
}

/* "host NAME TIMES" in a segment, or "host ahead|waits" of the graph. */
static bool read_host(struct lines *l)
{
	struct ft_graph *g = l->g;
	int h;

	if (l->n == 2 && !g->n_segments) {
		g->host_runs_ahead = !strcmp(l->word[1].text, "ahead");
		return true;
	}
	h = l->n == 3 ? find(l->word[1].text, host_at, FT_HOSTS) : -1;
	if (h < 0 || !g->n_segments || l->class_open)
		return fail(l, 1, "unknown host activity, or not in a segment");
	return number(l, l->word[2].text, &g->segment[g->n_segments - 1].host[h]);
}

static bool read_memory_line(struct lines *l, double *bytes, bool open)
{
	int m = l->n == 3 ? find(l->word[1].text, memory_at, FT_MEMORIES) : -1;

	if (!open || m < 0)
		return fail(l, 1,
			    "write below its owner: net|peak|base CATEGORY "
			    "BYTES");
	return number(l, l->word[2].text, &bytes[m]);
}

static bool read_line(struct lines *l)
{
	struct ft_graph *g = l->g;
	const char *what = l->word[0].text;
	bool segment = g->n_segments && !l->class_open;
	struct ft_segment *s = segment ? &g->segment[g->n_segments - 1] : NULL;

	if (!strcmp(what, "work"))
		return read_work(l);
	if (!strcmp(what, "op"))
		return read_op(l);
	if (!strcmp(what, "segment"))
		return read_segment(l);
	if (!strcmp(what, "class"))
		return read_class(l);
	if (!strcmp(what, "call"))
		return read_call(l);
	if (!strcmp(what, "group"))
		return read_group(l);
	if (!strcmp(what, "host"))
		return read_host(l);
	if (!strcmp(what, "net"))
		return read_memory_line(l, s ? s->net_bytes : NULL, segment);
	if (!strcmp(what, "peak"))
		return read_memory_line(l, s ? s->peak_bytes : NULL, segment);
	if (!strcmp(what, "base"))
		return read_memory_line(
			l, l->class_open ? g->class[g->n_classes - 1].base_bytes : NULL,
			l->class_open);
	if (!strcmp(what, "tokens"))
		return number(l, l->n > 1 ? l->word[1].text : NULL, &g->tokens);
	if (!strcmp(what, "recomputed_flop"))
		return number(l, l->n > 1 ? l->word[1].text : NULL,
			      &g->recomputed_flop_per_rank);
	if (!strcmp(what, "graph"))
		return (l->n == 2 && !strcmp(l->word[1].text, "1")) ||
		       fail(l, 1, "only version 1 of this format is known");
	return fail(l, 0, "unknown word at the line's start");
}

static bool split(struct lines *l, char *line)
{
	char *p = line;

	l->n = 0;
	while (*p) {
		char *eq;

		while (*p == ' ' || *p == '\t' || *p == '\r')
			p++;
		if (!*p || *p == '#')
			break;
		if (l->n == MOST_WORDS)
			return fail(l, 0, "too many words on one line");
		l->word[l->n] =
			(struct word){ .text = p, .column = (int)(p - line) + 1 };
		while (*p && *p != ' ' && *p != '\t' && *p != '\r')
			p++;
		if (*p)
			*p++ = '\0';
		eq = strchr(l->word[l->n].text, '=');
		if (eq) {
			*eq = '\0';
			l->word[l->n].value = eq + 1;
		}
		l->n++;
	}
	return true;
}

static bool unknown_option(struct lines *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->word[i].value && !l->word[i].used)
			return !fail(l, i, "unknown option");
	return false;
}

static bool read_all(struct lines *l, char *text)
{
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		l->at.line++;
		if (!split(l, line))
			return false;
		if (!l->n)
			continue;
		if (l->at.line > 1 || !strcmp(l->word[0].text, "graph")) {
			if (!read_line(l) || unknown_option(l))
				return false;
		} else {
			return fail(l, 0, "a step graph begins with 'graph 1'");
		}
	}
	if (!l->g->n_classes)
		return fail(l, 0, "holds no class");
	return true;
}

struct ft_graph *ft_graph_read(const char *path, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct lines *l;
	size_t len;
	char *text;

	w->mem = mem;
	l = ARENA_NEW(&w->mem, struct lines);
	*l = (struct lines){ .mem = &w->mem, .g = &w->graph, .err = err };
	l->at.file = arena_text(&w->mem, path);
	for (int i = 0; i < FT_GROUPS; i++)
		w->graph.group[i] = (struct ft_group_shape){ 1, 1 };
	text = file_read(&w->mem, path, LARGEST_GRAPH, &len, err);
	if (text && read_all(l, text))
		return &w->graph;
	ft_graph_free(&w->graph);
	return NULL;
}
