/* tests/test_program.c - pieces and passes of drawn programs, each found in the obvious way */
#include "base/arena.h"
#include "sim/program.h"
#include "tests/check.h"

enum { SEGMENTS = 6, OPS = 6, CLASSES = 3, CALLS = 120, SLOTS = 60, DEPTH_MOST = 40 };

struct drawn {
	struct ft_graph g;
	struct ft_segment segment[SEGMENTS];
	struct ft_op op[SEGMENTS][OPS];
	struct ft_class class[CLASSES];
	struct ft_call call[CLASSES][CALLS];
	struct ft_slot_mark slot[CLASSES][SLOTS];
};

/* ---- drawn ---------------------------------------------------------------------------------- */

static int any_stream(uint64_t *seed)
{
	static const int some[] = { FT_STREAM_COMPUTE, FT_STREAM_COMPUTE,
				    FT_STREAM_GATHER, FT_STREAM_REDUCE,
				    FT_STREAM_RECV_FORWARD };

	return some[rnd(seed) % 5];
}

static void any_op(struct ft_op *op, uint64_t *seed)
{
	size_t n = rnd(seed) % 3;

	*op = (struct ft_op){ .stream = (uint8_t)any_stream(seed),
			      .host_waits = rnd(seed) % 8 == 0,
			      .record = rnd(seed) % 2 ? FT_EVENT_NONE :
							(uint8_t)(rnd(seed) % 3) };
	memset(op->wait, FT_EVENT_NONE, sizeof(op->wait));
	for (size_t i = 0; i < n; i++)
		op->wait[i] = (uint8_t)(rnd(seed) % 2 ? (int)(rnd(seed) % 3) :
							FT_TAIL + any_stream(seed));
}

static void any_class(struct drawn *d, size_t c, uint64_t *seed)
{
	struct ft_class *of = &d->class[c];
	size_t at = 0;

	if (c && rnd(seed) % 4 == 0) { /* runs what the one before does */
		*of = d->class[c - 1];
		return;
	}
	*of = (struct ft_class){ .n_calls = 1 + rnd(seed) % CALLS,
				 .call = d->call[c],
				 .slot = d->slot[c] };
	for (size_t i = 0; i < of->n_calls; i++)
		d->call[c][i] = (struct ft_call){ rnd(seed) % (uint32_t)d->g.n_segments,
						  1 + rnd(seed) % 3 };
	while (of->n_slots < SLOTS && at < of->n_calls) {
		d->slot[c][of->n_slots++].call = at;
		at += rnd(seed) % 4;
	}
}

static void any_graph(struct drawn *d, uint64_t *seed)
{
	memset(d, 0, sizeof(*d));
	d->g.n_segments = 1 + rnd(seed) % SEGMENTS;
	d->g.segment = d->segment;
	for (size_t s = 0; s < d->g.n_segments; s++) {
		d->segment[s].n_ops = 1 + rnd(seed) % OPS;
		d->segment[s].op = d->op[s];
		for (size_t i = 0; i < d->segment[s].n_ops; i++)
			any_op(&d->op[s][i], seed);
	}
	d->g.n_classes = 1 + rnd(seed) % CLASSES;
	d->g.rank_class = d->class;
	for (size_t c = 0; c < d->g.n_classes; c++)
		any_class(d, c, seed);
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* Ops [from, to) of a segment. */
struct range {
	const struct ft_op *op;
	size_t from, to;
};

/* Those of a stream before one of them. */
static uint32_t before(const struct range *r, size_t at, int stream)
{
	uint32_t n = 0;

	for (size_t i = r->from; i < at; i++)
		n += r->op[i].stream == stream;
	return n;
}

/* The last that is on the stream or records the event before one of them; -1: none. */
static long last_of(const struct range *r, size_t at, int code)
{
	for (size_t i = at; i-- > r->from;)
		if (code < FT_EVENTS ? r->op[i].record == code :
				       r->op[i].stream == code - FT_TAIL)
			return (long)i;
	return -1;
}

/* Must it wait for the compute that was launched ahead of the piece? */
static bool held(const struct range *r, size_t at)
{
	const struct ft_op *op = &r->op[at];
	long last = last_of(r, at, FT_TAIL + op->stream);

	if (op->stream == FT_STREAM_COMPUTE || (last >= 0 && held(r, (size_t)last)))
		return true;
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++) {
		last = last_of(r, at, op->wait[i]);
		if (last < 0 ? op->wait[i] == FT_TAIL + FT_STREAM_COMPUTE :
			       held(r, (size_t)last))
			return true;
	}
	return false;
}

