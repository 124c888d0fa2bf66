/* study/evidence.c - what measured runs say of a prediction: weights, quantiles, neighbours */
#include "study/evidence.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/stats.h"
#include "study/evidence_file.h"
#include "study/traits.h"

/* One run, as a question sees it. */
struct seen {
	const struct run *run;
	double distance, weight;
};

struct source {
	bool silent, told;
	const struct seen *nearest; /* NULL: none of its runs may speak */
	double closeness, sum;
};

struct question {
	struct arena mem;
	size_t n;
	struct seen *seen;     /* [n] */
	struct source *source; /* [evidence's n_sources] */
};

static double distance(const struct ft_evidence *e, const struct ft_traits *a,
		       const struct ft_traits *b)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double d = e->distance[i] * trait_distance(&t[i], a, b);

		sum += d * d;
	}
	return sqrt(sum);
}

/* The weight w_i of each run (see the header), and of each source. A source that the
 * question's own group belongs to is left out. */
static void weigh(const struct ft_evidence *e, const struct ft_traits *of,
		  const char *group, struct question *q)
{
	q->seen = ARENA_ARRAY(&q->mem, e->n, struct seen);
	q->source = ARENA_ARRAY(&q->mem, e->n_sources, struct source);
	for (size_t i = 0; group && i < e->n_groups; i++)
		if (!strcmp(e->group[i].name, group))
			q->source[e->group[i].source].silent = true;
	for (size_t i = 0; i < e->n; i++) {
		const struct run *r = &e->run[i];
		struct source *from = &q->source[r->source];
		struct seen *s = &q->seen[q->n];

		if (from->silent || r->traits.unnamed != of->unnamed)
			continue;
		q->n++;
		s->run = r;
		s->distance = distance(e, of, &r->traits);
		s->weight = exp(-s->distance);
		from->sum += s->weight;
		if (!from->nearest || s->distance < from->nearest->distance)
			from->nearest = s;
		from->closeness = exp(-from->nearest->distance);
	}
	for (size_t i = 0; i < q->n; i++) {
		const struct source *from = &q->source[q->seen[i].run->source];

		q->seen[i].weight *= from->closeness / from->sum;
	}
}

/* By residual; equal ones as they stand in the file. */
static int by_residual(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->run->log_ratio != y->run->log_ratio)
		return x->run->log_ratio < y->run->log_ratio ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

/* Of sorted runs: each stands at the middle of its weight, linear in between. */
static double quantile(const struct question *q, double all, double level)
{
	double before = 0, at = 0, value = q->seen[0].run->log_ratio;

	for (size_t i = 0; i < q->n; i++) {
		const struct seen *s = &q->seen[i];
		double here = before + s->weight / 2;

		if (here >= level * all) {
			double r = s->run->log_ratio;

			return here > at && i ?
				       value + (r - value) * (level * all - at) /
						       (here - at) :
				       r;
		}
		before += s->weight;
		at = here;
		value = s->run->log_ratio;
	}
	return value;
}

/* Of a step, whatever runs say: of its kernels, its host, and its cards' clocks, which need not go
 * as far up as down. */
struct variance {
	double faster, slower;
};

static struct variance own_variance(const struct ft_traits *of)
{
	double both = of->kernel_spread_frac * of->kernel_spread_frac +
		      of->host_spread_frac * of->host_spread_frac;

	return (struct variance){
		.faster = both + of->clock_faster_frac * of->clock_faster_frac,
		.slower = both + of->clock_slower_frac * of->clock_slower_frac,
	};
}

/* The mean of the runs. */
static struct variance known_variance(const struct question *q, double all)
{
	struct variance sum = { 0 };

	for (size_t i = 0; i < q->n; i++) {
		struct variance of = own_variance(&q->seen[i].run->traits);

		sum.faster += q->seen[i].weight / all * of.faster;
		sum.slower += q->seen[i].weight / all * of.slower;
	}
	return sum;
}

/* P90 of what is less certain here than in the runs. */
static double unsure(double own, double known)
{
	return NORMAL_P90 * sqrt(fmax(0, own - known));
}

static void find_range(const struct ft_evidence *e, const struct ft_traits *of,
		       struct question *q, struct evidence_answer *a)
{
	double all = 0, squares = 0, nearest = DBL_MAX, n, level, median, more;
	struct variance own = own_variance(of), known;

