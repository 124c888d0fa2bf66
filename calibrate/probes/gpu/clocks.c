/* calibrate/probes/gpu/clocks.c - clocks, power and temperature through NVML's own C
 * interface, loaded at run time; nothing is ever set */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrate/probes/gpu/gpu.h"

struct gpu_clocks {
	void *lib, *device;
	int (*clock)(void *device, int which, unsigned *mhz);
	int (*power)(void *device, unsigned *mw);
	int (*temperature)(void *device, int which, unsigned *c);
	int (*driver)(char *text, unsigned n);
};

static void *find(void *lib, const char *name)
{
	return dlsym(lib, name);
}

struct gpu_clocks *gpu_clocks_open(int device)
{
	struct gpu_clocks *c = calloc(1, sizeof(*c));
	int (*init)(void) = NULL;
	int (*handle)(unsigned, void **) = NULL;

	if (!c)
		abort();
#ifndef PROBE_HIP
	c->lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
#endif
	if (!c->lib)
		return c;
	*(void **)&init = find(c->lib, "nvmlInit_v2");
	*(void **)&handle = find(c->lib, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&c->clock = find(c->lib, "nvmlDeviceGetClockInfo");
	*(void **)&c->power = find(c->lib, "nvmlDeviceGetPowerUsage");
	*(void **)&c->temperature = find(c->lib, "nvmlDeviceGetTemperature");
	*(void **)&c->driver = find(c->lib, "nvmlSystemGetDriverVersion");
	if (!init || !handle || init() || handle((unsigned)device, &c->device))
		c->device = NULL;
	return c;
}

void gpu_clocks_read(const struct gpu_clocks *c, struct probe_time *out)
{
	enum { SM = 1, DIE = 0 };
	unsigned v;

	if (!c->device)
		return;
	if (c->clock && !c->clock(c->device, SM, &v))
		out->clock_mhz = v;
	if (c->power && !c->power(c->device, &v))
		out->power_w = v / 1000.0;
	if (c->temperature && !c->temperature(c->device, DIE, &v))
		out->temperature_c = v;
}

void gpu_clocks_driver(const struct gpu_clocks *c, char *text, size_t n)
{
	if (c->device && c->driver && !c->driver(text, (unsigned)n))
		return;
	snprintf(text, n, "unknown");
}

void gpu_clocks_close(struct gpu_clocks *c)
{
	if (c && c->lib)
		dlclose(c->lib);
	free(c);
}
