/*
 * models/indexer.c - which layers choose the tokens that they see, and which see what the layer before chose
 *
 * Without a list, layer i (from 0) chooses if max(i + 1 - index_skip_topk_offset, 0) is a multiple of index_topk_freq.
 * Source: Transformers' configuration of glm_moe_dsa (read 2026-11-30); by it GLM-5.2 has 743,377,000,704 parameters, as
 * published.
 */
#include "models/indexer.h"

#include <string.h>

#include "base/reader.h"
#include "foretoken/models.h"
#include "models/layer_lists.h"

/* How a config says which layers choose; what it does not say is NULL. */
struct sharing {
	const struct node *types; /* full or shared, of each layer */
	const char *letters;	  /* F or S */
	int64_t every, from;
};

static struct sharing read_sharing(struct reader *r, int64_t layers)
{
	static const char *const types[] = { "full", "shared" };
	struct sharing s = {
		.types = read_word_list(r, "indexer_types", types, 2),
		.letters = read_text(r, "index_topk_pattern", ""),
		.every = read_size(r, "index_topk_freq", 1, 1),
		.from = read_size(r, "index_skip_topk_offset", 0, 2),
	};

	check_list_fits(r, "indexer_types", s.types, layers);
	if (strspn(s.letters, "FS") != strlen(s.letters))
		reader_fail(
			r, "index_topk_pattern",
			"has a letter for each layer: F, which chooses, or S, which sees "
			"what the layer before chose");
	else if (*s.letters && strlen(s.letters) < (size_t)layers)
		reader_fail(r, "index_topk_pattern", "names %zu of the %lld layers",
			    strlen(s.letters), (long long)layers);
	return s;
}

/* In the order in which they are looked for. */
enum way { BY_TYPES, BY_LETTERS, BY_NUMBER };

static enum way way_of(const struct sharing *s)
{
	return s->types ? BY_TYPES : *s->letters ? BY_LETTERS : BY_NUMBER;
}

static bool shares(const struct sharing *s, enum way way, int64_t i)
{
	int64_t behind = i + 1 - s->from;

	switch (way) {
	case BY_TYPES:
		return !strcmp(list_word(s->types, i), "shared");
	case BY_LETTERS:
		return s->letters[i] == 'S';
	default:
		return behind > 0 && behind % s->every != 0;
	}
}

static const struct {
	enum way way;
	const char *key;
} said[] = { { BY_TYPES, "indexer_types" },
	     { BY_LETTERS, "index_topk_pattern" },
	     { BY_NUMBER, "index_topk_freq" },
	     { BY_NUMBER, "index_skip_topk_offset" } };
enum { SAID = sizeof(said) / sizeof(*said) };

/* What is said twice is said alike. */
static void check_ways(struct reader *r, const struct sharing *s, int64_t layers)
{
	enum way taken = way_of(s);
	const char *key = said[taken].key;

	for (int k = (int)taken + 1; k < SAID && taken != BY_NUMBER && !r->failed; k++)
		for (int64_t i = 0; i < layers && !r->failed; i++)
			if (read_has(r, said[k].key) &&
			    shares(s, taken, i) != shares(s, said[k].way, i) &&
			    said_beside(r, node_get(r->map, key),
					node_get(r->map, said[k].key)))
				reader_fail(r, said[k].key,
					    "says otherwise than %s what layer %lld "
					    "sees; " SAY_ONE,
					    key, (long long)i + 1);
}

/* Of such a model's layers all see what is chosen, whatever a file says that they see. A scenario's words for it would do nothing. */
static void check_sight(struct reader *r, const struct ft_model *model,
			const struct ft_layer *layer)
{
	const struct node *types = node_get(r->map, "layer_types");

	for (int64_t i = 0; i < model->n_layers && !r->failed; i++) {
		const char *type =
			laid_upon(r, "layer_types") ? list_word(types, i) : NULL;

		if (layer[i].window && laid_upon(r, "sliding_window"))
			reader_fail(r, "sliding_window",
				    "does nothing beside index_topk; say null for it, "
				    "or 0 for index_topk");
		else if (type && strcmp(type, "deepseek_sparse_attention") != 0)
			reader_fail(r, "layer_types",
				    "%s of layer %lld does nothing beside index_topk; "
				    "leave the list out, or say 0 for index_topk",
				    type, (long long)i + 1);
	}
}

void indexer_set(struct reader *r, const struct ft_model *model, struct ft_layer *layer)
{
	int64_t topk = read_size(r, "index_topk", 0, 0);
	int64_t heads = read_needed(r, "index_n_heads");
	int64_t dim = read_needed(r, "index_head_dim");
	struct sharing sharing = read_sharing(r, model->n_layers);

	if (!read_has(r, "index_topk"))
		(void)read_need(r, "index_topk");
	if (!r->failed && !layer[0].q_lora_rank)
		reader_fail(
			r, "q_lora_rank",
			"the indexer's heads are made of the latent of queries; its "
			"rank is missing");
	for (int64_t i = 0; topk && !r->failed && i < model->n_layers; i++) {
		layer[i].index_topk = topk;
		layer[i].index_heads = heads;
		layer[i].index_head_dim = dim;
		layer[i].shares_index = shares(&sharing, way_of(&sharing), i);
	}
	if (!r->failed && topk) {
		check_ways(r, &sharing, model->n_layers);
		check_sight(r, model, layer);
	}
	if (!r->failed && topk && layer[0].shares_index)
		reader_fail(r,
			    way_of(&sharing) == BY_NUMBER ? "index_skip_topk_offset" :
							    said[way_of(&sharing)].key,
			    "layer 1 has no layer before it whose choice it could see");
}
