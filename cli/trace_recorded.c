/* cli/trace_recorded.c - foretoken trace show|replay of recordings */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/trace.h"
#include "foretoken/reports.h"

/* ---- words -------------------------------------------------------------------------- */

static bool positive(const char *text, double *v)
{
	char *end;

	errno = 0;
	*v = strtod(text, &end);
	return end != text && !*end && !errno && isfinite(*v) && *v > 0;
}

bool trace_speedup(struct trace_args *a, const char *word,
		   const struct argp_state *state)
{
	char name[32];
	size_t n = strcspn(word, "=");
	enum ft_rec_class c;
	double by;

	snprintf(name, sizeof(name), "%.*s", (int)(n < 31 ? n : 31), word);
	if (word[n] != '=' || !ft_rec_class_find(name, &c)) {
		argp_error(state,
			   "--speedup takes CLASS=TIMES, of gemm, attention, memory, "
			   "optimizer, collective, copy, other; not '%s'",
			   word);
		return false;
	}
	if (!positive(word + n + 1, &by)) {
		argp_error(state, "--speedup %s: '%s' is not a number above 0", name,
			   word + n + 1);
		return false;
	}
	if (a->ask.speedup[c] > 0) {
		argp_error(state, "--speedup %s is given twice", name);
		return false;
	}
	a->ask.speedup[c] = by;
	return true;
}

bool trace_scale(struct trace_args *a, const char *word, const struct argp_state *state)
{
	bool tensor = text_begins_with(word, "tp=");
	char *end;
	long long n;

	if (!tensor && !text_begins_with(word, "dp=")) {
		argp_error(state,
			   "--scale takes dp=N, the data-parallel ranks, or tp=N, the "
			   "tensor-parallel ones; not '%s'",
			   word);
		return false;
	}
	errno = 0;
	n = strtoll(word + 3, &end, 10);
	if (end == word + 3 || *end || errno || n < 1 || n > LIMIT_GPUS) {
		argp_error(state,
			   "--scale %.2s: '%s' is not a whole number from 1 to %d",
			   word, word + 3, (int)LIMIT_GPUS);
		return false;
	}
	if (tensor ? a->ask.tp : a->ask.dp) {
		argp_error(state, "--scale %.2s is given twice", word);
		return false;
	}
	*(tensor ? &a->ask.tp : &a->ask.dp) = n;
	return true;
}

bool trace_without(struct trace_args *a, const char *word,
		   const struct argp_state *state)
{
	enum ft_collective op;

	if (!strcmp(word, "waiting")) {
		a->ask.without_waiting = true;
		return true;
	}
	if (!ft_collective_find(word, &op)) {
		argp_error(state,
			   "--without takes all_reduce, all_gather, reduce_scatter, "
			   "all_to_all, broadcast, sendrecv or waiting; not '%s'",
			   word);
		return false;
	}
	a->ask.without[op] = true;
	return true;
}

bool trace_tokens(struct trace_args *a, const char *word,
		  const struct argp_state *state)
{
	if (positive(word, &a->ask.tokens_per_step) && a->ask.tokens_per_step >= 1 &&
	    a->ask.tokens_per_step <= LIMIT_STEP_TOKENS)
		return true;
	argp_error(state, "--tokens-per-step: '%s' is not a number from 1 to %d", word,
		   (int)LIMIT_STEP_TOKENS);
	return false;
}

bool trace_pace(struct trace_args *a, const char *word, const struct argp_state *state)
{
	if (positive(word, &a->pace) && a->pace <= 1)
		return true;
	argp_error(state, "--pace: '%s' is not a fraction above 0, at most 1", word);
	return false;
}

/* ---- files -------------------------------------------------------------------------- */

struct files {
	const struct ft_recording *of[LIMIT_OPTION_WORDS];
	size_t n;
};

static bool read_all(const struct trace_args *a, struct files *f, struct ft_error *err)
{
	for (size_t i = 0; i < a->shared.word.n; i++) {
		struct ft_recording *r = ft_recording_read(a->shared.word.word[i], err);

		if (!r)
			return false;
		f->of[f->n++] = r;
	}
	return true;
}

