/*
 * tests/test_mesh.c - links inside a domain that are not all alike: rings, ways and exchanges on
 * small meshes that can be drawn by hand
 */
#include <math.h>

#include "tests/simulated.h"

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
	struct ft_mesh ring = { .n = 4 }, full = { .n = 4 }, dies = mi250();

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
	/* 1 to 2 goes by way of 3, over links of 2; 2 to 0, of three, over a single one */
	assert_true(ft_mesh_shift(&full, all, 4) == 1);
	assert_true(ft_mesh_shift(&dies, all, 2) == 4);
	assert_true(ft_mesh_shift(&dies, all, 3) == 1);
	assert_true(ft_mesh_shift(&dies, all, 8) == 2);
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

/* ---- drawn meshes, every order tried ---------------------------------------------- */

enum { DRAWS = 200, FEW = 5 };

static uint64_t seed = 7;

struct tried {
	int64_t width[FEW][FEW];
	int n, at[FEW];
	int64_t best;
	int ring[24][FEW], rings; /* orders as wide as the best, member 0 first */
};

static void try_orders(struct tried *t, int depth)
{
	int64_t least = INT64_MAX;

	for (int i = 1; i < t->n && depth < t->n; i++) {
		bool used = false;

		for (int k = 1; k < depth; k++)
			used |= t->at[k] == i;
		t->at[depth] = i;
		if (!used)
			try_orders(t, depth + 1);
	}
	if (depth < t->n)
		return;
	for (int i = 0; i < t->n; i++) {
		int64_t w = t->width[t->at[i]][t->at[(i + 1) % t->n]];

		least = w < least ? w : least;
	}
	if (least > t->best) {
		t->best = least;
		t->rings = 0;
	}
	if (least == t->best)
		memcpy(t->ring[t->rings++], t->at, sizeof(t->at));
}

static struct tried orders_of(int64_t width[FEW][FEW], int n)
{
	struct tried t = { .n = n };

	memcpy(t.width, width, sizeof(t.width));
	try_orders(&t, 1);
	return t;
}

/* Can rings that are each as wide as any that is left come to so many? */
static bool adds_up(int64_t width[FEW][FEW], int n, int64_t total)
{
	struct tried t = orders_of(width, n);

	if (!t.best)
		return !total;
	for (int i = 0; i < t.rings && t.best <= total; i++) {
		int64_t left[FEW][FEW];

		memcpy(left, width, sizeof(left));
		for (int k = 0; k < n; k++) {
			int a = t.ring[i][k], b = t.ring[i][(k + 1) % n];

			left[a][b] -= t.best;
			left[b][a] -= t.best;
		}
		if (adds_up(left, n, total - t.best))
			return true;
	}
	return false;
}

/* The widest way from a to b of at most so many hops, by all of them. */
static int64_t widest(int64_t width[FEW][FEW], int n, int a, int b, unsigned used,
		      int hops)
{
	int64_t best = 0;

	for (int i = 0; i < n && hops > 0; i++) {
		int64_t on, w = width[a][i];

		if (used >> i & 1)
			continue;
		on = i == b ? w : widest(width, n, i, b, used | 1u << i, hops - 1);
		w = on < w ? on : w;
		best = w > best ? w : best;
	}
	return best;
}

static void draw(struct ft_mesh *m, int64_t width[FEW][FEW])
{
	int links = 3 + rnd_below(&seed, 20);

	*m = (struct ft_mesh){ .n = FEW };
	memset(width, 0, sizeof(int64_t[FEW][FEW]));
	for (int i = 0; i < links; i++) {
		int a = rnd_below(&seed, FEW), b = rnd_below(&seed, FEW);

		if (a != b)
			width[a][b] = width[b][a] = 1 + rnd_below(&seed, 4);
	}
	for (int a = 0; a < FEW; a++)
		for (int b = 0; b < FEW; b++)
			m->links[a][b] = width[a][b];
}

static void drawn_meshes_hold_the_rings_of_all_orders(void **state)
{
	static const int all[] = { 0, 1, 2, 3, 4 };
	int several = 0, relayed = 0, none = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		int64_t width[FEW][FEW], through[FEW][FEW], rings;
		struct ft_mesh m;
		struct tried t;
		int n = 3 + rnd_below(&seed, 3);

		draw(&m, width);
		rings = ft_mesh_rings(&m, all, n);
		t = orders_of(width, n);
		several += t.best && rings > t.best;
		if (t.best) {
			assert_true(adds_up(width, n, rings));
			continue;
		}
		for (int a = 0; a < n; a++)
			for (int b = 0; b < n; b++)
				through[a][b] =
					a == b ? 0 :
						 widest(width, n, a, b, 1u << a, FEW);
		t = orders_of(through, n);
		assert_int_equal(rings, t.best);
		relayed += t.best > 0;
		none += !t.best;
	}
	if (several <= 5 || relayed <= 5 || none <= 5)
		fail_msg("%d, %d, %d", several, relayed, none);
}

/* What two send each other is as wide as the widest of the ways with the fewest hops. */
static void drawn_routes_are_the_widest_of_the_shortest(void **state)
{
	int by_others = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		int64_t width[FEW][FEW], want = 0;
		struct ft_mesh m;
		int a = rnd_below(&seed, FEW),
		    b = (a + 1 + rnd_below(&seed, FEW - 1)) % FEW, hops = 0;
		const int ends[] = { a, b };
		bool reached = true;

		draw(&m, width);
		while (!want && hops++ < FEW)
			want = widest(width, FEW, a, b, 1u << a, hops);
		assert_true(fabs(ft_mesh_exchange(&m, ends, 2) - (double)want) < 1e-9);
		by_others += want && hops > 1;
		for (int k = 1; k < FEW; k++)
			reached &= widest(width, FEW, 0, k, 1u, FEW) > 0;
		assert_int_equal(ft_mesh_connected(&m), reached);
	}
	assert_true(by_others > 20);
}

/* Stages on the dies of a node: boundary 1-2 goes by way of 3, over two links of 36 GB/s. 28 messages of a mean
 * rank: 7 boundaries, 32 micro-batches, 8 ranks. */
static void the_slowest_boundary_paces_a_pipeline(void **state)
{
	double bytes = 4096. * 5120 * 2, sent;

	(void)state;
	sent = simulated_s("{model: llama2-13b, cluster: {gpu: mi250, gpus: 4}, "
			   "training: {sequence_length: 4096, micro_batch_size: 1, "
			   "global_batch_size: 32, parallel: {pp: 8}}}",
			   "pp_activation") /
	       28;
	assert_true(sent > bytes / (2 * 36e9));
	assert_true(sent < 1.3 * bytes / (2 * 36e9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_irregular_mesh_holds_its_rings),
		cmocka_unit_test(an_exchange_fills_the_fullest_link),
		cmocka_unit_test(a_route_is_the_widest_of_the_shortest),
		cmocka_unit_test(drawn_meshes_hold_the_rings_of_all_orders),
		cmocka_unit_test(drawn_routes_are_the_widest_of_the_shortest),
		cmocka_unit_test(the_slowest_boundary_paces_a_pipeline),
	};

	return cmocka_run_group_tests_name("mesh", tests, NULL, NULL);
}
