/*
 * tests/test_kineto_drawn.c - drawn files of Kineto, with keys in any order and the same words where they mean
 * nothing, against what was drawn: each operation, call, operator and annotation, what is joined, what is counted
 */
#include "tests/made_recording.h"

enum { DRAWS = 300, EVENTS = 40, KINDS = 8 };

static uint64_t seed = 29;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

enum kind { KERNEL, COPY, LAUNCH, OTHER_CALL, OPERATOR, ANNOTATION, SYNC, NOTHING };

struct event {
	enum kind kind;
	const char *category, *name;
	enum ft_rec_call_kind call;
	char phase;
	long long ts_us, ts_frac, dur_us, pid, tid;	 /* ts_frac: thousandths */
	long long correlation, external, stream, record; /* FT_REC_NONE: not said */
	bool negative;
	char args[400]; /* those that are kept, as JSON */
};

struct drawn {
	struct event of[EVENTS];
	int n, rank, world; /* world 0: neither is told */
	char *text;
	size_t len;
	FILE *out;
};

/* ---- what is drawn --------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ft_rec_call_kind kind;
} others[] = {
	{ "cudaEventRecord", FT_REC_RECORD },
	{ "cudaStreamWaitEvent", FT_REC_WAIT },
	{ "cudaEventSynchronize", FT_REC_SYNC_EVENT },
	{ "hipStreamSynchronize", FT_REC_SYNC_STREAM },
	{ "cudaDeviceSynchronize", FT_REC_SYNC_DEVICE },
	{ "cudaMalloc", FT_REC_ALLOCATION },
	{ "hipFree", FT_REC_ALLOCATION },
	{ "cudaGetDevice", FT_REC_CALL_KINDS }, /* kept as nothing */
	{ "somebodysMalloc", FT_REC_CALL_KINDS },
};

static void name_event(struct event *e)
{
	static const char *const kernels[] = { "k1", "gemm_kernel", "a<b, c>(int)" };
	static const char *const copies[] = { "gpu_memcpy", "gpu_memset", "Memcpy",
					      "Memset" };
	static const char *const launches[] = { "cudaLaunchKernel", "cuLaunchKernelEx",
						"hipMemcpyAsync", "cudaGraphLaunch",
						"cudaMemsetAsync" };
	static const char *const runtimes[] = { "cuda_runtime", "cuda_driver",
						"hip_runtime", "Runtime" };
	static const char *const operators[] = { "aten::mm", "aten::add", "x::y" };
	static const char *const nothing[] = { "python_function", "ac2g", "kernels",
					       "Kernel2", "" };
	int i = rnd_below(&seed, (int)(sizeof(others) / sizeof(*others)));

	e->phase = 'X';
	switch (e->kind) {
	case KERNEL:
		e->category = rnd_below(&seed, 2) ? "kernel" : "Kernel";
		e->name = PICK(kernels);
		break;
	case COPY:
		e->category = PICK(copies);
		e->name = "Memcpy HtoD";
		break;
	case LAUNCH:
		e->category = PICK(runtimes);
		e->name = PICK(launches);
		e->call = FT_REC_LAUNCH;
		break;
	case OTHER_CALL:
		e->category = PICK(runtimes);
		e->name = others[i].name;
		e->call = others[i].kind;
		break;
	case OPERATOR:
		e->category = rnd_below(&seed, 2) ? "cpu_op" : "Operator";
		e->name = PICK(operators);
		break;
	case ANNOTATION: /* old profilers mark steps among operators */
		e->category = rnd_below(&seed, 2) ? "user_annotation" : "cpu_op";
		e->name = !strcmp(e->category, "cpu_op") ? "ProfilerStep#7" : "forward";
		break;
	case SYNC:
		e->category = "cuda_sync";
		e->name = "Stream Wait Event";
		break;
	default:
		e->category = PICK(nothing);
		e->name = "nothing";
		e->phase = "XMsftiQ?"[rnd_below(&seed, 8)];
	}
}

static void draw_event(struct event *e, int i)
{
	*e = (struct event){ .kind = i ? (enum kind)rnd_below(&seed, KINDS) : KERNEL };
	name_event(e);
	e->ts_us = 1700000000000000 + rnd_below(&seed, 100000);
	e->ts_frac = rnd_below(&seed, 3) ? rnd_below(&seed, 1000) : 0;
	e->dur_us = rnd_below(&seed, 2000);
	e->negative = rnd_below(&seed, 12) == 0 && e->dur_us;
	e->pid = rnd_below(&seed, 2);
	e->tid = rnd_below(&seed, 3);
	e->correlation = rnd_below(&seed, 5) ? rnd_below(&seed, 14) : FT_REC_NONE;
	e->external = rnd_below(&seed, 3) ? rnd_below(&seed, 12) : FT_REC_NONE;
	e->stream = rnd_below(&seed, 3) ? 7 + rnd_below(&seed, 3) : FT_REC_NONE;
	e->record = rnd_below(&seed, 2) ? rnd_below(&seed, 14) : FT_REC_NONE;
	if (e->kind == KERNEL || e->kind == COPY)
		e->pid = 0;
}

