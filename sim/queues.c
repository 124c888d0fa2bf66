/* sim/queues.c - passes of a pipeline whose messages wait in queues */
#include "sim/queues.h"

#include <math.h>

enum { STEPS = 60 };
static const double NEAR_FRAC = 1e-7;

/* The stage at the other end: the next one in what goes on, forward, and backward in reverse. */
static struct stage *other_end(const struct pipeline *p, size_t from, unsigned channel,
			       bool send)
{
	bool on = ((channel < 2) != (channel & 1)) == send;

	return &p->stage[(from + (on ? 1 : p->n - 1)) % p->n];
}

static void start_over(struct pipeline *p)
{
	for (size_t c = 0; c < p->n; c++) {
		struct stage *s = &p->stage[c];

		s->at = s->head = 0;
		s->free_s = 0;
		for (size_t i = 0; i < CHANNELS; i++) {
			s->taken[i] = s->listed[i] = s->n_arrived[i] = 0;
			s->sent_s[i] = 0;
		}
	}
}

static bool all_over(const struct pipeline *p)
{
	for (size_t c = 0; c < p->n; c++)
		if (p->stage[c].at < p->stage[c].n)
			return false;
	return true;
}

/* Until no stage goes on. */
static bool run(struct pipeline *p, double more_s,
		bool (*go_on)(struct pipeline *, size_t, double))
{
	bool moved = true;

	start_over(p);
	while (moved) {
		moved = false;
		for (size_t c = 0; c < p->n; c++)
			moved |= go_on(p, c, more_s);
	}
	return all_over(p);
}

double queues_length_s(const struct pipeline *p)
{
	double end = 0;

	for (size_t c = 0; c < p->n; c++)
		if (p->stage[c].n)
			end = fmax(end, p->stage[c].ran[p->stage[c].n - 1].end);
	return end;
}

/* ---- the order of messages ------------------------------------------------------ */

/* A stage's turn: one pass, if what it receives is listed. */
static bool list_pass(struct pipeline *p, size_t which, double unused)
{
	struct stage *s = &p->stage[which];
	const struct brings *b = &s->pass[s->at];

	(void)unused;
	if (s->at == s->n)
		return false;
	for (size_t i = 0; i < CHANNELS; i++)
		if (b->receives >> i & 1 && s->taken[i] == s->listed[i])
			return false;
	s->at++;
	for (unsigned i = 0; i < CHANNELS; i++) {
		struct stage *to = other_end(p, which, i, true);

		s->taken[i] += b->receives >> i & 1;
		if (!(b->sends >> i & 1) || to->listed[i] == to->n)
			continue;
		to->listed[i]++;
		s->queue[s->n_queue++] = (struct message){ i, true, s->at };
		to->queue[to->n_queue++] = (struct message){ i, false, to->at };
	}
	return true;
}

bool queues_list(struct pipeline *p)
{
	return run(p, 0, list_pass);
}

/* ---- one behind the other ------------------------------------------------------- */

/* Passes of a stage, as far as what they receive has come. */
static bool run_passes(struct stage *s)
{
	size_t before = s->at;

	for (; s->at < s->n; s->at++) {
		const struct brings *b = &s->pass[s->at];
		double at = s->at ? s->ran[s->at - 1].end : 0;

		for (size_t i = 0; i < CHANNELS; i++)
			if (b->receives >> i & 1) {
				if (s->taken[i] == s->n_arrived[i])
					return s->at > before;
				at = fmax(at, s->arrived[i][s->taken[i]]);
			}
		for (size_t i = 0; i < CHANNELS; i++)
			s->taken[i] += b->receives >> i & 1;
		s->ran[s->at] = (struct span){ at, at + b->compute_s };
	}
	return s->at > before;
}

