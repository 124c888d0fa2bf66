/* stacks/stack.c - stacks/NAME.yaml to struct ft_stack, `extends` resolved */
#include "foretoken/stacks.h"

#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/plain.h"
#include "base/reader.h"
#include "stacks/flags.h"
#include "stacks/runs.h"

struct whole {
	struct ft_stack stack; /* first: the handle is the arena's */
	struct arena mem;
};

static const char *const hosts[FT_HOSTS] = {
	"launch",
	"collective",
	"block_forward",
	"block_backward",
	"split_weight",
	"split_below",
	"piece",
	"checkpoint_forward",
	"checkpoint_backward",
	"selective_forward",
	"selective_backward",
	"shard_forward",
	"shard_backward",
	"shard_kept",
	"table",
	"table_fresh",
	"gradient_hook",
	"tensor_forward",
	"tensor_backward",
	"ends_forward",
	"ends_backward",
	"micro_batch",
	"pipeline",
	"optimizer",
	"optimizer_tensor",
	"tensor_update",
	"shard_tensor",
	"state_update",
	"state_memory",
	"state_norm",
	"state_join",
	"state_mapped",
	"state_views",
	"step",
	"adapter",
	"tensor_op",
	"matrix",
	"redistribute",
	"operation",
	"graph",
	"experts_forward",
	"experts_backward",
	"exchange",
	"expert",
	"sync",
	"inputs",
	"pair",
	"pair_expert",
};

const char *ft_host_name(enum ft_host activity)
{
	return hosts[activity];
}

/* Bytes that move, or are listed, for each parameter. */
static void read_copies(struct reader *r, struct ft_layout_rules *l)
{
	l->fsdp_copy_in_bytes = read_quantity(r, "fsdp_copy_in", DIM_BYTES, 0);
	l->fsdp_copy_out_bytes = read_quantity(r, "fsdp_copy_out", DIM_BYTES, 0);
	l->fsdp_copy_grad_bytes = read_quantity(r, "fsdp_copy_gradient", DIM_BYTES, 0);
	l->table_block_bytes = read_quantity(r, "table_block", DIM_BYTES, 0);
	l->table_kept_bytes = read_quantity(r, "table_kept", DIM_BYTES, 0);
	l->table_kept_often_bytes =
		read_quantity(r, "table_kept_often", DIM_BYTES, l->table_kept_bytes);
	l->optimizer_bytes = read_quantity(r, "optimizer", DIM_BYTES, 0);
	l->bucket_bytes = read_quantity(r, "bucket", DIM_BYTES, 0);
	l->bucket_copy_bytes = read_quantity(r, "bucket_copy", DIM_BYTES, 0);
	l->scan_kept_bytes = read_quantity(r, "scan_kept", DIM_BYTES, 3);
}

/* What is one of several kinds. */
static void read_kinds(struct reader *r, struct ft_layout_rules *l)
{
	static const char *const fusions[] = { "eager", "compiled", "kernels",
					       "operations", "modules" };
	static const char *const tps[] = { "megatron", "dtensor" };
	static const char *const contexts[] = { "ring", "all_gather", "all_to_all",
						"gathered_ring" };
	static const char *const kept[] = { "attention", "ops" };
	static const char *const again[] = { "whole", "needed" };
	static const char *const routing[] = { "fused", "gathered", "indexed",
					       "weighted", "compiled" };

	l->fusion = (enum ft_fusion)read_choice(r, "fusion", fusions, 5, 2);
	l->tensor_parallel =
		(enum ft_tensor_parallel)read_choice(r, "tensor_parallel", tps, 2, 0);
	l->selective = (enum ft_selective)read_choice(r, "selective", kept, 2, 0);
	l->full_recompute =
		(enum ft_full_recompute)read_choice(r, "full_recompute", again, 2, 0);
	l->routing = (enum ft_routing)read_choice(r, "routing", routing, 5, 0);
	l->context_parallel = (enum ft_context_parallel)read_choice(
		r, "context_parallel", contexts, 4, 0);
	l->context_parallel_lora = (enum ft_context_parallel)read_choice(
		r, "context_parallel_lora", contexts, 4, (int)l->context_parallel);
}

/* A flat unit is used as it is gathered, and its gradients are joined, not packed in blocks. */
static void check_flat(struct reader *r, const struct ft_layout_rules *l)
{
	if (!r->failed && l->flat_shards &&
	    (l->fsdp_copy_out_bytes > 0 || l->table_block_bytes > 0))
		reader_fail(r, "flat_shards",
			    "copies nothing out and packs no blocks: it goes with "
			    "fsdp_copy_out: 0 B and table_block: 0 B");
}

