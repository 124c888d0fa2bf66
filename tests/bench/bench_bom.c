/* tests/bench/bench_bom.c - parts and their bill: cluster from YAML, and the bill alone */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/clock.h"
#include "foretoken/cost.h"

static void one(const char *cluster_text, const struct ft_prices *book)
{
	enum { ROUNDS = 20 };
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node =
		node_read_text(&mem, "bench", cluster_text, strlen(cluster_text), &err);
	double load_s = 0, bill_s = 0, t;

	for (int i = 0; i < ROUNDS; i++) {
		struct ft_cluster *c;
		struct ft_bom *bom;

		t = clock_now_s();
		c = ft_cluster_load_rows(node, 0, &err);
		load_s += clock_now_s() - t;
		if (!c)
			abort();
		t = clock_now_s();
		bom = ft_bom_build(c, book, &err);
		bill_s += clock_now_s() - t;
		if (!bom)
			abort();
		ft_bom_free(bom);
		ft_cluster_free(c);
	}
	printf("bom %-36s load and parts %6.2f ms, bill %7.4f ms\n", cluster_text,
	       1e3 * load_s / ROUNDS, 1e3 * bill_s / ROUNDS);
	arena_release(&mem);
}

int main(void)
{
	struct ft_error err;
	double t = clock_now_s();
	struct ft_prices *book = ft_prices_load(FT_DEFAULT_PRICES, NULL, &err);

	if (!book)
		return 1;
	printf("bom %-36s %.2f ms\n", "price book from YAML",
	       1e3 * (clock_now_s() - t));
	one("{gpu: h100-sxm, gpus: 1024}", book);
	one("{gpu: h100-sxm, gpus: 100000}", book);
	one("{gpu: mi300x, gpus: 100000}", book);
	ft_prices_free(book);
	return 0;
}
