/*
 * traces/muon.c - the update of matrices by Muon: each is made orthogonal before it is added
 *
 * For a matrix X of n x m, n the smaller side, in bf16, each of five Newton-Schulz steps is
 *
 *	A = X X'             2 n n m FLOPs
 *	B = b A + c A A      2 n n n
 *	X = a X + B X        2 n n m
 *
 * Embedding, head, norms and biases are AdamW's, as everywhere (Jordan et al., 2024, and
 * torch.optim.Muon, which takes no others). What else it moves is PyTorch's, 2.11: the sums of
 * products begin as copies of what is added to, and a matrix of more rows than columns is turned,
 * so that its first copy and its last sum walk strides.
 *
 * Under FSDP2 gradients are DTensors, rows divided among R ranks, and each operation is theirs.
 * DTensor takes of each the way that it prices lowest (traces/dtensor.h), in three ways in all:
 *
 *	by rows:     X' is copied and gathered, and joined; A is gathered; X is gathered; each
 *	             product is the rank's rows of it
 *	by columns:  A is a sum over the ranks; B, too, with all of A A on each; B X is divided.
 *	             Of more rows than columns X' has them; else X is turned in the first step, by
 *	             four all-to-alls, and back behind the last
 *	both:        in each step X and X' are turned and A is a sum; B is summed and divided, X is
 *	             gathered, and of B X each rank has its rows
 *
 * None of these overlaps the products. Elsewhere ranks among which the optimizer is divided are
 * taken to be dealt whole matrices, the largest first, to and fro, and to send nothing but new
 * weights; all are taken to be as busy as the first, which has most. Replicas of ddp that share the
 * work (`layout.shared_muon`) are, too, and update.c has what they send.
 * Source: kernels of recorded updates, one H100 and two (measurements/probes/h100-2026-11-27-muon-unseen.jsonl.gz),
 * and what one rank of 2, 8, 64 and 256 calls (measurements/probes/h100-2026-11-27-one-of-many-unseen.jsonl.gz).
 * Limit: a tensor rank's part is made orthogonal by itself.
 */
#include "traces/muon.h"

#include <stdlib.h>

#include "base/whole.h"
#include "traces/block.h"
#include "traces/dtensor.h"
#include "traces/sharding.h"

enum way { BY_ROWS, BY_COLUMNS, BY_BOTH };

enum { NEWTON_SCHULZ_STEPS = 5 };

struct matrix {
	int64_t n, m; /* the smaller side, the larger; of a tensor rank's part */
	bool tall;    /* more rows than columns */
	int64_t ranks, alike;
	enum ft_group group;
	bool dtensor;
	enum way way; /* of a DTensor's steps */
};

/* FSDP1's flat tensors have no rows. */
static bool by_dtensor(const struct builder *b)
{
	return is_fsdp(b->plan) && b->rules->tensor_parallel == FT_TP_DTENSOR &&
	       !b->rules->flat_shards;
}

/* The cheapest first for X X', which is a sum where X has columns or is turned, then for B X. */
static enum way cheapest(const struct matrix *x, const struct ft_plan *p, int64_t tp)
{
	struct dtensor_mesh mesh = { x->ranks, x->ranks * tp > p->ranks_per_node };
	double bytes = 2 * (double)x->n * (double)x->m;
	double square = 2 * (double)x->n * (double)x->n;

	if (x->tall)
		return BY_COLUMNS;
	if (dtensor_gather_us(mesh, bytes) <= 2 * dtensor_turn_us(mesh, bytes))
		return BY_ROWS;
	return dtensor_sum_us(mesh, square) + 2 * dtensor_turn_us(mesh, bytes) <
			       dtensor_gather_us(mesh, square) +
				       dtensor_gather_us(mesh, bytes) ?
		       BY_COLUMNS :
		       BY_BOTH;
}

