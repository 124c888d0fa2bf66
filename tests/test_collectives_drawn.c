/*
 * tests/test_collectives_drawn.c - collectives of drawn recordings, as the kernel, its operator, or the host's calls in
 * front of its launch tell them, against what was drawn
 */
#include "tests/made_recording.h"

enum { DRAWS = 200, KERNELS = 14, PARTS = 3 };

static uint64_t seed = 53;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const struct name {
	const char *text;
	enum ft_collective op;
} names[] = {
	{ "allreduce", FT_ALL_REDUCE },
	{ "all_reduce_coalesced", FT_ALL_REDUCE },
	{ "_allgather_base", FT_ALL_GATHER },
	{ "allgather", FT_ALL_GATHER },
	{ "all_gather_into_tensor", FT_ALL_GATHER },
	{ "_reduce_scatter_base", FT_REDUCE_SCATTER },
	{ "reduce_scatter", FT_REDUCE_SCATTER },
	{ "all_to_allv", FT_ALL_TO_ALL },
	{ "alltoall", FT_ALL_TO_ALL },
	{ "broadcast", FT_BROADCAST },
	{ "send", FT_SENDRECV },
	{ "recv", FT_SENDRECV },
	{ "barrier", FT_COLLECTIVES },
	{ "gather", FT_COLLECTIVES },
};

static const struct type {
	const char *text, *dtype;
	double bytes;
} types[] = {
	{ "BFloat16", "bf16", 2 },
	{ "c10::BFloat16", "bf16", 2 },
	{ "Half", "fp16", 2 },
	{ "c10::Half", "fp16", 2 },
	{ "Float8_e4m3fn", "fp8", 1 },
	{ "Float8_e5m2", "fp8", 1 },
	{ "Float8_e4m3fnuz", "fp8", 1 },
	{ "Float", "fp32", 4 },
	{ "float", "fp32", 4 },
	{ "Double", "", 8 },
	{ "Long", "", 8 },
	{ "Int", "", 4 },
	{ "Short", "", 2 },
	{ "Byte", "", 1 },
	{ "Char", "", 1 },
	{ "Bool", "", 1 },
	{ "Float9", "", 0 },
	{ NULL, "", 0 },
};

/* One that is described; a member below 0 is left out. */
struct part {
	const struct name *name;
	const struct type *type;
	int in, out, size, group, from, to;
	bool about, ranks;
};

enum how { BY_KERNEL, BY_OPERATOR, BY_CALLS, BY_NOTHING, HOWS };

struct kernel {
	enum how how;
	struct part part[PARTS];
	int parts, thread;
};

static int often(int n)
{
	return rnd_below(&seed, 6) ? rnd_below(&seed, n) : -1;
}

static struct part draw_part(bool transfer)
{
	struct part p = {
		&names[transfer ? 10 + rnd_below(&seed, 2) : rnd_below(&seed, 14)],
		&PICK(types),
		often(9000),
		often(9000),
		often(64),
		often(9),
		often(8),
		often(8),
		rnd_below(&seed, 2),
		rnd_below(&seed, 2)
	};

	return p;
}

static struct kernel draw(void)
{
	struct kernel k = { .how = (enum how)rnd_below(&seed, HOWS),
			    .thread = 1 + rnd_below(&seed, 2) };

	k.parts = k.how == BY_NOTHING ? 0 :
		  k.how == BY_CALLS   ? 1 + rnd_below(&seed, PARTS) :
					1;
	for (int i = 0; i < k.parts; i++)
		k.part[i] = draw_part(k.how == BY_CALLS);
	return k;
}

/* ---- written ---------------------------------------------------------------------------- */

static void put_number(struct made *m, const char *key, int value)
{
	if (value >= 0)
		add(m, ",\"%s\":%d", key, value);
}

static void put_args(struct made *m, const struct part *p)
{
	add(m, ",\"Collective name\":\"%s\"", p->name->text);
	put_number(m, "In msg nelems", p->in);
	put_number(m, "Out msg nelems", p->out);
	put_number(m, "Group size", p->size);
	put_number(m, "Src Rank", p->from);
	put_number(m, "Dst Rank", p->to);
	if (p->type->text)
		add(m, ",\"dtype\":\"%s\"", p->type->text);
	if (p->group >= 0)
		add(m, ",\"Process Group Name\":\"g%d\"", p->group);
	if (p->about)
		add(m, ",\"Process Group Description\":\"about %d\"", p->in);
	if (p->ranks)
		add(m, ",\"Process Group Ranks\":\"[0, %d]\"", p->out);
}

