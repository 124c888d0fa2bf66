/* tests/test_bom.c - bills of materials and the books that price them */
#include "tests/check.h"

#include <math.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/node.h"
#include "cost/price.h"
#include "foretoken/cost.h"

static struct ft_cluster *cluster_of(const char *yaml)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), &err);
	struct ft_cluster *cluster;

	assert_non_null(node);
	cluster = ft_cluster_load(node, &err);
	if (!cluster)
		fail_msg("%s", err.text);
	arena_release(&mem);
	return cluster;
}

static struct ft_prices *book_of(const char *name)
{
	struct ft_error err;
	struct ft_prices *prices = ft_prices_load(name, NULL, &err);

	if (!prices)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.text);
	return prices;
}

static struct ft_bom *bill(const char *yaml, const char *book)
{
	struct ft_cluster *cluster = cluster_of(yaml);
	struct ft_prices *prices = book_of(book);
	struct ft_error err;
	struct ft_bom *bom = ft_bom_build(cluster, prices, &err);

	if (!bom)
		fail_msg("%s", err.text);
	ft_prices_free(prices);
	ft_cluster_free(cluster);
	return bom;
}

/* The book and the cluster are gone by now: a bill stands alone. */
static const struct ft_bom_item *line(const struct ft_bom *bom, const char *what)
{
	for (size_t i = 0; i < bom->n_items; i++)
		if (!strcmp(bom->item[i].what, what))
			return &bom->item[i];
	fail_msg("no line %s", what);
	return NULL;
}

/* 1,024 GPUs, two tiers, 400 Gb/s, prices of MixNet (SIGCOMM 2025) table 4:
 * 4,096 optics, 3,072 switch ports, 1,024 NICs. */
static void mixnets_prices_give_their_network(void **state)
{
	struct ft_bom *bom = bill("{gpu: h100-sxm, gpus: 1024}", "mixnet-2025");
	struct ft_bom *same = bill("{gpu: h100-sxm, gpus: 1024, "
				   "node: hgx-h100}",
				   "neocloud-2026-09");

	(void)state;
	assert_true(bom->network_usd == 7582720);
	assert_true(line(bom, "optics in nodes")->total_usd +
			    line(bom, "optics in leaves, to nodes")->total_usd +
			    line(bom, "optics leaf to spine")->total_usd ==
		    2699264);
	assert_true(line(bom, "leaf switch")->total_usd +
			    line(bom, "spine switch")->total_usd ==
		    3348480);
	assert_true(line(bom, "NIC")->total_usd == 1534976);
	assert_true(line(bom, "NIC")->total_usd + line(bom, "server")->total_usd ==
		    line(same, "server")->total_usd); /* counted once */
	ft_bom_free(bom);
	ft_bom_free(same);
}

/* SemiAnalysis, 2025-08-20: 190,000 a server, 250,000 with storage and network;
 * GB200 3.1 M a rack, 3.9 M all in. */
static void a_hyperscalers_cluster_costs_about_what_is_told(void **state)
{
	struct ft_bom *h100 =
		bill("{gpu: h100-sxm, gpus: 1024}", "hyperscaler-2025-08");
	struct ft_bom *gb200 = bill("{gpu: gb200, gpus: 1152}", "hyperscaler-2025-08");

	(void)state;
	assert_true(fabs(h100->total_usd / 128 / 250000 - 1) < 0.03);
	assert_int_equal(line(gb200, "rack")->count, 16);
	assert_true(fabs(gb200->total_usd / 16 / 3.9e6 - 1) < 0.08);
	ft_bom_free(h100);
	ft_bom_free(gb200);
}

/* SemiAnalysis, 2024-10-03: about 318,000 a server in NVIDIA's reference design
 * without storage, 256,400 to 270,000 of it the server. */
static void a_neoclouds_cluster_costs_about_what_is_told(void **state)
{
	struct ft_bom *bom = bill("{gpu: h100-sxm, gpus: 1024}", "neocloud-2024-10");
	double bare = bom->total_usd - line(bom, "storage server")->total_usd;

	(void)state;
	assert_true(fabs(bare / 128 / 318000 - 1) < 0.05);
	ft_bom_free(bom);
}

static void counts_are_the_topologys(void **state)
{
	struct ft_cluster *c = cluster_of("{gpu: h100-sxm, gpus: 1016, "
					  "ufm_ports: 4}");
	struct ft_bom *bom =
		bill("{gpu: h100-sxm, gpus: 1016, ufm_ports: 4}", "neocloud-2026-09");
	const struct ft_topology *t = &c->topology;

	(void)state;
	assert_int_equal(line(bom, "server")->count, 127);
	assert_int_equal(line(bom, "leaf switch")->count, t->leaf);
	assert_int_equal(line(bom, "spine switch")->count, t->spine);
	assert_int_equal(line(bom, "cables node to leaf")->count, 1020);
	assert_int_equal(line(bom, "cables leaf to spine")->count, 1024);
	ft_bom_free(bom);
	ft_cluster_free(c);
}

