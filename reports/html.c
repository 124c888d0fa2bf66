/*
 * reports/html.c - the report: one page that needs no network
 *
 * Plots are SVG inside data: addresses. The exact JSON of the answer lies in the
 * page, in the element `answer`; tables show it rounded. Narrow screens get one
 * column and tables that scroll by themselves.
 */
#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "reports/evidence.h"
#include "reports/html_plots.h"
#include "reports/json.h"
#include "reports/prices.h"
#include "reports/show.h"

struct page {
	FILE *out;
	struct arena *mem;
	const struct ft_answers *a;
};

/* The one way of a text that is not ours into the page. */
static void text(FILE *out, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			putc(*s, out);
		}
}

static void base64(FILE *out, const char *s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq"
				     "rstuvwxyz0123456789+/";
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)(unsigned char)s[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)(unsigned char)s[i + 1] << 8;
		if (i + 2 < n)
			v |= (unsigned char)s[i + 2];
		putc(digits[v >> 18], out);
		putc(digits[v >> 12 & 63], out);
		putc(i + 1 < n ? digits[v >> 6 & 63] : '=', out);
		putc(i + 2 < n ? digits[v & 63] : '=', out);
	}
}

/* "h100, mi300x" */
static void titles(struct page *p)
{
	for (size_t i = 0; i < p->a->n; i++) {
		fputs(i ? ", " : "", p->out);
		text(p->out, p->a->label[i]);
	}
	fputs(": foretoken report", p->out);
}

static void head(struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, "
	      "initial-scale=1\">\n<title>",
	      p->out);
	titles(p);
	fputs("</title>\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
	      "body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:60rem;"
	      "margin:0 auto;padding:1rem}\n"
	      "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}\n"
	      "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
	      "th,td{padding:.25rem .75rem;text-align:left;border-bottom:1px solid "
	      "#ddd}\ntd,th+th{text-align:right;white-space:nowrap}"
	      "th{font-weight:400}tr:first-child th{font-weight:600}td:first-child{text-align:left}\n"
	      ".wide{overflow-x:auto}\nimg{max-width:100%;height:auto}\n"
	      "@media(max-width:40rem){p:has(img){overflow-x:auto}img{max-width:none;"
	      "width:36rem}th,td{padding:.25rem .4rem}}\n"
	      ".bad{color:#b00020;font-weight:600}\n.note{color:#555;font-size:.9rem}\n"
	      "@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}"
	      "th,td{border-color:#444}.note{color:#aaa}img{background:#fff}}\n"
	      "</style>\n</head>\n<body>\n<h1>",
	      p->out);
	text(p->out, p->a->scenario[0]->model->name);
	fputs(": what it trains at, why, and what it costs</h1>\n", p->out);
}

/* One row: a name, and one cell for each scenario. */
static void row(struct page *p, const struct ft_outcome_field *f)
{
	double largest = 0;
	struct shown as;
	char buf[SHOWN];

	for (size_t i = 0; i < p->a->n; i++)
		largest =
			fmax(largest, fabs(ft_outcome_at(&p->a->outcome[i], f->value)));
	as = shown_as(f->show, largest);
	fprintf(p->out, "<tr><th scope=\"row\">%s%s%s</th>", f->label,
		as.unit[0] ? ", " : "", as.unit);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		fprintf(p->out,
			"<td data-key=\"%s\" data-scenario=\"%zu\" "
			"data-scale=\"%g\">%s</td>",
			f->key, i, as.scale,
			shown_number(&as, ft_outcome_at(o, f->value), buf));
	}
	fputs("</tr>\n", p->out);
	if (!f->high)
		return;
	fputs("<tr class=\"note\"><th scope=\"row\">P10 to P90</th>", p->out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		fprintf(p->out, "<td>%s to ",
			shown_number(&as, ft_outcome_at(o, f->low), buf));
		fprintf(p->out, "%s</td>",
			shown_number(&as, ft_outcome_at(o, f->high), buf));
	}
	fputs("</tr>\n", p->out);
}

/* The rows whose keys begin with head, or that do not when head is NULL. */
static void rows(struct page *p, const char *head)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		bool part = !strncmp(f[i].key, "breakdown_s.", 12);

		if (f[i].label && part == (head != NULL))
			row(p, &f[i]);
	}
}

static void table_head(struct page *p, const char *name)
{
	fprintf(p->out, "<div class=\"wide\"><table>\n<tr><th>%s</th>", name);
	for (size_t i = 0; i < p->a->n; i++) {
		fputs("<th>", p->out);
		text(p->out, p->a->label[i]);
		fputs("</th>", p->out);
	}
	fputs("</tr>\n", p->out);
}

static void table_end(struct page *p)
{
	fputs("</table></div>\n", p->out);
}

