/* serve/http_call.c - a request from its head to its answer */
#include "base/clock.h"
#include "base/limits.h"

#ifdef FORETOKEN_HTTP
#include "serve/http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"

static const char *header(const struct wire *w, const char *name)
{
	return w->mhd->lookup_connection_value(w->connection, MHD_HEADER_KIND, name);
}

static struct peer *peer_of(const struct wire *w)
{
	const union MHD_ConnectionInfo *info = w->mhd->get_connection_info(
		w->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Whoever keeps connections without asking anything does not keep others out: beyond those that are to be free the one that has been
 * without a whole request for longest is ended. */
static void make_room(const struct server *s)
{
	struct peer *longest = NULL;
	size_t n = 0;

	for (struct peer *p = s->peers; p; p = p->next) {
		n += !p->ended;
		if (!p->ended && !p->whole &&
		    (!longest || p->until_s <= longest->until_s))
			longest = p;
	}
	if (n <= LIMIT_SERVE_CONNECTIONS - LIMIT_SERVE_SPARE || !longest)
		return;
	longest->ended = true;
	shutdown(longest->fd, SHUT_RDWR);
}

void http_connected(void *server, struct MHD_Connection *c, void **context,
		    enum MHD_ConnectionNotificationCode what)
{
	struct server *s = server;
	struct peer *p = *context;
	const union MHD_ConnectionInfo *fd;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		fd = s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		p = allocated(calloc(1, sizeof(*p)));
		p->fd = fd ? fd->connect_fd : -1;
		p->until_s = clock_now_s() + LIMIT_SERVE_REQUEST_S;
		p->next = s->peers;
		p->at = &s->peers;
		if (p->next)
			p->next->at = &p->next;
		s->peers = p;
		*context = p;
		make_room(s);
	} else if (p) {
		*p->at = p->next;
		if (p->next)
			p->next->at = p->at;
		free(p);
	}
}

/* ---- may it ask? ------------------------------------------------------------------ */

/* MHD_YES: it may, and nothing was said; else *done is set and the answer is queued. */
static enum MHD_Result guarded(struct server *s, const struct wire *w, const char *url,
			       bool *done)
{
	const struct guard_request q = {
		.host = header(w, "Host"),
		.origin = header(w, "Origin"),
		.fetch_site = header(w, "Sec-Fetch-Site"),
		.authorization = header(w, "Authorization"),
		.cookie = header(w, "Cookie"),
	};
	const char *given = w->mhd->lookup_connection_value(
		w->connection, MHD_GET_ARGUMENT_KIND, "token");

	*done = true;
	if (!guard_host(q.host, s->machine))
		return http_error(
			w, MHD_HTTP_FORBIDDEN,
			"the Host of this request is not this machine; open the "
			"address that serve printed");
	/* the link that serve printed may be clicked anywhere */
	if (*s->token && given && !strcmp(url, "/") && guard_same(given, s->token))
		return http_admit(w, s->token);
	if (!guard_origin(&q) && (strcmp(url, "/") != 0 || q.origin))
		return http_error(
			w, MHD_HTTP_FORBIDDEN,
			"this request comes from a page of another origin; open "
			"the address that serve printed");
	if (*s->token && !guard_token(&q, s->token))
		return http_error(
			w, MHD_HTTP_UNAUTHORIZED,
			"a token is wanted; open the address that serve printed, "
			"or send the header Authorization: Bearer TOKEN");
	*done = false;
	return MHD_YES;
}

/* Of the head alone: is there such a path, is it asked for in its way, is it small? */
static enum MHD_Result routed(const struct wire *w, const char *url, const char *method,
			      bool *done)
{
	const struct api_call *api = api_find(url);
	bool get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	const char *length = header(w, "Content-Length");

	*done = true;
	if (!api && !http_has_page(url))
		return http_error(
			w, MHD_HTTP_NOT_FOUND,
			"there is nothing at this path; GET /api/openapi.json "
			"lists what there is");
	if (api && api->posted ? strcmp(method, "POST") != 0 : !get)
		return http_error(w, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "this path is asked for with %s",
				  api && api->posted ? "POST" : "GET");
	if (length && strtoull(length, NULL, 10) > LIMIT_SERVE_BODY_BYTES)
		return http_error(w, MHD_HTTP_CONTENT_TOO_LARGE,
				  "the body is larger than %d bytes; ask the command "
				  "instead",
				  (int)LIMIT_SERVE_BODY_BYTES);
	*done = false;
	return MHD_YES;
}

/* ---- body, worker, answer ----------------------------------------------------------- */

static struct call *call_new(struct server *s, const struct wire *w, const char *url)
{
	struct call *call = allocated(calloc(1, sizeof(*call)));

	call->wire = *w;
	call->peer = peer_of(w);
	call->api = api_find(url);
	call->next = s->calls;
	call->at = &s->calls;
	if (call->next)
		call->next->at = &call->next;
	s->calls = call;
	return call;
}

static void add(struct call *call, const char *upload, size_t n)
{
	if (call->n + n > LIMIT_SERVE_BODY_BYTES)
		call->too_large = true;
	if (call->too_large)
		return;
	if (call->n + n > call->cap) {
		call->cap = 2 * (call->n + n);
		call->body = allocated(realloc(call->body, call->cap));
	}
	memcpy(call->body + call->n, upload, n);
	call->n += n;
}

static enum MHD_Result begin(struct server *s, struct call *call)
{
	const struct api_text body = { call->body ? call->body : "", call->n };
	struct ft_error err;

