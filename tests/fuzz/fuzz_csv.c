/* tests/fuzz/fuzz_csv.c - CSV tables, every cell read as text and as a number */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct csv *t = csv_read_text(&mem, "fuzz", (const char *)data, n, &err);

	for (size_t r = 0; t && r < t->n_rows; r++)
		for (size_t c = 0; c < t->n_columns; c++) {
			double v;

			(void)csv_number(t, r, (int)c, 0, &v, &err);
			(void)csv_mark(t, r, (int)c);
		}
	arena_release(&mem);
	return 0;
}