	for (size_t i = 0; i < e->n_sources; i++) {
		if (!q->source[i].nearest)
			continue;
		all += q->source[i].closeness;
		squares += q->source[i].closeness * q->source[i].closeness;
		nearest = fmin(nearest, q->source[i].nearest->distance);
	}
	known = known_variance(q, all);
	n = all * all / squares;
	level = 0.1 * n / (n + e->missing_sources);
	more = 1 + e->widening * nearest;
	qsort(q->seen, q->n, sizeof(*q->seen), by_residual);
	median = quantile(q, all, 0.5);
	a->low = median - hypot(more * (median - quantile(q, all, level)),
				unsure(own.faster, known.faster));
	a->high = median + hypot(more * (quantile(q, all, 1 - level) - median),
				 unsure(own.slower, known.slower));
	a->low = fmin(a->low, 0);
	a->high = fmax(a->high, 0);
}

/* A number of the file has six digits: so much less is no difference. */
static const double ROUNDED = 1e-5;

/* How a run differs, the greatest differences first, as far as there is room. */
static void tell_differences(const struct ft_evidence *e, const struct ft_traits *of,
			     const struct ft_traits *run, struct ft_near *out)
{
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t), used = 0;
	bool told[64] = { false };

	for (int k = 0; k < 3; k++) {
		size_t worst = n;
		double most = ROUNDED;
		char text[64];
		int len;

		for (size_t i = 0; i < n; i++) {
			double d = e->distance[i] * trait_distance(&t[i], of, run);

			if (!told[i] && d > most) {
				most = d;
				worst = i;
			}
		}
		if (worst == n)
			return;
		told[worst] = true;
		if (t[worst].number)
			snprintf(text, sizeof(text),
				 ft_trait_number(&t[worst], run) < 1e6 ? "%.6g" :
									 "%.3g",
				 ft_trait_number(&t[worst], run));
		else
			snprintf(text, sizeof(text), "%s",
				 ft_trait_word(&t[worst], run));
		len = snprintf(out->differs + used, sizeof(out->differs) - used,
			       "%s%s %s", used ? ", " : "", t[worst].name, text);
		if (len < 0 || used + (size_t)len >= sizeof(out->differs)) {
			out->differs[used] = '\0';
			return;
		}
		used += (size_t)len;
	}
}

/* The nearest run of each of the nearest sources. */
static void find_nearest(const struct ft_evidence *e, const struct ft_traits *of,
			 struct question *q, struct evidence_answer *a)
{
	while (a->n_nearest < FT_NEAREST) {
		struct source *best = NULL;
		struct ft_near *out = &a->nearest[a->n_nearest];

		for (size_t i = 0; i < e->n_sources; i++)
			if (q->source[i].nearest && !q->source[i].told &&
			    (!best ||
			     q->source[i].nearest->distance < best->nearest->distance))
				best = &q->source[i];
		if (!best)
			return;
		*out = (struct ft_near){
			.id = best->nearest->run->id,
			.source = e->source[best->nearest->run->source],
			.error_frac = exp(-best->nearest->run->log_ratio) - 1,
			.distance = best->nearest->distance,
		};
		tell_differences(e, of, &best->nearest->run->traits, out);
		best->told = true;
		a->n_nearest++;
	}
}

bool evidence_ask(const struct ft_evidence *e, const struct ft_traits *of,
		  const char *group, struct evidence_answer *a, struct ft_error *err)
{
	struct question q = { 0 };
	struct evidence_answer out = { 0 };

	weigh(e, of, group, &q);
	if (!q.n) {
		arena_release(&q.mem);
		return ft_fail(err, NULL,
			       "study/%s.csv has no measured run that could say "
			       "how far a prediction is off: run `make residuals`",
			       of->unnamed ? "residuals-unnamed" : "residuals");
	}
	for (size_t i = 0; i < q.n; i++) {
		const struct ft_traits *t = &q.seen[i].run->traits;

		out.gpu_measured |= !strcmp(t->gpu, of->gpu);
		out.stack_measured |= !strcmp(t->stack, of->stack);
		out.attention_measured |= !strcmp(t->attention, of->attention);
	}
	find_nearest(e, of, &q, &out);
	find_range(e, of, &q, &out); /* last: it sorts them */
	arena_release(&q.mem);
	*a = out;
	return true;
}