/* The layers of a recorded step and of a predicted one, as that is drawn. */
static struct ft_trace_layers layers_of(const struct trace_args *a,
					const struct ft_trace_predicted *p,
					struct arena *mem)
{
	const struct ft_whatif_request drawn = { .replay = p->replay };

	if (p->replay && !p->cut)
		return ft_study_trace_both_layers(&a->ask, &drawn, mem);
	return (struct ft_trace_layers){
		ft_study_trace_layers(&a->ask, false, mem),
		{ .why = p->replay ? FT_LAYERS_CUT : arena_text(mem, p->why.text) },
	};
}

static bool put_compared(const struct trace_args *a, const struct ft_trace_gap *gap,
			 const struct ft_trace_layers *l, struct ft_error *err)
{
	if (a->shared.json)
		ft_report_trace_gaps_json(stdout, gap, l);
	else
		ft_report_trace_gaps(stdout, gap, l);
	return !a->plot || ft_report_trace_gaps_plot(a->plot, gap, l, err);
}

/* A step of another machine explains no gap. */
static void warn_of_machine(const struct trace_args *a, const struct ft_scenario *s)
{
	const struct ft_recording *r = ft_replay_recording(a->ask.replay, 0);
	const char *gpu = ft_study_gpu_named(ft_recording_device(r));
	int64_t ranks = ft_recording_world(r);

	if (a->shared.quiet || ((!gpu || !strcmp(gpu, s->cluster->gpu->name)) &&
				(ranks < 1 || ranks == s->cluster->ranks)))
		return;
	fprintf(stderr, "foretoken: %swarning:%s the recording is of ",
		terminal_begin(stderr, TERMINAL_WARNING), terminal_end(stderr));
	if (ranks > 0)
		fprintf(stderr, "%lld rank%s on ", (long long)ranks,
			ranks == 1 ? "" : "s");
	fprintf(stderr, "%s, the scenario of %lld on %s\n",
		gpu ? gpu : "an unknown GPU", (long long)s->cluster->ranks,
		s->cluster->gpu->name);
}

/* The recorded step beside the scenario's. */
static bool compare(const struct trace_args *a, struct ft_shelf *shelf,
		    const struct ft_whatif *w, struct ft_error *err)
{
	struct ft_trace_gap gap[FT_TRACE_GAPS];
	struct arena mem = { 0 };
	struct ft_scenario *s = ft_scenario_load(shelf, a->scenario, a->shared.set.word,
						 a->shared.set.n, true, err);
	struct ft_trace_predicted p = { .n = 0 };
	struct ft_trace_layers l;
	bool ok = s && ft_study_trace_predict(s, a->ask.replay, &p, err);

	if (ok) {
		warn_of_machine(a, s);
		ft_study_trace_gaps(w, &p, gap);
		l = layers_of(a, &p, &mem);
		ok = put_compared(a, gap, &l, err);
	}
	ft_trace_predicted_release(&p);
	ft_scenario_free(s);
	arena_release(&mem);
	return ok;
}

/* The scenario's stack with the recorded hosts' constants. */
static bool fit_hosts(const struct trace_args *a, struct ft_shelf *shelf,
		      const struct ft_replay *p, struct ft_error *err)
{
	struct ft_scenario *s = ft_scenario_load(shelf, a->scenario, a->shared.set.word,
						 a->shared.set.n, true, err);
	struct ft_host_fit fit;
	bool ok = s && ft_study_fit_hosts(
			       &(struct ft_host_fit_request){
				       .replay = p,
				       .scenario = s,
				       .step = a->ask.step,
				       .name = a->fit,
				       .date = a->date,
				       .pace = a->pace > 0 ? a->pace : 1 },
			       &fit, err);

	if (ok && a->shared.json)
		ft_report_host_fit_json(stdout, &fit);
	else if (ok)
		ft_report_host_fit(stdout, &fit);
	ft_scenario_free(s);
	return ok;
}

/* PREFIX.RANK.et; one alone may not tell its rank, and is the first. */
static const char *chakra_path(const struct trace_args *a, const struct ft_replay *p,
			       size_t k, char path[4096])
{
	int64_t rank = ft_recording_rank(ft_replay_recording(p, k));

	snprintf(path, 4096, "%.4000s.%lld.et", a->chakra,
		 (long long)(rank == FT_REC_NONE ? 0 : rank));
	return path;
}

