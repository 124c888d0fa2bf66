/* sim/timeline_kineto.c - a step as PyTorch's profiler would have recorded it */
#include "sim/timeline_kineto.h"

#include <inttypes.h>
#include <math.h>

enum { HOST = 1000 }; /* pid and tid of the host's thread */

static void quoted(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		if ((unsigned char)*text >= 0x20)
			putc(*text, out);
	}
}

static void put_times(FILE *out, ft_ps from, ft_ps to)
{
	fprintf(out, "\"ts\":%" PRId64 ".%06" PRId64 ",\"dur\":%" PRId64 ".%06" PRId64,
		from / 1000000, from % 1000000, (to - from) / 1000000,
		(to - from) % 1000000);
}

void kineto_begin(FILE *out, const char *device, int64_t rank, int64_t ranks)
{
	fputs("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\","
	      "\"deviceProperties\":[{\"id\":0,\"name\":\"",
	      out);
	quoted(out, device);
	fprintf(out,
		"\"}],\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%" PRId64
		",\"world_size\":%" PRId64 "},\"traceEvents\":[\n",
		rank, ranks);
}

/* ---- the host ----------------------------------------------------------------------- */

static void put_call(FILE *out, const char *name, ft_ps from, ft_ps to, uint64_t number)
{
	fprintf(out,
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":%d,"
		"\"tid\":%d,",
		name, HOST, HOST);
	put_times(out, from, to);
	fprintf(out,
		",\"args\":{\"External id\":%" PRIu64 ",\"correlation\":%" PRIu64
		"}},\n",
		number, number);
}

