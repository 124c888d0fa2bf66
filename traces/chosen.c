/*
 * traces/chosen.c - a layer in a checkpoint that keeps the outputs of chosen operations
 *
 * Torchtitan's choice: attention, where it is a kernel of its own; what a reduction scatters and what experts exchange; and
 * every second product, counted in the order in which the layer calls them, without those that have a bias, the router's and
 * those of adapters. All else runs again. Source: torchtitan/distributed/activation_checkpoint.py (read 2026-11-30).
 *
 *   bytes a token = 2 h, the input + 2 x the widths of the products kept + 2 out + 4 heads, attention's
 *
 * Autograd keeps all that it was told to. A compiler keeps what a backward reads: not the output of the MLP's last product
 * unless a norm stands behind it; and does not run again a product whose scattered sum is kept. On an H200 Llama's layers of five
 * sizes keep just so many, eager and compiled, in bf16 (measurements/probes/h200-2026-11-30-selective-unseen); other formats are
 * taken to be counted alike, and lists of 2026 may keep products with a bias.
 *
 * What runs again is the forward pass itself, which asks here before it puts a product (chosen_skips).
 */
#include <string.h>

#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/chosen.h"

static const char OUT[] = "attention_out";

enum { PRODUCTS = 8 };

struct chosen {
	const char *name;
	int64_t n, k;
	double part;		      /* of the rank's tokens */
	bool last, read, kept, asked; /* read: by a backward, though the last */
};

struct choice {
	struct chosen product[PRODUCTS];
	int n;
	bool skip_next;
};

static struct chosen *add(struct choice *c, const char *name, int64_t n, int64_t k,
			  bool biased)
{
	struct chosen *p = &c->product[c->n++];

	*p = (struct chosen){ .name = name, .n = n, .k = k, .part = 1 };
	if (biased)
		return p;
	p->kept = !c->skip_next;
	c->skip_next = !c->skip_next;
	return p;
}

static void add_attention(const struct builder *b, const struct layer_sizes *s,
			  struct choice *c)
{
	const struct ft_layer *l = s->l;
	bool biased = b->model->qkv_bias;

	if (l->kv_lora_rank) {
		int64_t up = s->heads *
			     (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);
		double part = (double)latent_tokens(b, s) / (double)s->tokens;

		if (l->q_lora_rank)
			add(c, "q_down", l->q_lora_rank, s->h, false)->part = part;
		add(c, "q_up", s->q, l->q_lora_rank ? l->q_lora_rank : s->h, false);
		add(c, "kv_down", l->kv_lora_rank + l->qk_rope_head_dim, s->h, false)
			->part = part;
		add(c, "kv_up", up, l->kv_lora_rank, false);
	} else if (joins_qkv(b)) {
		add(c, "qkv", s->q + s->gate + s->kv + s->gates, s->h, biased);
	} else {
		add(c, "q", s->q + s->gate, s->h, biased);
		if (own_k(s))
			add(c, "k", own_k(s), s->h, biased);
		if (s->kv > own_k(s))
			add(c, "v", s->kv - own_k(s), s->h, biased);
		if (s->gates)
			add(c, "attention_gate", s->gates, s->h, false);
	}
	add(c, OUT, s->h, s->out, b->model->out_bias);
}

static void add_mlp(const struct builder *b, const struct layer_sizes *s,
		    struct choice *c)
{
	bool gated = b->model->activation == FT_SWIGLU;
	bool biased = b->model->mlp_bias && !s->shared;
	struct chosen *down;

	if (gated && !joins_gate_up(b)) {
		add(c, s->shared ? "shared_up" : "gate", s->f, s->h, biased);
		add(c, s->shared ? "shared_up" : "up", s->f, s->h, biased);
	} else {
		add(c,
		    s->shared ? "shared_up" :
		    gated     ? "gate_up" :
				"up",
		    gated ? 2 * s->f : s->f, s->h, biased);
	}
	down = add(c, s->shared ? "shared_down" : "down", s->h, s->f, biased);
	down->last = true;
	down->read = output_is_needed(b, s->l);
}

