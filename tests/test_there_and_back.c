/*
 * tests/test_there_and_back.c - drawn recordings, their events in any order: replayed with nothing changed each takes
 * the recorded time; written as Kineto's JSON and as Chakra's traces and read again, each operation, call, annotation
 * and step is there, with all that was told of it
 */
#include "recorded/recording.h"
#include "tests/check.h"
#include "tests/made_recording.h"

enum { DRAWS = 80, EVENTS = 28, STREAMS = 3, NAME = 64 };

static uint64_t seed = 127;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const int streams[STREAMS] = { 7, 20, 21 };

struct drawn {
	FILE *out;
	int64_t at_ns, free_ns[STREAMS]; /* of the host; of each stream */
	int thread, records[EVENTS], n_records;
	bool used[STREAMS];
};

/* ---- what is drawn, as it is written ------------------------------------------------------- */

/* Of a host's thread, or of a stream of GPU 0. */
static void put_event(struct drawn *d, const char *category, const char *name, int tid,
		      int64_t at_ns, int64_t ns)
{
	bool of_host = !strncmp(category, "cpu", 3) ||
		       !strcmp(category, "cuda_runtime") ||
		       !strcmp(category, "user_annotation");

	fprintf(d->out,
		"{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
		"\"ts\":%lld.%03lld,\"dur\":%lld.%03lld,\"args\":{",
		category, name, of_host, tid, (long long)at_ns / 1000,
		(long long)at_ns % 1000, (long long)ns / 1000, (long long)ns % 1000);
}

static int64_t some_ns(int most_us)
{
	return 1 + rnd_below(&seed, 1000 * most_us);
}

static void put_collective(struct drawn *d, bool transfer)
{
	static const char *const names[] = { "allreduce", "_allgather_base",
					     "broadcast" };
	static const char *const peers[] = { "send", "recv" };
	static const char *const types[] = { "Float", "BFloat16" };
	bool sends = rnd_below(&seed, 2);

	fprintf(d->out,
		"\"Collective name\":\"%s\",\"In msg nelems\":%d,\"Out msg nelems\":%d,"
		"\"Group size\":%d,\"dtype\":\"%s\",\"Process Group Name\":\"%d\","
		"\"Process Group Ranks\":\"[0, %d]\"",
		transfer ? peers[sends] : PICK(names), rnd_below(&seed, 900),
		rnd_below(&seed, 900), 2 + rnd_below(&seed, 3), PICK(types),
		rnd_below(&seed, 4), 1 + rnd_below(&seed, 3));
	if (transfer)
		fprintf(d->out, ",\"%s Rank\":%d", sends ? "Src" : "Dst",
			rnd_below(&seed, 4));
}

/* Some of whose work is told by their shapes. */
static void put_operator(struct drawn *d, int id)
{
	static const char *const names[] = { "aten::mm", "aten::silu", "somebody::s" };

	put_event(d, "cpu_op", PICK(names), d->thread, d->at_ns, some_ns(1));
	fprintf(d->out, "\"External id\":%d", id);
	if (rnd_below(&seed, 4))
		fprintf(d->out,
			",\"Input Dims\":[[%d,8],[8,4]],\"Input Strides\":[[8,1],[4,1]],"
			"\"Input type\":[\"c10::BFloat16\",\"c10::BFloat16\"]",
			1 + rnd_below(&seed, 9));
	fputs("}},\n", d->out);
}

static void put_asked(struct drawn *d, int id)
{
	int n = rnd_below(&seed, 4);

	for (int i = 0; i < n; i++) {
		put_event(d, "cpu_op", "record_param_comms", d->thread, d->at_ns + i,
			  0);
		fprintf(d->out, "\"External id\":%d,", id + i);
		put_collective(d, true);
		fputs("}},\n", d->out);
	}
	d->at_ns += 10;
}

static void put_call(struct drawn *d, const char *name, int i, int64_t ns)
{
	put_event(d, "cuda_runtime", name, d->thread, d->at_ns, ns);
	fprintf(d->out, "\"correlation\":%d", i);
	if (!rnd_below(&seed, 3))
		fprintf(d->out, ",\"External id\":%d", 900 + i);
	fputs("}},\n", d->out);
}

