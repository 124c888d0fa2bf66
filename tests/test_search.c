/* tests/test_search.c - legality twice, and searches against simulating every plan */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_plan.h"
#include "study/search.h"
#include "study/shelf.h"
#include "study/space.h"
#include "tests/check.h"
#include "tests/few.h"

/* Small enough that every plan can be simulated. */
static const char *const spaces[] = {
	"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h200, gpus: 8}, "
	"training: {sequence_length: 2048, global_batch_size: 16, sharding: zero1}}",
	"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, gpus: 8}, "
	"stack: torchtitan-2024, training: {sequence_length: 4096, global_batch_size: 8, "
	"parallel: {cp: 1}, recompute: full}}",
	"{model: {name: gpt3-175b, num_hidden_layers: 6}, cluster: {gpu: h100-sxm, gpus: 16}, "
	"stack: nemo-24, training: {sequence_length: 2048, global_batch_size: 16, "
	"parallel: {cp: 1}, micro_batch_size: 1}}",
	"{model: {name: mixtral-8x7b, num_hidden_layers: 4}, cluster: {gpu: h200, gpus: 8}, "
	"stack: megatron-core-moe-2025, training: {sequence_length: 2048, "
	"global_batch_size: 8, parallel: {cp: 1}, micro_batch_size: 1}}",
	"{model: {name: llama3-70b, num_hidden_layers: 8}, cluster: {gpu: mi300x, gpus: 8}, "
	"training: {sequence_length: 4096, global_batch_size: 8, micro_batch_size: 1, "
	"sharding: fsdp}}",
	"{model: {name: deepseek-v2, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, gpus: 8}, "
	"training: {sequence_length: 2048, global_batch_size: 8, micro_batch_size: 1, "
	"recompute: none, sharding: zero1}}",
	"{model: {name: llama2-7b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, gpus: 16, "
	"fabric: roce-400-rail, imperfections: {placement: scattered}}, training: "
	"{sequence_length: 2048, global_batch_size: 16, micro_batch_size: 1, "
	"recompute: none}}",
	"{model: {name: llama2-7b, num_hidden_layers: 8}, cluster: {gpu: h100-sxm, gpus: 16, "
	"imperfections: {slow_gpus: [{gpu: 3, speed_frac: 0.7}]}}, training: "
	"{sequence_length: 2048, global_batch_size: 16, micro_batch_size: 2, "
	"recompute: none}}",
	"{model: gpt-1.5b, cluster: {gpu: a100-80g, gpus: 8}, stack: megatron-lm-2022, "
	"training: {sequence_length: 1024, global_batch_size: 16, recompute: none}}",
	"{model: llama3-8b, cluster: {gpu: h100-sxm, gpus: 2}, training: {sequence_length: "
	"8192, global_batch_size: 8, lora: {rank: 16, targets: attention}}}",
	/* no number of chunks divides 13 or 15 layers over 2 or 4 stages */
	"{model: {name: llama3-8b, num_hidden_layers: 13}, cluster: {gpu: h100-sxm, gpus: 8}, "
	"stack: nemo-24, training: {sequence_length: 2048, global_batch_size: 16, "
	"micro_batch_size: 1, recompute: none, parallel: {cp: 1}}}",
	"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h200, gpus: 8}, "
	"stack: torch-2.11-eager, training: {sequence_length: 4096, "
	"global_batch_size: 16, micro_batch_size: 1, sharding: ddp, recompute: none, "
	"parallel: {tp: 1, cp: 1}}}",
	"{model: {name: qwen3-30b-a3b, num_hidden_layers: 8}, cluster: {gpu: h200, gpus: 8}, "
	"stack: torch-2.11-eager, training: {sequence_length: 4096, "
	"global_batch_size: 64, sharding: zero1, schedule: dualpipev, recompute: none, "
	"overlap: {ep: true}, parallel: {tp: 1, cp: 1}}}",
};

enum { SPACES = sizeof(spaces) / sizeof(*spaces) };
#ifdef TESTS_FEW
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

static struct ft_plans *found(const struct node *root, enum ft_rank_by by, bool all,
			      int threads)
{
	struct ft_search s = {
		.rank_by = by, .top = 5, .threads = threads, .exhaustive = all
	};
	struct ft_error err;
	struct ft_plans *p = plans_of(root, "test", &s, &err);

	ok_or_say(p, err);
	return p;
}

static const char *text_of(struct arena *mem, const struct ft_planned *p)
{
	return node_flow(mem, node_get(p->scenario->resolved, "training"));
}