static bool export_chakra(const struct trace_args *a, const struct ft_replay *p,
			  struct ft_error *err)
{
	char path[4096];

	for (size_t k = 0; k < ft_replay_ranks(p); k++)
		if (!files_apart(&(struct own_files){ .shared = &a->shared,
						      .out = { chakra_path(a, p, k,
									   path) } },
				 err))
			return false;
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		struct file_out f;

		if (!file_begin(&f, chakra_path(a, p, k, path), err))
			return false;
		ft_replay_write_chakra(p, k, f.out);
		if (!file_commit(&f, err))
			return false;
		printf("wrote %s\n", path);
	}
	return true;
}

static bool export_goal(const struct trace_args *a, const struct ft_replay *p,
			struct ft_error *err)
{
	struct file_out f;
	int64_t messages, kept;

	if (!file_begin(&f, a->goal, err))
		return false;
	ft_replay_write_goal(p, f.out, &messages, &kept);
	if (!file_commit(&f, err))
		return false;
	printf("wrote %s: %lld collectives as sends and receives, %lld with the time that "
	       "they took\n",
	       a->goal, (long long)messages, (long long)kept);
	return true;
}

static void answer(const struct trace_args *a, const struct ft_replay *p,
		   const struct ft_whatif *w)
{
	if (!strcmp(a->verb, "show")) {
		if (a->shared.json)
			ft_report_recorded_json(stdout, p, w);
		else
			ft_report_recorded(stdout, p, w);
	} else if (a->shared.json) {
		ft_report_whatif_json(stdout, p, w);
	} else {
		ft_report_whatif(stdout, p, w);
	}
}

/* What was asked of the step, and the answer; the timeline is a file or nothing. */
static bool ask(struct trace_args *a, struct ft_shelf *shelf, const struct ft_replay *p,
		struct ft_error *err)
{
	struct file_out timeline = { 0 };
	struct ft_whatif w;
	bool ok = !a->timeline || file_begin(&timeline, a->timeline, err);

	if (!ok)
		return false;
	a->ask.replay = p;
	a->ask.timeline = timeline.out;
	a->ask.sets = a->shared.set.word;
	a->ask.n_sets = a->scenario ? 0 : a->shared.set.n;
	ok = ft_study_whatif(shelf, &a->ask, &w, err);
	if (a->timeline && ok)
		ok = file_commit(&timeline, err);
	else if (a->timeline)
		file_abandon(&timeline);
	if (ok && a->scenario)
		return compare(a, shelf, &w, err);
	if (ok)
		answer(a, p, &w);
	return ok;
}

/* `show` says so among what it says of the file. */
static void warn_of_empty_steps(const struct trace_args *a, const struct files *f)
{
	for (size_t i = 0; i < f->n && !a->shared.quiet && strcmp(a->verb, "show") != 0;
	     i++) {
		int64_t n = ft_recording_counts(f->of[i])->empty_steps;

		if (n)
			fprintf(stderr,
				"foretoken: %swarning:%s %s: %lld marked step%s no "
				"operation and %s left out%s\n",
				terminal_begin(stderr, TERMINAL_WARNING),
				terminal_end(stderr), ft_recording_file(f->of[i]),
				(long long)n, n == 1 ? " has" : "s have",
				n == 1 ? "is" : "are",
				ft_recording_step(f->of[i], 0)->marked ?
					"" :
					": all that was recorded is one step");
	}
}

bool trace_recorded(struct trace_args *a, struct ft_error *err)
{
	struct files f = { .n = 0 };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_replay *p = NULL;
	bool ok = read_all(a, &f, err) && (p = ft_replay_build(f.of, f.n, err));

	if (ok)
		warn_of_empty_steps(a, &f);
	if (ok && !strcmp(a->verb, "replay"))
		ok = ft_replay_lay_out(p, err);
	if (ok)
		ok = a->chakra ? export_chakra(a, p, err) :
		     a->goal   ? export_goal(a, p, err) :
		     a->fit    ? fit_hosts(a, shelf, p, err) :
				 ask(a, shelf, p, err);
	ft_replay_free(p);
	for (size_t i = 0; i < f.n; i++)
		ft_recording_free((struct ft_recording *)f.of[i]);
	ft_shelf_free(shelf);
	return ok;
}
