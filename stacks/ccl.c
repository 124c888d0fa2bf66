/*
 * stacks/ccl.c - stacks/ccl/NAME.yaml to struct ft_ccl
 *
 * The file's `all` block holds for every generation; each map of `generations` is laid upon
 * it. A file that `extends` another is laid upon that one, map by map.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/extends.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/reader.h"
#include "base/text.h"
#include "foretoken/stacks.h"

struct whole {
	struct ft_ccl ccl; /* first: the handle is the arena's */
	struct arena mem;
};

static const char *const protocols[FT_PROTOCOLS] = { "LL", "LL128", "Simple" };

const char *ft_protocol_name(enum ft_protocol protocol)
{
	return protocols[protocol];
}

/* ---- numbers in rows ------------------------------------------------------ */

static bool one(struct reader *r, const char *key, const struct node *n,
		enum dimension dim, double *out)
{
	char why[200];

	if (n->kind != NODE_SCALAR)
		snprintf(why, sizeof(why), "should be a number or a list of numbers");
	else if (quantity_parse(n->text, dim, out, why, sizeof(why))) {
		if (*out >= 0)
			return true;
		snprintf(why, sizeof(why), "%.40s is negative", n->text);
	}
	r->failed = true;
	return ft_fail(r->err, &n->mark, "%s: %s", key, why);
}

/* {value, provenance} to its value; NULL on error. */
static const struct node *unwrap(struct reader *r, struct arena *mem,
				 const struct node *n)
{
	struct reader in = reader_open(n, r->err);
	const struct node *value = read_need(&in, "value");

	in.from = r->from;
	read_provenance(&in, mem);
	if (reader_close(&in))
		return value;
	r->failed = true;
	return NULL;
}

/* One number or a list; 0: the key is absent. */
static size_t read_some(struct reader *r, struct arena *mem, const char *key,
			enum dimension dim, double *out, size_t most)
{
	const struct node *n = read_node(r, key);

	if (n && n->kind == NODE_MAP)
		n = unwrap(r, mem, n);
	if (!n || r->failed)
		return 0;
	if (n->kind != NODE_LIST)
		return one(r, key, n, dim, out) ? 1 : 0;
	if (!n->n || n->n > most) {
		reader_fail(r, key, "takes 1 to %zu numbers, not %zu", most, n->n);
		return 0;
	}
	for (size_t i = 0; i < n->n; i++)
		if (!one(r, key, n->item[i], dim, &out[i]))
			return 0;
	return n->n;
}

/* Exactly n numbers, or one for all of them; false: absent, out is as it was. */
static bool read_row(struct reader *r, struct arena *mem, const char *key,
		     enum dimension dim, double *out, size_t n)
{
	double row[FT_CCL_SIZES];
	size_t got = read_some(r, mem, key, dim, row, n);

	if (got > 1 && got != n)
		reader_fail(r, key, "takes 1 or %zu numbers, not %zu", n, got);
	for (size_t i = 0; i < n && got && !r->failed; i++)
		out[i] = row[got > 1 ? i : 0];
	return got > 0;
}

static void need_row(struct reader *r, struct arena *mem, const char *key,
		     enum dimension dim, double *out, size_t n)
{
	if (read_need(r, key))
		read_row(r, mem, key, dim, out, n);
}

static struct reader open_block(struct reader *outer, struct arena *mem,
				const char *key, bool needed)
{
	struct reader r = reader_open(
		needed ? read_need(outer, key) : read_node(outer, key), outer->err);

	r.failed = r.failed || outer->failed;
	r.from = outer->from;
	read_provenance(&r, mem);
	return r;
}

static void close_block(struct reader *outer, struct reader *r)
{
	outer->failed = !reader_close(r) || outer->failed;
}

