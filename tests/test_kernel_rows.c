/*
 * tests/test_kernel_rows.c - tables of kernels whose cells are drawn: what `validate` and `kernel --csv`
 * say of each row is what is predicted of the work that was drawn
 */
#include <math.h>

#include "base/arena.h"
#include "base/stats.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "foretoken/study.h"
#include "tests/check.h"

enum { ROWS = 120 };

static uint64_t seed = 21;

static const char *const gpus[] = { "h100-sxm", "h200", "b200", "mi300x" };

struct row {
	struct ft_work work;
	int gpu;
	bool sustained, rate;
	double given; /* us, or TFLOP/s */
	const char *source, *group;
	char text[300];
};

/* A cell: what is said, or nothing, which stands for the same. */
static const char *or_empty(struct arena *mem, bool say, int64_t value)
{
	return say ? arena_printf(mem, "%lld", (long long)value) : "";
}

static void draw_gemm(struct arena *mem, struct row *r)
{
	struct ft_work *w = &r->work;
	bool say = rnd_below(&seed, 2);

	*w = (struct ft_work){ .kind = FT_GEMM,
			       .name = "gemm",
			       .dtype = rnd_below(&seed, 2) ? FT_BF16 : FT_FP8,
			       .gemm = { .layout = (enum ft_layout)rnd_below(&seed, 3),
					 .m = 64 * (1 + rnd_below(&seed, 128)),
					 .n = 128 * (1 + rnd_below(&seed, 64)),
					 .k = 128 * (1 + rnd_below(&seed, 64)),
					 .groups = rnd_below(&seed, 4) ? 1 : 4 } };
	w->gemm.accumulate = w->gemm.layout == FT_WGRAD && rnd_below(&seed, 2);
	w->gemm.fast = w->dtype == FT_FP8 && rnd_below(&seed, 2);
	snprintf(r->text, sizeof(r->text),
		 "gemm,%s,%s,%s,%lld,%lld,%lld,%s,%s,%s,,,,,,,,,,", gpus[r->gpu],
		 w->dtype == FT_BF16 && say ? "" : ft_dtype_name(w->dtype),
		 w->gemm.layout == FT_FORWARD && say ? "" :
						       ft_layout_name(w->gemm.layout),
		 (long long)w->gemm.m, (long long)w->gemm.n, (long long)w->gemm.k,
		 or_empty(mem, w->gemm.groups > 1 || say, w->gemm.groups),
		 w->gemm.accumulate ? "true" :
		 say		    ? "false" :
				      "",
		 w->gemm.fast ? "true" : "");
}

static void draw_attention(struct arena *mem, struct row *r)
{
	static const char *const pass[] = { "forward", "backward", "both" };
	static const enum ft_pass of[] = { FT_PASS_FORWARD, FT_PASS_BACKWARD,
					   FT_PASS_BOTH };
	struct ft_work *w = &r->work;
	int at = rnd_below(&seed, 3), ratio = 1 << rnd_below(&seed, 3);
	bool say = rnd_below(&seed, 2);

	*w = (struct ft_work){ .kind = FT_ATTENTION,
			       .name = "attention",
			       .dtype = FT_BF16,
			       .attention = {
				       .pass = of[at],
				       .batch = 1 + rnd_below(&seed, 4),
				       .kv_heads = 1 + rnd_below(&seed, 8),
				       .queries = 512 * (1 + rnd_below(&seed, 16)),
				       .qk_head_dim = rnd_below(&seed, 2) ? 128 : 64,
				       .causal = rnd_below(&seed, 2) } };
	w->attention.heads = ratio * w->attention.kv_heads;
	w->attention.keys = w->attention.queries;
	w->attention.v_head_dim = w->attention.qk_head_dim;
	snprintf(r->text, sizeof(r->text),
		 "attention,%s,,,,,,,,,,%s,%s,%lld,%s,%lld,%s,%s,%s,", gpus[r->gpu],
		 at || say ? pass[at] : "",
		 or_empty(mem, w->attention.batch > 1 || say, w->attention.batch),
		 (long long)w->attention.heads,
		 or_empty(mem, ratio > 1 || say, w->attention.kv_heads),
		 (long long)w->attention.queries,
		 or_empty(mem, w->attention.qk_head_dim != 128 || say,
			  w->attention.qk_head_dim),
		 or_empty(mem, say, w->attention.v_head_dim),
		 w->attention.causal ? "true" : "");
}

