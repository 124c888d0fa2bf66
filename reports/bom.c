/* reports/bom.c - a bill of materials and the table of parts: text, CSV, JSON */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "reports/evidence.h"
#include "reports/json.h"
#include "reports/network_svg.h"
#include "reports/plot.h"
#include "reports/prices.h"
#include "reports/show.h"
#include "reports/table.h"

static double full_w(const struct ft_parts *p)
{
	return ft_parts_w(p) + ft_parts_gpus_w(p) + ft_parts_spares_w(p);
}

/* ---- text ------------------------------------------------------------------------- */

static void put_title(FILE *out, const struct ft_cluster *c)
{
	const struct ft_topology *f = &c->topology;

	fprintf(out,
		"%" PRId64 " %s in %" PRId64 " nodes, fabric %s: %" PRId64
		" tiers, %" PRId64 " leaf, %" PRId64 " spine, %" PRId64 " core",
		c->gpus, c->gpu->title, c->nodes, c->fabric->name, f->tiers, f->leaf,
		f->spine, f->core);
	if (f->top)
		fprintf(out, ", %" PRId64 " top", f->top);
	fprintf(out, "; cables %" PRId64 " / %" PRId64 " / %" PRId64,
		f->cables_node_leaf, f->cables_leaf_spine, f->cables_spine_core);
	if (f->top)
		fprintf(out, " / %" PRId64, f->cables_core_top);
	fputs("\n\n", out);
}

static void put_sum(struct table *t, const char *name, double usd)
{
	table_row(t);
	table_put(t, "%s", name);
	for (int i = 0; i < 3; i++)
		table_put(t, " ");
	table_put(t, "%.0f", usd);
}

/* What is around the money: power, racks, failures, carbon. */
static void put_physics(FILE *out, const struct ft_cluster *c, const struct ft_bom *bom)
{
	const struct ft_parts *p = c->parts;
	char w[SHOWN], said[SENTENCE] = "";

	fprintf(out,
		"\nSite %s: %s of IT power at full load, %" PRId64
		" rack%s, %.0f t of CO2e embodied",
		p->site, quantity_text(full_w(p), DIM_W, w, sizeof(w)), p->racks,
		p->racks == 1 ? "" : "s", ft_parts_carbon_kg(p) / 1000);
	if (bom->job_failures_per_hour > 0)
		fprintf(out, "; a job is stopped by a failure every %s h",
			shown_digits(1 / bom->job_failures_per_hour, w));
	fputs(".\n", out);
	if (bom->apart_usd > 0)
		fputs("The book lists adapters apart: each server's price is without them here, "
		      "and with them in --price and in what makes scenarios equal.\n",
		      out);
	if (*c->fabric->optic_leaf_item && ft_parts_modules(p))
		fprintf(out, "Optical modules are %s ones (cluster.optics).\n",
			c->fabric->optics);
	if (p->spare_nodes && c->topology.tiers)
		fprintf(out,
			"The %" PRId64
			" spare node%s no ports in these networks and no "
			"integration: ask for as many nodes more where spares are to "
			"take over at once.\n",
			p->spare_nodes, p->spare_nodes == 1 ? " has" : "s have");
	if (*evidence_ports(c, said))
		fprintf(out, "%s\n", said);
	if (*evidence_ratios(c, said))
		fprintf(out, "%s\n", said);
}

void ft_report_bom(FILE *out, const struct ft_cluster *c, const struct ft_bom *bom)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct table t;

	put_title(out, c);
	t = TABLE_OPEN(out, "role", "item", ">count", ">unit USD", ">total USD",
		       "price", "date", "book", "source");
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *b = &bom->item[i];

		table_row(&t);
		table_put(&t, "%s", b->what);
		table_put(&t, "%s", b->item);
		table_put(&t, "%" PRId64, b->count);
		table_put(&t, "%.0f", b->unit_usd);
		table_put(&t, "%.0f", b->total_usd);
		table_put(&t, "%s", ft_price_kind_name(b->kind));
		table_put(&t, "%s", *b->date ? b->date : "-");
		table_put(&t, "%s", b->book);
		table_put(&t, "%s", b->source);
	}
	put_sum(&t, "network", bom->network_usd);
	put_sum(&t, "total", bom->total_usd);
	table_close(&t);
	put_physics(out, c, bom);
	fprintf(out, "%s\n", prices_said(&mem, bom, NULL));
	arena_release(&mem);
}

/* ---- CSV -------------------------------------------------------------------------- */

bool ft_report_network(const char *path, const struct ft_cluster *c,
		       struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct file_out f;

	if (!c->topology.leaf)
		return ft_fail(err, NULL,
			       "there is no network to draw: one node, or fabric none");
	if (!plot_is_svg(path, err) || !file_begin(&f, path, err))
		return false;
	network_svg(f.out, c, "network by tiers", true);
	return file_commit(&f, err);
}

void ft_report_bom_csv(FILE *out, const struct ft_bom *bom)
{
	PLAIN_NUMBERS;
	fputs("role,item,count,unit_usd,total_usd,low_usd,high_usd,kind,date,book,vendor,"
	      "source,address,class\n",
	      out);
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *b = &bom->item[i];

		csv_cell(out, b->what);
		fprintf(out, ",%s,%" PRId64 ",%.2f,%.2f,%.2f,%.2f,%s,%s,%s,", b->item,
			b->count, b->unit_usd, b->total_usd, b->low_usd, b->high_usd,
			ft_price_kind_name(b->kind), b->date, b->book);
		csv_cell(out, b->vendor);
		putc(',', out);
		csv_cell(out, b->source);
		putc(',', out);
		csv_cell(out, b->address);
		fprintf(out, ",%s\n", ft_part_class_name(b->part_class));
	}
	fprintf(out, "total,,,,%.2f,%.2f,%.2f,,,,,,,\n", bom->total_usd, bom->low_usd,
		bom->high_usd);
}

