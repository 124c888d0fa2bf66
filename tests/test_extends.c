/* tests/test_extends.c - GPUs, nodes and fabrics that extend another: ratios, provenance */
#include "tests/check.h"

#include <math.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/node.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"

static struct node *value(struct arena *mem, const char *text)
{
	struct ft_error err;
	struct node *n = node_read_text(mem, "value", text, strlen(text), &err);

	ok_or_say(n, err);
	return n;
}

static struct ft_gpu *gpu(struct arena *mem, const char *text)
{
	struct ft_error err;
	struct ft_gpu *g = ft_gpu_load_value(value(mem, text), FT_GPU_ALL_ROWS, &err);

	ok_or_say(g, err);
	return g;
}

static double time_of(const struct ft_gpu *g, const struct ft_work *w)
{
	struct ft_prediction p;
	struct ft_error err;

	if (!ft_kernel_predict(g, w, FT_CLOCK_BURST, &p, &err))
		fail_msg("%s", err.text);
	return p.time_s;
}

static void what_changes_nothing_answers_the_same(void **state)
{
	struct arena mem = { 0 };
	struct ft_gpu *a = gpu(&mem, "h200"),
		      *b = gpu(&mem, "{extends: h200, title: Ours}"),
		      *same = gpu(&mem, "{extends: h200}");
	struct ft_work w = { .kind = FT_GEMM, .name = "x", .dtype = FT_BF16 };

	(void)state;
	for (int64_t m = 512; m <= 16384; m *= 2) {
		w.gemm.m = m;
		w.gemm.n = 8192;
		w.gemm.k = 3 * m;
		assert_true(fabs(time_of(b, &w) / time_of(a, &w) - 1) < 1e-9);
	}
	assert_string_equal(b->name, "h200 modified");
	assert_string_equal(same->name, "h200"); /* nothing of it is another's */
	assert_string_equal(b->default_node, a->default_node);
	ft_gpu_free(same);
	ft_gpu_free(a);
	ft_gpu_free(b);
	arena_release(&mem);
}

/* What runs on a GPU takes the same time on one that extends it and says nothing, whatever both lie upon. */
static void no_profile_changes_by_being_extended(void **state)
{
	static const char *const names[] = {
		"mi100",    "mi210",	"mi250",  "mi250x", "gh200",
		"mi300x",   "mi325x",	"mi355x", "mi350x", "a100-40g",
		"a100-80g", "h100-sxm", "h800",	  "a800",   "h100-96g-500w",
		"h200",	    "b200",	"b300",	  "gb200",  "gb300",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct arena mem = { 0 };
		struct ft_gpu *a = gpu(&mem, names[i]);
		struct ft_gpu *b =
			gpu(&mem,
			    arena_printf(&mem, "{extends: %s, title: Ours}", names[i]));
		struct ft_work w = { .kind = FT_ATTENTION,
				     .name = "x",
				     .dtype = FT_BF16 };

		for (size_t k = 0; k < a->n_memory; k++)
			near_frac(b->memory[k].bytes_per_s.value,
				  a->memory[k].bytes_per_s.value, 1e-12);
		w.attention.batch = 2;
		w.attention.heads = w.attention.kv_heads = 16;
		w.attention.queries = w.attention.keys = 8192;
		w.attention.qk_head_dim = w.attention.v_head_dim = 128;
		w.attention.causal = true;
		for (size_t k = 0; k < 2 * a->n_impls; k++) {
			w.attention.impl = a->impl[k / 2].name;
			w.attention.pass = k % 2 ? FT_PASS_BACKWARD : FT_PASS_FORWARD;
			near_frac(time_of(b, &w), time_of(a, &w), 1e-9);
		}
		ft_gpu_free(a);
		ft_gpu_free(b);
		arena_release(&mem);
	}
}

/* Twice the bandwidth: a curve's bytes take half the time, its start stays. What instructions bind goes
 * by the peak of vectors. */
