/*
 * reports/show.h - numbers as people read them: one unit a row, thousands apart
 */
#ifndef REPORTS_SHOW_H
#define REPORTS_SHOW_H

#include "foretoken/study.h"

enum { SHOWN = 48 };

/* How a row is shown whose largest value this is. */
struct shown {
	double scale;	  /* of the value before it is printed */
	int decimals;	  /* behind the point */
	const char *unit; /* "" for none */
};

struct shown shown_as(enum ft_show show, double largest);

/* The value without a unit: "1,189,163", "52.7"; "-" when it is not finite. */
const char *shown_number(const struct shown *as, double value, char out[SHOWN]);

/* The value with its unit: "7.054 s", "52.7 %". */
const char *shown_text(enum ft_show show, double value, char out[SHOWN]);

/* Thousands apart, and below 10,000 four digits: "115,700", "12.3". */
const char *shown_amount(double value, char out[SHOWN]);

/* In three digits or more, so that those below each other have as many: "2.00", "15.4", "4,280". */
const char *shown_digits(double value, char out[SHOWN]);

#endif