static void check_loss(struct reader *r, const struct ft_layout_rules *l)
{
	if (!r->failed && l->loss_in_operations && l->fused_loss)
		reader_fail(r, "loss_in_operations",
			    "goes with fused_loss: false, as it makes an fp32 copy");
	if (!r->failed && l->plain_loss && l->loss_in_operations)
		reader_fail(r, "plain_loss",
			    "is one call; loss_in_operations has many");
}

/* What a weighted gate costs is known of hand-written kernels, and of one that a compiler makes of it alone. */
static void check_weighted(struct reader *r, const struct ft_layout_rules *l)
{
	if (!r->failed && l->weighted_activation && l->fusion != FT_FUSION_KERNELS &&
	    l->fusion != FT_FUSION_MODULES)
		reader_fail(
			r, "weighted_activation",
			"goes with fusion: kernels or modules; false goes with any");
}

static void check_sinks(struct reader *r, const struct ft_layout_rules *l)
{
	if (!r->failed && l->plain_sinks && l->sink_attention[0])
		reader_fail(r, "sink_attention",
			    "goes with plain_sinks: false, as it is fused");
}

/* Blocks are written as one program, whose kernels a compiler makes. */
static void check_blocks(struct reader *r, const struct ft_layout_rules *l)
{
	if (!r->failed && l->attention_block &&
	    (strcmp(l->attention, "unfused") != 0 || l->fusion != FT_FUSION_COMPILED))
		reader_fail(r, "attention_block",
			    "goes with attention: unfused and fusion: compiled");
}

/* What stands in the place of `attention` for some layers or models runs in a kernel. */
static const char *read_fused(struct reader *r, const char *key)
{
	const char *impl = read_text(r, key, "");

	if (!r->failed && !strcmp(impl, "unfused"))
		reader_fail(r, key,
			    "should be a fused implementation, or \"\" for none");
	return impl;
}

/* A map of generations. */
static bool read_attention_on(const struct node *node, struct ft_layout_rules *l,
			      struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	for (size_t i = 0; node && node->kind == NODE_MAP && i < node->n; i++) {
		struct ft_attention_on *on = &l->attention_on[l->n_attention_on];

		if (l->n_attention_on == FT_STACK_GENERATIONS)
			return reader_fail(&r, node->key[i],
					   "is one too many: at most %d",
					   (int)FT_STACK_GENERATIONS);
		on->generation = node->key[i];
		on->mark = node->key_mark[i];
		on->impl = read_fused(&r, node->key[i]);
		l->n_attention_on++;
	}
	return reader_close(&r);
}

static bool read_layout(const struct node *node, struct ft_layout_rules *l,
			struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	read_kinds(&r, l);
	flags_read(&r, l);
	read_copies(&r, l);
	check_flat(&r, l);
	check_weighted(&r, l);
	check_loss(&r, l);
	l->optimizer_kernels = read_int(&r, "optimizer_kernels", 1, UINT16_MAX, 8);
	l->metrics = read_int(&r, "metrics", 0, 10, 0);
	l->head_chunks = read_int(&r, "head_chunks", 1, 4096, 1);
	l->expert_spread = read_quantity(&r, "expert_spread", DIM_NONE, 0);
	l->fp8_windows_back = read_bool(&r, "fp8_windows_back", l->windows);
	l->vocab_multiple = read_int(&r, "vocab_multiple", 0, 1 << 20, 0);
	l->attention_block = read_int(&r, "attention_block", 0, 1 << 20, 0);
	l->attention = read_text(&r, "attention", "");
	if (!read_attention_on(read_node(&r, "attention_by_generation"), l, err))
		return false;
	l->masked_attention = read_fused(&r, "masked_attention");
	l->sink_attention = read_fused(&r, "sink_attention");
	check_sinks(&r, l);
	check_blocks(&r, l);
	return reader_close(&r);
}

static bool read_gemm_on(const struct node *node, const struct ft_provenance *from,
			 struct ft_stack *s, struct arena *mem, struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	r.from = from;
	read_provenance(&r, mem);
	for (size_t i = 0; node && node->kind == NODE_MAP && i < node->n; i++) {
		struct ft_gemm_on *on = &s->gemm_on[s->n_gemm_on];

		if (!strcmp(node->key[i], "provenance"))
			continue;
		if (s->n_gemm_on == FT_STACK_GENERATIONS)
			return reader_fail(&r, node->key[i],
					   "is one too many: at most %d",
					   (int)FT_STACK_GENERATIONS);
		on->generation = arena_text(mem, node->key[i]);
		on->mark = node->key_mark[i];
		on->factor = read_number(&r, mem, node->key[i], DIM_NONE);
		s->n_gemm_on++;
	}
	return reader_close(&r);
}

