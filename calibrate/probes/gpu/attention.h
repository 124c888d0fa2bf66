/*
 * calibrate/probes/gpu/attention.h - attention by whatever implements it: memory, inputs,
 * checks and timing are common, an engine queues a pass
 */
#ifndef CALIBRATE_PROBE_GPU_ATTENTION_H
#define CALIBRATE_PROBE_GPU_ATTENTION_H

#include "calibrate/probes/attention_shim.h"
#include "calibrate/probes/gpu/gpu.h"

/* [batch, sequence, heads, head_dim]; STATS fp32 [batch, heads, sequence] */
enum { A_Q, A_K, A_V, A_O, A_STATS, A_DO, A_DQ, A_DK, A_DV, A_TENSORS };

struct attention_run {
	int64_t batch, heads, kv_heads, sequence, head_dim;
	bool causal, fp8;
	bool trains;   /* the cell is of the backward pass; forward runs first */
	bool backward; /* the pass to queue now */
	int dtype;     /* KERNEL_... */
	float scale;
	char *at[A_TENSORS];
	size_t numbers[A_TENSORS];
	double factor[A_TENSORS]; /* what is stored is the value times this */
	char *work;
	size_t work_bytes; /* the engine's wish, for both passes */
	void *own;	   /* the engine's */
};

struct attention_engine {
	/* Plan both passes and say work_bytes; then, memory is there: bind. */
	enum probe_status (*open)(struct probe_session *s, struct attention_run *r,
				  char *why, size_t n_why);
	enum probe_status (*bind)(struct probe_session *s, struct attention_run *r,
				  char *why, size_t n_why);
	enum probe_status (*queue)(struct probe_session *s, struct attention_run *r,
				   char *why, size_t n_why);
	void (*close)(struct attention_run *r); /* also after a failed open */
};

/* What lasts as long as the session. */
struct gpu_attention {
	void *library; /* cuDNN's handle */
	const struct ft_shim *shim;
	char *pool;
	size_t pool_bytes;
};

/* calibrate/probes/cudnn/run.c, on NVIDIA alone */
const struct attention_engine *attention_cudnn(void);
void attention_cudnn_version(char *text, size_t n);
void attention_cudnn_close(struct gpu_attention *a);

/* calibrate/probes/gpu/unfused.c: products and kernels, scores in memory */
const struct attention_engine *attention_unfused(void);

/* calibrate/probes/gpu/shim_attention.c: attention_shim.h */
const struct attention_engine *attention_shim_engine(void);

/* calibrate/probes/gpu/check.c: both passes against double precision, outputs
 * poisoned before. Leaves inputs as they were. *error is the largest of O, dQ, dK,
 * dV; WRONG when one is beyond what its format allows, *why says which. */
enum probe_status attention_check(struct probe_session *s,
				  const struct attention_engine *engine,
				  struct attention_run *r, double *error, char *why,
				  size_t n_why);
size_t attention_element(const struct attention_run *r, int tensor);
/* Random numbers, for each input others. */
void attention_fill(struct probe_session *s, const struct attention_run *r, int tensor);

#endif