bool shares_matrices(const struct builder *b)
{
	return b->rules->shared_muon && b->plan->optimizer == FT_MUON &&
	       b->plan->sharding == FT_DDP && b->plan->dp * b->plan->cp > 1;
}

/* Ranks among which the optimizer is divided. */
static int64_t sharers(const struct builder *b, bool routed)
{
	const struct ft_plan *p = b->plan;

	if (shares_matrices(b) && !routed)
		return p->dp * p->cp;
	return !ft_plan_divides(p) ? 1 : routed ? ft_plan_expert_shard(p) : p->shard;
}

static struct matrix sized(const struct builder *b, const struct ft_matrix *of)
{
	const struct ft_plan *p = b->plan;
	bool routed = of->of == FT_OF_EXPERTS;
	int64_t tp = routed ? p->etp : p->tp;
	int64_t rows = ceil_div(of->outputs, of->split == FT_SPLIT_OUTPUTS ? tp : 1);
	int64_t columns = ceil_div(of->inputs, of->split == FT_SPLIT_INPUTS ? tp : 1);
	bool dtensor = by_dtensor(b);
	struct matrix x = { .n = rows < columns ? rows : columns,
			    .m = rows < columns ? columns : rows,
			    .tall = rows > columns,
			    .ranks = dtensor ? sharers(b, routed) : 1,
			    .alike = routed ? ceil_div(of->count, p->ep) : 1,
			    .group = routed ? FT_GROUP_EXPERT_SHARD : FT_GROUP_SHARD,
			    .dtensor = dtensor };

	x.way = cheapest(&x, p, tp);
	return x;
}

static double numbers(const struct matrix *x, int64_t rows, int64_t columns)
{
	return (double)rows * (double)columns * (double)x->alike;
}

static void product(struct builder *b, const struct matrix *x, int64_t m, int64_t n,
		    int64_t k)
{
	put_product(b, &(struct ft_work){ .kind = FT_GEMM,
					  .name = "newton_schulz",
					  .dtype = FT_BF16,
					  .gemm.m = m * x->alike,
					  .gemm.n = n,
					  .gemm.k = k,
					  .gemm.groups = x->alike });
}

static bool sends(const struct matrix *x)
{
	return x->dtensor && x->ranks > 1;
}

/* What DTensors send, of 16 bit, and the next operation waits for. */
static void redistribute(struct builder *b, const struct matrix *x,
			 enum ft_collective how, double numbers)
{
	static const char *const name[] = { [FT_ALL_GATHER] = "muon_gather",
					    [FT_ALL_REDUCE] = "muon_sum",
					    [FT_REDUCE_SCATTER] = "muon_scatter",
					    [FT_ALL_TO_ALL] = "muon_turn" };

	if (x->dtensor && put_collective(b, name[how], FT_STREAM_GATHER, how, x->group,
					 2 * numbers)) {
		need(b, FT_STREAM_GATHER);
		host(b, FT_HOST_REDISTRIBUTE, 1);
	}
}

static void copied(struct builder *b, double numbers, bool turned)
{
	put_memory(b, "muon_copy", turned ? "strided_turn" : "copy", 4 * numbers, 1);
}

/* An all-to-all, behind which the parts are laid side by side. */
static void turned(struct builder *b, const struct matrix *x, int times)
{
	double mine = numbers(x, x->n, ceil_div(x->m, x->ranks));

	for (int i = 0; i < times; i++) {
		redistribute(b, x, FT_ALL_TO_ALL, mine);
		put_memory(b, "muon_copy", "strided_join", 4 * mine, 1);
	}
}

