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

void timeline_part(FILE *out, size_t part, const char *name)
{
	fprintf(out,
		"{\"ph\":\"M\",\"pid\":%zu,\"tid\":0,\"ts\":0,"
		"\"name\":\"process_name\",\"args\":{\"name\":",
		part);
	quoted(out, name);
	fputs("}},\n", out);
	for (int s = 0; s < FT_STREAMS; s++)
		fprintf(out,
			"{\"ph\":\"M\",\"pid\":%zu,\"tid\":%d,\"ts\":0,"
			"\"name\":\"thread_name\",\"args\":{\"name\":"
			"\"%s\"}},\n",
			part, s, ft_stream_name((enum ft_stream)s));
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

void timeline_op(FILE *out, const struct ft_work *work, size_t part, int stream,
		 ft_ps from, ft_ps to)
{
	static const char *const kinds[] = { "gemm", "attention", "memory",
					     "communication" };

	fprintf(out, "{\"ph\":\"X\",\"pid\":%zu,\"tid\":%d,\"ts\":", part, stream);
	microseconds(out, from);
	fputs(",\"dur\":", out);
	microseconds(out, to - from);
	fputs(",\"name\":", out);
	quoted(out, work->name);
	fprintf(out, ",\"cat\":\"%s\",\"args\":{\"dtype\":\"%s\"", kinds[work->kind],
		ft_dtype_name(work->dtype));
	describe(out, work);
	fputs("}},\n", out);
}

void timeline_end(FILE *out, ft_ps end)
{
	fputs("{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"ts\":0,\"name\":"
	      "\"process_sort_index\",\"args\":{\"sort_index\":0}}\n],"
	      "\"otherData\":{\"step_us\":\"",
	      out);
	microseconds(out, end);
	fputs("\"}}\n", out);
}
