/*
 * tests/test_graph_text.c - a step graph's text line by line: all that a line can say comes
 * back as it was, and a line that is wrong is refused where it stands
 */
#include "tests/check.h"

#include "base/limits.h"
#include "foretoken/traces.h"

/* All of the format, as it is written. */
#define NORM "work 2 memory norm dtype=fp32 kernel=rmsnorm "
static const char *const whole[] = {
	"graph 1",
	"tokens 8192",
	"recomputed_flop 12.5",
	"host waits",
	"bubble 0.875",
	"group tp size=2 stride=1",
	"group cp size=1 stride=2",
	"group ep size=1 stride=2",
	"group etp size=1 stride=1",
	"group dp size=4 stride=2",
	"group shard size=1 stride=2",
	"group replica size=4 stride=2",
	"group edp size=4 stride=2",
	"group expert_shard size=1 stride=2",
	"group expert_replica size=4 stride=2",
	"group pp size=1 stride=8",
	"group embedding size=1 stride=8",
	"work 0 gemm up dtype=bf16 layout=wgrad m=8 n=16 k=32 groups=4 accumulate=true fast=true static_tiles=true",
	"work 1 attention core dtype=fp8 pass=both batch=2 heads=8 kv_heads=4 queries=16 "
	"keys=32 qk_head_dim=64 v_head_dim=32 window=8 causal=true impl=fa3",
	"work 2 memory norm dtype=fp32 kernel=rmsnorm bytes=0.5 row_bytes=64 "
	"steps=3 flop=12 warm=true "
	"low_priority=true",
	"work 3 communication gather dtype=bf16 op=all_gather group=dp bytes=4096 "
	"fanout=1.5 fanout_of=8 fanout_groups=4 copy_engine=true",
	"segment 0 forward",
	"  host collective 0.25",
	"  net gradients -64",
	"  peak other 128",
	"  op work=3 stream=gather launches=1 record=unsharded",
	"  op work=0 stream=compute launches=2 optimizer=true graphed=true host_waits=true "
	"reverse=true wait=unsharded wait=tail:gather",
	"  op work=1 stream=compute",
	"  op work=2 stream=compute",
	"class stage_0 ranks=8",
	"  base weights 1024",
	"  pass forward chunk=1 micro_batch=2",
	"  call 0 x3",
	"  pass update",
	"  call 0 x1",
};
enum { LINES = sizeof(whole) / sizeof(*whole), COUNTED = 8 };

/* The text with one line replaced, NULL: left out; as bytes, to be freed. */
static char *with(int line, const char *by, size_t *n)
{
	char *text;
	FILE *out = open_memstream(&text, n);

	for (int i = 0; i < LINES; i++)
		if (i + 1 != line)
			fprintf(out, "%s\n", whole[i]);
		else if (by)
			fprintf(out, "%s\n", by);
	fclose(out);
	return text;
}

static struct ft_graph *read_back(const char *text, size_t n, struct ft_error *err)
{
	char name[64];
	const char *path = own_path(name, "text.graph");
	struct ft_graph *g;
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
	g = ft_graph_read(path, 8, err);
	unlink(path);
	return g;
}

static void every_word_comes_back_as_it_was(void **state)
{
	struct ft_error err;
	size_t n, n_again;
	char *text = with(0, NULL, &n), *again;
	struct ft_graph *g = read_back(text, n, &err);
	FILE *out = open_memstream(&again, &n_again);

	(void)state;
	ok_or_say(g, err);
	ft_graph_write(g, out);
	fclose(out);
	assert_string_equal(again, text);
	ft_graph_free(g);
	free(again);
	free(text);
}

/* What the writer leaves out may stand there all the same. */
static void what_is_usual_may_be_said(void **state)
{
	static const char said[] =
		"work 1 attention core dtype=fp8 pass=both batch=2 heads=8 kv_heads=4 "
		"queries=16 keys=32 qk_head_dim=64 v_head_dim=32 window=0 causal=true "
		"impl=fa3";
	struct ft_error err;
	size_t n;
	char *text = with(19, said, &n);
	struct ft_graph *g = read_back(text, n, &err);

	(void)state;
	ok_or_say(g, err);
	assert_int_equal(g->work[1].attention.window, 0);
	ft_graph_free(g);
	free(text);
}

