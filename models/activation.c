/* models/activation.c - what an MLP's products have between them: its kind, and how its class writes it */
#include "models/activation.h"
#include "base/text.h"

#include <string.h>

/* A gate by an approximation of the GELU. Families that have one have it, too, where a config calls it "gelu". */
static bool gates_by_tanh(struct reader *r, const struct family *family)
{
	const char *act = read_text(r, "hidden_act", "");

	if (family->activation != FT_SWIGLU)
		return false;
	if (!*act || !strcmp(act, "gelu"))
		return family->tanh_gate;
	return strstr(act, "gelu_") || strstr(act, "_gelu");
}

/* GELUs that Transformers computes by operations, and not by a call of PyTorch's
 * (transformers/activations.py, 5.17). */
static enum ft_written writes(struct reader *r, const struct family *family,
			      enum ft_activation activation)
{
	static const char *const written[] = { "gelu_new", "gelu_fast", "gelu_accurate",
					       "quick_gelu", NULL };
	const char *act = read_text(r, "hidden_act", "");

	if (activation == FT_SQUARED_RELU)
		return FT_WRITTEN_SQUARE;
	if (family->activation != FT_GELU || !*act)
		return family->written_activation;
	if (!strcmp(act, "xielu"))
		return FT_WRITTEN_XIELU;
	for (size_t i = 0; written[i]; i++)
		if (!strcmp(act, written[i]))
			return FT_WRITTEN_GELU;
	return FT_WRITTEN_NOT;
}

/* Names that Transformers has (transformers/activations.py, 5.17), and what model types call theirs. */
static bool is_activation(const char *act)
{
	static const char *const names[] = { "geglu",
					     "gelu",
					     "gelu_10",
					     "gelu_accurate",
					     "gelu_fast",
					     "gelu_new",
					     "gelu_python",
					     "gelu_python_tanh",
					     "gelu_pytorch_tanh",
					     "laplace",
					     "leaky_relu",
					     "linear",
					     "mish",
					     "prelu",
					     "quick_gelu",
					     "relu",
					     "relu2",
					     "relu6",
					     "sigmoid",
					     "silu",
					     "squared_relu",
					     "swiglu",
					     "swigluoai",
					     "swish",
					     "tanh",
					     "xielu" };

	const size_t n = sizeof(names) / sizeof(*names);

	return text_place(act, names, n) < n;
}

static enum ft_activation read_activation(struct reader *r, const struct family *family)
{
	const char *act = read_text(r, "hidden_act", "");

	if (*act && !is_activation(act))
		reader_fail(r, "hidden_act",
			    "'%.40s' is no activation that Transformers has", act);
	if (family->activation == FT_SWIGLU || !*act)
		return family->activation;
	if (!strcmp(act, "relu"))
		return FT_RELU;
	return strcmp(act, "relu2") && strcmp(act, "squared_relu") ? FT_GELU :
								     FT_SQUARED_RELU;
}

void activation_read(struct reader *r, const struct family *family,
		     struct ft_model *model)
{
	model->activation = read_activation(r, family);
	model->activation_numbers = family->activation_numbers;
	model->written_activation = writes(r, family, model->activation);
	model->tanh_gate = gates_by_tanh(r, family);
}
