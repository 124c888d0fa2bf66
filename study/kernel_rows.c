/* study/kernel_rows.c - rows of single kernels and single collectives */
#include <stdlib.h>
#include <string.h>

#include "base/node.h"
#include "base/plain.h"
#include "base/stats.h"
#include "study/kernel_columns.h"
#include "study/shelf.h"
#include "study/spread.h"
#include "study/tally.h"

/* GPUs by name or path as the rows say it, loaded once per file. */
struct garage {
	struct arena *mem;
	struct ft_gpu *gpu[32];
	const char *asked[32];
	size_t n;
};

static const struct ft_gpu *gpu_named(struct garage *g, const char *name,
				      const struct ft_mark *at, struct ft_error *err)
{
	for (size_t i = 0; i < g->n; i++)
		if (!strcmp(g->asked[i], name))
			return g->gpu[i];
	if (g->n == sizeof(g->gpu) / sizeof(*g->gpu)) {
		ft_fail(err, at, "too many different GPUs in one file");
		return NULL;
	}
	g->asked[g->n] = name;
	g->gpu[g->n] = ft_gpu_load(name, at, err);
	return g->gpu[g->n] ? g->gpu[g->n++] : NULL;
}

static void garage_close(struct garage *g)
{
	for (size_t i = 0; i < g->n; i++)
		ft_gpu_free(g->gpu[i]);
}

static bool truth(const struct csv *t, size_t row, const char *column, bool *out,
		  struct ft_error *err)
{
	return csv_truth(t, row, csv_column(t, column), out, err);
}

static bool whole(const struct csv *t, size_t row, const char *column, int64_t fallback,
		  int64_t *out, struct ft_error *err)
{
	struct ft_mark at = csv_mark(t, row, csv_column(t, column));
	double v;

	if (!csv_number(t, row, csv_column(t, column), (double)fallback, &v, err))
		return false;
	if (v < 0 || v > 1e15)
		return ft_fail(err, &at, "%s is out of range", column);
	*out = (int64_t)v;
	return (double)*out == v ||
	       ft_fail(err, &at, "%s should be a whole number", column);
}

static bool need_positive(int64_t v, const char *name, struct ft_error *err)
{
	return v > 0 || ft_fail(err, NULL, "the row lacks %s", name);
}

/* A whole number from 1, or the fallback where the cell is empty. */
static bool size(const struct csv *t, size_t row, const char *column, int64_t fallback,
		 int64_t *out, struct ft_error *err)
{
	return whole(t, row, column, fallback, out, err) &&
	       need_positive(*out, column, err);
}

static bool gemm_row(const struct csv *t, size_t row, struct ft_work *w,
		     struct ft_error *err)
{
	const char *layout = csv_text(t, row, csv_column(t, "layout"));

	w->kind = FT_GEMM;
	w->gemm.layout = FT_FORWARD;
	if (layout[0] && !ft_layout_find(layout, &w->gemm.layout))
		return ft_fail(err, NULL,
			       "unknown layout '%s'; it is forward, dgrad or wgrad",
			       layout);
	return truth(t, row, "accumulate", &w->gemm.accumulate, err) &&
	       size(t, row, "groups", 1, &w->gemm.groups, err) &&
	       size(t, row, "m", 0, &w->gemm.m, err) &&
	       size(t, row, "n", 0, &w->gemm.n, err) &&
	       size(t, row, "k", 0, &w->gemm.k, err);
}

static bool read_pass(const char *pass, struct ft_work *w, struct ft_error *err)
{
	w->attention.pass = !strcmp(pass, "backward") ? FT_PASS_BACKWARD :
			    !strcmp(pass, "both")     ? FT_PASS_BOTH :
							FT_PASS_FORWARD;
	return !pass[0] || w->attention.pass != FT_PASS_FORWARD ||
	       !strcmp(pass, "forward") ||
	       ft_fail(err, NULL, "unknown pass '%s'; it is forward, backward or both",
		       pass);
}

