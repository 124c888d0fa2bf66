/*
 * foretoken/serve.h - a local page and a JSON API over HTTP
 *
 * The API answers with the bytes of the commands: what POST /api/simulate sends is what
 * `foretoken simulate --json` prints. Each answer is computed by a process of its own that
 * is bounded in time and memory, so that no request ends or slows the server. Requests name
 * presets, never files. docs/serve.md has all of it.
 */
#ifndef FORETOKEN_SERVE_H
#define FORETOKEN_SERVE_H

#include <stdio.h>

#include "foretoken/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ft_serve {
	const char *address; /* an IP address, "localhost" */
	int port;	     /* 0: any that is free */
	FILE *out;	     /* where one line says the page's address */
};

/* false: built without libmicrohttpd, or it is not installed. */
bool ft_serve_can(struct ft_error *err) __attribute__((warn_unused_result));

/* Serves until SIGINT or SIGTERM; the calling process must have one thread. On an address
 * beyond loopback a token is made, and wanted of each request. false: it could not begin. */
bool ft_serve(const struct ft_serve *asked, struct ft_error *err)
	__attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
