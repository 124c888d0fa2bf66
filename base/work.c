/* base/work.c - the arithmetic of kernels: products of a layer, pairs of attention */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "foretoken/base.h"

static const char *const layouts[FT_LAYOUTS] = { "forward", "dgrad", "wgrad" };
static const char *const passes[FT_PASSES] = { "forward", "backward", "both" };

const char *ft_layout_name(enum ft_layout layout)
{
	return layouts[layout];
}

bool ft_layout_find(const char *name, enum ft_layout *layout)
{
	size_t i = text_place(name, layouts, FT_LAYOUTS);

	if (i == FT_LAYOUTS)
		return false;
	*layout = (enum ft_layout)i;
	return true;
}

const char *ft_pass_name(enum ft_pass pass)
{
	return passes[pass];
}

bool ft_pass_find(const char *name, enum ft_pass *pass)
{
	size_t i = text_place(name, passes, FT_PASSES);

	if (i == FT_PASSES)
		return false;
	*pass = (enum ft_pass)i;
	return true;
}

struct ft_product ft_product_of(enum ft_layout layout, double m, double n, double k)
{
	switch (layout) {
	case FT_DGRAD:
		return (struct ft_product){ m, k, n };
	case FT_WGRAD:
		return (struct ft_product){ fmin(n, k), fmax(n, k), m };
	default:
		return (struct ft_product){ m, n, k };
	}
}

double ft_attention_pairs(double queries, double keys, double window, bool causal)
{
	double seen = window > 0 && window < keys ? window : keys;

	return queries * seen * (causal ? 1 - seen / (2 * keys) : 1);
}

double ft_attention_flop(enum ft_pass pass, double pairs, double qk_head_dim,
			 double v_head_dim)
{
	static const double forwards[FT_PASSES] = { 1, 2.5, 3.5 };

	return forwards[pass] * 2 * (qk_head_dim + v_head_dim) * pairs;
}
