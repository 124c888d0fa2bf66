/* models/lora.c - low-rank adapters: what they are laid beside, their parameters and FLOPs */
#include "models/lora.h"

#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"

enum {
	OF_ATTENTION = 1u << FT_LORA_QKV | 1u << FT_LORA_OUT,
	OF_MLP = 1u << FT_LORA_GATE_UP | 1u << FT_LORA_DOWN,
	ALL_LINEAR = 1u << FT_LORA_TARGETS /* each linear module that the layers have */
};

/* Names of the modules in Transformers' classes, which PEFT goes by, and of Megatron; and the words for several. */
static const struct {
	const char *name;
	unsigned targets;
} words[] = {
	{ "attention", OF_ATTENTION },
	{ "mlp", OF_MLP },
	{ "all", OF_ATTENTION | OF_MLP },
	{ "all-linear", ALL_LINEAR },
	{ "linear_qkv", 1u << FT_LORA_QKV },
	{ "linear_proj", 1u << FT_LORA_OUT },
	{ "linear_fc1", 1u << FT_LORA_GATE_UP },
	{ "linear_fc2", 1u << FT_LORA_DOWN },
	{ "query_key_value", 1u << FT_LORA_QKV },
	{ "qkv_proj", 1u << FT_LORA_QKV },
	{ "Wqkv", 1u << FT_LORA_QKV },
	{ "c_attn", 1u << FT_LORA_QKV },
	{ "dense", 1u << FT_LORA_OUT },
	{ "out_proj", 1u << FT_LORA_OUT },
	{ "c_proj", 1u << FT_LORA_OUT | 1u << FT_LORA_DOWN }, /* both are called so */
	{ "gate_up_proj", 1u << FT_LORA_GATE_UP },
	{ "dense_h_to_4h", 1u << FT_LORA_GATE_UP },
	{ "dense_4h_to_h", 1u << FT_LORA_DOWN },
	{ "c_fc", 1u << FT_LORA_GATE_UP },
	{ "fc1", 1u << FT_LORA_GATE_UP },
	{ "fc2", 1u << FT_LORA_DOWN },
	{ "q_proj", 1u << FT_LORA_Q },
	{ "k_proj", 1u << FT_LORA_K },
	{ "v_proj", 1u << FT_LORA_V },
	{ "o_proj", 1u << FT_LORA_OUT },
	{ "gate_proj", 1u << FT_LORA_GATE },
	{ "up_proj", 1u << FT_LORA_UP },
	{ "down_proj", 1u << FT_LORA_DOWN },
};

enum {
	WORDS = sizeof(words) / sizeof(*words),
	ATTENTION = 1u << FT_LORA_QKV | 1u << FT_LORA_Q | 1u << FT_LORA_K |
		    1u << FT_LORA_V | 1u << FT_LORA_OUT,
	QKV_PARTS = 1u << FT_LORA_Q | 1u << FT_LORA_K | 1u << FT_LORA_V,
	UP_PARTS = 1u << FT_LORA_GATE | 1u << FT_LORA_UP,
};

bool ft_lora_has(const struct ft_lora *lora, enum ft_lora_target target)
{
	return lora->rank && lora->targets >> target & 1;
}

struct ft_lora_shape ft_lora_shape(const struct ft_model *model, int64_t layer,
				   enum ft_lora_target target)
{
	const struct ft_layer *l = &model->layer[layer];
	int64_t h = model->hidden_size, q = l->heads * l->qk_head_dim;
	int64_t k = l->shares_kv ? 0 : l->kv_heads * l->qk_head_dim;
	int64_t v =
		l->shares_kv || l->values_are_keys ? 0 : l->kv_heads * l->v_head_dim;
	int64_t f = l->intermediate, gate = model->activation == FT_SWIGLU ? f : 0;

	q += model->gated_output ? q : 0;
	switch (target) {
	case FT_LORA_QKV:
		return (struct ft_lora_shape){ h, q + k + v + l->output_gates };
	case FT_LORA_Q:
		return (struct ft_lora_shape){ h, q };
	case FT_LORA_K:
		return (struct ft_lora_shape){ h, k };
	case FT_LORA_V:
		return (struct ft_lora_shape){ h, v };
	case FT_LORA_OUT:
		return (struct ft_lora_shape){ l->heads * l->v_head_dim, h };
	case FT_LORA_GATE_UP:
		return (struct ft_lora_shape){ h, f + gate };
	case FT_LORA_GATE:
		return (struct ft_lora_shape){ h, gate };
	case FT_LORA_UP:
		return (struct ft_lora_shape){ h, f };
	default:
		return (struct ft_lora_shape){ f, h };
	}
}

