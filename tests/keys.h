/*
 * tests/keys.h - one key of a file changed at a time, and the answers compared
 *
 * A file is read, one leaf of its tree changed, the tree written as a file of its own and
 * named in a scenario. Keys that a file lacks are found by asking: an unknown key's error
 * lists what the map may hold.
 */
#ifndef TESTS_KEYS_H
#define TESTS_KEYS_H

#include <fnmatch.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "tests/answer.h"

enum { KEY_SCENARIOS = 20, KEY_SEEN = 1024, KEY_SHELF = 100, KEY_MAP = 128 };
enum { KEY_WHY = sizeof(((struct answer *)0)->why) };

enum { MOST_EXEMPT = 80 };

/* A key without effect, or one that no value here is right for, and why. */
struct key_exempt {
	const char *kind, *path; /* path: a pattern */
	const char *reason;
};

/* A kind of file: where a scenario names it, and the scenarios that read it. */
struct key_part {
	const char *at; /* the key that names it: its kind */
	const char *folder,
		*name; /* of the file; folder NULL: the scenarios themselves */
	const char *scenario[KEY_SCENARIOS]; /* NULL behind the last */
};

struct flips {
	const struct key_part *part;
	const struct key_exempt *exempt;
	size_t n_exempt;
	bool used[MOST_EXEMPT]; /* of the exempt */
	struct arena mem;
	struct node *root;  /* of the file; of the scenario when there is no file */
	const char *folder; /* where files are written, each under a name of its own */
	struct ft_shelf
		*shelf; /* what was loaded, for so many answers; NULL at first */
	int answers;
	const char *bare; /* a stack that says neither gap nor attention */
	struct answer base[KEY_SCENARIOS];
	int n, now, every; /* every so many paths, where it is slow */
	int exempted;
	struct key_seen {
		const char *path,
			*what; /* what: to say when no scenario shows an effect */
		enum fate { REFUSED, SAME, CHANGED } fate;
		bool map;
	} seen[KEY_SEEN];
	size_t n_seen;
};

static struct node *read_text_node(struct arena *mem, const char *text)
{
	struct ft_error err;
	struct node *n = node_read_text(mem, "keys", text, strlen(text), &err);

	ok_or_say(n, err);
	return n;
}

/* The answer of scenario i with the tree as it stands now. */
static struct answer asked(struct flips *f, int i)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = f->root;
	struct answer a;

	if (f->answers++ % KEY_SHELF == 0) {
		ft_shelf_free(f->shelf);
		f->shelf = ft_shelf_new();
	}
	if (f->part->folder) {
		const char *path =
			arena_printf(&mem, "%s/x%d.yaml", f->folder, f->answers);
		FILE *out = fopen(path, "w");

		assert_non_null(out);
		fputs(node_flow(&mem, f->root), out);
		assert_int_equal(fclose(out), 0);
		root = read_text_node(&mem, f->part->scenario[i]);
		ok_or_say(node_put_path(&mem, root, f->part->at, NULL, path, &err),
			  err);
	}
	if (node_get(root, "stack") && !strcmp(node_get(root, "stack")->text, "bare"))
		ok_or_say(node_put_path(&mem, root, "stack", NULL, f->bare, &err), err);
	a = answer_of(f->shelf, root);
	arena_release(&mem);
	return a;
}

static enum fate fate_of(struct flips *f, char *why, size_t size)
{
	enum fate fate = REFUSED;
	int n = f->part->folder ? f->n : f->now + 1;

	for (int i = f->part->folder ? 0 : f->now; i < n; i++) {
		struct answer a = asked(f, i);

		if (a.refused) {
			if (why)
				snprintf(why, size, "%s", a.why);
			return fate == SAME ? CHANGED : REFUSED;
		}
		fate = SAME;
		if (memcmp(a.x, f->base[i].x, a.n * sizeof(double)) != 0)
			return CHANGED;
	}
	return fate;
}

