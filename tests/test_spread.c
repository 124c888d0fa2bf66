/* tests/test_spread.c - a group over so many nodes: its stride, or why it cannot be, counted out */
#include "foretoken/hw.h"
#include "study/spread.h"
#include "tests/check.h"

/* The ranks of a group that goes on with that stride from each node's first: how many nodes it
 * is on when each node has so many ranks. */
static int64_t nodes_of(int64_t size, int64_t stride, int64_t per_node)
{
	int64_t n = 0, last = -1;

	for (int64_t i = 0; i < size; i++) {
		n += i * stride / per_node != last;
		last = i * stride / per_node;
	}
	return n;
}

static void a_group_is_on_as_many_nodes_as_asked(void **state)
{
	int taken = 0;

	(void)state;
	for (int64_t per_node = 1; per_node <= 8; per_node++)
		for (int64_t size = 1; size <= 32; size++)
			for (int64_t nodes = 1; nodes <= size; nodes++) {
				const struct ft_cluster c = { .ranks_per_node =
								      per_node };
				struct ft_group_shape g = { .size = size };
				struct ft_error err;
				bool whole = size % nodes == 0;
				bool holds = whole && size / nodes <= per_node;
				bool even = holds && (nodes == 1 ||
						      per_node % (size / nodes) == 0);
				bool ok = spread_over(&c, nodes, &g, &err);

				assert_int_equal(ok, even);
				if (ok) {
					assert_int_equal(
						nodes_of(size, g.stride, per_node),
						nodes);
					taken++;
				} else {
					assert_non_null(strstr(
						err.text,
						!whole ? "cannot be spread evenly" :
						!holds ? "cannot hold" :
							 "are not simulated"));
				}
			}
	assert_true(taken > 50);
}

static void one_node_is_one(void **state)
{
	const struct ft_cluster c = { .ranks_per_node = 8 };
	struct ft_error err;

	(void)state;
	for (int64_t nodes = 1; nodes <= 3; nodes++) {
		struct ft_group_shape g = { .size = 9 * nodes };
		char want[80];

		assert_false(spread_over(&c, nodes, &g, &err));
		snprintf(want, sizeof(want), "%d %s of 8 GPUs cannot hold %d",
			 (int)nodes, nodes == 1 ? "node" : "nodes", (int)(9 * nodes));
		assert_string_equal(err.text, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_on_as_many_nodes_as_asked),
		cmocka_unit_test(one_node_is_one),
	};

	return cmocka_run_group_tests_name("study/spread", tests, NULL, NULL);
}
