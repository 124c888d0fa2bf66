/*
 * tests/test_differs.c - what scenarios are called and in which keys they differ, against every
 * leaf of their documents, one by one
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/node.h"
#include "foretoken/study.h"
#include "study/keys.h"
#include "tests/check.h"
#include "tests/plan_drawn.h"

enum { MOST = 4, LEAVES = 400, DRAWS = 60 };

/* Its document lies in mem. */
static struct ft_scenario *made(struct arena *mem, struct ft_shelf *shelf,
				const char *text, struct ft_error *err)
{
	struct node *root = node_read_text(mem, "s", text, strlen(text), err);

	return root ? ft_scenario_from(shelf, root, "some/where.yaml", true, err) :
		      NULL;
}

/* Each character of one byte, and some of two. */
static void a_title_holds_no_control_character(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (unsigned c = 1; c < 256; c++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_scenario *s;

		if (c >= 128 && c < 160) /* YAML's own */
			continue;
		s = made(&mem, shelf,
			 arena_printf(
				 &mem,
				 "{title: \"a\\x%02xb\", model: llama3-8b, cluster: "
				 "{gpu: h100-sxm, gpus: 8}, training: "
				 "{global_batch_size: 8, sequence_length: 1024}}",
				 c),
			 &err);
		if (c < 32 || c == 127) {
			assert_null(s);
			assert_non_null(strstr(err.text, "control character"));
			assert_true(!strchr("\t\n\r", (int)c) ||
				    !strncmp(err.text, "title: ", 7));
			assert_int_equal(err.line, 1);
		} else {
			ok_or_say(s, err);
			assert_int_equal(s->label[0], 'a');
			assert_int_equal((unsigned char)s->label[1],
					 c < 128 ? c : 0xc0 | c >> 6);
			assert_int_equal(s->label[strlen(s->label) - 1], 'b');
		}
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* The title, else the name, else the file's without what follows a dot. */
static void a_label_is_the_first_that_is_given(void **state)
{
	static const struct {
		const char *keys, *label;
	} cases[] = { { "title: t, name: n, ", "t" },
		      { "name: n, title: t, ", "t" },
		      { "name: n, ", "n" },
		      { "title: null, name: n, ", "n" },
		      { "", "where" } };
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_scenario *s = made(
			&mem, shelf,
			arena_printf(&mem,
				     "{%smodel: llama3-8b, cluster: {gpu: h100-sxm, "
				     "gpus: 8}, training: {global_batch_size: 8, "
				     "sequence_length: 1024}}",
				     cases[i].keys),
			&err);

		ok_or_say(s, err);
		assert_string_equal(s->label, cases[i].label);
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

/* Its own label where nobody else has it; else that with the file's name or path or a number behind. */
static void is_named(const char *label, const struct ft_scenario *s, bool alone)
{
	const char *slash = strrchr(s->file, '/');
	const char *leaf = slash ? slash + 1 : s->file;
	size_t own = strlen(s->label), n = strlen(label);
	char *end;

	if (alone) {
		assert_string_equal(label, s->label);
		return;
	}
	assert_true(n > own + 3 && label[n - 1] == ')');
	assert_memory_equal(label, s->label, own);
	assert_memory_equal(label + own, " (", 2);
	label += own + 2;
	n -= own + 3;
	if ((n == strlen(leaf) && !strncmp(label, leaf, n)) ||
	    (n == strlen(s->file) && !strncmp(label, s->file, n)))
		return;
	assert_true(strtol(label, &end, 10) >= 1);
	assert_string_equal(end, ")");
}

/* Of two that are called alike neither keeps the name: a verdict would not say which it means. */
static void namesakes_are_told_by_their_files(void **state)
{
	static const char *const cases[][6] = {
		/* label and file of two, and what they are called */
		{ "x", "a.yaml", "x", "b.yaml", "x (a.yaml)", "x (b.yaml)" },
		{ "x", "d/x.yaml", "x", "e/x.yaml", "x (d/x.yaml)", "x (e/x.yaml)" },
		{ "x", "x.yaml", "x", "x.yaml", "x (1)", "x (2)" },
		{ "x", "x.yaml", "y", "x.yaml", "x", "y" },
		{ "x", "f", "x (f)", "g", "x", "x (f)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *const *c = cases[i];
		struct ft_scenario a = { .label = c[0], .file = c[1] };
		struct ft_scenario b = { .label = c[2], .file = c[3] };
		const struct ft_scenario *s[] = { &a, &b };
		const char **label = ft_study_labels(s, 2);

		assert_string_equal(label[0], c[4]);
		assert_string_equal(label[1], c[5]);
		ft_labels_free(label);
	}
}

static void no_two_are_called_alike(void **state)
{
	(void)state;
	seed = 3;
	for (int draw = 0; draw < 2000; draw++) {
		struct ft_scenario of[MOST];
		const struct ft_scenario *s[MOST];
		size_t n = 1 + (size_t)below(MOST);
		const char **label;

		for (size_t i = 0; i < n; i++) {
			of[i] = (struct ft_scenario){ .label = ANY("x", "x", "y",
								   "x (f)", "x (2)",
								   "x (a/f)"),
						      .file = ANY("f", "a/f", "b/g") };
			s[i] = &of[i];
		}
		label = ft_study_labels(s, n);
		for (size_t i = 0; i < n; i++) {
			bool alone = true;

			for (size_t k = 0; k < n; k++) {
				if (k == i)
					continue;
				assert_string_not_equal(label[k], label[i]);
				alone &= strcmp(of[k].label, of[i].label) != 0;
			}
			is_named(label[i], s[i], alone);
		}
		ft_labels_free(label);
	}
	ft_labels_free(NULL);
}

/* ---- keys ------------------------------------------------------------------------------ */

struct leaf_list {
	struct arena mem;
	const char *path[LEAVES];
	size_t n;
};

static void list(struct leaf_list *l, const struct node *map, const char *head)
{
	for (size_t i = 0; i < map->n; i++) {
		const char *path = arena_printf(&l->mem, "%s.%s", head, map->key[i]);

		if (map->item[i]->kind == NODE_MAP) {
			list(l, map->item[i], path);
		} else {
			assert_true(l->n < LEAVES);
			l->path[l->n++] = path + 1;
		}
	}
}

static const char *said(struct arena *mem, const struct ft_scenario *s,
			const char *path)
{
	const struct node *n = node_path(s->resolved, path);

	if (!n || scenario_idle_value(s, path))
		return "-";
	return n->kind == NODE_SCALAR ? n->text : node_flow(mem, n);
}

static const struct ft_setting *setting_of(const struct ft_settings *all,
					   const char *key)
{
	const struct ft_setting *found = NULL;

	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->setting[i].key, key)) {
			assert_null(found);
			found = &all->setting[i];
		}
	return found;
}

/* Each leaf of each is there once, unless all say nothing of it; and nothing else is. */
static void are_all_leaves(const struct ft_scenario *const *s, size_t n)
{
	struct ft_settings *all = ft_study_settings(s, n);
	struct leaf_list l = { .n = 0 };
	size_t told = 0;

	for (size_t i = 0; i < n; i++)
		list(&l, s[i]->resolved, "");
	for (size_t i = 0; i < l.n; i++) {
		const struct ft_setting *x = setting_of(all, l.path[i]);
		bool any = false, differs = false, seen = false;

		for (size_t k = 0; k < i; k++)
			seen |= !strcmp(l.path[k], l.path[i]);
		for (size_t k = 0; k < n; k++) {
			const char *value = said(&l.mem, s[k], l.path[i]);

			any |= strcmp(value, "-") != 0;
			differs |= strcmp(value, said(&l.mem, s[0], l.path[i])) != 0;
			if (x)
				assert_string_equal(x->value[k], value);
		}
		any &= strcmp(l.path[i], "name") != 0 &&
		       strcmp(l.path[i], "title") != 0;
		assert_int_equal(x != NULL, any);
		assert_true(!x || x->differs == differs);
		told += any && !seen;
	}
	assert_int_equal(all->n, told);
	ft_settings_free(all);
	arena_release(&l.mem);
}

static void settings_are_every_leaf_that_says_something(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();

	(void)state;
	seed = 8;
	for (int draw = 0; draw < DRAWS; draw++) {
		struct ft_scenario *s[MOST];
		struct arena mem = { 0 };
		size_t n = 0, want = 1 + (size_t)below(MOST);

		while (n < want) {
			struct ft_error err;

			s[n] = made(&mem, shelf, drawn(&mem), &err);
			n += s[n] != NULL;
		}
		are_all_leaves((const struct ft_scenario *const *)s, n);
		while (n)
			ft_scenario_free(s[--n]);
		arena_release(&mem);
	}
	ft_settings_free(NULL);
	ft_shelf_free(shelf);
}

/* model: X is model: {name: X}, and so are a GPU, a node and what else may be extended: one thing said in two ways is
 * one setting. */
static void a_word_is_the_name_in_a_map(void **state)
{
	static const char *const text[] = {
		"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: {extends: h100-sxm, "
		"memory: {bandwidth: 3 TB/s}}, gpus: 8}, training: "
		"{global_batch_size: 8, sequence_length: 1024}}",
		"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 8}, training: "
		"{global_batch_size: 8, sequence_length: 1024}}",
	};
	struct ft_shelf *shelf = ft_shelf_new();
	const struct ft_scenario *s[2];
	struct arena mem = { 0 };
	struct ft_settings *all;
	struct ft_error err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		s[i] = made(&mem, shelf, text[i], &err);
		ok_or_say(s[i], err);
	}
	all = ft_study_settings(s, 2);
	assert_null(setting_of(all, "model"));
	assert_null(setting_of(all, "cluster.gpu"));
	assert_false(setting_of(all, "model.name")->differs);
	assert_false(setting_of(all, "cluster.gpu.extends")->differs);
	assert_string_equal(setting_of(all, "model.num_hidden_layers")->value[0], "8");
	assert_string_equal(setting_of(all, "model.num_hidden_layers")->value[1], "-");
	assert_true(setting_of(all, "cluster.gpu.memory.bandwidth")->differs);
	ft_settings_free(all);
	for (int i = 0; i < 2; i++)
		ft_scenario_free((struct ft_scenario *)s[i]);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

/* A GPU of their own beside each of two scenarios, which name it by the same words; a third goes by one of the files, too. */
static void the_same_words_may_lead_to_two_files(void **state)
{
	static const char text[] =
		"{model: llama3-8b, cluster: {gpu: ./mine.yaml, gpus: 8}, training: "
		"{global_batch_size: 8, sequence_length: 1024}}";
	static const char *const folder[] = { "a", "b", "a/../a" };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_scenario *s[3];
	struct arena mem = { 0 };
	char root[] = "/tmp/foretoken-differs-XXXXXX";
	struct ft_settings *all;
	struct ft_error err;

	(void)state;
	assert_non_null(mkdtemp(root));
	for (int i = 0; i < 3; i++) {
		const char *at = arena_printf(&mem, "%s/%s", root, folder[i]);
		struct node *n;

		if (i < 2) {
			FILE *f;

			assert_int_equal(mkdir(at, 0700), 0);
			f = fopen(arena_printf(&mem, "%s/mine.yaml", at), "w");
			assert_non_null(f);
			fprintf(f,
				"extends: h100-sxm\nmemory: {bandwidth: %d TB/s}\n"
				"provenance: {kind: assumed, source: t, date: 2026-12-01}\n",
				i + 1);
			fclose(f);
		}
		at = arena_printf(&mem, "%s/s.yaml", at);
		n = node_read_text(&mem, at, text, strlen(text), &err);
		ok_or_say(n, err);
		s[i] = ft_scenario_from(shelf, n, at, true, &err);
		ok_or_say(s[i], err);
	}
	all = ft_study_settings((const struct ft_scenario *const *)s, 2);
	assert_true(setting_of(all, "cluster.gpu")->differs);
	assert_non_null(strstr(setting_of(all, "cluster.gpu")->value[1], "/b/"));
	ft_settings_free(all);
	all = ft_study_settings((const struct ft_scenario *const[]){ s[0], s[2] }, 2);
	assert_false(setting_of(all, "cluster.gpu")->differs);
	assert_string_equal(setting_of(all, "cluster.gpu")->value[0], "./mine.yaml");
	ft_settings_free(all);
	for (int i = 0; i < 3; i++)
		ft_scenario_free(s[i]);
	for (int i = 0; i < 2; i++) {
		unlink(arena_printf(&mem, "%s/%s/mine.yaml", root, folder[i]));
		rmdir(arena_printf(&mem, "%s/%s", root, folder[i]));
	}
	rmdir(root);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_title_holds_no_control_character),
		cmocka_unit_test(a_label_is_the_first_that_is_given),
		cmocka_unit_test(no_two_are_called_alike),
		cmocka_unit_test(namesakes_are_told_by_their_files),
		cmocka_unit_test(settings_are_every_leaf_that_says_something),
		cmocka_unit_test(a_word_is_the_name_in_a_map),
		cmocka_unit_test(the_same_words_may_lead_to_two_files),
	};

	return cmocka_run_group_tests_name("study/differs", tests, NULL, NULL);
}