static void waits_are(const struct range *r, size_t at, const struct piece_op *is,
		      uint32_t *awaits)
{
	const struct ft_op *op = &r->op[at];
	uint32_t n = 0;

	for (; n < FT_OP_WAITS && op->wait[n] != FT_EVENT_NONE; n++) {
		int code = op->wait[n];
		long last = last_of(r, at, code);
		const struct piece_wait *w = &is->wait[n];

		assert_true(n < is->n_waits);
		if (code < FT_EVENTS && last < 0) {
			assert_int_equal(w->stream, PIECE_EVENT);
			assert_int_equal(w->after, code);
			continue;
		}
		assert_int_equal(w->stream, code < FT_EVENTS ? r->op[last].stream :
							       code - FT_TAIL);
		assert_int_equal(w->after,
				 last < 0 ? 0 : before(r, (size_t)last + 1, w->stream));
		*awaits |= is_receive(w->stream) ? 1u << w->stream : 0;
	}
	assert_int_equal(is->n_waits, n);
}

static void piece_is(const struct range *r, const struct piece *p)
{
	uint32_t streams = 0, awaits = 0, is_free = 0, free_to[FT_STREAMS] = { 0 };

	for (size_t i = r->from; i < r->to; i++) {
		int s = r->op[i].stream;
		uint32_t k = before(r, i, s);
		const struct piece_op *op = &p->op[p->begin[s] + k];

		assert_ptr_equal(op->op, &r->op[i]);
		assert_int_equal(op->place, i);
		waits_are(r, i, op, &awaits);
		streams |= 1u << s;
		if (!held(r, i) && !is_receive(s)) {
			is_free |= 1u << s;
			free_to[s] = k + 1;
		}
	}
	assert_int_equal(p->begin[0], 0);
	for (int s = 0; s < FT_STREAMS; s++) {
		assert_int_equal(p->begin[s + 1] - p->begin[s], before(r, r->to, s));
		assert_int_equal(p->free_to[s], free_to[s]);
	}
	for (int e = 0; e < FT_EVENTS; e++) {
		long last = last_of(r, r->to, e);
		int s = last < 0 ? FT_STREAMS : r->op[last].stream;

		assert_int_equal(p->record_stream[e], s);
		if (last >= 0)
			assert_int_equal(p->record[e], before(r, (size_t)last + 1, s));
	}
	assert_int_equal(p->streams, streams);
	assert_int_equal(p->awaits, awaits);
	assert_int_equal(p->free, is_free);
	assert_int_equal(p->last, r->to - 1);
	assert_int_equal(p->host_waits, r->op[r->to - 1].host_waits);
}

/* A piece ends with its segment, or where the host waits. */
static void pieces_are(const struct drawn *d, const struct program *p)
{
	bool waits = false, elsewhere = false;
	size_t n = 0;

	for (size_t s = 0; s < d->g.n_segments; s++) {
		struct range r = { d->op[s], 0, 0 };

		assert_int_equal(p->begin[s], n);
		for (r.to = 1; r.to <= d->segment[s].n_ops; r.to++) {
			const struct ft_op *op = &d->op[s][r.to - 1];

			waits |= op->host_waits;
			elsewhere |= op->host_waits && op->stream != FT_STREAM_COMPUTE;
			if (!op->host_waits && r.to < d->segment[s].n_ops)
				continue;
			piece_is(&r, &p->piece[n++]);
			r.from = r.to;
		}
	}
	assert_int_equal(p->begin[d->g.n_segments], n);
	assert_int_equal(p->waits, waits);
	assert_int_equal(p->waits_elsewhere, elsewhere);
}

/* ---- passes --------------------------------------------------------------------------------- */

/* All pieces of a call put on streams. */
static uint32_t streams_of(const struct program *p, const struct ft_call *call,
			   bool awaits)
{
	uint32_t all = 0;

	for (size_t k = p->begin[call->segment]; k < p->begin[call->segment + 1]; k++)
		all |= awaits ? p->piece[k].awaits : p->piece[k].streams;
	return all;
}

static bool computes(const struct program *p, const struct ft_call *call)
{
	return streams_of(p, call, false) >> FT_STREAM_COMPUTE & 1;
}

/* What a call puts on a stream each time, and up to its last op there that is free. */
static uint32_t on_stream(const struct program *p, const struct ft_call *call, int s,
			  uint32_t *free_to)
{
	uint32_t n = 0;

	*free_to = 0;
	for (size_t k = p->begin[call->segment]; k < p->begin[call->segment + 1]; k++) {
		const struct piece *is = &p->piece[k];

		if (is->free >> s & 1)
			*free_to = n + is->free_to[s];
		n += is->begin[s + 1] - is->begin[s];
	}
	return n;
}

/* Up to the last free op of each stream in the last call with any that may be launched by the
 * end of the pass, if that is of the pass or behind it. */
