/*
 * calibrate/probes/gpu/gemm.c - matrix products of a linear layer through cuBLASLt or
 * hipBLASLt, the first algorithm that its heuristic names (what frameworks get)
 *
 * Row-major layers in a column-major library: Y = X W' is D[n,m] = W^T X and so
 * on. fp8 kernels of Hopper and CDNA3 take A transposed and B not, so dgrad and
 * wgrad in fp8 run on operands that are stored that way; the copies that make
 * them so are other kernels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/gpu/gpu.h"

struct gpu_product {
	LT(MatmulDesc_t) desc;
	LT(MatrixLayout_t) a, b, d;
	LT(MatmulPreference_t) preference;
	LT(MatmulHeuristicResult_t) algorithm;
	int64_t rows, columns, inner, lda, ldb;
	bool ta, tb;
	int in, out; /* KERNEL_... */
	float beta;
};

static int kernel_type(const struct probe_session *s, const char *dtype)
{
	if (!strcmp(dtype, "bf16"))
		return KERNEL_BF16;
	if (!strcmp(dtype, "fp16"))
		return KERNEL_FP16;
	if (!strcmp(dtype, "fp32"))
		return KERNEL_FP32;
	return s->fnuz ? KERNEL_FP8_FNUZ : KERNEL_FP8;
}

static int library_type(int type)
{
	switch (type) {
	case KERNEL_BF16:
		return (int)TYPE(16BF);
	case KERNEL_FP16:
		return (int)TYPE(16F);
	case KERNEL_FP8:
		return (int)TYPE(8F_E4M3);
#ifdef PROBE_HIP
	case KERNEL_FP8_FNUZ:
		return HIP_R_8F_E4M3_FNUZ_;
#endif
	default:
		return (int)TYPE(32F);
	}
}

static size_t bytes_of(int type)
{
	return type == KERNEL_FP32 ? 4 : type >= KERNEL_FP8 ? 1 : 2;
}

/* What the layer's layout is in the library's terms. */
static void arrange(struct gpu_product *p, const struct probe_cell *c)
{
	bool small = p->in >= KERNEL_FP8;

	if (!strcmp(c->layout, "dgrad")) {
		p->rows = c->k, p->columns = c->m, p->inner = c->n;
		p->ta = small;
	} else if (!strcmp(c->layout, "wgrad")) {
		p->rows = c->k, p->columns = c->n, p->inner = c->m;
		p->ta = small;
		p->tb = !small;
	} else {
		p->rows = c->n, p->columns = c->m, p->inner = c->k;
		p->ta = true;
	}
	p->lda = p->ta ? p->inner : p->rows;
	p->ldb = p->tb ? p->columns : p->inner;
	p->out = c->accumulate ? KERNEL_FP32 : small ? KERNEL_BF16 : p->in;
	p->beta = c->accumulate ? 1 : 0;
}

static bool layout_of(LT(MatrixLayout_t) * layout, int type, int64_t rows,
		      int64_t columns, int64_t ld)
{
#ifdef PROBE_HIP
	return !LT(MatrixLayoutCreate)(layout, library_type(type), (uint64_t)rows,
				       (uint64_t)columns, ld);
#else
	return !LT(MatrixLayoutCreate)(layout, (cudaDataType)library_type(type),
				       (uint64_t)rows, (uint64_t)columns, ld);
#endif
}

static bool describe(struct probe_session *s, struct gpu_product *p)
{
#ifdef PROBE_HIP
	int ta = p->ta ? HIPBLAS_OP_T : HIPBLAS_OP_N;
	int tb = p->tb ? HIPBLAS_OP_T : HIPBLAS_OP_N;
#else
	cublasOperation_t ta = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasOperation_t tb = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
#endif
	if (LT(MatmulDescCreate)(&p->desc, BLAS(COMPUTE_32F), TYPE(32F)) ||
	    LT(MatmulDescSetAttribute)(p->desc, LTE(MATMUL_DESC_TRANSA), &ta,
				       sizeof(ta)) ||
	    LT(MatmulDescSetAttribute)(p->desc, LTE(MATMUL_DESC_TRANSB), &tb,
				       sizeof(tb)))
		return false;
	if (p->in < KERNEL_FP8)
		return true;
	return !LT(MatmulDescSetAttribute)(p->desc, LTE(MATMUL_DESC_A_SCALE_POINTER),
					   &s->one, sizeof(s->one)) &&
	       !LT(MatmulDescSetAttribute)(p->desc, LTE(MATMUL_DESC_B_SCALE_POINTER),
					   &s->one, sizeof(s->one));
}

static bool choose(struct probe_session *s, struct gpu_product *p)
{
	size_t bytes = s->workspace_bytes;
	int found = 0;

	if (LT(MatmulPreferenceCreate)(&p->preference) ||
	    LT(MatmulPreferenceSetAttribute)(p->preference,
					     LTE(MATMUL_PREF_MAX_WORKSPACE_BYTES),
					     &bytes, sizeof(bytes)))
		return false;
	return !LT(MatmulAlgoGetHeuristic)(s->lt, p->desc, p->a, p->b, p->d, p->d,
					   p->preference, 1, &p->algorithm, &found) &&
	       found > 0;
}

enum probe_status gpu_product_open(struct probe_session *s, const struct probe_cell *c,
				   struct gpu_product **out, char *why, size_t n_why)
{
	struct gpu_product *p = calloc(1, sizeof(*p));
	size_t a, b, d;