static void answers(struct page *p)
{
	fputs("<h2>The answer</h2>\n", p->out);
	table_head(p, "result");
	rows(p, NULL);
	fputs("<tr><th scope=\"row\">fits in memory</th>", p->out);
	for (size_t i = 0; i < p->a->n; i++)
		fputs(p->a->outcome[i].fits ? "<td>yes</td>" :
					      "<td class=\"bad\">no</td>",
		      p->out);
	fputs("</tr>\n", p->out);
	table_end(p);
	for (size_t i = 0; i < p->a->n; i++) {
		fputs("<p><b>", p->out);
		text(p->out, p->a->label[i]);
		fputs(":</b> ", p->out);
		text(p->out, p->a->outcome[i].bottleneck);
		fputs("</p>\n", p->out);
	}
}

static void breakdown(struct page *p)
{
	table_head(p, "part of a step");
	rows(p, "breakdown_s");
	table_end(p);
}

/* The model's size, the date of the prices, the program and its command line. */
static void about(struct page *p)
{
	const struct ft_scenario *s = p->a->scenario[0];

	fprintf(p->out, "%.4g B parameters; prices of ",
		ft_model_parameters(s->model, 1) * 1e-9);
	text(p->out, s->prices->date);
	fprintf(p->out, "; foretoken %s: ", ft_version());
	text(p->out, p->a->command);
}

static void settings(struct page *p)
{
	struct ft_settings *all = ft_study_settings(p->a->scenario, p->a->n);

	if (p->a->n > 1) {
		fputs("<h2>What differs</h2>\n", p->out);
		table_head(p, "key");
		for (size_t i = 0; i < all->n; i++) {
			if (!all->setting[i].differs)
				continue;
			fputs("<tr><th scope=\"row\">", p->out);
			text(p->out, all->setting[i].key);
			fputs("</th>", p->out);
			for (size_t k = 0; k < p->a->n; k++) {
				fputs("<td>", p->out);
				text(p->out, all->setting[i].value[k]);
				fputs("</td>", p->out);
			}
			fputs("</tr>\n", p->out);
		}
		table_end(p);
	}
	fprintf(p->out, "<h2>%s</h2>\n<p class=\"note\">",
		p->a->n > 1 ? "The same in all" : "What was asked");
	for (size_t i = 0; i < all->n; i++) {
		if (all->setting[i].differs)
			continue;
		text(p->out, all->setting[i].key);
		fputs(" <b>", p->out);
		text(p->out, all->setting[i].value[0]);
		fputs("</b>; ", p->out);
	}
	about(p);
	fputs("</p>\n", p->out);
	ft_settings_free(all);
}

static void heading(struct page *p, size_t i)
{
	fputs("<h3>", p->out);
	text(p->out, p->a->label[i]);
	fputs("</h3>\n", p->out);
}

static void items(struct page *p)
{
	fputs("<h2>Largest items of a rank's step</h2>\n", p->out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_run *run = p->a->outcome[i].run;
		char buf[64];

		heading(p, i);
		fputs("<div class=\"wide\"><table><tr>"
		      "<th>item</th><th>count</th><th>time</th></tr>\n",
		      p->out);
		for (size_t k = 0; k < run->n_shares && k < 12; k++) {
			fputs("<tr><td>", p->out);
			text(p->out, run->share[k].name);
			fprintf(p->out, "%s</td><td>%.0f</td><td>%s</td></tr>\n",
				run->share[k].extrapolated ? " <i>(extrapolated)</i>" :
							     "",
				run->share[k].count,
				quantity_text(run->share[k].time_s, DIM_S, buf,
					      sizeof(buf)));
		}
		table_end(p);
	}
}

static void source(struct page *p, const char *what, const struct ft_provenance *from)
{
	fprintf(p->out, "<li>%s: ", what);
	if (from) {
		text(p->out, ft_provenance_kind_name(from->kind));
		fputs(". ", p->out);
		text(p->out, from->source);
		fputs(" ", p->out);
		text(p->out, from->date);
		fputs(" ", p->out);
		text(p->out, from->note);
	}
	fputs("</li>\n", p->out);
}

static void sources(struct page *p)
{
	fputs("<h2>Where the numbers come from</h2>\n", p->out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_scenario *s = p->a->scenario[i];

		heading(p, i);
		fputs("<ul class=\"note\">\n", p->out);
		source(p, "GPU profile", s->cluster->gpu->from);
		source(p, "software stack", s->stack->from);
		fputs("<li>", p->out);
		text(p->out, prices_said(p->mem, p->a->outcome[i].bom, s->prices));
		fputs("</li>\n", p->out);
		fprintf(p->out,
			"<li>%.0f %% of the kernel time is for shapes far from "
			"anything measured.</li>\n<li>assumed, as the scenario does not give "
			"them: ",
			100 * p->a->outcome[i].extrapolated_frac);
		for (size_t k = 0; k < s->n_assumed; k++) {
			fputs(k ? ", " : "", p->out);
			text(p->out, s->assumed[k]);
		}
		fputs("</li></ul>\n", p->out);
	}
}

