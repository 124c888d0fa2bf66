/*
 * recorded/transfers.c - what a kernel sends and receives, where only the host's calls tell
 *
 * PyTorch batches a pipeline's transfers: it describes each where it is asked for, and
 * launches one kernel for all of a batch behind them, which tells nothing itself.
 *
 *   thread   [send to 1][recv from 1] launch     [send to 1] launch
 *   stream                            |#######|              |##|
 *
 * So a kernel's are those that its thread asked for since the launch before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "recorded/recording.h"

/* A transfer that was asked for, or the launch of a kernel. */
struct turn {
	int16_t thread;
	ft_ps at;
	int32_t args;	      /* of a transfer */
	struct ft_rec_op *op; /* launched; or NULL */
	int64_t place;	      /* in the list */
};

/* At one time what was asked for comes first, as in the list, each as it stands in the file. */
static int by_thread(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	int order = whole_order(x->thread, y->thread);

	if (!order)
		order = whole_order(x->at, y->at);
	return order ? order : whole_order(x->place, y->place);
}

static bool is_transfer(const struct ft_recording *r, const struct ft_rec_span *s)
{
	const char *args = ft_recording_text(r, s->args);

	return !strcmp(ft_recording_text(r, s->name), "record_param_comms") &&
	       (strstr(args, "\"Collective name\":\"send\"") ||
		strstr(args, "\"Collective name\":\"recv\""));
}

/* Does an operation send and receive, and not say what? */
static bool is_silent(const struct ft_recording *r, const struct ft_rec_op *op)
{
	const struct ft_rec_span *o = ft_recording_operator(r, op);

	return op->rec_class == FT_REC_COLLECTIVE && op->call != FT_REC_NONE &&
	       op->args == FT_REC_NONE && (!o || o->args == FT_REC_NONE) &&
	       strstr(ft_recording_text(r, op->name), "SendRecv");
}

/* One part as it was told; several as a list. */
static int32_t join(struct ft_recording *r, const struct turn *part, size_t n)
{
	char text[LIMIT_TRACE_TEXT_BYTES];
	size_t len = 0;

	if (n == 1)
		return part->args;
	for (size_t i = 0; i < n; i++) {
		const char *args = ft_recording_text(r, part[i].args);
		size_t more = strlen(args);

		if (len + more + 2 > sizeof(text))
			return FT_REC_NONE;
		text[len++] = i ? ',' : '[';
		memcpy(text + len, args, more);
		len += more;
	}
	text[len++] = ']';
	return text_number(r, text, len);
}

static size_t list(struct ft_recording *r, struct turn *to)
{
	size_t n = 0;

	for (size_t i = 0; i < r->span.n; i++) {
		const struct ft_rec_span *s = table_at(&r->span, i);

		if (s->args != FT_REC_NONE && is_transfer(r, s))
			to[n++] = (struct turn){ .thread = s->thread,
						 .at = s->start,
						 .args = s->args };
	}
	if (!n)
		return 0;
	for (size_t i = 0; i < r->op.n; i++) {
		struct ft_rec_op *op = op_of(r, i);

		if (is_silent(r, op)) {
			const struct ft_rec_call *c = call_of(r, (size_t)op->call);

			to[n++] = (struct turn){ .thread = c->thread,
						 .at = c->start,
						 .op = op };
		}
	}
	return n;
}

void recording_transfers(struct ft_recording *r)
{
	struct arena scratch = { 0 };
	struct turn *t = ARENA_ARRAY(&scratch, r->span.n + r->op.n, struct turn);
	size_t n = list(r, t), first = 0;

	for (size_t i = 0; i < n; i++)
		t[i].place = (int64_t)i;
	qsort(t, n, sizeof(*t), by_thread);
	for (size_t i = 0; i < n; i++) {
		if (i && t[i].thread != t[i - 1].thread)
			first = i;
		if (!t[i].op)
			continue;
		if (i > first)
			t[i].op->args = join(r, &t[first], i - first);
		first = i + 1;
	}
	arena_release(&scratch);
}
