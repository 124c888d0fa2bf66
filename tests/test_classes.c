/*
 * tests/test_classes.c - classes of steps: a label is true of every step that has it
 *
 * What a label says is read from the label itself: its numbers, its words.
 */
#include <math.h>

#include "foretoken/study.h"
#include "tests/check.h"

static const char *label_of(const struct ft_traits *t, const char *by,
			    char text[FT_CLASS])
{
	const char *label = ft_class_of(t, by, text);

	assert_true(label && *label);
	return label;
}

/* "2 to 8 GPUs", "1 GPU", "up to 3 B", "80 B and more": from and to, the end of a range of
 * numbers that need not be whole being the next one's begin. */
static void range_of(const char *label, double *least, double *most)
{
	double a, b;

	*least = 0;
	*most = INFINITY;
	if (sscanf(label, "%lf to %lf", &a, &b) == 2) {
		*least = a;
		*most = b;
	} else if (sscanf(label, "up to %lf", &b) == 1) {
		*most = b;
	} else {
		assert_int_equal(sscanf(label, "%lf", &a), 1);
		*least = a;
		*most = strstr(label, "and more") ? INFINITY : a;
	}
}

static void gpus_are_within_their_class(void **state)
{
	char text[FT_CLASS], before[64] = "";
	int classes = 0;

	(void)state;
	for (int n = 1; n <= 4096; n++) {
		const char *label =
			label_of(&(struct ft_traits){ .gpus = n }, "gpus", text);
		double least, most;

		range_of(label, &least, &most);
		assert_true(n >= least && n <= most);
		assert_int_equal(strstr(label, "GPUs") == NULL, n == 1);
		classes += strcmp(label, before) != 0;
		snprintf(before, sizeof(before), "%s", label);
	}
	assert_true(classes >= 4); /* each once, in order */
	assert_true(classes <= 6);
}

static void parameters_are_within_their_class(void **state)
{
	static const double edge[] = { 1e8, 3e9, 15e9, 80e9, 1e12 };
	char text[FT_CLASS], other[FT_CLASS];

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(edge) / sizeof(*edge); i++)
		for (int k = 0; k < 50; k++) {
			double active = edge[i] + (edge[i + 1] - edge[i]) * k / 50;
			const char *label = label_of(
				&(struct ft_traits){ .flop_per_token = 6 * active },
				"size", text);
			double least, most;

			range_of(label, &least, &most);
			if (active < 1e9 * least || active >= 1e9 * most)
				fail_msg("%g parameters are '%s'", active, label);
		}
	for (size_t i = 1; i + 1 < sizeof(edge) / sizeof(*edge); i++)
		assert_string_not_equal(
			label_of(&(struct ft_traits){ .flop_per_token =
							      6 * edge[i] * 0.999 },
				 "size", text),
			label_of(&(struct ft_traits){ .flop_per_token = 6 * edge[i] },
				 "size", other));
}

/* Of each way to cut a plan the word stands there when there is more than one. */
static void a_plan_names_what_it_is_cut_by(void **state)
{
	static const char *const way[] = { "tp", "pp", "cp", "ep" };
	char text[FT_CLASS], want[64];

	(void)state;
	for (int of = 0; of < 16; of++)
		for (int n = 2; n <= 8; n *= 2) {
			double is[4];

			want[0] = '\0';
			for (int i = 0; i < 4; i++) {
				is[i] = of >> i & 1 ? n : 1;
				if (is[i] > 1)
					sprintf(want + strlen(want), "%s + ", way[i]);
			}
			strcat(want, "zero1");
			assert_string_equal(
				label_of(&(struct ft_traits){ .tp = is[0],
							      .pp = is[1],
							      .cp = is[2],
							      .ep = is[3],
							      .sharding = "zero1" },
					 "plan", text),
				want);
		}
}

static void words_are_those_of_the_step(void **state)
{
	const struct ft_traits t = {
		.gpu = "a", .stack = "b", .precision = "c", .model = "d"
	};
	static const char *const by[] = { "gpu", "stack", "precision", "model" };
	static const char *const is[] = { "a", "b", "c", "d" };
	char text[FT_CLASS];

	(void)state;
	for (size_t i = 0; i < sizeof(by) / sizeof(*by); i++)
		assert_string_equal(label_of(&t, by[i], text), is[i]);
	assert_string_equal(ft_class_of(&t, "weather", text), "");
}

/* Each way has a name and a sentence, and is asked for by that name. */
static void every_way_is_told(void **state)
{
	const struct ft_traits t = { .gpu = "a",
				     .stack = "b",
				     .model = "c",
				     .precision = "d",
				     .sharding = "e" };
	const char *name, *about, *seen[16];
	char text[FT_CLASS];
	size_t n = 0;

	(void)state;
	while ((name = ft_class_by(n, &about))) {
		for (size_t i = 0; i < n; i++)
			assert_string_not_equal(seen[i], name);
		assert_true(*about);
		label_of(&t, name, text);
		seen[n++] = name;
		assert_true(n < 16);
	}
	assert_int_equal(n, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_within_their_class),
		cmocka_unit_test(parameters_are_within_their_class),
		cmocka_unit_test(a_plan_names_what_it_is_cut_by),
		cmocka_unit_test(words_are_those_of_the_step),
		cmocka_unit_test(every_way_is_told),
	};

	return cmocka_run_group_tests_name("study/classes", tests, NULL, NULL);
}
