/* tests/fuzz/targets.c - bytes to each reader, and on to a simulated step */
#include "tests/fuzz/targets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gsl/gsl_errno.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/node.h"
#include "base/quantity.h"
#include "foretoken/calibrate.h"
#include "foretoken/recorded.h"
#include "foretoken/study.h"
#include "tests/fuzz/request.h"

static const char scenario_8[] = "examples/07-edit-a-step/scenario.yaml";
static const char scenario_many[] = "examples/01-first-answer/h100.yaml";

/* tests may hold state: the scratch folder, and how much is simulated */
static struct {
	char folder[64];
	double most_ops;
} test;

void targets_begin(void)
{
	static const char *const rows[] = { "gemm", "attention", "collectives" };
	char from[4200], to[200], tree[4096];

	gsl_set_error_handler_off();
	snprintf(test.folder, sizeof(test.folder), "%s/foretoken-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(test.folder) || !getcwd(tree, sizeof(tree)))
		abort();
	setenv("FORETOKEN_DATA", tree, 1);
	for (int i = 0; i < 3; i++) {
		snprintf(from, sizeof(from), "%s/hw/gpus/h100-sxm.%s.csv", tree,
			 rows[i]);
		snprintf(to, sizeof(to), "%s/h100-sxm.%s.csv", test.folder, rows[i]);
		if (symlink(from, to))
			abort();
	}
}

void targets_end(void)
{
	static const char *const leaves[] = { "in.yaml",
					      "in.json",
					      "in.csv",
					      "in.graph",
					      "in.db",
					      "in.db-journal",
					      "h100-sxm.gemm.csv",
					      "h100-sxm.attention.csv",
					      "h100-sxm.collectives.csv",
					      "profile.yaml" };
	char path[200];

	for (size_t i = 0; i < sizeof(leaves) / sizeof(*leaves); i++) {
		snprintf(path, sizeof(path), "%s/%s", test.folder, leaves[i]);
		unlink(path);
	}
	rmdir(test.folder);
}

void targets_limit(double ops)
{
	test.most_ops = ops;
}

/* folder/leaf with these bytes. */
static const char *put(struct arena *mem, const char *leaf, const uint8_t *data,
		       size_t n)
{
	const char *path = arena_printf(mem, "%s/%s", test.folder, leaf);
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		abort();
	return path;
}

static enum verdict worded(const struct ft_error *err)
{
	return err->text[0] ? REFUSED : SILENT;
}

/* ---- scenarios and what they name -------------------------------------------------- */

/* About what a step takes, as far as a plan tells. */
static bool small(const struct ft_scenario *s)
{
	return test.most_ops <= 0 || (double)s->plan->pp * (double)s->plan->vpp *
						     (double)s->plan->micro_batches *
						     (double)s->model->n_layers <=
					     test.most_ops;
}

/* An answer of numbers that are none is worse than none. */
static bool sensible(const struct ft_outcome *o)
{
	static const char *const keys[] = { "step_s",
					    "tokens_per_s",
					    "mfu",
					    "memory_bytes_per_gpu.total",
					    "cost.usd_per_million_tokens",
					    "cost.usd_per_gpu_hour",
					    "cost.capex_usd",
					    "cost.joules_per_token" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		double v = -1;

		if (!ft_outcome_get(o, keys[i], &v) || !isfinite(v) || v < 0 ||
		    (v <= 0 && i < 2))
			return false;
	}
	return true;
}

static enum verdict simulated(struct ft_scenario *s, const struct ft_graph *g,
			      struct ft_error *err)
{
	struct ft_outcome o;
	bool ok;

	if (!small(s))
		return TAKEN;
	if (!ft_study_simulate(s, g, NULL, &o, err))
		return worded(err);
	ok = sensible(&o);
	ft_outcome_release(&o);
	return ok ? TAKEN : SILENT;
}

/* A scenario of the tree with one key set to a path. */
static enum verdict with(const char *scenario, const char *key, const char *value)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	const char *set = arena_printf(&mem, "%s=%s", key, value);
	struct ft_error err = { 0 };
	struct ft_scenario *s = ft_scenario_load(shelf, scenario, &set, 1, true, &err);
	enum verdict ok = s ? simulated(s, NULL, &err) : worded(&err);

	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

/* Does the part alone load? Sanitized, the rest takes a hundred times as long. */
static bool loads(char kind, const char *path, struct ft_error *err)
{
	struct ft_node *node = NULL;
	struct ft_fabric *fabric = NULL;
	struct ft_stack *stack = NULL;
	struct ft_prices *prices = NULL;
	bool ok = true;

	if (kind == 'n')
		ok = (node = ft_node_load(path, NULL, err)) != NULL;
	else if (kind == 'f')
		ok = (fabric = ft_fabric_load(path, NULL, err)) != NULL;
	else if (kind == 's')
		ok = (stack = ft_stack_load(path, NULL, err)) != NULL;
	else if (kind == 'p')
		ok = (prices = ft_prices_load(path, NULL, err)) != NULL;
	ft_node_free(node);
	ft_fabric_free(fabric);
	ft_stack_free(stack);
	ft_prices_free(prices);
	return ok;
}

static enum verdict file_of(const char *scenario, const char *key, const char *leaf,
			    const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	const char *path = put(&mem, leaf, data, n), *dot = strchr(key, '.');
	enum verdict ok =
		test.most_ops > 0 && !loads(dot ? dot[1] : key[0], path, &err) ?
			worded(&err) :
			with(scenario, key, path);

	arena_release(&mem);
	return ok;
}

static enum verdict run_scenario(const uint8_t *data, size_t n)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct node *root =
		node_read_text(&mem, scenario_many, (const char *)data, n, &err);
	struct ft_scenario *s =
		root ? ft_scenario_from(shelf, root, scenario_many, true, &err) : NULL;
	enum verdict ok = s ? simulated(s, NULL, &err) : worded(&err);

	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

#define OF_FILE(name, scenario, key) \
	static enum verdict run_##name(const uint8_t *data, size_t n) \
	{ \
		return file_of(scenario, key, "in.yaml", data, n); \
	}
OF_FILE(gpu, scenario_many, "cluster.gpu")
OF_FILE(node, scenario_many, "cluster.node")
OF_FILE(fabric, scenario_many, "cluster.fabric")
OF_FILE(stack, scenario_8, "stack")
OF_FILE(prices, scenario_8, "cost.prices")
OF_FILE(site, scenario_many, "cluster.site")

static enum verdict run_model(const uint8_t *data, size_t n)
{
	return file_of(scenario_8, "model", n && data[0] == '{' ? "in.json" : "in.yaml",
		       data, n);
}

static enum verdict run_set(const uint8_t *data, size_t n)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	const char *set = arena_text_n(&mem, (const char *)data, n);
	struct ft_error err = { 0 };
	struct ft_scenario *s =
		ft_scenario_load(shelf, scenario_8, &set, 1, true, &err);
	enum verdict ok = s ? simulated(s, NULL, &err) : worded(&err);

	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

static enum verdict run_graph(const uint8_t *data, size_t n)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct ft_graph *g = ft_graph_read(put(&mem, "in.graph", data, n), 16, &err);
	struct ft_scenario *s =
		g ? ft_scenario_load(shelf, scenario_8, NULL, 0, true, &err) : NULL;
	enum verdict ok;

	if (g && (!s || s->cluster->ranks != 16))
		abort(); /* it is in the tree */
	if (g && test.most_ops > 0)
		for (size_t i = 0; i < g->n_classes; i++)
			for (size_t k = 0; k < g->rank_class[i].n_calls; k++)
				if (g->rank_class[i].call[k].repeat > 64)
					g->rank_class[i].call[k].repeat = 64;
	ok = g ? simulated(s, g, &err) : worded(&err);
	ft_graph_free(g);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return ok;
}

