/*
 * stacks/runs.h - the `runs` map of a stack's file: the splits and shardings that its framework has
 */
#ifndef STACKS_RUNS_H
#define STACKS_RUNS_H

#include <stdbool.h>

struct ft_error;
struct ft_stack;
struct node;

/* Of a stack whose layout has been read. NULL: the file has no such map, and the framework has all. false: a
 * mistake, told in err. */
bool runs_read(const struct node *node, struct ft_stack *stack, struct ft_error *err);

#endif