static void totals_are_the_sums_of_their_lines(void **state)
{
	struct ft_bom *bom = bill("{gpu: mi300x, gpus: 4096}", "neocloud-2026-09");
	double total = 0, low = 0, high = 0, network = 0, classes = 0;

	(void)state;
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *l = &bom->item[i];

		classes += l->part_class == FT_PART_NETWORK ? 0 : l->total_usd;
		assert_true(l->low_usd <= l->total_usd);
		assert_true(l->total_usd <= l->high_usd);
		assert_true(fabs(l->total_usd - (double)l->count * l->unit_usd) < 1e-6);
		assert_true(*l->date);
		total += l->total_usd;
		low += l->low_usd;
		high += l->high_usd;
		network += l->network ? l->total_usd : 0;
	}
	assert_true(total == bom->total_usd && network == bom->network_usd);
	assert_true(fabs(classes + bom->by_class_usd[FT_PART_NETWORK] - total) < 1e-3);
	assert_true(bom->by_class_usd[FT_PART_NETWORK] == bom->network_usd);
	assert_true(low == bom->low_usd && high == bom->high_usd);
	assert_int_equal(line(bom, "server")->kind, FT_PRICE_GUESSED);
	ft_bom_free(bom);
}

/* The obvious sums, and each line's book and date within what is told of the bill. */
static void a_bill_tells_what_it_stands_on(void **state)
{
	struct ft_bom *bom = bill("{gpu: h100-sxm, gpus: 1024}", "neocloud-2024-10");
	double of[FT_PRICE_KINDS] = { 0 }, sum = 0;

	(void)state;
	for (size_t i = 0; i < bom->n_items; i++) {
		of[bom->item[i].kind] += bom->item[i].total_usd;
		assert_true(strcmp(bom->item[i].date, bom->first_date) >= 0);
		assert_true(strcmp(bom->item[i].date, bom->last_date) <= 0);
	}
	for (int k = 0; k < FT_PRICE_KINDS; k++) {
		assert_true(of[k] == bom->by_kind_usd[k]);
		sum += of[k];
	}
	/* 128 servers and 2 to spare */
	assert_true(of[FT_PRICE_QUOTED] ==
			    130 * 270000. + 48 * 50000. +
				    line(bom, "front-end optics")->total_usd &&
		    of[FT_PRICE_GIVEN] == 0);
	assert_true(fabs(sum - bom->total_usd) < 1e-3);
	assert_string_equal(bom->book, "neocloud-2024-10");
	assert_string_equal(line(bom, "leaf switch")->book, "neocloud-2024-10");
	assert_string_equal(line(bom, "cables node to leaf")->book, "neocloud-2026-09");
	assert_string_equal(line(bom, "storage server")->book, "neocloud-2026-09");
	assert_string_equal(bom->first_date, "2024-08");
	ft_bom_free(bom);
}

static void one_node_buys_no_network(void **state)
{
	struct ft_bom *bom = bill("{gpu: h200, gpus: 8}", "mixnet-2025");

	(void)state;
	assert_true(bom->network_usd == 0);
	assert_int_equal(line(bom, "server")->count, 1);
	assert_true(line(bom, "server")->unit_usd == 370000);
	ft_bom_free(bom);
}

/* Modules of each reach and maker. */
static void need_modules(const struct ft_prices *p, const char *item)
{
	static const char *const reach[] = { "", "-dr", "-fr" }, *const maker[] = {
		"generic", "nvidia"
	};
	char name[80];

	for (int i = 0; *item && i < 6; i++) {
		snprintf(name, sizeof(name), "%s%s-%s", item, reach[i / 2],
			 maker[i % 2]);
		if (!price_find(p, name))
			fail_msg("%s: %s", p->name, name);
	}
}

/* Every item that a node or a fabric names has its price in every book. */
static void every_book_prices_everything(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	size_t n_books, n_nodes, n_fabrics;
	const char **book = file_list(&mem, "cost/prices", &n_books, &err);
	const char **node = file_list(&mem, "hw/nodes", &n_nodes, &err);
	const char **fabric = file_list(&mem, "hw/fabrics", &n_fabrics, &err);

	(void)state;
	assert_true(n_books >= 4);
	for (size_t b = 0; b < n_books; b++) {
		struct ft_prices *p = book_of(book[b]);

		assert_string_equal(p->name, book[b]);
		if (p->n_rents) { /* what is rented has no bill */
			assert_true(!p->n_prices);
			ft_prices_free(p);
			continue;
		}
		for (size_t i = 0; i < n_nodes; i++) {
			struct ft_node *n = ft_node_load(node[i], NULL, &err);

			if (!price_find(p, n->price_item))
				fail_msg("%s: %s", book[b], n->price_item);
			ft_node_free(n);
		}
		for (size_t i = 0; i < n_fabrics; i++) {
			struct ft_fabric *f = ft_fabric_load(fabric[i], NULL, &err);
			const char *item[] = { f->switch_item, f->cable_node_item,
					       f->cable_leaf_item, f->nic_item };

			for (size_t k = 0; k < 4; k++)
				if (*item[k] && !price_find(p, item[k]))
					fail_msg("%s: %s", book[b], item[k]);
			need_modules(p, f->optic_node_item);
			need_modules(p, f->optic_leaf_item);
			ft_fabric_free(f);
		}
		for (size_t i = 0; i < p->n_prices; i++)
			assert_true(*p->price[i].usd.from->date);
		ft_prices_free(p);
	}
	arena_release(&mem);
}

