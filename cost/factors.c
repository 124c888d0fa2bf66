/* cost/factors.c - the loadings of uncertain amounts, read */
#include "cost/factors.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/reader.h"

static const char *const cause_names[CAUSES] = {
	[CAUSE_SERVERS_NVIDIA] = "servers_nvidia",
	[CAUSE_SERVERS_AMD] = "servers_amd",
	[CAUSE_NETWORK_NVIDIA] = "network_nvidia",
	[CAUSE_NETWORK] = "network",
	[CAUSE_OPTICS] = "optics",
	[CAUSE_STORAGE] = "storage",
	[CAUSE_MANAGEMENT] = "management",
	[CAUSE_RENT_NVIDIA] = "rent_nvidia",
	[CAUSE_RENT_AMD] = "rent_amd",
	[CAUSE_COLOCATION] = "colocation",
	[CAUSE_ELECTRICITY] = "electricity",
	[CAUSE_MAINTENANCE] = "maintenance",
	[CAUSE_FAILURES] = "failures",
	[CAUSE_CHECKPOINT] = "checkpoint",
	[CAUSE_RESTART] = "restart",
	[CAUSE_RECOVERY] = "recovery",
	[CAUSE_PUE] = "pue",
	[CAUSE_WATTS] = "watts",
	[CAUSE_UTILIZATION] = "utilization",
	[CAUSE_THROUGHPUT] = "throughput",
};

/* The index of a factor, new when nobody named it before; FACTORS_MOST: too many. */
static size_t factor_of(struct arena *mem, struct factors *f, const char *name)
{
	size_t i = 0;

	while (i < f->n && strcmp(f->name[i], name) != 0)
		i++;
	if (i == f->n && i < FACTORS_MOST)
		f->name[f->n++] = arena_text(mem, name);
	return i;
}

static bool read_loadings(struct arena *mem, struct factors *f, const struct node *map,
			  double to[FACTORS_MOST], struct ft_error *err)
{
	struct reader r = reader_open(map, err);
	double squares = 0;

	for (size_t i = 0; r.map && i < map->n; i++) {
		size_t k = factor_of(mem, f, map->key[i]);
		double loading = read_quantity(&r, map->key[i], DIM_NONE, 0);

		if (k == FACTORS_MOST)
			return reader_fail(&r, map->key[i], "is one factor too many");
		to[k] = loading;
		squares += loading * loading;
	}
	if (squares > 1)
		return reader_fail(&r, NULL, "has loadings whose squares exceed 1");
	return reader_close(&r);
}

static bool read_all(struct arena *mem, struct factors *f, const struct node *root,
		     struct ft_error *err)
{
	struct reader r = reader_open(root, err), loadings, idle;
	const struct node *map, *hours;

	read_provenance(&r, mem);
	map = read_need(&r, "loadings");
	hours = read_need(&r, "idle_hours");
	if (!reader_close(&r))
		return false;
	loadings = reader_open(map, err);
	for (int c = 0; c < CAUSES; c++) {
		const struct node *of = read_need(&loadings, cause_names[c]);

		if (!read_loadings(mem, f, of, f->loading[c], err))
			return false;
	}
	idle = reader_open(hours, err);
	f->idle_low = read_quantity(&idle, "low", DIM_NONE, 0);
	f->idle_high = read_quantity(&idle, "high", DIM_NONE, 0);
	if (!idle.failed && (!(f->idle_low > 0) || f->idle_low > 1 || f->idle_high < 1))
		reader_fail(&idle, NULL,
			    "needs a low above 0 and up to 1, and a high of 1 or more");
	return reader_close(&loadings) && reader_close(&idle);
}

const struct factors *factors_load(struct arena *mem, struct ft_error *err)
{
	const char *path = file_find(mem, "cost", "factors", NULL, err);
	const struct node *root = path ? node_read_file(mem, path, err) : NULL;
	struct factors *f = ARENA_NEW(mem, struct factors);

	if (!root || !read_all(mem, f, root, err))
		return NULL;
	return f;
}
