/*
 * foretoken/calibrate.h - measurements of real kernels: kept in a store, turned
 * into GPU profiles, held against them
 *
 *   foretoken-probe --> JSON lines --+
 *   nccl-tests, CSV, traces ---------+--> store (SQLite) --> fit --> hw/gpus/NAME.*
 *
 * The store keeps every cell of every run with what it was measured on; nothing
 * is overwritten. The fit writes the files that hw/ loads, and says how far
 * predictions are off for shapes that it did not see.
 */
#ifndef FORETOKEN_CALIBRATE_H
#define FORETOKEN_CALIBRATE_H

#include <stdio.h>

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ft_store;

/* Make the file when create and it is not there. A store of another version of
 * foretoken is an error that says what to do. */
struct ft_store *ft_store_open(const char *path, bool create, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_store_close(struct ft_store *store);

/* One cell. Words that do not apply are "", numbers 0; times in microseconds;
 * m n k of the linear layer. Unknown readings are negative. */
struct ft_measurement {
	const char *cell, *kind, *kernel, *dtype, *layout, *impl, *pass;
	double m, n, k;
	double batch, heads, kv_heads, sequence, head_dim;
	double bytes, gpus, from, to;
	bool causal, warm, accumulate, sustained;
	bool in_step; /* taken inside a training step: warm, not alone */
	const char *status, *why;
	double time_us, p10_us, p90_us, reps, relative_error;
	double alone_us, other_us, other_alone_us;
	double clock_mhz, power_w, temperature_c;
	const char *source; /* code of hw/gpus/SOURCES.md; "" when its run says it */
	const char *date, *fabric;		   /* its own, else its run's */
	const char *backend, *device, *provenance; /* of its run */
};

/* What was measured on; also the head of an import. */
struct ft_probe_run {
	int64_t id;
	const char *backend, *device, *date, *driver, *fabric, *libraries, *source;
	const char *provenance; /* measured (also when NULL) or published */
	const char *gpu;	/* import: only rows of this one; NULL: all */
	int64_t n_cells, n_ok;
};

/* Begin a run; measurements go to it. Every `ft_store_add` joins the open batch
 * (a transaction); a batch is written out when it is full and at the end. */
bool ft_store_begin(struct ft_store *store, const struct ft_probe_run *run,
		    struct ft_error *err) __attribute__((warn_unused_result));
bool ft_store_add(struct ft_store *store, const struct ft_measurement *m,
		  struct ft_error *err) __attribute__((warn_unused_result));
bool ft_store_end(struct ft_store *store, struct ft_error *err)
	__attribute__((warn_unused_result));

/* One JSON line of a probe; broken lines are counted, not stored. */
bool ft_store_line(struct ft_store *store, const char *line, const char *source,
		   bool *broken, struct ft_error *err)
	__attribute__((warn_unused_result));

/* What is stored; pointers live until the store closes. device NULL: all. */
const struct ft_probe_run *ft_store_runs(struct ft_store *store, size_t *n,
					 struct ft_error *err);
const struct ft_measurement *ft_store_measurements(struct ft_store *store,
						   const char *device, int64_t run,
						   size_t *n, struct ft_error *err);

enum ft_import {
	FT_IMPORT_PROBE,      /* JSON lines of foretoken-probe */
	FT_IMPORT_CSV,	      /* columns of `foretoken validate`; published ones too */
	FT_IMPORT_NCCL_TESTS, /* text of nccl-tests and rccl-tests */
	FT_IMPORT_ATTENTION,  /* CSV of cuDNN's, AITER's and CK's benchmarks */
	FT_IMPORT_KINETO,     /* kernels of a PyTorch profiler trace */
	FT_IMPORTS
};
bool ft_import_find(const char *name, enum ft_import *format);

/* Rows of a file into a new run; run gives what the file does not say. */
bool ft_store_import(struct ft_store *store, enum ft_import format, const char *path,
		     const struct ft_probe_run *run, size_t *n, struct ft_error *err)
	__attribute__((warn_unused_result));

/* As CSV that `foretoken validate` reads; gpu: the profile's name. What: "kernels"
 * or "collectives". */
struct ft_export {
	const char *device; /* NULL: all */
	int64_t run;	    /* 0: all */
	const char *gpu, *what;
};

bool ft_store_export(struct ft_store *store, const struct ft_export *choice, FILE *out,
		     struct ft_error *err) __attribute__((warn_unused_result));

/* Families that a fit takes from the store; the others stay as in the base. */
enum ft_family {
	FT_FIT_GEMM = 1,
	FT_FIT_ATTENTION = 2,
	FT_FIT_MEMORY = 4,
	FT_FIT_COLLECTIVES = 8,
	FT_FIT_SUSTAINED = 16,
	FT_FIT_LAUNCH = 32,
	FT_FIT_INTERFERENCE = 64,
	FT_FIT_LAYOUT = 128,
	FT_FIT_ACCUMULATE = 256,
	FT_FIT_ALL = 511,
};

struct ft_fit_options {
	const char *name;   /* of the new profile */
	const char *base;   /* profile whose structure and data sheet it takes */
	const char *folder; /* where the files go */
	const char *device; /* only measurements of this device; NULL: all */
	int families;
	bool with_in_step; /* fit to kernels of training steps, too */
};

/* Held-out error of one family: predictions for shapes that the fit left out,
 * whole weight shapes at a time, in five folds. */
struct ft_fit_error {
	const char *family;
	size_t n, outliers, shapes;
	double mape, median, p90, bias, spread;
};

enum { FT_FIT_GROUPS = 128 };

struct ft_fit {
	struct ft_fit_error group[FT_FIT_GROUPS];
	size_t n_groups;
	size_t n_rows;
	char note[512]; /* what was dropped, and why */
};

bool ft_fit(struct ft_store *store, const struct ft_fit_options *options,
	    struct ft_fit *fit, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Plots of a profile against the store: DIR/gemm.svg, residuals.svg and, where collectives were measured
 * (bus), busbw.svg, with the .gp and .dat files they are made from. False where nothing is there to draw. */
bool ft_calibrate_plot(struct ft_store *store, const char *gpu, const char *device,
		       const char *folder, bool *bus, struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
