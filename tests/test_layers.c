/*
 * tests/test_layers.c - layers by repetition, on made-up steps whose layers are known
 *
 * A step is a word: a letter a kernel. "a" is attention, "b" attention backward, other
 * letters in lower case products, in capitals kernels bound by memory, "W" an optimizer's.
 */
#include <unistd.h>

#include "base/arena.h"
#include "foretoken/recorded.h"
#include "tests/check.h"

/* passes: NULL: not told; else a digit for a kernel of that layer's forward pass, "a" to "c" of its
 * backward, "." for one outside. */
static struct ft_recording *step_of(const char *word, const char *passes)
{
	char path[] = "/tmp/foretoken-layers-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	struct ft_recording *r;
	struct ft_error err;

	assert_non_null(f);
	fputs("{\"traceEvents\":[\n", f);
	for (int i = 0; word[i]; i++) {
		char name[40];

		if (word[i] == 'a' || word[i] == 'b')
			snprintf(name, sizeof(name), "flash_%s",
				 word[i] == 'a' ? "fwd" : "bwd");
		else
			snprintf(name, sizeof(name), "%s_%c",
				 word[i] == 'W' ? "FusedOptimizer" :
				 word[i] < 'a'	? "elementwise" :
						  "gemm",
				 word[i]);
		fprintf(f,
			"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,"
			"\"tid\":7,\"ts\":%d,\"dur\":10,\"args\":{\"stream\":7,"
			"\"correlation\":%d",
			name, 10 * i, i + 1);
		if (passes && passes[i] != '.')
			fprintf(f, ",\"Pass\":\"%s\",\"Layer\":%d",
				passes[i] < 'a' ? "forward" : "backward",
				passes[i] - (passes[i] < 'a' ? '0' : 'a'));
		fprintf(f, "}}%s\n", word[i + 1] ? "," : "");
	}
	fputs("]}\n", f);
	fclose(f);
	r = ft_recording_read(path, &err);
	unlink(path);
	ok_or_say(r, err);
	return r;
}

static ft_ps last_end; /* of the step that was read last, its last layer's */

typedef struct ft_rec_layers finds(const struct ft_replay *, const struct ft_replayed *,
				   size_t, struct ft_rec_window, struct arena *);

/* layers: their passes, numbers and begins, as "f0@2 f1@6 b1@12 ..."; or why not. */
static void has_by(finds *find, const char *word, const char *passes,
		   const char *layers)
{
	struct ft_recording *r = step_of(word, passes);
	const struct ft_recording *all[] = { r };
	struct ft_error err;
	struct ft_replay *p = ft_replay_build(all, 1, &err);
	struct arena mem = { 0 };
	struct ft_replayed t;
	struct ft_rec_layers l;
	char said[400] = "";
	size_t n = 0;

	ok_or_say(p, err);
	t = ft_replay_as_recorded(p, &mem);
	l = find(p, &t, 0, ft_replay_step(p, &t, 0, 0), &mem);
	for (size_t i = 0; i < l.n; i++)
		n += (size_t)snprintf(said + n, sizeof(said) - n, "%s%c%d@%d",
				      i ? " " : "", l.layer[i].backward ? 'b' : 'f',
				      (int)l.layer[i].layer,
				      (int)(l.layer[i].window.from / 10000000));
	assert_string_equal(l.layers ? said : l.why, layers);
	last_end = l.n ? l.layer[l.n - 1].window.to / 10000000 : 0;
	arena_release(&mem);
	ft_replay_free(p);
	ft_recording_free(r);
}

static void has(const char *word, const char *layers)
{
	has_by(ft_replay_layers, word, NULL, layers);
}

static void layers_are_what_repeats(void **state)
{
	(void)state;
	has("ENqaoNqaoHh", "f0@2 f1@6");
	has("ENqaoNqaoNqaoHhhxbyyxbyyxbyyU", "f0@2 f1@6 f2@10 b2@16 b1@20 b0@24");
}

static void a_longer_pass_is_backward_without_a_name(void **state)
{
	(void)state;
	has("qaoqaohhxxayyxxayy", "f0@0 f1@3 b1@8 b0@13");
}

/* The head's product has the name of the layers' last; what runs before them differs. */
static void a_neighbour_of_the_same_name_is_no_layer(void **state)
{
	(void)state;
	has("oENqaoNqaoNqaoHh", "f0@3 f1@7 f2@11");
	has("NqaoNqaoNqaoHq", "f0@1 f1@5 f2@9");
}

/* The last layer has as many operations as the others, but for the next one's norms, which lead each
 * layer, and for what updates its weights. */
