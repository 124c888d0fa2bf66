/*
 * tests/test_graph_left_out.c - words that a step graph's text may leave out: then it is the text in which they
 * stand with their defaults; and those that it needs
 */
#include "tests/check.h"

#include "foretoken/traces.h"

/* A line of each kind, each word with a value that is no default. A word behind a ? may be left out, and then is
 * what stands behind the bar. */
static const char *const lines[] = {
	"graph 1",
	"tokens 64",
	"group tp ?size=1|1 ?stride=1|1",
	"group dp ?size=1|1 ?stride=1|1",
	"work 0 gemm up dtype=bf16 layout=wgrad m=8 n=16 k=32 ?groups=4|1 "
	"?accumulate=true|false ?fast=true|false ?static_tiles=true|false",
	"work 1 attention core dtype=bf16 pass=both ?batch=2|1 ?heads=8|1 ?kv_heads=4|1 "
	"?queries=16|1 ?keys=32|1 ?qk_head_dim=64|1 ?v_head_dim=32|1 ?window=8|0 "
	"?causal=true|false",
	"work 2 memory norm dtype=fp32 kernel=rmsnorm bytes=0.5 ?row_bytes=64|0 "
	"?steps=3|0 ?flop=12|0 "
	"?warm=true|false ?low_priority=true|false",
	"work 3 communication gather dtype=bf16 op=all_gather group=dp bytes=4096 "
	"?fanout=1.5|0 ?fanout_of=8|0 ?copy_engine=true|false",
	"segment 0 forward",
	"  op work=0 stream=compute ?launches=2|0 ?optimizer=true|false ?graphed=true|false "
	"?host_waits=true|false ?reverse=true|false",
	"  op work=1 stream=compute",
	"  op work=2 stream=compute",
	"  op work=3 stream=gather",
	"class stage_0 ?ranks=1|1",
	"  pass forward ?chunk=1|0 ?micro_batch=2|0",
	"  call 0 x3",
	"  pass update",
	"  call 0 x1",
};

enum { LINES = sizeof(lines) / sizeof(*lines) };

/* How the word of that number on a line is written; all others of the text as they stand. */
enum how { AS_IT_IS, DEFAULT, LEFT_OUT };

/* Puts down one word, which ends at a space or the end. */
static void put_word(FILE *out, const char *word, size_t n, enum how how)
{
	const char *bar = memchr(word, '|', n), *equals = memchr(word, '=', n);
	bool may = *word == '?';
	size_t said = bar ? (size_t)(bar - word) : n;

	if (how == LEFT_OUT)
		return;
	if (how == DEFAULT && bar)
		fprintf(out, " %.*s=%.*s", (int)(equals - word) - may, word + may,
			(int)(n - said) - 1, bar + 1);
	else
		fprintf(out, " %.*s", (int)said - may, word + may);
}

/* false: the line has no such word with a value. *may: it may be left out. */
static bool put(FILE *out, size_t line, int number, enum how how, bool *may)
{
	bool found = false;

	for (size_t i = 0; i < LINES; i++) {
		const char *at = lines[i];
		int seen = 0;

		for (; *at == ' '; at++)
			putc(' ', out);
		while (*at) {
			size_t n = strcspn(at, " ");
			bool valued = memchr(at, '=', n) != NULL;
			bool this = i == line && valued && seen == number;

			if (this) {
				found = true;
				*may = *at == '?';
			}
			put_word(out, at, n, this ? how : AS_IT_IS);
			seen += valued;
			at += n;
			at += strspn(at, " ");
		}
		putc('\n', out);
	}
	return found;
}

/* As it is written when it was read; to be freed. NULL: it is refused. */
static char *read_and_written(const char *text)
{
	char name[64];
	const char *path = own_path(name, "left.graph");
	struct ft_error err;
	struct ft_graph *g;
	char *again = NULL;
	size_t n;
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	g = ft_graph_read(path, 1, &err);
	unlink(path);
	if (!g)
		return NULL;
	out = open_memstream(&again, &n);
	ft_graph_write(g, out);
	fclose(out);
	ft_graph_free(g);
	return again;
}

static char *with(size_t line, int number, enum how how, bool *found, bool *may)
{
	char *text = NULL, *again;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	*found = put(out, line, number, how, may);
	fclose(out);
	again = read_and_written(text);
	free(text);
	return again;
}

static void what_is_left_out_is_its_default(void **state)
{
	int words = 0, needed = 0, other = 0;

	(void)state;
	for (size_t line = 0; line < LINES; line++)
		for (int number = 0;; number++) {
			bool found, may = false;
			char *as_it_is = with(line, number, AS_IT_IS, &found, &may);
			char *without = with(line, number, LEFT_OUT, &found, &may);
			char *usual = with(line, number, DEFAULT, &found, &may);

			if (found && !may && without)
				fail_msg("word %d of '%s' is not needed", number,
					 lines[line]);
			if (found && may && (!without || strcmp(without, usual) != 0))
				fail_msg("word %d of '%s': %s", number, lines[line],
					 without ? without : "is needed");
			assert_non_null(as_it_is);
			words += found && may;
			needed += found && !may;
			other += found && may && strcmp(as_it_is, without) != 0;
			free(as_it_is);
			free(without);
			free(usual);
			if (!found)
				break;
		}
	assert_int_equal(words, 4 + 4 + 9 + 5 + 3 + 5 + 1 + 2);
	assert_int_equal(other, words - 5); /* groups and ranks are of one here */
	assert_int_equal(needed, 5 + 2 + 3 + 4 + 4 * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_is_its_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
