/*
 * sim/inside.c - collectives inside one scale-up domain, from measured tables
 *
 * Where a table for (fabric, op, n) has rows they are followed, and carried to
 * sizes and n between them: sim/inside_table.c. An op without rows is made of
 * others: an all-reduce is a reduce-scatter and an all-gather.
 *
 * In a mesh each pair has a link of its own and a rank uses all of them at
 * once: busbw = (n-1) links. What the all-reduce of these n takes beyond that is overhead
 * of rings, as RCCL's among 5 to 7 that use one link each; without a table of n, what
 * n_full ranks take beyond it, which shrinks with the number of peers.
 *
 * In an irregular mesh (MI250) the group's own members matter: busbw = link-disjoint
 * rings through them * link; an all-to-all fills the fullest link (hw/mesh.c).
 *
 * Without any table a call starts as the profile's `start` says, of which the part that does not shrink with the
 * number of peers is 0.3 (a mesh) or 0.5 (a ring); what is not an all-reduce has 0.5 or 0.6 of it, a ring's bytes
 * are 0.5 MiB short of its plateau at the square root, and a send goes at 0.96 of the bus. All of these are assumed:
 * no row stands behind them, and such calls say that they are extrapolated, with half as much more spread.
 *
 * Limits: idle GPUs, back to back calls; retuning a library moves sizes of 1 to
 * 16 MiB by up to 20 %.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/algorithm.h"
#include "sim/kernel.h"
#include "sim/tuner.h"

static const double MIB = 1048576;

double inside_mesh_s(enum ft_collective op, int64_t n, double bytes,
		     double link_bytes_per_s)
{
	double links = op == FT_SENDRECV ? 1 : (double)(n - 1);

	return bytes * ft_collective_bus_factor(op, n) / (links * link_bytes_per_s);
}

/* ---- which tables ------------------------------------------------------- */

struct asked {
	const struct ft_gpu *gpu;
	const struct ft_scale_up *scale_up;
	enum ft_collective op;
	int64_t n, stride;
	double bytes;
	bool derived; /* (computed) no table for this op and n */
};

static double time_s(struct asked *q);

/* Three rows do not make a table. Below the switch's reduction, NVLink with and
 * without it are one fabric. */
static bool serves(const struct asked *q, const struct ft_collective_table *t)
{
	bool nvls = q->op == FT_ALL_REDUCE && q->scale_up->nvls_from == 0 &&
		    q->gpu->scale_up[0].nvls_from > 0 &&
		    t->n >= q->gpu->scale_up[0].nvls_from;

	if (t->op != q->op || t->n_rows < 2)
		return false;
	if (!strcmp(t->fabric, q->scale_up->fabric))
		return t->n_rows > 3;
	return !strcmp(q->scale_up->fabric, "nvlink-no-nvls") &&
	       !strcmp(t->fabric, "nvlink") && !nvls && t->n_rows > 3;
}

/* So many times the largest size of a table, and more, is extrapolated. */
static const double BEYOND = 16;

/* From the tables of this op at other n; 0 when there are none. */
static double between_tables_s(struct asked *q)
{
	struct inside_between e = { .gpu = q->gpu, .op = q->op, .n = q->n };

	for (size_t i = 0; i < q->gpu->n_collective; i++) {
		const struct ft_collective_table *t = &q->gpu->collective[i];

		if (!serves(q, t))
			continue;
		if (t->n == q->n) {
			q->derived = q->bytes > BEYOND * t->row[t->n_rows - 1].bytes;
			return inside_table_s(q->gpu, t, q->bytes, NULL);
		}
		inside_enclose(&e, t);
	}
	if (q->scale_up->mesh || (!e.below && !e.above))
		return 0;
	q->derived = true;
	return inside_between_s(&e, q->bytes);
}

/* ---- what has no table -------------------------------------------------- */

static double as(const struct asked *q, enum ft_collective op, double bytes)
{
	struct asked other = *q;

	other.op = op;
	other.bytes = bytes;
	return time_s(&other);
}

static const struct ft_collective_table *all_reduce_of(const struct asked *q, int64_t n)
{
	for (size_t i = 0; i < q->gpu->n_collective; i++) {
		const struct ft_collective_table *t = &q->gpu->collective[i];

		if (t->op == FT_ALL_REDUCE && t->n == n && t->n_rows > 3 &&
		    !strcmp(t->fabric, q->scale_up->fabric))
			return t;
	}
	return NULL;
}

/* Links by arithmetic, and the overhead seen in an all-reduce: of these n ranks, whose
 * rings all but exchanges share, or of a full node. */
