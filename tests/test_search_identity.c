/*
 * tests/test_search_identity.c - ranks share a search where they were asked the same, and answers an error where what is
 * predicted is the same: pairs which differ in one thing or in none
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_decide.h"
#include "study/search.h"
#include "tests/check.h"

enum { DRAWS = 400, FREE = 3 };

static uint64_t seed = 149;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

struct asked {
	const char *root, *key[FREE];
	size_t n_free;
	enum phase phase;
	int rank_by;
	bool db;
};

static const char *const roots[] = { "{a: 1, b: {c: x}}", "{a: 1, b: {c: y}}", "{a: 1}",
				     "{a: 1, b: {d: x}}" };
static const char *const keys[] = { "training.precision", "stack", "cluster.gpu" };

static void draw(struct asked *a)
{
	*a = (struct asked){ .root = PICK(roots),
			     .n_free = (size_t)rnd_below(&seed, FREE + 1),
			     .phase = (enum phase)rnd_below(&seed, 3),
			     .rank_by = rnd_below(&seed, 2),
			     .db = rnd_below(&seed, 2) };
	for (size_t i = 0; i < a->n_free; i++)
		a->key[i] = PICK(keys);
}

static void change_one(struct asked *a)
{
	struct asked other;

	draw(&other);
	switch (rnd_below(&seed, 6)) {
	case 0:
		a->root = other.root;
		break;
	case 1:
		if (a->n_free)
			a->key[rnd_below(&seed, (int)a->n_free)] = PICK(keys);
		break;
	case 2:
		a->phase = other.phase;
		break;
	case 3:
		a->rank_by = other.rank_by;
		break;
	case 4:
		a->db = other.db;
		break;
	default:
		a->n_free -= a->n_free > 0;
	}
}

static bool same(const struct asked *a, const struct asked *b)
{
	bool keys_too = a->n_free == b->n_free;

	for (size_t i = 0; keys_too && i < a->n_free; i++)
		keys_too = !strcmp(a->key[i], b->key[i]);
	return keys_too && !strcmp(a->root, b->root) && a->phase == b->phase &&
	       a->rank_by == b->rank_by && a->db == b->db;
}

static uint64_t identity_of(const struct asked *a)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_search search = { .n_free = a->n_free,
				    .db = a->db ? "found.db" : NULL };
	struct search_job *j = ARENA_NEW(&mem, struct search_job);
	uint64_t is;

	search.rank_by = a->rank_by;
	search.free_key = a->key;
	j->search = &search;
	j->phase = a->phase;
	j->root = node_read_text(&mem, "asked", a->root, strlen(a->root), &err);
	ok_or_say(j->root, err);
	is = search_identity(j);
	arena_release(&mem);
	return is;
}

static void what_is_asked_tells_searches_apart(void **state)
{
	int alike = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct asked a, b;

		draw(&a);
		b = a;
		change_one(&b);
		assert_int_equal(identity_of(&a) == identity_of(&b), same(&a, &b));
		alike += same(&a, &b);
	}
	assert_in_range(alike, DRAWS / 8, DRAWS / 2);
}

/* Another plan or size has the same error; another model, GPU, stack or format its own. */
static const struct {
	const char *text;
	int job;
} predicted[] = {
#define JOB(model, cluster, stack, more) \
	"{model: {name: " model ", num_hidden_layers: 2}, cluster: {" cluster \
	"}, stack: " stack \
	", training: {sequence_length: 512, global_batch_size: 32" more "}}"
	{ JOB("llama3-8b", "gpu: h100-sxm, gpus: 8", "torch-2.11-eager", ""), 0 },
	{ JOB("llama3-8b", "gpu: h100-sxm, gpus: 16", "torch-2.11-eager", ""), 0 },
	{ JOB("llama3-8b", "gpu: h100-sxm, gpus: 8", "torch-2.11-eager",
	      ", sharding: fsdp, parallel: {tp: 2}"),
	  0 },
	{ JOB("mixtral-8x7b", "gpu: h100-sxm, gpus: 8", "torch-2.11-eager", ""), 1 },
	{ JOB("llama3-8b", "gpu: h200, gpus: 8", "torch-2.11-eager", ""), 2 },
	{ JOB("llama3-8b", "gpu: h100-sxm, gpus: 8", "torch-2.11-compile", ""), 3 },
	{ JOB("llama3-8b", "gpu: h100-sxm, gpus: 8", "torch-2.11-eager",
	      ", precision: fp16"),
	  4 },
	/* the first one in other words */
	{ JOB("llama3-8b, hidden_size: 4096", "gpu: {extends: h100-sxm}, gpus: 8",
	      "torch-2.11-eager", ""),
	  0 },
	{ JOB("llama3-8b",
	      "gpu: {extends: h100-sxm, memory.bandwidth: 3.35 TB/s}, gpus: 8",
	      "torch-2.11-eager", ""),
	  0 },
	{ JOB("llama3-8b",
	      "gpu: {extends: h100-sxm, memory.bandwidth: 3 TB/s}, gpus: 8",
	      "torch-2.11-eager", ""),
	  5 },
#undef JOB
};

enum { PREDICTED = sizeof(predicted) / sizeof(*predicted) };

static uint64_t job_of(const char *text)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *root = node_read_text(&mem, "job", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome o;
	uint64_t job;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "job", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	job = ft_outcome_side(s, &o).throughput.job;
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return job;
}

static void what_is_predicted_tells_errors_apart(void **state)
{
	uint64_t job[PREDICTED];

	(void)state;
	for (int i = 0; i < PREDICTED; i++) {
		job[i] = job_of(predicted[i].text);
		for (int k = 0; k < i; k++)
			assert_int_equal(job[i] == job[k],
					 predicted[i].job == predicted[k].job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_tells_searches_apart),
		cmocka_unit_test(what_is_predicted_tells_errors_apart),
	};

	return cmocka_run_group_tests_name("search identity", tests, NULL, NULL);
}
