/*
 * calibrate/fit_profile.c - the YAML file of a profile: the base's, with what was
 * fitted laid over it
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/node.h"
#include "base/stats.h"
#include "base/text.h"
#include "calibrate/fit.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

enum { FEWEST = 10 }; /* products run for seconds by others that make a rate */

/* ---- a tree as YAML ----------------------------------------------------------------- */

static bool plain(const struct node *n)
{
	return !n->quoted && !strpbrk(n->text, "#:{}[],\"'\\\r\t\n") && n->text[0];
}

static void print_scalar(FILE *out, const struct node *n)
{
	if (plain(n)) {
		fputs(n->text, out);
		return;
	}
	node_put_quoted(out, n->text);
}

/* Maps whose values are all scalars, or that lie deep, go on one line. */
static void print_flow(FILE *out, const struct node *n)
{
	const char *sep = "";

	if (n->kind == NODE_SCALAR) {
		print_scalar(out, n);
		return;
	}
	putc(n->kind == NODE_MAP ? '{' : '[', out);
	for (size_t i = 0; i < n->n; i++) {
		if (node_is_null(n->item[i]))
			continue; /* what the overlay takes away */
		fputs(sep, out);
		sep = ", ";
		if (n->kind == NODE_MAP)
			fprintf(out, "%s: ", n->key[i]);
		print_flow(out, n->item[i]);
	}
	putc(n->kind == NODE_MAP ? '}' : ']', out);
}

static bool on_one_line(const struct node *n, int depth)
{
	if (n->kind != NODE_MAP || depth > 2)
		return true;
	for (size_t i = 0; i < n->n; i++)
		if (n->item[i]->kind != NODE_SCALAR)
			return false;
	return depth > 0;
}

static void print_block(FILE *out, const struct node *n, int depth)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct node *v = n->item[i];

		if (node_is_null(v))
			continue;
		fprintf(out, "%*s%s:", 2 * depth, "", n->key[i]);
		if (on_one_line(v, depth + 1)) {
			putc(' ', out);
			print_flow(out, v);
			putc('\n', out);
		} else {
			putc('\n', out);
			print_block(out, v, depth + 1);
		}
	}
}

/* ---- what lies over the base ------------------------------------------------------- */

/* The last day of our own rows of a kind; of products that add to a gradient, of those. */
static const char *date_of(const struct fit_input *in, const char *kind)
{
	bool adds = !strcmp(kind, FIT_ACCUMULATE);
	const char *date = "";

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];

		if (measurement_is(m, adds ? "gemm" : kind) &&
		    (!adds || m->accumulate) && !fit_published(m) && !m->source[0] &&
		    strcmp(m->date, date) > 0)
			date = m->date;
	}
	return date[0] ? date : in->date;
}

void fit_put_measured(const struct fit_input *in, const char *kind, FILE *out,
		      const char *note, const char *end)
{
	struct arena mem = { 0 };
	const char *date = date_of(in, kind);

	node_put_field(out, "provenance: {kind: measured, source: ",
		       arena_printf(&mem, "probe-%s-%s: %s", in->options->name, date,
				    in->device),
		       ", ");
	node_put_field(out, "date: ", date, ", ");
	node_put_field(out, "note: ", note, end);
	arena_release(&mem);
}

/* Are rows of ours of this kind from a table or a log, of which nobody said how they were
 * taken? */
static bool imported(const struct fit_input *in, const char *kind)
{
	static const char *const formats[] = { "csv", "nccl-tests", "attention",
					       "kineto" };

	for (size_t i = 0; i < in->n; i++)
		for (int k = 0; k < 4; k++)
			if (measurement_is(&in->row[i], kind) &&
			    !fit_published(&in->row[i]) &&
			    !strcmp(in->row[i].backend, formats[k]))
				return true;
	return false;
}

/* note: how the probe takes them. */
static void provenance(const struct fit_input *in, const char *kind,
		       const struct ft_provenance *base, FILE *out, const char *note)
{
	if (imported(in, kind))
		note = "imported: how they were taken, whoever took them knows";
	if (fit_origin(in, kind) == FIT_PUBLISHED) {
		fit_published_provenance(in, kind, base, out);
		return;
	}
	fputs("  ", out);
	fit_put_measured(in, kind, out, note, "}\n");
}