bool ft_lora_laid(const struct ft_model *model, const struct ft_lora *lora,
		  int64_t layer, enum ft_lora_target target)
{
	struct ft_lora_shape s = ft_lora_shape(model, layer, target);

	return ft_lora_has(lora, target) && s.in > 0 && s.out > 0;
}

double ft_layer_lora_parameters(const struct ft_model *model,
				const struct ft_lora *lora, int64_t i)
{
	double sum = 0;

	for (int t = 0; t < FT_LORA_TARGETS; t++) {
		struct ft_lora_shape s =
			ft_lora_shape(model, i, (enum ft_lora_target)t);

		if (ft_lora_laid(model, lora, i, (enum ft_lora_target)t))
			sum += (double)(lora->rank * (s.in + s.out));
	}
	return sum;
}

double ft_model_lora_parameters(const struct ft_model *model,
				const struct ft_lora *lora)
{
	double sum = 0;

	for (int64_t i = 0; i < model->n_layers; i++)
		sum += ft_layer_lora_parameters(model, lora, i);
	return sum;
}

double ft_plan_flop_per_token(const struct ft_model *model, const struct ft_plan *plan,
			      bool causal)
{
	double all = ft_model_flop_per_token(model, plan->tp, plan->sequence, causal);

	if (!plan->lora.rank)
		return all;
	return all - 2 * ft_model_product_parameters(model, plan->tp) +
	       6 * ft_model_lora_parameters(model, &plan->lora);
}

double ft_plan_dropped_flop_per_token(const struct ft_model *model,
				      const struct ft_plan *plan)
{
	return (1 - ft_plan_kept_frac(plan)) * (plan->lora.rank ? 4 : 6) *
	       ft_model_routed_parameters(model);
}

static bool no_target(struct reader *r, const char *text)
{
	const char *name[WORDS];
	struct arena mem = { 0 };

	for (size_t i = 0; i < WORDS; i++)
		name[i] = words[i].name;
	reader_fail(r, "targets",
		    "%.40s is no target; targets are one of, or a list of: %s", text,
		    text_join(&mem, name, WORDS));
	arena_release(&mem);
	return false;
}

/* One word of `targets`. */
static bool add_word(struct reader *r, const struct node *word, unsigned *targets)
{
	const char *text = word->kind == NODE_SCALAR && word->text ? word->text : "";

	for (size_t i = 0; i < WORDS; i++)
		if (!strcmp(text, words[i].name)) {
			*targets |= words[i].targets;
			return true;
		}
	return no_target(r, *text ? text : "a value of this kind");
}

static unsigned read_targets(struct reader *r)
{
	const struct node *n = read_node(r, "targets");
	unsigned targets = 0;

	if (!n)
		return words[0].targets;
	if (n->kind != NODE_LIST) {
		add_word(r, n, &targets);
		return targets;
	}
	for (size_t i = 0; i < n->n && add_word(r, n->item[i], &targets); i++)
		;
	if (!targets && !r->failed)
		reader_fail(r, "targets", "should name at least one");
	return targets;
}

/*
 * PEFT's all-linear is an adapter beside each linear module but the head (peft/tuners/tuners_utils.py,
 * _maybe_include_all_linear_layers, read 2026-11-30): beside one product of q, k and v, or of gate and up, where the stack or the
 * model's class joins their weights, and beside each of them where it does not.
 */
static unsigned all_linear(struct reader *r, const struct ft_model *model,
			   const struct ft_plan_context *context)
{
	bool joined = context->joins_gate_up || model->activation != FT_SWIGLU;

	if (model->layer_input)
		reader_fail(r, "targets",
			    "all-linear: adapters on the products of each layer's own "
			    "input (hidden_size_per_layer_input) are not simulated; "
			    "name the others: q_proj, k_proj, v_proj, o_proj, "
			    "gate_proj, up_proj, down_proj");
	return (context->joins_qkv ? 1u << FT_LORA_QKV : (unsigned)QKV_PARTS) |
	       1u << FT_LORA_OUT |
	       (joined ? 1u << FT_LORA_GATE_UP : (unsigned)UP_PARTS) |
	       1u << FT_LORA_DOWN;
}

