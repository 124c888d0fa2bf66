/* models/config.c - one reader for the keys of every model_type */
#include "models/config.h"

#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/text.h"
#include "models/activation.h"
#include "models/family.h"
#include "models/layer_lists.h"
#include "models/layers.h"
#include "models/padded.h"

/* The family whose layers a map of keys looks like. */
static const char *likeness(const struct node *map)
{
	bool shared = node_get(map, "n_shared_experts") ||
		      node_get(map, "first_k_dense_replace");

	if (node_get(map, "kv_lora_rank"))
		return "deepseek_v3";
	if (node_get(map, "moe_intermediate_size"))
		return shared ? "glm4_moe" : "qwen3_moe";
	if (node_get(map, "num_local_experts") || node_get(map, "num_experts"))
		return "mixtral";
	return node_get(map, "n_embd") ? "gpt2" : "llama";
}

/* Routed or latent alike: what a name that is nearly another's has to share with it. */
static bool same_kind(const char *a, const char *b)
{
	const struct family *x = family_find(a), *y = family_find(b);

	return (x->experts == EXPERTS_NONE) == (y->experts == EXPERTS_NONE) &&
	       x->latent == y->latent;
}

static bool unknown_type(const struct ft_mark *at, const char *text,
			 const struct node *map, bool published, struct ft_error *err)
{
	const char *why = family_refusal(text), *near = family_nearest(text);
	const char *like = likeness(map);

	if (why)
		return ft_fail(err, at, "model_type %.60s is not known: %s", text, why);
	if (near && !published)
		return ft_fail(err, at,
			       "model_type %.60s is not known; did you mean '%s'?",
			       text, near);
	if (near && same_kind(near, like))
		like = near;
	return ft_fail(err, at,
		       "model_type %.60s is not known; if its layers are those of "
		       "%s, which its keys fit best, say model: {name: FILE, "
		       "model_type: %s}; foretoken-scenario(5) lists all",
		       text, like, like);
}

const struct family *config_family(const struct node *type, const struct node *map,
				   bool published, struct ft_error *err)
{
	bool word = type->kind == NODE_SCALAR;
	const struct family *family = word ? family_find(type->text) : NULL;

	if (!family)
		unknown_type(&type->mark, word ? type->text : "of this kind", map,
			     published, err);
	return family;
}

bool config_typeless(const struct node *map, struct ft_error *err)
{
	const char *like = likeness(map);

	if (map->kind != NODE_MAP)
		return ft_fail(err, &map->mark,
			       "holds no keys and values, as a model's config.json "
			       "does; is it another file, or a page that was "
			       "downloaded in its place?");
	if (node_get(map, "peft_type"))
		return ft_fail(err, &map->mark,
			       "is the config of an adapter; name the config.json of "
			       "its base model, and the adapter in training.lora");
	if (node_get(map, "dim") && node_get(map, "n_layers"))
		return ft_fail(err, &map->mark,
			       "is a params.json of Meta's; take the config.json of "
			       "the model's form for Hugging Face");
	return ft_fail(err, &map->mark,
		       "model_type is missing; if its layers are those of %s, which "
		       "its keys fit best, say model: {name: FILE, model_type: %s}",
		       like, like);
}

/* Some configs say what all layers share in a list, once for each layer. */
static const char *const of_layers[] = {
	"intermediate_size",   "moe_intermediate_size", "n_shared_experts",
	"num_attention_heads", "num_experts_per_tok",	"num_key_value_heads",
	"num_local_experts",
};

enum { OF_LAYERS = sizeof(of_layers) / sizeof(*of_layers) };

static struct node *said_once(struct node *value, const char *common)
{
	size_t k = 0;

	while (k < OF_LAYERS && strcmp(common, of_layers[k]) != 0)
		k++;
	if (k == OF_LAYERS || value->kind != NODE_LIST || !value->n)
		return value;
	for (size_t i = 0; i < value->n; i++)
		if (value->item[i]->kind != NODE_SCALAR ||
		    !text_same(value->item[i]->text, value->item[0]->text))
			return value;
	return value->item[0];
}

