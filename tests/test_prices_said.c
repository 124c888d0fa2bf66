/*
 * tests/test_prices_said.c - what is said of the prices of a drawn bill: shares by kind, the largest guess to ask for,
 * what comes from which other book; in words and as JSON
 */
#include <math.h>

#include "base/arena.h"
#include "reports/prices.h"
#include "tests/check.h"

enum { DRAWS = 200, ITEMS = 8 };

static uint64_t seed = 103;

static const char *const names[] = { "server", "switch", "cable", "optics", "rack" };
static const char *const books[] = { "mine", "other-1", "other-2", "given" };

struct drawn {
	struct ft_bom bom;
	struct ft_bom_item item[ITEMS];
};

static void draw(struct drawn *d)
{
	struct ft_bom *b = &d->bom;

	*d = (struct drawn){ .bom = {
				     .book = "mine",
				     .book_date = "2026-09",
				     .buyer = rnd_below(&seed, 2) ? "somebody" : "",
				     .rented = rnd_below(&seed, 4) == 0,
				     .first_date = rnd_below(&seed, 3) ? "2025-01" : "",
				     .last_date = "2026-08",
				     .in_vain = rnd_below(&seed, 3) ? "" : "a, b",
				     .n_items = 1 + (size_t)rnd_below(&seed, ITEMS) } };
	b->item = d->item;
	for (size_t i = 0; i < b->n_items; i++) {
		struct ft_bom_item *x = &d->item[i];

		x->item = names[rnd_below(&seed, 5)];
		x->book = books[rnd_below(&seed, 4)];
		x->kind = (enum ft_price_kind)rnd_below(&seed, FT_PRICE_KINDS);
		x->total_usd = 100 + rnd_below(&seed, 9000);
		b->total_usd += x->total_usd;
		b->by_kind_usd[x->kind] += x->total_usd;
	}
}

static double percent(const struct drawn *d, enum ft_price_kind kind)
{
	return 100 * d->bom.by_kind_usd[kind] / d->bom.total_usd;
}

/* Has this line of the bill been told before, under whatever book? */
static bool again(const struct drawn *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(d->item[k].item, d->item[i].item))
			return true;
	return false;
}

static const char *of_others(struct arena *mem, const struct drawn *d)
{
	const char *all = "";
	bool told[4] = { true, false, false, false };

	for (size_t i = 0; i < d->bom.n_items; i++) {
		const char *line = "";
		int at = 0;

		while (strcmp(books[at], d->item[i].book) != 0)
			at++;
		if (told[at] || again(d, i))
			continue;
		told[at] = true;
		for (size_t k = i; k < d->bom.n_items; k++)
			if (!strcmp(d->item[k].book, books[at]) && !again(d, k))
				line = arena_printf(mem, "%s%s %s", line,
						    *line ? "," : "", d->item[k].item);
		all = arena_printf(mem, "%s\n%s%s:%s.", all,
				   at == 3 ? "Given" : "From ",
				   at == 3 ? "" : books[at], line);
	}
	return all;
}

/* Where half of what is bought is guessed: the most expensive guess. */
static const char *to_ask(struct arena *mem, const struct drawn *d)
{
	const struct ft_bom_item *most = NULL;

	for (size_t i = 0; i < d->bom.n_items; i++)
		if (d->item[i].kind == FT_PRICE_GUESSED &&
		    (!most || d->item[i].total_usd > most->total_usd))
			most = &d->item[i];
	if (!most || d->bom.rented || percent(d, FT_PRICE_GUESSED) < 50)
		return "";
	return arena_printf(mem,
			    "\nThe price of %s, %.0f %% of the capital, is guessed: "
			    "ask for a quote, and give it with --price %s=USD.",
			    most->item, 100 * most->total_usd / d->bom.total_usd,
			    most->item);
}

static void words_say_what_a_bill_stands_on(void **state)
{
	int asked = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		const char *given = "";
		struct drawn d;

		draw(&d);
		if (percent(&d, FT_PRICE_GIVEN) > 0)
			given = arena_printf(&mem,
					     ", %.0f %% at prices given to the "
					     "scenario",
					     percent(&d, FT_PRICE_GIVEN));
		asked += *to_ask(&mem, &d) != '\0';
		assert_string_equal(
			prices_said(&mem, &d.bom, NULL),
			arena_printf(
				&mem,
				"Prices: book mine (%sof 2026-09)%s; %.0f %% of the %s "
				"is at quoted, %.0f %% at derived, %.0f %% at guessed "
				"prices%s.%s%s%s",
				*d.bom.buyer ? "somebody, " : "",
				*d.bom.first_date ? ", dated 2025-01 to 2026-08" : "",
				percent(&d, FT_PRICE_QUOTED),
				d.bom.rented ? "rent" : "capital",
				percent(&d, FT_PRICE_DERIVED),
				percent(&d, FT_PRICE_GUESSED), given, to_ask(&mem, &d),
				of_others(&mem, &d),
				*d.bom.in_vain ? "\nGiven, but on no line of the bill: "
						 "a, b." :
						 ""));
		arena_release(&mem);
	}
	assert_in_range(asked, 5, DRAWS / 2);
}

static void json_says_the_same(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		const json_t *of;
		struct drawn d;
		size_t n = 0;
		json_t *j;

		draw(&d);
		j = prices_json(&d.bom, NULL);
		for (int k = 0; k < FT_PRICE_KINDS; k++) {
			char key[32];

			snprintf(key, sizeof(key), "%s_frac",
				 ft_price_kind_name((enum ft_price_kind)k));
			near_frac(1 + json_number_value(json_object_get(j, key)),
				  1 + percent(&d, (enum ft_price_kind)k) / 100, 1e-12);
		}
		of = json_object_get(j, "taken_from");
		for (size_t k = 0; k < d.bom.n_items; k++) {
			const json_t *line = json_array_get(of, n);

			if (!strcmp(d.item[k].book, "mine") || again(&d, k))
				continue;
			n++;
			assert_string_equal(
				json_string_value(json_object_get(line, "item")),
				d.item[k].item);
			assert_string_equal(
				json_string_value(json_object_get(line, "book")),
				d.item[k].book);
		}
		assert_int_equal(json_array_size(of), n);
		assert_int_equal(json_object_size(j), 7 + FT_PRICE_KINDS);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_say_what_a_bill_stands_on),
		cmocka_unit_test(json_says_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
