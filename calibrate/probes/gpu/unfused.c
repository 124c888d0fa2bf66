/*
 * calibrate/probes/gpu/unfused.c - attention without a fused kernel: the matrix library's
 * strided batched products, a kernel for softmax and mask, scores in memory
 *
 *   forward   S = Q K' scale; P = softmax(mask(S)) in its place; O = P V
 *   backward  from P: dV = P' dO; dP = dO V'; dS = P (dP - rowsum(P dP)) in its place;
 *             dQ = dS K scale; dK = dS' Q scale
 *
 * bf16 with fp32 sums, every score computed whatever the mask: what a framework does
 * that has no fused kernel, and more time than any fused one needs. A batch is the
 * same member of each group of heads, so that keys and values are not copied; the
 * members of a group are one call each, and add up in dK and dV.
 *
 * Row-major tensors in a column-major library: a matrix is its own transpose, so
 * D = A B is asked for as D' = B' A'.
 */
#include <stdio.h>
#include <stdlib.h>

#include "calibrate/probes/gpu/attention.h"

enum shape { SCORES, OUTPUT, KEYS, SHAPES }; /* what a product gives */
enum { MATRICES = 3 };			     /* A, B and D of the library */

struct product {
	LT(MatmulDesc_t) how;
	LT(MatrixLayout_t) matrix[MATRICES];
	LT(MatmulHeuristicResult_t) algorithm;
};

struct unfused {
	struct product product[SHAPES];
	LT(MatmulPreference_t) preference;
	char *scores[2]; /* P, and dP that becomes dS */
	size_t scores_bytes;
};

/* Rows, columns, leading dimension and step between batches, as the library sees
 * them. Who: of Q's kind, of K's kind, a matrix of scores. */
enum who { QUERY, KEY, SCORE };

