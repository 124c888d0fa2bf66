/*
 * traces/layer.c - one transformer layer, forward and backward: its halves, its experts,
 * what runs again, and two micro-batches side by side
 */
#include <math.h>

#include "traces/autocast.h"
#include "traces/beside.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/chosen.h"
#include "traces/compressed.h"
#include "traces/indexed.h"
#include "traces/layer_input.h"
#include "traces/memory.h"
#include "traces/offload.h"
#include "traces/scan.h"
#include "traces/sharding.h"
#include "traces/sinks.h"
#include "traces/streams.h"

/* Attention, and the MLP up to where tokens leave for their experts. */
static void forward_begin(struct builder *b, const struct layer_sizes *s)
{
	attention_half(b, s);
	if (s->l->experts)
		experts_send(b, s->l);
	else if (ft_layer_has_mlp(s->l))
		mlp_half(b, s);
	b->graphed = b->plan->graphs == FT_GRAPHS_FULL;
}

static void forward_end(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->l->experts)
		experts_return(b, s->l);
	put_norm_behind_mlp(b, s, false);
	put_dropout(b, s, false);
	if (has_streams(b))
		streams_out(b, s, false);
	else
		put_element(b, s, "add", "add", r->add);
	if (s->beside)
		put_memory(b, "join", "add", 2 * (double)(s->h * s->part), 0);
	layer_input(b, s, false);
	layer_scaled(b, s);
	b->graphed = false;
}

static void forward_ops(struct builder *b, const struct layer_sizes *s)
{
	forward_begin(b, s);
	if (s->l->experts)
		experts_run(b, s->l);
	forward_end(b, s);
}

static bool graphs_attention(const struct builder *b)
{
	return b->plan->graphs >= FT_GRAPHS_PARTIAL;
}

/* A layer begins: what the host pays for it, and what a graph holds of it. */
static void begin_layer(struct builder *b, int64_t layer, bool backward)
{
	bool eager = !graphs_attention(b);

	host(b, backward ? FT_HOST_BLOCK_BACKWARD : FT_HOST_BLOCK_FORWARD, eager);
	if (b->plan->tp > 1 && eager)
		host(b, backward ? FT_HOST_TENSOR_BACKWARD : FT_HOST_TENSOR_FORWARD, 1);
	if (!eager ||
	    (b->plan->graphs == FT_GRAPHS_ROUTER && b->model->layer[layer].experts > 0))
		host(b, FT_HOST_GRAPH, 1);
	cast_gathered(b, layer, backward);
}

/* The part of a backward that comes later is a graph of its own. The gradients of norms are
 * there already, as one kernel makes both. */
static void begin_weights(struct builder *b, const struct layer_sizes *s)
{
	of_weights(b, true);
	host(b, FT_HOST_GRAPH, b->part == PART_WEIGHTS && graphs_attention(b));
	of_weights(b, false);
	for (int i = 0; i < ft_layer_norms(b->model, s->l); i++)
		put_gradient_sum(b, (double)(s->h * s->part));
	if (b->model->qk_norm) {
		put_gradient_sum(b, (double)(s->tokens * s->q));
		put_gradient_sum(b, (double)(s->tokens * own_k(s)));
	}
}

/* Hooks on what a layer saves that will run again, and on what it then makes, in a thread that is not Python's own:
 * what the host pays beyond the forward pass itself. What single modules in checkpoints cost was not measured. */
static void under_checkpoint(struct builder *b, int64_t layer, bool backward)
{
	static const enum ft_host rate[][2] = {
		[FT_RECOMPUTE_FULL] = { FT_HOST_CHECKPOINT_FORWARD,
					FT_HOST_CHECKPOINT_BACKWARD },
		[FT_RECOMPUTE_SELECTIVE] = { FT_HOST_SELECTIVE_FORWARD,
					     FT_HOST_SELECTIVE_BACKWARD },
	};
	enum ft_recompute how = layer_recompute(b, layer);
	bool chosen =
		how == FT_RECOMPUTE_SELECTIVE && recomputed_modules(b) & FT_MODULE_OPS;

	if ((how == FT_RECOMPUTE_FULL || chosen) && !graphs_attention(b))
		host(b, rate[how][backward], 1);
}

void layer_forward(struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);

	begin_layer(b, layer, false);
	under_checkpoint(b, layer, false);
	b->graphed = graphs_attention(b);
	forward_begin(b, &s);
	if (s.l->experts)
		experts_run(b, s.l);
	offload_await(b);
	forward_end(b, &s);
	scan_keeps(b, layer);
	offload_layer(b, layer);
}

