/* models/activation.h - what an MLP's products have between them */
#ifndef MODELS_ACTIVATION_H
#define MODELS_ACTIVATION_H

#include "base/reader.h"
#include "foretoken/models.h"
#include "models/family.h"

/* By the family, and by hidden_act where that is said; a name that nobody has is an error. */
void activation_read(struct reader *r, const struct family *family,
		     struct ft_model *model);

#endif
