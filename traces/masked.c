/* traces/masked.c - experts' inputs and outputs by products with a mask */
#include "traces/masked.h"

#include <math.h>

/* A product of each sequence, in the layout of a forward one: none is a product of weights. */
static void product(struct builder *b, const char *name, int64_t m, int64_t n,
		    int64_t k)
{
	int64_t sequences = b->plan->micro_batch;

	put_grouped(b, name, FT_FORWARD, (struct edges){ m * sequences, n, k },
		    sequences);
}

/* Places for the copies of a whole sequence's tokens, however many ranks these are on. */
static int64_t slots_of(const struct builder *b, const struct ft_layer *l)
{
	double copies = (double)(b->plan->sequence * l->experts_per_token);
	double each = ceil(copies / (double)l->experts);

	return (int64_t)((double)l->experts *
			 floor(fmax(1, each) * b->plan->capacity_factor));
}

static void mask(struct builder *b, const char *name, double bytes, int64_t tokens,
		 int64_t slots)
{
	put_memory(b, name, "copy",
		   bytes * (double)(b->plan->micro_batch * tokens) * (double)slots, 2);
}

bool dispatches_by_mask(const struct builder *b)
{
	return b->rules->masked_dispatch && b->plan->capacity_factor > 0;
}

double mask_kept(const struct builder *b, const struct ft_layer *l)
{
	return dispatches_by_mask(b) ? 3 * (double)slots_of(b, l) : 0;
}

void mask_dispatch(struct builder *b, const struct ft_layer *l, int64_t tokens,
		   int64_t h, bool backward)
{
	int64_t each = tokens / b->plan->micro_batch, slots = slots_of(b, l);

	if (backward) {
		product(b, "expert_dispatch_back", each, h, slots);
		mask(b, "expert_mask_back", 5, each, slots);
	} else {
		mask(b, "expert_mask", 6, each, slots);
		product(b, "expert_dispatch", slots, h, each);
	}
}

void mask_combine(struct builder *b, const struct ft_layer *l, int64_t tokens,
		  int64_t h, bool backward)
{
	int64_t each = tokens / b->plan->micro_batch, slots = slots_of(b, l);

	if (backward) {
		product(b, "expert_combine_back", slots, h, each);
		product(b, "expert_mask_gradient", each, slots, h);
	} else {
		product(b, "expert_combine", each, h, slots);
	}
}
