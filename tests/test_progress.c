/* tests/test_progress.c - what is told of drawn work, each time, against how far it is */
#include "base/progress.h"
#include "tests/check.h"
#include "tests/printed.h"

/* Work as the test knows it; times in eighths of a second. */
struct work {
	struct progress told;
	long now, begun, pace; /* pace: when this phase was first told of */
	long last_told;
	size_t from, finished, fresh, total; /* from: what was fresh then */
};

/* Of seconds: what is left of 00:00:00 without what is in front. */
static int put_time(char *to, size_t n, long s)
{
	char all[32];

	if (s < 60)
		return snprintf(to, n, "%ld s", s);
	snprintf(all, sizeof(all), "%02ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	return snprintf(to, n, "%s", all + strspn(all, "0:"));
}

static int put_counts(char *to, size_t n, const struct work *w)
{
	long spent = w->now - w->pace, rest = (long)(w->total - w->finished);
	long done = (long)(w->fresh - w->from);
	int len = snprintf(to, n, "rows %zu of %zu", w->finished, w->total);

	if (!done)
		return len;
	len += snprintf(to + len, n - (size_t)len, ", ");
	/* to the nearest second, half of one upwards */
	len += put_time(to + len, n - (size_t)len,
			(2 * spent * rest + 8 * done) / (16 * done));
	return len + snprintf(to + len, n - (size_t)len, " left");
}

/* What this moment should print; notes when something was. */
static void expect(struct work *w, char *to, size_t n)
{
	const struct progress *p = &w->told;
	int len = 0;

	to[0] = '\0';
	if (p->quiet || (!p->lines && !p->terminal))
		return;
	if (w->finished == w->total) {
		if (!p->lines && w->last_told != w->begun)
			snprintf(to, n, "\r\033[K");
		return;
	}
	if (w->now - w->last_told < (p->lines ? 30 * 8 : 2) ||
	    (!p->lines && w->now - w->begun < 8))
		return;
	w->last_told = w->now;
	if (p->lines) {
		len = snprintf(to, n, "foretoken: ");
		len += put_counts(to + len, n - (size_t)len, w);
		snprintf(to + len, n - (size_t)len, "\n");
		return;
	}
	len = snprintf(to, n, "\r[..............................] ");
	for (size_t i = 1; i <= 30; i++)
		if (i * w->total <= 30 * w->finished)
			to[1 + i] = '#';
	len += put_counts(to + len, n - (size_t)len, w);
	snprintf(to + len, n - (size_t)len, "\033[K");
}

static void tell(struct work *w)
{
	char want[256], *text = NULL;

	PRINTED(text,
		(w->told.to = out, progress_say(&w->told, (double)w->now / 8,
						w->finished, w->fresh, w->total)));
	expect(w, want, sizeof(want));
	assert_string_equal(text, want);
	free(text);
}

static struct work begin(uint64_t *seed)
{
	struct work w = { .now = rnd(seed) % 1000, .total = 1 + rnd(seed) % 5000 };

	w.begun = w.pace = w.last_told = w.now;
	w.told = (struct progress){ .what = "rows",
				    .terminal = rnd(seed) % 4 != 0,
				    .lines = rnd(seed) % 3 == 0,
				    .quiet = rnd(seed) % 8 == 0,
				    .begun_s = (double)w.now / 8,
				    .told_s = (double)w.now / 8,
				    .pace_s = (double)w.now / 8 };
	return w;
}

/* Bounds, then steps: counts begin again, with some of the new phase known or done. */
static void next_phase(struct work *w, uint64_t *seed)
{
	w->total = 1 + rnd(seed) % 300;
	w->finished = rnd(seed) % w->total;
	w->pace = w->now;
	w->fresh = w->from = rnd(seed) % w->fresh;
}

static void each_moment_tells_how_far_it_is_and_what_is_left(void **state)
{
	static const unsigned long pace[] = { 2, 9, 70, 2000 };
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct work w = begin(&seed);
		unsigned long most = pace[rnd(&seed) % 4];

		tell(&w);
		for (int phase = 0; phase < 3; phase++) {
			for (int k = 0; k < 12 && w.finished < w.total; k++) {
				size_t n = rnd(&seed) % (1 + w.total / 4);

				if (n > w.total - w.finished)
					n = w.total - w.finished;
				w.now += (long)(rnd(&seed) % (most + 1));
				w.finished += n;
				w.fresh += n ? rnd(&seed) % n : 0;
				tell(&w);
			}
			if (!w.fresh)
				break;
			next_phase(&w, &seed);
			tell(&w);
		}
		w.finished = w.total;
		tell(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_moment_tells_how_far_it_is_and_what_is_left),
	};

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
