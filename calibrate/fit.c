/*
 * calibrate/fit.c - a profile out of a store, and how far it is off where it has not
 * looked: five profiles, each without a fifth of the shapes, predict that fifth
 *
 * Outlier rule: a measurement whose p90 is more than 1.6 times its p10 was disturbed
 * and is not used; cells that failed their check never are.
 */
#include "calibrate/broom.h"
#include "calibrate/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/plain.h"
#include "base/stats.h"
#include "base/text.h"
#include "calibrate/store.h"
#include "foretoken/hw.h"

static const double unsteady = 1.6;

static uint64_t shape_of(double a, double b)
{
	uint64_t x = (uint64_t)a * UINT64_C(0x9e3779b97f4a7c15) +
		     (uint64_t)b * UINT64_C(0xbf58476d1ce4e5b9);

	x ^= x >> 29;
	x *= UINT64_C(0x94d049bb133111eb);
	return x >> 33;
}

int fit_fold_gemm(double n, double k)
{
	return (int)(shape_of(fmin(n, k), fmax(n, k)) % FIT_FOLDS);
}

int fit_fold_attention(double heads, double kv, double dim, double s)
{
	return (int)(shape_of(heads * 1000 + kv, dim * 1000003 + s) % FIT_FOLDS);
}

uint64_t fit_shape(const struct ft_measurement *m)
{
	if (measurement_is(m, "gemm"))
		return shape_of(fmin(m->n, m->k), fmax(m->n, m->k));
	if (measurement_is(m, "attention"))
		return shape_of(m->heads * 1000 + m->kv_heads,
				m->head_dim * 1000003 + m->sequence);
	if (measurement_is(m, "memory")) /* its size, by rows or in bytes */
		return shape_of(m->m > 0 ? m->m * m->n : m->bytes,
				m->n + (double)strlen(m->kernel));
	return shape_of(m->bytes + m->gpus, m->kernel[0] * 256 + m->kernel[4]);
}

int fit_fold(const struct ft_measurement *m)
{
	bool held = (measurement_is(m, "gemm") && !m->sustained) ||
		    measurement_is(m, "attention") || measurement_is(m, "memory") ||
		    measurement_is(m, "collective");

	return held ? (int)(fit_shape(m) % FIT_FOLDS) : FIT_FOLDS;
}

/* ---- errors ----------------------------------------------------------------------- */

struct errors {
	double *value; /* predicted / measured - 1 */
	uint64_t *shape;
	int *group; /* two of each error */
	size_t n;
	struct arena *mem;
};

static int group_named(struct ft_fit *fit, struct arena *mem, const char *name)
{
	for (size_t i = 0; i < fit->n_groups; i++)
		if (!strcmp(fit->group[i].family, name))
			return (int)i;
	if (fit->n_groups == FT_FIT_GROUPS)
		return FT_FIT_GROUPS - 1;
	fit->group[fit->n_groups].family = arena_text(mem, name);
	return (int)fit->n_groups++;
}

/* The family as a whole and the part that readers ask about. */
static void name_groups(const struct ft_measurement *m, char part[96])
{
	if (measurement_is(m, "gemm"))
		snprintf(part, 96, "gemm %s %s%s", m->dtype, m->layout,
			 m->accumulate ? " accumulate" : "");
	else if (measurement_is(m, "attention"))
		snprintf(part, 96, "attention %s %s %s", m->dtype, m->impl, m->pass);
	else if (measurement_is(m, "memory"))
		snprintf(part, 96, "memory %s%s", m->kernel, m->warm ? " warm" : "");
	else
		snprintf(part, 96, "collective %s %.0f", m->kernel, m->gpus);
}

static void finish_groups(struct ft_fit *fit, const struct errors *e, struct arena *mem)
{
	for (size_t i = 0; i < fit->n_groups; i++) {
		double *v = ARENA_ARRAY(mem, e->n + 1, double);
		uint64_t *shape = ARENA_ARRAY(mem, e->n + 1, uint64_t);
		size_t n = 0;

		for (size_t j = 0; j < 2 * e->n; j++)
			if (e->group[j] == (int)i) {
				shape[n] = e->shape[j / 2];
				v[n++] = e->value[j / 2];
			}
		fit_summarize(&fit->group[i], v, shape, n);
	}
}

