/* traces/graph_read.c - the text of traces/graph_write.c back to a graph */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/text.h"
#include "traces/graph_words.h"
#include "traces/stretches.h"

struct whole {
	struct ft_graph graph; /* first: the handle is the arena's */
	struct arena mem;
};

struct reading {
	struct graph_line line; /* first: errors point at it */
	struct arena *mem;
	struct ft_graph *g;
	size_t work_cap, segment_cap, class_cap, op_cap, call_cap, slot_cap;
	size_t n_ops; /* and calls */
	bool class_open;
	int64_t ranks; /* of the cluster; 0: not known */
	int tokens_line, class_line;
};

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

static const char *slot_at(int i)
{
	return ft_slot_name((enum ft_slot_kind)i);
}

static const char *keep(struct reading *l, const char *text)
{
	return arena_text(l->mem, text);
}

/* The number that stands first: things are numbered from 0, in order. */
static bool numbered(struct reading *l, size_t n, size_t most, const char *what)
{
	int64_t i;

	if (n >= most)
		return graph_fail(&l->line, 0, "too many %s: more than %zu", what,
				  most);
	return graph_whole(&l->line, 1, (int64_t)n, (int64_t)n, &i);
}

static bool read_work(struct reading *l)
{
	struct ft_graph *g = l->g;
	struct ft_work *w;
	const char *dtype;

	if (l->line.n < 4 || !numbered(l, g->n_works, LIMIT_GRAPH_WORKS, "works"))
		return graph_fail(&l->line, 1,
				  "write: work NUMBER KIND NAME ..., numbered "
				  "from 0, at most %d",
				  (int)LIMIT_GRAPH_WORKS);
	if (g->n_works == l->work_cap)
		g->work = ARENA_GROW(l->mem, g->work, &l->work_cap);
	w = &g->work[g->n_works++];
	*w = (struct ft_work){ .name = keep(l, l->line.word[3].text) };
	dtype = graph_value(&l->line, "dtype");
	if (!dtype || !ft_dtype_find(dtype, &w->dtype))
		return graph_fail(&l->line, 0, "dtype= is missing or unknown");
	for (int i = 0; i < FT_WORK_KINDS; i++)
		if (!strcmp(l->line.word[2].text,
			    ft_work_kind_name((enum ft_work_kind)i))) {
			w->kind = (enum ft_work_kind)i;
			return graph_work(&l->line, l->mem, w);
		}
	return graph_fail(&l->line, 2,
			  "a work is gemm, attention, memory or communication");
}

static bool read_waits(struct reading *l, struct ft_op *op)
{
	for (int i = 0; i < FT_OP_WAITS; i++) {
		const char *text = graph_value(&l->line, "wait");
		int code;

		op->wait[i] = FT_EVENT_NONE;
		if (!text)
			continue;
		if (text_begins_with(text, "tail:")) {
			code = graph_find(text + 5, stream_at, FT_STREAMS);
			code = code < 0 ? -1 : code + FT_TAIL;
		} else {
			code = graph_find(text, event_at, FT_EVENTS);
		}
		if (code < 0)
			return graph_fail(&l->line, 0,
					  "wait= names neither an event nor "
					  "tail:STREAM");
		op->wait[i] = (uint8_t)code;
	}
	return true;
}

/* One more op or call. */
static bool count_op(struct reading *l)
{
	return l->n_ops++ < LIMIT_GRAPH_OPS ||
	       graph_fail(&l->line, 0, "too many ops or calls: more than %d",
			  (int)LIMIT_GRAPH_OPS);
}

static bool read_truths(struct reading *l, struct ft_op *op)
{
	return graph_truth(&l->line, "optimizer", &op->optimizer) &&
	       graph_truth(&l->line, "graphed", &op->graphed) &&
	       graph_truth(&l->line, "reverse", &op->reverse) &&
	       graph_truth(&l->line, "host_waits", &op->host_waits);
}

