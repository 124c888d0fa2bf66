/*
 * recorded/stage_marks.c - the passes of a recorded stage, as its program marked them
 *
 * PyTorch's pipelines annotate each pass: "PP:3I0" computes the gradient of inputs of place 3 of
 * the model for micro-batch 0; F is forward, W of weights, B a whole backward, and
 * "PP:(0F3;3B1)OVERLAP_F_B" two of them. A pass's kernels are those launched meanwhile; of two,
 * the backward one's are launched by autograd's own thread. A pass that launches none is none:
 * the model's first chunk has no gradient of inputs. Source: torch/distributed/pipelining/
 * schedules.py, _PipelineScheduleRuntime (read 2026-11-25).
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recorded/stages.h"

enum { MOST_DIGITS = 6 };

/* An annotation of one pass, or of two at once. */
struct told {
	ft_ps begin, end;
	int16_t thread;
	size_t n;
	struct ft_slot slot[2];
};

static bool read_number(const char **text, int64_t *to)
{
	char *end;
	size_t n = strspn(*text, "0123456789");

	*to = strtoll(*text, &end, 10);
	*text = end;
	return n > 0 && n <= MOST_DIGITS;
}

/* "3I0". Where no schedule cuts backwards, a whole one is what a slot calls a backward. */
static bool read_pass(const char **text, struct ft_slot *to)
{
	static const char letters[] = "FIWB";
	const char *letter;

	if (!read_number(text, &to->chunk) || !**text)
		return false;
	letter = strchr(letters, **text);
	if (!letter)
		return false;
	to->kind = (enum ft_slot_kind)(letter - letters);
	++*text;
	return read_number(text, &to->micro_batch);
}

static bool read_told(const char *name, struct told *t)
{
	static const char before[] = "PP:", behind[] = ")OVERLAP_F_B";

	t->n = 1;
	if (!text_begins_with(name, before))
		return false;
	name += strlen(before);
	if (*name != '(')
		return read_pass(&name, &t->slot[0]) && !*name;
	t->n = 2;
	name++;
	return read_pass(&name, &t->slot[0]) && *name++ == ';' &&
	       read_pass(&name, &t->slot[1]) && !strcmp(name, behind) &&
	       t->slot[0].kind == FT_SLOT_FORWARD && t->slot[1].kind != FT_SLOT_FORWARD;
}

bool marks_cut(const struct ft_recording *r)
{
	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);
		struct told t;

		if (read_told(ft_recording_text(r, a->name), &t) &&
		    (t.slot[0].kind == FT_SLOT_BACKWARD ||
		     t.slot[0].kind == FT_SLOT_WEIGHTS))
			return true;
	}
	return false;
}

static int by_begin(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return whole_order(x->begin, y->begin);
}

/* Of the step, which may begin with its first kernel, in order. */
static struct told *find_told(struct layout *l, const struct ft_recording *r, size_t *n)
{
	const struct ft_rec_step *step = ft_recording_step(r, l->step);
	struct told *to = ARENA_ARRAY(&l->scratch, r->annotation.n + 1, struct told);

	*n = 0;
	for (size_t i = 0; i < r->annotation.n; i++) {
		const struct ft_rec_span *a = table_at(&r->annotation, i);
		struct told *t = &to[*n];

		if (a->start + a->duration <= step->begin || a->start >= step->end ||
		    !read_told(ft_recording_text(r, a->name), t))
			continue;
		t->begin = a->start;
		t->end = a->start + a->duration;
		t->thread = a->thread;
		++*n;
	}
	qsort(to, *n, sizeof(*to), by_begin);
	return to;
}

/* Kernels from `at` on that were launched meanwhile; of two passes those of one alone. */
static void add_mark(struct layout *l, struct stage *s, const struct ft_recording *r,
		     const struct told *t, size_t which, size_t at)
{
	struct mark m = { t->slot[which], s->marked.n, 0 };

	for (; at < s->kernel.n; at++) {
		const struct ft_rec_call *call =
			call_of(r, (size_t)op_of(r, s->kernel.op[at])->call);

		if (call->start >= t->end)
			break;
		if (call->start >= t->begin &&
		    (t->n == 1 || (call->thread != t->thread) == which))
			add_kernel(&l->scratch, &s->marked, s->kernel.op[at]);
	}
	m.n = s->marked.n - m.from;
	if (!m.n)
		return;
	if (s->n_marks == s->mark_cap)
		s->mark = ARENA_GROW(&l->scratch, s->mark, &s->mark_cap);
	s->mark[s->n_marks++] = m;
}

void marks_read(struct layout *l, int64_t here)
{
	struct stage *s = &l->stage[here];
	const struct ft_recording *r = l->p->rank[s->rank].r;
	size_t n, at = 0;
	const struct told *t = find_told(l, r, &n);

	for (size_t i = 0; i < n; i++) {
		while (at < s->kernel.n &&
		       call_of(r, (size_t)op_of(r, s->kernel.op[at])->call)->start <
			       t[i].begin)
			at++;
		for (size_t which = 0; which < t[i].n; which++)
			add_mark(l, s, r, &t[i], which, at);
	}
}