/* Curves are fitted to one source (see fit_memory.c); the other is not scored. Where
 * we measured, the error is that of our rows: those of others are dense grids. */
static bool scored(const struct fit_input *in, const struct ft_measurement *m)
{
	int families = in->families;

	if (fit_published(m) &&
	    (!fit_stands(in, m) || fit_origin(in, m->kind) == FIT_MEASURED))
		return false;
	if (measurement_is(m, "gemm"))
		return families & FT_FIT_GEMM && !m->sustained;
	if (measurement_is(m, "attention"))
		return families & FT_FIT_ATTENTION;
	if (measurement_is(m, "collective"))
		return families & FT_FIT_COLLECTIVES;
	if (!measurement_is(m, "memory") || !(families & FT_FIT_MEMORY))
		return false;
	for (size_t i = 0; i < in->n; i++)
		if (fit_memory_row(&in->row[i], true) &&
		    !strcmp(in->row[i].kernel, m->kernel))
			return fit_memory_row(m, true);
	return !in->own_base && fit_memory_row(m, false);
}

/* A stand-in beside fused attention says nothing about the profile's error. */
static const char *family_of(const struct fit_input *in, const struct ft_measurement *m)
{
	if (measurement_is(m, "attention") && !strcmp(m->impl, "unfused") &&
	    strcmp(fit_attention_impl(in), "unfused"))
		return "unfused attention";
	return m->kind;
}

static bool score_fold(const struct fit_input *in, int fold, const char *folder,
		       struct ft_fit *fit, struct errors *e, struct ft_error *err)
{
	const char *path =
		arena_printf(e->mem, "%s/%s.yaml", folder, in->options->name);
	struct ft_gpu *gpu = ft_gpu_load(path, NULL, err);

	for (size_t i = 0; gpu && i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];
		char part[96];
		double us;

		if (fit_fold(m) != fold || !scored(in, m))
			continue;
		us = measurement_predict_us(gpu, m);
		if (!(us > 0))
			continue;
		name_groups(m, part);
		e->group[2 * e->n] = group_named(fit, e->mem, family_of(in, m));
		e->group[2 * e->n + 1] = group_named(fit, e->mem, part);
		e->shape[e->n] = fit_shape(m);
		e->value[e->n++] = us / m->time_us - 1;
	}
	ft_gpu_free(gpu);
	return gpu != NULL;
}

/* What the fit of a fold wrote, and what was linked. */
static void remove_folder(const char *folder, const char *name)
{
	char path[4300];
	const char *tail = "yaml";

	for (size_t i = 0; tail; tail = fit_rows_tail(i++)) {
		snprintf(path, sizeof(path), "%s/%s.%s", folder, name, tail);
		unlink(path);
	}
	rmdir(folder);
}

/* The base's file without its ending, and the last part of that. */
struct base_stem {
	const char *path, *name;
};

static struct base_stem base_stem(const struct fit_input *in, struct arena *mem)
{
	struct ft_error ignored;
	const char *base = file_find(mem, "hw/gpus", in->options->base, NULL, &ignored);
	const char *path = base ? arena_text_n(mem, base, strlen(base) - 5) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	return (struct base_stem){ path, slash ? slash + 1 : path };
}

/* A base whose other rows are files beside it must find them from the folder of
 * the fold: link what the fit does not write. */
static void link_rows(struct base_stem base, const char *folder, struct arena *mem)
{
	const char *tail;

	for (size_t i = 0; base.path && (tail = fit_rows_tail(i)); i++) {
		const char *from = arena_printf(mem, "%s.%s", base.path, tail);
		const char *to = arena_printf(mem, "%s/%s.%s", folder, base.name, tail);
		char *real = realpath(from, NULL);

		/* where that fails, loading says what is missing */
		if (real && !file_exists(to))
			(void)!symlink(real, to);
		free(real);
	}
}

/* All files of a profile; again where something needs the profile to be fitted: tuners
 * need one of their own rows, products that accumulate and long runs one of the others. */
