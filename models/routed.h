/*
 * models/routed.h - which layers of a config have experts
 */
#ifndef MODELS_ROUTED_H
#define MODELS_ROUTED_H

#include <stdbool.h>
#include <stdint.h>

struct reader;

/* Of n layers, by their names, marks or numbers, else by where they begin and how often they come; what is said twice has to
 * agree. Mistakes are kept in the reader. */
void routed_set(struct reader *r, int64_t n, bool *is_routed);

#endif