/* Rows by protocol and size; what lies beyond the last number is as that one. */
static void read_sizes(struct reader *outer, struct arena *mem, const char *key,
		       double out[FT_PROTOCOLS][FT_CCL_SIZES])
{
	struct reader r = open_block(outer, mem, key, false);

	for (int p = 0; p < FT_PROTOCOLS; p++) {
		size_t n = read_some(&r, mem, protocols[p], DIM_NONE, out[p],
				     FT_CCL_SIZES);

		for (size_t i = n; n && i < FT_CCL_SIZES; i++)
			out[p][i] = out[p][n - 1];
		for (size_t i = 0; i < n; i++)
			if (!(out[p][i] > 0))
				reader_fail(&r, protocols[p], "has a zero");
	}
	close_block(outer, &r);
}

static void fill(double *out, size_t n, double value)
{
	for (size_t i = 0; i < n; i++)
		out[i] = value;
}

/* ---- algorithms ------------------------------------------------------------ */

static void read_ring(struct reader *outer, struct arena *mem, struct ft_ccl_ring *x)
{
	struct reader r = open_block(outer, mem, "ring", true);

	for (int p = 0; p < FT_PROTOCOLS; p++)
		fill(x->correction[p], FT_CCL_SIZES, 1);
	x->plateau = 1;
	need_row(&r, mem, "base", DIM_S, x->base_s, FT_PROTOCOLS);
	need_row(&r, mem, "hop", DIM_S, x->hop_s, FT_PROTOCOLS);
	need_row(&r, mem, "hop_net", DIM_S, x->hop_net_s, FT_PROTOCOLS);
	need_row(&r, mem, "share", DIM_FRAC, x->share_frac, FT_PROTOCOLS);
	read_sizes(&r, mem, "correction", x->correction);
	read_row(&r, mem, "ll_most", DIM_BYTES_PER_S, x->ll_most_bytes_per_s, 3);
	read_row(&r, mem, "ll128_channel_most", DIM_BYTES_PER_S,
		 &x->ll128_channel_bytes_per_s, 1);
	read_row(&r, mem, "plateau", DIM_NONE, &x->plateau, 1);
	memcpy(x->step_s, x->hop_net_s, sizeof(x->step_s));
	memcpy(x->efficiency_frac, x->share_frac, sizeof(x->efficiency_frac));
	read_row(&r, mem, "step", DIM_S, x->step_s, FT_PROTOCOLS);
	read_row(&r, mem, "efficiency", DIM_FRAC, x->efficiency_frac, FT_PROTOCOLS);
	close_block(outer, &r);
}

static void read_tree(struct reader *outer, struct arena *mem, struct ft_ccl_tree *x)
{
	struct reader r = open_block(outer, mem, "tree", true);

	for (int p = 0; p < FT_PROTOCOLS; p++)
		fill(x->correction[p], FT_CCL_SIZES, 1);
	fill(x->narrow_frac, FT_PROTOCOLS, 1);
	need_row(&r, mem, "base", DIM_S, x->base_s, FT_PROTOCOLS);
	need_row(&r, mem, "hop", DIM_S, x->hop_s, FT_PROTOCOLS);
	need_row(&r, mem, "hop_net", DIM_S, x->hop_net_s, FT_PROTOCOLS);
	need_row(&r, mem, "share", DIM_FRAC, x->share_frac, FT_PROTOCOLS);
	x->share_more_frac = x->share_frac[FT_SIMPLE];
	read_row(&r, mem, "share_more", DIM_FRAC, &x->share_more_frac, 1);
	read_row(&r, mem, "narrow", DIM_FRAC, x->narrow_frac, FT_PROTOCOLS);
	read_sizes(&r, mem, "correction", x->correction);
	read_row(&r, mem, "channel_most", DIM_BYTES_PER_S, x->channel_bytes_per_s, 2);
	read_row(&r, mem, "ll128_channel_most", DIM_BYTES_PER_S,
		 x->ll128_channel_bytes_per_s, 2);
	x->simple_inside = read_bool(&r, "simple_inside", true);
	for (int p = 0; p < FT_PROTOCOLS; p++)
		x->efficiency_frac[p] =
			(p == FT_SIMPLE ? x->share_more_frac : x->share_frac[p]) *
			x->narrow_frac[p];
	read_row(&r, mem, "efficiency", DIM_FRAC, x->efficiency_frac, FT_PROTOCOLS);
	read_row(&r, mem, "wait", DIM_S, x->wait_s, 2);
	memcpy(x->lag, x->correction, sizeof(x->lag));
	read_sizes(&r, mem, "lag", x->lag);
	close_block(outer, &r);
}

