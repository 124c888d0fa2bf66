/* traces/stretches.c - where in a segment the host does what it does besides launching */
#include "traces/stretches.h"

#include <string.h>

#include "base/arena.h"

bool segment_cut(struct arena *mem, struct ft_segment *s, size_t op)
{
	if (s->n_behind && s->behind[s->n_behind - 1].op == op)
		return true;
	if (s->n_behind == FT_BEHIND)
		return false;
	if (!s->behind)
		s->behind = ARENA_ARRAY(mem, FT_BEHIND, struct ft_behind);
	s->behind[s->n_behind++].op = op;
	return true;
}

static void host_before(const struct ft_segment *s, double host[FT_HOSTS])
{
	memcpy(host, s->host, FT_HOSTS * sizeof(*host));
	for (size_t i = 0; i < s->n_behind; i++)
		for (int h = 0; h < FT_HOSTS; h++)
			host[h] -= s->behind[i].host[h];
}

struct ft_stretch ft_segment_stretch(const struct ft_segment *s, size_t i)
{
	struct ft_stretch t = { .begin = i ? s->behind[i - 1].op : 0,
				.end = i < s->n_behind ? s->behind[i].op : s->n_ops };

	if (i)
		memcpy(t.host, s->behind[i - 1].host, sizeof(t.host));
	else
		host_before(s, t.host);
	for (size_t k = t.begin; k < t.end; k++)
		t.among += !s->op[k].graphed;
	t.graphed = !t.among;
	if (t.graphed)
		t.among = t.end - t.begin;
	return t;
}
