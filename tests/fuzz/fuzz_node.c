/* tests/fuzz/fuzz_node.c - YAML and JSON documents, read and used as a scenario */
#include <stdint.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "fuzz", (const char *)data, n, &err);

	if (node)
		ft_model_free(ft_model_load(node, &err));
	arena_release(&mem);
	return 0;
}
