/*
 * sim/gathered.c - attention to tokens that an indexer chose, and the scores that it chooses by
 *
 * A block of a kernel has all heads of a query and gathers what it sees, t tokens of q + v features:
 *
 *   t = start_s + flop / (efficiency peak) (1 + fill / tokens seen)
 *
 * with FLOPs of whole blocks (fewer heads than one has, as on tensor ranks, take as long, and are "extrapolated"), and
 * with efficiency and fill of published times (cuDNN's kernels of 64 and 128 heads, 640 to 2,048 tokens, on H200, GB200
 * and GB300: docs/findings.md); scores of an indexer at a share of peak of their own. Where a profile says nothing, half of
 * what its attention reaches, and the answer says "extrapolated". As of all kernels, no pass is faster than what it reads and
 * writes once at the whole bandwidth: queries, outputs, and each token that is seen.
 * Limits: of one latent for all heads; a backward pass over more than 16,384 tokens is slower than this on an H200 (by a third
 * at 32,768), where the sums of gradients no longer stay in the cache.
 */
#include <math.h>

#include "base/whole.h"
#include "sim/kernel.h"

static double seen(const struct ft_work *w)
{
	double queries = (double)w->attention.queries;

	return ft_attention_pairs(queries, (double)w->attention.keys,
				  (double)w->attention.window, w->attention.causal) /
	       queries;
}

/* Of peak; false: not known, but half of what attention reaches. */
static bool efficiency(const struct ft_gpu *gpu, const struct ft_work *w, int pass,
		       double *out)
{
	const struct ft_gathered_model *m = &gpu->gathered;
	bool scores = w->attention.keys_are == FT_KEYS_SCORED;

	*out = !m->known ? gpu->attention_model.efficiency[pass].value / 2 :
	       scores	 ? m->scores[pass].value :
			   m->efficiency[pass].value;
	return m->known;
}

/* Heads that are computed, of whole blocks. */
static int64_t heads_of(const struct ft_gpu *gpu, const struct ft_work *w)
{
	int64_t block = (int64_t)gpu->gathered.heads.value;

	if (w->attention.keys_are != FT_KEYS_CHOSEN || block < 1)
		return w->attention.heads;
	return ceil_div(w->attention.heads, block) * block;
}

static double one_pass_s(const struct ft_gpu *gpu, const struct ft_work *w, int pass,
			 double peak)
{
	double fill = w->attention.keys_are == FT_KEYS_CHOSEN ?
			      gpu->gathered.fill[pass].value :
			      0;
	struct ft_work one = *w;
	double of_peak;

	one.attention.pass = (enum ft_pass)pass;
	one.attention.heads = heads_of(gpu, w);
	(void)efficiency(gpu, w, pass, &of_peak);
	return gpu->attention_model.start_s.value +
	       ft_work_flop(&one) / (of_peak * peak) * (1 + fill / seen(w));
}

void gathered_predict(const struct ft_gpu *gpu, const struct ft_work *w,
		      struct ft_prediction *out)
{
	double peak = gpu->peak_flop_per_s[w->dtype].value, of_peak;
	int pass = (int)w->attention.pass;
	bool both = pass == FT_PASS_BOTH;

	if (!(peak > 0))
		peak = gpu->peak_flop_per_s[FT_BF16].value;
	out->time_s = both ? one_pass_s(gpu, w, 0, peak) + one_pass_s(gpu, w, 1, peak) :
			     one_pass_s(gpu, w, pass, peak);
	out->time_s =
		fmax(out->time_s, ft_work_bytes(w) / gpu->memory_bytes_per_s.value);
	out->extrapolated = !efficiency(gpu, w, both ? 0 : pass, &of_peak) ||
			    heads_of(gpu, w) != w->attention.heads;
	out->spread_frac = out->extrapolated ? 0.5 : 0.15; /* assumed */
}
