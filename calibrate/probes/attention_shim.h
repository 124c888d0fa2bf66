/*
 * calibrate/probes/attention_shim.h - how a fused attention library without a C interface is
 * lent to the probes: libft_attention_shim.so beside libft_hip.so, with this one function
 *
 * For C and C++. Tensors are bf16 on the device, [batch, sequence, heads, head_dim],
 * packed; stats are fp32 [batch, heads, sequence], the log-sum-exp of each row of
 * scores: forward writes them, backward reads them and o. Everything is queued on
 * the given stream and nothing waits.
 */
#ifndef FT_ATTENTION_SHIM_H
#define FT_ATTENTION_SHIM_H

#include <stdint.h>

#define FT_SHIM_FILE "libft_attention_shim.so"
#define FT_SHIM_GET "ft_attention_shim"

enum { FT_SHIM_VERSION = 1 };

struct ft_shim_problem {
	int64_t batch, heads, kv_heads, sequence, head_dim;
	int32_t causal, backward;
	float scale;
	const void *q, *k, *v, *d_o;
	void *o, *stats, *d_q, *d_k, *d_v;
	void *workspace;
	int64_t workspace_bytes;
	void *stream; /* a hipStream_t */
};

struct ft_shim {
	int32_t version;     /* FT_SHIM_VERSION */
	const char *name;    /* the impl of its rows: lower case, as "aiter" */
	const char *library; /* its name and version, as "AITER 0.1.5" */
	/* bytes of scratch memory for this pass; below zero: it has no kernel */
	int64_t (*workspace)(const struct ft_shim_problem *p);
	/* queue the pass; 0, or what the library answered */
	int (*run)(const struct ft_shim_problem *p);
};

#ifdef __cplusplus
extern "C"
#endif
	const struct ft_shim *
	ft_attention_shim(void);

#endif