/* The MLP that all tokens go through, which may be a shared expert, or none. */
static struct layer_sizes mlp_of(const struct builder *b, const struct layer_sizes *s)
{
	return s->l->experts ? shared_sizes(b, s->l) : *s;
}

static struct choice choice_of(const struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes mlp = mlp_of(b, s);
	struct choice c = { 0 };

	add_attention(b, s, &c);
	if (mlp.f)
		add_mlp(b, &mlp, &c);
	return c;
}

static bool scatters(const struct builder *b)
{
	return b->plan->tp > 1 && b->plan->sequence_parallel;
}

static bool compiles(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED;
}

/* Does a compiler leave it out: no backward reads it, or the sum over the ranks behind it is kept? */
static bool is_dead(const struct builder *b, const struct chosen *p)
{
	bool row = p->last || !strcmp(p->name, OUT);

	return compiles(b) && ((p->last && !p->read) || (row && scatters(b)));
}

bool chosen_stops(const struct builder *b, const struct layer_sizes *s)
{
	return compiles(b) ? may_stop_inside_mlp(b, s) : stops_inside_mlp(b, s);
}

static bool runs_again(const struct builder *b, const struct layer_sizes *s,
		       const struct chosen *p)
{
	return !p->kept && !is_dead(b, p) && !(p->last && chosen_stops(b, s));
}

static double scattered_kept(const struct builder *b, const struct layer_sizes *s)
{
	bool behind = !compiles(b) || output_is_needed(b, s->l);
	int sums = !s->beside + (ft_layer_has_mlp(s->l) && behind);

	return scatters(b) ?
		       2 * (double)s->h * (double)s->part / (double)s->tokens * sums :
		       0;
}

/* Copies of tokens as they came to their experts, and as these sent them back. */
static double exchanged_kept(const struct builder *b, const struct layer_sizes *s)
{
	double capacity = b->plan->capacity_factor > 0 ? b->plan->capacity_factor : 1;

	if (!s->l->experts || b->plan->ep == 1)
		return 0;
	return 4 * experts_width(b) * capacity * (double)experts_used(b, s->l) *
	       (double)ft_layer_expert_hidden(b->model, s->l) * (double)s->part /
	       (double)s->tokens;
}

double chosen_bytes(const struct builder *b, const struct layer_sizes *s)
{
	struct choice c = choice_of(b, s);
	double sum = (b->autocast ? 4 : 2) * (double)s->h * (double)s->part /
		     (double)s->tokens;

	for (int i = 0; i < c.n; i++)
		if (c.product[i].kept && !is_dead(b, &c.product[i]))
			sum += 2 * c.product[i].part * (double)c.product[i].n;
	if (!is_unfused(b))
		sum += 2 * (double)s->out + 4 * (double)s->heads;
	return sum + scattered_kept(b, s) + exchanged_kept(b, s);
}

double chosen_products(const struct builder *b, const struct layer_sizes *s)
{
	struct choice c = choice_of(b, s);
	double sum = 0;

	for (int i = 0; i < c.n; i++)
		if (runs_again(b, s, &c.product[i]))
			sum += c.product[i].part * (double)c.product[i].n *
			       (double)c.product[i].k;
	return sum;
}

void chosen_begin(struct builder *b, const struct layer_sizes *s)
{
	struct choice *c = ARENA_NEW(b->mem, struct choice);

	*c = choice_of(b, s);
	b->chosen = c;
}

/* Of products of one name the first that was not asked about. */
bool chosen_skips(struct builder *b, const char *name)
{
	struct choice *c = b->chosen;

	for (int i = 0; c && i < c->n; i++) {
		struct chosen *p = &c->product[i];

		if (p->asked || strcmp(p->name, name))
			continue;
		p->asked = true;
		return p->kept || is_dead(b, p);
	}
	return false;
}

void chosen_end(struct builder *b)
{
	b->chosen = NULL;
}
