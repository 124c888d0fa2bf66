/* traces/stack_runs.c - plans that a stack does not run, which are refused */
#include "traces/compressed.h"
#include "traces/sharding.h"
#include "traces/stage.h"

/* Heads that an all-to-all deals over the context group. */
static bool dealt(const struct ft_plan *plan, const struct ft_stack *stack,
		  int64_t heads, const char *what, struct ft_error *err)
{
	int64_t mine = heads > plan->tp ? heads / plan->tp : 1;

	return mine % plan->cp == 0 ||
	       ft_fail(err, NULL,
		       "cp %lld does not divide the %lld %s of a rank, which stack %s "
		       "deals over it by all-to-all",
		       (long long)plan->cp, (long long)mine, what, stack->name);
}

/* Can the heads and groups of what stands in attention's place, or beside it, be dealt? */
static bool mixer_dealt(const struct ft_plan *plan, const struct ft_stack *stack,
			const struct ft_layer *l, struct ft_error *err)
{
	const char *heads = l->short_conv  ? "channels of a convolution" :
			    l->state_chunk ? "heads of a state space" :
					     "value heads of a delta rule";
	const char *groups = l->state_chunk ? "groups of a state space" :
					      "key heads of a delta rule";

	return !l->linear_heads ||
	       (dealt(plan, stack, l->linear_heads, heads, err) &&
		dealt(plan, stack, l->linear_key_heads, groups, err));
}

/* Those of a delta rule, and with that way of attention those of queries and of keys. Source:
 * Transformer Engine, which asserts both (context_parallel.py, read 2026-11-25). */
static bool heads_can_be_dealt(const struct ft_model *model, const struct ft_plan *plan,
			       const struct ft_stack *stack, struct ft_error *err)
{
	bool all = context_parallel(stack, plan) == FT_CP_ALL_TO_ALL;

	for (int64_t i = 0; i < model->n_layers; i++) {
		const struct ft_layer *l = &model->layer[i];

		if (!mixer_dealt(plan, stack, l, err))
			return false;
		if (all && ft_layer_attends(l) &&
		    (!dealt(plan, stack, l->heads, "heads", err) ||
		     !dealt(plan, stack, l->kv_heads, "key-value heads", err)))
			return false;
	}
	return true;
}

/* Megatron's and NeMo's fused activation alone can (activation_func_fp8_input_store). */
static bool narrows_gates(const struct ft_model *model, const struct ft_plan *plan,
			  const struct ft_stack *stack, struct ft_error *err)
{
	if (!plan->fp8_gates)
		return true;
	if (model->activation != FT_SWIGLU)
		return ft_fail(
			err, NULL,
			"fp8_activation_input: the model's activation has no gate");
	return stack->layout.fusion == FT_FUSION_KERNELS ||
	       ft_fail(err, NULL,
		       "fp8_activation_input: stack %s has no kernel that keeps an "
		       "activation's input in 8 bit",
		       stack->name);
}

/* Weights in fp32 that are trained themselves have no master weights beside them. */
static bool keeps_masters(const struct ft_plan *plan, const struct ft_stack *stack,
			  struct ft_error *err)
{
	bool own = plan->sharding == FT_FSDP || plan->sharding == FT_HSDP ||
		   stack->layout.one_program ||
		   (stack->layout.autocast && !ft_plan_divides(plan));

	return plan->master == FT_MASTER_FP32 || !own ||
	       ft_fail(err, NULL,
		       "master_dtype: %s: %s of stack %s trains weights in fp32 "
		       "themselves and keeps no others beside them",
		       ft_master_name(plan->master), ft_sharding_name(plan->sharding),
		       stack->name);
}

/* Copies of PyTorch's FSDP, DeepSpeed's and Megatron's are known, and what their hosts take. */
static bool updates_on_host(const struct ft_plan *plan, const struct ft_stack *stack,
			    struct ft_error *err)
{
	const char *offload = ft_offload_name(plan->offload_state);
	bool all = plan->offload_state == FT_OFFLOAD_ALL;
	bool autocast = stack->layout.autocast && !ft_plan_divides(plan);

