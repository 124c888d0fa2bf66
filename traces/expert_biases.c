/* traces/expert_biases.c - biases of routed experts' products: what they move, by how a framework adds them */
#include "traces/block.h"

/*
 * What the biases of hand-fused experts move. Those of the first products are added and summed by
 * the products themselves. Those of the second are weighted like the copies, for each expert in
 * turn, in the w bytes of the router's weights (a direct kernel wants 4): a product with the
 * weights, a sum, a concatenation of all experts; backward two products and two sums, of which the
 * bias's and the weight's gradient come, and the concatenation. In 4 bytes casts come in addition.
 * Products spread a row's or a column's numbers, so that they are strided; sums down a column run at
 * half the rate, which is assumed in 4 bytes. Source: Megatron Core's grouped experts (github.com/NVIDIA/Megatron-LM,
 * megatron/core/transformer/moe/experts.py, read 2026-11-22 and 2026-11-26); measured alone:
 * measurements/probes/h100-2026-11-26-strided-unseen and h200-.
 */
static struct moved weighted_bias(double w, int experts, bool backward)
{
	double casts = w > 2 ? backward ? 12 : 6 : 0;
	struct moved m = { .bytes = casts + (backward ? 4 + 4 * w : 2 + 4 * w),
			   .launches = (backward ? 3 : 1) * experts + 1,
			   .strided = { backward ? 4 * w : 0.5 + 1.3 * w,
					(backward ? 2 : 1) * experts } };

	return m;
}

/* Biases that PyTorch adds to the outputs of both products: by operations each row's is gathered, then added;
 * compiled in one pass, which is assumed. Backward the gradients are read once more; that by operations an expert's
 * are summed row after row is not counted. */
static void gathered_bias(struct builder *b, const char *name, double numbers,
			  bool backward)
{
	if (backward)
		put_memory(b, name, "default", 2 * numbers, 2);
	else if (by_operation(b))
		put_memory(b, name, "add", 8 * numbers, 4);
	else
		put_memory(b, name, "default", 4 * numbers, 2);
}

/* NeMo AutoModel's of the first product: added for each expert in turn, then all joined; backward summed for each. The
 * second's are weighted as Megatron Core's are (_apply_bias in its moe/layers.py, read 2026-11-28). */
static void plain_bias(struct builder *b, const char *name, const struct biased *e,
		       bool backward)
{
	double outputs = e->copies * e->first;

	if (backward)
		put_memory(b, name, "default", 2 * outputs, e->local);
	else
		put_memory(b, name, "add", 8 * outputs, e->local + 1);
}

static bool is_weighted_by_expert(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_MODULES ||
	       (b->rules->fusion == FT_FUSION_KERNELS && !b->plan->fused_experts);
}

/* Biases of the experts' products. Fused experts add both, and sum the first's gradients; for the second's, which are
 * weighted, the output's gradients are read once more (sources at outer_cast). */
void expert_biases(struct builder *b, const struct biased *e, bool backward)
{
	const char *name = backward ? "expert_bias_back" : "expert_bias";
	double w = e->direct ? 4 : 2;

	if (!b->model->mlp_bias)
		return;
	if (b->rules->fusion == FT_FUSION_MODULES)
		plain_bias(b, name, e, backward);
	if (is_weighted_by_expert(b))
		put_moved(b, name, "add", weighted_bias(w, e->local, backward),
			  e->copies * e->second);
	else if (b->rules->fusion != FT_FUSION_KERNELS)
		gathered_bias(b, name, e->copies * (e->first + e->second), backward);
	else if (backward)
		put_memory(b, name, "default", 2 * e->copies * e->second, 1);
}
