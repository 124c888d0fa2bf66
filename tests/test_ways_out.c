/*
 * tests/test_ways_out.c - where no plan fits: each change that could be named is made here to a drawn
 * scenario and searched again; named are those under which a plan fits, and no others
 */
#include "base/arena.h"
#include "foretoken/study_plan.h"
#include "tests/check.h"

/* fewer under sanitizers */
#if defined(__SANITIZE_ADDRESS__) || defined(TESTS_FEW)
enum { DRAWS = 3 };
#else
enum { DRAWS = 6 };
#endif
enum { STATED = 5 };

static uint64_t seed = 6;

/* A scenario as drawn: what of its plan it states. */
struct drawn {
	double memory_gb;
	int gpus;
	bool plain; /* weights of 16 bits alone */
	bool stated[STATED];
};

static const struct {
	const char *key, *text;
} stated[STATED] = { { "parallel.tp", "parallel: {tp: 1}" },
		     { "micro_batch_size", "micro_batch_size: 4" },
		     { "sharding", "sharding: ddp" },
		     { "recompute", "recompute: none" },
		     { "schedule", "schedule: 1f1b" } };

static const char *text_of(struct arena *mem, const struct drawn *d, int gpus,
			   bool plain)
{
	const char *text = arena_printf(
		mem,
		"{model: {name: llama3-8b, num_hidden_layers: 2, hidden_size: 2048, "
		"num_attention_heads: 16, intermediate_size: 8192, vocab_size: 32768}, "
		"cluster: {gpu: {extends: h100-sxm, memory: {capacity: %.3f GB}}, gpus: %d}, training: "
		"{sequence_length: 2048, global_batch_size: 8%s",
		d->memory_gb, gpus, plain ? ", master_weights: false" : "");

	for (int i = 0; i < STATED; i++)
		if (d->stated[i])
			text = arena_printf(mem, "%s, %s", text, stated[i].text);
	return arena_printf(mem, "%s}}", text);
}

static struct ft_plans *plans_of(const char *text, const char *const *free_key,
				 size_t n_free)
{
	struct ft_search s = {
		.top = 1, .free_key = free_key, .n_free = n_free, .threads = 1
	};
	struct ft_plans *plans[FT_SIZES_MOST] = { NULL };
	struct ft_error err;
	size_t n = 0;

	if (!ft_study_plans_of("s", text, &s, plans, &n, &err)) {
		assert_int_equal(n, 0);
		return NULL;
	}
	assert_int_equal(n, 1);
	return plans[0];
}

static bool fits(const char *text, const char *const *free_key, size_t n_free)
{
	struct ft_plans *p = plans_of(text, free_key, n_free);
	bool any = p && p->feasible > 0;

	ft_plans_free(p);
	return any;
}

struct ways {
	size_t n;
	const char *text[FT_WAYS_MOST];
};

static void may(struct ways *w, bool fits, const char *text)
{
	if (fits && w->n < FT_WAYS_MOST)
		w->text[w->n++] = text;
}

/* In the order of the list in the manual: freed, waiting in host memory, smaller, more GPUs. */
static void try_all(struct arena *mem, const struct drawn *d, struct ways *w)
{
	static const int order[] = { 0, 1, 4, 2, 3 }; /* as keys are listed */
	static const char *const offload[] = { "offload_layers" };
	const char *text = text_of(mem, d, d->gpus, d->plain), *all[STATED];
	size_t n = 0;

	for (int i = 0; i < STATED; i++) {
		const char *key = stated[order[i]].key;

		if (!d->stated[order[i]])
			continue;
		all[n++] = key;
		may(w, fits(text, &key, 1), arena_printf(mem, "--free %s", key));
	}
	if (n > 1 && !w->n)
		may(w, fits(text, all, n),
		    "free all of the keys that the scenario states (--free KEY each)");
	may(w, fits(text, offload, 1),
	    "--free offload_layers: activations wait in host memory");
	if (!d->plain)
		may(w,
		    fits(arena_printf(mem, "%.*s, offload_state: optimizer}}",
				      (int)strlen(text) - 2, text),
			 NULL, 0),
		    "--set training.offload_state=optimizer: the optimizer's state "
		    "waits on the host, which updates it");
	if (!d->plain)
		may(w, fits(text_of(mem, d, d->gpus, true), NULL, 0),
		    "--set training.master_weights=false: weights, gradients and "
		    "optimizer in 16 bits");
	for (int times = 2; times <= 8; times *= 2)
		if (fits(text_of(mem, d, d->gpus * times, d->plain), NULL, 0)) {
			may(w, true,
			    arena_printf(mem,
					 "--set cluster.gpus=%d: %d times the GPUs",
					 d->gpus * times, times));
			break;
		}
}

static void what_is_named_helps_and_nothing_else_does(void **state)
{
	int some = 0, several = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = { .memory_gb = 3 + rnd_below(&seed, 3000) * 1e-3,
				   .gpus = 1,
				   .plain = rnd_below(&seed, 3) == 0 };
		struct arena mem = { 0 };
		struct ft_plans *p;
		struct ways w = { 0 };

		for (int k = 0; k < STATED; k++)
			d.stated[k] = rnd_below(&seed, 3) > 0;
		p = plans_of(text_of(&mem, &d, d.gpus, d.plain), NULL, 0);
		assert_non_null(p);
		if (!p->feasible)
			try_all(&mem, &d, &w);
		if (p->n_ways != w.n)
			fail_msg("%zu ways, not %zu: %s", p->n_ways, w.n,
				 text_of(&mem, &d, d.gpus, d.plain));
		for (size_t k = 0; k < w.n; k++) {
			assert_string_equal(p->way[k].text, w.text[k]);
			assert_true(p->way[k].memory_frac > 0 &&
				    p->way[k].memory_frac <= 1);
		}
		some += w.n == 1;
		several += w.n > 1;
		ft_plans_free(p);
		arena_release(&mem);
	}
	assert_true(some > 0 || several > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_named_helps_and_nothing_else_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