	if (call->too_large)
		return http_error(&call->wire, MHD_HTTP_CONTENT_TOO_LARGE,
				  "the body is larger than %d bytes; ask the command "
				  "instead",
				  (int)LIMIT_SERVE_BODY_BYTES);
	if (s->working >= LIMIT_SERVE_WORKERS)
		return http_error(
			&call->wire, MHD_HTTP_SERVICE_UNAVAILABLE,
			"%d answers are being computed; try again in a second",
			(int)LIMIT_SERVE_WORKERS);
	if (call->api->stream && s->searching >= LIMIT_SERVE_PLANS)
		return http_error(
			&call->wire, MHD_HTTP_SERVICE_UNAVAILABLE,
			"%d searches are running; try again when one has ended",
			(int)LIMIT_SERVE_PLANS);
	if (!worker_start(&call->worker, call->api, &body, &s->signals, clock_now_s(),
			  &err))
		return http_error(&call->wire, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
				  err.text);
	s->working++;
	s->searching += call->api->stream != NULL;
	call->state = CALL_WORKS;
	if (call->peer)
		call->peer->working = true;
	call->wire.mhd->suspend_connection(call->wire.connection);
	return MHD_YES;
}

static const char broken[] =
	"computing this ended without an answer, which is a mistake of foretoken; please "
	"report it with the scenario";

static void end_worker(struct server *s, struct call *call, bool late)
{
	call->end = worker_finish(&call->worker, late, &call->why);
	call->state = CALL_ENDED;
	s->working--;
	s->searching -= call->api->stream != NULL;
}

/* Its connection goes on, unless it does already. */
static void resume(struct call *call)
{
	bool waits = !call->flows || call->waits;

	call->waits = false;
	if (waits)
		call->wire.mhd->resume_connection(call->wire.connection);
}

void http_call_told(struct call *call)
{
	bool first = !call->told;

	call->told = true;
	if (first || call->waits)
		resume(call);
}

void http_call_ended(struct server *s, struct call *call, bool late)
{
	bool resumed = call->told && !call->flows;

	end_worker(s, call, late);
	if (call->told && call->end != WORKER_DONE)
		http_stream_fail(call, call->end == WORKER_BEYOND ? call->why : broken);
	if (call->peer) {
		call->peer->working = false;
		call->peer->until_s = clock_now_s() + LIMIT_SERVE_REQUEST_S;
	}
	if (!resumed)
		resume(call);
}

static enum MHD_Result answer(struct call *call)
{
	int fd = call->worker.answer;

	if (call->told || (call->api->stream && call->end == WORKER_DONE))
		return http_stream(call);
	call->worker.answer = -1;
	if (call->end == WORKER_DONE)
		return http_file(&call->wire, MHD_HTTP_OK, call->api->as, fd);
	if (call->end == WORKER_REFUSED)
		return http_file(&call->wire, MHD_HTTP_UNPROCESSABLE_CONTENT, NULL, fd);
	close(fd);
	if (call->end == WORKER_BEYOND)
		return http_error(&call->wire, MHD_HTTP_UNPROCESSABLE_CONTENT, "%s",
				  call->why);
	return http_error(&call->wire, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", broken);
}

enum MHD_Result http_handle(void *server, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *n_upload, void **context)
{
	struct server *s = server;
	const struct wire w = { &s->mhd, c };
	struct call *call = *context;
	enum MHD_Result said;
	bool done;

	(void)version;
	if (!call) {
		said = guarded(s, &w, url, &done);
		if (!done)
			said = routed(&w, url, method, &done);
		if (!done)
			*context = call_new(s, &w, url);
		return said;
	}
	if (*n_upload) {
		add(call, upload, *n_upload);
		*n_upload = 0;
		return MHD_YES;
	}
	if (call->state == CALL_ENDED)
		return answer(call);
	if (call->state == CALL_WORKS)
		return call->told && !call->flows ? http_stream(call) : MHD_YES;
	if (call->peer)
		call->peer->whole = true;
	return call->api ? begin(s, call) : http_page(&w, url);
}

void http_completed(void *server, struct MHD_Connection *c, void **context,
		    enum MHD_RequestTerminationCode how)
{
	struct server *s = server;
	const struct wire w = { &s->mhd, c };
	struct call *call = *context;
	struct peer *peer = peer_of(&w);

	(void)how;
	if (peer) {
		peer->until_s = clock_now_s() + LIMIT_SERVE_REQUEST_S;
		peer->whole = false;
	}
	if (!call)
		return;
	if (call->state == CALL_WORKS)
		end_worker(s, call, true);
	if (call->state == CALL_ENDED && call->worker.answer >= 0)
		close(call->worker.answer);
	*call->at = call->next;
	if (call->next)
		call->next->at = call->at;
	free(call->body);
	free(call);
	*context = NULL;
}
#endif