/* A book that takes lines one by one has the others' whole, and its own untouched. */
static void a_line_from_another_book_is_that_books_line(void **state)
{
	struct ft_prices *p = book_of("mixnet-2025"), *o = book_of("neocloud-2026-09");
	const struct ft_price *s = price_find(p, "switch-ndr-64");
	const struct ft_price *taken = price_find(p, "hgx-h100-server");
	const struct ft_price *there = price_find(o, "hgx-h100-server");

	(void)state;
	assert_true(s->usd.low == s->usd.value);
	assert_string_equal(s->usd.from->note, "64 ports of 1090");
	assert_string_equal(s->book, "mixnet-2025");
	assert_string_equal(price_find(p, "nic-400g")->usd.from->note, "ConnectX-7");
	assert_string_equal(taken->book, "neocloud-2026-09");
	assert_string_equal(there->book, "neocloud-2026-09");
	assert_true(taken->usd.value == there->usd.value &&
		    taken->usd.low == there->usd.low &&
		    taken->usd.high == there->usd.high);
	assert_string_equal(taken->usd.from->date, there->usd.from->date);
	assert_true(p->n_taken > 0 && !o->n_taken);
	for (size_t i = 0; i < p->n_taken; i++)
		assert_string_not_equal(p->taken[i].figure, "provenance");
	ft_prices_free(p);
	ft_prices_free(o);
}

/* No book of ours leans on another year's without saying so at each line. */
static void our_books_are_closed(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	size_t n;
	const char **name = file_list(&mem, "cost/prices", &n, &err);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const char *path = file_find(&mem, "cost/prices", name[i], NULL, &err);
		struct node *book = node_read_file(&mem, path, &err);

		assert_non_null(book);
		assert_null(node_get(book, "extends"));
		assert_non_null(node_get(book, "date"));
	}
	arena_release(&mem);
}

/* A book may price by GPU what is around: then no part of those classes is a line. */
static void an_allowance_stands_for_its_parts(void **state)
{
	struct ft_prices *whole = book_of("neocloud-2026-09");
	struct ft_prices book = *whole;
	struct ft_cluster *c = cluster_of("{gpu: h100-sxm, gpus: 1024}");
	struct ft_error err;
	struct ft_bom *by_part = ft_bom_build(c, whole, &err), *by_gpu;
	struct ft_number each = *(&price_find(whole, "rack")->usd);

	(void)state;
	each.value = each.low = each.high = 1000;
	book.storage = book.management = *price_find(whole, "rack");
	book.storage.item = "storage";
	book.management.item = "management";
	book.storage.usd = book.management.usd = each;
	by_gpu = ft_bom_build(c, &book, &err);
	assert_non_null(by_gpu);
	assert_true(line(by_gpu, "storage, by GPU")->total_usd == 1024000);
	for (size_t i = 0; i < by_gpu->n_items; i++)
		assert_true(strcmp(by_gpu->item[i].item, "storage-server") != 0 &&
			    strcmp(by_gpu->item[i].item, "rack") != 0);
	assert_true(by_gpu->by_class_usd[FT_PART_STORAGE] == 1024000 &&
		    by_gpu->by_class_usd[FT_PART_FACILITY] == 0);
	assert_true(by_gpu->network_usd == by_part->network_usd);
	ft_bom_free(by_part);
	ft_bom_free(by_gpu);
	ft_prices_free(whole);
	ft_cluster_free(c);
}

static void the_default_book_is_named(void **state)
{
	struct ft_cost_terms terms;
	struct ft_error err;

	(void)state;
	assert_true(ft_cost_terms_load(NULL, &terms, &err));
	assert_string_equal(terms.prices, FT_DEFAULT_PRICES);
	ft_prices_free(book_of(FT_DEFAULT_PRICES));
	assert_null(ft_prices_load("hyperscaler-2025-80", NULL, &err));
	assert_non_null(strstr(err.text, "hyperscaler-2025-08"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mixnets_prices_give_their_network),
		cmocka_unit_test(a_hyperscalers_cluster_costs_about_what_is_told),
		cmocka_unit_test(a_neoclouds_cluster_costs_about_what_is_told),
		cmocka_unit_test(counts_are_the_topologys),
		cmocka_unit_test(totals_are_the_sums_of_their_lines),
		cmocka_unit_test(one_node_buys_no_network),
		cmocka_unit_test(every_book_prices_everything),
		cmocka_unit_test(a_bill_tells_what_it_stands_on),
		cmocka_unit_test(a_line_from_another_book_is_that_books_line),
		cmocka_unit_test(our_books_are_closed),
		cmocka_unit_test(an_allowance_stands_for_its_parts),
		cmocka_unit_test(the_default_book_is_named),
	};

	return cmocka_run_group_tests_name("cost/bom", tests, NULL, NULL);
}
