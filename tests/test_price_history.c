/*
 * tests/test_price_history.c - an item's prices in many books, against the books one by one; and as
 * they are told: a table, JSON and the data of a plot
 */
#include <glob.h>
#include <math.h>

#include <jansson.h>
#include <sqlite3.h>

#include "foretoken/cost_history.h"
#include "foretoken/reports.h"
#include "tests/printed.h"
#include "tests/scratch.h"

enum { BOOKS = 64, POINTS = 2000, DRAWS = 12 };

static uint64_t seed = 27;

/* ---- books --------------------------------------------------------------------------- */

/* All lines of all books that are the book's own. */
struct all {
	struct ft_prices *book[BOOKS];
	size_t books, n;
	struct ft_price_point point[POINTS];
};

static void add(struct all *a, const char *name)
{
	struct ft_error err;
	struct ft_prices *b = ft_prices_load(name, NULL, &err);

	ok_or_say(b, err);
	a->book[a->books++] = b;
	for (size_t i = 0; i < b->n_prices + b->n_rents; i++) {
		const struct ft_price *p =
			i < b->n_prices ? &b->price[i] : &b->rent[i - b->n_prices];

		/* what a book of rents has of purchases is no price of its own */
		if (strcmp(p->book, b->name) != 0 || (b->n_rents && i < b->n_prices))
			continue;
		a->point[a->n++] = (struct ft_price_point){ p->item,
							    b->name,
							    b->buyer,
							    p->vendor,
							    p->usd.from->date,
							    p->usd.from->source,
							    p->usd.from->address,
							    p->kind,
							    b->n_rents > 0,
							    p->usd.value,
							    p->usd.low,
							    p->usd.high };
	}
}

static struct all *all_books(void)
{
	struct all *a = calloc(1, sizeof(*a));
	glob_t g;

	assert_int_equal(glob("cost/prices/*.yaml", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		char *leaf = strrchr(g.gl_pathv[i], '/') + 1;

		leaf[strlen(leaf) - 5] = '\0';
		add(a, leaf);
	}
	globfree(&g);
	assert_true(a->books > 5 && a->n > 40);
	return a;
}

static void drop_books(struct all *a)
{
	while (a->books)
		ft_prices_free(a->book[--a->books]);
	free(a);
}

static void same_point(const struct ft_price_point *a, const struct ft_price_point *b)
{
	assert_string_equal(a->item, b->item);
	assert_string_equal(a->book, b->book);
	assert_string_equal(a->buyer, b->buyer);
	assert_string_equal(a->vendor, b->vendor);
	assert_string_equal(a->date, b->date);
	assert_string_equal(a->source, b->source);
	assert_string_equal(a->address, b->address);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->rent, b->rent);
	assert_true(a->usd == b->usd && a->low == b->low && a->high == b->high);
}

/* Each of the item's points, once, in order. */
static void is_whole(const struct all *a, const char *item,
		     const struct ft_price_history *h)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		size_t at = 0;

		if (strcmp(a->point[i].item, item) != 0)
			continue;
		n++;
		while (at < h->n && strcmp(h->point[at].book, a->point[i].book) != 0)
			at++;
		assert_true(at < h->n);
		same_point(&h->point[at], &a->point[i]);
	}
	assert_int_equal(h->n, n);
	for (size_t i = 1; i < h->n; i++) {
		int date = strcmp(h->point[i - 1].date, h->point[i].date);

		assert_true(date < 0 || (!date && strcmp(h->point[i - 1].book,
							 h->point[i].book) < 0));
	}
}

static void a_history_has_each_books_own_line(void **state)
{
	const struct scratch *s = *state;
	struct all *a = all_books();
	struct ft_error err;

	for (size_t b = 0; b < a->books; b++) {
		size_t n, own = 0;

		for (size_t i = 0; i < a->n; i++)
			own += !strcmp(a->point[i].book, a->book[b]->name);
		ok_or_say(ft_price_history_import(s->path, a->book[b]->name, &n, &err),
			  err);
		assert_int_equal(n, own);
	}
	for (size_t i = 0; i < a->n; i += 3) {
		const char *item = a->point[i].item;
		struct ft_price_history *tree = ft_price_history_load(item, NULL, &err);
		struct ft_price_history *kept =
			ft_price_history_load(item, s->path, &err);

		assert_non_null(tree);
		assert_non_null(kept);
		is_whole(a, item, tree);
		is_whole(a, item, kept);
		ft_price_history_free(tree);
		ft_price_history_free(kept);
	}
	drop_books(a);
}

