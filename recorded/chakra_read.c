/*
 * recorded/chakra_read.c - a Chakra execution trace as a recording
 *
 * Nodes of the host (is_cpu_op) whose names are calls of a runtime become calls, others
 * operators; all other nodes become operations, on the stream that they name. What was
 * launched by which call is told by our own attributes, else by the first call among a
 * node's dependencies. Traces without times (written to be simulated, not recorded) are
 * refused: their compute nodes hold nothing to replay. Memory nodes and metadata are
 * read over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/whole.h"
#include "chakra.pb-c.h"
#include "recorded/chakra.h"
#include "recorded/input.h"

enum { MESSAGE_BYTES = 1 << 24, BUFFER = 1 << 16 };

#define NONE INT64_MIN /* no origin is told */

/* An operation of others', and what it depends on: its launch is among that. */
struct launched {
	uint32_t op;
	size_t n;
	int64_t *on;
};

struct reader {
	struct ft_recording *r;
	struct arena *mem;
	struct launched *launched;
	size_t n_launched, cap;
	struct input *in;
	const char *path;
	uint8_t buffer[BUFFER], *message;
	size_t at, n;
	int64_t number, base_us;
	bool based;
};

static bool fail(const struct reader *k, struct ft_error *err, const char *why)
{
	return ft_fail(err, &(struct ft_mark){ .file = k->path }, "node %lld: %s",
		       (long long)k->number, why);
}

/* ---- bytes ------------------------------------------------------------------------- */

static bool next_byte(struct reader *k, int *byte, struct ft_error *err)
{
	if (k->at == k->n) {
		k->at = 0;
		if (!input_read(k->in, k->buffer, BUFFER, &k->n, err))
			return false;
	}
	*byte = k->n ? k->buffer[k->at++] : -1;
	return true;
}

/* The length of the next message; *len 0 and *end at the end of the file. */
static bool next_length(struct reader *k, size_t *len, bool *end, struct ft_error *err)
{
	int byte;

	*len = 0;
	*end = false;
	for (int shift = 0;; shift += 7) {
		if (!next_byte(k, &byte, err))
			return false;
		if (byte < 0 && !shift) {
			*end = true;
			return true;
		}
		if (byte < 0)
			return fail(k, err, "the file ends in the middle of it");
		*len |= (size_t)(byte & 0x7f) << shift;
		if (*len > MESSAGE_BYTES || shift > 21)
			return fail(
				k, err,
				"its length is not one: this is not a Chakra trace, or it is damaged");
		if (!(byte & 0x80))
			return true;
	}
}

static bool next_message(struct reader *k, size_t *len, bool *end, struct ft_error *err)
{
	if (!next_length(k, len, end, err))
		return false;
	for (size_t i = 0; !*end && i < *len; i++) {
		int byte;

		if (!next_byte(k, &byte, err))
			return false;
		if (byte < 0)
			return fail(k, err, "the file ends in the middle of it");
		k->message[i] = (uint8_t)byte;
	}
	return true;
}

/* ---- attributes ----------------------------------------------------------------------- */

static const Chakra__Attribute *named(Chakra__Attribute *const *list, size_t n,
				      const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->name && !strcmp(list[i]->name, name))
			return list[i];
	return NULL;
}

static int64_t whole(const Chakra__Attribute *a, int64_t missing)
{
	if (!a)
		return missing;
	switch (a->value_case) {
	case CHAKRA__ATTRIBUTE__VALUE_INT64_VAL:
		return a->int64_val;
	case CHAKRA__ATTRIBUTE__VALUE_INT32_VAL:
		return a->int32_val;
	case CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL:
		return a->uint64_val <= INT64_MAX ? (int64_t)a->uint64_val : INT64_MAX;
	case CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL:
		return a->uint32_val;
	case CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL:
		return a->bool_val;
	default:
		return missing;
	}
}

static const char *words(const Chakra__Attribute *a)
{
	return a && a->value_case == CHAKRA__ATTRIBUTE__VALUE_STRING_VAL ?
		       a->string_val :
		       NULL;
}

static int64_t number_of(const Chakra__Node *n, const char *name, int64_t missing)
{
	return whole(named(n->attr, n->n_attr, name), missing);
}

static const char *words_of(const Chakra__Node *n, const char *name)
{
	return words(named(n->attr, n->n_attr, name));
}

