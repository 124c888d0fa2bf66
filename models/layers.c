/* models/layers.c - one block for all layers, then what differs among them */
#include "models/layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"
#include "models/family.h"

enum { MANY = 1 << 30 };

/* A number that a config of this kind cannot do without. */
static int64_t need(struct reader *r, const char *key)
{
	return read_need(r, key) ? read_int(r, key, 1, MANY, 1) : 1;
}

/* Each head has keys and values of its own, made from what all share: another number of
 * them does nothing. */
static void read_latent(struct reader *r, struct ft_layer *layer)
{
	const struct node *given = node_get(r->map, "num_key_value_heads");
	int64_t same;

	layer->kv_heads = layer->heads;
	if (given && node_whole(given, layer->heads, layer->heads, &same))
		reader_allow(r, "num_key_value_heads");
	layer->q_lora_rank = read_int(r, "q_lora_rank", 0, MANY, 0);
	layer->kv_lora_rank = need(r, "kv_lora_rank");
	layer->qk_rope_head_dim = need(r, "qk_rope_head_dim");
	layer->qk_head_dim = need(r, "qk_nope_head_dim") + layer->qk_rope_head_dim;
	layer->v_head_dim = need(r, "v_head_dim");
}

/* Multi-query attention has one key and value head; falcon's later generation says
 * how many all the same. */
static int64_t kv_heads(struct reader *r, enum few_heads few, int64_t heads)
{
	bool one = read_bool(r, "multi_query", few != HEADS_EVEN);
	bool later = read_bool(r, "new_decoder_architecture", false);

	if (few != HEADS_EVEN && one && !(few == HEADS_FALCON && later))
		return 1;
	return read_int(r, "num_key_value_heads", 1, MANY, heads);
}