/* Tables beside a profile: which one, by its header. */
static enum verdict run_rows(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	const char *which = n > 200 && memmem(text, n, "fabric", 6) ? "collectives" :
			    n > 200 && memmem(text, n, "head", 4)   ? "attention" :
								      "gemm";
	char from[300], profile[200];
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	size_t len;
	char *yaml = file_read(&mem, "hw/gpus/h100-sxm.yaml", 1 << 20, &len, &err), *at;
	enum verdict ok;

	if (!yaml)
		abort();
	snprintf(from, sizeof(from), "rows: h100-sxm.%s.csv", which);
	at = strstr(yaml, from);
	if (!at)
		abort();
	put(&mem, "in.csv", data, n);
	memset(at, ' ', strlen(from));
	memcpy(at, "rows: in.csv", 12);
	snprintf(profile, sizeof(profile), "%s",
		 put(&mem, "profile.yaml", (const uint8_t *)yaml, len));
	ok = with(scenario_8, "cluster.gpu", profile);
	arena_release(&mem);
	return ok;
}

/* ---- words ------------------------------------------------------------------------- */

static enum verdict run_node_text(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	enum verdict ok = node_read_text(&mem, "fuzz", (const char *)data, n, &err) ?
				  TAKEN :
				  worded(&err);

	arena_release(&mem);
	return ok;
}

