/* tests/emitted_lines.h - lines that a framework's arguments must have, as that framework writes them */
#ifndef TESTS_EMITTED_LINES_H
#define TESTS_EMITTED_LINES_H

#include "base/arena.h"
#include "foretoken/reports.h"
#include "foretoken/study.h"
#include "tests/check.h"

enum { LINES = 80 };

struct lines {
	struct arena *mem;
	enum ft_framework of;
	const struct ft_scenario *s;
	const struct ft_plan *p;
	bool routed;
	size_t n;
	const char *line[LINES];
};

static void line(struct lines *l, const char *text)
{
	assert_true(l->n < LINES);
	l->line[l->n++] = text;
}

/* "name value" as the framework writes it; value "": a flag. */
static void is(struct lines *l, bool when, const char *name, const char *value)
{
	char *dashed = (char *)arena_text(l->mem, name);

	if (!when)
		return;
	for (char *c = dashed; *c; c++)
		*c = *c == '_' ? '-' : *c;
	if (l->of == FT_MEGATRON)
		line(l, arena_printf(l->mem, "--%s%s%s", dashed, *value ? " " : "",
				     value));
	else
		line(l, arena_printf(l->mem, "%s%s %s", name,
				     l->of == FT_TORCHTITAN ? " =" : ":",
				     *value ? value : "true"));
}

static void is_int(struct lines *l, bool when, const char *name, int64_t value)
{
	is(l, when, name, arena_printf(l->mem, "%lld", (long long)value));
}

static void no_name(struct lines *l, bool when, const char *what)
{
	if (when)
		line(l, arena_printf(l->mem, "# not mapped: %s", what));
}

static void no_name_of(struct lines *l, bool when, const char *key, int64_t value)
{
	no_name(l, when, arena_printf(l->mem, "%s%lld", key, (long long)value));
}

static bool all_chunks_are(const struct ft_plan *p, int64_t first, int64_t between)
{
	int64_t last = p->pp * p->vpp - 1;

	for (int64_t c = 0; c <= last; c++)
		if (p->stage_layers[c] != (c && c < last ? between : first))
			return false;
	return true;
}

#endif
