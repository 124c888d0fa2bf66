/* serve/guard.c - Host, Origin and token of a request */
#include "serve/guard.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/text.h"

enum { LONGEST_HOST = 256 };

/* The name of "name:port" or "[address]:port" into to; false: it is neither. */
static bool name_of(const char *host, char to[LONGEST_HOST])
{
	const char *end;
	size_t n;

	if (*host == '[') {
		host++;
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	} else {
		end = host + strcspn(host, ":");
	}
	n = (size_t)(end - host);
	if (!n || n >= LONGEST_HOST)
		return false;
	memcpy(to, host, n);
	to[n] = '\0';
	end += *end == ']';
	return !*end || end[1 + strspn(end + 1, "0123456789")] == '\0';
}

bool guard_host(const char *host, const char *machine)
{
	unsigned char address[sizeof(struct in6_addr)];
	char name[LONGEST_HOST];

	if (!host || !name_of(host, name))
		return false;
	return !strcasecmp(name, "localhost") ||
	       inet_pton(AF_INET, name, address) == 1 ||
	       inet_pton(AF_INET6, name, address) == 1 ||
	       (*machine && !strcasecmp(name, machine));
}

bool guard_origin(const struct guard_request *q)
{
	static const char scheme[] = "http://";

	if (q->fetch_site && strcmp(q->fetch_site, "same-origin") != 0 &&
	    strcmp(q->fetch_site, "none") != 0)
		return false;
	return !q->origin || (q->host && text_begins_with(q->origin, scheme) &&
			      !strcasecmp(q->origin + strlen(scheme), q->host));
}

bool guard_same(const char *a, const char *b)
{
	size_t n = strlen(b);
	unsigned char differ = strlen(a) != n;

	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(a[differ ? 0 : i] ^ b[i]);
	return !differ;
}

/* foretoken=TOKEN among the cookies */
static bool in_cookie(const char *cookie, const char *token)
{
	static const char key[] = "foretoken=";

	while (cookie && *cookie) {
		size_t n;
		char value[GUARD_TOKEN + 1];

		cookie += strspn(cookie, "; ");
		n = strcspn(cookie, ";");
		if (text_begins_with(cookie, key) && n - strlen(key) < sizeof(value)) {
			snprintf(value, sizeof(value), "%.*s", (int)(n - strlen(key)),
				 cookie + strlen(key));
			return guard_same(value, token);
		}
		cookie += n;
	}
	return false;
}

bool guard_token(const struct guard_request *q, const char *token)
{
	static const char bearer[] = "Bearer ";
	const char *given = q->authorization;

	if (given && text_begins_with(given, bearer) &&
	    guard_same(given + strlen(bearer), token))
		return true;
	return in_cookie(q->cookie, token);
}

bool guard_make_token(char token[GUARD_TOKEN])
{
	unsigned char random[(GUARD_TOKEN - 1) / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	return true;
}