	if (plan->offload_state == FT_OFFLOAD_NONE)
		return true;
	if (stack->host_s[FT_HOST_STATE_UPDATE].value <= 0)
		return ft_fail(
			err, NULL,
			"offload_state: %s: what an update takes the host is not "
			"known of stack %s (its rates.host.state_update)",
			offload, stack->name);
	if (all && stack->layout.fsdp_copy_in_bytes <= 0)
		return ft_fail(
			err, NULL,
			"offload_state: all: the fsdp of stack %s keeps its shards "
			"on the GPU; use optimizer",
			stack->name);
	if (all && stack->layout.flat_shards && plan->micro_batches > 1 &&
	    !plan->sync_last)
		return ft_fail(
			err, NULL,
			"offload_state: all: FSDP1 of stack %s loses the sums of "
			"earlier micro-batches that way; use "
			"sync_each_micro_batch: false (no_sync), or one micro-batch",
			stack->name);
	return !autocast ||
	       ft_fail(err, NULL,
		       "offload_state: %s: under autocast, as in sharding: %s of stack "
		       "%s, the GPU updates weights in fp32; use fsdp",
		       offload, ft_sharding_name(plan->sharding), stack->name);
}

enum { LISTED = 80 };

/* ", word" behind the n bytes of a text, if a stack has it. */
static size_t list_word(const struct ft_stack *stack, const char *word,
			char text[LISTED], size_t n)
{
	if (!ft_stack_runs(stack, word))
		return n;
	return n + (size_t)snprintf(text + n, LISTED - n, "%s%s", n ? ", " : "", word);
}

/* "ddp, zero1": what replicas can divide among them under a stack. */
static const char *shardings_of(const struct ft_stack *stack, char text[LISTED])
{
	size_t n = 0;

	for (int i = FT_ALONE; i <= FT_HSDP; i++)
		n = list_word(stack, ft_sharding_name((enum ft_sharding)i), text, n);
	return text;
}

/* "adam, muon" */
static const char *optimizers_of(const struct ft_stack *stack, char text[LISTED])
{
	size_t n = 0;

	for (int i = 0; i < FT_OPTIMIZERS; i++)
		n = list_word(stack, ft_optimizer_name((enum ft_optimizer)i), text, n);
	return text;
}

static bool can_update(const struct ft_plan *plan, const struct ft_stack *stack,
		       struct ft_error *err)
{
	const char *optimizer = ft_optimizer_name(plan->optimizer);
	bool whole = plan->optimizer == FT_ADAFACTOR || plan->optimizer == FT_ADAM_8BIT;
	char others[LISTED] = "";

	if (!ft_stack_runs(stack, optimizer))
		return ft_fail(err, NULL,
			       "optimizer: %s is not in stack %s, which has %s (its "
			       "runs.optimizers)",
			       optimizer, stack->name, optimizers_of(stack, others));
	if (whole && ft_plan_divides(plan))
		return ft_fail(
			err, NULL,
			"optimizer: %s updates whole tensors, which sharding: %s "
			"divides; use sharding: ddp or none, or optimizer: adam",
			optimizer, ft_sharding_name(plan->sharding));
	if (plan->optimizer == FT_MUON && stack->layout.flat_shards && is_fsdp(plan))
		return ft_fail(err, NULL,
			       "optimizer: muon takes matrices, and stack %s shards "
			       "flat tensors; use adam, sharding: ddp, or a stack with "
			       "flat_shards: false",
			       stack->name);
	return true;
}

/* "none, full" */
static const char *graphs_of(const struct ft_stack *stack, char text[LISTED])
{
	size_t n = 0;

	for (int i = FT_GRAPHS_NONE; i <= FT_GRAPHS_FULL; i++)
		if (stack->runs.graphs >> i & 1)
			n += (size_t)snprintf(text + n, LISTED - n, "%s%s",
					      n ? ", " : "",
					      ft_graphs_name((enum ft_graphs)i));
	return text;
}

