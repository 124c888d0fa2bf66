/*
 * traces/casts.c - what formats of 8 and 4 bit cost beside their products
 *
 * A product wants its 16-bit input in the narrow format along rows, and for the
 * backward pass along columns as well. Bytes per element, read and written:
 *   delayed     2 + 1 + 1      scales are known; the norm before writes them itself
 *   tensorwise  2 + 2 + 1 + 1  the largest value is found first
 *   blockwise   2 + 1 + 1 and scales
 *   mxfp8       2 (2 + 1) and scales: rows and columns are quantized apart; mxfp4 with 1/2
 *   nvfp4       2 + 2 (2 + 1/2) and scales: largest value, rows, rotated columns
 * Under tensor parallelism Transformer Engine gathers what goes into a product in its
 * narrow format with the scales; a gradient goes into two products, along rows and
 * along columns, and where these have scales of their own both travel.
 * Source: the recipes' definitions in Transformer Engine's documentation; counted.
 */
#include "traces/build.h"

bool is_narrow(const struct builder *b)
{
	return ft_dtype_bytes(b->plan->precision) < 2;
}

/* Bytes of a cast along rows, and of what the gradient of a weight needs besides. */
static double cast_bytes(const struct builder *b)
{
	bool frozen = b->plan->lora.rank > 0;

	switch (b->plan->scaling) {
	case FT_SCALING_TENSORWISE:
		return frozen ? 5 : 6;
	case FT_SCALING_BLOCKWISE:
		return frozen ? 3 + 4.0 / 128 : 4 + 8.0 / 128;
	case FT_SCALING_MX:
		return (frozen ? 1 : 2) *
		       (2 + ft_dtype_bytes(b->plan->precision) + 1.0 / 32);
	case FT_SCALING_NV:
		return frozen ? 4.5 + 1.0 / 16 : 7 + 2.0 / 16;
	default:
		return frozen ? 3 : 4;
	}
}

void put_cast(struct builder *b, double elements, int launches)
{
	if (is_narrow(b))
		put_memory(b, "cast_fp8", "cast", cast_bytes(b) * elements, launches);
}

/* A norm that writes the narrow format writes rows; their transpose is made when the
 * gradient of the weights asks for it. */
void put_norm_transpose(struct builder *b, double elements)
{
	if (is_narrow(b) && b->plan->scaling == FT_SCALING_DELAYED)
		put_memory(b, "transpose_fp8", "cast", 2 * elements, 1);
}

void put_norm_cast(struct builder *b, double elements)
{
	if (b->plan->scaling != FT_SCALING_DELAYED)
		put_cast(b, elements, 1);
}

/* One scale for a whole tensor: its transpose is made where it is needed. */
static bool one_scale(const struct builder *b)
{
	return is_narrow(b) && (b->plan->scaling == FT_SCALING_DELAYED ||
				b->plan->scaling == FT_SCALING_TENSORWISE);
}

double gathered_width(const struct builder *b, bool both)
{
	double times = both && !one_scale(b) ? 2 : 1;

	if (!is_narrow(b) || b->rules->tensor_parallel != FT_TP_MEGATRON)
		return 2;
	switch (b->plan->scaling) {
	case FT_SCALING_BLOCKWISE:
		return times * (1 + 4.0 / 128);
	case FT_SCALING_MX:
		return times * (ft_dtype_bytes(b->plan->precision) + 1.0 / 32);
	case FT_SCALING_NV:
		return times * (0.5 + 1.0 / 16);
	default:
		return 1;
	}
}

double parameter_width(const struct builder *b)
{
	return one_scale(b) && b->rules->narrow_parameters ? 1 : 2;
}
