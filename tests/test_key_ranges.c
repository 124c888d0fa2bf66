/*
 * tests/test_key_ranges.c - docs/keys.md says what each key takes: what the program answers to
 * a word, to far too much and to less than nothing; and each bound that an answer names is
 * taken itself
 *
 * `test_key_ranges --write` writes the page anew.
 */
#include "tests/key_parts.h"

static const char head[] =
	"# What each key takes\n"
	"\n"
	"What is said of a value that a key does not take, for each key of a scenario and of the\n"
	"files that it names: of a word, of far too much, of -1, of 0 (with a unit). A dash: it is taken, or\n"
	"refused elsewhere, for what other keys say. `*` is each member of a table or list.\n"
	"What keys mean is in the manual (foretoken-scenario(5) and the pages that it names). `make check`\n"
	"holds this page against the program, and `build/rel/tests/test_key_ranges --write` writes it.\n";

struct ranges {
	struct flips f;
	FILE *out;
	const char *kind;
	int bounds, bad;
};

/* What the reading of the tree says; "" when it is taken. */
static const char *said_of(struct ranges *g)
{
	struct flips *f = &g->f;
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *root = f->root;
	struct ft_scenario *s;
	const char *why;

	if (f->answers++ % KEY_SHELF == 0) {
		ft_shelf_free(f->shelf);
		f->shelf = ft_shelf_new();
	}
	if (f->part->folder) {
		const char *path = arena_printf(&mem, "%s/x.yaml", f->folder);
		FILE *out;

		path = arena_printf(&mem, "%s/x%d.yaml", f->folder, f->answers);
		out = fopen(path, "w");
		assert_non_null(out);
		fputs(node_flow(&mem, f->root), out);
		assert_int_equal(fclose(out), 0);
		root = read_text_node(&mem, f->part->scenario[0]);
		ok_or_say(node_put_path(&mem, root, f->part->at, NULL, path, &err),
			  err);
		err = (struct ft_error){ 0 };
		s = ft_scenario_from(f->shelf, root, "keys", true, &err);
		assert_int_equal(unlink(path), 0);
	} else {
		s = ft_scenario_from(f->shelf, root, "keys", true, &err);
	}
	why = s ? "" : arena_text(&f->mem, err.text);
	ft_scenario_free(s);
	arena_release(&mem);
	return why;
}

static const char *said(struct ranges *g, struct node *leaf, const char *text)
{
	const char *was = leaf->text, *why;
	bool quoted = leaf->quoted;

	leaf->text = text;
	leaf->quoted = false;
	why = said_of(g);
	leaf->text = was;
	leaf->quoted = quoted;
	return why;
}

/* Without the key, the value itself, and what files there are. */
static const char *cut(struct arena *mem, const char *why, const char *text)
{
	const char *key = strstr(why, ": "), *at, *known;
	size_t n = strlen(text);

	if (key && strcspn(why, " ") == (size_t)(key - why) + 1)
		why = key + 2;
	known = strstr(why, "; known:");
	if (known && strstr(why, "unknown name"))
		return "unknown name";
	at = strstr(why, text);
	if (at == why && why[n] == ' ')
		return why + n + 1;
	if (at == why + 1 && *why == '\'' && why[n + 1] == '\'')
		return why + n + 3;
	if (at && n > 2)
		return arena_printf(mem, "%.*s...%s", (int)(at - why), why, at + n);
	return why;
}

/* "not between A and B": A and B themselves are taken, as far as this says, and what is
 * next to them is not. */
static void take_bounds(struct ranges *g, struct node *leaf, const char *path,
			const char *why, const char *unit)
{
	const char *at = strstr(why, "not between "),
		   *and = at ? strstr(at, " and ") : NULL;
	bool whole = !strstr(why, "in units");

	for (int i = 0; and&&i < 4; i++) {
		const char *said_as = i % 2 ? and+5 : at + 12;
		char *behind;
		double x = strtod(said_as, &behind);
		double by = whole ? 1 : x == 0 ? 1e-9 : x * 1e-9;
		bool taken = i < 2;
		const char *again;
		char one[64];

		x += taken ? 0 : i % 2 ? by : -by;
		if (taken) /* the word itself: a double has not all digits of the largest */
			snprintf(one, sizeof(one), "%.*s%s", (int)(behind - said_as),
				 said_as, unit);
		else
			snprintf(one, sizeof(one), "%.15g%s", x, unit);
		again = said(g, leaf, one);
		if (taken ? strstr(again, "not between ") != NULL : !*again) {
			print_error("%s: %s: %s, but %s is %s\n", g->kind, path, why,
				    one, taken ? "refused" : "taken");
			g->bad++;
		}
		g->bounds++;
	}
}

/* The unit of "..., for example 4.5 us or 4 y"; NULL: it is no number with one. */
static const char *unit_of(struct arena *mem, const char *word)
{
	const char *example = strstr(word, ", for example "), * or ;
	char *unit;

	if (!example)
		return NULL;
	(void)strtod(example + 14, &unit);
	or = strstr(unit, " or ");
	if (!strcmp(unit, " GB")) /* bounds are in units without prefix */
		return " B";
	return arena_text_n(mem, unit, or ? (size_t)(or -unit) : strlen(unit));
}

