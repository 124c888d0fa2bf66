/*
 * recorded/write.c - a replayed rank in Kineto's shape, so that what reads recordings
 * reads it
 *
 * Times count from the earliest. An operator stands where the first of its operations is
 * launched, and an annotation where the calls around it are: their own times were not
 * replayed. Bytes of names that are no ASCII become "?".
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "recorded/replay.h"

struct writer {
	FILE *out;
	const struct ft_replay *p;
	const struct rank *k;
	const struct ft_replayed *t;
	size_t rank;
	ft_ps origin;
	bool comma;
};

static void put_text(struct writer *w, const char *text)
{
	putc('"', w->out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			putc('\\', w->out);
		if (c >= 0x20)
			putc(c < 0x7f ? c : '?', w->out);
	}
	putc('"', w->out);
}

static void begin_named(struct writer *w, const char *category, const char *name)
{
	fputs(w->comma ? ",\n" : "", w->out);
	w->comma = true;
	fprintf(w->out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
	put_text(w, name);
}

static void begin_event(struct writer *w, const char *category, int32_t name)
{
	begin_named(w, category, ft_recording_text(w->k->r, name));
}

static void put_times(struct writer *w, ft_ps from, ft_ps to)
{
	from -= w->origin;
	to -= w->origin;
	fprintf(w->out,
		",\"ts\":%" PRId64 ".%06" PRId64 ",\"dur\":%" PRId64 ".%06" PRId64,
		from / 1000000, from % 1000000, (to - from) / 1000000,
		(to - from) % 1000000);
}

static void put_lane(struct writer *w, const struct table_rows *lanes, int16_t lane)
{
	const struct lane *l = table_at(lanes, (size_t)lane);

	fprintf(w->out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64, l->of, l->number);
}

/* Correlations are told anew where the recording had none. */
static int64_t correlation_of(const struct ft_rec_op *op)
{
	return op->correlation == FT_REC_NONE ? 0 : op->correlation;
}

static void put_calls(struct writer *w)
{
	const struct ft_recording *r = w->k->r;

	for (size_t i = 0; i < r->call.n; i++) {
		const struct ft_rec_call *c = call_of(r, i);

		begin_event(w, "cuda_runtime", c->name);
		put_times(w, w->t->call_begin[w->rank][i], w->t->call_end[w->rank][i]);
		put_lane(w, &r->thread, c->thread);
		fprintf(w->out, ",\"args\":{\"correlation\":%" PRId64, c->correlation);
		if (c->external_id != FT_REC_NONE)
			fprintf(w->out, ",\"External id\":%" PRId64, c->external_id);
		fputs("}}", w->out);
	}
}

/* Of a kernel that sends and receives several times at once arguments are a list. */
static bool is_list(const char *args)
{
	return args[0] == '[';
}

/* Arguments were kept as JSON: without their braces they follow others. */
static void put_args(struct writer *w, int32_t args)
{
	const char *text = ft_recording_text(w->k->r, args);
	size_t len = strlen(text);

	if (len > 2 && !is_list(text))
		fprintf(w->out, ",%.*s", (int)(len - 2), text + 1);
}

static void put_ops(struct writer *w)
{
	const struct ft_recording *r = w->k->r;

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);
		const struct lane *s = table_at(&r->stream, (size_t)op->stream);

		begin_event(w, op->is_copy ? "gpu_memcpy" : "kernel", op->name);
		put_times(w, w->t->op_begin[w->rank][i], w->t->op_end[w->rank][i]);
		put_lane(w, &r->stream, op->stream);
		fprintf(w->out,
			",\"args\":{\"device\":%" PRId64 ",\"stream\":%" PRId64
			",\"correlation\":%" PRId64,
			s->of, s->number, correlation_of(op));
		if (op->external_id != FT_REC_NONE)
			fprintf(w->out, ",\"External id\":%" PRId64, op->external_id);
		put_args(w, op->args);
		fputs("}}", w->out);
	}
}

/* What the profiler told of calls that wait. */
static void put_syncs(struct writer *w)
{
	const struct ft_recording *r = w->k->r;

	for (size_t i = 0; i < r->call.n; i++) {
		const struct ft_rec_call *c = call_of(r, i);
		const struct lane *s = c->stream == FT_REC_NONE ?
					       NULL :
					       table_at(&r->stream, (size_t)c->stream);

		if (!s && c->waits_for == FT_REC_NONE)
			continue;
		begin_event(w, "cuda_sync", c->name);
		put_times(w, w->t->call_begin[w->rank][i], w->t->call_end[w->rank][i]);
		put_lane(w, &r->thread, c->thread);
		fprintf(w->out, ",\"args\":{\"correlation\":%" PRId64, c->correlation);
		if (s)
			fprintf(w->out, ",\"stream\":%" PRId64, s->number);
		if (c->waits_for != FT_REC_NONE)
			fprintf(w->out,
				",\"wait_on_cuda_event_record_corr_id\":%" PRId64,
				call_of(r, (size_t)c->waits_for)->correlation);
		fputs("}}", w->out);
	}
}

