/*
 * sim/clocks.c - the clock of each class of ranks under the card's power limit
 *
 * Products and attention run into the card's power limit, which holds its mean power. In
 * units of the limit they ask for g at the full clock, memory-bound kernels take m, and a
 * card that waits takes w. With d, o and 1 - d - o the shares of the time of these three,
 * and power as clock^e, the clock c is that of
 *
 *	d g c^e + o m + (1 - d - o) w = 1,  g = sustained^-e
 *
 * Alone (d = 1) c is the sustained rate; where all ask for less than 1 it is 1.
 * Source: 8192^3 in bf16 beside copies on an H100: at d = 0.9, 0.75, 0.6, 0.45, 0.3
 * measured 0.870, 0.881, 0.944, 0.992, 1.000, this 0.874, 0.897, 0.930, 0.981, 1.
 *
 * A card has not saved more in a long wait than in one of its limit's window, which the
 * part's `limit_window` is: behind it products run at the full clock for some 50 ms, and
 * then as if they had not waited. Source: bursts of products parted by waits, on an H100
 * (measurements/probes/h100-2026-11-25-bursts-unseen.jsonl.gz). So the time of these shares is what a
 * class's kernels take, L, and of each wait the window at most.
 *
 * How long a stage of a pipeline waits is known before the step is run: for the slowest
 * stage before each of its n receives, (max L - L) / n, and while the pipeline is filled and
 * drained, with b its share, b mean L in two waits.
 *
 * Limit: what waits for collectives that nothing hides, and for the host, is not counted. m and w are shares
 * of the limit, whatever it is; products ask for the same watts under any (hw/cluster.c).
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "sim/job.h"

/* What a class's kernels take in a step, in bursts; how often it receives. */
struct load {
	double products, sustained, all; /* attention is among products */
	double receives;
};

static bool receives(const struct ft_segment *seg)
{
	for (size_t j = 0; j < seg->n_ops; j++)
		if (seg->op[j].stream == FT_STREAM_RECV_FORWARD ||
		    seg->op[j].stream == FT_STREAM_RECV_BACKWARD)
			return true;
	return false;
}

static struct load load_of(const struct job *s, size_t class, const struct clocks *t,
			   double *count)
{
	const struct ft_graph *g = s->graph;
	struct load sum = { .products = 0 };

	memset(count, 0, g->n_works * sizeof(*count));
	for (size_t i = 0; i < g->rank_class[class].n_calls; i++) {
		const struct ft_call *call = &g->rank_class[class].call[i];
		const struct ft_segment *seg = &g->segment[call->segment];

		for (size_t j = 0; j < seg->n_ops; j++)
			count[seg->op[j].work] += call->repeat;
		if (receives(seg))
			sum.receives += call->repeat;
	}
	for (size_t i = 0; i < g->n_works; i++) {
		enum ft_work_kind kind = g->work[i].kind;

		if (kind == FT_GEMM || kind == FT_ATTENTION) {
			sum.products += count[i] * t[i].burst_s;
			sum.sustained += count[i] * t[i].sustained_s;
		}
		if (!ft_work_is_host_copy(&g->work[i]))
			sum.all += count[i] * t[i].burst_s;
	}
	return sum;
}

double job_clock_fall(const struct ft_cluster *c, double products, double others,
		      double slower)
{
	const struct ft_part *gpu = ft_parts_gpu(c->parts);
	double e = gpu->clock_exponent.value;
	double idle = fmin(1, c->gpu->idle_w.value / c->gpu->limit_w.value);
	double memory = idle + (1 - idle) * gpu->memory_frac.value;
	double waiting = idle + (1 - idle) * gpu->waiting_frac.value;
	double left = 1 - others * memory - (1 - products - others) * waiting;
	double asked = products * pow(slower, e);

	return slower > 1 && asked > left ?
		       (pow(asked / left, 1 / e) - 1) / (slower - 1) :
		       0;
}

void job_set_clock(struct job *s, size_t class, const struct clocks *t, double fall)
{
	for (size_t i = 0; i < s->graph->n_works; i++)
		if (s->graph->work[i].kind != FT_COMMUNICATION)
			s->timing[class][i].duration =
				ft_ps_from_s(t[i].burst_s +
					     fall * (t[i].sustained_s - t[i].burst_s));
}

static bool same_load(const struct load *a, const struct load *b)
{
	return !memcmp(a, b, sizeof(*a));
}

double job_filling_s(const struct ft_part *gpu)
{
	return 2 * gpu->limit_window_s.value;
}

/* Of a class's step: what its kernels take, and what of its waits the limit averages over.
 * longest: the slowest stage's; bubble: what filling and draining take. */
static double averaged_s(const struct job *s, const struct load *l, double longest,
			 double bubble)
{
	const struct ft_part *gpu = ft_parts_gpu(s->cluster->parts);
	double waits = fmax(1, l->receives) * gpu->limit_window_s.value;

	return l->all + fmin(longest - l->all, waits) +
	       fmin(bubble, job_filling_s(gpu));
}

void job_mix_clocks(struct job *s, const struct clocks *t)
{
	const struct ft_graph *g = s->graph;
	double *count = ARENA_ARRAY(s->mem, g->n_works, double), longest = 0, sum = 0;
	struct load *load = ARENA_ARRAY(s->mem, g->n_classes, struct load);

	for (size_t c = 0; c < g->n_classes; c++) {
		load[c] = c && g->rank_class[c].call == g->rank_class[c - 1].call ?
				  load[c - 1] :
				  load_of(s, c, t, count);
		longest = fmax(longest, load[c].all);
		sum += load[c].all / (double)g->n_classes;
	}
	for (size_t c = 0; c < g->n_classes; c++) {
		const struct load *l = &load[c];
		double of = averaged_s(s, l, longest, g->bubble_frac * sum);

		if (c && !s->network && same_load(l, l - 1)) {
			s->timing[c] = s->timing[c - 1];
			continue;
		}
		if (c)
			s->timing[c] =
				ARENA_ARRAY(s->mem, g->n_works, struct work_timing);
		if (c)
			memcpy(s->timing[c], s->timing[0],
			       g->n_works * sizeof(struct work_timing));
		job_set_clock(s, c, t,
			      l->products > 0 ?
				      job_clock_fall(s->cluster, l->products / of,
						     (l->all - l->products) / of,
						     l->sustained / l->products) :
				      0);
	}
}
