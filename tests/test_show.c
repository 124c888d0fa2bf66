/* tests/test_show.c - numbers as people read them, read back */
#include "tests/check.h"

#include <math.h>

#include "reports/show.h"

enum { DRAWS = 3000 };

static uint64_t seed = 12;

/* What one of a unit is. */
static double one_of(const char *unit)
{
	static const struct {
		const char *unit;
		double is;
	} units[] = { { "us", 1e-6 },
		      { "ms", 1e-3 },
		      { "s", 1 },
		      { "MB", 1e6 },
		      { "GB", 1e9 },
		      { "USD", 1 },
		      { "J", 1 },
		      { "kW", 1e3 },
		      { "MW", 1e6 },
		      { "TFLOP/s", 1e12 },
		      { "%", 0.01 },
		      { "", 1 },
		      { "million USD", 1e6 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(units[i].unit, unit))
			return units[i].is;
	fail_msg("what is a '%s'?", unit);
	return 0;
}

/* The number of a text with commas before each three digits left of the point; how many digits
 * are behind it, and the unit. */
static double read_back(const char *text, int *decimals, const char **unit)
{
	char digits[SHOWN];
	size_t n = 0, since = 0;
	bool point = false, comma = false;

	*decimals = 0;
	for (; *text && *text != ' '; text++) {
		if (*text == ',') {
			assert_true(!point && since > 0 &&
				    (comma ? since == 3 : since <= 3));
			comma = true;
			since = 0;
			continue;
		}
		if (*text == '.') {
			assert_true(comma ? since == 3 : since <= 3);
			point = true;
		} else if (*text != '-') {
			since++;
			*decimals += point;
		}
		digits[n++] = *text;
	}
	digits[n] = '\0';
	if (!point)
		assert_true(comma ? since == 3 : since <= 3);
	*unit = *text ? text + 1 : text;
	return strtod(digits, NULL);
}

static const struct {
	enum ft_show show;
	int decimals; /* of the largest unit */
	double least; /* shown in a unit of its own from there on; 0: there is one unit */
	const char *large, *small;
} kinds[] = {
	{ FT_SHOW_S, 3, 1, "s", NULL },
	{ FT_SHOW_COUNT, 0, 0, "", NULL },
	{ FT_SHOW_RATE, 1, 0, "", NULL },
	{ FT_SHOW_FLOP_PER_S, 1, 0, "TFLOP/s", NULL },
	{ FT_SHOW_FRAC, 1, 0, "%", NULL },
	{ FT_SHOW_BYTES, 1, 1e9, "GB", "MB" },
	{ FT_SHOW_USD, 2, 1e6, "million USD", "USD" },
	{ FT_SHOW_USD_PER_HOUR, 3, 0, "", NULL },
	{ FT_SHOW_USD_PER_MTOKEN, 4, 0, "", NULL },
	{ FT_SHOW_J, 3, 0, "J", NULL },
	{ FT_SHOW_W, 2, 1e6, "MW", "kW" },
};

/* In the unit that it reaches, rounded to as many digits as are shown. */
static void a_number_reads_back_as_it_was(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			double v = pow(10, rnd(&seed) % 19 - 6.0 +
						   (double)(rnd(&seed) % 1000) / 1000);
			char text[SHOWN];
			const char *unit;
			int decimals;
			double is;

			v *= rnd(&seed) % 4 ? 1 : -1;
			shown_text(kinds[k].show, v, text);
			is = read_back(text, &decimals, &unit);
			if (fabs(is) >= 1e15) /* beyond what digits hold */
				continue;
			if (fabs(is * one_of(unit) - v) >
			    0.5000001 * pow(10, -decimals) * one_of(unit) +
				    1e-15 * fabs(v))
				fail_msg("%.17g is shown as %s", v, text);
			if (kinds[k].least > 0 && fabs(v) < kinds[k].least) {
				assert_string_not_equal(unit, kinds[k].large);
				if (kinds[k].small)
					assert_string_equal(unit, kinds[k].small);
				continue;
			}
			assert_string_equal(unit, kinds[k].large);
			assert_int_equal(decimals, kinds[k].decimals);
		}
}

static void times_have_the_unit_that_they_reach(void **state)
{
	static const struct {
		double s;
		const char *text;
	} times[] = { { 0, "0.0 us" },		{ 12.34e-6, "12.3 us" },
		      { 0.999e-3, "999.0 us" }, { 1e-3, "1.00 ms" },
		      { 0.5, "500.00 ms" },	{ 1, "1.000 s" },
		      { -2, "-2.000 s" },	{ 1234.5678, "1,234.568 s" } };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		char text[SHOWN];

		assert_string_equal(shown_text(FT_SHOW_S, times[i].s, text),
				    times[i].text);
	}
}

/* One unit for a row, that of its largest. */
static void a_row_has_one_unit(void **state)
{
	struct shown as = shown_as(FT_SHOW_BYTES, -5e9);
	char text[SHOWN];

	(void)state;
	assert_string_equal(as.unit, "GB");
	assert_string_equal(shown_number(&as, 3e6, text), "0.0");
	assert_string_equal(shown_number(&as, 5.06e9, text), "5.1");
}

static void what_is_no_number_is_a_dash(void **state)
{
	static const double none[] = { INFINITY, -INFINITY, NAN };
	struct shown as = shown_as(FT_SHOW_COUNT, 1);
	char text[SHOWN];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_string_equal(shown_number(&as, none[i], text), "-");
	assert_string_equal(shown_number(&as, 1e20, text), "1e+20");
	assert_string_equal(shown_number(&as, -1e33, text), "-1e+33");
	assert_string_equal(shown_number(&as, 99999999999999991611392.0, text),
			    "1e+23");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_reads_back_as_it_was),
		cmocka_unit_test(times_have_the_unit_that_they_reach),
		cmocka_unit_test(a_row_has_one_unit),
		cmocka_unit_test(what_is_no_number_is_a_dash),
	};

	return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
