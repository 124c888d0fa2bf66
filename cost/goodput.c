/* cost/goodput.c - failures, checkpoints, restarts */
#include "cost/goodput.h"

#include <math.h>

double goodput_mtbf_s(double failures_per_1000_node_days, double nodes)
{
	return 86400 * 1000 / (failures_per_1000_node_days * nodes);
}

double goodput_first_s(double mttf_s, double n)
{
	return mttf_s / n;
}

double goodput_lost_gpu_days(double gpus, double steps, double step_s)
{
	return gpus * (steps - 1) * step_s / 86400;
}

double goodput_young_s(double save_s, double mtbf_s)
{
	return sqrt(2 * save_s * mtbf_s);
}

double goodput_daly_s(double save_s, double mtbf_s)
{
	double x = save_s / (2 * mtbf_s);

	if (save_s >= 2 * mtbf_s)
		return mtbf_s;
	return goodput_young_s(save_s, mtbf_s) * (1 + sqrt(x) / 3 + x / 9) - save_s;
}

double goodput_frac(double save_s, double restart_s, double mtbf_s)
{
	double tau_s = goodput_young_s(save_s, mtbf_s);
	double save_frac = save_s > 0 ? save_s / tau_s : 0;
	double waste = save_frac + (tau_s / 2 + restart_s) / mtbf_s;

	return waste < 1 ? 1 - waste : 0;
}