static void free_is(const struct program *p, const struct ft_class *c,
		    const struct program_pass *pass, double depth)
{
	uint32_t to[FT_STREAMS] = { 0 }, found[FT_STREAMS] = { 0 };
	uint32_t put[FT_STREAMS] = { 0 }, last;
	double computed[CALLS + 1] = { 0 };
	bool any = false;

	for (size_t i = 0; i < c->n_calls; i++)
		computed[i + 1] =
			computed[i] +
			(double)on_stream(p, &c->call[i], FT_STREAM_COMPUTE, &last) *
				c->call[i].repeat;
	for (size_t i = 0; i < c->n_calls; i++) {
		bool mine = false;

		if (computed[i] > computed[pass->last + 1] + depth)
			break;
		for (int s = 0; s < FT_STREAMS; s++) {
			uint32_t each = on_stream(p, &c->call[i], s, &last);
			uint32_t times = c->call[i].repeat;

			if (last)
				to[s] = put[s] + (times - 1) * each + last;
			mine |= last > 0;
			put[s] += times * each;
		}
		if (!mine)
			continue;
		any = i >= pass->first;
		memcpy(found, to, sizeof(to));
	}
	assert_int_equal(pass->free_to != NULL, any);
	if (any)
		assert_memory_equal(pass->free_to, found, sizeof(found));
}

struct seen {
	const struct ft_call *call, *ahead;
	size_t n, n_ahead;
	const struct program_pass *pass;
};

static bool same_calls(const struct ft_call *a, size_t n, const struct ft_call *b,
		       size_t m)
{
	return n == m && !memcmp(a, b, n * sizeof(*a));
}

/* The passes of a class in order; they are put behind those seen. */
static size_t passes_are(const struct program *p, const struct ft_class *c,
			 const struct program_class *is, double depth,
			 struct seen *seen)
{
	size_t n = 0;
	uint32_t pass_of[CALLS];

	memset(pass_of, 0xff, sizeof(pass_of));
	for (size_t i = 0; i < c->n_slots; i++) {
		size_t from = c->slot[i].call, to = c->n_calls, ahead = c->n_calls;
		const struct program_pass *pass = &is->pass[n];
		uint32_t awaits = 0, streams = 0;

		if (i + 1 < c->n_slots)
			to = c->slot[i + 1].call;
		if (i + 3 < c->n_slots)
			ahead = c->slot[i + 3].call;
		for (; from < to && !computes(p, &c->call[from]); from++)
			;
		for (; from < to && !computes(p, &c->call[to - 1]); to--)
			;
		if (from >= to)
			continue;
		assert_int_equal(pass->first, from);
		assert_int_equal(pass->last, to - 1);
		for (size_t k = from; k < to; k++) {
			awaits |= streams_of(p, &c->call[k], true);
			streams |= streams_of(p, &c->call[k], false);
		}
		assert_int_equal(pass->awaits, awaits);
		assert_int_equal(pass->receives, (streams & RECEIVES) != 0);
		for (size_t k = from; !pass->receives && k < to; k++)
			pass_of[k] = (uint32_t)n;
		free_is(p, c, pass, depth);
		seen[n++] = (struct seen){ &c->call[from], &c->call[to], to - from,
					   ahead - to, pass };
	}
	assert_memory_equal(is->pass_of, pass_of, c->n_calls * sizeof(*pass_of));
	return n;
}

static void launches_are(const struct program *p, const struct ft_class *c,
			 const struct program_class *is)
{
	uint32_t n = 0;

	for (size_t i = 0; i <= c->n_calls; i++) {
		assert_int_equal(is->launches[i], n);
		if (i < c->n_calls)
			n += c->call[i].repeat *
			     (uint32_t)(p->begin[c->call[i].segment + 1] -
					p->begin[c->call[i].segment]);
	}
}

static void programs_are_cut_into_pieces_and_passes(void **state)
{
	static struct drawn d;
	static struct seen seen[CLASSES * SLOTS];
	uint64_t seed = 7;
	size_t kinds_most = 0;

	(void)state;
	for (int i = 0; i < 400; i++) {
		uint32_t depth = rnd(&seed) % DEPTH_MOST;
		struct arena mem = { 0 };
		struct program *p;
		size_t n = 0, kinds = 0;

		any_graph(&d, &seed);
		p = program_of(&d.g, depth, &mem);
		pieces_are(&d, p);
		for (size_t c = 0; c < d.g.n_classes; c++) {
			launches_are(p, &d.class[c], &p -> of[c]);
			n += passes_are(p, &d.class[c], &p -> of[c], depth, seen + n);
		}
		for (size_t a = 0; a < n; a++) {
			const struct program_pass *x = seen[a].pass;

			kinds = x->kind >= kinds ? x->kind + 1 : kinds;
			for (size_t b = 0; b < n; b++) {
				const struct seen *s = &seen[a], *t = &seen[b];

				assert_int_equal(
					x->kind == t->pass->kind,
					same_calls(s->call, s->n, t->call, t->n));
				assert_int_equal(x->ahead == t->pass->ahead,
						 same_calls(s->ahead, s->n_ahead,
							    t->ahead, t->n_ahead));
			}
		}
		kinds_most = kinds > kinds_most ? kinds : kinds_most;
		arena_release(&mem);
	}
	assert_true(kinds_most > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_cut_into_pieces_and_passes),
	};

	return cmocka_run_group_tests_name("sim/program", tests, NULL, NULL);
}
