/* sim/engine_record.c - a pass is recorded: from which state it goes on, and how */
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

	add_number(k, (uint64_t)(uint32_t)done << 8 | s->state);
	if (s->state == MEETING)
		return true;
	if (done < -1 || (done < 0 && s->state != RUNNING))
		return false;
	if (s->state == TO_LAUNCH)
		add_number(k, (uint64_t)(evq_due(&e->q, &s->event) - e->q.now));
	if (s->state != RUNNING)
		return true;
	op = s->head->op;
	if (r->of->timing[op->work].path)
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

		if (!over && is_receive(w->stream))
			return false;
		add_number(k, over ? FT_STREAMS : w->stream);
	}
	return true;
}

/* Is all of the pass launched? */
static bool all_launched(const struct engine *e, const struct part_state *r,
			 const struct program_pass *pass, const struct launch *l)
{
	const struct engine_part *p = r->of;
	const struct ft_class *c = &p->job->graph->rank_class[p->rank_class];
	const uint32_t *launches = r->program->of[p->rank_class].launches;
	uint32_t each =
		(launches[l->call + 1] - launches[l->call]) / c->call[l->call].repeat;
	uint32_t at = r->stream[FT_STREAM_COMPUTE].at + launches[pass->last + 1] -
		      launches[l->call] - l->turn * each;
	const struct launch *last;

	if (p->job->host_free && !r->program->waits)
		return true;
	if ((int32_t)(r->n_launches - at) < 0)
		return false;
	last = launch_at(r, at - 1);
	return last->began + p->job->host_total[c->call[last->call].segment] <=
	       e->q.now;
}

/* Launches that are still to come, though the host has decided on them. */
static bool add_late(struct jump_key *k, const struct engine *e,
		     const struct part_state *r)
{
	const struct engine_part *p = r->of;
	const struct ft_call *call = p->job->graph->rank_class[p->rank_class].call;
	uint32_t at = r->n_launches, first = r->stream[FT_STREAM_COMPUTE].at;

	for (int n = 0; at != first; n++) {
		const struct launch *l = launch_at(r, --at);

		if (l->began + p->job->host_total[call[l->call].segment] <= e->q.now)
			return true;
		if (n == MOST_LATE)
			return false;
		add_number(k, at - first);
		add_number(k, (uint64_t)(l->began - e->q.now));
	}
	return true;
}

/* Where the host is, which launches the pass while it runs. */
static bool add_host(struct jump_key *k, const struct engine *e,
		     const struct part_state *r, const struct program_pass *pass,
		     const struct launch *l)
{
	const struct wait *w = &r->awaited;
	ft_ps ahead = r->host_now - e->q.now;

	for (int i = FT_STREAM_RECV_FORWARD; i <= FT_STREAM_RECV_BACKWARD; i++)
		if (r->stream[i].launched != r->stream[i].completed)
			return false;
	add_number(k, pass->ahead);
	add_number(k, r->next_call - pass->first);
	add_number(k, (uint64_t)r->next_piece << 32 | r->repeat_done);
	add_number(k, r->host_blocked);
	add_number(k, w->stream < FT_STREAMS ?
			      (uint64_t)w->stream << 32 |
				      (w->number - l->base[w->stream]) :
			      UINT64_MAX);
	add_number(k, ahead > 0 ? (uint64_t)ahead : 0);
	return add_late(k, e, r);
}

/* Is all over that would start by itself while the pass runs? */
static bool free_are_over(const struct part_state *r, const struct program_pass *pass)
{
	for (int i = 0; pass->free_to && i < FT_STREAMS; i++)
		if (r->stream[i].state != MEETING &&
		    (int32_t)(r->stream[i].completed - pass->free_to[i]) < 0)
			return false;
	return true;
}

