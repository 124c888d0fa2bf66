/* models/state.c - bytes that a plan keeps for its weights: gradients, moments and master weights, and what waits on the host */
#include "foretoken/models.h"

double ft_master_bytes(const struct ft_plan *plan)
{
	return !plan->master_weights ? 0 : plan->master == FT_MASTER_FP32 ? 4 : 2;
}

double ft_moment_bytes(const struct ft_plan *plan, double width)
{
	return plan->moment_dtype == FT_DTYPES ? width :
						 ft_dtype_bytes(plan->moment_dtype);
}

const char *ft_moment_name(const struct ft_plan *plan)
{
	bool wide = plan->master_weights || (plan->lora.rank && plan->lora.fp32);

	return ft_dtype_name(plan->moment_dtype != FT_DTYPES ? plan->moment_dtype :
			     wide			     ? FT_FP32 :
			     plan->precision == FT_FP16	     ? FT_FP16 :
							       FT_BF16);
}

double ft_optimizer_state_bytes(enum ft_optimizer optimizer, double width)
{
	enum { BLOCK = 256 }; /* bitsandbytes' block-wise optimizers */

	switch (optimizer) {
	case FT_ADAM_8BIT:
		return 2 * (1 + 4.0 / BLOCK);
	case FT_ADAFACTOR:
	case FT_SGD:
		return 0;
	case FT_SGD_MOMENTUM:
		return width;
	default:
		return 2 * width;
	}
}

/* Of routed experts, those of predicted tokens' layers among them. */
static double expert_parameters(const struct ft_model *model)
{
	double sum = 0;

	for (int64_t i = 0; i < model->n_layers; i++)
		sum += ft_layer_expert_parameters(model, i);
	return sum + (double)model->predicted *
			     ft_layer_expert_parameters(model, model->predicted_like);
}

/* The table that the last stage of a pipeline has, too, if its head shares it or it looks up tokens that it predicts; a V ends where it began. */
static double copied_table(const struct ft_model *model, const struct ft_plan *p)
{
	bool copies = (model->tied || model->predicted) && p->pp > 1 &&
		      !ft_schedule_folds(p->schedule);
	double rows = (double)ft_model_vocab(model, p->tp) +
		      (double)(model->predicted ? model->max_positions : 0);

	return copies ? (double)model->hidden_size * rows : 0;
}

double ft_plan_host_bytes(const struct ft_model *model, const struct ft_plan *p)
{
	bool all = p->offload_state == FT_OFFLOAD_ALL, divided = ft_plan_divides(p);
	double shard = divided ? (double)p->shard : 1;
	double expert_shard = divided ? (double)ft_plan_expert_shard(p) : 1;
	double split = (double)(p->tp * p->pp) * shard, width, experts, numbers;

	if (p->offload_state == FT_OFFLOAD_NONE)
		return 0;
	numbers = ft_model_parameters(model) + copied_table(model, p);
	width = 12 + (all ? 4 : ft_dtype_bytes(p->gradient_dtype));
	if (p->lora.rank)
		return (width * ft_model_lora_parameters(model, &p->lora) +
			(all ? ft_dtype_bytes(p->lora.frozen) * numbers : 0)) /
		       split;
	experts = expert_parameters(model);
	return width * ((numbers - experts) / split +
			experts / (double)(p->pp * p->ep * p->etp) / expert_shard);
}

double ft_plan_node_bytes(const struct ft_model *model, const struct ft_plan *p)
{
	int64_t ranks = p->ranks < p->ranks_per_node ? p->ranks : p->ranks_per_node;

	return (double)ranks * ft_plan_host_bytes(model, p);
}