/* Lists that are left say different things of layers. */
static void check_alike(struct reader *r)
{
	for (size_t i = 0; i < OF_LAYERS; i++) {
		const struct node *n = node_get(r->map, of_layers[i]);

		if (n && n->kind == NODE_LIST)
			reader_fail(
				r, of_layers[i],
				"is not the same for all layers; such models are not simulated; write one number for all");
	}
}

/* Has the class of a config.json no window? By its own model_type: a family holds types that have one,
 * too (cohere2 of cohere, olmo3 of olmo2). Source: none of the configs that Transformers 5.17 wrote of
 * these has the key (measurements/models). A scenario may give them one all the same. */
static bool is_windowless(const struct family *family, const struct node *map)
{
	static const char *const types[] = {
		"bloom",       "codegen",  "cohere",	"deepseek_v3", "falcon",
		"gemma",       "glm",	   "glm4",	"glm4_moe",    "gpt2",
		"gpt_bigcode", "gpt_neox", "gptj",	"granite",     "granitemoe",
		"helium",      "llama",	   "mpt",	"olmo",	       "olmo2",
		"olmoe",       "opt",	   "persimmon", "phi",	       "stablelm",
	};
	const struct node *says = node_get(map, "model_type");
	const char *type =
		says && says->kind == NODE_SCALAR ? says->text : family->type;

	return text_place(type, types, sizeof(types) / sizeof(*types)) <
	       sizeof(types) / sizeof(*types);
}

/* Does a config.json's key say nothing to its type? */
static bool is_passed_over(const struct family *family, const struct node *map,
			   const char *common)
{
	return !family_is_common(common) ||
	       (!strcmp(common, "sliding_window") && is_windowless(family, map));
}

struct node *config_rename(struct arena *mem, const struct family *family,
			   const struct node *map, bool lenient)
{
	struct node *out = node_map(mem, &map->mark);

	for (size_t i = 0; i < map->n; i++) {
		const char *key = family_common_name(family, map->key[i]);

		if (lenient && is_passed_over(family, map, key))
			continue;
		if (node_is_null(map->item[i]) && node_get(out, key))
			continue; /* another name of it says something */
		node_put(mem, out, key, &map->key_mark[i],
			 said_once(map->item[i], key));
	}
	config_lift_inside(mem, family, map, out);
	if (family->padded)
		padded_cut(mem, out);
	return out;
}

void config_complete(struct arena *mem, const struct family *family, struct node *map)
{
	static const struct ft_mark here = { "models/class_values.c", 1, 1 };
	const char *common, *value;

	for (size_t i = 0; (common = family_default(family, i, &value)); i++)
		if (!node_get(map, common))
			node_put(mem, map, common, &here,
				 node_scalar(mem, &here, value));
}

const char **config_passed_over(struct arena *mem, const struct family *family,
				const struct node *map, size_t *n)
{
	const struct ft_mark *mark;
	size_t inside = 0;
	const char **key, *in;

	while (config_unread_inside(mem, family, map, inside, &mark))
		inside++;
	key = ARENA_ARRAY(mem, map->n + inside + 1, const char *);
	*n = 0;
	for (size_t i = 0; i < map->n; i++)
		if (is_passed_over(family, map,
				   family_common_name(family, map->key[i])))
			key[(*n)++] = map->key[i];
	for (size_t i = 0; (in = config_unread_inside(mem, family, map, i, &mark)); i++)
		key[(*n)++] = in;
	return key;
}

static void read_biases(struct reader *r, const struct family *family,
			struct ft_model *model)
{
	bool none = read_bool(r, "no_bias", false);
	bool all = read_bool(r, "linear_bias", family->linear_bias) && !none;
	bool attention = read_bool(r, "attention_bias", all) && !none;

