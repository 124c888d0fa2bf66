/*
 * tests/fuzz/mutate.c - spoilt inputs over all readers: mutate [-n N] [-s SEED] [-j JOBS]
 *	[-t TARGET] [-k FOLDER] [-w FOLDER]
 *
 * Input i goes to the target i modulo their number; what it is follows from the seed and
 * i alone. Each is a file of the tree (or of tests/fuzz/corpus) with one to six changes.
 * Children run them in batches and must neither end nor take more than 5 s of processor
 * time or 512 MB, and each refusal must have words. What breaks that is kept in FOLDER.
 * The last line says what was run; exit 1 when anything broke.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/targets.h"

enum {
	BATCH = 100,
	MOST_TARGETS = 32,
	LONGEST = 1 << 18,
	SECONDS = 5,
	MEGABYTES = 512
};

struct seed {
	uint8_t *data;
	size_t n;
};

struct seeds {
	struct seed *of;
	size_t n;
};

/* What a child tells while it runs. */
struct report {
	long at; /* the input that runs */
	long refused[MOST_TARGETS], taken[MOST_TARGETS];
};

struct options {
	long n, seed, jobs;
	const char *only, *keep, *write;
};

static uint64_t next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n)
{
	return n ? (size_t)(next(state) % n) : 0;
}

/* ---- seeds ------------------------------------------------------------------------- */

static void add_file(struct seeds *s, const char *path, size_t longest)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(LONGEST);
	size_t n;

	if (!f || !data)
		abort();
	n = fread(data, 1, LONGEST, f);
	fclose(f);
	if (longest && n > longest) { /* whole lines */
		n = longest;
		while (n && data[n - 1] != '\n')
			n--;
	}
	s->of = realloc(s->of, (s->n + 1) * sizeof(*s->of));
	if (!s->of)
		abort();
	s->of[s->n++] = (struct seed){ data, n };
}

static void add_files(struct seeds *s, const char *pattern, size_t longest)
{
	glob_t g;

	if (glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		add_file(s, g.gl_pathv[i], longest);
	globfree(&g);
}

static struct seeds seeds_of(const struct target *t)
{
	struct seeds s = { NULL, 0 };
	char pattern[200];

	snprintf(pattern, sizeof(pattern), "tests/fuzz/corpus/%s/*", t->name);
	add_files(&s, pattern, 0);
	for (int i = 0; i < 6 && t->seeds[i]; i++)
		add_files(&s, t->seeds[i], t->longest);
	if (!s.n) {
		fprintf(stderr, "there are no inputs for %s\n", t->name);
		exit(1);
	}
	return s;
}

/* ---- changes ------------------------------------------------------------------------ */

static const char *const nasty[] = {
	"0",
	"-1",
	"1e308",
	"-1e308",
	"nan",
	"inf",
	"1e-300",
	"1e29",
	"1e-30",
	"9223372036854775807",
	"-9223372036854775808",
	"18446744073709551616",
	"2147483648",
	"4294967295",
	"1000000000",
	"1e18",
	"1e9",
	"0.1",
	"",
	"~",
	"true",
	"[]",
	"{}",
	"*a",
	"&a [*a]",
	"\"",
	"'",
	"%s%n",
	"../../../etc/passwd",
	"\x1b[2J",
	"<script>",
	"1e9 s",
	"0 s",
	"1e29 s",
	"0 B",
	"1e21 B",
	"0 %",
	"-5 GB/s",
	"1e-9 B",
	"1",
	"2",
	"65536",
	"1048576",
	",",
	":",
	"\n",
	"x'; system('id'); #",
};

enum { NASTY = sizeof(nasty) / sizeof(*nasty) };

/* data[at, at + gone) becomes text. */
static void splice(struct seed *s, size_t at, size_t gone, const void *text, size_t n)
{
	if (at > s->n)
		at = s->n;
	if (gone > s->n - at)
		gone = s->n - at;
	if (s->n - gone + n > LONGEST)
		return;
	memmove(s->data + at + n, s->data + at + gone, s->n - at - gone);
	memcpy(s->data + at, text, n);
	s->n = s->n - gone + n;
}

static bool in_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-' || c == '+';
}

/* A word at or behind a place: its beginning and length. */
static size_t word(const struct seed *s, size_t from, bool number, size_t *n)
{
	for (size_t i = from; i < s->n; i++) {
		size_t end = i;

		if (!in_word(s->data[i]) || (i && in_word(s->data[i - 1])))
			continue;
		while (end < s->n && in_word(s->data[end]))
			end++;
		if (number && !(s->data[i] >= '0' && s->data[i] <= '9'))
			continue;
		*n = end - i;
		return i;
	}
	*n = 0;
	return s->n;
}

static size_t line(const struct seed *s, size_t from, size_t *n)
{
	size_t begin = from < s->n ? from : 0, end;

	while (begin && s->data[begin - 1] != '\n')
		begin--;
	end = begin;
	while (end < s->n && s->data[end] != '\n')
		end++;
	*n = end - begin + (end < s->n);
	return begin;
}