/* Collectives share links and meet others on streams of their own, transfers reach other stages from theirs, and copies
 * to host memory and back take nothing from what computes on theirs. */
static bool fits_stream(struct reading *l, size_t at, const struct ft_work *w,
			int stream)
{
	bool communication = w->kind == FT_COMMUNICATION;
	bool transfer = communication && w->communication.op == FT_SENDRECV &&
			w->communication.group == FT_GROUP_PP;
	bool of_host = stream == FT_STREAM_OFFLOAD || stream == FT_STREAM_FETCH;

	if (communication && stream < FT_STREAM_GATHER)
		return graph_fail(&l->line, at,
				  "a communication does not run on stream %s; say "
				  "stream=gather, reduce, tp, cp or ep, and "
				  "wait=tail:STREAM in the ops that it should hold up",
				  stream_at(stream));
	if (ft_work_is_host_copy(w) != of_host)
		return graph_fail(&l->line, at,
				  "only copies to host memory and back "
				  "(kernel=host_link) run on the streams offload and "
				  "fetch, and on no other");
	return transfer || stream < FT_STREAM_SEND_FORWARD ||
	       graph_fail(&l->line, at,
			  "only a communication with op=sendrecv and group=pp runs on "
			  "stream %s",
			  stream_at(stream));
}

/* "work=I stream=S", of a work that such a stream takes. */
static bool read_place(struct reading *l, struct ft_op *op)
{
	size_t at = graph_option(&l->line, "stream");
	int stream =
		graph_find(at ? l->line.word[at].value : NULL, stream_at, FT_STREAMS);
	int64_t work = -1;

	if (!graph_whole_of(&l->line, "work", 0, LIMIT_GRAPH_WORKS, &work))
		return false;
	if (work < 0 || (size_t)work >= l->g->n_works || stream < 0)
		return graph_fail(&l->line, 0,
				  "an op needs work= (a number above) and stream=");
	op->work = (uint32_t)work;
	op->stream = (uint8_t)stream;
	return fits_stream(l, at, &l->g->work[work], stream);
}

static bool read_op(struct reading *l)
{
	struct ft_graph *g = l->g;
	struct ft_segment *s = g->n_segments ? &g->segment[g->n_segments - 1] : NULL;
	const char *record = graph_value(&l->line, "record");
	int event = record ? graph_find(record, event_at, FT_EVENTS) : FT_EVENT_NONE;
	int64_t launches = 0;
	struct ft_op op = { 0 };

	if (!s || l->class_open)
		return graph_fail(&l->line, 0, "an op belongs below a segment");
	if (!read_place(l, &op) ||
	    !graph_whole_of(&l->line, "launches", 0, UINT16_MAX, &launches))
		return false;
	if (event < 0)
		return graph_fail(&l->line, 0, "record= names no event");
	if (!count_op(l))
		return false;
	op.launches = (uint16_t)launches;
	op.record = (uint8_t)event;
	if (s->n_ops == l->op_cap)
		s->op = ARENA_GROW(l->mem, s->op, &l->op_cap);
	s->op[s->n_ops++] = op;
	return read_truths(l, &s->op[s->n_ops - 1]) &&
	       read_waits(l, &s->op[s->n_ops - 1]);
}

static bool read_segment(struct reading *l)
{
	struct ft_graph *g = l->g;

	if (l->line.n < 3 ||
	    !numbered(l, g->n_segments, LIMIT_GRAPH_SEGMENTS, "segments"))
		return graph_fail(&l->line, 1,
				  "write: segment NUMBER NAME, numbered from 0, at "
				  "most %d",
				  (int)LIMIT_GRAPH_SEGMENTS);
	if (g->n_segments == l->segment_cap)
		g->segment = ARENA_GROW(l->mem, g->segment, &l->segment_cap);
	g->segment[g->n_segments++] =
		(struct ft_segment){ .name = keep(l, l->line.word[2].text) };
	l->op_cap = 0;
	return true;
}

