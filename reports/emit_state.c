/* reports/emit_state.c - Megatron's arguments of the optimizer's state, and of what waits in host memory */
#include <inttypes.h>

#include "reports/emit.h"

/* Of Adam with the distributed optimizer alone. Narrow state has remainders of bf16 weights with it, unless master weights are in
 * fp16. */
void emit_megatron_state(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	const char *moments = ft_moment_name(p);
	bool usual = p->moment_dtype == FT_DTYPES || p->moment_dtype == FT_FP32;

	if (usual && p->master == FT_MASTER_FP32)
		return;
	if (t->of == FT_NEMO || !p->master_weights || p->optimizer != FT_ADAM ||
	    !ft_plan_divides(p)) {
		emit_unknown(t, "moment_dtype: %s, master_dtype: %s", moments,
			     ft_master_name(p->master));
		return;
	}
	emit(t, "use_precision_aware_optimizer", "%s", "");
	emit(t, "exp_avg_dtype", "%s", moments);
	emit(t, "exp_avg_sq_dtype", "%s", moments);
	if (p->master == FT_MASTER_FP16)
		emit(t, "main_params_dtype", "fp16");
	if (p->master == FT_MASTER_FP32)
		emit_unknown(t, "master_dtype: fp32, not remainders");
}

/* Megatron Core's model configuration has names for it, of one stage, of fewer layers than all, and without recomputation. */
static void offload_layers(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (!p->offload_layers)
		return;
	if (t->of != FT_NEMO || p->pp > 1 || p->recompute != FT_RECOMPUTE_NONE ||
	    p->offload_layers == t->s->model->n_layers) {
		emit_unknown(t, "offload_layers: %" PRId64, p->offload_layers);
		return;
	}
	emit(t, "cpu_offloading", "true");
	emit_int(t, "cpu_offloading_num_layers", p->offload_layers);
	emit(t, "cpu_offloading_activations", "true");
	emit(t, "cpu_offloading_weights", "false");
}

/* Of the distributed optimizer alone, which wants its kernels that know narrow state (Megatron Core, optimizer/cpu_offloading, README). */
static void offload_state(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->offload_state == FT_OFFLOAD_NONE)
		return;
	if (t->of == FT_NEMO || p->offload_state == FT_OFFLOAD_ALL ||
	    p->sharding != FT_ZERO1) {
		emit_unknown(t, "offload_state: %s", ft_offload_name(p->offload_state));
		return;
	}
	emit(t, "use_precision_aware_optimizer", "%s", "");
	emit(t, "optimizer_cpu_offload", "%s", "");
	emit(t, "optimizer_offload_fraction", "1.0");
	emit_unknown(t, "offload_threads: %" PRId64 ", which OMP_NUM_THREADS sets",
		     p->offload_threads);
}

void emit_megatron_offload(struct sheet *t)
{
	offload_layers(t);
	offload_state(t);
}
