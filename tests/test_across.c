/*
 * tests/test_across.c - sim/across.c against the equations of its header, with constants and groups
 * that are drawn
 */
#include "tests/seeded.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "sim/across.h"

enum { DRAWS = 4000 };

static uint64_t seed = 9;

static void fill(double *x, size_t bytes, double value)
{
	for (size_t i = 0; i < bytes / sizeof(*x); i++)
		x[i] = value * (0.5 + draw());
}
#define FILL(x, value) fill((double *)&(x), sizeof(x), value)

static struct ft_ccl_tuning any_library(void)
{
	struct ft_ccl_tuning t = { .channels = 1 + pick(16) };

	FILL(t.ring.base_s, 5e-6);
	FILL(t.ring.step_s, 3e-6);
	FILL(t.ring.efficiency_frac, 0.8);
	FILL(t.ring.ll_most_bytes_per_s, 80e9);
	FILL(t.ring.ll128_channel_bytes_per_s, 10e9);
	FILL(t.tree.base_s, 5e-6);
	FILL(t.tree.hop_s, 2e-6);
	FILL(t.tree.hop_net_s, 8e-6);
	FILL(t.tree.wait_s, 2e-6);
	FILL(t.tree.efficiency_frac, 0.8);
	FILL(t.tree.channel_bytes_per_s, 10e9);
	FILL(t.tree.ll128_channel_bytes_per_s, 8e9);
	FILL(t.tree.lag, 0.7);
	FILL(t.nvls_tree, 4e-6);
	FILL(t.nvls_tree.channel_bytes_per_s, 30e9);
	FILL(t.nvls_tree.efficiency_frac, 0.8);
	FILL(t.nvls_tree.bus_gain, 1.5);
	FILL(t.sharp, 4e-6);
	FILL(t.pat, 4e-6);
	FILL(t.pat.overlap, 2);
	FILL(t.pat.share_frac, 0.6);
	FILL(t.pairs, 4e-6);
	FILL(t.pairs.nic_share_frac, 0.8);
	FILL(t.pairs.port_share_frac, 0.7);
	FILL(t.pipeline, 4e-6);
	if (pick(3) == 0) /* no such limits */
		memset(t.ring.ll_most_bytes_per_s, 0,
		       sizeof(t.ring.ll_most_bytes_per_s));
	if (pick(3) == 0)
		t.ring.ll128_channel_bytes_per_s = 0;
	return t;
}

static struct group any_group(const struct ft_ccl_tuning *t)
{
	struct group g = { .tuning = t, .domains = 2 + pick(30) };

	g.per_domain = 1 << pick(4);
	g.ranks = g.domains * g.per_domain;
	FILL(g.nic_bytes_per_s, 40e9);
	FILL(g.bus_bytes_per_s, 300e9);
	FILL(g.port_bytes_per_s, 400e9);
	g.extra_s = (draw() - 0.5) * 1e-5;
	g.kept_frac = draw();
	g.peer_s = draw() * 1e-5;
	g.stretch = 0.5 + draw();
	return g;
}

/* What the terms have in common. */
struct terms {
	const struct group *g;
	const struct ft_ccl_tuning *t;
	double n, k, each, S, bus; /* bus: B */
	int more;		   /* than two nodes */
};