static bool is_exempt(struct flips *f, const char *path)
{
	for (size_t i = 0; i < f->n_exempt; i++)
		if (!strcmp(f->exempt[i].kind, f->part->at) &&
		    !fnmatch(f->exempt[i].path, path, 0)) {

			f->used[i] = true;
			f->exempted++;
			return true;
		}
	return false;
}

/* Names and words for people; a range tells how sure a value is and enters no answer. */
static bool for_people(const char *key)
{
	static const char *const words[] = { "name",  "title", "provenance", "extends",
					     "note",  "low",   "high",	     "date",
					     "buyer", "vendor" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(key, words[i]))
			return true;
	return false;
}

/* Keys of one path in several scenarios are one key: the best of their fates counts. */
static struct key_seen *seen(struct flips *f, const char *path)
{
	for (size_t i = 0; i < f->n_seen; i++)
		if (!strcmp(f->seen[i].path, path))
			return &f->seen[i];
	assert_true(f->n_seen < KEY_SEEN);
	f->seen[f->n_seen] =
		(struct key_seen){ arena_text(&f->mem, path), NULL, REFUSED, false };
	return &f->seen[f->n_seen++];
}

/* Is there a value here with which the answer is another? words: of those that the reader
 * knows, or names of things, so that a refusal is for what they mean. */
static enum fate best_fate(struct flips *f, struct node *leaf, const char *const *value,
			   size_t n, bool words)
{
	const char *was = leaf->text;
	bool quoted = leaf->quoted;
	enum fate best = REFUSED;

	for (size_t i = 0; i < n && best != CHANGED; i++) {
		enum fate fate;

		if (!strcmp(value[i], was))
			continue;
		leaf->text = value[i];
		leaf->quoted = false;
		fate = fate_of(f, NULL, 0);
		if (fate == REFUSED && words)
			fate = CHANGED;
		if (fate != REFUSED)
			best = fate;
	}
	leaf->text = was;
	leaf->quoted = quoted;
	return best;
}

/* The words of "... is not one of a, b, c; did you mean ..." */
static size_t words_of(struct arena *mem, const char *why, const char *before,
		       const char **word, size_t most)
{
	const char *at = strstr(why, before);
	size_t n = 0;

	assert_true(strlen(why) < KEY_WHY - 8);
	for (at = at ? at + strlen(before) : ""; *at && *at != ';' && n < most;) {
		size_t len = strcspn(at, ",; ");

		if (len)
			word[n++] = arena_text_n(mem, at, len);
		at += len;
		at += strspn(at, ", ");
	}
	return n;
}

static size_t other_values(struct flips *f, struct node *leaf, const char **value,
			   bool *words)
{
	static const double factors[] = { 1.5, 2, 0.5, 3, 0.1, 10, 1.01 };
	static const char *const names[] = { "zzqq", "nccl-2.30", "fa2", "h200" };
	char why[KEY_WHY] = "", *unit;
	double x = strtod(leaf->text, &unit);
	const char *was = leaf->text;
	size_t n = 0;

	if (!strcmp(was, "true") || !strcmp(was, "false")) {
		value[n++] = *was == 't' ? "false" : "true";
		*words = true;
		return n;
	}
	if (unit == was) {
		leaf->text = "zzqq";
		(void)fate_of(f, why, sizeof(why));
		leaf->text = was;
		n = words_of(&f->mem, why, "is not one of ", value, 14);
		*words = true;
		for (size_t i = 0; !n && i < sizeof(names) / sizeof(*names); i++)
			value[i] = names[i];
		return n ? n : sizeof(names) / sizeof(*names);
	}
	for (int i = 0; i < 7; i++)
		value[n++] =
			x == 0 ? arena_printf(&f->mem, "%g%s", factors[i], unit) :
				 arena_printf(&f->mem, "%.12g%s", x * factors[i], unit);
	value[n++] = arena_printf(&f->mem, "%.12g%s", x + 1, unit);
	return n;
}

static bool left_out(const struct flips *f, const char *path)
{
	int sum = 0;

	for (; *path; path++)
		sum += *path;
	return sum % f->every;
}