/* By time or by dollars, on one thread or on two: what all simulations find. */
static void a_search_finds_what_simulating_every_plan_finds(void **state)
{
	size_t simulated = 0, feasible = 0;

	(void)state;
	for (int i = 0; i < SPACES; i += EVERY) {
		enum ft_rank_by by = i % 2 ? FT_RANK_USD : FT_RANK_TOKENS;
		const char *text = spaces[i];
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
		struct ft_plans *a, *b;

		ok_or_say(root, err);
		a = found(root, by, true, 2);
		b = found(root, by, false, 1 + i / 2 % 2);
		assert_int_equal(a->simulated, a->feasible);
		assert_int_equal(a->bounded, a->considered);
		assert_true(b->bounded <= b->considered && b->feasible <= a->feasible);
		assert_int_equal(b->open, 0);
		assert_true(a->n > 0 && a->n == b->n);
		for (size_t k = 0; k < a->n; k++)
			assert_string_equal(text_of(&mem, &a->best[k]),
					    text_of(&mem, &b->best[k]));
		simulated += b->simulated;
		feasible += a->feasible;
		ft_plans_free(a);
		ft_plans_free(b);
		arena_release(&mem);
	}
	print_message("%zu of %zu plans simulated\n", simulated, feasible);
	assert_true(simulated < feasible);
}

/* No plan is missed for being thought equal: among those that simulations tell apart, each is
 * there once. */
static void every_candidate_is_the_plan_that_its_document_says(void **state)
{
	size_t n = 0;

	(void)state;
	for (int i = 0; i < SPACES; i++) {
		struct ft_shelf *shelf = ft_shelf_new();
		struct arena mem = { 0 };
		struct ft_error err;
		struct node *root =
			node_read_text(&mem, "s", spaces[i], strlen(spaces[i]), &err);
		struct ft_scenario *open = scenario_open(shelf, root, "s", &err);
		struct space sp;

		ok_or_say(open, err);
		ok_or_say(space_open(&sp, open, NULL, 0, &err), err);
		for (size_t k = 0; k < sp.n; k += 1 + sp.n / 60, n++) {
			int64_t layers[200];
			struct ft_plan p;
			struct node *d = space_document(&sp, &sp.candidate[k], &mem);
			struct ft_scenario *s =
				ft_scenario_from(shelf, d, "s", true, &err);
			const struct ft_plan *q;

			ok_or_say(s, err);
			q = s->plan;
			assert_true(space_plan(&sp, &sp.candidate[k], &p, layers));
			for (int64_t c = 0; c < p.pp * p.vpp; c++)
				assert_int_equal(p.stage_layers[c], q->stage_layers[c]);
			p.stage_layers = q->stage_layers;
			/* written out: padding need not be the same */
#define SAME(field) assert_int_equal(p.field, q->field)
			SAME(ranks), SAME(tp), SAME(pp), SAME(cp), SAME(ep), SAME(etp),
				SAME(vpp), SAME(dp), SAME(edp), SAME(sequence),
				SAME(global_batch), SAME(micro_batch),
				SAME(micro_batches), SAME(last_micro_batch),
				SAME(shard), SAME(precision), SAME(gradient_dtype),
				SAME(sharding), SAME(schedule), SAME(recompute),
				SAME(step_start), SAME(recompute_modules),
				SAME(recompute_layers), SAME(offload_layers),
				SAME(zero_group), SAME(graphs), SAME(scaling),
				SAME(optimizer), SAME(dispatcher), SAME(force_balance),
				SAME(grouped_experts), SAME(fused_experts),
				SAME(overlap_ep), SAME(overlap_gather),
				SAME(sequence_parallel), SAME(master_weights),
				SAME(reshard_after_forward), SAME(overlap_tp),
				SAME(overlap_dp), SAME(overlap_pp), SAME(lora.rank),
				SAME(copy_engines), SAME(ranks_per_node),
				SAME(any_layout), SAME(unsharded_pipeline),
				SAME(sync_last), SAME(flushes), SAME(moment_dtype),
				SAME(master), SAME(document), SAME(offload_state),
				SAME(offload_threads), SAME(attention_precision),
				SAME(expert_precision), SAME(capacity_factor),
				SAME(fp8_gates), SAME(indexer_loss), SAME(lora.targets),
				SAME(lora.frozen);
			ft_scenario_free(s);
		}
		space_close(&sp);
		ft_scenario_free(open);
		ft_shelf_free(shelf);
		arena_release(&mem);
	}
	print_message("%zu candidates\n", n);
}

/* What plans of a family share is found once, whichever of them comes first: the same as each
 * alone. */
