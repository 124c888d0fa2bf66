/*
 * foretoken/hw_attention.h - what a GPU profile says of attention: constants of a model, measured rows, rates of
 * implementations, and the shapes that each has kernels of its own for
 *
 * sim/attention.c has the equation and what it was fitted to. Everything lives as long as the GPU.
 */
#ifndef FORETOKEN_HW_ATTENTION_H
#define FORETOKEN_HW_ATTENTION_H

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct ft_gpu;
struct ft_rows_later;

/* What attention would take by arithmetic alone; rate counted 4bhs^2d forward, x2.5 backward, x3.5
 * both, halved if causal. */
struct ft_attention_model {
	struct ft_number start_s;
	struct ft_number efficiency[2]; /* of peak: forward, backward */
	struct ft_number ramp[2];	/* tokens: rate = s / (s + ramp) */
	struct ft_number edge[2];	/* tokens of extra work on the diagonal */
	struct ft_number wave_frac;
	struct ft_number narrow_frac, wide_frac; /* rate of head_dim 64, 256 */
};

/* Attention to chosen tokens, which each query gathers (sim/gathered.c has the equation). */
struct ft_gathered_model {
	bool known; /* else attention's own rates are what there is */
	struct ft_number efficiency[2]; /* of peak: forward, backward */
	struct ft_number fill[2];	/* tokens: rate = t / (t + fill) of t chosen */
	struct ft_number
		heads; /* that a block computes, whether they are there or not */
	struct ft_number scores
		[2]; /* of an indexer, of peak: forward, gradients of chosen ones */
};

struct ft_attention_row {
	double batch, heads, kv_heads, sequence, head_dim;
	bool causal;
	double flop_per_s;
	float at[6]; /* (computed) position: sim/attention.c names the axes */
};

struct ft_attention_table {
	const char *impl;
	int pass; /* 0 forward, 1 backward, 2 both */
	enum ft_dtype dtype;
	size_t n_rows;
	struct ft_attention_row *row;
	const struct ft_gpu *on;
	const struct ft_provenance *from;
	struct ft_rows_later *later; /* as of products */
	int kin; /* so many rows_of away; 0: its own rows, or of the one that it extends */
};

/* Rate of an implementation without rows, against the one with the most. */
struct ft_attention_impl {
	const char *name;
	struct ft_number rate;
};

/* Shapes that an implementation has kernels for. */
struct ft_attention_taken {
	int64_t least, most; /* head size of queries and keys */
	int64_t v_head_dim;  /* 0: the same */
	bool windows;	     /* under a window, too */
};

/* What an implementation's kernels are built for. */
struct ft_attention_kernels {
	const char *impl;
	const char *otherwise; /* what runs the other shapes; "": there are none */
	size_t n_taken[2];     /* forward, backward */
	struct ft_attention_taken *taken[2]; /* NULL: all shapes */
	int64_t widest; /* head that it has kernels for, of keys or of values; 0: any */
	size_t n_sizes; /* of heads: between them zeros are computed; 0: multiples of 32 */
	int64_t *size;
};

/* Does the profile say anything of that library's attention, or of a version of it? */
bool ft_attention_known(const struct ft_gpu *gpu, const char *impl);

/* Of NAME-VERSION: does it say anything of that version? If not, NAME counts. */
bool ft_attention_version_known(const struct ft_gpu *gpu, const char *impl);

/* The implementations that it says something of, as "fa2, cudnn". */
const char *ft_attention_names(struct arena *mem, const struct ft_gpu *gpu);

/* What is known of the attention kernels of an implementation; of NAME-VERSION that the profile does
 * not name, what is known of NAME. NULL: nothing. */
const struct ft_attention_kernels *ft_attention_kernels(const struct ft_gpu *gpu,
							const char *impl);

/* The head size that its kernel computes: the next one of `size`; head_dim, where there is none. */
double ft_attention_kernel_size(const struct ft_gpu *gpu, const char *impl,
				double head_dim);

#ifdef __cplusplus
}
#endif
#endif
