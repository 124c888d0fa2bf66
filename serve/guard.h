/*
 * serve/guard.h - who may ask
 *
 * A page of another site can make a browser send requests here. Three things keep it out:
 * the Host must be an IP address, localhost or this machine's name (a name of the other
 * site that resolves to us is refused); an Origin must be ours; and beyond loopback a token
 * is wanted, as a bearer token or in a cookie.
 */
#ifndef SERVE_GUARD_H
#define SERVE_GUARD_H

#include <stdbool.h>

enum { GUARD_TOKEN = 33 }; /* 128 bits in hexadecimal, and NUL */

/* What of a request is looked at; NULL where it lacks the header. */
struct guard_request {
	const char *host, *origin, *fetch_site, *authorization, *cookie;
};

/* Is it the name or the address of this machine, port or not? */
bool guard_host(const char *host, const char *machine);

/* Is the origin that of the page that host serves, and no other? */
bool guard_origin(const struct guard_request *request);

/* Does it hold the token? In time that tells nothing of how much of it was right. */
bool guard_token(const struct guard_request *request, const char *token);

/* The same, compared as whole words. */
bool guard_same(const char *a, const char *b);

/* A token that nobody can guess; false when the system gives no random bytes. */
bool guard_make_token(char token[GUARD_TOKEN]);

#endif
