/*
 * cost/goodput.h - what failures leave of a cluster's time
 *
 * Failures are independent and equally likely at any time, each stops the whole
 * job, and the work since the last checkpoint is done again: on average half an
 * interval. Young, CACM 17 (1974); Daly, FGCS 22 (2006). It fails where saving
 * takes long against the time between failures; then goodput is 0.
 */
#ifndef COST_GOODPUT_H
#define COST_GOODPUT_H

/* Mean time between failures of so many nodes. */
double goodput_mtbf_s(double failures_per_1000_node_days, double nodes);

/* The time until the first of n parts fails, each living mttf_s on average. */
double goodput_first_s(double mttf_s, double n);

/* The most a failure costs when every n-th step is saved: all steps since. */
double goodput_lost_gpu_days(double gpus, double steps, double step_s);

/* The best interval between checkpoints that cost save_s each. */
double goodput_young_s(double save_s, double mtbf_s);
double goodput_daly_s(double save_s, double mtbf_s);

/* The share of time that makes progress which is kept, at Young's interval. */
double goodput_frac(double save_s, double restart_s, double mtbf_s);

#endif
