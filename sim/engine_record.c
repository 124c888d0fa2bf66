/* sim/engine_record.c - a pass is recorded: the state from which it goes on, and what it does */
#include <string.h>

#include "base/arena.h"
#include "sim/engine_jump.h"

/* ---- the state from which a pass goes on ------------------------------------------------ */

static void add(struct jump_key *k, const void *what)
{
	memcpy(&k->word[k->n++], what, sizeof(uint64_t));
}

static void add_number(struct jump_key *k, uint64_t n)
{
	add(k, &n);
}

/* false: it waits for what the pass does not decide. */
static bool add_stream(struct jump_key *k, const struct engine *e,
		       const struct part_state *r, const struct stream *s,
		       uint32_t base)
{
	int32_t done = (int32_t)(s->completed - base);
	const struct ft_op *op;

	if (s->state == MEETING || s->state == TO_LAUNCH || done < -1 ||
	    (done < 0 && s->state != RUNNING))
		return false;
	add_number(k, (uint64_t)(uint32_t)done << 8 | s->state);
	if (s->state != RUNNING)
		return true;
	op = head(r, s)->op;
	if (part_of(e, r)->timing[op->work].path)
		return false;
	add_number(k, (uint64_t)op->work << 1 | op->reverse);
	add(k, &s->run.left);
	add(k, &s->run.rate);
	add(k, &s->run.share);
	add_number(k, (uint64_t)(e->q.now - s->run.at));
	add_number(k, (uint64_t)(e->q.now - s->began));
	return true;
}

/* Events of before the pass: which of them are still to come. */
static bool add_events(struct jump_key *k, const struct part_state *r,
		       const struct launch *l)
{
	for (int i = 0; i < FT_EVENTS; i++) {
		const struct wait *w = &l->event[i];
		bool over = w->stream == FT_STREAMS ||
			    r->stream[w->stream].completed > w->number;

		if (!over && RECEIVES >> w->stream & 1)
			return false;
		add_number(k, over ? FT_STREAMS : w->stream);
	}
	return true;
}

static bool make_key(const struct engine *e, const struct part_state *r,
		     const struct program_pass *pass, struct jump_key *k)
{
	const struct launch *l = launch_at(r, r->stream[FT_STREAM_COMPUTE].at);

	k->n = 0;
	add(k, &part_of(e, r)->timing);
	add_number(k, pass->kind);
	add_number(k, (uint64_t)(l->call - pass->first) << 32 | l->turn);
	for (int i = 0; i < FT_STREAMS; i++) {
		const struct stream *s = &r->stream[i];

		if (pass->awaits >> i & 1 && (int32_t)(s->completed - l->base[i]) < 0)
			return false;
		if (i != FT_STREAM_COMPUTE && !(RECEIVES >> i & 1) &&
		    !add_stream(k, e, r, s, l->base[i]))
			return false;
	}
	return add_events(k, r, l);
}

struct jump **jump_find(const struct engine *e, const struct part_state *r,
			const struct program_pass *pass, struct jump_key *k)
{
	struct jumps *j = e->jumps;
	uint64_t h = 14695981039346656037u;
	size_t at;

	if (!make_key(e, r, pass, k))
		return NULL;
	for (size_t i = 0; i < k->n; i++) {
		h = (h ^ k->word[i]) * 1099511628211u;
		h ^= h >> 29;
	}
	at = h & (j->n_slots - 1);
	while (j->slot[at] &&
	       (j->slot[at]->n_key != k->n ||
		memcmp(j->slot[at]->key, k->word, k->n * sizeof(*k->word)) != 0))
		at = (at + 1) & (j->n_slots - 1);
	return &j->slot[at];
}

/* ---- a pass is recorded -------------------------------------------------------------- */

/* What it spends from now on is what it has spent then less this. */
static void account(const struct engine *e, struct part_state *r)
{
	r->spent[r->state] += e->q.now - r->since;
	r->since = e->q.now;
}

void jump_note_begin(const struct engine *e, struct part_state *r,
		     const struct program_pass *pass, struct jump *into)
{
	struct recording *to = recording_of(e, r);
	uint32_t at = r->stream[FT_STREAM_COMPUTE].at;

	account(e, r);
	to->into = into;
	to->pass = pass;
	to->from = e->q.now;
	to->at = at;
	memcpy(to->base, launch_at(r, at)->base, sizeof(to->base));
	memcpy(to->spent, r->spent, sizeof(to->spent));
	to->n_over = to->n_sent = to->next_sent = to->n_done = 0;
}

void jump_record(struct engine *e, struct part_state *r,
		 const struct program_pass *pass, const struct jump_key *k,
		 struct jump **slot)
{
	uint64_t *key = ARENA_ARRAY(e->mem, k->n, uint64_t);

	memcpy(key, k->word, k->n * sizeof(*key));
	*slot = ARENA_NEW(e->mem, struct jump);
	(*slot)->key = key;
	(*slot)->n_key = k->n;
	e->jumps->n++;
	jump_note_begin(e, r, pass, *slot);
	r->recording = recording_of(e, r);
}

