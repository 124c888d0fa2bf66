/*
 * models/padded.c - lists of a config that go on with the layers of predicted tokens (Step 3.5)
 *
 * Transformers' class cuts its lists to the layers of the model, and keeps the rest as what the layers of predicted tokens are:
 * under the same names here. Layers with experts are a text, "3,4,5"; a layer of predicted tokens that it does not name has a dense
 * MLP. Source: modular_step3p7.py, Step3p7TextConfig (read 2026-12-01). Its checkpoints hold a head for each of them, which are taken
 * to be the model's, as others' are.
 */
#include "models/padded.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "foretoken/models.h"
#include "models/layer_lists.h"

static const char TYPES[] = "mtp_layer_types", MLPS[] = "mtp_mlp_layer_types";

static struct node *empty_list(struct arena *mem, const struct node *like)
{
	struct node *list = ARENA_NEW(mem, struct node);

	*list = (struct node){ .kind = NODE_LIST, .mark = like->mark };
	return list;
}

/* "3,4,5" as a list. What is no number is left as it is, and refused where it is read. */
static void listed(struct arena *mem, struct node *map, const char *key)
{
	struct node *text = node_get(map, key), *list;
	const char *at;

	if (!text || text->kind != NODE_SCALAR || !strchr(text->text, ','))
		return;
	list = empty_list(mem, text);
	for (at = text->text; at; at = *at ? at + 1 : NULL) {
		size_t n = strcspn(at, ",");

		node_append(mem, list,
			    node_scalar(mem, &text->mark, arena_text_n(mem, at, n)));
		at += n;
	}
	node_put(mem, map, key, &text->mark, list);
}

/* The first n of a list with an item for each of n layers and of so many more. */
static void cut(struct arena *mem, struct node *map, const char *key, int64_t n,
		int64_t more, const char *rest)
{
	struct node *all = node_get(map, key), *kept, *left;

	if (!all || all->kind != NODE_LIST || all->n != (size_t)(n + more))
		return;
	kept = empty_list(mem, all);
	left = empty_list(mem, all);
	for (size_t i = 0; i < all->n; i++)
		node_append(mem, i < (size_t)n ? kept : left, all->item[i]);
	node_put(mem, map, key, &all->mark, kept);
	if (rest && !node_get(map, rest))
		node_put(mem, map, rest, &all->mark, left);
}

/* Numbers of layers with experts: those from n on are of predicted tokens' layers. */
static void cut_numbers(struct arena *mem, struct node *map, int64_t n, int64_t more)
{
	struct node *all = node_get(map, "moe_layers"), *kept, *left;

	if (!all || all->kind != NODE_LIST)
		return;
	kept = empty_list(mem, all);
	left = empty_list(mem, all);
	for (size_t i = 0; i < all->n; i++) {
		int64_t layer;

		if (!node_whole(all->item[i], n, n + more - 1, &layer))
			node_append(mem, kept, all->item[i]);
	}
	for (int64_t i = n; i < n + more; i++)
		node_append(mem, left,
			    node_scalar(mem, &all->mark,
					list_has(all, i) ? "sparse" : "dense"));
	if (kept->n == all->n)
		return;
	node_put(mem, map, "moe_layers", &all->mark, kept);
	if (!node_get(map, MLPS))
		node_put(mem, map, MLPS, &all->mark, left);
}

void padded_cut(struct arena *mem, struct node *map)
{
	const struct node *layers = node_get(map, "num_hidden_layers");
	const struct node *ahead = node_get(map, "num_nextn_predict_layers");
	int64_t n, more;

	listed(mem, map, "moe_layers");
	if (!layers || !ahead || !node_whole(layers, 1, 1 << 20, &n) ||
	    !node_whole(ahead, 1, 64, &more))
		return;
	cut(mem, map, "layer_types", n, more, TYPES);
	cut(mem, map, "mlp_layer_types", n, more, MLPS);
	cut(mem, map, "num_attention_heads_per_layer", n, more, NULL);
	cut_numbers(mem, map, n, more);
}

/* Do they all say the same? */
static void check_one_kind(struct reader *r, const char *key, const struct node *list)
{
	for (size_t i = 1; list && i < list->n && !r->failed; i++)
		if (strcmp(list->item[i]->text, list->item[0]->text) != 0)
			reader_fail_node(r, key, list->item[i],
					 "predicted tokens whose layers differ are not "
					 "simulated; say num_nextn_predict_layers: 0");
}

int64_t padded_predicted(struct reader *r, const struct ft_model *model)
{
	static const char *const kinds[] = { "full_attention", "sliding_attention" };
	static const char *const mlps[] = { "dense", "sparse" };
	const struct node *types, *mlp;
	bool local, routed;

	if (!model->predicted) /* a config may say what they are all the same */
		return model->n_layers - 1;
	types = read_word_list(r, TYPES, kinds, 2);
	mlp = read_word_list(r, MLPS, mlps, 2);
	if (r->failed)
		return 0;
	local = types && types->n && !strcmp(list_word(types, 0), kinds[1]);
	routed = mlp && mlp->n && !strcmp(list_word(mlp, 0), mlps[1]);
	check_one_kind(r, TYPES, types);
	check_one_kind(r, MLPS, mlp);
	for (int64_t i = 0; i < model->n_layers; i++)
		if ((model->layer[i].window > 0) == local &&
		    (model->layer[i].experts > 0) == routed)
			return i;
	reader_fail(r, "num_nextn_predict_layers",
		    "its layers of predicted tokens have %s and a %s MLP, as none of "
		    "the model has, and are not simulated; say 0",
		    local ? "a window" : "no window", routed ? "routed" : "dense");
	return 0;
}
