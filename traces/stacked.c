/*
 * traces/stacked.c - experts whose weights are copied into one tensor for each grouped product
 *
 * Source: "grouped expert weight stack" of Primus' DeepSeek-V4 (ROCm's blog of 2026-09): one kernel for both of the first product's
 * matrices and one for the second's, each way; 0.75 and 1.01 ms for 32 experts of 4,096 x 2,048 on an MI355X, 4.3 and 3.2 TB/s.
 */
#include "traces/stacked.h"

static bool stacks(const struct builder *b, const struct ft_layer *l)
{
	return b->rules->stacked_experts && b->plan->grouped_experts && l->experts > 0;
}

/* Numbers of a rank's experts. */
static double numbers(const struct builder *b, const struct ft_layer *l)
{
	return ft_layer_expert_parameters(b->model, l - b->model->layer) /
	       (double)(b->plan->ep * b->plan->etp);
}

void stack_experts(struct builder *b, const struct ft_layer *l, bool backward)
{
	bool was;

	if (!stacks(b, l) || (backward && b->plan->lora.rank))
		return;
	was = of_weights(b, backward);
	put_memory(b, backward ? "expert_stack_back" : "expert_stack", "copy",
		   4 * numbers(b, l), 2);
	of_weights(b, was);
}

double stacked_kept(const struct builder *b, const struct ft_layer *l, unsigned set)
{
	return stacks(b, l) && !(set & FT_MODULE_EXPERTS) ? 2 * numbers(b, l) : 0;
}
