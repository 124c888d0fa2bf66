/* cli/cmd_sweep.c - foretoken sweep SCENARIO --vary KEY=A,B --db FILE */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/ranks.h"
#include "foretoken/study.h"

struct args {
	struct ft_sweep sweep;
	struct words vary;
	struct shared shared;
};

static const struct argp_option options[] = {
	{ "vary", 'v', "KEY=A,B,C", 0, "Values of a key; several --vary make a grid",
	  0 },
	{ "db", 'd', "FILE", 0, "SQLite file, created if it does not exist", 0 },
	{ "shard", 's' + 256, "K/N", 0,
	  "Run only every N-th combination, from the K-th on; N such sweeps on N machines "
	  "together run all of them (see foretoken merge)",
	  0 },
	{ "threads", 't', "N", 0,
	  "Number of threads (default: one per core; under mpirun one)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	long k, n;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		return 0;
	case 'v':
		words_add(&a->vary, arg, state);
		return 0;
	case 'd':
		a->sweep.db = arg;
		return 0;
	case 't':
		n = strtol(arg, &end, 10);
		if (*end || n < 1 || n > 256)
			argp_error(state, "--threads takes 1 to 256");
		a->sweep.threads = (int)n;
		return 0;
	case 's' + 256:
		k = strtol(arg, &end, 10);
		n = *end == '/' ? strtol(end + 1, &end, 10) : 0;
		if (*end || k < 1 || n < k || n > 100000)
			argp_error(state, "--shard takes K/N, as 3/64");
		a->sweep.shard = (int)k;
		a->sweep.shards = (int)n;
		return 0;
	case ARGP_KEY_END:
		if (!a->sweep.db)
			argp_error(state, "--db FILE is missing");
		if (!a->vary.n)
			argp_error(state, "--vary KEY=A,B,C is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &shared_set_argp, 0, NULL, 0 },
					      { &price_argp, 0, NULL, 0 },
					      { 0 } };

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Run every combination of the values given with --vary and store one row each in "
	"the table `runs` of an SQLite file. A run whose inputs have not changed since it "
	"was stored is not repeated. Under mpirun the ranks share the work, one thread each, and "
	"rank 0 writes; docs/many-machines.md explains that, --shard, and how to get Parquet "
	"files."
	"\vExample: foretoken sweep examples/01-first-answer/h100.yaml --vary "
	"cluster.gpus=512,1024,2048 --vary training.parallel.tp=4,8 --db out.db",
	children,
	NULL,
	NULL,
};

/* Why combinations failed, on stderr: the answer is in the table. */
static void tell_reasons(const struct ft_sweep_result *r)
{
	for (size_t i = 0; i < r->n_reasons; i++) {
		const struct ft_sweep_reason *x = &r->reason[i];

		fprintf(stderr, "foretoken: %zu failed: %s (first with %s)\n", x->n,
			x->error.text, x->settings);
	}
}

static void tell(FILE *out, const struct ft_sweep_result *r)
{
	fprintf(out, "%zu run, %zu already in the database, %zu failed", r->done,
		r->already + r->already_failed, r->failed);
	if (r->already_failed)
		fprintf(out, " (%zu before)", r->already_failed);
	if (r->failed + r->already_failed)
		fputs(": see column error", out);
	if (r->unread)
		fprintf(out, ", %zu could not be read and are not stored", r->unread);
	putc('\n', out);
}

static int end(const struct ft_sweep_result *r, bool quiet)
{
	int status;

	if (!quiet)
		tell_reasons(r);
	tell(stdout, r);
	status = finish_output();
	if (r->interrupted && !quiet)
		fprintf(stderr, "foretoken: stopped; finished runs are kept: give the "
				"same command again to continue\n");
	if (r->interrupted)
		return 130;
	/* what could not be read is missing from the table */
	return status ? status : r->unread || (r->total && !(r->done + r->already));
}

int cmd_sweep(int argc, char **argv)
{
	struct ft_sweep_result r;
	struct progress bar = progress_begin("run");
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = 1 } };
	struct ranks_session session;
	struct ft_error err;
	int status = 0;
	bool ok;

	parse_arguments(&argp, argc, argv, &a);
	if (!ranks_session_open(&session))
		return 1;
	a.sweep.scenario = a.shared.word.word[0];
	a.sweep.sets = a.shared.set.word;
	a.sweep.n_sets = a.shared.set.n;
	a.sweep.vary = a.vary.word;
	a.sweep.n_vary = a.vary.n;
	if (!a.sweep.threads)
		a.sweep.threads = ranks_session_threads(&session);
	a.sweep.ranks = session.ranks;
	bar.lines = session.ranks != NULL;
	bar.quiet = a.shared.quiet;
	if (ft_ranks_first(session.ranks))
		a.sweep.progress = (struct ft_progress){ progress_tell, &bar };
	a.sweep.stop_on_signals = true;
	ok = ft_study_sweep(&a.sweep, &r, &err);
	if (ft_ranks_first(session.ranks))
		status = ok ? end(&r, a.shared.quiet) : complain(&err);
	return ranks_session_close(&session, ok ? NULL : &err, status);
}
