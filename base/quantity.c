/* base/quantity.c - the table of units, and reading and writing with it */
#include "base/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plain.h"

/* A unit: its word, and SI per one of it. prefix: may k, M, Ki ... precede? */
struct unit {
	const char *word;
	double si;
	bool prefix;
};

enum { HOUR = 3600, DAY = 24 * HOUR, YEAR = 365 * DAY, UNITS = 18 };

struct kind {
	const char *what, *example;
	struct unit unit[UNITS]; /* as many as have a word */
};

static const struct kind kinds[DIMENSIONS] = {
	[DIM_NONE] = { "a number", "1.5", { { "", 1, false } } },
	[DIM_COUNT] = { "a number",
			"15T or 3.1e25",
			{ { "", 1, true }, { "B", 1e9, false } } },
	[DIM_FRAC] = { "a fraction",
		       "0.12 or 12 %",
		       { { "", 1, false }, { "%", 0.01, false } } },
	[DIM_BYTES] = { "a size", "80 GB", { { "B", 1, true }, { "b", 0.125, true } } },
	[DIM_BYTES_PER_S] = { "a bandwidth",
			      "4.8 TB/s or 400 Gb/s",
			      { { "B/s", 1, true },
				{ "b/s", 0.125, true },
				{ "Bps", 1, true },
				{ "bps", 0.125, true } } },
	[DIM_FLOP_PER_S] = { "a rate", "989.5 TFLOP/s", { { "FLOP/s", 1, true } } },
	[DIM_S] = { "a time",
		    "4.5 us or 4 y",
		    { { "ps", 1e-12, false },
		      { "ns", 1e-9, false },
		      { "us", 1e-6, false },
		      { "ms", 1e-3, false },
		      { "s", 1, false },
		      { "min", 60, false },
		      { "h", HOUR, false },
		      { "hour", HOUR, false },
		      { "hours", HOUR, false },
		      { "d", DAY, false },
		      { "day", DAY, false },
		      { "days", DAY, false },
		      { "month", YEAR / 12., false },
		      { "months", YEAR / 12., false },
		      { "y", YEAR, false },
		      { "year", YEAR, false },
		      { "years", YEAR, false } } },
	[DIM_W] = { "a power", "700 W", { { "W", 1, true } } },
	[DIM_J] = { "an energy", "3.6 MJ", { { "J", 1, true } } },
	[DIM_M] = { "a length", "30 m", { { "m", 1, false } } },
	[DIM_USD] = { "an amount", "190000 USD", { { "USD", 1, true } } },
	[DIM_USD_PER_HOUR] = { "a price", "2.10 USD/h", { { "USD/h", 1, false } } },
	[DIM_USD_PER_YEAR] = { "a price", "4500 USD/y", { { "USD/y", 1, true } } },
	[DIM_USD_PER_KWH] = { "a price",
			      "0.087 USD/kWh",
			      { { "USD/kWh", 1, false }, { "USD/MWh", 1e-3, false } } },
	[DIM_USD_PER_KW_MONTH] = { "a price",
				   "180 USD/kW-month",
				   { { "USD/kW-month", 1, false } } },
};

static const struct unit prefixes[] = {
	{ "Ki", 1024.0, false },
	{ "Mi", 1048576.0, false },
	{ "Gi", 1073741824.0, false },
	{ "Ti", 1099511627776.0, false },
	{ "Pi", 1125899906842624.0, false },
	{ "k", 1e3, false },
	{ "M", 1e6, false },
	{ "G", 1e9, false },
	{ "T", 1e12, false },
	{ "P", 1e15, false },
	{ "E", 1e18, false },
};

enum { PREFIXES = sizeof(prefixes) / sizeof(*prefixes) };

/* What one unit word is worth, 0 when the dimension has no such unit. */
static double worth(enum dimension dim, const char *word)
{
	const struct kind *k = &kinds[dim];

	for (size_t i = 0; i < UNITS && k->unit[i].word; i++) {
		const struct unit *u = &k->unit[i];

		if (!strcmp(word, u->word))
			return u->si;
		for (size_t p = 0; u->prefix && p < PREFIXES; p++) {
			size_t n = strlen(prefixes[p].word);

			if (!strncmp(word, prefixes[p].word, n) &&
			    !strcmp(word + n, u->word))
				return prefixes[p].si * u->si;
		}
	}
	return 0;
}