static bool write_all(struct fit_input *in, int fold, const char *folder,
		      const struct ft_fit *fit, struct ft_error *err)
{
	struct ft_gpu *gpu;

	fit_layouts(in, fold);
	if (!fit_tuned(in, fold, folder, err))
		return false;
	gpu = fit_write_and_load(in, fold, folder, fit, err);
	if (gpu && in->families & FT_FIT_ACCUMULATE)
		fit_accumulate(in, fold, gpu);
	if (gpu && in->families & FT_FIT_SUSTAINED)
		fit_clock(in, gpu);
	ft_gpu_free(gpu);
	return gpu && fit_write_profile(in, fold, folder, fit, err);
}

struct fold_names {
	const char *name, *base;
};

static void remove_folds(const char *folder, void *of)
{
	const struct fold_names *names = of;

	remove_folder(folder, names->name);
	remove_folder(folder, names->base);
}

static bool hold_out(struct fit_input *in, struct ft_fit *fit, struct arena *mem,
		     struct ft_error *err)
{
	struct errors e = { ARENA_ARRAY(mem, in->n + 1, double),
			    ARENA_ARRAY(mem, in->n + 1, uint64_t),
			    ARENA_ARRAY(mem, 2 * in->n + 2, int), 0, mem };
	char *folder = file_temporary(mem, "foretoken-fit-XXXXXX");
	struct ft_mark at = { folder, 0, 0 };
	struct base_stem base = base_stem(in, mem);
	const char *name = in->options->name;
	struct fold_names names = { name, base.name ? base.name : name };
	char *asked = arena_text(mem, folder);
	struct broom broom;
	bool ok = broom_take(&broom, folder, remove_folds, &names);

	if (!ok) {
		at.file = asked;
		return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
	}
	link_rows(base, folder, mem);
	for (int fold = 0; ok && fold < FIT_FOLDS; fold++)
		ok = write_all(in, fold, folder, NULL, err) &&
		     score_fold(in, fold, folder, fit, &e, err);
	broom_sweep(&broom);
	finish_groups(fit, &e, mem);
	return ok;
}

/* ---- what goes in ------------------------------------------------------------------- */

static size_t usable(const struct ft_measurement *row, size_t n, bool in_step,
		     struct ft_measurement *out, size_t *outliers)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(row[i].status, "ok") || !(row[i].time_us > 0) ||
		    (row[i].in_step && !in_step))
			continue;
		if (row[i].p10_us > 0 && row[i].time_us > 20 &&
		    row[i].p90_us > unsteady * row[i].p10_us &&
		    !measurement_is(&row[i], "beside")) {
			++*outliers;
			continue;
		}
		out[kept++] = row[i];
	}
	return kept;
}

/* A step looks for the fabric of its node: no other one's rows are found. */
static void note_no_fabric(const struct fit_input *in, struct ft_fit *fit)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++)
		n += measurement_is(&in->row[i], "collective") &&
		     !ft_is_scale_up(in->row[i].fabric);
	if (n && in->options->families & FT_FIT_COLLECTIVES)
		snprintf(fit->note, sizeof(fit->note),
			 "of %zu collective%s the fabric is not known, so that no step "
			 "reads them; import them with --fabric",
			 n, n == 1 ? "" : "s");
}

/* A family without rows stays as the base has it. */
static int families_of(const struct fit_input *in)
{
	static const struct {
		const char *kind;
		int families;
	} of[] = {
		{ "gemm",
		  FT_FIT_GEMM | FT_FIT_SUSTAINED | FT_FIT_LAYOUT | FT_FIT_ACCUMULATE },
		{ "attention", FT_FIT_ATTENTION },
		{ "memory", FT_FIT_MEMORY },
		{ "collective", FT_FIT_COLLECTIVES },
		{ "beside", FT_FIT_INTERFERENCE },
		{ "launch", FT_FIT_LAUNCH },
	};
	int families = 0;

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (fit_origin(in, of[i].kind) != FIT_NOTHING)
			families |= of[i].families;
	return families & in->options->families;
}

/* The device, and the last day; of what was measured on it if anything was: a row that
 * names a source came from elsewhere. */
