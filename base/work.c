/* base/work.c - the arithmetic of kernels: products of a layer, pairs of attention */
#include <math.h>
#include <string.h>

#include "foretoken/base.h"

static const char *const layouts[FT_LAYOUTS] = { "forward", "dgrad", "wgrad" };
static const char *const passes[FT_PASSES] = { "forward", "backward", "both" };

const char *ft_layout_name(enum ft_layout layout)
{
	return layouts[layout];
}

bool ft_layout_find(const char *name, enum ft_layout *layout)
{
	for (int i = 0; i < FT_LAYOUTS; i++)
		if (!strcmp(layouts[i], name)) {
			*layout = (enum ft_layout)i;
			return true;
		}
	return false;
}

const char *ft_pass_name(enum ft_pass pass)
{
	return passes[pass];
}

bool ft_pass_find(const char *name, enum ft_pass *pass)
{
	for (int i = 0; i < FT_PASSES; i++)
		if (!strcmp(passes[i], name)) {
			*pass = (enum ft_pass)i;
			return true;
		}
	return false;
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