static bool attention_row(const struct csv *t, size_t row, struct ft_work *w,
			  struct ft_error *err)
{
	const char *impl = csv_text(t, row, csv_column(t, "impl"));
	int64_t dim = 0;

	w->kind = FT_ATTENTION;
	w->attention.impl = impl[0] ? impl : NULL;
	if (!truth(t, row, "causal", &w->attention.causal, err) ||
	    !read_pass(csv_text(t, row, csv_column(t, "pass")), w, err) ||
	    !size(t, row, "batch", 1, &w->attention.batch, err) ||
	    !size(t, row, "heads", 0, &w->attention.heads, err) ||
	    !size(t, row, "sequence_length", 0, &w->attention.queries, err) ||
	    !size(t, row, "head_dim", 128, &dim, err) ||
	    !size(t, row, "v_head_dim", dim, &w->attention.v_head_dim, err) ||
	    !size(t, row, "kv_heads", w->attention.heads, &w->attention.kv_heads, err))
		return false;
	w->attention.keys = w->attention.queries;
	w->attention.qk_head_dim = dim;
	return w->attention.heads % w->attention.kv_heads == 0 ||
	       ft_fail(err, NULL, "heads is not a multiple of kv_heads");
}

/* Any other name is of a memory-bound kernel: not where the row is of products. */
static bool no_product(const struct csv *t, size_t row, struct ft_error *err)
{
	static const char *const of[][2] = { { "layout", "gemm" },
					     { "k", "gemm" },
					     { "heads", "attention" } };
	struct ft_mark at = csv_mark(t, row, 0);

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (csv_text(t, row, csv_column(t, of[i][0]))[0] &&
		    strcmp(csv_text(t, row, csv_column(t, of[i][0])), "0") != 0)
			return ft_fail(err, &at,
				       "'%.40s' is a memory-bound kernel, which has no "
				       "%s; with it the kernel is called %s",
				       csv_text(t, row, 0), of[i][0], of[i][1]);
	return true;
}

/* The row counts the source buffer; the work counts bytes read and written: the
 * profile's curve says how many of those there are to one of the source. */
static bool memory_row(const struct csv *t, size_t row, const struct ft_gpu *gpu,
		       struct ft_work *w, struct ft_error *err)
{
	const struct ft_memory_curve *curve;
	double e = ft_dtype_bytes(w->dtype), bytes;
	int64_t m, n;

	w->kind = FT_MEMORY_BOUND;
	w->memory.kernel = w->name;
	if (!no_product(t, row, err) || !truth(t, row, "warm", &w->memory.warm, err) ||
	    !csv_number(t, row, csv_column(t, "bytes"), 0, &bytes, err) ||
	    !whole(t, row, "m", 0, &m, err) || !whole(t, row, "n", 1, &n, err))
		return false;
	w->memory.row_bytes = m > 0 ? e * (double)n : 0;
	if (bytes <= 0)
		bytes = e * (double)m * (double)n;
	curve = ft_gpu_memory_curve(gpu, w->name, w->memory.warm);
	w->memory.bytes = bytes * (curve ? curve->traffic.value : 2);
	return bytes > 0 || ft_fail(err, NULL, "the row has neither bytes nor m, n");
}

static bool work_of_row(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			struct ft_work *w, struct ft_error *err)
{
	const char *dtype = csv_text(t, row, csv_column(t, "dtype"));

	*w = (struct ft_work){ .name = csv_text(t, row, 0), .dtype = FT_BF16 };
	if (dtype[0] && !ft_dtype_find(dtype, &w->dtype))
		return ft_fail(
			err, NULL,
			"unknown dtype '%s'; it is one such as bf16, fp8 or mxfp8",
			dtype);
	if (!strcmp(w->name, "gemm"))
		return gemm_row(t, row, w, err);
	if (!strcmp(w->name, "attention"))
		return attention_row(t, row, w, err);
	return memory_row(t, row, gpu, w, err);
}