/* A file whose groups are left out: each rank is alone in all. */
static void a_group_that_is_not_told_is_of_one(void **state)
{
	char *text = NULL;
	struct ft_error err;
	struct ft_graph *g;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	(void)state;
	for (int i = 0; i < LINES; i++)
		if (strncmp(whole[i], "group ", 6) && strncmp(whole[i], "work 3", 6) &&
		    !strstr(whole[i], "work=3"))
			fprintf(out, "%s\n", whole[i]);
	fclose(out);
	g = read_back(text, n, &err);
	ok_or_say(g, err);
	for (int i = 0; i < FT_GROUPS; i++) {
		assert_int_equal(g->group[i].size, 1);
		assert_int_equal(g->group[i].stride, 1);
	}
	ft_graph_free(g);
	free(text);
}

/* As many ops, passes and calls as may be, with the 4, 2 and 2 of the whole text. */
static void one_call_more_than_the_most_is_refused(void **state)
{
	(void)state;
	for (int more = 0; more < 2; more++) {
		struct ft_error err;
		struct ft_graph *g;
		char *text;
		size_t n;
		FILE *out = open_memstream(&text, &n);

		for (int i = 0; i < LINES; i++)
			fprintf(out, "%s\n", whole[i]);
		for (int i = 0; i < LIMIT_GRAPH_OPS - COUNTED + more; i++)
			fputs("  call 0 x1\n", out);
		fclose(out);
		g = read_back(text, n, &err);
		if (more)
			assert_non_null(strstr(err.text, "too many ops or calls"));
		else
			ok_or_say(g, err);
		assert_int_equal(!g, more);
		ft_graph_free(g);
		free(text);
	}
}

/* Spaces, tabs, returns and comments say nothing. */
static void spaces_do_not_matter(void **state)
{
	static const char *const same[] = {
		"\tcall 0  x3 ",
		"  call 0\tx3\r",
		" \t call\t0 x3\t\r",
	};
	size_t n, n_again;

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		struct ft_error err;
		char *text = with(33, same[i], &n), *again, *plain;
		struct ft_graph *g = read_back(text, n, &err);
		FILE *out = open_memstream(&again, &n_again);

		ok_or_say(g, err);
		ft_graph_write(g, out);
		fclose(out);
		plain = with(0, NULL, &n);
		assert_string_equal(again, plain);
		ft_graph_free(g);
		free(plain);
		free(again);
		free(text);
	}
}

