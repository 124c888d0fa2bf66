/*
 * reports/page.h - the report's page, style and script: files of reports/page/, embedded by the
 * build
 *
 * In the page {{NAME}} stands for what reports/html.c writes there, and what is between
 * {{#NAME}} and {{/NAME}} is left out where NAME does not hold.
 */
#ifndef REPORTS_PAGE_H
#define REPORTS_PAGE_H

extern const char page_report_html[], page_report_css[], page_report_js[];

#endif
