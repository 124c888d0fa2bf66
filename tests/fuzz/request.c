/* tests/fuzz/request.c - bytes as a request to serve */
#include "tests/fuzz/request.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "serve/api.h"
#include "serve/guard.h"

/* The line at *at, taken away from it. */
static char *line_at(struct arena *mem, const char **at, const char *end)
{
	const char *from = *at, *stop = memchr(from, '\n', (size_t)(end - from));

	*at = stop ? stop + 1 : end;
	return arena_text_n(mem, from, (size_t)((stop ? stop : end) - from));
}

/* Whatever is answered is JSON, or events, and a refusal says why. */
static enum verdict call_api(const struct api_call *call, const struct api_text *body)
{
	char *text = NULL;
	size_t n = 0;
	struct api_stream to = { open_memstream(&text, &n), -1, 0.01 };
	json_t *answer;
	enum verdict ok;
	const char *why = NULL;

	if (!to.out)
		abort();
	ok = api_answer(call, body, &to) ? TAKEN : REFUSED;
	if (fclose(to.out))
		abort();
	answer = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (ok == REFUSED)
		why = json_string_value(
			json_object_get(json_object_get(answer, "error"), "text"));
	if (ok == TAKEN && call->stream)
		ok = n > 7 && !memcmp(text, "event: ", 7) ? TAKEN : SILENT;
	else if (!answer || (ok == REFUSED && !(why && *why)))
		ok = SILENT;
	json_decref(answer);
	free(text);
	return ok;
}

/* Lines: Host, Origin, cookie, path; then the body. */
enum verdict request_run(const uint8_t *data, size_t n, const char *only)
{
	static const char token[] = "0123456789abcdef0123456789abcdef";
	const char *at = (const char *)data, *end = at + n;
	struct arena mem = { 0 };
	struct guard_request q = { .host = line_at(&mem, &at, end),
				   .origin = line_at(&mem, &at, end),
				   .cookie = line_at(&mem, &at, end) };
	const struct api_call *call = api_find(line_at(&mem, &at, end));
	struct api_text body = { at, (size_t)(end - at) };
	enum verdict ok = REFUSED;

	if (guard_host(q.host, "machine") && guard_origin(&q) && guard_token(&q, token))
		ok = TAKEN;
	if (call && (!only || !strcmp(call->path, only)))
		ok = call_api(call, &body);
	arena_release(&mem);
	return ok;
}