static bool make_key(const struct engine *e, const struct part_state *r,
		     const struct program_pass *pass, struct jump_key *k)
{
	const struct launch *l = launch_at(r, r->stream[FT_STREAM_COMPUTE].at);
	bool held_up = !all_launched(e, r, pass, l);

	if (!free_are_over(r, pass))
		return false;
	k->n = 0;
	add(k, &r->of->timing);
	add_number(k, (uint64_t)pass->kind << 1 | held_up);
	add_number(k, (uint64_t)(l->call - pass->first) << 32 | l->turn);
	for (int i = 0; i < FT_STREAMS; i++) {
		const struct stream *s = &r->stream[i];

		if (pass->awaits >> i & 1 && (int32_t)(s->completed - l->base[i]) < 0)
			return false;
		if (i != FT_STREAM_COMPUTE && !is_receive(i) &&
		    !add_stream(k, e, r, s, l->base[i]))
			return false;
	}
	return add_events(k, r, l) && (!held_up || add_host(k, e, r, pass, l));
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

void jump_note_begin(const struct engine *e, struct part_state *r,
		     const struct program_pass *pass, struct jump *into)
{
	struct recording *to = recording_of(e, r);

	engine_account(e, r);
	to->into = into;
	to->pass = pass;
	to->from = e->q.now;
	memcpy(to->base, launch_at(r, r->stream[FT_STREAM_COMPUTE].at)->base,
	       sizeof(to->base));
	memcpy(to->spent, r->spent, sizeof(to->spent));
	to->receives = false;
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
	e->jumps->all[e->jumps->n++] = *slot;
	jump_note_begin(e, r, pass, *slot);
	r->recording = recording_of(e, r);
	r->recording->held_up = k->word[1] & 1;
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
	to->state = s->state;
	if (s->state == TO_LAUNCH)
		to->due = evq_due(&e->q, &s->event) - e->q.now;
	if (s->state != RUNNING)
		return true;
	to->run = s->run;
	to->run.at -= e->q.now;
	to->began = s->began - e->q.now;
	to->due = evq_due(&e->q, &s->event) - e->q.now;
	return s->run.share >= 1;
}

static ft_ps idle_since(const struct part_state *r, const struct recording *rec)
{
	return r->spent[BUBBLE] + r->spent[HOST] - rec->spent[BUBBLE] -
	       rec->spent[HOST];
}

void jump_note_launched(struct engine *e, struct part_state *r)
{
	struct recording *rec = r->recording;
	unsigned receives = 0;

	for (int i = FT_STREAM_RECV_FORWARD; i <= FT_STREAM_RECV_BACKWARD; i++)
		receives += r->stream[i].launched != r->stream[i].completed;
	if (rec->receives || !receives)
		return;
	engine_account(e, r);
	rec->receives = true;
	rec->idle = idle_since(r, rec);
}

/* Where it waits for its neighbour or its host only, what has arrived says whether that is a
 * bubble; not so as long as no receive is launched. */
static bool idle_is_its_own(const struct part_state *r, const struct recording *rec)
{
	ft_ps idle = idle_since(r, rec);

	return !idle || (rec->held_up && (!rec->receives || rec->idle == idle));
}

static void *kept(const struct engine *e, const void *from, size_t n, size_t size)
{
	void *to = arena_alloc(e->mem, n, size);

	if (n)
		memcpy(to, from, n * size);
	return to;
}

static bool close_recording(struct engine *e, struct part_state *r)
{
	struct recording *rec = r->recording;
	struct jump *j = rec->into;

	engine_account(e, r);
	for (int i = 0; i < 5; i++)
		j->spent[i] = r->spent[i] - rec->spent[i];
	if (!idle_is_its_own(r, rec))
		return false;
	j->state = r->state;
	j->length = e->q.now - rec->from;
	for (int i = 0; i < FT_STREAMS; i++)
		if (!is_receive(i) && i != FT_STREAM_COMPUTE &&
		    !note_end(e, &r->stream[i], rec->base[i], &j->end[i]))
			return false;
	j->end[FT_STREAM_COMPUTE] = (struct stream_end){
		.done = (int32_t)(r->stream[FT_STREAM_COMPUTE].completed -
				  rec->base[FT_STREAM_COMPUTE]),
		.began = r->stream[FT_STREAM_COMPUTE].began - e->q.now,
		.run = r->stream[FT_STREAM_COMPUTE].run,
	};
	j->sent = kept(e, rec->sent, rec->n_sent, sizeof(*rec->sent));
	j->n_sent = rec->n_sent;
	j->done_at = kept(e, rec->done_at, rec->n_done, sizeof(*rec->done_at));
	j->n_done = (uint32_t)rec->n_done;
	sum_up(e, rec, j);
	return true;
}

static bool is_last(const struct part_state *r, const struct stream *s)
{
	const struct engine_part *p = r->of;
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

	if (is_last(r, s)) {
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
		(struct spent_on){ s->head->op->work, 1, e->q.now - s->began };
}

void jump_note_sent(struct engine *e, const struct stream *s, bool reverse)
{
	struct recording *rec = e->part[s->part].recording;

	if (rec->n_sent == rec->cap_sent)
		rec->sent = ARENA_GROW(e->mem, rec->sent, &rec->cap_sent);
	rec->sent[rec->n_sent++] =
		(struct sent){ e->q.now - rec->from, s->id, reverse };
}
