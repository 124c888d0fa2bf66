/*
 * study/differs.c - which keys of some scenarios differ, and what to call them
 *
 * Scenarios are compared as resolved: with the defaults of their stacks, nodes and the
 * program in place. name and title only name them.
 */
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "study/keys.h"

struct whole {
	struct ft_settings settings; /* first: the handle is the arena's */
	struct arena mem;
	size_t cap;
};

/* A word where others have a map is the name in that map: model: X is model: {name: X}, cluster.gpu: X is {extends: X}. */
static const struct node *as_name(struct arena *mem, const struct ft_scenario *s,
				  const char *path)
{
	const char *key = strrchr(path, '.');
	const struct node *n;

	if (!key || (strcmp(key, ".name") != 0 && strcmp(key, ".extends") != 0))
		return NULL;
	n = node_path(s->resolved, arena_text_n(mem, path, (size_t)(key - path)));
	return n && n->kind == NODE_SCALAR ? n : NULL;
}

/* The value of a key in a scenario; "-" where it has none or the key has no effect. */
static const char *value_of(struct arena *mem, const struct ft_scenario *s,
			    const char *path)
{
	const struct node *n = node_path(s->resolved, path);

	if (!n)
		n = as_name(mem, s, path);
	if (!n || scenario_idle_value(s, path))
		return "-";
	return n->kind == NODE_SCALAR ? n->text : node_flow(mem, n);
}

/* Has one of them a map there, whose leaves are told one by one? */
static bool is_map_in_one(const char *path, const struct ft_scenario *const *s,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct node *at = node_path(s[i]->resolved, path);

		if (at && at->kind == NODE_MAP)
			return true;
	}
	return false;
}

/* Where a value that is a path leads to from its scenario's folder; NULL: it is none. */
static const char *leads_to(struct arena *mem, const struct ft_scenario *s,
			    const char *path)
{
	const struct node *n = node_path(s->resolved, path);
	const char *file = NULL;
	struct ft_error ignored;

	if (!n)
		n = as_name(mem, s, path);
	if (n && n->kind == NODE_SCALAR && file_is_path(n->text))
		file = file_find(mem, "", n->text, &n->mark, &ignored);
	return file;
}

static bool one_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* The same words may lead to two files: then they are told by where they lead to. */
static void tell_files(struct arena *mem, struct ft_setting *x,
		       const struct ft_scenario *const *s, size_t n)
{
	const char **file = ARENA_ARRAY(mem, n, const char *);
	const char **value = ARENA_ARRAY(mem, n, const char *);

	for (size_t i = 0; i < n; i++) {
		value[i] = x->value[i];
		file[i] = leads_to(mem, s[i], x->key);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (file[i] && file[k] && !strcmp(value[i], value[k]) &&
			    !one_file(file[i], file[k])) {
				x->value[i] = file[i];
				x->differs = true;
			}
}

static bool known(const struct whole *w, const char *path)
{
	for (size_t i = 0; i < w->settings.n; i++)
		if (!strcmp(w->settings.setting[i].key, path))
			return true;
	return false;
}

static void put(struct whole *w, const char *path, const struct ft_scenario *const *s,
		size_t n)
{
	struct ft_setting *x;
	bool any = false;

	if (known(w, path) || is_map_in_one(path, s, n))
		return;
	if (w->settings.n == w->cap)
		w->settings.setting = ARENA_GROW(&w->mem, w->settings.setting, &w->cap);
	x = &w->settings.setting[w->settings.n++];
	x->key = path;
	x->value = ARENA_ARRAY(&w->mem, n, const char *);
	for (size_t i = 0; i < n; i++) {
		x->value[i] = value_of(&w->mem, s[i], path);
		x->differs |= strcmp(x->value[i], x->value[0]) != 0;
		any |= strcmp(x->value[i], "-") != 0;
	}
	tell_files(&w->mem, x, s, n);
	w->settings.n -= !any;
}

/* Every leaf below a map; a list is a leaf. */
static void leaves(struct whole *w, const struct node *map, const char *head,
		   const struct ft_scenario *const *s, size_t n)
{
	for (size_t i = 0; i < map->n; i++) {
		const char *path = arena_printf(&w->mem, "%s%s%s", head,
						head[0] ? "." : "", map->key[i]);

		if (!strcmp(path, "name") || !strcmp(path, "title"))
			continue;
		if (map->item[i]->kind == NODE_MAP)
			leaves(w, map->item[i], path, s, n);
		else
			put(w, path, s, n);
	}
}

struct ft_settings *ft_study_settings(const struct ft_scenario *const *s, size_t n)
{
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);

	w->mem = mem;
	for (size_t i = 0; i < n; i++)
		leaves(w, s[i]->resolved, "", s, n);
	return &w->settings;
}