static bool read_class(struct reading *l)
{
	struct ft_graph *g = l->g;
	struct ft_class *c;

	if (l->line.n < 2)
		return graph_fail(&l->line, 0, "write: class NAME ranks=N");
	if (g->n_classes == LIMIT_GRAPH_CLASSES)
		return graph_fail(&l->line, 0, "too many classes: more than %d",
				  (int)LIMIT_GRAPH_CLASSES);
	if (g->n_classes == l->class_cap)
		g->rank_class = ARENA_GROW(l->mem, g->rank_class, &l->class_cap);
	c = &g->rank_class[g->n_classes++];
	*c = (struct ft_class){ .name = keep(l, l->line.word[1].text), .ranks = 1 };
	l->call_cap = l->slot_cap = 0;
	l->class_open = true;
	l->class_line = l->line.at.line;
	return graph_whole_of(&l->line, "ranks", 1, LIMIT_GRAPH_NUMBER, &c->ranks);
}

static bool read_call(struct reading *l)
{
	struct ft_graph *g = l->g;
	struct ft_class *c = g->n_classes ? &g->rank_class[g->n_classes - 1] : NULL;
	int64_t segment, repeat;

	if (!c || l->line.n < 3 || l->line.word[2].text[0] != 'x')
		return graph_fail(&l->line, 0,
				  "write below a class: call SEGMENT xTIMES");
	l->line.word[2].text++;
	if (!graph_whole(&l->line, 1, 0, LIMIT_GRAPH_SEGMENTS, &segment) ||
	    !graph_whole(&l->line, 2, 1, LIMIT_GRAPH_NUMBER, &repeat))
		return false;
	if ((size_t)segment >= g->n_segments)
		return graph_fail(
			&l->line, 1,
			"there is no such segment, or the count is not a number");
	if (!count_op(l))
		return false;
	if (c->n_calls == l->call_cap)
		c->call = ARENA_GROW(l->mem, c->call, &l->call_cap);
	c->call[c->n_calls++] = (struct ft_call){ (uint32_t)segment, (uint32_t)repeat };
	return true;
}

/* "pass KIND chunk=C micro_batch=M": of the calls below it. */
static bool read_pass(struct reading *l)
{
	struct ft_graph *g = l->g;
	struct ft_class *c = g->n_classes ? &g->rank_class[g->n_classes - 1] : NULL;
	int kind = l->line.n > 1 ?
			   graph_find(l->line.word[1].text, slot_at, FT_SLOT_KINDS) :
			   -1;
	struct ft_slot s = { .kind = FT_SLOT_UPDATE };

	if (!c || kind < 0)
		return graph_fail(&l->line, 1,
				  "write below a class: pass forward, backward, "
				  "weights, whole or flush, with chunk= and "
				  "micro_batch=; or pass update");
	s.kind = (enum ft_slot_kind)kind;
	if (!graph_whole_of(&l->line, "chunk", 0, LIMIT_GRAPH_NUMBER, &s.chunk) ||
	    !graph_whole_of(&l->line, "micro_batch", 0, LIMIT_GRAPH_NUMBER,
			    &s.micro_batch) ||
	    !count_op(l))
		return false;
	if (c->n_slots == l->slot_cap)
		c->slot = ARENA_GROW(l->mem, c->slot, &l->slot_cap);
	c->slot[c->n_slots++] = (struct ft_slot_mark){ s, c->n_calls };
	return true;
}

