/*
 * tests/test_chakra.c - Chakra traces of others, which know nothing of our attributes
 *
 * Messages are written by hand, field by field, from the schema of mlcommons/chakra
 * (schema/protobuf/et_def.proto): Node id 1, name 2, type 3, ctrl_deps 4, data_deps 5,
 * start_time_micros 6, duration_micros 7, attr 10; AttributeProto name 1, int32 7, int64
 * 9, uint32 11, uint64 13, bool 27, string 29.
 */
#include "tests/check.h"

#include "foretoken/recorded.h"

/* ---- the wire ------------------------------------------------------------------------- */

struct bytes {
	unsigned char of[4096];
	size_t n;
};

static void varint(struct bytes *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		b->of[b->n++] = (unsigned char)(v & 0x7f) | 0x80;
	b->of[b->n++] = (unsigned char)v;
}

static void number(struct bytes *b, int field, uint64_t v)
{
	varint(b, (uint64_t)field << 3);
	varint(b, v);
}

static void sized(struct bytes *b, int field, const void *data, size_t n)
{
	if (field)
		varint(b, (uint64_t)field << 3 | 2);
	varint(b, n);
	memcpy(b->of + b->n, data, n);
	b->n += n;
}

enum { INT32 = 7, INT64 = 9, UINT32 = 11, UINT64 = 13, BOOL = 27, STRING = 29 };

struct attribute {
	const char *name;
	int type;
	uint64_t value;
	const char *text;
};

struct node {
	uint64_t id;
	const char *name;
	int type; /* 4: compute, 5: send, 6: receive, 7: collective */
	uint64_t start_us, us;
	uint64_t data_dep, ctrl_dep; /* 0: none */
	struct attribute attr[4];
};

static void put_node(struct bytes *file, const struct node *n)
{
	struct bytes m = { .n = 0 }, deps;

	number(&m, 1, n->id);
	if (n->name)
		sized(&m, 2, n->name, strlen(n->name));
	number(&m, 3, (uint64_t)n->type);
	for (int field = 4; field <= 5; field++) {
		uint64_t on = field == 4 ? n->ctrl_dep : n->data_dep;

		deps.n = 0;
		varint(&deps, on);
		if (on)
			sized(&m, field, deps.of, deps.n);
	}
	number(&m, 6, n->start_us);
	number(&m, 7, n->us);
	for (int i = 0; i < 4 && n->attr[i].name; i++) {
		const struct attribute *a = &n->attr[i];
		struct bytes at = { .n = 0 };

		sized(&at, 1, a->name, strlen(a->name));
		if (a->type == STRING)
			sized(&at, STRING, a->text, strlen(a->text));
		else
			number(&at, a->type, a->value);
		sized(&m, 10, at.of, at.n);
	}
	sized(file, 0, m.of, m.n);
}

static struct bytes begun(void)
{
	struct bytes file = { .n = 0 }, m = { .n = 0 };

	sized(&m, 1, "0.0.4", 5);
	sized(&file, 0, m.of, m.n);
	return file;
}

static struct ft_recording *read_bytes(const struct bytes *b, struct ft_error *err)
{
	char path[64];
	struct ft_recording *r;
	FILE *f = fopen(own_path(path, "step.et"), "wb");

	assert_int_equal(fwrite(b->of, 1, b->n, f), b->n);
	fclose(f);
	r = ft_recording_read(path, err);
	remove(path);
	return r;
}

/* ---- tests ------------------------------------------------------------------------------ */

/* A launch, a product that it launched, a collective behind the product, a kernel alone. */
static const struct node step[] = {
	{ 1, "cudaLaunchKernel", 4, 1000, 3, 0, 0, { { "is_cpu_op", BOOL, 1, NULL } } },
	{ 2, "aten::mm", 4, 990, 20, 0, 0, { { "is_cpu_op", INT32, 1, NULL } } },
	{ 3,
	  "gemm_kernel",
	  4,
	  1010,
	  50,
	  1,
	  0,
	  { { "is_cpu_op", BOOL, 0, NULL }, { "stream", UINT32, 7, NULL } } },
	{ 4,
	  "ncclDevKernel",
	  7,
	  1060,
	  40,
	  0,
	  1,
	  { { "comm_type", INT64, 0, NULL },
	    { "comm_size", UINT64, 4096, NULL },
	    { "stream", UINT64, 20, NULL } } },
	{ 5, NULL, 4, 1100, 5, 0, 0, { { "stream", INT32, 7, NULL } } },
	{ 6, "a memory node", 2, 5000000000000, 5, 0, 0, { { NULL, 0, 0, NULL } } },
};

