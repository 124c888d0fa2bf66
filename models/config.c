/* models/config.c - one table row per model_type, one reader for them all */
#include "models/config.h"

#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"
#include "models/layers.h"

/* What a type implies when its config does not say otherwise. */
struct family {
	const char *type;
	enum ft_norm norm;
	enum ft_positions positions;
	enum ft_activation activation;
	bool tied, linear_bias, qkv_bias, qk_norm, norm_bias, embedding_norm;
	enum layer_kind layers;
};

static const struct family families[] = {
	{ "llama", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .layers = LAYERS_DENSE },
	{ "mistral", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .layers = LAYERS_DENSE },
	{ "mixtral", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .layers = LAYERS_MIXTRAL },
	{ "qwen2", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .qkv_bias = true,
	  .layers = LAYERS_DENSE },
	{ "qwen3", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .qk_norm = true,
	  .layers = LAYERS_DENSE },
	{ "qwen3_moe", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .qk_norm = true,
	  .layers = LAYERS_ROUTED },
	{ "deepseek_v2", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .layers = LAYERS_LATENT },
	{ "deepseek_v3", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .layers = LAYERS_LATENT },
	{ "gpt2", FT_LAYER_NORM, FT_LEARNED, FT_GELU, .tied = true, .linear_bias = true,
	  .norm_bias = true, .layers = LAYERS_DENSE },
	{ "mpt", FT_LAYER_NORM, FT_LEARNED, FT_GELU, .tied = true, .linear_bias = true,
	  .norm_bias = true, .layers = LAYERS_DENSE },
	{ "bloom", FT_LAYER_NORM, FT_ALIBI, FT_GELU, .tied = true, .linear_bias = true,
	  .norm_bias = true, .embedding_norm = true, .layers = LAYERS_DENSE },
	{ "gpt_oss", FT_RMS_NORM, FT_ROPE, FT_SWIGLU, .linear_bias = true,
	  .layers = LAYERS_MIXTRAL },
	{ "gpt", FT_LAYER_NORM, FT_LEARNED, FT_GELU, .tied = true, .linear_bias = true,
	  .norm_bias = true, .layers = LAYERS_DENSE },
	{ "nemotron4", FT_LAYER_NORM, FT_ROPE, FT_SQUARED_RELU, .norm_bias = true,
	  .layers = LAYERS_DENSE },
};

enum { FAMILIES = sizeof(families) / sizeof(*families) };

/* Names of one type's own; type NULL: of any. */
static const struct {
	const char *type, *own, *common;
} renamed[] = {
	{ "gpt2", "n_embd", "hidden_size" },
	{ "gpt2", "n_layer", "num_hidden_layers" },
	{ "gpt2", "n_head", "num_attention_heads" },
	{ "gpt2", "n_inner", "intermediate_size" },
	{ "gpt2", "n_positions", "max_position_embeddings" },
	{ "gpt2", "activation_function", "hidden_act" },
	{ "mpt", "d_model", "hidden_size" },
	{ "mpt", "n_layers", "num_hidden_layers" },
	{ "mpt", "n_heads", "num_attention_heads" },
	{ "mpt", "max_seq_len", "max_position_embeddings" },
	{ "bloom", "n_embed", "hidden_size" },
	{ "bloom", "n_layer", "num_hidden_layers" },
	{ "bloom", "n_head", "num_attention_heads" },
	{ "bloom", "seq_length", "max_position_embeddings" },
	{ "qwen3_moe", "num_experts", "num_local_experts" },
	{ "deepseek_v2", "n_routed_experts", "num_local_experts" },
	{ "deepseek_v3", "n_routed_experts", "num_local_experts" },
	{ "gpt_oss", "experts_per_token", "num_experts_per_tok" },
};

/* The common names: those of llama's config.json, and what else some need. */
static const char *const common[] = {
	"name",
	"model_type",
	"title",
	"provenance",
	"hidden_size",
	"num_hidden_layers",
	"num_attention_heads",
	"num_key_value_heads",
	"head_dim",
	"intermediate_size",
	"vocab_size",
	"vocab_size_multiple",
	"max_position_embeddings",
	"hidden_act",
	"tie_word_embeddings",
	"attention_bias",
	"mlp_bias",
	"no_bias",
	"qk_norm",
	"sliding_window",
	"use_sliding_window",
	"max_window_layers",
	"layer_types",
	"expansion_ratio",
	"learned_pos_emb",
	"attn_config",
	"num_local_experts",
	"num_experts_per_tok",
	"moe_intermediate_size",
	"n_shared_experts",
	"first_k_dense_replace",
	"moe_layer_freq",
	"decoder_sparse_step",
	"mlp_only_layers",
	"q_lora_rank",
	"kv_lora_rank",
	"qk_nope_head_dim",
	"qk_rope_head_dim",
	"v_head_dim",
};

enum { COMMON = sizeof(common) / sizeof(*common) };

