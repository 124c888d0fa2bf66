/*
 * reports/html.h - the HTML report: what its parts share
 *
 * Everything that is not ours goes through html_text. Each html_* of a slot writes what stands
 * for {{NAME}} in reports/page/report.html; false with *err when it cannot.
 */
#ifndef REPORTS_HTML_H
#define REPORTS_HTML_H

#include "foretoken/reports.h"

struct arena;

struct page {
	FILE *out;
	struct arena *mem;
	const char *dir;
	const struct ft_answers *a;
	struct ft_error *err;
};

/* A text of others, made safe. */
void html_text(const struct page *p, const char *text);

/* A table that scrolls by itself; name: of its first column, caption: what it shows. */
void html_table(const struct page *p, const char *caption, const char *name);
/* The same with columns of one's own: n names, "text" columns flush left by a leading '<'. */
void html_columns(const struct page *p, const char *caption, const char *const *name,
		  size_t n);
void html_table_end(const struct page *p);
/* A row's name. */
void html_row(const struct page *p, const char *name);
void html_row_end(const struct page *p);
/* "<h3>LABEL</h3>" where several scenarios are shown. */
void html_heading(const struct page *p, size_t scenario);

/* An SVG as a picture; what the alternative text says is the finding. NULL svg: false. */
bool html_picture(const struct page *p, const char *alt, const char *svg);

/* reports/html_answer.c: the first screen */
bool html_verdict(struct page *p);
bool html_numbers(struct page *p);
bool html_fleets(struct page *p);
bool html_reasons(struct page *p);
bool html_crossovers(struct page *p);
bool html_tornado(struct page *p);

/* reports/html_step.c: the step */
bool html_answers(struct page *p);
bool html_breakdown(struct page *p);
bool html_items(struct page *p);
bool html_memory(struct page *p);
bool html_scaling(struct page *p);
bool html_differs(struct page *p);
bool html_settings(struct page *p);

/* reports/html_money.c: the purchase */
bool html_network(struct page *p);
bool html_bill(struct page *p);
bool html_cash(struct page *p);

/* reports/html_trust.c: evidence and sources */
bool html_trust(struct page *p);
bool html_sources(struct page *p);
bool html_words(struct page *p);

#endif
