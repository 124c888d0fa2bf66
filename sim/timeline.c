/* sim/timeline.c - Chrome trace events, one a line */
#include "sim/timeline.h"

#include <inttypes.h>

static void quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		if ((unsigned char)*text >= 0x20)
			putc(*text, out);
	}
	putc('"', out);
}

static void microseconds(FILE *out, ft_ps t)
{
	fprintf(out, "%" PRId64 ".%06" PRId64, t / 1000000, t % 1000000);
}

void timeline_begin(FILE *out)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
}

/* A row's name, and where it stands among the others. */
static void name_row(FILE *out, size_t part, int row, const char *name, int place)
{
	fprintf(out,
		"{\"ph\":\"M\",\"pid\":%zu,\"tid\":%d,\"ts\":0,"
		"\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n"
		"{\"ph\":\"M\",\"pid\":%zu,\"tid\":%d,\"ts\":0,"
		"\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}},\n",
		part, row, name, part, row, place);
}

void timeline_part(FILE *out, size_t part, const char *name, bool folded)
{
	fprintf(out,
		"{\"ph\":\"M\",\"pid\":%zu,\"tid\":0,\"ts\":0,"
		"\"name\":\"process_name\",\"args\":{\"name\":",
		part);
	quoted(out, name);
	fputs("}},\n", out);
	name_row(out, part, TIMELINE_PHASE, "phase", 0);
	name_row(out, part, TIMELINE_HOST, "host", 1);
	for (int s = 0; s < FT_STREAMS; s++)
		name_row(out, part, s, ft_stream_name((enum ft_stream)s), 2 + s);
	if (!folded)
		return;
	name_row(out, part, TIMELINE_FOLDED + FT_STREAM_RECV_FORWARD,
		 "recv_forward, second half", 2 + FT_STREAMS);
	name_row(out, part, TIMELINE_FOLDED + FT_STREAM_RECV_BACKWARD,
		 "recv_backward, second half", 3 + FT_STREAMS);
}

/* A slice up to its arguments. */
static void begin_slice(FILE *out, size_t part, int row, ft_ps from, ft_ps to)
{
	fprintf(out, "{\"ph\":\"X\",\"pid\":%zu,\"tid\":%d,\"ts\":", part, row);
	microseconds(out, from);
	fputs(",\"dur\":", out);
	microseconds(out, to - from);
	fputs(",\"name\":", out);
}

/* Arguments that tell where a call stands. */
static void put_place(FILE *out, const struct timeline_place *p)
{
	fputs("\"segment\":", out);
	quoted(out, p->segment);
	if (p->pass)
		fprintf(out, ",\"pass\":\"%s\"", p->pass);
	if (p->pass && p->micro_batch >= 0)
		fprintf(out, ",\"micro_batch\":%" PRId64 ",\"layer\":%" PRId64,
			p->micro_batch, p->layer);
}

static void describe(FILE *out, const struct ft_work *w)
{
	switch (w->kind) {
	case FT_GEMM:
		fprintf(out,
			",\"layout\":\"%s\",\"m\":%" PRId64 ",\"n\":%" PRId64
			",\"k\":%" PRId64,
			ft_layout_name(w->gemm.layout), w->gemm.m, w->gemm.n,
			w->gemm.k);
		break;
	case FT_COMMUNICATION:
		fprintf(out, ",\"op\":\"%s\",\"group\":\"%s\",\"bytes\":%.0f",
			ft_collective_name(w->communication.op),
			ft_group_name(w->communication.group), w->communication.bytes);
		break;
	default:
		fprintf(out, ",\"bytes\":%.0f", ft_work_bytes(w));
	}
}

void timeline_op(FILE *out, const struct timeline_op *op)
{
	begin_slice(out, op->part, op->stream, op->from, op->to);
	quoted(out, op->work->name);
	fprintf(out, ",\"cat\":\"%s\",\"args\":{", ft_work_kind_name(op->work->kind));
	put_place(out, op->place);
	fprintf(out, ",\"dtype\":\"%s\"", ft_dtype_name(op->work->dtype));
	describe(out, op->work);
	fputs("}},\n", out);
}

void timeline_call(FILE *out, size_t part, const struct timeline_place *place,
		   ft_ps from, ft_ps to)
{
	begin_slice(out, part, TIMELINE_HOST, from, to);
	quoted(out, place->segment);
	fputs(",\"cat\":\"host\",\"args\":{", out);
	put_place(out, place);
	fputs("}},\n", out);
}

void timeline_phase(FILE *out, size_t part, const char *phase, ft_ps from, ft_ps to)
{
	begin_slice(out, part, TIMELINE_PHASE, from, to);
	quoted(out, phase);
	fputs(",\"cat\":\"phase\",\"args\":{}},\n", out);
}

static void put_end(FILE *out, char phase, const char *what, uint64_t id,
		    const struct timeline_end *e)
{
	fprintf(out,
		"{\"ph\":\"%c\",\"cat\":\"%s\",\"name\":\"%s\",\"id\":%" PRIu64
		",\"pid\":%zu,\"tid\":%d,\"ts\":",
		phase, what, what, id, e->part, e->row);
	microseconds(out, e->at);
	fputs(phase == 'f' ? ",\"bp\":\"e\"},\n" : "},\n", out);
}

void timeline_flow(FILE *out, const char *what, uint64_t id,
		   const struct timeline_end *from, const struct timeline_end *to)
{
	put_end(out, 's', what, id, from);
	put_end(out, 'f', what, id, to);
}

static void begin_counter(FILE *out, size_t part, ft_ps at, const char *name)
{
	fprintf(out, "{\"ph\":\"C\",\"pid\":%zu,\"tid\":0,\"ts\":", part);
	microseconds(out, at);
	fprintf(out, ",\"name\":\"%s\",\"args\":{", name);
}

void timeline_memory(FILE *out, size_t part, ft_ps at, const double bytes[FT_MEMORIES])
{
	begin_counter(out, part, at, "memory, bytes");
	for (int m = 0; m < FT_MEMORIES; m++)
		fprintf(out, "%s\"%s\":%.0f", m ? "," : "",
			ft_memory_name((enum ft_memory)m), bytes[m]);
	fputs("}},\n", out);
}

void timeline_links(FILE *out, size_t part, ft_ps at, double port_frac, double nic_frac)
{
	begin_counter(out, part, at, "links in use, %");
	fprintf(out, "\"scale-up port\":%.2f,\"NIC\":%.2f}},\n", 100 * port_frac,
		100 * nic_frac);
}

void timeline_power(FILE *out, size_t part, ft_ps at, double watts)
{
	begin_counter(out, part, at, "power, W");
	fprintf(out, "\"GPU\":%.1f}},\n", watts);
}

void timeline_finish(FILE *out, ft_ps end)
{
	fputs("{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"ts\":0,\"name\":"
	      "\"process_sort_index\",\"args\":{\"sort_index\":0}}\n],"
	      "\"otherData\":{\"step_us\":\"",
	      out);
	microseconds(out, end);
	fputs("\"}}\n", out);
}
