/* reports/show.c - units by size, thousands apart */
#include "reports/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last unit that the largest value reaches, from the smallest on. */
struct unit {
	double at_least, scale;
	int decimals;
	const char *unit;
};

static const struct unit seconds[] = {
	{ 0, 1e6, 1, "us" }, { 1e-3, 1e3, 2, "ms" }, { 1, 1, 3, "s" }, { 0, 0, 0, "" }
};
static const struct unit bytes[] = { { 0, 1e-6, 1, "MB" },
				     { 1e9, 1e-9, 1, "GB" },
				     { 0, 0, 0, "" } };
static const struct unit usd[] = { { 0, 1, 0, "USD" },
				   { 1e6, 1e-6, 2, "million USD" },
				   { 0, 0, 0, "" } };
static const struct unit flops[] = { { 0, 1e-12, 1, "TFLOP/s" }, { 0, 0, 0, "" } };
static const struct unit watts[] = { { 0, 1e-3, 1, "kW" },
				     { 1e6, 1e-6, 2, "MW" },
				     { 0, 0, 0, "" } };
static const struct unit percent[] = { { 0, 100, 1, "%" }, { 0, 0, 0, "" } };
static const struct unit joules[] = { { 0, 1, 3, "J" }, { 0, 0, 0, "" } };
static const struct unit plain[] = { { 0, 1, 0, "" }, { 0, 0, 0, "" } };
static const struct unit tenths[] = { { 0, 1, 1, "" }, { 0, 0, 0, "" } };
static const struct unit cents[] = { { 0, 1, 3, "" }, { 0, 0, 0, "" } };
static const struct unit hundredths[] = { { 0, 1, 4, "" }, { 0, 0, 0, "" } };

static const struct unit *const units[] = {
	[FT_SHOW_S] = seconds,
	[FT_SHOW_COUNT] = plain,
	[FT_SHOW_RATE] = tenths,
	[FT_SHOW_FLOP_PER_S] = flops,
	[FT_SHOW_FRAC] = percent,
	[FT_SHOW_BYTES] = bytes,
	[FT_SHOW_USD] = usd,
	[FT_SHOW_USD_PER_HOUR] = cents,
	[FT_SHOW_USD_PER_MTOKEN] = hundredths,
	[FT_SHOW_J] = joules,
	[FT_SHOW_W] = watts,
};

struct shown shown_as(enum ft_show show, double largest)
{
	const struct unit *u = units[show];

	while (u[1].scale > 0 && fabs(largest) >= u[1].at_least)
		u++;
	return (struct shown){ u->scale, u->decimals, u->unit };
}

/* A comma before each three digits left of the point. */
static void group(const char *digits, char out[SHOWN])
{
	size_t sign = *digits == '-', whole = strcspn(digits + sign, ".");
	size_t n = 0;

	for (size_t i = 0; digits[i] && n + 2 < SHOWN; i++) {
		size_t left = sign + whole - i;

		if (i > sign && i < sign + whole && left % 3 == 0)
			out[n++] = ',';
		out[n++] = digits[i];
	}
	out[n] = '\0';
}

const char *shown_number(const struct shown *as, double value, char out[SHOWN])
{
	char digits[SHOWN];

	if (!isfinite(value))
		snprintf(out, SHOWN, "-");
	else if (fabs(value * as->scale) >= 1e20)
		snprintf(out, SHOWN, "%.4g", value * as->scale);
	else {
		snprintf(digits, sizeof(digits), "%.*f", as->decimals,
			 value * as->scale);
		group(digits, out);
	}
	return out;
}

const char *shown_amount(double value, char out[SHOWN])
{
	if (!(fabs(value) < 1e4))
		return shown_number(&(struct shown){ 1, 0, "" }, value, out);
	snprintf(out, SHOWN, "%.4g", value);
	return out;
}

const char *shown_text(enum ft_show show, double value, char out[SHOWN])
{
	struct shown as = shown_as(show, value);
	size_t n;

	shown_number(&as, value, out);
	n = strlen(out);
	if (as.unit[0])
		snprintf(out + n, SHOWN - n, " %s", as.unit);
	return out;
}

const char *shown_digits(double value, char out[SHOWN])
{
	int decimals = 0;

	for (double v = fabs(value); v > 0 && v < 99.95 && decimals < 6; v *= 10)
		decimals++;
	return shown_number(&(struct shown){ 1, decimals, "" }, value, out);
}
