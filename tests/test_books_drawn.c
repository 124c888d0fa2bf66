/*
 * tests/test_books_drawn.c - drawn price books: one alone, one upon another, lines that are taken from a third;
 * each price and figure with its vendor, book, kind, source and date as the nearest of its blocks says
 */
#include "base/arena.h"
#include "cost/price.h"
#include "foretoken/cost.h"
#include "tests/check.h"

enum { DRAWS = 300, BOOKS = 3, SECTIONS = 3, LINES = 9 };

/* Of the first nothing is taken; the second is extended; of the third lines are taken. */
enum { MINE, UNDER, ASIDE };

enum { PRICES, FACILITY, OPERATION };

static uint64_t seed = 37;

static const char *const keys[SECTIONS][LINES] = {
	{ "server", "switch", "cable", "optics", "rack" },
	{ "colocation", "electricity", "pue" },
	{ "maintenance_frac", "failure_factor", "checkpoint", "restart", "repair",
	  "failover", "flap", "storage_per_gpu", "management_per_gpu" },
};

static const char *const units[SECTIONS][LINES] = {
	{ "USD", "USD", "USD", "USD", "USD" },
	{ "USD/kW-month", "USD/kWh", "" },
	{ "", "", "s", "s", "s", "s", "s", "USD", "USD" },
};

/* A line: not there, taken, or with its own words of where it comes from, or its block's. */
struct line {
	bool there, from_aside, own, included;
	int value; /* hundredths of what is written */
	int origin;
	const char *vendor;
};

struct book {
	char name[16], path[96];
	int block_origin[SECTIONS];
	struct line of[SECTIONS][LINES];
};

struct drawn {
	struct book book[BOOKS];
	bool extends, rents;
};

static const struct {
	const char *kind, *source, *date;
	enum ft_price_kind price;
} origins[] = {
	{ "published", "a list", "2026-03", FT_PRICE_QUOTED },
	{ "measured", "a bill", "2026-01-02", FT_PRICE_QUOTED },
	{ "derived", "a ratio", "2025-12", FT_PRICE_DERIVED },
	{ "assumed", "nobody", "2026", FT_PRICE_GUESSED },
};

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

/* ---- drawn and written ------------------------------------------------------------------ */

/* Does a book of rents have that figure? */
static bool rented(int section, int i)
{
	return section == PRICES || !strcmp(keys[section][i], "pue") ||
	       (section == OPERATION && i > 0 && i < 7);
}

static void draw_line(const struct drawn *d, int book, int section, int i)
{
	struct line *l = (struct line *)&d->book[book].of[section][i];
	bool asked = keys[section][i] && (!d->rents || rented(section, i));

	/* what is extended or taken from has all; what extends has some */
	*l = (struct line){ .there = asked &&
				     (book != MINE || !d->extends ||
				      (section == PRICES && !i) || rnd_below(&seed, 2)),
			    .from_aside = book != ASIDE && rnd_below(&seed, 4) == 0,
			    .own = section == PRICES || rnd_below(&seed, 2),
			    .value = 101 + rnd_below(&seed, 800),
			    .origin = rnd_below(&seed, 4),
			    .vendor = rnd_below(&seed, 2) ? "V & sons" : "" };
	l->included = section == PRICES && !d->rents && rnd_below(&seed, 6) == 0;
	if (l->included)
		l->value = 0;
}

static void put_origin(FILE *f, int origin)
{
	fprintf(f, "provenance: {kind: %s, source: %s, date: \"%s\"}",
		origins[origin].kind, origins[origin].source, origins[origin].date);
}

static void put_line(FILE *f, const struct drawn *d, const struct line *l, int section,
		     int i)
{
	const char *unit = section == PRICES && d->rents ? "USD/h" : units[section][i];

	if (l->from_aside) {
		fprintf(f, "  %s: {from: %s}\n", keys[section][i], d->book[ASIDE].path);
		return;
	}
	fprintf(f, "  %s: {%s: %d.%02d %s", keys[section][i],
		section == PRICES ? "usd" : "value", l->value / 100, l->value % 100,
		unit);
	if (section == PRICES && l->vendor[0])
		fprintf(f, ", vendor: %s", l->vendor);
	if (l->included)
		fputs(", included: true", f);
	if (l->own) {
		fputs(", ", f);
		put_origin(f, l->origin);
	}
	fputs("}\n", f);
}

