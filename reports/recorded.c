/* reports/recorded.c - recorded steps as tables: where time went, what a change did */
#include "foretoken/reports.h"

#include <inttypes.h>

#include "base/arena.h"
#include "reports/show.h"
#include "reports/table.h"

enum { KERNELS = 15, NAME = 60 };

static double share(double part, double of)
{
	return of > 0 ? 100 * part / of : 0;
}

static void put_row(struct table *t, const char *what, double s, double of)
{
	table_row(t);
	table_put(t, "%s", what);
	table_put(t, "%.3f", 1e3 * s);
	table_put(t, "%.1f", share(s, of));
}

/* ---- what was read ------------------------------------------------------------------ */

/* What is one of its kind, or more of them; of none nothing. */
static void put_count(FILE *out, int64_t n, const char *one, const char *more)
{
	if (n)
		fprintf(out, "  %" PRId64 " %s\n", n, n == 1 ? one : more);
}

static void put_empty_steps(FILE *out, const struct ft_recording *r)
{
	bool none = !ft_recording_step(r, 0)->marked;

	put_count(out, ft_recording_counts(r)->empty_steps,
		  none ? "marked step has no operation and is left out: all that was "
			 "recorded is one step" :
			 "marked step has no operation and is left out",
		  none ? "marked steps have no operation and are left out: all that "
			 "was recorded is one step" :
			 "marked steps have no operation and are left out");
}

static void put_repaired(FILE *out, const struct ft_recording *r)
{
	const struct ft_rec_counts *c = ft_recording_counts(r);

	put_count(out, c->negative, "negative duration was taken as 0",
		  "negative durations were taken as 0");
	if (c->without_call && !ft_recording_calls(r))
		fprintf(out,
			"  it holds no launches: operations follow their stream, and "
			"pauses of the host are not told apart\n");
	else
		put_count(out, c->without_call,
			  "operation was launched before the recording began; it "
			  "follows its stream",
			  "operations were launched before the recording began; they "
			  "follow their stream");
	put_count(out, c->without_op,
		  "launch has no operation: what it launched was not recorded, and its "
		  "time is missing below",
		  "launches have no operation: what they launched was not recorded, "
		  "and its time is missing below");
	put_count(out, c->twice, "operation or call is told twice; it counts once",
		  "operations and calls are told twice; each counts once");
	put_count(out, c->other_gpus,
		  "event of the file's other GPUs was left out: it is read for its "
		  "first one",
		  "events of the file's other GPUs were left out: it is read for its "
		  "first one");
	put_count(out, c->before_call,
		  "operation begins before its launch: the clocks of host and GPU "
		  "differ",
		  "operations begin before their launch: the clocks of host and GPU "
		  "differ");
	put_count(out, c->overlapping_steps,
		  "step overlaps the next; it ends where that begins",
		  "steps overlap; each ends where the next begins");
	put_empty_steps(out, r);
	put_count(out, c->unknown_phases, "event of an unknown phase was left out",
		  "events of unknown phases were left out");
}

static void put_file(FILE *out, const struct ft_recording *r)
{
	int64_t rank = ft_recording_rank(r), world = ft_recording_world(r);

	fprintf(out, "%s: ", ft_recording_file(r));
	if (rank != FT_REC_NONE && world > 0)
		fprintf(out, "rank %" PRId64 " of %" PRId64 ", ", rank, world);
	else if (rank != FT_REC_NONE)
		fprintf(out, "rank %" PRId64 ", ", rank);
	fprintf(out,
		"%s, %zu operation%s on %zu stream%s, %zu call%s, %zu operator%s\n",
		ft_recording_device(r)[0] ? ft_recording_device(r) : "device not told",
		ft_recording_ops(r), ft_recording_ops(r) == 1 ? "" : "s",
		ft_recording_streams(r), ft_recording_streams(r) == 1 ? "" : "s",
		ft_recording_calls(r), ft_recording_calls(r) == 1 ? "" : "s",
		ft_recording_spans(r), ft_recording_spans(r) == 1 ? "" : "s");
	put_repaired(out, r);
}