/* What such a kernel sends and receives is told where it is asked for, as PyTorch does
 * (recorded/transfers.c): at its launch. */
static void put_transfers(struct writer *w, const struct ft_rec_op *op)
{
	const struct ft_recording *r = w->k->r;
	const char *text = ft_recording_text(r, op->args);
	bool told = is_list(text) && op->call != FT_REC_NONE;
	json_t *all = told ? json_loads(text, 0, NULL) : NULL;

	for (size_t i = 0; i < json_array_size(all); i++) {
		char *args = allocated(json_dumps(json_array_get(all, i),
						  JSON_COMPACT | JSON_ENSURE_ASCII));
		ft_ps when = w->t->call_begin[w->rank][op->call];

		begin_named(w, "cpu_op", "record_param_comms");
		put_times(w, when, when);
		put_lane(w, &r->thread, call_of(r, (size_t)op->call)->thread);
		fprintf(w->out, ",\"args\":%s}", args);
		free(args);
	}
	json_decref(all);
}

/* Once each, at the launch of the first of its operations in the file's order. */
static void put_operators(struct writer *w)
{
	const struct ft_recording *r = w->k->r;
	struct arena scratch = { 0 };
	bool *put = ARENA_ARRAY(&scratch, r->span.n, bool);

	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);
		const struct ft_rec_span *o = ft_recording_operator(r, op);
		size_t at = o ? span_number(r, o) : 0;
		ft_ps when;

		if (!o || put[at] || op->call == FT_REC_NONE)
			continue;
		put[at] = true;
		when = w->t->call_begin[w->rank][op->call];
		begin_event(w, "cpu_op", o->name);
		put_times(w, when, when);
		put_lane(w, &r->thread, o->thread);
		fprintf(w->out, ",\"args\":{\"External id\":%" PRId64, o->id);
		put_args(w, o->args);
		fputs("}}", w->out);
	}
	arena_release(&scratch);
}

static void put_annotations(struct writer *w)
{
	const struct ft_recording *r = w->k->r;

	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);
		ft_ps from = replay_mark(w->p, w->t, w->rank, a->start);
		ft_ps to = replay_mark(w->p, w->t, w->rank, a->start + a->duration);

		if (from < w->origin)
			continue; /* before anything that was replayed */
		begin_event(w, "user_annotation", a->name);
		put_times(w, from, to > from ? to : from);
		put_lane(w, &r->thread, a->thread);
		fputs(",\"args\":{}}", w->out);
	}
}

static void find_origin(struct writer *w)
{
	const struct ft_recording *r = w->k->r;

	w->origin = INT64_MAX;
	for (size_t i = 0; i < r->op.n; i++)
		if (w->t->op_begin[w->rank][i] < w->origin)
			w->origin = w->t->op_begin[w->rank][i];
	for (size_t i = 0; i < r->call.n; i++)
		if (w->t->call_begin[w->rank][i] < w->origin)
			w->origin = w->t->call_begin[w->rank][i];
	for (size_t s = 0; s < r->n_steps; s++) {
		ft_ps from = replay_mark(w->p, w->t, w->rank, r->step[s].begin);

		if (r->step[s].marked && from < w->origin)
			w->origin = from;
	}
}

void ft_replay_write(const struct ft_replay *p, const struct ft_replayed *t,
		     size_t rank, const char *device, FILE *out)
{
	struct writer w = {
		.out = out, .p = p, .k = &p->rank[rank], .t = t, .rank = rank
	};

	find_origin(&w);
	fputs("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"deviceProperties\":"
	      "[{\"id\":0,\"name\":",
	      out);
	put_text(&w, device);
	fprintf(out,
		"}],\"distributedInfo\":{\"rank\":%" PRId64 ",\"world_size\":%" PRId64
		"},\"traceEvents\":[\n",
		w.k->r->rank, w.k->r->world);
	put_calls(&w);
	put_ops(&w);
	put_syncs(&w);
	put_operators(&w);
	for (size_t i = 0; i < w.k->r->op.n; i++)
		put_transfers(&w, op_of(w.k->r, i));
	put_annotations(&w);
	fputs("\n]}\n", out);
}