/* ---- JSON ------------------------------------------------------------------------- */

static json_t *fabric_json(const struct ft_cluster *c)
{
	const struct ft_topology *t = &c->topology;
	json_t *f = json_object();

	json_put_text(f, "name", c->fabric->name);
	json_put_int(f, "tiers", t->tiers);
	json_put_int(f, "nodes", c->nodes);
	json_put_int(f, "planes", t->planes);
	json_put_int(f, "leaf", t->leaf);
	json_put_int(f, "spine", t->spine);
	json_put_int(f, "core", t->core);
	json_put_int(f, "top", t->top);
	json_put_int(f, "cables_node_leaf", t->cables_node_leaf);
	json_put_int(f, "cables_leaf_spine", t->cables_leaf_spine);
	json_put_int(f, "cables_spine_core", t->cables_spine_core);
	json_put_int(f, "cables_core_top", t->cables_core_top);
	json_put_int(f, "transceivers", ft_parts_modules(c->parts));
	json_put_text(f, "optics", c->fabric->optics);
	return f;
}

static json_t *items_json(const struct ft_bom *bom)
{
	json_t *items = json_array();

	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *b = &bom->item[i];
		json_t *o = json_object();

		json_put_text(o, "item", b->item);
		json_put_text(o, "what", b->what);
		json_put_text(o, "class", ft_part_class_name(b->part_class));
		json_put_int(o, "count", b->count);
		json_put(o, "unit_usd", b->unit_usd);
		json_put(o, "total_usd", b->total_usd);
		json_put(o, "low_usd", b->low_usd);
		json_put(o, "high_usd", b->high_usd);
		json_put_text(o, "source", b->source);
		json_put_text(o, "date", b->date);
		json_put_text(o, "kind", ft_price_kind_name(b->kind));
		json_put_text(o, "book", b->book);
		json_put_text(o, "vendor", b->vendor);
		json_put_text(o, "address", b->address);
		json_array_append_new(items, o);
	}
	return items;
}

static json_t *part_json(const struct ft_part_line *l)
{
	const struct ft_part *p = l->part;
	json_t *o = json_object();

	json_put_text(o, "item", l->item);
	json_put_text(o, "role", l->role);
	json_put_text(o, "class", ft_part_class_name(l->part_class));
	json_put_int(o, "count", l->count);
	json_put_bool(o, "included", l->included);
	if (!p)
		return o;
	json_put(o, "full_w", p->max_w.value);
	if (p->max_w.from)
		json_put_text(o, "power_source", p->max_w.from->source);
	if (!l->gpu)
		json_put(o, "typical_w", p->max_w.value * p->typical_frac.value);
	json_put(o, "rack_units", p->rack_units.value);
	if (p->mttf_years.value > 0)
		json_put(o, "mttf_years", p->mttf_years.value);
	if (p->life_years.value > 0)
		json_put(o, "life_years", p->life_years.value);
	json_put(o, "carbon_kg", p->carbon_kg.value);
	return o;
}

static json_t *parts_json(const struct ft_parts *p)
{
	json_t *o = json_object(), *lines = json_array(), *failures = json_object();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(lines, part_json(&p->line[i]));
	for (int k = 0; k < FT_PART_CLASSES; k++)
		json_put(failures, ft_part_class_name((enum ft_part_class)k),
			 ft_parts_failures_per_hour(p, (enum ft_part_class)k));
	json_put_text(o, "site", p->site);
	json_object_set_new(o, "lines", lines);
	json_put(o, "full_w", full_w(p));
	json_object_set_new(o, "failures_per_hour", failures);
	json_put_int(o, "racks", p->racks);
	json_put(o, "rack_units", ft_parts_rack_units(p));
	json_put_int(o, "spare_nodes", p->spare_nodes);
	json_put(o, "carbon_kg", ft_parts_carbon_kg(p));
	return o;
}

static json_t *classes_json(const struct ft_bom *bom)
{
	json_t *o = json_object();

	for (int k = 0; k < FT_PART_CLASSES; k++)
		json_put(o, ft_part_class_name((enum ft_part_class)k),
			 bom->by_class_usd[k]);
	return o;
}

void ft_report_bom_json(FILE *out, const struct ft_cluster *c, const struct ft_bom *bom)
{
	PLAIN_NUMBERS;
	json_t *j = json_object();

	json_object_set_new(j, "fabric", fabric_json(c));
	json_object_set_new(j, "items", items_json(bom));
	json_object_set_new(j, "parts", parts_json(c->parts));
	json_object_set_new(j, "by_class_usd", classes_json(bom));
	json_put(j, "job_failures_per_hour", bom->job_failures_per_hour);
	json_put(j, "network_usd", bom->network_usd);
	json_put(j, "low_usd", bom->low_usd);
	json_put(j, "high_usd", bom->high_usd);
	json_put(j, "total_usd", bom->total_usd);
	json_object_set_new(j, "prices", prices_json(bom, NULL));
	json_print(out, j);
}