static void nearest(struct page *p)
{
	char words[SENTENCE];
	const char *said;

	fputs("<h2>How far to trust it</h2>\n", p->out);
	if (p->a->n > 1 && evidence_warning(p->a, words)) {
		fputs("<p>", p->out);
		text(p->out, words);
		fputs("</p>\n", p->out);
	}
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		heading(p, i);
		fputs("<div class=\"wide\"><table><tr><th>nearest measured run</th>"
		      "<th>error</th><th>distance</th><th>there</th>"
		      "<th>source</th></tr>\n",
		      p->out);
		for (size_t k = 0; k < o->n_nearest; k++) {
			fputs("<tr><td>", p->out);
			text(p->out, o->nearest[k].id);
			fprintf(p->out, "</td><td>%+.1f %%</td><td>%.2f</td><td>",
				100 * o->nearest[k].error_frac, o->nearest[k].distance);
			text(p->out, o->nearest[k].differs);
			fputs("</td><td>", p->out);
			text(p->out, o->nearest[k].source);
			fputs("</td></tr>\n", p->out);
		}
		table_end(p);
		for (int k = 0;
		     (said = evidence_sentence(p->a->scenario[i], o, k, words)); k++) {
			fputs("<p class=\"note\">", p->out);
			text(p->out, said);
			fputs("</p>\n", p->out);
		}
	}
}

static bool picture(struct page *p, const char *alt, const char *svg)
{
	if (!svg)
		return false;
	fprintf(p->out, "<p><img alt=\"%s\" src=\"data:image/svg+xml;base64,", alt);
	base64(p->out, svg);
	fputs("\"></p>\n", p->out);
	return true;
}

static bool exact(struct page *p, struct ft_error *err)
{
	json_t *list = json_array();
	char *dump;

	for (size_t i = 0; i < p->a->n; i++)
		json_array_append_new(list, json_of_outcome(p->a->scenario[i],
							    &p->a->outcome[i],
							    p->a->label[i]));
	dump = json_dumps(list,
			  JSON_COMPACT | JSON_REAL_PRECISION(12) | JSON_ESCAPE_SLASH);
	fputs("<script type=\"application/json\" id=\"answer\">", p->out);
	for (const char *s = dump; s && *s; s++) /* a < stands in strings alone */
		if (*s == '<')
			fputs("\\u003c", p->out);
		else
			putc(*s, p->out);
	fputs("</script>\n", p->out);
	free(dump);
	json_decref(list);
	return dump != NULL || ft_fail(err, NULL, "out of memory");
}

static bool body(struct page *p, const char *dir, struct ft_error *err)
{
	struct plots q = { .mem = p->mem, .dir = dir, .a = p->a };

	answers(p);
	settings(p);
	fputs("<h2>Where a step goes</h2>\n", p->out);
	if (!picture(p, "parts of a step, stacked", plot_breakdown(&q, err)))
		return false;
	breakdown(p);
	items(p);
	fputs("<h2>Scaling</h2>\n<p class=\"note\">The same plan on more and fewer "
	      "GPUs, the batch growing with them.</p>\n",
	      p->out);
	if (!picture(p, "tokens/s against GPUs", plot_scaling(&q, err)))
		return false;
	fputs("<h2>What a million tokens costs</h2>\n", p->out);
	if (!picture(p, "cost of a million tokens by part", plot_cost(&q, err)))
		return false;
	fputs("<h2>What moves the cost</h2>\n<p class=\"note\">One input at a time, "
	      "low and high.</p>\n",
	      p->out);
	for (size_t i = 0; i < p->a->n; i++)
		if (!picture(p, "sensitivity of the cost",
			     plot_sensitivity(&q, i, err)))
			return false;
	nearest(p);
	sources(p);
	return exact(p, err);
}

bool ft_report_html(const char *dir, const struct ft_answers *answers,
		    struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct file_out f;
	struct page p = { .mem = &mem, .a = answers };
	bool ok;

	if (!file_folder(dir, err))
		return false;
	if (!file_begin(&f, arena_printf(&mem, "%s/index.html", dir), err)) {
		arena_release(&mem);
		return false;
	}
	p.out = f.out;
	head(&p);
	ok = body(&p, dir, err);
	fputs("</body>\n</html>\n", p.out);
	if (ok)
		ok = file_commit(&f, err);
	else
		file_abandon(&f);
	arena_release(&mem);
	return ok;
}