/* What reduces in switches; blocks that are absent do not run. */
static void read_switches(struct reader *outer, struct arena *mem,
			  struct ft_ccl_tuning *t)
{
	struct reader r = open_block(outer, mem, "nvls", false);

	if (r.map) {
		need_row(&r, mem, "hop", DIM_S, &t->nvls.hop_s, 1);
		need_row(&r, mem, "share", DIM_FRAC, &t->nvls.share_frac, 1);
	}
	close_block(outer, &r);
	r = open_block(outer, mem, "nvls_tree", false);
	if (r.map) {
		need_row(&r, mem, "hop", DIM_S, &t->nvls_tree.hop_s, 1);
		need_row(&r, mem, "hop_net", DIM_S, &t->nvls_tree.hop_net_s, 1);
		need_row(&r, mem, "efficiency", DIM_FRAC, &t->nvls_tree.efficiency_frac,
			 1);
		need_row(&r, mem, "bus_gain", DIM_NONE, &t->nvls_tree.bus_gain, 1);
		read_row(&r, mem, "channel_most", DIM_BYTES_PER_S,
			 t->nvls_tree.channel_bytes_per_s, 2);
	}
	close_block(outer, &r);
	r = open_block(outer, mem, "sharp", false);
	if (r.map) {
		need_row(&r, mem, "start", DIM_S, &t->sharp.start_s, 1);
		need_row(&r, mem, "hop", DIM_S, &t->sharp.hop_s, 1);
		need_row(&r, mem, "hop_net", DIM_S, &t->sharp.hop_net_s, 1);
		need_row(&r, mem, "arity", DIM_S, &t->sharp.arity_s, 1);
		need_row(&r, mem, "share", DIM_FRAC, &t->sharp.share_frac, 1);
		need_row(&r, mem, "gather_share", DIM_FRAC, &t->sharp.gather_share_frac,
			 1);
	}
	close_block(outer, &r);
	r = open_block(outer, mem, "pat", false);
	if (r.map) {
		need_row(&r, mem, "base", DIM_S, &t->pat.base_s, 1);
		need_row(&r, mem, "hop_net", DIM_S, &t->pat.hop_net_s, 1);
		need_row(&r, mem, "overlap", DIM_NONE, &t->pat.overlap, 1);
		need_row(&r, mem, "rank", DIM_S, &t->pat.rank_s, 1);
		need_row(&r, mem, "share", DIM_FRAC, &t->pat.share_frac, 1);
		if (!r.failed && !(t->pat.overlap > 0))
			reader_fail(&r, "overlap", "is zero");
	}
	close_block(outer, &r);
}

static void read_direct(struct reader *outer, struct arena *mem,
			struct ft_ccl_tuning *t)
{
	struct reader r = open_block(outer, mem, "pairs", true);

	need_row(&r, mem, "start", DIM_S, &t->pairs.start_s, 1);
	need_row(&r, mem, "peer", DIM_S, &t->pairs.peer_s, 1);
	need_row(&r, mem, "nic_share", DIM_FRAC, &t->pairs.nic_share_frac, 1);
	need_row(&r, mem, "port_share", DIM_FRAC, &t->pairs.port_share_frac, 1);
	if (!r.failed && !(t->pairs.nic_share_frac > 0 && t->pairs.port_share_frac > 0))
		reader_fail(&r, NULL, "has a share of zero");
	close_block(outer, &r);
	r = open_block(outer, mem, "pipeline", true);
	need_row(&r, mem, "start", DIM_S, &t->pipeline.start_s, 1);
	need_row(&r, mem, "hop", DIM_S, &t->pipeline.hop_s, 1);
	close_block(outer, &r);
	r = open_block(outer, mem, "hierarchical", true);
	need_row(&r, mem, "overlap", DIM_FRAC, &t->hierarchical.overlap_frac, 1);
	need_row(&r, mem, "chunk", DIM_BYTES, &t->hierarchical.chunk_bytes, 1);
	if (!r.failed &&
	    !(t->hierarchical.overlap_frac <= 1 && t->hierarchical.chunk_bytes > 0))
		reader_fail(&r, NULL, "overlap should be 0 to 1, chunk above 0");
	close_block(outer, &r);
}

