/* models/reach.c - what stands in place of attention to all tokens before: windows, chunks, states */
#include "models/reach.h"

#include <string.h>

#include "base/reader.h"
#include "foretoken/models.h"
#include "models/family.h"
#include "models/layer_lists.h"

enum in_place { ATTENTION, DELTA_RULE, STATE_SPACE, SHORT_CONV, KINDS };

/* Which layers are not as the first reader made them, and how. */
struct layer_rule {
	const struct node *types, *rotated, *local; /* lists, or NULL */
	int64_t from;				    /* layers before it are whole */
	int64_t pattern;	      /* one in so many is whole; 0: none */
	const char *letters;	      /* or L and G for each, repeated; or NULL */
	int64_t linear;		      /* one in so many is no delta rule; 0: all */
	bool odd;		      /* odd layers are local, not even ones */
	enum in_place others;	      /* what stands in all layers */
	const struct node *attention; /* but these, counted from `base`; or NULL */
	int64_t base;
};

static bool is_local(const struct layer_rule *rule, int64_t i)
{
	const char *type = list_word(rule->types, i);
	const char *rotated = list_word(rule->rotated, i);

	if (type)
		return !strcmp(type, "sliding_attention") ||
		       !strcmp(type, "chunked_attention");
	if (rotated)
		return !strcmp(rotated, "1");
	if (rule->local)
		return !strcmp(list_word(rule->local, i), "1");
	if (rule->letters)
		return rule->letters[(size_t)i % strlen(rule->letters)] == 'L';
	return i >= rule->from &&
	       (!rule->pattern || (i + 1 + rule->odd) % rule->pattern);
}

static enum in_place in_place(const struct layer_rule *rule, int64_t i)
{
	const char *type = list_word(rule->types, i);

	if (type)
		return !strcmp(type, "linear_attention") ? DELTA_RULE :
		       !strcmp(type, "kda_attention")	 ? DELTA_RULE :
		       !strcmp(type, "mamba")		 ? STATE_SPACE :
		       !strcmp(type, "conv")		 ? SHORT_CONV :
							   ATTENTION;
	if (rule->others)
		return list_has(rule->attention, i + rule->base) ? ATTENTION :
								   rule->others;
	return rule->linear && (i + 1) % rule->linear ? DELTA_RULE : ATTENTION;
}

/* Of Kimi's kind, whose heads of values are those of keys, as wide as the ranks of its gate and its decays. Source:
 * Transformers' modular_kimi_linear.py (read 2026-11-28). */
static struct ft_layer read_channel_decay(struct reader *r)
{
	int64_t heads = read_needed(r, "linear_num_key_heads");
	int64_t width = read_needed(r, "linear_key_head_dim");

	if (read_size(r, "attn_res_block_size", 0, 0))
		reader_fail(r, "attn_res_block_size",
			    "attention over outputs of layers before is not simulated");
	return (struct ft_layer){
		.linear_heads = heads,
		.linear_key_heads = heads,
		.linear_key_dim = width,
		.linear_value_dim = width,
		.linear_rank = width,
		.linear_taps = read_needed(r, "linear_conv_kernel_dim"),
	};
}

/* A gated delta rule in place of attention (Qwen3-Next). */
static struct ft_layer read_linear(struct reader *r, const char *groups)
{
	struct ft_layer l = {
		.linear_heads = read_needed(r, "linear_num_value_heads"),
		.linear_key_heads = read_needed(r, "linear_num_key_heads"),
		.linear_key_dim = read_needed(r, "linear_key_head_dim"),
		.linear_value_dim = read_needed(r, "linear_value_head_dim"),
		.linear_taps = read_needed(r, "linear_conv_kernel_dim"),
	};

	if (l.linear_heads % l.linear_key_heads)
		reader_fail(r, "linear_num_value_heads",
			    "%lld is not a multiple of the %lld %s",
			    (long long)l.linear_heads, (long long)l.linear_key_heads,
			    groups);
	return l;
}

struct ft_layer reach_state_space(struct reader *r)
{
	struct ft_layer l = read_linear(r, "groups");

	l.state_chunk = read_needed(r, "mamba_chunk_size");
	return l;
}

