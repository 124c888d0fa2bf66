/*
 * traces/graph_write.c - a graph as text
 *
 *	graph 1
 *	tokens 8388608
 *	recomputed_flop 0
 *	host ahead
 *	bubble 0.875
 *	group tp size=8 stride=1
 *	work 0 gemm qkv dtype=bf16 layout=forward m=4096 n=1536 k=12288
 *	segment 0 forward.0
 *	  host block_forward 1
 *	  net activations 123
 *	  op work=0 stream=compute launches=1 wait=tail:tp record=unsharded
 *	class stage_0 ranks=512
 *	  base weights 123
 *	  call 0 x32
 *
 * One thing a line; '#' begins a comment. Names hold no blanks. Defaults are left
 * out. Numbers are written so that they read back the same.
 */
#include "base/plain.h"
#include <inttypes.h>

#include "foretoken/traces.h"

static void name(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(*text == ' ' ? '_' : *text, out);
}

static void write_fanout(FILE *out, const struct ft_fanout *f)
{
	if (f->copies > 0)
		fprintf(out, " fanout=%.17g", f->copies);
	if (f->of > 0)
		fprintf(out, " fanout_of=%.17g fanout_groups=%.17g", f->of, f->groups);
}

static void write_memory(FILE *out, const struct ft_work *w)
{
	fprintf(out, " kernel=%s bytes=%.17g", w->memory.kernel, w->memory.bytes);
	if (w->memory.row_bytes > 0)
		fprintf(out, " row_bytes=%.17g", w->memory.row_bytes);
	if (w->memory.steps)
		fprintf(out, " steps=%" PRId64, w->memory.steps);
	if (w->memory.flop > 0)
		fprintf(out, " flop=%.17g", w->memory.flop);
	if (w->memory.warm)
		fputs(" warm=true", out);
	if (w->memory.low_priority)
		fputs(" low_priority=true", out);
}

static void write_work(FILE *out, size_t i, const struct ft_work *w)
{
	fprintf(out, "work %zu %s ", i, ft_work_kind_name(w->kind));
	name(out, w->name);
	fprintf(out, " dtype=%s", ft_dtype_name(w->dtype));
	switch (w->kind) {
	case FT_GEMM:
		fprintf(out, " layout=%s m=%" PRId64 " n=%" PRId64 " k=%" PRId64,
			ft_layout_name(w->gemm.layout), w->gemm.m, w->gemm.n,
			w->gemm.k);
		if (w->gemm.groups > 1)
			fprintf(out, " groups=%" PRId64, w->gemm.groups);
		if (w->gemm.accumulate)
			fputs(" accumulate=true", out);
		if (w->gemm.fast)
			fputs(" fast=true", out);
		if (w->gemm.static_tiles)
			fputs(" static_tiles=true", out);
		break;
	case FT_ATTENTION:
		fprintf(out,
			" pass=%s batch=%" PRId64 " heads=%" PRId64 " kv_heads=%" PRId64
			" queries=%" PRId64 " keys=%" PRId64 " qk_head_dim=%" PRId64
			" v_head_dim=%" PRId64,
			ft_pass_name(w->attention.pass), w->attention.batch,
			w->attention.heads, w->attention.kv_heads, w->attention.queries,
			w->attention.keys, w->attention.qk_head_dim,
			w->attention.v_head_dim);
		if (w->attention.window)
			fprintf(out, " window=%" PRId64, w->attention.window);
		if (w->attention.causal)
			fputs(" causal=true", out);
		if (w->attention.keys_are)
			fprintf(out, " keys_are=%s",
				ft_keys_name(w->attention.keys_are));
		if (w->attention.impl)
			fprintf(out, " impl=%s", w->attention.impl);
		break;
	case FT_MEMORY_BOUND:
		write_memory(out, w);
		break;
	default:
		fprintf(out, " op=%s group=%s bytes=%.17g",
			ft_collective_name(w->communication.op),
			ft_group_name(w->communication.group), w->communication.bytes);
		write_fanout(out, &w->communication.fanout);
		if (w->communication.copy_engine)
			fputs(" copy_engine=true", out);
	}
	putc('\n', out);
}