static void by_rows(struct builder *b, const struct matrix *x)
{
	int64_t rows = ceil_div(x->n, x->ranks);
	double whole = numbers(x, x->n, x->m);

	if (sends(x))
		copied(b, numbers(x, rows, x->m), true);
	redistribute(b, x, FT_ALL_GATHER, whole);
	if (sends(x))
		put_memory(b, "muon_join", "concat", 4 * whole, 1);
	product(b, x, rows, x->n, x->m);
	redistribute(b, x, FT_ALL_GATHER, numbers(x, x->n, x->n));
	copied(b, numbers(x, rows, x->n), false);
	product(b, x, rows, x->n, x->n);
	redistribute(b, x, FT_ALL_GATHER, whole);
	copied(b, numbers(x, rows, x->m), false);
	product(b, x, rows, x->m, x->n);
}

/* A, and A A, of columns: a square is copied before it is summed. */
static void squared(struct builder *b, const struct matrix *x)
{
	double square = numbers(x, x->n, x->n);

	product(b, x, x->n, x->n, ceil_div(x->m, x->ranks));
	if (sends(x))
		copied(b, square, false);
	redistribute(b, x, FT_ALL_REDUCE, square);
	copied(b, square, false);
	product(b, x, x->n, x->n, x->n);
}

static void by_columns(struct builder *b, const struct matrix *x, bool first)
{
	int64_t columns = ceil_div(x->m, x->ranks);
	double square = numbers(x, x->n, x->n);
	bool turns = first && !x->tall;

	if (turns) {
		copied(b, numbers(x, x->n, columns), true);
		turned(b, x, 4);
	}
	squared(b, x);
	if (sends(x))
		copied(b, square, false);
	redistribute(b, x, FT_ALL_REDUCE, square);
	copied(b, numbers(x, x->n, columns), first && x->tall);
	product(b, x, x->n, columns, x->n);
}

static void by_both(struct builder *b, const struct matrix *x)
{
	int64_t rows = ceil_div(x->n, x->ranks);

	copied(b, numbers(x, rows, x->m), true);
	turned(b, x, 2);
	squared(b, x);
	redistribute(b, x, FT_REDUCE_SCATTER, numbers(x, x->n, x->n));
	redistribute(b, x, FT_ALL_GATHER, numbers(x, x->n, x->m));
	copied(b, numbers(x, rows, x->m), false);
	product(b, x, rows, x->m, x->n);
}

static void newton_schulz(struct builder *b, const struct matrix *x)
{
	enum way way = sends(x) ? x->way : x->tall ? BY_COLUMNS : BY_ROWS;

	for (int i = 0; i < NEWTON_SCHULZ_STEPS; i++)
		if (way == BY_ROWS)
			by_rows(b, x);
		else if (way == BY_COLUMNS)
			by_columns(b, x, !i);
		else
			by_both(b, x);
	if (way == BY_COLUMNS && !x->tall)
		turned(b, x, 1);
}

/* Momentum and Nesterov's step, 16 bit, its norm. */
static void before(struct builder *b, const struct matrix *x, double mine)
{
	double width = b->plan->master_weights ? 4 : 2;

	put_memory(b, "momentum", "add", 6 * width * mine, 2);
	if (width > 2)
		put_memory(b, "muon_cast", "cast", (width + 2) * mine, 1);
	put_memory(b, "muon_norm", "default", 2 * mine, 2);
	redistribute(b, x, FT_ALL_REDUCE, 1);
	put_memory(b, "muon_scale", "strided", 4 * mine, 2);
}

/* Weight decay, and the sum of an fp32 weight and a 16-bit update, whose kernel is not vectorized. */
static void behind(struct builder *b, const struct matrix *x, double mine)
{
	double width = b->plan->master_weights ? 4 : 2;

	put_memory(b, "weight_decay", "mul", 2 * width * mine, 1);
	put_memory(b, "muon_add", x->tall ? "strided_add_turned" : "strided_add",
		   (2 * width + 2) * mine, 1);
}