/* Too few shapes to say: as the base has it. */
static double spread_of(const struct ft_fit *fit, const char *family, double fallback)
{
	for (size_t i = 0; fit && i < fit->n_groups; i++)
		if (!strcmp(fit->group[i].family, family) && fit->group[i].spread > 0)
			return fit->group[i].spread;
	return fallback;
}

/* A short burst, measured by the probe, of the product that m ran for seconds. */
static bool is_burst_of(const struct ft_measurement *b, const struct ft_measurement *m)
{
	return measurement_is(b, "gemm") && !b->sustained && !fit_published(b) &&
	       !fit_from_torch(b) && !strcmp(b->layout, "forward") &&
	       !strcmp(b->dtype, m->dtype) && m->m == b->m && m->n == b->n &&
	       m->k == b->k;
}

/* Long runs against bursts of the same shape, by format; the p10 of a burst, as
 * its last repetitions may already be slowed. */
static double sustained_rate(const struct fit_input *in, const char *dtype)
{
	double ratio[64];
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *a = &in->row[i];

		if (!a->sustained || strcmp(a->dtype, dtype))
			continue;
		for (size_t j = 0; j < in->n && n < 64; j++) {
			const struct ft_measurement *b = &in->row[j];

			if (is_burst_of(b, a))
				ratio[n++] = (b->p10_us > 0 ? b->p10_us : b->time_us) /
					     a->time_us;
		}
	}
	stats_sort(ratio, n);
	return fmin(1, stats_median(ratio, n));
}

/* A profile's own kin stays: its rows fill what was not measured. A base's does not. */
static const char *kin(const struct fit_input *in)
{
	return in->own_base ? "" : "  rows_of: null\n";
}

static void write_gemm(const struct fit_input *in, const struct ft_fit *fit, FILE *out)
{
	/* what was not run for seconds itself goes as its like */
	static const char *const dtypes[][2] = {
		{ "bf16", "bf16" },	   { "fp16", "bf16" }, { "fp8", "fp8" },
		{ "fp8-block128", "fp8" }, { "fp32", "fp32" },
	};
	bool rate = false;

	if (in->families &
	    (FT_FIT_GEMM | FT_FIT_SUSTAINED | FT_FIT_LAYOUT | FT_FIT_ACCUMULATE))
		fprintf(out, "gemm:\n  tile_m: %lld\n", /* never empty */
			(long long)in->base->gemm_model.tile_m);
	if (in->families & FT_FIT_GEMM) {
		provenance(in, "gemm", in->base->gemm_spread.from, out,
			   "isolated, second-level cache flushed, "
			   "normal inputs, stream events; published rows keep "
			   "their source");
		fprintf(out, "  spread: %.4f\n  rows: %s.gemm.csv\n%s",
			spread_of(fit, "gemm", in->base->gemm_spread.value),
			in->options->name, kin(in));
	}
	fit_layout_yaml(in, out);
	fit_published_rates_yaml(in, out);
	if (!(in->families & FT_FIT_SUSTAINED) ||
	    fit_origin(in, "gemm") != FIT_MEASURED)
		return;
	for (int i = 0; i < 5; i++) {
		double r = sustained_rate(in, dtypes[i][1]);

		if (!(r > 0))
			continue;
		if (!rate)
			fputs("  sustained:\n    ", out);
		if (!rate)
			fit_put_measured(in, "gemm", out,
					 "seconds of one product against a short burst "
					 "of it; fp16 as bf16, block-scaled fp8 as fp8",
					 "}\n");
		rate = true;
		fprintf(out, "    %s: %.4f\n", dtypes[i][0], r);
	}
}

/* Over the cells: value, least and largest; at least `least`. It has a provenance of its own, as
 * the base's number may. */