static void write_op(FILE *out, const struct ft_op *op)
{
	fprintf(out, "  op work=%" PRIu32 " stream=%s", op->work,
		ft_stream_name((enum ft_stream)op->stream));
	if (op->launches)
		fprintf(out, " launches=%d", op->launches);
	if (op->optimizer)
		fputs(" optimizer=true", out);
	if (op->graphed)
		fputs(" graphed=true", out);
	if (op->host_waits)
		fputs(" host_waits=true", out);
	if (op->reverse)
		fputs(" reverse=true", out);
	if (op->record != FT_EVENT_NONE)
		fprintf(out, " record=%s", ft_event_name((enum ft_event)op->record));
	for (int i = 0; i < FT_OP_WAITS; i++) {
		int code = op->wait[i];

		if (code == FT_EVENT_NONE)
			continue;
		if (code < FT_EVENTS)
			fprintf(out, " wait=%s", ft_event_name((enum ft_event)code));
		else
			fprintf(out, " wait=tail:%s",
				ft_stream_name((enum ft_stream)(code - FT_TAIL)));
	}
	putc('\n', out);
}

static void write_bytes(FILE *out, const char *what, const double *bytes)
{
	for (int i = 0; i < FT_MEMORIES; i++)
		if (bytes[i] != 0)
			fprintf(out, "  %s %s %.17g\n", what,
				ft_memory_name((enum ft_memory)i), bytes[i]);
}

/* One line at least: nothing of what stands before is spread behind it. */
static void write_behind(FILE *out, const struct ft_behind *b)
{
	bool any = false;

	for (int h = 0; h < FT_HOSTS; h++)
		if (b->host[h] != 0 || (h == FT_HOSTS - 1 && !any)) {
			fprintf(out, "  behind %s %.17g\n",
				ft_host_name((enum ft_host)h), b->host[h]);
			any = true;
		}
}

static void write_segment(FILE *out, size_t i, const struct ft_segment *s)
{
	fprintf(out, "segment %zu ", i);
	name(out, s->name);
	putc('\n', out);
	for (int h = 0; h < FT_HOSTS; h++)
		if (s->host[h] != 0)
			fprintf(out, "  host %s %.17g\n", ft_host_name((enum ft_host)h),
				s->host[h]);
	write_bytes(out, "net", s->net_bytes);
	write_bytes(out, "peak", s->peak_bytes);
	for (size_t j = 0, k = 0; j <= s->n_ops; j++) {
		for (; k < s->n_behind && s->behind[k].op == j; k++)
			write_behind(out, &s->behind[k]);
		if (j < s->n_ops)
			write_op(out, &s->op[j]);
	}
}

static void write_slot(FILE *out, const struct ft_slot *s)
{
	fprintf(out, "  pass %s", ft_slot_name(s->kind));
	if (s->kind != FT_SLOT_UPDATE)
		fprintf(out, " chunk=%" PRId64 " micro_batch=%" PRId64, s->chunk,
			s->micro_batch);
	putc('\n', out);
}

static void write_class(FILE *out, const struct ft_class *c)
{
	fputs("class ", out);
	name(out, c->name);
	fprintf(out, " ranks=%" PRId64 "\n", c->ranks);
	write_bytes(out, "base", c->base_bytes);
	for (size_t i = 0, k = 0; i < c->n_calls; i++) {
		for (; k < c->n_slots && c->slot[k].call == i; k++)
			write_slot(out, &c->slot[k].slot);
		fprintf(out, "  call %" PRIu32 " x%" PRIu32 "\n", c->call[i].segment,
			c->call[i].repeat);
	}
}

void ft_graph_write(const struct ft_graph *g, FILE *out)
{
	PLAIN_NUMBERS;
	fputs("graph 1\n", out);
	fprintf(out, "tokens %.17g\nrecomputed_flop %.17g\nhost %s\n", g->tokens,
		g->recomputed_flop_per_rank, g->host_runs_ahead ? "ahead" : "waits");
	if (g->bubble_frac > 0)
		fprintf(out, "bubble %.17g\n", g->bubble_frac);
	for (int i = 0; i < FT_GROUPS; i++)
		fprintf(out, "group %s size=%" PRId64 " stride=%" PRId64 "\n",
			ft_group_name((enum ft_group)i), g->group[i].size,
			g->group[i].stride);
	for (size_t i = 0; i < g->n_works; i++)
		write_work(out, i, &g->work[i]);
	for (size_t i = 0; i < g->n_segments; i++)
		write_segment(out, i, &g->segment[i]);
	for (size_t i = 0; i < g->n_classes; i++)
		write_class(out, &g->rank_class[i]);
}
