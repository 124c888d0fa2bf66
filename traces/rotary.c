/*
 * traces/rotary.c - rotary positions of queries and keys
 *
 * A stack's recipe says what they take (recipes.c), but for two cases. A hand-written kernel cannot
 * scale what it turns (YaRN's factor on q and k, gpt-oss): plain operations of 16 bit do. And a stack may
 * turn by operations where its fusion has a kernel (plain_rotary). Counted from NeMo AutoModel's
 * gpt_oss/rope_utils.py and deepseek_v3/rope_utils.py of October 2025 (read 2026-11-28), bytes a feature of q and k:
 *   halves    four products of a half with cosines or sines (8), a difference and a sum (6), both joined (4);
 *             backward a sign (2), four products (8), two sums (6), the halves' gradients joined (4)
 *   megatron  two products with cosines and sines (8), half a sign (2), both halves joined (4), a sum (6) and the rest of the
 *             head, if any, joined (4); backward 8 + 2, a sum (6), halves joined (4): Megatron Core's rope_utils.py
 *   its latent pairs are made halves before that (4); backward zeros for each half as wide as both (4), copies into them (4)
 *             and a sum (6)
 *   complex   a copy in fp32 (6), a product of pairs (8), a copy in 16 bit (6), each way: latent attention's
 *   wide      a kernel of its own, on a copy in fp32: the copy (6), the kernel (8), a copy in 16 bit (6), each way, of q and of k:
 *             Qwen's modeling file of 2023, apply_rotary_pos_emb, with FlashAttention's kernel (read 2026-11-29)
 * What reads a half, a slice of a head or a broadcast is not vectorized.
 */
#include "traces/block.h"

static const struct coefficients halves[] = {
	{ .r = 10, .launches = 6, .strided = { .r = 8, .launches = 8 } },
	{ .r = 10, .launches = 6, .strided = { .r = 10, .launches = 10 } },
};
static const struct coefficients megatron[] = {
	{ .r = 14, .launches = 6, .strided = { .r = 10, .launches = 6 } },
	{ .r = 10, .launches = 4, .strided = { .r = 10, .launches = 6 } },
};
static const struct coefficients megatron_latent[] = {
	{ .r = 14, .launches = 6, .strided = { .r = 14, .launches = 8 } },
	{ .r = 20, .launches = 10, .strided = { .r = 14, .launches = 10 } },
};
static const struct coefficients complex_pairs[] = {
	{ .r = 6, .launches = 2, .strided = { .r = 14, .launches = 4 } },
	{ .r = 6, .launches = 2, .strided = { .r = 14, .launches = 4 } },
};

static const struct coefficients wide = { .r = 20, .launches = 6 };

static struct coefficients of_recipe(const struct builder *b, bool backward)
{
	const struct recipe *r = recipe_of(b);
	bool kernel = b->rules->fusion == FT_FUSION_KERNELS ||
		      b->rules->fusion == FT_FUSION_MODULES;

	if (b->model->scaled_rope && kernel)
		r = recipe_by(FT_FUSION_EAGER);
	else if (b->model->wide_rotary && b->rules->model_classes && kernel)
		return wide;
	return backward ? r->rope_back : r->rope;
}

/* Under plain_rotary. Latent attention's under Megatron are 16 bit, as its others. */
static struct coefficients by_operations(const struct builder *b,
					 const struct ft_layer *l, bool backward)
{
	if (b->rules->fusion == FT_FUSION_KERNELS)
		return (l->kv_lora_rank ? megatron_latent : megatron)[backward];
	return (l->kv_lora_rank ? complex_pairs : halves)[backward];
}

void put_rotary(struct builder *b, const struct layer_sizes *s, bool backward)
{
	struct coefficients c = of_recipe(b, backward);

	if (b->model->positions != FT_ROPE)
		return;
	if (b->rules->plain_rotary)
		c = by_operations(b, s->l, backward);
	/* plain operations have their sums beside what is strided; a kernel of its own is fused */
	put_element(b, s, backward ? "rope_back" : "rope",
		    c.strided.launches ? "add" : "default", c);
}