static void curves_follow_memory_bandwidth(void **state)
{
	struct arena mem = { 0 };
	struct ft_gpu *a = gpu(&mem, "h200");
	struct ft_gpu *b = gpu(&mem, "{extends: h200, memory.bandwidth: 9.6 TB/s, "
				     "peak.fp32: 201 TFLOP/s}");

	(void)state;
	assert_int_equal(a->n_memory, b->n_memory);
	for (size_t i = 0; i < a->n_memory; i++) {
		const struct ft_memory_curve *x = &a->memory[i], *y = &b->memory[i];
		bool die = !strncmp(x->kernel, "strided", 7) ||
			   !strncmp(x->kernel, "delta_rule", 10) ||
			   !strncmp(x->kernel, "state_space", 11);

		near_frac(y->bytes_per_s.value, (die ? 3 : 2) * x->bytes_per_s.value,
			  1e-12);
		near_frac(y->step_s.value, x->step_s.value, 1e-12);
		near_frac(y->start_s.value, x->start_s.value, 1e-12);
		for (size_t k = 0; k < x->n_rows; k++)
			near_frac(y->row[k].bytes_per_s.value,
				  2 * x->row[k].bytes_per_s.value, 1e-12);
	}
	ft_gpu_free(a);
	ft_gpu_free(b);
	arena_release(&mem);
}

/* The same chip draws the same watts under any limit, another as much of its own, and what a file gives
 * is what it is. */
static void watts_of_kernels_follow_the_chip(void **state)
{
	static const struct {
		const char *text;
		double copy, silu; /* of those of an H100 */
	} seen[] = {
		{ "{extends: h100-sxm, power.limit: 350 W}", 1, 1 },
		{ "{extends: h100-sxm, peak.bf16: 2 PFLOP/s, power.limit: 1400 W}", 2,
		  2 },
		{ "{extends: h100-sxm, peak.bf16: 2 PFLOP/s, power.limit: 1400 W, "
		  "power.kernels.copy: 300 W}",
		  0.6, 2 },
	};
	struct arena mem = { 0 };
	struct ft_gpu *of = gpu(&mem, "h100-sxm");
	double copy = ft_gpu_memory_curve(of, "copy", false)->w.value;
	double silu = ft_gpu_memory_curve(of, "silu", true)->w.value;

	(void)state;
	assert_true(copy > 400 && silu > copy);
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		struct ft_gpu *g = gpu(&mem, seen[i].text);
		double want = seen[i].copy < 1 ? 300 : seen[i].copy * copy;

		near_frac(ft_gpu_memory_curve(g, "copy", false)->w.value, want, 1e-9);
		near_frac(ft_gpu_memory_curve(g, "silu", true)->w.value,
			  seen[i].silu * silu, 1e-9);
		ft_gpu_free(g);
	}
	ft_gpu_free(of);
	arena_release(&mem);
}

static void a_curve_that_is_given_is_not_scaled(void **state)
{
	struct arena mem = { 0 };
	struct ft_gpu *b = gpu(&mem, "{extends: h200, memory.bandwidth: 9.6 TB/s, "
				     "memory_bound: {curves: {copy: {bandwidth: "
				     "5 TB/s}}}}");

	(void)state;
	near_frac(ft_gpu_memory_curve(b, "copy", false)->bytes_per_s.value, 5e12,
		  1e-12);
	ft_gpu_free(b);
	arena_release(&mem);
}

static void each_number_says_where_it_comes_from(void **state)
{
	struct arena mem = { 0 };
	struct ft_gpu *g =
		gpu(&mem, "{extends: h200, peak.bf16: 2 PFLOP/s, provenance: "
			  "{kind: published, source: a data sheet}}");
	const struct ft_memory_curve *copy = ft_gpu_memory_curve(g, "copy", false);

	(void)state;
	assert_int_equal(g->peak_flop_per_s[FT_BF16].from->kind, FT_PUBLISHED);
	assert_string_equal(g->peak_flop_per_s[FT_BF16].from->source, "a data sheet");
	assert_int_equal(g->peak_flop_per_s[FT_FP8].from->kind, FT_DERIVED);
	assert_int_equal(copy->bytes_per_s.from->kind, FT_DERIVED);
	assert_non_null(strstr(copy->bytes_per_s.from->source, "h200 (measured"));
	ft_gpu_free(g);
	g = gpu(&mem, "{extends: h200, power.limit: 900 W}");
	assert_int_equal(g->limit_w.from->kind, FT_ASSUMED);
	assert_int_equal(g->idle_w.from->kind, FT_DERIVED);
	ft_gpu_free(g);
	arena_release(&mem);
}

