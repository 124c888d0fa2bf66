/*
 * tests/test_ranks.c - a sweep and a search shared by ranks find what one process finds
 *
 * The ranks are threads of this program, and the channel is a list of messages for each. The
 * same over MPI, with ranks that are killed: tests/test_mpi.sh.
 */
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "foretoken/reports.h"
#include "study/ranks.h"
#include "study/row_pack.h"
#include "tests/check.h"

enum { RANKS = 4, BODY = 1 << 16 };

struct letter {
	struct letter *next;
	int from;
	size_t n;
	char bytes[];
};

struct post {
	pthread_mutex_t lock;
	struct letter *first[RANKS], **end[RANKS];
};

struct rank {
	struct ft_channel channel;
	struct post *post;
	struct letter *read;
	pthread_t thread;
	const char *db; /* rank 0's */
	const char *scenario;
	int grid;    /* 1: this rank has another one */
	bool leaves; /* when it is given work */
	bool ok;
	struct ft_sweep_result result;
	struct ft_error err;
	char lost[256];
	bool all_there;
	char *plans; /* rank 0's: JSON */
};

static void put(void *context, int to, const void *bytes, size_t n)
{
	struct rank *r = context;
	struct letter *l = malloc(sizeof(*l) + n);

	*l = (struct letter){ NULL, r->channel.rank, n };
	memcpy(l->bytes, bytes, n);
	pthread_mutex_lock(&r->post->lock);
	if (!r->post->first[to])
		r->post->end[to] = &r->post->first[to];
	*r->post->end[to] = l;
	r->post->end[to] = &l->next;
	pthread_mutex_unlock(&r->post->lock);
}

/* Work is given back, and it is as if all were over. */
static void leave(struct rank *r)
{
	struct ranks_head h;

	memcpy(&h, r->read->bytes, sizeof(h));
	if (h.kind != RANKS_WORK)
		return;
	h.flag = 0;
	h.kind = RANKS_GONE;
	put(r, 0, &h, sizeof(h));
	h.kind = RANKS_OVER;
	memcpy(r->read->bytes, &h, sizeof(h));
	r->read->n = sizeof(h);
}

static const void *get(void *context, int *from, size_t *n)
{
	struct rank *r = context;
	struct letter **first = &r->post->first[r->channel.rank];

	free(r->read);
	pthread_mutex_lock(&r->post->lock);
	r->read = *first;
	if (*first)
		*first = (*first)->next;
	pthread_mutex_unlock(&r->post->lock);
	if (!r->read)
		return NULL;
	if (r->leaves)
		leave(r);
	*from = r->read->from;
	*n = r->read->n;
	return r->read->bytes;
}

static void *sweep(void *rank)
{
	static const char *const grids[][2] = {
		{ "training.parallel.tp=1,2,3,4", "cluster.gpus=64,128,256" },
		{ "training.parallel.tp=1,2,3,4", "cluster.gpus=64,128,512" },
	};
	struct rank *r = rank;
	struct ft_ranks *ranks = ft_ranks_new(&r->channel);
	struct ft_sweep s = { .scenario = r->scenario,
			      .db = r->db,
			      .vary = grids[r->grid],
			      .n_vary = 2,
			      .threads = r->channel.rank == 1 ? 2 : 1,
			      .ranks = ranks };

	r->ok = ft_study_sweep(&s, &r->result, &r->err);
	r->all_there =
		ft_ranks_end(ranks, r->ok ? NULL : &r->err, r->lost, sizeof(r->lost));
	ft_ranks_free(ranks);
	return NULL;
}

/* Threads of n ranks; odd: one of them has another grid (0: none), or leaves (below 0). */
static void run(struct rank *rank, int n, void *(*work)(void *rank),
		const char *scenario, const char *db, int odd)
{
	struct post post = { .lock = PTHREAD_MUTEX_INITIALIZER };

	for (int i = 0; i < n; i++) {
		rank[i] = (struct rank){ .post = &post,
					 .scenario = scenario,
					 .db = db,
					 .grid = odd && i == odd,
					 .leaves = odd && i == -odd };
		rank[i].channel = (struct ft_channel){ i, n, &rank[i], put, get };
	}
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&rank[i].thread, NULL, work, &rank[i]),
				 0);
	for (int i = 0; i < n; i++)
		pthread_join(rank[i].thread, NULL);
	for (int i = 0; i < n; i++) {
		free(rank[i].read);
		for (struct letter *l = post.first[i], *next; l; l = next) {
			next = l->next;
			free(l);
		}
	}
}

