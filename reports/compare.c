/* reports/compare.c - scenarios side by side: what differs, what is common, why */
#include "base/csv.h"
#include "base/arena.h"
#include "base/plain.h"
#include "base/terminal.h"
#include <math.h>
#include <string.h>

#include "foretoken/reports.h"
#include "reports/evidence.h"
#include "reports/money.h"
#include "reports/prices.h"
#include "reports/show.h"
#include "reports/table.h"

enum { MOST_BESIDE = 256 };

static struct table open_beside(FILE *out, const char *first,
				const struct ft_answers *a)
{
	const char *names[MOST_BESIDE + 1] = { first };

	for (size_t i = 0; i < a->n; i++)
		names[i + 1] = a->label[i];
	return table_open(out, names, a->n + 1);
}

static void what_differs(FILE *out, const struct ft_answers *a,
			 const struct ft_settings *all)
{
	struct table t = open_beside(out, "what differs", a);
	bool any = false;

	for (size_t i = 0; i < all->n; i++) {
		const struct ft_setting *x = &all->setting[i];

		if (!x->differs)
			continue;
		any = true;
		table_row(&t);
		table_put(&t, "%s", x->key);
		for (size_t k = 0; k < a->n; k++)
			table_put(&t, "%s", x->value[k]);
	}
	if (!any) {
		table_row(&t);
		table_put(&t, "nothing");
	}
	table_close(&t);
}

/* "key value", with commas between, in lines of at most 80 columns. */
static void put_words(FILE *out, const char *text, size_t *column)
{
	size_t n = strlen(text);

	if (*column + 1 + n > 80) {
		fputs("\n  ", out);
		*column = 2;
	} else if (*column > 2) {
		putc(' ', out);
		++*column;
	}
	fputs(text, out);
	*column += n;
}

/* A model's name; where its keys make it as large in all scenarios, how large. */
static bool is_model(const struct ft_answers *a, const char *key)
{
	double first = ft_model_parameters(a->scenario[0]->model);

	for (size_t i = 1; i < a->n; i++)
		if (ft_model_parameters(a->scenario[i]->model) != first)
			return false;
	return !strcmp(key, "model") || !strcmp(key, "model.name");
}

static void what_is_common(FILE *out, const struct ft_answers *a,
			   const struct ft_settings *all)
{
	const struct ft_prices *p = a->scenario[0]->prices;
	size_t column = 2;
	char text[512];

	fputs("\nThe same in all:\n  ", out);
	for (size_t i = 0; i < all->n; i++) {
		const struct ft_setting *x = &all->setting[i];

		if (x->differs)
			continue;
		if (is_model(a, x->key))
			snprintf(text, sizeof(text), "%s %s (%.4g B parameters),",
				 x->key, x->value[0],
				 ft_model_parameters(a->scenario[0]->model) * 1e-9);
		else if (!strcmp(x->key, "cost.prices"))
			snprintf(text, sizeof(text), "%s %s (%s),", x->key, x->value[0],
				 p->date);
		else
			snprintf(text, sizeof(text), "%s %s,", x->key, x->value[0]);
		put_words(out, text, &column);
	}
	snprintf(text, sizeof(text), "foretoken %s", ft_version());
	put_words(out, text, &column);
	fprintf(out, "\n  %s\n\n", a->command);
}

/* Of values at offset the unit of the largest, which their P10 and P90 below have, too. */
static struct shown shown_beside(const struct ft_answers *a, enum ft_show show,
				 size_t offset)
{
	double largest = 0;

	for (size_t i = 0; i < a->n; i++)
		largest = fmax(largest, fabs(ft_outcome_at(&a->outcome[i], offset)));
	return shown_as(show, largest);
}

static void beside_row(struct table *t, const struct ft_answers *a, const char *label,
		       const struct shown *as, size_t offset)
{
	char text[SHOWN];

	table_row(t);
	table_put(t, "%s%s%s", label, as->unit[0] ? ", " : "", as->unit);
	for (size_t i = 0; i < a->n; i++)
		table_put(
			t, "%s",
			shown_number(as, ft_outcome_at(&a->outcome[i], offset), text));
}

static void answers_beside(FILE *out, const struct ft_answers *a)
{
	struct table t = open_beside(out, "result", a);
	struct arena mem = { 0 };
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		struct shown as;

		if (!ft_outcome_row(&f[i], a->outcome, a->n))
			continue;
		as = shown_beside(a, f[i].show, f[i].value);
		beside_row(&t, a, f[i].label, &as, f[i].value);
		if (!f[i].high)
			continue;
		beside_row(&t, a, "  P10", &as, f[i].low);
		beside_row(&t, a, "  P90", &as, f[i].high);
	}
	table_row(&t);
	table_put(&t, "fits in memory");
	for (size_t i = 0; i < a->n; i++)
		table_put(&t, "%s", a->outcome[i].fits ? "yes" : "NO");
	table_close(&t);
	putc('\n', out);
	for (size_t i = 0; i < a->n; i++)
		fprintf(out, "%s: %s\n", a->label[i],
			prices_said(&mem, a->outcome[i].bom, a->scenario[i]->prices));
	arena_release(&mem);
}

