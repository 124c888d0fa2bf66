/* cost/power.c - GPUs by what they do, all else as its table of parts says */
#include "cost/power.h"

#include <math.h>

static double share(double frac)
{
	return frac > 0 ? fmin(1, frac) : 0;
}

/* Of the way from idle to the limit: products and attention all of it. */
static double gpu_frac(const struct ft_part *gpu, const struct ft_throughput *t)
{
	double busy = share(t->busy_frac), memory = fmin(busy, share(t->memory_frac));
	double waiting = fmin(1 - busy, share(t->waiting_frac));

	return busy - memory + memory * gpu->memory_frac.value +
	       waiting * gpu->waiting_frac.value;
}

double power_it_w(const struct ft_cluster *c, const struct ft_throughput *t)
{
	double idle_w = c->gpu->idle_w.value, limit_w = c->gpu->limit_w.value;
	double spares_idle = limit_w > 0 ? idle_w / limit_w : 0; /* hosts likewise */
	double sum = ft_parts_typical_w(c->parts) +
		     ft_parts_spares_w(c->parts) * spares_idle;

	for (size_t i = 0; i < c->parts->n; i++) {
		const struct ft_part_line *l = &c->parts->line[i];

		if (l->gpu)
			sum += (double)l->count *
			       (idle_w + (limit_w - idle_w) * gpu_frac(l->part, t));
	}
	return sum;
}

double power_provisioned_w(const struct ft_cluster *c)
{
	return ft_parts_w(c->parts) + ft_parts_gpus_w(c->parts) +
	       ft_parts_spares_w(c->parts);
}
