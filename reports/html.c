/*
 * reports/html.c - the report: one page that needs no network
 *
 * Plots are SVG inside data: addresses. The exact JSON of the answer lies in the
 * page, in the element `answer`; tables show it rounded. Narrow screens get one
 * column and tables that scroll by themselves.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/quantity.h"
#include "reports/html_plots.h"
#include "reports/json.h"

struct page {
	FILE *out;
	struct arena *mem;
	const struct ft_scenario *const *scenario;
	const struct ft_outcome *outcome;
	size_t n;
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

static void head(struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, "
	      "initial-scale=1\">\n<title>foretoken report</title>\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
	      "body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:60rem;"
	      "margin:0 auto;padding:1rem}\n"
	      "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}\n"
	      "table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
	      "th,td{padding:.25rem .75rem;text-align:left;border-bottom:1px solid "
	      "#ddd}\ntd+td,th+th{text-align:right}"
	      "td+td:not(.range){white-space:nowrap}\n"
	      ".wide{overflow-x:auto}\nimg{max-width:100%;height:auto}\n"
	      "@media(max-width:40rem){p:has(img){overflow-x:auto}img{max-width:none;"
	      "width:36rem}th,td{padding:.25rem .4rem}}\n"
	      ".bad{color:#b00020;font-weight:600}\n.note{color:#555;font-size:.9rem}\n"
	      "@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}"
	      "th,td{border-color:#444}.note{color:#aaa}img{background:#fff}}\n"
	      "</style>\n</head>\n<body>\n<h1>",
	      p->out);
	text(p->out, p->scenario[0]->model->name);
	fputs(": what it trains at, why, and what it costs</h1>\n", p->out);
}

/* One row: a name, and one cell for each scenario. */
static void row(struct page *p, const char *name, const char *key, enum dimension dim,
		const char *fmt, double scale)
{
	char buf[64];

	fprintf(p->out, "<tr><td>%s</td>", name);
	for (size_t i = 0; i < p->n; i++) {
		double v = 0;

		(void)ft_outcome_get(&p->outcome[i], key, &v);
		if (fmt) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(buf, sizeof(buf), fmt, v * scale);
#pragma GCC diagnostic pop
		} else {
			quantity_text(v, dim, buf, sizeof(buf));
		}
		fprintf(p->out, "<td data-key=\"%s\" data-scenario=\"%zu\">%s</td>",
			key, i, buf);
	}
	fputs("</tr>\n", p->out);
}