static bool read_group(struct reading *l)
{
	int64_t most = l->ranks ? l->ranks : LIMIT_GPUS;
	int group = l->line.n > 1 ? graph_find(l->line.word[1].text, graph_group_at,
					       FT_GROUPS) :
				    -1;
	struct ft_group_shape *shape;

	if (group < 0)
		return graph_fail(&l->line, 1, "unknown group");
	shape = &l->g->group[group];
	if (!graph_whole_of(&l->line, "size", 1, most, &shape->size) ||
	    !graph_whole_of(&l->line, "stride", 1, most, &shape->stride))
		return false;
	return (shape->size - 1) * shape->stride < most ||
	       graph_fail(&l->line, 1,
			  "a group of %lld ranks, %lld apart, does not fit %lld ranks",
			  (long long)shape->size, (long long)shape->stride,
			  (long long)most);
}

/* "host NAME TIMES" in a segment, or "host ahead|waits" of the graph. */
static bool read_host(struct reading *l)
{
	struct ft_graph *g = l->g;
	int h;

	if (l->line.n == 2 && !g->n_segments) {
		const char *word = l->line.word[1].text;

		g->host_runs_ahead = !strcmp(word, "ahead");
		return g->host_runs_ahead || !strcmp(word, "waits") ||
		       graph_fail(&l->line, 1, "write: host ahead, or host waits");
	}
	h = l->line.n == 3 ? graph_find(l->line.word[1].text, host_at, FT_HOSTS) : -1;
	if (h < 0 || !g->n_segments || l->class_open ||
	    g->segment[g->n_segments - 1].n_behind)
		return graph_fail(&l->line, 1, "no host activity, or not in a segment");
	return graph_number(&l->line, 2, 0, LIMIT_GRAPH_NUMBER,
			    &g->segment[g->n_segments - 1].host[h]);
}

/* "behind NAME TIMES" below ops of a segment: of its host activities, those that stand there. */
static bool read_behind(struct reading *l)
{
	size_t n = l->class_open ? 0 : l->g->n_segments;
	struct ft_segment *s = n ? &l->g->segment[n - 1] : NULL;
	int h = l->line.n == 3 ? graph_find(l->line.word[1].text, host_at, FT_HOSTS) :
				 -1;
	double times, before = 0;

	if (h < 0 || !s || !s->n_ops)
		return graph_fail(&l->line, 1, "no host activity, or not below an op");
	if (!graph_number(&l->line, 2, 0, LIMIT_GRAPH_NUMBER, &times))
		return false;
	if (!segment_cut(l->mem, s, s->n_ops))
		return graph_fail(&l->line, 0, "more than %d places", FT_BEHIND);
	s->behind[s->n_behind - 1].host[h] = times;
	for (size_t i = 0; i < s->n_behind; i++)
		before += s->behind[i].host[h];
	return before <= s->host[h] * (1 + 1e-12) ||
	       graph_fail(&l->line, 2, "more than the segment's line host %s says",
			  l->line.word[1].text);
}

static bool read_memory_line(struct reading *l, double *bytes, bool open, double least)
{
	int m = l->line.n == 3 ?
			graph_find(l->line.word[1].text, memory_at, FT_MEMORIES) :
			-1;

	if (!open || m < 0)
		return graph_fail(&l->line, 1,
				  "write below its owner: net|peak|base CATEGORY "
				  "BYTES");
	return graph_number(&l->line, 2, least, GRAPH_MOST_BYTES, &bytes[m]);
}

/* Of the graph as a whole. */
static bool read_top(struct reading *l, const char *what)
{
	struct ft_graph *g = l->g;

	if (!strcmp(what, "tokens")) {
		l->tokens_line = l->line.at.line;
		return graph_number(&l->line, 1, 1, GRAPH_MOST_TOKENS, &g->tokens);
	}
	if (!strcmp(what, "recomputed_flop"))
		return graph_number(&l->line, 1, 0, 1e30, &g->recomputed_flop_per_rank);
	if (!strcmp(what, "bubble"))
		return graph_number(&l->line, 1, 0, 1e9, &g->bubble_frac);
	if (!strcmp(what, "graph"))
		return (l->line.n == 2 && !strcmp(l->line.word[1].text, "1")) ||
		       graph_fail(&l->line, 1,
				  "only version 1 of this format is known");
	return graph_fail(&l->line, 0, "unknown word at the start of the line");
}