static struct bytes file_of(const struct node *n, size_t count)
{
	struct bytes file = begun();

	for (size_t i = 0; i < count; i++)
		put_node(&file, &n[i]);
	return file;
}

static void nodes_of_others_become_operations_and_calls(void **state)
{
	struct bytes file = file_of(step, 6);
	struct ft_error err;
	struct ft_recording *r = read_bytes(&file, &err);
	const struct ft_rec_op *product, *collective, *alone;

	(void)state;
	ok_or_say(r, err);
	assert_int_equal(ft_recording_counts(r)->events, 6);
	assert_int_equal(ft_recording_counts(r)->kept, 5);
	assert_int_equal(ft_recording_calls(r), 1);
	assert_int_equal(ft_recording_call(r, 0)->kind, FT_REC_LAUNCH);
	assert_int_equal(ft_recording_ops(r), 3);
	assert_int_equal(ft_recording_streams(r), 2);
	assert_string_equal(ft_recording_device(r), "");
	product = ft_recording_op(r, 0);
	collective = ft_recording_op(r, 1);
	alone = ft_recording_op(r, 2);
	assert_string_equal(ft_recording_text(r, product->name), "gemm_kernel");
	assert_int_equal(product->call, 0);
	/* 10 us behind the launch, in picoseconds */
	assert_int_equal(product->start - ft_recording_call(r, 0)->start, 10000000);
	assert_int_equal(product->duration, 50000000);
	assert_int_equal(ft_recording_stream(r, product->stream), 7);
	assert_int_equal(ft_recording_stream(r, collective->stream), 20);
	assert_int_equal(collective->call, 0); /* by its control dependency */
	assert_int_equal(alone->stream, product->stream);
	assert_int_equal(alone->call, FT_REC_NONE);
	assert_string_equal(ft_recording_text(r, alone->name), "");
	ft_recording_free(r);
}

/* CollectiveCommType of the schema: 0 all-reduce, 2 all-gather, 5 broadcast, 6 all-to-all,
 * 7 reduce-scatter; others are none of ours. */