static void write_book(const struct drawn *d, int book)
{
	static const char *const sections[] = { "prices", "facility", "operation" };
	const struct book *b = &d->book[book];
	FILE *f = fopen(b->path, "w");

	assert_non_null(f);
	fprintf(f, "name: %s\ntitle: Of %s\ndate: 2026-0%d\nbuyer: B%d\n", b->name,
		b->name, book + 1, book);
	if (book == MINE && d->extends)
		fprintf(f, "extends: %s\n", d->book[UNDER].path);
	put_origin(f, 3);
	fputs("\n", f);
	for (int s = 0; s < SECTIONS; s++) {
		fprintf(f, "%s:\n  ", s == PRICES && d->rents ? "rent" : sections[s]);
		if (s != PRICES) /* each item says it itself */
			put_origin(f, b->block_origin[s]);
		fputs("\n", f);
		for (int i = 0; i < LINES; i++)
			if (b->of[s][i].there)
				put_line(f, d, &b->of[s][i], s, i);
	}
	fclose(f);
}

static void draw(struct drawn *d)
{
	*d = (struct drawn){ .extends = rnd_below(&seed, 2),
			     .rents = rnd_below(&seed, 3) == 0 };
	for (int b = 0; b < BOOKS; b++) {
		char leaf[32];

		snprintf(d->book[b].name, sizeof(d->book[b].name), "book-%d", b);
		snprintf(leaf, sizeof(leaf), "book-%d.yaml", b);
		own_path(d->book[b].path, leaf);
		for (int s = 0; s < SECTIONS; s++) {
			d->book[b].block_origin[s] = rnd_below(&seed, 4);
			for (int i = 0; i < LINES; i++)
				draw_line(d, b, s, i);
		}
	}
	for (int b = 0; b < BOOKS; b++)
		write_book(d, b);
}

/* ---- what counts ---------------------------------------------------------------------------- */

/* The line that counts, and whose it is. */
static const struct line *counts(const struct drawn *d, int section, int i, int *book)
{
	*book = MINE;
	if (!d->book[MINE].of[section][i].there && d->extends)
		*book = UNDER;
	if (d->book[*book].of[section][i].there &&
	    d->book[*book].of[section][i].from_aside)
		*book = ASIDE;
	return d->book[*book].of[section][i].there ? &d->book[*book].of[section][i] :
						     NULL;
}

static void is_number(const struct drawn *d, const struct ft_number *is, int section,
		      int i)
{
	int book;
	const struct line *l = counts(d, section, i, &book);
	int origin;

	if (!l) {
		assert_null(is->from);
		return;
	}
	origin = l->own ? l->origin : d->book[book].block_origin[section];
	if (is->value < l->value / 100. - 1e-9 || is->value > l->value / 100. + 1e-9)
		fail_msg("%s: %g, drawn %g", keys[section][i], is->value,
			 l->value / 100.);
	assert_string_equal(is->from->source, origins[origin].source);
	assert_string_equal(is->from->date, origins[origin].date);
}

static void is_price(const struct drawn *d, const struct ft_price *is, int section,
		     int i)
{
	int book;
	const struct line *l = counts(d, section, i, &book);
	int origin = l && l->own ? l->origin : d->book[book].block_origin[section];

	is_number(d, &is->usd, section, i);
	assert_string_equal(is->vendor, l && section == PRICES ? l->vendor : "");
	if (!l)
		return;
	assert_string_equal(is->book, d->book[book].name);
	assert_int_equal(is->kind, origins[origin].price);
}