static void matrix_ops(struct builder *b, const struct matrix *x)
{
	double mine = numbers(x, ceil_div(x->tall ? x->m : x->n, x->ranks),
			      x->tall ? x->n : x->m);
	size_t from = b->seg->n_ops;

	b->of_shards = true;
	need(b, FT_STREAM_REDUCE);
	before(b, x, mine);
	newton_schulz(b, x);
	behind(b, x, mine);
	if (x->dtensor)
		host(b, FT_HOST_MATRIX, 1);
	b->of_shards = false;
	mark_optimizer(b, from);
}

/* q, k and v, or up and gate, are one where the layer's product is. */
static size_t joined(const struct builder *b, int64_t layer,
		     struct ft_matrix matrix[FT_LAYER_MATRICES])
{
	const struct ft_layer *l = &b->model->layer[layer];
	size_t n = ft_layer_matrices(b->model, layer, matrix), kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct ft_matrix *last = kept ? &matrix[kept - 1] : NULL;
		bool one = matrix[i].of == FT_OF_ATTENTION ?
				   ft_layer_attends(l) && !l->kv_lora_rank &&
					   joins_qkv(b) :
				   joins_gate_up(b);

		if (last && one && last->of == matrix[i].of &&
		    last->split == FT_SPLIT_OUTPUTS &&
		    matrix[i].split == FT_SPLIT_OUTPUTS)
			last->outputs += matrix[i].outputs;
		else
			matrix[kept++] = matrix[i];
	}
	return kept;
}

/* An adapter is two matrices, and all of a layer's are taken as one. */
static size_t of_adapters(const struct builder *b, int64_t layer,
			  struct ft_matrix *matrix)
{
	int64_t rank = b->plan->lora.rank;
	double all = ft_layer_lora_parameters(b->model, &b->plan->lora, layer);

	*matrix = (struct ft_matrix){ .split = FT_SPLIT_OUTPUTS,
				      .outputs = (int64_t)all / rank,
				      .inputs = rank,
				      .count = 1 };
	return all > 0;
}

double matrix_parameters(const struct builder *b, int64_t layer)
{
	struct ft_matrix matrix[FT_LAYER_MATRICES];
	size_t n = ft_layer_matrices(b->model, layer, matrix);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (matrix[i].of != FT_OF_EXPERTS) {
			struct matrix x = sized(b, &matrix[i]);

			sum += numbers(&x, x.n, x.m);
		}
	return sum;
}

/* Matrices of one size in a stage: the i-th of each layer like this one. */
struct lot {
	int64_t layer, i, count;
	struct matrix x;
	bool routed;
	double flop; /* of one */
};

static void add_to(struct lot *lot, size_t *n, struct lot more)
{
	for (size_t k = 0; k < *n; k++)
		if (lot[k].layer == more.layer && lot[k].i == more.i) {
			lot[k].count += more.count;
			return;
		}
	lot[(*n)++] = more;
}

/* layer: by its kind. */
static void add_matrix(const struct builder *b, struct lot *lot, size_t *n,
		       int64_t layer, int64_t i, const struct ft_matrix *of)
{
	struct matrix x = sized(b, of);
	double n2 = (double)x.n * (double)x.n;

	add_to(lot, n,
	       (struct lot){ .layer = layer,
			     .i = i,
			     .count = x.alike,
			     .x = x,
			     .routed = of->of == FT_OF_EXPERTS,
			     .flop = 2 * n2 * (double)x.m + n2 * (double)x.n });
}

static void add_layer(const struct builder *b, struct lot *lot, size_t *n, int64_t l)
{
	struct ft_matrix matrix[FT_LAYER_MATRICES];
	size_t has =
		b->plan->lora.rank ? of_adapters(b, l, matrix) : joined(b, l, matrix);

	for (size_t i = 0; i < has; i++)
		add_matrix(b, lot, n, b->kind[l], (int64_t)i, &matrix[i]);
}

