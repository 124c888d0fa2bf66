/*
 * sim/clocks.c - the clock of each class of ranks under the card's power limit
 *
 * Products and attention run into the card's power limit, which holds its mean power. In
 * units of the limit products ask for g at the clock of their bursts, which is 1; kernels bound
 * by memory take m whatever the clock, each its own where the profile has it (`power.kernels`); a
 * card that waits takes w. With d, o and 1 - d - o the shares of the time of these three, and
 * power as clock^e, the clock c is that of
 *
 *	d g c^e + o m + (1 - d - o) w = 1,  g = sustained^-e
 *
 * Alone (d = 1) c is the sustained rate; where all ask for less than 1 bursts keep their clock.
 * Source: 8192^3 in bf16 beside copies on an H100: at d = 0.9, 0.75, 0.6, 0.45, 0.3
 * measured 0.870, 0.881, 0.944, 0.992, 1.000, this 0.874, 0.897, 0.930, 0.981, 1.
 *
 * Attention asks for less, as its rate r is below that of products, and so its bursts run at a
 * higher clock, b = `power.attention_clock`. With its share a it adds
 *
 *	a g min(1, r / (gemm.efficiency peak)) c^e
 *
 * to what is asked, c is b at most, and attention takes b / c times its burst, while products
 * are slower from c = 1 down. Source: cuDNN's attention alone and beside products and copies on two H100 is met
 * within 5 %, 2 % in the mean (tests/test_measured.c); FlashAttention 2 and heads of 64 ask for
 * 0.5 to 0.6 of what products do, cuDNN for 0.73 to 0.80. Where a profile has no clock of
 * attention it counts among products.
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
#include "sim/kernel.h"

/* A class's kernels in a step; how often it receives. */
struct load {
	struct job_load of;
	double all, receives;
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
	struct load sum = { .all = 0 };

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
		if (ft_work_is_host_copy(&g->work[i]))
			continue;
		job_load_add(&sum.of, g->work[i].kind, &t[i], count[i]);
	}
	sum.all = sum.of.products + sum.of.attention + sum.of.others;
	return sum;
}

void job_load_add(struct job_load *to, enum ft_work_kind kind, const struct clocks *of,
		  double times)
{
	double burst = times * of->burst_s;

	if (kind == FT_MEMORY_BOUND) {
		to->others += burst;
		to->drawn += burst * of->asks;
	} else if (of->asks > 0) {
		to->attention += burst;
		to->asked += burst * of->asks;
	} else if (kind != FT_COMMUNICATION) {
		to->products += burst;
		to->sustained += times * of->sustained_s;
	}
}

/* Of the limit, where so much of what lies above idle is drawn. */
static double share_of_limit(const struct ft_cluster *c, double above_idle)
{
	double idle = fmin(1, c->gpu->idle_w.value / c->gpu->limit_w.value);

	return idle + (1 - idle) * above_idle;
}

double job_waiting_asks(const struct ft_cluster *c)
{
	return share_of_limit(c, ft_parts_gpu(c->parts)->waiting_frac.value);
}

static double memory_asks(const struct ft_cluster *c, const struct ft_work *w)
{
	const struct ft_memory_curve *curve =
		ft_gpu_memory_curve(c->gpu, w->memory.kernel, w->memory.warm);

	return curve->w.value > 0 ?
		       fmin(1, curve->w.value / c->gpu->limit_w.value) :
		       share_of_limit(c, ft_parts_gpu(c->parts)->memory_frac.value);
}

double job_asks(const struct ft_cluster *c, const struct ft_work *w, double burst_s)
{
	const struct ft_gpu *gpu = c->gpu;
	double most = gpu->peak_flop_per_s[w->dtype].value *
		      gpu->gemm_efficiency[w->dtype].value;
	double rate = gpu->sustained[w->dtype].value;

	if (w->kind == FT_MEMORY_BOUND)
		return memory_asks(c, w);
	if (!kernel_has_own_clock(gpu, w) || !(most > 0) || !(rate > 0))
		return 0;
	return fmin(1, ft_work_flop(w) / burst_s / most) *
	       pow(rate, -ft_parts_gpu(c->parts)->clock_exponent.value);
}

struct job_clock job_clock_of(const struct ft_cluster *c, const struct job_load *l,
			      double of_s)
{
	double e = ft_parts_gpu(c->parts)->clock_exponent.value;
	double slower = l->products > 0 ? l->sustained / l->products : 1;
	double waits = of_s - l->products - l->attention - l->others;
	double left = of_s - l->drawn - waits * job_waiting_asks(c);
	double products = l->products * pow(slower, e);
	struct job_clock at = { fmax(1, c->gpu->attention_clock.value), 0 };

	if (products + l->asked > left)
		at.clock = pow(left / (products + l->asked), 1 / e);
	else if (l->asked > 0)
		at.clock = fmin(at.clock, pow((left - products) / l->asked, 1 / e));
	if (at.clock < 1 && slower > 1)
		at.fall = (1 / at.clock - 1) / (slower - 1);
	return at;
}

