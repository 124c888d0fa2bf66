/* sim/program.c - segments into pieces, calls into passes */
#include "sim/program.h"

#include <string.h>

#include "base/arena.h"

/* ---- pieces ---------------------------------------------------------------------- */

/* What the ops of a piece so far have put on each stream. */
struct laid {
	uint32_t n[FT_STREAMS];
	bool held[FT_STREAMS]; /* the last op of it waits for compute */
	struct piece_wait event[FT_EVENTS];
	bool event_held[FT_EVENTS];
};

static void lay_nothing(struct laid *l)
{
	*l = (struct laid){ .n = { 0 } };
	for (uint32_t i = 0; i < FT_EVENTS; i++)
		l->event[i] = (struct piece_wait){ PIECE_EVENT, i };
	l->held[FT_STREAM_COMPUTE] = true; /* what runs ahead of the piece */
}

static struct piece_wait wait_for(const struct laid *l, uint8_t code, bool *held)
{
	uint8_t stream = (uint8_t)(code - FT_TAIL);

	if (code < FT_EVENTS) {
		*held |= l->event_held[code];
		return l->event[code];
	}
	*held |= l->held[stream];
	return (struct piece_wait){ stream, l->n[stream] };
}

static void lay_op(struct piece *p, struct laid *l, const struct ft_op *op,
		   uint32_t place, struct arena *mem)
{
	struct piece_op *to = &p->op[p->begin[op->stream] + l->n[op->stream]];
	bool held = l->held[op->stream];
	struct piece_wait wait[FT_OP_WAITS], *kept;
	uint32_t n = 0;

	for (; n < FT_OP_WAITS && op->wait[n] != FT_EVENT_NONE; n++) {
		wait[n] = wait_for(l, op->wait[n], &held);
		if (is_receive(wait[n].stream))
			p->awaits |= 1u << wait[n].stream;
	}
	kept = ARENA_ARRAY(mem, n, struct piece_wait);
	memcpy(kept, wait, n * sizeof(*kept));
	*to = (struct piece_op){ op, kept, n, place };
	l->n[op->stream]++;
	l->held[op->stream] = held;
	if (!held && !is_receive(op->stream)) {
		p->free |= 1u << op->stream;
		p->free_to[op->stream] = l->n[op->stream];
	}
	p->host_waits |= op->host_waits;
	if (op->record < FT_EVENTS) {
		l->event[op->record] =
			(struct piece_wait){ op->stream, l->n[op->stream] };
		l->event_held[op->record] = held;
	}
}

/* Ops [from, to) of a segment. */
static void lay_piece(struct piece *p, const struct ft_segment *seg, size_t from,
		      size_t to, struct arena *mem)
{
	struct laid l;

	lay_nothing(&l);
	*p = (struct piece){ .op = ARENA_ARRAY(mem, to - from, struct piece_op),
			     .last = (uint32_t)to - 1 };
	for (size_t i = from; i < to; i++) {
		p->begin[seg->op[i].stream + 1]++;
		p->streams |= 1u << seg->op[i].stream;
	}
	for (int s = 0; s < FT_STREAMS; s++)
		p->begin[s + 1] += p->begin[s];
	for (size_t i = from; i < to; i++)
		lay_op(p, &l, &seg->op[i], (uint32_t)i, mem);
	for (int i = 0; i < FT_EVENTS; i++) {
		p->record_stream[i] = l.event[i].stream;
		p->record[i] = l.event[i].after;
	}
}

static void lay_segments(struct program *p, const struct ft_graph *g, struct arena *mem)
{
	size_t n = 0;

	p->begin = ARENA_ARRAY(mem, g->n_segments + 1, size_t);
	for (size_t s = 0; s < g->n_segments; s++) {
		p->begin[s] = n;
		for (size_t i = 0; i < g->segment[s].n_ops; i++)
			n += g->segment[s].op[i].host_waits ||
			     i + 1 == g->segment[s].n_ops;
	}
	p->begin[g->n_segments] = n;
	p->piece = ARENA_ARRAY(mem, n, struct piece);
	n = 0;
	for (size_t s = 0; s < g->n_segments; s++) {
		const struct ft_segment *seg = &g->segment[s];
		size_t from = 0;

		for (size_t i = 0; i < seg->n_ops; i++)
			if (seg->op[i].host_waits || i + 1 == seg->n_ops) {
				lay_piece(&p->piece[n++], seg, from, i + 1, mem);
				p->waits |= seg->op[i].host_waits;
				p->waits_elsewhere |=
					seg->op[i].host_waits &&
					seg->op[i].stream != FT_STREAM_COMPUTE;
				from = i + 1;
			}
	}
}

/* ---- passes ---------------------------------------------------------------------- */

