/* calibrate/kineto.h - what a recorded operator was, as a cell of the store */
#ifndef CALIBRATE_KINETO_H
#define CALIBRATE_KINETO_H

#include <jansson.h>

#include "foretoken/calibrate.h"

/* The operator (an event of a trace recorded with shapes) as a product, attention
 * or memory-bound cell; kernel: the name of one that it launched. false: its work
 * cannot be told. */
bool kineto_cell(const json_t *op, const char *kernel, struct ft_measurement *m);

/* The collective that the arguments of a kernel, or of its operator, describe. */
bool kineto_collective(const json_t *event, struct ft_measurement *m);

#endif