static double mesh_s(const struct asked *q)
{
	const struct ft_scale_up *s = q->scale_up;
	bool rings = q->op != FT_ALL_TO_ALL && q->op != FT_SENDRECV;
	const struct ft_collective_table *own = rings ? all_reduce_of(q, q->n) : NULL;
	const struct ft_collective_table *t = own ? own : all_reduce_of(q, s->n_full);
	double peers = own ? 1 : (double)(q->n - 1) / (double)(s->n_full - 1);
	double loss = (1 - s->efficiency.value) * fmin(1, peers);
	double link = s->link_bytes_per_s.value * (1 - loss), wire, over;
	/* an all-reduce is two rounds, all else one */
	double rounds = q->op == FT_ALL_REDUCE ? 1 : 0.5;

	wire = inside_mesh_s(q->op, q->n, q->bytes, link);
	if (!t)
		return wire + s->start_s.value * rounds * (0.3 + 0.7 * peers);
	over = inside_table_s(q->gpu, t, q->bytes, NULL) -
	       inside_mesh_s(FT_ALL_REDUCE, t->n, q->bytes,
			     s->link_bytes_per_s.value * s->efficiency.value);
	return wire + fmax(0, over) * rounds * (0.3 + 0.7 * fmin(1, peers));
}

/* What the links among the group's own members give it; 0: not an irregular mesh. */
static double pairs_bus(const struct asked *q)
{
	const struct ft_mesh *m = q->scale_up->pairs;
	int member[FT_MESH_RANKS];
	bool fits = m && q->n <= m->n && (q->n - 1) * q->stride < m->n;
	int n = !m ? 0 : fits ? (int)q->n : m->n;
	double links = 0;

	for (int i = 0; i < n; i++)
		member[i] = fits ? i * (int)q->stride : i;
	if (n && q->op == FT_SENDRECV)
		links = ft_mesh_shift(m, member, n);
	else if (n && q->op != FT_ALL_TO_ALL)
		links = (double)ft_mesh_rings(m, member, n);
	if (n && !(links > 0)) /* they meet only through others */
		links = ft_mesh_exchange(m, member, n);
	return links * q->scale_up->link_bytes_per_s.value;
}

/* A ring at the plateau. */
static double ring_s(const struct asked *q)
{
	const struct ft_scale_up *s = q->scale_up;
	double bus = s->bus_bytes_per_s.value, pairs = pairs_bus(q);
	double peers = (double)(q->n - 1) / (double)(s->n_full - 1);
	double rounds = q->op == FT_ALL_REDUCE ? 1 : 0.6;

	if (pairs > 0)
		bus = pairs;
	return s->start_s.value * rounds * (0.5 + 0.5 * peers) +
	       /* chunks of a pipeline: 1 MiB is half as fast */
	       (q->bytes * ft_collective_bus_factor(q->op, q->n) +
		sqrt(q->bytes * 0.5 * MIB)) /
		       bus;
}

/* The NVLink tables of an op, of two ranks if there are any; or NULL. */
static const struct ft_collective_table *nvlink_table(const struct asked *q,
						      enum ft_collective op)
{
	const struct ft_collective_table *found = NULL;

	if (!text_begins_with(q->scale_up->fabric, "nvlink"))
		return NULL;
	for (size_t i = 0; i < q->gpu->n_collective; i++) {
		const struct ft_collective_table *t = &q->gpu->collective[i];

		if (t->op == op && t->n_rows > 3 && (!found || t->n == 2))
			found = t;
	}
	return found;
}

static double switched_s(const struct asked *q)
{
	const struct ft_collective_table *t = nvlink_table(q, FT_ALL_TO_ALL);
	struct inside_law law = { q->scale_up->start_s.value, 0, 0 };

	if (!nvlink_table(q, FT_ALL_GATHER) || !nvlink_table(q, FT_REDUCE_SCATTER))
		return ring_s(q);
	switch (q->op) {
	case FT_ALL_REDUCE: /* a ring, where the switch could have reduced */
		return as(q, FT_ALL_GATHER, q->bytes) +
		       as(q, FT_REDUCE_SCATTER, q->bytes) -
		       0.5 * as(q, FT_ALL_GATHER, 512);
	case FT_BROADCAST:
		return as(q, FT_ALL_GATHER, q->bytes) /
		       ft_collective_bus_factor(FT_ALL_GATHER, q->n);
	case FT_SENDRECV: /* half an exchange of two, at the links' rate */
		if (t)
			law = inside_law_of(q->gpu, t, NULL);
		return law.a_s + 0.5 * law.c_s * sqrt(q->bytes) +
		       q->bytes / (0.96 * q->scale_up->bus_bytes_per_s.value);
	default:
		return ring_s(q);
	}
}

