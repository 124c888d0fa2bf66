/* tests/test_base_twins.c - what base/ does fast, against the obvious way */
#include <math.h>

#include "tests/check.h"

#include "base/arena.h"
#include "base/csv.h"
#include "base/digest.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "base/text.h"

/* ---- numbers: strtod -------------------------------------------------------------- */

static void reads_as_strtod_does(const char *text)
{
	char *end, *want_end;
	double want = strtod(text, &want_end), got = plain_number(text, &end);

	/* bytes, since nan is not itself and zero has a sign */
	if (memcmp(&got, &want, sizeof(got)) || end != want_end)
		fail_msg("'%s' is %.17g, %d characters; strtod says %.17g, %d", text,
			 got, (int)(end - text), want, (int)(want_end - text));
}

static void numbers_are_those_of_strtod(void **state)
{
	static const char *const odd[] = {
		"",
		".",
		"-",
		"-.",
		"+1",
		" 7",
		"\n7",
		"0",
		"-0",
		"-0.0",
		"1.",
		".5",
		"-.5",
		"1..2",
		"1.2.3",
		"1e",
		"1e5",
		"2E-3",
		"0x10",
		"0X1p3",
		"inf",
		"-nan",
		"1,5",
		"1-2",
		"4503599627370497.5",
		"9007199254740993",
		"123456789012345",
		"1234567890123456",
		"12345678.9012345",
		"123456789.0123456",
		"0.000000000000001",
		"0.00000000000001",
		"99999999999999.9",
		"1e22",
		"1e23",
		"1.5e-21",
		"1.5e-22",
		"123456789012345e22",
		"1e+5",
		"1e-",
		"1e+-5",
		"1e005",
		"1.e5",
		".5e1",
		".e1",
		"-0e3",
		"5e-324",
		"1e99999999999999999999",
		"1.05256E+12,",
	};
	static const char letters[] = "0123456789012345678901234567890123456789.,ee+-x";
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		reads_as_strtod_does(odd[i]);
	for (int i = 0; i < 100000; i++) {
		char text[40];

		snprintf(text, sizeof(text), "%.*g%c", (int)(rnd(&seed) % 18),
			 exp2((double)(rnd(&seed) % 200) - 100) * (rnd(&seed) + 1.0),
			 i % 3 ? '\0' : ',');
		reads_as_strtod_does(text);
	}
	for (int i = 0; i < 200000; i++) {
		char text[24] = "";

		for (uint32_t n = rnd(&seed) % 20; n-- > 0;)
			text[n] = letters[rnd(&seed) % (sizeof(letters) - 1)];
		reads_as_strtod_does(text);
	}
}

/* ---- CSV: cut at every comma -------------------------------------------------------- */

/* The next line of text that is neither empty nor a comment, without its end; NULL: none. */
static char *next_line(char **text, int *number)
{
	while (**text) {
		char *line = *text;
		size_t n = strcspn(line, "\n");

		*text += n + (line[n] == '\n');
		++*number;
		line[n] = '\0';
		if (n && line[n - 1] == '\r')
			line[n - 1] = '\0';
		if (*line && *line != '#')
			return line;
	}
	return NULL;
}

/* The same cells at the same places, or both refuse. */
static void reads_as_cut_up(const char *text)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv *t = csv_read_text(&mem, "x", text, strlen(text), &err);
	char *rest = arena_text(&mem, text), *line;
	size_t row = 0, width = 2;
	int number = 0;

	while ((line = next_line(&rest, &number))) {
		char *place = line, *cell;
		size_t n = 1;

		for (const char *p = line; *p; p++)
			n += *p == ',';
		if (n != width) {
			assert_null(t);
			assert_int_equal(err.line, number);
			break;
		}
		if (row && !line[strspn(line, ",")]) /* a row of empty cells */
			continue;
		/* a wrong row further down is still an error of the whole */
		for (int i = 0; t && row && (cell = strsep(&place, ",")); i++) {
			assert_string_equal(csv_text(t, row - 1, i), cell);
			assert_int_equal(csv_mark(t, row - 1, i).line, number);
			assert_int_equal(csv_mark(t, row - 1, i).column,
					 cell - line + 1);
		}
		row++;
	}
	if (!line && (!t || t->n_rows + 1 != row))
		fail_msg("'%s' is read otherwise", text);
	arena_release(&mem);
}

