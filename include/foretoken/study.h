/*
 * foretoken/study.h - a scenario, what comes of it, and many of them
 *
 * A scenario names a model, a cluster, a stack, a training plan and cost terms.
 * Values come, in this order, from --set, the file, the stack's defaults and the
 * built-in defaults; `assumed` lists the keys that nobody gave.
 */
#ifndef FORETOKEN_STUDY_H
#define FORETOKEN_STUDY_H

#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/cost.h"
#include "foretoken/hw.h"
#include "foretoken/models.h"
#include "foretoken/sim.h"
#include "foretoken/stacks.h"
#include "foretoken/study_traits.h"
#include "foretoken/traces.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node; /* a document of base/node.h; other programs give paths or texts */
struct ft_evidence;
struct ft_ranks;

/* What is loaded once and used by many scenarios: clusters, stacks, price books.
 * Not shared between threads: each has its own. */
struct ft_shelf;

struct ft_shelf *ft_shelf_new(void);
void ft_shelf_free(struct ft_shelf *shelf);
/* Between questions: one that holds much (256 clusters, 65,536 predictions) is freed and replaced. */
void ft_shelf_renew(struct ft_shelf **shelf);

/* The scenario's `run`: what is to be trained, and within what. 0: not said. */
struct ft_asked {
	double tokens, days, budget_usd, megawatts, flop;
	struct ft_mark mark;
};

struct ft_scenario {
	const char *file;
	const char *label;	  /* its title, else its name, else the file's stem */
	const struct node *given; /* as written, --set applied */
	const struct node
		*resolved; /* all keys, defaults laid under: reads back the same */
	struct ft_digest digest;      /* of all that its answer is made from */
	const struct ft_model *model; /* NULL when only the cluster is needed */
	const struct ft_plan *plan;
	const struct ft_stack *stack;
	const struct ft_ccl *ccl;
	const struct ft_cluster *cluster;
	const struct ft_prices *prices;
	struct ft_shelf *shelf;		    /* with the parts it is made of */
	struct ft_memo *memo;		    /* the shelf's */
	const struct ft_evidence *evidence; /* measured runs; the shelf's */
	const char *group; /* of a measured row: its source is no part of its range */
	struct ft_cost_terms terms;
	struct ft_asked asked;
	enum ft_timeline timeline; /* the form of timelines */
	int64_t timeline_rank;	   /* whose is written as Kineto records it */
	bool memory_chart;	   /* its answer has a chart of its memory */
	bool point;		   /* its answer has no ranges of dollars */
	size_t searched; /* legal plans it was the best of, or of which none fits; 0: its own */
	size_t n_assumed;
	const char **assumed; /* dotted keys */
};

/* sets: n of "a.b=c", or "--price ITEM=USD" for cost.price_of. whole: false reads only the cluster and cost parts (bom,
 * collective). shelf must outlive the scenario. */
struct ft_scenario *ft_scenario_load(struct ft_shelf *shelf, const char *path,
				     const char *const *sets, size_t n, bool whole,
				     struct ft_error *err)
	__attribute__((warn_unused_result));

/* The same from a document already read; the nodes must outlive it. */
struct ft_scenario *ft_scenario_from(struct ft_shelf *shelf, const struct node *root,
				     const char *name, bool whole, struct ft_error *err)
	__attribute__((warn_unused_result));
/* The price book, likewise. */
const struct ft_prices *ft_scenario_prices(struct ft_scenario *scenario,
					   struct ft_error *err)
	__attribute__((warn_unused_result));
/* The communication library that the scenario resolves to; loaded with the work, or by
 * this where only the cluster was. NULL on error. */
