/*
 * calibrate/probes/gpu/gpu.h - one source for both vendors: names are pasted together,
 * G(Malloc) is cudaMalloc or hipMalloc; enum values differ, so always by name
 */
#ifndef CALIBRATE_PROBE_GPU_H
#define CALIBRATE_PROBE_GPU_H

#include "calibrate/probes/backend.h"
#include "calibrate/probes/gpu/kernels.h"
#include "calibrate/probes/reference.h"

#ifdef PROBE_HIP
#include "calibrate/probes/gpu/hip_min.h"
#define G(name) hip##name
#define LT(name) hipblasLt##name
#define LTE(name) HIPBLASLT_##name
#define BLAS(name) HIPBLAS_##name
#define TYPE(name) HIP_R_##name##_
#define BACKEND_NAME "hip"
#else
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#define G(name) cuda##name
#define LT(name) cublasLt##name
#define LTE(name) CUBLASLT_##name
#define BLAS(name) CUBLAS_##name
#define TYPE(name) CUDA_R_##name
#define BACKEND_NAME "cuda"
#endif

enum { GPU_MOST = 16, GPU_REGIONS = 3 };

struct gpu_attention;
struct gpu_clocks;

/* Three large regions of device memory serve as operands of every cell. */
struct probe_session {
	int devices, first;	  /* in use; the one that runs single cells */
	G(Stream_t) stream, side; /* of the first device */
	G(Event_t) begin[PROBE_MOST_REPS], end[PROBE_MOST_REPS];
	char *region[GPU_REGIONS];
	size_t region_bytes;
	char *flush;
	size_t flush_bytes;
	float *gathered; /* on the device, for checks */
	size_t n_gathered;
	void *workspace;
	size_t workspace_bytes;
	LT(Handle_t) lt;
	float *one; /* a scale of 1 on the device */
	struct gpu_attention *attention;
	struct gpu_clocks *clocks;
	/* collectives */
	ncclComm_t comm[GPU_MOST + 1][GPU_MOST]; /* by group size */
	char *send[GPU_MOST], *recv[GPU_MOST];
	float *counts[GPU_MOST]; /* KERNEL_HOLES on each */
	size_t ring_bytes;
	struct probe_random random;
	bool fnuz; /* its fp8 is the FNUZ kind */
};

/* What is timed: queues one call on s->stream; false with *why on error. */
struct gpu_call {
	enum probe_status (*queue)(struct probe_session *s, void *self);
	void *self;
	char *why;
	size_t n_why;
};

/* Say what failed; the status that fits. */
enum probe_status gpu_fail(char *why, size_t n, const char *what, G(Error_t) error);
#define GPU_TRY(what) \
	do { \
		G(Error_t) e_ = (what); \
		if (e_ != G(Success)) \
			return gpu_fail(why, n_why, #what, e_); \
	} while (0)

/* calibrate/probes/gpu/time.c: cold: flushed before each repetition. Kernels
 * under 20 us that are timed warm go in batches. */
enum probe_status gpu_time(struct probe_session *s, const struct gpu_call *call,
			   bool cold, const struct probe_method *method,
			   struct probe_time *out);
enum probe_status gpu_sustain(struct probe_session *s, const struct gpu_call *call,
			      const struct probe_method *method,
			      struct probe_time *out);
enum probe_status gpu_launch(struct probe_session *s, const struct probe_cell *cell,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why);
enum probe_status gpu_transfer(struct probe_session *s, const struct probe_cell *cell,
			       const struct probe_method *method,
			       struct probe_time *out, char *why, size_t n_why);

/* calibrate/probes/gpu/memory.c */
enum probe_status gpu_memory(struct probe_session *s, const struct probe_cell *cell,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why);

/* calibrate/probes/gpu/gemm.c */
struct gpu_product;
enum probe_status gpu_product_open(struct probe_session *s,
				   const struct probe_cell *cell,
				   struct gpu_product **p, char *why, size_t n_why);
enum probe_status gpu_product_queue(struct probe_session *s, void *product);
void gpu_product_close(struct gpu_product *p);
enum probe_status gpu_gemm(struct probe_session *s, const struct probe_cell *cell,
			   const struct probe_method *method, struct probe_time *out,
			   char *why, size_t n_why);

/* calibrate/probes/gpu/attention.c; open: says which fused attention there is */
void gpu_attention_open(struct probe_session *s, struct probe_device *device);
enum probe_status gpu_attention(struct probe_session *s, const struct probe_cell *cell,
				const struct probe_method *method,
				struct probe_time *out, char *why, size_t n_why);
void gpu_attention_close(struct probe_session *s);

/* calibrate/probes/gpu/collective.c */
enum probe_status gpu_collective(struct probe_session *s, const struct probe_cell *cell,
				 const struct probe_method *method,
				 struct probe_time *out, char *why, size_t n_why);
enum probe_status gpu_beside(struct probe_session *s, const struct probe_cell *cell,
			     const struct probe_method *method, struct probe_time *out,
			     char *why, size_t n_why);
void gpu_collective_close(struct probe_session *s);
void gpu_collective_version(char *text, size_t n);

/* calibrate/probes/gpu/clocks.c: NVML where it can be loaded */
struct gpu_clocks *gpu_clocks_open(int device);
void gpu_clocks_read(const struct gpu_clocks *c, struct probe_time *out);
void gpu_clocks_driver(const struct gpu_clocks *c, char *text, size_t n);
void gpu_clocks_close(struct gpu_clocks *c);

#endif
