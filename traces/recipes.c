/*
 * traces/recipes.c - what the element-wise kernels of a block touch, by how a stack fuses them
 *
 * Bytes per token and feature. The compiled and eager columns were read off recorded PyTorch steps; the
 * kernels column counts what hand-fused kernels must touch. Eager kernels that walk a transposed or
 * broadcast tensor are not vectorized: their instructions bind them, not the memory. What they move is
 * `strided`, after the profile's curve; of experts' copies it counts twice as a copy moves it.
 */
#include "traces/recipes.h"

#include "traces/block.h"

static const struct routing eager_routing = {
	.order = 27,
	.order_back = 24,
	.permute = { 3, 1 },
	.sort = { 7.5, 1 },
	.unsort = { 7.5, 1 },
	.unpermute = { 18, 3 },
	.permute_back = { 7, 2 },
	.sort_back = { 7.5, 1 },
	.unsort_back = { 7.5, 1 },
	.unpermute_back = { 29, 5 },
	.join_back = { 6, 1 },
	.exchanged_only = true,
};
/* As Transformers' experts are written for grouped products, whose outputs are copied and zeroed
 * behind the last row; no copy is sorted twice. Bytes as a copy moves them, and as `strided` does what
 * zeroes, weights, spreads and adds up. Measured: measurements/traces/h100-transformers-qwen3-30b-a3b,
 * and h200-, where what is strided takes as long. */
static const struct routing operations_routing = {
	.order = 38,
	.order_back = 30,
	.permute = { 2.4, 1, .strided = { 4.7, 1 } },
	.sort = { 7.5, 1 },
	.unsort = { 7.5, 1 },
	.fill = { 3.1, 1, .strided = { 4.7, 1 } },
	.unpermute = { 3.3, 3, .strided = { 5.6, 2 } },
	.permute_back = { 3.8, 1, .strided = { 8.1, 2 } },
	.sort_back = { 7.5, 1 },
	.unsort_back = { 7.5, 1 },
	.unpermute_back = { 7.8, 3, .strided = { 12.2, 4 } },
	.exchanged_only = true,
};
/* Llama 4's class: tokens repeated for every expert, each times its router's weight, and the outputs summed; backward these gradients
 * copied, two products and a sum of the weights', and a sum over the repeats. Counted from Transformers' modeling_llama4.py (5.17). */
static const struct routing every_routing = {
	.permute = { 4, 1, .strided = { 4, 1 } },
	.unpermute = { 2, 1 },
	.permute_back = { 10, 4 },
	.unpermute_back = { 4, 1 },
	.exchanged_only = true,
};
/* Assumed: bf16 features are read and written once, by two kernels. */
static const struct routing fused_routing = {
	.permute = { 4, 2 },
	.sort = { 4, 2 },
	.unsort = { 4, 2 },
	.unpermute = { 4, 2 },
	.permute_back = { 4, 2 },
	.sort_back = { 4, 2 },
	.unsort_back = { 4, 2 },
	.unpermute_back = { 4, 2 },
};

/* torchtitan's experts by indexing (layout.routing), its models/moe/moe.py and utils.py (read 2026-11-29): a gather of tokens; a row joined on and a
 * second gather, to padded experts; the outputs put back; zeros, outputs put among them, a cast to fp32 and a batched product with the router's
 * weights. Bytes as a copy moves them and as `strided` does, measured part by part on an H200 (measurements/probes/h200-2026-12-01-indexed-unseen, seven
 * shapes alike): PyTorch's kernels that put, add up or spread rows are bound by instructions. Left out: all padding rows of an index's gradient add to one
 * row in turn, 1.04 us each, of which there are eight an expert. */
static const struct routing indexed_routing = {
	.order = 20,
	.order_back = 16,
	.permute = { 4.2, 1 },
	.sort = { 8.7, 3 },
	.unsort = { .strided = { 7.3, 1 } },
	.unpermute = { 8, 3, .strided = { 12.9, 2 } },
	.permute_back = { .strided = { 4.2, 10 } },
	.sort_back = { 1.5, 1, .strided = { 4.2, 10 } },
	.unsort_back = { 10.9, 3 },
	.unpermute_back = { 10, 2, .strided = { 13.1, 3 } },
	.join_back = { 6, 1 },
};

/* As since April 2026 (pull request 2775, models/common/token_dispatcher.py, read 2026-12-01): rows are indexed, padded no more, and sorted by experts
 * only where they came from other ranks; outputs are cast, weighted in fp32, cast back and added up by atomics. Measured likewise. */
