/*
 * traces/recipes.h - what the element-wise kernels of a block touch, by how a stack fuses them
 */
#ifndef TRACES_RECIPES_H
#define TRACES_RECIPES_H

#include "foretoken/stacks.h"

struct builder;

/* Bytes per token: c.h * hidden + c.f * MLP width + c.r * (q + k) features. */
struct coefficients {
	double h, f, r;
	int launches;
	double casts; /* as h, more where autocast runs norms in fp32 */
	struct {
		double h, f, r;
		int launches;
	} strided; /* beside these, by kernels of PyTorch that are not vectorized */
};

struct moved {
	double bytes; /* of a feature of a token's copy */
	int launches;
	bool by_map; /* each row goes where a map says, as Transformer Engine's kernels do */
	struct {
		double bytes;
		int launches;
	} strided; /* beside these, by kernels of PyTorch that are not vectorized */
};

/* Of tokens on their way to experts and back. */
struct routing {
	int order, order_back; /* small kernels that find the order of copies */
	struct moved permute, sort, unsort, unpermute;
	struct moved permute_back, sort_back, unsort_back, unpermute_back;
	struct moved join_back; /* gradients of what two products read, added */
	struct moved fill;	/* of each product's output, forward and backward */
	bool exchanged_only; /* copies that stay on their rank are not sorted twice, and the
			      * host does not ask for their numbers */
};

struct recipe {
	struct coefficients norm, rope, shuffle, add_norm, add;
	struct coefficients gated, plain;	 /* activation */
	struct coefficients routed, routed_back; /* of experts, if not as an MLP's */
	struct coefficients norm_back, rope_back, add_back;
	struct coefficients gated_back, plain_back, weighted_back,
		weighted_plain_back;	/* with the router's weights */
	struct moved clamp, clamp_back; /* of the gate's inputs, beside it */
	/* a feature of q: its and k's parts joined, all laid out for attention, and its output for the product */
	struct moved latent, latent_back;
	const struct routing *routing;
};

/* Does a compiler make one kernel of an expert's gate, clamps and all? */
bool has_compiled_gates(const struct builder *b);
const struct recipe *recipe_of(const struct builder *b);
const struct recipe *recipe_by(enum ft_fusion fusion);
const struct routing *routing_of(const struct builder *b);
/* Of norms: those with a mean are one call in any framework. */
const struct recipe *norm_recipe(const struct builder *b);
/* Of one that nothing is joined with. */
const struct coefficients *bare_norm(const struct builder *b, bool backward);
/* Does a model's class write its norms out, or are they operations one by one for other reasons? */
bool writes_norms(const struct builder *b);
bool norms_in_operations(const struct builder *b);

#endif