/* Bytes of the source, or its rows; the work reads and writes as the profile's curve says. */
static void draw_memory(struct row *r, const struct ft_gpu *gpu)
{
	static const char *const kernel[] = { "copy", "rmsnorm", "softmax", "gelu",
					      "add" };
	const struct ft_memory_curve *curve;
	struct ft_work *w = &r->work;
	bool in_bytes = rnd_below(&seed, 2);
	int m = 256 * (1 + rnd_below(&seed, 64)), n = 1024 * (1 + rnd_below(&seed, 8));
	double bytes = in_bytes ? 4096.0 * (1 + rnd_below(&seed, 100000)) : 2.0 * m * n;

	*w = (struct ft_work){ .kind = FT_MEMORY_BOUND,
			       .name = kernel[rnd_below(&seed, 5)],
			       .dtype = FT_BF16 };
	w->memory.kernel = w->name;
	w->memory.warm = rnd_below(&seed, 3) == 0;
	w->memory.row_bytes = in_bytes ? 0 : 2.0 * n;
	curve = ft_gpu_memory_curve(gpu, w->name, w->memory.warm);
	w->memory.bytes = bytes * (curve ? curve->traffic.value : 2);
	if (in_bytes)
		snprintf(r->text, sizeof(r->text), "%s,%s,,,,,,,,,,,,,,,,,,%.0f",
			 w->name, gpus[r->gpu], bytes);
	else
		snprintf(r->text, sizeof(r->text), "%s,%s,,,%d,%d,,,,,,,,,,,,,,",
			 w->name, gpus[r->gpu], m, n);
}

static const char head[] =
	"kernel,gpu,dtype,layout,m,n,k,groups,accumulate,fast,impl,pass,batch,heads,kv_heads,"
	"sequence_length,head_dim,v_head_dim,causal,bytes,warm,clock,measured.time_us,"
	"measured.tflops,id,group,source\n";

static void draw_row(struct arena *mem, struct row *r, struct ft_gpu *const *gpu, int i)
{
	static const char *const source[] = { "", "aib", "s35", "mlp" };
	bool memory;
	size_t n;

	r->gpu = rnd_below(&seed, 4);
	switch (rnd_below(&seed, 3)) {
	case 0:
		draw_gemm(mem, r);
		break;
	case 1:
		draw_attention(mem, r);
		break;
	default:
		draw_memory(r, gpu[r->gpu]);
	}
	memory = r->work.kind == FT_MEMORY_BOUND;
	r->sustained = rnd_below(&seed, 3) == 0;
	r->rate = !memory && rnd_below(&seed, 2);
	r->given = 10 + rnd_below(&seed, 100000) * 0.01;
	r->source = source[rnd_below(&seed, 4)];
	r->group = rnd_below(&seed, 2) ? "mine" : "";
	n = strlen(r->text);
	snprintf(r->text + n, sizeof(r->text) - n, ",%s,%s,%s,%s,%s,%s,%s\n",
		 memory && r->work.memory.warm ? "true" : "",
		 r->sustained ? "sustained" :
		 i % 2	      ? "burst" :
				"",
		 r->rate ? "" : arena_printf(mem, "%.2f", r->given),
		 r->rate ? arena_printf(mem, "%.2f", r->given) : "",
		 i % 3 ? arena_printf(mem, "row%d", i) : "", r->group, r->source);
}

/* Times of a source whose tuner chose the kernel are shorter by what the profile says. */
static struct ft_prediction predicted(const struct row *r, const struct ft_gpu *gpu,
				      bool *can)
{
	struct ft_prediction p = { 0 };
	struct ft_error err;

	*can = ft_kernel_predict(gpu, &r->work,
				 r->sustained ? FT_CLOCK_SUSTAINED : FT_CLOCK_BURST, &p,
				 &err);
	if (r->work.kind == FT_GEMM)
		p.time_s *= ft_gpu_source_factor(gpu, r->source, r->work.dtype);
	return p;
}

