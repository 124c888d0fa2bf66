/* study/collective_rows.c - rows of single collectives */
#include <string.h>

#include "base/node.h"
#include "base/row_columns.h"
#include "study/shelf.h"
#include "study/single_rows.h"
#include "study/spread.h"

/* What a row of collectives says. */
struct collective_row {
	const char *fabric, *gpu_name; /* gpu_name: as written, a path may be */
	struct ft_mark gpu_at;
	const struct ft_gpu *gpu;
	int64_t nodes;
	struct ft_collective_call call;
};

static bool read_collective(struct garage *g, const struct csv *rows, size_t i,
			    struct collective_row *r, struct ft_error *err)
{
	const char *op = csv_text(rows, i, csv_column(rows, "op"));
	int gpu_column = csv_column(rows, "gpu");

	*r = (struct collective_row){
		.fabric = csv_text(rows, i, csv_column(rows, "fabric")),
		.gpu_name = csv_text(rows, i, gpu_column),
		.gpu_at = csv_mark(rows, i, gpu_column),
		.call.shape.stride = 1,
	};
	r->gpu = garage_gpu(g, r->gpu_name, &r->gpu_at, err);
	if (!r->gpu || !row_whole(rows, i, "gpus", 0, &r->call.shape.size, err) ||
	    !row_whole(rows, i, "nodes", 0, &r->nodes, err) ||
	    !csv_number(rows, i, csv_column(rows, "bytes"), 0, &r->call.bytes, err))
		return false;
	if (!ft_collective_find(op, &r->call.op))
		return ft_fail(
			err, NULL,
			"unknown op '%s'; it is one such as all_reduce or all_to_all",
			op);
	if (r->call.shape.size < 1 || r->call.bytes <= 0)
		return ft_fail(err, NULL, "the row lacks gpus or bytes");
	if (r->call.bytes > ROW_BYTES_MOST)
		return ft_fail(err, NULL, "bytes is out of range");
	return r->call.shape.size > 1 ||
	       ft_fail(err, NULL, "a collective takes at least 2 GPUs");
}

/* A node of the profile joins no more ranks than it says. */
static bool inside_a_node(const struct collective_row *r, struct ft_error *err)
{
	for (size_t i = 0; i < r->gpu->n_scale_ups; i++) {
		const struct ft_scale_up *s = &r->gpu->scale_up[i];

		if (!strcmp(s->fabric, r->fabric) && r->call.shape.size > s->n_full)
			return ft_fail(err, &r->gpu_at,
				       "%s joins %lld ranks of %s inside a node, not "
				       "%lld",
				       s->fabric, (long long)s->n_full, r->gpu->name,
				       (long long)r->call.shape.size);
	}
	return true;
}

/* So many GPUs of the row in their usual nodes. */
static struct node *cluster_map(struct tally *t, const struct collective_row *r,
				const char *gpus)
{
	const struct ft_mark *at = &r->gpu_at;
	struct node *node = node_map(t->mem, at);

	node_put(t->mem, node, "gpu", at, node_scalar(t->mem, at, r->gpu_name));
	node_put(t->mem, node, "gpus", at, node_scalar(t->mem, at, gpus));
	return node;
}

/* Nodes that are told beside a scale-up fabric are those of one domain, a rack. */
static bool in_one_domain(struct tally *t, const struct collective_row *r,
			  const char *gpus, struct ft_error *err)
{
	struct ft_group_shape shape = r->call.shape;
	const struct ft_cluster *c;

	if (r->nodes <= 1)
		return true;
	c = shelf_cluster(t->shelf, cluster_map(t, r, gpus), FT_GPU_COLLECTIVE_ROWS,
			  err);
	if (!c || !spread_over(c, r->nodes, &shape, err))
		return false;
	return r->nodes * c->node->gpus <= c->node->scale_up_gpus ||
	       ft_fail(err, &r->gpu_at,
		       "%s joins %lld GPUs of %s, not %lld nodes of %lld: fabric is "
		       "what lies between nodes, one of hw/fabrics",
		       r->fabric, (long long)c->node->scale_up_gpus, r->gpu->name,
		       (long long)r->nodes, (long long)c->node->gpus);
}

/* Inside a domain: the profile's tables. Across domains: a cluster of that many. */
static bool predict_collective(struct tally *t, struct collective_row *r,
			       const char *gpus, struct ft_collective_result *out,
			       struct ft_error *err)
{
	const struct ft_mark *at = &r->gpu_at;
	struct ft_links links = { r->fabric, 0 };
	const struct ft_cluster *cluster;
	const struct ft_stack *stack;
	const struct ft_ccl *ccl;
	struct node *node;

	if (ft_is_scale_up(r->fabric))
		return in_one_domain(t, r, gpus, err) && inside_a_node(r, err) &&
		       ft_collective_inside(r->gpu, &links, NULL, &r->call, out, err);
	node = cluster_map(t, r, gpus);
	if (r->fabric[0])
		node_put(t->mem, node, "fabric", at,
			 node_scalar(t->mem, at, r->fabric));
	cluster = shelf_cluster(t->shelf, node, FT_GPU_COLLECTIVE_ROWS, err);
	if (cluster && r->nodes > 0) {
		if (!spread_over(cluster, r->nodes, &r->call.shape, err))
			return false;
		node_put(t->mem, node, "gpus", at,
			 node_scalar(t->mem, at,
				     arena_printf(t->mem, "%lld",
						  (long long)(r->nodes *
							      cluster->node->gpus))));
		cluster = shelf_cluster(t->shelf, node, FT_GPU_COLLECTIVE_ROWS, err);
	}
	if (!cluster)
		return false;
	stack = shelf_stack(t->shelf, FT_STACK_UNNAMED, NULL, NULL, err);
	ccl = stack ? shelf_ccl_of(t->shelf, stack, r->gpu->ccl_generation, err) : NULL;
	return ccl && ft_collective_predict(cluster, ccl, &r->call, out, err);
}

static bool collective_check(struct tally *t, struct garage *g, const struct csv *rows,
			     size_t i, struct ft_error *err)
{
	struct ft_check c = { .id = row_id(t, rows, i),
			      .group = csv_text(rows, i, csv_column(rows, "group")) };
	const char *gpus = csv_text(rows, i, csv_column(rows, "gpus"));
	struct ft_collective_result out;
	struct collective_row r;
	double us, busbw;

	if (!read_collective(g, rows, i, &r, err) ||
	    !predict_collective(t, &r, gpus, &out, err) ||
	    !row_measured(rows, i, "measured.busbw_gb_per_s", &us, &busbw, err))
		return false;
	if (!c.group[0])
		c.group = arena_printf(t->mem, "%s %s x%lld",
				       csv_text(rows, i, csv_column(rows, "gpu")),
				       ft_collective_name(r.call.op),
				       (long long)r.call.shape.size);
	check_time_or_rate(
		t, &c, &out.duration, us,
		(struct rate){
			"busbw_gb_per_s", busbw,
			r.call.bytes *
				ft_collective_bus_factor(r.call.op, r.call.shape.size) *
				1e-9 });
	return true;
}

bool validate_collectives(struct tally *t, const struct csv *rows, struct ft_error *err)
{
	struct garage g = { .n = 0 };

	if (!row_columns_known(rows, ROW_OF_COLLECTIVE, err))
		return false;
	for (size_t i = 0; i < rows->n_rows; i++) {
		struct ft_error why;

		if (!collective_check(t, &g, rows, i, &why))
			tally_row_failure(t, rows, i, &why);
	}
	garage_close(&g);
	return true;
}