static void put_median(const struct fit_input *in, FILE *out, const char *name,
		       double least, double *v, size_t n)
{
	double value;

	stats_sort(v, n);
	value = fmax(least, stats_median(v, n));
	fprintf(out, "  %s: {value: %.3f, low: %.3f, high: %.3f, ", name, value,
		fmin(value, v[0]), fmax(value, v[n - 1]));
	fit_put_measured(in, "beside", out,
			 "a large product beside collectives at least half as long",
			 "}}\n");
}

static void write_interference(const struct fit_input *in, FILE *out)
{
	double units[64], collective[64];
	size_t n = 0;

	for (size_t i = 0; i < in->n && n < 64; i++) {
		const struct ft_measurement *m = &in->row[i];

		/* small collectives wait for a wave of tiles, not for bytes */
		if (!measurement_is(m, "beside") || !(m->alone_us > 0) ||
		    m->other_alone_us < 0.5 * m->alone_us)
			continue;
		/* of many waves, so that a unit lost is a share of the rate lost */
		units[n] = (double)in->base->compute_units *
			   fmax(0, 1 - m->alone_us / m->time_us);
		collective[n++] = m->other_us / m->other_alone_us;
	}
	if (!n)
		return;
	fputs("interference:\n", out);
	provenance(in, "beside", NULL, out,
		   "a large product beside collectives "
		   "at least half as long");
	put_median(in, out, "collective_units", 0, units, n);
	put_median(in, out, "collective_beside_compute", 1, collective, n);
}

static double launch_us(const struct fit_input *in, const char *kernel)
{
	for (size_t i = 0; i < in->n; i++)
		if (measurement_is(&in->row[i], "launch") &&
		    !strcmp(in->row[i].kernel, kernel))
			return in->row[i].time_us;
	return 0;
}

static void write_launch(const struct fit_input *in, FILE *out)
{
	double gap = launch_us(in, "gap");
	double graph = launch_us(in, "graph");

	if (!(gap > 0) || !(graph > 0))
		return;
	fputs("launch:\n", out);
	provenance(in, "launch", NULL, out,
		   "empty kernels, one after another on a stream; in a "
		   "graph");
	fprintf(out, "  gap: %.3f us\n  floor: %.3f us\n", gap, graph);
}

/* The impl with most rows; the stand-in only where it is all there is. */
const char *fit_attention_impl(const struct fit_input *in)
{
	const char *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < in->n; i++) {
		const char *impl = in->row[i].impl;
		size_t n = 0;

		if (!measurement_is(&in->row[i], "attention") ||
		    (best && !strcmp(best, impl)))
			continue;
		for (size_t j = 0; j < in->n; j++)
			n += measurement_is(&in->row[j], "attention") &&
			     !strcmp(in->row[j].impl, impl);
		if (!strcmp(impl, "unfused"))
			n = 1;
		if (n > most || (n == most && !strcmp(best, "unfused"))) {
			best = impl;
			most = n;
		}
	}
	return !best || in->own_base ? in->base->attention_impl : best;
}

static void write_overlay(const struct fit_input *in, int fold,
			  const struct ft_fit *fit, FILE *out)
{
	int families = in->families;
	size_t outliers = 0;

	fprintf(out, "name: %s\n", in->options->name);
	if (!in->own_base)
		node_put_field(out, "title: ", in->device, "\n");
	write_gemm(in, fit, out);
	if (families & FT_FIT_ATTENTION) {
		fputs("attention:\n", out);
		provenance(in, "attention", in->base->attention_spread.from, out,
			   "isolated, second-level cache flushed");
		fprintf(out,
			"  spread: %.4f\n  impl: %s\n  rows: "
			"%s.attention.csv\n",
			spread_of(fit, "attention", in->base->attention_spread.value),
			fit_attention_impl(in), in->options->name);
	}
	if (families & FT_FIT_MEMORY) {
		fputs("memory_bound:\n", out);
		provenance(in, "memory", NULL, out,
			   "as PyTorch runs them, by stream "
			   "events; warm: right behind themselves");
		fprintf(out, "  spread: %.4f\n  curves:\n    provenance: null\n",
			spread_of(fit, "memory", in->base->memory_spread.value));
		fit_memory_yaml(in, fold, out, &outliers);
	}
	if (families & FT_FIT_COLLECTIVES) {
		fputs("collectives:\n", out);
		provenance(in, "collective", in->base->collective_spread.from, out,
			   "one host thread a rank, back to back, the "
			   "slowest rank; published rows keep their source");
		fprintf(out, "  spread: %.4f\n  rows: %s.collectives.csv\n%s",
			spread_of(fit, "collective", in->base->collective_spread.value),
			in->options->name, kin(in));
	}
	if (families & FT_FIT_INTERFERENCE)
		write_interference(in, out);
	if (families & FT_FIT_LAUNCH)
		write_launch(in, out);
}

