/*
 * tests/test_goal.c - collectives as GOAL: each rank's statements, read back and run
 *
 * A message takes a byte's time for each byte, a statement begins when all that it requires
 * has ended, a receive ends with its send. What a rank has heard of goes with what it sends.
 */
#include "base/goal.h"
#include "tests/check.h"
#include "tests/printed.h"

enum { RANKS = 9, STATEMENTS = 64, RANK_IDS = 64 };

struct statement {
	bool is_message, sends, done;
	int64_t amount; /* bytes, or nanoseconds */
	int64_t peer, tag;
	int cpu;
	uint64_t after; /* statements that it requires, a bit each */
	int64_t end;
	unsigned heard; /* of which ranks, a bit each */
};

struct program {
	struct statement of[RANKS][STATEMENTS];
	int64_t n[RANKS], last[RANKS]; /* last: what ends the collective */
};

static void read_line(struct program *p, int64_t rank, const char *line)
{
	struct statement s = { .is_message = true };
	char what[8], way[8];
	long n, on;

	if (sscanf(line, "l%ld requires l%ld", &n, &on) == 2) {
		assert_true(n >= 1 && n <= p->n[rank] && on >= 1 && on < n);
		p->of[rank][n].after |= UINT64_C(1) << on;
		return;
	}
	if (sscanf(line, "l%ld: calc %ld cpu %d", &n, &s.amount, &s.cpu) == 3) {
		s.is_message = false;
	} else {
		assert_int_equal(sscanf(line, "l%ld: %7s %ldb %7s %ld tag %ld cpu %d",
					&n, what, &s.amount, way, &s.peer, &s.tag,
					&s.cpu),
				 7);
		s.sends = !strcmp(what, "send");
		assert_true(s.sends ? !strcmp(way, "to") :
				      !strcmp(what, "recv") && !strcmp(way, "from"));
	}
	assert_int_equal(n, ++p->n[rank]);
	assert_true(n < STATEMENTS);
	p->of[rank][n] = s;
}

static void read_program(struct program *p, char *text, const int64_t *id, int64_t n)
{
	int64_t rank = -1;
	long number;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "rank %ld {", &number) == 1) {
			assert_int_equal(number, id[++rank]);
		} else if (sscanf(line, "num_ranks %ld", &number) == 1) {
			assert_int_equal(number, RANK_IDS);
		} else if (strcmp(line, "}") != 0) {
			read_line(p, rank, line);
		}
	assert_int_equal(rank, n - 1);
}

/* The other side of a message: the only one of its peer with this tag and this rank. */
static struct statement *other(struct program *p, const int64_t *id, int64_t n,
			       int64_t rank, const struct statement *s)
{
	struct statement *found = NULL;
	int64_t peer = 0;

	while (peer < n && id[peer] != s->peer)
		peer++;
	assert_true(peer < n && peer != rank);
	for (int64_t i = 1; i <= p->n[peer]; i++) {
		struct statement *o = &p->of[peer][i];

		if (!o->is_message || o->sends == s->sends || o->tag != s->tag ||
		    o->peer != id[rank])
			continue;
		assert_null(found);
		found = o;
	}
	assert_non_null(found);
	assert_int_equal(found->amount, s->amount);
	return found;
}

/* false: it cannot yet */
static bool run_one(struct program *p, const int64_t *id, int64_t n, int64_t rank,
		    int64_t at)
{
	struct statement *s = &p->of[rank][at];
	const struct statement *from = s->is_message ? other(p, id, n, rank, s) : NULL;
	int64_t begin = 0;

	if (from && !s->sends && !from->done)
		return false;
	s->heard = 1U << rank;
	for (int64_t i = 1; i < at; i++)
		if (s->after >> i & 1) {
			const struct statement *on = &p->of[rank][i];

			if (!on->done)
				return false;
			begin = on->end > begin ? on->end : begin;
			s->heard |= on->heard;
		}
	s->end = begin + (s->is_message && !s->sends ? 0 : s->amount);
	if (from && !s->sends) {
		s->heard |= from->heard;
		s->end = from->end > s->end ? from->end : s->end;
	}
	s->done = true;
	return true;
}

static void run_program(struct program *p, const int64_t *id, int64_t n)
{
	bool any = true, left = false;

	while (any) {
		any = left = false;
		for (int64_t r = 0; r < n; r++)
			for (int64_t i = 1; i <= p->n[r]; i++)
				if (!p->of[r][i].done) {
					bool ran = run_one(p, id, n, r, i);

					any = any || ran;
					left = left || !ran;
				}
	}
	assert_false(left); /* a circle */
}

struct drawn {
	struct goal_call call;
	int64_t id[RANKS], n;
	ft_ps before; /* of each rank, a multiple of a nanosecond; 0: nothing */
};

static void write_all(FILE *out, const struct drawn *d, struct program *p)
{
	struct goal g = { .out = out };

	goal_begin(&g, RANK_IDS);
	for (int64_t r = 0; r < d->n; r++) {
		struct goal_call call = d->call;
		int64_t after = 0;

		goal_rank(&g, d->id[r]);
		if (d->before)
			after = goal_calc(&g, d->before, 0);
		call.ring.place = r;
		p->last[r] = goal_collective(&g, &call, after);
		goal_rank_end(&g);
	}
}

static struct program *ran(const struct drawn *d)
{
	struct program *p = calloc(1, sizeof(*p));
	char *text = NULL;