	if (!p)
		abort();
	*out = p;
	p->in = kernel_type(s, c->dtype);
	arrange(p, c);
	a = (size_t)(p->rows * p->inner) * bytes_of(p->in);
	b = (size_t)(p->columns * p->inner) * bytes_of(p->in);
	d = (size_t)(p->rows * p->columns) * bytes_of(p->out);
	if (a > s->region_bytes || b > s->region_bytes || d > s->region_bytes)
		return PROBE_NO_MEMORY;
	if (!describe(s, p) ||
	    !layout_of(&p->a, p->in, p->ta ? p->inner : p->rows,
		       p->ta ? p->rows : p->inner, p->lda) ||
	    !layout_of(&p->b, p->in, p->tb ? p->columns : p->inner,
		       p->tb ? p->inner : p->columns, p->ldb) ||
	    !layout_of(&p->d, p->out, p->rows, p->columns, p->rows) || !choose(s, p)) {
		snprintf(why, n_why,
			 "the matrix library has no algorithm for "
			 "this %s product",
			 c->dtype);
		return PROBE_UNSUPPORTED;
	}
	kernel_fill(s->region[0], (uint64_t)(p->rows * p->inner), p->in, 17, s->stream);
	kernel_fill(s->region[1], (uint64_t)(p->columns * p->inner), p->in, 34,
		    s->stream);
	/* what is not written stays NaN; a gradient to add to begins at zero */
	GPU_TRY(G(MemsetAsync)(s->region[2], c->accumulate ? 0 : 0xff, d, s->stream));
	return PROBE_OK;
}

enum probe_status gpu_product_queue(struct probe_session *s, void *product)
{
	struct gpu_product *p = product;
	float alpha = 1;

	return LT(Matmul)(s->lt, p->desc, &alpha, s->region[0], p->a, s->region[1],
			  p->b, &p->beta, s->region[2], p->d, s->region[2], p->d,
			  &p->algorithm.algo, s->workspace, s->workspace_bytes,
			  s->stream) ?
		       PROBE_FAILED :
		       PROBE_OK;
}

void gpu_product_close(struct gpu_product *p)
{
	if (p->preference)
		LT(MatmulPreferenceDestroy)(p->preference);
	if (p->a)
		LT(MatrixLayoutDestroy)(p->a);
	if (p->b)
		LT(MatrixLayoutDestroy)(p->b);
	if (p->d)
		LT(MatrixLayoutDestroy)(p->d);
	if (p->desc)
		LT(MatmulDescDestroy)(p->desc);
	free(p);
}

/* Sampled elements of D against sums in double precision. */
enum { SAMPLES = 12 };

static enum probe_status check(struct probe_session *s, struct gpu_product *p,
			       double *error, char *why, size_t n_why)
{
	size_t k = (size_t)p->inner;
	float *host = malloc(2 * k * sizeof(*host));
	double out[SAMPLES], want[SAMPLES];

	if (!host || 2 * k > s->n_gathered) {
		free(host);
		return PROBE_OK; /* not checked */
	}
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t r = (uint64_t)(probe_uniform(&s->random) * (double)p->rows);
		uint64_t c = (uint64_t)(probe_uniform(&s->random) * (double)p->columns);
		float one;

		kernel_gather(s->region[0], p->ta ? r * (uint64_t)p->lda : r,
			      p->ta ? 1 : (uint64_t)p->lda, k, p->in, s->gathered,
			      s->stream);
		kernel_gather(s->region[1], p->tb ? c : c * (uint64_t)p->ldb,
			      p->tb ? (uint64_t)p->ldb : 1, k, p->in, s->gathered + k,
			      s->stream);
		GPU_TRY(G(StreamSynchronize)(s->stream));
		GPU_TRY(G(Memcpy)(host, s->gathered, 2 * k * sizeof(*host),
				  G(MemcpyDeviceToHost)));
		kernel_gather(s->region[2], c * (uint64_t)p->rows + r, 1, 1, p->out,
			      s->gathered, s->stream);
		GPU_TRY(G(StreamSynchronize)(s->stream));
		GPU_TRY(G(Memcpy)(&one, s->gathered, sizeof(one),
				  G(MemcpyDeviceToHost)));
		out[i] = (double)one;
		want[i] = 0;
		for (size_t q = 0; q < k; q++)
			want[i] += (double)host[q] * (double)host[k + q];
	}
	free(host);
	*error = reference_distance(out, want, SAMPLES);
	return PROBE_OK;
}

enum probe_status gpu_gemm(struct probe_session *s, const struct probe_cell *c,
			   const struct probe_method *method, struct probe_time *out,
			   char *why, size_t n_why)
{
	struct gpu_product *p = NULL;
	enum probe_status status = gpu_product_open(s, c, &p, why, n_why);
	struct gpu_call call = { gpu_product_queue, p, why, n_why };

	if (status == PROBE_OK) {
		snprintf(why, n_why, "the matrix library refused the product");
		status = gpu_product_queue(s, p);
	}
	if (status == PROBE_OK)
		status = check(s, p, &out->relative_error, why, n_why);
	if (status == PROBE_OK && !(out->relative_error < 1e-2)) {
		snprintf(why, n_why, "differs from double precision by %.2e",
			 out->relative_error);
		status = PROBE_WRONG;
	}
	if (status == PROBE_OK)
		status = c->sustained ? gpu_sustain(s, &call, method, out) :
					gpu_time(s, &call, !c->warm, method, out);
	gpu_product_close(p);
	return status;
}
