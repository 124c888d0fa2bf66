/*
 * recorded/collective.c - what a recorded collective was, from its arguments
 *
 * nccl-tests counts the whole gathered, or scattered, message. Send and receive tell
 * only their own elements; a kernel may do several of them at once.
 */
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "recorded/recording.h"

static const struct {
	const char *begin;
	enum ft_collective op;
} ops[] = {
	{ "allreduce", FT_ALL_REDUCE },
	{ "all_reduce", FT_ALL_REDUCE },
	{ "_allgather_base", FT_ALL_GATHER },
	{ "allgather", FT_ALL_GATHER },
	{ "all_gather", FT_ALL_GATHER },
	{ "_reduce_scatter_base", FT_REDUCE_SCATTER },
	{ "reduce_scatter", FT_REDUCE_SCATTER },
	{ "all_to_all", FT_ALL_TO_ALL },
	{ "alltoall", FT_ALL_TO_ALL },
	{ "broadcast", FT_BROADCAST },
	{ "send", FT_SENDRECV },
	{ "recv", FT_SENDRECV },
};

/* An element by the profiler's name of it: bytes and, if it is one of ours, format. */
static const struct element {
	const char *name;
	double bytes;
	const char *dtype;
} elements[] = {
	{ "BFloat16", 2, "bf16" },
	{ "c10::BFloat16", 2, "bf16" },
	{ "Half", 2, "fp16" },
	{ "c10::Half", 2, "fp16" },
	{ "Float8_e4m3fn", 1, "fp8" },
	{ "Float8_e4m3fnuz", 1, "fp8" },
	{ "Float8_e5m2", 1, "fp8" },
	{ "Float", 4, "fp32" },
	{ "float", 4, "fp32" },
	{ "Double", 8, "" },
	{ "Long", 8, "" },
	{ "Int", 4, "" },
	{ "Short", 2, "" },
	{ "Byte", 1, "" },
	{ "Char", 1, "" },
	{ "Bool", 1, "" },
	{ "", 0, "" },
};

static const struct element *element_of(const char *type)
{
	const struct element *e = elements;

	while (e->bytes > 0 && (!type || strcmp(type, e->name)))
		e++;
	return e;
}

static const char *text_in(struct ft_recording *r, const json_t *args, const char *key)
{
	const char *text = json_string_value(json_object_get(args, key));

	return text ? arena_text(&r->mem, text) : "";
}

static double number_in(const json_t *args, const char *key)
{
	double v = json_number_value(json_object_get(args, key));

	return v > 0 && v < 1e15 ? v : 0;
}

/* Send and receive name the other end alone. */
static int64_t peer_in(const json_t *args, bool sends)
{
	const json_t *peer = json_object_get(args, sends ? "Dst Rank" : "Src Rank");

	return json_is_integer(peer) && json_integer_value(peer) >= 0 ?
		       json_integer_value(peer) :
		       FT_REC_NONE;
}

static enum ft_collective op_named(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (text_begins_with(name, ops[i].begin))
			return ops[i].op;
	return FT_COLLECTIVES;
}

static struct ft_rec_collective *read_one(struct ft_recording *r, const json_t *args)
{
	const char *name = json_string_value(json_object_get(args, "Collective name"));
	struct ft_rec_collective *c;
	const struct element *e;
	double in, out;

	if (!name)
		return NULL;
	c = ARENA_NEW(&r->mem, struct ft_rec_collective);
	c->op = op_named(name);
	c->name = arena_text(&r->mem, name);
	c->sends = c->op == FT_SENDRECV && text_begins_with(name, "send");
	c->peer = c->op == FT_SENDRECV ? peer_in(args, c->sends) : FT_REC_NONE;
	c->group = text_in(r, args, "Process Group Name");
	c->about = text_in(r, args, "Process Group Description");
	c->ranks = text_in(r, args, "Process Group Ranks");
	c->size = (int64_t)number_in(args, "Group size");
	e = element_of(json_string_value(json_object_get(args, "dtype")));
	c->dtype = e->dtype;
	in = number_in(args, "In msg nelems");
	out = number_in(args, "Out msg nelems");
	c->bytes = (in > out ? in : out) * e->bytes;
	return c;
}

/* One, or a list of sends and receives. */
static struct ft_rec_collective *read_args(struct ft_recording *r, int32_t text)
{
	json_t *args = json_loads(ft_recording_text(r, text), 0, NULL);
	size_t n = json_is_array(args) ? json_array_size(args) : 1;
	struct ft_rec_collective *first = NULL, **next = &first;

	for (size_t i = 0; i < n; i++) {
		*next = read_one(r,
				 json_is_array(args) ? json_array_get(args, i) : args);
		if (*next)
			next = &(*next)->also;
	}
	json_decref(args);
	return first;
}

static int32_t args_of(const struct ft_recording *r, const struct ft_rec_op *op)
{
	const struct ft_rec_span *o;

	if (op->args != FT_REC_NONE)
		return op->args;
	o = ft_recording_operator(r, op);
	return o ? o->args : FT_REC_NONE;
}

void recording_collectives(struct ft_recording *r)
{
	recording_transfers(r);
	r->n_collective = r->texts.text.n;
	r->collective =
		ARENA_ARRAY(&r->mem, r->n_collective, struct ft_rec_collective *);
	for (size_t i = 0; i < r->op.n; i++) {
		const struct ft_rec_op *op = op_of(r, i);
		int32_t args;

		if (op->rec_class != FT_REC_COLLECTIVE)
			continue;
		args = args_of(r, op);
		if (args != FT_REC_NONE && !r->collective[args])
			r->collective[args] = read_args(r, args);
	}
}

const struct ft_rec_collective *ft_recording_collective(const struct ft_recording *r,
							const struct ft_rec_op *op)
{
	int32_t args =
		op->rec_class == FT_REC_COLLECTIVE ? args_of(r, op) : FT_REC_NONE;

	return args == FT_REC_NONE ? NULL : r->collective[args];
}

/* What is in the names of kernels. A kernel that sends and receives may be any exchange. */
static const struct {
	const char *part;
	enum ft_collective op;
} kernels[] = {
	{ "AllReduce", FT_ALL_REDUCE },
	{ "all_reduce", FT_ALL_REDUCE },
	{ "allreduce", FT_ALL_REDUCE },
	{ "cross_device_reduce", FT_ALL_REDUCE },
	{ "AllGather", FT_ALL_GATHER },
	{ "all_gather", FT_ALL_GATHER },
	{ "allgather", FT_ALL_GATHER },
	{ "ReduceScatter", FT_REDUCE_SCATTER },
	{ "reduce_scatter", FT_REDUCE_SCATTER },
	{ "AllToAll", FT_ALL_TO_ALL },
	{ "all_to_all", FT_ALL_TO_ALL },
	{ "Broadcast", FT_BROADCAST },
};

enum ft_collective ft_recording_collective_op(const struct ft_recording *r,
					      const struct ft_rec_op *op)
{
	const struct ft_rec_collective *c = ft_recording_collective(r, op);

	if (c && c->op != FT_COLLECTIVES)
		return c->op;
	if (op->rec_class != FT_REC_COLLECTIVE)
		return FT_COLLECTIVES;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (strstr(ft_recording_text(r, op->name), kernels[i].part))
			return kernels[i].op;
	return FT_COLLECTIVES;
}
