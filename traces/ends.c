/*
 * traces/ends.c - the two ends of a model: embedding, output head and loss
 *
 * Bytes per logit are what the loss reads and writes in each pass: a compiled loss
 * reads 16-bit logits twice and writes their gradient; an unfused one goes through
 * an fp32 copy, softmax, its backward and a cast back.
 */
#include "base/whole.h"
#include "traces/layer_input.h"
#include "traces/memory.h"
#include "traces/memory_ends.h"
#include "traces/offload.h"
#include "traces/streams.h"

static int64_t slice(const struct builder *b)
{
	return b->plan->sequence_parallel ? b->tokens / b->plan->tp : b->tokens;
}

static void tensor_sum(struct builder *b, const char *name, double bytes)
{
	bool sp = b->plan->sequence_parallel;

	if (put_collective(b, name, FT_STREAM_TP,
			   sp ? FT_REDUCE_SCATTER : FT_ALL_REDUCE, FT_GROUP_TP, bytes))
		need(b, FT_STREAM_TP);
}

void embedding_forward(struct builder *b)
{
	host(b, FT_HOST_ENDS_FORWARD, 1);
	put_memory(b, "embedding", "embedding", 2 * hidden_bytes(b),
		   b->model->positions == FT_LEARNED ? 3 : 1);
	tensor_sum(b, "tp_embedding", hidden_bytes(b));
	layer_inputs(b, false);
	streams_begin(b, false);
}

static void table_gradient(struct builder *b, double table)
{
	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_embedding", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   hidden_bytes(b)))
		need(b, FT_STREAM_TP);
	if (splits_by_dtensor(b)) { /* all of it, of which a rank takes its rows */
		put_memory(b, "embedding_fill", "copy", 2 * (double)b->plan->tp * table,
			   1);
		put_memory(b, "embedding_rows", "copy", 4 * table, 1);
	} else {
		bool sums_wide = b->autocast || is_one_graph(b);

		put_memory(b, "embedding_fill", "copy", (sums_wide ? 4 : 2) * table, 1);
	}
	/* ids are sorted first: 0.45 ms for 4096 tokens of 4096 features, seen */
	put_memory(b, "embedding_back", "embedding", 20 * hidden_bytes(b), 8);
	if (is_one_graph(b) && !b->autocast)
		put_memory(b, "embedding_cast", "cast", 6 * table, 1);
}

void embedding_backward(struct builder *b)
{
	double table = (double)(b->model->hidden_size *
				ft_model_vocab(b->model, b->plan->tp)) /
		       (double)b->plan->tp;
	bool was = of_weights(b, true);

	host(b, FT_HOST_ENDS_BACKWARD, 1);
	streams_begin(b, true);
	layer_inputs(b, true);
	if (!b->plan->lora.rank) /* else the table is frozen */
		table_gradient(b, table);
	of_weights(b, was);
}

/* Of the vocabulary, as the fullest rank of a tensor group has them. */
static int64_t head_rows(const struct builder *b)
{
	int64_t tp = b->plan->tp;

	return ceil_div(ft_model_vocab(b->model, tp), tp);
}

double head_logits(const struct builder *b)
{
	return (double)b->tokens * (double)head_rows(b);
}

/* Of the first of equal parts, which is the fullest; those of 1 are all. */
static int64_t part_tokens(const struct builder *b, int64_t i)
{
	int64_t n = b->rules->head_chunks, left = b->tokens % n;

	return b->tokens / n + (i < left);
}

double part_logits(const struct builder *b)
{
	return (double)part_tokens(b, 0) * (double)head_rows(b);
}

/* Head and loss in parts of the micro-batch; the graph has what is alike one behind the other. */
static void in_parts(struct builder *b, void (*part)(struct builder *b))
{
	int64_t all = b->tokens;

	for (int64_t i = 0; i < b->rules->head_chunks; i++) {
		int64_t tokens = part_tokens(b, i);

		b->tokens = tokens;
		if (tokens > 0)
			part(b);
		b->tokens = all;
	}
}

/* Bytes per logit of a cross-entropy, and of copies around it. Eager: a softmax in fp32 reads and
 * writes 8, its backward 12; a cast to fp32 (6); backward a gradient of zeros (4), and a cast (6).
 *
 * DTensor's loss over a split vocabulary is operations one by one, in blocks that are
 * compiled, too: maximum, difference, exponential, sum and difference; then zeros,
 * exponential, sum and product. Each reads and writes fp32; those that spread a row's
 * number over it move 0.8 of the bytes a second that a copy does, and count 1.25 times; the
 * cast (6) is of rows that do not lie together. Source:
 * recordings of tensor parallelism on two H100 (measurements/traces/), of 8B and 70B.
 *
 * nanotron's, by the same rules: maximum, difference, exponential, sum and quotient; backward one product,
 * whatever the tensor group (its tensor_parallel/functional.py).
 *
 * XLA reads the logits for their maximum and for the sum (4), and backward writes the gradient in fp32 (6) and casts it by
 * itself (6): 4.0 ps a logit in all, in twelve recorded steps of an H200 (measurements/probes/h200-2026-11-29-jax-two-unseen).
 *
 * A plain loss is log_softmax and nll_loss on 16-bit logits: it reads and writes 4, and backward 2 of zeros and 6. */
