/* study/classes.c - steps put into classes: by GPU, by plan, by size ... */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "study/tally.h"
#include "study/traits.h"

struct way {
	const char *name, *about;
	const char *(*label)(const struct ft_traits *t, char text[FT_CLASS]);
};

#define WORD(name) \
	static const char *name(const struct ft_traits *t, char text[FT_CLASS]) \
	{ \
		(void)text; \
		return t->name; \
	}

WORD(gpu)
WORD(stack)
WORD(model)
WORD(precision)

static const char *plan(const struct ft_traits *t, char text[FT_CLASS])
{
	snprintf(text, FT_CLASS, "%s%s%s%s%s", t->tp > 1 ? "tp + " : "",
		 t->pp > 1 ? "pp + " : "", t->cp > 1 ? "cp + " : "",
		 t->ep > 1 ? "ep + " : "", t->sharding);
	return text;
}

/* A dense model has 6 FLOPs a token for each parameter, attention aside. */
static const char *size(const struct ft_traits *t, char text[FT_CLASS])
{
	double active = t->flop_per_token / 6;

	(void)text;
	return active < 3e9  ? "up to 3 B" :
	       active < 15e9 ? "3 to 15 B" :
	       active < 80e9 ? "15 to 80 B" :
			       "80 B and more";
}

static const char *gpus(const struct ft_traits *t, char text[FT_CLASS])
{
	(void)text;
	return t->gpus <= 1   ? "1 GPU" :
	       t->gpus <= 8   ? "2 to 8 GPUs" :
	       t->gpus <= 64  ? "9 to 64 GPUs" :
	       t->gpus <= 512 ? "65 to 512 GPUs" :
				"513 GPUs and more";
}

static const struct way ways[] = {
	{ "gpu", "the GPU", gpu },
	{ "gpus", "how many GPUs", gpus },
	{ "stack", "the software stack", stack },
	{ "plan", "how the plan is cut: tp, pp, cp, ep and the sharding", plan },
	{ "precision", "the format of matrix products", precision },
	{ "model", "dense models or mixtures of experts", model },
	{ "size", "a sixth of a token's FLOPs: about the parameters it uses", size },
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

const char *ft_class_by(size_t i, const char **about)
{
	if (i >= WAYS)
		return NULL;
	*about = ways[i].about;
	return ways[i].name;
}

const char *ft_class_of(const struct ft_traits *of, const char *by, char text[FT_CLASS])
{
	for (size_t i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, by))
			return ways[i].label(of, text);
	return "";
}

static bool known(const char *by, struct ft_error *err)
{
	const char *name[WAYS], *near;

	for (size_t i = 0; i < WAYS; i++) {
		name[i] = ways[i].name;
		if (!strcmp(name[i], by))
			return true;
	}
	near = text_nearest(by, name, WAYS);
	return ft_fail(err, NULL,
		       "there is no way to group steps by '%.40s'; known: gpu, gpus, "
		       "stack, plan, precision, model, size%s%s%s",
		       by, near ? "; did you mean " : "", near ? near : "",
		       near ? "?" : "");
}

bool ft_validation_by(struct ft_validation *v, const char *by, struct ft_error *err)
{
	struct arena *mem = validation_memory(v);
	const char **label = ARENA_ARRAY(mem, v->n_checks + 1, const char *);
	char text[FT_CLASS];

	if (!known(by, err))
		return false;
	for (size_t i = 0; i < v->n_checks; i++) {
		if (!v->check[i].traits)
			return ft_fail(err, NULL,
				       "%s holds kernels or collectives: only training "
				       "steps are grouped by %s",
				       v->file, by);
		label[i] = arena_text(mem, ft_class_of(v->check[i].traits, by, text));
	}
	v->by = arena_text(mem, by);
	v->group = tally_each(mem, v->check, label, v->n_checks, &v->n_groups);
	return true;
}