/* Few shapes deserve a word on their error bar. */
static void write_bar(const struct ft_fit_error *e, FILE *out)
{
	if (e->spread <= 0)
		fprintf(out,
			"# %s: too few shapes (%zu) for an error bar; the "
			"base's stays\n",
			e->family, e->shapes);
	else if (e->shapes < 30)
		fprintf(out,
			"# %s: error bar widened for %zu shapes (Student's "
			"t)\n",
			e->family, e->shapes);
}

static void write_errors(const struct ft_fit *fit, FILE *out)
{
	if (!fit)
		return;
	fputs("# held-out error (whole weight shapes, five folds):\n", out);
	for (size_t i = 0; i < fit->n_groups; i++) {
		const struct ft_fit_error *e = &fit->group[i];

		if (text_begins_with(e->family, "collective "))
			continue; /* too many: `fit` prints them */
		fprintf(out,
			"#   %-34s n %4zu  MAPE %5.1f %%  p90 %5.1f %%  bias "
			"%+5.1f %%\n",
			e->family, e->n, 100 * e->mape, 100 * e->p90, 100 * e->bias);
	}
	for (size_t i = 0; i < fit->n_groups; i++)
		if (!strchr(fit->group[i].family, ' '))
			write_bar(&fit->group[i], out);
	if (fit->note[0])
		fprintf(out, "# %s\n", fit->note);
}

/* Rows of another GPU are carried over by ratio, not taken for this one's. */
static bool take_from_base(const struct fit_input *in, struct arena *mem,
			   const struct node *base, struct node *over,
			   struct ft_error *err)
{
	static const struct {
		int family;
		const char *rows, *kin;
	} blocks[] = {
		{ FT_FIT_GEMM, "gemm.rows", "gemm.rows_of" },
		{ FT_FIT_ATTENTION, "attention.rows", "attention.rows_of" },
		{ FT_FIT_COLLECTIVES, "collectives.rows", "collectives.rows_of" },
	};

	for (int i = 0; !in->own_base && i < 3; i++)
		if (!(in->families & blocks[i].family) &&
		    node_path(base, blocks[i].rows) &&
		    (!node_put_path(mem, over, blocks[i].rows, &over->mark, "null",
				    err) ||
		     !node_put_path(mem, over, blocks[i].kin, &over->mark,
				    in->options->base, err)))
			return false;
	return true;
}

bool fit_write_profile(const struct fit_input *in, int fold, const char *folder,
		       const struct ft_fit *fit, struct ft_error *err)
{
	struct arena mem = { 0 };
	const struct ft_fit_options *o = in->options;
	const char *path = file_find(&mem, "hw/gpus", o->base, NULL, err);
	struct node *base = path ? node_read_file(&mem, path, err) : NULL, *over;
	struct file_out f;
	char *text = NULL;
	size_t len;
	FILE *memory = allocated(open_memstream(&text, &len));
	bool ok;

	write_overlay(in, fold, fit, memory);
	memory_close(memory, &text);
	over = node_read_text(&mem, "the fit", text, len, err);
	ok = base && over && take_from_base(in, &mem, base, over, err) &&
	     file_begin(&f, arena_printf(&mem, "%s/%s.yaml", folder, o->name), err);
	if (ok) {
		fprintf(f.out,
			"# hw/gpus/%s.yaml - written by `foretoken "
			"calibrate fit`\n",
			o->name);
		write_errors(fit, f.out);
		print_block(f.out, node_overlay(&mem, base, over), 0);
		ok = file_commit(&f, err);
	}
	free(text);
	arena_release(&mem);
	return ok;
}
