/* stacks/runs.c - which plans a stack's framework has: a list of words is a set of bits; and what its attention keeps from them */
#include "stacks/runs.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/stacks.h"

static const char *const splits[] = { "tp", "pp", "vpp", "cp", "ep", "etp" };
static const char *const shardings[] = {
	"none", "ddp", "zero1", "zero2", "fsdp", "hsdp"
};
static const char *const graphs[] = { "none", "router", "partial", "full" };
static const char *const optimizers[] = { "adam",      "muon", "adam8bit",
					  "adafactor", "sgd",  "sgd-momentum" };

enum {
	SPLITS = sizeof(splits) / sizeof(*splits),
	SHARDINGS = sizeof(shardings) / sizeof(*shardings),
	GRAPHS = sizeof(graphs) / sizeof(*graphs),
	OPTIMIZERS = sizeof(optimizers) / sizeof(*optimizers),
	USUAL_OPTIMIZERS = 3 /* adam, muon */
};

/* A list of words as bits, or one word; unless_said where the file does not name the key. */
static unsigned read_set(struct reader *r, const char *key, const char *const *names,
			 size_t n, unsigned unless_said)
{
	const struct node *list = read_node(r, key);
	size_t count = !list ? 0 : list->kind == NODE_LIST ? list->n : 1;
	struct arena mem = { 0 };
	unsigned set = 0;

	for (size_t i = 0; i < count && !r->failed; i++) {
		const struct node *item =
			list->kind == NODE_LIST ? list->item[i] : list;
		const char *word = item->kind == NODE_SCALAR ? item->text : "a map";
		size_t at = text_place(word, names, n);

		if (at == n)
			reader_fail_node(r, key, item, "'%.40s' is not one of %s", word,
					 text_join(&mem, names, n));
		set |= 1U << at;
	}
	arena_release(&mem);
	return list ? set : unless_said;
}

bool runs_read(const struct node *node, struct ft_stack *stack, struct ft_error *err)
{
	struct reader r = reader_open(node, err);
	struct ft_stack_has *runs = &stack->runs;

	runs->parallel = read_set(&r, "parallel", splits, SPLITS, FT_RUNS_ALL);
	runs->sharding = read_set(&r, "sharding", shardings, SHARDINGS, FT_RUNS_ALL);
	runs->optimizers =
		read_set(&r, "optimizers", optimizers, OPTIMIZERS, USUAL_OPTIMIZERS);
	runs->graphs = read_set(&r, "cuda_graphs", graphs, GRAPHS, FT_RUNS_ALL);
	runs->graphed_sharding =
		read_set(&r, "graphed_sharding", shardings, SHARDINGS, FT_RUNS_ALL);
	runs->graphed_accumulation = read_bool(&r, "graphed_accumulation", true);
	runs->graphed_recompute = read_bool(&r, "graphed_recompute", true);
	runs->predicted_tokens = read_bool(&r, "predicted_tokens", true);
	runs->compiled_recompute = read_bool(&r, "compiled_recompute", true);
	runs->fp8_attention = read_bool(&r, "fp8_attention", true);
	runs->dropless_experts = read_bool(&r, "dropless_experts", true);
	runs->recompute_by_stride = read_bool(&r, "recompute_by_stride", false);
	runs->recompute_in_pairs = read_bool(&r, "recompute_in_pairs", false);
	if (!runs->compiled_recompute && stack->layout.fusion != FT_FUSION_COMPILED)
		reader_fail(&r, "compiled_recompute",
			    "goes with fusion: compiled; true goes with any");
	if (!(runs->graphs & 1))
		reader_fail(&r, "cuda_graphs", "should hold none");
	if (!runs->sharding)
		reader_fail(&r, "sharding", "should hold at least one word");
	if (!runs->graphed_sharding)
		reader_fail(&r, "graphed_sharding",
			    "should hold at least one word; cuda_graphs: [none] is for "
			    "a stack without graphs");
	return reader_close(&r);
}

bool ft_stack_runs(const struct ft_stack *stack, const char *word)
{
	size_t at = text_place(word, splits, SPLITS);

	if (at < SPLITS)
		return stack->runs.parallel >> at & 1;
	at = text_place(word, shardings, SHARDINGS);
	if (at < SHARDINGS)
		return stack->runs.sharding >> at & 1;
	at = text_place(word, optimizers, OPTIMIZERS);
	assert(at < OPTIMIZERS);
	return stack->runs.optimizers >> at & 1;
}

const char *ft_stack_unfused(const struct ft_stack *stack, bool sinks, bool plain,
			     bool capped)
{
#define WHOLE_ROWS ", and keeps whole rows of scores"
	if (!strcmp(stack->layout.attention, "unfused"))
		return "the stack's attention is unfused" WHOLE_ROWS;
	if (stack->layout.plain_sinks && sinks)
		return "the stack does not fuse attention with sinks" WHOLE_ROWS;
	if (stack->layout.plain_caps && capped)
		return "the stack does not fuse attention whose scores are capped "
		       "(attn_logit_softcapping)" WHOLE_ROWS;
	return stack->layout.model_classes && plain ?
		       "the model's class has no fused attention" WHOLE_ROWS :
		       NULL;
#undef WHOLE_ROWS
}

const char *ft_stack_no_context(const struct ft_stack *stack, bool sinks, bool plain,
				bool capped)
{
	return stack->layout.sink_attention[0] && sinks ?
		       "the stack scales attention with sinks behind its kernel "
		       "(sink_attention)" :
		       ft_stack_unfused(stack, sinks, plain, capped);
}

bool ft_stack_joins_qkv(const struct ft_stack *stack, bool class_joins)
{
	return stack->layout.fused_qkv || (stack->layout.model_classes && class_joins);
}

bool ft_stack_joins_gate_up(const struct ft_stack *stack, bool class_joins)
{
	return stack->layout.fused_gate_up ||
	       (stack->layout.model_classes && class_joins);
}
