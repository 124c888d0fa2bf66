/*
 * traces/short_conv.c - a gated short convolution in place of attention (LFM2, arXiv 2511.23404)
 *
 * One product makes three numbers b, c, x of each feature; a causal convolution of a few taps along the sequence, each
 * feature by itself, takes b x; its output times c goes into the product behind. Bytes of a feature of a token, with t taps:
 *   one kernel each (Megatron's way, and JAX's): b x 6, convolution 4, gate 6; backward its gradients 10, the
 *     convolution's 8, those of b x 10
 *   compiled: the same forward; backward y and b x are made once more, 6 each, and the convolution is PyTorch's own, whose
 *     kernels instructions bind: 4, backward 4 for its input and 4 t for its taps
 *   single operations: features of a token lie side by side, the convolution wants tokens of a feature so. What turns
 *     one into the other counts thrice, as in traces/muon.c: a copy in front (12), each product of one kind with the other
 *     (14); backward a zeroed and a turned copy (14), gradients of b, c, x joined (20), and laid out for the
 *     product where there are several sequences (36). All are `strided`.
 * Kept beside b, c and x: what the convolution takes and gives, and the product's input, by operations; a compiler keeps
 * what the convolution gives alone.
 * Source: Transformers' modeling_lfm2.py without the package causal_conv1d, PyTorch's Convolution.cpp and
 * DepthwiseConv2d.cu (read 2026-11-28). Counted; a recorded step of LFM2 agrees within 5 %. Megatron Core has no such block.
 */
#include "traces/mixers.h"

static void by_operations(struct builder *b, double features, double taps,
			  bool backward)
{
	double turned = b->sequences > 1 ? 36 : 0;

	if (!backward) {
		put_memory(b, "conv_gate", "strided", (6 + 14) * features, 2);
		put_memory(b, "short_conv", "strided", (12 + 4) * features, 2);
		return;
	}
	put_memory(b, "conv_gate_back", "strided", (14 + 6) * features, 2);
	put_memory(b, "short_conv_back", "strided", (14 + 4 + 4 * taps) * features, 4);
	put_memory(b, "conv_gate_back", "strided", (14 + 14 + 20 + turned) * features,
		   turned > 0 ? 4 : 3);
}

static void by_kernels(struct builder *b, double features, double taps, bool backward)
{
	bool compiled = b->rules->fusion == FT_FUSION_COMPILED;
	const char *curve = compiled ? "strided" : "default";

	if (!backward) {
		put_memory(b, "conv_gate", "default", (6 + 6) * features, 2);
		put_memory(b, "short_conv", curve, 4 * features, 1);
		return;
	}
	put_memory(b, "conv_gate_back", "default",
		   (10 + 10 + (compiled ? 6 + 6 : 0)) * features, compiled ? 4 : 2);
	put_memory(b, "short_conv_back", curve,
		   (compiled ? 4 + 4 * taps : 8) * features, compiled ? 2 : 1);
}

void short_conv(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double features = (double)(s->tokens * s->out);
	double taps = (double)s->l->linear_taps;

	if (by_operation(b))
		by_operations(b, features, taps, backward);
	else
		by_kernels(b, features, taps, backward);
}

double short_conv_kept(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED ? 2 : 6;
}