/* A map of number formats. */
static bool read_grouped_back(const struct node *node, const struct ft_provenance *from,
			      struct ft_stack *s, struct arena *mem,
			      struct ft_error *err)
{
	struct reader r = reader_open(node, err);

	r.from = from;
	read_provenance(&r, mem);
	for (int d = 0; d < FT_DTYPES; d++)
		s->grouped_back[d] = read_number_or(
			&r, mem, ft_dtype_name((enum ft_dtype)d), DIM_NONE, 1);
	return reader_close(&r);
}

static bool read_rates(const struct node *node, struct ft_stack *s, struct arena *mem,
		       struct ft_error *err)
{
	struct reader r = reader_open(node, err);
	struct reader h;

	r.from = s->from;
	read_provenance(&r, mem);
	h = reader_open(read_node(&r, "host"), err);
	h.from = r.from;
	read_provenance(&h, mem);
	for (int i = 0; i < FT_HOSTS; i++)
		s->host_s[i] = read_number_or(&h, mem, hosts[i], DIM_S, 0);
	s->host_crowding_frac = read_number_or(&h, mem, "crowding", DIM_FRAC, 0);
	if (!reader_close(&h))
		return false;
	s->gap_s = read_number_or(&r, mem, "gap", DIM_S, 0);
	s->graphed_kernel_s = read_number_or(&r, mem, "graphed_kernel", DIM_S, 0);
	s->gemm_factor = read_number_or(&r, mem, "gemm", DIM_NONE, 1);
	if (!read_gemm_on(read_node(&r, "gemm_by_generation"), r.from, s, mem, err) ||
	    !read_grouped_back(read_node(&r, "grouped_back"), r.from, s, mem, err))
		return false;
	s->attention_factor = read_number_or(&r, mem, "attention", DIM_NONE, 1);
	s->memory_factor = read_number_or(&r, mem, "memory_bound", DIM_NONE, 1);
	s->collective_factor = read_number_or(&r, mem, "collective", DIM_NONE, 1);
	s->dispatcher_factor = read_number_or(&r, mem, "dispatcher", DIM_NONE, 1);
	return reader_close(&r);
}

/* One name, or several of which the first that knows the GPU serves. */
static void read_ccls(struct reader *r, struct ft_stack *s)
{
	const struct node *n = read_need(r, "ccl");
	size_t count = !n ? 0 : n->kind == NODE_LIST ? n->n : 1;

	s->ccl_mark = reader_mark(r, "ccl");
	if (n && (n->kind == NODE_MAP || !count || count > FT_STACK_CCLS))
		reader_fail(r, "ccl",
			    "should be a library's name, or a list of 1 to %d",
			    (int)FT_STACK_CCLS);
	for (size_t i = 0; i < count && !r->failed; i++) {
		const struct node *item = n->kind == NODE_LIST ? n->item[i] : n;

		if (item->kind != NODE_SCALAR)
			reader_fail(r, "ccl", "should hold names only");
		s->ccl[s->n_ccls++] = item->text;
	}
}

/* Of each format of products a `training` map, or none. */
static bool check_by_precision(const struct node *maps, struct ft_error *err)
{
	static const enum ft_dtype formats[] = { FT_BF16,  FT_FP16,	    FT_FP8,
						 FT_MXFP8, FT_FP8_BLOCK128, FT_MXFP4,
						 FT_NVFP4 };
	struct reader r;

	if (!maps)
		return true;
	r = reader_open(maps, err);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		const char *name = ft_dtype_name(formats[i]);
		const struct node *map = read_node(&r, name);

		if (map && map->kind != NODE_MAP)
			reader_fail(&r, name, "should be a map of keys of `training`");
	}
	return reader_close(&r);
}

/* What the file itself says, not what it extends. */
static const struct node *own(const struct node *stack, const char *key)
{
	const struct node *said = node_get(stack, key);

	return said && !strcmp(said->mark.file, stack->mark.file) ? said : NULL;
}

/* Does it say that nobody named its software? What it extends does not say it for it. */
static bool says_unnamed(const struct node *stack)
{
	struct ft_error none;
	struct reader r = reader_open(stack, &none);

	return own(stack, "unnamed") && read_bool(&r, "unnamed", false);
}

/* Its title, or that of what it extends; but a named stack is not called by an unnamed one's. */
static const char *title_of(const struct node *stack, struct reader *r,
			    const char *name)
{
	const char *title = read_text(r, "title", name);
	const struct node *by = stack;

	while (by->below && !own(by, "title"))
		by = by->below;
	return says_unnamed(by) && !says_unnamed(stack) ? name : title;
}

/* The name at the end of the chain of `extends`, as far as all are named, or all unnamed. */
static const char *root_of(const struct node *node, const char *name)
{
	bool unnamed = says_unnamed(node);

	for (; node->below && says_unnamed(node->below) == unnamed; node = node->below)
		name = node_get(node, "extends")->text;
	return name;
}