/* ---- how it is written ------------------------------------------------------------------ */

/* The words that mean something elsewhere, deep where they mean nothing. */
static const char *decoy(void)
{
	static const char *const list[] = {
		"\"x\":{\"ts\":1,\"dur\":2,\"name\":\"no\",\"ph\":\"M\",\"args\":{"
		"\"stream\":99,\"dtype\":\"no\"}},",
		"\"y\":[{\"correlation\":77,\"rank\":9,\"world_size\":9},[\"ts\",3]],",
		"\"\":{\"name\":\"no\",\"rank\":8},",
		"\"z\":{\"rank\":6,\"world_size\":5,\"stream\":88,\"cat\":\"kernel\"},",
		"\"\":5,\"w\":null,\"names\":\"no\",\"t\":true,",
	};

	return rnd_below(&seed, 3) ? "" : PICK(list);
}

static void put_number(struct drawn *d, const char *key, long long n)
{
	if (n != FT_REC_NONE)
		fprintf(d->out, "\"%s\": %lld, %s", key, n, decoy());
}

/* An argument that is kept, in the file with blanks, and as it is to be kept. */
static void put_kept(struct drawn *d, struct event *e)
{
	static const struct {
		const char *written, *kept;
	} values[] = {
		{ "\"Input Dims\": [[2, 3], [], [4]]",
		  "\"Input Dims\":[[2,3],[],[4]]" },
		{ "\"Input type\" : [\"float\", \"\"]",
		  "\"Input type\":[\"float\",\"\"]" },
		{ "\"Concrete Inputs\": [\"\", \"a\\\"b\"]",
		  "\"Concrete Inputs\":[\"\",\"a\\\"b\"]" },
		{ "\"Group size\":2", "\"Group size\":2" },
		{ "\"bytes\":  1.5e3", "\"bytes\":1.5e3" },
		{ "\"Src Rank\":null", "\"Src Rank\":null" },
		{ "\"Dst Rank\":true", "\"Dst Rank\":true" },
	};
	int from = rnd_below(&seed, 7), n = rnd_below(&seed, 4);

	for (int i = 0; i < n; i++) {
		int k = (from + i) % 7;

		fprintf(d->out, "%s, %s", values[k].written, decoy());
		strcat(e->args, e->args[0] ? "," : "{");
		strcat(e->args, values[k].kept);
	}
	if (e->args[0])
		strcat(e->args, "}");
}

static void put_args(struct drawn *d, struct event *e)
{
	fprintf(d->out, "\"args\": {%s", decoy());
	put_number(d, "correlation", e->correlation);
	put_kept(d, e);
	put_number(d, rnd_below(&seed, 2) ? "External id" : "external id", e->external);
	put_number(d, "stream", e->stream);
	if (e->kind == SYNC)
		put_number(d, "wait_on_cuda_event_record_corr_id", e->record);
	fprintf(d->out, "\"last\": 0}, ");
}

static void put_key(struct drawn *d, struct event *e, int which)
{
	switch (which) {
	case 0:
		fprintf(d->out, "\"ph\": \"%c\", %s", e->phase, decoy());
		break;
	case 1:
		fprintf(d->out, "\"cat\": \"%s\", %s", e->category, decoy());
		break;
	case 2:
		fprintf(d->out, "\"name\": \"%s\", %s", e->name, decoy());
		break;
	case 3:
		put_number(d, "pid", e->pid);
		put_number(d, "tid", e->tid);
		break;
	case 4:
		fprintf(d->out, "\"ts\": %lld.%03lld, %s", e->ts_us, e->ts_frac,
			decoy());
		break;
	case 5:
		fprintf(d->out, "\"dur\": %s%lld, %s", e->negative ? "-" : "",
			e->dur_us, decoy());
		break;
	default:
		put_args(d, e);
	}
}

static void put_event(struct drawn *d, struct event *e)
{
	int first = rnd_below(&seed, 7), step = 1 + rnd_below(&seed, 6);

	fprintf(d->out, "{%s", decoy());
	for (int i = 0; i < 7; i++)
		put_key(d, e, (first + i * step) % 7);
	fprintf(d->out, "\"id\": 3}");
}

