/* cost/power.c - GPUs by what they do, all else as its table of parts says */
#include "cost/power.h"

#include <math.h>

static double share(double frac)
{
	return frac > 0 ? fmin(1, frac) : 0;
}

/* Of the way from idle to the limit, which products and attention would pass: at the full
 * clock they ask for the limit / sustained^e. */
static double gpu_frac(const struct ft_gpu *gpu, const struct ft_part *part,
		       const struct ft_throughput *t)
{
	double busy = share(t->busy_frac), memory = fmin(busy, share(t->memory_frac));
	double waiting = fmin(1 - busy, share(t->waiting_frac));
	double idle_w = gpu->idle_w.value, limit_w = gpu->limit_w.value;
	double asked_w = limit_w * pow(gpu->sustained[FT_BF16].value,
				       -part->clock_exponent.value);
	double products = fmax(1, (asked_w - idle_w) / (limit_w - idle_w));

	return fmin(1, (busy - memory) * products + memory * part->memory_frac.value +
			       waiting * part->waiting_frac.value);
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
			       (idle_w +
				(limit_w - idle_w) * gpu_frac(c->gpu, l->part, t));
	}
	return sum;
}

double power_provisioned_w(const struct ft_cluster *c)
{
	return ft_parts_w(c->parts) + ft_parts_gpus_w(c->parts) +
	       ft_parts_spares_w(c->parts);
}
