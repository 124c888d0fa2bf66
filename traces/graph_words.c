/* traces/graph_words.c - words of one line, and numbers within bounds */
#include "traces/graph_words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool graph_fail(struct graph_line *l, size_t word, const char *fmt, ...)
{
	struct ft_mark at = l->at;
	char text[sizeof(l->err->text)];
	va_list args;

	at.column = word < l->n ? l->word[word].column : 1;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return ft_fail(l->err, &at, "%s", text);
}

bool graph_split(struct graph_line *l, char *line)
{
	char *p = line;

	l->n = 0;
	while (*p) {
		char *eq;

		while (*p == ' ' || *p == '\t' || *p == '\r')
			p++;
		if (!*p || *p == '#')
			break;
		if (l->n == LIMIT_GRAPH_WORDS)
			return graph_fail(l, 0, "too many words on one line");
		l->word[l->n] =
			(struct graph_word){ .text = p, .column = (int)(p - line) + 1 };
		while (*p && *p != ' ' && *p != '\t' && *p != '\r')
			p++;
		if (*p)
			*p++ = '\0';
		eq = strchr(l->word[l->n].text, '=');
		if (eq) {
			*eq = '\0';
			l->word[l->n].value = eq + 1;
		}
		l->n++;
	}
	return true;
}

size_t graph_option(struct graph_line *l, const char *key)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->word[i].value && !l->word[i].used &&
		    !strcmp(l->word[i].text, key)) {
			l->word[i].used = true;
			return i;
		}
	return 0;
}

const char *graph_value(struct graph_line *l, const char *key)
{
	size_t i = graph_option(l, key);

	return i ? l->word[i].value : NULL;
}

static const char *text_at(const struct graph_line *l, size_t word)
{
	if (word >= l->n)
		return "";
	return l->word[word].value ? l->word[word].value : l->word[word].text;
}

bool graph_number(struct graph_line *l, size_t word, double least, double most,
		  double *out)
{
	const char *text = text_at(l, word);
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !isfinite(*out))
		return graph_fail(l, word, "expected a number");
	return (*out >= least && *out <= most) ||
	       graph_fail(l, word, "%.40s is not between %g and %g", text, least, most);
}

bool graph_whole(struct graph_line *l, size_t word, int64_t least, int64_t most,
		 int64_t *out)
{
	const char *text = text_at(l, word);
	long long v;
	char *end;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end)
		return graph_fail(l, word, "expected a whole number");
	if (errno || v < least || v > most)
		return graph_fail(l, word,
				  "%.40s is not between %" PRId64 " and %" PRId64, text,
				  least, most);
	*out = v;
	return true;
}

bool graph_number_of(struct graph_line *l, const char *key, double most, double *out)
{
	size_t i = graph_option(l, key);

	return !i || graph_number(l, i, 0, most, out);
}

bool graph_whole_of(struct graph_line *l, const char *key, int64_t least, int64_t most,
		    int64_t *out)
{
	size_t i = graph_option(l, key);

	return !i || graph_whole(l, i, least, most, out);
}

bool graph_truth(struct graph_line *l, const char *key, bool *out)
{
	size_t i = graph_option(l, key);
	const char *text = i ? l->word[i].value : "false";

	*out = !strcmp(text, "true");
	return *out || !strcmp(text, "false") ||
	       graph_fail(l, i, "%s= is true or false", key);
}

bool graph_all_used(struct graph_line *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->word[i].value && !l->word[i].used)
			return graph_fail(l, i, "unknown option '%.40s'",
					  l->word[i].text);
	return true;
}

int graph_find(const char *text, const char *(*name)(int), int n)
{
	for (int i = 0; text && i < n; i++)
		if (!strcmp(text, name(i)))
			return i;
	return -1;
}
