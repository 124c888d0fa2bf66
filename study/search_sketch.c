/* study/search_sketch.c - loose bounds: what is the same of many plans is timed once */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "study/search.h"
#include "study/traits.h"

/* What a sketch depends on: the places on all axes but those of the pipeline, of host memory
 * and of how replicas share weights; of this, whether a rank has a shard for itself, and
 * whether a pipeline keeps weights whole. */
struct family {
	uint8_t at[AXES];
	bool used;
	struct ft_sketched *sketched; /* NULL: it has none */
};

struct sketches {
	struct family *slot;
	size_t n, cap; /* cap: a power of two */
};

enum { FIRST_FAMILIES = 256 };

struct sketches *sketches_new(void)
{
	struct sketches *s = allocated(calloc(1, sizeof(*s)));

	s->slot = allocated(calloc(FIRST_FAMILIES, sizeof(*s->slot)));
	s->cap = FIRST_FAMILIES;
	return s;
}

void sketches_free(struct sketches *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->cap; i++)
		ft_sketched_free(s->slot[i].sketched);
	free(s->slot);
	free(s);
}

static size_t hash_of(const uint8_t at[AXES])
{
	uint64_t h = 14695981039346656037u;

	for (int k = 0; k < AXES; k++)
		h = (h ^ at[k]) * 1099511628211u;
	return (size_t)(h ^ h >> 32);
}

/* Where a candidate's twins are noted; what another had there is gone. */
static struct twin *twin_of(struct worker *w, const struct candidate *c)
{
	struct twin *t;
	uint8_t at[AXES];

	memcpy(at, c->at, sizeof(at));
	at[AXIS_OFFLOAD] = 0;
	t = &w->twin[hash_of(at) % TWINS];
	if (memcmp(t->at, at, sizeof(at)) != 0) {
		*t = (struct twin){ .sketched = false };
		memcpy(t->at, at, sizeof(at));
	}
	return t;
}

/* What a candidate holds all through the step, found once for those that hold the same. */
static struct fullness held_of(struct worker *w, const struct candidate *c,
			       const struct ft_plan *p)
{
	struct weight *x;
	uint8_t at[AXES];

	memcpy(at, c->at, sizeof(at));
	at[AXIS_RECOMPUTE] = at[AXIS_MODULES] = at[AXIS_LAYERS] = at[AXIS_OFFLOAD] = 0;
	x = &w->weight[hash_of(at) % TWINS];
	if (!x->known || memcmp(x->at, at, sizeof(at)) != 0) {
		*x = (struct weight){ .known = true, .held = search_held(w->open, p) };
		memcpy(x->at, at, sizeof(at));
	}
	return x->held;
}

static struct family *place(const struct sketches *s, const uint8_t at[AXES])
{
	size_t i;

	for (i = hash_of(at) & (s->cap - 1);
	     s->slot[i].used && memcmp(s->slot[i].at, at, AXES) != 0;
	     i = (i + 1) & (s->cap - 1))
		;
	return &s->slot[i];
}

static void grow(struct sketches *s)
{
	struct sketches old = *s;

	s->cap *= 2;
	s->slot = allocated(calloc(s->cap, sizeof(*s->slot)));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i].used)
			*place(s, old.slot[i].at) = old.slot[i];
	free(old.slot);
}

static struct ft_sketched *sketch(struct worker *w, const struct ft_plan *p)
{
	const struct ft_scenario *s = w->open;
	struct ft_sim_job job = { .cluster = s->cluster,
				  .stack = s->stack,
				  .ccl = s->ccl,
				  .start = p->step_start };
	struct ft_error
		err; /* a plan that cannot be built says so when it is bounded */
	struct ft_sketch *k = ft_sketch_build(s->model, p, s->stack, &err);
	struct ft_sketched *timed = k ? ft_sim_sketch(&job, k, w->memo, &err) : NULL;

	ft_sketch_free(k);
	return timed;
}

static const struct ft_sketched *sketched_of(struct worker *w,
					     const struct candidate *c,
					     const struct ft_plan *p)
{
	static const enum axis left_out[] = { AXIS_PP,	  AXIS_VPP,    AXIS_ZERO_GROUP,
					      AXIS_SHARD, AXIS_LAYERS, AXIS_OFFLOAD };
	struct sketches *s = w->sketches;
	uint8_t at[AXES];
	struct family *f;

	memcpy(at, c->at, sizeof(at));
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		at[left_out[i]] = 0;
	if (p->sharding == FT_FSDP || p->sharding == FT_HSDP)
		at[AXIS_SHARD] =
			(uint8_t)((p->shard == 1) + 2 * (ft_plan_expert_shard(p) == 1) +
				  4 * (p->unsharded_pipeline && p->pp > 1));
	at[AXIS_SCHEDULE] = p->pp > 1 && ft_schedule_splits(p->schedule);
	f = place(s, at);
	if (f->used)
		return f->sketched;
	memcpy(f->at, at, sizeof(at));
	f->used = true;
	f->sketched = sketch(w, p);
	if (2 * ++s->n > s->cap) {
		grow(s);
		f = place(s, at);
	}
	return f->sketched;
}

/* Dollars per million tokens at best: as fast as the bound, with GPUs that are busy for no
 * longer than their kernels take alone, at the power of those bound by memory, and idle
 * else. */
static double usd_bound(const struct worker *w, const struct ft_bound *of,
			struct ft_error *err)
{
	const struct ft_scenario *s = w->open;
	double step_s = ft_s_from_ps(of->step), busy = of->busy_s / step_s;
	double rate =
		(double)s->plan->global_batch * (double)s->plan->sequence / step_s;
	struct ft_purchase purchase = { s->cluster, s->prices, w->bom, &s->terms,
					true };
	struct ft_throughput best = { .tokens_per_s = rate,
				      .low = rate,
				      .high = rate,
				      .busy_frac = busy,
				      .memory_frac = busy,
				      .checkpoint_bytes = checkpoint_bytes(s) };
	struct ft_cost cost;

	return ft_cost_compute(&purchase, &best, &cost, err) ?
		       cost.usd_per_million_tokens :
		       0;
}

double search_rank_bound(const struct worker *w, const struct ft_bound *bound,
			 struct ft_error *err)
{
	return w->job->search->rank_by == FT_RANK_USD ? usd_bound(w, bound, err) :
							ft_s_from_ps(bound->step);
}

void search_sketch(struct worker *w, struct candidate *c)
{
	struct twin *twin = twin_of(w, c);
	const struct ft_sketched *of;
	struct ft_bound bound = { 0, 0 };
	struct ft_error err;
	struct ft_plan p;
	bool built = space_plan(&w->job->space, c, &p, w->layers);

	if (built) {
		struct fullness held = held_of(w, c, &p);

		c->memory = (float)held.frac;
		c->of_node = held.of_node;
	}
	if (search_wont_fit(c)) {
		c->least = INFINITY; /* sorted last: bounded only where nothing fits */
		return;
	}
	c->least = twin->least;
	if (twin->sketched)
		return;
	of = built ? sketched_of(w, c, &p) : NULL;
	if (of)
		bound = ft_sketched_bound(of, &p);
	c->least = bound.step > 0 ? search_rank_bound(w, &bound, &err) : 0;
	twin->sketched = true;
	twin->least = c->least;
}