static void check_prices(const struct drawn *d, const struct ft_prices *p)
{
	size_t n = 0, all = d->rents ? p->n_rents : p->n_prices;
	const struct ft_price *list = d->rents ? p->rent : p->price;
	int book;

	for (int i = 0; i < LINES; i++) {
		const struct ft_price *is = NULL;

		if (!keys[PRICES][i] || !counts(d, PRICES, i, &book))
			continue;
		for (size_t k = 0; k < all; k++)
			if (!strcmp(list[k].item, keys[PRICES][i]))
				is = &list[k];
		assert_non_null(is);
		is_price(d, is, PRICES, i);
		if (!d->rents)
			assert_ptr_equal(price_find(p, keys[PRICES][i]), is);
		n++;
	}
	assert_int_equal(all, n);
	assert_int_equal(d->rents ? p->n_prices : p->n_rents, 0);
	assert_null(price_find(p, "nothing"));
}

/* Figures of other books, in the order of facility and operation; allowances are lines of the bill. */
static void check_taken(const struct drawn *d, const struct ft_prices *p)
{
	size_t n = 0;
	int book;

	for (int s = FACILITY; s <= OPERATION; s++)
		for (int i = 0; i < (s == OPERATION ? 7 : LINES); i++) {
			bool found = false;

			if (!keys[s][i] || !counts(d, s, i, &book) || book == MINE)
				continue;
			n++;
			for (size_t k = 0; k < p->n_taken; k++)
				if (!strcmp(p->taken[k].figure, keys[s][i])) {
					found = true;
					assert_string_equal(p->taken[k].book,
							    d->book[book].name);
				}
			assert_true(found);
		}
	assert_int_equal(p->n_taken, n);
}

/* All figures that some book has, each as it stands in the answer. */
static void check_figures(const struct drawn *d, const struct ft_prices *p,
			  const struct ft_number *const *facility,
			  const struct ft_number *const *operation)
{
	struct ft_figure f[FT_FIGURES_MOST];
	size_t n = ft_prices_figures(p, f), at = 0;
	int book;

	for (int s = FACILITY; s <= OPERATION; s++)
		for (int i = 0; i < (s == OPERATION ? 7 : 3); i++) {
			const char *unit = s == OPERATION && !i ?
						   "of the capital a year" :
						   units[s][i];

			if (!counts(d, s, i, &book))
				continue;
			assert_true(at < n);
			assert_string_equal(f[at].name, keys[s][i]);
			assert_string_equal(f[at].unit, unit);
			assert_ptr_equal(f[at++].is,
					 (s == OPERATION ? operation : facility)[i]);
		}
	assert_int_equal(n, at);
}

static void check(const struct drawn *d, const struct ft_prices *p)
{
	const struct ft_number *const facility[] = { &p->colocation_usd_per_kw_month,
						     &p->electricity_usd_per_kwh,
						     &p->pue };
	const struct ft_number *const operation[] = { &p->maintenance_frac,
						      &p->failure_factor,
						      &p->checkpoint_s,
						      &p->restart_s,
						      &p->repair_s,
						      &p->failover_s,
						      &p->flap_s };

	assert_string_equal(p->name, "book-0");
	assert_string_equal(p->title, "Of book-0");
	assert_string_equal(p->date, "2026-01");
	assert_string_equal(p->buyer, "B0");
	check_prices(d, p);
	for (int i = 0; i < 3; i++)
		is_number(d, facility[i], FACILITY, i);
	for (int i = 0; i < 7; i++)
		is_number(d, operation[i], OPERATION, i);
	check_figures(d, p, facility, operation);
	if (!d->rents) {
		is_price(d, &p->storage, OPERATION, 7);
		is_price(d, &p->management, OPERATION, 8);
	}
	check_taken(d, p);
}

static void each_line_is_the_nearest_books(void **state)
{
	struct drawn d;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_error err;
		struct ft_prices *p;

		draw(&d);
		p = ft_prices_load(d.book[MINE].path, NULL, &err);
		ok_or_say(p, err);
		check(&d, p);
		ft_prices_free(p);
	}
	for (int b = 0; b < BOOKS; b++)
		unlink(d.book[b].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_is_the_nearest_books),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