const struct ft_ccl *ft_scenario_ccl(struct ft_scenario *scenario, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_scenario_free(struct ft_scenario *scenario);

/* Did nobody give this key? */
bool ft_scenario_assumes(const struct ft_scenario *scenario, const char *key);

/* The i-th key, dotted, that is stated and does nothing in this scenario, though it may stand,
 * and where it would; NULL after the last. */
const char *ft_scenario_idle(const struct ft_scenario *scenario, size_t i,
			     const char **where);

/* The i-th key of a scenario, dotted, and what it means; NULL after the last. */
const char *ft_scenario_key(size_t i, const char **about);
/* Its default in words; NULL: what an answer states under `scenario`, or none. */
const char *ft_scenario_key_usual(const char *path);

/* A measured run that is like the one predicted. */
struct ft_near {
	const char *id, *source;
	double error_frac; /* of its own prediction, in time: positive is too slow */
	double distance;   /* 0: alike in all that study/ranges.yaml weighs */
	char differs[160]; /* its values where it differs most: "gpu h200, tp 8"; "" */
};

enum { FT_NEAREST = 3 };

/* What a fleet may go beyond: what `run` asks, and the horizon, after which its dollars count it as sold. */
enum ft_limit {
	FT_LIMIT_DAYS,
	FT_LIMIT_BUDGET,
	FT_LIMIT_MEGAWATTS,
	FT_LIMIT_HORIZON,
	FT_LIMIT_MEMORY, /* the GPUs' */
	FT_LIMITS
};

const char *ft_limit_name(enum ft_limit limit); /* "days", "budget" ... */

/* A fleet that answers a question, or the one that the scenario names. */
struct ft_fleet {
	const char *question; /* "the cluster as given", "smallest in time, at P50" */
	const char *none;     /* why there is no such fleet; NULL: there is one */
	int64_t gpus;
	double tokens;	/* trained */
	double days[3]; /* P10, P50, P90: from the first step to the last token */
	double usd[3];	/* likewise, for these tokens; idle hours paid as well */
	/* of the facility, all at full load: likely, P10, P90 */
	double megawatts, megawatts_low, megawatts_high;
	double energy_mwh; /* joules_per_token of all tokens: unused hours count, as in usd */
	double failures;     /* expected */
	struct ft_cost cost; /* of that fleet */
	double tokens_per_s;
	bool beyond[FT_LIMITS]; /* days and dollars at P50, megawatts as likely */
};

enum { FT_ANSWERS = 6 };

struct ft_run_answer {
	size_t n;
	struct ft_fleet fleet[FT_ANSWERS]; /* the first: the cluster as given */
	int64_t left_out; /* GPUs of the largest size whose step is more than is simulated; 0: none is */
};

bool ft_fleet_keeps(const struct ft_fleet *fleet); /* is one, and beyond nothing */

/* One answer. Field names are those of the JSON. */
struct ft_outcome {
	double step_s, tokens_per_s, tokens_per_s_per_gpu;
	double model_flop_per_s_per_gpu, mfu, mfu_full, hfu;
	bool fits;
	double memory_total_bytes, memory_bytes[FT_MEMORIES]; /* per card */
	double host_memory_bytes; /* of the fullest node, of state or activations that wait there */
	struct ft_breakdown breakdown;
	double step_low_s, step_high_s;
	double tokens_low_per_s, tokens_high_per_s;
	double extrapolated_frac;
	struct ft_traits traits; /* words belong to the scenario */
	bool gpu_measured, stack_measured,
		attention_measured; /* some run has this one */
	size_t n_nearest; /* one run of each of the nearest sources, nearest first */
	struct ft_near nearest[FT_NEAREST];
	struct ft_cost cost;
	char bottleneck[200];
	const char *beside;	  /* file of the other job; NULL: alone */
	double step_alone_s;	  /* without it */
	const struct ft_run *run; /* owned: shares, classes */
	const struct ft_bom *bom; /* owned */
	char *memory_svg;	  /* owned: the chart that was asked for; NULL: none */
	char memory_missing[200]; /* why it is none, though it was asked for */
	struct ft_run_answer asked; /* by ft_study_run */
};

/* What of an answer its dollars depend on; for ft_deal_of and ft_odds_of. */
struct ft_side ft_outcome_side(const struct ft_scenario *scenario,
			       const struct ft_outcome *outcome);

/* The deal of an answer: ft_deal_of its side. */
struct ft_deal ft_outcome_deal(const struct ft_scenario *scenario,
			       const struct ft_outcome *outcome);

/* Its step graph; what a stack does not run is told at its key. */
struct ft_graph *ft_scenario_graph(const struct ft_scenario *scenario,
				   struct ft_error *err)
	__attribute__((warn_unused_result));

/* timeline may be NULL. graph_of, when given, replaces the built graph. */
bool ft_study_simulate(const struct ft_scenario *scenario,
		       const struct ft_graph *graph_of, FILE *timeline,
		       struct ft_outcome *outcome, struct ft_error *err)
	__attribute__((warn_unused_result));

/* Its step as GOAL (ft_sim_goal). */
bool ft_study_goal(const struct ft_scenario *scenario, FILE *out, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ft_study_simulate while another scenario's job trains on the next nodes of the same network:
 * the first scenario's, with its faults and placement. The other's fabric and NICs must be
 * the same, its faults the same or none, and it has no slow_gpus. */
bool ft_study_simulate_beside(const struct ft_scenario *scenario,
			      const struct ft_scenario *beside, FILE *timeline,
			      struct ft_outcome *outcome, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_outcome_release(struct ft_outcome *outcome);

/* How a number is shown. Values are in SI, USD, or tokens. */
enum ft_show {
	FT_SHOW_S,
	FT_SHOW_COUNT, /* whole, with thousands apart */
	FT_SHOW_RATE,  /* tokens/s per GPU: one decimal */
	FT_SHOW_FLOP_PER_S,
	FT_SHOW_FRAC, /* as a percentage */
	FT_SHOW_BYTES,
	FT_SHOW_USD,
	FT_SHOW_USD_PER_HOUR,
	FT_SHOW_USD_PER_MTOKEN,
	FT_SHOW_J,
	FT_SHOW_W,
};

/* A number of an answer. The table of them makes the JSON, the rows of tables and the
 * columns of a sweep; a new number is a member of ft_outcome and a row there. */
struct ft_outcome_field {
	const char *key;   /* in the JSON, dotted */
	const char *label; /* in tables; NULL: in none */
	enum ft_show show;
	size_t value, low, high; /* offsets into ft_outcome; high 0: no P10 and P90 */
};

/* Has a table of these n answers a row of it? Of given prices and of memory on the host only where there is some. */
bool ft_outcome_row(const struct ft_outcome_field *field,
		    const struct ft_outcome *outcome, size_t n);

size_t ft_outcome_fields(const struct ft_outcome_field **field);
double ft_outcome_at(const struct ft_outcome *outcome, size_t offset);

/* A number by its JSON key; false when there is none of that name. */
bool ft_outcome_get(const struct ft_outcome *outcome, const char *key, double *value);

/* Called now and then. fresh: finished items that took time, not known before. tell NULL: no calls. */
struct ft_progress {
	void (*tell)(void *context, size_t finished, size_t fresh, size_t total);
	void *context;
};

/* ---- validate ------------------------------------------------------------- */

struct ft_check {
	const char *id, *group, *key;
	double measured, predicted;
	bool is_rate;	   /* more is faster */
	double error_frac; /* in time: positive is predicted too slow */
	double low, high;  /* of the predicted value */
	double extrapolated_frac;
	bool inside, slow;		/* slower than P90 */
	bool no_room;			/* it ran, and is predicted not to fit */
	const struct ft_traits *traits; /* NULL: a kernel or a collective */
};

/* Is it so far from what is predicted that another unit is likelier than an error? */
bool ft_check_doubtful(const struct ft_check *check);

struct ft_failure {
	const char *id, *reason;
};

struct ft_summary {
	const char *name;
	size_t n;
	double mape, bias, median, p90, max, inside_interval_frac;
	double slow_frac, fast_frac; /* slower than P90, faster than P10 */
};

struct ft_validation {
	const char *file;
	size_t n_rows, n_checks, n_others, n_failures, n_groups, n_keys;
	struct ft_check *
		check; /* of what rows are scored by; [n_others] of what else they have */
	struct ft_check *other;
	struct ft_failure *failure;
	struct ft_summary summary;
	struct ft_summary *group, *by_key;
	const char *by; /* what the groups are of: "group", or ft_validation_by's */
};

/* The ways in which steps are put into classes: "gpu", "plan" ...; the i-th and what it is.
 * NULL: no more. */
const char *ft_class_by(size_t i, const char **about);

enum { FT_CLASS = 80 };

/* The class of a step; by is one of those names. text may hold it. */
const char *ft_class_of(const struct ft_traits *of, const char *by,
			char text[FT_CLASS]);

/* Put the steps of a validation into classes instead of the file's groups. false: there is
 * no such way, or the rows are kernels or collectives. */
bool ft_validation_by(struct ft_validation *validation, const char *by,
		      struct ft_error *err) __attribute__((warn_unused_result));

struct ft_validation *ft_validate(const char *path, const char *const *sets, size_t n,
				  struct ft_progress progress, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_validation_free(struct ft_validation *validation);

/* ---- the measured runs of the tree --------------------------------------------- */

struct ft_measured {
	const char *id, *source;
	const struct ft_traits *traits;
	double tokens_per_s_per_gpu; /* measured */
	double error_frac; /* of the prediction, in time: positive is too slow */
};

struct ft_runs {
	size_t n;
	struct ft_measured *run;
};

/* Those that pass all filters: "gpu=h100*", "gpus=64..512", a trait each, or id or source.
 * NULL: a filter is none, or study/residuals.csv cannot be read. */
struct ft_runs *ft_runs_find(const char *const *filters, size_t n, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_runs_free(struct ft_runs *runs);

/* ---- a stack fitted to one's own runs ---------------------------------------- */

/* Factors on a stack's host times, matrix products, attention, memory-bound kernels and
 * collectives. */
enum { FT_FIT_FACTORS = 5 };

const char *ft_fit_factor_name(size_t factor);

struct ft_stack_request {
	const char *runs, *name; /* RUNS.csv; of the file to write, without .yaml */
	const char *const *sets;
	size_t n_sets;
	struct ft_progress progress;
};

struct ft_stack_fit {
	char path[4096]; /* the file written */
	size_t n, n_failed;
	struct ft_error why; /* of the first row that could not be used */
	double ln_factor[FT_FIT_FACTORS];
	struct ft_summary before, after; /* under the stack as it was; as fitted */
	struct ft_summary held_out;	 /* each fold under factors fitted without it */
	size_t folds;
	bool by_group; /* a fold is a group of the file; else a row */
};

/* Fit a stack to the runs of a file, all under one stack, and write it. False, and no file:
 * fewer than four usable rows, several stacks, the file exists, or it cannot be written. */
bool ft_study_fit_stack(const struct ft_stack_request *asked, struct ft_stack_fit *fit,
			struct ft_error *err) __attribute__((warn_unused_result));

/* Of rows of kernels. */
struct ft_kernel_tally {
	size_t failed;	      /* cannot be predicted; */
	struct ft_error why;  /* the first reason */
	size_t of_other_gpus; /* their column gpu names another than was asked for */
};

/* Reads kernel rows as validate does; writes them back with the columns
 * predicted.time_us and extrapolated at the end, all for this GPU, whatever their column gpu says. Rows
 * that cannot be predicted keep both empty. */
bool ft_study_kernels(const char *gpu, const char *path, FILE *out,
		      struct ft_kernel_tally *tally, struct ft_error *err)
	__attribute__((warn_unused_result));

/* ---- compare ---------------------------------------------------------------- */

/* A resolved key and its value in each of n scenarios; "-" where it has none. */
struct ft_setting {
	const char *key;
	const char **value; /* [n] */
	bool differs;
};

struct ft_settings {
	size_t n;
	struct ft_setting *setting;
};

/* A label for each of n scenarios, no two alike: each of those that have the same is told by its file's
 * name, else by the file's path, else by a number. Freed by ft_labels_free. */
const char **ft_study_labels(const struct ft_scenario *const *scenario, size_t n);
void ft_labels_free(const char **labels);

struct ft_settings *ft_study_settings(const struct ft_scenario *const *scenario,
				      size_t n);
void ft_settings_free(struct ft_settings *settings);

struct ft_difference {
	const char *what;  /* "time in attention_out (forward)" ... */
	double share_frac; /* of the difference in time per token, signed */
	double value[2];   /* first and second scenario, ns per token per GPU */
};

/* Where the time per token per GPU of b differs from that of a, largest first. */
struct ft_difference *ft_study_differences(const struct ft_scenario *sa,
					   const struct ft_outcome *a,
					   const struct ft_scenario *sb,
					   const struct ft_outcome *b, size_t *n);
void ft_differences_free(struct ft_difference *differences);

/* ---- sweep -------------------------------------------------------------------- */

struct ft_sweep {
	const char *scenario, *db;
	const char *const *sets;
	size_t n_sets;
	const char *const *vary; /* "KEY=A,B,C" */
	size_t n_vary;
	int threads; /* 0: all cores */
	int shard,
		shards; /* of the combinations every shards-th, from the shard-th on; 0: all */
	bool stop_on_signals;	/* SIGINT and SIGTERM end it once what runs is kept */
	struct ft_ranks *ranks; /* the processes that share it (study_ranks.h); NULL */
	struct ft_progress progress;
};

enum { FT_SWEEP_REASONS = 8 };

/* Why combinations failed: the first one's settings, and how many there were. */
struct ft_sweep_reason {
	struct ft_error error;
	char settings[256];
	size_t n;
};

struct ft_sweep_result {
	size_t total;
	size_t done;	/* run now, with an answer */
	size_t failed;	/* run now: the plan cannot be; kept with its error */
	size_t unread;	/* a part could not be read: not kept */
	size_t already; /* in the table before, with an answer */
	size_t already_failed;
	bool interrupted;
	size_t n_reasons; /* of failed and unread */
	struct ft_sweep_reason reason[FT_SWEEP_REASONS];
};

/* Every combination, one row each in the database's table `runs`; those that are there
 * already, made from the same, are not run again. False when the file cannot be used. */
bool ft_study_sweep(const struct ft_sweep *sweep, struct ft_sweep_result *result,
		    struct ft_error *err) __attribute__((warn_unused_result));

struct ft_merge_result {
	size_t files, rows, already; /* rows new to the file; there before */
};

/* The runs of sweeps' files put into one, which is made when it is not there. All of a file's
 * rows or none of them. A file of another program or version is an error. */
bool ft_study_merge(const char *into, const char *const *from, size_t n,
		    struct ft_merge_result *result, struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