static const struct routing weighted_routing = {
	.order = 20,
	.order_back = 16,
	.permute = { 4.2, 1 },
	.sort = { 4.2, 1 },
	.unsort = { .strided = { 7.3, 1 } },
	.unpermute = { 12, 3, .strided = { 13.6, 3 } },
	.permute_back = { .strided = { 4.2, 10 } },
	.sort_back = { .strided = { 4.2, 10 } },
	.unsort_back = { 10.9, 3 },
	.unpermute_back = { 32, 5, .strided = { 7.2, 1 } },
	.join_back = { 6, 1 },
	.exchanged_only = true,
};

/* The same where a compiler sees dispatch and combination as a whole: casts, weights and atomics are one kernel, rows are put back by a store and not
 * by an index. Measured likewise, by torch.compile of PyTorch 2.11. */
static const struct routing compiled_routing = {
	.order = 16,
	.order_back = 5,
	.permute = { 4.2, 1 },
	.sort = { 4.2, 1 },
	.unsort = { 4, 1 },
	.unpermute = { 6.8, 2 },
	.permute_back = { 6.8, 2 },
	.sort_back = { 6.8, 2 },
	.unsort_back = { 4.4, 1 },
	.unpermute_back = { 6.5, 1 },
	.join_back = { 6, 1 },
	.exchanged_only = true,
};

/* The same behind DeepEP: rows selected, and zeros to which rows are added by atomics, as the gradient of the selection is, both twice as slow as
 * atomics of an index as wide as a row. Counted from torchtitan/distributed/deepep/deepep.py of NousResearch/torchtitan, measured as above. On four B200
 * atomics took 1.53 (gradient) and 1.27 (sums, both times) of the time of attention's backward pass (Nsight's totals of Qwen3 30B-A3B at 4,096 tokens:
 * phucnguyen.dev/moe-worklogs, November 2025), which is 2.7 to 3.4 ms for 32,768 tokens here. */
static const struct routing selected_routing = {
	.order = 20,
	.order_back = 16,
	.sort = { 4.2, 1 },
	.unsort = { .strided = { 13.6, 2 } },
	.sort_back = { .strided = { 13.5, 2 } },
	.unsort_back = { 4.2, 1 },
};

/* And before, as NousResearch/torchtitan had it until the end of 2025 (moe.py@69da0580): numbers gathered by an index as wide as a row, outputs
 * cast, weighted in fp32, cast back and added up by atomics; their gradients gathered, cast and weighted, those of the weights a product and a sum;
 * those of the gather atomics. Rows are padded and put back as above, and measured likewise. */
static const struct routing gathered_routing = {
	.order = 20,
	.order_back = 16,
	.permute = { 4.2, 1 },
	.sort = { 8.7, 3 },
	.unsort = { .strided = { 7.3, 1 } },
	.unpermute = { 12, 3, .strided = { 13.6, 3 } },
	.permute_back = { .strided = { 6.2, 2 } },
	.sort_back = { 1.5, 1, .strided = { 4.2, 10 } },
	.unsort_back = { 10.9, 3 },
	.unpermute_back = { 32, 5, .strided = { 7.2, 1 } },
	.join_back = { 6, 1 },
};

/* As fused, by Transformer Engine, whose rate is the curve `permute`: measured, launches
 * included, for a permutation and the way back. Chunks are sorted by a plain copy. */
static const struct routing mapped_routing = {
	.permute = { 4, 2, true },
	.sort = { 4, 2 },
	.unsort = { 4, 2 },
	.unpermute = { 4, 2, true },
	.permute_back = { 4, 2, true },
	.sort_back = { 4, 2 },
	.unsort_back = { 4, 2 },
	.unpermute_back = { 4, 2, true },
};

/* An RMS norm in single operations on fp32: cast, square, mean, its root, product, cast, weights;
 * bytes a number as the curve `add` moves them, and, of casts to fp32 and of what spreads a row's or a
 * column's numbers, as `strided` does. They touch 36 and 92. Measured: measurements/traces/
 * h100-transformers-llama3-8b, and h200-: what is strided takes as long there; see docs/findings.md. */
#define RMS_NORM(more, kernels) \
	{ \
		.h = 19.1 + (more), .launches = 5 + (kernels), .strided = { \
			.h = 14.6, \
			.launches = 3 \
		} \
	}
