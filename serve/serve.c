/* serve/serve.c - the address, the loop, the end */
#include "foretoken/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"

#ifndef FORETOKEN_HTTP
bool ft_serve_can(struct ft_error *err)
{
	return ft_fail(err, NULL,
		       "this foretoken was built without libmicrohttpd; install "
		       "libmicrohttpd-dev, then 'make clean' and 'make'");
}

bool ft_serve(const struct ft_serve *asked, struct ft_error *err)
{
	(void)asked;
	return ft_serve_can(err);
}
#else
#include "serve/http.h"

bool ft_serve_can(struct ft_error *err)
{
	struct mhd mhd;

	return mhd_load(&mhd, err);
}

/* ---- where ------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static bool find_address(const struct ft_serve *asked, union address *to,
			 struct ft_error *err)
{
	const char *text =
		strcmp(asked->address, "localhost") ? asked->address : "127.0.0.1";

	*to = (union address){ 0 };
	if (inet_pton(AF_INET, text, &to->four.sin_addr) == 1) {
		to->four.sin_family = AF_INET;
		to->four.sin_port = htons((uint16_t)asked->port);
		return true;
	}
	if (inet_pton(AF_INET6, text, &to->six.sin6_addr) == 1) {
		to->six.sin6_family = AF_INET6;
		to->six.sin6_port = htons((uint16_t)asked->port);
		return true;
	}
	return ft_fail(err, NULL,
		       "--listen %.60s: is no IP address; write 127.0.0.1, ::1, or the "
		       "address of a network card",
		       asked->address);
}

static bool is_loopback(const union address *a)
{
	return a->any.sa_family == AF_INET ?
		       ntohl(a->four.sin_addr.s_addr) >> 24 == 127 :
		       IN6_IS_ADDR_LOOPBACK(&a->six.sin6_addr);
}

static void say(const struct server *s, const struct ft_serve *asked,
		const union address *at)
{
	const union MHD_DaemonInfo *port =
		s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
	const char *open = at->any.sa_family == AF_INET6 ? "[" : "",
		   *close = *open ? "]" : "";

	fprintf(asked->out, "http://%s%s%s:%u/%s%s\n", open, asked->address, close,
		(unsigned)(port ? port->port : 0), *s->token ? "?token=" : "",
		s->token);
	fflush(asked->out);
}

/* ---- begin, loop, end ---------------------------------------------------------------- */

/* Our paths hold no escapes: none is undone, so that none can hide anything. */
static size_t as_it_is(void *server, struct MHD_Connection *c, char *text)
{
	(void)server;
	(void)c;
	return strlen(text);
}