/* With semicolons or tabs for all commas it is the same table, and the same mistake. */
static void reads_with_other_signs(const char *text)
{
	static const char signs[] = ";\t";
	struct arena mem = { 0 };
	struct ft_error err = { .text = "" }, other = err;
	struct csv *t = csv_read_text(&mem, "x", text, strlen(text), &err), *u;

	for (int i = 0; i < 2; i++) {
		char *as = arena_text(&mem, text);

		for (char *p = as; *p; p++)
			if (*p == ',')
				*p = signs[i];
		u = csv_read_text(&mem, "x", as, strlen(as), &other);
		assert_int_equal(!t, !u);
		assert_int_equal(err.line, other.line);
		assert_string_equal(err.text, other.text);
		for (size_t k = 0; t && k < t->n_rows; k++)
			for (int c = 0; c < 2; c++) {
				assert_string_equal(csv_text(t, k, c),
						    csv_text(u, k, c));
				assert_int_equal(csv_mark(t, k, c).column,
						 csv_mark(u, k, c).column);
			}
		assert_true(!t || t->n_rows == u->n_rows);
	}
	arena_release(&mem);
}

/* Row by row: what is called the same is, and words of earlier rows stay. */
static void rows_say_what_they_repeat(void **state)
{
	static const char text[] =
		"a,b,c\nx,1,\nx,12,\n\"x\",12,y\nx,1,y\r\nx,1,yy\n,,\nx,1,yy\n";
	static const bool same[6][3] = {
		/* behind a row of nothing, nothing is */
		{ false }, { true },	   { false, true },
		{ false }, { true, true }, { false },
	};
	const char *first;
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv_rows *t = csv_open_text(&mem, "x", text, sizeof(text) - 1, &err);
	double number;

	(void)state;
	ok_or_say(t, err);
	assert_int_equal(csv_rows_column(t, "c"), 2);
	assert_int_equal(csv_rows_column(t, "d"), -1);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(csv_next(t), 1);
		for (int k = 0; k < 3; k++)
			assert_int_equal(t->cell[k].same, same[i][k]);
		first = i ? first : t->cell[0].text;
		assert_string_equal(first, "x");
		assert_string_equal(t->cell[0].text, "x");
		ok_or_say(csv_rows_number(t, 1, &number), err);
		assert_true(number == (i == 1 || i == 2 ? 12 : 1));
	}
	assert_false(csv_rows_number(t, 2, &number));
	assert_int_equal(err.line, 8);
	assert_int_equal(err.column, 5);
	assert_int_equal(csv_next(t), 0);
	assert_int_equal(t->n_rows, 6);
	arena_release(&mem);
}

static void cells_are_what_lies_between_commas(void **state)
{
	static const char letters[] = "aaaaa1 -.#,,,,,\r\n\n\n";
	uint64_t seed = 11;

	(void)state;
	reads_as_cut_up("a,b\r\n1,2\r\n\r\n#,,\n3,\r");
	for (int i = 0; i < 100000; i++) {
		char text[40] = "a,b\n";

		for (uint32_t n = 4 + rnd(&seed) % 14; n-- > 4;)
			text[n] = letters[rnd(&seed) % (sizeof(letters) - 1)];
		reads_as_cut_up(text);
		reads_with_other_signs(text);
	}
}

/* Memory that was used before is zero when it is handed out again. */
static void what_is_handed_out_is_zero(void **state)
{
	uint64_t seed = 5;

	(void)state;
	arena_keep_pages();
	for (int i = 0; i < 200; i++) {
		struct arena mem = { 0 };

		for (int k = 0; k < 20; k++) {
			size_t n = 1 + rnd(&seed) % (k ? 5000 : 100000);
			char *p = arena_alloc(&mem, n, 1);

			for (size_t j = 0; j < n; j++)
				assert_int_equal(p[j], 0);
			memset(p, 0xff, n);
			memset(arena_bytes(&mem, n), 0xff, n);
		}
		arena_release(&mem);
	}
}

/* ---- arrays that grow: one that is long enough from the start ------------------------ */