static void check_is(const struct ft_check *c, const struct row *r, int i,
		     const struct ft_prediction *p)
{
	double reach = NORMAL_P90 * p->spread_frac, want = p->time_s * 1e6, error;
	char text[64];

	if (r->rate)
		want = ft_work_flop(&r->work) / p->time_s * 1e-12;
	error = r->rate ? r->given / want : want / r->given;
	near_frac(c->predicted, want, 1e-12);
	near_frac(c->measured, r->given, 1e-12);
	near_frac(c->low, want / (1 + reach), 1e-12);
	near_frac(c->high, want * (1 + reach), 1e-12);
	assert_true(fabs(c->error_frac - (error - 1)) < 1e-9);
	assert_int_equal(c->is_rate, r->rate);
	assert_string_equal(c->key, r->rate ? "tflops" : "time_us");
	assert_true(c->extrapolated_frac == p->extrapolated);
	assert_int_equal(c->inside, r->given >= c->low && r->given <= c->high);
	assert_int_equal(c->slow, r->rate ? r->given < c->low : r->given > c->high);
	snprintf(text, sizeof(text), i % 3 ? "row%d" : "line %d", i % 3 ? i : i + 2);
	assert_string_equal(c->id, text);
	snprintf(text, sizeof(text), "%s %s %s", gpus[r->gpu], r->work.name,
		 ft_dtype_name(r->work.dtype));
	assert_string_equal(c->group, *r->group ? r->group : text);
}

static void write_rows(const char *path, const struct row *row)
{
	FILE *f = fopen(path, "w");

	fputs(head, f);
	for (int i = 0; i < ROWS; i++)
		fputs(row[i].text, f);
	fclose(f);
}

static void rows_are_held_against_their_works(const char *path, const struct row *row,
					      struct ft_gpu *const *gpu)
{
	struct ft_error err;
	struct ft_validation *v =
		ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
	size_t seen = 0;

	ok_or_say(v, err);
	for (int i = 0; i < ROWS; i++) {
		bool can;
		struct ft_prediction p = predicted(&row[i], gpu[row[i].gpu], &can);

		if (can)
			check_is(&v->check[seen++], &row[i], i, &p);
	}
	assert_int_equal(v->n_checks, seen);
	assert_int_equal(v->n_failures, ROWS - seen);
	assert_true(seen > ROWS / 2);
	ft_validation_free(v);
}

/* The same table, with two columns more, of one GPU whatever the rows say. */
static void a_table_is_predicted(const char *path, const struct row *row,
				 const struct ft_gpu *gpu, const char *name)
{
	char *text = NULL, *at, want[400];
	size_t size, fails = 0, others = 0;
	FILE *out = open_memstream(&text, &size);
	struct ft_kernel_tally tally;
	struct ft_error err;

	ok_or_say(ft_study_kernels(name, path, out, &tally, &err), err);
	fclose(out);
	snprintf(want, sizeof(want), "%.*s,predicted.time_us,extrapolated\n",
		 (int)strlen(head) - 1, head);
	assert_int_equal(strncmp(text, want, strlen(want)), 0);
	at = text + strlen(want);
	for (int i = 0; i < ROWS; i++) {
		bool can;
		struct ft_prediction p = predicted(&row[i], gpu, &can);
		int n = (int)strlen(row[i].text) - 1;

		if (row[i].work.kind == FT_MEMORY_BOUND) /* bytes by its own curve */
			n = (int)strcspn(at, "\n");
		if (row[i].work.kind != FT_MEMORY_BOUND) {
			fails += !can;
			if (can)
				snprintf(want, sizeof(want), "%.*s,%.4f,%s\n", n,
					 row[i].text, p.time_s * 1e6,
					 p.extrapolated ? "true" : "false");
			else
				snprintf(want, sizeof(want), "%.*s,,\n", n,
					 row[i].text);
			if (strncmp(at, want, strlen(want)) != 0)
				fail_msg("%.300s, wanted %s", at, want);
		}
		at = strchr(at, '\n') + 1;
	}
	assert_string_equal(at, "");
	assert_true(tally.failed >= fails && tally.failed < ROWS / 2);
	for (int i = 0; i < ROWS; i++)
		others += strcmp(gpus[row[i].gpu], name) != 0;
	assert_int_equal(tally.of_other_gpus, others);
	free(text);
}

static void rows_are_works(void **state)
{
	struct arena mem = { 0 };
	struct row *row = calloc(ROWS, sizeof(*row));
	struct ft_gpu *gpu[4];
	char path[64];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ft_error err;

		gpu[i] = ft_gpu_load(gpus[i], NULL, &err);
		ok_or_say(gpu[i], err);
	}
	for (int i = 0; i < ROWS; i++)
		draw_row(&mem, &row[i], gpu, i);
	write_rows(own_path(path, "rows.csv"), row);
	rows_are_held_against_their_works(path, row, gpu);
	for (int i = 0; i < 4; i++)
		a_table_is_predicted(path, row, gpu[i], gpus[i]);
	unlink(path);
	for (int i = 0; i < 4; i++)
		ft_gpu_free(gpu[i]);
	free(row);
	arena_release(&mem);
}

