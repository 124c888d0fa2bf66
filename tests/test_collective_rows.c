/*
 * tests/test_collective_rows.c - tables of collectives whose cells are drawn: what `validate` says of each row is what
 * is predicted of that collective in a node, or in a cluster of as many
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/stats.h"
#include "foretoken/hw.h"
#include "foretoken/sim.h"
#include "foretoken/study.h"
#include "tests/check.h"

enum { ROWS = 90 };

static uint64_t seed = 59;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const struct kind {
	const char *gpu, *inside, *across;
} kinds[] = {
	{ "h100-sxm", "nvlink", "ib-ndr-rail" },
	{ "h200", "nvlink", "roce-400-rail" },
	{ "b200", "nvlink", "ib-ndr-rail" },
	{ "mi300x", "xgmi", "roce-400-rail" },
	{ "h100-sxm", "pcie", "roce-400-rail" },
	{ "h200", "nvlink-no-nvls", "ib-ndr-rail" },
};

static const char *const ops[] = { "all_reduce", "all_gather", "reduce_scatter",
				   "all_to_all", "broadcast" };

struct row {
	const struct kind *kind;
	const char *op, *group;
	int size, nodes; /* nodes 0: not said */
	bool inside, rate, named;
	double bytes, given;
};

static struct row draw(void)
{
	struct row r = { .kind = &PICK(kinds),
			 .op = PICK(ops),
			 .group = rnd_below(&seed, 2) ? "mine" : "",
			 .inside = rnd_below(&seed, 2),
			 .rate = rnd_below(&seed, 2),
			 .named = rnd_below(&seed, 3),
			 .bytes = (double)(1024 << rnd_below(&seed, 20)),
			 .given = 10 + rnd_below(&seed, 90000) * 0.01 };

	if (r.inside) {
		r.size = 2 << rnd_below(&seed, 3);
		r.nodes = rnd_below(&seed, 2);
	} else {
		r.nodes = rnd_below(&seed, 2) ? 2 << rnd_below(&seed, 2) : 0;
		r.size = r.nodes ? r.nodes << rnd_below(&seed, 4) :
				   16 << rnd_below(&seed, 2);
	}
	return r;
}

static void write_rows(const char *path, const struct row *row)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("op,gpu,gpus,nodes,fabric,bytes,measured.time_us,measured.busbw_gb_per_s,id,"
	      "group\n",
	      f);
	for (int i = 0; i < ROWS; i++) {
		const struct row *r = &row[i];

		fprintf(f, "%s,%s,%d,", r->op, r->kind->gpu, r->size);
		if (r->nodes)
			fprintf(f, "%d", r->nodes);
		fprintf(f, ",%s,%.0f,", r->inside ? r->kind->inside : r->kind->across,
			r->bytes);
		fprintf(f, r->rate ? ",%.2f," : "%.2f,,", r->given);
		if (r->named)
			fprintf(f, "row%d", i);
		fprintf(f, ",%s\n", r->group);
	}
	fclose(f);
}

/* ---- what is predicted of each ---------------------------------------------------------- */

static bool inside(const struct row *r, const struct ft_collective_call *call,
		   struct ft_collective_result *out)
{
	struct ft_links links = { r->kind->inside, 0 };
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load(r->kind->gpu, NULL, &err);
	bool ok;

	ok_or_say(gpu, err);
	ok = ft_collective_inside(gpu, &links, NULL, call, out, &err);
	ft_gpu_free(gpu);
	return ok;
}

/* So many GPUs, or all GPUs of so many nodes, of 8 each. */
static bool across(const struct row *r, struct ft_collective_call *call,
		   struct ft_collective_result *out)
{
	struct arena mem = { 0 };
	struct ft_error err;
	const char *text =
		arena_printf(&mem, "{gpu: %s, gpus: %d, fabric: %s}", r->kind->gpu,
			     r->nodes ? 8 * r->nodes : r->size, r->kind->across);
	struct node *node = node_read_text(&mem, "cluster", text, strlen(text), &err);
	struct ft_cluster *c = ft_cluster_load_rows(node, FT_GPU_ALL_ROWS, &err);
	struct ft_stack *stack = ft_stack_load(FT_STACK_UNNAMED, NULL, &err);
	struct ft_ccl *ccl;
	bool ok;