/* Several grow at once, in any order: each keeps what it held, and new room is zero. */
static void arrays_that_grow_keep_what_they_hold(void **state)
{
	enum { ARRAYS = 5, MOST = 3000 };
	static uint64_t want[ARRAYS][MOST];
	uint64_t *array[ARRAYS] = { NULL }, seed = 3;
	size_t n[ARRAYS] = { 0 }, cap[ARRAYS] = { 0 };
	struct arena mem = { 0 };

	(void)state;
	for (int i = 0; i < ARRAYS * MOST / 2; i++) {
		/* in runs, as rows of a table come */
		size_t a = rnd(&seed) % 64 ? (size_t)i / 500 % ARRAYS :
					     rnd(&seed) % ARRAYS;

		if (n[a] == cap[a]) {
			array[a] = ARENA_GROW(&mem, array[a], &cap[a]);
			for (size_t k = n[a]; k < cap[a]; k++)
				assert_true(!array[a][k]);
		}
		array[a][n[a]] = want[a][n[a]] = rnd(&seed) + 1ull;
		n[a]++;
		for (size_t b = 0; i % 100 == 0 && b < ARRAYS; b++)
			if (n[b])
				assert_memory_equal(array[b], want[b],
						    n[b] * sizeof(**want));
	}
	arena_release(&mem);
}

#ifndef __SANITIZE_ADDRESS__ /* there every piece has an allocation of its own */
static void an_array_alone_grows_where_it_lies(void **state)
{
	struct arena mem = { 0 };
	size_t cap = 0, moved = 0;
	char *array = NULL;

	(void)state;
	arena_alloc(&mem, 1, 1);
	while (cap < 8192) {
		char *was = array;

		array = ARENA_GROW(&mem, array, &cap);
		moved += array != was;
	}
	assert_int_equal(moved, 1); /* out of nothing */
	while (cap < 1 << 20) {
		array = ARENA_GROW(&mem, array, &cap);
		array[cap - 1] = 1; /* the room is there */
	}
	assert_int_equal(array[8191], 0);
	arena_release(&mem);
}
#endif

/* ---- fingerprints and units -------------------------------------------------------------- */

static bool equal(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct ft_digest x = { 0 }, y = { 0 };

	digest_bytes(&x, a, n_a);
	digest_bytes(&y, b, n_b);
	/* either lane tells them apart: they are two fingerprints, not one */
	assert_int_equal(x.low == y.low, x.high == y.high);
	return x.low == y.low;
}

/* Equal bytes have one digest; one bit changed, one byte more or less, has another. */
static void a_digest_sees_every_bit(void **state)
{
	enum { MOST = 40 };
	struct ft_digest joined = { 0 }, apart = { 0 };
	uint64_t seed = 1;

	(void)state;
	for (size_t n = 0; n < MOST; n++) {
		char a[MOST + 1], b[MOST + 1] = { 0 };

		for (size_t i = 0; i <= MOST; i++)
			a[i] = (char)rnd(&seed);
		memcpy(b, a, n);
		assert_true(equal(a, n, b, n));
		assert_false(equal(b, n, b, n + 1));
		for (size_t bit = 0; bit < 8 * n; bit++) {
			b[bit / 8] ^= (char)(1 << bit % 8);
			assert_false(equal(a, n, b, n));
			b[bit / 8] ^= (char)(1 << bit % 8);
		}
	}
	for (size_t n = 200; n < 400; n += 7) {
		char a[400], b[400];

		for (size_t i = 0; i < n; i++)
			a[i] = b[i] = (char)rnd(&seed);
		assert_true(equal(a, n, b, n));
		assert_false(equal(a, n, b, n - 1));
		for (size_t bit = 0; bit < 8 * n; bit += 3) {
			b[bit / 8] ^= (char)(1 << bit % 8);
			assert_false(equal(a, n, b, n));
			b[bit / 8] ^= (char)(1 << bit % 8);
		}
		/* words that change places: of one lane, of two */
		for (size_t far = 8; far <= 32; far += 8) {
			memcpy(b, a + far, 8);
			memcpy(b + far, a, 8);
			assert_false(equal(a, n, b, n));
			memcpy(b, a, n);
		}
	}
	digest_text(&joined, "ab");
	digest_text(&apart, "a");
	digest_text(&apart, "b");
	assert_true(joined.low != apart.low && joined.high != apart.high);
}

