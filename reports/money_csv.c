/* reports/money_csv.c - verdicts and fleets as CSV: a key, then a column for each scenario */
#include <inttypes.h>
#include <string.h>

#include "base/csv.h"
#include "reports/money.h"

/* group.name and its suffix, in one cell; quoted where it has to be. */
static void key(FILE *out, const char *group, const char *name, const char *suffix)
{
	char text[256];

	snprintf(text, sizeof(text), "%s.%s%s", group, name, suffix);
	if (strpbrk(text, ",\""))
		csv_cell(out, text);
	else
		fputs(text, out);
}

static void row(FILE *out, const double *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, ",%.12g", value[i]);
	putc('\n', out);
}

static void odds(FILE *out, const struct ft_odds *o)
{
	fputs("verdict.cheapest_frac", out);
	row(out, o->cheapest_frac, o->n);
	fputs("verdict.usd_per_million_tokens.p10", out);
	row(out, o->p10[FT_DRAWN_USD], o->n);
	fputs("verdict.usd_per_million_tokens.p50", out);
	row(out, o->p50[FT_DRAWN_USD], o->n);
	fputs("verdict.usd_per_million_tokens.p90", out);
	row(out, o->p90[FT_DRAWN_USD], o->n);
	for (size_t c = 0; c < o->n_causes; c++) {
		key(out, "cause", o->cause[c].name, ".p10");
		row(out, o->cause[c].low, o->n);
		key(out, "cause", o->cause[c].name, ".p90");
		row(out, o->cause[c].high, o->n);
	}
}

/* Said of one scenario only, so that the other cells are empty. */
static void crossovers(FILE *out, const struct ft_verdict *v, size_t n)
{
	for (size_t k = 0; k < v->n_crossovers; k++) {
		key(out, "crossover", v->crossover[k].what, "");
		for (size_t i = 0; i < n; i++)
			if (i == v->second)
				fprintf(out, ",%.12g", v->crossover[k].value);
			else
				putc(',', out);
		putc('\n', out);
	}
}

/* The fleet that answers a question; NULL: not asked, or there is none. */
static const struct ft_fleet *answer(const struct ft_run_answer *r,
				     const char *question)
{
	for (size_t q = 0; q < r->n; q++)
		if (strcmp(r->fleet[q].question, question) == 0)
			return r->fleet[q].none ? NULL : &r->fleet[q];
	return NULL;
}

static void fleet(FILE *out, const struct ft_answers *a, const char *question)
{
	static const struct {
		const char *suffix;
		size_t at;
	} figures[] = {
#define FIGURE(name) { "." #name, offsetof(struct ft_fleet, name) }
#define THREE(name) \
	{ "." #name ".p10", offsetof(struct ft_fleet, name[0]) }, \
		{ "." #name ".p50", offsetof(struct ft_fleet, name[1]) }, \
	{ \
		"." #name ".p90", offsetof(struct ft_fleet, name[2]) \
	}
		FIGURE(tokens),
		THREE(days),
		THREE(usd),
		FIGURE(megawatts),
		{ ".megawatts.p10", offsetof(struct ft_fleet, megawatts_low) },
		{ ".megawatts.p90", offsetof(struct ft_fleet, megawatts_high) },
		FIGURE(energy_mwh),
		FIGURE(failures),
		FIGURE(tokens_per_s),
	};
	const struct ft_fleet *f;

	key(out, "fleet", question, ".gpus");
	for (size_t i = 0; i < a->n; i++) {
		putc(',', out);
		if ((f = answer(&a->outcome[i].asked, question)))
			fprintf(out, "%" PRId64, f->gpus);
	}
	putc('\n', out);
	for (size_t k = 0; k < sizeof(figures) / sizeof(*figures); k++) {
		key(out, "fleet", question, figures[k].suffix);
		for (size_t i = 0; i < a->n; i++) {
			putc(',', out);
			if ((f = answer(&a->outcome[i].asked, question)))
				fprintf(out, "%.12g",
					*(const double *)((const char *)f +
							  figures[k].at));
		}
		putc('\n', out);
	}
	for (int l = 0; l < FT_LIMITS; l++) {
		char suffix[32];

		snprintf(suffix, sizeof(suffix), ".beyond.%s",
			 ft_limit_name((enum ft_limit)l));
		key(out, "fleet", question, suffix);
		for (size_t i = 0; i < a->n; i++) {
			putc(',', out);
			if ((f = answer(&a->outcome[i].asked, question)))
				putc(f->beyond[l] ? '1' : '0', out);
		}
		putc('\n', out);
	}
}

/* Scenarios may be asked different things: each question once. */
static void fleets(FILE *out, const struct ft_answers *a)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t q = 0; q < a->outcome[i].asked.n; q++) {
			const char *question = a->outcome[i].asked.fleet[q].question;
			bool said = false;

			for (size_t j = 0; j < i && !said; j++)
				for (size_t k = 0; k < a->outcome[j].asked.n; k++)
					said |= strcmp(a->outcome[j]
							       .asked.fleet[k]
							       .question,
						       question) == 0;
			if (!said)
				fleet(out, a, question);
		}
}

void money_csv(FILE *out, const struct ft_answers *a)
{
	const struct ft_verdict *v = a->verdict;

	for (int p = 0; v && p < FT_COST_PARTS; p++) {
		key(out, "difference", ft_part_of_cost_name((enum ft_part_of_cost)p),
		    "");
		for (size_t i = 0; i < a->n; i++)
			fprintf(out, ",%.12g", v->part_usd[i][p]);
		putc('\n', out);
	}
	if (v) {
		odds(out, &v->odds);
		crossovers(out, v, a->n);
	}
	fleets(out, a);
}
