/*
 * tests/fuzz/mutate.c - spoilt inputs over all readers: mutate [-n N] [-s SEED] [-j JOBS]
 *	[-t TARGET] [-k FOLDER] [-w FOLDER] [-r]
 *
 * Input i goes to the target i modulo their number; what it is follows from the seed and
 * i alone. Each is a file of the tree (or of tests/fuzz/corpus) with one to six changes.
 * With -r each file is input once, as it is.
 * Children run them in batches and must neither end nor take more than 5 s of processor
 * time or 512 MB, and each refusal must have words. What breaks that is kept in FOLDER.
 * The last line says what was run; exit 1 when anything broke.
 */
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

#include "tests/fuzz/changes.h"
#include "tests/fuzz/targets.h"

enum { BATCH = 100, MOST_TARGETS = 32, SECONDS = 5, MEGABYTES = 512 };

/* What a child tells while it runs. */
struct report {
	long at; /* the input that runs */
	long refused[MOST_TARGETS], taken[MOST_TARGETS];
};

struct options {
	long n, seed, jobs;
	const char *only, *keep, *write;
	bool as_they_are;
};

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

static void free_seeds(struct seeds *seeds)
{
	for (size_t t = 0; targets[t].name; t++) {
		for (size_t i = 0; i < seeds[t].n; i++)
			free(seeds[t].of[i].data);
		free(seeds[t].of);
	}
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

/* Input i; data: room for one that is changed. Nothing when all seeds were. */
static struct seed input(const struct options *o, const struct seeds *seeds, long i,
			 uint8_t *data)
{
	size_t t = (size_t)i % targets_n(), at = (size_t)i / targets_n();

	if (!o->as_they_are)
		return changed(&seeds[t], (uint64_t)o->seed, i, data);
	return at < seeds[t].n ? seeds[t].of[at] : (struct seed){ NULL, 0 };
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
		s = input(o, seeds, i, data);
		if (!s.data)
			continue;
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
	struct seed s = input(o, seeds, i, data);
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

	for (int c; (c = getopt(argc, argv, "n:s:j:t:k:w:r")) != -1;)
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
		case 'r':
			o.as_they_are = true;
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
	for (size_t t = 0; o.as_they_are && t < targets_n(); t++)
		if (t == 0 || (long)(seeds[t].n * targets_n()) > o.n)
			o.n = (long)(seeds[t].n * targets_n());
	if (o.write) {
		broken = write_seeds(seeds, o.write);
		free_seeds(seeds);
		return broken > 0;
	}
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
	if (o.as_they_are)
		printf("inputs as they are over %zu readers, %ld broke\n", targets_n(),
		       broken);
	else
		printf("%ld spoilt inputs over %zu readers, %ld broke\n", o.n,
		       targets_n(), broken);
	free_seeds(seeds);
	return broken > 0;
}