struct loss {
	struct {
		double bytes; /* a logit */
		const char *curve;
	} forward, backward, cast, cast_back;
	int launches;
};

static struct loss loss_of(const struct builder *b)
{
	static const char whole[] = "cross_entropy";

	if (b->rules->loss_in_operations)
		return (struct loss){ { 36, "copy" },
				      { 10, "copy" },
				      { 6, "cast_widen" },
				      { 6, "cast" },
				      5 };
	if (b->rules->plain_loss)
		return (struct loss){ { 4, whole }, { 8, whole }, .launches = 3 };
	if (splits_by_dtensor(b))
		return (struct loss){ { 36, "copy" },
				      { 34, "copy" },
				      { 6, "cast_rows" },
				      { 6, "cast" },
				      6 };
	if (b->rules->one_program)
		return (struct loss){ { 4, "copy" },
				      { 6, "copy" },
				      .cast_back = { 6, "cast" },
				      .launches = 2 };
	if (b->rules->fused_loss && b->rules->fusion == FT_FUSION_MODULES)
		return (struct loss){ { 4, whole }, { 8, whole }, .launches = 3 };
	if (b->rules->fused_loss)
		return (struct loss){ { 2, whole }, { 4, whole }, .launches = 2 };
	if (b->rules->loss_in_place) /* one kernel each way, on fp32 */
		return (struct loss){ { 4, whole },
				      { 8, whole },
				      { 6, "cast_widen" },
				      { 6, "cast" },
				      3 };
	if (b->rules->fusion != FT_FUSION_KERNELS)
		return (struct loss){ { 8, whole },
				      { 12, "cross_entropy_back" },
				      { 6, "cast_widen" },
				      { 10, "cast" },
				      3 };
	return (struct loss){ { 26, whole }, { 14, whole }, .launches = 10 };
}

/* What autograd keeps of it for its backward: a log-softmax, in fp32 where the logits were cast, and a tanh on the logits. */
static double loss_kept_bytes(const struct builder *b)
{
	double width = loss_of(b).cast.bytes > 0 ? 4 : 2;
	bool capped = b->model->logit_cap && !b->rules->fused_loss;

	return (width * (b->rules->plain_loss ? (double)b->plan->tp : 1) +
		(capped ? 2 : 0)) *
	       head_logits(b);
}

/* Of how many ranks' logits a rank computes the loss. */
static double loss_shares(const struct builder *b)
{
	return b->rules->plain_loss ? (double)b->plan->tp : 1;
}

/* A trainer's own: losses of the same logits by a cast to fp32 and a softmax, behind each micro-batch. */
static void put_metrics(struct builder *b)
{
	for (int64_t i = 0; i < b->rules->metrics; i++) {
		put_memory(b, "metric_cast", "cast", 6 * head_logits(b), 1);
		put_rows(b, "metric_loss", "cross_entropy", 8 * head_logits(b), 2,
			 2 * (double)head_rows(b));
	}
}

/* A tanh on the logits; a compiled loss does it on the way. */
static void logit_cap(struct builder *b, bool backward)
{
	bool compiled = b->rules->fusion == FT_FUSION_COMPILED;
	bool eager = by_operation(b) || compiled;

	if (b->model->logit_cap && !(compiled && b->rules->fused_loss))
		put_memory(b, backward ? "logit_cap_back" : "logit_cap", "default",
			   (backward && !eager ? 14 : 12) * head_logits(b), 3);
}

/* Times a number, each way. */
static void logit_scale(struct builder *b, bool backward)
{
	if (b->model->scaled_logits && b->rules->model_classes)
		put_memory(b, backward ? "logit_scale_back" : "logit_scale", "mul",
			   4 * head_logits(b), 1);
}

/* The output head stays in 16 bit when the blocks run in 8 or 4. */
static void head_product(struct builder *b, enum ft_layout layout, int64_t rows)
{
	bool narrow = ft_dtype_bytes(b->plan->precision) < 2;

	put_product(b,
		    &(struct ft_work){ .kind = FT_GEMM,
				       .name = "head",
				       .dtype = narrow ? FT_BF16 : b->plan->precision,
				       .gemm.layout = layout,
				       .gemm.m = b->tokens,
				       .gemm.n = rows,
				       .gemm.k = b->model->hidden_size,
				       .gemm.groups = 1 });
}

/* The logits as a pass returns them: a fused loss has them in a register, and writes them alone. */
static void return_logits(struct builder *b)
{
	bool fused = b->rules->fused_loss;

	if (b->rules->wide_outputs)
		put_memory(b, "outputs_cast", fused ? "copy" : "cast_widen",
			   (fused ? 4 : 6) * head_logits(b), 1);
	if (copies_outputs(b))
		put_memory(b, "outputs_copy", "copy",
			   (b->rules->wide_outputs ? 8 : 4) * head_logits(b), 1);
}

