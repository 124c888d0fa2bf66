/*
 * traces/streams.c - a residual of several streams
 *
 * A half of a layer is four kernels each way: the product that makes weights of all n h numbers of a token, sums of rows and columns of
 * its n x n weights, the sum of the streams, and their mixture with the half's output. By what they read and write the sum takes n h
 * + h numbers, backward 2 n h + h; the mixture 2 n h + h, backward 3 n h + 2 h. Backward three gradients of n h become one.
 *
 * Measured, as bytes that a copy moves in their time: fused kernels (layout.fused_streams) by Transformer Engine's on a B200
 * (4,096 to 32,768 tokens of 4,096 to 8,192 numbers: its pull request 2790), the product's by Megatron Core's on a GB200, too (32,768 tokens
 * of 7,168: its pull request 3828). What they read and write agrees with the times but for the products. Without them what torch.compile
 * makes of the same operations, on an H200 (measurements/probes/h200-2026-12-01-streams-unseen): all is cast to fp32, a mixture is a product of
 * 4 x 4 for each token, which takes six times what it moves (as in 3828 on a GB200), and 20 sums of rows and of columns are 41 kernels and
 * backward 118, of a microsecond each at least.
 *
 * Kept of each half: the streams (2 n h, where one stream has 2 h), their sum (2 h), which the norm reads, and the half's output (2 h).
 * Where `mhc` runs again only that output is kept, and of a stage's chunk the streams that came in; in front of its backward those of all its
 * layers are made at once, so that the fullest moment is less for what other micro-batches keep alone. Without kernels of their own each half
 * keeps all streams in fp32, too, which the product of weights reads, and which do not go with `mhc`. Source: Megatron Core's
 * hyper_connection.py, tensor_parallel/random.py and transformer_block.py (read 2026-12-01; mhc_recompute_layer_num, smaller blocks, has no key).
 */
#include "traces/streams.h"

#include "traces/memory.h"

bool has_streams(const struct builder *b)
{
	return b->model->streams > 1;
}

/* Times as those of a copy: of all streams, forward and back; of sums of rows and columns the kernels, and bytes of each a number of the n x n. */
struct stream_kernels {
	double weights[2], sum[2], mix[2], square[2];
	int squares[2];
};

static const struct stream_kernels fused = {
	.weights = { 1.6, 6 },
	.sum = { 1.25, 2.2 },
	.mix = { 2.2, 3.9 },
	.square = { 400, 550 },
	.squares = { 1, 1 },
};
static const struct stream_kernels compiled = {
	.weights = { 7.5, 12.5 },
	.sum = { 1.3, 2.6 },
	.mix = { 13.6, 19.9 },
	.square = { 8, 8 },
	.squares = { 41, 118 },
};

/* What a copy of an H100 or H200 moves in the shortest time that a kernel takes, a microsecond (the same probe). */
enum { SHORTEST_BYTES = 4200000 };

static const struct stream_kernels *kernels_of(const struct builder *b)
{
	return b->rules->fused_streams ? &fused : &compiled;
}

/* Bytes of all streams of so many tokens in 16 bit. */
static double all_of(const struct builder *b, int64_t tokens)
{
	return 2 * (double)(tokens * b->model->hidden_size * b->model->streams);
}

static void put_weights(struct builder *b, int64_t tokens, bool backward)
{
	put_memory(b, backward ? "streams_weights_back" : "streams_weights", "copy",
		   kernels_of(b)->weights[backward] * all_of(b, tokens),
		   backward ? 3 : 2);
}

/* Sums of rows and columns of the n x n weights by which the streams are mixed: the last sum has none. */
static void put_mixing(struct builder *b, int64_t tokens, bool backward)
{
	const struct stream_kernels *k = kernels_of(b);
	double square = (double)(tokens * b->model->streams * b->model->streams);
	int n = k->squares[backward];

	put_memory(b, backward ? "streams_square_back" : "streams_square", "copy",
		   n * k->square[backward] * square + (n - 1) * (double)SHORTEST_BYTES,
		   n);
}