static int32_t text_of(struct reader *k, const char *text)
{
	size_t len = text ? strnlen(text, LIMIT_TRACE_TEXT_BYTES) : 0;

	return text_number(k->r, text ? text : "", len);
}

/* ---- nodes ------------------------------------------------------------------------------- */

/* In picoseconds from the first. */
static bool lies_near(int64_t start, int64_t duration)
{
	const int64_t most = LIMIT_TRACE_SECONDS * INT64_C(1000000000000);

	return start > -most && start < most && duration >= 0 && duration < most;
}

/* A node's times in picoseconds from the first node's. Our own traces have them exactly,
 * others in whole microseconds. false: too far from the first, or too long. */
static bool times(struct reader *k, const Chakra__Node *n, ft_ps *start,
		  ft_ps *duration)
{
	const int64_t most_us = (int64_t)LIMIT_TRACE_SECONDS * 1000000;
	int64_t us = n->start_time_micros <= INT64_MAX / 2 ?
			     (int64_t)n->start_time_micros :
			     INT64_MAX / 2;

	if (!k->based)
		k->base_us = us;
	k->based = true;
	if (us - k->base_us > most_us || k->base_us - us > most_us ||
	    n->duration_micros > (uint64_t)most_us)
		return false;
	*start = number_of(n, "foretoken.start_ps", (us - k->base_us) * 1000000);
	*duration = number_of(n, "foretoken.duration_ps",
			      (int64_t)n->duration_micros * 1000000);
	return lies_near(*start, *duration);
}

/* What the profiler told of a call that waits. */
static void take_told(struct reader *k, const Chakra__Node *n)
{
	struct told_sync told = {
		number_of(n, "foretoken.correlation", FT_REC_NONE),
		number_of(n, "foretoken.stream", FT_REC_NONE),
		number_of(n, "foretoken.record", FT_REC_NONE),
	};

	if (told.stream != FT_REC_NONE || told.record != FT_REC_NONE)
		*(struct told_sync *)table_add(&k->r->mem, &k->r->sync) = told;
}

static void take_call(struct reader *k, const Chakra__Node *n, int64_t kind,
		      ft_ps start, ft_ps duration)
{
	struct ft_rec_call *c = table_add(&k->r->mem, &k->r->call);

	*c = (struct ft_rec_call){
		.start = start,
		.duration = duration,
		.correlation = number_of(n, "foretoken.correlation", (int64_t)n->id),
		.external_id = number_of(n, "foretoken.external_id", FT_REC_NONE),
		.name = text_of(k, n->name),
		.waits_for = FT_REC_NONE,
		.thread = lane_number(k->r, &k->r->thread,
				      number_of(n, "foretoken.pid", 0),
				      number_of(n, "tid", 0)),
		.stream = FT_REC_NONE,
		.kind = (uint8_t)kind,
	};
	take_told(k, n);
}

static void take_operator(struct reader *k, int64_t id, const char *name,
			  const char *args, ft_ps start, ft_ps duration)
{
	struct ft_rec_span *s = table_add(&k->r->mem, &k->r->span);

	*s = (struct ft_rec_span){ .start = start,
				   .duration = duration,
				   .id = id,
				   .name = text_of(k, name),
				   .args = args ? text_of(k, args) : FT_REC_NONE,
				   .thread = lane_number(k->r, &k->r->thread, 0, 0) };
}

static const char *name_of(const Chakra__Node *n)
{
	static const char *const names[FT_SENDRECV] = {
		"allreduce", "allgather", "reduce_scatter", "all_to_all", "broadcast",
	};
	int64_t type = number_of(n, "comm_type", -1);

	if (n->type == CHAKRA_SEND || n->type == CHAKRA_RECEIVE)
		return n->type == CHAKRA_SEND ? "send" : "recv";
	for (int op = 0; op < FT_SENDRECV; op++)
		if (chakra_comm_type((enum ft_collective)op) == type && type >= 0)
			return names[op];
	return NULL;
}

