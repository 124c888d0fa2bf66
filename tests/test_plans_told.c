/*
 * tests/test_plans_told.c - what searches found, as it is told: sentences and a table, of figures
 * that are drawn
 */
#include "tests/found.h"
#include "tests/printed.h"

/* ---- the text --------------------------------------------------------------------------- */

/* "12,345" */
static const char *thousands(size_t n, char to[32])
{
	if (n < 1000)
		snprintf(to, 32, "%zu", n);
	else
		snprintf(to, 32, "%zu,%03zu", n / 1000, n % 1000);
	return to;
}

static void add(char *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(char *to, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsprintf(to + strlen(to), fmt, args);
	va_end(args);
}

/* What stands before the table. */
static void add_counts(char *to, const struct ft_plans *p)
{
	char n[32];

	add(to, "%s legal plans", thousands(p->considered, n));
	if (p->bounded != p->considered)
		add(to, ", %s of them looked at closely", thousands(p->bounded, n));
	if (p->refused)
		add(to, ", %s refused by the stack or the model",
		    thousands(p->refused, n));
	add(to, ", %s fit", thousands(p->feasible, n));
	if (p->n && p->over_node)
		add(to, ", %s too large for a node's memory",
		    thousands(p->over_node, n));
	add(to, ", %zu simulated", p->simulated);
	if (p->known)
		add(to, ", %zu known from the database", p->known);
	if (p->interrupted) {
		add(to, "; stopped before the end: %s plans are not ruled out",
		    thousands(p->open, n));
		if (p->n && p->open)
			add(to, ", better than the best by %.1f %% at most",
			    100 * p->open_better_frac);
	} else if (p->n) {
		add(to, "; the bounds of all others are above the plans shown");
	}
	add(to, ".\n");
	if (p->n_left_out)
		add(to, "Not searched, as the stack does not run them: %s.\n",
		    p->n_left_out == 1 ? "cp" : "cp, hsdp");
	add(to, "\n");
}

static void add_ways(char *to, const struct ft_plans *p)
{
	char gpu[32], node[32];

	if (!p->over_node)
		add(to, "No plan fits in a GPU's memory.\n");
	else if (!p->over_gpu)
		add(to, "No plan fits in a node's memory (its host_memory_size).\n");
	else
		add(to,
		    "No plan fits: %s are too large for a GPU's memory, %s for a "
		    "node's (its host_memory_size).\n",
		    thousands(p->over_gpu, gpu), thousands(p->over_node, node));
	for (size_t i = 0; i < p->n_ways; i++)
		add(to, "%s %s (a plan takes %.0f %% of a %s memory)\n",
		    i ? "         or" : "One fits with", p->way[i].text,
		    100 * p->way[i].memory_frac,
		    p->way[i].of_node ? "node's" : "GPU's");
	if (!p->n_ways)
		add(to, "None fits with freed keys, half the optimizer or eight times "
			"the GPUs either.\n");
}

/* Of a plan that is not the first: overlaps that are not as there, and the groups that share
 * state, where as many ranks could share it. */
static void add_unseen(char *to, int a, int first)
{
	static const char *const name[] = { "tp", "dp", "pp", "ep" };
	bool alike = !strcmp(known[a].row[8], known[first].row[8]) &&
		     known[a].shares == known[first].shares;
	const char *part = "; ";

	for (int i = 0; i < 4; i++)
		if (strcmp(known[a].overlap[i], known[first].overlap[i]) != 0) {
			add(to, "%soverlap.%s %s", part, name[i], known[a].overlap[i]);
			part = ", ";
		}
	if (!alike) { /* as goes without saying, or not */
		bool zero = !strncmp(known[a].row[8], "zero", 4);

		if (zero && known[a].zero_group &&
		    atoi(known[a].zero_group) != known[a].shares)
			add(to, "%szero_group %s", part, known[a].zero_group);
		if (!strcmp(known[a].row[8], "hsdp") &&
		    strcmp(known[a].shard, "8") != 0)
			add(to, "%sshard %s", part, known[a].shard);
		return;
	}
	if (known[a].zero_group &&
	    strcmp(known[a].zero_group, known[first].zero_group) != 0)
		add(to, "%szero_group %s", part, known[a].zero_group);
	if (known[a].shard && strcmp(known[a].shard, known[first].shard) != 0)
		add(to, "%sshard %s", part, known[a].shard);
}

/* Of the first plan: groups that are not all ranks that could share a state, or not a node of 8. */
static void add_groups(char *to, int a)
{
	int64_t zero = known[a].zero_group ? atoi(known[a].zero_group) : 0;
	bool shares = !strncmp(known[a].row[8], "zero", 4);

	if (shares && zero != known[a].shares)
		add(to, " It has zero_group %d.", (int)zero);
	if (!strcmp(known[a].row[8], "hsdp") && strcmp(known[a].shard, "8") != 0)
		add(to, " It has shard %s.", known[a].shard);
	add(to, "\n");
}

/* What the run takes, and whether it may. */
static void add_run(char *to, const struct ft_fleet *f, const struct ft_asked *limit)
{
	add(to, "The run takes %.1f days and %.2f million USD under the first",
	    f->days[1], f->usd[1] * 1e-6);
	if (limit->days > 0 && f->days[1] > limit->days)
		add(to, ", longer than the %.6g days that it may take", limit->days);
	if (limit->budget_usd > 0 && f->usd[1] > limit->budget_usd)
		add(to, ", more than the %.2f million USD that it may cost",
		    limit->budget_usd * 1e-6);
	add(to, ".\n");
}

/* What stands behind the table. */
static void add_reasons(char *to, const struct found *f, bool asked)
{
	size_t equal = 0;

	add(to, "\nWhy the first: %s", f->best[0].why);
	add_groups(to, f->which[0]);
	for (size_t i = 1; i < f->p.n; i++) {
		add(to, "  %3zu  %s", i + 1, f->best[i].why);
		add_unseen(to, f->which[i], f->which[0]);
		add(to, "\n");
	}
	for (size_t i = 0; i < f->p.n; i++)
		equal += f->best[i].equal;
	if (f->p.n > 1) {
		add(to,
		    "%zu of these %zu are within the range of the best's prediction "
		    "(up to %+.0f %%), so that no one can say which is faster",
		    equal, f->p.n, 100 * (f->o[0].step_high_s / f->o[0].step_s - 1));
		if (f->p.simplest)
			add(to, "; the simplest of them is number %zu.\n",
			    f->p.simplest + 1);
		else
			add(to, "; the first is the simplest of them, too.\n");
	}
	if (asked && !f->o[0].asked.fleet[0].none)
		add_run(to, &f->o[0].asked.fleet[0], &f->best[0].scenario->asked);
}

static void row_is(const struct printed *p, size_t line, int which,
		   const struct ft_outcome *o)
{
	bool s = o->step_s >= 1, ms = o->step_s >= 1e-3,
	     gb = o->memory_total_bytes >= 1e9;

	for (size_t c = 0; c < 11; c++)
		PRINTED_IS(p, line, c + 1, "%s", known[which].row[c]);
	PRINTED_IS(p, line, 12, "%.*f %s",
		   s  ? 3 :
		   ms ? 2 :
			1,
		   o->step_s * (s  ? 1 :
				ms ? 1e3 :
				     1e6),
		   s  ? "s" :
		   ms ? "ms" :
			"us");
	PRINTED_IS(p, line, 13, "%.1f", o->tokens_per_s_per_gpu);
	PRINTED_IS(p, line, 14, "%.1f %%", 100 * o->mfu);
	PRINTED_IS(p, line, 15, "%.4f", o->cost.usd_per_million_tokens);
	PRINTED_IS(p, line, 16, "%.1f %s", o->memory_total_bytes * (gb ? 1e-9 : 1e-6),
		   gb ? "GB" : "MB");
}

#define HEADS(first) \
	first, ">tp", ">pp", ">vpp", ">dp", ">cp", ">ep", ">etp", ">micro", \
		"sharding", "schedule", "recompute", ">step", ">tokens/s/GPU", ">MFU", \
		">USD/Mtokens", ">memory"

/* The table behind `text`, whose line of heads begins with this; where it ends. */
static const char *rows_are(const struct found *f, const char *text)
{
	char head[200];
	struct printed p;

	snprintf(head, sizeof(head), "%.*s", (int)strcspn(text, "\n"), text);
	printed_read(&p, text, head);
	PRINTED_HEADS(&p, HEADS(">"));
	assert_int_equal(p.lines, f->p.n + 1);
	for (size_t i = 0; i < f->p.n; i++) {
		PRINTED_IS(&p, i + 1, 0, "%zu", i + 1);
		row_is(&p, i + 1, f->which[i], &f->o[i]);
	}
	printed_drop(&p);
	for (size_t i = 0; i <= f->p.n; i++)
		text = strchr(text, '\n') + 1;
	return text;
}

static const char *begins(const char *text, const char *want)
{
	if (strncmp(text, want, strlen(want)) != 0)
		fail_msg("'%s', wanted\n'%s'", text, want);
	return text + strlen(want);
}

static const char *plans_are(const struct found *f, const char *text, bool asked)
{
	char want[8192] = "";

	add_counts(want, &f->p);
	if (!f->p.n) {
		if (!f->p.interrupted)
			add_ways(want, &f->p);
		return begins(text, want);
	}
	text = rows_are(f, begins(text, want));
	want[0] = '\0';
	add_reasons(want, f, asked);
	return begins(text, want);
}

static void what_was_found_is_told(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct found f;
		struct ft_plans *all[] = { &f.p };
		bool asked = below(2);
		struct ft_planning g = { all, 1, i % 3 ? FT_RANK_DAYS : FT_RANK_TOKENS,
					 NULL };
		char *text = NULL;

		draw_found(&f, asked);
		for (int k = 0; k < PLANS; k++) {
			made.of[k]->asked.days = below(2) * drawn_number(300);
			made.of[k]->asked.budget_usd =
				below(2) * (1e6 + drawn_number(1e8));
		}
		PRINTED(text, ft_report_plans(out, &g));
		assert_string_equal(plans_are(&f, text, asked), "");
		free(text);
	}
}