/* ---- a file of the user's ------------------------------------------------------------ */

static void write_book(const char *path, const char *date, int likely, const char *more)
{
	FILE *f = fopen(path, "w");

	fprintf(f,
		"name: mine\ndate: %s\nextends: mixnet-2025\nprices:\n  widget:\n"
		"    usd: {value: %d USD, low: %d USD, high: %d USD}\n"
		"    provenance: {kind: published, source: me, date: %s}\n%s",
		date, likely, likely - 1, likely + 1, date, more);
	fclose(f);
}

static size_t points_of(const char *db, const char *item, double *usd)
{
	struct ft_error err;
	struct ft_price_history *h = ft_price_history_load(item, db, &err);
	size_t n = h ? h->n : 0;

	for (size_t i = 0; i < n; i++)
		usd[i] = h->point[i].usd;
	if (!h)
		assert_non_null(strstr(err.text, "no book has a price of"));
	ft_price_history_free(h);
	return n;
}

/* The same book and date takes the place of what was there, line by line; another stands beside. */
static void a_book_takes_the_place_of_its_date(void **state)
{
	static const char gadget[] =
		"  gadget:\n    usd: 5 USD\n    provenance: {kind: "
		"published, source: me, date: 2025-05}\n";
	const struct scratch *s = *state;
	char path[128];
	double usd[4];
	struct ft_error err;
	size_t n;

	snprintf(path, sizeof(path), "%s/mine.yaml", s->folder);
	write_book(path, "2025-05", 10, gadget);
	ok_or_say(ft_price_history_import(s->path, path, &n, &err), err);
	assert_int_equal(n, 2);
	assert_int_equal(points_of(s->path, "gadget", usd), 1);
	assert_true(usd[0] == 5);
	write_book(path, "2025-05", 20, "");
	ok_or_say(ft_price_history_import(s->path, path, &n, &err), err);
	assert_int_equal(n, 1);
	assert_int_equal(points_of(s->path, "gadget", usd), 0);
	assert_int_equal(points_of(s->path, "widget", usd), 1);
	assert_true(usd[0] == 20);
	write_book(path, "2025-04", 30, "");
	ok_or_say(ft_price_history_import(s->path, path, &n, &err), err);
	assert_int_equal(points_of(s->path, "widget", usd), 2);
	assert_true(usd[0] == 30 && usd[1] == 20);
	assert_int_equal(points_of(s->path, "switch-ndr-64", usd), 0);
	assert_null(ft_price_history_load("widgit", s->path, &err));
	assert_string_equal(err.text, "no book has a price of 'widgit'; did you mean "
				      "'widget'?");
	assert_null(ft_price_history_load("zzzzzzzzzzzz", s->path, &err));
	assert_string_equal(err.text, "no book has a price of 'zzzzzzzzzzzz'");
}

static void set_pragma(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* By its mark and its version, and not by its name. */
static void another_files_tables_are_left_alone(void **state)
{
	static const struct {
		const char *sql;
		bool taken;
	} file[] = {
		{ "PRAGMA user_version=3", true }, /* nothing is in it */
		{ "PRAGMA application_id=1", false },
		{ "CREATE TABLE t (a)", false },
		{ "CREATE TABLE t (a); PRAGMA application_id=0x46545052; PRAGMA "
		  "user_version=1",
		  true },
		{ "CREATE TABLE t (a); PRAGMA application_id=0x46545052; PRAGMA "
		  "user_version=2",
		  false },
		{ "CREATE TABLE t (a); PRAGMA application_id=0x46545053; PRAGMA "
		  "user_version=1",
		  false },
	};
	const struct scratch *s = *state;

	for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++) {
		struct ft_error err;
		size_t n;

		unlink(s->path);
		set_pragma(s->path, file[i].sql);
		assert_int_equal(
			ft_price_history_import(s->path, "mixnet-2025", &n, &err),
			file[i].taken);
		if (!file[i].taken) {
			assert_string_equal(err.text, "is no history of prices of this "
						      "version; take another file");
			assert_string_equal(err.file, s->path);
		}
	}
}

