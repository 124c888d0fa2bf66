/* hw/catalogue.c - physical facts of parts, read from hw/parts */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/reader.h"
#include "hw/parts.h"

static const char *const classes[FT_PART_CLASSES] = {
	"server",     "network",  "front-end", "storage",
	"management", "facility", "service",   "spare",
};

const char *ft_part_class_name(enum ft_part_class part_class)
{
	return classes[part_class];
}

const struct ft_part *catalogue_find(const struct catalogue *from, const char *item)
{
	for (size_t i = 0; i < from->n; i++)
		if (!strcmp(from->part[i].item, item))
			return &from->part[i];
	return NULL;
}

/* The item, or of those slower than it, or of twice its ports, one that carries so much. */
static const char *carrier(const struct catalogue *from, const char *item,
			   double bytes_per_s)
{
	const struct ft_part *part = catalogue_find(from, item), *next;

	while (part && part->bytes_per_s.value > 0) {
		double rate = part->bytes_per_s.value;
		bool less = *part->slower && 2 * bytes_per_s < rate * (1 + 1e-9);
		bool more = *part->twin && bytes_per_s > 2 * rate * (1 - 1e-9);

		if (!less && !more)
			break;
		item = less ? part->slower : part->twin;
		next = catalogue_find(from, item);
		if (next && (less ? next->bytes_per_s.value >= rate :
				    next->bytes_per_s.value <= rate))
			return part->item; /* no less, no more than it */
		part = next;
	}
	return item;
}

void catalogue_modules(const struct catalogue *from, const struct ft_cluster *c,
		       const char **node, const char **leaf)
{
	const struct ft_fabric *f = c->fabric;
	double nic = fmin(c->node->nic_bytes_per_s.value,
			  f->port_bytes_per_s.value * (double)f->planes);

	*node = f->optic_node_item;
	*leaf = f->optic_leaf_item;
	if (f->graph) /* says what there is */
		return;
	*node = carrier(from, *node, nic * (double)f->nic_ports_per_optic);
	*leaf = carrier(from, *leaf,
			nic / (double)f->planes * (double)f->ports_per_optic);
}

static void uncap(struct ft_number *frac, double by)
{
	frac->value = fmin(1, frac->value * by);
	frac->low = fmin(1, frac->low * by);
	frac->high = fmin(1, frac->high * by);
}

void catalogue_uncap(struct ft_part *part, const struct ft_gpu *gpu)
{
	double idle = gpu->idle_w.value;
	double by = (gpu->rated_w.value - idle) / (gpu->limit_w.value - idle);

	uncap(&part->memory_frac, by);
	uncap(&part->waiting_frac, by);
}

/* from: what numbers inherit. */
static bool read_part(struct arena *mem, const struct node *map,
		      const struct ft_provenance *from, struct ft_part *part,
		      struct ft_error *err)
{
	struct reader r = reader_open(map, err);

	r.from = from;
	read_provenance(&r, mem);
	part->title = read_text(&r, "title", part->item);
	part->part_class = (enum ft_part_class)read_choice(&r, "class", classes,
							   FT_PART_CLASSES, 0);
	part->max_w = read_number_or(&r, mem, "power", DIM_W, 0);
	reader_range(&r, "power", &part->max_w, 0);
	part->typical_frac = read_number_or(&r, mem, "typical_frac", DIM_FRAC, 1);
	reader_bound(&r, "typical_frac", &part->typical_frac, 0, 1);
	reader_range(&r, "typical_frac", &part->typical_frac, 0);
	part->memory_frac = read_number_or(&r, mem, "memory_frac", DIM_FRAC, 1);
	part->waiting_frac = read_number_or(&r, mem, "waiting_frac", DIM_FRAC, 1);
	reader_bound(&r, "memory_frac", &part->memory_frac, 0, 1);
	reader_bound(&r, "waiting_frac", &part->waiting_frac, 0, 1);
	reader_range(&r, "memory_frac", &part->memory_frac, 0);
	reader_range(&r, "waiting_frac", &part->waiting_frac, 0);
	part->clock_exponent = read_number_or(&r, mem, "clock_exponent", DIM_NONE, 1);
	reader_bound(&r, "clock_exponent", &part->clock_exponent, 1, 4);
	part->limit_window_s = read_number_or(&r, mem, "limit_window", DIM_S, 0);
	reader_bound(&r, "limit_window", &part->limit_window_s, 0, 10);
	part->mttf_years = read_number_or(&r, mem, "mttf_years", DIM_NONE, 0);
	part->rack_units = read_number_or(&r, mem, "rack_units", DIM_NONE, 0);
	part->life_years = read_number_or(&r, mem, "life_years", DIM_NONE, 0);
	part->carbon_kg = read_number_or(&r, mem, "carbon_kg", DIM_NONE, 0);
	reader_bound(&r, "mttf_years", &part->mttf_years, 0, 1e6);
	reader_bound(&r, "life_years", &part->life_years, 0, 100);
	part->reach_m = read_number_or(&r, mem, "reach", DIM_M, 0);
	part->bytes_per_s = read_number_or(&r, mem, "rate", DIM_BYTES_PER_S, 0);
	if (read_has(&r, "modules")) {
		part->takes_modules = read_bool(&r, "modules", true);
		part->own_ends = !part->takes_modules;
	}
	part->longer = read_name(&r, "longer", "");
	part->slower = read_name(&r, "slower", "");
	part->twin = read_name(&r, "twin", "");
	reader_bound(&r, "rack_units", &part->rack_units, 0, 60);
	reader_bound(&r, "carbon_kg", &part->carbon_kg, 0, 1e6);
	return reader_close(&r);
}