/* What the profiler lost keeps no stream busy in a replay, either. */
static void put_lost(FILE *out, const struct ft_replay *p)
{
	int64_t lost = 0;

	for (size_t k = 0; k < ft_replay_ranks(p); k++)
		lost += ft_recording_counts(ft_replay_recording(p, k))->without_op;
	if (lost)
		fprintf(out,
			"Launches without an operation, which was not recorded: %" PRId64
			"; its time is missing.\n",
			lost);
}

static void put_order(FILE *out, const struct ft_replay_counts *c)
{
	int64_t waits = c->waits_told + c->waits_by_time + c->waits_by_order +
			c->waits_unresolved;

	if (waits)
		fprintf(out,
			"Waits for events: %" PRId64 "; for which event, the profiler "
			"told %" PRId64 ", times showed %" PRId64
			", the order of calls "
			"%" PRId64 ", nothing %" PRId64 ".\n",
			waits, c->waits_told, c->waits_by_time, c->waits_by_order,
			c->waits_unresolved);
	if (c->gaps)
		fprintf(out,
			"Pauses longer than 10 us that nothing recorded explains: "
			"%" PRId64 ", %.3f ms in all.\n",
			c->gaps, (double)c->gaps_ps * 1e-9);
	if (c->matched || c->unmatched)
		fprintf(out,
			"Collectives: %" PRId64 " found on all ranks given, %" PRId64
			" whose peers are not recorded, or do not fit.\n",
			c->matched, c->unmatched);
}

/* ---- where ------------------------------------------------------------------------------ */

static void put_where(FILE *out, const struct ft_rec_where *w)
{
	struct table t = TABLE_OPEN(out, "where the step went", ">ms", ">%");
	static const char *const idle[FT_REC_CAUSES] = {
		"idle: host launched late",   "idle: between kernels",
		"idle: waiting for an event", "idle: waiting for room",
		"idle: unexplained",
	};

	put_row(&t, "compute kernels", w->compute_s, w->step_s);
	put_row(&t, "optimizer kernels", w->optimizer_s, w->step_s);
	put_row(&t, "exposed communication", w->exposed_s, w->step_s);
	put_row(&t, "bubble (send and receive)", w->bubble_s, w->step_s);
	for (int c = 0; c < FT_REC_CAUSES; c++)
		if (w->idle_s[c] > 0)
			put_row(&t, idle[c], w->idle_s[c], w->step_s);
	put_row(&t, "idle: after the last operation", w->tail_s, w->step_s);
	put_row(&t, "step", w->step_s, w->step_s);
	table_close(&t);
}

static void put_classes(FILE *out, const struct ft_rec_where *w)
{
	struct table t =
		TABLE_OPEN(out, "operations", ">count", ">ms", ">% of the step");

	for (int c = 0; c < FT_REC_CLASSES; c++) {
		if (!w->class_n[c])
			continue;
		table_row(&t);
		table_put(&t, "%s", ft_rec_class_name((enum ft_rec_class)c));
		table_put(&t, "%" PRId64, w->class_n[c]);
		table_put(&t, "%.3f", 1e3 * w->class_s[c]);
		table_put(&t, "%.1f", share(w->class_s[c], w->step_s));
	}
	table_close(&t);
}

static void put_launches(FILE *out, const struct ft_rec_where *w)
{
	double hidden = w->collective_s - w->exposed_s - w->bubble_s;
	char late[80] = "";

	if (w->latency_s > 0) /* else it was never so */
		snprintf(late, sizeof(late),
			 "from launch to begin %.2f us where nothing was before; ",
			 1e6 * w->latency_s);
	if (w->collective_s > 0)
		fprintf(out,
			"Communication runs %.3f ms of the step, %.1f %% of it under "
			"kernels.\n",
			1e3 * w->collective_s, share(hidden, w->collective_s));
	if (w->launches)
		fprintf(out,
			"%" PRId64 " launches took the host %.3f ms (%.2f us each), "
			"synchronising %.3f ms;\n%s%.1f launched and not begun on "
			"average, %" PRId64 " at most.\n",
			w->launches, 1e3 * w->call_s,
			1e6 * w->call_s / (double)w->launches, 1e3 * w->sync_s, late,
			w->queued_mean, w->queued_most);
	if (w->allocations)
		fprintf(out,
			"%" PRId64 " calls that take memory of the GPU or give it back "
			"took the host %.3f ms:\nthe program's allocator had none left "
			"to use again.\n",
			w->allocations, 1e3 * w->allocation_s);
}

