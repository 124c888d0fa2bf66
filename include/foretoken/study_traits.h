/*
 * foretoken/study_traits.h - what makes one training run like another
 *
 * Words are alike or not, numbers are as far apart as the logarithm of their ratio. Ranges of predictions, nearest runs and the tables
 * of `validate` read them.
 */
#ifndef FORETOKEN_STUDY_TRAITS_H
#define FORETOKEN_STUDY_TRAITS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ft_model;
struct ft_stack;

/* What makes one training run like another. study/residuals.csv has a column for each
 * but unnamed, whose runs are in study/residuals-unnamed.csv. */
struct ft_traits {
	const char *gpu, *generation; /* as communication libraries tell them apart */
	const char *stack, *stack_root;
	bool unnamed;	       /* the stack stands for software that nobody named */
	const char *model;     /* dense or experts */
	const char *attention; /* what tells it most from others': ft_attention_trait */
	const char *precision, *sharding, *optimizer;
	const char *trained, *offload_state; /* all, or adapters; on the host */
	double flop_per_token;		     /* of the model, forward and backward */
	double gpus, sequence;
	double micro_tokens;  /* that a rank sees in one micro-batch, before tp */
	double micro_batches; /* of a replica */
	double tp, pp, cp, ep;
	double kernel_spread_frac; /* of its step, from its kernels' held-out errors */
	double host_spread_frac;   /* and from how much hosts differ */
	double clock_faster_frac, clock_slower_frac; /* and cards' clocks under load */
};

/* heads, latents, states (some layers carry one along), masked-choice, gathered-choice, compressed: the last of these that some layer
 * is, as the stack runs it. And in words for people: "attention to ...". */
const char *ft_attention_trait(const struct ft_model *model,
			       const struct ft_stack *stack);
const char *ft_attention_words(const char *trait);

/* A trait: a column of study/residuals.csv and a key of `distance` in study/ranges.yaml.
 * Words are alike or not; numbers are as far apart as the logarithm of their ratio. */
struct ft_trait {
	const char *name;
	bool number;	   /* a double at that offset; else a const char * */
	size_t at;	   /* in struct ft_traits */
	const char *about; /* one clause, for people */
};

size_t ft_trait_table(const struct ft_trait **trait);
const char *ft_trait_word(const struct ft_trait *trait, const struct ft_traits *of);
double ft_trait_number(const struct ft_trait *trait, const struct ft_traits *of);

#ifdef __cplusplus
}
#endif
#endif