/* The forward pass, as far as a backward reads it. */
static void needed_again(struct builder *b, const struct layer_sizes *s, bool stops)
{
	if (!stops) {
		forward_ops(b, s);
		return;
	}
	attention_half(b, s);
	if (s->l->experts)
		experts_again(b, s->l);
	else
		mlp_inside(b, s);
}

static void chosen_again(struct builder *b, const struct layer_sizes *s)
{
	chosen_begin(b, s);
	needed_again(b, s, chosen_stops(b, s));
	chosen_end(b);
}

static void activate(struct builder *b, const struct layer_sizes *s)
{
	if (s->l->experts)
		experts_activate(b, s->l);
	else
		put_activation(b, s, "activation", false);
}

static void mlp_again(struct builder *b, const struct layer_sizes *s, unsigned set)
{
	if (s->l->experts) {
		if (set & FT_MODULE_EXPERTS) {
			experts_send(b, s->l);
			experts_run(b, s->l);
			experts_return(b, s->l);
		} else if (set & FT_MODULE_ACTIVATION) {
			activate(b, s);
		}
		return;
	}
	if (!s->f)
		return;
	if (set & FT_MODULE_MLP) {
		mlp_half(b, s);
		return;
	}
	if (set & FT_MODULE_MLP_UP)
		up_products(b, s, FT_FORWARD);
	if (set & (FT_MODULE_ACTIVATION | FT_MODULE_MLP_DOWN))
		activate(b, s);
	if (set & FT_MODULE_MLP_DOWN && output_is_needed(b, s->l))
		put_gemm(b, "down", FT_FORWARD, s->tokens, s->h, s->f);
}

/* Of attention: what is made of latents, and its core. */
static void attention_again(struct builder *b, const struct layer_sizes *s,
			    unsigned set)
{
	if (s->l->compressed) { /* whose core does not run again */
		if (set & FT_MODULE_MLA_UP)
			compressed_up(b, s);
		return;
	}
	if (set & FT_MODULE_MLA_UP && s->l->kv_lora_rank) {
		latent_up(b, s);
		attention_inputs(b, s);
	}
	if (set & FT_MODULE_CORE_ATTENTION && !s->linear) {
		if (is_gathered(b, s->l)) /* indexers are a part of it */
			choose_tokens(b, s);
		attention_core(b, s, false);
	}
}

/* What selective recomputation runs again. */
static void selective_ops(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = norm_recipe(b);
	unsigned set = recomputed_modules(b);

	if (set & FT_MODULE_OPS)
		chosen_again(b, s);
	if (set & FT_MODULE_STREAMS)
		streams_again(b, s);
	attention_again(b, s, set);
	if (set & FT_MODULE_OUT_PROJECTION)
		put_gemm(b, "attention_out", FT_FORWARD, s->tokens, s->h, s->out);
	if (set & FT_MODULE_NORM) {
		if (!s->linear || !s->l->state_chunk)
			put_norm(b, s, "norm", r->norm);
		if (ft_layer_has_mlp(s->l) && has_streams(b)) /* adds nothing */
			put_norm(b, s, "norm", r->norm);
		else if (ft_layer_has_mlp(s->l))
			put_norm(b, s, "add_norm", r->add_norm);
		put_autocast(b, s, false);
	}
	mlp_again(b, s, set);
}

/* What recomputation runs again before a layer's backward. */
static void run_again(struct builder *b, const struct layer_sizes *s)
{
	int64_t layer = s->l - b->model->layer;
	enum ft_recompute how = layer_recompute(b, layer);

	under_checkpoint(b, layer, true);
	b->again_now = true;
	if (how == FT_RECOMPUTE_FULL) {
		begin_layer(b, layer, false);
		cast_weights(b, b->unit[layer]);
		needed_again(b, s, stops_inside_mlp(b, s));
		b->graphed = graphs_attention(b);
	} else if (how == FT_RECOMPUTE_SELECTIVE) {
		selective_ops(b, s);
	}
	b->again_now = false;
}

/* The MLP's backward up to where gradients of tokens leave for their experts. */
static void backward_begin(struct builder *b, const struct layer_sizes *s)
{
	layer_scaled(b, s);
	layer_input(b, s, true);
	if (!ft_layer_has_mlp(s->l))
		return;
	streams_out(b, s, true);
	put_dropout(b, s, true);
	put_norm_behind_mlp(b, s, true);
	if (!s->l->experts) {
		mlp_back(b, s);
		return;
	}
	b->graphed = b->plan->graphs == FT_GRAPHS_FULL;
	experts_send_back(b, s->l);
}

