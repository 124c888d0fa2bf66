/*
 * foretoken/base.h - what every other public header uses: time, errors,
 * numbers that know where they come from, and the few words all rooms share
 */
#ifndef FORETOKEN_BASE_H
#define FORETOKEN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1"; and the same with a checksum of the sources, which distinguishes builds. */
const char *ft_version(void);
const char *ft_version_build(void);

/* Simulated time and durations: integer picoseconds; INT64_MAX is 106 days. */
typedef int64_t ft_ps;

/* Longer than anything simulated (10 days); twice as long still fits. */
#define FT_PS_LONGEST INT64_C(864000000000000000)

/* Seconds to picoseconds, rounded up: a flow never ends before its last byte.
 * What is longer than FT_PS_LONGEST, negative or no number becomes that: a step in
 * which it runs is refused by the engine. */
ft_ps ft_ps_from_s(double s);
/* The same of picoseconds. */
ft_ps ft_ps_from_double(double ps);
double ft_s_from_ps(ft_ps t);

/* A place in a text the user wrote. */
struct ft_mark {
	const char *file; /* a path, or the "--set a.b=c" of the command line */
	int line, column; /* from 1 */
};

/* One mistake of the user's or the world's: where, and one clause. */
struct ft_error {
	char file[256];	  /* "" when no file is to blame */
	int line, column; /* 0 when unknown */
	char text[4096];  /* one clause, no newline, no full stop */
	bool of_system;	  /* something could not be read: no mistake of the input's */
	bool missing;	  /* a file or a name that is not there, or may not be read */
	bool too_large;	  /* a step of more than is simulated */
};

/* Fill *err; returns false, so that a caller can write: return ft_fail(...).
 * at may be NULL. */
bool ft_fail(struct ft_error *err, const struct ft_mark *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A fingerprint of the files that something was read from. */
struct ft_digest {
	uint64_t low, high;
};

/* Where a number comes from. */
enum ft_provenance_kind {
	FT_MEASURED,  /* on that device, by us or with our probes */
	FT_PUBLISHED, /* read from a named source */
	FT_DERIVED,   /* computed from other numbers, the note says how */
	FT_ASSUMED,   /* a judgement */
};

struct ft_provenance {
	enum ft_provenance_kind kind;
	const char *source, *date, *note; /* "" when not given */
	const char *address;		  /* of the source, on the web; "" likewise */
};

/* A number of a data file: SI units, low <= value <= high, and its source. */
struct ft_number {
	double value, low, high; /* low = high = value when no range is given */
	const struct ft_provenance *from;
};

const char *ft_provenance_kind_name(enum ft_provenance_kind kind);

/* Number formats of matrix products and of training. */
enum ft_dtype {
	FT_BF16,
	FT_FP16,
	FT_FP32,
	FT_FP8,		 /* one scale per tensor */
	FT_FP8_BLOCK128, /* scales per 1x128 and 128x128 block */
	FT_MXFP8,	 /* microscaling, one scale per 32 values */
	FT_NVFP4,	 /* four bits, one scale per 16 values */
	FT_MXFP4,	 /* four bits, one scale per 32 values */
	FT_DTYPES
};

const char *ft_dtype_name(enum ft_dtype dtype);
bool ft_dtype_find(const char *name, enum ft_dtype *dtype);
double ft_dtype_bytes(enum ft_dtype dtype); /* one element, scales left out */

/* The three products of a linear layer of m tokens, n output and k input features.
 * Whatever the layout, m n k are those of the layer:
 *   forward Y[m,n] = X[m,k] W^T    dgrad dX[m,k] = dY[m,n] W    wgrad dW[n,k] = dY^T X */
enum ft_layout { FT_FORWARD, FT_DGRAD, FT_WGRAD, FT_LAYOUTS };

const char *ft_layout_name(enum ft_layout layout);
bool ft_layout_find(const char *name, enum ft_layout *layout);

/* C[m,n] = A[m,k] B[k,n]. */
struct ft_product {
	double m, n, k;
};

/* The product that a layer's layout is. wgrad: m is the shorter side, as C' = B' A'. */
struct ft_product ft_product_of(enum ft_layout layout, double m, double n, double k);

/* Passes of attention. */
enum ft_pass { FT_PASS_FORWARD, FT_PASS_BACKWARD, FT_PASS_BOTH, FT_PASSES };

const char *ft_pass_name(enum ft_pass pass);
bool ft_pass_find(const char *name, enum ft_pass *pass);

/* Pairs of query and key that count, of one head. window 0: a query sees all keys; w:
 * the last w. Causal: queries x keys / 2, under a window queries (w - w^2 / (2 keys)). */
double ft_attention_pairs(double queries, double keys, double window, bool causal);

/* Floating-point operations of attention over this many pairs in all (batch and heads
 * included): 2 (qk_head_dim + v_head_dim) a pair forward, 2.5 times that backward. */
double ft_attention_flop(enum ft_pass pass, double pairs, double qk_head_dim,
			 double v_head_dim);

/* Collective operations, named and counted as nccl-tests does. */
enum ft_collective {
	FT_ALL_REDUCE,
	FT_ALL_GATHER,
	FT_REDUCE_SCATTER,
	FT_ALL_TO_ALL,
	FT_BROADCAST,
	FT_SENDRECV,
	FT_COLLECTIVES
};

const char *ft_collective_name(enum ft_collective op);
bool ft_collective_find(const char *name, enum ft_collective *op);

/* busbw / algbw of n ranks: 2(n-1)/n, (n-1)/n or 1, as nccl-tests defines. */
double ft_collective_bus_factor(enum ft_collective op, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
