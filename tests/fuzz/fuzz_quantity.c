/* tests/fuzz/fuzz_quantity.c - quantities in every dimension, and --set */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err;
	char *text = arena_text_n(&mem, (const char *)data, n), why[200];
	struct node *root = node_map(&mem, NULL);
	double v;

	for (int d = 0; d < DIMENSIONS; d++)
		(void)quantity_parse(text, (enum dimension)d, &v, why, sizeof(why));
	(void)node_set(&mem, root, text, &err);
	arena_release(&mem);
	return 0;
}
