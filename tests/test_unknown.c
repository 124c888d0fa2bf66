/*
 * tests/test_unknown.c - no map of any file takes a key that nobody reads: each map, at each depth, of
 * each file of the tree, with one more key in it, is refused; tables by name want a map
 */
#include <dirent.h>

#include "base/arena.h"
#include "base/extends.h"
#include "foretoken/cost.h"
#include "foretoken/hw.h"
#include "foretoken/stacks.h"
#include "tests/check.h"
#include "tests/few.h"

#ifdef TESTS_FEW
enum { EVERY = 3 }; /* files, by their names */
#else
enum { EVERY = 1 };
#endif

/* Files of a kind: the folder, and whether one with these words is taken. */
struct files {
	const char *folder;
	enum extends_as as;
	bool (*taken)(const char *name, const char *text, struct ft_error *err);
	size_t maps; /* at least so many are tried */
};

static bool gpu(const char *name, const char *text, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *n = node_read_text(&mem, "t", text, strlen(text), err);
	struct ft_gpu *g = n ? ft_gpu_load_value(n, FT_GPU_ALL_ROWS, err) : NULL;

	(void)name;
	ft_gpu_free(g);
	arena_release(&mem);
	return g != NULL;
}

static bool node(const char *name, const char *text, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *n = node_read_text(&mem, "t", text, strlen(text), err);
	struct ft_node *x = n ? ft_node_load_value(n, err) : NULL;

	(void)name;
	ft_node_free(x);
	arena_release(&mem);
	return x != NULL;
}

static bool fabric(const char *name, const char *text, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *n = node_read_text(&mem, "t", text, strlen(text), err);
	struct ft_fabric *x = n ? ft_fabric_load_value(n, err) : NULL;

	(void)name;
	ft_fabric_free(x);
	arena_release(&mem);
	return x != NULL;
}

static const char *written(char path[64], const char *text)
{
	FILE *f = fopen(own_path(path, "unknown.yaml"), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static bool stack(const char *name, const char *text, struct ft_error *err)
{
	char path[64];
	struct ft_stack *x = ft_stack_load(written(path, text), NULL, err);

	(void)name;
	unlink(path);
	ft_stack_free(x);
	return x != NULL;
}

static bool ccl(const char *name, const char *text, struct ft_error *err)
{
	char path[64];
	struct ft_ccl *x = ft_ccl_load(written(path, text), NULL, err);

	(void)name;
	unlink(path);
	ft_ccl_free(x);
	return x != NULL;
}

/* A book extends none: the words are laid upon it. */
static bool book(const char *name, const char *text, struct ft_error *err)
{
	struct arena mem = { 0 };
	char path[64];
	struct node *own = node_read_text(&mem, "t", text, strlen(text), err);
	struct node *below = node_read_file(
		&mem, arena_printf(&mem, "cost/prices/%s.yaml", name), err);
	struct ft_prices *x;

	assert_true(own && below);
	text = node_flow(&mem, node_overlay(&mem, below, own));
	x = ft_prices_load(written(path, text), NULL, err);
	unlink(path);
	ft_prices_free(x);
	arena_release(&mem);
	return x != NULL;
}

static const struct files all[] = {
	{ "hw/gpus", EXTENDS_DERIVED, gpu, 300 },
	{ "hw/nodes", EXTENDS_DERIVED, node, 20 },
	{ "hw/fabrics", EXTENDS_DERIVED, fabric, 20 },
	{ "stacks", EXTENDS_SAME, stack, 100 },
	{ "stacks/ccl", EXTENDS_SAME, ccl, 30 },
	{ "cost/prices", EXTENDS_SAME, book, 300 },
};

struct walk {
	struct arena mem;
	const struct files *files;
	const char *name;
	size_t maps;
};

/* Tables by names that are not known here: implementations of attention, and what a scenario's
 * `training` says, with which it is read. */
static bool is_open(const char *head)
{
	return strstr(head, "\"impl_rate\"") || strstr(head, "\"defaults\"") ||
	       strstr(head, "\"defaults_by_precision\": {");
}

static bool is_told(const struct ft_error *err)
{
	return strstr(err->text, "zqx") || strstr(err->text, "should be a map") ||
	       strstr(err->text, "and nothing else");
}

/* head and tail: the file's words up to this map, and what closes them. */
static void each_map(struct walk *w, const struct node *map, const char *head,
		     const char *tail)
{
	struct ft_error err = { 0 };
	const char *text = arena_printf(&w->mem, "%szqx: 1%s", head, tail);

	if (w->files->taken(w->name, text, &err) ? !is_open(head) : !is_told(&err))
		fail_msg("%s: %s", text, err.text[0] ? err.text : "is taken");
	w->maps++;
	for (size_t i = 0; i < map->n; i++)
		if (map->item[i]->kind == NODE_MAP &&
		    (tail[1] ||
		     strcmp(map->key[i], "provenance"))) /* its own is given */
			each_map(
				w, map->item[i],
				arena_printf(&w->mem, "%s\"%s\": {", head, map->key[i]),
				arena_printf(&w->mem, "}%s", tail));
}

static unsigned sum_of_letters(const char *name)
{
	unsigned sum = 0;

	while (*name)
		sum += (unsigned char)*name++;
	return sum;
}

static void each_file(const struct files *files)
{
	struct walk w = { .files = files };
	DIR *d = opendir(files->folder);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		struct ft_error err;
		const char *dot = strstr(e->d_name, ".yaml"), *head;
		const struct node *map;

		if (!dot || sum_of_letters(e->d_name) % EVERY)
			continue;
		w.name = arena_text_n(&w.mem, e->d_name, (size_t)(dot - e->d_name));
		map = extends_file(&w.mem, files->folder, w.name, NULL, files->as,
				   &err);
		ok_or_say(map, err);
		head = files->taken == book ?
			       "{" :
			       arena_printf(&w.mem,
					    "{extends: %s, name: x, provenance: {kind: "
					    "assumed, source: a test}, ",
					    w.name);
		ok_or_say(files->taken(w.name, arena_printf(&w.mem, "%s}", head), &err),
			  err);
		each_map(&w, map, head, "}");
	}
	closedir(d);
	print_message("%zu maps of %s\n", w.maps, files->folder);
	assert_true(w.maps * EVERY * EVERY > files->maps);
	arena_release(&w.mem);
}

static void no_map_takes_a_key_that_nobody_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		each_file(&all[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_map_takes_a_key_that_nobody_reads),
	};

	return cmocka_run_group_tests_name("unknown", tests, NULL, NULL);
}