	ok_or_say(c && stack, err);
	ccl = ft_stack_ccl(stack, c->gpu->ccl_generation, &err);
	ok_or_say(ccl, err);
	if (r->nodes)
		call->shape.stride = 8 / (r->size / r->nodes);
	ok = ft_collective_predict(c, ccl, call, out, &err);
	ft_ccl_free(ccl);
	ft_stack_free(stack);
	ft_cluster_free(c);
	arena_release(&mem);
	return ok;
}

static bool predicted(const struct row *r, struct ft_prediction *p)
{
	struct ft_collective_call call = { .bytes = r->bytes, .shape = { r->size, 1 } };
	struct ft_collective_result out;
	bool ok;

	assert_true(ft_collective_find(r->op, &call.op));
	ok = r->inside ? inside(r, &call, &out) : across(r, &call, &out);
	*p = out.duration;
	return ok;
}

/* Of nccl-tests: what crosses the links of a rank, over the time. */
static double bus_bytes(const struct row *r)
{
	double n = r->size, part = (n - 1) / n;

	return r->bytes * (!strcmp(r->op, "all_reduce") ? 2 * part :
			   !strcmp(r->op, "broadcast")	? 1 :
							  part);
}

static void check_is(const struct ft_check *c, const struct row *r, int i,
		     const struct ft_prediction *p)
{
	double reach = NORMAL_P90 * p->spread_frac, want = p->time_s * 1e6;
	char text[64];

	if (r->rate)
		want = bus_bytes(r) / p->time_s * 1e-9;
	near_frac(c->predicted, want, 1e-9);
	near_frac(c->measured, r->given, 1e-12);
	near_frac(c->low, want / (1 + reach), 1e-9);
	near_frac(c->high, want * (1 + reach), 1e-9);
	near_frac(2 + c->error_frac, 1 + (r->rate ? r->given / want : want / r->given),
		  1e-9);
	assert_string_equal(c->key, r->rate ? "busbw_gb_per_s" : "time_us");
	assert_int_equal(c->is_rate, r->rate);
	snprintf(text, sizeof(text), r->named ? "row%d" : "line %d",
		 r->named ? i : i + 2);
	assert_string_equal(c->id, text);
	snprintf(text, sizeof(text), "%s %s x%d", r->kind->gpu, r->op, r->size);
	assert_string_equal(c->group, *r->group ? r->group : text);
}

static void rows_are_collectives(void **state)
{
	struct row row[ROWS];
	struct ft_validation *v;
	struct ft_error err;
	size_t seen = 0;
	char path[64];

	(void)state;
	for (int i = 0; i < ROWS; i++)
		row[i] = draw();
	write_rows(own_path(path, "rows.csv"), row);
	v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
	ok_or_say(v, err);
	for (int i = 0; i < ROWS; i++) {
		struct ft_prediction p;

		if (!predicted(&row[i], &p))
			continue;
		assert_true(seen < v->n_checks);
		check_is(&v->check[seen++], &row[i], i, &p);
	}
	assert_int_equal(v->n_checks, seen);
	assert_int_equal(v->n_failures, ROWS - seen);
	assert_true(seen > ROWS / 2);
	ft_validation_free(v);
	unlink(path);
}

/* As little as can be said: two GPUs, a byte, less than a GB/s or a microsecond. */
static void the_least_of_a_row_is_taken(void **state)
{
	static const double given[] = { 0.5, 0.25 };
	char path[64];
	FILE *f = fopen(own_path(path, "least.csv"), "w");
	struct ft_validation *v;
	struct ft_error err;

	(void)state;
	fputs("op,gpu,gpus,fabric,bytes,measured.time_us,measured.busbw_gb_per_s\n"
	      "all_reduce,h200,2,nvlink,1,0.5,\n"
	      "all_reduce,h200,2,nvlink,1,,0.25\n",
	      f);
	fclose(f);
	v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
	ok_or_say(v, err);
	assert_int_equal(v->n_checks, 2);
	for (int i = 0; i < 2; i++) {
		near_frac(v->check[i].measured, given[i], 1e-12);
		assert_int_equal(v->check[i].is_rate, i);
	}
	ft_validation_free(v);
	unlink(path);
}

