/*
 * recorded/chakra_write.c - a recorded rank as a Chakra execution trace
 *
 * Nodes stand in the order in which they began. A call depends on the calls before it,
 * an operation on its launch, the operation before it on its stream, and what it waited
 * for; a synchronisation on the operations it waits for. A call that waits for the copy
 * that it launches itself does not say so: that would be a circle.
 */
#include <stdlib.h>

#include "chakra.pb-c.h"
#include "recorded/chakra.h"
#include "recorded/replay.h"

enum { ATTRIBUTES = 16 };

struct writer {
	const struct rank *k;
	FILE *out;
	struct arena mem; /* of one node; */
	uint64_t **dep;	  /* [node] depends on, and how many */
	size_t *n_dep, *cap;
	Chakra__Attribute attribute[ATTRIBUTES], *list[ATTRIBUTES];
	size_t n;
};

int chakra_comm_type(enum ft_collective op)
{
	static const int types[FT_COLLECTIVES] = {
		[FT_ALL_REDUCE] = 0, [FT_ALL_GATHER] = 2,     [FT_BROADCAST] = 5,
		[FT_ALL_TO_ALL] = 6, [FT_REDUCE_SCATTER] = 7, [FT_SENDRECV] = -1,
	};

	return op == FT_COLLECTIVES ? -1 : types[op];
}

/* ---- messages ------------------------------------------------------------------------ */

static void put_sized(FILE *out, const ProtobufCMessage *message, struct arena *mem)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = ARENA_ARRAY(mem, n + 1, uint8_t);

	protobuf_c_message_pack(message, bytes);
	for (size_t left = n;; left >>= 7) {
		putc((int)(left & 0x7f) | (left > 0x7f ? 0x80 : 0), out);
		if (left <= 0x7f)
			break;
	}
	fwrite(bytes, 1, n, out);
}

static Chakra__Attribute *attribute(struct writer *w, const char *name)
{
	Chakra__Attribute *a = &w->attribute[w->n];

	chakra__attribute__init(a);
	a->name = (char *)name;
	w->list[w->n++] = a;
	return a;
}

static void put_number(struct writer *w, const char *name, int64_t value)
{
	Chakra__Attribute *a = attribute(w, name);

	a->value_case = CHAKRA__ATTRIBUTE__VALUE_INT64_VAL;
	a->int64_val = value;
}

static void put_flag(struct writer *w, const char *name, bool value)
{
	Chakra__Attribute *a = attribute(w, name);

	a->value_case = CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL;
	a->bool_val = value;
}

static void put_words(struct writer *w, const char *name, const char *value)
{
	Chakra__Attribute *a = attribute(w, name);

	a->value_case = CHAKRA__ATTRIBUTE__VALUE_STRING_VAL;
	a->string_val = (char *)value;
}

/* ---- nodes ------------------------------------------------------------------------------ */

static uint64_t node_of(const struct rank *k, uint32_t event)
{
	return (event - k->first_call) / 2;
}

static void depend(struct writer *w, uint64_t node, uint64_t on)
{
	uint64_t *grown;

	for (size_t i = 0; i < w->n_dep[node]; i++)
		if (w->dep[node][i] == on)
			return;
	if (w->n_dep[node] == w->cap[node]) {
		w->cap[node] = w->cap[node] ? 2 * w->cap[node] : 4;
		grown = ARENA_ARRAY(&w->mem, w->cap[node], uint64_t);
		for (size_t i = 0; i < w->n_dep[node]; i++)
			grown[i] = w->dep[node][i];
		w->dep[node] = grown;
	}
	w->dep[node][w->n_dep[node]++] = on;
}

