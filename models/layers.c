/* models/layers.c - one block for all layers, then what differs among them */
#include "models/layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"

enum { MANY = 1 << 30 };

/* A number that a config of this kind cannot do without. */
static int64_t need(struct reader *r, const char *key)
{
	return read_need(r, key) ? read_int(r, key, 1, MANY, 1) : 1;
}

static void read_latent(struct reader *r, struct ft_layer *layer)
{
	layer->kv_heads = layer->heads;
	layer->q_lora_rank = read_int(r, "q_lora_rank", 0, MANY, 0);
	layer->kv_lora_rank = need(r, "kv_lora_rank");
	layer->qk_rope_head_dim = need(r, "qk_rope_head_dim");
	layer->qk_head_dim = need(r, "qk_nope_head_dim") + layer->qk_rope_head_dim;
	layer->v_head_dim = need(r, "v_head_dim");
}

/* MPT keeps the number of its key and value heads in a map of its own. */
static int64_t kv_heads(struct reader *r, int64_t heads)
{
	struct node *attn = read_node(r, "attn_config");
	struct node *own = node_get(attn, "kv_n_heads");

	if (own && !node_is_null(own) && !read_has(r, "num_key_value_heads")) {
		struct reader inner = reader_open(attn, r->err);
		int64_t n = read_int(&inner, "kv_n_heads", 1, MANY, heads);

		r->failed = r->failed || inner.failed;
		return n;
	}
	return read_int(r, "num_key_value_heads", 1, MANY, heads);
}

static void read_plain(struct reader *r, const struct ft_model *model,
		       struct ft_layer *layer)
{
	int64_t even = model->hidden_size / layer->heads;

	layer->kv_heads = kv_heads(r, layer->heads);
	layer->qk_head_dim = read_int(r, "head_dim", 1, MANY, even);
	layer->v_head_dim = layer->qk_head_dim;
	if (!read_has(r, "head_dim") && model->hidden_size % layer->heads)
		reader_fail(r, "num_attention_heads",
			    "hidden_size %lld is not a multiple of %lld, so "
			    "head_dim must be given",
			    (long long)model->hidden_size, (long long)layer->heads);
	else if (layer->kv_heads > layer->heads || layer->heads % layer->kv_heads)
		reader_fail(r, "num_key_value_heads",
			    "num_attention_heads %lld is not a multiple of "
			    "%lld",
			    (long long)layer->heads, (long long)layer->kv_heads);
}

static int64_t read_width(struct reader *r, const struct ft_model *model)
{
	int64_t ratio = read_int(r, "expansion_ratio", 1, 1024, 4);

	if (!read_has(r, "intermediate_size") && model->activation == FT_SWIGLU &&
	    !read_has(r, "expansion_ratio"))
		(void)read_need(r, "intermediate_size");
	return read_int(r, "intermediate_size", 1, MANY, ratio * model->hidden_size);
}

static void read_experts(struct reader *r, enum layer_kind kind,
			 const struct ft_model *model, struct ft_layer *layer)
{
	layer->experts = need(r, "num_local_experts");
	layer->experts_per_token = need(r, "num_experts_per_tok");
	if (layer->experts_per_token > layer->experts)
		reader_fail(r, "num_experts_per_tok",
			    "%lld is more than the %lld experts there are",
			    (long long)layer->experts_per_token,
			    (long long)layer->experts);
	layer->expert_intermediate = kind == LAYERS_MIXTRAL ?
					     read_width(r, model) :
					     need(r, "moe_intermediate_size");
	layer->shared_intermediate =
		layer->expert_intermediate *
		(kind == LAYERS_LATENT ? read_int(r, "n_shared_experts", 0, 1024, 0) :
					 0);
}

/* Is layer i one of the list `mlp_only_layers`? */
static bool listed(const struct node *list, int64_t i)
{
	for (size_t k = 0; list && k < list->n; k++)
		if (list->item[k]->text && strtoll(list->item[k]->text, NULL, 10) == i)
			return true;
	return false;
}

/* Which layers keep a dense MLP beside the routed ones. */
struct dense_rule {
	int64_t first, every;
	const struct node *list;
};

static bool is_dense(const struct dense_rule *rule, int64_t i)
{
	return i < rule->first || (i + 1 - rule->first) % rule->every ||
	       listed(rule->list, i);
}

static void set_widths(struct reader *r, enum layer_kind kind,
		       const struct ft_model *model, struct ft_layer *layer)
{
	struct ft_layer routed = layer[0];
	struct dense_rule rule = { 0, 1, NULL };
	int64_t width;

	if (kind == LAYERS_ROUTED) {
		rule.every = read_int(r, "decoder_sparse_step", 1, MANY, 1);
		rule.list = read_node(r, "mlp_only_layers");
	} else if (kind == LAYERS_LATENT) {
		rule.first = read_int(r, "first_k_dense_replace", 0, MANY, 0);
		rule.every = read_int(r, "moe_layer_freq", 1, MANY, 1);
	}
	if (kind == LAYERS_DENSE) {
		width = read_width(r, model);
	} else {
		width = read_int(r, "intermediate_size", 1, MANY, 1);
		read_experts(r, kind, model, &routed);
	}
	for (int64_t i = 0; i < model->n_layers; i++)
		if (kind == LAYERS_DENSE || is_dense(&rule, i))
			layer[i].intermediate = width;
		else
			layer[i] = routed;
}

/* Sliding windows: by `layer_types` (repeated when shorter than the model),
 * else by the type's custom. */
static void set_windows(struct reader *r, const char *type,
			const struct ft_model *model, struct ft_layer *layer)
{
	int64_t window = read_int(r, "sliding_window", 0, MANY, 0);
	const struct node *types = read_node(r, "layer_types");
	bool qwen = !strncmp(type, "qwen", 4);
	bool on = read_bool(r, "use_sliding_window", !qwen);
	int64_t from = read_int(r, "max_window_layers", 0, MANY, 0);
	bool alternate = !strcmp(type, "gpt_oss");

	for (int64_t i = 0; i < model->n_layers && window && on; i++) {
		bool slides = i >= from && !(alternate && i % 2);

		if (types && types->kind == NODE_LIST && types->n) {
			const struct node *t = types->item[(size_t)i % types->n];

			slides = t->text && !strcmp(t->text, "sliding_attention");
		}
		layer[i].window = slides ? window : 0;
	}
}

struct ft_layer *layers_read(struct arena *mem, struct reader *r, enum layer_kind kind,
			     const char *type, const struct ft_model *model)
{
	size_t n = (size_t)model->n_layers;
	struct ft_layer *layer = ARENA_ARRAY(mem, n, struct ft_layer);

	layer[0].heads = need(r, "num_attention_heads");
	if (r->failed)
		return layer;
	if (kind == LAYERS_LATENT)
		read_latent(r, &layer[0]);
	else
		read_plain(r, model, &layer[0]);
	for (size_t i = 1; i < n; i++)
		layer[i] = layer[0];
	set_widths(r, kind, model, layer);
	set_windows(r, type, model, layer);
	return layer;
}