static bool read_stack(const struct node *node, struct whole *w, const char *name,
		       struct ft_error *err)
{
	static const char *const vendors[] = { "any", "nvidia", "amd" };
	struct ft_stack *s = &w->stack;
	struct reader r = reader_open(node, err);
	const struct node *runs, *layout, *rates;

	s->name = read_name(&r, "name", name);
	s->title = title_of(node, &r, s->name);
	s->root = root_of(node, s->name);
	s->unnamed = read_bool(&r, "unnamed", false) && says_unnamed(node);
	s->vendor = vendors[read_choice(&r, "vendor", vendors, 3, 0)];
	reader_allow(&r, "extends");
	read_provenance(&r, &w->mem);
	s->from = r.from;
	runs = read_node(&r, "runs");
	layout = read_node(&r, "layout");
	rates = read_node(&r, "rates");
	s->defaults = read_node(&r, "defaults");
	s->by_precision = read_node(&r, "defaults_by_precision");
	read_ccls(&r, s);
	if (!s->from)
		reader_fail(&r, NULL, "a stack needs a provenance");
	return reader_close(&r) && read_layout(layout, &s->layout, err) &&
	       runs_read(runs, s, err) && read_rates(rates, s, &w->mem, err) &&
	       check_by_precision(s->by_precision, err);
}

/* Does any of its libraries know GPUs of this generation? If none does, the word is wrong. */
static bool is_generation(const struct ft_stack *stack, const char *generation,
			  const struct ft_mark *at, struct ft_error *err)
{
	for (size_t i = 0; i < stack->n_ccls; i++) {
		struct ft_ccl *c = ft_ccl_load(stack->ccl[i], &stack->ccl_mark, err);
		bool known = c && ft_ccl_tuning(c, generation);
		bool broken = !c;

		ft_ccl_free(c);
		if (known || broken)
			return known;
	}
	return ft_fail(err, at,
		       "no communication library of the stack knows GPUs of the "
		       "generation '%.60s'",
		       generation);
}

static bool know_generations(const struct ft_stack *stack, struct ft_error *err)
{
	const struct ft_layout_rules *l = &stack->layout;

	for (size_t i = 0; i < stack->n_gemm_on; i++)
		if (!is_generation(stack, stack->gemm_on[i].generation,
				   &stack->gemm_on[i].mark, err))
			return false;
	for (size_t i = 0; i < l->n_attention_on; i++)
		if (!is_generation(stack, l->attention_on[i].generation,
				   &l->attention_on[i].mark, err))
			return false;
	return true;
}

struct ft_stack *ft_stack_load(const char *name, const struct ft_mark *at,
			       struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct node *node;
	bool ok;

	w->mem = mem;
	node = extends_file(&w->mem, "stacks", name, at, EXTENDS_SAME, err);
	ok = node && read_stack(node, w, arena_text(&w->mem, name), err) &&
	     know_generations(&w->stack, err);
	if (ok) {
		w->stack.digest = w->mem.read;
		return &w->stack;
	}
	ft_stack_free(&w->stack);
	return NULL;
}

void ft_stack_free(struct ft_stack *stack)
{
	struct arena mem;

	if (!stack)
		return;
	mem = ((struct whole *)stack)->mem;
	arena_release(&mem);
}

const struct ft_stack *ft_stack_on(const struct ft_stack *stack, const char *generation,
				   struct ft_stack *on)
{
	const struct ft_layout_rules *l = &stack->layout;

	for (size_t i = 0; i < l->n_attention_on; i++)
		if (!strcmp(l->attention_on[i].generation, generation)) {
			*on = *stack;
			on->layout.attention = l->attention_on[i].impl;
			return on;
		}
	return stack;
}

const struct ft_number *ft_stack_gemm(const struct ft_stack *stack,
				      const char *generation)
{
	for (size_t i = 0; i < stack->n_gemm_on; i++)
		if (!strcmp(stack->gemm_on[i].generation, generation))
			return &stack->gemm_on[i].factor;
	return &stack->gemm_factor;
}

struct ft_ccl *ft_stack_ccl(const struct ft_stack *stack, const char *generation,
			    struct ft_error *err)
{
	for (size_t i = 0; i < stack->n_ccls; i++) {
		struct ft_ccl *c = ft_ccl_load(stack->ccl[i], &stack->ccl_mark, err);

		if (!c || ft_ccl_tuning(c, generation))
			return c;
		if (i + 1 == stack->n_ccls)
			ft_ccl_unknown(c, generation, &stack->ccl_mark, err);
		ft_ccl_free(c);
	}
	return NULL;
}
