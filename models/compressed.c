/*
 * models/compressed.c - which layers of DeepSeek-V4 see a window alone, which see entries, and of how many tokens these are
 *
 * Source: Transformers' configuration and modeling of deepseek_v4 (read 2026-11-30): without a list the first two layers
 * see heavily compressed entries, then each second one chosen ones.
 */
#include "models/compressed.h"

#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "foretoken/models.h"
#include "models/layer_lists.h"

enum sight { WINDOW, CHOSEN, HEAVILY };

static const char *const words[] = { "sliding_attention", "compressed_sparse_attention",
				     "heavily_compressed_attention" };

/* None of its products has one, in Transformers' class or in Megatron Core's. */
static void has_no_biases(struct reader *r)
{
	static const char *const bias[] = { "attention_bias", "qkv_bias",
					    "attention_out_bias" };

	for (int i = 0; i < 3; i++)
		if (read_bool(r, bias[i], false))
			reader_fail(r, bias[i],
				    "such attention has no biases; say false");
}

void compressed_read(struct reader *r, struct ft_layer *layer)
{
	int64_t heads = layer->heads, dim = read_needed(r, "head_dim");

	layer->kv_heads = 1;
	layer->compressed = layer->values_are_keys = true;
	if (read_size(r, "num_key_value_heads", 1, 1) != 1)
		reader_fail(r, "num_key_value_heads",
			    "such attention has one head of keys; say 1");
	has_no_biases(r);
	layer->qk_head_dim = layer->v_head_dim = dim;
	layer->qk_rope_head_dim = read_size(r, "qk_rope_head_dim", 1, dim / 8);
	if (layer->qk_rope_head_dim > dim)
		reader_fail(r, "qk_rope_head_dim",
			    "%lld is more than head_dim, which is %lld",
			    (long long)layer->qk_rope_head_dim, (long long)dim);
	layer->q_lora_rank = read_needed(r, "q_lora_rank");
	layer->out_groups = read_needed(r, "o_groups");
	layer->out_rank = read_needed(r, "o_lora_rank");
	if (!r->failed && heads % layer->out_groups)
		reader_fail(r, "o_groups",
			    "num_attention_heads %lld is not a multiple of %lld",
			    (long long)heads, (long long)layer->out_groups);
	layer->window = read_needed(r, "sliding_window");
}

/* What is said of each layer, and how many tokens an entry is made of. */
struct said {
	const struct node *types, *ratios;
	int64_t tokens[3];
};

static struct said read_said(struct reader *r, int64_t most)
{
	return (struct said){
		.types = read_word_list(r, "layer_types", words, 3),
		.ratios = read_number_list(r, "compress_ratios", most),
		.tokens = { 0, read_size(r, "compress_rate_csa", 1, 4),
			    read_size(r, "compress_rate_hca", 1, 128) },
	};
}

static enum sight by_word(const char *word)
{
	enum sight k = WINDOW;

	while (k < HEAVILY && strcmp(word, words[k]) != 0)
		k++;
	return k;
}

/* By the number of tokens of an entry; 0: the window alone. */
static enum sight by_ratio(const struct said *said, int64_t ratio)
{
	return !ratio ? WINDOW : ratio == said->tokens[CHOSEN] ? CHOSEN : HEAVILY;
}

static enum sight sight_of(const struct said *said, bool types, int64_t i)
{
	const char *word = types ? list_word(said->types, i) : NULL;

	if (word)
		return by_word(word);
	if (said->ratios)
		return by_ratio(said, strtoll(list_word(said->ratios, i), NULL, 10));
	return i > 1 && i % 2 ? CHOSEN : HEAVILY;
}

/* Published lists of numbers go on with those of predicted tokens, which a scenario's need not. */
static void check_ratios(struct reader *r, const struct said *said,
			 const struct ft_model *model)
{
	const struct node *list = said->ratios;
	int64_t most = model->n_layers + model->predicted;

	if (!list || (said->types && !said_beside(r, said->types, list)))
		return; /* words laid upon it say what layers see */
	if (laid_upon(r, "compress_ratios") && (int64_t)list->n > most)
		check_length(r, "compress_ratios", list->n, model->n_layers);
	else
		check_list_covers(r, "compress_ratios", list, model->n_layers);
	for (int64_t i = 0; i < model->n_layers && !r->failed; i++) {
		int64_t ratio = strtoll(list_word(list, i), NULL, 10);

		if (ratio && ratio != said->tokens[CHOSEN] &&
		    ratio != said->tokens[HEAVILY])
			reader_fail(r, "compress_ratios",
				    "layer %lld has %lld, which is neither 0 nor %lld "
				    "(chosen) nor %lld (all seen)",
				    (long long)i + 1, (long long)ratio,
				    (long long)said->tokens[CHOSEN],
				    (long long)said->tokens[HEAVILY]);
	}
}

static void check_twice(struct reader *r, const struct said *said, int64_t layers)
{
	const char *types = "layer_types", *ratios = "compress_ratios";

	if (!said->types || !said->ratios ||
	    !said_beside(r, node_get(r->map, types), node_get(r->map, ratios)))
		return;
	for (int64_t i = 0; i < layers && !r->failed; i++)
		if (sight_of(said, true, i) != sight_of(said, false, i))
			reader_fail(r, ratios,
				    "says otherwise than %s what layer %lld "
				    "sees; " SAY_ONE,
				    types, (long long)i + 1);
}

void compressed_set(struct reader *r, const struct ft_model *model,
		    struct ft_layer *layer)
{
	int64_t heads = read_needed(r, "index_n_heads");
	int64_t dim = read_needed(r, "index_head_dim");
	int64_t topk = read_needed(r, "index_topk");
	struct said said = read_said(r, 1 << 20);

	if (!r->failed)
		check_list_fits(r, "layer_types", said.types, model->n_layers);
	if (!r->failed && said.tokens[CHOSEN] == said.tokens[HEAVILY])
		reader_fail(r, "compress_rate_hca",
			    "is %lld as compress_rate_csa is, by which they could not "
			    "be told apart",
			    (long long)said.tokens[HEAVILY]);
	if (!r->failed)
		check_ratios(r, &said, model);
	if (!r->failed)
		check_twice(r, &said, model->n_layers);
	for (int64_t i = 0; i < model->n_layers && !r->failed; i++) {
		enum sight sight = sight_of(&said, true, i);

		layer[i].entry_tokens = said.tokens[sight];
		if (sight != CHOSEN)
			continue;
		layer[i].index_topk = topk;
		layer[i].index_heads = heads;
		layer[i].index_head_dim = dim;
	}
}
