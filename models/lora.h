/*
 * models/lora.h - reading `training.lora`
 */
#ifndef MODELS_LORA_H
#define MODELS_LORA_H

#include "foretoken/models.h"

struct reader;

/* Fills plan->lora, whose precision is known already; a mistake fails the reader. */
void lora_read(struct reader *top, const struct ft_model *model,
	       const struct ft_plan_context *context, struct ft_plan *plan);

#endif
