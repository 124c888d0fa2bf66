/*
 * tests/bench/bench_ranks.c - how many results a second rank 0 takes into its table
 *
 * Seven ranks that take no time: each lease is answered at once, with rows of their own keys.
 * Rank 0 works beside that with one thread, as it always does. Rows are unpacked, written and
 * committed once a second; a second sweep adds as many to the same table.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include <stdio.h>

#include "base/clock.h"
#include "study/ranks.h"
#include "study/row_pack.h"
#include "study/shelf.h"

enum { RANKS = 8 };

static const char SCENARIO[] = "examples/01-first-answer/h100.yaml";

struct fake {
	struct ft_channel channel;
	struct sweep_row row;
	uint64_t job, leases[RANKS];
	size_t n[RANKS];
	uint64_t item[RANKS][RANKS_BATCH];
	bool gone[RANKS], quit;
	uint32_t phase;
	int turn;
	unsigned salt;
	struct ft_ranks *ranks;
	struct pack message;
};

static void hear(void *context, int to, const void *bytes, size_t n)
{
	struct fake *f = context;
	struct ranks_head h;

	memcpy(&h, bytes, sizeof(h));
	f->phase = h.phase;
	f->quit |= h.kind == RANKS_QUIT || h.kind == RANKS_OVER;
	if (h.kind != RANKS_WORK)
		return;
	f->leases[to] = h.lease;
	f->n[to] = h.n;
	memcpy(f->item[to], (const char *)bytes + sizeof(h), n - sizeof(h));
}

static void put_head(struct fake *f, enum ranks_kind kind, uint32_t n, uint64_t lease)
{
	struct ranks_head h = { .kind = kind,
				.phase = f->ranks->phase,
				.n = n,
				.lease = lease,
				.job = f->ranks->job };

	f->message.n = 0;
	pack_bytes(&f->message, &h, sizeof(h));
}

static void put_rows(struct fake *f, int from)
{
	struct pack one = { NULL, 0, 0 };
	const bool ok = true;

	put_head(f, RANKS_DONE, (uint32_t)f->n[from], f->leases[from]);
	for (uint32_t i = 0; i < f->n[from]; i++) {
		uint32_t place[2] = { i, 0 };
		unsigned long long at = f->item[from][i];

		/* spread as digests are */
		snprintf(f->row.key, sizeof(f->row.key), "%016llx%08llx%08x",
			 at * 0x9E3779B97F4A7C15ULL, at, f->salt);
		one.n = 0;
		pack_bytes(&one, &ok, sizeof(ok));
		pack_bytes(&one, &ok, sizeof(ok));
		pack_row(&one, &f->row, 2);
		place[1] = (uint32_t)one.n;
		pack_bytes(&f->message, place, sizeof(place));
		pack_bytes(&f->message, one.bytes, one.n);
	}
	pack_release(&one);
	f->leases[from] = 0;
}

/* Each rank in turn: its rows, or a question for more, or its farewell. */
static const void *say(void *context, int *from, size_t *n)
{
	struct fake *f = context;

	while (++f->turn < RANKS) {
		if (f->gone[f->turn])
			continue;
		*from = f->turn;
		if (f->leases[f->turn])
			put_rows(f, f->turn);
		else if (f->quit)
			put_head(f, RANKS_BYE, 0, 0);
		else
			put_head(f, RANKS_ASK, RANKS_BATCH, 0);
		f->gone[f->turn] = f->quit;
		*n = f->message.n;
		return f->message.bytes;
	}
	f->turn = 0;
	return NULL;
}

/* Of the processor, by this thread. */
static double thread_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run(struct fake *f, const char *db, const char *what)
{
	char gpus[2048] = "training.global_batch_size=0",
	     micro[2048] = "training.micro_batch_size=0";
	const char *const vary[] = { gpus, micro };
	struct ft_sweep_result result;
	struct ft_sweep sweep = {
		.scenario = SCENARIO, .db = db, .vary = vary, .n_vary = 2, .threads = 1
	};
	struct ft_error err;
	double t, busy;

	for (int i = 1; i < 256; i++) {
		sprintf(gpus + strlen(gpus), ",%d", i);
		sprintf(micro + strlen(micro), ",%d", i);
	}
	f->salt++;
	f->quit = false;
	memset(f->gone, 0, sizeof(f->gone));
	f->ranks = sweep.ranks = ft_ranks_new(&f->channel);
	t = clock_now_s();
	busy = thread_s();
	if (!ft_study_sweep(&sweep, &result, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	t = clock_now_s() - t;
	busy = thread_s() - busy;
	printf("ranks %-20s %zu rows in %5.2f s, %6.0f results/s; %6.0f a second of its "
	       "thread\n",
	       what, result.total, t, (double)result.total / t,
	       (double)result.total / busy);
	ft_ranks_free(f->ranks);
	return true;
}

int main(void)
{
	char db[] = "/tmp/foretoken-bench-XXXXXX";
	const char *values[] = { "1024", "1" };
	struct fake f = { .row = { .label = "bench",
				   .settings = "training.global_batch_size=1024 "
					       "training.micro_batch_size=1",
				   .value = values } };
	int fd = mkstemp(db);
	bool ok;

	if (fd < 0)
		return 1;
	close(fd);
	f.channel = (struct ft_channel){ 0, RANKS, &f, hear, say };
	ok = run(&f, db, "into an empty table");
	for (int i = 0; ok && i < 3; i++)
		ok = run(&f, db, "more into the same");
	pack_release(&f.message);
	unlink(db);
	return !ok;
}