static void swap_words(struct seed *s, uint64_t *state)
{
	size_t na, nb, a = word(s, below(state, s->n), false, &na),
		       b = word(s, below(state, s->n), false, &nb);
	uint8_t keep[64];

	if (!na || !nb || na > sizeof(keep) || nb > sizeof(keep) || a + na > b)
		return;
	memcpy(keep, s->data + b, nb);
	splice(s, b, nb, s->data + a, na);
	splice(s, a, na, keep, nb);
}

static void change(struct seed *s, uint64_t *state)
{
	static uint8_t copy[LONGEST];
	const char *bad = nasty[below(state, NASTY)];
	size_t at = below(state, s->n), n;

	switch (below(state, 10)) {
	case 0:
		if (s->n)
			s->data[at] ^= (uint8_t)(1u << below(state, 8));
		break;
	case 1:
		if (s->n)
			s->data[at] = (uint8_t)next(state);
		break;
	case 2:
		s->n = at;
		break;
	case 3:
		splice(s, at, below(state, 40), "", 0);
		break;
	case 4:
		splice(s, at, 0, bad, strlen(bad));
		break;
	case 5:
		swap_words(s, state);
		break;
	case 6: /* a line, twice or gone */
		at = line(s, at, &n);
		memcpy(copy, s->data + at, n);
		splice(s, at, below(state, 2) ? n : 0, copy, below(state, 2) ? n : 0);
		break;
	default: /* what an input is likeliest to get wrong: a number, a word */
		at = word(s, at, below(state, 4) > 0, &n);
		splice(s, at, n, bad, strlen(bad));
	}
}

/* One number becomes another, so that the rest is still read and used. */
static void change_number(struct seed *s, uint64_t *state)
{
	static const char *const numbers[] = {
		"0",	      "1",
		"2",	      "3",
		"7",	      "64",
		"1000",	      "65536",
		"1e6",	      "1e9",
		"1e12",	      "1e18",
		"1e30",	      "1e-3",
		"1e-9",	      "1e-30",
		"0.5",	      "0.999",
		"1.5",	      "100",
		"1048576",    "1000000",
		"16777216",   "1073741824",
		"4294967296", "9223372036854775807",
	};
	const char *to = numbers[below(state, sizeof(numbers) / sizeof(*numbers))];
	size_t from = below(state, s->n), at = from, end;

	while (at < s->n && !(s->data[at] >= '0' && s->data[at] <= '9' &&
			      !(at && in_word(s->data[at - 1]))))
		at++;
	end = at;
	while (end < s->n &&
	       ((s->data[end] >= '0' && s->data[end] <= '9') || s->data[end] == '.'))
		end++;
	splice(s, at, end - at, to, strlen(to));
}

/* Input i of a target. */
static struct seed make(const struct seeds *from, uint64_t seed, long i, uint8_t *data)
{
	uint64_t state = seed * UINT64_C(1000003) + (uint64_t)i;
	const struct seed *s = &from->of[below(&state, from->n)];
	struct seed out = { data, s->n };

	memcpy(data, s->data, s->n);
	if (below(&state, 2)) {
		change_number(&out, &state);
		return out;
	}
	for (size_t k = 1 + below(&state, 6); k > 0; k--)
		change(&out, &state);
	return out;
}

/* ---- children ------------------------------------------------------------------------ */

static size_t targets_n(void)
{
	size_t n = 0;

	while (targets[n].name)
		n++;
	return n;
}

static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* whose shadow takes terabytes of addresses */
	struct rlimit memory = { (rlim_t)MEGABYTES << 20, (rlim_t)MEGABYTES << 20 };

	setrlimit(RLIMIT_AS, &memory);
#endif
}

static void limit_time(void)
{
	struct itimerval cpu = { { 0, 0 }, { SECONDS, 0 } };

	setitimer(ITIMER_PROF, &cpu, NULL);
	alarm(12 * SECONDS); /* one that waits */
}

/* Inputs [from, to) that are this job's. */
static void run(const struct options *o, const struct seeds *seeds, long from, long to,
		struct report *r)
{
	static uint8_t data[LONGEST];
	size_t n = targets_n();

	/* words of errors are its report's business, not the terminal's */
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(3);
	limit_memory();
	for (long i = from; i < to; i++) {
		size_t t = (size_t)i % n;
		struct seed s;

		if (o->only && strcmp(targets[t].name, o->only))
			continue;
		s = make(&seeds[t], (uint64_t)o->seed, i, data);
		r->at = i;
		limit_time();
		switch (targets[t].run(s.data, s.n)) {
		case SILENT:
			_exit(4);
		case REFUSED:
			r->refused[t]++;
			break;
		case TAKEN:
			r->taken[t]++;
			break;
		}
	}
	_exit(0);
}