static bool read_clock(const char *word, enum ft_clock *clock, struct ft_error *err)
{
	*clock = strcmp(word, "sustained") ? FT_CLOCK_BURST : FT_CLOCK_SUSTAINED;
	return !word[0] || *clock == FT_CLOCK_SUSTAINED || !strcmp(word, "burst") ||
	       ft_fail(err, NULL, "clock should be burst or sustained, not '%.40s'",
		       word);
}

/* A tuner's row is held against a tuner's kernel. */
static void as_in_source(const struct csv *t, size_t row, const struct ft_gpu *gpu,
			 const struct ft_work *w, struct ft_prediction *p)
{
	if (w->kind == FT_GEMM)
		p->time_s *= ft_gpu_source_factor(
			gpu, csv_text(t, row, csv_column(t, "source")), w->dtype);
}

static bool predict_row(struct garage *g, const struct csv *t, size_t row,
			struct ft_work *w, struct ft_prediction *p,
			struct ft_error *err)
{
	int column = csv_column(t, "gpu");
	struct ft_mark at = csv_mark(t, row, column);
	const struct ft_gpu *gpu = gpu_named(g, csv_text(t, row, column), &at, err);
	enum ft_clock clock;

	if (!gpu || !work_of_row(t, row, gpu, w, err) ||
	    !read_clock(csv_text(t, row, csv_column(t, "clock")), &clock, err) ||
	    !ft_kernel_predict(gpu, w, clock, p, err))
		return false;
	as_in_source(t, row, gpu, w, p);
	return true;
}

/* A measured rate and how much of its unit the kernel does, by what name. */
struct rate {
	const char *key;
	double measured, work;
};

/* The prediction against the measured time, and without one (us 0) against the rate.
 * c: the check's id and group. */
static void check_time_or_rate(struct tally *t, struct ft_check *c,
			       const struct ft_prediction *p, double us,
			       struct rate rate)
{
	double reach = NORMAL_P90 * p->spread_frac;

	c->is_rate = us <= 0;
	c->key = c->is_rate ? rate.key : "time_us";
	c->measured = c->is_rate ? rate.measured : us;
	c->predicted = c->is_rate ? rate.work / p->time_s : p->time_s * 1e6;
	c->low = c->predicted / (1 + reach);
	c->high = c->predicted * (1 + reach);
	c->extrapolated_frac = p->extrapolated;
	tally_check(t, c, true);
}

static bool kernel_check(struct tally *t, struct garage *g, const struct csv *rows,
			 size_t i, struct ft_error *err)
{
	struct ft_check c = { .id = row_id(t, rows, i),
			      .group = csv_text(rows, i, csv_column(rows, "group")) };
	struct ft_prediction p;
	struct ft_work w;
	double us, tflops;

	if (!predict_row(g, rows, i, &w, &p, err) ||
	    !csv_number(rows, i, csv_column(rows, "measured.time_us"), 0, &us, err) ||
	    !csv_number(rows, i, csv_column(rows, "measured.tflops"), 0, &tflops, err))
		return false;
	if (!c.group[0])
		c.group = arena_printf(t->mem, "%s %s %s",
				       csv_text(rows, i, csv_column(rows, "gpu")),
				       w.name, ft_dtype_name(w.dtype));
	if (us <= 0 && tflops <= 0)
		return ft_fail(err, NULL,
			       "the row has no measured.time_us and no "
			       "measured.tflops");
	check_time_or_rate(t, &c, &p, us,
			   (struct rate){ "tflops", tflops, ft_work_flop(&w) * 1e-12 });
	return true;
}

bool validate_kernels(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	struct garage g = { .mem = t->mem };

	if (!columns_known(rows, kernel_columns,
			   sizeof(kernel_columns) / sizeof(*kernel_columns), NULL, 0,
			   err))
		return false;
	for (size_t i = 0; i < rows->n_rows; i++) {
		struct ft_error why;

		if (!kernel_check(t, &g, rows, i, &why))
			tally_row_failure(t, rows, i, &why);
	}
	garage_close(&g);
	return true;
}