/* One row: what it is predicted to take, microseconds. */
static double predicted_us(const char *row)
{
	char path[64];
	FILE *f = fopen(own_path(path, "one.csv"), "w");
	struct ft_validation *v;
	struct ft_error err;
	double us;

	assert_non_null(f);
	fprintf(f, "op,gpu,gpus,nodes,fabric,bytes,measured.time_us\n%s\n", row);
	fclose(f);
	v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
	ok_or_say(v, err);
	if (v->n_failures)
		fail_msg("%s: %s", row, v->failure[0].reason);
	assert_int_equal(v->n_checks, 1);
	us = v->check[0].predicted;
	ft_validation_free(v);
	unlink(path);
	return us;
}

/* GPUs that are joined in pairs are of one node, too; and a profile may be named by its path. */
static void meshes_and_profiles_by_path_are_taken(void **state)
{
	(void)state;
	assert_true(predicted_us("all_gather,h200,4,,nvlink-mesh,1073741824,9") >
		    predicted_us("all_gather,h200,4,,nvlink,1073741824,9"));
	near_frac(predicted_us("all_reduce,hw/gpus/h200.yaml,16,2,ib-ndr-rail,4096,9"),
		  predicted_us("all_reduce,h200,16,2,ib-ndr-rail,4096,9"), 1e-12);
}

/* A rack is one domain, however many nodes it has. */
static void nodes_of_a_rack_are_inside_it(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *size = i ? "8,2" : "72,18", *alone = i ? "8," : "72,";
		char row[2][80];

		snprintf(row[0], 80, "all_reduce,gb200,%s,nvlink,1073741824,9", size);
		snprintf(row[1], 80, "all_reduce,gb200,%s,nvlink,1073741824,9", alone);
		near_frac(predicted_us(row[0]), predicted_us(row[1]), 1e-12);
	}
}

/* Each alone: why it is none. */
static void a_row_that_is_no_collective_is_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "all_reduce,h200,1,,nvlink,4096,9", "takes at least 2 GPUs" },
		{ "all_reduce,h200,,,nvlink,4096,9", "the row lacks gpus or bytes" },
		{ "all_reduce,h200,8,,nvlink,,9", "the row lacks gpus or bytes" },
		{ "all_reduce,h200,8,,nvlink,1e19,9", "bytes is out of range" },
		{ "allreduce,h200,8,,nvlink,4096,9", "unknown op 'allreduce'" },
		{ "all_reduce,h200,8,,nvlink,4096,", "has no measured.time_us" },
		{ "all_reduce,h200,16,,nvlink,4096,9",
		  "nvlink joins 8 ranks of h200 inside a node, not 16" },
		{ "all_reduce,h200,8,,nvlink,4096,-9",
		  "measured.time_us is '-9', which is not above 0" },
		{ "all_reduce,h200,8,,nvlink,4096,0", "'0', which is not above 0" },
		{ "all_reduce,h200,16,2,nvlink,4096,9",
		  "nvlink joins 8 GPUs of h200, not 2 nodes of 8" },
		{ "all_reduce,gb200,144,36,nvlink,4096,9",
		  "nvlink joins 72 GPUs of gb200, not 36 nodes of 4" },
		{ "all_reduce,gb200,72,2,nvlink,4096,9",
		  "2 nodes of 4 GPUs cannot hold 72" },
		{ "all_reduce,,8,,nvlink,4096,9", "the row names no gpu" },
		{ "all_reduce,h200,16,3,ib-ndr-rail,4096,9",
		  "cannot be spread evenly over" },
		{ "all_reduce,h201,16,3,ib-ndr-rail,4096,9", "h201" },
	};
	char path[64];

	(void)state;
	own_path(path, "refused.csv");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		FILE *f = fopen(path, "w");
		struct ft_validation *v;
		struct ft_error err;

		fprintf(f, "op,gpu,gpus,nodes,fabric,bytes,measured.time_us\n%s\n",
			rows[i][0]);
		fclose(f);
		v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, &err);
		ok_or_say(v, err);
		assert_int_equal(v->n_checks, 0);
		assert_int_equal(v->n_failures, 1);
		if (!strstr(v->failure[0].reason, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], v->failure[0].reason);
		ft_validation_free(v);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_collectives),
		cmocka_unit_test(the_least_of_a_row_is_taken),
		cmocka_unit_test(meshes_and_profiles_by_path_are_taken),
		cmocka_unit_test(nodes_of_a_rack_are_inside_it),
		cmocka_unit_test(a_row_that_is_no_collective_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
