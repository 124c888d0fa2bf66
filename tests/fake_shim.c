/* tests/fake_shim.c - an attention shim that answers from the CPU: each output is the
 * query plus one; -DVERSION and -DNAME make it a wrong one (tests/test_probe_shim.sh) */
#include "calibrate/probes/attention_shim.h"

#ifndef VERSION
#define VERSION FT_SHIM_VERSION
#endif
#ifndef NAME
#define NAME "fake"
#endif

static int64_t workspace(const struct ft_shim_problem *p)
{
	return p->head_dim > 256 ? -1 : 64;
}

static int run(const struct ft_shim_problem *p)
{
	int64_t n = p->batch * p->sequence * p->heads * p->head_dim;
	const uint16_t *q = p->q;
	uint16_t *o = p->o;

	if (p->workspace_bytes < 64)
		return 7;
	for (int64_t i = 0; i < n; i++)
		o[i] = (uint16_t)(q[i] + 1);
	return 0;
}

const struct ft_shim *ft_attention_shim(void)
{
	static const struct ft_shim shim = { VERSION, NAME, "Fake 1.2", workspace,
					     run };

	return &shim;
}