/* What stands in attention's place and has no adapters here. */
static const char *mixer_of(const struct ft_layer *l)
{
	return l->short_conv   ? "a convolution" :
	       l->state_chunk  ? "a state space" :
	       l->linear_heads ? "linear attention" :
				 "latent attention";
}

/* What can be adapted instead, if anything can. */
static const char *other_way(const struct ft_model *model, bool mlp)
{
	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];

		if (mlp ? l->experts > 0 : l->kv_lora_rank || l->linear_heads)
			return ", nor are others of this model";
	}
	return mlp ? "; targets: mlp is" : "; targets: attention is";
}

/* Layers that have no such matrix, or several. */
static bool fits(struct reader *r, const struct ft_model *model, unsigned targets)
{
	bool gated = model->activation == FT_SWIGLU;

	if ((targets >> FT_LORA_QKV & 1 && targets & QKV_PARTS) ||
	    (targets >> FT_LORA_GATE_UP & 1 && targets & UP_PARTS))
		return reader_fail(
			r, "targets",
			"names a matrix twice: linear_qkv holds q_proj, "
			"k_proj and v_proj, linear_fc1 gate_proj and up_proj");
	if (targets >> FT_LORA_GATE & 1 && !gated)
		return reader_fail(r, "targets",
				   "gate_proj: this model's MLP has no gate");
	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];

		if (targets & ATTENTION && (l->kv_lora_rank || l->linear_heads))
			return reader_fail(r, "targets",
					   "adapters on %s are not simulated%s",
					   mixer_of(l), other_way(model, true));
		if (targets & ~(unsigned)ATTENTION && l->experts)
			return reader_fail(r, "targets",
					   "adapters on experts are not simulated%s",
					   other_way(model, false));
	}
	return true;
}

/* Where 'precision: fp8' is another name of fp8-block128, fp8 is that here, too. */
static enum ft_dtype frozen_format(struct reader *top, const struct ft_plan *plan,
				   enum ft_dtype said)
{
	bool blocks = plan->precision == FT_FP8_BLOCK128 &&
		      !strcmp(read_text(top, "precision", ""), ft_dtype_name(FT_FP8));

	return blocks && said == FT_FP8 ? FT_FP8_BLOCK128 : said;
}

void lora_read(struct reader *top, const struct ft_model *model,
	       const struct ft_plan_context *context, struct ft_plan *plan)
{
	static const enum ft_dtype formats[] = { FT_BF16,  FT_FP16,	    FT_FP32,
						 FT_FP8,   FT_FP8_BLOCK128, FT_MXFP8,
						 FT_NVFP4, FT_MXFP4 };
	const struct node *node = read_node(top, "lora");
	struct reader r = reader_open(node, top->err);
	const char *name[8];
	int own = 0;

	if (!node || top->failed)
		return;
	for (int i = 0; i < 8; i++) {
		name[i] = ft_dtype_name(formats[i]);
		own = formats[i] == plan->precision ? i : own;
	}
	if (read_need(&r, "rank"))
		plan->lora.rank = read_int(&r, "rank", 1, 1 << 16, 1);
	plan->lora.targets = read_targets(&r);
	if (plan->lora.targets & ALL_LINEAR)
		plan->lora.targets = (plan->lora.targets & ~(unsigned)ALL_LINEAR) |
				     all_linear(&r, model, context);
	plan->lora.dropout = read_bool(&r, "dropout", false);
	plan->lora.fp32 = read_bool(&r, "fp32_adapters", false);
	plan->lora.frozen = frozen_format(
		top, plan, formats[read_choice(&r, "frozen_precision", name, 8, own)]);
	if (!r.failed)
		(void)fits(&r, model, plan->lora.targets);
	if (!r.failed && model->predicted)
		reader_fail(
			&r, NULL,
			"lora trains no predicted tokens: set num_nextn_predict_layers: 0 in the model");
	if (!reader_close(&r))
		top->failed = true;
}