static bool begin(struct server *s, const struct ft_serve *asked,
		  const union address *at, struct ft_error *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	if (at->any.sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	s->daemon = s->mhd.start_daemon(
		flags, 0, NULL, NULL, http_handle, s, MHD_OPTION_SOCK_ADDR, &at->any,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_SERVE_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_SERVE_HEAD_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_SERVE_IDLE_S,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		MHD_OPTION_UNESCAPE_CALLBACK, as_it_is, s, MHD_OPTION_NOTIFY_CONNECTION,
		http_connected, s, MHD_OPTION_NOTIFY_COMPLETED, http_completed, s,
		MHD_OPTION_END);
	if (s->daemon)
		return true;
	return ft_fail(
		err, NULL,
		"cannot listen on %.60s, port %d: %s; try another --port, or 0 for "
		"any that is free",
		asked->address, asked->port,
		errno ? strerror(errno) : "the system refuses");
}

/* Milliseconds until something is due, a second at most: at the limit of connections
 * libmicrohttpd stops to listen, and begins again in the MHD_run() after they ended, of
 * which it tells nobody. */
static int wait_ms(struct server *s)
{
	double now = clock_now_s(), until = now + 1;
	MHD_UNSIGNED_LONG_LONG ms;

	for (const struct peer *p = s->peers; p; p = p->next)
		if (!p->working && p->until_s < until)
			until = p->until_s;
	for (const struct call *c = s->calls; c; c = c->next)
		if (c->state == CALL_WORKS && c->worker.until_s < until)
			until = c->worker.until_s;
	if (s->mhd.get_timeout(s->daemon, &ms) == MHD_YES &&
	    now + 1e-3 * (double)ms < until)
		until = now + 1e-3 * (double)ms;
	return until > now ? (int)(1e3 * (until - now)) + 1 : 0;
}

/* Workers that have ended, or must; clients that are too slow. */
static void look_after(struct server *s, const struct pollfd *fd, size_t n)
{
	double now = clock_now_s();

	for (struct call *c = s->calls; c; c = c->next) {
		bool late = c->state == CALL_WORKS && now >= c->worker.until_s;
		bool said = false, ended;

		for (size_t i = 0; c->state == CALL_WORKS && i < n; i++)
			said = said || (fd[i].fd == c->worker.ended && fd[i].revents);
		ended = said && worker_has_ended(&c->worker);
		if (ended || late)
			http_call_ended(s, c, !ended);
		else if (said)
			http_call_told(c);
	}
	for (struct peer *p = s->peers; p; p = p->next)
		if (!p->working && now >= p->until_s) {
			shutdown(p->fd, SHUT_RDWR);
			p->ended = true;
			p->until_s = now + LIMIT_SERVE_REQUEST_S;
		}
}

/* Until a signal comes. */
static void loop(struct server *s, int signals)
{
	enum { FIXED = 2 };
	const union MHD_DaemonInfo *epoll =
		s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fd[FIXED + LIMIT_SERVE_WORKERS] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = epoll->epoll_fd, .events = POLLIN },
	};

	while (!fd[0].revents) {
		size_t n = FIXED;

		for (const struct call *c = s->calls; c; c = c->next)
			if (c->state == CALL_WORKS)
				fd[n++] = (struct pollfd){ .fd = c->worker.ended,
							   .events = POLLIN };
		if (poll(fd, n, wait_ms(s)) < 0)
			fd[0].revents = 0;
		else
			look_after(s, fd + FIXED, n - FIXED);
		s->mhd.run(s->daemon);
	}
}

static void end(struct server *s)
{
	for (struct call *c = s->calls; c; c = c->next)
		if (c->state == CALL_WORKS)
			http_call_ended(s, c, true);
	s->mhd.run(s->daemon); /* what is resumed is answered, then all is closed */
	s->mhd.stop_daemon(s->daemon);
}

bool ft_serve(const struct ft_serve *asked, struct ft_error *err)
{
	struct server s = { 0 };
	union address at;
	void (*pipes)(int);
	sigset_t before;
	int signals;
	bool ok;

	if (!find_address(asked, &at, err) || !mhd_load(&s.mhd, err))
		return false;
	if (gethostname(s.machine, sizeof(s.machine) - 1))
		s.machine[0] = '\0';
	if (!is_loopback(&at) && !guard_make_token(s.token))
		return ft_fail(err, NULL,
			       "the system gives no random bytes for a token");
	sigemptyset(&s.signals);
	sigaddset(&s.signals, SIGINT);
	sigaddset(&s.signals, SIGTERM);
	signals = signalfd(-1, &s.signals, SFD_CLOEXEC);
	if (signals < 0)
		return ft_fail(err, NULL, "no more files: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &s.signals, &before);
	pipes = signal(SIGPIPE, SIG_IGN);
	ok = begin(&s, asked, &at, err);
	if (ok) {
		struct signalfd_siginfo taken;

		say(&s, asked, &at);
		loop(&s, signals);
		(void)!read(signals, &taken, sizeof(taken)); /* what ended the loop */
		end(&s);
	}
	close(signals);
	signal(SIGPIPE, pipes);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ok;
}
#endif
