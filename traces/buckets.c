/*
 * traces/buckets.c - which layers' gradients are reduced together, and which weights gathered
 *
 * Gradients fill a bucket as backward passes come to their layers, and are reduced when it is
 * full, or at the end of a chunk. Experts, whose replicas are other ranks, have buckets of their
 * own. Megatron closes a bucket once it holds so many parameters; PyTorch's DDP before
 * it would hold more than so many bytes. Where layers differ, buckets do: what each holds is kept
 * in a table, whose numbers segments carry in their variants.
 */
#include <math.h>
#include <string.h>

#include "traces/sharding.h"

/* Megatron's rule: a bucket is closed once it holds 40 million parameters, or a
 * million for each replica. */
static double megatron_bucket(const struct builder *b)
{
	return fmax(40e6, 1e6 * (double)(b->plan->dp * b->plan->cp));
}

void set_buckets(struct builder *b)
{
	const struct ft_model *m = b->model;
	size_t n = (size_t)m->n_layers;

	b->unit = ARENA_ARRAY(b->mem, n, struct held);
	for (size_t l = 0; l < n; l++)
		b->unit[l] = l && !memcmp(&m->layer[l], &m->layer[l - 1],
					  sizeof(*m->layer)) ?
				     b->unit[l - 1] :
				     layer_held(b, (int64_t)l);
}

/* The number, from 1 on, of the bucket with so many parameters. */
static unsigned numbered(struct builder *b, double dense, double experts)
{
	size_t i = 0;

	while (i < b->n_buckets &&
	       (b->bucket[i].dense != dense || b->bucket[i].experts != experts))
		i++;
	if (i < b->n_buckets)
		return (unsigned)i + 1;
	if (b->n_buckets == b->bucket_cap)
		b->bucket = ARENA_GROW(b->mem, b->bucket, &b->bucket_cap);
	b->bucket[b->n_buckets++] = (struct held){ .dense = dense, .experts = experts };
	return (unsigned)b->n_buckets;
}

struct held bucket_of(const struct builder *b, unsigned variant)
{
	return b->bucket[variant / V_BUCKETS - 1];
}

static bool is_full(const struct builder *b, double held, double next)
{
	if (b->rules->bucket_bytes > 0)
		return gradient_width(b) * (held + next) > b->rules->bucket_bytes;
	return held >= megatron_bucket(b);
}

unsigned bucket_behind(struct builder *b, struct held *since, int64_t layer, bool edge)
{
	struct held next = edge ? (struct held){ 0 } : b->unit[layer - 1], full = { 0 };

	since->dense += b->unit[layer].dense;
	since->experts += b->unit[layer].experts;
	if (edge || is_full(b, since->dense, next.dense)) {
		full.dense = since->dense;
		since->dense = 0;
	}
	if (edge || is_full(b, since->experts, next.experts)) {
		full.experts = since->experts;
		since->experts = 0;
	}
	if (full.dense + full.experts <= 0)
		return 0;
	return V_BUCKET | V_BUCKETS * numbered(b, full.dense, full.experts);
}

/* Parameters from a layer on, up to the end of a chunk, that Megatron gathers together; *past: the
 * first layer that is not of them. */
static double filled(const struct builder *b, int64_t layer, int64_t end, bool experts,
		     int64_t *past)
{
	double held = 0;

	for (*past = layer; *past < end && held < megatron_bucket(b); ++*past)
		held += experts ? b->unit[*past].experts : b->unit[*past].dense;
	return held;
}

unsigned bucket_ahead(struct builder *b, struct ahead *ahead, int64_t layer,
		      int64_t end)
{
	double dense = 0, experts = 0;

	if (layer >= ahead->dense)
		dense = filled(b, layer, end, false, &ahead->dense);
	if (layer >= ahead->experts)
		experts = filled(b, layer, end, true, &ahead->experts);
	if (dense + experts <= 0)
		return 0;
	return V_GATHER | V_BUCKETS * numbered(b, dense, experts);
}
