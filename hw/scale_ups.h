/*
 * hw/scale_ups.h - what joins the GPUs of a node, as nodes and profiles name it
 */
#ifndef HW_SCALE_UPS_H
#define HW_SCALE_UPS_H

enum { SCALE_UPS = 5 };

static const char *const scale_ups[SCALE_UPS] = { "nvlink", "nvlink-no-nvls",
						  "nvlink-mesh", "xgmi", "pcie" };

#endif