static void write_all(struct drawn *d)
{
	d->out = open_memstream(&d->text, &d->len);
	fprintf(d->out,
		"{%s\"name\": \"no\", \"deviceProperties\": [{%s\"name\": "
		"\"GPU one\", \"id\": 0}, {\"name\": \"GPU two\"}], ",
		decoy(), decoy());
	if (d->world)
		fprintf(d->out,
			"\"distributedInfo\": {%s\"rank\": %d, %s\"world_size\": %d, "
			"\"pg\": {\"rank\": 4, \"world_size\": 3}, \"of\": [{\"rank\": "
			"5}]}, ",
			decoy(), d->rank, decoy(), d->world);
	fprintf(d->out, "%s\"traceEvents\": [", decoy());
	for (int i = 0; i < d->n; i++) {
		put_event(d, &d->of[i]);
		fputs(i + 1 < d->n ? ",\n" : "\n", d->out);
	}
	fprintf(d->out, "], %s\"rank\": 3, \"world_size\": 1}", decoy());
	fclose(d->out);
}

/* ---- what is to be read ------------------------------------------------------------------- */

static bool is_op(const struct event *e)
{
	return e->kind == KERNEL || e->kind == COPY;
}

static bool is_call(const struct event *e)
{
	return (e->kind == LAUNCH || e->kind == OTHER_CALL) &&
	       e->call != FT_REC_CALL_KINDS;
}

static bool in_tables(const struct event *e)
{
	return is_op(e) || is_call(e) || e->kind == OPERATOR || e->kind == ANNOTATION;
}

/* From the first whole microsecond of what is kept. */
static ft_ps start_of(const struct drawn *d, const struct event *e)
{
	long long first = INT64_MAX;

	for (int i = 0; i < d->n; i++)
		if (in_tables(&d->of[i]) && d->of[i].ts_us < first)
			first = d->of[i].ts_us;
	return (e->ts_us - first) * 1000000 + e->ts_frac * 1000;
}

static ft_ps duration_of(const struct event *e)
{
	return e->negative ? 0 : e->dur_us * 1000000;
}

static bool same_number(const struct event *a, long long correlation)
{
	return correlation != FT_REC_NONE && a->correlation == correlation;
}

/* The launch of an operation: the first that began. */
static const struct event *launch_of(const struct drawn *d, const struct event *op)
{
	const struct event *found = NULL;

	for (int i = 0; i < d->n; i++) {
		const struct event *e = &d->of[i];

		if (e->kind == LAUNCH && same_number(e, op->correlation) &&
		    (!found || start_of(d, e) < start_of(d, found)))
			found = e;
	}
	return found;
}

static long long stream_of(const struct event *op)
{
	return op->stream == FT_REC_NONE ? op->tid : op->stream;
}

static void same_text(const struct ft_recording *r, int32_t text, const char *want)
{
	assert_string_equal(ft_recording_text(r, text), want);
}

static void check_op(const struct drawn *d, const struct ft_recording *r,
		     const struct event *e, size_t i)
{
	const struct ft_rec_op *op = ft_recording_op(r, i);
	const struct event *call = launch_of(d, e), *operator= NULL;
	const struct ft_rec_span *span = ft_recording_operator(r, op);
	long long id =
		e->external == FT_REC_NONE && call ? call->external : e->external;

	assert_int_equal(op->start, start_of(d, e));
	assert_int_equal(op->duration, duration_of(e));
	assert_int_equal(op->correlation, e->correlation);
	assert_int_equal(op->external_id, id);
	assert_int_equal(op->is_copy, e->kind == COPY);
	same_text(r, op->name, e->name), same_text(r, op->args, e->args);
	assert_int_equal(ft_recording_stream(r, op->stream), stream_of(e));
	assert_int_equal(op->call != FT_REC_NONE, call != NULL);
	if (call) {
		const struct ft_rec_call *is = ft_recording_call(r, (size_t)op->call);

		assert_int_equal(is->start, start_of(d, call));
		assert_int_equal(is->correlation, e->correlation);
	}
	for (int k = 0; id != FT_REC_NONE && k < d->n; k++)
		if (d->of[k].kind == OPERATOR && d->of[k].external == id &&
		    (!operator|| start_of(d, &d->of[k]) < start_of(d, operator)))
			operator= & d->of[k];
	assert_int_equal(span != NULL, operator!= NULL);
	if (span) {
		assert_int_equal(span->start, start_of(d, operator));
		assert_int_equal(span->duration, duration_of(operator));
		same_text(r, span->name, operator->name);
		same_text(r, span->args, operator->args);
	}
}

static const struct event *only_call(const struct drawn *d, long long correlation,
				     bool *clear)
{
	const struct event *found = NULL;

	*clear = true;
	for (int i = 0; i < d->n; i++)
		if (is_call(&d->of[i]) && same_number(&d->of[i], correlation)) {
			*clear &= !found;
			found = &d->of[i];
		}
	return found;
}