#define RMS_NORM_BACK(more, kernels) \
	{ \
		.h = 72.4 + (more), .launches = 14 + (kernels), .strided = { \
			.h = 19.7, \
			.launches = 4 \
		} \
	}

/*
 * Cohere's layer norm is written out: cast, mean, difference, its square, mean, difference, root, product, weights, cast: 60 bytes,
 * and 120 backward. OLMo's is PyTorch's on fp32, with casts before and behind (6 + 8 + 6; backward 6 + 12 + 6, no weights). Bytes of
 * Cohere's, as above: measurements/traces/h100-transformers-cohere-8b-4L; OLMo's are counted, its casts to fp32 as those there.
 */
static const struct recipe centered = {
	.norm = { .h = 25.7, .launches = 6, .strided = { .h = 26.7, .launches = 5 } },
	.add_norm = { .h = 31.7,
		      .launches = 7,
		      .strided = { .h = 26.7, .launches = 5 } },
	.norm_back = { .h = 122,
		       .launches = 19,
		       .strided = { .h = 29.5, .launches = 6 } },
};
static const struct recipe cast_norm = {
	.norm = { .h = 14, .launches = 2, .strided = { .h = 5.2, .launches = 1 } },
	.add_norm = { .h = 20, .launches = 3, .strided = { .h = 5.2, .launches = 1 } },
	.norm_back = { .h = 26, .launches = 4, .strided = { .h = 5.5, .launches = 1 } },
};

/* What gpt-oss' gate has beside a plain one, a feature of its output: by operations seven instead of two, and
 * backward 18 instead of four, those of the clamps and of a row's every other number strided; compiled, the latter's
 * gradients put together. Before Megatron Core's compiled gate its two halves are clamped and joined.
 * Counted from Transformers' modeling_gpt_oss.py (5.17) and Megatron Core's fused_bias_geglu.py (read 2026-11-27); strided bytes
 * and those of the compiler measured: measurements/probes/h100-2026-11-27-clamped-unseen, at 2,880 numbers x 16,384. */
#define CLAMP_BY_OPERATIONS \
	.clamp = { 14, 3, .strided = { 8.9, 2 } }, \
	.clamp_back = { 43, 7, .strided = { 31.8, 7 } }

/* Measured: measurements/traces/h100-transformers-deepseek-v3. */
#define LATENT \
	{ \
		.strided = { 13.3, 4 } \
	}
#define LATENT_BACK \
	{ \
		.strided = { 38.4, 11 } \
	}

