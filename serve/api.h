/*
 * serve/api.h - a call of the API: bytes in, JSON out
 *
 * Knows no HTTP. It runs in a
 * process of its own (serve/worker.h): it may take all the time and memory that it likes.
 */
#ifndef SERVE_API_H
#define SERVE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ft_error;

struct api_text {
	const char *text;
	size_t n;
};

/* An answer in parts, which are told as they are written. */
struct api_stream {
	FILE *out;
	int told;	  /* a byte goes there behind each part; below 0: nowhere */
	double at_most_s; /* then it ends with what it has */
};

struct api_call {
	const char *path; /* "/api/simulate" */
	bool posted;	  /* it has a body; else it is asked for with GET */
	const char *as;	  /* the name of the answer as a file; NULL: it is shown */
	bool (*answer)(const struct api_text *body, FILE *out, struct ft_error *err);
	/* Instead: server-sent events. false: there was none, and is none. */
	bool (*stream)(const struct api_text *body, struct api_stream *to,
		       struct ft_error *err);
};

/* NULL: there is none. */
const struct api_call *api_find(const char *path);

/* Writes the answer to to->out, or (false) nothing but why there is none, as api_error does.
 * The rest of *to counts for answers in parts. */
bool api_answer(const struct api_call *call, const struct api_text *body,
		struct api_stream *to);

/* An event of a stream: its name, and its data, which may be several lines. */
void api_event(struct api_stream *to, const char *name, const char *data);

/* {"error": {file, line, column, text, hint}}; file "" and line 0 where it has no place. */
void api_error(FILE *out, const struct ft_error *err);

/* Those of serve/names.c. */
bool api_names(const struct api_text *body, FILE *out, struct ft_error *err);
bool api_keys(const struct api_text *body, FILE *out, struct ft_error *err);

/* serve/plan.c */
bool api_plan(const struct api_text *body, struct api_stream *to, struct ft_error *err);

#endif
