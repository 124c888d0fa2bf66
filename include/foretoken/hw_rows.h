/*
 * foretoken/hw_rows.h - rows of a GPU profile that are read when they are asked for
 *
 * A run asks for a few kernels in one number format. Of a profile loaded with
 * FT_GPU_ROWS_LATER, and so of a cluster's, a table knows how many rows it has; they are read
 * by whoever asks first, from the text as it was when the profile was loaded. Threads may ask
 * at once. A mistake in them is told to everyone who asks, and to nobody else.
 */
#ifndef FORETOKEN_HW_ROWS_H
#define FORETOKEN_HW_ROWS_H

#include "foretoken/hw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table with its rows, which lives as long as the GPU; NULL: a mistake. */
const struct ft_gemm_table *ft_gemm_rows(const struct ft_gemm_table *table,
					 struct ft_error *err)
	__attribute__((warn_unused_result));
const struct ft_attention_table *ft_attention_rows(
	const struct ft_attention_table *table, struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