/* A hop between nodes takes what the library says and what this network has beyond it. */
static double hop(const struct terms *x, double library_s)
{
	double s = library_s + x->g->extra_s;

	return s > 0 ? s : 0;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* 0 is no limit. */
static double limited(double rate, double limit)
{
	return limit > 0 ? least(rate, limit) : rate;
}

/* Of S, what the busiest link carries. */
static double factor(enum ft_collective op, double n)
{
	return op == FT_ALL_REDUCE ? 2 * (n - 1) / n :
	       op == FT_BROADCAST  ? 1 :
				     (n - 1) / n;
}

static void ring(const struct terms *x, enum ft_collective op)
{
	for (int p = 0; p < FT_PROTOCOLS; p++) {
		const struct ft_ccl_ring *r = &x->t->ring;
		double b = x->bus * r->efficiency_frac[p], want;
		double steps = (x->n - 1) * (op == FT_ALL_REDUCE ? 2 : 1);

		if (p == FT_LL)
			b = limited(b, r->ll_most_bytes_per_s[1 + x->more]);
		if (p == FT_LL128)
			b = limited(b, x->t->channels * r->ll128_channel_bytes_per_s);
		want = sqrt(
			pow(r->base_s[p] + steps * r->step_s[p] * x->g->stretch, 2) +
			pow(x->S * factor(op, x->n) / b, 2));
		if (op == FT_BROADCAST)
			want = x->t->pipeline.start_s +
			       (x->k - 1) * r->step_s[FT_SIMPLE] * x->g->stretch +
			       (x->n - x->k) * r->hop_s[FT_SIMPLE] + x->S / x->bus;
		near_frac(across_ring_s(x->g, (enum ft_protocol)p, op, x->S), want,
			  1e-9);
	}
}

static void tree(const struct terms *x)
{
	int size = 0;

	while (size < FT_CCL_SIZES - 1 && 64 * pow(2, size + 1) <= x->S)
		size++;
	for (int p = 0; p < FT_PROTOCOLS; p++) {
		const struct ft_ccl_tree *t = &x->t->tree;
		double channel = p == FT_LL128 ? t->ll128_channel_bytes_per_s[x->more] :
						 t->channel_bytes_per_s[x->more];
		double b = limited(x->bus * t->efficiency_frac[p],
				   x->t->channels * channel);
		double inside = (x->each - 1) * (t->hop_s[p] + t->wait_s[0]);
		double across = log2(x->k) * hop(x, t->hop_net_s[p] + t->wait_s[1]);

		near_frac(across_tree_s(x->g, (enum ft_protocol)p, FT_ALL_REDUCE, x->S),
			  t->base_s[p] + 2 * (inside + across) +
				  2 * x->S / (b * t->lag[p][size]),
			  1e-9);
	}
}

static void nvls_tree(const struct terms *x)
{
	double nics = x->each * x->g->nic_bytes_per_s;
	double bus = x->t->nvls_tree.bus_gain * x->g->bus_bytes_per_s;
	double b = limited(x->t->nvls_tree.efficiency_frac * least(nics, bus),
			   x->each * x->t->nvls_tree.channel_bytes_per_s[x->more]);

	near_frac(across_nvls_tree_s(x->g, FT_SIMPLE, FT_ALL_REDUCE, x->S),
		  x->t->nvls_tree.hop_s +
			  2 * log2(x->k) * hop(x, x->t->nvls_tree.hop_net_s) +
			  2 * x->S / b,
		  1e-9);
}

static void sharp(const struct terms *x, enum ft_collective op)
{
	double L = x->t->sharp.start_s + 2 * (x->each - 1) * x->t->sharp.arity_s +
		   hop(x, x->t->sharp.hop_net_s);
	double inside = x->S * factor(op, x->each) / x->g->bus_bytes_per_s;
	double net = x->S / (x->each * x->g->nic_bytes_per_s), want;

	L += x->each > 1 ? 2 * x->t->sharp.hop_s : 0;
	inside = x->each > 1 ? inside : 0;
	if (op == FT_ALL_REDUCE)
		want = L + most(net, inside);
	else
		want = sqrt(pow(L, 2) +
			    pow(most(net * (x->n - x->each) / x->n, inside), 2));
	near_frac(across_sharp_s(x->g, FT_SIMPLE, op, x->S), want, 1e-9);
}

static void pat(const struct terms *x)
{
	near_frac(across_pat_s(x->g, FT_SIMPLE, FT_ALL_GATHER, x->S),
		  x->t->pat.base_s +
			  log2(x->k) * hop(x, x->t->pat.hop_net_s) / x->t->pat.overlap +
			  x->t->pat.rank_s * x->n +
			  x->S * (x->n - 1) / x->n / (x->t->pat.share_frac * x->bus),
		  1e-9);
}

/* What tokens already have need not travel; latency beyond the library's is met once. */
static void direct(const struct terms *x)
{
	double net = x->S * (x->n - x->each) / x->n * (1 - x->g->kept_frac);
	double inside = x->S * (x->each - 1) / x->n;
	double start = (x->k - 1) * x->t->pairs.peer_s + x->g->extra_s;

	net /= x->t->pairs.nic_share_frac * x->g->nic_bytes_per_s;
	inside /= x->t->pairs.port_share_frac * x->g->port_bytes_per_s;
	near_frac(across_direct_s(x->g, FT_SIMPLE, FT_ALL_TO_ALL, x->S),
		  x->t->pairs.start_s + most(0, start) +
			  (x->n - x->each) * x->g->peer_s + most(net, inside),
		  1e-9);
	near_frac(across_direct_s(x->g, FT_SIMPLE, FT_SENDRECV, x->S),
		  x->t->pipeline.start_s + hop(x, x->t->pipeline.hop_s) +
			  x->S / x->g->nic_bytes_per_s,
		  1e-9);
}

static void times_are_those_of_the_equations(void **state)
{
	static const enum ft_collective ops[] = { FT_ALL_REDUCE, FT_ALL_GATHER,
						  FT_REDUCE_SCATTER, FT_BROADCAST };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_ccl_tuning t = any_library();
		struct group g = any_group(&t);
		struct terms x = { .g = &g,
				   .t = &t,
				   .n = g.ranks,
				   .k = g.domains,
				   .each = g.per_domain };

		x.S = pow(2, 4 + 32 * draw());
		x.bus = least(g.per_domain * g.nic_bytes_per_s, g.bus_bytes_per_s);
		x.more = g.domains > 2;
		for (int op = 0; op < 4; op++)
			ring(&x, ops[op]);
		for (int op = 0; op < 3; op++)
			sharp(&x, ops[op]);
		tree(&x);
		nvls_tree(&x);
		pat(&x);
		direct(&x);
	}
}