/* Each of several, and all at their best. */
static void several_are_told_beside_each_other(void **state)
{
	static const char *const label[] = { "one", "a second", "3" };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct found f[SIZES];
		struct ft_plans *all[SIZES];
		struct ft_planning g = { all, 2 + (size_t)below(2), FT_RANK_TOKENS,
					 NULL };
		size_t line = 1, found = 0;
		const char *at;
		char *text = NULL, want[64];

		for (size_t k = 0; k < g.n; k++) {
			draw_found(&f[k], false);
			f[k].p.label = label[k];
			all[k] = &f[k].p;
			found += f[k].p.n > 0;
		}
		PRINTED(text, ft_report_plans(out, &g));
		at = text;
		for (size_t k = 0; k < g.n; k++) {
			snprintf(want, sizeof(want), "%s%s: ", k ? "\n" : "", label[k]);
			at = plans_are(&f[k], begins(at, want), false);
		}
		at = begins(at, "\nEach at its best:\n\n");
		if (found) {
			struct printed p;

			printed_read(&p, at, "scenario");
			PRINTED_HEADS(&p, HEADS("scenario"));
			assert_int_equal(p.lines, found + 1);
			for (size_t k = 0; k < g.n; k++)
				if (f[k].p.n) {
					PRINTED_IS(&p, line, 0, "%s", label[k]);
					row_is(&p, line++, f[k].which[0], f[k].o);
				}
			printed_drop(&p);
		} else {
			assert_string_equal(at, "");
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_found_is_told),
		cmocka_unit_test(several_are_told_beside_each_other),
	};

	return cmocka_run_group_tests_name("plans told", tests, load, drop);
}