static const struct recipe recipes[] = {
	[FT_FUSION_EAGER] = {
		.norm = { 4, 0, 0, 1, 12 },
		.rope = { 0, 0, 5.7, 4, .strided = { .r = 17.2, .launches = 12 } },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 10, 0, 0, 2, 12 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 16, 0, 0, 4, 6 },
		.rope_back = { 0, 0, 9.7, 6, .strided = { .r = 15.1, .launches = 12 } },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		CLAMP_BY_OPERATIONS,
		.routing = &eager_routing,
	},
	[FT_FUSION_COMPILED] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 4, 0, 0, 1 },
		.add_norm = { 8, 0, 0, 1 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 13, 0, 0, 3 },
		.rope_back = { 2, 0, 4, 3 },
		.add_back = { 0, 0, 0, 0 },
		.gated_back = { 0, 12, 0, 2 },
		.plain_back = { 0, 6, 0, 1 },
		.clamp_back = { 7, 0 },
		.routing = &fused_routing,
	},
	[FT_FUSION_KERNELS] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.shuffle = { 0, 0, 0, 0 },
		.add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 6, 0, 1 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 10, 0, 1 },
		/* as the curve `swiglu` moves them; measured: measurements/probes/h100-2026-11-26-weighted-unseen; without a
		 * gate counted: input, gradient and its own, and once more the first two for the weight's */
		.weighted_back = { 0, 18, 0, 2 },
		.weighted_plain_back = { 0, 10, 0, 2 },
		.plain_back = { 0, 6, 0, 1 },
		.clamp = { 8, 1, .strided = { 8.9, 2 } },
		.clamp_back = { 11, 2, .strided = { 20.7, 5 } },
		.routing = &mapped_routing,
	},
	/* as eager: but what rotates queries and keys is written otherwise, its gradient comes
	 * transposed, and attention's output lies as the product behind it reads it. An expert's gate works on halves of the rows that one
	 * product wrote, by kernels that are not vectorized, 4 bytes a number each, and their gradients are put together (transformers/integrations/moe.py,
	 * 5.17.0; measurements/traces/h100- and h200-transformers-qwen3-30b-a3b-4L-s4096-b1-eager) */
	[FT_FUSION_OPERATIONS] = {
		.norm = RMS_NORM(0, 0),
		.rope = { .strided = { .r = 20.9, .launches = 10 } },
		.add_norm = RMS_NORM(6, 1),
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.norm_back = RMS_NORM_BACK(8, 2),
		.rope_back = { 0, 0, 9, 6, .strided = { .r = 25.6, .launches = 14 } },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		.routed = { .strided = { .f = 8, .launches = 2 } },
		.routed_back = { 0, 14, 0, 2, .strided = { .f = 8, .launches = 2 } },
		CLAMP_BY_OPERATIONS,
		.latent = LATENT,
		.latent_back = LATENT_BACK,
		.routing = &operations_routing,
	},
	/* as NeMo AutoModel's models: norms and rotary positions are Transformer Engine's, sums of residuals and gates
	 * of MLPs plain, those of experts compiled with the router's weights, latent attention's parts joined by operations. Source: its
	 * nemo_automodel/components/moe/layers.py and experts.py (read 2026-11-28) */
	[FT_FUSION_MODULES] = {
		.norm = { 4, 0, 0, 1 },
		.rope = { 0, 0, 4, 2 },
		.add_norm = { 10, 0, 0, 2 },
		.add = { 6, 0, 0, 1 },
		.gated = { 0, 10, 0, 2 },
		.plain = { 0, 4, 0, 1 },
		.routed = { 0, 6, 0, 1 },
		.norm_back = { 8, 0, 0, 2 },
		.rope_back = { 0, 0, 4, 2 },
		.add_back = { 6, 0, 0, 1 },
		.gated_back = { 0, 20, 0, 4 },
		.plain_back = { 0, 6, 0, 1 },
		.routed_back = { 0, 10, 0, 1 },
		.weighted_back = { 0, 18, 0, 2 },
		.weighted_plain_back = { 0, 10, 0, 2 },
		.clamp_back = { 7, 0 },
		.latent = LATENT,
		.latent_back = LATENT_BACK,
		.routing = &mapped_routing,
	},
};

bool by_operation(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_EAGER ||
	       b->rules->fusion == FT_FUSION_OPERATIONS ||
	       b->rules->fusion == FT_FUSION_MODULES;
}

bool has_compiled_gates(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED ||
	       b->rules->fusion == FT_FUSION_MODULES;
}

bool writes_norms(const struct builder *b)
{
	return b->model->written_norm != FT_NORM_CALLED && b->rules->model_classes &&
	       b->rules->fusion == FT_FUSION_OPERATIONS;
}

bool norms_in_operations(const struct builder *b)
{
	return writes_norms(b) || (b->rules->fusion == FT_FUSION_OPERATIONS &&
				   b->model->norm == FT_RMS_NORM);
}

const struct recipe *recipe_by(enum ft_fusion fusion)
{
	return &recipes[fusion];
}

const struct recipe *recipe_of(const struct builder *b)
{
	return recipe_by(b->rules->fusion);
}

const struct routing *routing_of(const struct builder *b)
{
	if (runs_all_experts(b))
		return &every_routing;
	if (b->rules->routing == FT_ROUTING_FUSED)
		return recipe_of(b)->routing;
	if (b->plan->dispatcher != FT_DISPATCH_ALLTOALL)
		return &selected_routing;
	switch (b->rules->routing) {
	case FT_ROUTING_INDEXED:
		return &indexed_routing;
	case FT_ROUTING_WEIGHTED:
		return &weighted_routing;
	case FT_ROUTING_COMPILED:
		return &compiled_routing;
	default:
		return &gathered_routing;
	}
}

const struct recipe *norm_recipe(const struct builder *b)
{
	bool called =
		b->rules->fusion == FT_FUSION_OPERATIONS && !norms_in_operations(b);

	if (writes_norms(b))
		return b->model->written_norm == FT_NORM_CENTERED ? &centered :
								    &cast_norm;
	return called ? &recipes[FT_FUSION_EAGER] : recipe_of(b);
}

const struct coefficients *bare_norm(const struct builder *b, bool backward)
{
	static const struct coefficients of[] = { RMS_NORM(0, 0), RMS_NORM_BACK(0, 0) };

	if (!writes_norms(b))
		return &of[backward];
	return backward ? &norm_recipe(b)->norm_back : &norm_recipe(b)->norm;
}