/* Small all-reduces do not use the switch: they are the same without it. */
static bool small_without_nvls(const struct asked *q)
{
	return q->op == FT_ALL_REDUCE && q->bytes <= MIB &&
	       !strcmp(q->scale_up->fabric, "nvlink-no-nvls") &&
	       !strcmp(q->gpu->scale_up[0].fabric, "nvlink");
}

static double time_s(struct asked *q)
{
	double time;

	if (small_without_nvls(q))
		q->scale_up = &q->gpu->scale_up[0];
	time = between_tables_s(q);
	if (time > 0)
		return time;
	q->derived = true;
	return q->scale_up->mesh ? mesh_s(q) : switched_s(q);
}

/* ---- the answer --------------------------------------------------------- */

/* What the library's prices take; in a mesh all links serve at once, whatever the ring. */
static bool name_algorithm(const struct asked *q, const struct ft_ccl *ccl,
			   double bytes, double speed, struct ft_collective_result *out,
			   struct ft_error *err)
{
	double n = (double)q->n;
	struct group g = { .ccl = ccl,
			   .ranks = n,
			   .per_domain = n,
			   .domains = 1,
			   .mesh = q->scale_up->mesh };
	struct ft_collective_call call = { .op = q->op, .bytes = bytes };
	struct choice c;

	g.tuning = ft_ccl_tuning(ccl, q->gpu->ccl_generation);
	if (!g.tuning)
		return ft_ccl_unknown(ccl, q->gpu->ccl_generation, NULL, err);
	tuner_search(&g,
		     speed * (g.mesh ? (n - 1) * q->scale_up->link_bytes_per_s.value :
				       q->scale_up->bus_bytes_per_s.value),
		     0);
	if (!q->scale_up->nvls_from)
		g.nvls.channels = 0;
	c = choose_by_library(&g, &call);
	out->algorithm = g.mesh ? "direct" : c.algorithm->name;
	out->protocol = ft_protocol_name(c.protocol);
	return true;
}

static const struct ft_scale_up *find_fabric(const struct ft_gpu *gpu,
					     const char *fabric, struct ft_error *err)
{
	const char *has[8] = { "" };
	struct arena mem = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < gpu->n_scale_ups; i++) {
		if (!fabric || !strcmp(gpu->scale_up[i].fabric, fabric))
			return &gpu->scale_up[i];
		has[n++] = gpu->scale_up[i].fabric;
	}
	ft_fail(err, NULL, "%s knows nothing of the fabric '%s'; it has %s", gpu->name,
		fabric ? fabric : "", text_join(&mem, has, n));
	arena_release(&mem);
	return NULL;
}

/* A library that keeps reductions out of the switch. */
static const struct ft_scale_up *without_nvls(const struct ft_gpu *gpu,
					      const struct ft_scale_up *s)
{
	for (size_t i = 0; s->nvls_from > 0 && i < gpu->n_scale_ups; i++)
		if (!strcmp(gpu->scale_up[i].fabric, "nvlink-no-nvls"))
			return &gpu->scale_up[i];
	return s;
}

bool ft_collective_inside(const struct ft_gpu *gpu, const struct ft_links *links,
			  const struct ft_ccl *ccl,
			  const struct ft_collective_call *call,
			  struct ft_collective_result *out, struct ft_error *err)
{
	struct asked q = { .gpu = gpu,
			   .op = call->op,
			   .n = call->shape.size,
			   .stride = call->shape.stride };
	double speed = 1;

	*out = (struct ft_collective_result){ .domains = 1, .chosen_by = "table" };
	q.scale_up = find_fabric(gpu, links->fabric, err);
	if (!q.scale_up)
		return false;
	out->algorithm = out->protocol = "none";
	if (q.n <= 1 || !(call->bytes > 0))
		return true;
	if (links->port_bytes_per_s > 0)
		speed = links->port_bytes_per_s / q.scale_up->port_bytes_per_s.value;
	q.bytes = call->bytes / speed;
	if (ccl && !ccl->nvls)
		q.scale_up = without_nvls(gpu, q.scale_up);
	if (ccl && !name_algorithm(&q, ccl, call->bytes, speed, out, err))
		return false;
	out->duration.time_s = time_s(&q);
	out->duration.spread_frac =
		gpu->collective_spread.value * (q.derived ? 1.5 : 1);
	out->duration.extrapolated = q.derived;
	out->scale_up_bytes =
		strcmp(out->algorithm, "nvls") ?
			call->bytes * ft_collective_bus_factor(q.op, q.n) :
			call->bytes;
	return true;
}
