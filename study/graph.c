/* study/graph.c - a scenario's step graph, and where in its document stands what it is refused for */
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"

/* The key that an error begins with ("parallel.pp 2: ...", "schedule: ..."), in the document;
 * where it does not state it, the stack, else nothing. */
static const struct node *key_of(struct arena *mem, const struct node *root,
				 const char *text)
{
	static const char *const maps[] = { "training", "training.parallel", "model" };
	int len = (int)strspn(text, "abcdefghijklmnopqrstuvwxyz_.");

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && len; i++) {
		const struct node *n = node_path(
			root, arena_printf(mem, "%s.%.*s", maps[i], len, text));

		if (!node_is_null(n))
			return n;
	}
	return node_path(root, "stack");
}

struct ft_graph *ft_scenario_graph(const struct ft_scenario *s, struct ft_error *err)
{
	struct arena mem = { 0 };
	const struct node *at;
	struct ft_error told;
	struct ft_graph *g;

	if (!s->plan) {
		ft_fail(err, NULL,
			"the scenario was loaded without its model and its plan");
		return NULL;
	}
	g = ft_graph_build(s->model, s->plan, s->stack, err);
	if (g || err->file[0] || err->of_system)
		return g;
	told = *err;
	at = s->given ? key_of(&mem, s->given, told.text) : NULL;
	if (!node_is_null(at))
		ft_fail(err, &at->mark, "%s", told.text);
	arena_release(&mem);
	return NULL;
}