void ft_settings_free(struct ft_settings *settings)
{
	struct arena mem;

	if (!settings)
		return;
	mem = ((struct whole *)settings)->mem;
	arena_release(&mem);
}

struct labels {
	struct arena mem;
	const char *label[]; /* [n] */
};

static const char *leaf_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

/* What tells scenario i from the others of its label. */
struct twins {
	size_t n, before;      /* others; of them those that come before it */
	bool by_leaf, by_file; /* no other's file is called so; is it */
};

static struct twins twins_of(const struct ft_scenario *const *s, size_t n, size_t i)
{
	struct twins t = { 0, 0, true, true };

	for (size_t k = 0; k < n; k++) {
		if (k == i || strcmp(s[k]->label, s[i]->label) != 0)
			continue;
		t.n++;
		t.before += k < i;
		t.by_leaf &= strcmp(leaf_of(s[k]->file), leaf_of(s[i]->file)) != 0;
		t.by_file &= strcmp(s[k]->file, s[i]->file) != 0;
	}
	return t;
}

/* Another scenario's label, which stays as it is, or one already given, is the same. */
static bool taken(const struct ft_scenario *const *s, size_t n,
		  const char *const *label, size_t given, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(i < given ? label[i] : s[i]->label, text))
			return true;
	return false;
}

const char **ft_study_labels(const struct ft_scenario *const *s, size_t n)
{
	struct arena mem = { 0 };
	struct labels *l = arena_alloc(&mem, 1, sizeof(*l) + n * sizeof(*l->label));

	for (size_t i = 0; i < n; i++) {
		struct twins t = twins_of(s, n, i);
		const char *text = NULL;

		l->label[i] = s[i]->label;
		if (!t.n)
			continue;
		if (t.by_leaf || t.by_file)
			text = arena_printf(&mem, "%s (%s)", s[i]->label,
					    t.by_leaf ? leaf_of(s[i]->file) :
							s[i]->file);
		for (size_t k = t.before + 1; !text || taken(s, n, l->label, i, text);
		     k++)
			text = arena_printf(&mem, "%s (%zu)", s[i]->label, k);
		l->label[i] = text;
	}
	l->mem = mem;
	return l->label;
}

void ft_labels_free(const char **labels)
{
	struct arena mem;

	if (!labels)
		return;
	mem = ((struct labels *)(void *)((char *)labels -
					 offsetof(struct labels, label)))
		      ->mem;
	arena_release(&mem);
}

const char *scenario_label(struct arena *mem, const struct ft_scenario *s,
			   struct ft_error *err)
{
	static const char *const keys[] = { "title", "name" };
	const char *label = NULL;
	const struct node *n = NULL;

	for (int i = 0; !label && i < 2; i++) {
		n = node_get(s->given, keys[i]);
		if (!node_is_null(n) && n->kind == NODE_SCALAR)
			label = n->text;
	}
	if (!label)
		label = file_stem(mem, s->file);
	for (const char *c = label; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127) {
			ft_fail(err, n ? &n->mark : NULL,
				"title: holds a line break or another control "
				"character");
			return NULL;
		}
	return label;
}
