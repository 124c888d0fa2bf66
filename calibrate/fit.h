/*
 * calibrate/fit.h - the steps of a fit: rows out of measurements, curves, and the
 * profile's files. fold: measurements and rows of that fold are left out (-1:
 * none), so that a profile can be held against what it has not seen.
 */
#ifndef CALIBRATE_FIT_H
#define CALIBRATE_FIT_H

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "foretoken/calibrate.h"

enum { FIT_FOLDS = 5 };

struct ft_gpu;

/* Of n measured ratios: median, P10, P90. n 0: too few to say. */
struct fit_ratio {
	double value, low, high;
	size_t n;
};

/* calibrate/fit_layout.c: of n of them, at least one, which are sorted */
struct fit_ratio fit_ratio_of(double *v, size_t n);

/* What one profile is made from. */
struct fit_input {
	const struct ft_fit_options *options;
	const struct ft_measurement *row; /* ok ones, burst and sustained */
	size_t n;
	struct ft_gpu *base;
	int families;	      /* asked for, and in the store */
	bool own_base;	      /* the base is this GPU: its published rows stay */
	bool keep[FT_DTYPES]; /* published products stay */
	const char **code;    /* [n_codes] sources of the store's published rows */
	size_t n_codes;
	struct fit_ratio dgrad, wgrad, accumulate; /* times of layouts */
	struct fit_ratio tuned[FT_DTYPES], clock[FT_DTYPES];
	bool only_tuned; /* of published products write those of tuners alone */
	const char *date, *device;
};

/* Where the numbers of a kind come from. Measured ones outweigh published ones. */
enum fit_origin { FIT_NOTHING, FIT_PUBLISHED, FIT_MEASURED };
enum fit_origin fit_origin(const struct fit_input *in, const char *kind);
bool fit_published(const struct ft_measurement *m);

/* "provenance: {kind: measured ..." and its end; kind: of the rows that say it, or products that add. */
#define FIT_ACCUMULATE "gemm accumulate"
void fit_put_measured(const struct fit_input *in, const char *kind, FILE *out,
		      const char *note, const char *end);

/* calibrate/fit_units.c: false where times can only be in another unit; a note where they may be. */
bool fit_units(const struct fit_input *in, struct ft_fit *fit, struct ft_error *err);

/* What is held out as a whole: a weight shape, heads and sequence, a size. */
uint64_t fit_shape(const struct ft_measurement *m);
/* Which fold a shape belongs to: whole weight shapes (n, k), heads and sequence,
 * sizes of a kernel or a collective. */
int fit_fold(const struct ft_measurement *m);
int fit_fold_gemm(double n, double k);
int fit_fold_attention(double heads, double kv, double dim, double s);

/* calibrate/fit_error.c: the error bar that n held-out errors over so many shapes
 * deserve, as one standard deviation: 80 % of them lie within P10 to P90, and it is
 * wider for few shapes. 0: too few to say (less than 3 shapes). */
double fit_spread(double root_mean_square, double p80, size_t n, size_t shapes);
/* Both lists are overwritten. */
void fit_summarize(struct ft_fit_error *g, double *v, uint64_t *shape, size_t n);

/* calibrate/fit_layout.c: what layouts cost. The last one needs a profile made with
 * the others, accumulate 1; false: too few cells to say. */
void fit_layouts(struct fit_input *in, int fold);
bool fit_accumulate(struct fit_input *in, int fold, const struct ft_gpu *gpu);
void fit_layout_yaml(const struct fit_input *in, FILE *out);

/* calibrate/fit_published.c: rows that others measured, one by one with the code
 * of their source, in the order of the tables in the tree */
void fit_list_codes(struct fit_input *in, struct arena *mem);
bool fit_has_code(const struct fit_input *in, const char *code);
/* Which formats keep their published products: they go where the median difference to
 * what we measured is more than 15 %, and where we measured 200 forward products: a
 * grid of our own (H200, H100: whole weight shapes of it are found again within 4.5 and
 * 4.9 % alone, 5.1 and 5.9 % beside the published grid). */
void fit_judge_published(struct fit_input *in, struct ft_fit *fit, struct arena *mem);
/* Published tables of a fabric give way to measured ones. */
bool fit_measured_fabric(const struct fit_input *in, const char *fabric);
bool fit_stands(const struct fit_input *in, const struct ft_measurement *m);
void fit_write_published(const struct fit_input *in, int fold, const char *kind,
			 FILE *out);
void fit_published_provenance(const struct fit_input *in, const char *kind,
			      const struct ft_provenance *base, FILE *out);

/* calibrate/fit_published_rates.c: what tuners' rows and rows of seconds are against the
 * others. fit_tuned leaves a profile of tuners' rows alone in the folder; fit_clock needs
 * the profile of all rows. */
bool fit_tuners_code(const struct fit_input *in, const char *code);
bool fit_from_tuner(const struct fit_input *in, const struct ft_measurement *m);
bool fit_tuned(struct fit_input *in, int fold, const char *folder,
	       struct ft_error *err);
void fit_clock(struct fit_input *in, struct ft_gpu *gpu);
/* The files of a profile as things stand, and the profile; NULL: a mistake. */
struct ft_gpu *fit_write_and_load(const struct fit_input *in, int fold,
				  const char *folder, const struct ft_fit *fit,
				  struct ft_error *err);
void fit_published_rates_yaml(const struct fit_input *in, FILE *out);

/* calibrate/predict.c: what a profile says about a measured cell */
bool fit_from_torch(const struct ft_measurement *m); /* measured through PyTorch */
/* The i-th kernel whose curves are fitted; NULL behind the last. */
const char *fit_memory_kernel(size_t i);

/* One of those, or a variant of one, whose name begins as its. */
bool fit_is_memory_kernel(const char *kernel);
/* Bytes that it reads and writes, to one byte of its source buffer. */
double fit_traffic(const char *kernel, bool torch);
double fit_moved_bytes(const struct ft_measurement *m); /* read and written */
double fit_row_bytes(const struct ft_measurement *m);	/* 0: unknown */

/* calibrate/fit_memory.c: t^p = start^p + (bytes / rate)^p, p the sharpness, by
 * least squares of log t, twice, the second time without what lies beyond 4
 * deviations (at least 25 %). */
struct fit_curve {
	double start_s, bytes_per_s, sharpness, spread;
	size_t n, outliers;
};
bool fit_curve(const double *bytes, const double *time_s, size_t n,
	       struct fit_curve *out);
/* Is this one of the cells that curves are fitted to? */
bool fit_memory_row(const struct ft_measurement *m, bool torch);
/* All curves of a profile as YAML, four spaces in; how many measurements. */
size_t fit_memory_yaml(const struct fit_input *in, int fold, FILE *out,
		       size_t *outliers);

/* calibrate/fit_rows.c: the CSV files beside a profile */
/* What the i-th's name ends in behind the profile's name and a point; NULL behind the last. */
const char *fit_rows_tail(size_t i);
/* Of collectives measured more than once, the fastest alone; how many rows are left. */
size_t fit_fastest(struct ft_measurement *row, size_t n);
bool fit_write_rows(const struct fit_input *in, int fold, const char *folder,
		    struct ft_error *err);

/* Those that this fit leaves as they were, beside the new profile. */
bool fit_copy_rows(const struct fit_input *in, const char *folder,
		   struct ft_error *err);

/* calibrate/fit_profile.c: NAME.yaml, the base with what was fitted laid over */
const char *fit_attention_impl(const struct fit_input *in);
bool fit_write_profile(const struct fit_input *in, int fold, const char *folder,
		       const struct ft_fit *fit, struct ft_error *err);

#endif
