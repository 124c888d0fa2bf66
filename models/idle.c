/* models/idle.c - keys that make no difference to a model of its type, and types that have a use for them */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "models/config.h"
#include "models/family.h"

/* Those that nobody asked for, of the ones that some type has a use for. */
void config_find_idle(struct arena *mem, const struct reader *r,
		      struct config_idle *idle)
{
	static const char *const elsewhere[] = { "model_type", "name", "title", NULL };
	const struct node *map = r->map;

	idle->key = ARENA_ARRAY(mem, map->n + 1, const char *);
	for (size_t i = 0; i < map->n; i++) {
		size_t k = 0;

		while (elsewhere[k] && strcmp(map->key[i], elsewhere[k]) != 0)
			k++;
		if (!elsewhere[k] && family_is_common(map->key[i]) &&
		    family_key_of(map->key[i]) != INSIDE &&
		    !reader_knows(r, map->key[i]) &&
		    config_says_something(map->item[i]))
			idle->key[idle->n++] = map->key[i];
	}
}

bool config_is_idle(const struct config_idle *idle, const char *common)
{
	for (size_t i = 0; i < idle->n; i++)
		if (!strcmp(idle->key[i], common))
			return true;
	return false;
}

/* A type that has a use for a key of a kind that newer types are not of, where this family is not either; or NULL. */
static const char *older_kind_for(const struct family *family, enum family_key_of of)
{
	if (of == SWITCHED && family->few_heads == HEADS_EVEN)
		return "gpt_bigcode";
	if (of == FALCON && family->few_heads != HEADS_FALCON)
		return "falcon";
	return of == TABLED && family->positions != FT_LEARNED ? "mpt" : NULL;
}

/* Kinds of keys by the flag of the families that have a use for them; and single keys that others have a use for, too. */
static const struct {
	enum family_key_of of;
	size_t flag;
	const char *type;
} kinds[] = {
	{ LATENT, offsetof(struct family, latent), "deepseek_v3" },
	{ GLOBAL, offsetof(struct family, global_heads), "gemma4_text" },
	{ LOCAL, offsetof(struct family, local_heads), "mimo_v2_flash" },
	{ CHUNKED, offsetof(struct family, chunks), "llama4_text" },
	{ CONV, offsetof(struct family, short_convs), "lfm2" },
	{ DECAY, offsetof(struct family, channel_decay), "kimi_linear" },
	{ BESIDE, offsetof(struct family, states_beside), "falcon_h1" },
	{ INDEXED, offsetof(struct family, indexed), "deepseek_v32" },
	{ COMPRESSED, offsetof(struct family, compressed), "deepseek_v4" },
	{ HEADED, offsetof(struct family, head_gates), "laguna" },
	{ PADDED, offsetof(struct family, padded), "step3p5" },
};
static const struct {
	const char *key;
	size_t flag;
} used_too[] = {
	{ "index_head_dim", offsetof(struct family, compressed) },
	{ "index_n_heads", offsetof(struct family, compressed) },
	{ "index_topk", offsetof(struct family, compressed) },
	{ "q_lora_rank", offsetof(struct family, compressed) },
	{ "qk_rope_head_dim", offsetof(struct family, compressed) },
	{ "swa_head_dim", offsetof(struct family, window_heads) },
	{ "swa_num_attention_heads", offsetof(struct family, window_heads) },
	{ "swa_num_key_value_heads", offsetof(struct family, window_heads) },
	{ "v_head_dim", offsetof(struct family, local_heads) },
};

static bool has(const struct family *family, size_t flag)
{
	return *(const bool *)((const char *)family + flag);
}

static bool uses_too(const struct family *family, const char *key)
{
	for (size_t i = 0; i < sizeof(used_too) / sizeof(*used_too); i++)
		if (!strcmp(key, used_too[i].key) && has(family, used_too[i].flag))
			return true;
	return false;
}

/* A type that has a use for the key, where this family is of another kind; or NULL. */
static const char *kind_for(const struct family *family, const char *key)
{
	enum family_key_of of = family_key_of(key);

	if (of == ROUTED)
		return family->experts ? NULL : "mixtral or qwen3_moe";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].of == of)
			return has(family, kinds[i].flag) || uses_too(family, key) ?
				       NULL :
				       kinds[i].type;
	return older_kind_for(family, of);
}

bool config_no_idle(const struct family *family, const struct node *over,
		    const struct config_idle *idle, struct ft_error *err)
{
	for (size_t i = 0; i < over->n; i++) {
		const char *key = family_common_name(family, over->key[i]);
		const char *other = kind_for(family, key);

		if (other && config_is_idle(idle, key))
			return ft_fail(err, &over->key_mark[i],
				       "%s does nothing in a model of type %s; leave "
				       "it out, or say a model_type that has it, such "
				       "as %s",
				       over->key[i], family->type, other);
	}
	return true;
}
