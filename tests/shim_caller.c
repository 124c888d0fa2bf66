/* tests/shim_caller.c - loads the attention shim of a folder, as libft_hip.so does, and
 * runs it once: shim_caller FOLDER */
#include <stdio.h>

#include "calibrate/probes/gpu/shim.h"

int main(int argc, char **argv)
{
	uint16_t q[64], o[64] = { 0 }, scratch[32];
	struct ft_shim_problem p = { .batch = 1,
				     .heads = 2,
				     .kv_heads = 1,
				     .sequence = 4,
				     .head_dim = 8,
				     .q = q,
				     .o = o,
				     .workspace = scratch,
				     .workspace_bytes = sizeof(scratch) };
	const struct ft_shim *s;
	char why[512];
	int wrong = 0;

	s = shim_load(argc > 1 ? argv[1] : NULL, why, sizeof(why));
	if (!s) {
		fprintf(stderr, "%s\n", why[0] ? why : "no shim");
		return why[0] ? 1 : 2;
	}
	for (int i = 0; i < 64; i++)
		q[i] = (uint16_t)(3 * i);
	if (s->workspace(&p) != 64 || s->run(&p))
		return 3;
	for (int i = 0; i < 64; i++)
		wrong += o[i] != q[i] + 1;
	p.head_dim = 512;
	printf("%s, %s: %d wrong%s\n", s->name, s->library, wrong,
	       s->workspace(&p) < 0 ? ", 512 refused" : "");
	return wrong != 0;
}