/* Its own words, or what is said of who says nothing. */
static void what_is_not_said_is_named_after_what_it_extends(void **state)
{
	(void)state;
	for (int given = 0; given < 16; given++) {
		struct arena mem = { 0 };
		struct ft_error err;
		bool name = given & 1, title = given & 2, from = given & 4;
		bool extends = given & 8; /* else by name alone, which is not its own */
		struct node *v = extends_value(
			&mem, "hw/gpus",
			value(&mem,
			      arena_printf(
				      &mem, "{%s%s%s%s, power.limit: 1 kW}",
				      extends ? "extends: h200" : "name: h200",
				      name && extends ? ", name: mine" : "",
				      title ? ", title: Mine" : "",
				      from ? ", provenance: {kind: measured, source: "
					     "a meter, date: 2026}" :
					     "")),
			&err);
		const char *called = name && extends ? "mine" : "h200 modified";
		const struct node *is;

		ok_or_say(v, err);
		assert_string_equal(node_get(v, "name")->text, called);
		assert_string_equal(node_get(v, "title")->text,
				    title ? "Mine" : called);
		is = node_path(v, "power.limit");
		assert_string_equal(is->text, "1 kW");
		assert_false(is->inherited);
		assert_string_equal(node_get(is->provenance, "kind")->text,
				    from ? "measured" : "assumed");
		assert_string_equal(node_get(is->provenance, "source")->text,
				    from ? "a meter" : "the scenario");
		assert_true(node_path(v, "memory.capacity")->inherited);
		arena_release(&mem);
	}
}

static void has(const struct node *v, const char *path, const char *text,
		const char *kind, const char *source, const char *date)
{
	const struct node *n = node_path(v, path), *from = n->provenance;
	const char *keys[] = { "kind", "source", "date" };
	const char *words[] = { kind, source, date };

	assert_string_equal(n->kind == NODE_MAP ? node_get(n, "value")->text : n->text,
			    text);
	for (int i = 0; i < 3; i++) {
		const struct node *is = node_get(from, keys[i]);

		assert_string_equal(is ? is->text : "", words[i]);
	}
}

/* A file upon a file: each number has the provenance that is nearest above it in its own file;
 * what comes from below is of the same thing, or derived from another one's. */
static void a_number_keeps_the_nearest_provenance_of_its_file(void **state)
{
	char low[64], high[64];
	FILE *f = fopen(own_path(low, "low.yaml"), "w");

	(void)state;
	fputs("name: low\nprovenance: {kind: measured, source: s1, date: 2025}\na: 1\nb: 2\n"
	      "m: {x: 3, y: 4, provenance: {kind: published, source: s2, date: 2024}}\n"
	      "v: {value: 5, provenance: {kind: assumed}}\n",
	      f);
	fclose(f);
	f = fopen(own_path(high, "high.yaml"), "w");
	fprintf(f,
		"name: high\nextends: %s\nprovenance: {kind: published, source: s3, date: "
		"2026}\na: 6\nm: {y: 7}\n",
		low);
	fclose(f);
	for (int as = EXTENDS_SAME; as <= EXTENDS_DERIVED; as++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *v =
			extends_file(&mem, ".", high, NULL, (enum extends_as)as, &err);
		bool same = as == EXTENDS_SAME;

		ok_or_say(v, err);
		assert_string_equal(node_get(v, "name")->text, "high");
		has(v, "a", "6", "published", "s3", "2026");
		has(v, "m.y", "7", "published", "s3", "2026");
		has(v, "b", "2", same ? "measured" : "derived",
		    same ? "s1" : "low (measured: s1)", "2025");
		has(v, "m.x", "3", same ? "published" : "derived",
		    same ? "s2" : "low (published: s2)", "2024");
		has(v, "v.value", "5", same ? "assumed" : "derived",
		    same ? "" : "low (assumed)", "");
		arena_release(&mem);
	}
	unlink(low);
	unlink(high);
}

/* The ten lines of a data sheet, in a file, and a file upon that one. */
static void a_data_sheet_is_enough(void **state)
{
	char first[] = "/tmp/foretoken-extends-XXXXXX.yaml";
	char second[] = "/tmp/foretoken-extends-XXXXXX.yaml";
	struct arena mem = { 0 };
	struct ft_gpu *g;
	FILE *f;

	(void)state;
	f = fdopen(mkstemps(first, 5), "w");
	fputs("extends: h200\nname: foo-1\ntitle: Foo 1\n"
	      "provenance: {kind: published, source: data sheet}\n"
	      "memory: {capacity: 288 GB, bandwidth: 9.6 TB/s}\n"
	      "peak: {bf16: 2 PFLOP/s, fp8: 4 PFLOP/s}\npower: {limit: 1200 W}\n",
	      f);
	fclose(f);
	f = fdopen(mkstemps(second, 5), "w");
	fprintf(f,
		"extends: %s\nname: foo-2\nprovenance: {kind: assumed, source: guess}\n"
		"memory: {bandwidth: 4.8 TB/s}\n",
		first);
	fclose(f);
	g = gpu(&mem, first);
	assert_string_equal(g->title, "Foo 1");
	near_frac(g->memory_bytes.value, 288e9 - 0x1p31, 1e-12); /* h200's context */
	assert_true(g->gemm[FT_BF16].n_rows > 500);
	ft_gpu_free(g);
	g = gpu(&mem, second);
	near_frac(g->memory_bytes.value, 288e9 - 0x1p31, 1e-12);
	near_frac(g->peak_flop_per_s[FT_BF16].value, 2e15, 1e-12);
	assert_true(g->gemm[FT_BF16].n_rows > 500);
	ft_gpu_free(g);
	unlink(first);
	unlink(second);
	arena_release(&mem);
}