void reach_expanded(struct reader *r, const struct ft_model *model,
		    const struct ft_layer *state)
{
	static const char *const of[] = { "hidden_size", "linear_num_value_heads",
					  "linear_value_head_dim" };
	bool beside = read_has(r, "mamba_d_ssm");
	const char *key = beside ? "mamba_d_ssm" : "mamba_expand";
	int64_t width = state->linear_heads * state->linear_value_dim, said;

	if (!read_has(r, key))
		return;
	said = beside ? read_size(r, key, 1, 1) :
			model->hidden_size * read_size(r, key, 1, 1);
	for (size_t i = 0; i < 3; i++)
		if (!said_beside(r, node_get(r->map, of[i]), node_get(r->map, key)))
			return;
	if (said != width)
		reader_fail(
			r, key,
			"makes a state space %lld wide, but %lld heads of %lld make "
			"it %lld; " SAY_ONE,
			(long long)said, (long long)state->linear_heads,
			(long long)state->linear_value_dim, (long long)width);
}

/* A gated convolution, as wide as hidden_size (LFM2). Source: Transformers' modeling_lfm2.py (read 2026-11-28). */
static struct ft_layer read_short_conv(struct reader *r, const struct ft_model *model)
{
	if (read_bool(r, "conv_bias", false))
		reader_fail(r, "conv_bias",
			    "convolutions with biases are not simulated");
	return (struct ft_layer){
		.short_conv = true,
		.linear_heads = model->hidden_size,
		.linear_key_heads = model->hidden_size,
		.linear_key_dim = 1,
		.linear_value_dim = 1,
		.linear_taps = read_needed(r, "linear_conv_kernel_dim"),
	};
}

void reach_linear(struct ft_layer *layer, const struct ft_layer *linear)
{
	layer->state_chunk = linear->state_chunk;
	layer->short_conv = linear->short_conv;
	layer->linear_heads = linear->linear_heads;
	layer->linear_key_heads = linear->linear_key_heads;
	layer->linear_key_dim = linear->linear_key_dim;
	layer->linear_value_dim = linear->linear_value_dim;
	layer->linear_taps = linear->linear_taps;
	layer->linear_rank = linear->linear_rank;
	layer->q_lora_rank = layer->kv_lora_rank = layer->qk_rope_head_dim = 0;
}

static const struct node *read_types(struct reader *r, const struct family *family)
{
	const char *const kinds[] = {
		"full_attention",
		"sliding_attention",
		"chunked_attention",
		"linear_attention",
		"attention",
		"mamba",
		family->short_convs ? "conv" :
		family->indexed	    ? "deepseek_sparse_attention" :
				      "kda_attention",
	};
	bool more = family->short_convs || family->channel_decay || family->indexed;

	return read_word_list(r, "layer_types", kinds, more ? 7 : 6);
}

/* One in so many is whole; or a letter for each layer, local or global (EXAONE). */
static void read_pattern(struct reader *r, struct layer_rule *rule)
{
	const struct node *n = read_node(r, "sliding_window_pattern");
	const char *text = n && n->kind == NODE_SCALAR ? n->text : "";

	if (*text && strspn(text, "LG") == strlen(text))
		rule->letters = text;
	else
		rule->pattern =
			read_size(r, "sliding_window_pattern", 0, rule->odd ? 2 : 0);
}

/* types: those of `layer_types`; NULL: what the other keys say. */
static struct layer_rule layer_rule(struct reader *r, const struct family *family,
				    const struct node *types)
{
	bool more = family->short_convs || family->channel_decay;
	struct layer_rule rule = {
		.types = types,
		.rotated = read_number_list(r, "no_rope_layers", 1),
		.local = family->local_heads ?
				 read_number_list(r, "hybrid_layer_pattern", 1) :
				 NULL,
		.from = read_size(r, "max_window_layers", 0, 0),
		.linear = read_size(r, "full_attention_interval", 0, 0),
		.odd = !strcmp(family->type, "gpt_neo"),
		.others = family->states ? STATE_SPACE : ATTENTION,
	};

	if (!list_word(rule.types, 0)) {
		read_pattern(r, &rule);
		if (family->states || family->short_convs)
			rule.attention =
				read_number_list(r, "attn_layer_indices", FAMILY_MOST);
		if (family->channel_decay)
			rule.attention =
				read_number_list(r, "full_attn_layers", FAMILY_MOST);
		rule.base = family->channel_decay;
		if (rule.base && list_has(rule.attention, 0))
			reader_fail(r, "full_attn_layers", "counts layers from 1");
		if (more && rule.attention)
			rule.others = family->short_convs ? SHORT_CONV : DELTA_RULE;
	}
	return rule;
}