static void told(struct ranges *g, const char *path, struct node *leaf)
{
	struct flips *f = &g->f;
	const char *unit, *says[4], *text[4] = { "zzqq" };

	for (size_t i = 0; i < f->n_seen; i++)
		if (!strcmp(f->seen[i].path, path))
			return;
	(void)seen(f, path);
	says[0] = said(g, leaf, text[0]);
	unit = unit_of(&f->mem, says[0]);
	text[1] = arena_printf(&f->mem, "%s%s", unit ? "1e29" : "999999999999999",
			       unit ? unit : "");
	text[2] = arena_printf(&f->mem, "-1%s", unit ? unit : "");
	text[3] = arena_printf(&f->mem, "0%s", unit ? unit : "");
	fprintf(g->out, "| `%s` |", path);
	for (int i = 0; i < 4; i++) {
		if (i)
			says[i] = said(g, leaf, text[i]);
		says[i] = cut(&f->mem, says[i], text[i]);
		if (i)
			take_bounds(g, leaf, path, says[i], unit ? unit : "");
		fprintf(g->out, " %s |",
			!*says[i]			   ? "-" :
			i && !strcmp(says[i], says[i - 1]) ? "same" :
							     says[i]);
	}
	fputs("\n", g->out);
}

static void absent(struct ranges *g, const char *path, struct node *map)
{
	struct flips *f = &g->f;
	const char *known[128], *why;
	struct node was =
		widened(f, map, "zzqq", node_scalar(&f->mem, &map->mark, "1"));
	size_t n;

	why = said_of(g);
	*map = was;
	n = words_of(&f->mem, why, "unknown key 'zzqq'; known: ", known, 128);
	for (size_t i = 0; i < n; i++) {
		struct node *leaf;

		if (node_get(map, known[i]) || for_people(known[i]))
			continue;
		leaf = node_scalar(&f->mem, &map->mark, "zzqq");
		was = widened(f, map, known[i], leaf);
		told(g, child(f, path, map, known[i], false), leaf);
		*map = was;
	}
}

static void walked(struct ranges *g, const char *path, struct node *n)
{
	struct flips *f = &g->f;

	struct node was = *n, *alone;

	if (n->kind == NODE_SCALAR) {
		told(g, path, n);
		return;
	}
	if (n->kind == NODE_MAP && node_get(n, "value")) { /* without low and high */
		alone = node_map(&f->mem, &n->mark);
		for (size_t i = 0; i < was.n; i++)
			if (strcmp(was.key[i], "low") != 0 &&
			    strcmp(was.key[i], "high") != 0)
				node_put(&f->mem, alone, was.key[i], &was.key_mark[i],
					 was.item[i]);
		*n = *alone;
		told(g, path, node_get(n, "value"));
		*n = was;
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		const char *key = n->kind == NODE_MAP ? n->key[i] :
							arena_printf(&f->mem, "%zu", i);

		if (!for_people(key) &&
		    (f->part->folder || *path || strcmp(key, "model")))
			walked(g, child(f, path, n, key, n->item[i]->kind == NODE_MAP),
			       n->item[i]);
	}
	if (n->kind == NODE_MAP)
		absent(g, path, n);
}

static void tell_part(struct ranges *g, const struct key_part *part)
{
	struct flips *f = &g->f;
	struct ft_error err;

	f->part = part;
	if (part->folder) {
		const char *file =
			file_find(&f->mem, part->folder, part->name, NULL, &err);

		f->root = file ? node_read_file(&f->mem, file, &err) : NULL;
		ok_or_say(f->root, err);
		walked(g, "", f->root);
		return;
	}
	for (int i = 0; i < KEY_SCENARIOS && part->scenario[i]; i++) {
		f->root = read_text_node(&f->mem, part->scenario[i]);
		walked(g, "", f->root);
	}
}

static const char *page(struct arena *mem, int *bounds)
{
	static const char *const kinds[][2] = { { "", "scenario" },
						{ "cluster.node", "node" },
						{ "cluster.fabric", "fabric" },
						{ "cluster.site", "site" },
						{ "cluster.gpu", "GPU" },
						{ "stack", "stack" },
						{ "cost.prices", "price book" } };
	struct ranges *g = calloc(1, sizeof(*g));
	char *text;
	size_t size;

	g->out = open_memstream(&text, &size);
	g->f.folder = arena_printf(mem, "build/ranges.%ld", (long)getpid());
	make_folder(mem, g->f.folder);
	g->f.bare = "nemo-24";
	fputs(head, g->out);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		g->f.n_seen = 0;
		g->kind = kinds[k][1];
		fprintf(g->out,
			"\n## %s\n\n| key | a word | too much | -1 | 0 |\n| --- | --- | --- | --- | --- |\n",
			g->kind);
		for (size_t i = 0; i < PARTS; i++)
			if (!strcmp(parts[i].at, kinds[k][0]))
				tell_part(g, &parts[i]);
	}
	*bounds = g->bad ? 0 : g->bounds;
	fclose(g->out);
	(void)!system(arena_printf(mem, "rm -rf %s", g->f.folder));
	ft_shelf_free(g->f.shelf);
	arena_release(&g->f.mem);
	free(g);
	return text;
}

static void the_page_says_what_keys_take(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	size_t n;
	int bounds;
	char *is = (char *)page(&mem, &bounds);
	const char *says = file_read(&mem, "docs/keys.md", 1 << 24, &n, &err);

	(void)state;
	ok_or_say(says, err);
	assert_string_equal(is, says);
	assert_true(bounds > 100);
	free(is);
	arena_release(&mem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_says_what_keys_take),
	};

	if (argc > 1 && !strcmp(argv[1], "--write")) {
		struct arena mem = { 0 };
		int bounds;
		FILE *f = fopen("docs/keys.md", "w");

		if (!f)
			return 1;
		fputs(page(&mem, &bounds), f);
		arena_release(&mem);
		return fclose(f) != 0;
	}
	return cmocka_run_group_tests_name("key ranges", tests, NULL, NULL);
}
