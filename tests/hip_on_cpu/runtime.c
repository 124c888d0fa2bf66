/* tests/hip_on_cpu/runtime.c - the entry points of HIP that the probes call, on the CPU:
 * four devices of one memory, every call done before it returns */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/backend.h"
#include "calibrate/probes/gpu/hip_min.h"

enum { DEVICES = 4 };

struct ihipEvent_t {
	double at_s;
};

const char *hipGetErrorString(hipError_t e)
{
	return e == hipErrorOutOfMemory ? "out of memory" : "no error";
}
hipError_t hipGetLastError(void)
{
	return hipSuccess;
}
hipError_t hipGetDeviceCount(int *n)
{
	*n = DEVICES;
	return hipSuccess;
}
hipError_t hipSetDevice(int i)
{
	return i < DEVICES ? hipSuccess : hipErrorOutOfMemory;
}
hipError_t hipDeviceGetAttribute(int *v, hipDeviceAttribute_t a, int i)
{
	(void)i;
	*v = a == hipDeviceAttributeL2CacheSize ? 1 << 20 : 2;
	return hipSuccess;
}
hipError_t hipDeviceGetName(char *name, int n, int i)
{
	snprintf(name, (size_t)n, "CPU as HIP %d", i);
	return hipSuccess;
}
hipError_t hipDriverGetVersion(int *v)
{
	*v = 1;
	return hipSuccess;
}
hipError_t hipRuntimeGetVersion(int *v)
{
	*v = 1;
	return hipSuccess;
}
hipError_t hipMemGetInfo(size_t *free_bytes, size_t *all)
{
	*free_bytes = *all = (size_t)4 << 20;
	return hipSuccess;
}
hipError_t hipMalloc(void **p, size_t n)
{
	*p = malloc(n);
	return *p ? hipSuccess : hipErrorOutOfMemory;
}
hipError_t hipFree(void *p)
{
	free(p);
	return hipSuccess;
}
hipError_t hipHostMalloc(void **p, size_t n, unsigned flags)
{
	(void)flags;
	return hipMalloc(p, n);
}
hipError_t hipHostFree(void *p)
{
	return hipFree(p);
}
hipError_t hipMemcpy(void *to, const void *from, size_t n, hipMemcpyKind kind)
{
	(void)kind;
	memmove(to, from, n);
	return hipSuccess;
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t n, hipMemcpyKind kind,
			  hipStream_t s)
{
	(void)s;
	return hipMemcpy(to, from, n, kind);
}
hipError_t hipMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t n,
			      hipStream_t s)
{
	(void)a, (void)b, (void)s;
	return hipMemcpy(to, from, n, hipMemcpyDeviceToHost);
}
hipError_t hipMemsetAsync(void *p, int v, size_t n, hipStream_t s)
{
	(void)s;
	/* the flush of a cache that no timing here minds */
	memset(p, v, n < (size_t)256 << 20 ? n : 1);
	return hipSuccess;
}
hipError_t hipDeviceCanAccessPeer(int *can, int a, int b)
{
	*can = a != b;
	return hipSuccess;
}
hipError_t hipDeviceEnablePeerAccess(int i, unsigned flags)
{
	(void)i, (void)flags;
	return hipSuccess;
}
hipError_t hipDeviceSynchronize(void)
{
	return hipSuccess;
}
hipError_t hipStreamCreate(hipStream_t *s)
{
	*s = malloc(1);
	return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t s)
{
	free(s);
	return hipSuccess;
}
hipError_t hipStreamSynchronize(hipStream_t s)
{
	(void)s;
	return hipSuccess;
}
hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t e, unsigned flags)
{
	(void)s, (void)e, (void)flags;
	return hipSuccess;
}
hipError_t hipStreamBeginCapture(hipStream_t s, hipStreamCaptureMode m)
{
	(void)s, (void)m;
	return hipErrorOutOfMemory;
}
hipError_t hipStreamEndCapture(hipStream_t s, hipGraph_t *g)
{
	(void)s, (void)g;
	return hipErrorOutOfMemory;
}
hipError_t hipGraphInstantiate(hipGraphExec_t *e, hipGraph_t g, void *node, char *log,
			       size_t n)
{
	(void)e, (void)g, (void)node, (void)log, (void)n;
	return hipErrorOutOfMemory;
}
hipError_t hipGraphLaunch(hipGraphExec_t e, hipStream_t s)
{
	(void)e, (void)s;
	return hipErrorOutOfMemory;
}
hipError_t hipGraphExecDestroy(hipGraphExec_t e)
{
	(void)e;
	return hipSuccess;
}
hipError_t hipGraphDestroy(hipGraph_t g)
{
	(void)g;
	return hipSuccess;
}
hipError_t hipEventCreate(hipEvent_t *e)
{
	*e = calloc(1, sizeof(**e));
	return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t e)
{
	free(e);
	return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t e, hipStream_t s)
{
	(void)s;
	e->at_s = probe_now_s();
	return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t e)
{
	(void)e;
	return hipSuccess;
}
hipError_t hipEventElapsedTime(float *ms, hipEvent_t a, hipEvent_t b)
{
	*ms = (float)((b->at_s - a->at_s) * 1e3 + 1e-4);
	return hipSuccess;
}
