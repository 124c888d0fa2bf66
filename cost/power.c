/* cost/power.c - GPUs by what they do, all else as its table of parts says */
#include "cost/power.h"

#include <math.h>

static double share(double frac)
{
	return frac > 0 ? fmin(1, frac) : 0;
}

static void set_gpu(struct ft_power *p, const struct ft_gpu *gpu,
		    const struct ft_part_line *line)
{
	p->gpus += (double)(line->count - line->idle);
	p->idle_gpus += (double)line->idle;
	p->idle_w = gpu->idle_w.value;
	p->limit_w = gpu->limit_w.value;
	p->sustained_frac = gpu->sustained[FT_BF16].value;
	p->memory_frac = line->part->memory_frac.value;
	p->waiting_frac = line->part->waiting_frac.value;
	p->clock_exponent = line->part->clock_exponent.value;
}

struct ft_power power_of(const struct ft_cluster *c, const struct ft_throughput *t)
{
	double busy = share(t->busy_frac), memory = fmin(busy, share(t->memory_frac));
	double slowed = fmin(busy - memory, share(t->slowed_frac));
	double waits = fmin(1 - busy, share(t->waiting_frac));
	double bubbles = fmin(waits, share(t->bubble_frac));
	struct ft_power p = {
		.products = busy - memory - slowed,
		.copies = memory,
		.waits = waits - bubbles,
		.bubbles = bubbles,
		.others_w = ft_parts_w(c->parts),
		.others_typical_w = ft_parts_typical_w(c->parts),
		.spares_w = ft_parts_spares_w(c->parts),
	};

	for (size_t i = 0; i < c->parts->n; i++)
		if (c->parts->line[i].gpu)
			set_gpu(&p, c->gpu, &c->parts->line[i]);
	return p;
}

/* Of the way from idle to the limit, which products and attention would pass: at the full
 * clock they ask for the limit / sustained^e, which is less where sustained is above 1. */
static double gpu_frac(const struct ft_power *p)
{
	double asked_w = p->limit_w * pow(p->sustained_frac, -p->clock_exponent);
	double products = fmax(0, (asked_w - p->idle_w) / (p->limit_w - p->idle_w));

	return fmin(1 - p->bubbles, p->products * products +
					    p->copies * p->memory_frac +
					    p->waits * p->waiting_frac) +
	       p->bubbles * p->waiting_frac;
}

double power_of_gpu_w(const struct ft_power *p)
{
	return p->idle_w + (p->limit_w - p->idle_w) * gpu_frac(p);
}

/* A GPU somewhere between idle and its limit; spares idle as GPUs do, their hosts too. */
static double drawn_w(const struct ft_power *p, double gpu)
{
	double spares_idle = p->limit_w > 0 ? p->idle_w / p->limit_w : 0;

	return p->gpus * (p->limit_w - p->idle_w) * gpu +
	       (p->gpus + p->idle_gpus) * p->idle_w +
	       fmin(p->others_w, p->others_typical_w) + p->spares_w * spares_idle;
}

void power_set(struct ft_deal *d)
{
	const struct ft_power *p = &d->power;

	d->it_w = drawn_w(p, p->gpus > 0 ? gpu_frac(p) : 0);
	d->idle_w = drawn_w(p, 0);
	d->provisioned_w =
		(p->gpus + p->idle_gpus) * p->limit_w + p->others_w + p->spares_w;
}