static void read_plain(struct reader *r, enum few_heads few,
		       const struct ft_model *model, struct ft_layer *layer)
{
	int64_t even = model->hidden_size / layer->heads;

	layer->kv_heads = kv_heads(r, few, layer->heads);
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

static void read_experts(struct reader *r, enum expert_kind kind,
			 const struct ft_model *model, struct ft_layer *layer)
{
	layer->experts = need(r, "num_local_experts");
	layer->experts_per_token = need(r, "num_experts_per_tok");
	if (layer->experts_per_token > layer->experts)
		reader_fail(r, "num_experts_per_tok",
			    "%lld is more than the %lld experts there are",
			    (long long)layer->experts_per_token,
			    (long long)layer->experts);
	layer->groups = read_int(r, "n_group", 1, layer->experts, 1);
	layer->groups_per_token =
		read_int(r, "topk_group", 1, layer->groups, layer->groups);
	if (layer->experts % layer->groups)
		reader_fail(r, "n_group", "%lld does not divide the %lld experts",
			    (long long)layer->groups, (long long)layer->experts);
	layer->expert_intermediate = kind == EXPERTS_ALL ?
					     read_width(r, model) :
					     need(r, "moe_intermediate_size");
	layer->shared_intermediate =
		read_int(r, "shared_expert_intermediate_size", 0, MANY,
			 layer->expert_intermediate *
				 read_int(r, "n_shared_experts", 0, 1024, 0));
}

/* A list, or nothing. */
static const struct node *read_list(struct reader *r, const char *key)
{
	const struct node *n = read_node(r, key);

	if (n && n->kind != NODE_LIST)
		reader_fail(r, key, "should be a list");
	return n && n->kind == NODE_LIST ? n : NULL;
}

/* A list of whole numbers up to most, or nothing. */
static const struct node *read_numbers(struct reader *r, const char *key, int64_t most)
{
	const struct node *list = read_list(r, key);
	int64_t ignored;

	for (size_t i = 0; list && i < list->n && !r->failed; i++)
		if (!node_whole(list->item[i], 0, most, &ignored))
			reader_fail_node(r, key, list->item[i],
					 "should be whole numbers from 0 to %lld",
					 (long long)most);
	return list;
}

static void make_routed(struct ft_layer *layer, const struct ft_layer *routed)
{
	layer->experts = routed->experts;
	layer->experts_per_token = routed->experts_per_token;
	layer->groups = routed->groups;
	layer->groups_per_token = routed->groups_per_token;
	layer->expert_intermediate = routed->expert_intermediate;
	layer->shared_intermediate = routed->shared_intermediate;
}

/* A list of words of what layers are, of n that are known, or nothing. */
static const struct node *read_words(struct reader *r, const char *key,
				     const char *const *known, size_t n)
{
	const struct node *list = read_list(r, key);
	struct arena mem = { 0 };

	for (size_t i = 0; list && i < list->n && !r->failed; i++) {
		const char *text = list->item[i]->text;
		size_t k = 0;

		while (k < n && text && strcmp(text, known[k]) != 0)
			k++;
		if (!text || k == n)
			reader_fail_node(r, key, list->item[i],
					 "%.40s is no layer that is simulated; those "
					 "are: %s",
					 text ? text : "a value of this kind",
					 text_join(&mem, known, n));
	}
	arena_release(&mem);
	return list;
}

/* Layer i's word of a list, which is repeated when shorter than the model; NULL: no list. */
static const char *word_of(const struct node *list, int64_t i)
{
	const char *text;

	if (!list || !list->n)
		return NULL;
	text = list->item[(size_t)i % list->n]->text;
	return text ? text : "";
}

/* Is layer i one of a list of numbers? */
static bool listed(const struct node *list, int64_t i)
{
	int64_t layer;

	for (size_t k = 0; list && k < list->n; k++)
		if (node_whole(list->item[k], i, i, &layer))
			return true;
	return false;
}

/* Which layers are routed: those called sparse; or those listed as routed; else from
 * `first` on, one in `every`, one in `step` counted from 1, unless listed as dense. */
struct routed_rule {
	int64_t first, every, step;
	const struct node *types, *dense, *routed;
};

static bool is_routed(const struct routed_rule *rule, int64_t i)
{
	if (rule->types && rule->types->n)
		return !strcmp(word_of(rule->types, i), "sparse");
	if (rule->routed)
		return listed(rule->routed, i);
	return i >= rule->first && i % rule->every == 0 && (i + 1) % rule->step == 0 &&
	       !listed(rule->dense, i);
}

static struct routed_rule routed_rule(struct reader *r)
{
	static const char *const mlps[] = { "dense", "sparse" };
	struct routed_rule rule = {
		.first = read_int(r, "first_k_dense_replace", 0, MANY, 0),
		.every = read_int(r, "moe_layer_freq", 1, MANY, 1),
		.types = read_words(r, "mlp_layer_types", mlps, 2),
		.dense = read_numbers(r, "mlp_only_layers", MANY),
		.routed = read_numbers(r, "moe_layers", MANY),
	};

	rule.step = read_int(r, "decoder_sparse_step", rule.routed ? 0 : 1, MANY, 1);
	return rule;
}

static void set_widths(struct reader *r, const struct family *family,
		       const struct ft_model *model, struct ft_layer *layer)
{
	struct routed_rule rule = { 0 };
	struct ft_layer routed = layer[0];
	int64_t width = 0, experts = 0;

	if (family->experts != EXPERTS_NONE)
		rule = routed_rule(r);
	for (int64_t i = 0; i < model->n_layers && family->experts != EXPERTS_NONE; i++)
		experts += layer[i].experts = is_routed(&rule, i);
	if (experts)
		read_experts(r, family->experts, model, &routed);
	if (experts < model->n_layers)
		width = read_width(r, model) / (family->half_width ? 2 : 1);
	for (int64_t i = 0; i < model->n_layers; i++) {
		layer[i].intermediate = layer[i].experts ? 0 : width;
		if (layer[i].experts)
			layer[i] = routed;
	}
}

/* Which layers are not as the first reader made them, and how. */
struct layer_rule {
	const struct node *types, *rotated; /* lists, or NULL */
	int64_t from;			    /* layers before it are whole */
	int64_t pattern;		    /* one in so many is whole; 0: none */
	const char *letters;		    /* or L and G for each, repeated; or NULL */
	int64_t linear; /* one in so many is no delta rule; 0: all */
	bool odd;	/* odd layers are local, not even ones */
};

static bool is_local(const struct layer_rule *rule, int64_t i)
{
	const char *type = word_of(rule->types, i);
	size_t n = rule->rotated ? rule->rotated->n : 0;

	if (type)
		return !strcmp(type, "sliding_attention") ||
		       !strcmp(type, "chunked_attention");
	if (n) {
		const char *text = rule->rotated->item[(size_t)i % n]->text;

		return text && !strcmp(text, "1");
	}
	if (rule->letters)
		return rule->letters[(size_t)i % strlen(rule->letters)] == 'L';
	return i >= rule->from &&
	       (!rule->pattern || (i + 1 + rule->odd) % rule->pattern);
}

static bool is_linear(const struct layer_rule *rule, int64_t i)
{
	const char *type = word_of(rule->types, i);

	if (type)
		return !strcmp(type, "linear_attention");
	return rule->linear && (i + 1) % rule->linear;
}

/* A gated delta rule in place of attention (Qwen3-Next). */
static struct ft_layer read_linear(struct reader *r)
{
	struct ft_layer l = {
		.linear_heads = need(r, "linear_num_value_heads"),
		.linear_key_heads = need(r, "linear_num_key_heads"),
		.linear_key_dim = need(r, "linear_key_head_dim"),
		.linear_value_dim = need(r, "linear_value_head_dim"),
		.linear_taps = need(r, "linear_conv_kernel_dim"),
	};

	if (l.linear_heads % l.linear_key_heads)
		reader_fail(r, "linear_num_value_heads",
			    "%lld is not a multiple of the %lld key heads",
			    (long long)l.linear_heads, (long long)l.linear_key_heads);
	return l;
}

/* A state space (Mamba-2), whose groups share what keys and queries are elsewhere. */
static struct ft_layer read_state_space(struct reader *r)
{
	struct ft_layer l = read_linear(r);

	l.state_chunk = need(r, "mamba_chunk_size");
	return l;
}

static void make_linear(struct ft_layer *layer, const struct ft_layer *linear)
{
	layer->state_chunk = linear->state_chunk;
	layer->linear_heads = linear->linear_heads;
	layer->linear_key_heads = linear->linear_key_heads;
	layer->linear_key_dim = linear->linear_key_dim;
	layer->linear_value_dim = linear->linear_value_dim;
	layer->linear_taps = linear->linear_taps;
}

/* One in so many is whole; or a letter for each layer, local or global (EXAONE). */
static void read_pattern(struct reader *r, struct layer_rule *rule)
{
	const struct node *n = read_node(r, "sliding_window_pattern");
	const char *text = n && n->kind == NODE_SCALAR ? n->text : "";

	if (*text && strspn(text, "LG") == strlen(text))
		rule->letters = text;
	else
		rule->pattern = read_int(r, "sliding_window_pattern", 0, MANY,
					 rule->odd ? 2 : 0);
}

/* Layers that see less than all: by `layer_types` (repeated when shorter than the
 * model), else by the type's custom. */
static void set_reach(struct reader *r, const struct family *family,
		      const struct ft_model *model, struct ft_layer *layer)
{
	static const char *const reaches[] = { "full_attention", "sliding_attention",
					       "chunked_attention",
					       "linear_attention" };
	int64_t window = read_int(r, "sliding_window", 0, MANY, 0);
	int64_t chunk = read_int(r, "attention_chunk_size", 0, MANY, 0);
	bool on = read_bool(r, "use_sliding_window", true), any = false;
	struct layer_rule rule = {
		.types = read_words(r, "layer_types", reaches, 4),
		.rotated = read_numbers(r, "no_rope_layers", 1),
		.from = read_int(r, "max_window_layers", 0, MANY, 0),
		.linear = read_int(r, "full_attention_interval", 0, MANY, 0),
		.odd = !strcmp(family->type, "gpt_neo"),
	};
	struct ft_layer linear = { 0 };

	if (!word_of(rule.types, 0))
		read_pattern(r, &rule);
	for (int64_t i = 0; i < model->n_layers; i++)
		any = any || is_linear(&rule, i);
	if (any)
		linear = read_linear(r);
	for (int64_t i = 0; i < model->n_layers; i++) {
		if (is_linear(&rule, i)) {
			make_linear(&layer[i], &linear);
		} else if (is_local(&rule, i)) {
			layer[i].window = on ? window : 0;
			layer[i].chunk = family->chunks ? chunk : 0;
		}
	}
}

/* ---- layers that are attention (*), a state space (M), a dense MLP (-) or a routed one (E) ---------- */

static const char *const halves[] = { "attention", "mamba", "mlp", "moe" };
static const char letters[] = "*M-E";

/* A letter for each layer, from a list of words or as the key has them; "" after a mistake. */
static const char *pattern_of(struct arena *mem, struct reader *r, int64_t layers)
{
	const struct node *list = read_words(r, "layers_block_type", halves, 4);
	const char *key = list ? "layers_block_type" : "hybrid_override_pattern";
	const char *text = read_text(r, "hybrid_override_pattern", "");
	size_t n = list ? list->n : strlen(text);
	char *out = ARENA_ARRAY(mem, (size_t)layers + 1, char);

	if (!list && !read_need(r, key))
		return "";
	if (!list && strspn(text, letters) < n)
		reader_fail(
			r, key,
			"'%c' is no layer that is simulated; those are: * (attention), "
			"M (state space), - (MLP), E (routed MLP)",
			text[strspn(text, letters)]);
	else if (n < (size_t)layers)
		reader_fail(r, key, "names %zu of the %lld layers", n,
			    (long long)layers);
	for (int64_t i = 0; !r->failed && i < layers; i++)
		for (size_t k = 0; k < 4; k++)
			if (list ? !strcmp(list->item[i]->text, halves[k]) :
				   text[i] == letters[k])
				out[i] = letters[k];
	return r->failed ? "" : out;
}

static bool is_mixer(char letter)
{
	return letter == '*' || letter == 'M';
}

int64_t layers_count(struct arena *mem, struct reader *r, const struct family *family,
		     int64_t layers)
{
	const char *pattern = family->halves ? pattern_of(mem, r, layers) : "";
	int64_t n = 0;

	for (size_t i = 0; pattern[i]; i++) {
		n += is_mixer(pattern[i]);
		if (!is_mixer(pattern[i]) && (!i || !is_mixer(pattern[i - 1]))) {
			reader_fail(
				r, "num_hidden_layers",
				"layer %zu is an MLP that follows neither attention nor "
				"a state space, which is not simulated",
				i + 1);
			return 1;
		}
	}
	return family->halves ? (n ? n : 1) : layers;
}

static void set_halves(struct arena *mem, struct reader *r,
		       const struct ft_model *model, struct ft_layer *layer)
{
	const char *pattern =
		pattern_of(mem, r, read_int(r, "num_hidden_layers", 1, 1 << 16, 1));
	struct ft_layer state = { 0 }, routed = { 0 };
	int64_t width = 0, at = -1;

	if (strchr(pattern, 'M'))
		state = read_state_space(r);
	if (strchr(pattern, 'E'))
		read_experts(r, EXPERTS_SOME, model, &routed);
	if (strchr(pattern, '-'))
		width = read_width(r, model);
	if (read_int(r, "moe_latent_size", 0, MANY, 0))
		reader_fail(r, "moe_latent_size",
			    "experts in a space of their own are not simulated");
	for (size_t i = 0; !r->failed && pattern[i]; i++) {
		if (is_mixer(pattern[i]))
			at++;
		if (pattern[i] == 'M')
			make_linear(&layer[at], &state);
		if (pattern[i] == '-')
			layer[at].intermediate = width;
		if (pattern[i] == 'E')
			make_routed(&layer[at], &routed);
	}
}

struct ft_layer *layers_read(struct arena *mem, struct reader *r,
			     const struct family *family, const struct ft_model *model)
{
	size_t n = (size_t)model->n_layers;
	struct ft_layer *layer = ARENA_ARRAY(mem, n, struct ft_layer);

	layer[0].heads = need(r, "num_attention_heads");
	if (r->failed)
		return layer;
	if (family->latent)
		read_latent(r, &layer[0]);
	else
		read_plain(r, family->few_heads, model, &layer[0]);
	for (size_t i = 1; i < n; i++)
		layer[i] = layer[0];
	if (family->halves) {
		set_halves(mem, r, model, layer);
		return layer;
	}
	set_widths(r, family, model, layer);
	set_reach(r, family, model, layer);
	return layer;
}
