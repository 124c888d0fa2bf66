/*
 * models/recipe.h - how a plan's step is run: graphs, recomputation, experts, scaling
 */
#ifndef MODELS_RECIPE_H
#define MODELS_RECIPE_H

#include "foretoken/models.h"

struct reader;

/* The largest moe_capacity_factor. */
enum { CAPACITY_MOST = 16 };

/* These keys of `training` and `overlap` into the plan, whose format is set; mistakes
 * are kept in the readers. */
void recipe_read(struct reader *training, struct reader *overlap, struct ft_plan *plan);

/* What must hold between them and the finished plan. */
bool recipe_check(struct reader *training, const struct ft_model *model,
		  struct ft_plan *plan);

#endif
