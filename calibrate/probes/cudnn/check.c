/*
 * calibrate/probes/cudnn/check.c - do cuDNN's heuristics accept the attention graphs?
 *
 * Needs cuDNN and CUDA's stub driver, no GPU: the device is described in JSON
 * (tests/cudnn_h200.json).
 */
#include <stdio.h>

#include "calibrate/probes/cudnn/cudnn.h"

static int engines_for(const struct attention_problem *p, const char *json, size_t n)
{
	struct cudnn_graph g;
	int engines = 0;

	if (!cudnn_attention(&g, p) || !cudnn_plan(&g, NULL, json, n, &engines))
		fprintf(stderr, "%s: %s\n", g.failed ? g.failed : "no engine",
			cudnnGetErrorString(g.status));
	printf("%s %s %s h%d/%d: %d operations, %d engines\n", p->fp8 ? "fp8" : "bf16",
	       p->backward ? "backward" : "forward", p->causal ? "causal" : "full",
	       (int)p->heads, (int)p->kv_heads, g.n_ops, engines);
	cudnn_drop(&g);
	return engines;
}

int main(int argc, char **argv)
{
	char json[4096];
	FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
	size_t n = in ? fread(json, 1, sizeof(json), in) : 0;
	int least = 1;

	if (!n) {
		fprintf(stderr, "usage: probe_cudnn_check DEVICE.json\n");
		return 64;
	}
	fclose(in);
	for (int i = 0; i < 16; i++) {
		struct attention_problem p = { 2,   32,	   i & 4 ? 32 : 8, 4096,
					       128, i & 1, i & 2,	   i & 8 };
		int found = engines_for(&p, json, n);

		if (found < least)
			least = found;
	}
	return least > 0 ? 0 : 1;
}