static void each_line_is_refused_where_it_stands(void **state)
{
	static const struct {
		int line;
		const char *by, *says;
		int column;
	} cases[] = {
		{ 2, "tokens", "expected a number", 1 },
		{ 3, "recomputed_flop -1", "not between", 17 },
		{ 4, "host ahead waits", "no host activity", 6 },
		{ 5, "bubble -1", "not between", 8 },
		{ 6, "group", "unknown group", 1 },
		{ 6, "group rail size=2", "unknown group", 7 },
		{ 6, "group tp size=two", "expected a whole number", 10 },
		{ 6, "group tp size=2 stride=0", "not between", 17 },
		{ 18, "work 0 gemm", "write: work NUMBER KIND NAME", 6 },
		{ 18, "work zero gemm up dtype=bf16", "write: work NUMBER KIND NAME",
		  6 },
		{ 18, "work 0 gemm up", "dtype= is missing", 1 },
		{ 18, "work 0 gemm up dtype=bf15", "dtype= is missing or unknown", 1 },
		{ 18, "work 0 product up dtype=bf16", "a work is gemm, attention", 8 },
		{ 18, "work 0 gemm up dtype=bf16 m=1 n=1 k=1", "layout= is forward",
		  1 },
		{ 18, "work 0 gemm up dtype=bf16 layout=up m=1 n=1 k=1",
		  "layout= is forward", 1 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad n=1 k=1", "needs m=", 1 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad m=1 k=1", "needs m=", 1 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad m=1 n=0 k=1",
		  "not between", 44 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad m=1 n=1 k=1.5",
		  "expected a whole number", 48 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad m=1 n=1 k=1 groups=0",
		  "not between", 52 },
		{ 18, "work 0 gemm up dtype=bf16 layout=dgrad m=1 n=1 k=1 accumulate=1",
		  "accumulate= is true or false", 52 },
		{ 19, "work 1 attention core dtype=bf16", "pass= is forward", 1 },
		{ 19, "work 1 attention core dtype=bf16 pass=sideways",
		  "pass= is forward", 1 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward causal=maybe",
		  "causal= is true or false", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward batch=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward heads=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward kv_heads=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward queries=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward keys=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward qk_head_dim=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward v_head_dim=0",
		  "not between", 47 },
		{ 19, "work 1 attention core dtype=bf16 pass=forward window=-1",
		  "not between", 47 },
		{ 19,
		  "work 1 attention core dtype=bf16 pass=forward queries=1000000000 "
		  "keys=1000000000 batch=1000",
		  "multiplications", 6 },
		{ 19,
		  "work 1 attention core dtype=bf16 pass=forward queries=1000000000 "
		  "keys=1000000000 kv_heads=1000",
		  "multiplications", 6 },
		{ 20, "work 2 memory norm dtype=fp32 bytes=1", "needs kernel=", 1 },
		{ 20, "work 2 memory norm dtype=fp32 kernel=rmsnorm",
		  "bytes= is missing", 1 },
		{ 20, NORM "bytes=much", "expected a number", 46 },
		{ 20, NORM "bytes=1 row_bytes=-1", "not between", 54 },
		{ 20, NORM "bytes=1 steps=1.5", "whole number", 54 },
		{ 20, NORM "bytes=1 flop=-1", "not between", 54 },
		{ 20, NORM "bytes=1 low_priority=low", "low_priority= is true or false",
		  54 },
		{ 21, "work 3 communication gather dtype=bf16 group=dp bytes=1",
		  "needs op= and group=", 1 },
		{ 21, "work 3 communication gather dtype=bf16 op=gossip group=dp",
		  "needs op= and group=", 1 },
		{ 21, "work 3 communication gather dtype=bf16 op=all_gather bytes=1",
		  "needs op= and group=", 1 },
		{ 21,
		  "work 3 communication gather dtype=bf16 op=all_gather group=dp "
		  "bytes=1 copy_engine=x",
		  "copy_engine= is true or false", 71 },
		{ 21,
		  "work 3 communication gather dtype=bf16 op=all_gather group=dp "
		  "bytes=1 fanout=-1",
		  "not between", 71 },
		{ 22, "segment 0", "write: segment NUMBER NAME", 9 },
		{ 22, "segment 1 forward", "write: segment NUMBER NAME", 9 },
		{ 22, NULL, "no host activity, or not in a segment", 8 },
		{ 23, "  host tea 1", "no host activity", 8 },
		{ 23, "  host collective soon", "expected a number", 19 },
		{ 24, "  net gradients", "net|peak|base CATEGORY BYTES", 7 },
		{ 24, "  net something 1", "net|peak|base CATEGORY BYTES", 7 },
		{ 24, "  base weights 1", "net|peak|base CATEGORY BYTES", 8 },
		{ 25, "  peak other many", "expected a number", 14 },
		{ 26, "  op stream=gather", "an op needs work=", 3 },
		{ 26, "  op work=4 stream=gather", "an op needs work=", 3 },
		{ 26, "  op work=3",
		  "an op needs work= (a number above) and stream=", 3 },
		{ 26, "  op work=3 stream=river", "an op needs work=", 3 },
		{ 26, "  op work=3 stream=compute",
		  "a communication does not run on stream compute; say stream=gather",
		  13 },
		{ 26, "  op work=3 stream=offload",
		  "a communication does not run on stream offload", 13 },
		{ 26, "  op work=2 stream=fetch",
		  "only copies to host memory and back (kernel=host_link) run on", 13 },
		{ 26, "  op work=3 stream=send_forward",
		  "only a communication with op=sendrecv and group=pp runs on stream "
		  "send_forward",
		  13 },
		{ 26, "  op work=0 stream=recv_backward",
		  "only a communication with op=sendrecv and group=pp", 13 },
		{ 26, "  op work=-1 stream=gather", "not between", 6 },
		{ 26, "  op work=3 stream=gather launches=65536", "not between", 27 },
		{ 26, "  op work=3 stream=gather record=nothing",
		  "record= names no event", 3 },
		{ 26, "  op work=3 stream=gather wait=nothing", "wait= names neither",
		  3 },
		{ 26, "  op work=3 stream=gather wait=tail:river",
		  "wait= names neither", 3 },
		{ 26, "  op work=3 stream=gather optimizer=x",
		  "optimizer= is true or false", 27 },
		{ 26, "  op work=3 stream=gather graphed=x",
		  "graphed= is true or false", 27 },
		{ 26, "  op work=3 stream=gather host_waits=x",
		  "host_waits= is true or false", 27 },
		{ 26, "  op work=3 stream=gather reverse=x",
		  "reverse= is true or false", 27 },
		{ 30, "class", "write: class NAME ranks=N", 1 },
		{ 30, "class stage_0 ranks=many", "expected a whole number", 15 },
		{ 31, "  op work=3 stream=gather", "an op belongs below a segment", 3 },
		{ 31, "  net weights 1", "net|peak|base CATEGORY BYTES", 7 },
		{ 31, "  peak weights 1", "net|peak|base CATEGORY BYTES", 8 },
		{ 31, "  host collective 1", "not in a segment", 8 },
		{ 31, "  base weights -1", "not between", 16 },
		{ 32, "  pass", "write below a class: pass", 1 },
		{ 32, "  pass sideways", "write below a class: pass", 8 },
		{ 32, "  pass forward chunk=-1", "not between", 16 },
		{ 32, "  pass forward micro_batch=x", "expected a whole number", 16 },
		{ 33, "  call 0", "write below a class: call", 3 },
		{ 33, "  call 0 3", "write below a class: call", 3 },
		{ 33, "  call 1 x3", "there is no such segment", 8 },
		{ 33, "  call -1 x3", "not between", 8 },
		{ 33, "  call 0 x", "expected a whole number", 10 },
		{ 30, "  call 0 x1", "write below a class: call", 3 },
		{ 30, "  pass update", "write below a class: pass", 8 },
		{ 33, "  dance 0 x3", "unknown word at the start of the line", 3 },
		{ 33,
		  "call a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e "
		  "f g h i j k l m n o p q r s t u v w x y z",
		  "too many words on one line", 1 },
	};
	size_t bad = 0, n;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ft_error err = { 0 };
		char *text = with(cases[i].line, cases[i].by, &n);
		struct ft_graph *g = read_back(text, n, &err);

		if (g || err.line != cases[i].line || err.column != cases[i].column ||
		    !strstr(err.text, cases[i].says)) {
			print_error("line %d: %s\n%s %d:%d: %s\n", cases[i].line,
				    cases[i].by ? cases[i].by : "(left out)",
				    g ? "was taken" : "says in line", err.line,
				    err.column, err.text);
			bad++;
		}
		ft_graph_free(g);
		free(text);
	}
	assert_int_equal(bad, 0);
}