/* ---- what is said twice ------------------------------------------------------ */

/* The keys in the order in which they are taken: which layers carry a state along, and which see less than all tokens. Pattern
 * and first layers make one rule. no_rope_layers and its interval are of rotation alone beside layer_types. */
static const char *const of_kind[] = { "layer_types", "attn_layer_indices",
				       "full_attn_layers", "full_attention_interval",
				       NULL };
static const char *const of_sight[] = {
	"layer_types",		"no_rope_layers",
	"hybrid_layer_pattern", "sliding_window_pattern",
	"max_window_layers",	NULL
};

static bool is_given(const struct reader *r, const char *key)
{
	const struct node *n = node_get(r->map, key);

	return !node_is_null(n) && (n->kind == NODE_SCALAR || n->n);
}

/* The rule that is left when the keys before this one are not there. */
static struct layer_rule only(struct layer_rule rule, const char *key)
{
	rule.types = NULL;
	if (!strcmp(key, "full_attention_interval"))
		rule.others = ATTENTION;
	if (strcmp(key, "no_rope_layers") != 0)
		rule.rotated = NULL;
	if (!strcmp(key, "sliding_window_pattern") || !strcmp(key, "max_window_layers"))
		rule.local = NULL;
	return rule;
}

static bool differ(const struct layer_rule *a, const struct layer_rule *b, bool sight,
		   int64_t i)
{
	enum in_place x = in_place(a, i), y = in_place(b, i);

	return sight ? x == ATTENTION && y == ATTENTION &&
			       is_local(a, i) != is_local(b, i) :
		       x != y;
}

static void check_twice(struct reader *r, const struct layer_rule *rule,
			const struct layer_rule *rest, bool sight, int64_t n)
{
	const char *const *key = sight ? of_sight : of_kind;
	size_t taken = 0;

	while (key[taken] && !is_given(r, key[taken]))
		taken++;
	for (size_t k = taken + 1; key[taken] && key[k] && !r->failed; k++) {
		struct layer_rule other = only(*rest, key[k]);
		int64_t i = 0;

		while (i < n && !differ(rule, &other, sight, i))
			i++;
		if (i < n && is_given(r, key[k]) &&
		    said_beside(r, node_get(r->map, key[taken]),
				node_get(r->map, key[k])))
			reader_fail(
				r, key[k],
				"says otherwise than %s what layer %lld %s; " SAY_ONE,
				key[taken], (long long)i + 1, sight ? "sees" : "is");
	}
}

/* Kimi's two lists: a layer is in one of them. Transformers' class looks at the list of others where there is one of full
 * attention, and then leaves open what is in neither (configuration_kimi_linear.py, read 2026-11-28). */
static void check_both_lists(struct reader *r, const struct layer_rule *rule, int64_t n)
{
	static const char key[] = "linear_attn_config.kda_layers";
	const struct node *list = node_path(r->map, key);
	const char *by = rule->types	 ? "layer_types" :
			 rule->attention ? "full_attn_layers" :
					   "full_attention_interval";

	if (node_is_null(list) || ((rule->types || rule->attention) &&
				   !said_beside(r, node_get(r->map, by), list)))
		return;
	check_list_within(r, key, list, 1, n);
	for (int64_t i = 0; !r->failed && i < n; i++) {
		bool in = list_has(list, i + 1);

		if (in == (in_place(rule, i) == DELTA_RULE))
			continue;
		reader_fail_node(
			r, key, list,
			in ? "layer %lld is full attention by %s; " SAY_ONE :
			     "lacks layer %lld, which is not full attention by "
			     "%s; " SAY_ONE,
			(long long)i + 1, by);
	}
}