static void put_launch(struct drawn *d, int i)
{
	static const char *const kernels[] = { "some_gemm", "k\\\"quoted\\\"",
					       "b\\\\<c, d>(e)", "adam_update" };
	enum { KERNEL, COPY, COLLECTIVE, SILENT } kind = rnd_below(&seed, 4);
	bool by_operator = kind < COLLECTIVE && rnd_below(&seed, 2);
	int s = rnd_below(&seed, STREAMS), id = 100 + 10 * i;
	int64_t ns = some_ns(3), begin = d->at_ns + ns + some_ns(30),
		took = some_ns(90);

	if (by_operator)
		put_operator(d, id);
	if (kind == SILENT)
		put_asked(d, id);
	put_call(d, kind == COPY ? "cudaMemcpyAsync" : "cudaLaunchKernel", i, ns);
	begin = begin > d->free_ns[s] ? begin : d->free_ns[s];
	/* something else may hold the stream, or the whole GPU, for long */
	begin += rnd_below(&seed, 4) ? 0 : some_ns(80);
	put_event(d, kind == COPY ? "gpu_memcpy" : "kernel",
		  kind == COPY	     ? "Memcpy DtoD (Device -> Device)" :
		  kind == KERNEL     ? PICK(kernels) :
		  kind == COLLECTIVE ? "ncclDevKernel_AllReduce" :
				       "ncclDevKernel_SendRecv",
		  streams[s], begin, took);
	fprintf(d->out, "\"stream\":%d,\"correlation\":%d", streams[s],
		rnd_below(&seed, 12) ? i : 5000 + i);
	if (by_operator)
		fprintf(d->out, ",\"External id\":%d", id);
	if (kind == COLLECTIVE) {
		fputs(",", d->out);
		put_collective(d, rnd_below(&seed, 3) == 0);
	}
	fputs("}},\n", d->out);
	d->free_ns[s] = begin + took + some_ns(5);
	d->used[s] = true;
	d->at_ns += ns;
}

/* Of some waits the profiler tells the stream, and what was recorded. */
static void put_wait(struct drawn *d, int i)
{
	int s = rnd_below(&seed, STREAMS);

	if (d->n_records && rnd_below(&seed, 2)) {
		put_event(d, "cuda_sync", "Stream Wait Event", 7, d->at_ns, 0);
		fprintf(d->out, "\"correlation\":%d", i);
		if (d->used[s])
			fprintf(d->out, ",\"stream\":%d", streams[s]);
		if (rnd_below(&seed, 2))
			fprintf(d->out, ",\"wait_on_cuda_event_record_corr_id\":%d",
				d->records[rnd_below(&seed, d->n_records)]);
		fputs("}},\n", d->out);
	}
	put_call(d, "cudaStreamWaitEvent", i, some_ns(1));
}

/* All that was launched is over then. */
static void put_synchronisation(struct drawn *d, int i)
{
	static const char *const names[] = { "cudaDeviceSynchronize",
					     "cudaStreamSynchronize" };
	int64_t end = d->at_ns;

	for (int s = 0; s < STREAMS; s++)
		end = d->free_ns[s] > end ? d->free_ns[s] : end;
	end += some_ns(2);
	put_call(d, PICK(names), i, end - d->at_ns);
	d->at_ns = end;
}

static void put_other(struct drawn *d, int i)
{
	switch (rnd_below(&seed, 4)) {
	case 0:
		d->records[d->n_records++] = i;
		put_call(d, "cudaEventRecord", i, some_ns(1));
		break;
	case 1:
		put_wait(d, i);
		break;
	case 2:
		put_synchronisation(d, i);
		break;
	default:
		put_call(d, "cudaMalloc", i, some_ns(2));
	}
	d->at_ns += 3000;
}

static void put_annotation(struct drawn *d, const char *name, int64_t from, int64_t to)
{
	put_event(d, "user_annotation", name, d->thread, from, to - from);
	fputs("}},\n", d->out);
}

/* From the first call on; steps may lie over one another. */
static void put_annotations(struct drawn *d, int64_t from, int steps)
{
	static const char *const names[] = { "forward \\\"x\\\"",
					     "Optimizer.step#AdamW.step",
					     "FSDP::pre_forward (layer)" };
	int64_t all = d->at_ns - from;
	char name[NAME];

	for (int i = 0; i < steps; i++) {
		snprintf(name, sizeof(name), "ProfilerStep#%d", 4 + i);
		put_annotation(d, name, from + i * all / steps,
			       from + (i + 1) * all / steps + rnd_below(&seed, 500));
	}
	for (int i = rnd_below(&seed, 4); i > 0; i--) {
		int64_t begin = from + rnd_below(&seed, (int)all);

		put_annotation(d, PICK(names), begin, begin + some_ns(60));
	}
}

/* The lines of a text, in any order. */
static void put_shuffled(FILE *out, char *text)
{
	char *line[8 * EVENTS], *rest = text;
	int n = 0;

	for (char *s; (s = strsep(&rest, "\n")) && *s;) {
		int k = rnd_below(&seed, n + 1);

		assert_true(n < 8 * EVENTS);
		line[n] = line[k];
		line[k] = s;
		n++;
	}
	for (int i = 0; i < n; i++)
		fprintf(out, "%s\n", line[i]);
}

