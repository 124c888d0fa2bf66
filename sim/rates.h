/*
 * sim/rates.h - how fast ops run that run together on one rank
 *
 * An op has work left, in picoseconds it would take alone, and a rate <= 1.
 *   compute op beside any collective: 1 / its factor (SMs and bandwidth taken)
 *   collective beside a compute op:   1 / its factor, and
 *   collectives beside each other:    max-min: sum of rate * share <= 1 on the
 *                                     rank's scale-up port and on its NIC
 *   low-priority copy beside compute: 1 / copy_beside_gemm
 * Source: recorded steps (see the H200 profile's interference block) and
 * ConCCL, arXiv 2412.14335. Limit: factors do not depend on shape.
 */
#ifndef SIM_RATES_H
#define SIM_RATES_H

#include "foretoken/base.h"

struct cost;

struct running {
	double left;  /* ps at rate 1 */
	double rate;
	ft_ps at;     /* when left was true */
	double port_frac, nic_frac, beside;
	uint8_t stream;
	bool optimizer;
};

void running_begin(struct running *r, const struct cost *c, int stream,
		   bool optimizer, ft_ps now);

/* Take another rate from now on; the time it will end. */
ft_ps running_change(struct running *r, ft_ps now, double rate);

/* The rates of n ops that run together on one rank. */
void rates_of(struct running *const *run, int n, double copy_beside_gemm,
	      double *rate);

#endif