/* Edges within this rank, but those by which a call waits for its own copy. */
static void collect(struct writer *w, const struct ft_replay *p)
{
	const struct ft_recording *r = w->k->r;
	uint32_t first = w->k->first_call;
	uint32_t end = first + 2 * (uint32_t)(r->call.n + r->op.n);

	for (size_t i = 0; i < p->edge.n; i++) {
		const struct edge *e = table_at(&p->edge, i);
		uint64_t from, to;

		if (e->from < first || e->from >= end || e->to < first || e->to >= end)
			continue;
		from = node_of(w->k, e->from);
		to = node_of(w->k, e->to);
		if (from == to)
			continue;
		if (to < r->call.n && from >= r->call.n &&
		    op_of(r, from - r->call.n)->call == (int32_t)to)
			continue;
		depend(w, to, from);
	}
}

static void put_node(struct writer *w, uint64_t node, const char *name, int type,
		     ft_ps start, ft_ps duration)
{
	Chakra__Node n = CHAKRA__NODE__INIT;
	struct arena scratch = { 0 };

	put_number(w, "foretoken.start_ps", start);
	put_number(w, "foretoken.duration_ps", duration);
	n.id = node;
	n.name = (char *)name;
	n.type = type;
	n.n_data_deps = w->n_dep[node];
	n.data_deps = w->dep[node];
	n.start_time_micros = start > 0 ? (uint64_t)start / 1000000 : 0;
	n.duration_micros = ((uint64_t)duration + 500000) / 1000000;
	n.n_attr = w->n;
	n.attr = w->list;
	put_sized(w->out, &n.base, &scratch);
	arena_release(&scratch);
	w->n = 0;
}

/* What the profiler told of a call that waits. */
static void put_told(struct writer *w, const struct ft_rec_call *c)
{
	const struct ft_recording *r = w->k->r;

	if (c->stream != FT_REC_NONE)
		put_number(w, "foretoken.stream",
			   ((struct lane *)table_at(&r->stream, (size_t)c->stream))
				   ->number);
	if (c->waits_for != FT_REC_NONE)
		put_number(w, "foretoken.record",
			   call_of(r, (size_t)c->waits_for)->correlation);
}

static void put_call(struct writer *w, size_t i)
{
	const struct ft_recording *r = w->k->r;
	const struct ft_rec_call *c = call_of(r, i);
	const struct lane *thread = table_at(&r->thread, (size_t)c->thread);

	put_flag(w, "is_cpu_op", true);
	put_number(w, "tid", thread->number);
	put_number(w, "foretoken.pid", thread->of);
	put_number(w, "foretoken.correlation", c->correlation);
	put_number(w, "foretoken.external_id", c->external_id);
	put_number(w, "foretoken.call", c->kind);
	put_told(w, c);
	put_node(w, i, ft_recording_text(r, c->name), CHAKRA_COMPUTE, c->start,
		 c->duration);
}

/* A collective; or one send or receive whose other end is told, but not a kernel that does several. */
static int type_of(const struct ft_rec_collective *c)
{
	if (c && chakra_comm_type(c->op) >= 0)
		return CHAKRA_COLLECTIVE;
	if (c && c->op == FT_SENDRECV && c->peer != FT_REC_NONE && !c->also)
		return c->sends ? CHAKRA_SEND : CHAKRA_RECEIVE;
	return CHAKRA_COMPUTE;
}

/* What meets has one tag on both sides. */
static void put_transfer(struct writer *w, const struct ft_rec_collective *c, size_t op)
{
	int64_t rank = w->k->r->rank;
	int32_t meeting = w->k->meeting[op];

	put_number(w, c->sends ? "comm_dst" : "comm_src", c->peer);
	if (rank != FT_REC_NONE)
		put_number(w, c->sends ? "comm_src" : "comm_dst", rank);
	if (meeting != FT_REC_NONE)
		put_number(w, "comm_tag", meeting);
}

static void put_communication(struct writer *w, const struct ft_rec_collective *c,
			      size_t op)
{
	if (type_of(c) == CHAKRA_COLLECTIVE)
		put_number(w, "comm_type", chakra_comm_type(c->op));
	else
		put_transfer(w, c, op);
	put_number(w, "comm_size", (int64_t)c->bytes);
	put_words(w, "pg_name", c->group);
}