static void write_recording(const char *path)
{
	FILE *out = fopen(path, "w");
	char *text = NULL;
	size_t len = 0;
	struct drawn d = { .out = open_memstream(&text, &len) };
	int64_t from = 1000000 + rnd_below(&seed, 3000);

	assert_non_null(out);
	fprintf(out,
		"{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],"
		"\"distributedInfo\":{\"rank\":%d,\"world_size\":4},\"traceEvents\":[\n",
		rnd_below(&seed, 4));
	d.at_ns = from;
	for (int i = 0; i < EVENTS; i++) {
		d.thread = 5 + rnd_below(&seed, 2);
		if (i == 0 || rnd_below(&seed, 3))
			put_launch(&d, i);
		else
			put_other(&d, i);
		d.at_ns += some_ns(20);
	}
	put_annotations(&d, from, rnd_below(&seed, 3));
	fclose(d.out);
	put_shuffled(out, text);
	free(text);
	fputs("{\"ph\":\"M\",\"name\":\"end\"}]}\n", out);
	assert_int_equal(fclose(out), 0);
}

/* ---- what must be the same -------------------------------------------------------------------- */

/* From the first call: what stands before it may be left out. */
static ft_ps since(const struct ft_recording *r, ft_ps at)
{
	return at - call_of(r, r->call_order[0])->start;
}

static void same_text(const struct ft_recording *a, int32_t x,
		      const struct ft_recording *b, int32_t y)
{
	assert_string_equal(ft_recording_text(a, x), ft_recording_text(b, y));
}

static void same_lane(const struct table_rows *a, int16_t x, const struct table_rows *b,
		      int16_t y)
{
	const struct lane *l, *m;

	assert_int_equal(x == FT_REC_NONE, y == FT_REC_NONE);
	if (x == FT_REC_NONE)
		return;
	l = table_at(a, (size_t)x);
	m = table_at(b, (size_t)y);
	assert_int_equal(l->of, m->of);
	assert_int_equal(l->number, m->number);
}

static void same_call(const struct ft_recording *a, const struct ft_rec_call *x,
		      const struct ft_recording *b, const struct ft_rec_call *y)
{
	same_text(a, x->name, b, y->name);
	assert_int_equal(x->kind, y->kind);
	assert_int_equal(since(a, x->start), since(b, y->start));
	assert_int_equal(x->duration, y->duration);
	assert_int_equal(x->correlation, y->correlation);
	assert_int_equal(x->external_id, y->external_id);
	same_lane(&a->thread, x->thread, &b->thread, y->thread);
	same_lane(&a->stream, x->stream, &b->stream, y->stream);
	assert_int_equal(x->waits_for == FT_REC_NONE, y->waits_for == FT_REC_NONE);
	if (x->waits_for != FT_REC_NONE)
		assert_int_equal(call_of(a, (size_t)x->waits_for)->correlation,
				 call_of(b, (size_t)y->waits_for)->correlation);
}

static void same_collective(const struct ft_rec_collective *x,
			    const struct ft_rec_collective *y)
{
	for (; x && y; x = x->also, y = y->also) {
		assert_int_equal(x->op, y->op);
		assert_string_equal(x->name, y->name);
		assert_string_equal(x->group, y->group);
		assert_string_equal(x->ranks, y->ranks);
		assert_string_equal(x->dtype, y->dtype);
		assert_int_equal(x->size, y->size);
		assert_int_equal(x->peer, y->peer);
		assert_int_equal(x->sends, y->sends);
		assert_true(x->bytes <= y->bytes && x->bytes >= y->bytes);
	}
	assert_true(!x && !y);
}

/* Where an operator has no operation that was launched, Kineto's shape leaves it out. */
static void same_operator(const struct ft_recording *a, const struct ft_rec_op *x,
			  const struct ft_recording *b, const struct ft_rec_op *y,
			  bool all)
{
	const struct ft_rec_span *o = ft_recording_operator(a, x);
	const struct ft_rec_span *is = ft_recording_operator(b, y);
	const struct ft_rec_work *v = ft_recording_work(a, x);
	const struct ft_rec_work *w = ft_recording_work(b, y);

	if (!all && x->call == FT_REC_NONE)
		return;
	assert_int_equal(o != NULL, is != NULL);
	assert_int_equal(v != NULL, w != NULL);
	if (o) {
		same_text(a, o->name, b, is->name);
		same_text(a, o->args, b, is->args);
	}
	if (v) {
		assert_int_equal(v->work.kind, w->work.kind);
		assert_int_equal(v->exact, w->exact);
		assert_true(v->rows <= w->rows && v->rows >= w->rows);
	}
}