static void binary_is_no_graph(void **state)
{
	struct ft_error err;

	(void)state;
	assert_null(read_back("graph 1\ntokens 1\0\n", 18, &err));
	assert_non_null(strstr(err.text, "is binary, not a step graph"));
}

/* The least that each number may be is taken, what is below it is not. */
static void numbers_begin_where_they_may(void **state)
{
#define ATTENTION "work 1 attention core dtype=fp8 pass=both causal=true impl=fa3 "
#define GATHER "work 3 communication gather dtype=bf16 op=all_gather group=dp "
	static const struct {
		int line;
		const char *text; /* N stands for the number */
		const char *least, *below;
	} cases[] = {
		{ 2, "tokens N", "1", "0.5" },
		{ 3, "recomputed_flop N", "0", "-1e-9" },
		{ 5, "bubble N", "0", "-1e-9" },
		{ 6, "group tp size=N stride=1", "1", "0" },
		{ 6, "group tp size=1 stride=N", "1", "0" },
		{ 18, "work 0 gemm up dtype=bf16 layout=wgrad m=N n=1 k=1", "1", "0" },
		{ 18, "work 0 gemm up dtype=bf16 layout=wgrad m=1 n=N k=1", "1", "0" },
		{ 18, "work 0 gemm up dtype=bf16 layout=wgrad m=1 n=1 k=N", "1", "0" },
		{ 18, "work 0 gemm up dtype=bf16 layout=wgrad m=1 n=1 k=1 groups=N",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=N heads=1 kv_heads=1 queries=1 keys=1 "
			    "qk_head_dim=1 v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=N kv_heads=1 queries=1 keys=1 "
			    "qk_head_dim=1 v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=N queries=1 keys=1 "
			    "qk_head_dim=1 v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=1 queries=N keys=1 "
			    "qk_head_dim=1 v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=1 queries=1 keys=N "
			    "qk_head_dim=1 v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=1 queries=1 keys=1 "
			    "qk_head_dim=N v_head_dim=1",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=1 queries=1 keys=1 "
			    "qk_head_dim=1 v_head_dim=N",
		  "1", "0" },
		{ 19,
		  ATTENTION "batch=1 heads=1 kv_heads=1 queries=1 keys=1 "
			    "qk_head_dim=1 v_head_dim=1 window=N",
		  "0", "-1" },
		{ 20, NORM "bytes=N", "0", "-0.5" },
		{ 20, NORM "bytes=1 row_bytes=N", "0", "-0.5" },
		{ 20, NORM "bytes=1 steps=N", "0", "-1" },
		{ 20, NORM "bytes=1 flop=N", "0", "-0.5" },
		{ 21, GATHER "bytes=N", "0", "-0.5" },
		{ 21, GATHER "bytes=1 fanout=N", "0", "-0.5" },
		{ 21, GATHER "bytes=1 fanout=0 fanout_of=N", "0", "-0.5" },
		{ 21, GATHER "bytes=1 fanout=0 fanout_of=4 fanout_groups=N", "0",
		  "-0.5" },
		{ 23, "  host collective N", "0", "-1e-9" },
		{ 26, "  op work=3 stream=gather launches=N record=unsharded", "0",
		  "-1" },
		{ 31, "  base weights N", "0", "-0.5" },
		{ 32, "  pass forward chunk=N", "0", "-1" },
		{ 32, "  pass forward micro_batch=N", "0", "-1" },
		{ 33, "  call 0 xN", "1", "0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int below = 0; below < 2; below++) {
			const char *at = strchr(cases[i].text, 'N');
			struct ft_error err = { .text = "" };
			struct ft_graph *g;
			char line[256], *text;
			size_t n;

			snprintf(line, sizeof(line), "%.*s%s%s",
				 (int)(at - cases[i].text), cases[i].text,
				 below ? cases[i].below : cases[i].least, at + 1);
			text = with(cases[i].line, line, &n);
			g = read_back(text, n, &err);
			if (below && (g || !strstr(err.text, "not between")))
				fail_msg("%s: %s", line, g ? "taken" : err.text);
			if (!below && !g)
				fail_msg("%s: %s", line, err.text);
			ft_graph_free(g);
			free(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_comes_back_as_it_was),
		cmocka_unit_test(what_is_usual_may_be_said),
		cmocka_unit_test(a_group_that_is_not_told_is_of_one),
		cmocka_unit_test(one_call_more_than_the_most_is_refused),
		cmocka_unit_test(spaces_do_not_matter),
		cmocka_unit_test(each_line_is_refused_where_it_stands),
		cmocka_unit_test(binary_is_no_graph),
		cmocka_unit_test(numbers_begin_where_they_may),
	};

	return cmocka_run_group_tests_name("graph text", tests, NULL, NULL);
}