/* The whole table as one text. */
static char *rows(const char *db)
{
	char *text = calloc(1, BODY);
	sqlite3_stmt *q;
	sqlite3 *d;

	assert_int_equal(sqlite3_open(db, &d), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(d, "SELECT * FROM runs ORDER BY key", -1, &q, NULL),
		SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW)
		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const char *cell = (const char *)sqlite3_column_text(q, i);

			strcat(strcat(text, cell ? cell : "-"), "|");
			assert_true(strlen(text) < BODY - 1024);
		}
	sqlite3_finalize(q);
	sqlite3_close(d);
	return text;
}

static void new_file(char path[64])
{
	int fd;

	strcpy(path, "/tmp/foretoken-ranks-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static const char SCENARIO[] = "examples/01-first-answer/h100.yaml";

static void four_ranks_fill_the_table_of_one(void **state)
{
	struct rank one[RANKS], four[RANKS];
	char a[64], b[64], *text_a, *text_b;

	(void)state;
	new_file(a);
	new_file(b);
	run(one, 1, sweep, SCENARIO, a, 0);
	run(four, RANKS, sweep, SCENARIO, b, 0);
	ok_or_say(one[0].ok, one[0].err);
	ok_or_say(four[0].ok, four[0].err);
	text_a = rows(a);
	text_b = rows(b);
	assert_true(strlen(text_a) > 1000);
	assert_string_equal(text_a, text_b);
	assert_int_equal(four[0].result.done, one[0].result.done);
	assert_int_equal(four[0].result.failed, one[0].result.failed);
	assert_int_equal(four[0].result.n_reasons, one[0].result.n_reasons);
	assert_true(four[0].result.done + four[0].result.failed == 12);
	assert_true(four[0].all_there);
	assert_string_equal(four[0].lost, "");
	for (int i = 1; i < RANKS; i++)
		assert_true(four[i].ok && four[i].all_there);
	free(text_a);
	free(text_b);
	unlink(a);
	unlink(b);
}

static void what_is_there_is_not_run_again(void **state)
{
	struct rank r[RANKS];
	size_t done, failed;
	char db[64];

	(void)state;
	new_file(db);
	run(r, RANKS, sweep, SCENARIO, db, 0);
	done = r[0].result.done;
	failed = r[0].result.failed;
	run(r, RANKS, sweep, SCENARIO, db, 0);
	ok_or_say(r[0].ok, r[0].err);
	assert_int_equal(r[0].result.done + r[0].result.failed, 0);
	assert_int_equal(r[0].result.already, done);
	assert_int_equal(r[0].result.already_failed, failed);
	unlink(db);
}

static void a_rank_with_another_grid_is_kept_out(void **state)
{
	struct rank r[RANKS];
	char db[64];

	(void)state;
	new_file(db);
	run(r, RANKS, sweep, SCENARIO, db, 2);
	ok_or_say(r[0].ok, r[0].err);
	assert_int_equal(r[0].result.done + r[0].result.failed, 12);
	assert_non_null(strstr(r[0].lost, "rank 2 ended: this rank has another"));
	unlink(db);
}

/* What it was given goes to others. */
static void a_rank_that_leaves_is_not_missed(void **state)
{
	struct rank one[RANKS], four[RANKS];
	char a[64], b[64], *text_a, *text_b;

	(void)state;
	new_file(a);
	new_file(b);
	run(one, 1, sweep, SCENARIO, a, 0);
	run(four, RANKS, sweep, SCENARIO, b, -2);
	ok_or_say(four[0].ok, four[0].err);
	text_a = rows(a);
	text_b = rows(b);
	assert_string_equal(text_a, text_b);
	assert_int_equal(four[0].result.done + four[0].result.failed, 12);
	free(text_a);
	free(text_b);
	unlink(a);
	unlink(b);
}

static void a_mistake_of_rank_0_ends_all(void **state)
{
	struct rank r[RANKS];

	(void)state;
	run(r, RANKS, sweep, SCENARIO, "/nonexistent/x.db", 0);
	assert_false(r[0].ok);
	assert_non_null(strstr(r[0].err.text, "unable to open"));
	for (int i = 1; i < RANKS; i++)
		assert_true(r[i].ok && r[i].all_there);
}

static void *plan(void *rank)
{
	struct rank *r = rank;
	struct ft_ranks *ranks = ft_ranks_new(&r->channel);
	struct ft_search s = { .top = 3, .threads = 1, .ranks = ranks, .db = r->db };
	struct ft_plans *plans[FT_SIZES_MOST];
	size_t n, size;

	r->ok = ft_study_plans(r->scenario, &s, plans, &n, &r->err);
	for (size_t i = 0; i < n; i++) /* what depends on who was first */
		plans[i]->wall_s = (double)(plans[i]->simulated = plans[i]->known = 0);
	if (r->ok && r->channel.rank == 0) {
		struct ft_run_answer none = { 0 };
		struct ft_planning all = { plans, n, FT_RANK_TOKENS, &none };
		FILE *out = open_memstream(&r->plans, &size);

		ft_report_plans_json(out, &all);
		fclose(out);
	} else if (r->ok) {
		for (size_t i = 0; i < n; i++)
			assert_int_equal(plans[i]->n, 0);
	}
	for (size_t i = 0; i < n; i++)
		ft_plans_free(plans[i]);
	r->all_there =
		ft_ranks_end(ranks, r->ok ? NULL : &r->err, r->lost, sizeof(r->lost));
	ft_ranks_free(ranks);
	return NULL;
}

static void four_ranks_find_the_plans_of_one(void **state)
{
	static const char text[] =
		"{model: {name: llama3-8b, num_hidden_layers: 32}, "
		"cluster: {gpu: h200, gpus: [8, 16], imperfections: {slow_gpus: [{gpu: 5, speed_frac: 0.9}]}}, training: "
		"{sequence_length: 4096, global_batch_size: 16, "
		"sharding: zero1, recompute: none}}\n";
	struct rank one[RANKS], four[RANKS], again[RANKS];
	char path[64], db[64];
	FILE *f;

	(void)state;
	new_file(path);
	new_file(db);
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
	run(one, 1, plan, path, NULL, 0);
	ok_or_say(one[0].ok, one[0].err);
	run(four, RANKS, plan, path, db, 0);
	ok_or_say(four[0].ok, four[0].err);
	assert_string_equal(four[0].plans, one[0].plans);
	run(again, RANKS, plan, path, db, 0);
	ok_or_say(again[0].ok, again[0].err);
	assert_string_equal(again[0].plans, one[0].plans);
	free(one[0].plans);
	free(four[0].plans);
	free(again[0].plans);
	unlink(path);
	unlink(db);
}

/* Cut anywhere, a row is refused and nothing is read beyond its end. */
static void a_row_comes_back_whole_or_not_at_all(void **state)
{
	const char *values[] = { "8", NULL };
	struct sweep_row row = { .key = "0123",
				 .label = "a",
				 .settings = "x=8",
				 .value = values,
				 .outcome = { .step_s = 2, .fits = true } };
	struct pack p = { NULL, 0, 0 };
	struct arena mem = { 0 };

	(void)state;
	pack_row(&p, &row, 2);
	for (size_t n = 0; n <= p.n; n++) {
		char *exactly = malloc(n + !n);
		struct unpack u = { exactly, n, false };
		struct sweep_row back = { .label = NULL };

		memcpy(exactly, p.bytes, n);
		assert_int_equal(unpack_row(&u, &mem, &back, 2), n == p.n);
		if (n == p.n) {
			assert_string_equal(back.key, "0123");
			assert_string_equal(back.value[0], "8");
			assert_null(back.value[1]);
			assert_null(back.error);
			assert_true(back.outcome.step_s == 2 && back.outcome.fits);
		}
		free(exactly);
	}
	pack_release(&p);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_ranks_fill_the_table_of_one),
		cmocka_unit_test(what_is_there_is_not_run_again),
		cmocka_unit_test(a_rank_with_another_grid_is_kept_out),
		cmocka_unit_test(a_rank_that_leaves_is_not_missed),
		cmocka_unit_test(a_mistake_of_rank_0_ends_all),
		cmocka_unit_test(four_ranks_find_the_plans_of_one),
		cmocka_unit_test(a_row_comes_back_whole_or_not_at_all),
	};

	return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