static void table_head(struct page *p, const char *name)
{
	fprintf(p->out, "<div class=\"wide\"><table>\n<tr><th>%s</th>", name);
	for (size_t i = 0; i < p->n; i++) {
		const struct ft_scenario *s = p->scenario[i];

		fprintf(p->out, "<th>%" PRId64 " ", s->cluster->gpus);
		text(p->out, s->cluster->gpu->name);
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
	table_head(p, "");
	row(p, "tokens per second", "tokens_per_s", DIM_NONE, "%.0f", 1);
	row(p, "tokens per second and GPU", "tokens_per_s_per_gpu", DIM_NONE, "%.1f",
	    1);
	row(p, "dollars per million tokens", "cost.usd_per_million_tokens", DIM_NONE,
	    "%.4f", 1);
	row(p, "dollars per GPU-hour", "cost.usd_per_gpu_hour", DIM_NONE, "%.3f", 1);
	row(p, "joules per token", "cost.joules_per_token", DIM_NONE, "%.3f", 1);
	row(p, "capital", "cost.capex_usd", DIM_USD, NULL, 1);
	row(p, "step", "step_s", DIM_S, NULL, 1);
	row(p, "MFU, %", "mfu", DIM_NONE, "%.1f", 100);
	row(p, "memory per GPU", "memory_bytes_per_gpu.total", DIM_BYTES, NULL, 1);
	fputs("<tr><td>fits in memory</td>", p->out);
	for (size_t i = 0; i < p->n; i++)
		fputs(p->outcome[i].fits ? "<td>yes</td>" : "<td class=\"bad\">no</td>",
		      p->out);
	fputs("</tr>\n<tr><td>tokens per second, P10 to P90</td>", p->out);
	for (size_t i = 0; i < p->n; i++)
		fprintf(p->out, "<td class=\"range\">%.0f to %.0f</td>",
			p->outcome[i].tokens_low_per_s,
			p->outcome[i].tokens_high_per_s);
	fputs("</tr>\n", p->out);
	table_end(p);
	for (size_t i = 0; i < p->n; i++) {
		fputs("<p><b>", p->out);
		text(p->out, p->scenario[i]->cluster->gpu->name);
		fputs(":</b> ", p->out);
		text(p->out, p->outcome[i].bottleneck);
		fputs("</p>\n", p->out);
	}
}

static void breakdown(struct page *p)
{
	table_head(p, "part of a step");
	row(p, "compute", "breakdown_s.compute", DIM_S, NULL, 1);
	row(p, "exposed communication", "breakdown_s.exposed_communication", DIM_S,
	    NULL, 1);
	row(p, "pipeline bubble", "breakdown_s.bubble", DIM_S, NULL, 1);
	row(p, "host", "breakdown_s.host", DIM_S, NULL, 1);
	row(p, "optimizer", "breakdown_s.optimizer", DIM_S, NULL, 1);
	table_end(p);
}

static void heading(struct page *p, size_t scenario)
{
	fputs("<h3>", p->out);
	text(p->out, p->scenario[scenario]->cluster->gpu->name);
	fputs("</h3>\n", p->out);
}

static void items(struct page *p)
{
	fputs("<h2>Largest items of a rank's step</h2>\n", p->out);
	for (size_t i = 0; i < p->n; i++) {
		const struct ft_run *run = p->outcome[i].run;
		char buf[64];

		heading(p, i);
		fputs("<div class=\"wide\"><table><tr><th>item</th><th>count</th>"
		      "<th>time</th></tr>\n",
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
	for (size_t i = 0; i < p->n; i++) {
		const struct ft_scenario *s = p->scenario[i];

		heading(p, i);
		fputs("<ul class=\"note\">\n", p->out);
		source(p, "GPU profile", s->cluster->gpu->from);
		source(p, "software stack", s->stack->from);
		source(p, "prices", s->prices->from);
		fprintf(p->out,
			"<li>%.0f %% of the kernel time lies far from "
			"anything measured.</li>\n<li>assumed, as nobody gave "
			"them: ",
			100 * p->outcome[i].extrapolated_frac);
		for (size_t k = 0; k < s->n_assumed; k++) {
			fputs(k ? ", " : "", p->out);
			text(p->out, s->assumed[k]);
		}
		fputs("</li></ul>\n", p->out);
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

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(list,
				      json_of_outcome(p->scenario[i], &p->outcome[i]));
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
	struct plots q = { .mem = p->mem,
			   .dir = dir,
			   .scenario = p->scenario,
			   .outcome = p->outcome,
			   .n = p->n };

	answers(p);
	fputs("<h2>Where a step goes</h2>\n", p->out);
	if (!picture(p, "parts of a step, stacked", plot_breakdown(&q, err)))
		return false;
	breakdown(p);
	items(p);
	fputs("<h2>Scaling</h2>\n<p class=\"note\">The same plan on more and fewer "
	      "GPUs, the batch growing with them.</p>\n",
	      p->out);
	if (!picture(p, "tokens per second against GPUs", plot_scaling(&q, err)))
		return false;
	fputs("<h2>What a million tokens costs</h2>\n", p->out);
	if (!picture(p, "cost of a million tokens by part", plot_cost(&q, err)))
		return false;
	fputs("<h2>What moves the cost</h2>\n<p class=\"note\">One input at a time, "
	      "low and high.</p>\n",
	      p->out);
	for (size_t i = 0; i < p->n; i++)
		if (!picture(p, "sensitivity of the cost",
			     plot_sensitivity(&q, i, err)))
			return false;
	sources(p);
	return exact(p, err);
}

bool ft_report_html(const char *dir, const struct ft_scenario *const *scenario,
		    const struct ft_outcome *outcome, size_t n, struct ft_error *err)
{
	struct ft_mark at = { dir, 0, 0 };
	struct arena mem = { 0 };
	struct file_out f;
	struct page p = {
		.mem = &mem, .scenario = scenario, .outcome = outcome, .n = n
	};
	bool ok;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return ft_fail(err, &at, "cannot be made: %s", strerror(errno));
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