	model->qkv_bias = read_bool(r, "qkv_bias", attention || family->qkv_bias);
	model->out_bias =
		read_bool(r, "attention_out_bias", attention && !family->qkv_only);
	model->mlp_bias = read_bool(r, "mlp_bias", all);
	model->head_bias = read_bool(r, "lm_head_bias", family->head_bias);
	model->router_bias =
		family->router_bias && read_bool(r, "use_expert_bias", true);
	model->norm_vectors = family->bare_norms	 ? 0 :
			      family->norm_bias && !none ? 2 :
							   1;
}

/* A probability: masks are drawn or not, whatever it is. */
static bool drops(struct reader *r, const char *key)
{
	double p = read_quantity(r, key, DIM_NONE, 0);

	if (p >= 1)
		reader_fail(r, key, "%g is not a probability below 1", p);
	return p > 0;
}

/* Norms and what stands beside what: falcon's one norm serves attention and MLP, or
 * two do, by its generation. */
static void read_block(struct reader *r, const struct family *family,
		       struct ft_model *model)
{
	bool later = family->few_heads == HEADS_FALCON &&
		     read_bool(r, "new_decoder_architecture", false);

	model->parallel =
		later || read_bool(r, "use_parallel_residual", family->parallel);
	model->norms = read_bool(r, "use_post_norm", false) ? 4 :
		       family->norms			    ? family->norms :
							      2;
	if (family->joins_norm && model->parallel)
		model->norms = (int)read_int(r, "num_ln_in_parallel_attn", 1, 2,
					     later ? 2 : 1);
	model->qk_norm =
		!read_bool(r, "qk_norm", family->qk_norm && !family->qk_norm_off) ?
			FT_QK_PLAIN :
		family->qk_norm ? family->qk_norm :
				  FT_QK_HEAD;
	model->embedding_norm = family->embedding_norm;
	model->wide_norms = family->wide_norms;
	model->wide_rotary = family->wide_rotary;
	model->gated_output = family->gated_output;
	model->shared_gate = family->shared_gate;
	model->value_norm = family->value_norm;
	model->value_scale = family->local_heads;
	model->multipliers = family->states_beside;
	model->layer_scale = family->layer_scale;
	model->dense_beside = family->dense_beside;
	model->expert_norm = family->expert_norm;
	model->layer_input = family->global_heads ?
				     read_size(r, "hidden_size_per_layer_input", 0, 0) :
				     0;
	model->layer_input_rows = model->layer_input ?
					  read_size(r, "vocab_size_per_layer_input", 1,
						    model->vocab_size) :
					  0;
	model->clamped = family->clamped;
	model->streams = family->compressed ? read_needed(r, "hc_mult") : 1;
	model->limits = family->limits;
	model->wide_gates = family->wide_gates;
	model->halves = family->halves;
	model->written_norm = family->written_norm;
	model->scaled_logits = family->scaled_logits;
	model->all_experts = family->all_experts;
	model->scaled_rope = family->scaled_rope;
	model->joined_qkv = family->joined_qkv;
	model->joined_gate_up = family->joined_gate_up;
	model->joined_rotary = family->joined_rotary;
	model->score_cap = read_quantity(r, "attn_logit_softcapping", DIM_NONE, 0) > 0;
	model->logit_cap = read_quantity(r, "final_logit_softcapping", DIM_NONE, 0) > 0;
	model->dropout = drops(r, "hidden_dropout");
	model->attention_dropout = drops(r, "attention_dropout");
	model->causal = read_bool(r, "is_causal", true);
	model->predicted = read_int(r, "num_nextn_predict_layers", 0, 64, 0);
}

/* Hybrids have none, unless they say so. */
static enum ft_positions read_rope(struct reader *r)
{
	const char *type = read_text(r, "position_embedding_type", "nope");

	if (strcmp(type, "nope") != 0 && strcmp(type, "rope") != 0)
		reader_fail(r, "position_embedding_type",
			    "'%.40s' is neither nope (none) nor rope", type);
	return strcmp(type, "rope") ? FT_NO_POSITIONS : FT_ROPE;
}

