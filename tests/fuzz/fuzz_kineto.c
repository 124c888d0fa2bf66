/* tests/fuzz/fuzz_kineto.c - recorded steps into a store that lives in memory */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "foretoken/calibrate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ft_probe_run run = { .backend = "kineto",
				    .device = "",
				    .date = "",
				    .driver = "",
				    .fabric = "",
				    .libraries = "",
				    .source = "fuzz" };
	int file = memfd_create("trace", 0);
	struct ft_store *store;
	struct ft_error err;
	char path[64];
	size_t cells;

	if (file < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	store = ft_store_open(":memory:", true, &err);
	if (store && write(file, data, n) == (ssize_t)n)
		(void)!ft_store_import(store, FT_IMPORT_KINETO, path, &run, &cells,
				       &err);
	ft_store_close(store);
	close(file);
	return 0;
}
