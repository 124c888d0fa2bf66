/*
 * serve/http.h - the server's loop and what it holds
 *
 * One thread and one poll(2): libmicrohttpd's sockets, the pipes of workers, signals. A
 * connection is a `peer`, with the time until which its request must be whole, or its answer
 * taken; slower ones are shut down, and the oldest without a whole request where there are too many. A request is a `call`, in one of three states.
 */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include "serve/guard.h"
#include "serve/mhd.h"
#include "serve/worker.h"

/* a connection, and the library that holds it */
struct wire {
	const struct mhd *mhd;
	struct MHD_Connection *connection;
};

struct peer {
	struct peer *next, **at;
	int fd;
	bool whole;   /* its request is here, and has not been answered */
	bool ended;   /* shut down, and about to go */
	bool working; /* a worker computes: the client is not the slow one */
	double until_s;
};

enum call_state { CALL_READS, CALL_WORKS, CALL_ENDED };

struct call {
	struct call *next, **at;
	struct wire wire;
	struct peer *peer;
	const struct api_call *api;
	enum call_state state;
	bool too_large;
	bool told;  /* of a stream: a part is there */
	bool flows; /* its response has begun */
	bool waits; /* and has nothing to say: it is suspended */
	char *body;
	size_t n, cap;
	struct worker worker;
	enum worker_end end;
	const char *why;
};

struct server {
	struct mhd mhd;
	struct MHD_Daemon *daemon;
	struct peer *peers;
	struct call *calls;
	size_t working, searching;
	sigset_t signals;
	char machine[256];	 /* its name; "" */
	char token[GUARD_TOKEN]; /* "": none is wanted */
};

/* ---- http_answer.c: what is said ------------------------------------------------- */

/* A page's file; MHD_NO when there is none of that path. */
bool http_has_page(const char *path);
enum MHD_Result http_page(const struct wire *w, const char *path);
enum MHD_Result http_file(const struct wire *w, unsigned status, const char *as,
			  int fd);
enum MHD_Result http_error(const struct wire *w, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* To the page without the token in its address, with the token in a cookie. */
enum MHD_Result http_admit(const struct wire *w, const char *token);

/* Server-sent events, as the worker writes them. */
enum MHD_Result http_stream(struct call *call);
/* It ended otherwise than it should: an event says why. */
void http_stream_fail(struct call *call, const char *why);

/* ---- http_call.c: libmicrohttpd's callbacks ---------------------------------------- */

enum MHD_Result http_handle(void *server, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *n_upload, void **call);
void http_completed(void *server, struct MHD_Connection *c, void **call,
		    enum MHD_RequestTerminationCode how);
void http_connected(void *server, struct MHD_Connection *c, void **peer,
		    enum MHD_ConnectionNotificationCode what);
/* Parts of a stream are there. */
void http_call_told(struct call *call);
/* The worker's end, by itself or not. */
void http_call_ended(struct server *s, struct call *call, bool late);

#endif