	assert_non_null(p);
	PRINTED(text, write_all(out, d, p));
	read_program(p, text, d->id, d->n);
	free(text);
	run_program(p, d->id, d->n);
	return p;
}

static int64_t whole(double bytes)
{
	int64_t n = (int64_t)bytes;

	n += (double)n < bytes;
	return n < 1 ? 1 : n;
}

/* A group of drawn ranks, either a base and a stride or a list; sums that are no whole bytes. */
static struct drawn draw(uint64_t *seed, enum ft_collective op, int64_t *listed)
{
	struct drawn d = { .n = 2 + rnd(seed) % (RANKS - 1) };
	int64_t base = rnd(seed) % 8, stride = 1 + rnd(seed) % 7;

	for (int64_t r = 0; r < d.n; r++)
		d.id[r] = listed[r] = base + r * stride;
	d.call = (struct goal_call){ .op = op,
				     .bytes = rnd(seed) % 5 ? rnd(seed) % 100000 : 0.5,
				     .ring = { base, stride, d.n, 0, NULL },
				     .tag = rnd(seed) % 1000,
				     .cpu = 1 + (int)(rnd(seed) % 9) };
	if (rnd(seed) % 2) {
		for (int64_t r = d.n - 1; r > 0; r--) {
			int64_t k = rnd(seed) % (r + 1), was = listed[r];

			listed[r] = listed[k];
			listed[k] = was;
		}
		memcpy(d.id, listed, sizeof(d.id));
		d.call.ring = (struct goal_ring){ -1, -1, d.n, 0, listed };
	}
	d.before = rnd(seed) % 2 ? 1000 * (ft_ps)(1 + rnd(seed) % 1000) : 0;
	return d;
}

/* Messages of a rank are of the call: its cpu, its tags, of this size. */
static void are_of_call(const struct drawn *d, const struct program *p, int64_t part,
			int64_t sends, int64_t receives, int64_t r)
{
	int64_t sent = 0, received = 0;

	for (int64_t i = 1; i <= p->n[r]; i++) {
		const struct statement *s = &p->of[r][i];

		if (!s->is_message)
			continue;
		sent += s->sends;
		received += !s->sends;
		assert_int_equal(s->amount, part);
		assert_int_equal(s->cpu, d->call.cpu);
		assert_true(s->tag >= d->call.tag &&
			    s->tag < d->call.tag + goal_tags(d->call.op, d->n));
		if (d->before)
			assert_true(s->end >= d->before / 1000);
	}
	assert_int_equal(sent, sends);
	assert_int_equal(received, receives);
}

/* Every rank has heard of every other, in the time of a ring's steps, one after another. */
static void rings_take_their_steps(void **state)
{
	static const enum ft_collective op[] = { FT_ALL_GATHER, FT_REDUCE_SCATTER,
						 FT_ALL_REDUCE, FT_ALL_TO_ALL,
						 FT_SENDRECV };
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int64_t listed[RANKS] = { 0 };
		struct drawn d = draw(&seed, op[i % 5], listed);
		struct program *p = ran(&d);
		int64_t steps = (op[i % 5] == FT_ALL_REDUCE ? 2 : 1) * (d.n - 1);
		int64_t shares = op[i % 5] == FT_SENDRECV ? d.n - 1 : d.n;
		int64_t part = whole(d.call.bytes / (double)shares);

		for (int64_t r = 0; r < d.n; r++) {
			const struct statement *last = &p->of[r][p->last[r]];

			are_of_call(&d, p, part, steps, steps, r);
			assert_int_equal(p->last[r], p->n[r]);
			assert_int_equal(last->heard, (1U << d.n) - 1);
			assert_int_equal(last->end, d.before / 1000 + steps * part);
		}
		free(p);
	}
}

/* The k-th rank of a chain has heard of those before it and of nobody else, when k messages
 * have gone one after another; it has ended when it has passed its own on. */
static void a_broadcast_is_a_chain(void **state)
{
	uint64_t seed = 8;

	(void)state;
	for (int i = 0; i < 100; i++) {
		int64_t listed[RANKS] = { 0 };
		struct drawn d = draw(&seed, FT_BROADCAST, listed);
		struct program *p = ran(&d);
		int64_t part = whole(d.call.bytes);

		for (int64_t r = 0; r < d.n; r++) {
			const struct statement *last = &p->of[r][p->last[r]];
			bool sends = r + 1 < d.n;

			are_of_call(&d, p, part, sends, r > 0, r);
			assert_int_equal(p->n[r], (d.before > 0) + (r > 0) + sends);
			assert_int_equal(last->heard, (1U << (r + 1)) - 1);
			assert_int_equal(last->end,
					 d.before / 1000 + (r + sends) * part);
		}
		free(p);
	}
}

static void times_are_rounded_to_nanoseconds(void **state)
{
	static const ft_ps ps[] = { 0, 499, 500, 1499, 1500, 123456789 };
	static const long ns[] = { 0, 0, 1, 1, 2, 123457 };

	(void)state;
	for (size_t i = 0; i < sizeof(ps) / sizeof(*ps); i++) {
		char *text = NULL, want[64];

		snprintf(want, sizeof(want), "l6: calc %ld cpu 3\n", ns[i]);
		PRINTED(text, goal_calc(&(struct goal){ out, 5 }, ps[i], 3));
		assert_string_equal(text, want);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_take_their_steps),
		cmocka_unit_test(a_broadcast_is_a_chain),
		cmocka_unit_test(times_are_rounded_to_nanoseconds),
	};

	return cmocka_run_group_tests_name("base/goal", tests, NULL, NULL);
}