static void what_follows_the_last_layer_is_no_part_of_it(void **state)
{
	const char *layers = "f0@0 f1@3 b1@10 b0@20";

	(void)state;
	has("qaoqaohhHNxbyyRMNNNNxbyyREEEEEEE", layers);
	assert_int_equal(last_end, 29); /* one norm leads */
	has("qaoqaohhNNxbyyRMNNNNxbyyREEEEEEE", layers);
	assert_int_equal(last_end, 28); /* two */
	has("qaoqaohhHNxbyyRMNNNNxbyyREWWWWWW", layers);
	assert_int_equal(last_end, 26);
	/* nothing leads where the step begins with a product, or with something else */
	has("qaoEqaoEEE", "f0@0 f1@4");
	assert_int_equal(last_end, 8);
	has("XqaoEqaoEEE", "f0@1 f1@5");
	assert_int_equal(last_end, 9);
}

static void micro_batches_are_told_apart_by_the_shortest_run(void **state)
{
	(void)state;
	has("qaoqaoqaoqaohqaoqao", "f0@0 f1@3 f0@6 f1@9 f0@13 f1@16");
}

static void a_layer_with_other_kernels_is_one(void **state)
{
	(void)state;
	has("qaoqaoqapqaoqaoh", "f0@0 f1@3 f2@6 f3@9 f4@12");
	/* the last of the backward pass, as its run is one short */
	has("qaoqaoqaohxbyyxbyyxbyz", "f0@0 f1@3 f2@6 b2@10 b1@14 b0@18");
}

static void a_pass_that_was_cut_is_numbered_from_its_end(void **state)
{
	(void)state;
	has("qaoqaohqaoqaoqaoh", "f1@0 f2@3 f0@7 f1@10 f2@13");
}

static void what_does_not_repeat_has_no_layers(void **state)
{
	(void)state;
	has("qaoh", "no sequence of products repeats");
	has("qaoqaohqaoqaoqaohqaoqaohqaoqaoqaoh",
	    "sequences of products repeat, but passes differ in how often");
}

/* Every second layer has a mask: its attention backward is one kernel more. */
static void kernels_of_one_attention_are_one(void **state)
{
	(void)state;
	has("qaoqaoqaoqaohxbbyyxbyyxbbyyxbyy",
	    "f0@0 f1@3 f2@6 f3@9 b3@13 b2@18 b1@22 b0@27");
	/* but not across another kernel */
	has("qaNaoqaNaoh", "f0@0 f1@5");
}

/* Attention that is not fused: two products within, which may be alike as those of an MLP are. A
 * layer has six at least, so that two alike, or pairs, are none. */
static void without_fused_attention_a_layer_has_six_products(void **state)
{
	(void)state;
	has("EqqssonnqqssonnhU", "f0@1 f1@8");
	has("EpscoudpscoudH", "f0@1 f1@7");
	has("Eqqqqh", "no sequence of products repeats");
	has("EqkqkqkhU", "no sequence of products repeats");
}

/* Backward is hardly longer here, and nothing in it is called so; then it has the same kernels. */
static void passes_that_are_told_are_not_guessed(void **state)
{
	(void)state;
	has_by(ft_replay_layers, "ENqapNqapHhxaooyxaooy", ".00001111..bbbbbaaaaa",
	       "f0@2 f1@6 b1@11 b0@16");
	has_by(ft_replay_layers, "qaoqaoqaoqao", "000111bbbaaa", "f0@0 f1@3 b1@6 b0@9");
	has_by(ft_replay_layers, "qaoqaoqaoqao", "000aaa000aaa",
	       "no sequence of products repeats");
}

/* They last to the next one's first product, and behind the last one's own kernels. */
static void layers_that_are_told_need_not_repeat(void **state)
{
	(void)state;
	has_by(ft_replay_told_layers, "ENqaoNqagudHhxayyNayR", ".00001111111.bbbbaaa.",
	       "f0@2 f1@6 b1@13 b0@18");
	assert_int_equal(last_end, 20);
	has_by(ft_replay_told_layers, "qaoqao", NULL, "its kernels do not tell them");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_are_what_repeats),
		cmocka_unit_test(a_longer_pass_is_backward_without_a_name),
		cmocka_unit_test(a_neighbour_of_the_same_name_is_no_layer),
		cmocka_unit_test(what_follows_the_last_layer_is_no_part_of_it),
		cmocka_unit_test(micro_batches_are_told_apart_by_the_shortest_run),
		cmocka_unit_test(a_layer_with_other_kernels_is_one),
		cmocka_unit_test(a_pass_that_was_cut_is_numbered_from_its_end),
		cmocka_unit_test(what_does_not_repeat_has_no_layers),
		cmocka_unit_test(kernels_of_one_attention_are_one),
		cmocka_unit_test(without_fused_attention_a_layer_has_six_products),
		cmocka_unit_test(passes_that_are_told_are_not_guessed),
		cmocka_unit_test(layers_that_are_told_need_not_repeat),
	};

	return cmocka_run_group_tests_name("recorded/layers", tests, NULL, NULL);
}