/* ---- as it is told ------------------------------------------------------------------- */

/* A history, and when each of its prices is of, as a year. */
struct drawn {
	struct ft_price_history h;
	struct ft_price_point point[9];
	double year[9];
	char date[9][24];
	char source[9][100];
};

/* Dates grow; each is a year, a month, a day, or none that can be read. */
static void draw_date(struct drawn *d, size_t i, int year)
{
	int month = 1 + (int)(rnd(&seed) % 12), day = 1 + (int)(rnd(&seed) % 28);
	char *to = d->date[i];
	const size_t n = sizeof(d->date[i]);

	d->year[i] = year + 0.5;
	switch (rnd(&seed) % 5) {
	case 0:
		snprintf(to, n, "%d", year);
		break;
	case 1:
		snprintf(to, n, "%d-%d", year, year + 1);
		break;
	case 2:
		snprintf(to, n, "%d-%02d", year, month);
		d->year[i] = year + (month - 0.5) / 12;
		break;
	case 3:
		snprintf(to, n, "%d-%02d", year, 13 * (month % 2));
		break;
	default:
		snprintf(to, n, "%d-%02d-%02d", year, month, day);
		d->year[i] = year + (month - 1) / 12.0 + (day - 1) / 365.0;
	}
}

static void draw_history(struct drawn *d)
{
	static const char *const books[] = { "one", "a-second", "third", "n4" };
	bool rent = rnd(&seed) % 2;

	d->h.n = 1 + rnd(&seed) % 9;
	d->h.point = d->point;
	for (size_t i = 0; i < d->h.n; i++) {
		double usd = (double)(1 + rnd(&seed) % 1000000) / (rent ? 1e4 : 10);

		draw_date(d, i, 2020 + (int)i);
		snprintf(d->source[i], sizeof(d->source[i]), "%.*s",
			 (int)(5 + rnd(&seed) % 90),
			 "a-source-that-is-long-and-has-no-blank-in-it-so-that-it-can-"
			 "be-cut-where-it-has-to-be-cut-12345");
		d->point[i] = (struct ft_price_point){
			.item = "a-thing",
			.book = books[rnd(&seed) % 4],
			.buyer = rnd(&seed) % 2 ? "neocloud" : "",
			.vendor = rnd(&seed) % 2 ? "V" : "",
			.date = d->date[i],
			.source = d->source[i],
			.address = "https://example.org/",
			.kind = (enum ft_price_kind)(rnd(&seed) % FT_PRICE_KINDS),
			.rent = rent,
			.usd = usd,
			.low = 0.8 * usd,
			.high = 1.7 * usd,
		};
	}
}

static void the_table_is(const struct drawn *d)
{
	char *text;
	const char *head =
		d->point[0].rent ? "a-thing, a GPU and hour\n\n" : "a-thing\n\n";
	int digits = d->point[0].rent ? 2 : 0;
	struct printed p;

	PRINTED(text, ft_report_price_history(out, &d->h));
	assert_true(!strncmp(text, head, strlen(head)));
	printed_read(&p, text, "date");
	PRINTED_HEADS(&p, "date", ">low USD", ">likely USD", ">high USD", "price",
		      "book", "buyer", "source");
	assert_int_equal(p.lines, d->h.n + 1);
	for (size_t i = 0; i < d->h.n; i++) {
		const struct ft_price_point *x = &d->point[i];

		PRINTED_IS(&p, i + 1, 0, "%s", x->date);
		PRINTED_IS(&p, i + 1, 1, "%.*f", digits, x->low);
		PRINTED_IS(&p, i + 1, 2, "%.*f", digits, x->usd);
		PRINTED_IS(&p, i + 1, 3, "%.*f", digits, x->high);
		PRINTED_IS(&p, i + 1, 4, "%s", ft_price_kind_name(x->kind));
		PRINTED_IS(&p, i + 1, 5, "%s", x->book);
		PRINTED_IS(&p, i + 1, 6, "%s", *x->buyer ? x->buyer : "-");
		PRINTED_IS(&p, i + 1, 7, "%s", x->source);
	}
	printed_drop(&p);
	free(text);
}