/* Of a predicted token: a layer, and the projection in front of it, as one of a kind of its own. */
static void add_predicted(const struct builder *b, struct lot *lot, size_t *n)
{
	const struct ft_model *m = b->model;
	struct ft_matrix projection = { .of = FT_OF_ATTENTION,
					.split = FT_SPLIT_OUTPUTS,
					.outputs = m->hidden_size,
					.inputs = 2 * m->hidden_size,
					.count = 1 };

	for (int64_t i = 0; i < m->predicted; i++) {
		add_layer(b, lot, n, m->predicted_like);
		if (!b->plan->lora.rank)
			add_matrix(b, lot, n, m->n_layers, 0, &projection);
	}
}

static size_t lots_of(const struct stage *st, struct lot *lot)
{
	const struct builder *b = st->b;
	size_t n = 0;

	for (int64_t c = 0; c < b->plan->vpp; c++)
		for (int64_t l = st->begin[c]; l < st->end[c]; l++)
			add_layer(b, lot, &n, l);
	if (st->last)
		add_predicted(b, lot, &n);
	return n;
}

static int larger_first(const void *a, const void *b)
{
	const struct lot *x = a, *y = b;

	if (x->routed != y->routed)
		return x->routed ? 1 : -1;
	if (x->flop != y->flop)
		return x->flop < y->flop ? 1 : -1;
	return x->layer != y->layer ? (x->layer > y->layer) - (x->layer < y->layer) :
				      (x->i > y->i) - (x->i < y->i);
}

/* How many of the first rank's places, which are 0, 2 R - 1, 2 R, 4 R - 1 ..., lie below `to`. */
static int64_t first_ranks(int64_t to, int64_t ranks)
{
	return (to + 2 * ranks - 1) / (2 * ranks) + to / (2 * ranks);
}

/* Dealt, the largest first, to and fro, the first rank has most: as many of each lot as it gets. */
static void deal(const struct builder *b, struct lot *lot, size_t n)
{
	int64_t place[2] = {
		0, 0
	}; /* of what does not go round evenly; of routed experts apart */

	qsort(lot, n, sizeof(*lot), larger_first);
	for (size_t k = 0; k < n; k++) {
		int64_t ranks = lot[k].x.dtensor ? 1 : sharers(b, lot[k].routed);
		int64_t left = lot[k].count % ranks, *at = &place[lot[k].routed];

		lot[k].count = lot[k].count / ranks + first_ranks(*at + left, ranks) -
			       first_ranks(*at, ranks);
		*at += left;
	}
}

static void update(struct stage *st, const struct lot *lot, int64_t alike)
{
	struct builder *b = st->b;
	struct segment_key key = { .role = ROLE_MATRIX,
				   .kind = lot->layer * FT_LAYER_MATRICES + lot->i,
				   .variant = (unsigned)alike };
	struct matrix x = lot->x;

	x.alike = alike;
	if (!segment_fresh(st, key, "muon"))
		return;
	matrix_ops(b, &x);
	segment_done(st);
}

double muon_numbers(const struct builder *b, struct held of, bool shared)
{
	struct held once = { .dense = of.matrices, .experts = of.experts };

	if (b->plan->optimizer != FT_MUON)
		return 0;
	return shared ? held_share(b, once) : once.dense + once.experts;
}

void muon_updates(struct stage *st)
{
	const struct ft_plan *p = st->b->plan;
	struct lot *lot;
	size_t n;

	if (p->optimizer != FT_MUON)
		return;
	lot = ARENA_ARRAY(st->b->mem,
			  (size_t)(st->b->model->n_layers + 1) * FT_LAYER_MATRICES,
			  struct lot);
	n = lots_of(st, lot);
	deal(st->b, lot, n);
	for (size_t k = 0; k < n; k++) {
		for (int64_t i = 0; i < lot[k].count / lot[k].x.alike; i++)
			update(st, &lot[k], lot[k].x.alike);
		if (lot[k].count % lot[k].x.alike)
			update(st, &lot[k], lot[k].count % lot[k].x.alike);
	}
}