static void name_source(struct fit_input *in)
{
	bool measured = false;

	in->device = in->row[0].device;
	in->date = in->row[0].date;
	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];
		bool own = !fit_published(m) && !m->source[0];

		if (!own && measured)
			continue;
		if (own && !measured) {
			measured = true;
			in->device = m->device;
			in->date = m->date;
		}
		if (strcmp(m->date, in->date) > 0)
			in->date = m->date;
	}
}

/* A profile is of one device; imports that name none go with any. */
static bool one_device(const struct fit_input *in, struct ft_error *err)
{
	const char *first = "";

	for (size_t i = 0; i < in->n; i++) {
		const char *device = in->row[i].device;

		if (!first[0])
			first = device;
		if (device[0] && strcmp(device, first))
			return ft_fail(err, NULL,
				       "the store holds measurements "
				       "of %s and of %s; choose with --device",
				       first, device);
	}
	return true;
}

/* Words of rows go into tables and, as keys, into the profile; those of a trace's kernels, whose names are C++, do not. */
static bool names_only(const struct fit_input *in, struct ft_error *err)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct ft_measurement *m = &in->row[i];
		const char *const words[] = {
			m->kernel, m->dtype,  m->layout, m->impl,
			m->pass,   m->fabric, m->source, m->date
		};

		if (measurement_is(m, "trace"))
			continue;
		for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
			if (words[k][0] && !text_is_name(words[k]))
				return ft_fail(err, NULL,
					       "the measurement '%.80s' holds the word "
					       "'%.60s', which " TEXT_NAME_RULE,
					       m->cell, words[k],
					       (int)LIMIT_NAME_BYTES);
	}
	return true;
}

static bool prepare(struct ft_store *store, const struct ft_fit_options *o,
		    struct fit_input *in, struct ft_fit *fit, struct arena *mem,
		    struct ft_error *err)
{
	size_t n, outliers = 0;
	const struct ft_measurement *row =
		ft_store_measurements(store, o->device, 0, &n, err);
	struct ft_measurement *kept;

	if (!row)
		return false;
	kept = ARENA_ARRAY(mem, n + 1, struct ft_measurement);
	*in = (struct fit_input){ .options = o, .row = kept };
	in->n = fit_fastest(kept, usable(row, n, o->with_in_step, kept, &outliers));
	if (in->n > LIMIT_FIT_ROWS)
		return ft_fail(err, NULL,
			       "the store holds more measurements than %d to fit; "
			       "choose with --device",
			       (int)LIMIT_FIT_ROWS);
	if (!in->n)
		return ft_fail(err, NULL, "the store holds no measurements%s%s%s",
			       o->device ? " of the device " : "",
			       o->device ? o->device : "",
			       n ? " to fit; to fit kernels of recorded steps, give "
				   "--with-in-step" :
				   "");
	if (!one_device(in, err) || !names_only(in, err))
		return false;
	in->own_base = !strcmp(o->base, o->name);
	name_source(in);
	fit_list_codes(in, mem);
	note_no_fabric(in, fit);
	in->families = families_of(in);
	if (!in->families)
		return ft_fail(
			err, NULL,
			"the store holds no measurements of the families to fit (--only)");
	in->base = ft_gpu_load(o->base, NULL, err);
	fit->n_rows = in->n;
	if (!in->base && in->own_base) /* the first profile of that name */
		snprintf(err->text + strlen(err->text),
			 sizeof(err->text) - strlen(err->text),
			 "; --base names the profile that gives what was not measured");
	return in->base != NULL;
}

bool ft_fit(struct ft_store *store, const struct ft_fit_options *o, struct ft_fit *fit,
	    struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct fit_input in;
	bool ok;

	*fit = (struct ft_fit){ 0 };
	if (!text_is_name(o->name))
		return ft_fail(err, NULL, "--name '%.70s' " TEXT_NAME_RULE, o->name,
			       (int)LIMIT_NAME_BYTES);
	if (!prepare(store, o, &in, fit, &store->mem, err))
		return false;
	fit_judge_published(&in, fit, &store->mem);
	ok = fit_units(&in, fit, err) && hold_out(&in, fit, &store->mem, err) &&
	     file_folder(o->folder, err) && fit_copy_rows(&in, o->folder, err) &&
	     write_all(&in, -1, o->folder, fit, err);
	ft_gpu_free(in.base);
	return ok;
}