/* What a row of collectives says. */
struct collective_row {
	const char *fabric;
	struct ft_mark gpu_at;
	const struct ft_gpu *gpu;
	int64_t nodes;
	struct ft_collective_call call;
};

static bool read_collective(struct garage *g, const struct csv *rows, size_t i,
			    struct collective_row *r, struct ft_error *err)
{
	const char *op = csv_text(rows, i, csv_column(rows, "op"));
	int gpu_column = csv_column(rows, "gpu");

	*r = (struct collective_row){
		.fabric = csv_text(rows, i, csv_column(rows, "fabric")),
		.gpu_at = csv_mark(rows, i, gpu_column),
		.call.shape.stride = 1,
	};
	r->gpu = gpu_named(g, csv_text(rows, i, gpu_column), &r->gpu_at, err);
	if (!r->gpu || !whole(rows, i, "gpus", 0, &r->call.shape.size, err) ||
	    !whole(rows, i, "nodes", 0, &r->nodes, err) ||
	    !csv_number(rows, i, csv_column(rows, "bytes"), 0, &r->call.bytes, err))
		return false;
	if (!ft_collective_find(op, &r->call.op))
		return ft_fail(
			err, NULL,
			"unknown op '%s'; it is one such as all_reduce or all_to_all",
			op);
	if (r->call.shape.size == 1)
		return ft_fail(err, NULL, "a collective takes at least 2 GPUs");
	return (r->call.shape.size > 1 && r->call.bytes > 0) ||
	       ft_fail(err, NULL, "the row lacks gpus or bytes");
}

static bool is_scale_up(const char *fabric)
{
	return !strcmp(fabric, "nvlink") || !strcmp(fabric, "xgmi") ||
	       !strcmp(fabric, "nvlink-no-nvls") || !strcmp(fabric, "pcie");
}

/* Inside one node: the profile's tables. Across nodes: a cluster of that many. */
static bool predict_collective(struct tally *t, struct collective_row *r,
			       const char *gpus, struct ft_collective_result *out,
			       struct ft_error *err)
{
	const struct ft_mark *at = &r->gpu_at;
	struct ft_links links = { r->fabric, 0 };
	const struct ft_cluster *cluster;
	const struct ft_stack *stack;
	const struct ft_ccl *ccl;
	struct node *node;

	if (r->nodes <= 1 && is_scale_up(r->fabric))
		return ft_collective_inside(r->gpu, &links, NULL, &r->call, out, err);
	node = node_map(t->mem, at);
	node_put(t->mem, node, "gpu", at, node_scalar(t->mem, at, r->gpu->name));
	node_put(t->mem, node, "gpus", at, node_scalar(t->mem, at, gpus));
	if (r->fabric[0])
		node_put(t->mem, node, "fabric", at,
			 node_scalar(t->mem, at, r->fabric));
	cluster = shelf_cluster(t->shelf, node, FT_GPU_COLLECTIVE_ROWS, err);
	if (cluster && r->nodes > 0) {
		if (!spread_over(cluster, r->nodes, &r->call.shape, err))
			return false;
		node_put(t->mem, node, "gpus", at,
			 node_scalar(t->mem, at,
				     arena_printf(t->mem, "%lld",
						  (long long)(r->nodes *
							      cluster->node->gpus))));
		cluster = shelf_cluster(t->shelf, node, FT_GPU_COLLECTIVE_ROWS, err);
	}
	if (!cluster)
		return false;
	stack = shelf_stack(t->shelf, FT_STACK_UNNAMED, NULL, err);
	ccl = stack ? shelf_ccl_of(t->shelf, stack, r->gpu->ccl_generation, err) : NULL;
	return ccl && ft_collective_predict(cluster, ccl, &r->call, out, err);
}