static void put_span(struct made *m, const struct kernel *k, const struct part *p,
		     int id, int at)
{
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":1,"
	    "\"tid\":%d,\"ts\":%d,\"dur\":1,\"args\":{\"External id\":%d",
	    k->thread, at, id);
	put_args(m, p);
	add(m, "}},\n");
}

static void put_kernel(struct made *m, const struct kernel *k, int i)
{
	int id = 100 * i, at = 20 * i;

	for (int n = 0; n < k->parts && k->how != BY_KERNEL; n++)
		put_span(m, k, &k->part[n], id + n, at + 2 * n);
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":"
	    "1,\"tid\":%d,\"ts\":%d,\"dur\":2,\"args\":{\"correlation\":%d}},\n",
	    k->thread, at + 10, id + 50);
	add(m,
	    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv\",\"pid\":"
	    "0,\"tid\":7,\"ts\":%d,\"dur\":9,\"args\":{\"stream\":7,\"correlation\":%d",
	    5000 + at, id + 50);
	if (k->how == BY_KERNEL)
		put_args(m, &k->part[0]);
	if (k->how == BY_OPERATOR)
		add(m, ",\"External id\":%d", id);
	add(m, "}},\n");
}

/* ---- against what is read -------------------------------------------------------------------- */

static bool is_transfer(const struct part *p)
{
	return !strcmp(p->name->text, "recv") || !strcmp(p->name->text, "send");
}

static void is_part(const struct ft_rec_collective *c, const struct part *p)
{
	int most = p->in > p->out ? p->in : p->out;
	bool sends = !strncmp(p->name->text, "send", 4);
	char text[32] = "";

	assert_int_equal(c->op, p->name->op);
	assert_string_equal(c->name, p->name->text);
	assert_int_equal(c->sends, sends);
	if (p->name->op == FT_SENDRECV)
		assert_int_equal(c->peer, sends ? p->to : p->from);
	else
		assert_int_equal(c->peer, FT_REC_NONE);
	if (p->group >= 0)
		snprintf(text, sizeof(text), "g%d", p->group);
	assert_string_equal(c->group, text);
	snprintf(text, sizeof(text), "about %d", p->in);
	assert_string_equal(c->about, p->about ? text : "");
	snprintf(text, sizeof(text), "[0, %d]", p->out);
	assert_string_equal(c->ranks, p->ranks ? text : "");
	assert_int_equal(c->size, p->size > 0 ? p->size : 0);
	assert_string_equal(c->dtype, p->type->dtype);
	near_frac(1 + c->bytes, 1 + (most > 0 ? most : 0) * p->type->bytes, 1e-12);
}

static void is_kernel(const struct ft_recording *r, size_t i, const struct kernel *k)
{
	const struct ft_rec_collective *c =
		ft_recording_collective(r, ft_recording_op(r, i));

	for (int n = 0; n < k->parts; n++, c = c->also) {
		if (!c)
			fail_msg("kernel %zu lacks part %d", i, n);
		is_part(c, &k->part[n]);
	}
	assert_null(c);
}

/* What is asked for on a thread since its launch before is of the next kernel that says nothing
 * itself; that of a kernel whose operator tells it, too, but there it is not asked. */
static void leave_told(struct kernel *kernel, int n)
{
	for (int i = 0; i < n; i++) {
		struct kernel *k = &kernel[i];

		if (k->how == BY_OPERATOR && is_transfer(&k->part[0]))
			k->part[0].name = &names[rnd_below(&seed, 10)];
		for (int p = 0; k->how == BY_CALLS && p < k->parts; p++)
			if (!is_transfer(&k->part[p]))
				k->part[p].name = &names[11];
	}
}

static void collectives_are_as_they_were_told(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct made m = begin(0);
		struct kernel kernel[KERNELS];
		struct ft_recording *r;

		for (int k = 0; k < KERNELS; k++)
			kernel[k] = draw();
		leave_told(kernel, KERNELS);
		for (int k = 0; k < KERNELS; k++)
			put_kernel(&m, &kernel[k], k);
		r = end(&m);
		for (int k = 0; k < KERNELS; k++)
			is_kernel(r, (size_t)k, &kernel[k]);
		ft_recording_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_are_as_they_were_told),
	};
	int status = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(made_path());
	return status;
}