static void put_op(struct writer *w, size_t i)
{
	const struct ft_recording *r = w->k->r;
	const struct ft_rec_op *op = op_of(r, i);
	const struct lane *stream = table_at(&r->stream, (size_t)op->stream);
	const struct ft_rec_collective *c = ft_recording_collective(r, op);
	const struct ft_rec_span *o = ft_recording_operator(r, op);
	int type = type_of(c);

	put_flag(w, "is_cpu_op", false);
	put_number(w, "stream", stream->number);
	put_number(w, "foretoken.device", stream->of);
	put_number(w, "foretoken.correlation", op->correlation);
	put_number(w, "foretoken.external_id", op->external_id);
	put_flag(w, "foretoken.is_copy", op->is_copy);
	if (type != CHAKRA_COMPUTE)
		put_communication(w, c, i);
	if (op->args != FT_REC_NONE)
		put_words(w, "foretoken.args", ft_recording_text(r, op->args));
	if (o)
		put_words(w, "foretoken.operator", ft_recording_text(r, o->name));
	if (o && o->args != FT_REC_NONE)
		put_words(w, "foretoken.operator_args", ft_recording_text(r, o->args));
	put_node(w, r->call.n + i, ft_recording_text(r, op->name), type, op->start,
		 op->duration);
}

/* Calls and operations by their begin, calls first. */
static void put_nodes(struct writer *w)
{
	const struct ft_recording *r = w->k->r;
	size_t c = 0, o = 0;

	while (c < r->call.n || o < r->op.n) {
		bool call = c < r->call.n &&
			    (o == r->op.n || call_of(r, r->call_order[c])->start <=
						     op_of(r, r->op_order[o])->start);

		if (call)
			put_call(w, r->call_order[c++]);
		else
			put_op(w, r->op_order[o++]);
	}
}

/* Steps and what the host was about are no nodes, which others would run. */
static Chakra__Attribute *annotation(struct writer *w, const struct ft_rec_span *s)
{
	const struct lane *thread = table_at(&w->k->r->thread, (size_t)s->thread);
	Chakra__Attribute *a = ARENA_NEW(&w->mem, Chakra__Attribute);

	chakra__attribute__init(a);
	a->name = (char *)CHAKRA_ANNOTATION;
	a->value_case = CHAKRA__ATTRIBUTE__VALUE_STRING_VAL;
	a->string_val = arena_printf(&w->mem, "%lld %lld %lld %lld %s",
				     (long long)s->start, (long long)s->duration,
				     (long long)thread->of, (long long)thread->number,
				     ft_recording_text(w->k->r, s->name));
	return a;
}

static void put_metadata(struct writer *w)
{
	const struct table_rows *spans = &w->k->r->annotation;
	Chakra__Metadata m = CHAKRA__METADATA__INIT;

	m.version = (char *)"0.0.4";
	put_number(w, "foretoken.rank", w->k->r->rank);
	put_number(w, "foretoken.world", w->k->r->world);
	put_number(w, "foretoken.origin_us", w->k->r->origin_us);
	put_words(w, "foretoken.device", w->k->r->device);
	m.attr = ARENA_ARRAY(&w->mem, w->n + spans->n, Chakra__Attribute *);
	for (size_t i = 0; i < w->n; i++)
		m.attr[m.n_attr++] = w->list[i];
	for (size_t i = 0; i < spans->n; i++)
		m.attr[m.n_attr++] = annotation(w, table_at(spans, i));
	put_sized(w->out, &m.base, &w->mem);
	w->n = 0;
}

void ft_replay_write_chakra(const struct ft_replay *p, size_t rank, FILE *out)
{
	struct writer w = { .k = &p->rank[rank], .out = out };
	size_t n = w.k->r->call.n + w.k->r->op.n;

	w.dep = ARENA_ARRAY(&w.mem, n, uint64_t *);
	w.n_dep = ARENA_ARRAY(&w.mem, n, size_t);
	w.cap = ARENA_ARRAY(&w.mem, n, size_t);
	collect(&w, p);
	put_metadata(&w);
	put_nodes(&w);
	arena_release(&w.mem);
}
