/*
 * traces/casts.c - what formats of 8 and 4 bit cost beside their products
 *
 * A product wants its 16-bit input in the narrow format along rows, and for the
 * backward pass along columns as well. Bytes per element, read and written:
 *   delayed     2 + 1 (+ 1)      scales are known; the norm before writes rows itself
 *   tensorwise  2 + 2 + 1 (+ 1)  the largest value is found first
 *   blockwise   2 + 1 + 1 and scales
 *   mxfp8       2 + 2 x 1 and scales: one kernel writes rows and columns; mxfp4 with 1/2
 *   nvfp4       2 + 2 (2 + 1/2) and scales: largest value, rows, rotated columns
 * With one scale a tensor the columns are the rows turned, and only where products want
 * them so: Transformer Engine turns nothing on a GPU whose products take any layout.
 *
 * Weights are cast once a step, behind the update. Those that FSDP gathers in 16 bit are gone
 * when their layer is done, and are cast by each pass: forward along rows, backward along
 * columns; Transformer Engine writes both forward. (Of a layer of Llama 2 13B on two H100, in
 * one scale a tensor, these casts took 0.86 of 7.9 ms forward, some of them beside a gather:
 * measurements/traces/h100-two-13b8L-fsdp2-s4096-b2-fp8-compile.)
 *
 * Under sequence parallelism Transformer Engine quantizes a slice, and gathers the slices in the narrow
 * format with the scales; a gradient goes into two products, along rows and along columns,
 * and where these have scales of their own both travel. What has one scale is turned when
 * it is whole. A scale that is found first is the group's: the largest value is reduced
 * over its ranks before each such cast.
 * Source: Transformer Engine's documentation of its recipes and its Linear module (2.14,
 * read 2026-11-23); counted.
 */
#include "traces/casts.h"

#include "traces/sharding.h"

bool is_narrow(const struct builder *b)
{
	return ft_dtype_bytes(b->format) < 2;
}

bool experts_narrow(const struct builder *b)
{
	return ft_dtype_bytes(b->plan->expert_precision) < 2;
}

/* One scale for a whole tensor: what is wanted along columns are its rows, turned. */
static bool one_scale(const struct builder *b)
{
	return is_narrow(b) && (b->plan->scaling == FT_SCALING_DELAYED ||
				b->plan->scaling == FT_SCALING_TENSORWISE);
}

/* Is a copy along columns made, where one scale serves both? */
static bool is_turned(const struct builder *b)
{
	return one_scale(b) &&
	       !(b->plan->any_layout && b->rules->tensor_parallel == FT_TP_MEGATRON);
}

double narrow_copies(const struct builder *b)
{
	return one_scale(b) && !is_turned(b) ? 1 : 2;
}

/* Bytes of an element that is cast along rows, and along columns as well. */
static double cast_bytes(const struct builder *b, bool columns)
{
	switch (b->plan->scaling) {
	case FT_SCALING_TENSORWISE:
		return columns && is_turned(b) ? 6 : 5;
	case FT_SCALING_BLOCKWISE:
		return columns ? 4 + 8.0 / 128 : 3 + 4.0 / 128;
	case FT_SCALING_MX:
		return 2 + (columns ? 2 : 1) * (ft_dtype_bytes(b->format) + 1.0 / 32);
	case FT_SCALING_NV:
		return columns ? 7 + 2.0 / 16 : 4.5 + 1.0 / 16;
	default:
		return columns && is_turned(b) ? 4 : 3;
	}
}

static void put_cast_of(struct builder *b, double elements, bool columns, int launches)
{
	if (is_narrow(b))
		put_memory(b, "cast_fp8", "cast", cast_bytes(b, columns) * elements,
			   launches);
}

void put_cast(struct builder *b, double elements, int launches)
{
	put_cast_of(b, elements, !b->plan->lora.rank, launches);
}

bool casts_slices(const struct builder *b)
{
	return is_narrow(b) && b->plan->sequence_parallel &&
	       b->rules->tensor_parallel == FT_TP_MEGATRON;
}

void put_slice_cast(struct builder *b, double elements)
{
	if ((b->plan->scaling == FT_SCALING_TENSORWISE ||
	     b->plan->scaling == FT_SCALING_NV) &&
	    put_collective(b, "tp_amax", FT_STREAM_TP, FT_ALL_REDUCE, FT_GROUP_TP, 4))
		need(b, FT_STREAM_TP);
	put_cast_of(b, elements, !b->plan->lora.rank && !one_scale(b), 1);
}

void put_transpose(struct builder *b, double elements)
{
	bool was = of_weights(b, true);

	if (is_turned(b) && !b->plan->lora.rank)
		put_memory(b, "transpose_fp8", "cast", 2 * elements, 1);
	of_weights(b, was);
}

/* What a norm or a slice wrote along rows is wanted along columns for the gradient of
 * the weights. */
void put_input_transpose(struct builder *b, double elements)
{
	if (b->plan->scaling == FT_SCALING_DELAYED || casts_slices(b))
		put_transpose(b, elements);
}

void put_norm_cast(struct builder *b, double elements)
{
	if (b->plan->scaling == FT_SCALING_DELAYED)
		return;
	if (casts_slices(b))
		put_slice_cast(b, elements);
	else
		put_cast(b, elements, 1);
}

bool casts_gathered(const struct builder *b)
{
	return is_narrow(b) && is_fsdp(b->plan) && parameter_width(b) > 1;
}

void cast_gathered(struct builder *b, int64_t layer, bool backward)
{
	struct held unit = layer_held(b, layer);
	double n = unit.dense + (experts_narrow(b) ? unit.experts : 0);
	bool both = b->rules->tensor_parallel == FT_TP_MEGATRON;

	if (casts_gathered(b) && !b->plan->lora.rank && !(both && backward))
		put_memory(b, "weight_cast_fp8", "cast", cast_bytes(b, both) * n,
			   (int)unit.tensors);
}

double input_width(const struct builder *b)
{
	if (!is_narrow(b))
		return 2;
	switch (b->plan->scaling) {
	case FT_SCALING_BLOCKWISE:
		return 1 + 4.0 / 128;
	case FT_SCALING_MX:
		return ft_dtype_bytes(b->format) + 1.0 / 32;
	case FT_SCALING_NV:
		return 0.5 + 1.0 / 16;
	default:
		return 1;
	}
}

double gathered_width(const struct builder *b, bool both)
{
	double times = both && !one_scale(b) ? 2 : 1;

	if (!is_narrow(b) || b->rules->tensor_parallel != FT_TP_MEGATRON)
		return 2;
	return times * input_width(b);
}

double parameter_width(const struct builder *b)
{
	return one_scale(b) && b->rules->narrow_parameters ? 1 : 2;
}

double expert_parameter_width(const struct builder *b)
{
	return experts_narrow(b) ? parameter_width(b) : 2;
}

double stored_width(enum ft_dtype format)
{
	switch (format) {
	case FT_MXFP8:
	case FT_MXFP4:
		return ft_dtype_bytes(format) + 1. / 32;
	case FT_NVFP4:
		return 0.5 + 1. / 16;
	default:
		return ft_dtype_bytes(format);
	}
}

void put_unpack(struct builder *b, double elements)
{
	const struct ft_plan *p = b->plan;

	if (p->lora.rank && !b->adapting && p->lora.frozen != b->format)
		put_memory(b, "unpack_weights", "cast",
			   (stored_width(p->lora.frozen) + stored_width(b->format)) *
				   elements,
			   1);
}
