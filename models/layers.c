/* models/layers.c - one block for all layers, then what differs among them */
#include "models/layers.h"

#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/whole.h"
#include "models/compressed.h"
#include "models/family.h"
#include "models/indexer.h"
#include "models/layer_lists.h"
#include "models/own_heads.h"
#include "models/reach.h"
#include "models/routed.h"

/* Each head has keys and values of its own, made from what all share: another number of
 * them does nothing. */
static void read_latent(struct reader *r, struct ft_layer *layer)
{
	const struct node *given = node_get(r->map, "num_key_value_heads");
	int64_t same;

	layer->kv_heads = layer->heads;
	if (given && node_whole(given, layer->heads, layer->heads, &same))
		reader_allow(r, "num_key_value_heads");
	layer->q_lora_rank = read_size(r, "q_lora_rank", 0, 0);
	layer->kv_lora_rank = read_needed(r, "kv_lora_rank");
	layer->qk_rope_head_dim = read_needed(r, "qk_rope_head_dim");
	layer->qk_head_dim =
		read_needed(r, "qk_nope_head_dim") + layer->qk_rope_head_dim;
	layer->v_head_dim = read_needed(r, "v_head_dim");
}

/* Multi-query attention has one key and value head; falcon's later generation says
 * how many all the same. */
static int64_t kv_heads(struct reader *r, enum few_heads few, int64_t heads)
{
	bool one = few != HEADS_EVEN && read_bool(r, "multi_query", true);

	if (one &&
	    !(few == HEADS_FALCON && read_bool(r, "new_decoder_architecture", false)))
		return 1;
	return read_size(r, "num_key_value_heads", 1, heads);
}

static void read_plain(struct reader *r, const struct family *family,
		       const struct ft_model *model, struct ft_layer *layer)
{
	int64_t even = model->hidden_size / layer->heads;

	layer->kv_heads = kv_heads(r, family->few_heads, layer->heads);
	layer->qk_head_dim = read_size(r, "head_dim", 1, even);
	layer->v_head_dim =
		family->local_heads ? read_needed(r, "v_head_dim") : layer->qk_head_dim;
	if (!read_has(r, "head_dim") && model->hidden_size % layer->heads)
		reader_fail(r, "num_attention_heads",
			    "hidden_size %lld is not a multiple of %lld, so "
			    "head_dim must be given",
			    (long long)model->hidden_size, (long long)layer->heads);
	else
		heads_check_groups(r, "num_key_value_heads", layer);
}

static int64_t read_width(struct reader *r, const struct ft_model *model)
{
	int64_t ratio = read_int(r, "expansion_ratio", 1, 1024, 4);

	if (!read_has(r, "intermediate_size") && model->activation == FT_SWIGLU &&
	    !read_has(r, "expansion_ratio"))
		(void)read_need(r, "intermediate_size");
	check_hidden(r, "expansion_ratio", "intermediate_size");
	return read_size(r, "intermediate_size", 1, ratio * model->hidden_size);
}

/* LFM2 takes two thirds of what its config says, times a factor, as so many whole blocks; intermediate_size beside
 * block_ff_dim is no more than a leftover, which published configs have otherwise. Source:
 * Transformers' modeling_lfm2.py (read 2026-11-28). */
static int64_t adjusted_width(struct reader *r, const struct ft_model *model)
{
	int64_t width = read_has(r, "block_ff_dim") ?
				read_size(r, "block_ff_dim", 1, 1) :
				read_width(r, model);
	double times;
	int64_t block;

	if (!read_bool(r, "block_auto_adjust_ff_dim", false))
		return width;
	block = read_size(r, "block_multiple_of", 1, 1);
	times = read_quantity(r, "block_ffn_dim_multiplier", DIM_NONE, 1);
	if (!(times > 0 && times <= 1024))
		return reader_fail(r, "block_ffn_dim_multiplier",
				   "%g is not above 0 and at most 1024", times);
	width = (int64_t)(times * (double)(2 * width / 3));
	return width > block ? ceil_div(width, block) * block : block;
}

static void read_experts(struct reader *r, enum expert_kind kind,
			 const struct ft_model *model, struct ft_layer *layer)
{
	layer->experts = read_needed(r, "num_local_experts");
	layer->experts_per_token = read_needed(r, "num_experts_per_tok");
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
					     read_needed(r, "moe_intermediate_size");
	layer->expert_latent = read_size(r, "moe_latent_size", 0, 0);
	if (!laid_upon(r, "shared_expert_intermediate_size")) /* Nemotron's has both */
		check_hidden(r, "n_shared_experts", "shared_expert_intermediate_size");
	layer->shared_intermediate =
		model->dense_beside ?
			read_needed(r, "intermediate_size") :
			read_size(r, "shared_expert_intermediate_size", 0,
				  layer->expert_intermediate *
					  read_int(r, "n_shared_experts", 0, 1024, 0));
}

