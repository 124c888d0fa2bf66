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

static bool shares(const struct sharing *s, int64_t i)
{
	const char *type = list_word(s->types, i);
	int64_t behind = i + 1 - s->from;

	if (type)
		return !strcmp(type, "shared");
	if (*s->letters)
		return s->letters[i] == 'S';
	return behind > 0 && behind % s->every != 0;
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
		layer[i].shares_index = shares(&sharing, i);
	}
	if (!r->failed && topk && layer[0].shares_index)
		reader_fail(r, sharing.types ? "indexer_types" : "index_topk_pattern",
			    "layer 1 has no layer before it whose choice it could see");
}
