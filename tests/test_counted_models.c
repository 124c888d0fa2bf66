/* tests/test_counted_models.c - parameters of every decoder, as Transformers built and counted it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/models.h"

enum { LINE = 1 << 16 };

/* The model of this config.json, without tokens predicted ahead: the library trains none. */
static struct ft_model *load(const json_t *config, struct ft_error *err)
{
	char path[] = "/tmp/foretoken-XXXXXX.json", yaml[100];
	struct arena mem = { 0 };
	int fd = mkstemps(path, 5);
	struct ft_model *model;
	struct node *node;

	assert_true(fd >= 0);
	assert_int_equal(json_dumpfd(config, fd, 0), 0);
	close(fd);
	snprintf(yaml, sizeof(yaml), "{name: %s, num_nextn_predict_layers: 0}", path);
	node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), err);
	assert_non_null(node);
	model = ft_model_load(node, err);
	arena_release(&mem);
	unlink(path);
	return model;
}

static void counts_are_those_of_the_library(void **state)
{
	gzFile f = gzopen("measurements/models/transformers-5.17-2026-11-25.jsonl.gz",
			  "rb");
	char *line = malloc(LINE);
	int n = 0;

	(void)state;
	assert_non_null(f);
	assert_non_null(line);
	for (; gzgets(f, line, LINE); n++) {
		json_t *row = json_loads(line, 0, NULL);
		struct ft_error err = { 0 };
		struct ft_model *m;
		double counted;

		assert_non_null(row);
		counted =
			(double)json_integer_value(json_object_get(row, "parameters"));
		m = load(json_object_get(row, "config"), &err);
		if (!m || ft_model_parameters(m, 1) != counted)
			fail_msg("%.300s: %.0f, not %.0f %s", line,
				 m ? ft_model_parameters(m, 1) : 0, counted, err.text);
		ft_model_free(m);
		json_decref(row);
	}
	assert_int_equal(n, 281);
	free(line);
	gzclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_those_of_the_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
