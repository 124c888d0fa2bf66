/*
 * sim/kernel.h - how long one kernel takes, family by family
 *
 * Products and attention go the same way: arithmetic gives a first guess from
 * the shape and the machine; the profile's measured rows say by which ratio it
 * is off; that ratio is carried to the new shape by kriging, that is, by the
 * weights that are best if the logarithm of the ratio is a random field with
 * the covariance stated in each file. Held-out weight shapes chose the
 * constants (tests/test_kernel_held_out.c prints and bounds the error).
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "foretoken/hw_rows.h"
#include "foretoken/sim.h"

/* ---- sim/kernel_kriging.c ----------------------------------------------- */

enum { KRIGE_NEAR = 20 };

/* The rows that say most about a point: highest covariance with it. */
struct krige {
	size_t n;
	size_t row[KRIGE_NEAR];
	float with_point[KRIGE_NEAR]; /* covariance of the row and the point */
	float least;		      /* the lowest, once full; or -1 */
	size_t least_at;
};

void krige_init(struct krige *k);
void krige_take(struct krige *k, size_t row, float covariance);

static inline void krige_offer(struct krige *k, size_t row, float covariance)
{
	if (covariance > k->least)
		krige_take(k, row, covariance);
}

/* The step to go round n rows by, so that neighbours are not met in turn: with
 * the best rows seen early, few others are taken only to be dropped. */
size_t krige_stride(size_t n);

/* The covariance of two measured rows. */
typedef float krige_between(const void *rows, size_t a, size_t b);

/* What is known of a field of values. */
struct krige_field {
	krige_between *between;
	const void *rows;
	double noise;	 /* variance of a measurement */
	double variance; /* of one point */
};

/* value[i]: at row[i]. The estimate, and in *left the variance that is not explained. */
double krige_estimate(const struct krige *k, const double *value,
		      const struct krige_field *field, double *left);

/* What a table says about a shape. */
struct kernel_estimate {
	double time_s;
	double left; /* variance that rows do not explain */
	bool far;    /* none of them is near */
};

/* The spread of a profile holds where rows are as near as they were when it was
 * found by cross-validation: half the noise left over. It grows from there. */
double krige_spread(double spread, double left, double noise);

/* 1/(1+d2)^2: falls off as distances grow, and never costs an exponential. */
static inline float krige_near(float d2)
{
	float x = 1 / (1 + d2);

	return x * x;
}

/* ---- the families ------------------------------------------------------- */

/* A product C[m,n] = A[m,k] B[k,n]. Groups are products of their own in one
 * launch: they share out m, or the inner k where inner is true. */
struct product {
	double m, n, k, groups;
	bool inner;
	double out_bytes;  /* an element of C, read and written */
	bool static_tiles; /* as in ft_work */
};

struct product product_of(const struct ft_work *work);

/* Tiles of tile_m x tile_n that cover m x n; the waves they take. */
double gemm_tiles(double m, double n, double tile_m, double tile_n);
double gemm_waves(double tiles, int64_t compute_units);
/* Time of a kernel beside a collective over its time alone; the collective holds so many units and
 * moves `rate` of what a port carries. */
double kernel_beside(const struct ft_gpu *gpu, const struct ft_work *work, double units,
		     double rate);
/* Time of a product while other kernels hold so many compute units, over its time alone. */
double gemm_beside(const struct ft_gpu *gpu, const struct product *p, double held);

double gemm_arithmetic_s(const struct ft_gpu *gpu, enum ft_dtype dtype,
			 const struct product *p);
bool gemm_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		  struct ft_prediction *out, struct ft_error *err);

/* A table's own estimate, without the rows for which skip is true: how tests
 * hold out whole weight shapes. skip may be NULL. */
struct kernel_estimate gemm_estimate(const struct ft_gpu *gpu,
				     const struct ft_gemm_table *t, enum ft_dtype dtype,
				     const struct product *p, const bool *skip);

struct attention_shape {
	double batch, heads, kv_heads, queries, keys, head_dim, window;
	bool causal;
	int pass;
	enum ft_dtype dtype;
	const char *impl; /* NULL: any */
};

double attention_flop(const struct attention_shape *a);
double attention_arithmetic_s(const struct ft_gpu *gpu,
			      const struct attention_shape *a);
struct kernel_estimate attention_estimate(const struct ft_gpu *gpu,
					  const struct ft_attention_table *t,
					  const struct attention_shape *a,
					  const bool *skip);
bool attention_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		       struct ft_prediction *out, struct ft_error *err);

/* sim/gathered.c: of keys that are chosen, or scored. */
void gathered_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		      struct ft_prediction *out);

void memory_bound_predict(const struct ft_gpu *gpu, const struct ft_work *work,
			  struct ft_prediction *out);

/* ---- collectives inside a node ------------------------------------------- */

/* sim/inside.c. All pairs joined by links of their own: each rank talks to all others at
 * once, twice for an all-reduce. link_bytes_per_s: one direction. */
double inside_mesh_s(enum ft_collective op, int64_t n, double bytes,
		     double link_bytes_per_s);

/* sim/inside_table.c. T = a + c sqrt(S) + S f / B, fitted to rows by least relative squares with
 * a, c >= 0 and f/B >= 0, or that of fuller tables where the rows end before the plateau; skip
 * as above. */
struct inside_law {
	double a_s, c_s, s_per_byte;
};
struct inside_law inside_law_of(const struct ft_gpu *gpu,
				const struct ft_collective_table *t, const bool *skip);
double inside_table_s(const struct ft_gpu *gpu, const struct ft_collective_table *t,
		      double bytes, const bool *skip);

/* The tables of an op next to n on either side (either may be NULL). Bus bandwidth
 * goes geometrically in log(n); above the largest n the start grows with log(n). */
struct inside_between {
	const struct ft_gpu *gpu;
	enum ft_collective op;
	int64_t n;
	const struct ft_collective_table *below, *above;
};
void inside_enclose(struct inside_between *e, const struct ft_collective_table *t);
double inside_between_s(const struct inside_between *e, double bytes);

/* ---- sim/kernel.c ----------------------------------------------------------- */

/* Attention whose clock a profile tells apart from that of products. */
bool kernel_has_own_clock(const struct ft_gpu *gpu, const struct ft_work *work);

#endif
