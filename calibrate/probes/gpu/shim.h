/* calibrate/probes/gpu/shim.h - finding the attention shim and believing it, no GPU needed */
#ifndef CALIBRATE_PROBE_SHIM_H
#define CALIBRATE_PROBE_SHIM_H

#include <stddef.h>

#include "calibrate/probes/attention_shim.h"

/* The shim in folder, or where the loader looks (folder NULL or without one); it
 * stays loaded. NULL: none, with *why empty when there is no file, else what is
 * wrong with it. */
const struct ft_shim *shim_load(const char *folder, char *why, size_t n_why);

#endif