static void a_sketch_stands_for_all_plans_of_its_family(void **state)
{
	size_t n = 0, told = 0, too_heavy = 0;

	(void)state;
	for (int i = 0; i < SPACES; i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		struct ft_search s = { .top = 1 };
		struct search_job j = { .search = &s, .name = "s" };
		struct worker w = { .job = &j };

		j.root = node_read_text(&mem, "s", spaces[i], strlen(spaces[i]), &err);
		pthread_mutex_init(&j.lock, NULL);
		assert_true(search_open(&w, &j));
		ok_or_say(space_open(&j.space, w.open, NULL, 0, &err), err);
		for (size_t k = 0; k < j.space.n; k++)
			search_sketch(&w, &j.space.candidate[k]);
		for (size_t k = 0; k < j.space.n; k += 1 + j.space.n / 100, n++) {
			struct candidate alone = j.space.candidate[k];
			struct ft_plan p;
			bool heavy = space_plan(&j.space, &alone, &p, w.layers) &&
				     search_held(w.open, &p).frac > SEARCH_WONT_FIT;

			sketches_free(w.sketches);
			w.sketches = sketches_new();
			search_sketch(&w, &alone);
			assert_true(alone.least == j.space.candidate[k].least);
			assert_int_equal(heavy, isinf(alone.least));
			assert_int_equal(heavy, search_wont_fit(&alone));
			told += alone.least > 0 && !heavy;
			too_heavy += heavy;
		}
		space_close(&j.space);
		search_close(&w);
		pthread_mutex_destroy(&j.lock);
		arena_release(&mem);
	}
	print_message("%zu plans, %zu with a bound, %zu whose weights do not fit\n", n,
		      told, too_heavy);
	assert_true(told > n / 2);
}

/* A search that ends before its time says what it has not ruled out. */
static void a_search_that_is_stopped_says_what_is_open(void **state)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_search s = { .top = 5, .threads = 1, .at_most_s = 1e-6 };
	struct node *root =
		node_read_text(&mem, "s", spaces[0], strlen(spaces[0]), &err);
	struct ft_plans *p = plans_of(root, "s", &s, &err);

	(void)state;
	ok_or_say(p, err);
	assert_true(p->interrupted);
	assert_true(p->open > 0 && p->open <= p->considered);
	ft_plans_free(p);
	arena_release(&mem);
}

static const int64_t sizes_drawn[] = { 1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64 };

static int64_t drawn(uint64_t *seed, int most)
{
	return sizes_drawn[rnd(seed) % (uint64_t)most];
}

/* ft_plan_vary against ft_plan_load, legal and not. */
static void both_checks_of_a_plan_agree(void **state)
{
	static const char *const models[] = { "llama3-8b", "gpt3-175b", "deepseek-v2",
					      "mixtral-8x7b", "qwen3-next-80b-a3b" };
	static const char *const shardings[] = { "none",  "ddp",  "zero1",
						 "zero2", "fsdp", "hsdp" };
	static const char *const schedules[] = { "1f1b",  "interleaved",
						 "gpipe", "zero-bubble",
						 "zbv",	  "dualpipev" };
	static const char *const again[] = { "none", "selective", "full" };
	int legal = 0, refused = 0;
	uint64_t seed = 5;

	(void)state;
	for (int m = 0; m < 5; m++) {
		struct ft_error err;
		struct arena mem = { 0 };
		struct node *name =
			node_read_text(&mem, "m", models[m], strlen(models[m]), &err);
		struct ft_model *model = ft_model_load(name, &err);

		ok_or_say(model, err);
		for (int i = 0; i < 5000; i++) {
			struct ft_plan_context context = {
				.ranks = 8 * drawn(&seed, 11),
				.ranks_per_node = 8,
				.ragged_batch = rnd(&seed) % 4 == 0,
				.no_context = i % 5 ? NULL : "it is unfused",
				.unsharded_pipeline = i % 2
			};
			struct ft_plan p = { .unsharded_pipeline = i % 2,
					     .sequence = 4096,
					     .global_batch = 32 * drawn(&seed, 8) };
			int64_t layers[300], zero, shard, again_layers;
			int sh = (int)(rnd(&seed) % 21 + 3) / 4,
			    sc = (int)(rnd(&seed) % FT_SCHEDULES),
			    re = (int)(rnd(&seed) % 3);
			char *text;
			struct node *n;
			struct ft_plan *q;
			bool ok;

			p.tp = drawn(&seed, 9), p.pp = drawn(&seed, 9);
			p.cp = drawn(&seed, 4), p.ep = drawn(&seed, 9);
			p.etp = drawn(&seed, 3), p.vpp = drawn(&seed, 6);
			p.micro_batch = drawn(&seed, 4);
			zero = rnd(&seed) % 3 ? 0 : drawn(&seed, 9);
			shard = rnd(&seed) % 3 ? 0 : drawn(&seed, 9);
			again_layers = rnd(&seed) % 2 ? -1 : drawn(&seed, 11);
			text = arena_printf(
				&mem,
				"{sequence_length: 4096, global_batch_size: %lld, "
				"micro_batch_size: %lld, sharding: %s, schedule: %s, "
				"recompute: %s, parallel: {tp: %lld, pp: %lld, cp: %lld, ep: "
				"%lld, etp: %lld, vpp: %lld}%s%s%s}",
				(long long)p.global_batch, (long long)p.micro_batch,
				shardings[sh], schedules[sc], again[re],
				(long long)p.tp, (long long)p.pp, (long long)p.cp,
				(long long)p.ep, (long long)p.etp, (long long)p.vpp,
				zero ? arena_printf(&mem, ", zero_group: %lld",
						    (long long)zero) :
				       "",
				shard ? arena_printf(&mem, ", shard: %lld",
						     (long long)shard) :
					"",
				again_layers > 0 ?
					arena_printf(&mem, ", recompute_layers: %lld",
						     (long long)again_layers) :
					"");
			n = node_read_text(&mem, "p", text, strlen(text), &err);
			ok_or_say(n, err);
			q = ft_plan_load(n, model, &context, &err);
			p.sharding = (enum ft_sharding)sh;
			p.schedule = (enum ft_schedule)sc;
			p.recompute = (enum ft_recompute)re;
			p.zero_group = zero, p.shard = shard;
			p.recompute_layers = again_layers;
			p.sequence_parallel = true;
			ok = ft_plan_vary(&p, model, &context, layers);
			if (ok != (q != NULL))
				fail_msg("%s on %lld ranks: %s", text,
					 (long long)context.ranks,
					 q ? "loads, but is thought illegal" :
					     err.text);
			if (ok) {
				SAME(ranks_per_node), SAME(dp), SAME(edp), SAME(shard),
					SAME(zero_group), SAME(micro_batches),
					SAME(last_micro_batch), SAME(schedule),
					SAME(vpp), SAME(recompute_layers);
			}
			legal += ok;
			refused += !ok;
			ft_plan_free(q);
		}
		ft_model_free(model);
		arena_release(&mem);
	}
	print_message("%d legal, %d refused\n", legal, refused);
	assert_true(legal > 500 && refused > 500);
}

