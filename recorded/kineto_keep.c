/* recorded/kineto_keep.c - what is kept of an event of Kineto's JSON */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "recorded/kineto.h"

static const int64_t longest_us = (int64_t)LIMIT_TRACE_SECONDS * 1000000;

int reader_stop(struct reader *k, const char *why)
{
	snprintf(k->why, sizeof(k->why), "%s", why);
	return 0;
}

/* ---- a kept argument, as JSON again ------------------------------------------------ */

void args_put(struct reader *k, const char *text, size_t len)
{
	/* beyond the bound: too long to be of use; told by its length when it ends */
	if (k->e.args_len + len <= sizeof(k->args))
		memcpy(k->args + k->e.args_len, text, len);
	k->e.args_len += len;
}

void args_put_quoted(struct reader *k, const char *text, size_t len)
{
	args_put(k, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			args_put(k, "\\", 1);
		if ((unsigned char)text[i] >= 0x20)
			args_put(k, &text[i], 1);
	}
	args_put(k, "\"", 1);
}

void args_put_comma(struct reader *k)
{
	if (k->comma)
		args_put(k, ",", 1);
	k->comma = true;
}

bool args_keeping(const struct reader *k)
{
	return k->in_args && k->key == K_KEPT;
}

/* ---- an event ----------------------------------------------------------------------- */

static int32_t args_of(struct reader *k)
{
	if (!k->e.args_len || k->e.args_len + 1 > sizeof(k->args))
		return FT_REC_NONE;
	args_put(k, "}", 1);
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

/* Old profilers mark steps among operators. */
static bool marks_step(const struct reader *k)
{
	static const char begin[] = "ProfilerStep#";

	return k->e.name_len >= strlen(begin) && !memcmp(k->name, begin, strlen(begin));
}

static int keep_as(struct reader *k, ft_ps start, ft_ps duration)
{
	switch (k->e.category) {
	case C_KERNEL:
	case C_MEMCPY:
		return keep_op(k, start, duration);
	case C_RUNTIME:
		return keep_call(k, start, duration);
	case C_OPERATOR:
		return keep_span(k, marks_step(k) ? &k->r->annotation : &k->r->span,
				 start, duration);
	case C_ANNOTATION:
		return keep_span(k, &k->r->annotation, start, duration);
	case C_SYNC:
		return keep_sync(k);
	default:
		return 1;
	}
}

static int keep(struct reader *k)
{
	const struct event *e = &k->e;
	ft_ps start, duration;

	if (!e->ts.given)
		return reader_stop(k, "an event has no 'ts'");
	if (!e->dur.given && e->category != C_SYNC)
		return reader_stop(k, "an event has no 'dur' that is a number");
	if (!k->based)
		k->base_us = e->ts.us;
	k->based = true;
	if (e->ts.us - k->base_us > longest_us || k->base_us - e->ts.us > longest_us ||
	    e->dur.us > longest_us)
		return reader_stop(k, "an event " TOO_FAR);
	if (k->r->counts.kept == LIMIT_TRACE_EVENTS)
		return reader_stop(k, "holds too many events");
	k->r->counts.kept++;
	k->r->counts.negative += e->negative;
	start = (e->ts.us - k->base_us) * 1000000 + e->ts.ps;
	duration = e->negative ? 0 : e->dur.us * 1000000 + e->dur.ps;
	if (!keep_as(k, start, duration))
		return 0;
	return lanes_fit(k->r) || reader_stop(k, "has too many streams or threads");
}

int event_end(struct reader *k)
{
	if (!k->e.phase && !k->e.name_len && !k->e.ts.given)
		return 1; /* {}: the last of a list that ends in a comma */
	k->r->counts.events++;
	if (!strchr("XiIMsftBEbenCNODP", k->e.phase) || !k->e.phase)
		k->r->counts.unknown_phases++;
	if (k->e.phase == 'M')
		return xla_named(k);
	if (k->e.phase == 'X' && k->e.category == C_NONE)
		k->e.category = xla_category(k);
	return k->e.phase == 'X' && k->e.category != C_NONE ? keep(k) : 1;
}