static void put_sum(struct builder *b, int64_t tokens, bool backward)
{
	put_memory(b, backward ? "streams_sum_back" : "streams_sum", "copy",
		   kernels_of(b)->sum[backward] * all_of(b, tokens), 1);
}

void streams_in(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (!has_streams(b))
		return;
	if (!backward) {
		put_weights(b, s->part, false);
		put_mixing(b, s->part, false);
		put_sum(b, s->part, false);
		return;
	}
	put_sum(b, s->part, true);
	put_mixing(b, s->part, true);
	put_weights(b, s->part, true);
	put_memory(b, "streams_gradient", "add", 4 * all_of(b, s->part), 1);
}

void streams_out(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (has_streams(b))
		put_memory(b, backward ? "streams_mix_back" : "streams_mix", "copy",
			   kernels_of(b)->mix[backward] * all_of(b, s->part), 1);
}

void streams_again(struct builder *b, const struct layer_sizes *s)
{
	for (int half = 0; half < 2 && has_streams(b); half++) {
		put_sum(b, s->part, false);
		streams_out(b, s, false);
	}
}

void streams_end(struct builder *b, bool backward)
{
	if (!has_streams(b))
		return;
	if (backward)
		put_sum(b, b->tokens, true);
	put_weights(b, b->tokens, backward);
	if (!backward)
		put_sum(b, b->tokens, false);
}

void streams_begin(struct builder *b, bool backward)
{
	if (has_streams(b))
		put_memory(b, backward ? "streams_join" : "streams_copy", "copy",
			   all_of(b, b->tokens) * (1 + 1 / (double)b->model->streams),
			   1);
}

double streams_products(const struct builder *b)
{
	double n = (double)b->model->streams;

	return has_streams(b) ? 2 * n * (n + 2) * n * (double)b->model->hidden_size : 0;
}

/* Without kernels of their own the product that makes weights reads all streams in fp32, a copy that it keeps whatever runs
 * again; a compiler casts them anew. */
static bool keeps_wide(const struct builder *b)
{
	return !b->rules->fused_streams && b->rules->fusion != FT_FUSION_COMPILED;
}

/* Of so many numbers a token of each half, in 16 bit. */
static double halves_of(const struct layer_sizes *s, double numbers)
{
	return (ft_layer_has_mlp(s->l) ? 2 : 1) * 2 * (double)(s->h * s->part) *
	       numbers;
}

double streams_rebuilt(const struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	bool again = layer_recompute(b, layer) == FT_RECOMPUTE_SELECTIVE &&
		     recomputed_modules(b) & FT_MODULE_STREAMS;

	return has_streams(b) && again && !b->offload[layer] ?
		       halves_of(&s, (double)b->model->streams + 1) :
		       0;
}

/* None where backward passes are cut, which no framework does beside. */
int64_t streams_rebuilt_in(const struct builder *b, int64_t begin, int64_t end)
{
	int64_t n = 0;

	for (int64_t l = begin; l < end; l++)
		n += streams_rebuilt(b, l) > 0;
	return plan_splits(b->plan) ? 0 : n;
}

void streams_bytes(struct builder *b, int64_t layer, int64_t begins, bool backward)
{
	struct layer_sizes s = sizes_of(b, layer);
	double in = begins ? all_of(b, s.part) : 0;
	double made = (double)begins * halves_of(&s, (double)b->model->streams + 1);
	double all = in;

	if (b->part != PART_WHOLE || plan_splits(b->plan))
		return;
	if (backward) /* the layer's own are counted by its backward */
		all = made - in - streams_rebuilt(b, layer);
	takes(b, FT_MEMORY_ACTIVATIONS, all, all);
}

double streams_kept(const struct builder *b, const struct layer_sizes *s, unsigned set)
{
	double n = (double)b->model->streams, kept = 0;

	if (!has_streams(b))
		return 0;
	if (!(set & FT_MODULE_STREAMS))
		kept = n + 1;
	if (keeps_wide(b))
		kept += 2 * n;
	return halves_of(s, kept) / (double)s->tokens;
}