/* A model that is too large for its cluster: the answer says what would help. */
static void where_nothing_fits_a_change_is_named(void **state)
{
	static const char text[] =
		"{model: llama3-70b, cluster: {gpu: h100-sxm, gpus: 8}, training: "
		"{sequence_length: 8192, global_batch_size: 8, parallel: {tp: 8, cp: 1}, "
		"micro_batch_size: 1}}";
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_plans *p;

	(void)state;
	ok_or_say(root, err);
	p = found(root, FT_RANK_TOKENS, false, 1);
	assert_int_equal(p->feasible, 0);
	assert_int_equal(p->n, 0);
	assert_true(p->n_ways > 0);
	assert_true(p->over_gpu == p->considered && p->over_node == 0);
	for (size_t i = 0; i < p->n_ways; i++)
		assert_true(p->way[i].memory_frac <= 1 && !p->way[i].of_node);
	ft_plans_free(p);
	arena_release(&mem);
}

/* What a scenario states is held, and freed by name. */
static void stated_keys_are_held_until_freed(void **state)
{
	static const char text[] =
		"{model: {name: llama3-8b, num_hidden_layers: 8}, cluster: {gpu: h200, gpus: "
		"8}, training: {sequence_length: 2048, global_batch_size: 16, parallel: {tp: "
		"4, pp: 2}, recompute: full, recompute_layers: 4, micro_batch_size: 1}}";
	static const char *const keys[] = { "parallel.tp", "training.recompute",
					    "recompute_layers" };
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_search s = { .top = 50, .free_key = keys, .n_free = 3, .threads = 1 };
	struct ft_plans *p;
	bool other_tp = false;

	(void)state;
	ok_or_say(root, err);
	p = found(root, FT_RANK_TOKENS, false, 1);
	for (size_t i = 0; i < p->n; i++) {
		assert_int_equal(p->best[i].scenario->plan->tp, 4);
		assert_int_equal(p->best[i].scenario->plan->recompute_layers, 4);
	}
	ft_plans_free(p);
	p = plans_of(root, "s", &s, &err);
	ok_or_say(p, err);
	for (size_t i = 0; i < p->n; i++) {
		assert_int_equal(p->best[i].scenario->plan->pp, 2);
		other_tp |= p->best[i].scenario->plan->tp != 4;
	}
	assert_true(other_tp);
	ft_plans_free(p);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_checks_of_a_plan_agree),
		cmocka_unit_test(every_candidate_is_the_plan_that_its_document_says),
		cmocka_unit_test(a_sketch_stands_for_all_plans_of_its_family),
		cmocka_unit_test(a_search_that_is_stopped_says_what_is_open),
		cmocka_unit_test(stated_keys_are_held_until_freed),
		cmocka_unit_test(where_nothing_fits_a_change_is_named),
		cmocka_unit_test(a_search_finds_what_simulating_every_plan_finds),
	};

	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
