/* study/stack_there.c - does a scenario's stack run on its GPU: its vendor, and its kernels of attention; what extends it */
#include "study/stack_there.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/text.h"

/* A framework's build is one vendor's: NeMo does not run on an MI300X. */
static bool is_built_for(const struct ft_scenario *s, const struct node *at,
			 struct ft_error *err)
{
	const char *whose = s->stack->vendor;

	if (!strcmp(whose, "any") || !strcmp(whose, s->cluster->gpu->vendor))
		return true;
	return ft_fail(
		err, at ? &at->mark : &s->cluster->gpus_mark,
		"stack %s runs on %s GPUs only, and %s is an %s GPU; choose another stack "
		"(see foretoken list stacks)",
		s->stack->name, whose, s->cluster->gpu->name, s->cluster->gpu->vendor);
}

/* Attention that the GPU's profile knows nothing of would run as its usual one, without a word. */
static bool attends_there(const struct ft_scenario *s, const struct node *at,
			  struct arena *mem, struct ft_error *err)
{
	const struct ft_cluster *c = s->cluster;
	const struct ft_layout_rules *rules = &s->stack->layout;
	const char *const impl[] = { rules->attention, rules->masked_attention,
				     s->model->sinks ? rules->sink_attention : "" };

	for (size_t i = 0; i < sizeof(impl) / sizeof(*impl); i++)
		if (impl[i][0] && strcmp(impl[i], "unfused") != 0 &&
		    strcmp(impl[i], "plain") != 0 &&
		    !ft_attention_known(c->gpu, impl[i]))
			return ft_fail(err, at ? &at->mark : &c->gpus_mark,
				       "attention '%s' is not one of %s, which %s has",
				       impl[i], ft_attention_names(mem, c->gpu),
				       c->gpu->name);
	return true;
}

bool stack_runs_there(const struct ft_scenario *s, const struct node *at,
		      struct arena *mem, struct ft_error *err)
{
	return is_built_for(s, at, err) && attends_there(s, at, mem, err);
}

const char *stack_base(const struct ft_scenario *s, struct arena *mem)
{
	const struct node *n = node_path(s->given, "stack");
	struct ft_error ignored;
	const char *path;
	char *real;

	if (!n || n->kind != NODE_SCALAR || !file_is_path(n->text))
		return s->stack->name;
	path = file_find(mem, "stacks", n->text, &n->mark, &ignored);
	real = path ? realpath(path, NULL) : NULL;
	path = real ? arena_text(mem, real) : n->text;
	free(real);
	return path;
}

bool stack_file(const char *name, char *path, size_t size, struct ft_error *err)
{
	const char *slash = strrchr(name, '/'), *leaf = slash ? slash + 1 : name;

	if (!text_is_name(leaf))
		return ft_fail(err, NULL, "the stack's name '%.60s' " TEXT_NAME_RULE,
			       leaf, (int)LIMIT_NAME_BYTES);
	snprintf(path, size, "%s.yaml", name);
	return !file_exists(path) ||
	       ft_fail(err, NULL, "%s exists: give another name, or remove it", path);
}
