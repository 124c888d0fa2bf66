/*
 * sim/kernel.c - one kernel alone on one rank: which family, and which clock
 *
 * Short isolated kernels run at boost clocks (burst), as the profile's rows
 * were measured. Back to back for seconds, matrix units reach the card's power
 * limit and clocks fall (sustained). How far depends on how busy those units
 * are: with u = rate / peak, a product of time t slows by
 *
 *   1 + (1 / sustained - 1) min(1, u / 0.5)^2 t / (t + 20 us)
 *
 * so small and memory-bound kernels, which leave power unused, do not slow. Where the limit is
 * more than products ask for (sustained above 1) none does. Attention asks for less than products,
 * so its bursts run at a higher clock, `power.attention_clock` times theirs, and it loses more
 * where products set the clock:
 *
 *   1 + (attention_clock / sustained - 1) t / (t + 20 us)
 *
 * Source: "What attention draws" in measurements/README.md.
 */
#include <math.h>

#include "sim/kernel.h"

bool kernel_has_own_clock(const struct ft_gpu *gpu, const struct ft_work *work)
{
	return work->kind == FT_ATTENTION && gpu->attention_clock.value > 0;
}

static void apply_clock(const struct ft_gpu *gpu, const struct ft_work *work,
			struct ft_prediction *out)
{
	double peak = gpu->peak_flop_per_s[work->dtype].value;
	double rate = gpu->sustained[work->dtype].value;
	double time = out->time_s, busy = 1;

	if (!(peak > 0) || !(rate > 0))
		return;
	if (kernel_has_own_clock(gpu, work))
		rate /= gpu->attention_clock.value;
	else
		busy = fmin(1, ft_work_flop(work) / time / peak / 0.5);
	if (rate < 1)
		out->time_s *= 1 + (1 / rate - 1) * busy * busy * time / (time + 20e-6);
}

bool ft_kernel_predict(const struct ft_gpu *gpu, const struct ft_work *work,
		       enum ft_clock clock, struct ft_prediction *out,
		       struct ft_error *err)
{
	*out = (struct ft_prediction){ 0 };
	switch (work->kind) {
	case FT_GEMM:
		if (!gemm_predict(gpu, work, out, err))
			return false;
		break;
	case FT_ATTENTION:
		if (work->attention.keys_are != FT_KEYS_IN_ORDER)
			gathered_predict(gpu, work, out);
		else if (!attention_predict(gpu, work, out, err))
			return false;
		break;
	case FT_MEMORY_BOUND:
		memory_bound_predict(gpu, work, out);
		return true;
	case FT_COMMUNICATION:
		return ft_fail(err, NULL, "%s is a collective, not a kernel",
			       work->name ? work->name : "this work");
	}
	if (clock == FT_CLOCK_SUSTAINED)
		apply_clock(gpu, work, out);
	return true;
}

/*
 * Of a kernel beside a collective that holds `units` of the GPU and moves `rate` of what a
 * rank's port carries: a product loses waves (sim/gemm.c), attention with its many short blocks
 * the units, and what is bound by memory the bytes. Source: measured beside 2 to 24 channels
 * of NCCL on two H100; docs/networks.md has the table.
 */
double kernel_beside(const struct ft_gpu *gpu, const struct ft_work *w, double units,
		     double rate)
{
	struct product p;

	switch (w->kind) {
	case FT_GEMM:
		p = product_of(w);
		return gemm_beside(gpu, &p, units);
	case FT_ATTENTION:
		return 1 + units / (double)gpu->compute_units;
	default:
		return 1 + (gpu->memory_beside_collective.value - 1) * rate;
	}
}