static void put_skew(FILE *out, const struct ft_replay *p, const char *step)
{
	struct arena mem = { 0 };
	struct ft_replayed t = ft_replay_as_recorded(p, &mem);
	struct table table = TABLE_OPEN(out, "rank", ">collectives", ">waiting ms",
					">transfer ms", ">came last", ">clock us");
	double most = -1, met = 0;
	int64_t straggler = 0;

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		struct ft_rec_skew s = ft_study_skew(p, &t, k, step);
		int64_t rank = ft_recording_rank(ft_replay_recording(p, k));

		table_row(&table);
		table_put(&table, "%" PRId64, rank);
		table_put(&table, "%g", s.met);
		table_put(&table, "%.3f", 1e3 * s.waiting_s);
		table_put(&table, "%.3f", 1e3 * s.transfer_s);
		table_put(&table, "%g", s.last);
		table_put(&table, "%+.1f", 1e6 * s.clock_s);
		met += s.met;
		if (s.last > most) {
			most = s.last;
			straggler = rank;
		}
	}
	if (met > 0) {
		table_close(&table);
		if (most > 0)
			fprintf(out, "Others wait for rank %" PRId64 " most often.\n\n",
				straggler);
		else
			fputs("No rank waits for another.\n\n", out);
	} else {
		table_drop(&table);
	}
	arena_release(&mem);
}

/* Templates make names of hundreds of letters; what tells them apart comes first. */
static void put_kernels(FILE *out, const struct ft_replay *p, const char *step)
{
	struct arena mem = { 0 };
	const struct ft_recording *r = ft_replay_recording(p, 0);
	size_t n;
	struct ft_rec_kernel *k = ft_study_step_kernels(p, step, &mem, &n);
	bool one = ft_replay_ranks(p) == 1 && ft_recording_steps(r) == 1;
	struct table table;

	if (!one)
		fprintf(out, "Of the first file's %s:\n", step ? "step" : "last step");
	table = TABLE_OPEN(out, "kernel", "class", ">count", ">ms", ">mean us",
			   ">shortest us", ">longest us");

	for (size_t i = 0; i < n && i < KERNELS; i++) {
		table_row(&table);
		table_put(&table, "%.*s", NAME, ft_recording_text(r, k[i].name));
		table_put(&table, "%s", ft_rec_class_name(k[i].rec_class));
		table_put(&table, "%" PRId64, k[i].n);
		table_put(&table, "%.3f", 1e3 * k[i].time_s);
		table_put(&table, "%.1f", 1e6 * k[i].time_s / (double)k[i].n);
		table_put(&table, "%.1f", 1e6 * k[i].shortest_s);
		table_put(&table, "%.1f", 1e6 * k[i].longest_s);
	}
	table_close(&table);
	if (n > KERNELS)
		fprintf(out, "... and %zu more names\n", n - KERNELS);
	arena_release(&mem);
}

void ft_report_recorded(FILE *out, const struct ft_replay *p, const struct ft_whatif *a)
{
	for (size_t k = 0; k < ft_replay_ranks(p); k++)
		put_file(out, ft_replay_recording(p, k));
	put_order(out, ft_replay_counts(p));
	putc('\n', out);
	put_where(out, &a->recorded);
	putc('\n', out);
	put_classes(out, &a->recorded);
	putc('\n', out);
	put_launches(out, &a->recorded);
	putc('\n', out);
	if (ft_replay_ranks(p) > 1)
		put_skew(out, p, a->step);
	put_kernels(out, p, a->step);
}

/* ---- what if ------------------------------------------------------------------------------ */