static bool has_stream(const struct drawn *d, long long number)
{
	for (int i = 0; i < d->n; i++)
		if (is_op(&d->of[i]) && stream_of(&d->of[i]) == number)
			return true;
	return false;
}

/* As the last of the profiler's words on a wait's number says; two calls of one number are not told
 * apart, and not looked at. */
static void check_sync(const struct drawn *d, const struct ft_recording *r,
		       const struct event *e, const struct ft_rec_call *c)
{
	const struct event *record, *last = NULL;
	long long stream = FT_REC_NONE;
	bool clear, one;

	only_call(d, e->correlation, &clear);
	for (int i = 0; e->kind != LAUNCH && i < d->n; i++) {
		const struct event *s = &d->of[i];

		if (s->kind != SYNC || !same_number(s, e->correlation))
			continue;
		stream = s->stream;
		record = only_call(d, s->record, &one);
		clear &= one;
		last = record ? record : last;
	}
	if (!clear)
		return;
	assert_int_equal(c->stream != FT_REC_NONE, has_stream(d, stream));
	if (c->stream != FT_REC_NONE)
		assert_int_equal(ft_recording_stream(r, c->stream), stream);
	assert_int_equal(c->waits_for != FT_REC_NONE, last != NULL);
	if (last)
		assert_int_equal(ft_recording_call(r, (size_t)c->waits_for)->start,
				 start_of(d, last));
}

static void check_call(const struct drawn *d, const struct ft_recording *r,
		       const struct event *e, size_t i)
{
	const struct ft_rec_call *c = ft_recording_call(r, i);

	assert_int_equal(c->start, start_of(d, e));
	assert_int_equal(c->duration, duration_of(e));
	assert_int_equal(c->correlation, e->correlation);
	assert_int_equal(c->external_id, e->external);
	assert_int_equal(c->kind, e->call);
	same_text(r, c->name, e->name);
	check_sync(d, r, e, c);
}

static void check_counts(const struct drawn *d, const struct ft_recording *r)
{
	const struct ft_rec_counts *c = ft_recording_counts(r);
	int64_t kept = 0, unknown = 0, negative = 0, without = 0, before = 0;

	for (int i = 0; i < d->n; i++) {
		const struct event *e = &d->of[i], *call = launch_of(d, e);

		kept += e->kind != NOTHING;
		negative += e->kind != NOTHING && e->negative;
		unknown += e->phase == 'Q' || e->phase == '?';
		without += is_op(e) && !call;
		before += is_op(e) && call && start_of(d, e) < start_of(d, call);
	}
	assert_int_equal(c->events, d->n);
	assert_int_equal(c->kept, kept);
	assert_int_equal(c->unknown_phases, unknown);
	assert_int_equal(c->negative, negative);
	assert_int_equal(c->without_call, without);
	assert_int_equal(c->before_call, before);
}

static void check(const struct drawn *d, const struct ft_recording *r)
{
	size_t ops = 0, calls = 0, operators = 0, annotations = 0;

	for (int i = 0; i < d->n; i++) {
		const struct event *e = &d->of[i];

		if (is_op(e))
			check_op(d, r, e, ops++);
		if (is_call(e))
			check_call(d, r, e, calls++);
		operators += e->kind == OPERATOR;
		if (e->kind == ANNOTATION) {
			const struct ft_rec_span *a =
				ft_recording_annotation(r, annotations++);

			assert_int_equal(a->start, start_of(d, e));
			assert_int_equal(a->duration, duration_of(e));
			assert_int_equal(a->id, e->external);
			same_text(r, a->name, e->name);
		}
	}
	assert_int_equal(ft_recording_ops(r), ops);
	assert_int_equal(ft_recording_calls(r), calls);
	assert_int_equal(ft_recording_spans(r), operators);
	assert_int_equal(ft_recording_annotations(r), annotations);
	assert_string_equal(ft_recording_device(r), "GPU one");
	assert_int_equal(ft_recording_rank(r), d->world ? d->rank : FT_REC_NONE);
	assert_int_equal(ft_recording_world(r), d->world ? d->world : FT_REC_NONE);
	check_counts(d, r);
}

static void what_was_drawn_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = { .n = 2 + rnd_below(&seed, EVENTS - 1) };
		struct ft_recording *r;

		if (rnd_below(&seed, 2)) {
			d.rank = rnd_below(&seed, 4);
			d.world = 4 + rnd_below(&seed, 4);
		}
		for (int k = 0; k < d.n; k++)
			draw_event(&d.of[k], k);
		write_all(&d);
		r = read_text(d.text);
		check(&d, r);
		ft_recording_free(r);
		free(d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_drawn_is_read),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