static void read_windows(struct reader *outer, struct arena *mem,
			 struct ft_ccl_tuning *t)
{
	struct reader r = open_block(outer, mem, "windows", false);

	t->windows.growth = 1;
	read_row(&r, mem, "all_reduce", DIM_BYTES, t->windows.all_reduce_bytes, 2);
	read_row(&r, mem, "all_gather", DIM_BYTES, t->windows.all_gather_bytes, 2);
	read_row(&r, mem, "reduce_scatter", DIM_BYTES, t->windows.reduce_scatter_bytes,
		 2);
	read_row(&r, mem, "growth", DIM_NONE, &t->windows.growth, 1);
	close_block(outer, &r);
}

static bool positive(const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(x[i] > 0))
			return false;
	return true;
}

/* What a division would not survive. Protocols with a share of 0 do not run. */
static bool sound(struct reader *r, const struct ft_ccl_tuning *t)
{
	if (!(t->ring.share_frac[FT_SIMPLE] > 0 && t->tree.share_frac[FT_SIMPLE] > 0))
		return reader_fail(r, NULL, "%s: ring and tree need a Simple share",
				   t->generation);
	for (int p = 0; p < FT_PROTOCOLS; p++)
		if ((t->ring.share_frac[p] > 0 && !(t->ring.efficiency_frac[p] > 0)) ||
		    (t->tree.share_frac[p] > 0 && !(t->tree.efficiency_frac[p] > 0)))
			return reader_fail(r, NULL,
					   "%s: efficiency of %s should be above 0",
					   t->generation, protocols[p]);
	return positive(t->tree.narrow_frac, FT_PROTOCOLS) ?
		       true :
		       reader_fail(r, NULL, "%s: narrow should be above 0",
				   t->generation);
}

static bool read_tuning(const struct node *node, const struct ft_provenance *from,
			struct arena *mem, struct ft_ccl_tuning *t,
			struct ft_error *err)
{
	struct reader r = reader_open(node, err), n;

	r.from = from;
	read_provenance(&r, mem);
	need_row(&r, mem, "channels", DIM_NONE, &t->channels, 1);
	t->n_speeds = read_some(&r, mem, "speeds", DIM_BYTES_PER_S,
				t->speeds_bytes_per_s, FT_CCL_SPEEDS);
	need_row(&r, mem, "net_overhead", DIM_S, t->net_overhead_s, FT_PROTOCOLS);
	need_row(&r, mem, "spread", DIM_FRAC, &t->spread_frac, 1);
	read_ring(&r, mem, &t->ring);
	read_tree(&r, mem, &t->tree);
	read_switches(&r, mem, t);
	read_direct(&r, mem, t);
	read_windows(&r, mem, t);
	n = open_block(&r, mem, "network", true);
	need_row(&n, mem, "ring_step", DIM_S, &t->network.ring_step_s, 1);
	need_row(&n, mem, "latency", DIM_S, &t->network.latency_s, 1);
	if (!n.failed && !(t->network.ring_step_s > 0))
		reader_fail(&n, "ring_step", "is zero");
	close_block(&r, &n);
	if (!r.failed && !(t->channels >= 1))
		reader_fail(&r, "channels", "should be 1 or more");
	if (!r.failed)
		(void)sound(&r, t);
	return reader_close(&r);
}

/* ---- the file --------------------------------------------------------------- */

