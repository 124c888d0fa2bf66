/* sim/rates.c - factors of interference, then max-min over port and NIC */
#include "sim/rates.h"

#include <math.h>

#include "sim/engine.h"

void running_begin(struct running *r, const struct cost *c, int stream,
		   bool optimizer, ft_ps now)
{
	*r = (struct running){ .left = (double)c->duration, .rate = 1,
			       .at = now, .port_frac = c->port_frac,
			       .nic_frac = c->nic_frac, .beside = c->beside,
			       .stream = (uint8_t)stream,
			       .optimizer = optimizer };
}

ft_ps running_change(struct running *r, ft_ps now, double rate)
{
	r->left -= (double)(now - r->at) * r->rate;
	if (r->left < 0)
		r->left = 0;
	r->at = now;
	r->rate = rate;
	return now + (ft_ps)ceil(r->left / rate);
}

static bool is_collective(const struct running *r)
{
	return r->stream >= FT_STREAM_GATHER;
}

/* Progressive filling: raise all rates together; when a resource is full, freeze
 * those that use it. */
static void share(struct running *const *run, int n, double *rate)
{
	bool fixed[FT_STREAMS] = { false };
	double room[2] = { 1, 1 };

	for (;;) {
		double use[2] = { 0, 0 }, level = INFINITY;
		int full = -1;

		for (int i = 0; i < n; i++)
			if (!fixed[i]) {
				use[0] += run[i]->port_frac;
				use[1] += run[i]->nic_frac;
			}
		for (int k = 0; k < 2; k++)
			if (use[k] > 0 && room[k] / use[k] < level) {
				level = room[k] / use[k];
				full = k;
			}
		if (full < 0 || level >= 1)
			return; /* the rest run at their own rate */
		for (int i = 0; i < n; i++) {
			double f[2] = { run[i]->port_frac, run[i]->nic_frac };

			if (fixed[i] || f[full] <= 0)
				continue;
			fixed[i] = true;
			rate[i] = level;
			room[0] -= level * f[0];
			room[1] -= level * f[1];
		}
	}
}

void rates_of(struct running *const *run, int n, double copy_beside_gemm,
	      double *rate)
{
	bool compute = false, collective = false;

	for (int i = 0; i < n; i++) {
		compute |= run[i]->stream == FT_STREAM_COMPUTE;
		collective |= is_collective(run[i]);
		rate[i] = 1;
	}
	share(run, n, rate);
	for (int i = 0; i < n; i++) {
		if (run[i]->stream == FT_STREAM_COMPUTE && collective)
			rate[i] /= run[i]->beside;
		else if (run[i]->stream == FT_STREAM_COPY && compute)
			rate[i] /= copy_beside_gemm;
		else if (is_collective(run[i]) && compute)
			rate[i] /= run[i]->beside;
	}
}
