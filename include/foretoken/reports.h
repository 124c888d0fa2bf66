/*
 * foretoken/reports.h - answers for people and for programs: tables, JSON, CSV,
 * plots and the HTML report
 *
 * Keys and units of the JSON are those of foretoken-simulate(1); tables print the same
 * numbers rounded. Nothing here computes a result.
 */
#ifndef FORETOKEN_REPORTS_H
#define FORETOKEN_REPORTS_H

#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/cost_history.h"
#include "foretoken/study_decide.h"
#include "foretoken/study_plan.h"
#include "foretoken/study_whatif.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One simulate: table with breakdown, memory, cost; or JSON. */
void ft_report_outcome(FILE *out, const struct ft_scenario *scenario,
		       const struct ft_outcome *outcome);
void ft_report_outcome_json(FILE *out, const struct ft_scenario *scenario,
			    const struct ft_outcome *outcome);

void ft_report_bom(FILE *out, const struct ft_cluster *cluster,
		   const struct ft_bom *bom);
void ft_report_bom_json(FILE *out, const struct ft_cluster *cluster,
			const struct ft_bom *bom);
void ft_report_bom_csv(FILE *out, const struct ft_bom *bom);
/* The tiers of switches and their cables, drawn as an SVG file. */
bool ft_report_network(const char *path, const struct ft_cluster *cluster,
		       struct ft_error *err) __attribute__((warn_unused_result));

void ft_report_validation(FILE *out, const struct ft_validation *validation,
			  bool every_row);
void ft_report_validation_json(FILE *out, const struct ft_validation *validation);

void ft_report_stack_fit(FILE *out, const struct ft_stack_fit *fit);
void ft_report_stack_fit_json(FILE *out, const struct ft_stack_fit *fit);

void ft_report_runs(FILE *out, const struct ft_runs *runs);
void ft_report_runs_json(FILE *out, const struct ft_runs *runs);
/* Predicted against measured tokens/s per GPU; path ends in .svg, data and script lie
 * beside it. */
bool ft_report_runs_plot(const char *path, const struct ft_runs *runs,
			 struct ft_error *err) __attribute__((warn_unused_result));

struct ft_collective_line {
	enum ft_collective op;
	int64_t gpus;
	double bytes;
	struct ft_collective_result result;
};

/* From this regret on the faster algorithm is named, too. */
#define FT_REGRET_WORTH_SAYING 0.02

void ft_report_collectives(FILE *out, const struct ft_collective_line *line, size_t n);
/* dir/busbw.svg: bus bandwidth by size, a curve for each op and number of GPUs; of several
 * numbers of GPUs also dir/busbw-by-gpus.svg, a curve for each op and size. */
bool ft_report_collectives_plot(const char *dir, const struct ft_collective_line *line,
				size_t n, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_report_collectives_json(FILE *out, const struct ft_collective_line *line,
				size_t n);

/* Scenarios with their answers, to be shown together. */
struct ft_answers {
	const struct ft_scenario *const *scenario; /* [n] */
	const struct ft_outcome *outcome;	   /* [n] */
	const char *const *label; /* [n] no two alike: ft_study_labels */
	size_t n;
	const char *command;		  /* the command line that asked */
	const struct ft_verdict *verdict; /* of two or more; NULL: none */
	enum ft_basis basis;		  /* what the clusters are alike in */
};

/* Side by side: what differs, what is common, the answers, and where the time of each
 * differs from the first one's. */
void ft_report_compare(FILE *out, const struct ft_answers *answers);
void ft_report_compare_json(FILE *out, const struct ft_answers *answers);
/* One line for each number of the answers: key, unit, and a column for each scenario. */
void ft_report_compare_csv(FILE *out, const struct ft_answers *answers);

/* What an hour of a GPU costs in the forms in which others state it, and owning against
 * renting. */
void ft_report_finance(FILE *out, const struct ft_scenario *scenario,
		       const struct ft_outcome *outcome);

/* Plans found: of one scenario a table with reasons, its JSON with the keys that outsiders rely
 * on; of several (sizes, clusters) each, and behind them all at their best side by side. */
struct ft_planning {
	struct ft_plans *const *plans; /* [n] */
	size_t n;
	enum ft_rank_by rank_by;
	const struct ft_run_answer
		*run; /* over sizes of one scenario; NULL or n 0: none */
};

void ft_report_plans(FILE *out, const struct ft_planning *planning);
void ft_report_plans_json(FILE *out, const struct ft_planning *planning);
/* A plan as launch arguments or a piece of configuration of a framework; what has no name
 * there is said in a comment that begins "# not mapped:". */
enum ft_framework { FT_MEGATRON, FT_TORCHTITAN, FT_NEMO, FT_PRIMUS, FT_FRAMEWORKS };

const char *ft_framework_name(enum ft_framework framework);
void ft_report_plan_arguments(FILE *out, const struct ft_scenario *scenario,
			      enum ft_framework framework);
/* dir/front.svg: time against dollars and memory of the plans on the front. */
bool ft_report_plans_plot(const char *dir, const struct ft_planning *planning,
			  struct ft_error *err) __attribute__((warn_unused_result));

/* dir/index.html: one file that needs no network, with plots by gnuplot; the data
 * and scripts of each plot in the same folder. dir is created if needed. */
bool ft_report_html(const char *dir, const struct ft_answers *answers,
		    struct ft_error *err) __attribute__((warn_unused_result));

/* A recorded step: where its time went, its kernels; and what changes made of it. */
void ft_report_recorded(FILE *out, const struct ft_replay *replay,
			const struct ft_whatif *answer);
void ft_report_recorded_json(FILE *out, const struct ft_replay *replay,
			     const struct ft_whatif *answer);
void ft_report_whatif(FILE *out, const struct ft_replay *replay,
		      const struct ft_whatif *answer);
void ft_report_whatif_json(FILE *out, const struct ft_replay *replay,
			   const struct ft_whatif *answer);

/* The style sheet of the HTML report, for pages that shall look like it. */
const char *ft_report_style(void);

/* A document as JSON, values as they are written. */
void ft_report_document_json(FILE *out, const struct node *document);

/* Host constants fitted to recordings: from what to what, and how each was told. */
void ft_report_host_fit(FILE *out, const struct ft_host_fit *fit);
void ft_report_host_fit_json(FILE *out, const struct ft_host_fit *fit);

/* A recorded step beside a predicted one: by part, by kind, by layer. */
void ft_report_trace_gaps(FILE *out, const struct ft_trace_gap gap[FT_TRACE_GAPS],
			  const struct ft_trace_layers *layers);
void ft_report_trace_gaps_json(FILE *out, const struct ft_trace_gap gap[FT_TRACE_GAPS],
			       const struct ft_trace_layers *layers);
/* The same drawn: file.svg, and beside it the data and the script. */
bool ft_report_trace_gaps_plot(const char *file,
			       const struct ft_trace_gap gap[FT_TRACE_GAPS],
			       const struct ft_trace_layers *layers,
			       struct ft_error *err)
	__attribute__((warn_unused_result));

/* What is known of one kind, with provenance: "gpus", "models" ... */
bool ft_report_list(FILE *out, const char *kind, bool json, struct ft_error *err)
	__attribute__((warn_unused_result));

/* An item's price in many books, as a table, as JSON, and over time as file, an SVG with
 * its data and script beside it. */
void ft_report_price_history(FILE *out, const struct ft_price_history *history);
void ft_report_price_history_json(FILE *out, const struct ft_price_history *history);
bool ft_report_price_history_plot(const char *file,
				  const struct ft_price_history *history,
				  struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