/* An arrow from the launch to the kernel. */
static void put_flow(FILE *out, char phase, int pid, int tid, ft_ps at, uint64_t number)
{
	fprintf(out,
		"{\"ph\":\"%c\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":%" PRIu64
		",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64 ".%06" PRId64 "%s},\n",
		phase, number, pid, tid, at / 1000000, at % 1000000,
		phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static const char *type_of(enum ft_dtype dtype)
{
	return dtype == FT_BF16 ? "c10::BFloat16" :
	       dtype == FT_FP16 ? "c10::Half" :
	       dtype == FT_FP32 ? "float" :
				  "c10::Float8_e4m3fn";
}

/* aten::mm of the layer's product: which side is turned tells its layout. */
static void put_product(FILE *out, const struct kineto_op *op)
{
	const struct ft_work *w = op->work;
	int64_t m = w->gemm.m, n = w->gemm.n, k = w->gemm.k;
	const int64_t dims[FT_LAYOUTS][8] = {
		/* rows, columns, strides of A; the same of B */
		[FT_FORWARD] = { m, k, k, 1, k, n, 1, k },
		[FT_DGRAD] = { m, n, n, 1, n, k, k, 1 },
		[FT_WGRAD] = { n, m, 1, n, m, k, k, 1 },
	};
	const int64_t *d = dims[w->gemm.layout];

	fprintf(out,
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":%d,"
		"\"tid\":%d,",
		HOST, HOST);
	put_times(out, op->launched, op->launched);
	fprintf(out,
		",\"args\":{\"External id\":%" PRIu64 ",\"Input Dims\":[[%" PRId64
		",%" PRId64 "],[%" PRId64 ",%" PRId64 "]],\"Input Strides\":[[%" PRId64
		",%" PRId64 "],[%" PRId64 ",%" PRId64
		"]],\"Input type\":[\"%s\",\"%s\"]}},\n",
		op->number, d[0], d[1], d[4], d[5], d[2], d[3], d[6], d[7],
		type_of(w->dtype), type_of(w->dtype));
}

/* ---- the GPU -------------------------------------------------------------------------- */

static void put_group(FILE *out, const struct kineto_op *op)
{
	enum ft_group group = op->work->communication.group;
	const struct ft_group_shape *g = &op->graph->group[group];
	bool stages = group == FT_GROUP_PP;
	int64_t size = stages ? (int64_t)op->graph->n_classes : g->size;
	int64_t first = op->rank - op->rank / g->stride % size * g->stride;

	if (!stages && op->work->communication.op == FT_SENDRECV)
		size = 2; /* of an exchange with neighbours */
	fprintf(out,
		"\"Group size\":%" PRId64
		",\"dtype\":\"%s\",\"Process Group Name\":\"%d\","
		"\"Process Group Description\":\"%s\",\"Process Group Ranks\":"
		"\"[%" PRId64 ", %" PRId64 ", ...]\"",
		size,
		op->work->dtype == FT_BF16 ? "BFloat16" :
		op->work->dtype == FT_FP16 ? "Half" :
		op->work->dtype == FT_FP32 ? "Float" :
					     "Float8_e4m3fn",
		(int)group, ft_group_name(group), first, first + g->stride);
}

static bool receives(const struct kineto_op *op)
{
	return op->stream % KINETO_OTHER_SIDE == FT_STREAM_RECV_FORWARD ||
	       op->stream % KINETO_OTHER_SIDE == FT_STREAM_RECV_BACKWARD;
}

static void put_collective(FILE *out, const struct kineto_op *op)
{
	static const struct {
		const char *name;
		bool gathers, scatters;
	} as[FT_COLLECTIVES] = {
		[FT_ALL_REDUCE] = { "allreduce", false, false },
		[FT_ALL_GATHER] = { "_allgather_base", true, false },
		[FT_REDUCE_SCATTER] = { "_reduce_scatter_base", false, true },
		[FT_ALL_TO_ALL] = { "all_to_all", false, false },
		[FT_BROADCAST] = { "broadcast", false, false },
		[FT_SENDRECV] = { "send", false, false },
	};
	const struct ft_work *w = op->work;
	const struct ft_group_shape *g = &op->graph->group[w->communication.group];
	double elements = w->communication.bytes / ft_dtype_bytes(w->dtype);
	double part = g->size > 1 ? elements / (double)g->size : elements;

	fprintf(out,
		",\"Collective name\":\"%s\",\"In msg nelems\":%.0f,"
		"\"Out msg nelems\":%.0f,",
		receives(op) ? "recv" : as[w->communication.op].name,
		as[w->communication.op].gathers ? round(part) : round(elements),
		as[w->communication.op].scatters ? round(part) : round(elements));
	if (w->communication.group == FT_GROUP_PP)
		fprintf(out, "\"%s Rank\":%" PRId64 ",", receives(op) ? "Src" : "Dst",
			op->peer);
	put_group(out, op);
}

static const char *kind_of(const struct kineto_op *op)
{
	return op->optimizer			  ? "optimizer" :
	       op->work->kind == FT_COMMUNICATION ? "nccl" :
						    ft_work_kind_name(op->work->kind);
}

static void put_name(FILE *out, const struct kineto_op *op)
{
	if (ft_work_is_host_copy(op->work)) {
		fprintf(out,
			"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy %s\"",
			op->stream == FT_STREAM_OFFLOAD ? "DtoH (Device -> Pinned)" :
							  "HtoD (Pinned -> Device)");
		return;
	}
	fprintf(out, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"foretoken::%s<",
		kind_of(op));
	quoted(out, op->work->name);
	fputs(">\"", out);
}

void kineto_put(FILE *out, const struct kineto_op *op)
{
	bool copies = ft_work_is_host_copy(op->work);

	if (op->work->kind == FT_GEMM && op->work->gemm.groups <= 1)
		put_product(out, op);
	put_call(out, copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", op->launched,
		 op->launched, op->number);
	put_flow(out, 's', HOST, HOST, op->launched, op->number);
	put_flow(out, 'f', 0, op->stream, op->from, op->number);
	put_name(out, op);
	fprintf(out, ",\"pid\":0,\"tid\":%d,", op->stream);
	put_times(out, op->from, op->to);
	fprintf(out,
		",\"args\":{\"External id\":%" PRIu64 ",\"device\":0,\"stream\":%d,"
		"\"correlation\":%" PRIu64,
		op->number, op->stream, op->number);
	if (copies)
		fprintf(out, ",\"bytes\":%.0f", op->work->memory.bytes);
	if (op->work->kind == FT_COMMUNICATION)
		put_collective(out, op);
	else if (op->pass)
		fprintf(out,
			",\"Pass\":\"%s\",\"Layer\":%" PRId64
			",\"Micro-batch\":%" PRId64,
			op->pass, op->layer, op->micro_batch);
	fputs("}},\n", out);
}

void kineto_put_pass(FILE *out, const struct kineto_pass *pass)
{
	fprintf(out,
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
		"\"PP:%" PRId64 "%c%" PRId64 "\",\"pid\":%d,\"tid\":%d,",
		pass->place, pass->letter, pass->micro_batch, HOST, HOST);
	put_times(out, pass->from, pass->to);
	fprintf(out, ",\"args\":{\"External id\":%" PRIu64 "}},\n", pass->number);
}

void kineto_put_wait(FILE *out, ft_ps from, ft_ps to, uint64_t number)
{
	put_call(out, "cudaStreamSynchronize", from, to, number);
}

void kineto_end(FILE *out, ft_ps last, ft_ps end, uint64_t number)
{
	put_call(out, "cudaDeviceSynchronize", last, end, number);
	fprintf(out,
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
		"\"ProfilerStep#0\",\"pid\":%d,\"tid\":%d,",
		HOST, HOST);
	put_times(out, 0, end);
	fprintf(out, ",\"args\":{\"External id\":%" PRIu64 "}}\n]}\n", number + 1);
}
