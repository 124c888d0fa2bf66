/*
 * tests/test_catalogue.c - facts of parts: what is said of one counts, what is not said of a known
 * one stays, and of a new one is what the manual (foretoken-site(5)) or nothing says
 */
#include <stddef.h>

#include "base/arena.h"
#include "base/node.h"
#include "hw/parts.h"
#include "tests/check.h"

/* A number of a part; said: another value than any file has, as written and in SI. */
static const struct fact {
	const char *key, *said;
	size_t at;
	double is, absent;
} facts[] = {
#define FACT(key, said, field, is, absent) \
	{ \
		key, said, offsetof(struct ft_part, field), is, absent \
	}
	FACT("power", "1.25 kW", max_w, 1250, 0),
	FACT("typical_frac", "0.375", typical_frac, 0.375, 1),
	FACT("memory_frac", "0.625", memory_frac, 0.625, 1),
	FACT("waiting_frac", "0.125", waiting_frac, 0.125, 1),
	FACT("clock_exponent", "3.5", clock_exponent, 3.5, 1),
	FACT("limit_window", "750 ms", limit_window_s, 0.75, 0),
	FACT("mttf_years", "321", mttf_years, 321, 0),
	FACT("rack_units", "13", rack_units, 13, 0),
	FACT("life_years", "17", life_years, 17, 0),
	FACT("carbon_kg", "4321", carbon_kg, 4321, 0),
	FACT("reach", "77 m", reach_m, 77, 0),
};
enum { FACTS = sizeof(facts) / sizeof(*facts) };

static const struct ft_number *number_of(const struct ft_part *p, const struct fact *f)
{
	return (const void *)((const char *)p + f->at);
}

static double number_at(const struct ft_part *p, const struct fact *f)
{
	return number_of(p, f)->value;
}

static void same_number(const struct ft_number *a, const struct ft_number *b)
{
	near_frac(a->value, b->value, 0);
	near_frac(a->low, b->low, 0);
	near_frac(a->high, b->high, 0);
}

/* The item as the catalogue with these parts has it; NULL: more is refused. */
static const struct ft_part *part_of(struct arena *mem, const char *more,
				     const char *item)
{
	struct ft_error err;
	struct node *parts =
		more ? node_read_text(mem, "more", more, strlen(more), &err) : NULL;
	struct catalogue *to = ARENA_NEW(mem, struct catalogue);

	if (more)
		ok_or_say(parts, err);
	return catalogue_read(mem, parts, to, &err) ? catalogue_find(to, item) : NULL;
}

static const char *const items[] = { "gpu", "switch-ndr-64", "rack", "new-part" };
enum { ITEMS = sizeof(items) / sizeof(*items) };

/* Each fact of each item: that one is as said, all others as they were. */
static void a_fact_that_is_said_moves_no_other(void **state)
{
	(void)state;
	for (int i = 0; i < ITEMS; i++)
		for (int k = 0; k < FACTS; k++) {
			struct arena mem = { 0 };
			const struct ft_part *was = part_of(&mem, NULL, items[i]), *is;
			char more[96];

			assert_int_equal(was != NULL, i + 1 < ITEMS);
			snprintf(more, sizeof(more), "{%s: {%s: %s}}", items[i],
				 facts[k].key, facts[k].said);
			is = part_of(&mem, more, items[i]);
			assert_non_null(is);
			for (int l = 0; l < FACTS; l++) {
				double want = l == k ? facts[l].is :
					      was    ? number_at(was, &facts[l]) :
						       facts[l].absent;

				if (number_at(is, &facts[l]) < want ||
				    number_at(is, &facts[l]) > want)
					fail_msg("%s: %s is %g, not %g", more,
						 facts[l].key, number_at(is, &facts[l]),
						 want);
			}
			assert_string_equal(is->item, items[i]);
			assert_string_equal(is->title, was ? was->title : items[i]);
			assert_string_equal(is->longer, was ? was->longer : "");
			assert_int_equal(is->part_class, was ? was->part_class : 0);
			arena_release(&mem);
		}
}