/* Chakra's own words of a collective, as the profiler's arguments. */
static const char *args_of(struct reader *k, const Chakra__Node *n, char *to,
			   size_t room)
{
	const char *ours = words_of(n, "foretoken.args"), *name;
	bool sends = n->type == CHAKRA_SEND;

	if (ours || n->type < CHAKRA_SEND)
		return ours;
	name = name_of(n);
	if (name)
		snprintf(to, room,
			 "{\"Collective name\":\"%s\",\"In msg nelems\":%lld,"
			 "\"dtype\":\"Byte\",\"Group size\":%lld,\"%s Rank\":%lld}",
			 name, (long long)number_of(n, "comm_size", 0),
			 (long long)k->r->world, sends ? "Dst" : "Src",
			 (long long)number_of(n, sends ? "comm_dst" : "comm_src", -1));
	return name ? to : NULL;
}

/* Of the operation that is taken. */
static void keep_dependencies(struct reader *k, const Chakra__Node *n)
{
	struct launched *l;

	if (k->n_launched == k->cap)
		k->launched = ARENA_GROW(k->mem, k->launched, &k->cap);
	l = &k->launched[k->n_launched++];
	*l = (struct launched){ (uint32_t)k->r->op.n - 1, 0,
				ARENA_ARRAY(k->mem, n->n_data_deps + n->n_ctrl_deps + 1,
					    int64_t) };
	for (size_t i = 0; i < n->n_data_deps; i++)
		l->on[l->n++] = (int64_t)n->data_deps[i];
	for (size_t i = 0; i < n->n_ctrl_deps; i++)
		l->on[l->n++] = (int64_t)n->ctrl_deps[i];
}

/* By the first launch that each depends on; where there is none, the first of all. */
static void find_launches(struct reader *k)
{
	int64_t *call = ARENA_ARRAY(k->mem, k->r->call.n + 1, int64_t);
	size_t n = 0;

	for (size_t i = 0; i < k->r->call.n; i++)
		if (call_of(k->r, i)->kind == FT_REC_LAUNCH)
			call[n++] = call_of(k->r, i)->correlation;
	qsort(call, n, sizeof(*call), by_whole);
	for (size_t i = 0; i < k->n_launched; i++) {
		const struct launched *l = &k->launched[i];
		struct ft_rec_op *op = op_of(k->r, l->op);
		size_t at = 0;

		while (at < l->n &&
		       !bsearch(&l->on[at], call, n, sizeof(*call), by_whole))
			at++;
		if (l->n)
			op->correlation = op->external_id = l->on[at < l->n ? at : 0];
	}
}

static void take_op(struct reader *k, const Chakra__Node *n, ft_ps start,
		    ft_ps duration)
{
	struct ft_rec_op *op = table_add(&k->r->mem, &k->r->op);
	const char *operator= words_of(n, "foretoken.operator");
	char room[256];
	const char *args = args_of(k, n, room, sizeof(room));

	*op = (struct ft_rec_op){
		.start = start,
		.duration = duration,
		.correlation = number_of(n, "foretoken.correlation", FT_REC_NONE),
		.external_id = number_of(n, "foretoken.external_id", FT_REC_NONE),
		.name = text_of(k, n->name),
		.args = args ? text_of(k, args) : FT_REC_NONE,
		.call = FT_REC_NONE,
		.work = FT_REC_NONE,
		.stream = lane_number(k->r, &k->r->stream,
				      number_of(n, "foretoken.device", 0),
				      number_of(n, "stream", n->type)),
		.is_copy = number_of(n, "foretoken.is_copy", 0) != 0,
		.rec_class = n->type >= CHAKRA_SEND ? FT_REC_COLLECTIVE : FT_REC_OTHER,
	};
	if (!named(n->attr, n->n_attr, "foretoken.correlation"))
		keep_dependencies(k, n);
	if (operator)
		take_operator(k, op->external_id, operator,
			      words_of(n, "foretoken.operator_args"), start, 0);
}

static bool take(struct reader *k, const Chakra__Node *n, struct ft_error *err)
{
	int64_t kind = number_of(n, "foretoken.call", FT_REC_CALL_KINDS);
	ft_ps start, duration;

	k->r->counts.events++;
	if (n->type < CHAKRA_COMPUTE || n->type > CHAKRA_COLLECTIVE)
		return true;
	if (!times(k, n, &start, &duration))
		return fail(k, err, TOO_FAR);
	if (++k->r->counts.kept > LIMIT_TRACE_EVENTS)
		return fail(k, err, "there are too many nodes");
	if (kind < 0 || kind >= FT_REC_CALL_KINDS)
		kind = n->name ? call_kind(n->name, strlen(n->name)) :
				 FT_REC_CALL_KINDS;
	if (!number_of(n, "is_cpu_op", 0))
		take_op(k, n, start, duration);
	else if (kind < FT_REC_CALL_KINDS)
		take_call(k, n, kind, start, duration);
	else
		take_operator(k, (int64_t)n->id, n->name, NULL, start, duration);
	return lanes_fit(k->r) || fail(k, err, "there are too many streams or threads");
}