static void the_json_is(const struct drawn *d)
{
	char *text;
	json_t *j, *rows;

	PRINTED(text, ft_report_price_history_json(out, &d->h));
	j = json_loads(text, 0, NULL);
	rows = json_object_get(j, "prices");
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "item")), "a-thing");
	assert_int_equal(json_is_true(json_object_get(j, "per_hour")),
			 d->point[0].rent);
	assert_int_equal(json_object_size(j), 3);
	assert_int_equal(json_array_size(rows), d->h.n);
	for (size_t i = 0; i < d->h.n; i++) {
		const struct ft_price_point *x = &d->point[i];
		json_t *want =
			json_pack("{s:f, s:f, s:f, s:s, s:s, s:s, s:s, s:s, s:s, "
				  "s:s}",
				  "usd", x->usd, "low_usd", x->low, "high_usd", x->high,
				  "kind", ft_price_kind_name(x->kind), "book", x->book,
				  "buyer", x->buyer, "vendor", x->vendor, "source",
				  x->source, "address", x->address, "date", x->date);
		json_t *got = json_array_get(rows, i);

		for (int k = 0; k < 3; k++) {
			static const char *const key[] = { "usd", "low_usd",
							   "high_usd" };

			near_frac(json_number_value(json_object_get(got, key[k])),
				  json_number_value(json_object_get(want, key[k])),
				  1e-12);
			json_object_del(got, key[k]);
			json_object_del(want, key[k]);
		}
		assert_true(json_equal(got, want));
		json_decref(want);
	}
	json_decref(j);
	free(text);
}

/* A block for each book, in order of their first prices; within it each of its points. */
static void the_plot_is(const struct drawn *d, const char *folder)
{
	char path[128], line[200], want[200];
	struct ft_error err;
	bool done[9] = { false };
	size_t blocks = 0, drawn = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/drawn.svg", folder);
	(void)!ft_report_price_history_plot(path, &d->h, &err); /* gnuplot or none */
	strcpy(path + strlen(path) - 3, "dat");
	f = fopen(path, "r");
	assert_non_null(f);
	for (size_t i = 0; i < d->h.n; i++) {
		if (done[i])
			continue;
		snprintf(want, sizeof(want), "# %s: year, USD, low, high\n",
			 d->point[i].book);
		for (int k = 0; blocks && k < 2; k++)
			assert_string_equal(fgets(line, sizeof(line), f), "\n");
		assert_string_equal(fgets(line, sizeof(line), f), want);
		blocks++;
		for (size_t k = i; k < d->h.n; k++) {
			double x[4];

			if (strcmp(d->point[k].book, d->point[i].book) != 0)
				continue;
			done[k] = true;
			drawn++;
			assert_non_null(fgets(line, sizeof(line), f));
			assert_int_equal(sscanf(line, "%lf %lf %lf %lf", &x[0], &x[1],
						&x[2], &x[3]),
					 4);
			assert_true(fabs(x[0] - d->year[k]) < 6e-5);
			near_frac(x[1], d->point[k].usd, 1e-8);
			near_frac(x[2], d->point[k].low, 1e-8);
			near_frac(x[3], d->point[k].high, 1e-8);
		}
	}
	fclose(f);
	assert_int_equal(drawn, d->h.n);
}

static void a_history_is_told_as_it_is(void **state)
{
	const struct scratch *s = *state;

	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = { .h.n = 0 };

		draw_history(&d);
		the_table_is(&d);
		the_json_is(&d);
		if (i < 3)
			the_plot_is(&d, s->folder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_history_has_each_books_own_line),
		TEST(a_book_takes_the_place_of_its_date),
		TEST(another_files_tables_are_left_alone),
		TEST(a_history_is_told_as_it_is),
	};

	return cmocka_run_group_tests_name("price history", tests, NULL, NULL);
}
