/*
 * traces/beside.c - experts beside a dense MLP (Gemma 4), and layers whose output is scaled
 *
 * Both read the layer's residual. The MLP has the layer's norm in front and one of its own behind;
 * experts have one in front and one behind; the router's, which has no weights, is followed by two
 * factors. Behind the sum of both comes the layer's norm again. Source: Gemma4TextDecoderLayer and
 * Gemma4TextRouter of Hugging Face Transformers 5 (modeling_gemma4.py, read 2026-11-28).
 */
#include "traces/beside.h"

static void one_norm(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct recipe *r = norm_recipe(b);

	put_norm(b, s, backward ? "beside_norm_back" : "beside_norm",
		 backward ? r->norm_back : r->norm);
}

void beside_norm(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (b->model->dense_beside)
		one_norm(b, s, backward);
}

void beside_leave(struct builder *b, const struct ft_layer *l, bool backward)
{
	struct layer_sizes s = sizes_of(b, l - b->model->layer);

	if (b->model->dense_beside)
		one_norm(b, &s, backward);
}

/* Two products forward, 4 bytes a number each; backward the same of the gradient, and that of the first factor, a product
 * and its sum over rows, 6 more. Compiled, factors are a part of the norm's kernel. */
static void router_scale(struct builder *b, const struct layer_sizes *s, bool backward)
{
	double numbers = (double)(s->part * s->h);

	if (b->rules->fusion == FT_FUSION_COMPILED)
		return;
	put_memory(b, backward ? "router_scale_back" : "router_scale", "copy",
		   (backward ? 14 : 8) * numbers, backward ? 4 : 2);
}

void beside_enter(struct builder *b, const struct ft_layer *l, bool backward)
{
	struct layer_sizes s = sizes_of(b, l - b->model->layer);

	if (!b->model->dense_beside)
		return;
	put_bare_norms(b, backward ? "router_norm_back" : "router_norm",
		       (double)(s.part * s.h), 2 * (double)s.h, 1, backward);
	router_scale(b, &s, backward);
	one_norm(b, &s, backward);
	if (backward) /* of three readers of the residual */
		put_memory(b, "beside_sum", "add", 12 * (double)(s.part * s.h), 2);
}

double beside_kept(const struct builder *b, const struct layer_sizes *s)
{
	/* inputs of two norms behind, and the router's before and behind its first factor */
	return b->model->dense_beside && s->l->experts ? 8 * (double)s->h : 0;
}

void layer_scaled(struct builder *b, const struct layer_sizes *s)
{
	if (b->model->layer_scale && b->rules->fusion != FT_FUSION_COMPILED)
		put_memory(b, "layer_scale", "copy", 4 * (double)(s->part * s->h), 1);
}
