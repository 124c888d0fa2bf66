/*
 * calibrate/probes/backend.h - what a probe asks of a machine: one cell at a time
 *
 * A cell is one thing to time (a product of some shape, a collective of some
 * size). A backend runs cells on its hardware and answers with times; which
 * cells, in which order, how they are written down and how a run is resumed
 * is decided above it, so all of that is tested without any GPU.
 *
 * cpu and fake are part of foretoken-probe. cuda and hip are plug-ins made of
 * one C source compiled twice; each exports probe_backend_get.
 *
 * Nothing here knows libforetoken or GSL: between the probes and the fit stands
 * a file of JSON lines (docs/calibrate.md).
 */
#ifndef CALIBRATE_BACKEND_H
#define CALIBRATE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_ABI = 2 };

enum probe_status {
	PROBE_OK,
	PROBE_UNSUPPORTED, /* this hardware or library cannot; no fault */
	PROBE_NO_MEMORY,   /* the cell does not fit on the device */
	PROBE_WRONG,	   /* ran, but its result is not that of the reference */
	PROBE_FAILED,	   /* the library or the driver refused */
	PROBE_ABSENT,	   /* no device, no driver: nothing will run */
};

enum probe_kind {
	PROBE_GEMM,	  /* dtype layout m n k accumulate sustained */
	PROBE_ATTENTION,  /* impl pass batch heads kv_heads sequence head_dim causal */
	PROBE_MEMORY,	  /* kernel m n warm */
	PROBE_LAUNCH,	  /* kernel: enqueue, gap, graph */
	PROBE_TRANSFER,	  /* kernel: h2d, d2h, p2p, p2p_both; bytes, from, to */
	PROBE_COLLECTIVE, /* kernel: all_reduce ...; gpus bytes */
	PROBE_BESIDE,	  /* a product (dtype m n k) beside a collective */
	PROBE_KINDS
};

/* Words that do not apply are "", numbers that do not apply 0. m n k are those
 * of the linear layer whatever the layout: tokens, output, input features. */
struct probe_cell {
	enum probe_kind kind;
	const char *kernel, *dtype, *layout, *impl, *pass;
	int64_t m, n, k;
	int64_t batch, heads, kv_heads, sequence, head_dim;
	int64_t bytes, gpus, from, to;
	bool causal, warm, accumulate, sustained;
};

enum { PROBE_CELL_ID = 160 };

/* What a cell is called in files: the same text for the same cell for ever. */
void probe_cell_id(const struct probe_cell *cell, char id[PROBE_CELL_ID]);
const char *probe_kind_name(enum probe_kind kind);

/* How long and how often; the same for all cells of a run. */
struct probe_method {
	int warm_up, least_reps, most_reps;
	double cell_s;	    /* stop repeating after so long */
	double sustained_s; /* how long a sustained cell runs */
	double rest_frac;   /* idle time after a cell, of its busy time */
	uint64_t seed;
};

struct probe_time {
	double median_us, p10_us, p90_us;
	int reps;
	double relative_error; /* against double precision; -1: not checked */
	double clock_mhz, power_w, temperature_c; /* after the cell; -1: unknown */
	/* PROBE_BESIDE: the product alone, the collective beside it and alone */
	double alone_us, other_us, other_alone_us;
};

struct probe_device {
	char name[96], driver[48], runtime[48], blas[48], attention[48], ccl[48];
	char fused[32];	 /* impl of its fused attention; "": none */
	bool fused_fp8;	 /* it may have 8 bits */
	char fabric[24]; /* between the devices: nvlink-no-nvls, xgmi, pcie ... */
	int devices, compute_units;
	double memory_bytes, cache_bytes;
};

struct probe_session; /* the backend's own */

struct probe_backend {
	int abi; /* PROBE_ABI */
	const char *name;
	/* why: one clause of what failed and what to do, when not PROBE_OK */
	enum probe_status (*open)(struct probe_session **s, uint64_t seed,
				  struct probe_device *device, char *why, size_t n_why);
	enum probe_status (*run)(struct probe_session *s, const struct probe_cell *cell,
				 const struct probe_method *method,
				 struct probe_time *out, char *why, size_t n_why);
	void (*close)(struct probe_session *s);
};

/* What a plug-in exports under this name. */
#define PROBE_GET "probe_backend_get"
typedef const struct probe_backend *probe_get_fn(void);

const struct probe_backend *probe_cpu(void);
const struct probe_backend *probe_fake(void);

/* ---- calibrate/probes/stats.c, linked into the program and each plug-in ---- */

struct probe_random {
	uint64_t state;
};
double probe_uniform(struct probe_random *r); /* (0, 1) */
double probe_normal(struct probe_random *r);

/* Sorts t (microseconds) and fills median, p10, p90, reps. */
void probe_summary(double *t_us, int n, struct probe_time *out);

double probe_now_s(void); /* monotonic; to time, never to decide a result */

enum { PROBE_MOST_REPS = 256 };

/* How often to repeat what takes one_s each time. */
int probe_reps(const struct probe_method *method, double one_s);

#endif