/* Kinds of passes found so far, by a hash of their calls. */
struct kinds {
	const struct ft_call **call; /* [cap] of the first of a kind; NULL: free */
	size_t *n_calls;
	uint32_t *kind;
	size_t cap;
	uint32_t n;
};

static size_t hash_of(const struct ft_call *call, size_t n)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ call[i].segment) * 1099511628211u;
		h = (h ^ call[i].repeat) * 1099511628211u;
	}
	return (size_t)(h ^ h >> 32);
}

static uint32_t kind_of(struct kinds *k, const struct ft_call *call, size_t n)
{
	size_t at = hash_of(call, n) & (k->cap - 1);

	while (k->call[at] && (k->n_calls[at] != n ||
			       memcmp(k->call[at], call, n * sizeof(*call)) != 0))
		at = (at + 1) & (k->cap - 1);
	if (!k->call[at]) {
		k->call[at] = call;
		k->n_calls[at] = n;
		k->kind[at] = k->n++;
	}
	return k->kind[at];
}

static struct kinds kinds_for(const struct ft_graph *g, struct arena *mem)
{
	struct kinds k = { .cap = 16 };
	size_t n = 0;

	for (size_t c = 0; c < g->n_classes; c++)
		n += g->rank_class[c].n_slots;
	while (k.cap < 2 * n)
		k.cap *= 2;
	k.call = ARENA_ARRAY(mem, k.cap, const struct ft_call *);
	k.n_calls = ARENA_ARRAY(mem, k.cap, size_t);
	k.kind = ARENA_ARRAY(mem, k.cap, uint32_t);
	return k;
}

static uint32_t streams_of(const struct program *p, const struct ft_call *call)
{
	uint32_t streams = 0;

	for (size_t i = p->begin[call->segment]; i < p->begin[call->segment + 1]; i++)
		streams |= p->piece[i].streams;
	return streams;
}

static bool computes(const struct program *p, const struct ft_call *call)
{
	return streams_of(p, call) >> FT_STREAM_COMPUTE & 1;
}

/* Compute ops of one call of it. */
static double compute_ops(const struct program *p, const struct ft_call *call)
{
	double n = 0;

	for (size_t i = p->begin[call->segment]; i < p->begin[call->segment + 1]; i++)
		n += p->piece[i].begin[FT_STREAM_COMPUTE + 1];
	return n * call->repeat;
}

/* Ops that may start before the compute launched ahead of their call is over: with those of
 * the calls before it, so many of each stream are to be over. */
struct free_call {
	size_t call;
	uint32_t to[FT_STREAMS];
};

/* A class while its passes are looked for. */
struct looked {
	const struct program *program;
	const struct ft_class *class;
	double *before;		/* [n_calls + 1] compute ops of the calls before */
	struct free_call *free; /* [n_free] calls with such ops */
	size_t n_free, cap_free;
	double depth;
};

/* Ops of a stream in one call. */
static uint32_t ops_of(const struct program *p, const struct ft_call *call, int stream)
{
	uint32_t n = 0;

	for (size_t i = p->begin[call->segment]; i < p->begin[call->segment + 1]; i++)
		n += p->piece[i].begin[stream + 1] - p->piece[i].begin[stream];
	return n;
}

/* Where the last free op of a stream stands among those of one call; 0: it has none. */
static uint32_t free_in(const struct program *p, const struct ft_call *call, int stream)
{
	uint32_t n = 0, to = 0;

	for (size_t i = p->begin[call->segment]; i < p->begin[call->segment + 1]; i++) {
		const struct piece *piece = &p->piece[i];

		if (piece->free >> stream & 1)
			to = n + piece->free_to[stream];
		n += piece->begin[stream + 1] - piece->begin[stream];
	}
	return to;
}

static struct free_call *next_free(struct looked *l, struct arena *mem)
{
	if (l->n_free == l->cap_free)
		l->free = ARENA_GROW(mem, l->free, &l->cap_free);
	l->n_free++;
	return &l->free[l->n_free - 1];
}

/* Of all the calls, on streams that have any. */
static void find_free(struct looked *l, uint32_t streams, struct arena *mem)
{
	const struct program *p = l->program;
	uint32_t launched[FT_STREAMS] = { 0 };
	struct free_call so_far = { 0 };

	for (size_t i = 0; streams && i < l->class->n_calls; i++) {
		const struct ft_call *call = &l->class->call[i];
		bool any = false;

		for (uint32_t left = streams; left; left &= left - 1) {
			int s = __builtin_ctz(left);
			uint32_t to = free_in(p, call, s), each = ops_of(p, call, s);

			if (to)
				so_far.to[s] =
					launched[s] + (call->repeat - 1) * each + to;
			launched[s] += call->repeat * each;
			any |= to > 0;
		}
		so_far.call = i;
		if (any)
			*next_free(l, mem) = so_far;
	}
}

