/*
 * hw/mesh.c - an irregular mesh of GPUs: how many rings fit its links, how much of them
 * an exchange among all reaches
 */
#include <string.h>

#include "foretoken/hw.h"

enum { MOST = FT_MESH_RANKS };

/* Looking for the ring whose narrowest link is the widest. */
struct search {
	int64_t width[MOST][MOST]; /* among the members, what is left */
	int n;
	int at[MOST], best_at[MOST];
	int64_t best;
};

static void extend(struct search *s, int depth, unsigned used, int64_t narrowest)
{
	int last = s->at[depth - 1];

	if (narrowest <= s->best)
		return;
	if (depth == s->n) {
		int64_t back = s->width[last][s->at[0]];

		narrowest = back < narrowest ? back : narrowest;
		if (narrowest > s->best) {
			s->best = narrowest;
			memcpy(s->best_at, s->at, sizeof(s->at));
		}
		return;
	}
	for (int i = 1; i < s->n; i++) {
		int64_t w = s->width[last][i];

		if (used >> i & 1 || w <= s->best)
			continue;
		s->at[depth] = i;
		extend(s, depth + 1, used | 1u << i, w < narrowest ? w : narrowest);
	}
}

/* Where there is no link, go through others: the widest way. */
static void relay(struct search *s)
{
	for (int k = 0; k < s->n; k++)
		for (int i = 0; i < s->n; i++)
			for (int j = 0; j < s->n; j++) {
				int64_t a = s->width[i][k], b = s->width[k][j];
				int64_t way = a < b ? a : b;

				if (i != j && way > s->width[i][j])
					s->width[i][j] = way;
			}
}

int64_t ft_mesh_rings(const struct ft_mesh *mesh, const int *member, int n)
{
	struct search s = { .n = n };
	int64_t rings = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			s.width[i][j] = mesh->links[member[i]][member[j]];
	if (n == 2 && s.width[0][1])
		return s.width[0][1];
	for (;;) {
		s.best = 0;
		extend(&s, 1, 1, INT64_MAX);
		if (!s.best)
			break;
		rings += s.best;
		for (int i = 0; i < n; i++) {
			int a = s.best_at[i], b = s.best_at[(i + 1) % n];

			s.width[a][b] -= s.best;
			s.width[b][a] -= s.best;
		}
	}
	if (rings)
		return rings;
	relay(&s);
	extend(&s, 1, 1, INT64_MAX);
	return s.best;
}

/* One more hop at a time: who is reached over which widest way of fewest hops. */
static void route(const struct ft_mesh *m, int from, int before[MOST])
{
	int64_t width[MOST] = { 0 };
	int hops[MOST];

	for (int i = 0; i < MOST; i++) {
		hops[i] = i == from ? 0 : MOST;
		before[i] = -1;
	}
	width[from] = INT64_MAX;
	for (int h = 0; h < m->n; h++)
		for (int a = 0; a < m->n; a++)
			for (int b = 0; b < m->n && hops[a] == h; b++) {
				int64_t w = m->links[a][b];

				w = w < width[a] ? w : width[a];
				if (!w || hops[b] < h + 1 ||
				    (hops[b] == h + 1 && w <= width[b]))
					continue;
				hops[b] = h + 1;
				width[b] = w;
				before[b] = a;
			}
}

/* Of the fullest link, what goes over it for a unit from each member to the `peers` that follow it. */
static double fullest(const struct ft_mesh *mesh, const int *member, int n, int peers)
{
	int64_t load[MOST][MOST] = { { 0 } };
	double most = 0;

	for (int i = 0; i < n; i++) {
		int before[MOST];

		route(mesh, member[i], before);
		for (int k = 1; k <= peers; k++)
			for (int b = member[(i + k) % n];
			     b != member[i] && before[b] >= 0; b = before[b])
				load[before[b]][b]++;
	}
	for (int a = 0; a < mesh->n; a++)
		for (int b = 0; b < mesh->n; b++) {
			double x = load[a][b] ? (double)load[a][b] /
							(double)mesh->links[a][b] :
						0;

			most = x > most ? x : most;
		}
	return most;
}

double ft_mesh_exchange(const struct ft_mesh *mesh, const int *member, int n)
{
	double most = fullest(mesh, member, n, n - 1);

	return most > 0 ? (n - 1) / most : 0;
}

double ft_mesh_shift(const struct ft_mesh *mesh, const int *member, int n)
{
	double most = fullest(mesh, member, n, 1);

	return most > 0 ? 1 / most : 0;
}

bool ft_mesh_connected(const struct ft_mesh *mesh)
{
	unsigned seen = 1, before = 0;

	while (seen != before) {
		before = seen;
		for (int a = 0; a < mesh->n; a++)
			for (int b = 0; b < mesh->n && seen >> a & 1; b++)
				seen |= mesh->links[a][b] ? 1u << b : 0;
	}
	return seen == (1u << mesh->n) - 1;
}