static bool matrix(LT(MatrixLayout_t) * m, const struct attention_run *r, enum who who)
{
	int64_t d = r->head_dim, s = r->sequence;
	int64_t group = r->heads / r->kv_heads;
	int64_t wide = d * (who == QUERY ? r->heads : r->kv_heads);
	int64_t step = who == SCORE ? group * s * s : who == QUERY ? group * d : d;
	int32_t count = (int32_t)r->kv_heads;

	return !LT(MatrixLayoutCreate)(m, TYPE(16BF), (uint64_t)(who == SCORE ? s : d),
				       (uint64_t)s, who == SCORE ? s : wide) &&
	       !LT(MatrixLayoutSetAttribute)(*m, LTE(MATRIX_LAYOUT_BATCH_COUNT), &count,
					     sizeof(count)) &&
	       !LT(MatrixLayoutSetAttribute)(*m,
					     LTE(MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
					     &step, sizeof(step));
}

static bool make(struct probe_session *s, struct unfused *u,
		 const struct attention_run *r, enum shape shape)
{
	static const enum who who[SHAPES][MATRICES] = {
		[SCORES] = { KEY, QUERY, SCORE }, /* K' as stored, Q */
		[OUTPUT] = { KEY, SCORE, QUERY }, /* V, P */
		[KEYS] = { QUERY, SCORE, KEY },	  /* dO, P turned */
	};
	struct product *p = &u->product[shape];
	int found = 0;
#ifdef PROBE_HIP
	int turned = HIPBLAS_OP_T;
#else
	cublasOperation_t turned = CUBLAS_OP_T;
#endif

	if (LT(MatmulDescCreate)(&p->how, BLAS(COMPUTE_32F), TYPE(32F)))
		return false;
	if (shape == SCORES &&
	    LT(MatmulDescSetAttribute)(p->how, LTE(MATMUL_DESC_TRANSA), &turned,
				       sizeof(turned)))
		return false;
	if (shape == KEYS && LT(MatmulDescSetAttribute)(p->how, LTE(MATMUL_DESC_TRANSB),
							&turned, sizeof(turned)))
		return false;
	for (int i = 0; i < MATRICES; i++)
		if (!matrix(&p->matrix[i], r, who[shape][i]))
			return false;
	return !LT(MatmulAlgoGetHeuristic)(s->lt, p->how, p->matrix[0], p->matrix[1],
					   p->matrix[2], p->matrix[2], u->preference, 1,
					   &p->algorithm, &found) &&
	       found > 0;
}

static bool prefer(struct probe_session *s, struct unfused *u)
{
	size_t bytes = s->workspace_bytes;

	if (LT(MatmulPreferenceCreate)(&u->preference) ||
	    LT(MatmulPreferenceSetAttribute)(u->preference,
					     LTE(MATMUL_PREF_MAX_WORKSPACE_BYTES),
					     &bytes, sizeof(bytes)))
		return false;
#ifndef PROBE_HIP
	/* a head begins at a multiple of its own bytes only */
	for (int i = 0; i < 4; i++) {
		static const cublasLtMatmulPreferenceAttributes_t name[] = {
			CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
			CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
			CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
			CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
		};
		uint32_t least = 16;

		if (cublasLtMatmulPreferenceSetAttribute(u->preference, name[i], &least,
							 sizeof(least)))
			return false;
	}
#endif
	return true;
}

static enum probe_status open_unfused(struct probe_session *s, struct attention_run *r,
				      char *why, size_t n_why)
{
	struct unfused *u = calloc(1, sizeof(*u));

	if (!u)
		abort();
	r->own = u;
	if (r->fp8 || r->sequence % 2 || r->head_dim % 8) {
		snprintf(why, n_why,
			 "unfused attention here is bf16, an even "
			 "sequence and heads of 8 n");
		return PROBE_UNSUPPORTED;
	}
	for (int i = 0; i < SHAPES; i++)
		if ((!i && !prefer(s, u)) || !make(s, u, r, (enum shape)i)) {
			snprintf(why, n_why,
				 "the matrix library has no "
				 "algorithm for these batches");
			return PROBE_UNSUPPORTED;
		}
	u->scores_bytes = (size_t)(r->batch * r->heads * r->sequence * r->sequence) * 2;
	u->scores_bytes = (u->scores_bytes + 255) & ~(size_t)255;
	r->work_bytes = u->scores_bytes * (r->trains ? 2 : 1);
	return PROBE_OK;
}

static enum probe_status bind_unfused(struct probe_session *s, struct attention_run *r,
				      char *why, size_t n_why)
{
	struct unfused *u = r->own;

	u->scores[0] = r->work;
	u->scores[1] = r->work + u->scores_bytes;
	GPU_TRY(G(MemsetAsync)(r->work, 0xff, r->work_bytes, s->stream));
	return PROBE_OK;
}

/* Where batch b's share of member m begins. */
static char *part(char *at, const struct attention_run *r, enum who who, int64_t b,
		  int64_t m)
{
	int64_t d = r->head_dim, s = r->sequence;

	if (who == SCORE)
		return at + 2 * (b * r->heads + m) * s * s;
	if (who == KEY)
		return at + 2 * b * s * r->kv_heads * d;
	return at + 2 * (b * s * r->heads + m) * d;
}

/* All heads of all batches: a and b by their order in `who` of make(). */
static enum probe_status multiply(struct probe_session *s, struct attention_run *r,
				  enum shape shape, char *a, char *b, char *d,
				  float alpha)
{
	struct unfused *u = r->own;
	struct product *p = &u->product[shape];
	int64_t group = r->heads / r->kv_heads;

	for (int64_t i = 0; i < r->batch * group; i++) {
		int64_t n = i / group, m = i % group;
		char *pa = part(a, r, shape == KEYS ? QUERY : KEY, n, m);
		char *pb = part(b, r, shape == SCORES ? QUERY : SCORE, n, m);
		char *pd = part(d, r,
				shape == SCORES ? SCORE :
				shape == OUTPUT ? QUERY :
						  KEY,
				n, m);
		float beta = shape == KEYS && m ? 1 : 0;

		if (LT(Matmul)(s->lt, p->how, &alpha, pa, p->matrix[0], pb,
			       p->matrix[1], &beta, pd, p->matrix[2], pd, p->matrix[2],
			       &p->algorithm.algo, s->workspace, s->workspace_bytes,
			       s->stream))
			return PROBE_FAILED;
	}
	return PROBE_OK;
}

static enum probe_status forward(struct probe_session *s, struct attention_run *r)
{
	struct unfused *u = r->own;
	enum probe_status status =
		multiply(s, r, SCORES, r->at[A_K], r->at[A_Q], u->scores[0], r->scale);

	kernel_attention_softmax(u->scores[0], r->batch * r->heads * r->sequence,
				 r->sequence, r->causal, s->stream);
	if (status == PROBE_OK)
		status =
			multiply(s, r, OUTPUT, r->at[A_V], u->scores[0], r->at[A_O], 1);
	return status;
}

static enum probe_status backward(struct probe_session *s, struct attention_run *r)
{
	struct unfused *u = r->own;
	char *p = u->scores[0], *ds = u->scores[1];
	enum probe_status status = multiply(s, r, KEYS, r->at[A_DO], p, r->at[A_DV], 1);

	if (status == PROBE_OK)
		status = multiply(s, r, SCORES, r->at[A_V], r->at[A_DO], ds, 1);
	kernel_attention_gradient(p, ds, r->batch * r->heads * r->sequence, r->sequence,
				  s->stream);
	if (status == PROBE_OK)
		status = multiply(s, r, OUTPUT, r->at[A_K], ds, r->at[A_DQ], r->scale);
	if (status == PROBE_OK)
		status = multiply(s, r, KEYS, r->at[A_Q], ds, r->at[A_DK], r->scale);
	return status;
}

static enum probe_status queue_unfused(struct probe_session *s, struct attention_run *r,
				       char *why, size_t n_why)
{
	enum probe_status status = r->backward ? backward(s, r) : forward(s, r);

	if (status != PROBE_OK)
		snprintf(why, n_why, "the matrix library refused a product");
	return status;
}

static void close_unfused(struct attention_run *r)
{
	struct unfused *u = r->own;

	for (int i = 0; i < SHAPES; i++) {
		struct product *p = &u->product[i];

		for (int j = 0; j < MATRICES; j++)
			if (p->matrix[j])
				LT(MatrixLayoutDestroy)(p->matrix[j]);
		if (p->how)
			LT(MatmulDescDestroy)(p->how);
	}
	if (u->preference)
		LT(MatmulPreferenceDestroy)(u->preference);
	free(u);
	r->own = NULL;
}

const struct attention_engine *attention_unfused(void)
{
	static const struct attention_engine engine = { open_unfused, bind_unfused,
							queue_unfused, close_unfused };

	return &engine;
}
