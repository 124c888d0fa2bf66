/*
 * calibrate/probes/gpu/hip_min.h - the few entry points of HIP, hipBLASLt and RCCL that
 * the probes call, declared from their documented C interfaces
 *
 * For compiling on a machine without ROCm, and because hipblaslt.h is C++ only.
 * Where <hip/hip_runtime_api.h> or <rccl/rccl.h> exist they are used instead.
 */
#ifndef CALIBRATE_PROBE_HIP_MIN_H
#define CALIBRATE_PROBE_HIP_MIN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_include) && !defined(PROBE_NO_ROCM)
#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#define PROBE_HAVE_HIP 1
#endif
#if __has_include(<rccl/rccl.h>)
#include <rccl/rccl.h>
#define PROBE_HAVE_RCCL 1
#endif
#endif

#ifndef PROBE_HAVE_HIP
typedef enum { hipSuccess = 0, hipErrorOutOfMemory = 2 } hipError_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef enum { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 } hipMemcpyKind;
typedef enum { hipStreamCaptureModeThreadLocal = 1 } hipStreamCaptureMode;
typedef enum {
	hipDeviceAttributeL2CacheSize = 19,
	hipDeviceAttributeMultiprocessorCount = 63,
} hipDeviceAttribute_t;
const char *hipGetErrorString(hipError_t);
hipError_t hipGetLastError(void);
hipError_t hipGetDeviceCount(int *);
hipError_t hipSetDevice(int);
hipError_t hipDeviceGetAttribute(int *, hipDeviceAttribute_t, int);
hipError_t hipDeviceGetName(char *, int, int);
hipError_t hipDriverGetVersion(int *);
hipError_t hipRuntimeGetVersion(int *);
hipError_t hipMemGetInfo(size_t *, size_t *);
hipError_t hipMalloc(void **, size_t);
hipError_t hipFree(void *);
hipError_t hipHostMalloc(void **, size_t, unsigned);
hipError_t hipHostFree(void *);
hipError_t hipMemcpy(void *, const void *, size_t, hipMemcpyKind);
hipError_t hipMemcpyAsync(void *, const void *, size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemcpyPeerAsync(void *, int, const void *, int, size_t, hipStream_t);
hipError_t hipMemsetAsync(void *, int, size_t, hipStream_t);
hipError_t hipDeviceCanAccessPeer(int *, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceSynchronize(void);
hipError_t hipStreamCreate(hipStream_t *);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipStreamBeginCapture(hipStream_t, hipStreamCaptureMode);
hipError_t hipStreamEndCapture(hipStream_t, hipGraph_t *);
hipError_t hipGraphInstantiate(hipGraphExec_t *, hipGraph_t, void *, char *, size_t);
hipError_t hipGraphLaunch(hipGraphExec_t, hipStream_t);
hipError_t hipGraphExecDestroy(hipGraphExec_t);
hipError_t hipGraphDestroy(hipGraph_t);
hipError_t hipEventCreate(hipEvent_t *);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventElapsedTime(float *, hipEvent_t, hipEvent_t);
#endif

/* Values of hipDataType; FNUZ is what gfx942 computes in. */
enum {
	HIP_R_32F_ = 0,
	HIP_R_16F_ = 2,
	HIP_R_16BF_ = 14,
	HIP_R_8F_E4M3_ = 28,
	HIP_R_8F_E4M3_FNUZ_ = 1000,
};

typedef enum { HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112 } hipblasOperation_t;
enum { HIPBLAS_COMPUTE_32F = 2 };
enum {
	HIPBLASLT_MATMUL_DESC_TRANSA = 0,
	HIPBLASLT_MATMUL_DESC_TRANSB = 1,
	HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER = 5,
	HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER = 6,
	HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
	HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 0,
	HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 1,
};
typedef void *hipblasLtHandle_t;
typedef struct lt_desc *hipblasLtMatmulDesc_t;
typedef struct lt_layout *hipblasLtMatrixLayout_t;
typedef struct lt_preference *hipblasLtMatmulPreference_t;
typedef struct {
	uint8_t data[16];
	size_t max_workspace_bytes;
} hipblasLtMatmulAlgo_t;
typedef struct {
	hipblasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	int state;
	float wavesCount;
	int reserved[4];
} hipblasLtMatmulHeuristicResult_t;
int hipblasLtCreate(hipblasLtHandle_t *);
int hipblasLtDestroy(hipblasLtHandle_t);
int hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *, int, int);
int hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t);
int hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t, int, const void *, size_t);
int hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t *, int, uint64_t, uint64_t,
				int64_t);
int hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t, int, const void *,
				      size_t);
int hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t);
int hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t *);
int hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t);
int hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t, int,
					  const void *, size_t);
int hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t, hipblasLtMatmulDesc_t,
				    hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
				    hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
				    hipblasLtMatmulPreference_t, int,
				    hipblasLtMatmulHeuristicResult_t[], int *);
int hipblasLtMatmul(hipblasLtHandle_t, hipblasLtMatmulDesc_t, const void *,
		    const void *, hipblasLtMatrixLayout_t, const void *,
		    hipblasLtMatrixLayout_t, const void *, const void *,
		    hipblasLtMatrixLayout_t, void *, hipblasLtMatrixLayout_t,
		    const hipblasLtMatmulAlgo_t *, void *, size_t, hipStream_t);

#ifndef PROBE_HAVE_RCCL
typedef struct ncclComm *ncclComm_t;
typedef enum { ncclSuccess = 0 } ncclResult_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
typedef enum { ncclBfloat16 = 9 } ncclDataType_t;
const char *ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetVersion(int *);
ncclResult_t ncclCommInitAll(ncclComm_t *, int, const int *);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
			   ncclComm_t, hipStream_t);
ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
			   hipStream_t);
ncclResult_t ncclReduceScatter(const void *, void *, size_t, ncclDataType_t,
			       ncclRedOp_t, ncclComm_t, hipStream_t);
ncclResult_t ncclBroadcast(const void *, void *, size_t, ncclDataType_t, int,
			   ncclComm_t, hipStream_t);
ncclResult_t ncclSend(const void *, size_t, ncclDataType_t, int, ncclComm_t,
		      hipStream_t);
ncclResult_t ncclRecv(void *, size_t, ncclDataType_t, int, ncclComm_t, hipStream_t);
#endif

#endif