static void make_routed(struct ft_layer *layer, const struct ft_layer *routed)
{
	layer->experts = routed->experts;
	layer->experts_per_token = routed->experts_per_token;
	layer->groups = routed->groups;
	layer->groups_per_token = routed->groups_per_token;
	layer->expert_intermediate = routed->expert_intermediate;
	layer->shared_intermediate = routed->shared_intermediate;
	layer->expert_latent = routed->expert_latent;
}

static bool has_experts(struct reader *r, const struct family *family)
{
	if (family->dense_beside)
		return read_bool(r, "enable_moe_block", false);
	return family->experts != EXPERTS_NONE &&
	       !(family->shared_alone && !read_size(r, "num_local_experts", 0, 1));
}

/* The width of a layer's MLP where no expert is routed to. */
static int64_t read_dense(struct reader *r, const struct family *family,
			  const struct ft_model *model)
{
	if (family->shared_alone)
		return read_needed(r, "shared_expert_intermediate_size");
	if (family->short_convs)
		return adjusted_width(r, model);
	return read_width(r, model) / (family->half_width ? 2 : 1);
}

static void set_widths(struct arena *mem, struct reader *r, const struct family *family,
		       const struct ft_model *model, struct ft_layer *layer)
{
	bool *is_routed = ARENA_ARRAY(mem, (size_t)model->n_layers, bool);
	struct ft_layer routed = layer[0];
	int64_t width = 0, experts = 0;

	if (has_experts(r, family))
		routed_set(r, model->n_layers, is_routed);
	if (r->failed)
		return;
	for (int64_t i = 0; i < model->n_layers; i++)
		experts += layer[i].experts = is_routed[i];
	if (experts)
		read_experts(r, family->experts, model, &routed);
	if (experts < model->n_layers)
		width = read_dense(r, family, model);
	for (int64_t i = 0; i < model->n_layers; i++) {
		layer[i].intermediate = layer[i].experts ? 0 : width;
		if (layer[i].experts)
			layer[i] = routed;
	}
}

/* ---- layers that are attention (*), a state space (M), a dense MLP (-) or a routed one (E) ---------- */

static const char *const halves[] = { "attention", "mamba", "mlp", "moe" };
static const char letters[] = "*M-E";

static const char *pattern_key(struct reader *r)
{
	return read_has(r, "layers_block_type") ? "layers_block_type" :
						  "hybrid_override_pattern";
}

/* A list and letters, of which the list is taken, say the same. */
static void check_letters(struct reader *r, const struct node *list, const char *text)
{
	const struct node *other = node_get(r->map, "hybrid_override_pattern");
	size_t i = 0;

	while (i < list->n && text[i] && strchr(letters, text[i]) &&
	       !strcmp(list->item[i]->text, halves[strchr(letters, text[i]) - letters]))
		i++;
	if ((i < list->n || text[i]) && said_beside(r, list, other))
		reader_fail(
			r, "hybrid_override_pattern",
			"says otherwise than layers_block_type what layer %zu is; " SAY_ONE,
			i + 1);
}

/* A letter for each layer, from a list of words or as the key has them; "" after a mistake. */
static const char *pattern_of(struct arena *mem, struct reader *r, int64_t layers)
{
	const struct node *list = read_word_list(r, "layers_block_type", halves, 4);
	const char *key = pattern_key(r);
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
	else
		check_length(r, key, n, layers);
	if (list && *text)
		check_letters(r, list, text);
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
				r, pattern_key(r),
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
		pattern_of(mem, r, read_size(r, "num_hidden_layers", 1, 1));
	struct ft_layer state = { 0 }, routed = { 0 };
	int64_t width = 0, at = -1;

	if (strchr(pattern, 'M'))
		state = reach_state_space(r);
	if (strchr(pattern, 'E'))
		read_experts(r, EXPERTS_SOME, model, &routed);
	if (strchr(pattern, '-'))
		width = read_width(r, model);
	for (size_t i = 0; !r->failed && pattern[i]; i++) {
		if (is_mixer(pattern[i]))
			at++;
		if (pattern[i] == 'M')
			reach_linear(&layer[at], &state);
		if (pattern[i] == '-')
			layer[at].intermediate = width;
		if (pattern[i] == 'E')
			make_routed(&layer[at], &routed);
	}
}

/* Is there a layer of the same kind, with a window or without, among the first n? */
static bool has_alike(const struct ft_layer *layer, int64_t n, bool window)
{
	for (int64_t i = 0; i < n; i++)
		if ((layer[i].window > 0) == window)
			return true;
	return false;
}