static void nodes_and_fabrics_are_changed_in_place(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_cluster *c = ft_cluster_load(
		value(&mem, "{gpu: h100-sxm, gpus: 1024, node: {extends: hgx-h100, "
			    "nics.speed: 800 Gb/s}, fabric: {name: ib-ndr-rail, "
			    "oversubscription: 2}}"),
		&err);

	(void)state;
	ok_or_say(c, err);
	near_frac(c->node->nic_bytes_per_s.value, 100e9, 1e-12);
	near_frac(c->fabric->oversubscription, 2, 1e-12);
	assert_string_equal(c->fabric->name, "ib-ndr-rail modified");
	ft_cluster_free(c);
	arena_release(&mem);
}

/* What a card of 700 W draws while it waits it draws under any limit, up to that; another
 * chip draws as much of its own limit. */
static void a_capped_card_waits_at_as_many_watts(void **state)
{
	static const struct {
		const char *gpu;
		double above_w; /* above the idle ones */
	} of[] = {
		{ "h100-sxm", 0.37 * 625 },
		{ "{extends: h100-sxm, power.limit: 500 W}", 0.37 * 625 },
		{ "{extends: h100-sxm, power.limit: 1000 W}", 0.37 * 625 },
		{ "{extends: h100-sxm, power.limit: 200 W}", 125 },
		{ "{extends: h100-sxm, power.limit: 200 W, power.idle: 100 W}", 100 },
		{ "{extends: h100-sxm, peak.bf16: 2 PFLOP/s, power.limit: 1000 W}",
		  0.37 * 925 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_cluster *c = ft_cluster_load(
			value(&mem,
			      arena_printf(&mem, "{gpu: %s, gpus: 8}", of[i].gpu)),
			&err);

		ok_or_say(c, err);
		near_frac((c->gpu->limit_w.value - c->gpu->idle_w.value) *
				  ft_parts_gpu(c->parts)->waiting_frac.value,
			  of[i].above_w, 1e-9);
		ft_cluster_free(c);
		arena_release(&mem);
	}
}

static void mistakes_point_at_their_place(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "{extends: h20}", "did you mean 'h200'" },
		{ "{extends: h200, memory.bandwith: 3 TB/s}", "'bandwidth'" },
		{ "{extends: h200, memory: 3 TB/s}", "map" },
		{ "{extends: [h200]}", "extends: NAME" },
		{ "{memory.bandwidth: 3 TB/s}", "extends: NAME" },
		{ "[h200]", "extends: NAME" },
		{ "{extends: h200, memory.bandwidth: -3 TB/s}", "" },
		{ "{extends: h200, power.limit: 60 W}",
		  "limit: is not above the 79 W that it draws idle" },
		{ "{extends: h200, power.idle: 800 W}",
		  "idle: is not below the limit of 700 W" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };

		assert_null(ft_gpu_load_value(value(&mem, cases[i].text),
					      FT_GPU_ALL_ROWS, &err));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_string_equal(err.file, "value");
		arena_release(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changes_nothing_answers_the_same),
		cmocka_unit_test(no_profile_changes_by_being_extended),
		cmocka_unit_test(curves_follow_memory_bandwidth),
		cmocka_unit_test(watts_of_kernels_follow_the_chip),
		cmocka_unit_test(a_curve_that_is_given_is_not_scaled),
		cmocka_unit_test(each_number_says_where_it_comes_from),
		cmocka_unit_test(what_is_not_said_is_named_after_what_it_extends),
		cmocka_unit_test(a_number_keeps_the_nearest_provenance_of_its_file),
		cmocka_unit_test(a_data_sheet_is_enough),
		cmocka_unit_test(nodes_and_fabrics_are_changed_in_place),
		cmocka_unit_test(a_capped_card_waits_at_as_many_watts),
		cmocka_unit_test(mistakes_point_at_their_place),
	};

	return cmocka_run_group_tests_name("extends", tests, NULL, NULL);
}
