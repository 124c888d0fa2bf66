/*
 * calibrate/probes/reference.h - what attention and collectives should have given, in plain
 * C and double precision; knows no GPU, so it is tested without one
 */
#ifndef CALIBRATE_PROBE_REFERENCE_H
#define CALIBRATE_PROBE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One head: keys rows of d numbers each. */
struct reference_head {
	const float *k, *v;
	size_t keys, d;
};

/* One query of it: its probabilities (keys of them) and its output, d numbers. */
void reference_query(const struct reference_head *h, const float *q, double *p,
		     double *o);

/* The same query backwards, d_o the gradient of its output: its own gradient, and
 * what it adds to those of the keys and values (keys rows each). */
void reference_query_back(const struct reference_head *h, const float *q,
			  const float *d_o, const double *p, double *d_q, double *d_k,
			  double *d_v);

/* ||out - want|| / ||want||, of nothing wanted ||out||; NaN when anything is */
double reference_distance(const double *out, const double *want, size_t n);

/* The largest distance of one of the rows of d numbers, relative to that row's size or
 * to what rows have in the mean square, whichever is more: one row that is wrong
 * does not drown among thousands. */
double reference_worst_row(const double *out, const double *want, size_t rows,
			   size_t d);

/* A collective among n ranks of `each` elements a rank (all: n times that; of
 * all_reduce, broadcast and sendrecv `all` elements, whatever n). Element at of
 * rank's result is that at *index of rank *from's source, or with *from = -1 the
 * sum over all ranks of theirs at *index. False beyond what rank receives. */
bool reference_collective(const char *op, int n, size_t all, int rank, size_t at,
			  int *from, size_t *index);

#endif