static void backward_end(struct builder *b, const struct layer_sizes *s)
{
	const struct recipe *r = recipe_of(b);

	if (s->l->experts)
		experts_return_back(b, s->l);
	b->graphed = graphs_attention(b);
	if (!s->beside && ft_layer_has_mlp(s->l)) {
		put_norm(b, s, "norm_back", norm_back_of(b, s, true));
		if (has_streams(b))
			streams_in(b, s, true);
		else
			put_element(b, s, "add_back", "add", r->add_back);
	}
	attention_back(b, s);
	bias_gradients(b, s);
	put_autocast(b, s, true);
	b->graphed = false;
}

/* A compiled block under DDP is cut where a bucket of its gradients is full, as backward makes
 * them, and the host runs each piece by itself: how many more than one. A stage of a pipeline is
 * not wrapped by DDP: its schedule reduces. A CUDA graph of the whole layer holds all pieces. */
static double cuts(const struct builder *b, size_t from)
{
	double bytes = 0, n = 0;

	if (!b->rules->cut_blocks || b->plan->sharding != FT_DDP || b->plan->pp > 1 ||
	    b->plan->graphs == FT_GRAPHS_FULL)
		return 0;
	for (size_t i = from; i < b->seg->n_ops; i++) {
		const struct ft_work *w = &b->g->work[b->seg->op[i].work];

		if (w->kind != FT_GEMM || w->gemm.layout != FT_WGRAD)
			continue;
		if (bytes >= b->rules->bucket_bytes) {
			bytes = 0;
			n++;
		}
		bytes += kept_gradient_width(b) * (double)w->gemm.n *
			 (double)w->gemm.k * fmax(1, (double)w->gemm.groups);
	}
	return n;
}

void layer_backward(struct builder *b, int64_t layer)
{
	struct layer_sizes s = sizes_of(b, layer);
	size_t from = b->seg->n_ops;

	begin_layer(b, layer, true);
	begin_weights(b, &s);
	b->graphed = graphs_attention(b);
	run_again(b, &s);
	scan_takes(b, layer);
	backward_begin(b, &s);
	if (s.l->experts)
		experts_run_back(b, s.l);
	backward_end(b, &s);
	scan_gradients(b, layer);
	host(b, FT_HOST_PIECE, cuts(b, from));
}

/* Tokens that are on their way are of this pass; what follows waits for them. */
static void of_pass(struct builder *b, bool backward)
{
	b->exchanged = backward ? FT_EVENT_EXCHANGED_BACK : FT_EVENT_EXCHANGED;
}

static void take_up(struct builder *b, bool backward, bool routed)
{
	of_pass(b, backward);
	if (routed && b->g->group[FT_GROUP_EP].size > 1)
		await_event(b, b->exchanged);
}

/* Megatron Core's schedule launches a pair in ten pieces; a partial graph holds three of them, attention and router, in the
 * forward, the backward and the gradients of weights (docs/findings.md); one of the router alone holds no whole piece. */
enum { PIECES = 10, PIECES_IN_PARTIAL_GRAPH = 3 };

static double pieces_launched(enum ft_graphs graphs)
{
	if (graphs == FT_GRAPHS_FULL)
		return 0;
	return graphs == FT_GRAPHS_PARTIAL ?
		       (double)(PIECES - PIECES_IN_PARTIAL_GRAPH) / PIECES :
		       1;
}

void layer_pair(struct builder *b, int64_t forward, int64_t backward)
{
	struct layer_sizes f = sizes_of(b, forward), k = sizes_of(b, backward);
	bool routed = f.l->experts > 0, routed_back = k.l->experts > 0;

	begin_layer(b, backward, true);
	begin_layer(b, forward, false);
	under_checkpoint(b, forward, false);
	host(b, FT_HOST_PAIR, pieces_launched(b->plan->graphs));
	if (routed_back && b->plan->graphs != FT_GRAPHS_FULL)
		host(b, FT_HOST_PAIR_EXPERT, (double)(k.l->experts / b->plan->ep));
	b->graphed = graphs_attention(b);
	run_again(b, &k);
	of_pass(b, true);
	backward_begin(b, &k);
	of_pass(b, false);
	b->graphed = graphs_attention(b);
	forward_begin(b, &f);
	take_up(b, true, routed_back);
	if (routed_back)
		experts_run_back(b, k.l);
	take_up(b, false, routed);
	if (routed)
		experts_run(b, f.l);
	take_up(b, true, routed_back);
	backward_end(b, &k);
	take_up(b, false, routed);
	offload_await(b);
	forward_end(b, &f);
	offload_layer(b, forward);
	b->exchanged = FT_EVENTS;
}
