/*
 * base/quantity.h - numbers with units; the only place that knows k, Ki, bits
 *
 * "4.8 TB/s" -> 4.8e12 bytes per second, "400 Gb/s" or "400 Gbps" -> 5e10, "80 GiB",
 * "4.5 us", "4 y" (365 days), "48 months" (twelfths of years), "700 W", "2.10 USD/h",
 * "989.5 TFLOP/s", "12 %".
 * k M G T P are powers of 1000; Ki Mi Gi Ti powers of 1024; b is a bit, B a
 * byte. A bare number where a unit belongs is an error that says what to write;
 * so are NaN, infinities and what overflows.
 */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "foretoken/base.h"

enum dimension {
	DIM_NONE,  /* a plain number; "1e6" and "3.5" */
	DIM_COUNT, /* a plain number, or "15T" */
	DIM_FRAC,  /* a plain number, or "12 %" */
	DIM_BYTES,
	DIM_BYTES_PER_S,
	DIM_FLOP_PER_S,
	DIM_S,
	DIM_W,
	DIM_J,
	DIM_M,
	DIM_USD,
	DIM_USD_PER_HOUR,
	DIM_USD_PER_YEAR,
	DIM_USD_PER_KWH,
	DIM_USD_PER_KW_MONTH,
	DIMENSIONS
};

/* Text to SI. On failure why (of size n) says what is wrong and what to write. */
bool quantity_parse(const char *text, enum dimension dim, double *value, char *why,
		    size_t n);

/* SI to three significant digits and the handiest unit: "4.80 TB/s". */
const char *quantity_text(double value, enum dimension dim, char *buf, size_t n);

/* Value and range times a factor. */
void number_scale(struct ft_number *n, double by);

#endif
