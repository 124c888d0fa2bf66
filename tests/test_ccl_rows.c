/*
 * tests/test_ccl_rows.c - how many numbers each row of a communication library's file takes: as many as
 * foretoken-ccl(5) says, or one for all, and no more
 */
#include "tests/ccl.h"

#include <unistd.h>

static const struct {
	const char *block; /* maps from the outside in */
	int n;
	const char *keys, *unit;
} rows[] = {
	{ "generations: {hopper: {ring: {", 3, "base hop hop_net step", " us" },
	{ "generations: {hopper: {ring: {", 3, "share efficiency", "" },
	{ "generations: {hopper: {ring: {", 3, "ll_most", " GB/s" },
	{ "generations: {hopper: {ring: {", 1, "ll128_channel_most", " GB/s" },
	{ "generations: {hopper: {ring: {", 1, "plateau", "" },
	{ "generations: {hopper: {tree: {", 3, "base hop hop_net", " us" },
	{ "generations: {hopper: {tree: {", 3, "share narrow efficiency", "" },
	{ "generations: {hopper: {tree: {", 1, "share_more", "" },
	{ "generations: {hopper: {tree: {", 2, "channel_most ll128_channel_most",
	  " GB/s" },
	{ "generations: {hopper: {tree: {", 2, "wait", " us" },
	{ "generations: {hopper: {sharp: {", 1, "start hop hop_net arity", " us" },
	{ "generations: {hopper: {sharp: {", 1, "share gather_share", "" },
	{ "all: {pat: {", 1, "base hop_net rank", " us" },
	{ "all: {pat: {", 1, "overlap share", "" },
	{ "all: {pairs: {", 1, "start peer", " us" },
	{ "all: {pairs: {", 1, "nic_share port_share", "" },
	{ "all: {pipeline: {", 1, "start hop", " us" },
	{ "all: {hierarchical: {", 1, "overlap", "" },
	{ "all: {hierarchical: {", 1, "chunk", " MB" },
	{ "all: {{", 3, "net_overhead", " us" },
	{ "all: {{", 1, "spread", "" },
	{ "generations: {hopper: {", 1, "channels", "" },
	{ "generations: {hopper: {nvls: {", 1, "hop", " us" },
	{ "generations: {hopper: {nvls: {", 1, "share", "" },
	{ "generations: {hopper: {nvls_tree: {", 1, "hop hop_net", " us" },
	{ "generations: {hopper: {nvls_tree: {", 1, "efficiency bus_gain", "" },
	{ "generations: {hopper: {nvls_tree: {", 2, "channel_most", " GB/s" },
};

/* Of nccl-2.30 with so many ones for a row; NULL: refused. */
static struct ft_ccl *with(size_t row, const char *key, int n, struct ft_error *err)
{
	char path[64];
	FILE *f = fopen(own_path(path, "rows.yaml"), "w");
	const char *block = rows[row].block;
	struct ft_ccl *c;

	assert_non_null(f);
	fputs("extends: nccl-2.30\nprovenance: {kind: assumed, date: 2026-11-26}\n", f);
	for (const char *at = block; *at; at++)
		if (at[0] != '{' || at[1] != '{') /* "{{" is one map */
			putc(*at, f);
	fprintf(f, "%s: [", key);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s1%s", i ? ", " : "", rows[row].unit);
	putc(']', f);
	for (const char *at = block; *at; at++)
		if (at[0] == '{' && at[1] != '{')
			putc('}', f);
	putc('\n', f);
	fclose(f);
	c = ft_ccl_load(path, NULL, err);
	unlink(path);
	return c;
}

static void takes_so_many(size_t row, const char *key)
{
	int most = rows[row].n;
	char says[64];

	for (int n = 1; n <= most + 1; n++) {
		struct ft_error err = { .text = "" };
		struct ft_ccl *c = with(row, key, n, &err);

		snprintf(says, sizeof(says),
			 n > most ? "takes 1 to %d numbers, not %d" :
				    "takes 1 or %d numbers, not %d",
			 most, n);
		if (n == 1 || n == most)
			ok_or_say(c, err);
		else if (c || !strstr(err.text, says) || !strstr(err.text, key))
			fail_msg("%s%s of %d: %s", rows[row].block, key, n, err.text);
		ft_ccl_free(c);
	}
}

static void a_row_takes_as_many_numbers_as_it_has(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char keys[80], *rest;

		snprintf(keys, sizeof(keys), "%s", rows[i].keys);
		for (char *key = strtok_r(keys, " ", &rest); key;
		     key = strtok_r(NULL, " ", &rest))
			takes_so_many(i, key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_takes_as_many_numbers_as_it_has),
	};

	return cmocka_run_group_tests_name("rows of libraries", tests, NULL, NULL);
}
