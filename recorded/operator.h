/* recorded/operator.h - what a recorded operator was, as work */
#ifndef RECORDED_OPERATOR_H
#define RECORDED_OPERATOR_H

#include <jansson.h>

#include "foretoken/recorded.h"

/* The operator's arguments as recorded with shapes; kernel: the name of one that it
 * launched. false: its work cannot be told. */
bool operator_work(const char *name, const json_t *args, const char *kernel,
		   struct ft_rec_work *work);

#endif