/* One row after the other, by both readers: what they say of it, and no time for it. */
static void a_row_that_nobody_means_is_refused(void **state)
{
	static const char columns[] =
		"kernel,gpu,dtype,m,n,k,clock,bytes,measured.time_us\n";
	static const char *const rows[][2] = {
		{ "Copy,h200,,,,,,4096,9",
		  "unknown kernel 'Copy'; did you mean 'copy'?" },
		{ "copyy,h200,,64,64,,,,9",
		  "unknown kernel 'copyy'; did you mean 'copy'?" },
		{ "frobnicate,h200,,64,64,,,,9", "known: gemm, attention, copy, add" },
		{ "frobnicate,h200,,64,64,,,,9", "none of these is called default" },
		{ "copy,h200,,64,64,64,,,9",
		  "'copy' is a memory-bound kernel, which has no k" },
		{ "copy,h200,,,,,,-4096,9", "bytes should be above 0" },
		{ "copy,h200,,,,,,1e19,9", "bytes is out of range" },
		{ "copy,h200,,4096,,,,,9", "the row lacks n" },
		{ "copy,h200,,4096,4096,,,1,9",
		  "bytes says 1, and m, n are 33554432 bytes of bf16" },
		{ "copy,h200,fp32,4096,4096,,,33554432,9",
		  "bytes says 33554432, and m, n are 67108864 bytes of fp32" },
		{ "rmsnorm,h200,,4096,,,,33554432,9", "the row lacks n" },
		{ "copy,h200,,,4096,,,,9", "neither bytes nor m, n" },
		{ "gemm,h200,,0,64,64,,,9", "m should be above 0" },
		{ "gemm,h200,,64,,64,,,9", "the row lacks n" },
		{ "gemm,h200,,64,64,64,Sustained,,9",
		  "clock should be burst or sustained" },
	};
	char path[64], *text = NULL;
	struct ft_kernel_tally tally;
	struct ft_error err;
	size_t size;

	(void)state;
	own_path(path, "refused.csv");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		FILE *f = fopen(path, "w"), *out = open_memstream(&text, &size);
		struct ft_validation *v;

		fprintf(f, "%s%s\n", columns, rows[i][0]);
		fclose(f);
		ok_or_say(ft_study_kernels("h200", path, out, &tally, &err), err);
		fclose(out);
		assert_int_equal(tally.failed, 1);
		assert_non_null(strstr(tally.why.text, rows[i][1]));
		assert_int_equal(tally.why.line, 2);
		assert_int_equal(tally.why.column, 1);
		assert_non_null(strstr(text, ",,\n"));
		v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
		ok_or_say(v, err);
		assert_int_equal(v->n_checks, 0);
		assert_int_equal(v->n_failures, 1);
		assert_non_null(strstr(v->failure[0].reason, rows[i][1]));
		ft_validation_free(v);
		free(text);
	}
	unlink(path);
}

/* A kernel of another name has the curve of all others; rmsnorm_other has that of rmsnorm. */
static void names_of_curves_are_taken(void **state)
{
	static const char *const names[] = { "default", "dropout", "rmsnorm_other",
					     "adamw_bf16" };
	char path[64], *text = NULL;
	struct ft_kernel_tally tally;
	struct ft_error err;
	size_t size;
	FILE *f = fopen(own_path(path, "names.csv"), "w");
	FILE *out = open_memstream(&text, &size);

	(void)state;
	fputs("kernel,bytes,warm,m,n\ncopy,524288,,64,4096\n", f); /* the same twice */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		fprintf(f, "%s,4096000,,,\n%s,4096000,true,,\n", names[i], names[i]);
	fclose(f);
	ok_or_say(ft_study_kernels("h200", path, out, &tally, &err), err);
	fclose(out);
	assert_int_equal(tally.failed, 0);
	assert_int_equal(tally.of_other_gpus, 0);
	free(text);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_works),
		cmocka_unit_test(a_row_that_nobody_means_is_refused),
		cmocka_unit_test(names_of_curves_are_taken),
	};

	return cmocka_run_group_tests_name("kernel rows", tests, NULL, NULL);
}