/* Ops of one work are one line. */
static void sum_up(struct engine *e, const struct recording *rec, struct jump *j)
{
	struct spent_on *sum = e->jumps->sum;
	struct spent_on *on = ARENA_ARRAY(e->mem, rec->n_over, struct spent_on);

	for (size_t i = 0; i < rec->n_over; i++) {
		sum[rec->over[i].work].count++;
		sum[rec->over[i].work].time += rec->over[i].time;
	}
	for (size_t i = 0; i < rec->n_over; i++) {
		struct spent_on *s = &sum[rec->over[i].work];

		if (!s->count)
			continue;
		on[j->n_on++] =
			(struct spent_on){ rec->over[i].work, s->count, s->time };
		*s = (struct spent_on){ 0 };
	}
	j->on = on;
	j->n_over = rec->n_over;
}

/* false: what it is in cannot be set up again. */
static bool note_end(const struct engine *e, const struct stream *s, uint32_t base,
		     struct stream_end *to)
{
	to->done = (int32_t)(s->completed - base);
	to->runs = s->state == RUNNING;
	if (s->state == MEETING)
		return false;
	if (!to->runs)
		return true;
	to->run = s->run;
	to->run.at -= e->q.now;
	to->began = s->began - e->q.now;
	to->due = evq_due(&e->q, &s->event) - e->q.now;
	return s->run.share >= 1;
}

/* Were these launches from that of `at` on made by then? */
bool jump_launched_by(const struct engine *e, const struct part_state *r, uint32_t at,
		      uint32_t n, ft_ps then)
{
	const struct engine_part *p = part_of(e, r);
	const struct ft_class *c = &p->job->graph->rank_class[p->rank_class];
	const struct launch *last;

	if (p->job->host_free)
		return true;
	if (r->n_launches - at < n)
		return false;
	last = launch_at(r, at + n - 1);
	return last->began + p->job->host_total[c->call[last->call].segment] <= then;
}

static bool close_recording(struct engine *e, struct part_state *r)
{
	struct recording *rec = r->recording;
	struct jump *j = rec->into;
	struct sent *sent = ARENA_ARRAY(e->mem, rec->n_sent, struct sent);
	ft_ps *done_at = ARENA_ARRAY(e->mem, rec->n_done, ft_ps);

	j->n_launches = r->stream[FT_STREAM_COMPUTE].at - rec->at + 1;
	if (!jump_launched_by(e, r, rec->at, j->n_launches, rec->from))
		return false;
	account(e, r);
	for (int i = 0; i < 5; i++)
		j->spent[i] = r->spent[i] - rec->spent[i];
	if (j->spent[BUBBLE] || j->spent[HOST])
		return false;
	j->state = r->state;
	j->length = e->q.now - rec->from;
	for (int i = 0; i < FT_STREAMS; i++)
		if (!(RECEIVES >> i & 1) && i != FT_STREAM_COMPUTE &&
		    !note_end(e, &r->stream[i], rec->base[i], &j->end[i]))
			return false;
	j->end[FT_STREAM_COMPUTE] = (struct stream_end){
		.done = (int32_t)(r->stream[FT_STREAM_COMPUTE].completed -
				  rec->base[FT_STREAM_COMPUTE]),
		.began = r->stream[FT_STREAM_COMPUTE].began - e->q.now,
		.run = r->stream[FT_STREAM_COMPUTE].run,
	};
	memcpy(sent, rec->sent, rec->n_sent * sizeof(*sent));
	j->sent = sent;
	j->n_sent = rec->n_sent;
	memcpy(done_at, rec->done_at, rec->n_done * sizeof(*done_at));
	j->done_at = done_at;
	j->n_done = (uint32_t)rec->n_done;
	sum_up(e, rec, j);
	return true;
}

static bool is_last(const struct engine *e, const struct part_state *r,
		    const struct stream *s)
{
	const struct engine_part *p = part_of(e, r);
	const struct ft_class *c = &p->job->graph->rank_class[p->rank_class];
	const struct launch *l = launch_at(r, s->at);

	return s->id == FT_STREAM_COMPUTE && l->call == r->recording->pass->last &&
	       l->turn + 1 == c->call[l->call].repeat &&
	       s->number + 1 == ops_on(l->piece, s->id);
}

void jump_note_over(struct engine *e, struct stream *s)
{
	struct part_state *r = &e->part[s->part];
	struct recording *rec = r->recording;

	if (is_last(e, r, s)) {
		rec->into->usable = close_recording(e, r);
		r->recording = NULL;
		return;
	}
	if (rec->n_over == rec->cap_over)
		rec->over = ARENA_GROW(e->mem, rec->over, &rec->cap_over);
	if (s->id == FT_STREAM_COMPUTE) {
		if (rec->n_done == rec->cap_done)
			rec->done_at = ARENA_GROW(e->mem, rec->done_at, &rec->cap_done);
		rec->done_at[rec->n_done++] = e->q.now - rec->from;
	}
	rec->over[rec->n_over++] =
		(struct spent_on){ head(r, s)->op->work, 1, e->q.now - s->began };
}

void jump_note_sent(struct engine *e, const struct stream *s, bool reverse)
{
	struct recording *rec = e->part[s->part].recording;

	if (rec->n_sent == rec->cap_sent)
		rec->sent = ARENA_GROW(e->mem, rec->sent, &rec->cap_sent);
	rec->sent[rec->n_sent++] =
		(struct sent){ e->q.now - rec->from, s->id, reverse };
}
