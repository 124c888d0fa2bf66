/*
 * tests/test_mesh.c - links inside a domain that are not all alike: rings, ways and exchanges on
 * small meshes that can be drawn by hand
 */
#include <math.h>

#include "tests/check.h"

#include "foretoken/hw.h"

/* The dies of four MI250: rings of 2 links (0 1 3 2 4 5 7 6) and of 1 (0 1 5 4 6 7 3 2). */
static struct ft_mesh mi250(void)
{
	static const int pair[][3] = {
		{ 0, 1, 4 }, { 2, 3, 4 }, { 4, 5, 4 }, { 6, 7, 4 },
		{ 0, 6, 2 }, { 1, 3, 2 }, { 2, 4, 2 }, { 5, 7, 2 },
		{ 0, 2, 1 }, { 1, 5, 1 }, { 3, 7, 1 }, { 4, 6, 1 },
	};
	struct ft_mesh m = { .n = 8 };

	for (int i = 0; i < 12; i++)
		m.links[pair[i][0]][pair[i][1]] = m.links[pair[i][1]][pair[i][0]] =
			pair[i][2];
	return m;
}

static void an_irregular_mesh_holds_its_rings(void **state)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, far[] = { 0, 4 },
			 odd[] = { 0, 2, 4, 6 };
	struct ft_mesh m = mi250();

	(void)state;
	assert_int_equal(ft_mesh_rings(&m, all, 8), 3);
	assert_int_equal(ft_mesh_rings(&m, all, 2), 4);
	assert_int_equal(ft_mesh_rings(&m, all, 4), 1); /* 0-2 is one link */
	assert_int_equal(ft_mesh_rings(&m, odd, 4), 1);
	assert_int_equal(ft_mesh_rings(&m, far, 2), 0); /* no way among these two */
	assert_true(ft_mesh_connected(&m));
	m.links[0][6] = m.links[6][0] = m.links[5][7] = m.links[7][5] = 0;
	m.links[3][7] = m.links[7][3] = m.links[4][6] = m.links[6][4] = 0;
	assert_false(ft_mesh_connected(&m));
}

static void an_exchange_fills_the_fullest_link(void **state)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct ft_mesh ring = { .n = 4 }, full = { .n = 4 };

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			full.links[i][j] = i != j;
			ring.links[i][j] = (i + 1) % 4 == j || (j + 1) % 4 == i;
		}
	assert_true(ft_mesh_exchange(&full, all, 4) == 3);
	/* 4 opposite pairs of ordered ends, two hops each: a link carries 1 and 2 */
	assert_true(ft_mesh_exchange(&ring, all, 4) >= 1);
	assert_true(ft_mesh_exchange(&ring, all, 4) <= 1.5);
	assert_int_equal(ft_mesh_rings(&full, all, 4), 1);
}

/* From 0 to 3 two ways of two hops: by 1, where one link is narrow, and by 2; and one of three
 * hops over wide links. What is exchanged goes by the widest of the shortest. */
static void a_route_is_the_widest_of_the_shortest(void **state)
{
	static const int ends[] = { 0, 3 };
	struct ft_mesh m = { .n = 6 };
	static const int pair[][3] = { { 0, 1, 4 }, { 1, 3, 1 }, { 0, 2, 2 },
				       { 2, 3, 3 }, { 0, 4, 9 }, { 4, 5, 9 },
				       { 5, 3, 9 } };
	double wide, narrow;

	(void)state;
	for (int i = 0; i < 7; i++)
		m.links[pair[i][0]][pair[i][1]] = m.links[pair[i][1]][pair[i][0]] =
			pair[i][2];
	wide = ft_mesh_exchange(&m, ends, 2);
	m.links[0][2] = m.links[2][0] = 0; /* by 1 alone */
	narrow = ft_mesh_exchange(&m, ends, 2);
	assert_true(wide > 0 && narrow > 0);
	assert_true(fabs(wide - 2 * narrow) < 1e-9 * wide);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_irregular_mesh_holds_its_rings),
		cmocka_unit_test(an_exchange_fills_the_fullest_link),
		cmocka_unit_test(a_route_is_the_widest_of_the_shortest),
	};

	return cmocka_run_group_tests_name("mesh", tests, NULL, NULL);
}