static void keep(const struct options *o, const struct seeds *seeds, long i,
		 const char *why)
{
	static uint8_t data[LONGEST];
	size_t t = (size_t)i % targets_n();
	struct seed s = make(&seeds[t], (uint64_t)o->seed, i, data);
	char path[300];
	FILE *f;

	fprintf(stderr, "input %ld of %s: %s\n", i, targets[t].name, why);
	if (!o->keep)
		return;
	(void)mkdir(o->keep, 0777);
	snprintf(path, sizeof(path), "%s/%s-%ld", o->keep, targets[t].name, i);
	f = fopen(path, "wb");
	if (f) {
		fwrite(s.data, 1, s.n, f);
		fclose(f);
	}
}

static const char *reason(int status)
{
	if (WIFSIGNALED(status))
		switch (WTERMSIG(status)) {
		case SIGPROF:
			return "took more than 5 s of processor time";
		case SIGALRM:
			return "waits for ever";
		case SIGABRT:
			return "aborted";
		case SIGSEGV:
			return "went beyond its memory";
		default:
			return strsignal(WTERMSIG(status));
		}
	return WEXITSTATUS(status) == 4 ? "was refused without a word" :
	       WEXITSTATUS(status) == 1 ? "took more than 512 MB" :
					  "ended the program";
}

/* A job's share: every jobs-th batch. How many broke. */
static long job(const struct options *o, const struct seeds *seeds, long which,
		struct report *r)
{
	long broken = 0;

	for (long from = which * BATCH; from < o->n; from += o->jobs * BATCH) {
		long to = from + BATCH < o->n ? from + BATCH : o->n;

		for (long at = from; at < to; at = r->at + 1) {
			int status = 0;
			pid_t child;

			r->at = to;
			child = fork();
			if (child == 0)
				run(o, seeds, at, to, r);
			if (child < 0 || waitpid(child, &status, 0) != child)
				abort();
			if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
				break;
			keep(o, seeds, r->at, reason(status));
			broken++;
		}
	}
	return broken;
}

/* All seeds as files, FOLDER/TARGET/NUMBER: what libFuzzer begins with. */
static int write_seeds(const struct seeds *seeds, const char *folder)
{
	char path[400];

	(void)mkdir(folder, 0777);
	for (size_t t = 0; targets[t].name; t++) {
		snprintf(path, sizeof(path), "%s/%s", folder, targets[t].name);
		(void)mkdir(path, 0777);
		for (size_t i = 0; i < seeds[t].n; i++) {
			FILE *f;

			snprintf(path, sizeof(path), "%s/%s/%zu", folder,
				 targets[t].name, i);
			f = fopen(path, "wb");
			if (!f || fwrite(seeds[t].of[i].data, 1, seeds[t].of[i].n, f) !=
					  seeds[t].of[i].n)
				return 1;
			fclose(f);
		}
	}
	return 0;
}

static struct options options_of(int argc, char **argv)
{
	struct options o = { .n = 50000, .seed = 1, .jobs = 1 };

	for (int c; (c = getopt(argc, argv, "n:s:j:t:k:w:")) != -1;)
		switch (c) {
		case 'n':
			o.n = atol(optarg);
			break;
		case 's':
			o.seed = atol(optarg);
			break;
		case 'j':
			o.jobs = atol(optarg);
			break;
		case 't':
			o.only = optarg;
			break;
		case 'w':
			o.write = optarg;
			break;
		case 'k':
			o.keep = optarg;
			break;
		default:
			exit(64);
		}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = options_of(argc, argv);
	struct seeds seeds[MOST_TARGETS];
	struct report *r = mmap(NULL, sizeof(*r) * 64, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long broken = 0;
	pid_t jobs[64];

	if (r == MAP_FAILED || o.jobs < 1 || o.jobs > 64 || targets_n() > MOST_TARGETS)
		return 64;
	for (size_t t = 0; t < targets_n(); t++)
		seeds[t] = seeds_of(&targets[t]);
	if (o.write)
		return write_seeds(seeds, o.write);
	for (long j = 0; j < o.jobs; j++) {
		jobs[j] = fork();
		if (jobs[j] == 0) {
			targets_begin();
			broken = job(&o, seeds, j, &r[j]);
			targets_end();
			_exit(broken > 100 ? 100 : (int)broken);
		}
	}
	for (long j = 0; j < o.jobs; j++) {
		int status = 0;

		waitpid(jobs[j], &status, 0);
		broken += WIFEXITED(status) ? WEXITSTATUS(status) : 101;
	}
	for (size_t t = 0; t < targets_n(); t++) {
		long refused = 0, taken = 0;

		for (long j = 0; j < o.jobs; j++) {
			refused += r[j].refused[t];
			taken += r[j].taken[t];
		}
		printf("%-18s %6ld refused %6ld taken\n", targets[t].name, refused,
		       taken);
	}
	printf("%ld spoilt inputs over %zu readers, %ld broke\n", o.n, targets_n(),
	       broken);
	return broken > 0;
}
