/* serve/page.h - the files of serve/page/, embedded by the build */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

extern const char serve_index_html[], serve_page_css[], serve_page_js[],
	serve_answer_js[], serve_draw_js[], serve_form_js[], serve_plan_js[],
	serve_openapi_json[];

#endif