static bool read_line(struct reading *l)
{
	static const struct {
		const char *what;
		bool (*read)(struct reading *l);
	} readers[] = {
		{ "work", read_work },	     { "op", read_op },
		{ "segment", read_segment }, { "class", read_class },
		{ "call", read_call },	     { "group", read_group },
		{ "host", read_host },	     { "pass", read_pass },
		{ "behind", read_behind },
	};
	struct ft_graph *g = l->g;
	const char *what = l->line.word[0].text;
	bool segment = g->n_segments && !l->class_open;
	struct ft_segment *s = segment ? &g->segment[g->n_segments - 1] : NULL;

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		if (!strcmp(what, readers[i].what))
			return readers[i].read(l);
	if (!strcmp(what, "net"))
		return read_memory_line(l, s ? s->net_bytes : NULL, segment,
					-GRAPH_MOST_BYTES);
	if (!strcmp(what, "peak"))
		return read_memory_line(l, s ? s->peak_bytes : NULL, segment,
					-GRAPH_MOST_BYTES);
	if (!strcmp(what, "base"))
		return read_memory_line(
			l,
			l->class_open ? g->rank_class[g->n_classes - 1].base_bytes :
					NULL,
			l->class_open, 0);
	return read_top(l, what);
}

/* What only the whole can tell: that it fits the cluster's ranks, and runs. */
static bool check_whole(struct reading *l)
{
	const struct ft_graph *g = l->g;
	int64_t ranks = 0;

	l->line.n = 0;
	if (!g->n_classes)
		return graph_fail(&l->line, 0, "has no class");
	if (!l->tokens_line)
		return graph_fail(&l->line, 0, "lacks the line 'tokens NUMBER'");
	l->line.at.line = l->class_line;
	for (size_t i = 0; i < g->n_classes; i++) {
		ranks += g->rank_class[i].ranks;
		if (!g->rank_class[i].n_calls)
			return graph_fail(&l->line, 0,
					  "class %.60s calls nothing; write below it: "
					  "call SEGMENT xTIMES",
					  g->rank_class[i].name);
	}
	if (l->ranks && ranks != l->ranks)
		return graph_fail(
			&l->line, 0,
			"the classes together have %lld ranks, but the cluster has %lld; change ranks= or cluster.gpus",
			(long long)ranks, (long long)l->ranks);
	return true;
}

static bool read_all(struct reading *l, char *text, size_t len)
{
	if (memchr(text, '\0', len))
		return graph_fail(&l->line, 0, "is binary, not a step graph");
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		l->line.at.line++;
		if (!graph_split(&l->line, line))
			return false;
		if (!l->line.n)
			continue;
		if (l->line.at.line == 1 && strcmp(l->line.word[0].text, "graph"))
			return graph_fail(&l->line, 0,
					  "a step graph begins with 'graph 1'");
		if (!read_line(l) || !graph_all_used(&l->line))
			return false;
	}
	return check_whole(l);
}

struct ft_graph *ft_graph_read(const char *path, int64_t ranks, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct reading *l;
	size_t len;
	char *text;

	w->mem = mem;
	l = ARENA_NEW(&w->mem, struct reading);
	*l = (struct reading){ .mem = &w->mem, .g = &w->graph, .ranks = ranks };
	l->line.err = err;
	l->line.at.file = arena_text(&w->mem, path);
	for (int i = 0; i < FT_GROUPS; i++)
		w->graph.group[i] = (struct ft_group_shape){ 1, 1, true };
	text = file_read(&w->mem, path, LIMIT_GRAPH_BYTES, &len, err);
	if (text && read_all(l, text, len))
		return &w->graph;
	ft_graph_free(&w->graph);
	return NULL;
}
