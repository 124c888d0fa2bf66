/* traces/dtensor.h - what PyTorch's DTensor takes a redistribution to cost, by which it chooses among ways */
#ifndef TRACES_DTENSOR_H
#define TRACES_DTENSOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of a tensor of that many bytes, whole, in a group of `ranks`, microseconds:
 *
 *	gathered, or summed and divided   6.6 + (ranks - 1) (latency + bytes / ranks / rate)
 *	summed                            6.6 + 2 (ranks - 1) (latency + bytes / ranks / rate)
 *	divided by another dimension      as one rank's part is gathered, and 1 more
 *
 * 0.6 us and 87.7 GiB/s in a host, 2.7 us and 0.22 of that beyond. It is no model of a network: the prices
 * decide which collectives run, and foretoken's own models how long these take.
 * Source: PyTorch 2.11, torch/distributed/tensor/_collective_utils.py.
 */
struct dtensor_mesh {
	int64_t ranks;
	bool beyond; /* one host */
};

double dtensor_gather_us(struct dtensor_mesh mesh, double bytes);
double dtensor_sum_us(struct dtensor_mesh mesh, double bytes);
double dtensor_turn_us(struct dtensor_mesh mesh, double bytes);

#endif
