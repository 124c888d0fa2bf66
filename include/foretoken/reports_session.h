/*
 * foretoken/reports_session.h - the answers of the commands for other programs: text in, JSON out
 *
 *	struct ft_session *s = ft_session_new();
 *	char *json = ft_session_simulate(s, "{model: llama3-8b, cluster: ..., training: ...}");
 *	if (!json)
 *		fputs(ft_session_error(s), stderr);
 *	free(json);
 *	ft_session_free(s);
 *
 * A session keeps what it has read (profiles, stacks, price books) and kernels it has predicted, up
 * to some hundred MB, and reads them anew beyond. It belongs to one thread at a time. Where the
 * system has no memory left, the process ends with "foretoken: error: out of memory" on stderr and
 * status 1. These functions, and the keys of the JSON, stay what they are within a major version;
 * python/foretoken uses nothing else.
 */
#ifndef FORETOKEN_REPORTS_SESSION_H
#define FORETOKEN_REPORTS_SESSION_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ft_session;

struct ft_session *ft_session_new(void);
void ft_session_free(struct ft_session *session);

/* scenario: YAML or JSON. The JSON of `foretoken simulate --json`, which the caller frees; NULL:
 * see ft_session_error. */
char *ft_session_simulate(struct ft_session *session, const char *scenario);

/* The JSON of `foretoken compare --json`; n from 2 to 16. */
char *ft_session_compare(struct ft_session *session, const char *const *scenario,
			 size_t n);

/* Frees a text that one of these gave, for callers whose free() is another. */
void ft_session_release(char *text);

/* Of the last call: "scenario 1:3:7: error: ..."; "" when it succeeded. The session's own. */
const char *ft_session_error(const struct ft_session *session);

#ifdef __cplusplus
}
#endif
#endif