const struct family *config_family(struct arena *mem, const struct node *type,
				   struct ft_error *err)
{
	const char *name[FAMILIES];

	for (size_t i = 0; i < FAMILIES; i++) {
		if (type->kind == NODE_SCALAR && !strcmp(type->text, families[i].type))
			return &families[i];
		name[i] = families[i].type;
	}
	ft_fail(err, &type->mark, "model_type %s is not known; known are %s",
		type->kind == NODE_SCALAR ? type->text : "of this kind",
		text_join(mem, name, FAMILIES));
	return NULL;
}

static bool is_common(const char *key)
{
	for (size_t i = 0; i < COMMON; i++)
		if (!strcmp(key, common[i]))
			return true;
	return false;
}

static const char *common_name(const struct family *family, const char *key)
{
	for (size_t i = 0; i < sizeof(renamed) / sizeof(*renamed); i++)
		if (!strcmp(family->type, renamed[i].type) &&
		    !strcmp(key, renamed[i].own))
			return renamed[i].common;
	return key;
}

struct node *config_rename(struct arena *mem, const struct family *family,
			   const struct node *map, bool lenient)
{
	struct node *out = node_map(mem, &map->mark);

	for (size_t i = 0; i < map->n; i++) {
		const char *key = common_name(family, map->key[i]);

		if (lenient && !is_common(key))
			continue;
		node_put(mem, out, key, &map->key_mark[i], map->item[i]);
	}
	return out;
}

const char **config_passed_over(struct arena *mem, const struct family *family,
				const struct node *map, size_t *n)
{
	const char **key = ARENA_ARRAY(mem, map->n + 1, const char *);

	*n = 0;
	for (size_t i = 0; i < map->n; i++)
		if (!is_common(common_name(family, map->key[i])))
			key[(*n)++] = map->key[i];
	return key;
}

static void read_biases(struct reader *r, const struct family *family,
			struct ft_model *model)
{
	bool attention = read_bool(r, "attention_bias", family->linear_bias);
	bool mlp = read_bool(r, "mlp_bias", family->linear_bias);
	bool none = read_bool(r, "no_bias", false);

	model->linear_bias = !none && attention && (mlp || family->linear_bias);
	model->qkv_bias = !none && (attention || family->qkv_bias);
	model->norm_bias = !none && family->norm_bias;
	model->qk_norm = read_bool(r, "qk_norm", family->qk_norm);
	model->embedding_norm = family->embedding_norm;
}

static enum ft_activation read_activation(struct reader *r, const struct family *family)
{
	const char *act = read_text(r, "hidden_act", "");

	if (family->activation == FT_SWIGLU || !*act)
		return family->activation;
	return strcmp(act, "relu2") && strcmp(act, "squared_relu") ? FT_GELU :
								     FT_SQUARED_RELU;
}

/* MPT's switch between ALiBi and a learned table. */
static enum ft_positions read_positions(struct reader *r, const struct family *family)
{
	struct node *attn = read_node(r, "attn_config");
	struct node *alibi = node_get(attn, "alibi");
	bool learned = read_bool(r, "learned_pos_emb", true);

	if (strcmp(family->type, "mpt"))
		return family->positions;
	if (alibi && alibi->text && !strcmp(alibi->text, "true"))
		return FT_ALIBI;
	return learned ? FT_LEARNED : FT_ALIBI;
}

/* Keys that this type has no use for are no mistakes, unknown ones are. */
static bool only_common(const struct node *map, struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	for (size_t i = 0; i < COMMON; i++)
		reader_allow(&r, common[i]);
	return reader_close(&r);
}

bool config_read(struct arena *mem, const struct family *family, const struct node *map,
		 struct ft_model *model, struct ft_error *err)
{
	enum { MANY = 1 << 30 };
	struct reader r = reader_open(map, err);

	read_provenance(&r, mem);
	model->type = family->type;
	model->norm = family->norm;
	if (read_need(&r, "hidden_size"))
		model->hidden_size = read_int(&r, "hidden_size", 1, MANY, 1);
	if (read_need(&r, "num_hidden_layers"))
		model->n_layers = read_int(&r, "num_hidden_layers", 1, 1 << 16, 1);
	if (read_need(&r, "vocab_size"))
		model->vocab_size = read_int(&r, "vocab_size", 1, MANY, 1);
	model->vocab_multiple = read_int(&r, "vocab_size_multiple", 0, MANY, 0);
	model->positions = read_positions(&r, family);
	model->max_positions = read_int(&r, "max_position_embeddings", 0, MANY, 0);
	if (model->positions != FT_LEARNED)
		model->max_positions = 0;
	model->activation = read_activation(&r, family);
	model->tied = read_bool(&r, "tie_word_embeddings", family->tied);
	read_biases(&r, family, model);
	if (!r.failed)
		model->layer =
			layers_read(mem, &r, family->layers, family->type, model);
	model->from = r.from;
	return !r.failed && only_common(map, err);
}