static void flip_leaf(struct flips *f, const char *path, struct node *leaf)
{
	const char *value[16];
	struct key_seen *k;
	bool words = false;
	enum fate fate;
	size_t n;

	if (left_out(f, path) || is_exempt(f, path))
		return;
	k = seen(f, path);
	if (k->fate == CHANGED)
		return;
	n = other_values(f, leaf, value, &words);
	fate = best_fate(f, leaf, value, n, words);
	if (fate > k->fate)
		k->fate = fate;
	if (fate == SAME)
		k->what = arena_printf(&f->mem, "(%s) has no effect", leaf->text);
}

/* The map with one more key, in the place of what it was. */
static struct node widened(struct flips *f, struct node *map, const char *key,
			   struct node *value)
{
	struct node was = *map, *wide = node_map(&f->mem, &was.mark);

	for (size_t i = 0; i < was.n; i++)
		node_put(&f->mem, wide, was.key[i], &was.key_mark[i], was.item[i]);
	node_put(&f->mem, wide, key, &was.mark, value);
	*map = *wide;
	return was;
}

/* A key that the file lacks: some value has to be accepted and to count. */
static void flip_absent(struct flips *f, const char *path, struct node *map,
			const char *key)
{
	static const char *const truths[] = { "true", "false" };
	static const char *const all[] = {
		"3",
		"1",
		"500",
		"2",
		"1.5",
		"0.5",
		"3 us",
		"7 TB",
		"100 B",
		"3 GB/s",
		"500 TFLOP/s",
		"2 y",
		"900 W",
		"0.3 USD/kWh",
		"1000 USD",
		"100 USD/kW/month",
		"zzqq",
		"h200",
		"nccl-2.20",
		"rccl-6",
		"neocloud-2024-10",
		"bare",
		"switch-ndr-64",
		"efa-400-rail",
		"dgx-h100",
		"torch-2.11-compile",
		"h200.gemm.csv",
		"h200.attention.csv",
		"h200.collectives.csv",
	};
	char why[KEY_WHY] = "";
	const char *word[16];
	struct node *leaf = node_scalar(&f->mem, &map->mark, "zzqq"), was;
	struct key_seen *k;
	enum fate fate;

	if (left_out(f, path) || is_exempt(f, path))
		return;
	k = seen(f, path);
	if (k->fate == CHANGED)
		return;
	was = widened(f, map, key, leaf);
	(void)fate_of(f, why, sizeof(why));
	fate = best_fate(f, leaf, word,
			 words_of(&f->mem, why, "is not one of ", word, 16), true);
	for (int truth = 0; truth < 2 && fate == REFUSED; truth++)
		fate = best_fate(f, leaf, truth ? all : truths,
				 truth ? sizeof(all) / sizeof(*all) : 2, false);

	*map = was;
	if (fate >= k->fate)
		k->fate = fate;
	if (fate == SAME)
		k->what = "(absent) has no effect";
	else if (fate == REFUSED &&
		 (strstr(why, "should be a map") || strstr(why, " a list of ")))
		k->map = true; /* its keys are tried where it stands */
	else if (fate == REFUSED && !k->what)
		k->what = arena_printf(&f->mem, "(absent) takes no value: %s", why);
}

/* Rows of a table (kernels, lengths, items, formats, fabrics, places of a list) are one key
 * each. */
static const char *child(struct flips *f, const char *path, const struct node *n,
			 const char *key, bool map)
{
	static const char *const tables[] = { "memory_bound.curves",
					      "peak",
					      "gemm.efficiency",
					      "gemm.layout_of",
					      "gemm.sustained",
					      "attention.impl_rate",
					      "prices",
					      "rent" };
	size_t len = strlen(path), k = strlen(key);

	if (!strcmp(key, "value")) /* {value, low, high, provenance}: a number */
		return path;
	bool table = n->kind == NODE_LIST || (map && !strcmp(path, "collectives")) ||
		     (len > 7 && !strcmp(path + len - 7, ".by_row"));

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		table = table || !strcmp(path, tables[i]);
	if (table)
		key = k > 5 && !strcmp(key + k - 5, ".warm") ? "*.warm" : "*";
	return arena_printf(&f->mem, "%s%s%s", path, *path ? "." : "", key);
}

