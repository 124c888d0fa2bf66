/*
 * tests/hip_on_cpu/main.c - cells of the GPU source, compiled for HIP and run on the CPU:
 * everything but the GPU's own libraries and kernels is as it is there
 *
 *   hip_on_cpu collective OP GPUS BYTES | attention IMPL PASS BATCH HEADS KV SEQ DIM MASK
 *
 * prints status and error; 0 when the cell is ok
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/backend.h"

const struct probe_backend *probe_backend_get(void);

static struct probe_cell cell_of(char **a, int n)
{
	struct probe_cell c = { .kind = PROBE_COLLECTIVE,
				.kernel = "",
				.dtype = "bf16",
				.layout = "",
				.impl = "",
				.pass = "" };
	int64_t v[6] = { 0 };

	for (int i = 2; i < n && i < 8; i++)
		v[i - 2] = strtoll(a[i], NULL, 10);
	if (!strcmp(a[0], "collective")) {
		c.kernel = a[1];
		c.gpus = v[0];
		c.bytes = v[1];
		return c;
	}
	c.kind = PROBE_ATTENTION;
	c.impl = a[1];
	c.pass = a[2];
	c.batch = v[1];
	c.heads = v[2];
	c.kv_heads = v[3];
	c.sequence = v[4];
	c.head_dim = v[5];
	c.causal = !strcmp(a[8], "causal");
	return c;
}

int main(int argc, char **argv)
{
	static const char *const words[] = { "ok",    "unsupported", "no-memory",
					     "wrong", "failed",	     "absent" };
	struct probe_method m = {
		.warm_up = 0, .least_reps = 1, .most_reps = 1, .cell_s = 1e-6, .seed = 1
	};
	const struct probe_backend *b = probe_backend_get();
	struct probe_time t = { .relative_error = -1 };
	struct probe_device d = { .devices = 0 };
	struct probe_session *s;
	struct probe_cell c;
	enum probe_status status;
	char why[512] = "";

	if (argc < 5 || (argv[1][0] == 'a' && argc < 10))
		return 64;
	c = cell_of(argv + 1, argc - 1);
	status = b->open(&s, 1, &d, why, sizeof(why));
	if (status == PROBE_OK) {
		status = b->run(s, &c, &m, &t, why, sizeof(why));
		b->close(s);
	}
	printf("%s %.2e %s; attention by %s (%s)\n", words[status], t.relative_error,
	       why, d.fused[0] ? d.fused : "nothing fused", d.attention);
	return status != PROBE_OK;
}