/* Units that differ from the word in small and large letters alone: "'kB' or 'kb'". */
static void alike(const struct kind *k, const char *word, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < UNITS && k->unit[i].word; i++)
		for (size_t p = 0; p <= PREFIXES; p++) {
			const char *prefix = p ? prefixes[p - 1].word : "";
			char unit[32];

			if (p && !k->unit[i].prefix)
				break;
			snprintf(unit, sizeof(unit), "%s%s", prefix, k->unit[i].word);
			if (*unit && !strcasecmp(unit, word) && n < size)
				n += (size_t)snprintf(out + n, size - n, "%s'%s'",
						      n ? " or " : "", unit);
		}
}

/* Why a word behind a number is no unit; "": there is none. */
static bool refuse_unit(const char *text, const char *word, const struct kind *k,
			char *why, size_t n)
{
	char meant[40];

	alike(k, word, meant, sizeof(meant));
	if (!*word)
		snprintf(why, n, "%.40s needs a unit, for example %s", text,
			 k->example);
	else if (*meant)
		snprintf(why, n, "'%.20s' is not a unit of %s; did you mean %s?", word,
			 k->what, meant);
	else
		snprintf(why, n, "'%.20s' is not a unit of %s; write for example %s",
			 word, k->what, k->example);
	return false;
}

/* A number of thousandths to the last bit, so that 87 USD/MWh is what 0.087 USD/kWh is: its point moves before it is read. */
static double thousandths(const char *text, double number)
{
	int n = (int)strspn(text, "+-.0123456789");
	char moved[64];

	if (n > 40 || text[n] == 'e' || text[n] == 'E')
		return number / 1000;
	snprintf(moved, sizeof(moved), "%.*se-3", n, text);
	return plain_number(moved, &(char *){ NULL });
}

bool quantity_parse(const char *text, enum dimension dim, double *value, char *why,
		    size_t n)
{
	const struct kind *k = &kinds[dim];
	double number, si;
	char *end;

	if (plain_is_hexadecimal(text)) {
		snprintf(why, n, "'%.40s' is hexadecimal; write decimals", text);
		return false;
	}
	number = plain_number(text, &end);
	if (end == text || (text[0] != '-' && text[0] != '+' && text[0] != '.' &&
			    (text[0] < '0' || text[0] > '9'))) {
		snprintf(why, n, "'%.40s' is not %s, for example %s", text, k->what,
			 k->example);
		return false;
	}
	while (*end == ' ')
		end++;
	si = worth(dim, end);
	if (si == 0)
		return refuse_unit(text, end, k, why, n);
	number = dim == DIM_USD_PER_KWH && si < 1 ? thousandths(text, number) :
						    number * si;
	if (!isfinite(number) || fabs(number) > 1e30) {
		snprintf(why, n, "%.40s is out of range", text);
		return false;
	}
	*value = number;
	return true;
}

static const char *scaled(double value, const char *unit, char *buf, size_t n)
{
	static const char *const thousand[] = { "", "k", "M", "G", "T", "P", "E" };
	size_t i = 0;
	double v = value;

	while (i + 1 < sizeof(thousand) / sizeof(*thousand) && fabs(v) >= 999.5) {
		v /= 1000;
		i++;
	}
	snprintf(buf, n, "%.3g %s%s", v, thousand[i], unit);
	return buf;
}

static const char *time_text(double s, char *buf, size_t n)
{
	static const char *const small[] = { "ns", "us", "ms", "s" };
	double v = s * 1e9;
	size_t i = 0;

	if (s >= YEAR)
		snprintf(buf, n, "%.3g y", s / YEAR);
	else if (s >= DAY)
		snprintf(buf, n, "%.3g d", s / DAY);
	else if (s >= HOUR)
		snprintf(buf, n, "%.3g h", s / HOUR);
	else if (s >= 600)
		snprintf(buf, n, "%.3g min", s / 60);
	else {
		for (; i < 3 && v >= 999.5; i++)
			v /= 1000;
		snprintf(buf, n, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, small[i]);
	}
	return buf;
}

const char *quantity_text(double value, enum dimension dim, char *buf, size_t n)
{
	return dim == DIM_S ? time_text(value, buf, n) :
			      scaled(value, kinds[dim].unit[0].word, buf, n);
}

void number_scale(struct ft_number *n, double by)
{
	n->value *= by;
	n->low *= by;
	n->high *= by;
}