/* What is said of a part that is known stands beside what is known of it. */
static void inherit(const struct node *map, const struct ft_part *was,
		    struct ft_part *part)
{
	static const struct {
		const char *key;
		size_t at;
	} of[] = {
		{ "power", offsetof(struct ft_part, max_w) },
		{ "typical_frac", offsetof(struct ft_part, typical_frac) },
		{ "memory_frac", offsetof(struct ft_part, memory_frac) },
		{ "waiting_frac", offsetof(struct ft_part, waiting_frac) },
		{ "clock_exponent", offsetof(struct ft_part, clock_exponent) },
		{ "limit_window", offsetof(struct ft_part, limit_window_s) },
		{ "mttf_years", offsetof(struct ft_part, mttf_years) },
		{ "rack_units", offsetof(struct ft_part, rack_units) },
		{ "life_years", offsetof(struct ft_part, life_years) },
		{ "carbon_kg", offsetof(struct ft_part, carbon_kg) },
		{ "reach", offsetof(struct ft_part, reach_m) },
		{ "rate", offsetof(struct ft_part, bytes_per_s) },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (!node_get(map, of[i].key))
			memcpy((char *)part + of[i].at, (const char *)was + of[i].at,
			       sizeof(struct ft_number));
	if (!node_get(map, "title"))
		part->title = was->title;
	if (!node_get(map, "class"))
		part->part_class = was->part_class;
	if (!node_get(map, "modules")) {
		part->takes_modules = was->takes_modules;
		part->own_ends = was->own_ends;
	}
	if (!node_get(map, "longer"))
		part->longer = was->longer;
	if (!node_get(map, "slower"))
		part->slower = was->slower;
	if (!node_get(map, "twin"))
		part->twin = was->twin;
}

static bool read_list(struct arena *mem, const struct node *list,
		      const struct ft_provenance *from, struct catalogue *to,
		      struct ft_error *err)
{
	struct ft_part *all;

	if (list->kind != NODE_MAP)
		return ft_fail(err, &list->mark, "parts: should be a map of items");
	all = ARENA_ARRAY(mem, to->n + list->n, struct ft_part);
	/* what is read last is found first */
	for (size_t i = 0; i < list->n; i++) {
		const struct ft_part *was = catalogue_find(to, list->key[i]);

		all[i].item = list->key[i];
		if (!read_part(mem, list->item[i], from, &all[i], err))
			return false;
		if (was)
			inherit(list->item[i], was, &all[i]);
	}
	if (to->n)
		memcpy(all + list->n, to->part, to->n * sizeof(*all));
	to->part = all;
	to->n += list->n;
	return true;
}

static bool read_one(struct arena *mem, const char *name, struct catalogue *to,
		     struct ft_error *err)
{
	const char *path = file_find(mem, "hw/parts", name, NULL, err);
	struct node *map = path ? node_read_file(mem, path, err) : NULL;
	struct reader r;
	const struct node *list;

	if (!map)
		return false;
	r = reader_open(map, err);
	read_provenance(&r, mem);
	list = read_need(&r, "parts");
	return reader_close(&r) && read_list(mem, list, r.from, to, err);
}

bool catalogue_read(struct arena *mem, const struct node *more, struct catalogue *to,
		    struct ft_error *err)
{
	size_t n;
	const char **name = file_list(mem, "hw/parts", &n, err);
	struct ft_provenance *ours;

	*to = (struct catalogue){ 0 };
	if (!name)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!read_one(mem, name[i], to, err))
			return false;
	if (!more)
		return true;
	ours = ARENA_NEW(mem, struct ft_provenance);
	*ours = (struct ft_provenance){ FT_ASSUMED, "given in the site", "", "", "" };
	return read_list(mem, more, ours, to, err);
}
