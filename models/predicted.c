/* models/predicted.c - the layer that those of predicted tokens are like */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/reader.h"
#include "models/family.h"
#include "models/layer_lists.h"
#include "models/layers.h"
#include "models/padded.h"

/* Is a layer what a pattern of one or two letters says? */
static bool pictured(const struct ft_layer *l, const char *pattern)
{
	char mlp = l->experts ? 'E' : l->intermediate ? '-' : 0;

	return pattern[0] == (l->linear_heads ? 'M' : '*') && pattern[1] == mlp &&
	       strlen(pattern) == (mlp ? 2 : 1);
}

/* The last layer that does not see what another chose: a predicted token's chooses, as GLM-5.2's parameters say. */
static int64_t last_that_chooses(const struct ft_model *model)
{
	int64_t i = model->n_layers - 1;

	while (i > 0 && model->layer[i].shares_index)
		i--;
	return i;
}

/* DeepSeek-V4's see the window alone (its published compress_ratios end with 0). Where no layer does, the one that sees the fewest
 * entries beside. */
static int64_t first_that_sees_least(const struct ft_model *model)
{
	int64_t least = 0;

	for (int64_t i = 1; i < model->n_layers; i++) {
		int64_t a = model->layer[i].entry_tokens,
			b = model->layer[least].entry_tokens;

		if (b && (!a || a > b))
			least = i;
	}
	return least;
}

/* By its own number, where compress_ratios goes on with those of predicted tokens and some layer of the model has it, too. */
static int64_t compressed_predicted(struct reader *r, const struct ft_model *model)
{
	const struct node *list =
		read_number_list(r, "compress_ratios", LIMIT_SEQUENCE);
	int64_t ratio = 0, last = model->n_layers + model->predicted - 1;

	if (!model->predicted || !list || (int64_t)list->n != last + 1)
		return first_that_sees_least(model);
	ratio = strtoll(list_word(list, last), NULL, 10);
	for (int64_t i = 0; i < model->n_layers; i++)
		if (model->layer[i].entry_tokens == ratio)
			return i;
	if (ratio)
		reader_fail(
			r, "compress_ratios",
			"predicted tokens' layer has %lld, as no layer of the model "
			"has; such layers are not simulated",
			(long long)ratio);
	return first_that_sees_least(model);
}

int64_t layers_predicted(struct reader *r, const struct family *family,
			 const struct ft_model *model)
{
	const char *pattern = family->halves && model->predicted ?
				      read_text(r, "mtp_hybrid_override_pattern", "") :
				      "";

	if (family->compressed)
		return compressed_predicted(r, model);
	if (family->padded)
		return padded_predicted(r, model);
	if (family->local_heads && model->predicted)
		reader_fail(
			r, "num_nextn_predict_layers",
			"its layers of predicted tokens have a window and a dense MLP, "
			"as none of the model has, and are not simulated; say 0");
	for (int64_t i = 0; *pattern && i < model->n_layers; i++)
		if (pictured(&model->layer[i], pattern))
			return i;
	if (*pattern)
		reader_fail(
			r, "mtp_hybrid_override_pattern",
			"no layer of the model is '%.20s'; such layers of predicted "
			"tokens are not simulated",
			pattern);
	return last_that_chooses(model);
}