static void part_forward(struct builder *b)
{
	struct loss loss = loss_of(b);
	int64_t rows = head_rows(b);

	if (b->plan->sequence_parallel &&
	    put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   hidden_bytes(b)))
		need(b, FT_STREAM_TP);
	b->record_next = FT_EVENT_HEAD;
	head_product(b, FT_FORWARD, rows);
	logit_scale(b, false);
	logit_cap(b, false);
	if (loss.cast.bytes > 0)
		put_memory(b, "loss_cast", loss.cast.curve,
			   loss.cast.bytes * head_logits(b), 1);
	return_logits(b);
	if (b->rules->plain_loss &&
	    put_collective(b, "tp_logits", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   2 * loss_shares(b) * head_logits(b)))
		need(b, FT_STREAM_TP);
	put_rows(b, "loss", loss.forward.curve,
		 loss.forward.bytes * loss_shares(b) * head_logits(b), loss.launches,
		 2 * loss_shares(b) * (double)rows);
	for (int i = 0; i < 3 && !b->rules->plain_loss;
	     i++) /* maximum, sum of exponentials, target */
		if (put_collective(b, "tp_loss", FT_STREAM_TP, FT_ALL_REDUCE,
				   FT_GROUP_TP, 4 * (double)b->tokens))
			need(b, FT_STREAM_TP);
}

void head_forward(struct builder *b)
{
	host(b, FT_HOST_ENDS_FORWARD, 1);
	if (b->plan->tp > 1)
		host(b, FT_HOST_TENSOR_FORWARD, 4);
	streams_end(b, false);
	put_bare_norms(b, "final_norm", (double)(slice(b) * b->model->hidden_size),
		       2 * (double)b->model->hidden_size, 1, false);
	in_parts(b, part_forward);
	offload_loss(b, loss_kept_bytes(b));
}

/* Megatron keeps a slice of the head's input and gathers it again beside dgrad, as it does
 * before the blocks' products. */
static void gather_input_again(struct builder *b)
{
	if (b->rules->tensor_parallel != FT_TP_MEGATRON ||
	    !b->plan->sequence_parallel || b->plan->lora.rank)
		return;
	of_weights(b, true);
	if (put_collective(b, "tp_all_gather", FT_STREAM_TP, FT_ALL_GATHER, FT_GROUP_TP,
			   hidden_bytes(b)) &&
	    b->part == PART_WEIGHTS)
		need(b, FT_STREAM_TP); /* no dgrad runs beside it */
	of_weights(b, false);
}

static void part_backward(struct builder *b)
{
	struct loss loss = loss_of(b);
	int64_t rows = head_rows(b);

	/* the compiled backward is given a gradient of all that was returned; nobody computed that of the logits */
	if (b->rules->wide_outputs && b->rules->fused_loss)
		put_memory(b, "outputs_zero", "copy", 4 * head_logits(b), 1);
	put_rows(b, "loss_back", loss.backward.curve,
		 loss.backward.bytes * loss_shares(b) * head_logits(b), loss.launches,
		 2 * loss_shares(b) * (double)rows);
	if (loss.cast_back.bytes > 0)
		put_memory(b, "loss_cast_back", loss.cast_back.curve,
			   loss.cast_back.bytes * head_logits(b), 2);
	logit_cap(b, true);
	logit_scale(b, true);
	put_gradient_sum(b, (double)(slice(b) * b->model->hidden_size));
	gather_input_again(b);
	head_product(b, FT_DGRAD, rows);
	tensor_sum(b, "tp_reduce", hidden_bytes(b));
	if (b->rules->tensor_parallel == FT_TP_MEGATRON && b->part == PART_WHOLE)
		b->needs[FT_STREAM_TP] = false;
	head_product(b, FT_WGRAD, rows);
	if (b->plan->tp > 1 && b->part != PART_WEIGHTS)
		need(b, FT_STREAM_TP);
}

/* Each part of the micro-batch but the first adds its gradient of the head to theirs. */
static void add_parts(struct builder *b)
{
	double weights = (double)head_rows(b) * (double)b->model->hidden_size;

	if (b->rules->gradient_fusion || b->plan->lora.rank)
		return;
	of_weights(b, true);
	for (int64_t i = 1; i < b->rules->head_chunks; i++)
		put_memory(b, "head_add", "add", 6 * weights, 1);
	of_weights(b, false);
}

void head_backward(struct builder *b)
{
	host(b, FT_HOST_ENDS_BACKWARD, 1);
	if (b->plan->tp > 1)
		host(b, FT_HOST_TENSOR_BACKWARD, 4);
	if (b->part != PART_WEIGHTS)
		fetch_loss(b, loss_kept_bytes(b));
	in_parts(b, part_backward);
	add_parts(b);
	put_bare_norms(b, "final_norm_back", (double)(slice(b) * b->model->hidden_size),
		       0, 1, true);
	streams_end(b, true);
	if (b->part != PART_WEIGHTS)
		put_metrics(b);
}
