/* calibrate/probes/gpu/gpu.c - the GPU backend: opening a device, its memory, and which
 * file measures which kind of cell */
#include "calibrate/probes/gpu/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum probe_status gpu_fail(char *why, size_t n, const char *what, G(Error_t) error)
{
	snprintf(why, n, "%.120s: %s", what, G(GetErrorString)(error));
	(void)G(GetLastError)(); /* so that the next cell starts clean */
#ifdef PROBE_HIP
	return error == hipErrorOutOfMemory ? PROBE_NO_MEMORY : PROBE_FAILED;
#else
	return error == cudaErrorMemoryAllocation ? PROBE_NO_MEMORY : PROBE_FAILED;
#endif
}

static void describe(struct probe_session *s, struct probe_device *d)
{
	int v = 0;
	size_t free_bytes = 0, all = 0;

#ifdef PROBE_HIP
	(void)hipDeviceGetName(d->name, (int)sizeof(d->name), s->first);
	(void)hipDeviceGetAttribute(&v, hipDeviceAttributeMultiprocessorCount, 0);
	d->compute_units = v;
	(void)hipDeviceGetAttribute(&v, hipDeviceAttributeL2CacheSize, 0);
	s->fnuz = strstr(d->name, "MI300") || strstr(d->name, "MI325");
	snprintf(d->fabric, sizeof(d->fabric), "xgmi");
#else
	struct cudaDeviceProp p;

	if (cudaGetDeviceProperties(&p, s->first) == cudaSuccess)
		snprintf(d->name, sizeof(d->name), "%.95s", p.name);
	(void)cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, 0);
	d->compute_units = v;
	(void)cudaDeviceGetAttribute(&v, cudaDevAttrL2CacheSize, 0);
	{
		const char *nvls = getenv("NCCL_NVLS_ENABLE");

		snprintf(d->fabric, sizeof(d->fabric), "%s",
			 nvls && nvls[0] == '0' ? "nvlink-no-nvls" : "nvlink");
	}
#endif
	d->cache_bytes = v;
	(void)G(MemGetInfo)(&free_bytes, &all);
	d->memory_bytes = (double)all;
	(void)G(RuntimeGetVersion)(&v);
	snprintf(d->runtime, sizeof(d->runtime), BACKEND_NAME " %d", v);
#ifdef PROBE_HIP
	snprintf(d->blas, sizeof(d->blas), "hipBLASLt");
#else
	snprintf(d->blas, sizeof(d->blas), "cuBLASLt %zu", cublasLtGetVersion());
#endif
	gpu_attention_open(s, d);
	gpu_collective_version(d->ccl, sizeof(d->ccl));
	gpu_clocks_driver(s->clocks, d->driver, sizeof(d->driver));
	d->devices = s->devices;
}

static enum probe_status allocate(struct probe_session *s, char *why, size_t n_why)
{
	size_t free_bytes = 0, all = 0;
	float one = 1;

	GPU_TRY(G(MemGetInfo)(&free_bytes, &all));
	s->region_bytes = free_bytes / 8;
	if (s->region_bytes > (size_t)6 << 30)
		s->region_bytes = (size_t)6 << 30;
	s->region_bytes &= ~(size_t)4095;
	s->ring_bytes = free_bytes / 16;
	if (s->ring_bytes > (size_t)1 << 30)
		s->ring_bytes = (size_t)1 << 30;
	for (int i = 0; i < GPU_REGIONS; i++)
		GPU_TRY(G(Malloc)((void **)&s->region[i], s->region_bytes));
	GPU_TRY(G(Malloc)((void **)&s->flush, s->flush_bytes));
	GPU_TRY(G(Malloc)(&s->workspace, s->workspace_bytes));
	GPU_TRY(G(Malloc)((void **)&s->gathered, s->n_gathered * sizeof(float)));
	GPU_TRY(G(Malloc)((void **)&s->one, sizeof(one)));
	GPU_TRY(G(Memcpy)(s->one, &one, sizeof(one), G(MemcpyHostToDevice)));
	GPU_TRY(G(StreamCreate)(&s->stream));
	GPU_TRY(G(StreamCreate)(&s->side));
	for (int i = 0; i < PROBE_MOST_REPS; i++) {
		GPU_TRY(G(EventCreate)(&s->begin[i]));
		GPU_TRY(G(EventCreate)(&s->end[i]));
	}
	return PROBE_OK;
}

static void gpu_close(struct probe_session *s)
{
	gpu_collective_close(s);
	gpu_attention_close(s);
	gpu_clocks_close(s->clocks);
	if (s->lt)
		LT(Destroy)(s->lt);
	for (int i = 0; i < GPU_REGIONS; i++)
		(void)G(Free)(s->region[i]);
	(void)G(Free)(s->flush);
	(void)G(Free)(s->workspace);
	(void)G(Free)(s->gathered);
	(void)G(Free)(s->one);
	free(s);
}

static enum probe_status gpu_open(struct probe_session **out, uint64_t seed,
				  struct probe_device *device, char *why, size_t n_why)
{
	struct probe_session *s = calloc(1, sizeof(*s));
	enum probe_status status;
	G(Error_t) e;

	if (!s)
		abort();
	s->random.state = seed;
	e = G(GetDeviceCount)(&s->devices);
	if (e != G(Success) || s->devices < 1) {
		snprintf(why, n_why,
			 "no GPU can be used (%s); is the driver "
			 "loaded, and may this user open the device?",
			 e != G(Success) ? G(GetErrorString)(e) : "no device found");
		free(s);
		return PROBE_ABSENT;
	}
	if (s->devices > GPU_MOST)
		s->devices = GPU_MOST;
	s->workspace_bytes = (size_t)32 << 20;
#ifdef PROBE_HIP
	s->flush_bytes = (size_t)512 << 20; /* beyond the Infinity Cache */
#else
	s->flush_bytes = (size_t)256 << 20;
#endif
	s->n_gathered = 1 << 21;
	s->clocks = gpu_clocks_open(s->first);
	status = allocate(s, why, n_why);
	if (status == PROBE_OK && LT(Create)(&s->lt)) {
		snprintf(why, n_why, "the matrix library does not start");
		status = PROBE_FAILED;
	}
	if (status != PROBE_OK) {
		gpu_close(s);
		return status;
	}
	describe(s, device);
	*out = s;
	return PROBE_OK;
}

static enum probe_status gpu_run(struct probe_session *s, const struct probe_cell *cell,
				 const struct probe_method *method,
				 struct probe_time *out, char *why, size_t n_why)
{
	static enum probe_status (*const by_kind[PROBE_KINDS])(
		struct probe_session *, const struct probe_cell *,
		const struct probe_method *, struct probe_time *, char *, size_t) = {
		[PROBE_GEMM] = gpu_gemm,	 [PROBE_ATTENTION] = gpu_attention,
		[PROBE_MEMORY] = gpu_memory,	 [PROBE_LAUNCH] = gpu_launch,
		[PROBE_TRANSFER] = gpu_transfer, [PROBE_COLLECTIVE] = gpu_collective,
		[PROBE_BESIDE] = gpu_beside,
	};
	enum probe_status status;

	GPU_TRY(G(SetDevice)(s->first));
	status = by_kind[cell->kind](s, cell, method, out, why, n_why);
	if (!cell->sustained)
		gpu_clocks_read(s->clocks, out);
	return status;
}

const struct probe_backend *probe_backend_get(void);

const struct probe_backend *probe_backend_get(void)
{
	static const struct probe_backend backend = {
		PROBE_ABI, BACKEND_NAME, gpu_open, gpu_run, gpu_close,
	};

	return &backend;
}