static bool collective_check(struct tally *t, struct garage *g, const struct csv *rows,
			     size_t i, struct ft_error *err)
{
	struct ft_check c = { .id = row_id(t, rows, i),
			      .group = csv_text(rows, i, csv_column(rows, "group")) };
	const char *gpus = csv_text(rows, i, csv_column(rows, "gpus"));
	struct ft_collective_result out;
	struct collective_row r;
	double us, busbw;

	if (!read_collective(g, rows, i, &r, err) ||
	    !predict_collective(t, &r, gpus, &out, err) ||
	    !csv_number(rows, i, csv_column(rows, "measured.time_us"), 0, &us, err) ||
	    !csv_number(rows, i, csv_column(rows, "measured.busbw_gb_per_s"), 0, &busbw,
			err))
		return false;
	if (!c.group[0])
		c.group = arena_printf(t->mem, "%s %s x%lld",
				       csv_text(rows, i, csv_column(rows, "gpu")),
				       ft_collective_name(r.call.op),
				       (long long)r.call.shape.size);
	if (us <= 0 && busbw <= 0)
		return ft_fail(err, NULL,
			       "the row has no measured.time_us and no "
			       "measured.busbw_gb_per_s");
	check_time_or_rate(
		t, &c, &out.duration, us,
		(struct rate){
			"busbw_gb_per_s", busbw,
			r.call.bytes *
				ft_collective_bus_factor(r.call.op, r.call.shape.size) *
				1e-9 });
	return true;
}

bool validate_collectives(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	struct garage g = { .mem = t->mem };

	if (!columns_known(rows, collective_columns,
			   sizeof(collective_columns) / sizeof(*collective_columns),
			   NULL, 0, err))
		return false;
	for (size_t i = 0; i < rows->n_rows; i++) {
		struct ft_error why;

		if (!collective_check(t, &g, rows, i, &why))
			tally_row_failure(t, rows, i, &why);
	}
	garage_close(&g);
	return true;
}

static void write_row(FILE *out, const struct csv *rows, size_t i,
		      const struct ft_prediction *p)
{
	for (size_t c = 0; c < rows->n_columns; c++)
		csv_put(out, csv_text(rows, i, (int)c), false);
	if (p)
		fprintf(out, "%.4f,%s\n", p->time_s * 1e6,
			p->extrapolated ? "true" : "false");
	else
		fputs(",\n", out);
}

static bool kernel_table(struct csv *rows, struct ft_error *err)
{
	struct ft_mark at;

	if (!columns_known(rows, kernel_columns,
			   sizeof(kernel_columns) / sizeof(*kernel_columns), NULL, 0,
			   err))
		return false;
	at = (struct ft_mark){ rows->file, 1, 1 };
	return csv_column(rows, "kernel") == 0 ||
	       ft_fail(err, &at, "the first column should be 'kernel'");
}

bool ft_study_kernels(const char *gpu, const char *path, FILE *out, size_t *failed,
		      struct ft_error *why, struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct csv *rows = csv_read_file(&mem, path, err);
	struct ft_gpu *profile = NULL;
	bool ok = rows && kernel_table(rows, err) &&
		  (profile = ft_gpu_load(gpu, NULL, err));

	*failed = 0;
	for (size_t c = 0; ok && c < rows->n_columns; c++)
		csv_put(out, rows->column[c], false);
	if (ok)
		fputs("predicted.time_us,extrapolated\n", out);
	for (size_t i = 0; ok && i < rows->n_rows; i++) {
		const char *clock = csv_text(rows, i, csv_column(rows, "clock"));
		struct ft_prediction p;
		struct ft_error told;
		struct ft_work w;
		bool good = work_of_row(rows, i, profile, &w, &told) &&
			    ft_kernel_predict(profile, &w,
					      !strcmp(clock, "sustained") ?
						      FT_CLOCK_SUSTAINED :
						      FT_CLOCK_BURST,
					      &p, &told);

		if (good)
			as_in_source(rows, i, profile, &w, &p);
		else if (!(*failed)++)
			ft_fail(why, &(struct ft_mark){ rows->file, rows->line[i], 1 },
				"%s", told.text);
		write_row(out, rows, i, good ? &p : NULL);
	}
	ft_gpu_free(profile);
	arena_release(&mem);
	return ok;
}