static void a_collective_is_told_by_its_type(void **state)
{
	static const struct {
		int type;
		enum ft_collective op;
	} cases[] = {
		{ 0, FT_ALL_REDUCE }, { 2, FT_ALL_GATHER },	{ 5, FT_BROADCAST },
		{ 6, FT_ALL_TO_ALL }, { 7, FT_REDUCE_SCATTER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct node n = step[3];
		struct bytes file;
		struct ft_error err;
		struct ft_recording *r;
		const struct ft_rec_collective *c;

		n.attr[0].value = (uint64_t)cases[i].type;
		file = file_of(&n, 1);
		r = read_bytes(&file, &err);
		ok_or_say(r, err);
		c = ft_recording_collective(r, ft_recording_op(r, 0));
		assert_non_null(c);
		assert_int_equal(c->op, cases[i].op);
		ft_recording_free(r);
	}
	for (int type = 1; type <= 99; type += 98) {
		struct node n = step[3];
		struct bytes file;
		struct ft_error err;
		struct ft_recording *r;

		n.attr[0].value = (uint64_t)type;
		file = file_of(&n, 1);
		r = read_bytes(&file, &err);
		ok_or_say(r, err);
		assert_null(ft_recording_collective(r, ft_recording_op(r, 0)));
		ft_recording_free(r);
	}
}

/* The node's type says what it is; its name may say anything. */
static void what_communicates_is_told_by_the_node_s_type(void **state)
{
	static const struct node of[] = {
		{ 1,
		  "an all_gather of theirs",
		  7,
		  1000,
		  40,
		  0,
		  0,
		  { { "comm_type", INT64, 2, NULL },
		    { "comm_size", INT64, 64, NULL } } },
		{ 2,
		  "COMM_SEND_NODE",
		  5,
		  1050,
		  30,
		  0,
		  0,
		  { { "comm_dst", INT32, 3, NULL },
		    { "comm_size", INT64, 4096, NULL } } },
		{ 3,
		  "COMM_RECV_NODE",
		  6,
		  1090,
		  20,
		  0,
		  0,
		  { { "comm_src", UINT32, 1, NULL },
		    { "comm_size", UINT64, 128, NULL } } },
		/* to nobody who is named, of no size that is told */
		{ 4, "COMM_SEND_NODE", 5, 1120, 20, 0, 0, { { NULL, 0, 0, NULL } } },
	};
	struct bytes file = file_of(of, 4);
	struct ft_error err;
	struct ft_recording *r = read_bytes(&file, &err);
	const struct ft_rec_collective *c[4];

	(void)state;
	ok_or_say(r, err);
	for (size_t i = 0; i < 4; i++) {
		const struct ft_rec_op *op = ft_recording_op(r, i);

		assert_int_equal(op->rec_class, FT_REC_COLLECTIVE);
		c[i] = ft_recording_collective(r, op);
		assert_non_null(c[i]);
	}
	assert_int_equal(c[0]->op, FT_ALL_GATHER);
	assert_int_equal(c[1]->op, FT_SENDRECV);
	assert_true(c[1]->sends && !c[2]->sends);
	assert_int_equal(c[1]->peer, 3);
	assert_int_equal(c[2]->peer, 1);
	assert_int_equal((int)c[1]->bytes, 4096);
	assert_int_equal((int)c[2]->bytes, 128);
	assert_int_equal(c[3]->peer, FT_REC_NONE);
	assert_int_equal((int)c[3]->bytes, 0);
	ft_recording_free(r);
}

/* It waits for the kernel before it as well, and ids are far apart. Where no launch is among them, it is the
 * first one's: an operator's, here. */
static void an_operation_is_of_the_launch_among_its_dependencies(void **state)
{
	static const struct node of[] = {
		{ 70,
		  "cudaLaunchKernel",
		  4,
		  1000,
		  3,
		  0,
		  0,
		  { { "is_cpu_op", BOOL, 1, NULL } } },
		{ 5000000000,
		  "cudaLaunchKernel",
		  4,
		  1004,
		  3,
		  0,
		  0,
		  { { "is_cpu_op", BOOL, 1, NULL } } },
		{ 9, "first", 4, 1010, 50, 70, 0, { { "stream", INT64, 7, NULL } } },
		{ 3,
		  "second",
		  4,
		  1060,
		  40,
		  9,
		  5000000000,
		  { { "stream", INT64, 7, NULL } } },
		{ 11,
		  "aten::mm",
		  4,
		  1062,
		  20,
		  0,
		  0,
		  { { "is_cpu_op", BOOL, 1, NULL } } },
		{ 12, "third", 4, 1110, 40, 11, 3, { { "stream", INT64, 7, NULL } } },
		{ 13, "fourth", 4, 1160, 40, 9, 70, { { "stream", INT64, 7, NULL } } },
	};
	struct bytes file = file_of(of, 7);
	struct ft_error err;
	struct ft_recording *r = read_bytes(&file, &err);
	const struct ft_rec_span *by;

	(void)state;
	ok_or_say(r, err);
	assert_int_equal(ft_recording_op(r, 0)->call, 0);
	assert_int_equal(ft_recording_op(r, 1)->call, 1);
	assert_int_equal(ft_recording_op(r, 2)->call, FT_REC_NONE);
	assert_int_equal(ft_recording_op(r, 3)->call, 0);
	by = ft_recording_operator(r, ft_recording_op(r, 2));
	assert_non_null(by);
	assert_string_equal(ft_recording_text(r, by->name), "aten::mm");
	assert_int_equal(by->thread, ft_recording_call(r, 0)->thread);
	ft_recording_free(r);
}

static void is_refused(const struct bytes *b, const char *says)
{
	struct ft_error err = { 0 };

	assert_null(read_bytes(b, &err));
	if (!strstr(err.text, says))
		fail_msg("says '%s', not '%s'", err.text, says);
}

static void what_is_damaged_is_refused(void **state)
{
	const struct bytes whole = file_of(step, 6);
	struct bytes b = { .n = 0 };
	struct node n;

	(void)state;
	is_refused(&b, "node 0: its metadata cannot be read");
	b = whole;
	b.n = 3; /* of the metadata */
	is_refused(&b, "node 0: the file ends in the middle of it");
	b = begun();
	b.of[b.n++] = 0x80; /* the length goes on */
	is_refused(&b, "node 1: the file ends in the middle of it");
	b = begun();
	varint(&b, 100);
	is_refused(&b, "node 1: the file ends in the middle of it");
	b = begun();
	varint(&b, 1 << 25);
	is_refused(&b, "its length is not one");
	b = begun();
	for (int i = 0; i < 6; i++)
		b.of[b.n++] = 0x80;
	is_refused(&b, "its length is not one");
	b = begun();
	sized(&b, 0, "\xff\xff\xff", 3);
	is_refused(&b, "node 1: it is damaged");
	b = begun();
	b.of[1] = 0xff;
	is_refused(&b, "node 0: its metadata cannot be read");
	n = step[4];
	n.start_us = 1000 + 100000000001;
	b = file_of(step, 4);
	put_node(&b, &n);
	is_refused(&b, "node 5: lies more than 100,000 s from the first one");
	n.start_us = 1100;
	n.us = 100000000001;
	b = file_of(step, 4);
	put_node(&b, &n);
	is_refused(&b, "node 5: lies more than 100,000 s from the first one");
	n = step[0];
	n.start_us = UINT64_MAX;
	b = file_of(step, 4);
	put_node(&b, &n);
	is_refused(&b, "node 5: lies more than 100,000 s from the first one");
	n = step[4];
	n.attr[1] =
		(struct attribute){ "foretoken.duration_ps", INT64, UINT64_MAX, NULL };
	b = file_of(&n, 1);
	is_refused(&b, "node 1: lies more than 100,000 s from the first one");
}

/* A trace that a simulator is to run has sizes, and no times. */
/* Begin and length in picoseconds, process, thread, name; as far from the first node as nodes may lie. */
static void annotations_lie_as_far_away_as_nodes(void **state)
{
	static const struct {
		const char *told;
		int64_t start, duration;
		const char *name; /* NULL: it cannot be read */
	} rows[] = {
		{ "0 0 1 2 x", 0, 0, "x" },
		{ "-5 7 1 2 ProfilerStep#3", -5, 7, "ProfilerStep#3" },
		{ "99999999999999999 99999999999999999 1 2 a name", 99999999999999999,
		  99999999999999999, "a name" },
		{ "-99999999999999999 1 1 2 x", -99999999999999999, 1, "x" },
		{ "100000000000000000 1 1 2 x", 0, 0, NULL },
		{ "-100000000000000000 1 1 2 x", 0, 0, NULL },
		{ "1 100000000000000000 1 2 x", 0, 0, NULL },
		{ "1 -1 1 2 x", 0, 0, NULL },
		{ "1 2 3", 0, 0, NULL },
		{ "", 0, 0, NULL },
	};
	static const char key[] = "foretoken.annotation";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bytes file = { .n = 0 }, m = { .n = 0 }, at = { .n = 0 };
		const struct ft_rec_span *a;
		struct ft_recording *r;
		struct ft_error err;

		sized(&at, 1, key, strlen(key));
		sized(&at, STRING, rows[i].told, strlen(rows[i].told));
		sized(&m, 1, "0.0.4", 5);
		sized(&m, 2, at.of, at.n);
		sized(&file, 0, m.of, m.n);
		for (int k = 0; k < 6; k++)
			put_node(&file, &step[k]);
		if (!rows[i].name) {
			is_refused(&file, "one of its annotations cannot be read");
			continue;
		}
		r = read_bytes(&file, &err);
		ok_or_say(r, err);
		assert_int_equal(ft_recording_annotations(r), 1);
		a = ft_recording_annotation(r, 0);
		assert_int_equal(a->start - ft_recording_call(r, 0)->start,
				 rows[i].start);
		assert_int_equal(a->duration, rows[i].duration);
		assert_string_equal(ft_recording_text(r, a->name), rows[i].name);
		ft_recording_free(r);
	}
}

static void a_trace_without_times_was_not_recorded(void **state)
{
	struct node n[2] = { step[2], step[4] };
	struct ft_recording *r;
	struct bytes file;
	struct ft_error err;

	(void)state;
	n[0].us = n[1].us = 0;
	file = file_of(n, 2);
	is_refused(&file, "its nodes have no times");
	n[1].us = 1;
	file = file_of(n, 2);
	r = read_bytes(&file, &err);
	ok_or_say(r, err);
	ft_recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_of_others_become_operations_and_calls),
		cmocka_unit_test(a_collective_is_told_by_its_type),
		cmocka_unit_test(an_operation_is_of_the_launch_among_its_dependencies),
		cmocka_unit_test(what_communicates_is_told_by_the_node_s_type),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(annotations_lie_as_far_away_as_nodes),
		cmocka_unit_test(a_trace_without_times_was_not_recorded),
	};

	return cmocka_run_group_tests_name("chakra", tests, NULL, NULL);
}