static void words_are_as_said_too(void **state)
{
	static const char *const classes[] = { "server",  "network",	"front-end",
					       "storage", "management", "facility",
					       "service", "spare" };

	(void)state;
	for (int i = 0; i < ITEMS; i++)
		for (int c = 0; c < 8; c++) {
			struct arena mem = { 0 };
			const struct ft_part *was = part_of(&mem, NULL, items[i]), *is;
			char more[120];

			snprintf(more, sizeof(more),
				 "{%s: {class: %s, title: a thing, longer: rack}}",
				 items[i], classes[c]);
			is = part_of(&mem, more, items[i]);
			assert_string_equal(is->title, "a thing");
			assert_string_equal(is->longer, "rack");
			assert_int_equal(is->part_class, c);
			for (int l = 0; was && l < FACTS; l++)
				same_number(number_of(is, &facts[l]),
					    number_of(was, &facts[l]));
			/* all others stay */
			assert_non_null(part_of(&mem, more, "pdu"));
			arena_release(&mem);
		}
}

/* A share is 0 to 1, an exponent 1 to 4, and nothing is below 0. */
static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *key, *least, *below, *most, *above;
	} of[] = {
		{ "typical_frac", "0", "-0.01", "1", "1.01" },
		{ "memory_frac", "0", "-0.01", "1", "1.01" },
		{ "waiting_frac", "0", "-0.01", "1", "1.01" },
		{ "clock_exponent", "1", "0.99", "4", "4.01" },
		{ "limit_window", "0 s", "-1 ms", "10 s", "10.01 s" },
		{ "mttf_years", "0", "-1", "1e6", "1.01e6" },
		{ "life_years", "0", "-1", "100", "101" },
		{ "rack_units", "0", "-1", "60", "61" },
		{ "carbon_kg", "0", "-1", "1e6", "1.01e6" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		const char *const value[] = { of[i].least, of[i].most, of[i].below,
					      of[i].above };

		for (int k = 0; k < 4; k++) {
			struct arena mem = { 0 };
			char more[96];

			snprintf(more, sizeof(more), "{x: {%s: %s}}", of[i].key,
				 value[k]);
			if (!part_of(&mem, more, "x") != (k > 1))
				fail_msg("%s is %s", more, k > 1 ? "taken" : "refused");
			arena_release(&mem);
		}
	}
}

/* The obvious: each port of a leaf has a plane's part of a NIC, of a node all planes; the module is the slowest of those
 * that are each half of another, or have twice its ports, that carries a cage's ports. */
static void modules_carry_the_ports_of_a_cage(void **state)
{
	static const char parts[] =
		"{half: {rate: 50 GB/s}, one: {rate: 100 GB/s, slower: half}, "
		"two: {rate: 200 GB/s, slower: one, twin: four}, "
		"four: {rate: 400 GB/s, slower: two}}";
	static const struct {
		double gb;
		const char *item;
	} rates[] = { { 50, "half" }, { 100, "one" }, { 200, "two" }, { 400, "four" } };
	struct arena mem = { 0 };
	struct ft_error err;
	struct catalogue *from = ARENA_NEW(&mem, struct catalogue);

	(void)state;
	assert_true(catalogue_read(
		&mem, node_read_text(&mem, "parts", parts, strlen(parts), &err), from,
		&err));
	for (int planes = 1; planes <= 4; planes *= 2)
		for (int cage = 1; cage <= 2; cage++)
			for (int nic = 100; nic <= 200; nic *= 2) {
				struct ft_node n = { .nic_bytes_per_s.value =
							     nic * 1e9 };
				struct ft_fabric f = { .port_bytes_per_s.value = 1e12,
						       .planes = planes,
						       .ports_per_optic = cage,
						       .nic_ports_per_optic = cage,
						       .optic_node_item = "two",
						       .optic_leaf_item = "two" };
				struct ft_cluster c = { .node = &n, .fabric = &f };
				const char *ends[2], *want[2] = { NULL, NULL };
				double gb[2] = { nic * cage, nic / planes * cage };

				catalogue_modules(from, &c, &ends[0], &ends[1]);
				for (int e = 0; e < 2; e++) {
					for (int i = 3; i >= 0; i--)
						if (rates[i].gb >= gb[e])
							want[e] = rates[i].item;
					if (gb[e] <= 50)
						want[e] = "half";
					assert_string_equal(ends[e], want[e]);
				}
			}
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fact_that_is_said_moves_no_other),
		cmocka_unit_test(words_are_as_said_too),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(modules_carry_the_ports_of_a_cage),
	};

	return cmocka_run_group_tests_name("hw/catalogue", tests, NULL, NULL);
}
