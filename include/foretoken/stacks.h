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
	FT_HOST_LAUNCH,	       /* one kernel or copy */
	FT_HOST_COLLECTIVE,    /* one collective call */
	FT_HOST_BLOCK_FORWARD, /* a transformer block, beside its launches */
	FT_HOST_BLOCK_BACKWARD,
	FT_HOST_SHARD_FORWARD, /* hooks of one sharded unit (FSDP) */
	FT_HOST_SHARD_BACKWARD,
	FT_HOST_GRADIENT_HOOK,	/* one parameter's gradient hook (DDP) */
	FT_HOST_TENSOR_FORWARD, /* a block under tensor parallelism (DTensor) */
	FT_HOST_TENSOR_BACKWARD,
	FT_HOST_ENDS_FORWARD, /* embedding, head and loss */
	FT_HOST_ENDS_BACKWARD,
	FT_HOST_MICRO_BATCH, /* the loop around one micro-batch */
	FT_HOST_PIPELINE,    /* one send or receive */
	FT_HOST_OPTIMIZER,
	FT_HOST_STEP, /* the loop around one step */
	FT_HOSTS
};

const char *ft_host_name(enum ft_host activity);

/* How element-wise work is fused: not at all, by a compiler, or by hand-written
 * kernels as Megatron and Transformer Engine have them. */
enum ft_fusion { FT_FUSION_EAGER, FT_FUSION_COMPILED, FT_FUSION_KERNELS };

/* How tensor-parallel collectives stand to the products around them. */
enum ft_tensor_parallel {
	FT_TP_MEGATRON, /* backward ones run beside dgrad and wgrad */
	FT_TP_DTENSOR,	/* each waits for the one before */
};

/* What is saved, or computed again, by `recompute: selective`. */
enum ft_selective {
	FT_SELECTIVE_ATTENTION, /* core attention is computed again */
	FT_SELECTIVE_OPS,	/* element-wise work and every second product */
};

struct ft_layout_rules {
	enum ft_fusion fusion;
	enum ft_tensor_parallel tensor_parallel;
	enum ft_selective selective;
	bool fused_qkv;		     /* q, k, v in one product */
	bool fused_gate_up;	     /* gate and up in one product */
	bool fused_loss;	     /* no fp32 copy of the logits */
	bool autocast;		     /* fp32 weights, cast to 16 bit each forward */
	bool dropout;		     /* masks are drawn and kept */
	bool gradient_fusion;	     /* wgrad adds into the fp32 gradient itself */
	bool sync_each_micro_batch;  /* fsdp: gradients reduced after each one */
	bool gather_under_forward;   /* zero1: weights gathered during forward */
	bool host_sync;		     /* the host waits for the GPU in every step */
	bool ragged_batch;	     /* the last micro-batch may be smaller */
	bool forward_prefetch;	     /* fsdp: next unit gathered ahead */
	bool gather_root_again;	     /* fsdp: root unit resharded after forward */
	bool keeps_outputs;	     /* the logits of all micro-batches stay */
	bool scaled_gradients;	     /* a pass over gradients for loss scale or norm */
	double fsdp_copy_in_bytes;   /* per local parameter, before a gather */
	double fsdp_copy_out_bytes;  /* per parameter, behind it */
	double fsdp_copy_grad_bytes; /* per parameter, before a reduction, beside
				      * the gradient's own width */
	double optimizer_bytes;	     /* moved per parameter; 0: by the formats */
	bool once_a_domain;	     /* a token's copies cross the network once */
	double expert_imbalance;     /* copies of the fullest rank / the mean's */
	double bucket_bytes;	     /* of a gradient reduction */
	int64_t optimizer_kernels;   /* launches of one update */
	const char *rank_order;	     /* fastest first, e.g. "tp-cp-ep-dp-pp" */
	const char *attention;	     /* impl: cudnn fa2 fa3 aiter ...; "": the GPU's */
};

struct ft_stack {
	struct ft_digest digest; /* of its files */
	const char *name, *title;
	struct ft_layout_rules layout;
	struct ft_number host_s[FT_HOSTS];   /* seconds each */
	struct ft_number host_crowding_frac; /* slower per further rank of a node */
	struct ft_number gemm_factor;	     /* kernel time / the profile's time */
	struct ft_number attention_factor;
	struct ft_number memory_factor;
	struct ft_number collective_factor;
	struct ft_number gap_s;	      /* between kernels of a stream */
	struct ft_number spread_frac; /* a step's error beside its kernels' */
	const struct node *defaults;  /* a `training` map; NULL: none */
	const struct ft_provenance *from;
};

/* name: stacks/NAME.yaml or a path; at: where it was asked for, may be NULL. */
struct ft_stack *ft_stack_load(const char *name, const struct ft_mark *at,
			       struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_stack_free(struct ft_stack *stack);

#endif