/* Which keys a map may hold and does not: its reader says so of a key that nobody knows. */
static void flip_missing(struct flips *f, const char *path, struct node *map)
{
	const char *known[KEY_MAP];
	char why[KEY_WHY] = "";
	struct node was =
		widened(f, map, "zzqq", node_scalar(&f->mem, &map->mark, "1"));
	size_t n;

	(void)fate_of(f, why, sizeof(why));
	*map = was;
	n = words_of(&f->mem, why, "unknown key 'zzqq'; known: ", known, KEY_MAP);
	assert_true(n < KEY_MAP);
	for (size_t i = 0; i < n; i++)
		if (!node_get(map, known[i]) && !for_people(known[i]))
			flip_absent(f, child(f, path, map, known[i], false), map,
				    known[i]);
}

static void walk(struct flips *f, const char *path, struct node *n)
{
	if (n->kind == NODE_SCALAR) {
		flip_leaf(f, path, n);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		const char *key = n->kind == NODE_MAP ? n->key[i] :
							arena_printf(&f->mem, "%zu", i);
		const char *below =
			child(f, path, n, key, n->item[i]->kind == NODE_MAP);

		if (!for_people(key) &&
		    (f->part->folder || *path || strcmp(key, "model")))
			walk(f, below, n->item[i]);
	}
	if (n->kind == NODE_MAP)
		flip_missing(f, path, n);
}

static void flip_part(struct flips *f)
{
	struct ft_error err;

	for (f->n = 0; f->n < KEY_SCENARIOS && f->part->scenario[f->n];)
		f->n++;
	if (f->part->folder) {
		const char *file =
			file_find(&f->mem, f->part->folder, f->part->name, NULL, &err);

		f->root = file ? node_read_file(&f->mem, file, &err) : NULL;
		ok_or_say(f->root, err);
	}
	for (f->now = 0; f->now < f->n; f->now++) {
		if (!f->part->folder)
			f->root = read_text_node(&f->mem, f->part->scenario[f->now]);
		f->base[f->now] = asked(f, f->now);
		if (f->base[f->now].refused)
			fail_msg("%s: scenario %d: %s", f->part->name, f->now,
				 f->base[f->now].why);
		if (!f->part->folder)
			walk(f, "", f->root);
	}
	if (f->part->folder)
		walk(f, "", f->root);
}

static bool holds_keys(const struct flips *f, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < f->n_seen; i++)
		if (!strncmp(f->seen[i].path, path, len) && f->seen[i].path[len] == '.')
			return true;
	return !strncmp(path, "collectives.", 12); /* the fabrics: one table */
}

/* How many keys of a kind are without effect in all of its files, or took no value; each
 * is printed. */
static inline int flip_kind(struct flips *f, const char *kind,
			    const struct key_part *part, size_t n)
{
	int bad = 0, changed = 0;

	f->n_seen = 0;
	f->exempted = 0;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(part[i].at, kind)) {
			f->part = &part[i];
			flip_part(f);
		}
	for (size_t i = 0; i < f->n_seen; i++) {
		struct key_seen *k = &f->seen[i];

		changed += k->fate == CHANGED;
		if (k->fate == REFUSED && !k->map && !k->what)
			print_message("# %s: %s: refused\n", kind, k->path);
		if (k->map && f->every == 1 && !holds_keys(f, k->path))
			k->what = "is a map that no scenario here has";
		if (!k->what || k->fate == CHANGED)
			continue;
		bad++;
		print_error("%s: %s %s\n", kind, k->path, k->what);
	}
	print_message(
		"# %s: %zu keys: %d with effect, %d refused, %d without; %d exempt\n",
		kind, f->n_seen, changed, (int)f->n_seen - changed - bad, bad,
		f->exempted);
	fflush(stdout);
	return bad;
}

#endif