/* ---- the file ------------------------------------------------------------------------------ */

static bool take_annotation(struct reader *k, const char *told, struct ft_error *err)
{
	long long start, duration, process, thread;
	struct ft_rec_span *s;
	int name = 0;

	if (!told ||
	    sscanf(told, "%lld %lld %lld %lld %n", &start, &duration, &process, &thread,
		   &name) != 4 ||
	    !lies_near(start, duration))
		return fail(k, err, "one of its annotations cannot be read");
	if (++k->r->counts.kept > LIMIT_TRACE_EVENTS)
		return fail(k, err, "there are too many annotations");
	s = table_add(&k->r->mem, &k->r->annotation);
	*s = (struct ft_rec_span){ .start = start,
				   .duration = duration,
				   .id = FT_REC_NONE,
				   .name = text_of(k, told + name),
				   .args = FT_REC_NONE,
				   .thread = lane_number(k->r, &k->r->thread, process,
							 thread) };
	return lanes_fit(k->r) || fail(k, err, "there are too many threads");
}

static bool take_annotations(struct reader *k, const Chakra__Metadata *m,
			     struct ft_error *err)
{
	for (size_t i = 0; i < m->n_attr; i++)
		if (m->attr[i]->name && !strcmp(m->attr[i]->name, CHAKRA_ANNOTATION) &&
		    !take_annotation(k, words(m->attr[i]), err))
			return false;
	return true;
}

static bool read_metadata(struct reader *k, struct ft_error *err)
{
	Chakra__Metadata *m;
	const char *device;
	size_t len;
	bool end, ok;

	if (!next_message(k, &len, &end, err))
		return false;
	m = end ? NULL : chakra__metadata__unpack(NULL, len, k->message);
	if (!m)
		return fail(k, err, "its metadata cannot be read");
	k->r->rank = whole(named(m->attr, m->n_attr, "foretoken.rank"), FT_REC_NONE);
	k->r->world = whole(named(m->attr, m->n_attr, "foretoken.world"), FT_REC_NONE);
	k->r->origin_us = whole(named(m->attr, m->n_attr, "foretoken.origin_us"), NONE);
	device = words(named(m->attr, m->n_attr, "foretoken.device"));
	k->r->device = arena_text(&k->r->mem, device ? device : "");
	ok = take_annotations(k, m, err);
	chakra__metadata__free_unpacked(m, NULL);
	return ok;
}

static bool read_nodes(struct reader *k, struct ft_error *err)
{
	for (;;) {
		Chakra__Node *n;
		size_t len;
		bool end, ok;

		k->number++;
		if (!next_message(k, &len, &end, err))
			return false;
		if (end)
			return true;
		n = chakra__node__unpack(NULL, len, k->message);
		if (!n)
			return fail(k, err, "it is damaged");
		ok = take(k, n, err);
		chakra__node__free_unpacked(n, NULL);
		if (!ok)
			return false;
	}
}

/* A trace that was written to be simulated has work, and no times. */
static bool has_times(const struct reader *k, struct ft_error *err)
{
	for (size_t i = 0; i < k->r->op.n; i++)
		if (op_of(k->r, i)->duration > 0)
			return true;
	return !k->r->op.n ||
	       ft_fail(err, &(struct ft_mark){ .file = k->path },
		       "its nodes have no times: it was not recorded, so there is nothing "
		       "to replay");
}

bool chakra_read(struct ft_recording *r, const char *path, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct reader *k = ARENA_NEW(&mem, struct reader);
	bool ok;

	k->r = r;
	k->mem = &mem;
	k->path = path;
	k->message = ARENA_ARRAY(&mem, MESSAGE_BYTES + 1, uint8_t);
	k->in = input_open(&mem, path, err);
	ok = k->in && read_metadata(k, err) && read_nodes(k, err) && has_times(k, err);
	find_launches(k);
	if (r->origin_us == NONE)
		r->origin_us = k->base_us; /* from which others' times count */
	input_close(k->in);
	arena_release(&mem);
	return ok;
}
