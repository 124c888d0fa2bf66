/* study/shelf.c - a short list per kind of part, looked through in order */
#include "study/shelf.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "study/evidence.h"

enum kind { CLUSTER, STACK, STACK_ON, CCL, PRICES, EVIDENCE, KINDS };

struct book {
	const char *key,
		*gpu; /* gpu: what two clusters have alike that may share one */
	void *part;
	struct book *next;
};

struct ft_shelf {
	struct arena mem; /* documents, keys */
	struct book *first[KINDS];
	struct ft_memo *memo; /* of the clusters' GPUs */
};

struct ft_shelf *ft_shelf_new(void)
{
	struct arena mem = { 0 };
	struct ft_shelf *s = ARENA_NEW(&mem, struct ft_shelf);

	s->mem = mem;
	s->memo = ft_memo_new();
	return s;
}

enum { MANY_CLUSTERS = 256, MANY_PREDICTIONS = 65536 };

void ft_shelf_renew(struct ft_shelf **shelf)
{
	size_t clusters = 0;

	for (struct book *b = (*shelf)->first[CLUSTER]; b; b = b->next)
		clusters++;
	if (clusters < MANY_CLUSTERS && ft_memo_size((*shelf)->memo) < MANY_PREDICTIONS)
		return;
	ft_shelf_free(*shelf);
	*shelf = ft_shelf_new();
}

void ft_shelf_free(struct ft_shelf *s)
{
	struct arena mem;

	if (!s)
		return;
	for (struct book *b = s->first[CLUSTER]; b; b = b->next)
		ft_cluster_free(b->part);
	for (struct book *b = s->first[STACK]; b; b = b->next)
		ft_stack_free(b->part);
	for (struct book *b = s->first[CCL]; b; b = b->next)
		ft_ccl_free(b->part);
	for (struct book *b = s->first[PRICES]; b; b = b->next)
		ft_prices_free(b->part);
	for (struct book *b = s->first[EVIDENCE]; b; b = b->next)
		evidence_free(b->part);
	ft_memo_free(s->memo);
	mem = s->mem;
	arena_release(&mem);
}

struct ft_memo *shelf_memo(struct ft_shelf *s)
{
	return s->memo;
}

struct arena *shelf_memory(struct ft_shelf *s)
{
	return &s->mem;
}

static void *look(const struct ft_shelf *s, enum kind kind, const char *key)
{
	for (struct book *b = s->first[kind]; b; b = b->next)
		if (!strcmp(b->key, key))
			return b->part;
	return NULL;
}

static void *put(struct ft_shelf *s, enum kind kind, const char *key, void *part)
{
	struct book *b;

	if (!part)
		return NULL;
	b = ARENA_NEW(&s->mem, struct book);
	b->key = arena_text(&s->mem, key);
	b->part = part;
	b->next = s->first[kind];
	s->first[kind] = b;
	return part;
}

/* What a name means: one of ours is its own key; a path is the file that it leads to from there, as that file is now. A file
 * that changed, or another of the same path in another folder, is another part. */