/* MPT and falcon switch ALiBi on, MPT its learned table off. */
static enum ft_positions read_positions(struct reader *r, const struct family *family)
{
	bool alibi = read_bool(r, "alibi", false);

	if (alibi ||
	    (family->positions == FT_LEARNED && !read_bool(r, "learned_pos_emb", true)))
		return FT_ALIBI;
	return family->positions == FT_NO_POSITIONS ? read_rope(r) : family->positions;
}

/* Rows of a learned table; else the number is not used. */
static void read_max_positions(struct reader *r, const struct family *family,
			       struct ft_model *model)
{
	bool learned = model->positions == FT_LEARNED;
	int64_t rows = read_int(r, "max_position_embeddings", 0,
				learned ? LIMIT_SEQUENCE : FAMILY_MOST, 0);

	model->max_positions = learned && rows ? rows + family->more_rows : 0;
}

/* OPT-350m alone projects its embedding from another width. */
static void check_embedding(struct reader *r, const struct ft_model *model)
{
	int64_t width = read_size(r, "word_embed_proj_dim", 1, model->hidden_size);

	if (width != model->hidden_size)
		reader_fail(r, "word_embed_proj_dim",
			    "an embedding %lld wide in a model of hidden_size %lld is "
			    "not simulated",
			    (long long)width, (long long)model->hidden_size);
}

/* Keys that only other types have a use for are told elsewhere, unknown ones are
 * mistakes. */
static bool only_common(const struct node *map, struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	for (size_t i = 0; family_common(i); i++)
		reader_allow(&r, family_common(i));
	return reader_close(&r);
}

static void read_layers(struct arena *mem, struct reader *r,
			const struct family *family, struct ft_model *model)
{
	model->layer = layers_read(mem, r, family, model);
	for (int64_t i = 0; i < model->n_layers; i++)
		model->sinks = model->sinks || model->layer[i].sinks;
}

bool config_read(struct arena *mem, const struct family *family,
		 const struct config_keys *in, struct ft_model *model,
		 struct config_idle *idle, struct ft_error *err)
{
	struct reader r = reader_open(in->map, err);

	r.base = in->base;
	r.lacking = "it is not guessed: add it to the scenario's model";
	r.is_name = family_is_common;
	check_alike(&r);
	read_provenance(&r, mem);
	model->type = family->type;
	model->norm = family->norm;
	if (read_need(&r, "hidden_size"))
		model->hidden_size = read_size(&r, "hidden_size", 1, 1);
	if (read_need(&r, "num_hidden_layers"))
		model->n_layers = layers_count(
			mem, &r, family, read_size(&r, "num_hidden_layers", 1, 1));
	if (read_need(&r, "vocab_size"))
		model->vocab_size = read_size(&r, "vocab_size", 1, 1);
	model->vocab_multiple = read_size(&r, "vocab_size_multiple", 1, 0);
	model->positions = read_positions(&r, family);
	read_max_positions(&r, family, model);
	activation_read(&r, family, model);
	model->tied = read_bool(&r, "tie_word_embeddings", family->tied);
	read_biases(&r, family, model);
	read_block(&r, family, model);
	check_embedding(&r, model);
	if (!r.failed)
		read_layers(mem, &r, family, model);
	if (!r.failed)
		model->predicted_like = layers_predicted(&r, family, model);
	model->plain = family->plain;
	if (!r.failed && family->few_heads == HEADS_FALCON &&
	    model->layer->kv_heads == 1 && model->layer->heads > 1)
		model->plain = FT_PLAIN_32; /* one head is not spread over all */
	model->from = r.from;
	if (r.failed) { /* of a key that is missing: is another misspelt? */
		r.own = r.missing ? family_own_name(family, r.missing) : NULL;
		return reader_close(&r);
	}
	if (!only_common(in->map, err))
		return false;
	config_find_idle(mem, &r, idle);
	return true;
}