/* "none, ddp": with which they hold something, of those that the stack has. */
static const char *graphed_shardings(const struct ft_stack *stack, char text[LISTED])
{
	size_t n = 0;

	for (int i = FT_ALONE; i <= FT_HSDP; i++)
		if (stack->runs.graphed_sharding >> i & 1)
			n = list_word(stack, ft_sharding_name((enum ft_sharding)i),
				      text, n);
	return text;
}

static bool computes_again(const struct ft_plan *plan)
{
	return plan->recompute == FT_RECOMPUTE_FULL ?
		       plan->recompute_layers > 0 :
		       plan->recompute != FT_RECOMPUTE_NONE;
}

/* Of those that a stack has: what they do not go with. */
static bool graphs_go_with(const struct ft_plan *plan, const struct ft_stack *stack,
			   struct ft_error *err)
{
	const char *graphs = ft_graphs_name(plan->graphs);
	char text[LISTED] = "";
	const char *others = graphed_shardings(stack, text);

	if (!(stack->runs.graphed_sharding >> plan->sharding & 1))
		return ft_fail(
			err, NULL,
			"cuda_graphs: %s does not go with sharding: %s under stack "
			"%s (its runs.graphed_sharding); use %s%s%scuda_graphs: none",
			graphs, ft_sharding_name(plan->sharding), stack->name,
			*others ? "sharding: " : "", others, *others ? ", or " : "");
	if (plan->micro_batches > 1 && !stack->runs.graphed_accumulation)
		return ft_fail(
			err, NULL,
			"cuda_graphs: %s does not go with several micro-batches a "
			"step, %lld here, under stack %s (its "
			"runs.graphed_accumulation); use cuda_graphs: none",
			graphs, (long long)plan->micro_batches, stack->name);
	return !computes_again(plan) || stack->runs.graphed_recompute ||
	       ft_fail(err, NULL,
		       "cuda_graphs: %s does not go with recomputation under stack %s "
		       "(its runs.graphed_recompute); use cuda_graphs: none",
		       graphs, stack->name);
}

static bool graphs_kernels(const struct ft_plan *plan, const struct ft_stack *stack,
			   struct ft_error *err)
{
	char others[LISTED] = "";

	if (stack->runs.graphs >> plan->graphs & 1)
		return plan->graphs == FT_GRAPHS_NONE ||
		       graphs_go_with(plan, stack, err);
	return ft_fail(err, NULL,
		       "cuda_graphs: %s is not in stack %s, which has %s (its "
		       "runs.cuda_graphs)",
		       ft_graphs_name(plan->graphs), stack->name,
		       graphs_of(stack, others));
}

/* What its framework does not have at all. */
static bool framework_has(const struct ft_plan *plan, const struct ft_stack *stack,
			  struct ft_error *err)
{
	const struct {
		const char *word;
		int64_t size;
	} split[] = { { "tp", plan->tp }, { "pp", plan->pp }, { "vpp", plan->vpp },
		      { "cp", plan->cp }, { "ep", plan->ep }, { "etp", plan->etp } };
	const char *sharding = ft_sharding_name(plan->sharding);
	char others[LISTED] = "";

	for (size_t i = 0; i < sizeof(split) / sizeof(*split); i++)
		if (split[i].size > 1 && !ft_stack_runs(stack, split[i].word))
			return ft_fail(
				err, NULL,
				"parallel.%s %lld: stack %s has no %s (its runs.parallel "
				"says what it has); leave it at 1, or take another stack",
				split[i].word, (long long)split[i].size, stack->name,
				split[i].word);
	return ft_stack_runs(stack, sharding) ||
	       ft_fail(err, NULL, "sharding: %s is not in stack %s, which has %s",
		       sharding, stack->name, shardings_of(stack, others));
}

