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

/* Of a plan whose schedule and shards are set: nothing is paired that the framework does not pair, and nothing waits on the host
 * that cannot. */
bool recipe_check_last(struct reader *training, const struct ft_plan *plan,
		       const struct ft_plan_context *context);

/* What is wrong with offload_state, or NULL. */
const char *plan_offload_wrong(const struct ft_plan *plan);

/* Makes ddp of one replica none, where the context says so; dp and cp are set. */
void plan_unwrap(struct ft_plan *plan, const struct ft_plan_context *context);

/* Does fsdp free gathered weights behind a forward: as stated; else it does, but in the
 * pipelines of a stack that keeps them there. */
bool plan_reshards(const struct ft_plan *plan);

#endif
