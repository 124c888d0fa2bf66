/* tests/hip_on_cpu/blas.c - hipBLASLt's strided batched products in double precision, from
 * its documented meaning: column-major D = alpha op(A) op(B) + beta C */
#include <stdbool.h>
#include <stdlib.h>

#include "tests/hip_on_cpu/numbers.h"
#include "calibrate/probes/gpu/hip_min.h"
#include "calibrate/probes/gpu/kernels.h"

struct lt_desc {
	int ta, tb;
};
struct lt_layout {
	uint64_t rows, columns;
	int64_t ld, step;
	int32_t count;
	int dtype;
};
struct lt_preference {
	size_t bytes;
};

int hipblasLtCreate(hipblasLtHandle_t *h)
{
	*h = malloc(1);
	return 0;
}
int hipblasLtDestroy(hipblasLtHandle_t h)
{
	free(h);
	return 0;
}
int hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *d, int compute, int scale)
{
	*d = calloc(1, sizeof(**d));
	(*d)->ta = (*d)->tb = HIPBLAS_OP_N;
	return compute != HIPBLAS_COMPUTE_32F || scale != HIP_R_32F_;
}
int hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t d)
{
	free(d);
	return 0;
}
int hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t d, int name,
				    const void *value, size_t n)
{
	if (n != sizeof(int))
		return 1;
	if (name == HIPBLASLT_MATMUL_DESC_TRANSA)
		d->ta = *(const int *)value;
	else if (name == HIPBLASLT_MATMUL_DESC_TRANSB)
		d->tb = *(const int *)value;
	return 0;
}
int hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t *l, int type, uint64_t rows,
				uint64_t columns, int64_t ld)
{
	*l = calloc(1, sizeof(**l));
	**l = (struct lt_layout){
		rows, columns, ld, 0, 1, type == HIP_R_32F_ ? KERNEL_FP32 : KERNEL_BF16
	};
	return ld < (int64_t)rows || (type != HIP_R_32F_ && type != HIP_R_16BF_);
}
int hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t l, int name,
				      const void *value, size_t n)
{
	if (name == HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT && n == 4)
		l->count = *(const int32_t *)value;
	else if (name == HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && n == 8)
		l->step = *(const int64_t *)value;
	else
		return 1;
	return 0;
}
int hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t l)
{
	free(l);
	return 0;
}
int hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t *p)
{
	*p = calloc(1, sizeof(**p));
	return 0;
}
int hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t p)
{
	free(p);
	return 0;
}
int hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t p, int name,
					  const void *value, size_t n)
{
	p->bytes = *(const size_t *)value;
	return name != HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || n != sizeof(size_t);
}

/* Do the shapes fit each other? */
int hipblasLtMatmulAlgoGetHeuristic(
	hipblasLtHandle_t h, hipblasLtMatmulDesc_t d, hipblasLtMatrixLayout_t a,
	hipblasLtMatrixLayout_t b, hipblasLtMatrixLayout_t c,
	hipblasLtMatrixLayout_t out, hipblasLtMatmulPreference_t p, int most,
	hipblasLtMatmulHeuristicResult_t result[], int *found)
{
	uint64_t m = d->ta == HIPBLAS_OP_T ? a->columns : a->rows;
	uint64_t k = d->ta == HIPBLAS_OP_T ? a->rows : a->columns;
	uint64_t l = d->tb == HIPBLAS_OP_T ? b->columns : b->rows;
	uint64_t n = d->tb == HIPBLAS_OP_T ? b->rows : b->columns;

	(void)h, (void)p, (void)most, (void)result;
	*found = m == out->rows && n == out->columns && k == l && c == out &&
		 a->count == b->count && a->count == out->count;
	return 0;
}

static double at(const void *p, const struct lt_layout *l, int64_t batch, uint64_t i,
		 uint64_t j)
{
	return (double)number_load(
		p, (uint64_t)(batch * l->step) + i + j * (uint64_t)l->ld, l->dtype);
}

int hipblasLtMatmul(hipblasLtHandle_t h, hipblasLtMatmulDesc_t d, const void *alpha,
		    const void *a, hipblasLtMatrixLayout_t la, const void *b,
		    hipblasLtMatrixLayout_t lb, const void *beta, const void *c,
		    hipblasLtMatrixLayout_t lc, void *out, hipblasLtMatrixLayout_t lo,
		    const hipblasLtMatmulAlgo_t *algo, void *work, size_t n_work,
		    hipStream_t stream)
{
	bool ta = d->ta == HIPBLAS_OP_T, tb = d->tb == HIPBLAS_OP_T;
	uint64_t inner = ta ? la->rows : la->columns;
	double more = (double)*(const float *)beta;

	(void)h, (void)algo, (void)work, (void)n_work, (void)stream;
	for (int64_t s = 0; s < lo->count; s++)
		for (uint64_t j = 0; j < lo->columns; j++)
			for (uint64_t i = 0; i < lo->rows; i++) {
				double sum = 0;

				for (uint64_t k = 0; k < inner; k++)
					sum += (ta ? at(a, la, s, k, i) :
						     at(a, la, s, i, k)) *
					       (tb ? at(b, lb, s, j, k) :
						     at(b, lb, s, k, j));
				sum *= (double)*(const float *)alpha;
				if (more != 0) /* else C may hold anything */
					sum += more * at(c, lc, s, i, j);
				number_store(out,
					     (uint64_t)(s * lo->step) + i +
						     j * (uint64_t)lo->ld,
					     lo->dtype, (float)sum);
			}
	return 0;
}