static bool read_generations(const struct node *all, const struct node *list,
			     struct whole *w, struct ft_error *err)
{
	struct ft_ccl *c = &w->ccl;

	c->tuning = ARENA_ARRAY(&w->mem, list->n, struct ft_ccl_tuning);
	for (size_t i = 0; i < list->n; i++) {
		struct ft_ccl_tuning *t = &c->tuning[c->n_generations];
		const struct node *laid;

		if (node_is_null(list->item[i])) /* not known to this version */
			continue;
		laid = node_overlay(&w->mem, all, list->item[i]);

		t->generation = arena_text(&w->mem, list->key[i]);
		if (!read_tuning(laid, c->from, &w->mem, t, err))
			return false;
		c->n_generations++;
	}
	return true;
}

static bool read_ccl(const struct node *node, struct whole *w, const char *name,
		     struct ft_error *err)
{
	static const char *const choices[] = { "time", "library" };
	struct ft_ccl *c = &w->ccl;
	struct reader r = reader_open(node, err), choice;
	const struct node *all, *list;

	c->name = read_text(&r, "name", name);
	c->title = read_text(&r, "title", c->name);
	reader_allow(&r, "extends");
	read_provenance(&r, &w->mem);
	c->from = r.from;
	c->nvls = read_bool(&r, "nvls", true);
	choice = open_block(&r, &w->mem, "choice", false);
	c->choice = (enum ft_ccl_choice)read_choice(&choice, "by", choices, 2, 0);
	close_block(&r, &choice);
	all = read_need(&r, "all");
	list = read_need(&r, "generations");
	if (!r.failed && !c->from)
		reader_fail(&r, NULL, "a library needs a provenance");
	if (!r.failed && all->kind != NODE_MAP)
		reader_fail(&r, "all", "should be a map");
	if (!r.failed && list->kind != NODE_MAP)
		reader_fail(&r, "generations", "should be a map");
	return reader_close(&r) && read_generations(all, list, w, err);
}

struct ft_ccl *ft_ccl_load(const char *name, const struct ft_mark *at,
			   struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct whole *w = ARENA_NEW(&mem, struct whole);
	struct node *node;

	w->mem = mem;
	node = extends_file(&w->mem, "stacks/ccl", name, at, EXTENDS_SAME, err);
	if (node && read_ccl(node, w, arena_text(&w->mem, name), err)) {
		w->ccl.digest = w->mem.read;
		return &w->ccl;
	}
	ft_ccl_free(&w->ccl);
	return NULL;
}

void ft_ccl_free(struct ft_ccl *ccl)
{
	struct arena mem;

	if (!ccl)
		return;
	mem = ((struct whole *)ccl)->mem;
	arena_release(&mem);
}

const struct ft_ccl_tuning *ft_ccl_tuning(const struct ft_ccl *ccl,
					  const char *generation)
{
	for (size_t i = 0; i < ccl->n_generations; i++)
		if (!strcmp(ccl->tuning[i].generation, generation))
			return &ccl->tuning[i];
	return NULL;
}

bool ft_ccl_unknown(const struct ft_ccl *ccl, const char *generation,
		    const struct ft_mark *at, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct ft_error ignored;
	const char **name, **knows;
	size_t n, found = 0;

	if (!generation[0])
		return ft_fail(err, at,
			       "the GPU's profile names no ccl_generation, so that no "
			       "communication library can serve it");
	name = file_list(&mem, "stacks/ccl", &n, &ignored);
	n = name ? n : 0;
	knows = ARENA_ARRAY(&mem, n + 1, const char *);
	for (size_t i = 0; i < n; i++) {
		struct ft_ccl *other = ft_ccl_load(name[i], NULL, &ignored);

		if (other && ft_ccl_tuning(other, generation))
			knows[found++] = name[i];
		ft_ccl_free(other);
	}
	ft_fail(err, at, "the library %s does not know GPUs of the generation '%s'%s%s",
		ccl->name, generation, found ? "; these do: " : "",
		found ? text_join(&mem, knows, found) : "");
	arena_release(&mem);
	return false;
}
