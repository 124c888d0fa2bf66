/* tests/test_ccl.c - libraries of collectives: what a file may hold, and that each key counts */
#include <math.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "sim/across.h"
#include "sim/tuner.h"
#include "tests/ccl.h"

/* ---- the files -------------------------------------------------------------- */

static void every_file_loads_and_knows_something(void **state)
{
	struct arena mem = { 0 };
	size_t n;
	struct ft_error none;
	const char **name = file_list(&mem, "stacks/ccl", &n, &none);

	(void)state;
	assert_true(n >= 6);
	for (size_t i = 0; i < n; i++) {
		struct ft_ccl *c = ccl_named(name[i]);

		assert_true(c->n_generations > 0);
		assert_non_null(c->from);
		ft_ccl_free(c);
	}
	arena_release(&mem);
}

/* A stack's list holds a library for any GPU that the stack runs on. */
static void every_stack_serves_its_gpus(void **state)
{
	struct arena mem = { 0 };
	struct ft_error none;
	size_t n_stacks, n_gpus;
	const char **stack = file_list(&mem, "stacks", &n_stacks, &none);
	const char **gpu = file_list(&mem, "hw/gpus", &n_gpus, &none);

	(void)state;
	for (size_t i = 0; i < n_gpus; i++) {
		struct ft_error err;
		struct ft_gpu *g = ft_gpu_load(gpu[i], NULL, &err);

		ok_or_say(g, err);
		for (size_t j = 0; j < n_stacks; j++) {
			struct ft_stack *s = ft_stack_load(stack[j], NULL, &err);
			struct ft_ccl *c;

			ok_or_say(s, err);
			if (!strcmp(s->vendor, "any") ||
			    !strcmp(s->vendor, g->vendor)) {
				c = ft_stack_ccl(s, g->ccl_generation, &err);
				ok_or_say(c, err);
				ft_ccl_free(c);
			}
			ft_stack_free(s);
		}
		ft_gpu_free(g);
	}
	arena_release(&mem);
}

static void versions_differ_where_their_sources_do(void **state)
{
	struct ft_ccl *old = ccl_named("nccl-2.20"), *now = ccl_named("nccl-2.30");
	struct ft_ccl *six = ccl_named("rccl-6"), *seven = ccl_named("rccl-7");
	const struct ft_ccl_tuning *h = ft_ccl_tuning(old, "hopper");

	(void)state;
	assert_null(ft_ccl_tuning(old, "blackwell"));
	assert_non_null(ft_ccl_tuning(now, "blackwell"));
	near_frac(h->nvls_tree.hop_net_s, 14e-6, 1e-12);
	near_frac(ft_ccl_tuning(now, "hopper")->nvls_tree.hop_net_s, 20.9e-6, 1e-12);
	near_frac(h->ring.share_frac[FT_LL], 0.25, 1e-12);
	assert_true(h->pat.share_frac == 0);
	assert_true(ft_ccl_tuning(six, "cdna3")->ring.share_frac[FT_LL128] == 0);
	assert_true(ft_ccl_tuning(seven, "cdna3")->ring.share_frac[FT_LL128] > 0);
	near_frac(ft_ccl_tuning(seven, "cdna3")->windows.growth, 3.8, 1e-12);
	assert_int_equal(now->choice, FT_BY_TIME);
	assert_int_equal(seven->choice, FT_BY_LIBRARY);
	ft_ccl_free(old);
	ft_ccl_free(now);
	ft_ccl_free(six);
	ft_ccl_free(seven);
}

/* ---- mistakes ----------------------------------------------------------------- */

static char path[64];

static struct ft_ccl *load_text(const char *text, struct ft_error *err)
{
	FILE *f;

