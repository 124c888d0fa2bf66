/*
 * study/traits.h - what makes two training runs alike: the columns of study/residuals.csv
 *
 * The table of traits (ft_trait_table) says how they are told apart: words by being the
 * same, numbers by the logarithm of their ratio, base 2. All who compare runs read it:
 * ranges, nearest runs, and the tables of validate.
 */
#ifndef STUDY_TRAITS_H
#define STUDY_TRAITS_H

#include "foretoken/study.h"

struct arena;

/* 0: alike. Words: 1 when they differ. Numbers: |log2 of their ratio|. */
double trait_distance(const struct ft_trait *trait, const struct ft_traits *a,
		      const struct ft_traits *b);

/* Its words belong to the scenario. */
struct ft_traits traits_of(const struct ft_scenario *scenario,
			   const struct ft_run *run);

/* The same with words that belong to mem. */
struct ft_traits traits_copy(struct arena *mem, const struct ft_traits *of);

/* What is written at a checkpoint: trained weights and the optimizer's state. */
double checkpoint_bytes(const struct ft_scenario *s);

#endif