/* What a layer reads beside the one before it goes round no stages, and no framework splits it. */
static bool reads_across(const struct ft_model *model, const struct ft_plan *plan,
			 struct ft_error *err)
{
	bool shares = model->layer[model->n_layers - 1].shares_kv;

	if (plan->tp * plan->pp == 1 || !(model->layer_input || shares))
		return true;
	return ft_fail(
		err, NULL,
		"parallel.%s %lld: a model with %s is simulated with tp and pp 1; "
		"use fsdp",
		plan->pp > 1 ? "pp" : "tp",
		(long long)(plan->pp > 1 ? plan->pp : plan->tp),
		model->layer_input ? "hidden_size_per_layer_input" :
				     "num_kv_shared_layers");
}

static bool checkpoints_operations(const struct ft_plan *plan,
				   const struct ft_stack *stack)
{
	return plan->recompute == FT_RECOMPUTE_SELECTIVE &&
	       selected_modules(plan, stack) & FT_MODULE_OPS;
}

static bool chooses_tokens(const struct ft_model *model)
{
	bool indexed = false;

	for (int64_t i = 0; i < model->n_layers; i++)
		indexed |= model->layer[i].index_topk > 0 || model->layer[i].compressed;
	return indexed;
}

/* Has it something other than attention and MLPs in a layer, or halves of a layer each in a checkpoint? */
static bool mixes_otherwise(const struct ft_model *model)
{
	bool other = model->halves || model->layer_input || chooses_tokens(model) ||
		     model->streams > 1;

	for (int64_t i = 0; i < model->n_layers; i++)
		other |= model->layer[i].linear_heads > 0 ||
			 model->layer[i].states_beside;
	return other;
}

/* Attention alone is a kernel of its own, compiled or not. */
static bool checkpoints_layers(const struct ft_plan *plan, const struct ft_stack *stack)
{
	if (plan->recompute == FT_RECOMPUTE_FULL)
		return plan->recompute_layers > 0;
	return checkpoints_operations(plan, stack);
}

static bool recomputes(const struct ft_model *model, const struct ft_plan *plan,
		       const struct ft_stack *stack, struct ft_error *err)
{
	if (stack->layout.scan_layers && plan->recompute == FT_RECOMPUTE_FULL &&
	    plan->recompute_layers > 0 && plan->recompute_layers < model->n_layers)
		return ft_fail(
			err, NULL,
			"recompute_layers: %lld of %lld: stack %s scans its layers, "
			"which all recompute or none",
			(long long)plan->recompute_layers, (long long)model->n_layers,
			stack->name);
	if (checkpoints_operations(plan, stack) && mixes_otherwise(model))
		return ft_fail(
			err, NULL,
			"recompute_modules: op: what of state spaces, delta rules, "
			"convolutions, indexers and per-layer inputs is kept is not known; "
			"use recompute: full or none");
	if (stack->runs.recompute_by_stride && plan->recompute == FT_RECOMPUTE_FULL &&
	    plan->recompute_layers > 0 &&
	    !ft_plan_stride(model->n_layers, plan->recompute_layers))
		return ft_fail(
			err, NULL,
			"recompute_layers: %lld of %lld: stack %s recomputes all "
			"layers or each k-th: %lld, %lld, %lld ...",
			(long long)plan->recompute_layers, (long long)model->n_layers,
			stack->name, (long long)model->n_layers,
			(long long)(model->n_layers / 2),
			(long long)(model->n_layers / 3));
	if (!stack->runs.compiled_recompute && plan->micro_batch == 1 &&
	    checkpoints_layers(plan, stack))
		return ft_fail(
			err, NULL,
			"recompute: %s with micro_batch_size 1 runs eagerly under "
			"stack %s, as its attention breaks the graph; take an "
			"eager stack, a larger micro-batch, or less recomputation",
			plan->recompute == FT_RECOMPUTE_FULL ? "full" :
							       "selective (op)",
			stack->name);
	return true;
}