/* The last layers take keys and values of the last one before them of their kind, and may have MLPs of twice the width. */
static void share_keys(struct reader *r, int64_t n, struct ft_layer *layer)
{
	int64_t shared = read_size(r, "num_kv_shared_layers", 0, 0);
	bool wide = read_bool(r, "use_double_wide_mlp", false);

	if (wide && !shared && read_has(r, "use_double_wide_mlp"))
		reader_fail(r, "use_double_wide_mlp",
			    "widens layers that num_kv_shared_layers counts, and it "
			    "counts none");
	if (shared >= n)
		reader_fail(r, "num_kv_shared_layers",
			    "should leave a layer with keys of its own: %lld of %lld",
			    (long long)shared, (long long)n);
	for (int64_t i = n - shared; !r->failed && i < n; i++) {
		if (!has_alike(layer, n - shared, layer[i].window > 0))
			reader_fail(
				r, "num_kv_shared_layers",
				"layer %lld has %s window, as none of the first %lld "
				"layers, whose keys it would take",
				(long long)i + 1, layer[i].window ? "a" : "no",
				(long long)(n - shared));
		layer[i].shares_kv = true;
		if (wide)
			layer[i].intermediate *= 2, layer[i].shared_intermediate *= 2;
	}
}

/* Layers that see all tokens have heads of another width and number, and may take their keys for
 * values. */
static void set_globals(struct reader *r, const struct ft_model *model,
			struct ft_layer *layer)
{
	bool keys = read_bool(r, "attention_k_eq_v", false);
	int64_t dim = read_needed(r, "global_head_dim"), kv = layer[0].kv_heads;

	if (keys)
		kv = read_size(r, "num_global_key_value_heads", 1, kv);
	if (layer[0].heads % kv)
		reader_fail(r, "num_global_key_value_heads",
			    "num_attention_heads %lld is not a multiple of %lld",
			    (long long)layer[0].heads, (long long)kv);
	for (int64_t i = 0; i < model->n_layers; i++) {
		if (layer[i].window)
			continue;
		layer[i].qk_head_dim = layer[i].v_head_dim = dim;
		layer[i].kv_heads = kv;
		layer[i].values_are_keys = keys;
	}
	share_keys(r, model->n_layers, layer);
}

/* Layers of a state space alone, whose heads are the model's. */
static void set_states(struct reader *r, const struct ft_model *model, size_t n,
		       struct ft_layer *layer)
{
	struct ft_layer state = reach_state_space(r);

	reach_expanded(r, model, &state);

	state.heads = state.kv_heads = state.linear_heads;
	state.qk_head_dim = state.v_head_dim = state.linear_value_dim;
	for (size_t i = 0; i < n; i++)
		layer[i] = state;
}

/* Beside attention in each layer, and only with a norm where the config says so (Falcon-H1). */
static void set_beside(struct reader *r, const struct ft_model *model,
		       struct ft_layer *layer)
{
	struct ft_layer state = reach_state_space(r);
	bool bare = !read_bool(r, "mamba_rms_norm", false);

	reach_expanded(r, model, &state);
	for (int64_t i = 0; i < model->n_layers; i++) {
		reach_linear(&layer[i], &state);
		layer[i].states_beside = true;
		layer[i].bare_states = bare;
	}
}

struct ft_layer *layers_read(struct arena *mem, struct reader *r,
			     const struct family *family, const struct ft_model *model)
{
	size_t n = (size_t)model->n_layers;
	struct ft_layer *layer = ARENA_ARRAY(mem, n, struct ft_layer);

	if (family->states_alone) {
		set_states(r, model, n, layer);
		return layer;
	}
	layer[0].heads = read_needed(r, "num_attention_heads");
	if (r->failed)
		return layer;
	if (family->latent)
		read_latent(r, &layer[0]);
	else if (family->compressed)
		compressed_read(r, &layer[0]);
	else
		read_plain(r, family, model, &layer[0]);
	layer[0].sinks = family->sinks;
	for (size_t i = 1; i < n; i++)
		layer[i] = layer[0];
	if (family->halves) {
		set_halves(mem, r, model, layer);
		return layer;
	}
	set_widths(mem, r, family, model, layer);
	if (family->compressed)
		compressed_set(r, model, layer);
	else
		reach_set(r, family, model, layer);
	if (family->indexed)
		indexer_set(r, model, layer);
	if (family->global_heads)
		set_globals(r, model, layer);
	heads_set(r, family, model, layer);
	if (family->states_beside)
		set_beside(r, model, layer);
	return layer;
}