static enum verdict run_quantity(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	char *text = arena_text_n(&mem, (const char *)data, n), why[200];
	enum verdict ok = REFUSED;
	double v;

	for (int d = 0; d < DIMENSIONS; d++) {
		why[0] = '\0';
		if (quantity_parse(text, (enum dimension)d, &v, why, sizeof(why)))
			ok = ok == SILENT ? SILENT : TAKEN;
		else if (!why[0])
			ok = SILENT;
	}
	arena_release(&mem);
	return ok;
}

static enum verdict run_csv(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct csv *t = csv_read_text(&mem, "fuzz", (const char *)data, n, &err);
	enum verdict ok = t ? TAKEN : worded(&err);

	for (size_t r = 0; t && r < t->n_rows; r++)
		for (size_t c = 0; c < t->n_columns; c++) {
			double v;

			(void)!csv_number(t, r, (int)c, 0, &v, &err);
			(void)csv_mark(t, r, (int)c);
		}
	arena_release(&mem);
	return ok;
}

static enum verdict run_validate(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct ft_validation *v = ft_validate(put(&mem, "in.csv", data, n), NULL, 0,
					      (struct ft_progress){ 0 }, &err);
	enum verdict ok = v ? TAKEN : worded(&err);

	ft_validation_free(v);
	arena_release(&mem);
	return ok;
}

/* ---- measurements -------------------------------------------------------------------- */

static enum verdict read_store(struct ft_store *s, struct ft_error *err)
{
	char *text = NULL;
	size_t n, len;
	FILE *out = open_memstream(&text, &len);
	bool ok = out && ft_store_runs(s, &n, err) &&
		  ft_store_export(s, &(struct ft_export){ NULL, 0, "h200", "kernels" },
				  out, err) &&
		  ft_store_export(s,
				  &(struct ft_export){ NULL, 0, "h200", "collectives" },
				  out, err);

	if (out)
		fclose(out);
	free(text);
	return ok ? TAKEN : worded(err);
}

static enum verdict run_import(enum ft_import format, const uint8_t *data, size_t n)
{
	struct ft_probe_run run = { .backend = "fuzz",
				    .device = "",
				    .date = "",
				    .driver = "",
				    .fabric = "",
				    .libraries = "",
				    .source = "fuzz" };
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	const char *path = put(&mem, "in.csv", data, n);
	struct ft_store *store = ft_store_open(":memory:", true, &err);
	size_t cells;
	enum verdict ok;

	if (!store)
		abort();
	ok = ft_store_import(store, format, path, &run, &cells, &err) ?
		     read_store(store, &err) :
		     worded(&err);
	ft_store_close(store);
	arena_release(&mem);
	return ok;
}

#define IMPORTS(name, format) \
	static enum verdict name(const uint8_t *data, size_t n) \
	{ \
		return run_import(format, data, n); \
	}
