/* sim/again.c - a ring of the last steps, by digests of what the engine was given */
#include "sim/again.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/digest.h"

enum { STEPS = 64 };

struct kept {
	struct arena mem;
	struct ft_digest key;
	size_t n_works, n_parts; /* no parts: it is free */
	struct engine_output out;
};

struct again {
	struct kept kept[STEPS];
	size_t next, n_recalled;
};

struct again *again_new(struct arena *mem)
{
	return ARENA_NEW(mem, struct again);
}

void again_free(struct again *a)
{
	for (size_t i = 0; a && i < STEPS; i++)
		arena_release(&a->kept[i].mem);
}

/* ---- the key -------------------------------------------------------------------------- */

/* Digests of segments by what runs in them, and what hosts and works take. */
struct seen {
	const struct ft_graph *graph;
	const struct engine_job *job;
	struct ft_digest *segment; /* [n_segments] */
};

static void add_number(struct ft_digest *d, uint64_t n)
{
	digest_bytes(d, &n, sizeof(n));
}

static void add_op(struct ft_digest *d, const struct ft_op *op)
{
	uint8_t word[8 + FT_OP_WAITS + 1] = { 0 };

	memcpy(word, &op->work, sizeof(op->work));
	word[4] = op->stream;
	word[5] = op->record;
	word[6] = (uint8_t)(op->optimizer | op->host_waits << 1 | op->reverse << 2);
	for (int i = 0; i < FT_OP_WAITS && op->wait[i] != FT_EVENT_NONE; i++)
		word[8 + i] = (uint8_t)(op->wait[i] + 1);
	digest_bytes(d, word, sizeof(word));
}

static void see_segment(const struct seen *s, size_t i)
{
	const struct ft_segment *seg = &s->graph->segment[i];
	struct ft_digest *d = &s->segment[i];

	for (size_t k = 0; k < seg->n_ops; k++)
		add_op(d, &seg->op[k]);
	if (s->job->host_free)
		return;
	digest_bytes(d, s->job->host + s->job->host_begin[i],
		     seg->n_ops * sizeof(*s->job->host));
	add_number(d, (uint64_t)s->job->host_total[i]);
}

static bool same(const struct ft_digest *a, const struct ft_digest *b)
{
	return a->low == b->low && a->high == b->high;
}

/* Its calls; what is called again and again counts, in however many calls. */
static void add_class(struct ft_digest *d, const struct seen *s,
		      const struct ft_class *c)
{
	uint64_t times = 0;

	for (size_t i = 0; i < c->n_calls; i++) {
		const struct ft_digest *is = &s->segment[c->call[i].segment];

		times += c->call[i].repeat;
		if (i + 1 < c->n_calls && same(is, &s->segment[c->call[i + 1].segment]))
			continue;
		digest_bytes(d, is, sizeof(*is));
		add_number(d, times);
		times = 0;
	}
	add_number(d, c->n_calls > 0);
}

static void add_timing(struct ft_digest *d, const struct ft_graph *g,
		       const struct work_timing *t)
{
	for (size_t i = 0; i < g->n_works; i++) {
		const float frac[] = { t[i].port_frac,	t[i].nic_frac,
				       t[i].beside[0],	t[i].beside[1],
				       t[i].beside[2],	t[i].beside_compute,
				       (float)t[i].held };

		add_number(d, (uint64_t)t[i].duration << 2 | t[i].holds_all << 1 |
				      t[i].copy_engine);
		digest_bytes(d, frac, sizeof(frac));
	}
}

static void add_works(struct ft_digest *d, const struct ft_graph *g)
{
	add_number(d, g->n_works);
	for (size_t i = 0; i < g->n_works; i++)
		add_number(d, g->work[i].kind == FT_COMMUNICATION ?
				      1u + g->work[i].communication.group :
				      0);
}

bool again_key(const struct job *j, const struct engine_input *in,
	       struct ft_digest *key)
{
	const struct ft_graph *g = j->graph;
	struct seen s = { g, &j->engine, NULL };

	if (j->network || in->n_pipelines > 1 || in->n_parts != g->n_classes ||
	    in->timeline || in->run_all)
		return false;
	*key = (struct ft_digest){ 0, 0 };
	s.segment = ARENA_ARRAY(j->mem, g->n_segments, struct ft_digest);
	for (size_t i = 0; i < g->n_segments; i++)
		see_segment(&s, i);
	add_works(key, g);
	add_number(key, (uint64_t)j->engine.host_free << 32 | j->engine.meeting);
	digest_bytes(key, &j->engine.copy_beside_gemm, sizeof(double));
	for (size_t c = 0; c < g->n_classes; c++) {
		bool like = c && g->rank_class[c].call == g->rank_class[c - 1].call;
		bool timed = c && in->part[c].timing == in->part[c - 1].timing;

		add_number(key, like << 1 | timed);
		if (!like)
			add_class(key, &s, &g->rank_class[c]);
		if (!timed)
			add_timing(key, g, in->part[c].timing);
	}
	return true;
}

/* ---- what is kept ----------------------------------------------------------------------- */

static void copy(struct engine_output *to, const struct engine_output *from,
		 size_t n_works, size_t n_parts)
{
	to->end = from->end;
	to->events = from->events;
	to->jumped = from->jumped;
	memcpy(to->part, from->part, n_parts * sizeof(*to->part));
	memcpy(to->work_time, from->work_time, n_works * sizeof(*to->work_time));
	memcpy(to->work_count, from->work_count, n_works * sizeof(*to->work_count));
}

bool again_recall(struct again *a, const struct ft_digest *key, size_t n_works,
		  size_t n_parts, struct engine_output *out)
{
	for (size_t i = 0; i < STEPS; i++) {
		const struct kept *k = &a->kept[i];

		if (!same(&k->key, key) || k->n_works != n_works ||
		    k->n_parts != n_parts)
			continue;
		copy(out, &k->out, n_works, n_parts);
		a->n_recalled++;
		return true;
	}
	return false;
}

size_t again_recalled(const struct again *a)
{
	return a->n_recalled;
}

void again_keep(struct again *a, const struct ft_digest *key, size_t n_works,
		size_t n_parts, const struct engine_output *out)
{
	struct kept *k = &a->kept[a->next];

	a->next = (a->next + 1) % STEPS;
	arena_release(&k->mem);
	k->key = *key;
	k->n_works = n_works;
	k->n_parts = n_parts;
	k->out = (struct engine_output){
		.part = ARENA_ARRAY(&k->mem, n_parts, struct ft_class_result),
		.work_time = ARENA_ARRAY(&k->mem, n_works, ft_ps),
		.work_count = ARENA_ARRAY(&k->mem, n_works, uint64_t),
	};
	copy(&k->out, out, n_works, n_parts);
}
