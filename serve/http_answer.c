/* serve/http_answer.c - responses: pages, answers, errors, and the headers of all of them */
#include "foretoken/reports.h"

#ifdef FORETOKEN_HTTP
#include "serve/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "serve/page.h"

static const char json[] = "application/json";

/* Nothing from elsewhere is loaded, and nobody frames the page or reads its answers. */
static void head(const struct mhd *mhd, struct MHD_Response *r, const char *type)
{
	mhd->add_response_header(r, "Content-Type", type);
	mhd->add_response_header(r, "Cache-Control", "no-store");
	mhd->add_response_header(r, "X-Content-Type-Options", "nosniff");
	mhd->add_response_header(r, "Referrer-Policy", "no-referrer");
	mhd->add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	mhd->add_response_header(
		r, "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; "
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
		"form-action 'none'; frame-ancestors 'none'");
}

static enum MHD_Result queue(const struct wire *w, unsigned status,
			     struct MHD_Response *r, const char *type)
{
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	head(w->mhd, r, type);
	ok = w->mhd->queue_response(w->connection, status, r);
	w->mhd->destroy_response(r);
	return ok;
}

static const struct page {
	const char *path, *type, *text; /* NULL: the report's style */
} pages[] = {
	{ "/", "text/html; charset=utf-8", serve_index_html },
	{ "/report.css", "text/css; charset=utf-8", NULL },
	{ "/page.css", "text/css; charset=utf-8", serve_page_css },
	{ "/page.js", "text/javascript; charset=utf-8", serve_page_js },
	{ "/form.js", "text/javascript; charset=utf-8", serve_form_js },
	{ "/answer.js", "text/javascript; charset=utf-8", serve_answer_js },
	{ "/plan.js", "text/javascript; charset=utf-8", serve_plan_js },
	{ "/draw.js", "text/javascript; charset=utf-8", serve_draw_js },
	{ "/api/openapi.json", json, serve_openapi_json },
};

static const struct page *page_at(const char *path)
{
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (!strcmp(path, pages[i].path))
			return &pages[i];
	return NULL;
}

bool http_has_page(const char *path)
{
	return page_at(path) != NULL;
}

enum MHD_Result http_page(const struct wire *w, const char *path)
{
	const struct page *p = page_at(path);
	const char *text = p->text ? p->text : ft_report_style();

	return queue(w, MHD_HTTP_OK,
		     w->mhd->create_response_from_buffer(strlen(text),
							 (void *)(uintptr_t)text,
							 MHD_RESPMEM_PERSISTENT),
		     p->type);
}

enum MHD_Result http_file(const struct wire *w, unsigned status, const char *as, int fd)
{
	struct MHD_Response *r = NULL;
	struct stat st;
	char name[100];

	if (!fstat(fd, &st))
		r = w->mhd->create_response_from_fd((size_t)st.st_size, fd);
	if (!r) {
		close(fd);
		return MHD_NO;
	}
	if (as && status == MHD_HTTP_OK) {
		snprintf(name, sizeof(name), "attachment; filename=\"%s\"", as);
		w->mhd->add_response_header(r, "Content-Disposition", name);
	}
	return queue(w, status, r, json);
}

/* What is there from `at` on; when there is no more, it waits until it is told. */
static ssize_t read_events(void *context, uint64_t at, char *to, size_t most)
{
	struct call *call = context;
	ssize_t n = pread(call->worker.answer, to, most, (off_t)at);

	if (n > 0)
		return n;
	if (n < 0 || call->state == CALL_ENDED)
		return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR :
			       MHD_CONTENT_READER_END_OF_STREAM;
	call->waits = true;
	call->wire.mhd->suspend_connection(call->wire.connection);
	return 0;
}

enum MHD_Result http_stream(struct call *call)
{
	enum { BLOCK = 4096 };

	call->flows = true;
	return queue(&call->wire, MHD_HTTP_OK,
		     call->wire.mhd->create_response_from_callback(
			     MHD_SIZE_UNKNOWN, BLOCK, read_events, call, NULL),
		     "text/event-stream");
}

void http_stream_fail(struct call *call, const char *why)
{
	struct ft_error err = { 0 };
	int fd = dup(call->worker.answer);
	struct api_stream to = { fd < 0 ? NULL : fdopen(fd, "w"), -1, 0 };
	char *text = NULL;
	size_t n = 0;
	FILE *out = allocated(open_memstream(&text, &n));

	snprintf(err.text, sizeof(err.text), "%s", why);
	api_error(out, &err);
	memory_close(out, &text);
	if (to.out) {
		api_event(&to, "error", text);
		fclose(to.out);
	} else if (fd >= 0) {
		close(fd);
	}
	free(text);
}

enum MHD_Result http_error(const struct wire *w, unsigned status, const char *fmt, ...)
{
	struct ft_error err = { 0 };
	struct MHD_Response *r;
	char *text = NULL;
	size_t n = 0;
	FILE *out = allocated(open_memstream(&text, &n));
	va_list args;

	va_start(args, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, args);
	va_end(args);
	api_error(out, &err);
	memory_close(out, &text);
	r = w->mhd->create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(text);
	else if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		w->mhd->add_response_header(r, "Retry-After", "1");
	else if (status == MHD_HTTP_UNAUTHORIZED)
		w->mhd->add_response_header(r, "WWW-Authenticate", "Bearer");
	return queue(w, status, r, json);
}

enum MHD_Result http_admit(const struct wire *w, const char *token)
{
	char none[] = "";
	struct MHD_Response *r =
		w->mhd->create_response_from_buffer(0, none, MHD_RESPMEM_MUST_COPY);
	char cookie[GUARD_TOKEN + 80];

	if (!r)
		return MHD_NO;
	snprintf(cookie, sizeof(cookie),
		 "foretoken=%s; Path=/; HttpOnly; SameSite=Strict", token);
	w->mhd->add_response_header(r, "Set-Cookie", cookie);
	w->mhd->add_response_header(r, "Location", "/");
	return queue(w, MHD_HTTP_SEE_OTHER, r, "text/plain");
}
#endif
