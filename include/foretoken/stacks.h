/*
 * foretoken/stacks.h - the software: which operations a framework runs, and
 * what its host thread pays for each
 *
 * A stack has a layout (casts, copies, fusions, buckets, prefetch: it shapes the
 * step graph), rates (host seconds, factors on kernel times: used by sim/) and
 * defaults (plan keys). One stack may extend another. The same GPU under two
 * stacks is two machines.
 */
#ifndef FORETOKEN_STACKS_H
#define FORETOKEN_STACKS_H

#include "foretoken/base.h"

struct node;

/* What a host thread does, by the name of its rate. */
enum ft_host {
	FT_HOST_LAUNCH,          /* one kernel or copy */
	FT_HOST_COLLECTIVE,      /* one collective call */
	FT_HOST_BLOCK_FORWARD,   /* a transformer block, beside its launches */
	FT_HOST_BLOCK_BACKWARD,
	FT_HOST_SHARD_FORWARD,   /* hooks of one sharded unit (FSDP) */
	FT_HOST_SHARD_BACKWARD,
	FT_HOST_GRADIENT_HOOK,   /* one parameter's gradient hook (DDP) */
	FT_HOST_TENSOR_FORWARD,  /* a block under tensor parallelism (DTensor) */
	FT_HOST_TENSOR_BACKWARD,
	FT_HOST_ENDS_FORWARD,    /* embedding, head and loss */
	FT_HOST_ENDS_BACKWARD,
	FT_HOST_MICRO_BATCH,     /* the loop around one micro-batch */
	FT_HOST_PIPELINE,        /* one send or receive */
	FT_HOST_OPTIMIZER,
	FT_HOST_STEP,            /* the loop around one step */
	FT_HOSTS
};

const char *ft_host_name(enum ft_host activity);

/* How element-wise work is fused. */
enum ft_fusion { FT_FUSION_EAGER, FT_FUSION_COMPILED, FT_FUSION_KERNELS };

struct ft_layout_rules {
	enum ft_fusion fusion;
	bool fused_qkv;             /* q, k, v in one product */
	bool fused_gate_up;         /* gate and up in one product */
	bool fused_loss;            /* logits in the training precision only */
	bool gradient_accumulation_fusion; /* wgrad adds into fp32 gradients */
	bool autocast;              /* weights cast from fp32 each forward */
	bool sync_each_micro_batch; /* gradients reduced after every micro-batch */
	bool gather_each_micro_batch; /* fsdp: weights gathered again for each one */
	bool overlap_param_gather;  /* zero1: gathered under the next forward */
	bool host_sync;             /* the host waits for the GPU each step */
	bool ragged_batch;          /* the last micro-batch may be smaller */
	bool fsdp_copies;           /* cast and copy around each sharded unit */
	bool forward_prefetch;      /* next unit gathered before its hook */
	bool reshard_root;          /* the root unit, too, is gathered again */
	bool separate_sends;        /* pipeline sends not batched with receives */
	bool scaled_gradients;      /* a loss-scale pass over gradients (fp16) */
	bool delayed_scaling;       /* fp8: amax from history, casts fused */
	double bucket_bytes;        /* of a gradient reduction */
	const char *rank_order;     /* fastest first: "tp-cp-ep-dp-pp" */
	const char *attention;      /* impl: cudnn fa2 fa3 aiter ck unfused */
};

struct ft_stack {
	const char *name, *title;
	struct ft_layout_rules layout;
	struct ft_number host_s[FT_HOSTS]; /* seconds each, on the reference host */
	struct ft_number gemm_factor;      /* kernel time / the profile's time */
	struct ft_number attention_factor;
	struct ft_number memory_factor;
	struct ft_number collective_factor;
	struct ft_number gap_s;            /* between dependent kernels of a stream */
	const struct node *defaults;       /* a `training` map */
	const struct ft_provenance *from;
};

/* name: stacks/NAME.yaml or a path; at: where it was asked for, may be NULL. */
struct ft_stack *ft_stack_load(const char *name, const struct ft_mark *at,
			       struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_stack_free(struct ft_stack *stack);

#endif
