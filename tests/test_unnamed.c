/*
 * tests/test_unnamed.c - which stacks stand for software that nobody named, and whose kin a stack is
 *
 * A file says it of itself alone: what extends it does not. Kin end where that changes, so that
 * named stacks which take their numbers from `generic` are no kin of each other.
 */
#include <dirent.h>

#include "base/arena.h"
#include "foretoken/stacks.h"
#include "tests/check.h"

static struct ft_stack *load(const char *name)
{
	struct ft_error err = { 0 };
	struct ft_stack *s = ft_stack_load(name, NULL, &err);

	ok_or_say(s, err);
	return s;
}

static void is(const char *name, bool unnamed, const char *root)
{
	struct ft_stack *s = load(name);

	assert_int_equal(s->unnamed, unnamed);
	assert_string_equal(s->root, root);
	ft_stack_free(s);
}

/* A stack of its own that extends another, and says so much more. */
static const char *made(char path[64], const char *leaf, const char *extends,
			const char *more)
{
	FILE *out = fopen(own_path(path, leaf), "w");

	assert_non_null(out);
	fprintf(out, "extends: %s\n%s", extends, more);
	fclose(out);
	return path;
}

static void of_the_tree_the_generic_ones_are(void **state)
{
	DIR *folder = opendir("stacks");
	const struct dirent *e;
	int n = 0, unnamed = 0;

	(void)state;
	assert_non_null(folder);
	while ((e = readdir(folder))) {
		const char *dot = strstr(e->d_name, ".yaml");
		struct arena mem = { 0 };
		struct ft_stack *s;

		if (!dot)
			continue;
		s = load(arena_text_n(&mem, e->d_name, (size_t)(dot - e->d_name)));
		assert_int_equal(s->unnamed, !strncmp(s->name, "generic", 7));
		unnamed += s->unnamed;
		n++;
		ft_stack_free(s);
		arena_release(&mem);
	}
	closedir(folder);
	assert_true(n > 40 && unnamed == 2);
}

static void kin_are_those_that_are_named_alike(void **state)
{
	(void)state;
	is("generic", true, "generic");
	is("generic-2022", true, "generic");
	is("internevo-2024", false, "internevo-2024");
	is("nanotron-2025", false, "nanotron-2025");
	is("nemo-24.11", false, "megatron-core");
}

static void what_extends_an_unnamed_stack_is_named(void **state)
{
	char first[64], second[64];
	struct ft_stack *generic = load(FT_STACK_UNNAMED), *s;

	(void)state;
	made(first, "first.yaml", FT_STACK_UNNAMED, "");
	made(second, "second.yaml", first, "");
	s = load(first);
	near_frac(s->host_s[FT_HOST_LAUNCH].value,
		  generic->host_s[FT_HOST_LAUNCH].value, 0);
	ft_stack_free(s);
	is(first, false, first);
	is(second, false, first);
	made(first, "first.yaml", "generic-2022", "unnamed: false\n");
	is(first, false, first);
	made(second, "second.yaml", first, "unnamed: true\n");
	is(second, true, second);
	ft_stack_free(generic);
	unlink(first);
	unlink(second);
}

static void what_says_so_is_unnamed(void **state)
{
	char first[64], second[64];

	(void)state;
	made(first, "first.yaml", "generic-2022", "unnamed: true\n");
	is(first, true, "generic");
	made(second, "second.yaml", first, "");
	is(second, false, second);
	made(first, "first.yaml", "torch-2.11-compile", "unnamed: true\n");
	is(first, true, first);
	is(second, false, second);
	unlink(first);
	unlink(second);
}

static void titled(const char *path, const char *title)
{
	struct ft_stack *s = load(path);

	assert_string_equal(s->title, title);
	ft_stack_free(s);
}

/* "a stack nobody named" is said of none that is named. */
static void a_named_stack_is_not_called_as_an_unnamed_one(void **state)
{
	char first[64], second[64];
	struct ft_stack *generic = load(FT_STACK_UNNAMED);

	(void)state;
	made(first, "first.yaml", FT_STACK_UNNAMED, "");
	titled(first, first);
	made(second, "second.yaml", first, "");
	titled(second, second);
	made(first, "first.yaml", FT_STACK_UNNAMED, "title: ours\n");
	titled(first, "ours");
	titled(second, "ours");
	made(first, "first.yaml", FT_STACK_UNNAMED, "unnamed: true\n");
	titled(first, generic->title);
	titled(second, second);
	made(first, "first.yaml", "torch-2.11-eager", "");
	titled(first, "PyTorch 2.11, eager");
	ft_stack_free(generic);
	unlink(first);
	unlink(second);
}

static void it_is_true_or_false(void **state)
{
	char path[64];
	struct ft_error err = { 0 };

	(void)state;
	made(path, "first.yaml", "generic", "unnamed: nobody\n");
	assert_null(ft_stack_load(path, NULL, &err));
	assert_non_null(strstr(err.text, "neither true nor false"));
	assert_int_equal(err.line, 2);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_the_tree_the_generic_ones_are),
		cmocka_unit_test(kin_are_those_that_are_named_alike),
		cmocka_unit_test(what_extends_an_unnamed_stack_is_named),
		cmocka_unit_test(what_says_so_is_unnamed),
		cmocka_unit_test(a_named_stack_is_not_called_as_an_unnamed_one),
		cmocka_unit_test(it_is_true_or_false),
	};

	return cmocka_run_group_tests_name("unnamed", tests, NULL, NULL);
}
