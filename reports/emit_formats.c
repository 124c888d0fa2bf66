/* reports/emit_formats.c - Megatron's arguments of formats, and of how sequences are cut: keys and values of a context group */
#include "reports/emit.h"

/* Weights in 8 bit alone, as the stack keeps them; the plan's memory has no room for others. */
static void megatron_narrow_weights(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (!t->s->stack->layout.narrow_parameters || p->sharding == FT_FSDP ||
	    p->sharding == FT_HSDP)
		return;
	if (!ft_plan_divides(p)) {
		emit_unknown(t,
			     "weights in 8 bit alone, without a distributed optimizer");
		return;
	}
	emit(t, "fp8_param_gather", "%s", "");
	if (p->precision == FT_MXFP8)
		emit(t, "reuse_grad_buf_for_mxfp8_param_ag", "%s", "");
}

void emit_megatron_precision(struct sheet *t)
{
	const struct ft_plan *p = t->p;

	if (p->precision == FT_FP16)
		emit(t, "fp16", "%s", "");
	if (p->precision == FT_FP16 && emit_routed(t))
		emit_unknown(t,
			     "fp16 with experts, which Megatron groups and spreads in "
			     "bf16 alone");
	if (p->precision != FT_FP16)
		emit(t, "bf16", "%s", "");
	else if (t->of == FT_PRIMUS) /* whose default is true, and both are refused */
		emit(t, "bf16", "false");
	if (p->precision == FT_FP8 || p->precision == FT_FP8_BLOCK128 ||
	    p->precision == FT_MXFP8) {
		emit(t, t->of == FT_PRIMUS ? "fp8" : "fp8_format", "hybrid");
		emit(t, "fp8_recipe", "%s", ft_scaling_name(p->scaling));
		megatron_narrow_weights(t);
	} else if (ft_dtype_bytes(p->precision) < 1) {
		emit_unknown(t, "precision: %s", ft_dtype_name(p->precision));
	}
	if (p->gradient_dtype == FT_FP32)
		emit(t, "accumulate_allreduce_grads_in_fp32", "%s", "");
	else if (p->gradient_dtype == FT_BF16 && p->precision != FT_FP16)
		emit(t, "grad_reduce_in_bf16", "%s", ""); /* with bf16 else in fp32 */
	emit_megatron_gradients(t);
}

/* The first layer of a chunk, not the model's, that sees what one before it chose; 0: none. */
static int64_t cut_choice(const struct sheet *t)
{
	const struct ft_plan *p = t->p;
	int64_t at = 0;

	for (int64_t c = 0; c < p->pp * p->vpp - 1; c++) {
		at += p->stage_layers[c];
		if (at < t->s->model->n_layers && t->s->model->layer[at].shares_index)
			return at;
	}
	return 0;
}

static bool has_indexers(const struct sheet *t)
{
	for (int64_t i = 0; i < t->s->model->n_layers; i++)
		if (ft_layer_chooses(&t->s->model->layer[i]))
			return true;
	return false;
}

/* The loss that is simulated is of the chosen tokens; Megatron's own is of all, and no loss without a coefficient (its
 * transformer_config.py, read 2026-11-30). */
static void megatron_indexers(struct sheet *t)
{
	if (cut_choice(t) > 0)
		emit_unknown(t,
			     "layer %lld begins a chunk and sees what an earlier one "
			     "chose, which Megatron Core refuses; see stage_layers",
			     (long long)cut_choice(t) + 1);
	if (!t->p->indexer_loss) {
		emit(t, "dsa_indexer_loss_coeff", "0.0");
	} else if (has_indexers(t)) {
		emit(t, "dsa_indexer_use_sparse_loss", "%s", "");
		emit_unknown(t, "indexer_loss: choose dsa_indexer_loss_coeff");
	}
}

/* What is in 8 bit beside products: gates, of a dense MLP, too, and attention. */
void emit_megatron_narrow(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	bool fp8 = ft_dtype_bytes(p->attention_precision) < 2;

	megatron_indexers(t);
	if (p->fp8_gates)
		emit(t, "activation_func_fp8_input_store", "%s", "");
	if (fp8 && t->of == FT_NEMO)
		emit(t, "fp8_dot_product_attention", "true");
	else if (fp8)
		emit_unknown(t, "attention_precision: %s",
			     ft_dtype_name(p->attention_precision));
}

/* Megatron reduces in fp32 or as the weights are; NeMo's grad_reduce_in_fp32 says which. */
void emit_megatron_gradients(struct sheet *t)
{
	const struct ft_plan *p = t->p;
	enum ft_dtype own = p->precision == FT_FP16 ? FT_FP16 : FT_BF16;

	if (p->gradient_dtype != FT_FP32 && p->gradient_dtype != own)
		emit_unknown(t, "gradient_dtype: %s", ft_dtype_name(p->gradient_dtype));
}

enum ft_context_parallel emit_context(const struct sheet *t)
{
	const struct ft_layout_rules *rules = &t->s->stack->layout;

	return t->p->lora.rank ? rules->context_parallel_lora : rules->context_parallel;
}

/* Megatron's own is a ring, p2p; chosen tokens are gathered, which dsa.py has under a name of its own. */
void emit_megatron_context(struct sheet *t)
{
	enum ft_context_parallel how = emit_context(t);

	if (t->p->cp == 1 || (how == FT_CP_RING && !has_indexers(t)))
		return;
	if (has_indexers(t))
		emit(t, "cp_comm_type", "allgather");
	else if (how == FT_CP_GATHERED_RING)
		emit_unknown(t, "context_parallel: gathered_ring");
	else
		emit(t, "cp_comm_type", "%s",
		     how == FT_CP_ALL_GATHER ? "all_gather" : "a2a");
}

void emit_megatron_sequence(struct sheet *t)
{
	if (t->p->sequence_parallel)
		emit(t, "sequence_parallel", "%s", "");
	else if (t->of == FT_PRIMUS && t->p->tp > 1) /* whose default is true */
		emit(t, "sequence_parallel", "false");
}