	snprintf(path, sizeof(path), "build/test_ccl.%ld.yaml", (long)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return ft_ccl_load(path, NULL, err);
}

static void a_mistake_is_told_at_its_place(void **state)
{
#define HEAD "extends: nccl-2.30\nprovenance: {kind: assumed, date: 2026-11-22}\n"
	static const struct {
		const char *text, *says;
		int line, column;
	} bad[] = {
		{ HEAD "all: {ring: {bas: 1 us}}\n", "unknown key 'bas'", 3, 14 },
		{ HEAD "all: {ring: {base: [1 us, 2 us]}}\n",
		  "takes 1 or 3 numbers, not 2", 3, 20 },
		{ HEAD "all: {ring: {base: [1 us, 2, 3 us]}}\n", "base: ", 3, 27 },
		{ HEAD "all: {ring: {base: [1 us, 2 us, -3 us]}}\n", "negative", 3,
		  33 },
		{ HEAD "all: {ring: {share: [1, 1, 1, 1]}}\n", "takes 1 to 3", 3, 21 },
		{ HEAD "all: {ring: {share: [0.5, 0.9, 0]}}\n", "Simple share", 0, 0 },
		{ HEAD "all: {tree: {correction: {LL: [1, 0]}}}\n", "has a zero", 3,
		  31 },
		{ HEAD "all: {pairs: {nic_share: 0}}\n", "share of zero", 0, 0 },
		{ HEAD "all: {network: {ring_step: 0 us}}\n", "is zero", 3, 28 },
		{ HEAD "generations: {hopper: {channels: 0}}\n", "1 or more", 3, 34 },
		{ HEAD "generations: [hopper]\n", "should be a map", 3, 14 },
		{ HEAD "generations: 9\n", "should be a map", 3, 14 },
		{ HEAD "generations: {hopper: 9}\n", "should be a map", 3, 23 },
		{ HEAD "all: [ring]\n", "should be a map", 3, 6 },
		{ HEAD "all: none\n", "should be a map", 3, 6 },
		{ HEAD "choice: [library]\n", "should be a map", 3, 9 },
		{ HEAD "choice: {by: luck}\n", "not one of time, library", 3, 14 },
		{ HEAD "nvls: maybe\n", "neither true nor false", 3, 7 },
		{ HEAD "speed: 3\n", "unknown key 'speed'", 3, 1 },
		{ "extends: nccl-9\n", "no", 1, 10 },
		{ "title: none\nall: {}\ngenerations: {}\n", "provenance", 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ft_error err = { 0 };
		struct ft_ccl *c = load_text(bad[i].text, &err);

		if (c || !strstr(err.text, bad[i].says) ||
		    (bad[i].line &&
		     (err.line != bad[i].line || err.column != bad[i].column)))
			fail_msg("%s\nsays %d:%d: %s", bad[i].text, err.line,
				 err.column, c ? "nothing" : err.text);
	}
	unlink(path);
}

static void an_unknown_generation_names_who_knows_it(void **state)
{
	struct ft_ccl *c = ccl_named("rccl-6");
	struct ft_error err;

	(void)state;
	assert_false(ft_ccl_unknown(c, "hopper", NULL, &err));
	assert_non_null(strstr(err.text, "rccl-6"));
	assert_non_null(strstr(err.text, "nccl-2.20, nccl-2.27, nccl-2.30"));
	ft_ccl_free(c);
}

/* ---- each key counts ----------------------------------------------------------- */

/* Groups of all kinds: one node, two, more, one rank a node; slow and fast machines. */
static const struct {
	double ranks, domains, bus, nic;
	bool mesh;
} shapes[] = {
	{ 8, 1, 367e9, 0, false },	   { 4, 1, 680e9, 0, false },
	{ 16, 2, 367e9, 48.5e9, false },   { 32, 4, 312e9, 43e9, false },
	{ 64, 64, 1e18, 48.5e9, false },   { 256, 32, 1800e9, 200e9, false },
	{ 1024, 128, 230e9, 24e9, false }, { 16, 2, 2400e9, 300e9, false },
	{ 512, 64, 2400e9, 300e9, false }, { 8, 8, 1e18, 300e9, false },
	{ 8, 1, 2400e9, 0, false },	   { 2, 1, 3600e9, 0, false },
};

static struct group shaped(const struct ft_ccl *ccl, const struct ft_ccl_tuning *t,
			   size_t i)
{
	struct group g = { .ccl = ccl,
			   .tuning = t,
			   .ranks = shapes[i].ranks,
			   .per_domain = shapes[i].ranks / shapes[i].domains,
			   .domains = shapes[i].domains,
			   .stride = 1,
			   .nic_bytes_per_s = shapes[i].nic,
			   .bus_bytes_per_s = shapes[i].bus,
			   .port_bytes_per_s = shapes[i].bus,
			   .stretch = 1,
			   .sharp = true };

	tuner_search(&g, shapes[i].bus, g.per_domain * shapes[i].nic);
	return g;
}

static bool same_choice(struct choice a, struct choice b)
{
	return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

/* What can be asked for takes as long, and what is chosen is the same. */
static bool same_cell(const struct group *a, const struct group *b,
		      const struct ft_collective_call *call)
{
	if (!same_choice(choose_by_library(a, call), choose_by_library(b, call)))
		return false;
	if (a->domains <= 1)
		return true;
	for (size_t i = 0; i < n_algorithms; i++)
		for (int p = 0; p < FT_PROTOCOLS; p++) {
			struct ft_collective_call one = *call;
			struct choice x, y;

			if (algorithms[i].on_request)
				continue;
			one.algorithm = algorithms[i].name;
			one.protocol = ft_protocol_name((enum ft_protocol)p);
			x = choose_by_time(a, &one);
			y = choose_by_time(b, &one);
			if (!same_choice(x, y) || (x.algorithm && x.time_s != y.time_s))
				return false;
		}
	return true;
}

static bool same_tuning(const struct ft_ccl *a, const struct ft_ccl *b, size_t which)
{
	const struct ft_ccl_tuning *t = &a->tuning[which], *u = &b->tuning[which];

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct group g = shaped(a, t, i), h = shaped(b, u, i);

		for (int op = 0; op < FT_COLLECTIVES; op++)
			for (double s = 1024; s <= 16e9; s *= 2) {
				struct ft_collective_call call = call_of(
					(enum ft_collective)op, s, (int64_t)g.ranks, 1);

				if (!same_cell(&g, &h, &call))
					return false;
			}
	}
	return true;
}

/* What only a whole cluster shows: the network that constants hold on, frameworks' calls in
 * three parts, and the range. */
static bool same_on_cluster(const struct ft_cluster *c, const struct ft_ccl *a,
			    const struct ft_ccl *b)
{
	static const char *const by[] = { NULL, "hierarchical" };

	for (int i = 0; i < 2; i++)
		for (double s = 65536; s < 2e9; s *= 64) {
			struct ft_collective_call call =
				call_of(FT_ALL_REDUCE, s, c->ranks, 1);
			struct ft_collective_result x, y;
			struct ft_error err;

			call.algorithm = by[i];
			ok_or_say(ft_collective_predict(c, a, &call, &x, &err), err);
			ok_or_say(ft_collective_predict(c, b, &call, &y, &err), err);
			if (x.duration.time_s != y.duration.time_s ||
			    x.duration.spread_frac != y.duration.spread_frac)
				return false;
		}
	return true;
}

struct flips {
	const char *text; /* of the file */
	const struct ft_ccl *base;
	const struct ft_cluster *cluster;
	int tried, refused, dead;
};

/* The text with the numbers of one leaf times a factor; NULL: no number in it. */
static char *scaled(struct arena *mem, const char *text, const struct node *leaf,
		    double factor)
{
	const char *at = text, *end;
	double value;
	char *rest;

	for (int line = 1; line < leaf->mark.line; line++)
		at = strchr(at, '\n') + 1;
	at += leaf->mark.column - 1;
	value = strtod(leaf->text, &rest);
	if (rest == leaf->text)
		return NULL;
	end = at + strlen(leaf->text);
	return arena_printf(mem, "%.*s%.12g%s%s", (int)(at - text), text,
			    value * factor, rest, end);
}

static bool counts(struct flips *f, const char *text)
{
	struct ft_error err;
	struct ft_ccl *c = load_text(text, &err);
	bool same = true;

	if (!c) {
		f->refused++;
		return true;
	}
	for (size_t i = 0; same && i < c->n_generations; i++)
		same = same_tuning(f->base, c, i);
	same = same && same_on_cluster(f->cluster, f->base, c);
	ft_ccl_free(c);
	return !same;
}

/* leaf[n]: one number, or a long list, of which all are scaled, the last first. */
static void flip(struct flips *f, const char *key, struct node *const *leaf, size_t n)
{
	static const double factors[] = { 3, 1.0 / 3, 30, 1.0 / 30, 0.9 };
	struct arena mem = { 0 };

	f->tried++;
	for (size_t i = 0; i < sizeof(factors) / sizeof(*factors); i++) {
		const char *text = f->text;

		for (size_t k = n; text && k-- > 0;)
			text = scaled(&mem, text, leaf[k], factors[i]);
		if (!text || counts(f, text)) {
			arena_release(&mem);
			return;
		}
	}
	f->dead++;
	print_error("%s:%d:%d: '%s' has no effect\n", leaf[0]->mark.file,
		    leaf[0]->mark.line, leaf[0]->mark.column, key);
	arena_release(&mem);
}

static void walk(struct flips *f, const char *key, struct node *n)
{
	if (!strcmp(key, "provenance") || node_is_null(n))
		return;
	if (n->kind == NODE_MAP)
		for (size_t i = 0; i < n->n; i++)
			walk(f, n->key[i], n->item[i]);
	else if (n->kind == NODE_LIST && n->n > 3)
		flip(f, key, n->item, n->n);
	else if (n->kind == NODE_LIST)
		for (size_t i = 0; i < n->n; i++) {
			if (strtod(n->item[i]->text, NULL) != 0)
				flip(f, key, &n->item[i], 1);
		}
	else if (strtod(n->text, NULL) != 0)
		flip(f, key, &n, 1);
}

/* A key that changes no answer on any of these machines is a key too many. */
static void no_number_of_a_file_is_without_effect(void **state)
{
	static const struct {
		const char *name, *cluster;
	} row[] = {
		{ "nccl-2.30", "{gpu: h100-sxm, gpus: 32, fabric: ib-ndr-rail}" },
		{ "nccl-2.20", "{gpu: h100-sxm, gpus: 32, fabric: ib-ndr-rail}" },
		{ "rccl-6", "{gpu: mi300x, gpus: 32, fabric: roce-400-rail}" },
		{ "rccl-7", "{gpu: mi300x, gpus: 32, fabric: roce-400-rail}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		const char *file =
			file_find(&mem, "stacks/ccl", row[i].name, NULL, &err);
		struct node *root = node_read_file(&mem, file, &err);
		struct node *c = node_read_text(&mem, "c", row[i].cluster,
						strlen(row[i].cluster), &err);
		struct ft_cluster *cluster = ft_cluster_load(c, &err);
		struct ft_ccl *base = ccl_named(row[i].name);
		struct flips f = { .base = base, .cluster = cluster };
		size_t len;

		ok_or_say(cluster, err);
		f.text = file_read(&mem, file, 1 << 20, &len, &err);
		walk(&f, "", node_get(root, "all"));
		walk(&f, "", node_get(root, "generations"));
		print_message("# %s: %d keys, %d refused, %d without effect\n",
			      row[i].name, f.tried, f.refused, f.dead);
		assert_int_equal(f.dead, 0);
		assert_true(f.tried > 10);
		ft_ccl_free(base);
		ft_cluster_free(cluster);
		arena_release(&mem);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_loads_and_knows_something),
		cmocka_unit_test(every_stack_serves_its_gpus),
		cmocka_unit_test(versions_differ_where_their_sources_do),
		cmocka_unit_test(a_mistake_is_told_at_its_place),
		cmocka_unit_test(an_unknown_generation_names_who_knows_it),
		cmocka_unit_test(no_number_of_a_file_is_without_effect),
	};

	return cmocka_run_group_tests_name("stacks/ccl", tests, NULL, NULL);
}
