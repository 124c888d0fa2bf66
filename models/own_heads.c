/* models/own_heads.c - layers whose heads are not those of all others, and gates of what heads put out */
#include "models/own_heads.h"

#include <string.h>

#include "base/limits.h"
#include "base/reader.h"
#include "foretoken/models.h"
#include "models/family.h"
#include "models/layer_lists.h"

void heads_check_groups(struct reader *r, const char *key, const struct ft_layer *l)
{
	if (l->kv_heads > l->heads || l->heads % l->kv_heads)
		reader_fail(r, key,
			    "num_attention_heads %lld is not a multiple of %lld",
			    (long long)l->heads, (long long)l->kv_heads);
}

/* ---- of layers with a window --------------------------------------------------- */

static void take_heads(struct ft_layer *layer, const struct ft_layer *from)
{
	layer->heads = from->heads;
	layer->kv_heads = from->kv_heads;
	layer->qk_head_dim = from->qk_head_dim;
	layer->v_head_dim = from->v_head_dim;
}

/* Layers with a window have heads of another number and width, and sinks (MiMo-V2). Where its class says nothing it has
 * twice the key heads there: Transformers' modular_mimo_v2_flash.py (read 2026-11-28). */
static void set_locals(struct reader *r, const struct ft_model *model,
		       struct ft_layer *layer)
{
	struct ft_layer all = layer[0], local = all;
	bool sinks = read_bool(r, "add_swa_attention_sink_bias", true);
	bool others = read_bool(r, "add_full_attention_sink_bias", false);

	local.heads = read_size(r, "swa_num_attention_heads", 1, all.heads);
	local.kv_heads = read_size(r, "swa_num_key_value_heads", 1, 2 * all.kv_heads);
	local.qk_head_dim = read_size(r, "swa_head_dim", 1, all.qk_head_dim);
	local.v_head_dim = read_size(r, "swa_v_head_dim", 1, all.v_head_dim);
	heads_check_groups(r, "swa_num_key_value_heads", &local);
	for (int64_t i = 0; i < model->n_layers; i++) {
		layer[i].sinks = layer[i].window ? sinks : others;
		if (layer[i].window)
			take_heads(&layer[i], &local);
	}
}

static int64_t size_of(const struct ft_layer *l, size_t key)
{
	const int64_t sizes[] = { l->heads, l->kv_heads, l->qk_head_dim };

	return sizes[key];
}

/* Layers with a window have heads of another number (Step 3.5): attention_other_setting of its config, of which Transformers'
 * class takes the number of queries' alone (configuration_step3p7.py, read 2026-12-01). */
static void set_windowed(struct reader *r, const struct ft_model *model,
			 struct ft_layer *layer)
{
	static const char *const keys[] = { "swa_num_attention_heads",
					    "swa_num_key_value_heads", "swa_head_dim" };
	struct ft_layer local = layer[0];

	local.heads = read_size(r, keys[0], 1, local.heads);
	local.kv_heads = read_size(r, keys[1], 1, local.kv_heads);
	local.qk_head_dim = local.v_head_dim =
		read_size(r, keys[2], 1, local.qk_head_dim);
	heads_check_groups(r, keys[0], &local);
	for (size_t k = 0; k < 3 && !read_size(r, "sliding_window", 0, 0); k++)
		if (read_size(r, keys[k], 1, size_of(layer, k)) != size_of(layer, k))
			reader_fail(r, keys[k],
				    "is of layers with a window, and there is none; "
				    "say sliding_window, too");
	for (int64_t i = 0; i < model->n_layers; i++)
		if (layer[i].window)
			take_heads(&layer[i], &local);
}

/* ---- of each layer ------------------------------------------------------------- */

static const char LIST[] = "num_attention_heads_per_layer";

/* Query heads of each layer by a list, which share key heads of one number (Laguna). */
static void set_listed(struct reader *r, const struct ft_model *model,
		       struct ft_layer *layer)
{
	static const char *const hidden[] = { "num_attention_heads",
					      "swa_num_attention_heads" };
	const struct node *list = read_number_list(r, LIST, LIMIT_HEADS);

	check_list_fits(r, LIST, list, model->n_layers);
	if (!list || !list->n || r->failed)
		return;
	for (size_t k = 0; k < 2 && !laid_upon(r, LIST); k++)
		check_hidden(r, hidden[k], LIST);
	for (int64_t i = 0; i < model->n_layers && !r->failed; i++) {
		const struct node *item = list->item[list->n == 1 ? 0 : (size_t)i];

		if (!node_whole(item, 1, LIMIT_HEADS, &layer[i].heads) ||
		    layer[i].heads % layer[i].kv_heads)
			reader_fail_node(
				r, LIST, item,
				"the heads of layer %lld should be a multiple of the "
				"%lld key and value heads",
				(long long)i + 1, (long long)layer[i].kv_heads);
	}
}

/* ---- gates ---------------------------------------------------------------------- */

enum gates { FOR_NONE, FOR_HEADS, FOR_ELEMENTS, UNKNOWN };

/* What configs write: true and false; per-head, and per_head in lists. */
static enum gates gates_of(const char *word)
{
	if (!strcmp(word, "true") || !strcmp(word, "per-head") ||
	    !strcmp(word, "per_head"))
		return FOR_HEADS;
	if (!strcmp(word, "per-element") || !strcmp(word, "per_element"))
		return FOR_ELEMENTS;
	return !strcmp(word, "false") ? FOR_NONE : UNKNOWN;
}

/* Laguna's configs of 2.1 say it once more, for each layer; Transformers' class looks at `gating` (modular_laguna.py, read
 * 2026-12-01). */
static enum gates listed_gates(struct reader *r, const struct node *types, int64_t i,
			       enum gates all)
{
	const char *word = list_word(types, i);
	enum gates gates = word ? gates_of(word) : all;

	if (gates != all && said_beside(r, node_get(r->map, "gating"), types))
		reader_fail(r, "gating_types",
			    "says otherwise than gating what layer %lld has; " SAY_ONE,
			    (long long)i + 1);
	return gates;
}

static void set_gates(struct reader *r, const struct ft_model *model,
		      struct ft_layer *layer)
{
	static const char *const words[] = { "per_head", "per_element" };
	const char *word = read_text(r, "gating", "per-head");
	const struct node *types = read_word_list(r, "gating_types", words, 2);
	enum gates all = gates_of(word);

	if (all == UNKNOWN)
		reader_fail(r, "gating",
			    "'%.40s' is neither per-head, per-element nor false", word);
	check_list_fits(r, "gating_types", types, model->n_layers);
	for (int64_t i = 0; i < model->n_layers && !r->failed; i++) {
		enum gates gates = listed_gates(r, types, i, all);

		layer[i].output_gates =
			gates == FOR_NONE ?
				0 :
				layer[i].heads * (gates == FOR_ELEMENTS ?
							  layer[i].v_head_dim :
							  1);
	}
}

void heads_set(struct reader *r, const struct family *family,
	       const struct ft_model *model, struct ft_layer *layer)
{
	if (family->local_heads)
		set_locals(r, model, layer);
	if (family->window_heads)
		set_windowed(r, model, layer);
	if (!family->head_gates)
		return;
	set_listed(r, model, layer);
	set_gates(r, model, layer);
}
