/* models/routed.c - which layers of a config have experts */
#include "models/routed.h"

#include <string.h>

#include "base/reader.h"
#include "models/family.h"
#include "models/layer_lists.h"

/* Which layers are routed: those not called dense; or those listed as routed, or marked 1; else from
 * `first` on, one in `every`, one in `step` counted from 1, unless listed as dense. */
struct routed_rule {
	int64_t first, every, step;
	const struct node *types, *dense, *routed, *marks;
};

static bool is_routed(const struct routed_rule *rule, int64_t i)
{
	if (rule->types && rule->types->n)
		return strcmp(list_word(rule->types, i), "dense") != 0;
	if (rule->marks)
		return !strcmp(list_word(rule->marks, i), "1");
	if (rule->routed)
		return list_has(rule->routed, i);
	return i >= rule->first && i % rule->every == 0 && rule->step &&
	       (i + 1) % rule->step == 0 && !list_has(rule->dense, i);
}

static struct routed_rule routed_rule(struct reader *r)
{
	/* the last two are DeepSeek-V4's: by its hash a token's experts are those of a table, but there are as many */
	static const char *const mlps[] = { "dense", "sparse", "moe", "hash_moe" };
	const struct node *often = read_node(r, "moe_layer_freq");
	bool marked = often && often->kind == NODE_LIST && often->n;
	struct routed_rule rule = {
		.first = read_size(r, "first_k_dense_replace", 0, 0),
		.marks = marked ? read_number_list(r, "moe_layer_freq", 1) : NULL,
		.every = marked ? 1 : read_size(r, "moe_layer_freq", 1, 1),
		.types = read_word_list(r, "mlp_layer_types", mlps, 4),
		.dense = read_number_list(r, "mlp_only_layers", FAMILY_MOST),
		.routed = read_number_list(r, "moe_layers", FAMILY_MOST),
	};

	rule.step = read_size(r, "decoder_sparse_step", rule.routed ? 0 : 1, 1);
	return rule;
}

/* The keys in the order in which they are taken; those from the fourth on make one rule together. */
static const char *const said[] = {
	"mlp_layer_types",     "moe_layer_freq",
	"moe_layers",	       "first_k_dense_replace",
	"decoder_sparse_step", "mlp_only_layers",
	"moe_layer_freq",      NULL,
};
enum { NAMES, MARKS, NUMBERS, COUNTED };

/* The rule that is left when the keys before one are not there. */
static struct routed_rule without(struct routed_rule rule, int key)
{
	if (key > NAMES)
		rule.types = NULL;
	if (key > MARKS)
		rule.marks = NULL;
	if (key > NUMBERS)
		rule.routed = NULL;
	return rule;
}

static bool is_given(const struct routed_rule *rule, const struct reader *r, int key)
{
	return key == NAMES ? rule->types && rule->types->n :
	       key == MARKS ? rule->marks != NULL :
	       key == NUMBERS ?
			      rule->routed != NULL :
			      !node_is_null(node_get(r->map, said[key])) &&
				      (!rule->marks || strcmp(said[key], said[MARKS]));
}

/* Where a key that is not taken says otherwise than the one that is. */
static void check_twice(struct reader *r, const struct routed_rule *rule, int64_t n)
{
	int taken = 0;

	while (said[taken] && !is_given(rule, r, taken))
		taken++;
	for (int k = taken + 1; taken < COUNTED && said[k] && !r->failed; k++) {
		struct routed_rule other = without(*rule, k);
		int64_t i = 0;

		while (i < n && is_routed(rule, i) == is_routed(&other, i))
			i++;
		if (i < n && is_given(rule, r, k) &&
		    said_beside(r, node_get(r->map, said[taken]),
				node_get(r->map, said[k])))
			reader_fail(r, said[k],
				    "says otherwise than %s whether layer %lld has "
				    "experts; " SAY_ONE,
				    said[taken], (long long)i + 1);
	}
}

void routed_set(struct reader *r, int64_t n, bool *routed)
{
	struct routed_rule rule = routed_rule(r);

	check_list_fits(r, "mlp_layer_types", rule.types, n);
	check_list_fits(r, "moe_layer_freq", rule.marks, n);
	check_list_within(r, "mlp_only_layers", rule.dense, 0, n);
	check_list_within(r, "moe_layers", rule.routed, 0, n);
	if (!r->failed)
		check_twice(r, &rule, n);
	for (int64_t i = 0; !r->failed && i < n; i++)
		routed[i] = is_routed(&rule, i);
}