static bool attends(const struct ft_plan *plan, const struct ft_stack *stack,
		    struct ft_error *err)
{
	if (plan->attention_precision != FT_FP8 || stack->runs.fp8_attention)
		return true;
	return ft_fail(
		err, NULL,
		"attention_precision: fp8: the attention of stack %s runs in 16 bit; "
		"leave it out, or take another stack",
		stack->name);
}

/* Is there a way to attend to what an indexer chooses? Transformers' classes take none of FlashAttention's kernels. */
static bool reads_choice(const struct ft_model *model, const struct ft_plan *plan,
			 const struct ft_stack *stack, struct ft_error *err)
{
	const struct ft_layout_rules *l = &stack->layout;
	bool indexed = chooses_tokens(model);

	if (!compressed_runs(model, plan, stack, err))
		return false;
	if (indexed && plan->attention_precision == FT_FP8)
		return ft_fail(err, NULL,
			       "attention_precision: fp8: kernels that gather chosen "
			       "tokens train in 16 bit alone; leave it out");
	if (!indexed || !l->masked_choice || l->masked_attention[0])
		return true;
	return ft_fail(err, NULL,
		       "index_topk: the attention of stack %s takes no mask of chosen "
		       "tokens; take a stack whose attention does, or set "
		       "model.index_topk to 0, by which a token sees all before it",
		       stack->name);
}

static bool groups_experts(const struct ft_model *model, const struct ft_plan *plan,
			   const struct ft_stack *stack, struct ft_error *err)
{
	int64_t experts = 0;

	for (int64_t l = 0; l < model->n_layers; l++)
		if (model->layer[l].experts > experts)
			experts = model->layer[l].experts;
	if (!experts || plan->capacity_factor > 0 || stack->runs.dropless_experts)
		return true;
	return ft_fail(err, NULL,
		       "moe_capacity_factor: none: under stack %s, which has no kernel "
		       "for groups of rows, each of %lld experts would run on all "
		       "tokens; give a capacity, or take a stack with such a kernel",
		       stack->name, (long long)experts);
}

static bool schedules(const struct ft_plan *plan, const struct ft_stack *stack,
		      struct ft_error *err)
{
	if (plan_splits(plan) && !stack->layout.split_backward)
		return ft_fail(
			err, NULL,
			"schedule: %s cuts a backward in two, which stack "
			"%s does not; use 1f1b, interleaved or gpipe, or a stack "
			"with split_backward: true",
			ft_schedule_name(plan->schedule), stack->name);
	if (plan->schedule == FT_DUALPIPEV && !stack->layout.dual_pipe)
		return ft_fail(err, NULL,
			       "schedule: dualpipev is not in stack %s; use zbv, or a "
			       "stack with dual_pipe: true",
			       stack->name);
	return true;
}

bool stack_runs(const struct ft_model *model, const struct ft_plan *plan,
		const struct ft_stack *stack, struct ft_error *err)
{
	if (model->predicted && !stack->runs.predicted_tokens)
		return ft_fail(
			err, NULL,
			"num_nextn_predict_layers: stack %s trains no tokens ahead "
			"of the next one; set model.num_nextn_predict_layers to 0",
			stack->name);
	return schedules(plan, stack, err) && can_update(plan, stack, err) &&
	       updates_on_host(plan, stack, err) && keeps_masters(plan, stack, err) &&
	       narrows_gates(model, plan, stack, err) &&
	       reads_across(model, plan, err) && recomputes(model, plan, stack, err) &&
	       attends(plan, stack, err) && reads_choice(model, plan, stack, err) &&
	       groups_experts(model, plan, stack, err) &&
	       framework_has(plan, stack, err) && graphs_kernels(plan, stack, err) &&
	       heads_can_be_dealt(model, plan, stack, err);
}