/* What one of each unit is, and a thousand and 1,024 of those that take prefixes. */
static void one_of_each_unit_is_so_much(void **state)
{
	static const struct {
		enum dimension dim;
		const char *unit;
		double si;
		bool prefixed;
	} units[] = {
		{ DIM_NONE, "", 1, false },
		{ DIM_COUNT, "", 1, true },
		{ DIM_COUNT, "B", 1e9, false },
		{ DIM_FRAC, "", 1, false },
		{ DIM_FRAC, "%", 0.01, false },
		{ DIM_BYTES, "B", 1, true },
		{ DIM_BYTES, "b", 1 / 8., true },
		{ DIM_BYTES_PER_S, "B/s", 1, true },
		{ DIM_BYTES_PER_S, "b/s", 1 / 8., true },
		{ DIM_BYTES_PER_S, "Bps", 1, true },
		{ DIM_BYTES_PER_S, "bps", 1 / 8., true },
		{ DIM_FLOP_PER_S, "FLOP/s", 1, true },
		{ DIM_S, "ps", 1e-12, false },
		{ DIM_S, "ns", 1e-9, false },
		{ DIM_S, "us", 1e-6, false },
		{ DIM_S, "ms", 1e-3, false },
		{ DIM_S, "s", 1, false },
		{ DIM_S, "min", 60, false },
		{ DIM_S, "h", 60 * 60, false },
		{ DIM_S, "d", 24 * 60 * 60, false },
		{ DIM_S, "y", 365 * 24 * 60 * 60, false },
		{ DIM_S, "year", 365 * 24 * 60 * 60, false },
		{ DIM_S, "years", 365 * 24 * 60 * 60, false },
		{ DIM_S, "hour", 60 * 60, false },
		{ DIM_S, "hours", 60 * 60, false },
		{ DIM_S, "day", 24 * 60 * 60, false },
		{ DIM_S, "days", 24 * 60 * 60, false },
		{ DIM_S, "month", 365 * 2 * 60 * 60, false },
		{ DIM_S, "months", 365 * 2 * 60 * 60, false },
		{ DIM_W, "W", 1, true },
		{ DIM_J, "J", 1, true },
		{ DIM_M, "m", 1, false },
		{ DIM_USD, "USD", 1, true },
		{ DIM_USD_PER_HOUR, "USD/h", 1, false },
		{ DIM_USD_PER_YEAR, "USD/y", 1, true },
		{ DIM_USD_PER_KWH, "USD/kWh", 1, false },
		{ DIM_USD_PER_KWH, "USD/MWh", 1 / 1000., false },
		{ DIM_USD_PER_KW_MONTH, "USD/kW-month", 1, false },
	};
	static const struct {
		const char *prefix;
		double times;
	} prefixes[] = { { "", 1 },	   { "k", 1e3 },     { "M", 1e6 },
			 { "G", 1e9 },	   { "T", 1e12 },    { "P", 1e15 },
			 { "Ki", 0x1p10 }, { "Mi", 0x1p20 }, { "Gi", 0x1p30 },
			 { "Ti", 0x1p40 } };

	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		for (size_t k = 0; k < sizeof(prefixes) / sizeof(*prefixes); k++) {
			char text[64], why[200];
			double v;
			bool taken;

			snprintf(text, sizeof(text), "3.5 %s%s", prefixes[k].prefix,
				 units[i].unit);
			taken = quantity_parse(text, units[i].dim, &v, why,
					       sizeof(why));
			if (k && !units[i].prefixed)
				assert_false(taken);
			else if (!taken)
				fail_msg("%s: %s", text, why);
			else
				near_frac(v, 3.5 * prefixes[k].times * units[i].si,
					  1e-15);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_strtod),
		cmocka_unit_test(rows_say_what_they_repeat),
		cmocka_unit_test(cells_are_what_lies_between_commas),
		cmocka_unit_test(what_is_handed_out_is_zero),
		cmocka_unit_test(arrays_that_grow_keep_what_they_hold),
		cmocka_unit_test(a_digest_sees_every_bit),
		cmocka_unit_test(one_of_each_unit_is_so_much),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(an_array_alone_grows_where_it_lies),
#endif
	};

	return cmocka_run_group_tests_name("base twins", tests, NULL, NULL);
}
