/* models/pairs.c - queries times keys that they see, of a sequence, and times those that an indexer scores */
#include "base/whole.h"
#include "foretoken/models.h"

double ft_layer_pairs(const struct ft_layer *l, int64_t sequence, int64_t window,
		      bool causal)
{
	int64_t length = l->chunk && l->chunk < sequence ? l->chunk : sequence;
	double each = (double)length, left = (double)(sequence % length);
	double w = (double)window;

	return (double)(sequence / length) * ft_attention_pairs(each, each, w, causal) +
	       (left > 0 ? ft_attention_pairs(left, left, w, causal) : 0);
}

/* As many entries as there are seen as a window of all their tokens, of which each stands for entry_tokens. */
double ft_layer_entry_pairs(const struct ft_layer *l, int64_t sequence, bool causal)
{
	int64_t tokens = l->entry_tokens;

	return tokens ? ft_layer_pairs(l, sequence, tokens * l->index_topk, causal) /
				(double)tokens :
			0;
}

double ft_layer_scored(const struct ft_layer *l, int64_t sequence, bool causal)
{
	double all = ft_layer_pairs(l, sequence, 0, causal);

	return l->entry_tokens ? all / (double)l->entry_tokens : all;
}