/* Each key is read again, as if layer_types were not there, without a mark that it was asked for. */
static void check_said(struct reader *r, const struct family *family,
		       const struct layer_rule *rule, bool limited, int64_t n)
{
	struct reader look = *r;
	struct layer_rule rest = layer_rule(&look, family, NULL);

	check_list_within(&look,
			  family->channel_decay ? "full_attn_layers" :
						  "attn_layer_indices",
			  rest.attention, rest.base, n);
	check_twice(&look, rule, &rest, false, n);
	if (limited && !(rule->types && (family->chunks || rule->rotated)))
		check_twice(&look, rule, &rest, true, n);
	if (family->channel_decay)
		check_both_lists(&look, rule, n);
	r->failed |= look.failed;
}

/* What stands in place of attention, of the kinds that there are. */
static void read_states(struct reader *r, const struct family *family,
			const struct ft_model *model, const struct layer_rule *rule,
			struct ft_layer linear[KINDS])
{
	bool any[KINDS] = { false };

	for (int64_t i = 0; i < model->n_layers; i++)
		any[in_place(rule, i)] = true;
	if (any[DELTA_RULE])
		linear[DELTA_RULE] = family->channel_decay ?
					     read_channel_decay(r) :
					     read_linear(r, "key heads");
	if (any[STATE_SPACE]) {
		linear[STATE_SPACE] = reach_state_space(r);
		reach_expanded(r, model, &linear[STATE_SPACE]);
	}
	if (any[SHORT_CONV])
		linear[SHORT_CONV] = read_short_conv(r, model);
}

/* None where it is switched off. Of a scenario that says no more than the window, that would be in silence. */
static int64_t read_window(struct reader *r)
{
	int64_t window = read_size(r, "sliding_window", 0, 0);
	const struct node *own = node_get(r->map, "sliding_window");
	const struct node *use = node_get(r->map, "use_sliding_window");

	if (read_bool(r, "use_sliding_window", true))
		return window;
	if (window && laid_upon(r, "sliding_window") &&
	    strcmp(own->mark.file, use->mark.file) != 0)
		reader_fail(r, "sliding_window",
			    "does nothing while use_sliding_window is false; say "
			    "use_sliding_window: true, too");
	return 0;
}

/* Nor may a scenario say in silence which layers have a window where there is none. */
static void check_no_windows(struct reader *r, const struct layer_rule *rule, int64_t n)
{
	static const char *const which[] = { "layer_types", "sliding_window_pattern",
					     "max_window_layers" };
	bool any = false;

	if (laid_upon(r, "use_sliding_window")) {
		if (read_bool(r, "use_sliding_window", false))
			reader_fail(r, "use_sliding_window",
				    "there is no window to use; say sliding_window, "
				    "too");
		return;
	}
	for (int64_t i = 0; i < n; i++)
		any |= in_place(rule, i) == ATTENTION && is_local(rule, i);
	for (size_t k = 0; any && k < 3 && !r->failed; k++)
		if (laid_upon(r, which[k]))
			reader_fail(r, which[k],
				    "says which layers have a window, and there is "
				    "none; say sliding_window, too");
}

void reach_set(struct reader *r, const struct family *family,
	       const struct ft_model *model, struct ft_layer *layer)
{
	int64_t window = read_window(r);
	int64_t chunk = family->chunks ? read_size(r, "attention_chunk_size", 0, 0) : 0;
	struct layer_rule rule = layer_rule(r, family, read_types(r, family));
	struct ft_layer linear[KINDS] = { { 0 } };

	check_list_fits(r, "layer_types", rule.types, model->n_layers);
	check_list_covers(r, "no_rope_layers", rule.rotated, model->n_layers);
	check_list_fits(r, "hybrid_layer_pattern", rule.local, model->n_layers);
	if (!r->failed)
		check_said(r, family, &rule, window || chunk, model->n_layers);
	if (!window && !chunk && !r->failed)
		check_no_windows(r, &rule, model->n_layers);
	if (r->failed)
		return;
	read_states(r, family, model, &rule, linear);
	for (int64_t i = 0; i < model->n_layers; i++) {
		enum in_place kind = in_place(&rule, i);

		if (kind != ATTENTION) {
			reach_linear(&layer[i], &linear[kind]);
		} else if (is_local(&rule, i)) {
			layer[i].window = window;
			layer[i].chunk = chunk;
		}
	}
}