IMPORTS(run_import_probe, FT_IMPORT_PROBE)
IMPORTS(run_import_csv, FT_IMPORT_CSV)
IMPORTS(run_import_nccl, FT_IMPORT_NCCL_TESTS)
IMPORTS(run_import_attention, FT_IMPORT_ATTENTION)
IMPORTS(run_import_kineto, FT_IMPORT_KINETO)

/* Read, ordered, replayed; by its first byte JSON, gzip, zstd, SQLite, or else Chakra's. */
static enum verdict run_recorded(const uint8_t *data, size_t n)
{
	const char *leaf = n && strchr("{\x1f(S", data[0]) ? "in.json" : "in.et";
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct ft_recording *r = ft_recording_read(put(&mem, leaf, data, n), &err);
	const struct ft_recording *const one[] = { r };
	struct ft_replay *p = r ? ft_replay_build(one, 1, &err) : NULL;
	enum verdict ok = p && ft_replay_lay_out(p, &err) ? TAKEN : worded(&err);

	if (ok == TAKEN) {
		struct ft_replay_times times = ft_replay_recorded(p, &mem);
		struct ft_replayed t = ft_replay_run(p, &times, &mem);
		struct ft_rec_window w = ft_replay_step(p, &t, 0, 0);

		ok = ft_replay_where(p, &t, 0, w).step_s >= 0 ? TAKEN : SILENT;
	}
	ft_replay_free(p);
	ft_recording_free(r);
	arena_release(&mem);
	return ok;
}

static enum verdict run_db(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err = { 0 };
	struct ft_store *s = ft_store_open(put(&mem, "in.db", data, n), false, &err);
	enum verdict ok = s ? read_store(s, &err) : worded(&err);

	ft_store_close(s);
	arena_release(&mem);
	return ok;
}

static enum verdict run_serve(const uint8_t *data, size_t n)
{
	/* sanitized, a step can take minutes: only what simulates nothing is called */
	return request_run(data, n, test.most_ops > 0 ? "/api/document" : NULL);
}

const struct target targets[] = {
	{ "scenario", run_scenario, { "examples/*/*.yaml" }, 0 },
	{ "graph", run_graph, { 0 }, 0 },
	{ "gpu", run_gpu, { "hw/gpus/h100-sxm.yaml", "hw/gpus/mi300x.yaml" }, 0 },
	{ "node", run_node, { "hw/nodes/*.yaml" }, 0 },
	{ "fabric", run_fabric, { "hw/fabrics/*.yaml" }, 0 },
	{ "site", run_site, { "hw/sites/*.yaml" }, 0 },
	{ "stack", run_stack, { "stacks/*.yaml" }, 0 },
	{ "prices", run_prices, { "cost/prices/*.yaml" }, 0 },
	{ "model", run_model, { "models/*.yaml" }, 0 },
	{ "set", run_set, { 0 }, 0 },
	{ "rows", run_rows, { "hw/gpus/h100-sxm.*.csv" }, 4000 },
	{ "yaml", run_node_text, { "examples/*/*.yaml" }, 0 },
	{ "quantity", run_quantity, { 0 }, 0 },
	{ "csv", run_csv, { "measurements/steps/*.csv" }, 4000 },
	{ "validate",
	  run_validate,
	  { "measurements/steps/*.csv", "measurements/kernels/*.csv",
	    "examples/*/*.csv" },
	  700 },
	{ "import-probe", run_import_probe, { 0 }, 4000 },
	{ "import-csv", run_import_csv, { "measurements/kernels/*.csv" }, 2000 },
	{ "import-nccl", run_import_nccl, { 0 }, 0 },
	{ "import-attention", run_import_attention, { 0 }, 0 },
	{ "import-kineto", run_import_kineto, { "tests/data/kineto-step.json" }, 0 },
	{ "recorded", run_recorded, { "tests/data/kineto-step.json" }, 0 },
	{ "db", run_db, { 0 }, 0 },
	{ "serve", run_serve, { 0 }, 0 },
	{ NULL, NULL, { 0 }, 0 },
};