/* Of attention's fall, from its bursts' clock to that which products hold. */
static double attention_fall(const struct ft_gpu *gpu, enum ft_dtype dtype,
			     double clock)
{
	double burst = gpu->attention_clock.value, rate = gpu->sustained[dtype].value;

	return rate > 0 && rate < burst && clock < burst ?
		       fmin(1, (burst / clock - 1) / (burst / rate - 1)) :
		       0;
}

void job_set_clock(struct job *s, size_t class, const struct clocks *t,
		   struct job_clock at)
{
	for (size_t i = 0; i < s->graph->n_works; i++) {
		const struct ft_work *w = &s->graph->work[i];
		const struct ft_gpu *gpu = s->cluster->gpu;
		double fall = kernel_has_own_clock(gpu, w) ?
				      attention_fall(gpu, w->dtype, at.clock) :
				      at.fall;

		if (w->kind != FT_COMMUNICATION)
			s->timing[class][i].duration =
				ft_ps_from_s(t[i].burst_s +
					     fall * (t[i].sustained_s - t[i].burst_s));
	}
}

/* Of products; attention is taken to slow down as they do. */
static double pace_of(const struct job_load *l, struct job_clock at)
{
	double takes = l->products + at.fall * (l->sustained - l->products);

	return l->products > 0 && takes > 0 ? l->products / takes : 1;
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

/* What a class's kernels take at a clock. */
static double takes_s(const struct job *s, const struct load *l, struct job_clock at)
{
	double attention = fmax(1, s->cluster->gpu->attention_clock.value) / at.clock;

	return l->of.products + at.fall * (l->of.sustained - l->of.products) +
	       attention * l->of.attention + l->of.others;
}

/* As t, where products hold the highest or the lowest rate that their range has. */
static const struct clocks *held_by_others(const struct job *s, const struct clocks *t,
					   bool highest)
{
	struct clocks *of = ARENA_ARRAY(s->mem, s->graph->n_works, struct clocks);
	double e = ft_parts_gpu(s->cluster->parts)->clock_exponent.value;

	for (size_t i = 0; i < s->graph->n_works; i++) {
		const struct ft_work *w = &s->graph->work[i];
		const struct ft_number *rate = &s->cluster->gpu->sustained[w->dtype];
		double other = highest ? rate->high : rate->low;
		double lost = 1 / fmin(1, rate->value) - 1,
		       loses = 1 / fmin(1, other) - 1;
		double falls = t[i].sustained_s - t[i].burst_s;

		of[i] = t[i];
		if (w->kind == FT_MEMORY_BOUND || w->kind == FT_COMMUNICATION ||
		    !(rate->value > 0) || !(other > 0))
			continue;
		of[i].sustained_s = t[i].burst_s + (lost > 0 ? falls * loses / lost :
							       loses * t[i].burst_s);
		of[i].asks *= pow(rate->value / other, e);
	}
	return of;
}

/* A class's kernels on cards that hold the highest or the lowest rate, over what they take here. */
static double on_other_cards(const struct job *s, const struct clocks *t, size_t class,
			     double of_s, bool highest)
{
	double *count = ARENA_ARRAY(s->mem, s->graph->n_works, double), takes, other;
	struct load l = load_of(s, class, t, count);

	takes = takes_s(s, &l, job_clock_of(s->cluster, &l.of, of_s));
	l = load_of(s, class, held_by_others(s, t, highest), count);
	other = takes_s(s, &l, job_clock_of(s->cluster, &l.of, of_s));
	return takes > 0 ? other / takes : 1;
}

void job_mix_clocks(struct job *s, const struct clocks *t)
{
	const struct ft_graph *g = s->graph;
	double *count = ARENA_ARRAY(s->mem, g->n_works, double), longest = 0, sum = 0;
	size_t busiest = 0;
	struct load *load = ARENA_ARRAY(s->mem, g->n_classes, struct load);

	s->pace = ARENA_ARRAY(s->mem, g->n_classes, double);
	for (size_t c = 0; c < g->n_classes; c++) {
		load[c] = c && g->rank_class[c].call == g->rank_class[c - 1].call ?
				  load[c - 1] :
				  load_of(s, c, t, count);
		if (load[c].all > load[busiest].all)
			busiest = c;
		longest = load[busiest].all;
		sum += load[c].all / (double)g->n_classes;
	}
	for (size_t c = 0; c < g->n_classes; c++) {
		const struct load *l = &load[c];
		double of = averaged_s(s, l, longest, g->bubble_frac * sum);
		struct job_clock at = job_clock_of(s->cluster, &l->of, of);

		s->pace[c] = pace_of(&l->of, at);
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
		job_set_clock(s, c, t, at);
	}
	longest = averaged_s(s, &load[busiest], longest, g->bubble_frac * sum);
	s->fast_card = on_other_cards(s, t, busiest, longest, true);
	s->slow_card = on_other_cards(s, t, busiest, longest, false);
}