static const char *meant(struct arena *mem, const char *name, const struct ft_mark *at)
{
	struct ft_error ignored;
	struct stat st;
	const char *path;

	if (!file_is_path(name))
		return name;
	path = file_find(mem, "", name, at, &ignored);
	if (!path || stat(path, &st))
		return name;
	return arena_printf(mem, "%s;%ju;%ju;%jd;%jd.%09ld", path, (uintmax_t)st.st_dev,
			    (uintmax_t)st.st_ino, (intmax_t)st.st_size,
			    (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

enum { MOST_KEYS = 16 }; /* a cluster's; more are refused when it is loaded */

/* A map of scalars as one text, of these keys or (NULL) of all; NULL when it is anything else. */
static char *key_of(struct arena *mem, const struct node *node, int rows,
		    const char *const only[2])
{
	char *key = arena_printf(mem, "rows=%d;", rows);

	if (node->kind != NODE_MAP || node->n > MOST_KEYS)
		return NULL;
	for (size_t i = 0; i < node->n; i++) {
		if (only && strcmp(node->key[i], only[0]) != 0 &&
		    strcmp(node->key[i], only[1]) != 0)
			continue;
		if (node->item[i]->kind != NODE_SCALAR)
			return NULL;
		key = arena_printf(
			mem, "%s%s=%s;", key, node->key[i],
			meant(mem, node->item[i]->text, &node->item[i]->mark));
	}
	return key;
}

/* The first with this GPU, which is freed last. */
static const struct ft_cluster *with_gpu(const struct ft_shelf *s, const char *gpu)
{
	const struct ft_cluster *first = NULL;

	for (struct book *b = s->first[CLUSTER]; gpu && b; b = b->next)
		if (b->gpu && !strcmp(b->gpu, gpu))
			first = b->part;
	return first;
}

const struct ft_cluster *shelf_cluster(struct ft_shelf *s, const struct node *node,
				       int rows, struct ft_error *err)
{
	static const char *const of_gpu[] = { "gpu", "site" };
	const char *key = key_of(&s->mem, node, rows, NULL), *gpu;
	void *part = key ? look(s, CLUSTER, key) : NULL;

	if (part)
		return part;
	gpu = key_of(&s->mem, node, rows, of_gpu);
	part = put(s, CLUSTER, key ? key : "",
		   ft_cluster_load_like(node, rows, with_gpu(s, gpu), err));
	if (part)
		s->first[CLUSTER]->gpu = gpu;
	return part;
}

const struct ft_stack *shelf_stack(struct ft_shelf *s, const char *name,
				   const struct ft_mark *at, const char *generation,
				   struct ft_error *err)
{
	const char *key = meant(&s->mem, name, at);
	const struct ft_stack *stack = look(s, STACK, key), *there;
	struct ft_stack on;

	if (!stack)
		stack = put(s, STACK, key, ft_stack_load(name, at, err));
	if (!stack || !generation)
		return stack;
	there = ft_stack_on(stack, generation, &on);
	if (there == stack)
		return stack;
	key = arena_printf(&s->mem, "%s on %s", key, generation);
	stack = look(s, STACK_ON, key);
	if (!stack) {
		struct ft_stack *copy = ARENA_NEW(&s->mem, struct ft_stack);

		*copy = on;
		stack = put(s, STACK_ON, key, copy);
	}
	return stack;
}

const struct ft_ccl *shelf_ccl(struct ft_shelf *s, const char *name,
			       const struct ft_mark *at, const char *generation,
			       struct ft_error *err)
{
	const char *key = meant(&s->mem, name, at);
	struct ft_ccl *c = look(s, CCL, key);

	if (!c)
		c = put(s, CCL, key, ft_ccl_load(name, at, err));
	if (c && !ft_ccl_tuning(c, generation)) {
		ft_ccl_unknown(c, generation, at, err);
		return NULL;
	}
	return c;
}

const struct ft_ccl *shelf_ccl_of(struct ft_shelf *s, const struct ft_stack *stack,
				  const char *generation, struct ft_error *err)
{
	const char *key =
		arena_printf(&s->mem, "stack=%p;%s", (const void *)stack, generation);
	void *part = look(s, CCL, key);

	return part ? part : put(s, CCL, key, ft_stack_ccl(stack, generation, err));
}

const struct ft_prices *shelf_prices(struct ft_shelf *s, const char *name,
				     const struct ft_mark *at, struct ft_error *err)
{
	const char *key = meant(&s->mem, name ? name : "", at);
	void *part = look(s, PRICES, key);

	return part ? part : put(s, PRICES, key, ft_prices_load(name, at, err));
}

const struct ft_evidence *shelf_evidence(struct ft_shelf *s, bool unnamed,
					 struct ft_error *err)
{
	const char *key = unnamed ? "unnamed" : "named";
	void *part = look(s, EVIDENCE, key);

	return part ? part : put(s, EVIDENCE, key, evidence_load(unnamed, err));
}
