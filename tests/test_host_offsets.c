/* tests/test_host_offsets.c - when the host launches what no graph launches for it */
#include <unistd.h>

#include "tests/check.h"

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/sim.h"
#include "tests/ccl.h"

/* Two ops of a CUDA graph, the second of which the host waits for, and `apart` that it
 * launches itself, tiny but for the first of all. The host's experts take 1 s. */
static char *graph_text(double bytes, int apart, size_t *n)
{
	char *text;
	FILE *f = open_memstream(&text, n);

	fprintf(f, "graph 1\ntokens 1\nhost waits\n");
	for (int i = 0; i < FT_GROUPS; i++)
		fprintf(f, "group %s size=1 stride=1\n",
			ft_group_name((enum ft_group)i));
	fprintf(f, "work 0 memory a dtype=bf16 kernel=copy bytes=%g\n", bytes);
	fprintf(f, "work 1 memory b dtype=bf16 kernel=copy bytes=2\n");
	fprintf(f, "segment 0 forward\n  host experts_forward 1\n");
	fprintf(f, "  op work=0 stream=compute graphed=true\n");
	fprintf(f, "  op work=1 stream=compute graphed=true host_waits=true\n");
	for (int i = 0; i < apart; i++)
		fprintf(f, "  op work=1 stream=compute\n");
	fprintf(f, "class c ranks=1\n  call 0 x1\n");
	fclose(f);
	return text;
}

static struct ft_graph *graph_of(double bytes, int apart)
{
	char name[64];
	const char *path = own_path(name, "host-offsets.graph");
	struct ft_error err;
	struct ft_graph *g;
	size_t n;
	char *text = graph_text(bytes, apart, &n);
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
	free(text);
	g = ft_graph_read(path, 1, &err);
	unlink(path);
	ok_or_say(g, err);
	return g;
}

static double step_s(double bytes, int apart)
{
	const char *cluster = "{gpu: h100-sxm, gpus: 1}";
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *n = node_read_text(&mem, "c", cluster, strlen(cluster), &err);
	struct ft_cluster *c = ft_cluster_load(n, &err);
	struct ft_stack *stack = ft_stack_load("megatron-core", NULL, &err);
	struct ft_ccl *ccl = ccl_named("nccl-2.30");
	struct ft_graph *g = graph_of(bytes, apart);
	struct ft_sim_job job = {
		.graph = g, .cluster = c, .stack = stack, .ccl = ccl
	};
	struct ft_run *run;
	double s;

	ok_or_say(c && stack, err);
	for (int h = 0; h < FT_HOSTS; h++)
		stack->host_s[h].value = h == FT_HOST_EXPERTS_FORWARD;
	run = ft_sim_run(&job, NULL, NULL, NULL, &err);
	ok_or_say(run, err);
	s = ft_s_from_ps(run->step);
	ft_run_free(run);
	ft_graph_free(g);
	ft_ccl_free(ccl);
	ft_stack_free(stack);
	ft_cluster_free(c);
	arena_release(&mem);
	return s;
}

/* A graph comes at one go: what it holds runs while the host still prepares the rest, and
 * all of the host's second falls behind the wait. */
static void what_the_host_does_itself_comes_behind_the_graph(void **state)
{
	double tiny = step_s(2, 4);

	(void)state;
	near_frac(tiny, 1, 1e-3);
	for (int apart = 1; apart < 6; apart++)
		near_frac(step_s(6e12, apart) - step_s(3e12, apart),
			  step_s(3e12, apart) - tiny, 1e-3);
}

/* Where a graph holds all, nothing is left to spread the host's time over but its ops. */
static void a_graph_of_everything_takes_its_host_too(void **state)
{
	(void)state;
	near_frac(step_s(2, 0), 1, 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_host_does_itself_comes_behind_the_graph),
		cmocka_unit_test(a_graph_of_everything_takes_its_host_too),
	};

	return cmocka_run_group_tests_name("host offsets", tests, NULL, NULL);
}