static void put_breakdowns(FILE *out, const struct ft_whatif *a)
{
	const struct ft_rec_where *x = &a->recorded, *y = &a->replayed;
	struct table t =
		TABLE_OPEN(out, "where the step goes", ">recorded ms", ">replayed ms");
	const struct {
		const char *what;
		double was, is;
	} row[] = {
		{ "compute kernels", x->compute_s, y->compute_s },
		{ "optimizer kernels", x->optimizer_s, y->optimizer_s },
		{ "exposed communication", x->exposed_s, y->exposed_s },
		{ "bubble (send and receive)", x->bubble_s, y->bubble_s },
		{ "idle",
		  x->step_s - x->compute_s - x->optimizer_s - x->exposed_s -
			  x->bubble_s,
		  y->step_s - y->compute_s - y->optimizer_s - y->exposed_s -
			  y->bubble_s },
		{ "step, mean over ranks", x->step_s, y->step_s },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		table_row(&t);
		table_put(&t, "%s", row[i].what);
		table_put(&t, "%.3f", 1e3 * row[i].was);
		table_put(&t, "%.3f", 1e3 * row[i].is);
	}
	table_close(&t);
}

static void put_changes(FILE *out, const struct ft_whatif *a)
{
	struct table t = TABLE_OPEN(out, "part", ">recorded ms", ">replayed ms",
				    ">adds to the step ms");
	bool any = false;

	for (int i = 0; i < FT_PARTS; i++)
		any |= a->change[i].changed;
	for (int i = 0; i < FT_PARTS && any; i++) {
		const struct ft_whatif_change *c = &a->change[i];

		if (!c->changed && !(c->recorded_s > 0))
			continue;
		table_row(&t);
		table_put(&t, "%s", ft_whatif_part_name((enum ft_whatif_part)i));
		if (i == FT_PART_HOST) {
			table_put(&t, "-");
			table_put(&t, "-");
		} else {
			table_put(&t, "%.3f", 1e3 * c->recorded_s);
			table_put(&t, "%.3f", 1e3 * c->replayed_s);
		}
		table_put(&t, "%+.3f", 1e3 * c->step_s);
	}
	table_close(&t);
	if (any)
		putc('\n', out);
}

static void put_money(FILE *out, const struct ft_whatif *a)
{
	char low[SHOWN], high[SHOWN], usd[SHOWN];

	if (!a->priced)
		return;
	fprintf(out,
		"%.0f tokens/s on %" PRId64 " GPUs: %s USD per million tokens (P10 "
		"%s, P90 %s), %.2f USD per GPU and hour.\n",
		a->tokens_per_s, a->gpus,
		shown_text(FT_SHOW_USD_PER_MTOKEN, a->cost.usd_per_million_tokens, usd),
		shown_text(FT_SHOW_USD_PER_MTOKEN, a->cost.usd_per_million_tokens_low,
			   low),
		shown_text(FT_SHOW_USD_PER_MTOKEN, a->cost.usd_per_million_tokens_high,
			   high),
		a->cost.usd_per_gpu_hour);
}

void ft_report_whatif(FILE *out, const struct ft_replay *p, const struct ft_whatif *a)
{
	fprintf(out, "recorded %.3f ms, replayed %.3f ms", 1e3 * a->recorded_step_s,
		1e3 * a->step_s);
	if (a->recorded_step_s > 0)
		fprintf(out, " (%+.2f %%)", 100 * (a->step_s / a->recorded_step_s - 1));
	if (a->high_s > a->low_s)
		fprintf(out, ", P10 %.3f, P90 %.3f", 1e3 * a->low_s, 1e3 * a->high_s);
	putc('\n', out);
	if (a->moved)
		fprintf(out,
			"recorded on %s, %" PRId64 " rank%s; replayed on %s, %" PRId64
			" rank%s, %s\n",
			a->from, a->ranks_recorded, a->ranks_recorded == 1 ? "" : "s",
			a->gpu, a->ranks, a->ranks == 1 ? "" : "s", a->fabric);
	putc('\n', out);
	put_breakdowns(out, a);
	putc('\n', out);
	put_changes(out, a);
	put_lost(out, p);
	put_order(out, ft_replay_counts(p));
	fprintf(out, "Of the time of all operations %.1f %% is classified",
		100 * a->classified_frac);
	if (a->by_work_frac + a->by_stand_in_frac > 0)
		fprintf(out,
			"; re-timed by recorded shapes %.1f %%, by stand-ins %.1f %%, "
			"not %.1f %%",
			100 * a->by_work_frac, 100 * a->by_stand_in_frac,
			100 * a->kept_frac);
	fputs(".\n", out);
	for (size_t i = 0; i < a->n_notes; i++)
		fprintf(out, "%s\n", a->note[i]);
	put_money(out, a);
}
