/* traces/gates.h - gates of attention's output by a product of their own, and limits of MLPs' gates */
#ifndef TRACES_GATES_H
#define TRACES_GATES_H

#include <stdbool.h>

struct builder;
struct layer_sizes;

/* Attention's output times its gates, or their gradients; and bytes a token that a layer keeps for it. */
void output_gates(struct builder *b, const struct layer_sizes *s, bool backward);
double output_gates_kept(const struct builder *b, const struct layer_sizes *s);

/* Are an MLP's gate and value limited by kernels of their own? These, of so many numbers; halves: the value lies in a row of
 * two. */
bool limits_gates(const struct builder *b);
void put_limits(struct builder *b, const char *name, double numbers, bool halves,
		bool backward);

#endif