static uint32_t free_streams(const struct program *p, size_t n_pieces)
{
	uint32_t streams = 0;

	for (size_t i = 0; i < n_pieces; i++)
		streams |= p->piece[i].free;
	return streams;
}

static struct looked look_at(const struct program *p, const struct ft_class *c,
			     uint32_t depth, struct arena *mem)
{
	struct looked l = { p, c,    ARENA_ARRAY(mem, c->n_calls + 1, double), NULL, 0,
			    0, depth };

	for (size_t i = 0; i < c->n_calls; i++)
		l.before[i + 1] = l.before[i] + compute_ops(p, &c->call[i]);
	return l;
}

/* The last call with free ops that may be launched by the end of the pass: the host launches
 * a call once it is no more than `depth` compute ops ahead. NULL: none that is not over when
 * the pass begins. */
static const uint32_t *free_to(const struct looked *l, const struct program_pass *pass)
{
	double reach = l->before[pass->last + 1] + l->depth;
	size_t low = 0, high = l->n_free; /* the answer is the one before low */

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->before[l->free[mid].call] <= reach)
			low = mid + 1;
		else
			high = mid;
	}
	return low && l->free[low - 1].call >= pass->first ? l->free[low - 1].to : NULL;
}

static bool receives(const struct looked *l, const struct program_pass *pass)
{
	for (size_t i = pass->first; i <= pass->last; i++)
		if (streams_of(l->program, &l->class->call[i]) & RECEIVES)
			return true;
	return false;
}

/* The calls of a mark, [from, to), that compute; false: none. */
static bool find_pass(const struct looked *l, size_t from, size_t to,
		      struct program_pass *pass)
{
	const struct ft_call *call = l->class->call;

	while (from < to && !computes(l->program, &call[from]))
		from++;
	while (from < to && !computes(l->program, &call[to - 1]))
		to--;
	if (from == to)
		return false;
	*pass = (struct program_pass){ .first = from, .last = to - 1 };
	for (size_t i = from; i < to; i++)
		for (size_t k = l->program->begin[call[i].segment];
		     k < l->program->begin[call[i].segment + 1]; k++)
			pass->awaits |= l->program->piece[k].awaits;
	pass->receives = receives(l, pass);
	pass->free_to = free_to(l, pass);
	return true;
}

static void find_passes(const struct looked *l, struct program_class *to,
			struct kinds *kinds, struct arena *mem)
{
	const struct ft_class *c = l->class;
	uint32_t n = 0;

	to->pass_of = ARENA_ARRAY(mem, c->n_calls, uint32_t);
	to->pass = ARENA_ARRAY(mem, c->n_slots, struct program_pass);
	for (size_t i = 0; i < c->n_calls; i++)
		to->pass_of[i] = NO_PASS;
	for (size_t i = 0; i < c->n_slots; i++) {
		size_t end = i + 1 < c->n_slots ? c->slot[i + 1].call : c->n_calls;
		size_t ahead = i + 3 < c->n_slots ? c->slot[i + 3].call : c->n_calls;
		struct program_pass *pass = &to->pass[n];

		if (!find_pass(l, c->slot[i].call, end, pass))
			continue;
		pass->kind = kind_of(kinds, &c->call[pass->first],
				     pass->last - pass->first + 1);
		pass->ahead = hash_of(&c->call[pass->last + 1], ahead - pass->last - 1);
		for (size_t k = pass->first; !pass->receives && k <= pass->last; k++)
			to->pass_of[k] = n;
		n++;
	}
}

static void count_launches(const struct looked *l, struct program_class *to,
			   struct arena *mem)
{
	const struct ft_class *c = l->class;

	to->launches = ARENA_ARRAY(mem, c->n_calls + 1, uint32_t);
	for (size_t i = 0; i < c->n_calls; i++) {
		const size_t *begin = &l->program->begin[c->call[i].segment];

		to->launches[i + 1] =
			to->launches[i] +
			(uint32_t)(begin[1] - begin[0]) * c->call[i].repeat;
	}
}

struct program *program_of(const struct ft_graph *g, uint32_t depth, struct arena *mem)
{
	struct program *p = ARENA_NEW(mem, struct program);
	struct kinds kinds = kinds_for(g, mem);
	uint32_t streams;

	lay_segments(p, g, mem);
	streams = free_streams(p, p->begin[g->n_segments]);
	p->of = ARENA_ARRAY(mem, g->n_classes, struct program_class);
	for (size_t c = 0; c < g->n_classes; c++) {
		struct looked l = look_at(p, &g->rank_class[c], depth, mem);

		if (c && g->rank_class[c].call == g->rank_class[c - 1].call) {
			p->of[c] = p->of[c - 1];
			continue;
		}
		find_free(&l, streams, mem);
		find_passes(&l, &p->of[c], &kinds, mem);
		count_launches(&l, &p->of[c], mem);
	}
	return p;
}