/* When the message at the head begins to wait; INFINITY: the pass in front of it has not run. */
static double begins(const struct stage *s)
{
	size_t behind = s->head < s->n_queue ? s->queue[s->head].behind : s->n + 1;

	if (behind > s->at)
		return INFINITY;
	return fmax(s->free_s, behind ? s->ran[behind - 1].end : 0);
}

/* The message at the head meets its other end. */
static bool meet(struct pipeline *p, size_t which)
{
	struct stage *s = &p->stage[which], *to;
	const struct message *m = &s->queue[s->head];
	double mine = begins(s), its, end;

	if (isinf(mine) || !m->send)
		return false;
	to = other_end(p, which, m->channel, true);
	its = begins(to);
	if (isinf(its) || to->queue[to->head].send ||
	    to->queue[to->head].channel != m->channel)
		return false;
	end = fmax(mine, its) + s->pass[m->behind - 1].transfer_s;
	s->waited[s->head++] = (struct span){ mine, end };
	to->waited[to->head++] = (struct span){ its, end };
	s->free_s = to->free_s = end;
	to->arrived[m->channel][to->n_arrived[m->channel]++] = end;
	return true;
}

static bool go_on_in_queues(struct pipeline *p, size_t which, double unused)
{
	bool moved = run_passes(&p->stage[which]);

	(void)unused;
	while (meet(p, which))
		moved = true;
	return moved;
}

bool queues_run(struct pipeline *p)
{
	return run(p, 0, go_on_in_queues);
}

/* Of a stage's passes beside its messages; both one behind the other. */
double queues_share_beside(const struct stage *s)
{
	double both = 0, all = 0;

	for (size_t i = 0, k = 0; i < s->at && k < s->head;) {
		both += fmax(0, fmin(s->ran[i].end, s->waited[k].end) -
					fmax(s->ran[i].begin, s->waited[k].begin));
		if (s->ran[i].end < s->waited[k].end)
			i++;
		else
			k++;
	}
	for (size_t i = 0; i < s->at; i++)
		all += s->pass[i].compute_s;
	return all > 0 ? both / all : 0;
}

/* ---- without queues --------------------------------------------------------------- */

/* Each send takes so much longer. */
static bool go_on_apart(struct pipeline *p, size_t which, double more_s)
{
	struct stage *s = &p->stage[which];
	size_t from = s->at;
	bool moved = run_passes(s);

	for (size_t k = from; k < s->at; k++)
		for (unsigned i = 0; i < CHANNELS; i++) {
			struct stage *to = other_end(p, which, i, true);

			if (!(s->pass[k].sends >> i & 1) || to->n_arrived[i] == to->n)
				continue;
			s->sent_s[i] = fmax(s->sent_s[i], s->ran[k].end) +
				       s->pass[k].transfer_s + more_s;
			to->arrived[i][to->n_arrived[i]++] = s->sent_s[i];
		}
	return moved;
}

static double apart_s(struct pipeline *p, double more_s)
{
	return run(p, more_s, go_on_apart) ? queues_length_s(p) : INFINITY;
}

/* What messages take longer, so that a run without queues is as long as one in them. Lengths are convex in it and made of
 * straight pieces: the piece at 0 leads beyond what is looked for, a chord of the bracket stays before it, and a half of what
 * is left is taken in turn. */
double queues_longer_s(struct pipeline *p, double in_queues_s)
{
	double low = 0, below = apart_s(p, low), step = NEAR_FRAC * in_queues_s;
	double high, above;

	if (below >= in_queues_s)
		return 0;
	high = (in_queues_s - below) * step / fmax(step, apart_s(p, step) - below);
	above = apart_s(p, high);
	for (int i = 0; i < STEPS && above - in_queues_s > NEAR_FRAC * in_queues_s;
	     i++) {
		double part = i % 2 ? 0.5 : (in_queues_s - below) / (above - below);
		double at = low + part * (high - low), length = apart_s(p, at);

		if (length < in_queues_s) {
			low = at;
			below = length;
		} else {
			high = at;
			above = length;
		}
	}
	return high;
}