static void same_op(const struct ft_recording *a, const struct ft_rec_op *x,
		    const struct ft_recording *b, const struct ft_rec_op *y, bool all)
{
	same_text(a, x->name, b, y->name);
	assert_int_equal(since(a, x->start), since(b, y->start));
	assert_int_equal(x->duration, y->duration);
	assert_int_equal(x->correlation, y->correlation);
	assert_int_equal(x->external_id, y->external_id);
	assert_int_equal(x->is_copy, y->is_copy);
	same_lane(&a->stream, x->stream, &b->stream, y->stream);
	assert_int_equal(x->call == FT_REC_NONE, y->call == FT_REC_NONE);
	if (x->call != FT_REC_NONE)
		assert_int_equal(call_of(a, (size_t)x->call)->correlation,
				 call_of(b, (size_t)y->call)->correlation);
	same_operator(a, x, b, y, all);
	if (!all && x->call == FT_REC_NONE)
		return; /* what tells its class may be left out with its operator */
	assert_int_equal(x->rec_class, y->rec_class);
	assert_int_equal(x->in_fsdp, y->in_fsdp);
	same_collective(ft_recording_collective(a, x), ft_recording_collective(b, y));
}

static void same_marks(const struct ft_recording *a, const struct ft_recording *b)
{
	assert_int_equal(a->annotation.n, b->annotation.n);
	for (size_t i = 0; i < a->annotation.n; i++) {
		const struct ft_rec_span *x = table_at(&a->annotation, i);
		const struct ft_rec_span *y = table_at(&b->annotation, i);

		same_text(a, x->name, b, y->name);
		assert_int_equal(since(a, x->start), since(b, y->start));
		assert_int_equal(x->duration, y->duration);
		same_lane(&a->thread, x->thread, &b->thread, y->thread);
	}
	assert_int_equal(a->n_steps, b->n_steps);
	for (size_t i = 0; i < a->n_steps; i++) {
		same_text(a, a->step[i].name, b, b->step[i].name);
		assert_int_equal(a->step[i].marked, b->step[i].marked);
		assert_int_equal(since(a, a->step[i].begin),
				 since(b, b->step[i].begin));
		assert_int_equal(since(a, a->step[i].end), since(b, b->step[i].end));
	}
}

/* all: what no recorded call launched has its operator, too. */
static void same(const struct ft_recording *a, const struct ft_recording *b, bool all)
{
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->world, b->world);
	assert_string_equal(a->device, b->device);
	assert_int_equal(a->call.n, b->call.n);
	assert_int_equal(a->op.n, b->op.n);
	for (size_t i = 0; i < a->call.n; i++)
		same_call(a, call_of(a, a->call_order[i]), b,
			  call_of(b, b->call_order[i]));
	for (size_t i = 0; i < a->op.n; i++)
		same_op(a, op_of(a, a->op_order[i]), b, op_of(b, b->op_order[i]), all);
	same_marks(a, b);
	assert_int_equal(a->counts.without_call, b->counts.without_call);
	assert_int_equal(a->counts.overlapping_steps, b->counts.overlapping_steps);
}

/* ---- all of it --------------------------------------------------------------------------------- */

static struct ft_recording *recording_at(const char *path)
{
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(path, &err);

	ok_or_say(r, err);
	return r;
}

static void what_is_written_is_read_again(void **state)
{
	char path[64], kineto[64], chakra[64];

	(void)state;
	own_path(path, "first");
	own_path(kineto, "again");
	own_path(chakra, "again.et");
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		struct ft_recording *r, *k, *c;
		struct ft_replayed t;
		struct ft_replay *p;
		struct ft_error err;
		FILE *out;

		write_recording(path);
		r = recording_at(path);
		p = ft_replay_build((const struct ft_recording *const *)&r, 1, &err);
		ok_or_say(p, err);
		is_as_recorded(p);
		t = ft_replay_as_recorded(p, &mem);
		out = fopen(kineto, "w");
		assert_non_null(out);
		ft_replay_write(p, &t, 0, ft_recording_device(r), out);
		assert_int_equal(fclose(out), 0);
		out = fopen(chakra, "w");
		assert_non_null(out);
		ft_replay_write_chakra(p, 0, out);
		assert_int_equal(fclose(out), 0);
		k = recording_at(kineto);
		c = recording_at(chakra);
		same(r, c, true);
		same(r, k, false);
		ft_replay_free(p);
		ft_recording_free(r);
		ft_recording_free(k);
		ft_recording_free(c);
		arena_release(&mem);
	}
	unlink(path);
	unlink(kineto);
	unlink(chakra);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
	};

	return cmocka_run_group_tests_name("there and back", tests, NULL, NULL);
}