static double inside_s(const struct ft_cluster *c, enum ft_collective op, double bytes)
{
	struct ft_collective_call call = { .op = op,
					   .bytes = bytes,
					   .shape = { 8, 1 } };
	struct ft_links links = links_of(c);
	struct ft_collective_result in;
	struct ft_error err;

	ok_or_say(ft_collective_inside(c->gpu, &links, NULL, &call, &in, &err), err);
	return in.duration.time_s;
}

/* Calls inside, and one of one rank of each domain; as far as chunks are full they overlap. */
static void three_calls_overlap_by_chunks(void **state)
{
	static const char yaml[] = "{gpu: h100-sxm, gpus: 64}";
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", yaml, strlen(yaml), &err);
	struct ft_cluster *c;

	(void)state;
	ok_or_say(n, err);
	c = ft_cluster_load(n, &err);
	ok_or_say(c, err);
	for (int i = 0; i < 60; i++) {
		struct ft_ccl_tuning t = any_library();
		struct group g = any_group(&t), rail;
		enum ft_collective op =
			(enum ft_collective[]){ FT_ALL_REDUCE, FT_ALL_GATHER,
						FT_REDUCE_SCATTER }[i % 3];
		double S = pow(2, 10 + 24 * draw()), inside = 0, net, o;

		t.hierarchical.overlap_frac = draw();
		t.hierarchical.chunk_bytes = 1 << (16 + pick(8));
		g.cluster = c, g.per_domain = 8, g.ranks = 8 * g.domains;
		if (op != FT_ALL_GATHER)
			inside += inside_s(c, FT_REDUCE_SCATTER, S);
		if (op != FT_REDUCE_SCATTER)
			inside += inside_s(c, FT_ALL_GATHER, S);
		rail = g;
		rail.ranks = g.domains, rail.per_domain = 1;
		rail.bus_bytes_per_s = INFINITY;
		net = across_ring_s(&rail, FT_SIMPLE, op, S / 8);
		o = t.hierarchical.overlap_frac *
		    least(1, S / 8 / t.hierarchical.chunk_bytes);
		near_frac(across_hierarchical_s(&g, FT_SIMPLE, op, S),
			  most(inside, net) + (1 - o) * least(inside, net), 1e-9);
		g.cluster = NULL, g.per_domain = 1, g.ranks = g.domains;
		rail.ranks = g.domains;
		near_frac(across_hierarchical_s(&g, FT_SIMPLE, op, S),
			  across_ring_s(&rail, FT_SIMPLE, op, S), 1e-9);
	}
	ft_cluster_free(c);
	arena_release(&mem);
}

static void networks_overlap_by_the_shorter_one(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		double a = draw(), b = draw(), o = draw();

		near_frac(across_overlap_s(a, b, o),
			  a > b ? a + (1 - o) * b : b + (1 - o) * a, 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_those_of_the_equations),
		cmocka_unit_test(three_calls_overlap_by_chunks),
		cmocka_unit_test(networks_overlap_by_the_shorter_one),
	};

	return cmocka_run_group_tests_name("across", tests, NULL, NULL);
}
