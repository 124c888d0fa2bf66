/* models/stages.c - layers over the chunks of a pipeline */
#include "models/stages.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/reader.h"
#include "foretoken/models.h"

bool stages_even_into(int64_t *n, int64_t layers, int64_t chunks)
{
	int64_t each = layers / chunks, more = layers % chunks;

	if ((layers + 2) % chunks == 0 && chunks > 1) {
		for (int64_t i = 0; i < chunks; i++)
			n[i] = (layers + 2) / chunks - (i == 0 || i == chunks - 1);
		return true;
	}
	if (chunks > layers)
		return false;
	/* more < chunks, so the last chunk never gets one. */
	for (int64_t i = 0; i < chunks; i++)
		n[i] = each;
	for (int64_t i = 1; i <= more; i++)
		n[i < chunks - 1 ? i : 0]++;
	return true;
}

int64_t *stages_even(struct arena *mem, int64_t layers, int64_t chunks)
{
	int64_t *n = ARENA_ARRAY(mem, (size_t)chunks, int64_t);

	return stages_even_into(n, layers, chunks) ? n : NULL;
}

int64_t *stages_read(struct arena *mem, struct reader *r, const char *key,
		     int64_t chunks, int64_t layers)
{
	const struct node *list = read_node(r, key);
	int64_t *n = ARENA_ARRAY(mem, (size_t)chunks, int64_t), sum = 0;

	if (!list || list->kind != NODE_LIST || list->n != (size_t)chunks) {
		reader_fail(r, key, "should be a list of pp x vpp = %lld numbers",
			    (long long)chunks);
		return n;
	}
	for (size_t i = 0; i < list->n; i++) {
		if (!node_whole(list->item[i], 0, layers, &n[i])) {
			reader_fail_node(r, key, list->item[i],
					 "should be whole numbers of layers");
			return n;
		}
		sum += n[i];
	}
	if (sum != layers)
		reader_fail(r, key, "adds up to %lld, but the model has %lld layers",
			    (long long)sum, (long long)layers);
	return n;
}

void ft_plan_deal(const struct ft_plan *p, int64_t n, int64_t *of_place)
{
	int64_t layers = 0, left = n, places = p->pp * p->vpp;

	for (int64_t c = 0; c < places; c++)
		layers += p->stage_layers[c];
	for (int64_t c = 0; c < places; c++)
		left -= of_place[c] = p->stage_layers[c] * n / layers;
	for (; left > 0; left--) { /* to the chunk that lacks most of its share */
		int64_t most = 0, lacks = INT64_MIN;

		for (int64_t c = 0; c < places; c++) {
			int64_t lack = p->stage_layers[c] * n - of_place[c] * layers;

			if (lack > lacks) {
				lacks = lack;
				most = c;
			}
		}
		of_place[most]++;
	}
}