static void why(FILE *out, const struct ft_answers *a, size_t i)
{
	struct table t;
	size_t n;
	struct ft_difference *d = ft_study_differences(
		a->scenario[0], &a->outcome[0], a->scenario[i], &a->outcome[i], &n);

	fprintf(out, "\nWhy %s differs from %s, GPU-nanoseconds per token:\n",
		a->label[i], a->label[0]);
	t = TABLE_OPEN(out, "part", ">first", ">this", ">difference");
	for (size_t k = 0; k < n; k++) {
		table_row(&t);
		table_put(&t, "%s", d[k].what);
		table_put(&t, "%.0f", d[k].value[0]);
		table_put(&t, "%.0f", d[k].value[1]);
		table_put(&t, "%+.0f", d[k].value[1] - d[k].value[0]);
	}
	table_close(&t);
	ft_differences_free(d);
}

/* Sizes are whole, so that clusters are about alike: how far is said. */
static void how_alike(FILE *out, const struct ft_answers *a)
{
	static const struct {
		const char *what, *unit;
		double scale;
	} said[FT_BASES] = {
		[FT_EQUAL_MONEY] = { "dollars", "USD an hour", 1 },
		[FT_EQUAL_MEGAWATTS] = { "power", "MW", 1e-6 },
		[FT_EQUAL_TIME] = { "time", "tokens/s kept", 1 },
	};

	double apart = 0;

	if (a->basis == FT_EQUAL_GPUS)
		return;
	for (size_t i = 1; i < a->n; i++)
		apart = fmax(apart,
			     fabs(ft_study_measure(a->scenario[i], &a->outcome[i],
						   a->basis) /
					  ft_study_measure(a->scenario[0],
							   &a->outcome[0], a->basis) -
				  1));
	if (apart > 0.1)
		fprintf(out, "No sizes are alike in %s; %s, up to %.0f %% apart:",
			said[a->basis].what,
			a->basis == FT_EQUAL_TIME ? "the smallest that keep as much" :
						    "the nearest",
			100 * apart);
	else
		fprintf(out, "Sizes alike in %s:", said[a->basis].what);
	for (size_t i = 0; i < a->n; i++)
		fprintf(out, "%s %s with %.0f GPUs, %.4g %s", i ? ";" : "", a->label[i],
			(double)a->scenario[i]->cluster->gpus,
			said[a->basis].scale * ft_study_measure(a->scenario[i],
								&a->outcome[i],
								a->basis),
			said[a->basis].unit);
	fputs(".\n\n", out);
}

void ft_report_compare(FILE *out, const struct ft_answers *a)
{
	PLAIN_NUMBERS;
	struct ft_settings *all = ft_study_settings(a->scenario, a->n);
	char text[WARNINGS], verdict[FT_SENTENCE];

	if (a->verdict)
		fprintf(out, "%s%s%s\n\n", terminal_begin(out, TERMINAL_WINNER),
			ft_verdict_sentence(a->verdict, a->label, verdict),
			terminal_end(out));
	how_alike(out, a);
	what_differs(out, a, all);
	what_is_common(out, a, all);
	answers_beside(out, a);
	if (evidence_warning(a, text))
		fprintf(out, "\n%s\n", text);
	for (size_t i = 1; i < a->n; i++)
		why(out, a, i);
	money_verdict(out, a);
	for (size_t i = 0; i < a->n; i++)
		if (a->outcome[i].asked.n) {
			fprintf(out, "\n%s:\n", a->label[i]);
			money_fleets(out, &a->outcome[i].asked);
			if (*evidence_search(a->scenario[i], &a->outcome[i], text))
				fprintf(out, "%s\n", text);
		}
	ft_settings_free(all);
}

void ft_report_compare_csv(FILE *out, const struct ft_answers *a)
{
	PLAIN_NUMBERS;
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	fputs("key", out);
	for (size_t i = 0; i < a->n; i++) {
		putc(',', out);
		csv_cell(out, a->label[i]);
	}
	fputs("\ncluster.gpus", out);
	for (size_t i = 0; i < a->n; i++)
		fprintf(out, ",%.0f", (double)a->scenario[i]->cluster->gpus);
	fputs("\nfits", out);
	for (size_t i = 0; i < a->n; i++)
		fprintf(out, ",%d", a->outcome[i].fits);
	putc('\n', out);
	for (size_t k = 0; k < n; k++) {
		const size_t at[] = { f[k].value, f[k].low, f[k].high };
		static const char *const suffix[] = { "", ".p10", ".p90" };

		for (int e = 0; e < (f[k].high ? 3 : 1); e++) {
			fprintf(out, "%s%s", f[k].key, suffix[e]);
			for (size_t i = 0; i < a->n; i++)
				fprintf(out, ",%.12g",
					ft_outcome_at(&a->outcome[i], at[e]));
			putc('\n', out);
		}
	}
	money_csv(out, a);
}
